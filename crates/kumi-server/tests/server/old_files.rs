//! RDB and append-only files that older versions of Redis wrote, and what those servers replied about their data.

use crate::common::{Process, request};
use std::fs;
use std::path::PathBuf;

const VERSIONS: [&str; 4] = ["3.0", "3.2", "5.0", "6.2"];

fn fixture(version: &str, name: &str) -> PathBuf {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests");
    PathBuf::from(format!("{tests}/fixtures/old-servers/{version}/{name}"))
}

/// Starts a server on a copy of `file` and compares its replies with the recorded ones.
fn check(version: &str, file: &str, contents: &str, args: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(fixture(version, file), dir.path().join(file)).unwrap();
    let socket = dir.path().join("s");
    let mut all = vec!["--port", "0", "--unixsocket", socket.to_str().unwrap()];
    all.extend(["--save", "", "--enable-debug-command", "yes"]);
    all.extend(args);
    let server = Process::start_in(dir, &all, "Ready to accept connections unix");
    let mut client = server.connect();
    let recorded = fs::read_to_string(fixture(version, contents)).unwrap();
    assert!(recorded.contains("DEBUG DIGEST\t"));
    for line in recorded.lines() {
        let (command, expected) = line.split_once('\t').unwrap();
        println!("{version} {file}: {command}");
        let words: Vec<&str> = command.split(' ').collect();
        client.send(request(&words));
        client.expect(unescape(expected));
    }
}

/// The bytes of a text with `\r`, `\n`, `\t`, `\\` and `\xNN`.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next().unwrap() {
                b'r' => b'\r',
                b'n' => b'\n',
                b't' => b'\t',
                b'x' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                other => other,
            },
            byte => byte,
        });
    }
    bytes
}

#[test]
fn rdb_files_of_old_servers_are_loaded() {
    for version in VERSIONS {
        check(version, "dump.rdb", "contents.rdb.txt", &[]);
    }
}

#[test]
fn append_only_files_of_old_servers_are_loaded() {
    let args = ["--appendonly", "yes"];
    for version in VERSIONS {
        check(version, "appendonly.aof", "contents.aof.txt", &args);
    }
}
