//! BGREWRITEAOF without an AOF: a base with nothing behind it, on a disk that loses power.

use super::disk::SimulatedDisk;
use super::snapshot::SnapshotHost;
use super::{Life, SEEDS, START, config, count, place};
use crate::files::aof::running::{Aof, Start};
use kumi_store::config::Config;
use kumi_store::{Outputs, Peer, Seeds, Store};

/// Writes a base, and nothing behind it. Returns the number of the increment that came with
/// it, or none if the disk failed.
fn write_base_only(disk: &SimulatedDisk, config: &Config, number: u64, last: u64) -> Option<u64> {
    let mut store = Store::new(config.clone(), Seeds::from_seed(1), START);
    let (mut outputs, mut host) = (Outputs::new(), SnapshotHost::new(disk, START));
    let client = store.connect(Peer::default(), START);
    for key in ["n", "m"] {
        let number = number.to_string();
        let args = kumi_resp::OwnedArgs::from_slices(["SET", key, number.as_str()]);
        let _ = store.execute(client, args.as_args(), START, &mut outputs, &mut host);
    }
    let place = place(disk, "/data/appendonlydir");
    let start = Start {
        manifest: place
            .manifest()
            .expect("it is complete")
            .unwrap_or_default(),
        place,
        lock: None,
        lengths: Vec::new(),
        seed: 0,
        stream: 0,
        last_increment: last,
    };
    let mut aof = Aof::start(start, config.settings(), None, false, START).expect("it starts");
    store.listen_to_writes(true);
    aof.maintain(&mut store, &mut outputs, START);
    if aof.rewrites() == 0 {
        return None;
    }
    let increment = aof.last_increment();
    aof.close_base(&mut store).ok()?;
    Some(increment)
}

#[test]
fn a_base_without_an_aof_survives_a_power_failure() {
    for seed in 0..SEEDS {
        let config = config("everysec", !seed.is_multiple_of(3));
        let disk = SimulatedDisk::default();
        let mut life = Life::start(&disk, &config, START);
        assert_eq!(count(&mut life, 1), Some(true));
        life.aof.close(&mut life.replayed.store).expect("it closes");
        drop(life);
        let mut rng = fastrand::Rng::with_seed(seed);
        disk.crash_after(rng.u32(..60), fastrand::Rng::with_seed(rng.u64(..)));
        let (mut kept, mut last) = (1, 0);
        let mut tried = 1;
        while disk.left().is_none() && tried < 5 {
            tried += 1;
            let increment = write_base_only(&disk, &config, tried, last).expect("the disk works");
            // The number of an increment that is gone is used again.
            last = increment - 1;
            if disk.left().is_none() {
                kept = tried;
            }
        }
        let left = disk.left().unwrap_or_else(|| disk.lose_power(&mut rng));
        let found = Life::start(&left, &config, START).number();
        assert!(
            (kept..=tried).contains(&found),
            "seed {seed}: {found} is there, {kept} was kept, {tried} was tried"
        );
    }
}
