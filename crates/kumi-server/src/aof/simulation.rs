//! Power loss on a simulated disk that keeps only what was synced. After each loss the log is loaded as a server does it,
//! and compared with what was written and acknowledged.
//!
//! The power fails before any operation of the disk, also in the middle of a rewrite, whose base a snapshot becomes.

use super::files::{self, Files};
use super::load::{self, Apply, LoadedLog};
use super::log::{Log, Start};
use super::manifest::Manifest;
use super::place::Place;
use super::serve::settle;
use disk::SimulatedDisk;
use kumi_store::config::{Config, Origin};
use kumi_store::{Now, Outputs, Peer, Seeds, SessionKey, SnapshotPurpose, Store};
use snapshot::SnapshotHost;
use std::io::{self, Read};
use std::sync::Arc;

mod base_only;
mod damage;
mod disk;
mod large;
mod snapshot;

/// Seeds of each test, each with four lives.
const SEEDS: u64 = 2000;
/// When a server starts.
const START: Now = Now {
    unix_us: 1_700_000_000_000_000,
    mono_ns: 1_000_000_000,
};

/// What a log holds, in the order of its writes: the values of the key `n`.
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

    fn rdb(&mut self, source: &mut (dyn Read + Send)) -> Result<u64, String> {
        let loaded = self.store.load_rdb(source, |_| {});
        loaded
            .map(|loaded| loaded.bytes)
            .map_err(|error| error.to_string())
    }

    fn progress(&mut self, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// A server on the simulated disk.
struct Life {
    replayed: Replayed,
    client: SessionKey,
    log: Log,
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
        let mut loaded = LoadedLog::default();
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
        let mut log =
            Log::start(start, config.settings(), None, continues, now).expect("it starts");
        replayed.store.listen_to_writes(true);
        log.maintain(&mut replayed.store, &mut replayed.outputs, now);
        assert!(log.has_file());
        let client = replayed.store.connect(Peer::default(), now);
        Self {
            replayed,
            client,
            log,
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
        self.log
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
        let log = &mut self.log;
        if let Some(outcome) = host.ended.take() {
            log.end_rewrite(Some((&mut *store, &mut *outputs)), outcome, self.now);
        }
        if log.may_begin(store.snapshot_purpose().is_some(), self.now) {
            let begun = log.begin_rewrite(store, self.now).and_then(|()| {
                host.plan = log.rewrite_plan();
                let started = store.start_snapshot(SnapshotPurpose::Rewrite, host);
                started.map_err(|error| io::Error::other(error.to_string()))
            });
            if let Err(error) = begun {
                if log.is_rewriting() {
                    log.end_rewrite(None, Err(error), self.now);
                } else {
                    if log.lacks_file() {
                        store.refuse_writes(Some("the disk"));
                        log.request_base_later();
                    }
                    log.note_failure(&error, self.now);
                }
            }
        }
        // The thread that syncs is done before the next step, so that a seed always does the same.
        log.settle();
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

fn load_all(place: &Place, manifest: &Manifest, replayed: &mut Replayed) -> LoadedLog {
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
                let pad = "x".repeat(rng.usize(0..300));
                life.run(&format!("SET pad:{} {pad}", rng.u8(..4)));
            }
            life.run(&format!("SET m {number}"));
            life.run("EXEC");
        }
        life.flush();
        life.log.settle();
        if disk.left().is_some() {
            return false;
        }
        sent.acknowledged.push((sent.number, life.now.mono_ns));
        if rng.u8(..) < 40 {
            life.log.request_base();
        }
        life.maintain();
        life.now.mono_ns += rng.u64(..700_000_000);
        life.now.unix_us += 1000;
        life.flush();
        life.log.settle();
        if disk.left().is_some() {
            return false;
        }
    }
    if rng.u8(..) < 80 {
        let Replayed { store, .. } = &mut life.replayed;
        if store.cancel_snapshot(SnapshotPurpose::Rewrite) {
            let cancelled = io::Error::other("the server ends");
            life.log.end_rewrite(None, Err(cancelled), life.now);
        }
        life.log.close(store).expect("it closes");
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
        rewrites += life.log.facts(now).rewrites;
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
        assert!(!life.log.has_file());
        assert!(life.log.facts(now).last_write_failed);
        life.run("SET n 3");
        assert_eq!(
            life.replayed.store.peek(b"n").expect("it is set"),
            b"2",
            "refused"
        );
        let maintain = |life: &mut Life, now: Now| {
            let Replayed { store, outputs, .. } = &mut life.replayed;
            life.log.maintain(store, outputs, now);
        };
        maintain(&mut life, now);
        assert!(!life.log.has_file(), "the disk is still full");
        disk.set_full(false);
        maintain(&mut life, now);
        assert!(!life.log.has_file(), "it is not tried all the time");
        now.mono_ns += 2_000_000_000;
        life.now = now;
        maintain(&mut life, now);
        assert!(life.log.has_file());
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
    let maintain_until = |life: &mut Life, done: &dyn Fn(&Log) -> bool| {
        for _ in 0..1000 {
            if done(&life.log) {
                return;
            }
            life.now.mono_ns += 10_000_000;
            life.maintain();
            life.flush();
        }
        panic!("it takes too long");
    };
    let rewrites = |log: &Log| log.facts(now).rewrites;
    let before = rewrites(&life.log);
    write(&mut life, 1);
    life.log.request_base();
    maintain_until(&mut life, &|log| log.is_rewriting());
    disk.set_full(true);
    write(&mut life, 2);
    assert!(!life.log.has_file());
    disk.set_full(false);
    maintain_until(&mut life, &|log| rewrites(log) > before);
    write(&mut life, 3);
    assert_eq!(life.number(), 2, "3 is refused: no file would have it");
    maintain_until(&mut life, &|log| rewrites(log) > before + 1);
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
    life.log.settle();
    life.flush();
    assert!(!life.log.has_file(), "the file is not trusted any more");
}

#[test]
fn a_failed_fsync_is_noticed_when_the_rewrite_ends_before_its_result() {
    let disk = SimulatedDisk::default();
    let now = START;
    let config = config("everysec", true);
    let mut life = Life::start(&disk, &config, now);
    // A log that begins at run time: the manifest does not name its increment until its base is complete.
    let start = Start {
        place: place(&disk, "/data/another"),
        lock: None,
        manifest: Manifest::default(),
        lengths: Vec::new(),
        seed: 0,
        stream: life.replayed.store.write_offset(),
        last_increment: 0,
    };
    life.log = Log::start(start, config.settings(), None, false, now).expect("it starts");
    for _ in 0..1000 {
        if life.replayed.host.ended.is_some() {
            break;
        }
        life.now.mono_ns += 10_000_000;
        life.maintain();
        life.flush();
    }
    assert!(life.replayed.host.ended.is_some() && life.log.is_incomplete());
    // The write works, the fsync behind it fails, and the rewrite ends before the result is taken.
    life.run("SET n 1");
    life.now.mono_ns += 1_100_000_000;
    disk.fail_after(1);
    life.flush();
    life.log.settle();
    life.maintain();
    assert!(!life.log.is_rewriting() && life.log.has_file());
    life.flush();
    assert!(!life.log.has_file(), "the file is not trusted any more");
}

#[test]
fn a_write_waits_two_seconds_for_an_fsync_and_is_counted() {
    let disk = SimulatedDisk::default();
    let mut life = Life::start(&disk, &config("everysec", true), START);
    let figures = |life: &Life| {
        let facts = life.log.facts(life.now);
        (facts.delayed_fsyncs, facts.buffered_bytes > 0)
    };
    assert_eq!(count(&mut life, 1), Some(true));
    life.now.mono_ns += 1_100_000_000;
    disk.hold_syncs(true);
    life.flush();
    assert!(life.log.facts(life.now).fsync_running);
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
    life.log.settle();
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
    assert!(life.log.facts(life.now).buffered_bytes > 0);
    assert_eq!(Life::start(&disk.copy(), &config, START).number(), 1);
    // DEBUG LOADAOF waits for the fsync, which ends meanwhile.
    std::thread::scope(|scope| {
        scope.spawn(|| disk.hold_syncs(false));
        let Replayed { store, outputs, .. } = &mut life.replayed;
        settle(&mut life.log, store, outputs, life.now).expect("the disk takes it");
    });
    assert_eq!(Life::start(&disk.copy(), &config, START).number(), 2);
}

#[test]
fn a_prepared_rewrite_that_is_not_due_any_more_blocks_no_save() {
    let disk = SimulatedDisk::default();
    let mut life = Life::start(&disk, &config("everysec", true), START);
    assert_eq!(count(&mut life, 1), Some(true));
    disk.hold_syncs(true);
    life.log.request_base();
    assert!(!life.log.may_begin(false, life.now), "it is synced first");
    assert!(life.log.begins_rewrite());
    // The file has grown by less than the configuration says now.
    life.log.wants_base = false;
    assert!(!life.log.may_begin(false, life.now));
    disk.hold_syncs(false);
    life.log.settle();
    life.flush();
    assert!(!life.log.may_begin(false, life.now));
    assert!(!life.log.begins_rewrite());
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
    life.log.settle();
    let Replayed { store, outputs, .. } = &mut life.replayed;
    life.log.request_base();
    life.log.maintain(store, outputs, life.now);
    assert!(!life.log.has_file(), "the file is not trusted any more");
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
    let flushed = life.log.flush(store, outputs, now);
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
    life.log.settle();
    life.log.configure(config("always", true).settings());
    life.run("SET n 2");
    let Replayed { store, outputs, .. } = &mut life.replayed;
    assert!(life.log.flush(store, outputs, life.now).is_err());
}

#[test]
fn a_client_that_waits_is_answered_when_a_rewrite_syncs_its_write() {
    let disk = SimulatedDisk::default();
    let mut life = Life::start(&disk, &config("everysec", true), START);
    life.run("SET n 1");
    life.flush();
    life.log.request_base();
    assert!(
        !life.log.may_begin(false, START),
        "the file is synced first"
    );
    life.log.settle();
    life.flush();
    life.run("SET n 2");
    life.run("WAITAOF 1 0 0");
    life.flush();
    assert!(life.replayed.store.awaits_log());
    assert!(life.log.may_begin(false, START));
    let begun = life.log.begin_rewrite(&mut life.replayed.store, START);
    begun.expect("the disk takes it");
    life.flush();
    assert!(!life.replayed.store.awaits_log());
}

/// Counts in two keys; says whether it is acknowledged, or none if the server ends.
fn count(life: &mut Life, number: u64) -> Option<bool> {
    for line in ["MULTI", "INCR n", "INCR m", "EXEC"] {
        life.run(line);
    }
    let Replayed { store, outputs, .. } = &mut life.replayed;
    life.log.flush(store, outputs, life.now).ok()?;
    Some(life.number() == number)
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
        life.log.request_base();
        disk.fail_after(operation);
        // Through the failure, and through the next attempt.
        for turn in 0..40 {
            if turn == 20 && life.log.facts(life.now).last_rewrite_failed {
                life.log.request_base();
            }
            life.maintain();
            life.now.mono_ns += 100_000_000;
            failed += u32::from(life.log.facts(life.now).last_rewrite_failed);
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
            let facts = life.log.facts(life.now);
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
        life.log.settle();
        life.flush();
        life.log.request_base();
        disk.set_full(true);
        life.maintain();
        disk.set_full(false);
        life.flush();
        assert!(life.log.facts(life.now).last_rewrite_failed);
        assert!(life.log.has_file() && !life.log.has_failed());
        assert_eq!(count(&mut life, 2), Some(true));
    }
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
fn a_missing_manifest_is_not_taken_for_a_new_log() {
    let disk = SimulatedDisk::default();
    let now = START;
    let life = Life::start(&disk, &config("always", true), now);
    let (place, _) = life.log.files();
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

/// A rewrite that is prepared: its snapshot may begin.
fn prepared(disk: &SimulatedDisk, config: &Config) -> Life {
    let mut life = Life::start(disk, config, START);
    assert_eq!(count(&mut life, 1), Some(true));
    life.log.request_base();
    // While another snapshot runs, nothing is done for a rewrite that waits.
    let before = disk.syncs();
    for _ in 0..10 {
        assert!(!life.log.may_begin(true, life.now));
        life.log.settle();
        life.flush();
    }
    assert_eq!(disk.syncs(), before);
    assert!(!life.log.may_begin(false, life.now));
    life.log.settle();
    life.flush();
    // The new increment, its name, the manifest, the old increment.
    assert_eq!(disk.syncs(), before + 4);
    assert!(life.log.may_begin(false, life.now));
    life
}

/// Begins the rewrite and its snapshot.
fn begin(life: &mut Life) {
    let Replayed { store, host, .. } = &mut life.replayed;
    let begun = life.log.begin_rewrite(store, life.now);
    begun.expect("the disk takes it");
    host.plan = life.log.rewrite_plan();
    let started = store.start_snapshot(SnapshotPurpose::Rewrite, host);
    started.expect("nothing else runs");
}

fn waits_in_memory(life: &Life) -> bool {
    life.log.facts(life.now).buffered_bytes > 0
}

/// Goes on until so many rewrites are complete.
fn finish_rewrites(life: &mut Life, rewrites: u64) {
    for _ in 0..1000 {
        life.maintain();
        life.now.mono_ns += 100_000_000;
        life.flush();
        if life.log.facts(life.now).rewrites == rewrites {
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
        assert!(waits_in_memory(&life) && life.log.is_rewriting());
        // Killed now, the server has what is in the old increment.
        assert_eq!(Life::start(&disk.copy(), &config, START).number(), 1);
        disk.hold_syncs(false);
        life.log.settle();
        assert_eq!(count(&mut life, 4), Some(true));
        assert!(!waits_in_memory(&life));
        assert_eq!(Life::start(&disk.copy(), &config, START).number(), 4);
        life.log.settle();
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
        assert!(!waits_in_memory(&life) && !life.log.is_rewriting());
        assert!(life.log.facts(life.now).last_rewrite_failed);
        assert!(life.replayed.store.snapshot_purpose().is_none());
        assert_eq!(Life::start(&disk.copy(), &config, START).number(), 3);
        disk.hold_syncs(false);
        life.log.settle();
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
    assert!(life.log.is_rewriting() && life.replayed.host.ended.is_none());
    disk.hold_syncs(false);
    finish_rewrites(&mut life, 2);
    assert_eq!(count(&mut life, 2), Some(true));
    drop(life);
    assert_eq!(Life::start(&disk, &config, START).number(), 2);
}
