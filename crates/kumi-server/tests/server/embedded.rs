//! A server inside another program.

use crate::common::Client;
use kumi_server::{
    EmbedError, Embedded, Listeners, ServerError, Shutdown, embedded, embedded_at, embedded_with,
    run,
};
use kumi_store::Config;
use kumi_store::config::Origin;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;

#[test]
fn its_socket_is_private_and_goes_away_with_it() {
    let server = embedded().unwrap();
    let path = server.path().to_owned();
    assert_eq!(server.url(), format!("redis+unix://{}", path.display()));
    let directory = path.parent().unwrap().to_owned();
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(directory.as_path()), 0o700);
    assert_eq!(mode(path.as_path()), 0o700);
    let mut client = Client::unix(&path);
    assert_eq!(client.line("PING"), "PONG");
    drop(server);
    assert_eq!(client.read_to_end(), b"");
    assert!(!directory.exists());
}

#[test]
fn two_of_them_share_nothing() {
    let (one, two) = (embedded().unwrap(), embedded().unwrap());
    assert_ne!(one.path(), two.path());
    assert_eq!(Client::unix(one.path()).line("SET a 1"), "OK");
    assert_eq!(Client::unix(two.path()).line("GET a"), "nil");
    assert!(one.stop().is_ok());
    assert_eq!(Client::unix(two.path()).line("PING"), "PONG");
}

#[test]
fn their_ids_are_draws_of_their_own() {
    let servers = [embedded().unwrap(), embedded().unwrap()];
    let mut ids = Vec::new();
    for server in &servers {
        let info = Client::unix(server.path()).line("INFO everything");
        for field in ["run_id:", "master_replid:"] {
            let line = info.lines().find_map(|line| line.strip_prefix(field));
            let id = line.unwrap().trim().to_owned();
            assert!(id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit()));
            // The same digits in another order are the same draw.
            ids.push(id.chars().rev().collect());
            ids.push(id);
        }
    }
    let distinct: BTreeSet<String> = ids.into_iter().collect();
    assert_eq!(distinct.len(), 8);
}

#[test]
fn it_takes_the_callers_settings_but_listens_only_on_its_socket() {
    let mut config = Config::new();
    let pairs: [(&[u8], &[u8]); 2] = [(b"databases", b"3"), (b"port", b"7777")];
    let _changes = config.set_many(&pairs, Origin::Startup).unwrap();
    let server = embedded_with(config).unwrap();
    let mut client = Client::unix(server.path());
    assert_eq!(client.line("CONFIG GET databases"), "databases,3");
    assert_eq!(client.line("CONFIG GET port"), "port,0");
}

#[test]
fn a_client_can_stop_it_and_the_handle_still_drops() {
    let server = embedded().unwrap();
    let mut client = Client::unix(server.path());
    client.send("SHUTDOWN\r\n");
    assert_eq!(client.read_to_end(), b"");
    assert!(server.stop().is_ok());
}

#[test]
fn a_stop_asked_for_before_the_start_holds() {
    let shutdown = Shutdown::new();
    shutdown.request();
    assert!(run(Config::new(), Listeners::none(), &shutdown).is_ok());
}

#[test]
fn one_with_a_directory_has_its_data_back() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("not/there/yet");
    let server = embedded_at(&dir).unwrap();
    assert_eq!(Client::unix(server.path()).line("SET greeting hello"), "OK");
    server.stop().unwrap();
    let server = embedded_at(&dir).unwrap();
    let mut client = Client::unix(server.path());
    assert_eq!(client.line("GET greeting"), "hello");
    assert_eq!(
        client.line("CONFIG GET appendfsync"),
        "appendfsync,everysec"
    );
    // A second server in the same directory would write over the first one's data.
    let second = embedded_at(&dir);
    assert!(matches!(second, Err(EmbedError::Server(_))), "{second:?}");
    assert_eq!(client.line("GET greeting"), "hello");
}

#[test]
fn a_stop_waits_for_the_first_base_of_the_aof() {
    let scratch = tempfile::tempdir().unwrap();
    let server = embedded_at(scratch.path()).unwrap();
    let mut client = Client::unix(server.path());
    assert_eq!(client.line("CONFIG SET appendonly no"), "OK");
    for number in 0..20 {
        assert_eq!(client.line(&format!("SET key:{number} 1")), "OK");
    }
    assert_eq!(client.line("CONFIG SET rdb-key-save-delay 20000"), "OK");
    assert_eq!(client.line("CONFIG SET appendonly yes"), "OK");
    let (done, stopped) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(server.stop().is_ok()));
    let stopped = stopped.recv_timeout(std::time::Duration::from_secs(60));
    assert_eq!(stopped, Ok(true));
    let server = embedded_at(scratch.path()).unwrap();
    assert_eq!(Client::unix(server.path()).line("DBSIZE"), "20");
}

#[test]
fn a_stop_that_cannot_save_says_so_and_ends() {
    let scratch = tempfile::tempdir().unwrap();
    let data = scratch.path().join("data");
    let builder = Embedded::builder().set("save", "3600 1").dir(&data);
    let server = builder.start().unwrap();
    assert_eq!(Client::unix(server.path()).line("SET a 1"), "OK");
    std::fs::remove_dir_all(&data).unwrap();
    let (done, stopped) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(server.stop()));
    let stopped = stopped.recv_timeout(std::time::Duration::from_secs(60));
    assert!(
        matches!(stopped, Ok(Err(ServerError::Save(_)))),
        "{stopped:?}"
    );
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = embedded_at(file.path().join("data")).unwrap_err();
    assert!(
        error.to_string().contains(&*file.path().to_string_lossy()),
        "{error}"
    );
}

#[test]
fn directives_are_set_by_name_and_mistakes_are_reported_by_start() {
    let server = Embedded::builder()
        .set("maxmemory", "10mb")
        .start()
        .unwrap();
    assert_eq!(
        Client::unix(server.path()).line("CONFIG GET maxmemory"),
        "maxmemory,10485760"
    );
    for (name, value) in [("maxmemori", "10mb"), ("maxmemory", "lots")] {
        let error = Embedded::builder().set(name, value).start().unwrap_err();
        assert!(matches!(error, EmbedError::Config(_)), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn the_directory_of_its_data_may_change_and_the_working_directory_does_not() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let builder = Embedded::builder().set("enable-protected-configs", "yes");
    let server = builder.dir(first.path()).start().unwrap();
    let mut client = Client::unix(server.path());
    let before = std::env::current_dir().unwrap();
    let dir = second.path().canonicalize().unwrap();
    let set = format!("CONFIG SET dir {}", dir.display());
    assert_eq!(client.line(&set), "OK");
    assert_eq!(std::env::current_dir().unwrap(), before);
    assert_eq!(client.line("SAVE"), "OK");
    assert!(dir.join("dump.rdb").is_file());
    // A place that a server could not enter is refused, and the one before stays.
    for (place, reason) in [
        ("nowhere", "No such file or directory"),
        ("dump.rdb", "Not a directory"),
    ] {
        let reply = client.line(&format!("CONFIG SET dir {}", dir.join(place).display()));
        assert!(
            reply.starts_with('-') && reply.contains(reason),
            "{place}: {reply}"
        );
    }
    let kept = format!("dir,{}", dir.display());
    assert_eq!(client.line("CONFIG GET dir"), kept);
}
