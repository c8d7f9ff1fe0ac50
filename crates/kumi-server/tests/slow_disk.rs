//! A disk whose syncs take long: clients do not wait for a snapshot or a rewrite.
//!
//! The disk is slow because a library loaded before libc has every sync sleep first. It works for any server.
//! A program of its own, because it measures how long clients wait: no other test runs meanwhile.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "server/common.rs"]
mod common;

use common::{Client, Process, binary, eventually, request, text};
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The library's source.
const DELAY: &str = include_str!("../../../tests/slow_disk/delay.c");
/// A wait that is no longer than this is not blamed on the disk: the machine may be busy.
const ALWAYS_ALLOWED: Duration = Duration::from_secs(1);
/// Keys with a value of 1 KiB: more than one part of a file that is synced while it is written.
const KEYS: usize = 6_000;

/// Compiles the library.
fn library(directory: &Path) -> PathBuf {
    let (source, library) = (directory.join("delay.c"), directory.join("delay.so"));
    fs::write(&source, DELAY).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .status();
    assert!(compiled.expect("cc links every Rust program").success());
    library
}

/// A server on a disk whose syncs take this long.
fn start(program: Command, sync_ms: u32, args: &[&str]) -> Process {
    let mut program = program;
    let dir: TempDir = tempfile::tempdir().unwrap();
    let library = library(dir.path());
    program
        .env("LD_PRELOAD", library)
        .env("SLOW_DISK_MS", sync_ms.to_string());
    let socket = dir.path().join("s");
    let mut all = vec!["--port", "0", "--unixsocket", socket.to_str().unwrap()];
    all.extend(args);
    Process::start_program(program, dir, &all, "eady to accept connections")
}

fn redis() -> Command {
    let mut program = Command::new("redis-server");
    program.stdin(Stdio::null());
    program
}

fn set(index: usize) -> Vec<u8> {
    let (key, value) = (format!("key:{index:06}"), [b'v'; 1024]);
    request(&[b"SET", key.as_bytes(), &value])
}

/// Fills the server.
fn load(client: &mut Client<UnixStream>) {
    for first in (0..KEYS).step_by(500) {
        let batch: Vec<u8> = (first..first + 500).flat_map(set).collect();
        client.send(&batch);
        for _ in 0..500 {
            assert_eq!(text(&client.reply()), "OK");
        }
    }
}

/// The longest time that a write takes while `command` runs in the background, until `field` of INFO is 0 again.
fn longest_wait(server: &Process, command: &str, fields: &[&str]) -> Duration {
    let stop = AtomicBool::new(false);
    let mut client = server.connect();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let (mut client, mut longest) = (server.connect(), Duration::ZERO);
            let mut rng = fastrand::Rng::with_seed(1);
            while !stop.load(Ordering::Relaxed) {
                let sent = Instant::now();
                client.send(set(rng.usize(..KEYS)));
                assert_eq!(text(&client.reply()), "OK");
                longest = longest.max(sent.elapsed());
            }
            longest
        });
        client.line(command);
        eventually(
            || {
                let info = client.line("INFO persistence");
                fields
                    .iter()
                    .all(|field| info.contains(&format!("{field}:0\r")))
            },
            |&ended| ended,
        );
        stop.store(true, Ordering::Relaxed);
        let longest = writer.join().unwrap();
        let info = client.line("INFO persistence");
        for status in ["rdb_last_bgsave_status:ok", "aof_last_bgrewrite_status:ok"] {
            assert!(info.contains(status), "{info}");
        }
        longest
    })
}

/// The longest waits during BGSAVE and BGREWRITEAOF on a disk with 400 ms per sync.
fn waits(program: Command) -> [Duration; 2] {
    let args = [
        "--save",
        "",
        "--appendonly",
        "yes",
        "--appendfsync",
        "everysec",
    ];
    let server = start(program, 400, &args);
    load(&mut server.connect());
    [
        longest_wait(&server, "BGSAVE", &["rdb_bgsave_in_progress"]),
        longest_wait(
            &server,
            "BGREWRITEAOF",
            &["aof_rewrite_in_progress", "aof_rewrite_scheduled"],
        ),
    ]
}

#[test]
fn writes_do_not_wait_for_a_snapshot_or_a_rewrite() {
    let (kumi, redis) = std::thread::scope(|scope| {
        let redis = scope.spawn(|| waits(redis()));
        (waits(binary()), redis.join().unwrap())
    });
    println!("kumi {kumi:?}, redis-server {redis:?}");
    for (wait, of_redis) in kumi.into_iter().zip(redis) {
        let allowed = (of_redis * 2).max(ALWAYS_ALLOWED);
        assert!(wait <= allowed, "{kumi:?}, redis-server {redis:?}");
    }
}

#[test]
fn flushall_and_shutdown_do_not_wait_for_a_snapshot() {
    const SYNC_MS: u32 = 6_000;
    let mut server = start(binary(), SYNC_MS, &["--save", ""]);
    let mut client = server.connect();
    assert_eq!(client.line("SET a 1"), "OK");
    assert_eq!(client.line("BGSAVE"), "Background saving started");
    // The file is synced, and has its name. The name is being synced now.
    let file = server.dir.path().join("dump.rdb");
    eventually(|| file.exists(), |&exists| exists);
    let sent = Instant::now();
    assert_eq!(client.line("FLUSHALL"), "OK");
    assert_eq!(client.line("SET b 2"), "OK");
    // Another one begins; the server ends in the middle of its sync.
    assert_eq!(client.line("BGSAVE"), "Background saving started");
    client.send(request(&["SHUTDOWN", "NOSAVE"]));
    assert!(server.wait().success());
    let waited = sent.elapsed();
    assert!(
        waited < Duration::from_millis(u64::from(SYNC_MS)) / 2,
        "{waited:?}"
    );
}

/// A server that prepares a rewrite on a slow disk, and a client.
fn preparing_rewrite(sync_ms: u32) -> (Process, Client<UnixStream>) {
    let server = start(
        binary(),
        sync_ms,
        &["--save", "", "--appendonly", "yes", "--appendfsync", "no"],
    );
    let mut client = server.connect();
    assert_eq!(client.line("SET a 1"), "OK");
    let reply = client.line("BGREWRITEAOF");
    assert_eq!(reply, "Background append only file rewriting started");
    // The new increment is made, and is being synced.
    let next = server.dir.path().join("appendonlydir");
    let next = next.join("appendonly.aof.2.incr.aof");
    eventually(|| next.exists(), |&exists| exists);
    (server, client)
}

#[test]
fn the_end_of_the_append_only_file_does_not_wait_for_a_rewrite_that_is_prepared() {
    const SYNC_MS: u32 = 2_000;
    /// What is synced at the end is the file itself. A rewrite would sync four times more.
    const LIMIT: Duration = Duration::from_millis(3 * SYNC_MS as u64);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut server, mut client) = preparing_rewrite(SYNC_MS);
            let sent = Instant::now();
            client.send(request(&["SHUTDOWN"]));
            assert!(server.wait().success());
            let waited = sent.elapsed();
            assert!(waited < LIMIT, "SHUTDOWN: {waited:?}");
        });
        scope.spawn(|| {
            let (server, mut client) = preparing_rewrite(SYNC_MS);
            let sent = Instant::now();
            assert_eq!(client.line("CONFIG SET appendonly no"), "OK");
            assert_eq!(client.line("PING"), "PONG");
            let waited = sent.elapsed();
            assert!(waited < LIMIT, "appendonly no: {waited:?}");
            // It can begin again, with everything.
            assert_eq!(client.line("CONFIG SET appendonly yes"), "OK");
            eventually(
                || client.line("INFO persistence"),
                |info| {
                    info.contains("aof_rewrite_in_progress:0")
                        && info.contains("aof_rewrite_scheduled:0")
                        && info.contains("aof_last_bgrewrite_status:ok")
                },
            );
            let checked = kumi_server::check_aof(&server.dir.path().join("appendonlydir"), false);
            let checked = checked.unwrap();
            assert!(checked.valid, "{checked:?}");
        });
    });
}

/// Runs this test again in a process in which the sync of a directory takes this long. In that process, returns the path of a
/// file that the beginning of such a sync makes.
fn on_slow_disk(test: &str, directory_ms: u32) -> Option<PathBuf> {
    if let Some(mark) = std::env::var_os("SLOW_DIRECTORY_MARK") {
        return Some(mark.into());
    }
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("LD_PRELOAD", library(dir.path()))
        .env("SLOW_DIRECTORY_MS", directory_ms.to_string())
        .env("SLOW_DIRECTORY_MARK", dir.path().join("mark"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}{errors}");
    assert!(printed.contains("1 passed"), "{printed}");
    None
}

#[test]
fn an_embedded_server_has_left_its_directory_when_it_has_stopped() {
    let test = "an_embedded_server_has_left_its_directory_when_it_has_stopped";
    let Some(mark) = on_slow_disk(test, 1000) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let server = kumi_server::embedded_at(dir.path()).unwrap();
    let mut client = Client::unix(server.path());
    assert_eq!(client.line("SET a 1"), "OK");
    // The start has synced names.
    fs::remove_file(&mark).unwrap();
    let reply = client.line("BGREWRITEAOF");
    assert_eq!(reply, "Background append only file rewriting started");
    // The thread of the append-only file has made an increment for the rewrite, and syncs the directory. The stop gives the
    // rewrite up, and has nothing else to sync there.
    eventually(|| mark.exists(), |&exists| exists);
    server.stop().unwrap();
    let server = kumi_server::embedded_at(dir.path()).unwrap();
    assert_eq!(Client::unix(server.path()).line("GET a"), "1");
}
