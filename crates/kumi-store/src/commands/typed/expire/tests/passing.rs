//! Time passes: keys leave at their deadline, on access or by themselves, in order and in small slices.

use crate::testing::{Lab, events};
use kumi_resp::OwnedArgs;
use std::collections::BTreeMap;

/// A lab whose keys expire on access only.
fn passive_lab() -> Lab {
    let mut lab = Lab::new();
    lab.store.keyspace.expiry.active = false;
    lab
}

#[test]
fn get_after_its_deadline_finds_nothing() {
    let mut lab = passive_lab();
    lab.run("SET a v PX 100");
    lab.advance_ms(99);
    lab.check(&[("GET a", "$1\r\nv\r\n"), ("PTTL a", ":1\r\n")]);
    lab.advance_ms(1);
    lab.check(&[
        ("DBSIZE", ":1\r\n"),
        ("GET a", "$-1\r\n"),
        ("DBSIZE", ":0\r\n"),
    ]);
    assert_eq!(lab.store.keyspace.stats.expired, 1);
}

#[test]
fn every_look_at_an_expired_key_removes_it_once() {
    let looks = [
        "GET a",
        "MGET a",
        "STRLEN a",
        "EXISTS a",
        "TYPE a",
        "TTL a",
        "TOUCH a",
        "OBJECT ENCODING a",
        "DEL a",
        "UNLINK a",
        "EXPIRE a 100",
        "PERSIST a",
        "GETEX a",
        "GETDEL a",
        "RENAME a b",
        "COPY a b",
        "MOVE a 1",
        "LCS a b",
        "SET a v XX",
        "SCAN 0",
        "RANDOMKEY",
    ];
    for look in looks {
        let mut lab = passive_lab();
        lab.configure("notify-keyspace-events", "EA");
        let listener = lab.connect();
        lab.run("SET a v PX 100");
        lab.run_as(listener, "PSUBSCRIBE __keyevent@*");
        lab.store.listen_to_writes(true);
        lab.advance_ms(100);
        lab.run(look);
        assert_eq!(events(&lab.received(listener)), ["expired a"], "{look}");
        assert_eq!(lab.writes(), ["DEL a"], "{look}");
        assert_eq!(lab.run("DBSIZE"), ":0\r\n", "{look}");
    }
}

#[test]
fn keys_passes_expired_ones_over() {
    let mut lab = passive_lab();
    lab.run("SET a v PX 100");
    lab.run("SET b v");
    lab.advance_ms(100);
    lab.check(&[("KEYS *", "*1\r\n$1\r\nb\r\n"), ("DBSIZE", ":2\r\n")]);
}

#[test]
fn keys_leave_by_themselves_at_their_deadline() {
    let mut lab = Lab::new();
    lab.configure("notify-keyspace-events", "EA");
    lab.configure("lazyfree-lazy-expire", "yes");
    let listener = lab.connect();
    lab.run_as(listener, "PSUBSCRIBE __keyevent@*:expired");
    lab.store.listen_to_writes(true);
    lab.run("SET a v PX 100");
    lab.writes();
    lab.advance_ms(99);
    assert_eq!(lab.received(listener), "");
    lab.advance_ms(1);
    assert_eq!(events(&lab.received(listener)), ["expired a"]);
    assert_eq!(lab.writes(), ["UNLINK a"]);
    lab.check(&[("DBSIZE", ":0\r\n"), ("TTL a", ":-2\r\n")]);
}

#[test]
fn a_deadline_follows_its_key() {
    let mut lab = Lab::new();
    lab.configure("notify-keyspace-events", "Ex");
    let listener = lab.connect();
    lab.run_as(listener, "PSUBSCRIBE __keyevent@*");
    for line in [
        // Rewritten, persisted or deleted: the old deadline is forgotten.
        "SET kept v PX 10",
        "SET kept v",
        "SET persisted v PX 10",
        "PERSIST persisted",
        "SET deleted v PX 10",
        "DEL deleted",
        "SET deleted v",
        "SET later v PX 10",
        "PEXPIRE later 1000",
        // Renamed, copied or moved: it goes along.
        "SET old v PX 20",
        "RENAME old renamed",
        "SET source v PX 30",
        "COPY source copied",
        "DEL source",
        "SET moved v PX 40",
        "MOVE moved 1",
    ] {
        lab.run(line);
    }
    lab.advance_ms(100);
    assert_eq!(
        events(&lab.received(listener)),
        ["expired renamed", "expired copied", "expired moved @1"]
    );
    lab.check(&[("EXISTS kept persisted deleted later", ":4\r\n")]);
    lab.run("SWAPDB 0 2");
    lab.advance_ms(1000);
    assert_eq!(events(&lab.received(listener)), ["expired later @2"]);
}

#[test]
fn a_deadline_that_has_passed_already_is_due_at_once() {
    let mut lab = Lab::new();
    lab.run("SET a v PXAT 1");
    assert!(lab.store.next_deadline() <= lab.host.now.unix_ms());
    lab.advance_ms(0);
    lab.check(&[("DBSIZE", ":0\r\n")]);
}

#[test]
fn expired_keys_of_a_pause_are_hidden_and_stay() {
    let mut lab = Lab::new();
    lab.run("MSET a 1 b 2");
    lab.run("PEXPIRE a 10");
    lab.run("PEXPIRE b 10");
    lab.store.keyspace.expiry.paused = true;
    lab.advance_ms(10);
    lab.check(&[
        ("GET a", "$-1\r\n"),
        ("EXISTS a b", ":0\r\n"),
        ("RANDOMKEY", "$-1\r\n"),
        ("SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("SET a 3", "+OK\r\n"),
        ("GET a", "$1\r\n3\r\n"),
        ("DBSIZE", ":2\r\n"),
    ]);
    assert_eq!(lab.store.keyspace.stats.expired, 0);
    lab.store.keyspace.expiry.paused = false;
    lab.advance_ms(0);
    lab.check(&[("DBSIZE", ":1\r\n"), ("TTL a", ":-1\r\n")]);
    assert_eq!(lab.store.keyspace.stats.expired, 1);
}

#[test]
fn keys_of_all_databases_leave_in_the_order_of_their_deadlines() {
    let mut lab = Lab::new();
    lab.configure("notify-keyspace-events", "Ex");
    let listener = lab.connect();
    lab.run_as(listener, "PSUBSCRIBE __keyevent@*");
    let mut rng = fastrand::Rng::with_seed(11);
    let mut deadlines = BTreeMap::new();
    for number in 0..3000 {
        let ttl_ms = rng.u64(1..500);
        lab.run(&format!("SELECT {}", number % 3));
        lab.run(&format!("SET k{number} v PX {ttl_ms}"));
        deadlines.insert(format!("k{number}"), ttl_ms);
    }
    lab.advance_ms(500);
    let left: Vec<u64> = events(&lab.received(listener))
        .iter()
        .filter_map(|event| deadlines.get(event.split(' ').nth(1)?).copied())
        .collect();
    assert_eq!(left.len(), 3000);
    assert!(left.is_sorted(), "deadlines are out of order");
}

#[test]
fn a_slice_of_expiry_ends_after_a_millisecond_and_loses_nothing() {
    const KEYS: usize = 20_000;
    let mut lab = Lab::new();
    for number in 0..KEYS {
        lab.run(&format!("SET k{number} v PX {}", 1 + number % 100));
    }
    lab.host.now.unix_us += 200_000;
    lab.host.tick_ns = 100_000;
    let now_ms = lab.host.now.unix_ms();
    let mut slices = 0;
    while lab.store.next_deadline() <= now_ms {
        let (before_ns, before) = (lab.host.now.mono_ns, lab.store.keyspace.total_keys());
        lab.store.poll(&mut lab.outputs, &mut lab.host);
        let spent_ns = lab.host.now.mono_ns - before_ns;
        assert!(spent_ns <= 1_200_000, "a slice took {spent_ns} ns");
        assert!(lab.store.keyspace.total_keys() < before);
        assert_eq!(lab.run("PING"), "+PONG\r\n");
        slices += 1;
    }
    assert!(slices > 10, "only {slices} slices");
    assert_eq!(lab.store.keyspace.total_keys(), 0);
    assert_eq!(lab.store.keyspace.stats.expired, KEYS as u64);
}

#[test]
fn a_million_changes_of_one_deadline_leave_the_memory_where_it_was() {
    let mut lab = Lab::new();
    for number in 0..1000 {
        lab.run(&format!("SET k{number} v EX {}", 1000 + number));
    }
    lab.run("SET wanderer v EX 1500");
    let before = lab.store.keyspace.memory_bytes();
    let mut rng = fastrand::Rng::with_seed(5);
    let (client, now) = (lab.client, lab.host.now);
    for _ in 0..1_000_000 {
        let ms = rng.u64(1..3_000_000).to_string();
        let args = OwnedArgs::from_slices(["PEXPIRE", "wanderer", &ms]);
        let flow = lab
            .store
            .execute(client, args.as_args(), now, &mut lab.outputs, &mut lab.host);
        assert_eq!(flow, crate::engine::store::Flow::Done);
        let (waiting, _) = lab.outputs.first_chunk(client);
        let waiting = waiting.len();
        lab.store.written(&mut lab.outputs, client, waiting);
    }
    lab.run("EXPIRE wanderer 1500");
    let after = lab.store.keyspace.memory_bytes();
    assert_eq!(before, after);
}

#[test]
fn randomkey_finds_the_one_key_that_lives() {
    let mut lab = passive_lab();
    for number in 0..1000 {
        lab.run(&format!("SET k{number} v PX 10"));
    }
    lab.run("SET alive v");
    lab.advance_ms(10);
    assert_eq!(lab.run("RANDOMKEY"), "$5\r\nalive\r\n");
}
