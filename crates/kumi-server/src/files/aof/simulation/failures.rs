//! Operations of the disk that fail: writes are refused until a new base is on disk, and nothing acknowledged is lost.

use super::disk::SimulatedDisk;
use super::{Life, Replayed, START, config, count, place};
use crate::files::aof::manifest::Manifest;
use crate::files::aof::running::{Aof, Start};
use kumi_store::Now;
use kumi_store::config::Config;
use std::io;

#[test]
fn a_full_disk_refuses_writes_until_a_new_base_is_written() {
    for fsync in ["everysec", "no"] {
        let disk = SimulatedDisk::default();
        let config = config(fsync, true);
        let mut now = Now {
            unix_us: 1_700_000_000_000_000,
            mono_ns: 1_000_000_000,
        };
        let mut life = Life::start(&disk, &config, now);
        life.run("SET n 1");
        life.flush();
        disk.set_full(true);
        life.run("SET n 2");
        life.flush();
        assert!(!life.aof.has_file());
        assert!(life.aof.facts(now).last_write_failed);
        life.run("SET n 3");
        assert_eq!(
            life.replayed.store.peek(b"n").expect("it is set"),
            b"2",
            "refused"
        );
        let maintain = |life: &mut Life, now: Now| {
            let Replayed { store, outputs, .. } = &mut life.replayed;
            life.aof.maintain(store, outputs, now);
        };
        maintain(&mut life, now);
        assert!(!life.aof.has_file(), "the disk is still full");
        disk.set_full(false);
        maintain(&mut life, now);
        assert!(!life.aof.has_file(), "it is not tried all the time");
        now.mono_ns += 2_000_000_000;
        life.now = now;
        maintain(&mut life, now);
        assert!(life.aof.has_file());
        life.run("SET n 4");
        life.run("SET m 4");
        life.flush();
        drop(life);
        let mut life = Life::start(&disk, &config, now);
        assert_eq!(life.number(), 4);
    }
}

#[test]
fn writes_stay_refused_when_the_increment_fails_during_a_rewrite() {
    let disk = SimulatedDisk::default();
    let config = config("everysec", true);
    let now = START;
    let mut life = Life::start(&disk, &config, now);
    let write = |life: &mut Life, number: u64| {
        life.run(&format!("SET n {number}"));
        life.run(&format!("SET m {number}"));
        life.flush();
    };
    let maintain_until = |life: &mut Life, done: &dyn Fn(&Aof) -> bool| {
        for _ in 0..1000 {
            if done(&life.aof) {
                return;
            }
            life.now.mono_ns += 10_000_000;
            life.maintain();
            life.flush();
        }
        panic!("it takes too long");
    };
    let rewrites = |aof: &Aof| aof.facts(now).rewrites;
    let before = rewrites(&life.aof);
    write(&mut life, 1);
    life.aof.request_base();
    maintain_until(&mut life, &|aof| aof.is_rewriting());
    disk.set_full(true);
    write(&mut life, 2);
    assert!(!life.aof.has_file());
    disk.set_full(false);
    maintain_until(&mut life, &|aof| rewrites(aof) > before);
    write(&mut life, 3);
    assert_eq!(life.number(), 2, "3 is refused: no file would have it");
    maintain_until(&mut life, &|aof| rewrites(aof) > before + 1);
    write(&mut life, 4);
    drop(life);
    assert_eq!(Life::start(&disk, &config, now).number(), 4);
}

#[test]
fn a_failed_fsync_is_not_taken_for_one_that_worked() {
    let disk = SimulatedDisk::default();
    let config = config("everysec", true);
    let mut now = START;
    let mut life = Life::start(&disk, &config, now);
    life.run("SET n 1");
    life.flush();
    now.mono_ns += 1_100_000_000;
    life.now = now;
    disk.set_full(true);
    life.flush();
    life.aof.settle();
    life.flush();
    assert!(!life.aof.has_file(), "the file is not trusted any more");
}

#[test]
fn a_failed_fsync_is_noticed_when_the_rewrite_ends_before_its_result() {
    let disk = SimulatedDisk::default();
    let now = START;
    let config = config("everysec", true);
    let mut life = Life::start(&disk, &config, now);
    // An AOF that begins at run time: the manifest does not name its increment until its base is complete.
    let start = Start {
        place: place(&disk, "/data/another"),
        lock: None,
        manifest: Manifest::default(),
        lengths: Vec::new(),
        seed: 0,
        stream: life.replayed.store.write_offset(),
        last_increment: 0,
    };
    life.aof = Aof::start(start, config.settings(), None, false, now).expect("it starts");
    for _ in 0..1000 {
        if life.replayed.host.ended.is_some() {
            break;
        }
        life.now.mono_ns += 10_000_000;
        life.maintain();
        life.flush();
    }
    assert!(life.replayed.host.ended.is_some() && life.aof.is_incomplete());
    // The write works, the fsync behind it fails, and the rewrite ends before the result is taken.
    life.run("SET n 1");
    life.now.mono_ns += 1_100_000_000;
    disk.fail_after(1);
    life.flush();
    life.aof.settle();
    life.maintain();
    assert!(!life.aof.is_rewriting() && life.aof.has_file());
    life.flush();
    assert!(!life.aof.has_file(), "the file is not trusted any more");
}

#[test]
fn a_base_of_requests_does_not_hide_a_failed_fsync() {
    let disk = SimulatedDisk::default();
    let now = START;
    let mut life = Life::start(&disk, &config("everysec", false), now);
    assert_eq!(count(&mut life, 1), Some(true));
    disk.set_full(true);
    life.now.mono_ns += 1_100_000_000;
    life.flush();
    life.aof.settle();
    let Replayed { store, outputs, .. } = &mut life.replayed;
    life.aof.request_base();
    life.aof.maintain(store, outputs, life.now);
    assert!(!life.aof.has_file(), "the file is not trusted any more");
    disk.set_full(false);
    assert_eq!(count(&mut life, 2), Some(false), "refused");
}

#[test]
fn always_does_not_go_on_without_the_disk() {
    let disk = SimulatedDisk::default();
    let now = START;
    let mut life = Life::start(&disk, &config("always", true), now);
    life.run("SET n 1");
    disk.set_full(true);
    let Replayed { store, outputs, .. } = &mut life.replayed;
    let flushed = life.aof.flush(store, outputs, now);
    assert_eq!(flushed.unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_failed_fsync_counts_when_the_policy_becomes_always() {
    let disk = SimulatedDisk::default();
    let mut life = Life::start(&disk, &config("everysec", true), START);
    life.run("SET n 1");
    life.now.mono_ns += 1_100_000_000;
    // The write works, the fsync behind it fails.
    disk.fail_after(1);
    life.flush();
    life.aof.settle();
    life.aof.configure(config("always", true).settings());
    life.run("SET n 2");
    let Replayed { store, outputs, .. } = &mut life.replayed;
    assert!(life.aof.flush(store, outputs, life.now).is_err());
}

/// Whatever is killed or loses power now: nothing acknowledged is missing, nothing is there twice.
fn check_what_is_left(disk: &SimulatedDisk, config: &Config, now: Now, (least, most): (u64, u64)) {
    let mut disks = vec![disk.copy()];
    for seed in 0..3 {
        disks.push(disk.lose_power(&mut fastrand::Rng::with_seed(seed)));
    }
    for disk in disks {
        let found = Life::start(&disk, config, now).number();
        assert!(
            (least..=most).contains(&found),
            "{found} of {least}..={most}"
        );
    }
}

#[test]
fn an_operation_that_fails_during_a_rewrite_loses_nothing() {
    let now = START;
    let (mut failed, mut refused) = (0, 0);
    for (preamble, operation) in [true, false]
        .into_iter()
        .flat_map(|preamble| (0..40).map(move |operation| (preamble, operation)))
    {
        let disk = SimulatedDisk::default();
        let config = config("always", preamble);
        let mut life = Life::start(&disk, &config, now);
        assert_eq!(count(&mut life, 1), Some(true));
        let (mut acknowledged, mut ends) = (1, false);
        life.aof.request_base();
        disk.fail_after(operation);
        // Through the failure, and through the next attempt.
        for turn in 0..40 {
            if turn == 20 && life.aof.facts(life.now).last_rewrite_failed {
                life.aof.request_base();
            }
            life.maintain();
            life.now.mono_ns += 100_000_000;
            failed += u32::from(life.aof.facts(life.now).last_rewrite_failed);
            let counted = count(&mut life, acknowledged + 1);
            refused += u32::from(counted == Some(false));
            acknowledged += u64::from(counted == Some(true));
            let range = (acknowledged, life.number());
            check_what_is_left(&disk, &config, now, range);
            ends = counted.is_none();
            if ends {
                break;
            }
        }
        if !ends {
            let facts = life.aof.facts(life.now);
            let state = (
                facts.rewrites,
                facts.last_rewrite_failed,
                facts.last_write_failed,
            );
            assert_eq!(state, (2, false, false), "{preamble} {operation}");
        }
    }
    assert!(failed > 0 && refused > 0, "{failed} {refused}");
}

#[test]
fn a_rewrite_that_cannot_begin_refuses_no_write() {
    let now = START;
    for preamble in [true, false] {
        let disk = SimulatedDisk::default();
        let mut life = Life::start(&disk, &config("everysec", preamble), now);
        assert_eq!(count(&mut life, 1), Some(true));
        life.now.mono_ns += 1_100_000_000;
        life.flush();
        life.aof.settle();
        life.flush();
        life.aof.request_base();
        disk.set_full(true);
        life.maintain();
        disk.set_full(false);
        life.flush();
        assert!(life.aof.facts(life.now).last_rewrite_failed);
        assert!(life.aof.has_file() && !life.aof.has_failed());
        assert_eq!(count(&mut life, 2), Some(true));
    }
}

#[test]
fn a_rewrite_that_cannot_be_prepared_is_no_fsync_that_failed_and_none_that_worked() {
    let mut failures = 0;
    for operation in 0..20 {
        let disk = SimulatedDisk::default();
        let mut life = Life::start(&disk, &config("everysec", true), START);
        life.run("SET n 1");
        life.run("SET m 1");
        life.run("WAITAOF 1 0 0");
        life.flush();
        assert!(life.replayed.store.awaits_aof());
        life.aof.request_base();
        disk.fail_after(operation);
        assert!(!life.aof.may_begin(false, START), "it is prepared first");
        life.aof.settle();
        life.flush();
        let facts = life.aof.facts(START);
        if !facts.last_rewrite_failed {
            // The last operation syncs the old increment.
            assert!(facts.last_write_failed, "operation {operation}");
            break;
        }
        failures += 1;
        assert!(life.aof.has_file() && !life.aof.has_failed());
        assert!(
            life.replayed.store.awaits_aof(),
            "operation {operation}: the write is not on disk"
        );
        assert_eq!(count(&mut life, 2), Some(true));
    }
    assert!(failures > 5, "{failures}");
}
