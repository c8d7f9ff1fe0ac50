//! RDB files of a running server: snapshots under writes, save points, stops by signals, and files that go to a
//! redis-server and come back.

use crate::common::{Client, Process, binary, eventually, request};
use rustix::process::Signal;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

const READY: &str = "Ready to accept connections unix";

/// Starts a server whose files and socket are in a directory that outlives it.
fn start_at(path: &Path, args: &[&str]) -> Process {
    let mut all = vec!["--port", "0", "--unixsocket", "s", "--dir"];
    all.push(path.to_str().unwrap());
    all.extend(args);
    Process::start_in(tempfile::tempdir().unwrap(), &all, READY)
}

fn connect(path: &Path) -> Client<UnixStream> {
    Client::unix(&path.join("s"))
}

fn field(client: &mut Client<UnixStream>, name: &str) -> String {
    let text = client.line("INFO persistence");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap().trim_start_matches(':').trim_end().to_owned()
}

fn wait_for_save(client: &mut Client<UnixStream>) {
    eventually(|| field(client, "rdb_bgsave_in_progress"), |it| it == "0");
    assert_eq!(field(client, "rdb_last_bgsave_status"), "ok");
}

fn files(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).unwrap();
    let names = names.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name != "s").collect();
    names.sort();
    names
}

/// Fills a server with every type in small and large encodings.
fn fill(client: &mut Client<UnixStream>) {
    let ask = |client: &mut Client<UnixStream>, words: Vec<String>| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let reply = crate::common::text(&client.ask(&words));
        assert!(!reply.starts_with('-'), "{words:?}: {reply}");
    };
    let line = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for text in [
        "SET int 12345",
        "SET negative -7",
        "SET text some-text",
        "SET empty-is-not x",
        "SET expiring v PX 100000000",
        "SETRANGE raw 40 x",
        "APPEND text more",
        "PFADD hll a b c d",
        "SETBIT bits 1000 1",
        "RPUSH list a b 3 -4",
        "SADD ints 1 2 3",
        "SADD wide 1 99999999999",
        "SADD words a b 3",
        "HSET hash f v g 5",
        "ZADD zset 1.5 a -inf b +inf c 3 d",
        "GEOADD geo 13 38 x",
        "XADD stream 1-1 f v",
        "XADD stream 2-1 f v g w",
        "XGROUP CREATE stream g 0",
        "XREADGROUP GROUP g alice COUNT 1 STREAMS stream >",
        "XADD gone 1-1 a b",
        "XDEL gone 1-1",
    ] {
        ask(client, line(text));
    }
    let many = |head: &str, each: &dyn Fn(u32) -> Vec<String>| {
        let mut words = line(head);
        words.extend((0..1_500).flat_map(each));
        words
    };
    ask(
        client,
        many("RPUSH long-list", &|n| vec![format!("element number {n}")]),
    );
    ask(client, many("SADD large-set", &|n| vec![format!("m{n}")]));
    ask(client, many("SADD large-ints", &|n| vec![n.to_string()]));
    ask(
        client,
        many("HSET large-hash", &|n| {
            vec![format!("f{n}"), "v".repeat(n as usize % 90)]
        }),
    );
    ask(
        client,
        many("ZADD large-zset", &|n| {
            vec![format!("{n}.25"), format!("m{n}")]
        }),
    );
    for number in 0..300 {
        ask(client, line(&format!("XADD long-stream * n {number}")));
    }
    ask(
        client,
        vec!["SET".into(), "compressed".into(), "abc ".repeat(20_000)],
    );
    ask(client, line("SELECT 9"));
    ask(client, line("SET other-database 1"));
    ask(client, line("SELECT 0"));
    let code = "#!lua name=lib\nredis.register_function('hello', function() return 'hi' end)";
    ask(client, vec!["FUNCTION".into(), "LOAD".into(), code.into()]);
}

#[test]
fn a_snapshot_under_writes_holds_its_instant() {
    let dir = tempfile::tempdir().unwrap();
    let server = start_at(dir.path(), &["--save", ""]);
    let mut client = connect(dir.path());
    for from in (0..60_000).step_by(1_000) {
        let mut words = vec!["MSET".to_owned()];
        for key in from..from + 1_000 {
            words.extend([format!("key:{key}"), format!("{key}:0")]);
        }
        client.send(request(&words));
        assert_eq!(crate::common::text(&client.reply()), "OK");
    }
    assert_eq!(client.line("BGSAVE"), "Background saving started");
    // Each round changes all keys, until the snapshot is done.
    for round in 1.. {
        for key in (0..60_000).step_by(7) {
            client.send(request(&[
                "SET",
                &format!("key:{key}"),
                &format!("{key}:{round}"),
            ]));
        }
        client.send(request(&["SET", &format!("new:{round}"), "x"]));
        for _ in (0..60_000).step_by(7) {
            client.reply();
        }
        client.reply();
        if field(&mut client, "rdb_bgsave_in_progress") == "0" {
            break;
        }
    }
    assert_eq!(field(&mut client, "rdb_last_bgsave_status"), "ok");
    assert_eq!(files(dir.path()), ["dump.rdb"]);
    drop(server);
    let _again = start_at(dir.path(), &["--save", ""]);
    let mut client = connect(dir.path());
    assert_eq!(client.line("DBSIZE"), "60000");
    for key in (0..60_000).step_by(501) {
        assert_eq!(client.line(&format!("GET key:{key}")), format!("{key}:0"));
    }
}

#[test]
fn flushall_ends_a_save_and_empties_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let _server = start_at(dir.path(), &["--rdb-key-save-delay", "10000000"]);
    let mut client = connect(dir.path());
    assert_eq!(client.line("MSET a 1 b 2"), "OK");
    assert_eq!(client.line("BGSAVE"), "Background saving started");
    assert_eq!(
        client.line("SAVE"),
        "-ERR Background save already in progress"
    );
    assert_eq!(field(&mut client, "current_save_keys_total"), "2");
    assert_eq!(client.line("FLUSHALL"), "OK");
    assert_eq!(field(&mut client, "rdb_bgsave_in_progress"), "0");
    assert_eq!(files(dir.path()), ["dump.rdb"]);
    assert_eq!(field(&mut client, "rdb_changes_since_last_save"), "0");
    assert_eq!(field(&mut client, "rdb_last_bgsave_status"), "ok");
}

#[test]
fn a_delay_that_ends_lets_a_running_save_end() {
    let dir = tempfile::tempdir().unwrap();
    // Half an hour for each key.
    let delay = ["--save", "", "--rdb-key-save-delay", "2000000000"];
    let _server = start_at(dir.path(), &delay);
    let mut client = connect(dir.path());
    assert_eq!(client.line("MSET a 1 b 2 c 3"), "OK");
    assert_eq!(client.line("BGSAVE"), "Background saving started");
    assert_eq!(field(&mut client, "rdb_bgsave_in_progress"), "1");
    eventually(
        || field(&mut client, "current_save_keys_processed"),
        |keys| keys == "1",
    );
    assert_eq!(field(&mut client, "current_fork_perc"), "33.33");
    assert_eq!(client.line("CONFIG SET rdb-key-save-delay 0"), "OK");
    wait_for_save(&mut client);
    assert_eq!(field(&mut client, "rdb_changes_since_last_save"), "0");
}

#[test]
fn a_second_sigint_removes_the_file_that_a_shutdown_writes() {
    let dir = tempfile::tempdir().unwrap();
    // Half an hour for each key.
    let delay = ["--save", "3600 1", "--rdb-key-save-delay", "2000000000"];
    let mut server = start_at(dir.path(), &delay);
    assert_eq!(connect(dir.path()).line("SET a 1"), "OK");
    server.signal(Signal::INT);
    let temporary = format!("temp-{}.rdb", server.child.id());
    eventually(|| files(dir.path()), |files| files.contains(&temporary));
    server.signal(Signal::INT);
    assert_eq!(server.wait().code(), Some(1));
    assert_eq!(files(dir.path()), [""; 0]);
}

#[test]
fn a_save_does_not_write_into_a_file_of_another_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = start_at(dir.path(), &["--save", ""]);
    let taken = dir.path().join(format!("temp-{}.rdb", server.child.id()));
    fs::write(&taken, "of a server in another container").unwrap();
    let mut client = connect(dir.path());
    assert_eq!(client.line("SET a 1"), "OK");
    assert_eq!(client.line("SAVE"), "OK");
    let kept = fs::read_to_string(&taken).unwrap();
    assert_eq!(kept, "of a server in another container");
    assert!(dir.path().join("dump.rdb").exists());
}

#[test]
fn signals_save_as_they_are_told() {
    // Save points, directive, whether a file is there then.
    for (points, option, saves) in [
        ("3600 1", "default", true),
        ("3600 1", "nosave", false),
        ("", "default", false),
        ("", "save", true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let args = ["--save", points, "--shutdown-on-sigterm", option];
        let mut server = start_at(dir.path(), &args);
        assert_eq!(connect(dir.path()).line("SET a 1"), "OK");
        server.signal(Signal::TERM);
        assert!(server.wait().success());
        assert_eq!(
            dir.path().join("dump.rdb").exists(),
            saves,
            "{points:?} {option}"
        );
    }
}

#[test]
fn a_server_that_cannot_save_does_not_stop_and_refuses_writes() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let socket = dir.path().join("s");
    let args = [
        "--port",
        "0",
        "--save",
        "3600 1",
        "--unixsocket",
        socket.to_str().unwrap(),
        "--dir",
        data.to_str().unwrap(),
    ];
    let mut server = Process::start_in(tempfile::tempdir().unwrap(), &args, READY);
    let mut client = Client::unix(&socket);
    assert_eq!(client.line("SET a 1"), "OK");
    fs::remove_dir_all(&data).unwrap();
    server.signal(Signal::TERM);
    server.wait_for_log("Errors trying to shut down the server.");
    assert!(
        client
            .line("BGSAVE")
            .starts_with("-ERR the RDB file cannot be written")
    );
    assert_eq!(field(&mut client, "rdb_last_bgsave_status"), "err");
    assert!(
        client
            .line("SET a 2")
            .starts_with("-MISCONF Redis is configured to save RDB")
    );
    assert!(client.line("PING").starts_with("-MISCONF"));
    assert_eq!(client.line("GET a"), "1");
    assert_eq!(
        client.line("SHUTDOWN"),
        "-ERR Errors trying to SHUTDOWN. Check logs."
    );
    fs::create_dir(&data).unwrap();
    assert_eq!(client.line("BGSAVE"), "Background saving started");
    wait_for_save(&mut client);
    assert_eq!(client.line("SET a 2"), "OK");
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert_eq!(files(&data), ["dump.rdb"]);
}

#[test]
fn stale_temporary_files_go_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "temp-2147483646.rdb",
        "temp-2147483646-3.rdb",
        "temp-notes.rdb",
    ] {
        fs::write(dir.path().join(name), "x").unwrap();
    }
    let _server = start_at(dir.path(), &[]);
    assert_eq!(files(dir.path()), ["temp-notes.rdb"]);
}

#[test]
fn a_directory_named_from_the_working_directory_is_noted_in_full() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let inner = inner.canonicalize().unwrap();
    let _server = start_at(dir.path(), &["--enable-protected-configs", "yes"]);
    let mut client = connect(dir.path());
    let shown = |client: &mut Client<UnixStream>| client.line("CONFIG GET dir");
    assert_eq!(client.line("CONFIG SET dir inner"), "OK");
    assert_eq!(shown(&mut client), format!("dir,{}", inner.display()));
    assert_eq!(
        (client.line("SAVE"), files(&inner)),
        ("OK".into(), vec!["dump.rdb".into()])
    );
    assert!(
        client
            .line("CONFIG SET dir nowhere")
            .starts_with("-ERR CONFIG SET failed")
    );
    assert_eq!(client.line("CONFIG SET dir .."), "OK");
    assert_eq!(client.line("SAVE"), "OK");
    assert_eq!(files(dir.path()), ["dump.rdb", "inner"]);
}

#[test]
fn each_key_that_is_loaded_takes_its_delay() {
    let dir = tempfile::tempdir().unwrap();
    let server = start_at(dir.path(), &[]);
    let mut client = connect(dir.path());
    assert_eq!(client.line("MSET a 1 b 2 c 3"), "OK");
    assert_eq!(client.line("SAVE"), "OK");
    drop(server);
    let start = std::time::Instant::now();
    let _server = start_at(dir.path(), &["--key-load-delay", "100000"]);
    let mut client = connect(dir.path());
    assert_eq!(
        eventually(|| client.line("DBSIZE"), |size| size == "3"),
        "3"
    );
    assert!(start.elapsed().as_millis() >= 300);
}

#[test]
fn a_save_point_is_reached() {
    let dir = tempfile::tempdir().unwrap();
    let _server = start_at(dir.path(), &["--save", "1 3"]);
    let mut client = connect(dir.path());
    assert_eq!(client.line("MSET a 1 b 2 c 3"), "OK");
    eventually(|| field(&mut client, "rdb_saves"), |saves| saves == "1");
    assert_eq!(field(&mut client, "rdb_changes_since_last_save"), "0");
    assert_eq!(files(dir.path()), ["dump.rdb"]);
}

#[test]
fn debug_reload_goes_through_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let _server = start_at(dir.path(), &["--enable-debug-command", "yes"]);
    let mut client = connect(dir.path());
    fill(&mut client);
    let digest = client.line("DEBUG DIGEST");
    assert_eq!(client.line("DEBUG RELOAD"), "OK");
    assert_eq!(files(dir.path()), ["dump.rdb"]);
    assert_eq!(client.line("DEBUG DIGEST"), digest);
    assert_eq!(client.line("FCALL hello 0"), "hi");
    assert_eq!(client.line("SET int other"), "OK");
    assert_eq!(client.line("SET further x"), "OK");
    assert!(
        client
            .line("DEBUG RELOAD NOSAVE NOFLUSH")
            .starts_with("-ERR Error trying to load")
    );
    assert_eq!(client.line("GET int"), "other");
    assert_eq!(client.line("DEBUG RELOAD NOSAVE MERGE"), "OK");
    assert_eq!(client.line("GET int"), "12345");
    assert_eq!(client.line("DEL further"), "1");
    assert_eq!(client.line("DEBUG DIGEST"), digest);
}

/// A redis-server on a directory.
fn start_redis(data: &Path) -> Process {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    let args = [
        "--port",
        "0",
        "--save",
        "",
        "--enable-debug-command",
        "yes",
        "--unixsocket",
        socket.to_str().unwrap(),
        "--dir",
        data.to_str().unwrap(),
    ];
    let ready = "ready to accept connections at";
    Process::start_program(Command::new("redis-server"), dir, &args, ready)
}

#[test]
fn files_go_to_redis_and_back_for_every_type_and_encoding() {
    let ours = tempfile::tempdir().unwrap();
    let server = start_at(
        ours.path(),
        &["--save", "", "--enable-debug-command", "yes"],
    );
    let mut client = connect(ours.path());
    fill(&mut client);
    let digest = client.line("DEBUG DIGEST");
    assert_eq!(client.line("BGSAVE"), "Background saving started");
    wait_for_save(&mut client);
    drop(server);
    let redis = start_redis(ours.path());
    let mut theirs = redis.connect();
    assert_eq!(theirs.line("DEBUG DIGEST"), digest);
    assert_eq!(theirs.line("FCALL hello 0"), "hi");
    assert_eq!(theirs.line("XPENDING stream g"), "1,1-1,1-1,alice,1");
    drop(redis);

    let empty = tempfile::tempdir().unwrap();
    let redis = start_redis(empty.path());
    let mut theirs = redis.connect();
    fill(&mut theirs);
    let digest = theirs.line("DEBUG DIGEST");
    assert_eq!(theirs.line("SAVE"), "OK");
    drop(redis);
    let _server = start_at(
        empty.path(),
        &["--save", "", "--enable-debug-command", "yes"],
    );
    let mut client = connect(empty.path());
    assert_eq!(client.line("DEBUG DIGEST"), digest);
    assert_eq!(client.line("FCALL hello 0"), "hi");
    assert_eq!(client.line("XPENDING stream g"), "1,1-1,1-1,alice,1");
}

#[test]
fn a_file_whose_function_cannot_be_loaded_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = b"REDIS0010".to_vec();
    file.extend(b"\xf5\x13#!lua name=lib\nrest\xff\0\0\0\0\0\0\0\0");
    fs::write(dir.path().join("dump.rdb"), file).unwrap();
    let refused = binary()
        .args(["--port", "0", "--unixsocket", "s", "--dir"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stdout);
    assert!(
        said.contains("dump.rdb cannot be loaded: library 'lib'"),
        "{said}"
    );
}
