//! What redis-server does and clients of it rely on, seen through a running server: the score for the out-of-memory killer,
//! damaged RDB files, memory that is used up to its limit, the memory of an argument that is arriving, where turns of the
//! event loop spend their time, the first line of an append-only file.

use crate::common::{Client, Process, binary, eventually};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;

fn field(client: &mut Client<UnixStream>, section: &str, name: &str) -> String {
    let info = client.line(&format!("INFO {section}"));
    let prefix = format!("{name}:");
    let value = info.lines().find_map(|line| line.strip_prefix(&prefix));
    value
        .unwrap_or_else(|| panic!("{name} in {info}"))
        .to_owned()
}

fn number(client: &mut Client<UnixStream>, section: &str, name: &str) -> u64 {
    field(client, section, name).parse().unwrap()
}

fn oom_score(server: &Process) -> i32 {
    let path = format!("/proc/{}/oom_score_adj", server.child.id());
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn the_score_for_the_out_of_memory_killer_is_set_and_taken_back() {
    let server = Process::start(&["--enable-protected-configs", "yes"]);
    let mut client = server.connect();
    let base = oom_score(&server);
    // Only a privileged process may lower its score.
    let (first, second) = ((base + 7).min(1000), (base + 11).min(1000));
    let set = |client: &mut Client<UnixStream>, words: &[&str]| {
        let all: Vec<&str> = ["CONFIG", "SET"].iter().chain(words).copied().collect();
        crate::common::text(&client.ask(&all))
    };
    let values = ["oom-score-adj-values", "7 200 800"];
    assert_eq!(set(&mut client, &values), "OK");
    assert_eq!(oom_score(&server), base);
    assert_eq!(set(&mut client, &["oom-score-adj", "yes"]), "OK");
    assert_eq!(oom_score(&server), first);
    let absolute = format!("{second} 200 800");
    let change = [
        "oom-score-adj",
        "absolute",
        "oom-score-adj-values",
        &absolute,
    ];
    assert_eq!(set(&mut client, &change), "OK");
    assert_eq!(oom_score(&server), second);
    // All of a change or nothing.
    let failed = set(&mut client, &["oom-score-adj", "no", "dir", "/nowhere"]);
    assert!(failed.contains("related to argument 'dir'"), "{failed}");
    assert_eq!(oom_score(&server), second);
    assert_eq!(
        client.line("CONFIG GET oom-score-adj"),
        "oom-score-adj,absolute"
    );
    assert_eq!(set(&mut client, &["oom-score-adj", "no"]), "OK");
    assert_eq!(oom_score(&server), base);

    let flags = [
        "--oom-score-adj",
        "relative",
        "--oom-score-adj-values",
        "7",
        "200",
        "800",
    ];
    assert_eq!(oom_score(&Process::start(&flags)), first);
}

#[test]
fn a_server_inside_another_program_leaves_the_score_of_the_process_alone() {
    let server = kumi_server::embedded().unwrap();
    let path = server.path().to_owned();
    let mut client = Client::unix(&path);
    let refused = client.line("CONFIG SET oom-score-adj yes");
    let reason =
        "possibly related to argument 'oom-score-adj') - the process belongs to the program";
    assert!(refused.contains(reason), "{refused}");
    assert_eq!(client.line("CONFIG GET oom-score-adj"), "oom-score-adj,no");
}

/// What a server says that starts on this RDB file and cannot.
fn refusal(file: &[u8]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("dump.rdb"), file).unwrap();
    refusal_in(dir.path(), "no")
}

/// The same if the file is the base of an append-only file.
fn refusal_of_base(file: &[u8]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("appendonlydir");
    fs::create_dir(&files).unwrap();
    let (base, manifest) = ("appendonly.aof.1.base.rdb", "appendonly.aof.manifest");
    fs::write(files.join(base), file).unwrap();
    fs::write(files.join(manifest), format!("file {base} seq 1 type b\n")).unwrap();
    refusal_in(dir.path(), "yes")
}

fn refusal_in(dir: &Path, appendonly: &str) -> Vec<String> {
    let output = binary()
        .args(["--port", "0", "--unixsocket", "s", "--appendonly"])
        .args([appendonly, "--dir"])
        .arg(dir)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().map(str::to_owned).collect()
}

#[test]
fn a_damaged_file_ends_the_start_with_the_lines_of_redis() {
    const KEY: &[u8] = b"REDIS0010\xfe\x00\x00\x01k\x01v";
    let with = |rest: &[u8]| [KEY, rest].concat();
    // A list of one node that is no listpack, an unknown type, a wrong checksum.
    let list = with(b"\x12\x01l\x01\x02\x07\x09\0\0\0\0\0\xff\xff\0\0\0\0\0\0\0\0");
    let checksum = with(b"\xff\x01\x02\x03\x04\x05\x06\x07\x08");
    for (file, lines) in [
        (
            with(b"\x00\x01l\x20abc"),
            &[
                "Short read or OOM loading DB. Unrecoverable error, aborting now.",
                "Unexpected EOF reading RDB file",
            ][..],
        ),
        (list, &["Listpack integrity check failed."]),
        (with(b"\xc8\x01l\x01v"), &["Unknown RDB encoding type 200"]),
        (
            checksum,
            &["Wrong RDB checksum expected: (", "-> RDB CRC error"],
        ),
        (Vec::new(), &["Short read or OOM loading DB."]),
    ] {
        let mut logs = vec![refusal(&file)];
        if !file.is_empty() {
            logs.push(refusal_of_base(&file));
        }
        for said in logs {
            for line in lines {
                assert!(
                    said.iter().any(|said| said.contains(line)),
                    "{line}: {said:#?}"
                );
            }
            let last = said.last().unwrap();
            let expected = "Terminating server after rdb file reading failure.";
            assert!(last.ends_with(expected), "{said:#?}");
        }
    }
    for (file, line) in [
        (
            &b"HELLO0010\xff"[..],
            "Wrong signature trying to load DB from file",
        ),
        (b"REDIS0099\xff", "Can't handle RDB format version 99"),
    ] {
        let said = refusal(file);
        assert!(said.iter().any(|said| said.contains(line)), "{said:#?}");
        let last = said.last().unwrap();
        assert!(last.contains("Fatal error loading the DB"), "{said:#?}");
    }
}

#[test]
fn empty_keys_of_a_file_are_skipped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut file = b"REDIS0010\xfe\x00\x00\x01k\x01v".to_vec();
    for number in 0..12 {
        file.extend(format!("\x02\x05set{number:02}\0").as_bytes());
    }
    file.extend(b"\xff\0\0\0\0\0\0\0\0");
    fs::write(dir.path().join("dump.rdb"), file).unwrap();
    let socket = dir.path().join("s");
    let args = ["--port", "0", "--unixsocket", socket.to_str().unwrap()];
    let server = Process::start_in(dir, &args, "Ready to accept connections unix");
    assert_eq!(server.connect().line("DBSIZE"), "1");
    let said = |text: &str| server.log.iter().filter(|line| line.contains(text)).count();
    assert_eq!(said("rdbLoadObject skipping empty key: set"), 10);
    let counted = "Done loading RDB, keys loaded: 1, keys expired: 0, empty keys skipped: 12.";
    assert_eq!(said(counted), 1, "{:#?}", server.log);
}

/// A cache of 100 KiB is small for a table that grows by 8 KiB at a time, and INFO's reply is long.
#[test]
fn memory_is_used_up_to_its_limit_before_a_key_is_evicted() {
    const NEAR: u64 = 4096;
    for policy in [
        "allkeys-random",
        "allkeys-lru",
        "allkeys-lfu",
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        let server = Process::start(&["--save", "", "--maxmemory-policy", policy]);
        let mut client = server.connect();
        let limit = number(&mut client, "everything", "used_memory") + 100 * 1024;
        assert_eq!(client.line(&format!("CONFIG SET maxmemory {limit}")), "OK");
        let mut used = 0;
        for key in 0..10_000 {
            let name = key * 7919 % 10_000;
            assert_eq!(client.line(&format!("SETEX {name} 10000 x")), "OK");
            // Far from the limit it is enough to look now and then.
            if used + 32 * 1024 < limit && key % 64 != 0 {
                continue;
            }
            let info = client.line("INFO everything");
            let value = |name: &str| -> u64 {
                let line = info.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap().parse().unwrap()
            };
            used = value("used_memory:");
            let evicted = value("evicted_keys:");
            assert_eq!(
                evicted,
                0,
                "{policy}: {} bytes below the limit",
                limit - used
            );
            if used + NEAR > limit {
                break;
            }
        }
        assert!(used + NEAR > limit, "{policy}: {used} of {limit}");
        // It stays below from now on.
        for key in 0..2000 {
            assert_eq!(client.line(&format!("SETEX new:{key} 10000 x")), "OK");
        }
        let used = number(&mut client, "memory", "used_memory");
        assert!(used < limit + NEAR, "{policy}: {used} of {limit}");
        assert!(number(&mut client, "stats", "evicted_keys") > 0);
    }
}

fn total_memory(client: &mut Client<UnixStream>, name: &str) -> u64 {
    let list = client.line("CLIENT LIST");
    let mark = format!(" name={name} ");
    let line = list.lines().find(|line| line.contains(&mark));
    let memory = line.and_then(|line| line.split(" tot-mem=").nth(1));
    memory.map_or(0, |rest| rest.split(' ').next().unwrap().parse().unwrap())
}

#[test]
fn an_argument_that_is_still_arriving_counts_for_its_client() {
    let server = Process::start(&["--save", ""]);
    let mut client = server.connect();
    for len in [20_000u64, 157_286, 50_000_000] {
        let mut sender = server.connect();
        assert_eq!(sender.line("CLIENT SETNAME sender"), "OK");
        sender.send(format!("*1\r\n${len}\r\nabc"));
        let counted = eventually(
            || total_memory(&mut client, "sender"),
            |&memory| memory >= len,
        );
        assert!(counted < len + 20_000, "{counted} for {len}");
        // What was only announced takes no memory.
        assert!(number(&mut client, "memory", "used_memory") < 10_000_000);
        drop(sender);
        eventually(
            || total_memory(&mut client, "sender"),
            |&memory| memory == 0,
        );
    }
    let limits = "CONFIG SET maxmemory 6mb maxmemory-clients 5%";
    assert_eq!(client.line(limits), "OK");
    let mut sender = server.connect();
    sender.send("*1\r\n$314572\r\n");
    assert!(sender.try_reply().is_none(), "it is closed");
    assert_eq!(number(&mut client, "stats", "evicted_clients"), 1);
}

#[test]
fn the_debug_section_of_info_has_the_times_of_the_event_loop() {
    let server = Process::start(&["--save", "", "--appendonly", "yes"]);
    let mut client = server.connect();
    client.send("PING\r\n".repeat(20));
    for _ in 0..20 {
        assert_eq!(crate::common::text(&client.reply()), "PONG");
    }
    assert_eq!(client.line("SET a 1"), "OK");
    for name in [
        "eventloop_duration_aof_sum",
        "eventloop_duration_cron_sum",
        "eventloop_duration_max",
    ] {
        eventually(|| number(&mut client, "debug", name), |&time| time > 0);
    }
    let most = number(&mut client, "debug", "eventloop_cmd_per_cycle_max");
    assert!((1..=21).contains(&most), "{most}");
    assert!(
        !client
            .line("INFO everything")
            .contains("eventloop_duration_max")
    );
}

#[test]
fn a_large_value_that_expires_is_an_expire_cycle_of_the_latency_monitor() {
    let server = Process::start(&["--save", "", "--latency-monitor-threshold", "1"]);
    let mut client = server.connect();
    let fill = "for i = 1, 300000 do redis.call('SADD', KEYS[1], i) end";
    client.ask(&["EVAL", fill, "1", "big"]);
    assert_eq!(client.line("PEXPIRE big 1"), "1");
    eventually(
        || client.line("LATENCY LATEST"),
        |latest| latest.contains("expire-cycle"),
    );
    assert!(
        client
            .line("LATENCY GRAPH expire-cycle")
            .starts_with("expire-cycle - high ")
    );
}

fn first_line(path: &Path) -> String {
    let mut line = String::new();
    let mut file = BufReader::new(fs::File::open(path).unwrap());
    file.read_line(&mut line).unwrap();
    line
}

#[test]
fn an_append_only_file_with_times_begins_with_one() {
    let server = Process::start(&["--save", "", "--appendonly", "yes"]);
    let directory = server.dir.path().join("appendonlydir");
    let mut client = server.connect();
    for change in ["aof-timestamp-enabled yes", "aof-use-rdb-preamble no"] {
        assert_eq!(client.line(&format!("CONFIG SET {change}")), "OK");
    }
    assert_eq!(client.line("SET foo bar"), "OK");
    let increment = first_line(&directory.join("appendonly.aof.1.incr.aof"));
    assert!(increment.starts_with("#TS:"), "{increment}");
    let rewrites = number(&mut client, "persistence", "aof_rewrites");
    client.line("BGREWRITEAOF");
    eventually(
        || number(&mut client, "persistence", "aof_rewrites"),
        |&now| now > rewrites,
    );
    assert_eq!(client.line("SET foo baz"), "OK");
    for part in ["base", "incr"] {
        let line = first_line(&directory.join(format!("appendonly.aof.2.{part}.aof")));
        assert!(line.starts_with("#TS:"), "{part}: {line}");
    }
}
