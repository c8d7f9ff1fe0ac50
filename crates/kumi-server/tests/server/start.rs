//! A server that another program starts, and its handle.

use crate::common::{
    Client, TEST_TIMEOUT, eventually, free_port, request, text, with_outward_address,
};
use kumi_server::{
    Config, ControlError, DataId, HostUser, Server, ServerConfig, StartError, TlsIdentity,
};
use kumi_store::config::Origin;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// A configuration with these directives, and nothing saved.
fn config(directives: &[(&str, &str)]) -> ServerConfig {
    let mut config = Config::new();
    for (name, value) in [&[("save", "")][..], directives].concat() {
        let pair: (&[u8], &[u8]) = (name.as_bytes(), value.as_bytes());
        let _changes = config.set_many(&[pair], Origin::Startup).unwrap();
    }
    config.into()
}

/// The same for a server that keeps its data in a directory, and listens on a socket there.
fn config_at(dir: &Path, directives: &[(&str, &str)]) -> ServerConfig {
    let socket = dir.join("s");
    let fixed = [
        ("port", "0"),
        ("dir", dir.to_str().unwrap()),
        ("unixsocket", socket.to_str().unwrap()),
    ];
    let mut config = config(&[&fixed[..], directives].concat());
    config.keeps_files = true;
    config
}

/// A server on a port of its own.
fn start_plain() -> Server {
    let port = free_port().to_string();
    Server::start(config(&[("port", &port), ("bind", "127.0.0.1")])).unwrap()
}

fn host_client(server: &Server) -> Client<UnixStream> {
    let stream = server.handle().connect().unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    Client::new(stream)
}

#[test]
fn its_handle_says_where_it_is_and_how_it_is() {
    let port = free_port();
    let before = std::env::current_dir().unwrap();
    let server = Server::start(config(&[
        ("port", &port.to_string()),
        ("bind", "127.0.0.1 127.0.0.2"),
    ]))
    .unwrap();
    let handle = server.handle().clone();
    assert_eq!(handle.url(), format!("redis://127.0.0.1:{port}"));
    let address = |host: &str| format!("{host}:{port}").parse::<SocketAddr>().unwrap();
    assert_eq!(
        handle.addresses().tcp,
        [address("127.0.0.1"), address("127.0.0.2")]
    );
    assert!(handle.addresses().tls.is_empty());
    let mut client = Client::tcp(port);
    assert_eq!(client.line("SET a 1"), "OK");
    // A client that needs no address.
    let mut own = host_client(&server);
    assert_eq!(own.line("GET a"), "1");
    assert!(own.line("CLIENT LIST").contains("addr=host:0"));
    let info = handle.info().unwrap();
    assert!(info.contains("\nconnected_clients:2\n"), "{info}");
    let id = handle.data_id().to_string();
    assert!(info.contains(&format!("\nkumi_data_id:{id}\n")), "{info}");
    assert_eq!(std::env::current_dir().unwrap(), before);
    server.stop().unwrap();
    assert_eq!(client.read_to_end(), b"");
    assert!(matches!(handle.info(), Err(ControlError::Stopped)));
    assert!(handle.connect().is_err());
}

#[test]
fn a_stop_replies_to_what_has_arrived() {
    let server = start_plain();
    let mut client = host_client(&server);
    let value = "x".repeat(100_000);
    let requests: Vec<u8> = (0..50).flat_map(|_| request(&["ECHO", &value])).collect();
    // More than the socket takes: the rest of the replies is written while the server stops.
    let mut sender = client.stream.try_clone().unwrap();
    let sending = std::thread::spawn(move || sender.write_all(&requests).unwrap());
    assert_eq!(text(&client.reply()), value);
    sending.join().unwrap();
    let stopping = std::thread::spawn(move || server.stop());
    for _ in 1..50 {
        assert_eq!(text(&client.reply()), value);
    }
    assert_eq!(client.read_to_end(), b"");
    stopping.join().unwrap().unwrap();
}

#[test]
fn a_wait_ends_with_the_server() {
    let mut server = start_plain();
    let mut client = host_client(&server);
    client.send("SHUTDOWN NOSAVE\r\n");
    server.wait().unwrap();
    server.wait().unwrap();
    let mut server = start_plain();
    let shutdown = server.handle().shutdown();
    let waiting = std::thread::spawn(move || server.wait());
    shutdown.request();
    waiting.join().unwrap().unwrap();
}

#[test]
fn what_is_wrong_at_the_start_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let listen = Server::start(config(&[("port", &port), ("bind", "127.0.0.1")]));
    assert!(matches!(listen, Err(StartError::Listen(_))), "{listen:?}");
    let nowhere = Server::start(config(&[("port", "0")]));
    assert!(
        matches!(nowhere, Err(StartError::NothingToListenOn)),
        "{nowhere:?}"
    );
    let free = || free_port().to_string();
    let mut away = config(&[("dir", "/nonexistent"), ("port", &free())]);
    away.keeps_files = true;
    let away = Server::start(away);
    assert!(matches!(away, Err(StartError::Directory(..))), "{away:?}");
    let mut users = config(&[("port", &free())]);
    users.users = vec![HostUser::new("me", "on")];
    let users = Server::start(users).unwrap_err().to_string();
    assert!(users.contains("user 'me'"), "{users}");
    let key = KeyPair::generate().unwrap().serialize_pem();
    let (other, _) = certificate();
    let mut wrong = config(&[("port", &free())]);
    wrong.by_address = Some(identity(&other, &key));
    let wrong = Server::start(wrong);
    assert!(matches!(wrong, Err(StartError::Server(_))), "{wrong:?}");
    assert!(TlsIdentity::from_pem(b"", key.as_bytes()).is_err());
    assert!(TlsIdentity::from_pem(other.as_bytes(), b"").is_err());
}

/// Has a server of these directives execute lines, and stops it. Returns the id of its data set.
fn id_at(dir: &Path, directives: &[(&str, &str)], lines: &[&str]) -> String {
    let server = Server::start(config_at(dir, directives)).unwrap();
    let mut client = host_client(&server);
    for line in lines {
        let reply = client.line(line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
    }
    let id = server.handle().data_id().to_string();
    let info = client.line("INFO server");
    assert!(info.contains(&format!("kumi_data_id:{id}\r\n")), "{info}");
    server.stop().unwrap();
    id
}

#[test]
fn the_id_of_a_data_set_survives_restarts_rewrites_and_reloads() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let aof = [("appendonly", "yes"), ("enable-debug-command", "yes")];
    // The base of the first start has it already, without any write.
    let id = id_at(dir.path(), &aof, &[]);
    assert_ne!(id, id_at(other.path(), &aof, &[]));
    let lines = ["SET a 1", "FLUSHALL", "SET a 1", "BGREWRITEAOF"];
    assert_eq!(id_at(dir.path(), &aof, &lines), id);
    assert_eq!(id_at(dir.path(), &aof, &["DEBUG RELOAD"]), id);
    assert_eq!(id_at(dir.path(), &aof, &["DEBUG LOADAOF", "SAVE"]), id);
    assert!(!dir.path().join("kumi-data-id").exists());
    // An RDB file has it, also as a backup elsewhere.
    let backup = tempfile::tempdir().unwrap();
    fs::copy(dir.path().join("dump.rdb"), backup.path().join("dump.rdb")).unwrap();
    assert_eq!(id_at(backup.path(), &[], &["GET a"]), id);
}

#[test]
fn data_that_is_never_saved_is_another_data_set_at_each_start() {
    let dir = tempfile::tempdir().unwrap();
    let next = || id_at(dir.path(), &[], &["SET a 1"]);
    assert_ne!(next(), next());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let embedded = || kumi_server::embedded().unwrap().handle().data_id();
    assert_ne!(embedded(), embedded());
}

#[test]
fn data_without_an_id_has_the_one_that_the_program_gives() {
    let given = DataId::parse(b"0123456789abcdef0123456789abcdef");
    let start = |dir: &Path, directives: &[(&str, &str)]| {
        let mut config = config_at(dir, directives);
        config.data_id = given;
        let server = Server::start(config).unwrap();
        let id = server.handle().data_id();
        server.stop().unwrap();
        Some(id)
    };
    let aof = [("appendonly", "yes")];
    for directives in [&[][..], &aof] {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(start(dir.path(), directives), given);
    }
    // Data that has one keeps it.
    let dir = tempfile::tempdir().unwrap();
    let own = id_at(dir.path(), &aof, &["SET a 1"]);
    assert_eq!(start(dir.path(), &aof).map(|id| id.to_string()), Some(own));
}

#[test]
fn a_base_of_plain_requests_leaves_the_id_beside_the_data() {
    let dir = tempfile::tempdir().unwrap();
    let plain = [("appendonly", "yes"), ("aof-use-rdb-preamble", "no")];
    let id = id_at(dir.path(), &plain, &["SET a 1"]);
    let file = dir.path().join("kumi-data-id");
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("1 {id}\n"));
    assert_eq!(id_at(dir.path(), &plain, &[]), id);
    // A base that carries it takes over: once it is written, the file is not needed.
    let carried = [("appendonly", "yes")];
    let server = Server::start(config_at(dir.path(), &carried)).unwrap();
    let mut client = host_client(&server);
    client.line("BGREWRITEAOF");
    eventually(
        || client.line("INFO persistence"),
        |info| info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrites:1"),
    );
    server.stop().unwrap();
    assert_eq!(id_at(dir.path(), &carried, &[]), id);
    assert!(!file.exists());
    // A server whose AOF becomes one of plain requests while it runs keeps it, too.
    let lines = ["CONFIG SET aof-use-rdb-preamble no"];
    assert_eq!(id_at(dir.path(), &carried, &lines), id);
    assert!(file.exists());
}

/// Has a redis-server execute a line in a directory, and save.
fn redis_server(dir: &Path, line: &str) {
    let socket = dir.join("redis");
    let mut redis = Command::new("redis-server")
        .args(["--port", "0", "--save", "", "--unixsocket"])
        .arg(&socket)
        .current_dir(dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let connected = || UnixStream::connect(&socket).is_ok();
    eventually(connected, |&connected| connected);
    let mut client = Client::unix(&socket);
    assert_eq!(client.line(line), "OK");
    client.send("SHUTDOWN SAVE\r\n");
    assert!(redis.wait().unwrap().success());
}

#[test]
fn a_data_set_of_redis_server_gets_an_id_and_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    redis_server(dir.path(), "SET from redis");
    // Nothing saves it: the id is beside the data.
    let id = id_at(dir.path(), &[], &["GET from"]);
    let file = dir.path().join("kumi-data-id");
    assert_eq!(fs::read_to_string(&file).unwrap(), format!("1 {id}\n"));
    assert_eq!(id_at(dir.path(), &[], &["SAVE"]), id);
    assert_eq!(id_at(dir.path(), &[], &["GET from"]), id);
    assert!(!file.exists(), "the data carries it now");
    // redis-server passes over it, and leaves it out of what it saves: that is a data set without an id again.
    redis_server(dir.path(), "SET from again");
    assert_ne!(id_at(dir.path(), &[], &["GET from"]), id);
    // What a later version wrote is not overwritten.
    fs::write(&file, "2 later\n").unwrap();
    let error = Server::start(config_at(dir.path(), &[])).unwrap_err();
    assert!(error.to_string().contains("version 2"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "2 later\n");
}

/// A certificate that signs itself, and its key, in PEM.
fn certificate() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["store.test".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn identity(certificate: &str, key: &str) -> TlsIdentity {
    TlsIdentity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap()
}

type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

/// A handshake that trusts this certificate alone.
fn connect_tls(address: IpAddr, port: u16, certificate: &str) -> std::io::Result<TlsClient> {
    let mut roots = RootCertStore::empty();
    let trusted = CertificateDer::from_pem_slice(certificate.as_bytes());
    roots.add(trusted.unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("store.test").unwrap();
    let session = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect((address, port))?;
    socket.set_read_timeout(Some(TEST_TIMEOUT))?;
    let mut stream = StreamOwned::new(session, socket);
    // This completes the handshake.
    stream.flush()?;
    Ok(Client::new(stream))
}

#[test]
fn the_listener_decides_between_plain_text_and_tls() {
    let name = "start::the_listener_decides_between_plain_text_and_tls";
    with_outward_address(name, |outward| {
        for bind in [format!("127.0.0.1 {outward}"), "*".to_owned()] {
            check_listeners(outward, &bind);
        }
    });
}

fn check_listeners(outward: IpAddr, bind: &str) {
    let (first, first_key) = certificate();
    let port = free_port();
    let mut config = config(&[("port", &port.to_string()), ("bind", bind)]);
    config.by_address = Some(identity(&first, &first_key));
    config.users = vec![HostUser::new("kumi-app", "on >secret ~* &* +@all")];
    let server = Server::start(config).unwrap();
    let handle = server.handle();
    assert_eq!(handle.url(), format!("redis://127.0.0.1:{port}"));
    assert_eq!(handle.addresses().tls.len(), 1, "{bind}");
    // Plain text on the loopback address, as the default user.
    let mut plain = Client::tcp(port);
    assert_eq!(plain.line("SET a 1"), "OK");
    // TLS on the other one, where protected mode does not apply and the default user may not log in.
    let mut client = connect_tls(outward, port, &first).unwrap();
    assert_eq!(client.line("GET a"), "-NOAUTH Authentication required.");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.";
    assert_eq!(client.line("AUTH default any"), wrong);
    assert_eq!(client.line("AUTH kumi-app secret"), "OK");
    assert_eq!(client.line("GET a"), "1");
    // Plain text gets no reply there.
    let mut refused = TcpStream::connect((outward, port)).unwrap();
    refused.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    refused.write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = refused.read_to_end(&mut answer);
    assert!(!answer.windows(4).any(|part| part == b"PONG"), "{answer:?}");
    // Another certificate is for new connections.
    let (second, second_key) = certificate();
    assert!(connect_tls(outward, port, &second).is_err());
    let replaced = handle.replace_identity(identity(&second, &second_key));
    replaced.unwrap();
    assert_eq!(client.line("GET a"), "1");
    assert!(connect_tls(outward, port, &first).is_err());
    let mut client = connect_tls(outward, port, &second).unwrap();
    assert_eq!(client.line("AUTH kumi-app secret"), "OK");
    // One that does not fit its key changes nothing.
    let refused = handle.replace_identity(identity(&first, &second_key));
    assert!(
        matches!(refused, Err(ControlError::Refused(_))),
        "{refused:?}"
    );
    assert!(connect_tls(outward, port, &second).is_ok());
    // A port that is changed while it runs is served in the same way.
    let next = free_port();
    assert_eq!(plain.line(&format!("CONFIG SET port {next}")), "OK");
    assert_eq!(Client::tcp(next).line("GET a"), "1");
    let mut client = connect_tls(outward, next, &second).unwrap();
    assert_eq!(client.line("GET a"), "-NOAUTH Authentication required.");
}

#[test]
fn a_server_without_such_listeners_takes_no_certificate() {
    let server = start_plain();
    let (certificate, key) = certificate();
    let refused = server
        .handle()
        .replace_identity(identity(&certificate, &key));
    assert!(
        matches!(refused, Err(ControlError::Refused(_))),
        "{refused:?}"
    );
}

#[test]
fn users_of_the_program_are_changed_through_the_handle_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("users.acl");
    fs::write(&file, "user other on >pw ~* &* +@all\n").unwrap();
    let mut config = config(&[
        ("port", &free_port().to_string()),
        ("aclfile", file.to_str().unwrap()),
    ]);
    config.users = vec![HostUser::new("kumi-app", "on >secret ~* &* +@all")];
    let server = Server::start(config).unwrap();
    let mut admin = host_client(&server);
    let mut app = host_client(&server);
    assert_eq!(app.line("AUTH kumi-app secret"), "OK");
    assert!(admin.line("ACL DELUSER kumi-app").starts_with("-ERR"));
    assert_eq!(admin.line("ACL LOAD"), "OK");
    assert_eq!(admin.line("ACL SAVE"), "OK");
    let saved = fs::read_to_string(&file).unwrap();
    assert!(
        saved.contains("user other") && !saved.contains("kumi"),
        "{saved}"
    );
    assert_eq!(app.line("ACL WHOAMI"), "kumi-app");
    let handle = server.handle();
    let refused = handle.set_users(vec![HostUser::new("other", "on")]);
    assert!(matches!(refused, Err(ControlError::Refused(_))));
    assert_eq!(app.line("ACL WHOAMI"), "kumi-app");
    let changed = handle.set_users(vec![HostUser::new("kumi-app", "on >next ~* &* +@all")]);
    changed.unwrap();
    assert_eq!(app.read_to_end(), b"");
    let mut app = host_client(&server);
    assert!(app.line("AUTH kumi-app secret").starts_with("-WRONGPASS"));
    assert_eq!(app.line("AUTH kumi-app next"), "OK");
    assert_eq!(admin.line("PING"), "PONG");
}

#[test]
fn users_do_not_change_in_the_middle_of_a_script() {
    let app_users = |password: &str| {
        let rules = format!("on >{password} ~* &* +@all");
        vec![HostUser::new("kumi-app", rules)]
    };
    let port = free_port().to_string();
    let mut config = config(&[("port", &port), ("busy-reply-threshold", "1")]);
    config.users = app_users("secret");
    let server = Server::start(config).unwrap();
    let mut app = host_client(&server);
    let mut other = host_client(&server);
    assert_eq!(app.line("AUTH kumi-app secret"), "OK");
    let script = "for _ = 1, 3000000 do redis.call('INCR', 'n') end redis.call('SET', 'ended', 1)";
    app.send(request(&["EVAL", script, "0"]));
    eventually(
        || other.line("GET ended"),
        |reply| reply.starts_with("-BUSY"),
    );
    let handle = server.handle();
    assert!(handle.info().unwrap().contains("\nconnected_clients:2\n"));
    assert!(other.line("GET ended").starts_with("-BUSY"));
    handle.set_users(app_users("next")).unwrap();
    assert_eq!(other.line("GET ended"), "1");
    assert_eq!(other.line("GET n"), "3000000");
    // The connection of the script is closed like any other of its user.
    app.read_to_end();
    assert_eq!(other.line("AUTH kumi-app next"), "OK");
}

#[test]
fn a_rewritten_configuration_has_no_users_of_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("redis.conf");
    fs::write(&file, "save \"\"\n").unwrap();
    let mut config = config(&[("port", &free_port().to_string())]);
    config.file = Some(file.clone());
    config.users = vec![HostUser::new("kumi-app", "on >secret ~* &* +@all")];
    let server = Server::start(config).unwrap();
    let mut admin = host_client(&server);
    assert_eq!(admin.line("ACL SETUSER other on >pw ~* +@all"), "OK");
    assert_eq!(admin.line("CONFIG REWRITE"), "OK");
    let written = fs::read_to_string(&file).unwrap();
    assert!(
        written.contains("user other") && !written.contains("kumi"),
        "{written}"
    );
}
