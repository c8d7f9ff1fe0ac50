//! Power loss on a simulated disk that keeps only what was synced. After each loss the AOF is loaded as a server does it,
//! and compared with what was written and acknowledged.
//!
//! The power fails before any operation of the disk, also in the middle of a rewrite, whose base a snapshot becomes.

use super::files::{self, Files};
use super::load::{self, Apply, LoadedAof};
use super::manifest::Manifest;
use super::place::Place;
use super::running::{Aof, Start};
use disk::SimulatedDisk;
use kumi_store::config::{Config, Origin};
use kumi_store::{LoadError, Now, Outputs, Peer, Seeds, SessionKey, SnapshotPurpose, Store};
use snapshot::SnapshotHost;
use std::io::{self, Read};
use std::sync::Arc;

mod base_only;
mod damage;
mod disk;
mod failures;
mod large;
mod snapshot;
mod switch;

/// Seeds of each test, each with four lives.
const SEEDS: u64 = 2000;
/// When a server starts.
const START: Now = Now {
    unix_us: 1_700_000_000_000_000,
    mono_ns: 1_000_000_000,
};

/// What an AOF holds, in the order of its writes: the values of the key `n`.
#[derive(Debug)]
struct Replayed {
    store: Store,
    outputs: Outputs,
    host: SnapshotHost,
}

impl Apply for Replayed {
    fn requests(&mut self, bytes: &[u8]) -> Result<(), (usize, String)> {
        let replayed = self.store.replay(bytes, &mut self.outputs, &mut self.host);
        replayed.map_err(|error| (error.at, error.reason))
    }

    fn rdb(&mut self, source: &mut (dyn Read + Send)) -> Result<u64, LoadError> {
        let loaded = self.store.load_rdb(source, |_| {});
        loaded.map(|loaded| loaded.bytes)
    }

    fn progress(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// A server on the simulated disk.
struct Life {
    replayed: Replayed,
    client: SessionKey,
    aof: Aof,
    now: Now,
}

fn config(fsync: &str, preamble: bool) -> Config {
    let mut config = Config::new();
    let preamble: &[u8] = if preamble { b"yes" } else { b"no" };
    let pairs: [(&[u8], &[u8]); 3] = [
        (b"appendonly", b"yes"),
        (b"appendfsync", fsync.as_bytes()),
        (b"aof-use-rdb-preamble", preamble),
    ];
    let _ = config
        .set_many(&pairs, Origin::Startup)
        .expect("valid directives");
    config
}

fn place(disk: &SimulatedDisk, directory: &str) -> Place {
    Place {
        files: Arc::new(disk.clone()),
        directory: directory.into(),
        name: "appendonly.aof".into(),
    }
}

impl Life {
    /// Starts on a disk, as a server does.
    fn start(disk: &SimulatedDisk, config: &Config, now: Now) -> Self {
        let place = place(disk, "/data/appendonlydir");
        let store = Store::new(config.clone(), Seeds::from_seed(1), now);
        let mut replayed = Replayed {
            store,
            outputs: Outputs::new(),
            host: SnapshotHost::new(disk, now),
        };
        let manifest = place.read().expect("a manifest is complete or not there");
        let continues = manifest.is_some();
        let mut loaded = LoadedAof::default();
        if let Some(manifest) = &manifest {
            loaded = load_all(&place, manifest, &mut replayed);
        }
        let start = Start {
            place,
            lock: None,
            manifest: manifest.unwrap_or_default(),
            lengths: loaded.lengths,
            seed: loaded.seed,
            stream: replayed.store.write_offset(),
            last_increment: 0,
        };
        let mut aof =
            Aof::start(start, config.settings(), None, continues, now).expect("it starts");
        replayed.store.listen_to_writes(true);
        aof.maintain(&mut replayed.store, &mut replayed.outputs, now);
        assert!(aof.has_file());
        let client = replayed.store.connect(Peer::default(), now);
        Self {
            replayed,
            client,
            aof,
            now,
        }
    }

    fn run(&mut self, line: &str) {
        let args = kumi_resp::OwnedArgs::from_slices(line.split(' '));
        let Replayed {
            store,
            outputs,
            host,
        } = &mut self.replayed;
        let _ = store.execute(self.client, args.as_args(), self.now, outputs, host);
    }

    /// Ends a turn; what was written before is acknowledged then.
    fn flush(&mut self) {
        let Replayed { store, outputs, .. } = &mut self.replayed;
        self.aof
            .flush(store, outputs, self.now)
            .expect("the disk takes it");
    }

    /// What a server does between two turns: a rewrite begins, goes on or ends.
    fn maintain(&mut self) {
        let Replayed {
            store,
            outputs,
            host,
        } = &mut self.replayed;
        let aof = &mut self.aof;
        if let Some(outcome) = host.ended.take() {
            aof.end_rewrite(Some((&mut *store, &mut *outputs)), outcome, self.now);
        }
        if aof.may_begin(store.snapshot_purpose().is_some(), self.now) {
            let begun = aof.begin_rewrite(store, self.now).and_then(|()| {
                host.plan = aof.rewrite_plan();
                let started = store.start_snapshot(SnapshotPurpose::Rewrite, host);
                started.map_err(|error| io::Error::other(error.to_string()))
            });
            if let Err(error) = begun {
                if aof.is_rewriting() {
                    aof.end_rewrite(None, Err(error), self.now);
                } else {
                    if aof.lacks_file() {
                        store.refuse_writes(Some("the disk"));
                        aof.request_base_later();
                    }
                    aof.note_failure(&error, self.now);
                }
            }
        }
        // The thread that syncs is done before the next step, so that a seed always does the same.
        aof.settle();
        host.now = self.now;
        store.poll(outputs, host);
    }

    /// The number that the data hold, and whether it is consistent.
    fn number(&mut self) -> u64 {
        let get = |store: &mut Store, key: &str| -> u64 {
            store.peek(key.as_bytes()).map_or(0, |value| {
                String::from_utf8_lossy(&value).parse().expect("a number")
            })
        };
        let store = &mut self.replayed.store;
        let (first, second) = (get(store, "n"), get(store, "m"));
        assert_eq!(first, second, "half a transaction");
        first
    }
}

fn load_all(place: &Place, manifest: &Manifest, replayed: &mut Replayed) -> LoadedAof {
    replayed.store.begin_loading(1, true);
    let loaded = load::load(place, manifest, replayed).expect("a crash never damages a file");
    replayed.store.end_loading(&mut replayed.outputs);
    if let Some(cut) = &loaded.cut {
        let part = manifest.data().last().expect("a file was cut");
        let whole = place.files.read(&place.path(part)).expect("it is there").1;
        let kept = files::cut_off(&*place.files, &place.path(part), cut.at).expect("it is cut");
        let rest = place.files.read(&kept).expect("the rest is kept").1;
        assert_eq!((rest, cut.lost), (whole - cut.at, whole - cut.at));
    }
    loaded
}

/// What a life has sent, and what of it has to survive.
#[derive(Debug, Default)]
struct Sent {
    number: u64,
    /// Numbers that were acknowledged, and when.
    acknowledged: Vec<(u64, u64)>,
}

impl Sent {
    /// The number that must be there at this time.
    fn must_be_there(&self, fsync: &str, now: Now) -> u64 {
        let survives =
            |&&(_, at_ns): &&(u64, u64)| fsync == "always" || at_ns + 2_000_000_000 <= now.mono_ns;
        let last = self.acknowledged.iter().rev().find(survives);
        last.map_or(0, |&(number, _)| number)
    }
}

/// Writes until the power fails or the life is over; says whether it ended in order.
fn live(life: &mut Life, disk: &SimulatedDisk, sent: &mut Sent, rng: &mut fastrand::Rng) -> bool {
    for _ in 0..rng.usize(0..40) {
        for _ in 0..rng.usize(0..4) {
            sent.number += 1;
            let number = sent.number;
            life.run("MULTI");
            life.run(&format!("SET n {number}"));
            if rng.bool() {
                let pad = "x".repeat(rng.usize(0..2400));
                life.run(&format!("SET pad:{} {pad}", rng.u8(..4)));
            }
            life.run(&format!("SET m {number}"));
            life.run("EXEC");
        }
        life.flush();
        life.aof.settle();
        if disk.left().is_some() {
            return false;
        }
        sent.acknowledged.push((sent.number, life.now.mono_ns));
        if rng.u8(..) < 40 {
            life.aof.request_base();
        }
        life.maintain();
        life.now.mono_ns += rng.u64(..700_000_000);
        life.now.unix_us += 1000;
        life.flush();
        life.aof.settle();
        if disk.left().is_some() {
            return false;
        }
    }
    if rng.u8(..) < 80 {
        let Replayed { store, .. } = &mut life.replayed;
        if store.cancel_snapshot(SnapshotPurpose::Rewrite) {
            let cancelled = io::Error::other("the server ends");
            life.aof.end_rewrite(None, Err(cancelled), life.now);
        }
        life.aof.close(store).expect("it closes");
        if disk.left().is_none() {
            sent.acknowledged.push((sent.number, 0));
        }
    }
    true
}

/// Lives and crashes with one seed; returns how many rewrites were complete.
fn crash(seed: u64, fsync: &str) -> u64 {
    let mut rng = fastrand::Rng::with_seed(seed);
    let config = config(fsync, !seed.is_multiple_of(3));
    let mut disk = SimulatedDisk::default();
    let mut now = START;
    let mut sent = Sent::default();
    let mut rewrites = 0;
    for _ in 0..4 {
        let mut life = Life::start(&disk, &config, now);
        let (found, must) = (life.number(), sent.must_be_there(fsync, now));
        assert!(found >= must, "seed {seed}: {found} of {must} acknowledged");
        let number = sent.number;
        assert!(found <= number, "seed {seed}: {found} was never sent");
        sent = Sent {
            number: found,
            acknowledged: Vec::new(),
        };
        if rng.bool() {
            disk.crash_after(rng.u32(..120), fastrand::Rng::with_seed(rng.u64(..)));
        }
        live(&mut life, &disk, &mut sent, &mut rng);
        now = life.now;
        rewrites += life.aof.facts(now).rewrites;
        drop(life);
        disk = disk.left().unwrap_or_else(|| disk.lose_power(&mut rng));
    }
    rewrites
}

#[test]
fn always_loses_nothing_when_the_power_fails() {
    let rewrites: u64 = (0..SEEDS).map(|seed| crash(seed, "always")).sum();
    assert!(rewrites > SEEDS, "{rewrites} rewrites were complete");
}

#[test]
fn everysec_loses_two_seconds_at_most() {
    let rewrites: u64 = (0..SEEDS).map(|seed| crash(seed, "everysec")).sum();
    assert!(rewrites > SEEDS, "{rewrites} rewrites were complete");
}

#[test]
fn a_write_waits_two_seconds_for_an_fsync_and_is_counted() {
    let disk = SimulatedDisk::default();
    let mut life = Life::start(&disk, &config("everysec", true), START);
    let figures = |life: &Life| {
        let facts = life.aof.facts(life.now);
        (facts.delayed_fsyncs, facts.buffered_bytes > 0)
    };
    assert_eq!(count(&mut life, 1), Some(true));
    life.now.mono_ns += 1_100_000_000;
    disk.hold_syncs(true);
    life.flush();
    assert!(life.aof.facts(life.now).fsync_running);
    for (number, wait_ns, expected) in [
        (2, 0, (0, true)),
        (3, 1_900_000_000, (0, true)),
        (4, 200_000_000, (1, false)),
        // The next one waits again.
        (5, 0, (1, true)),
        (6, 2_000_000_000, (2, false)),
    ] {
        life.now.mono_ns += wait_ns;
        assert_eq!(count(&mut life, number), Some(true));
        assert_eq!(figures(&life), expected, "{number}");
    }
    disk.hold_syncs(false);
    life.aof.settle();
    assert_eq!(count(&mut life, 7), Some(true));
    assert_eq!(figures(&life), (2, false));
    drop(life);
    let left = disk.copy();
    assert_eq!(
        Life::start(&left, &config("everysec", true), START).number(),
        7
    );
}

#[test]
fn what_waits_for_an_fsync_is_in_the_file_before_that_is_loaded_again() {
    let disk = SimulatedDisk::default();
    let config = config("everysec", true);
    let mut life = Life::start(&disk, &config, START);
    assert_eq!(count(&mut life, 1), Some(true));
    life.now.mono_ns += 1_100_000_000;
    disk.hold_syncs(true);
    life.flush();
    assert_eq!(count(&mut life, 2), Some(true));
    assert!(life.aof.facts(life.now).buffered_bytes > 0);
    assert_eq!(Life::start(&disk.copy(), &config, START).number(), 1);
    // DEBUG LOADAOF waits for the fsync, which ends meanwhile.
    std::thread::scope(|scope| {
        scope.spawn(|| disk.hold_syncs(false));
        let Replayed { store, outputs, .. } = &mut life.replayed;
        let files = life.aof.files_to_load(store, outputs, life.now);
        files.expect("the disk takes it");
    });
    assert_eq!(Life::start(&disk.copy(), &config, START).number(), 2);
}

/// Counts in two keys; says whether it is acknowledged, or none if the server ends.
fn count(life: &mut Life, number: u64) -> Option<bool> {
    for line in ["MULTI", "INCR n", "INCR m", "EXEC"] {
        life.run(line);
    }
    let Replayed { store, outputs, .. } = &mut life.replayed;
    life.aof.flush(store, outputs, life.now).ok()?;
    Some(life.number() == number)
}

#[test]
fn a_server_killed_before_its_first_manifest_starts_again() {
    let config = config("always", true);
    let now = START;
    let mut kills = 0;
    for operations in 0..40 {
        let disk = SimulatedDisk::default();
        disk.kill_after(operations);
        drop(Life::start(&disk, &config, now));
        let Some(left) = disk.left() else {
            break;
        };
        // The next one is killed as well, at each of its operations.
        for operations in 0..40 {
            let disk = left.copy();
            disk.kill_after(operations);
            drop(Life::start(&disk, &config, now));
            kills += 1;
            let Some(left) = disk.left() else {
                break;
            };
            let mut life = Life::start(&left, &config, now);
            assert_eq!(count(&mut life, 1), Some(true));
        }
    }
    assert!(kills > 100, "{kills}");
}

#[test]
fn a_missing_manifest_is_not_taken_for_a_new_aof() {
    let disk = SimulatedDisk::default();
    let now = START;
    let life = Life::start(&disk, &config("always", true), now);
    let (place, _) = life.aof.files();
    drop(life);
    let manifest = place.directory.join(place.manifest_name());
    disk.remove(&manifest).expect("it is there");
    let error = place.read().unwrap_err().to_string();
    let names = "appendonly.aof.1.base.rdb, appendonly.aof.1.incr.aof";
    assert!(error.contains(names), "{error}");
    for name in ["appendonly.aof.1.base.rdb", "appendonly.aof.1.incr.aof"] {
        disk.remove(&place.directory.join(name))
            .expect("it is there");
    }
    assert_eq!(place.read().expect("it is empty"), None);
}
