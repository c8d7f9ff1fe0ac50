//! A snapshot equals the data at its instant, whatever is written while it is taken.

use super::*;
use crate::data::keyspace::ValueRef;
use crate::data::rdb::Compression;
use crate::data::rdb::payload;
use crate::testing::Lab;
use crate::types::packed::Elem;
use std::collections::BTreeMap;

type Keys = BTreeMap<(usize, Vec<u8>), (Option<u64>, Vec<Vec<u8>>)>;

/// All live keys of a store at a moment, with what they hold.
fn keys_of(store: &Store, now_ms: u64) -> Keys {
    let mut keys = Keys::new();
    for db in 0..store.keyspace.databases() {
        for entry in store.keyspace.entries(db).0 {
            if entry.deadline().is_some_and(|deadline| deadline <= now_ms) {
                continue;
            }
            let held = held(entry.value());
            keys.insert((db, entry.key().to_vec()), (entry.deadline(), held));
        }
    }
    keys
}

/// What a value holds, in an order that does not depend on how it is stored.
fn held(value: ValueRef<'_>) -> Vec<Vec<u8>> {
    let mut parts: Vec<Vec<u8>> = match value {
        ValueRef::Set(set) => set.iter().map(|member| member.text().to_vec()).collect(),
        ValueRef::Hash(hash) => hash
            .iter()
            .map(|(field, value)| [&field.text()[..], b"=", &value.text()].concat())
            .collect(),
        ValueRef::SortedSet(zset) => zset
            .iter()
            .map(|(member, score)| [&member[..], &score.to_be_bytes()].concat())
            .collect(),
        ValueRef::List(list) => {
            let elements = list.iter().enumerate();
            let with_index = |(index, element): (usize, Elem<'_>)| {
                [&index.to_be_bytes()[..], &element.text()].concat()
            };
            elements.map(with_index).collect()
        }
        ValueRef::String(_) | ValueRef::Stream(_) => {
            vec![payload(value, Compression::None)]
        }
    };
    parts.sort();
    parts
}

const TEMPLATES: &[&str] = &[
    "SET K V",
    "SET K V",
    "SET K 12",
    "SET K V PX 5",
    "SET K V PX 40",
    "INCR K",
    "APPEND K V",
    "SETRANGE K 2000 V",
    "SETBIT K 77 1",
    "PFADD K V",
    "GETDEL K",
    "DEL K",
    "UNLINK K",
    "RENAME K L",
    "COPY K L REPLACE",
    "COPY K L DB 1 REPLACE",
    "MOVE K 1",
    "MOVE K 2",
    "PEXPIRE K 7",
    "PEXPIRE K 900",
    "PERSIST K",
    "LPUSH K V V V",
    "RPUSH K V 5",
    "LPOP K",
    "LSET K 0 V",
    "LINSERT K BEFORE V V",
    "LTRIM K 1 -2",
    "RPOPLPUSH K L",
    "SADD K V V 7",
    "SADD K 1 2 3",
    "SREM K V",
    "SPOP K",
    "SMOVE K L V",
    "SUNIONSTORE K L K",
    "HSET K V V V V",
    "HDEL K V",
    "HINCRBY K V 3",
    "ZADD K 1 V 2 V",
    "ZINCRBY K 2 V",
    "ZREM K V",
    "ZREMRANGEBYRANK K 0 1",
    "XADD K * V V",
    "XADD K MAXLEN 3 * V V",
    "XTRIM K MAXLEN 2",
    "XGROUP CREATE K g 0 MKSTREAM",
    "XREADGROUP GROUP g c COUNT 2 STREAMS K >",
    "XACK K g 1-1",
    "XGROUP DESTROY K g",
    "SORT K ALPHA STORE L",
    "GET K",
    "TOUCH K",
    "FLUSHDB",
    "FLUSHALL",
    "SWAPDB 0 1",
    "SWAPDB 1 2",
    "SELECT 0",
    "SELECT 1",
    "SELECT 2",
    "MSET K V L V",
    "MANY h K",
    "MANY l K",
    "MANY z K",
    "MANY s K",
    "MANY x K",
];

/// Runs one random command.
fn write(lab: &mut Lab, rng: &mut fastrand::Rng, keys: u32) {
    let template = TEMPLATES[rng.usize(..TEMPLATES.len())];
    if template.starts_with("FLUSH") && rng.u8(..) > 40 {
        return;
    }
    let mut words: Vec<String> = Vec::new();
    for word in template.split(' ') {
        words.push(match word {
            "K" | "L" => format!("key:{}", rng.u32(..keys)),
            "V" if rng.u8(..) < 8 => "long ".repeat(rng.usize(1..900)),
            "V" => format!("v{}", rng.u32(..50)),
            word => word.to_owned(),
        });
    }
    if words[0] == "MANY" {
        // Large collections, whose value has a box of its own.
        let (kind, key) = (words[1].clone(), words[2].clone());
        let from = rng.u32(..200);
        words = match kind.as_str() {
            "h" => vec!["HSET".to_owned(), key],
            "l" => vec!["RPUSH".to_owned(), key],
            "z" => vec!["ZADD".to_owned(), key],
            "s" => vec!["SADD".to_owned(), key],
            _ => vec!["XADD".to_owned(), key, "*".to_owned()],
        };
        for number in from..from + 300 {
            match kind.as_str() {
                "z" => words.push(number.to_string()),
                "h" | "x" => words.push(format!("field:{number}")),
                _ => {}
            }
            words.push(format!("element:{number}"));
        }
    }
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let client = lab.client;
    lab.send(client, &words);
    lab.effects();
}

/// Returns how many keys were evicted while the snapshot was taken, which happens with every third seed.
fn check(seed: u64, keys: u32, before: usize, after: usize) -> u64 {
    let evicts = seed.is_multiple_of(3);
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut lab = Lab::new();
    // Compression is slow without optimisation.
    let compression = if seed.is_multiple_of(8) { "yes" } else { "no" };
    lab.configure("rdbcompression", compression);
    // With save points, FLUSHALL would write an empty file in the place of the snapshot's.
    lab.configure("save", "");
    for _ in 0..before {
        write(&mut lab, &mut rng, keys);
        if rng.u8(..) < 30 {
            lab.advance_ms(rng.u64(..4));
        }
    }
    // A slice ends after a few buckets.
    lab.host.tick_ns = 60_000;
    lab.host.holds_snapshots = true;
    let instant = lab.host.now;
    let expected = keys_of(&lab.store, instant.unix_ms());
    if evicts {
        // Every other write has to make room.
        let policies = ["allkeys-random", "allkeys-lru", "volatile-ttl"];
        lab.configure("maxmemory-policy", policies[rng.usize(..policies.len())]);
        let used = lab.store.keyspace.memory_bytes().to_string();
        lab.configure("maxmemory", &used);
    }
    let started = lab
        .store
        .start_snapshot(SnapshotPurpose::Rewrite, &mut lab.host);
    started.expect("nothing else runs");
    for _ in 0..after {
        write(&mut lab, &mut rng, keys);
        match rng.u8(..8) {
            0 => lab.advance_ms(rng.u64(..10)),
            1 => drop(lab.write_snapshot()),
            _ => {}
        }
    }
    while lab.host.snapshot.is_some() {
        lab.advance_ms(1);
        lab.write_snapshot();
    }
    let file = lab.host.saved.take().expect("a file");
    let mut other = Lab::new();
    other.store.now = instant;
    let loaded = other.store.load_rdb(&file[..], |_| {});
    loaded.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let found = keys_of(&other.store, instant.unix_ms());
    for (key, held) in &expected {
        assert_eq!(found.get(key), Some(held), "seed {seed}, {key:?}");
    }
    assert_eq!(found.len(), expected.len(), "seed {seed}");
    assert!(!lab.store.keyspace.has_snapshot());
    lab.store.keyspace.stats.evicted
}

/// `KUMI_SNAPSHOT_SEEDS` sets how many seeds are tried.
fn seeds(default: u64) -> u64 {
    let wanted = std::env::var("KUMI_SNAPSHOT_SEEDS").ok();
    wanted.and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn a_snapshot_equals_the_data_at_its_instant() {
    let evicted: u64 = (0..seeds(400)).map(|seed| check(seed, 40, 60, 80)).sum();
    assert!(evicted > 100, "{evicted} keys were evicted");
}

#[test]
fn a_snapshot_of_a_table_that_splits_and_merges_equals_the_data_at_its_instant() {
    for seed in 0..seeds(400) / 50 {
        let mut rng = fastrand::Rng::with_seed(seed ^ 0xABCD);
        let keys = rng.u32(1_000..4_000);
        let after = rng.usize(..4_000);
        check(seed, keys, 3_000, after);
    }
}

#[test]
fn a_snapshot_that_is_cancelled_leaves_no_trace() {
    let mut lab = Lab::new();
    lab.run("MSET a 1 b 2 c 3");
    lab.host.holds_snapshots = true;
    lab.host.tick_ns = 60_000;
    for _ in 0..3 {
        lab.check(&[("BGSAVE", "+Background saving started\r\n")]);
        lab.run("SET a 2");
        assert!(!lab.store.cancel_snapshot(SnapshotPurpose::Rewrite));
        assert!(lab.store.cancel_snapshot(SnapshotPurpose::Save));
        assert!(!lab.store.keyspace.has_snapshot());
        lab.run("SET b 2");
        lab.advance_ms(500);
    }
    assert!(lab.host.saved.is_none());
}

#[test]
fn a_snapshot_after_one_that_was_cancelled_has_every_key_once() {
    for seed in 0..40 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut lab = Lab::new();
        lab.configure("save", "");
        let client = lab.client;
        let write = |lab: &mut Lab, rng: &mut fastrand::Rng| {
            let key = format!("key:{}", rng.u32(..3000));
            lab.run_as(client, &format!("SET {key} {}", rng.u32(..)));
        };
        (0..2000).for_each(|_| write(&mut lab, &mut rng));
        lab.host.holds_snapshots = true;
        lab.host.tick_ns = 60_000;
        let start = |lab: &mut Lab| {
            let purpose = SnapshotPurpose::Rewrite;
            lab.store.start_snapshot(purpose, &mut lab.host).unwrap();
        };
        start(&mut lab);
        for _ in 0..rng.u32(..300) {
            write(&mut lab, &mut rng);
            if rng.u8(..) < 40 {
                lab.store.poll(&mut lab.outputs, &mut lab.host);
            }
        }
        assert!(lab.store.cancel_snapshot(SnapshotPurpose::Rewrite));
        lab.host.snapshot = None;
        // Marks that it left may be cleared in part.
        for _ in 0..rng.u32(..20) {
            write(&mut lab, &mut rng);
            lab.store.poll(&mut lab.outputs, &mut lab.host);
        }
        let expected = keys_of(&lab.store, 0);
        start(&mut lab);
        for _ in 0..rng.u32(..300) {
            write(&mut lab, &mut rng);
        }
        while lab.host.snapshot.is_some() {
            lab.advance_ms(1);
            lab.write_snapshot();
        }
        let file = lab.host.saved.take().expect("a file");
        let mut other = Lab::new();
        other.store.load_rdb(&file[..], |_| {}).expect("it loads");
        assert_eq!(keys_of(&other.store, 0), expected, "seed {seed}");
    }
}

#[test]
fn access_data_are_saved_as_the_policy_uses_them() {
    for (policy, shown) in [
        ("allkeys-lru", "OBJECT IDLETIME k"),
        ("allkeys-lfu", "OBJECT FREQ k"),
    ] {
        let mut lab = Lab::new();
        lab.configure("save", "");
        lab.configure("maxmemory-policy", policy);
        lab.run("SET k v");
        (0..50).for_each(|_| drop(lab.run("GET k")));
        lab.advance_ms(5_000);
        let before = lab.run(shown);
        assert!(before != ":0\r\n", "{shown} gives {before:?}");
        lab.host.holds_snapshots = true;
        lab.host.tick_ns = 60_000;
        let purpose = SnapshotPurpose::Rewrite;
        lab.store.start_snapshot(purpose, &mut lab.host).unwrap();
        while lab.host.snapshot.is_some() {
            lab.store.poll(&mut lab.outputs, &mut lab.host);
            lab.write_snapshot();
        }
        let taken = lab.host.saved.take().expect("a file");
        let mut saved = Vec::new();
        lab.store.save_rdb(&mut saved).unwrap();
        for file in [taken, saved] {
            let mut other = Lab::new();
            other.configure("maxmemory-policy", policy);
            other.store.now = lab.host.now;
            other.host.now = lab.host.now;
            other.store.load_rdb(&file[..], |_| {}).expect("it loads");
            assert_eq!(other.run(shown), before, "{policy}");
        }
    }
}

/// Strings of so many bytes, and a snapshot of them whose thread does not write.
fn stuck_snapshot(strings: u32, bytes: usize, limit: &str) -> Lab {
    let mut lab = Lab::new();
    let client = lab.client;
    lab.configure("snapshot-max-memory", limit);
    let value = vec![b'x'; bytes];
    for number in 0..strings {
        let key = format!("key:{number}");
        lab.send(client, &[b"APPEND", key.as_bytes(), &value]);
    }
    lab.host.holds_snapshots = true;
    lab.host.tick_ns = 60_000;
    lab.check(&[("BGSAVE", "+Background saving started\r\n")]);
    lab
}

/// A field of INFO persistence.
fn figure(lab: &mut Lab, name: &str) -> String {
    let info = lab.run("INFO persistence");
    let line = info.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.strip_prefix(':'))
        .unwrap_or_else(|| panic!("{name} is missing"))
        .to_owned()
}

#[test]
fn writes_never_wait_for_a_snapshot() {
    let mut lab = stuck_snapshot(100, 1 << 20, "0");
    let before = lab.run("INFO memory");
    for number in 0..100 {
        let key = format!("key:{number}");
        assert_eq!(lab.run(&format!("SET {key} new")), "+OK\r\n");
        lab.store.poll(&mut lab.outputs, &mut lab.host);
    }
    // All data of the instant waits in memory, and nothing of it counts for `maxmemory`.
    let kept: usize = figure(&mut lab, "current_cow_size").parse().unwrap();
    let limit: usize = figure(&mut lab, "current_cow_limit").parse().unwrap();
    assert!((100 << 20..=limit).contains(&kept), "{kept} of {limit}");
    assert!(limit < 150 << 20, "{limit}");
    let used = |info: &str| -> usize {
        let field = info.split("used_memory:").nth(1).unwrap();
        field.split("\r\n").next().unwrap().parse().unwrap()
    };
    let after = lab.run("INFO memory");
    assert!(used(&after) + (99 << 20) < used(&before));
    lab.write_snapshot();
    while lab.host.snapshot.is_some() {
        lab.advance_ms(1);
        lab.write_snapshot();
    }
    assert_eq!(figure(&mut lab, "rdb_last_bgsave_status"), "ok");
    assert_eq!(figure(&mut lab, "current_cow_size"), "0");
}

#[test]
fn a_snapshot_that_needs_more_than_its_limit_fails_and_no_client_does() {
    let mut lab = stuck_snapshot(2000, 64 << 10, "32mb");
    let old = lab.host.saved.take();
    let mut given_up = None;
    for number in 0..2000 {
        let key = format!("key:{number}");
        assert_eq!(lab.run(&format!("SET {key} new")), "+OK\r\n", "{number}");
        lab.store.poll(&mut lab.outputs, &mut lab.host);
        if lab.store.snapshot_purpose().is_none() {
            given_up = Some(number);
            break;
        }
    }
    assert!(given_up.is_some_and(|number| number > 300), "{given_up:?}");
    assert_eq!(figure(&mut lab, "rdb_last_bgsave_status"), "err");
    assert!(
        lab.host.saved.is_none() && old.is_none(),
        "no file was written"
    );
    assert!(lab.run("SET a 1").starts_with("-MISCONF"));
    lab.configure("stop-writes-on-bgsave-error", "no");
    lab.check(&[("SET a 1", "+OK\r\n")]);
    // The next one is not in its way.
    lab.check(&[("BGSAVE", "+Background saving started\r\n")]);
    while lab.store.snapshot_purpose().is_some() {
        lab.advance_ms(1);
        lab.write_snapshot();
    }
    assert_eq!(figure(&mut lab, "rdb_last_bgsave_status"), "ok");
}

#[test]
fn a_value_larger_than_the_limit_can_be_saved() {
    let mut lab = stuck_snapshot(1, 1 << 20, "1kb");
    let client = lab.client;
    let value = vec![b'x'; 40 << 20];
    assert!(lab.store.cancel_snapshot(SnapshotPurpose::Save));
    lab.host.snapshot = None;
    lab.send(client, &[b"SET", b"large", &value]);
    lab.check(&[("BGSAVE", "+Background saving started\r\n")]);
    while lab.host.snapshot.is_some() {
        lab.advance_ms(1);
        lab.write_snapshot();
    }
    assert_eq!(figure(&mut lab, "rdb_last_bgsave_status"), "ok");
}
