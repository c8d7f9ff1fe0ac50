//! The beginning of a rewrite, also on a disk whose syncs do not end.

use super::disk::SimulatedDisk;
use super::{Life, Replayed, START, config, count};
use kumi_store::SnapshotPurpose;
use kumi_store::config::Config;

#[test]
fn a_prepared_rewrite_that_is_not_due_any_more_blocks_no_save() {
    let disk = SimulatedDisk::default();
    let mut life = Life::start(&disk, &config("everysec", true), START);
    assert_eq!(count(&mut life, 1), Some(true));
    disk.hold_syncs(true);
    life.aof.request_base();
    assert!(!life.aof.may_begin(false, life.now), "it is synced first");
    assert!(life.aof.begins_rewrite());
    // The file has grown by less than the configuration says now.
    life.aof.wants_base = false;
    assert!(!life.aof.may_begin(false, life.now));
    disk.hold_syncs(false);
    life.aof.settle();
    life.flush();
    assert!(!life.aof.may_begin(false, life.now));
    assert!(!life.aof.begins_rewrite());
}

#[test]
fn a_client_that_waits_is_answered_when_a_rewrite_syncs_its_write() {
    let disk = SimulatedDisk::default();
    let mut life = Life::start(&disk, &config("everysec", true), START);
    life.run("SET n 1");
    life.flush();
    life.aof.request_base();
    assert!(
        !life.aof.may_begin(false, START),
        "the file is synced first"
    );
    life.aof.settle();
    life.flush();
    life.run("SET n 2");
    life.run("WAITAOF 1 0 0");
    life.flush();
    assert!(life.replayed.store.awaits_aof());
    assert!(life.aof.may_begin(false, START));
    let begun = life.aof.begin_rewrite(&mut life.replayed.store, START);
    begun.expect("the disk takes it");
    life.flush();
    assert!(!life.replayed.store.awaits_aof());
}

/// A rewrite that is prepared: its snapshot may begin.
fn prepared(disk: &SimulatedDisk, config: &Config) -> Life {
    let mut life = Life::start(disk, config, START);
    assert_eq!(count(&mut life, 1), Some(true));
    life.aof.request_base();
    // While another snapshot runs, nothing is done for a rewrite that waits.
    let before = disk.syncs();
    for _ in 0..10 {
        assert!(!life.aof.may_begin(true, life.now));
        life.aof.settle();
        life.flush();
    }
    assert_eq!(disk.syncs(), before);
    assert!(!life.aof.may_begin(false, life.now));
    life.aof.settle();
    life.flush();
    // The new increment, its name, the manifest, the old increment.
    assert_eq!(disk.syncs(), before + 4);
    assert!(life.aof.may_begin(false, life.now));
    life
}

/// Begins the rewrite and its snapshot.
fn begin(life: &mut Life) {
    let Replayed { store, host, .. } = &mut life.replayed;
    let begun = life.aof.begin_rewrite(store, life.now);
    begun.expect("the disk takes it");
    host.plan = life.aof.rewrite_plan();
    let started = store.start_snapshot(SnapshotPurpose::Rewrite, host);
    started.expect("nothing else runs");
}

fn waits_in_memory(life: &Life) -> bool {
    life.aof.facts(life.now).buffered_bytes > 0
}

/// Goes on until so many rewrites are complete.
fn finish_rewrites(life: &mut Life, rewrites: u64) {
    for _ in 0..1000 {
        life.maintain();
        life.now.mono_ns += 100_000_000;
        life.flush();
        if life.aof.facts(life.now).rewrites == rewrites {
            return;
        }
    }
    panic!("the rewrite does not end");
}

#[test]
fn a_rewrite_begins_although_the_disk_syncs_nothing() {
    for fsync in ["everysec", "no"] {
        let (disk, config) = (SimulatedDisk::default(), config(fsync, true));
        let mut life = prepared(&disk, &config);
        disk.hold_syncs(true);
        begin(&mut life);
        assert_eq!(count(&mut life, 2), Some(true));
        life.now.mono_ns += 1_900_000_000;
        assert_eq!(count(&mut life, 3), Some(true));
        assert!(waits_in_memory(&life) && life.aof.is_rewriting());
        // Killed now, the server has what is in the old increment.
        assert_eq!(Life::start(&disk.copy(), &config, START).number(), 1);
        disk.hold_syncs(false);
        life.aof.settle();
        assert_eq!(count(&mut life, 4), Some(true));
        assert!(!waits_in_memory(&life));
        assert_eq!(Life::start(&disk.copy(), &config, START).number(), 4);
        life.aof.settle();
        finish_rewrites(&mut life, 2);
        assert_eq!(count(&mut life, 5), Some(true));
        assert_eq!(Life::start(&disk.copy(), &config, START).number(), 5);
    }
}

#[test]
fn a_rewrite_that_would_keep_writes_in_memory_for_long_is_given_up() {
    for fsync in ["everysec", "no"] {
        let (disk, config) = (SimulatedDisk::default(), config(fsync, true));
        let mut life = prepared(&disk, &config);
        disk.hold_syncs(true);
        begin(&mut life);
        assert_eq!(count(&mut life, 2), Some(true));
        life.now.mono_ns += 2_000_000_000;
        assert_eq!(count(&mut life, 3), Some(true));
        assert!(!waits_in_memory(&life) && !life.aof.is_rewriting());
        assert!(life.aof.facts(life.now).last_rewrite_failed);
        assert!(life.replayed.store.snapshot_purpose().is_none());
        assert_eq!(Life::start(&disk.copy(), &config, START).number(), 3);
        disk.hold_syncs(false);
        life.aof.settle();
        finish_rewrites(&mut life, 2);
        assert_eq!(count(&mut life, 4), Some(true));
        drop(life);
        assert_eq!(Life::start(&disk, &config, START).number(), 4);
    }
}

#[test]
fn a_snapshot_that_ends_while_a_rewrite_begins_waits_for_the_name_of_the_increment() {
    let (disk, config) = (SimulatedDisk::default(), config("everysec", true));
    let mut life = prepared(&disk, &config);
    disk.hold_syncs(true);
    begin(&mut life);
    for _ in 0..100 {
        let Replayed {
            store,
            outputs,
            host,
        } = &mut life.replayed;
        host.now.mono_ns += 10_000_000;
        store.poll(outputs, host);
    }
    assert!(life.aof.is_rewriting() && life.replayed.host.ended.is_none());
    disk.hold_syncs(false);
    finish_rewrites(&mut life, 2);
    assert_eq!(count(&mut life, 2), Some(true));
    drop(life);
    assert_eq!(Life::start(&disk, &config, START).number(), 2);
}
