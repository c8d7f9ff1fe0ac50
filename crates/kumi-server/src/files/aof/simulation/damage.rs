//! Bytes that change on the disk.

use super::disk::SimulatedDisk;
use super::snapshot::SnapshotHost;
use super::{Life, Replayed, START, config, place};
use crate::files::aof::load;
use kumi_store::{Outputs, Seeds, Store};
use std::io::{self, Read};

#[test]
fn what_is_synced_is_noted_when_no_write_follows() {
    let disk = SimulatedDisk::default();
    let config = config("everysec", true);
    let mut life = Life::start(&disk, &config, START);
    for number in 1..=20 {
        life.run(&format!("SET n {number}"));
        life.run(&format!("SET m {number}"));
        life.flush();
    }
    // A second later it is synced, and another one later the file says so, once.
    let mut lengths = Vec::new();
    for _ in 0..6 {
        life.now.mono_ns += 1_100_000_000;
        life.flush();
        life.aof.settle();
        lengths.push(life.aof.facts(life.now).current_bytes);
    }
    assert!(lengths[0] < lengths[2], "{lengths:?}");
    assert_eq!(lengths[2], lengths[5], "{lengths:?}");
    drop(life);
    // The power fails much later, and a byte in the middle has changed.
    let files = place(&disk, "/data/appendonlydir");
    let part = files.increment(1);
    let (mut file, len) = files.files.read(&files.path(&part)).expect("the increment");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("it is there");
    bytes[usize::try_from(len / 2).expect("it is short")] ^= 1;
    let damaged = files
        .files
        .create(&files.path(&part))
        .expect("it is replaced");
    let mut slices = [io::IoSlice::new(&bytes)];
    damaged.append(&mut slices).expect("there is room");
    damaged.sync().expect("it is synced");
    let named = files.files.sync_directory(&files.directory);
    named.expect("its name is synced");
    let disk = disk.lose_power(&mut fastrand::Rng::with_seed(1));
    let files = place(&disk, "/data/appendonlydir");
    let manifest = files.read().expect("the manifest").expect("there is one");
    let mut replayed = Replayed {
        store: Store::new(config, Seeds::from_seed(1), START),
        outputs: Outputs::new(),
        host: SnapshotHost::new(&disk, START),
    };
    let loaded = load(&files, &manifest, &mut replayed);
    let reason = loaded.expect_err("it had been synced").reason;
    assert!(reason.contains("had been synced"), "{reason}");
}
