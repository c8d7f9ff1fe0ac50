//! TLS through the built server: rustls and redis-cli as clients, certificates made for the test.

use crate::common::{Client, Process, TEST_TIMEOUT, free_port, request, text};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

type TlsClient = Client<StreamOwned<ClientConnection, TcpStream>>;

/// Writes an authority, a server's and a client's certificate, all with their keys.
fn make_certificates(dir: &Path, name: &str) {
    let write = |file: String, text: String| fs::write(dir.join(file), text).unwrap();
    let authority_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
        .distinguished_name
        .push(DnType::CommonName, format!("test authority {name}"));
    let authority = params.self_signed(&authority_key).unwrap();
    write(format!("{name}-ca.pem"), authority.pem());
    let issuer = Issuer::new(params, authority_key);
    for side in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap();
        write(format!("{name}-{side}.pem"), certificate.pem());
        write(format!("{name}-{side}.key"), key.serialize_pem());
    }
}

/// A server with a `tls-port`, and the directory its certificates are in.
struct TlsServer {
    process: Process,
    port: u16,
    files: TempDir,
}

impl TlsServer {
    fn start(directives: &[&str]) -> Self {
        let files = tempfile::tempdir().unwrap();
        make_certificates(files.path(), "one");
        make_certificates(files.path(), "two");
        let port = free_port();
        let file = |name: &str| files.path().join(name).to_str().unwrap().to_owned();
        let fixed = [
            "--port".to_owned(),
            "0".to_owned(),
            "--tls-port".to_owned(),
            port.to_string(),
            "--tls-cert-file".to_owned(),
            file("one-server.pem"),
            "--tls-key-file".to_owned(),
            file("one-server.key"),
            "--tls-ca-cert-file".to_owned(),
            file("one-ca.pem"),
        ];
        let mut args: Vec<&str> = fixed.iter().map(String::as_str).collect();
        args.extend(directives);
        let dir = tempfile::tempdir().unwrap();
        let process = Process::start_in(dir, &args, "Ready to accept connections tls");
        Self {
            process,
            port,
            files,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.path().join(name)
    }

    /// A handshake that trusts an authority and shows a certificate.
    fn try_connect(&self, authority: &str, shown: Option<&str>) -> std::io::Result<TlsClient> {
        let mut roots = RootCertStore::empty();
        let path = self.file(&format!("{authority}-ca.pem"));
        roots
            .add(CertificateDer::from_pem_file(path).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match shown {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let chain = CertificateDer::from_pem_file(self.file(&format!("{name}-client.pem")));
                let key = PrivateKeyDer::from_pem_file(self.file(&format!("{name}-client.key")));
                let chain = vec![chain.unwrap()];
                builder.with_client_auth_cert(chain, key.unwrap()).unwrap()
            }
        };
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(TEST_TIMEOUT))?;
        let mut stream = StreamOwned::new(session, socket);
        // TLS 1.3 tells a client only with its first read that its certificate was refused.
        stream.write_all(b"PING\r\n")?;
        let mut pong = [0; 7];
        stream.read_exact(&mut pong)?;
        assert_eq!(&pong, b"+PONG\r\n");
        Ok(Client::new(stream))
    }

    fn connect(&self) -> TlsClient {
        self.try_connect("one", None).unwrap()
    }
}

#[test]
fn requests_of_all_sizes_and_pipelines_go_both_ways() {
    let server = TlsServer::start(&["--tls-auth-clients", "no"]);
    let mut client = server.connect();
    assert_eq!(client.line("SET a 1"), "OK");
    assert_eq!(client.line("INCR a"), "2");
    for size in [
        1, 100, 16_000, 16_384, 16_385, 40_000, 70_000, 1_000_000, 5_000_000,
    ] {
        let value: String = (0..size)
            .map(|at| char::from(b'a' + (at % 26) as u8))
            .collect();
        assert_eq!(text(&client.ask(&["SET", "v", &value])), "OK", "{size}");
        assert_eq!(text(&client.ask(&["GET", "v"])), value, "{size}");
        assert_eq!(text(&client.ask(&["STRLEN", "v"])), size.to_string());
    }
    // Many requests in one record, and records that end anywhere.
    let many: Vec<u8> = (0..5000)
        .flat_map(|n| request(&["ECHO", &n.to_string()]))
        .collect();
    client.send(&many);
    for number in 0..5000 {
        assert_eq!(text(&client.reply()), number.to_string());
    }
    for piece in many[..20_000].chunks(7) {
        client.send(piece);
    }
    client.send(&many[20_000..]);
    for number in 0..5000 {
        assert_eq!(text(&client.reply()), number.to_string());
    }
    let info = client.line("INFO server");
    assert!(
        info.contains("listener0:name=tls,bind=127.0.0.1,"),
        "{info}"
    );
}

/// Bytes of requests that go through TLS at random splits, by all connections; a soak sets more.
const SPLIT_BYTES: usize = 48 << 20;
/// Connections that send them at the same time, each beside one without TLS.
const SPLIT_CONNECTIONS: usize = 4;

/// A number from 1 to `most`, whose logarithm is uniform: as many bytes as kilobytes.
fn log_uniform(rng: &mut fastrand::Rng, most: usize) -> usize {
    let most = most as f64;
    (most.powf(rng.f64()) as usize).clamp(1, most as usize)
}

/// Requests whose values have 1 byte to 1 MB, and their replies.
fn random_pipeline(rng: &mut fastrand::Rng, keys: &str) -> (Vec<u8>, Vec<u8>) {
    let (mut requests, mut replies) = (Vec::new(), Vec::new());
    for _ in 0..rng.usize(1..=16) {
        let mut value = vec![0; log_uniform(rng, 1 << 20)];
        rng.fill(&mut value);
        let bulk = [format!("${}\r\n", value.len()).as_bytes(), &value, b"\r\n"].concat();
        if rng.u8(..) < 40 {
            requests.extend(request(&[b"ECHO", &value[..]]));
            replies.extend(bulk);
            continue;
        }
        let key = format!("{keys}:{}", rng.u8(..8));
        requests.extend(request(&[b"SET", key.as_bytes(), &value]));
        replies.extend(b"+OK\r\n");
        if rng.u8(..) < 40 {
            requests.extend(request(&["GET", &key]));
            replies.extend(bulk);
        }
    }
    (requests, replies)
}

/// Encrypts bytes in records that end anywhere, and sends the ciphertext in pieces that end elsewhere.
fn send_split(rng: &mut fastrand::Rng, client: &mut TlsClient, bytes: &[u8]) {
    let (mut rest, mut ciphertext) = (bytes, Vec::new());
    while !rest.is_empty() {
        let most = log_uniform(rng, 100_000).min(rest.len());
        let taken = client.stream.conn.writer().write(&rest[..most]).unwrap();
        rest = &rest[taken..];
        while client.stream.conn.wants_write() {
            client.stream.conn.write_tls(&mut ciphertext).unwrap();
        }
        let mut from = 0;
        while from < ciphertext.len() {
            let to = ciphertext.len().min(from + log_uniform(rng, 200_000));
            client.stream.sock.write_all(&ciphertext[from..to]).unwrap();
            from = to;
        }
        ciphertext.clear();
    }
}

#[test]
fn random_splits_give_the_same_bytes_as_the_port_without_tls() {
    let total = std::env::var("KUMI_TLS_BYTES").map_or(SPLIT_BYTES, |text| text.parse().unwrap());
    let seed = std::env::var("KUMI_TLS_SEED").map_or_else(
        |_| fastrand::Rng::new().u64(..),
        |text| text.parse().unwrap(),
    );
    println!("KUMI_TLS_SEED={seed}");
    let plain_port = free_port().to_string();
    let server = TlsServer::start(&["--tls-auth-clients", "no", "--port", &plain_port]);
    std::thread::scope(|scope| {
        for number in 0..SPLIT_CONNECTIONS {
            let (server, plain_port) = (&server, plain_port.parse().unwrap());
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed.wrapping_add(number as u64));
                let mut client = server.connect();
                client.stream.sock.set_nodelay(true).unwrap();
                let mut plain = Client::tcp(plain_port);
                let mut sent = 0;
                while sent < total / SPLIT_CONNECTIONS {
                    let (requests, replies) = random_pipeline(&mut rng, &number.to_string());
                    sent += requests.len();
                    send_split(&mut rng, &mut client, &requests);
                    client.expect(&replies);
                    plain.send(&requests);
                    plain.expect(&replies);
                }
                // It goes away in the middle of a request.
                let (requests, _) = random_pipeline(&mut rng, &number.to_string());
                send_split(&mut rng, &mut client, &requests[..requests.len() / 2]);
            });
        }
    });
    let mut last = server.connect();
    crate::common::eventually(
        || last.line("INFO clients"),
        |info| info.contains("connected_clients:1\r"),
    );
}

#[test]
fn a_slow_reader_gets_everything_and_others_are_served_meanwhile() {
    let server = TlsServer::start(&["--tls-auth-clients", "no"]);
    let (mut slow, mut other) = (server.connect(), server.connect());
    let value = "x".repeat(1_000_000);
    slow.ask(&["SET", "v", &value]);
    for _ in 0..40 {
        slow.send(request(&["GET", "v"]));
    }
    for _ in 0..100 {
        assert_eq!(other.line("PING"), "PONG");
    }
    for _ in 0..40 {
        assert_eq!(text(&slow.reply()).len(), value.len());
    }
    assert_eq!(slow.line("PING"), "PONG");
}

#[test]
fn a_subscriber_gets_what_others_publish() {
    let server = TlsServer::start(&["--tls-auth-clients", "no"]);
    let (mut listener, mut speaker) = (server.connect(), server.connect());
    listener.line("SUBSCRIBE news");
    for number in 0..100 {
        assert_eq!(speaker.line(&format!("PUBLISH news {number}")), "1");
        assert_eq!(text(&listener.reply()), format!("message,news,{number}"));
    }
    // A client that waits is answered when another one writes.
    let mut waiting = server.connect();
    waiting.send(request(&["BLPOP", "l", "0"]));
    crate::common::eventually(
        || speaker.line("INFO clients"),
        |info| info.contains("blocked_clients:1"),
    );
    speaker.line("RPUSH l x");
    assert_eq!(text(&waiting.reply()), "l,x");
}

#[test]
fn certificates_of_clients_are_checked_as_configured() {
    for (mode, none, known, unknown) in [
        ("yes", false, true, false),
        ("optional", true, true, false),
        ("no", true, true, true),
    ] {
        let server = TlsServer::start(&["--tls-auth-clients", mode]);
        assert_eq!(server.try_connect("one", None).is_ok(), none, "{mode}");
        assert_eq!(
            server.try_connect("one", Some("one")).is_ok(),
            known,
            "{mode}"
        );
        assert_eq!(
            server.try_connect("one", Some("two")).is_ok(),
            unknown,
            "{mode}"
        );
        assert!(
            server.try_connect("two", Some("one")).is_err(),
            "{mode}: the server is not two"
        );
    }
}

#[test]
fn strangers_get_nothing_and_do_no_harm() {
    let mut server = TlsServer::start(&["--tls-auth-clients", "no"]);
    let mut friend = server.connect();
    for garbage in [
        &b"PING\r\n"[..],
        b"*1\r\n$4\r\nPING\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
        &[0; 3000],
        &[0xff; 3000],
    ] {
        let mut socket = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        socket.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        socket.write_all(garbage).unwrap();
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = socket.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"+PONG"), "{answer:?}");
    }
    assert_eq!(friend.line("PING"), "PONG");
    server
        .process
        .wait_for_log("Error accepting a client connection");
    // Half a handshake, and then nothing: others are served.
    let mut half = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    half.write_all(b"\x16\x03\x01").unwrap();
    assert_eq!(server.connect().line("PING"), "PONG");
    drop(half);
    // A client that goes away in the middle of a session.
    let gone = server.connect();
    drop(gone.stream.sock);
    crate::common::eventually(
        || friend.line("INFO clients"),
        |info| info.contains("connected_clients:1\r"),
    );
}

#[test]
fn a_new_certificate_is_used_without_a_restart() {
    let server = TlsServer::start(&["--tls-auth-clients", "no"]);
    let mut client = server.connect();
    let file = |name: &str| server.file(name).to_str().unwrap().to_owned();
    let (certificate, key) = (file("two-server.pem"), file("two-server.key"));
    let mut set = |words: &[&str]| {
        let mut request = vec!["CONFIG", "SET"];
        request.extend(words);
        text(&client.ask(&request))
    };
    let refused = set(&["tls-cert-file", &certificate]);
    assert!(refused.starts_with("-ERR CONFIG SET failed"), "{refused}");
    assert!(
        server.try_connect("one", None).is_ok(),
        "the old one is still used"
    );
    assert!(set(&["tls-key-file", "/nonexistent"]).starts_with("-ERR"));
    assert_eq!(
        set(&["tls-cert-file", &certificate, "tls-key-file", &key]),
        "OK"
    );
    assert!(server.try_connect("one", None).is_err());
    assert!(server.try_connect("two", None).is_ok());
    assert_eq!(set(&["tls-auth-clients", "yes"]), "OK");
    assert!(server.try_connect("two", None).is_err());
    assert!(server.try_connect("two", Some("one")).is_ok());
    assert!(set(&["tls-protocols", "TLSv1.1"]).starts_with("-ERR"));
    assert!(set(&["tls-ciphers", "DEFAULT"]).starts_with("-ERR"));
    assert_eq!(set(&["tls-port", "0"]), "OK");
    assert!(TcpStream::connect(("127.0.0.1", server.port)).is_err());
    assert_eq!(client.line("PING"), "PONG", "connections stay");
}

#[test]
fn authorities_come_from_a_directory_too() {
    let authorities = tempfile::tempdir().unwrap();
    fs::write(authorities.path().join("readme.txt"), "no certificate").unwrap();
    let path = authorities.path().to_str().unwrap();
    let server = TlsServer::start(&["--tls-ca-cert-dir", path]);
    assert!(server.try_connect("one", Some("one")).is_ok());
    assert!(server.try_connect("one", Some("two")).is_err());
    fs::copy(
        server.file("two-ca.pem"),
        authorities.path().join("two.pem"),
    )
    .unwrap();
    let mut client = server.try_connect("one", Some("one")).unwrap();
    let set = client.ask(&["CONFIG", "SET", "tls-ca-cert-dir", path]);
    assert_eq!(text(&set), "OK");
    assert!(server.try_connect("one", Some("two")).is_ok());
}

#[test]
fn only_the_suites_that_are_named_are_spoken() {
    let server = TlsServer::start(&[
        "--tls-auth-clients",
        "no",
        "--tls-ciphersuites",
        "TLS_CHACHA20_POLY1305_SHA256",
    ]);
    let suite = |client: TlsClient| {
        client
            .stream
            .conn
            .negotiated_cipher_suite()
            .unwrap()
            .suite()
    };
    assert_eq!(
        suite(server.connect()),
        rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
    );
    let mut client = server.connect();
    let set = [
        "CONFIG",
        "SET",
        "tls-ciphersuites",
        "TLS_AES_128_GCM_SHA256",
    ];
    assert_eq!(text(&client.ask(&set)), "OK");
    assert_eq!(
        suite(server.connect()),
        rustls::CipherSuite::TLS13_AES_128_GCM_SHA256
    );
    assert_eq!(client.line("PING"), "PONG", "connections stay");
}

#[test]
fn a_handshake_that_trickles_in_ends() {
    let mut server = TlsServer::start(&["--tls-auth-clients", "no"]);
    let mut slow = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    slow.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    // The head of a ClientHello of 500 bytes, and then bytes of it, one at a time.
    slow.write_all(b"\x16\x03\x01\x01\xf4\x01\x00\x01\xf0")
        .unwrap();
    let mut writer = slow.try_clone().unwrap();
    let trickle = std::thread::spawn(move || {
        // It ends with the connection.
        while writer.write_all(&[0]).is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    });
    let mut answer = Vec::new();
    let _ = slow.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"+"), "{answer:?}");
    trickle.join().unwrap();
    server.process.wait_for_log("the handshake took too long");
    assert_eq!(server.connect().line("PING"), "PONG");
}

#[test]
fn redis_cli_speaks_every_version_that_is_allowed() {
    let server = TlsServer::start(&[
        "--tls-auth-clients",
        "yes",
        "--tls-protocols",
        "TLSv1.2 TLSv1.3",
    ]);
    let run = |extra: &[&str]| {
        let output = Command::new("redis-cli")
            .args(["-p", &server.port.to_string(), "--tls"])
            .args(["--cacert", server.file("one-ca.pem").to_str().unwrap()])
            .args(["--cert", server.file("one-client.pem").to_str().unwrap()])
            .args(["--key", server.file("one-client.key").to_str().unwrap()])
            .args(extra)
            .stdin(Stdio::null())
            .output();
        let output = output.expect("Debian's redis-tools has redis-cli");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run(&["SET", "a", "1"]), "OK\n");
    assert_eq!(run(&["GET", "a"]), "1\n");
    assert_eq!(run(&["-r", "50", "INCR", "a"]).lines().last(), Some("51"));
}

#[test]
fn a_start_without_usable_files_fails_and_says_why() {
    let (code, out, err) =
        crate::common::run_to_end(&["--port", "0", "--tls-port", &free_port().to_string()]);
    assert_eq!(code, Some(1));
    let said = out + &err;
    assert!(said.contains("tls-ca-cert"), "{said}");
}
