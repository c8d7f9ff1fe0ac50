//! Power loss on a simulated disk that keeps only what was synced.
//!
//! Bytes that were appended and not synced are kept up to a random length, and any of their pages may be zeros instead. A
//! name that was made, renamed or removed and whose directory was not synced may be the old one or the new one. After
//! each loss the log is loaded as a server does it, and compared with what was written and acknowledged.

use super::files::{Files, LogFile};
use super::load::{self, Apply};
use super::log::{Log, Start};
use super::manifest::Manifest;
use super::place::Place;
use kumi_store::config::{Config, Origin};
use kumi_store::{Now, Outputs, Peer, SessionKey, Store};
use std::collections::BTreeMap;
use std::io::{self, Cursor, IoSlice, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PAGE: usize = 64;

#[derive(Debug, Default)]
struct Inode {
    bytes: Vec<u8>,
    /// What is certainly on disk.
    synced: Vec<u8>,
}

type Names = BTreeMap<PathBuf, Arc<Mutex<Inode>>>;

#[derive(Debug, Default)]
struct SimulatedDisk(Mutex<Tree>, Arc<AtomicBool>);

#[derive(Debug, Default)]
struct Tree {
    names: Names,
    synced: Names,
}

/// A file, and whether the disk is full.
#[derive(Debug)]
struct SimulatedFile(Arc<Mutex<Inode>>, Arc<AtomicBool>);

fn refuse(full: &AtomicBool) -> io::Result<()> {
    if full.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::StorageFull.into());
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LogFile for SimulatedFile {
    fn append(&self, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        refuse(&self.1)?;
        let mut inode = lock(&self.0);
        for slice in slices.iter() {
            inode.bytes.extend_from_slice(slice);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        refuse(&self.1)?;
        let mut inode = lock(&self.0);
        inode.synced = inode.bytes.clone();
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        lock(&self.0)
            .bytes
            .truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }
}

impl Files for SimulatedDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn LogFile>> {
        let mut tree = lock(&self.0);
        let inode = tree.names.entry(path.to_owned()).or_default();
        Ok(Arc::new(SimulatedFile(inode.clone(), self.1.clone())))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn LogFile>> {
        let inode = Arc::<Mutex<Inode>>::default();
        lock(&self.0).names.insert(path.to_owned(), inode.clone());
        Ok(Arc::new(SimulatedFile(inode, self.1.clone())))
    }

    fn read(&self, path: &Path) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let tree = lock(&self.0);
        let inode = tree.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let bytes = lock(inode).bytes.clone();
        let len = bytes.len() as u64;
        Ok((Box::new(Cursor::new(bytes)), len))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut tree = lock(&self.0);
        let inode = tree.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        tree.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = lock(&self.0).names.remove(path);
        removed
            .map(|_| ())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn exists(&self, path: &Path) -> bool {
        lock(&self.0).names.contains_key(path)
    }

    fn make_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        let mut tree = lock(&self.0);
        tree.synced = tree.names.clone();
        Ok(())
    }
}

impl SimulatedDisk {
    /// The power fails: what is left is a new disk.
    fn lose_power(&self, rng: &mut fastrand::Rng) -> Self {
        let tree = lock(&self.0);
        let paths: Vec<&PathBuf> = tree.names.keys().chain(tree.synced.keys()).collect();
        let mut left = Names::new();
        for path in paths {
            let (new, old) = (tree.names.get(path), tree.synced.get(path));
            let kept = if rng.bool() { new } else { old };
            if let Some(inode) = kept {
                let inode = lock(inode);
                let bytes = after_loss(&inode, rng);
                left.insert(
                    path.clone(),
                    Arc::new(Mutex::new(Inode {
                        synced: bytes.clone(),
                        bytes,
                    })),
                );
            }
        }
        let tree = Tree {
            names: left.clone(),
            synced: left,
        };
        Self(Mutex::new(tree), Arc::default())
    }
}

/// A file after the loss: the synced bytes, and some of the others.
fn after_loss(inode: &Inode, rng: &mut fastrand::Rng) -> Vec<u8> {
    let synced = inode.synced.len();
    if inode.bytes.len() < synced {
        // It was cut: that may have happened or not.
        return if rng.bool() {
            inode.bytes.clone()
        } else {
            inode.synced.clone()
        };
    }
    let len = rng.usize(synced..=inode.bytes.len());
    let mut bytes = inode.bytes[..len].to_vec();
    let mut page = synced;
    while page < len {
        let end = (page / PAGE + 1) * PAGE;
        if rng.u8(..) < 60 {
            bytes[page..end.min(len)].fill(0);
        }
        page = end;
    }
    bytes
}

/// What a log holds, in the order of its writes: the values of the key `n`.
#[derive(Debug)]
struct Replayed {
    store: Store,
    outputs: Outputs,
    host: super::check::NoHost,
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

impl Life {
    /// Starts on a disk, as a server does.
    fn start(disk: &Arc<SimulatedDisk>, config: &Config, now: Now) -> Self {
        let place = Place {
            files: disk.clone(),
            directory: "/data/appendonlydir".into(),
            name: "appendonly.aof".into(),
        };
        let store = Store::new(config.clone(), fastrand::Rng::with_seed(1), now);
        let mut replayed = Replayed {
            store,
            outputs: Outputs::new(),
            host: super::check::NoHost,
        };
        let manifest = place.read().expect("a manifest is complete or not there");
        let continues = manifest.is_some();
        let mut lengths = Vec::new();
        if let Some(manifest) = &manifest {
            lengths = load_all(&place, manifest, &mut replayed);
        }
        let start = Start {
            place,
            lock: None,
            manifest: manifest.unwrap_or_default(),
            lengths,
            stream: replayed.store.write_offset(),
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

fn load_all(place: &Place, manifest: &Manifest, replayed: &mut Replayed) -> Vec<u64> {
    replayed.store.begin_loading(1, true);
    let loaded = load::load(place, manifest, replayed).expect("a crash never damages a file");
    replayed.store.end_loading(&mut replayed.outputs);
    if let Some(cut) = &loaded.cut {
        let part = manifest.data().last().expect("a file was cut");
        let file = place.files.open(&place.path(part)).expect("it is there");
        file.truncate(cut.at).expect("it is cut");
        file.sync().expect("it is synced");
    }
    loaded.lengths
}

/// Lives and crashes with one seed.
fn crash(seed: u64, fsync: &str) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let config = config(fsync, !seed.is_multiple_of(3));
    let mut disk = Arc::new(SimulatedDisk::default());
    let mut now = Now {
        unix_us: 1_700_000_000_000_000,
        mono_ns: 1_000_000_000,
    };
    // What was sent, and what has to survive: the number, and when it was acknowledged.
    let (mut sent, mut acknowledged): (u64, Vec<(u64, u64)>) = (0, Vec::new());
    for _ in 0..4 {
        let mut life = Life::start(&disk, &config, now);
        let found = life.number();
        let must = match fsync {
            "always" => acknowledged.last().map_or(0, |&(number, _)| number),
            _ => {
                let old = acknowledged.iter().rev();
                let old = old
                    .clone()
                    .find(|&&(_, at_ns)| at_ns + 2_000_000_000 <= now.mono_ns);
                old.map_or(0, |&(number, _)| number)
            }
        };
        assert!(found >= must, "seed {seed}: {found} of {must} acknowledged");
        assert!(found <= sent, "seed {seed}: {found} was never sent");
        sent = found;
        acknowledged.clear();
        for _ in 0..rng.usize(0..40) {
            for _ in 0..rng.usize(0..4) {
                sent += 1;
                life.run("MULTI");
                life.run(&format!("SET n {sent}"));
                if rng.bool() {
                    life.run(&format!(
                        "SET pad:{} {}",
                        rng.u8(..4),
                        "x".repeat(rng.usize(0..300))
                    ));
                }
                life.run(&format!("SET m {sent}"));
                life.run("EXEC");
            }
            life.flush();
            acknowledged.push((sent, now.mono_ns));
            if rng.u8(..) < 20 {
                life.log.request_base();
            }
            let Replayed { store, outputs, .. } = &mut life.replayed;
            life.log.maintain(store, outputs, life.now);
            now.mono_ns += rng.u64(..700_000_000);
            now.unix_us += 1000;
            life.now = now;
            // The thread that syncs is done before the next turn, so that a seed always does the same.
            life.log.settle();
            life.flush();
        }
        if rng.u8(..) < 80 {
            let Replayed { store, .. } = &mut life.replayed;
            life.log.close(store).expect("it closes");
            acknowledged.push((sent, 0));
        }
        disk = Arc::new(disk.lose_power(&mut rng));
    }
}

#[test]
fn always_loses_nothing_when_the_power_fails() {
    for seed in 0..1500 {
        crash(seed, "always");
    }
}

#[test]
fn everysec_loses_two_seconds_at_most() {
    for seed in 0..1500 {
        crash(seed, "everysec");
    }
}

#[test]
fn a_full_disk_refuses_writes_until_a_new_base_is_written() {
    for fsync in ["everysec", "no"] {
        let disk = Arc::new(SimulatedDisk::default());
        let config = config(fsync, true);
        let mut now = Now {
            unix_us: 1_700_000_000_000_000,
            mono_ns: 1_000_000_000,
        };
        let mut life = Life::start(&disk, &config, now);
        life.run("SET n 1");
        life.flush();
        disk.1.store(true, Ordering::Relaxed);
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
        disk.1.store(false, Ordering::Relaxed);
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
fn a_failed_fsync_is_not_taken_for_one_that_worked() {
    let disk = Arc::new(SimulatedDisk::default());
    let config = config("everysec", true);
    let mut now = Now {
        unix_us: 1_700_000_000_000_000,
        mono_ns: 1_000_000_000,
    };
    let mut life = Life::start(&disk, &config, now);
    life.run("SET n 1");
    life.flush();
    now.mono_ns += 1_100_000_000;
    life.now = now;
    disk.1.store(true, Ordering::Relaxed);
    life.flush();
    life.log.settle();
    life.flush();
    assert!(!life.log.has_file(), "the file is not trusted any more");
}

#[test]
fn always_does_not_go_on_without_the_disk() {
    let disk = Arc::new(SimulatedDisk::default());
    let now = Now {
        unix_us: 1_700_000_000_000_000,
        mono_ns: 1_000_000_000,
    };
    let mut life = Life::start(&disk, &config("always", true), now);
    life.run("SET n 1");
    disk.1.store(true, Ordering::Relaxed);
    let Replayed { store, outputs, .. } = &mut life.replayed;
    let flushed = life.log.flush(store, outputs, now);
    assert_eq!(flushed.unwrap_err().kind(), io::ErrorKind::StorageFull);
}
