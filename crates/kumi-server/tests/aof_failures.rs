//! The append-only file when something goes wrong around it: a missing manifest, a stop too early, a disk that is full.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{Client, Process, binary, eventually, free_port, run_to_end};
use rustix::process::Signal;
use std::fs;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const READY: &str = "Ready to accept connections unix";

fn start(program: Command, dir: &Path, args: &[&str]) -> Process {
    let home = TempDir::new().unwrap();
    let socket = home.path().join("s");
    let mut all = vec!["--port", "0", "--save", "", "--enable-debug-command", "yes"];
    all.extend(["--unixsocket", socket.to_str().unwrap()]);
    all.extend(["--dir", dir.to_str().unwrap()]);
    all.extend(args);
    Process::start_program(program, home, &all, READY)
}

fn kumi(dir: &Path, args: &[&str]) -> Process {
    start(binary(), dir, args)
}

fn stop(mut server: Process) {
    server.signal(Signal::TERM);
    assert!(server.wait().success());
}

fn wait_for(client: &mut Client<UnixStream>, field: &str) {
    eventually(
        || client.line("INFO persistence"),
        |info| info.contains(field),
    );
}

/// What is in the directory of the append-only file, by name.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(dir.join("appendonlydir")).unwrap();
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_server_does_not_start_without_the_manifest_of_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("SET a 1"), "OK");
    stop(server);
    let log = dir.path().join("appendonlydir");
    let manifest = log.join("appendonly.aof.manifest");
    let kept = fs::read(&manifest).unwrap();
    fs::remove_file(&manifest).unwrap();
    let before = contents(dir.path());
    let dir_arg = dir.path().to_str().unwrap();
    let socket = dir.path().join("s");
    let args = ["--port", "0", "--unixsocket", socket.to_str().unwrap()];
    let more = ["--dir", dir_arg, "--appendonly", "yes"];
    let (code, output, _) = run_to_end(&[args, more].concat());
    assert_ne!(code, Some(0));
    for text in [
        log.to_str().unwrap(),
        "appendonly.aof.1.base.rdb, appendonly.aof.1.incr.aof",
        "Restore the manifest, or move these files",
    ] {
        assert!(output.contains(text), "{text} in {output}");
    }
    // Neither does CONFIG SET overwrite them.
    let server = kumi(dir.path(), &[]);
    let mut client = server.connect();
    let refused = client.line("CONFIG SET appendonly yes");
    assert!(refused.contains("Unable to turn on AOF"), "{refused}");
    assert!(client.line("BGREWRITEAOF").contains("is missing"));
    assert!(client.line("DEBUG LOADAOF").starts_with('-'));
    drop(server);
    assert_eq!(contents(dir.path()), before);
    fs::write(&manifest, kept).unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("GET a"), "1");
}

/// A server that writes the first base of its log, with so many keys and a delay of microseconds after each.
fn begin_first_base(dir: &Path, keys: usize, delay: &str) -> (Process, Client<UnixStream>) {
    let server = kumi(dir, &["--rdb-key-save-delay", delay]);
    let mut client = server.connect();
    for number in 0..keys {
        client.line(&format!("SET key:{number} 1"));
    }
    assert_eq!(client.line("CONFIG SET appendonly yes"), "OK");
    (server, client)
}

#[test]
fn a_stop_waits_for_the_first_base() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, mut client) = begin_first_base(dir.path(), 60, "50000");
    let refused = "-ERR Errors trying to SHUTDOWN. Check logs.";
    assert_eq!(client.line("SHUTDOWN"), refused);
    assert_eq!(client.line("SHUTDOWN NOSAVE"), refused);
    assert_eq!(client.line("SHUTDOWN NOW"), refused);
    server.wait_for_log("Writing initial AOF, can't exit.");
    server.signal(Signal::TERM);
    server.wait_for_log("Errors trying to shut down the server.");
    assert_eq!(client.line("SET late 1"), "OK");
    wait_for(&mut client, "aof_rewrite_in_progress:0");
    stop(server);
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("DBSIZE"), "61");
}

#[test]
fn a_forced_stop_does_not_wait_for_the_first_base() {
    let dir = tempfile::tempdir().unwrap();
    let (mut server, mut client) = begin_first_base(dir.path(), 100, "100000");
    client.send("SHUTDOWN FORCE\r\n");
    server.wait_for_log("Writing initial AOF. Exit anyway.");
    assert!(server.wait().success());
    // What it left is no append-only file, and the next server can start.
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("DBSIZE"), "0");
}

#[test]
fn a_rewrite_that_cannot_begin_refuses_no_write() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    let mut client = server.connect();
    assert_eq!(client.line("SET a 1"), "OK");
    // The name of the next increment is taken.
    let taken = dir.path().join("appendonlydir/appendonly.aof.2.incr.aof");
    fs::create_dir(&taken).unwrap();
    assert!(client.line("BGREWRITEAOF").starts_with("Background"));
    wait_for(&mut client, "aof_last_bgrewrite_status:err");
    assert_eq!(client.line("SET a 2"), "OK");
    assert!(
        client
            .line("INFO persistence")
            .contains("aof_last_write_status:ok")
    );
    drop(server);
    fs::remove_dir(&taken).unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("GET a"), "2");
}

#[test]
fn a_log_that_cannot_begin_is_not_turned_on() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("appendonlydir"), "a file").unwrap();
    let server = kumi(dir.path(), &[]);
    let mut client = server.connect();
    let port = free_port();
    let refused = client.line(&format!("CONFIG SET port {port} appendonly yes"));
    assert!(refused.contains("Unable to turn on AOF"), "{refused}");
    assert_eq!(client.line("CONFIG GET port"), "port,0");
    assert_eq!(client.line("CONFIG GET appendonly"), "appendonly,no");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    assert_eq!(client.line("SET a 1"), "OK");
    // The other way round: a port that is in use.
    fs::remove_file(dir.path().join("appendonlydir")).unwrap();
    let used = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = used.local_addr().unwrap().port();
    let refused = client.line(&format!(
        "CONFIG SET appendonly yes bind 127.0.0.1 port {port}"
    ));
    assert!(refused.contains("Unable to listen"), "{refused}");
    assert_eq!(client.line("CONFIG GET appendonly"), "appendonly,no");
    assert!(client.line("INFO persistence").contains("aof_enabled:0"));
    let another = kumi(dir.path(), &["--appendonly", "yes"]);
    drop(another);
    assert_eq!(client.line("CONFIG SET appendonly yes"), "OK");
}

#[test]
fn a_full_disk_fails_the_rewrite_of_a_server_without_a_log() {
    for fsync in ["always", "everysec"] {
        let dir = tempfile::tempdir().unwrap();
        // No file may be longer than this many blocks, and the system reports it as an error of the write.
        let mut limited = Command::new("sh");
        limited
            .args(["-c", "trap '' XFSZ; ulimit -f 128; exec \"$0\" \"$@\""])
            .arg(binary().get_program())
            .env_remove("NOTIFY_SOCKET");
        let args = ["--appendfsync", fsync, "--rdb-key-save-delay", "100000"];
        let server = start(limited, dir.path(), &args);
        let mut client = server.connect();
        for number in 0..100 {
            client.line(&format!("SET key:{number} 1"));
        }
        assert!(client.line("BGREWRITEAOF").starts_with("Background"));
        let temporary = dir.path().join("appendonlydir/temp-appendonly.aof.incr");
        eventually(|| temporary.exists(), |&exists| exists);
        let info = client.line("INFO persistence");
        for field in ["aof_enabled:0", "aof_rewrite_in_progress:1"] {
            assert!(info.contains(field), "{field} in {info}");
        }
        let long = "x".repeat(200 * 1024);
        assert_eq!(client.line(&format!("SET long {long}")), "OK");
        assert_eq!(client.line("SET a 1"), "OK");
        wait_for(&mut client, "aof_rewrite_in_progress:0");
        assert!(
            !dir.path()
                .join("appendonlydir/appendonly.aof.manifest")
                .exists()
        );
        assert_eq!(client.line("GET a"), "1");
    }
}

#[test]
fn an_old_file_stays_when_a_log_begins_at_run_time() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &[]);
    let mut client = server.connect();
    let old = dir.path().join("appendonly.aof");
    fs::write(&old, "*1\r\n$4\r\nPING\r\n").unwrap();
    assert_eq!(client.line("CONFIG SET appendonly yes"), "OK");
    wait_for(&mut client, "aof_rewrites:1\r");
    assert!(old.exists());
    assert_eq!(client.line("SET a 1"), "OK");
    stop(server);
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("GET a"), "1");
    assert!(old.exists());
}

#[test]
fn what_a_rewrite_without_a_log_wrote_can_be_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &[]);
    let mut client = server.connect();
    assert!(client.line("DEBUG LOADAOF").starts_with('-'));
    assert_eq!(client.line("SET a 1"), "OK");
    assert!(client.line("BGREWRITEAOF").starts_with("Background"));
    let increment = dir.path().join("appendonlydir/appendonly.aof.1.incr.aof");
    eventually(
        || fs::read(&increment).unwrap_or_default(),
        |bytes| bytes.ends_with(b"#K:close\r\n"),
    );
    assert_eq!(client.line("SET a 2"), "OK");
    assert_eq!(client.line("DEBUG LOADAOF"), "OK");
    assert_eq!(client.line("GET a"), "1");
    assert_eq!(client.line("SET a 3"), "OK");
}

#[test]
fn files_with_many_databases_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes", "--databases", "2000"]);
    let mut client = server.connect();
    for line in ["SELECT 1999", "SET a 1", "SAVE"] {
        assert_eq!(client.line(line), "OK");
    }
    stop(server);
    let checked = kumi_server::check_aof(&dir.path().join("appendonlydir"), false).unwrap();
    assert!(checked.valid, "{checked:?}");
    let checked = kumi_server::check_rdb(&dir.path().join("dump.rdb")).unwrap();
    assert!(checked.valid, "{checked:?}");
}
