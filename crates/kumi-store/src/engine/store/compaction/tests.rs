//! When entries are moved, how much at a time, and that nothing else changes.

use super::*;
use crate::testing::Lab;

const MIB: usize = 1 << 20;

/// A store with keys of all forms in two databases, on a host that wastes memory.
fn wasteful(keys: usize) -> Lab {
    let mut lab = Lab::new();
    lab.allow_debug();
    for db in [0, 9] {
        lab.run(&format!("SELECT {db}"));
        for key in 0..keys {
            lab.run(&format!("SET key:{key} {}", "x".repeat(1 + key % 90)));
        }
        for line in [
            format!("SET long {}", "y".repeat(3000)),
            format!("SET longer {}", "z".repeat(40_000)),
            "SET number 17 EX 1000".to_owned(),
            "RPUSH list a b c".to_owned(),
            "HSET hash f v".to_owned(),
            "XADD stream 1-1 f v".to_owned(),
        ] {
            assert!(!lab.run(&line).starts_with('-'), "{line}");
        }
    }
    lab.host.resident_bytes = lab.store.used_memory() + 32 * MIB;
    lab.host.is_sparse = true;
    lab
}

/// Lets the store look at its memory, and do the first slice of the walk that follows.
fn begin(lab: &mut Lab) {
    lab.advance_ms(1);
    lab.advance_ms(1);
}

fn moved(lab: &Lab) -> Relocated {
    lab.store.telemetry.stats.compaction
}

#[test]
fn every_entry_of_every_database_is_moved_once_and_nothing_else_changes() {
    let mut lab = wasteful(2000);
    let (digest, used) = (lab.run("DEBUG DIGEST"), lab.store.keyspace.memory_bytes());
    let keys = 2 * 2006;
    begin(&mut lab);
    assert_eq!((moved(&lab).keys, moved(&lab).keys_moved), (keys, keys));
    lab.host.resident_bytes = lab.store.used_memory();
    for _ in 0..5 {
        lab.advance_ms(100);
    }
    assert_eq!(lab.host.purges, 1, "what became free is given back, once");
    // Of each database the boxes of two strings and a stream, and the bytes of the strings.
    assert_eq!(moved(&lab).blocks_moved, keys + 10);
    assert_eq!(lab.run("DEBUG DIGEST"), digest);
    assert_eq!(lab.store.keyspace.memory_bytes(), used);
    lab.run("SELECT 9");
    assert_eq!(lab.run("GET number"), "$2\r\n17\r\n");
    assert_eq!(lab.run("EXPIRETIME number"), ":1700001000\r\n");
    let info = lab.run("INFO stats");
    assert!(info.contains(&format!("active_defrag_key_hits:{keys}\r\n")));
    lab.run("CONFIG RESETSTAT");
    assert_eq!(moved(&lab), Relocated::default());
}

#[test]
fn a_slice_takes_a_tenth_of_the_time() {
    let mut lab = wasteful(4000);
    // Each look at the clock costs 0.4 ms, so a slice is three segments.
    lab.host.tick_ns = 400_000;
    begin(&mut lab);
    let first = moved(&lab).keys;
    assert!((200..=3 * 882).contains(&first), "{first} keys in a slice");
    assert!(
        lab.run("INFO memory")
            .contains("active_defrag_running:10\r\n")
    );
    assert!(lab.store.next_deadline() > lab.store.now.unix_ms());
    lab.advance_ms(5);
    assert_eq!(moved(&lab).keys, first, "the rest lasts nine times as long");
    for _ in 0..200 {
        lab.advance_ms(5);
    }
    assert!(moved(&lab).keys >= 2 * 4006);
}

#[test]
fn memory_that_is_used_is_left_alone() {
    let mut lab = wasteful(100);
    lab.host.resident_bytes = lab.store.used_memory() + 7 * MIB;
    for _ in 0..50 {
        lab.advance_ms(100);
    }
    assert_eq!(moved(&lab), Relocated::default());
    lab.host.resident_bytes = 0;
    lab.advance_ms(200);
    assert_eq!(moved(&lab), Relocated::default(), "nothing is known");
}

#[test]
fn a_walk_that_finds_nothing_is_repeated_ever_less_often() {
    let mut lab = wasteful(100);
    lab.host.is_sparse = false;
    let mut walks = Vec::new();
    for second in 0..300 {
        let before = moved(&lab).keys;
        for _ in 0..10 {
            lab.advance_ms(100);
        }
        if moved(&lab).keys > before {
            walks.push(second);
        }
    }
    assert_eq!(moved(&lab).blocks_moved, 0);
    // After 1, 2, 4, 8, 16, 32, 60, 60 ... seconds.
    assert!((8..=12).contains(&walks.len()), "{walks:?}");
    // Pages may be free that are not given back yet.
    let purges = lab.host.purges;
    assert!(walks.len() - purges <= 1, "{purges}, {walks:?}");
}

#[test]
fn a_walk_goes_on_after_a_snapshot() {
    let mut lab = wasteful(3000);
    lab.host.tick_ns = 400_000;
    begin(&mut lab);
    let before = moved(&lab).keys;
    assert!(lab.store.compacting_ms().is_some());
    lab.host.holds_snapshots = true;
    assert!(lab.run("BGSAVE").starts_with('+'));
    for _ in 0..20 {
        lab.advance_ms(100);
    }
    assert_eq!(moved(&lab).keys, before);
    lab.host.holds_snapshots = false;
    lab.host.resident_bytes = 0;
    for _ in 0..100 {
        lab.advance_ms(100);
    }
    assert_eq!(moved(&lab).keys, 2 * 3006, "each key once");
}

#[test]
fn walks_after_which_as_much_is_wasted_become_rare() {
    let mut lab = wasteful(100);
    let mut walks = 0;
    for _ in 0..300 {
        let before = moved(&lab).keys;
        for _ in 0..10 {
            lab.advance_ms(100);
        }
        walks += usize::from(moved(&lab).keys > before);
    }
    // After 0.1, 0.2, 0.4 ... 51.2, 60, 60 ... seconds.
    assert!((8..=15).contains(&walks), "{walks} walks in 300 s");
}

#[test]
fn paused_periodic_work_moves_nothing() {
    let mut lab = wasteful(100);
    lab.run("DEBUG PAUSE-CRON 1");
    for _ in 0..10 {
        lab.advance_ms(100);
    }
    assert_eq!(moved(&lab), Relocated::default());
    lab.run("DEBUG PAUSE-CRON 0");
    begin(&mut lab);
    assert!(moved(&lab).keys_moved > 0);
}
