//! Directives of the append-only file and of the RDB file on a running server: when it syncs, what it writes beside the
//! data, and what redis-server makes of it.

use crate::common::{Client, Process, binary, eventually};
use rustix::process::Signal;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn start(program: Command, dir: &Path, args: &[&str]) -> Process {
    let home = TempDir::new().unwrap();
    let socket = home.path().join("s");
    let mut all = vec!["--port", "0", "--save", "", "--enable-debug-command", "yes"];
    all.extend(["--unixsocket", socket.to_str().unwrap()]);
    all.extend(["--dir", dir.to_str().unwrap()]);
    all.extend(args);
    // "Ready ..." of Redis 7.2, "The server is now ready ..." of Redis 7.0.
    Process::start_program(program, home, &all, "eady to accept connections")
}

fn kumi(dir: &Path, args: &[&str]) -> Process {
    start(binary(), dir, args)
}

fn redis(dir: &Path, args: &[&str]) -> Process {
    start(Command::new("redis-server"), dir, args)
}

fn stop(mut server: Process) {
    server.signal(Signal::TERM);
    assert!(server.wait().success());
}

/// Whether INFO has this. The server does nothing for a moment before, so that the thread of a snapshot, whose priority is
/// lower, gets on.
fn persistence(client: &mut Client<UnixStream>, field: &str) -> bool {
    assert_eq!(client.line("DEBUG SLEEP 0.005"), "OK");
    client.line("INFO persistence").contains(field)
}

/// The text of a file of the append-only file.
fn text_of(dir: &Path, name: &str) -> String {
    let path = dir.join("appendonlydir").join(name);
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

#[test]
fn nothing_is_synced_during_a_rewrite_if_the_configuration_says_so() {
    for (directive, wait, synced) in [
        ("yes", "WAITAOF 1 0 200", "0,0"),
        ("no", "WAITAOF 1 0 0", "1,0"),
    ] {
        for fsync in ["always", "no"] {
            let dir = tempfile::tempdir().unwrap();
            let mut args = vec!["--appendonly", "yes", "--appendfsync", fsync];
            args.extend(["--no-appendfsync-on-rewrite", directive]);
            let server = kumi(dir.path(), &args);
            let mut client = server.connect();
            assert_eq!(client.line("SET a 1"), "OK");
            assert_eq!(client.line("WAITAOF 1 0 0"), "1,0");
            // The rewrite takes a minute for the one key.
            assert_eq!(client.line("CONFIG SET rdb-key-save-delay 60000000"), "OK");
            assert!(client.line("BGREWRITEAOF").starts_with("Background"));
            let running = "aof_rewrite_in_progress:1";
            // Not while the rewrite is prepared, which syncs the file.
            let begun = "aof_current_rewrite_time_sec:0";
            eventually(|| persistence(&mut client, begun), |&begun| begun);
            assert_eq!(client.line("SET a 2"), "OK");
            assert_eq!(client.line(wait), synced, "{directive} {fsync}");
            assert!(persistence(&mut client, running));
            // What the system has survives the end of the process.
            drop(server);
            let server = kumi(dir.path(), &args);
            let mut client = server.connect();
            assert_eq!(client.line("GET a"), "2");
            // Without a rewrite it is synced again.
            assert_eq!(client.line("SET a 3"), "OK");
            assert_eq!(client.line("WAITAOF 1 0 0"), "1,0");
        }
    }
}

#[test]
fn turning_the_aof_off_ends_its_rewrite() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = kumi(dir.path(), &["--appendonly", "yes"]);
    let mut client = server.connect();
    assert_eq!(client.line("SET a 1"), "OK");
    assert_eq!(client.line("CONFIG SET rdb-key-save-delay 60000000"), "OK");
    assert!(client.line("BGREWRITEAOF").starts_with("Background"));
    let running = "aof_rewrite_in_progress:1";
    eventually(|| persistence(&mut client, running), |&running| running);
    assert_eq!(client.line("SET a 2"), "OK");
    assert_eq!(client.line("CONFIG SET appendonly no"), "OK");
    server.wait_for_log("Killing running AOF rewrite child");
    let ended = "aof_rewrite_in_progress:0";
    eventually(|| persistence(&mut client, ended), |&ended| ended);
    // It was not a failure, and what was written before is in the file.
    assert!(persistence(&mut client, "aof_last_bgrewrite_status:ok"));
    assert_eq!(client.line("SET a 3"), "OK");
    stop(server);
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("GET a"), "2");
}

#[test]
fn a_rewrite_is_logged_in_the_words_of_redis() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = kumi(dir.path(), &["--appendonly", "yes"]);
    let mut client = server.connect();
    assert_eq!(client.line("SET a 1"), "OK");
    assert!(client.line("BGREWRITEAOF").starts_with("Background"));
    server.wait_for_log("Background AOF rewrite finished successfully");
    let pid = server.child.id();
    let temporary = format!("the temporary AOF base file temp-rewriteaof-bg-{pid}.aof");
    for expected in [
        format!("* Background append only file rewriting started by pid {pid}"),
        format!("* Successfully created {temporary}"),
        format!("* Successfully renamed {temporary} into appendonly.aof.2.base.rdb"),
        "* Removing the history file appendonly.aof.1.base.rdb in the background".into(),
        "* Removing the history file appendonly.aof.1.incr.aof in the background".into(),
    ] {
        let told = server.log.iter().any(|line| line.ends_with(&expected));
        assert!(told, "{expected}: {:#?}", server.log);
    }
}

#[test]
fn lines_with_the_time_are_read_by_both_servers() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--appendonly", "yes", "--aof-timestamp-enabled", "yes"];
    let mut digest = None;
    for (round, of_kumi) in [true, false, true, false].into_iter().enumerate() {
        let server = match of_kumi {
            true => kumi(dir.path(), &args),
            false => redis(dir.path(), &args),
        };
        let mut client = server.connect();
        if let Some(digest) = &digest {
            assert_eq!(&client.line("DEBUG DIGEST"), digest, "round {round}");
        }
        for line in [
            format!("SET s:{round} text"),
            format!("RPUSH l {round} b"),
            "MULTI".into(),
            format!("HSET h f{round} v"),
            format!("ZADD z {round} m"),
            "EXEC".into(),
        ] {
            let reply = client.line(&line);
            assert!(!reply.starts_with('-'), "{line}: {reply}");
        }
        digest = Some(client.line("DEBUG DIGEST"));
        stop(server);
        let text = text_of(dir.path(), "appendonly.aof.1.incr.aof");
        let stamps: Vec<u64> = text
            .lines()
            .filter_map(|line| line.strip_prefix("#TS:"))
            .map(|seconds| seconds.parse().unwrap())
            .collect();
        assert!(!stamps.is_empty() && stamps.is_sorted(), "{stamps:?}");
        assert!(*stamps.last().unwrap() > 1_700_000_000, "{stamps:?}");
    }
    // Without the directive no more of them are written.
    let count = |dir: &Path| {
        text_of(dir, "appendonly.aof.1.incr.aof")
            .matches("#TS:")
            .count()
    };
    let before = count(dir.path());
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    assert_eq!(server.connect().line("SET a 1"), "OK");
    stop(server);
    assert_eq!(count(dir.path()), before);
}

#[test]
fn manifests_are_those_of_redis() {
    let manifests = |start: Starter| {
        let dir = tempfile::tempdir().unwrap();
        let args = ["--appendonly", "yes", "--aof-disable-auto-gc", "yes"];
        let server = start(dir.path(), &args);
        let mut client = server.connect();
        let mut texts = vec![text_of(dir.path(), "appendonly.aof.manifest")];
        for number in 0..3 {
            assert_eq!(client.line(&format!("SET a {number}")), "OK");
            assert!(client.line("BGREWRITEAOF").starts_with("Background"));
            eventually(
                || client.line("INFO persistence"),
                |info| {
                    info.contains("aof_rewrite_in_progress:0")
                        && info.contains("aof_rewrite_scheduled:0")
                },
            );
            texts.push(text_of(dir.path(), "appendonly.aof.manifest"));
        }
        assert_eq!(client.line("CONFIG SET aof-disable-auto-gc no"), "OK");
        let manifest = || text_of(dir.path(), "appendonly.aof.manifest");
        texts.push(eventually(manifest, |text| !text.contains("type h")));
        texts
    };
    assert_eq!(manifests(kumi), manifests(redis));
}

#[test]
fn a_base_of_requests_begins_with_the_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = vec!["--appendonly", "yes", "--aof-timestamp-enabled", "yes"];
    args.extend(["--aof-use-rdb-preamble", "no"]);
    let server = kumi(dir.path(), &args);
    let mut client = server.connect();
    assert_eq!(client.line("SET a 1"), "OK");
    let digest = client.line("DEBUG DIGEST");
    assert!(client.line("BGREWRITEAOF").starts_with("Background"));
    let done = "aof_rewrites:2\r";
    eventually(|| persistence(&mut client, done), |&done| done);
    stop(server);
    let base = text_of(dir.path(), "appendonly.aof.2.base.aof");
    assert!(base.starts_with("#TS:1"), "{base}");
    let server = redis(dir.path(), &args);
    assert_eq!(server.connect().line("DEBUG DIGEST"), digest);
}

#[test]
fn a_reply_waits_for_a_log_that_is_written_slowly() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["--appendonly", "yes", "--appendfsync", "always"];
    let server = kumi(dir.path(), &args);
    let mut client = server.connect();
    assert_eq!(client.line("DEBUG AOF-FLUSH-SLEEP 300000"), "OK");
    let path = dir.path().join("appendonlydir/appendonly.aof.1.incr.aof");
    let len = || fs::metadata(&path).unwrap().len();
    let (before, start) = (len(), Instant::now());
    assert_eq!(client.line("INCR n"), "1");
    assert!(len() > before, "the write is in the file before its reply");
    assert!(start.elapsed() >= Duration::from_millis(300));
    // A read does not wait for anything.
    assert_eq!(client.line("GET n"), "1");
}

#[test]
fn loading_the_aof_again_while_it_is_synced_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = kumi(dir.path(), &["--appendonly", "yes"]);
    // This client has its reply when the file has been synced, a second later.
    let mut waiting = server.connect();
    assert_eq!(waiting.line("SET n 0"), "OK");
    let mut client = server.connect();
    // The test does not read the server's log meanwhile, and each load would write a line.
    assert_eq!(client.line("CONFIG SET loglevel warning"), "OK");
    std::thread::scope(|scope| {
        let synced = scope.spawn(|| assert_eq!(waiting.line("WAITAOF 1 0 0"), "1,0"));
        for number in 1.. {
            let is_last = synced.is_finished();
            // They arrive together, so that the second one finds the write of the first one in memory.
            client.send(format!("SET n {number}\r\nDEBUG LOADAOF\r\nGET n\r\n"));
            let replies = [(); 3].map(|()| crate::common::text(&client.reply()));
            assert_eq!(replies, ["OK".into(), "OK".into(), number.to_string()]);
            if is_last {
                break;
            }
        }
    });
}

#[test]
fn files_without_checksums_go_to_redis_and_back() {
    let no = ["--rdbchecksum", "no"];
    for of_kumi in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (writer, reader): (Starter, Starter) = match of_kumi {
            true => (kumi, redis),
            false => (redis, kumi),
        };
        let server = writer(dir.path(), &no);
        let mut client = server.connect();
        for line in ["SET a 1", "RPUSH l a b c", "SET t x EX 10000"] {
            assert!(!client.line(line).starts_with('-'));
        }
        assert_eq!(client.line("SAVE"), "OK");
        let digest = client.line("DEBUG DIGEST");
        drop(server);
        let path = dir.path().join("dump.rdb");
        let mut bytes = fs::read(&path).unwrap();
        assert!(bytes.ends_with(&[0; 8]), "no checksum");
        // A server that checks takes it as well: the file says that it has none.
        for args in [&[] as &[&str], &no] {
            let server = reader(dir.path(), args);
            assert_eq!(server.connect().line("DEBUG DIGEST"), digest);
        }
        // One that does not check takes a wrong one.
        bytes.truncate(bytes.len() - 8);
        bytes.extend_from_slice(b"foobar00");
        fs::write(&path, bytes).unwrap();
        let server = reader(dir.path(), &no);
        assert_eq!(server.connect().line("DEBUG DIGEST"), digest);
    }
}

/// Starts a server of one kind.
type Starter = fn(&Path, &[&str]) -> Process;
