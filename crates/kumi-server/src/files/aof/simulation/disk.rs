//! A disk that keeps only what was synced.
//!
//! Bytes that were appended and not synced are kept up to a random length, and any of their pages may be zeros instead. A
//! name that was made, renamed or removed and whose directory was not synced may be the old one or the new one.

use crate::files::aof::files::{AofFile, Files};
use crate::files::aof::tail::BLOCK;
use std::collections::BTreeMap;
use std::io::{self, Cursor, IoSlice, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is lost at once.
const PAGE: usize = BLOCK as usize;

#[derive(Debug, Default)]
struct Inode {
    bytes: Vec<u8>,
    /// What is certainly on disk.
    synced: Vec<u8>,
}

type Names = BTreeMap<PathBuf, Arc<Mutex<Inode>>>;

/// A disk in memory. A clone is the same disk.
#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedDisk(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    tree: Mutex<Tree>,
    full: AtomicBool,
    /// Syncs of increments wait until this is false.
    held: Mutex<bool>,
    released: Condvar,
    /// One operation fails after so many.
    fails_after: Mutex<Option<u32>>,
    syncs: AtomicU32,
    crash: Mutex<Crash>,
    /// How often the power has failed.
    boot: u128,
}

/// When the power fails, and what is left then.
#[derive(Debug, Default)]
struct Crash {
    /// Operations until then.
    after: Option<u32>,
    rng: Option<fastrand::Rng>,
    left: Option<SimulatedDisk>,
}

#[derive(Debug, Default)]
struct Tree {
    names: Names,
    synced: Names,
}

/// A file, and the disk it is on.
#[derive(Debug)]
struct SimulatedFile(Arc<Mutex<Inode>>, SimulatedDisk, IsIncrement);

/// Whether a test can hold the syncs of a file.
#[derive(Clone, Copy, Debug)]
struct IsIncrement(bool);

impl IsIncrement {
    fn of(path: &Path) -> Self {
        let name = path.file_name().and_then(|name| name.to_str());
        Self(name.is_some_and(|name| name.ends_with(".incr.aof")))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AofFile for SimulatedFile {
    fn append(&self, slices: &mut [IoSlice<'_>]) -> io::Result<()> {
        self.1.step()?;
        let mut inode = lock(&self.0);
        for slice in slices.iter() {
            inode.bytes.extend_from_slice(slice);
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.1.step()?;
        let held = lock(&self.1.0.held);
        let released = &self.1.0.released;
        // A test that fails does not wait for good.
        let holds = |held: &mut bool| *held && self.2.0;
        drop(released.wait_timeout_while(held, Duration::from_secs(60), holds));
        self.1.0.syncs.fetch_add(1, Ordering::Relaxed);
        let mut inode = lock(&self.0);
        inode.synced = inode.bytes.clone();
        Ok(())
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.1.step()?;
        lock(&self.0)
            .bytes
            .truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }
}

impl Files for SimulatedDisk {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn AofFile>> {
        self.step()?;
        let mut tree = lock(&self.0.tree);
        let inode = tree.names.entry(path.to_owned()).or_default();
        let file = SimulatedFile(inode.clone(), self.clone(), IsIncrement::of(path));
        Ok(Arc::new(file))
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn AofFile>> {
        self.step()?;
        let inode = Arc::<Mutex<Inode>>::default();
        let mut tree = lock(&self.0.tree);
        tree.names.insert(path.to_owned(), inode.clone());
        let file = SimulatedFile(inode, self.clone(), IsIncrement::of(path));
        Ok(Arc::new(file))
    }

    fn read(&self, path: &Path) -> io::Result<(Box<dyn Read + Send>, u64)> {
        let tree = lock(&self.0.tree);
        let inode = tree.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let bytes = lock(inode).bytes.clone();
        let len = bytes.len() as u64;
        Ok((Box::new(Cursor::new(bytes)), len))
    }

    fn read_from(&self, path: &Path, at: u64) -> io::Result<Box<dyn Read + Send>> {
        let tree = lock(&self.0.tree);
        let inode = tree.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        let mut bytes = Cursor::new(lock(inode).bytes.clone());
        bytes.set_position(at);
        Ok(Box::new(bytes))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        let mut tree = lock(&self.0.tree);
        let inode = tree.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        tree.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        let removed = lock(&self.0.tree).names.remove(path);
        removed
            .map(|_| ())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn exists(&self, path: &Path) -> bool {
        let tree = lock(&self.0.tree);
        tree.names.keys().any(|name| name.starts_with(path))
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<String>> {
        let tree = lock(&self.0.tree);
        let paths = tree.names.keys();
        let inside = paths.filter(|path| path.parent() == Some(directory));
        let names = inside.filter_map(|path| path.file_name()?.to_str());
        Ok(names.map(str::to_owned).collect())
    }

    fn make_directory(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_directory(&self, _: &Path) -> io::Result<()> {
        self.step()?;
        self.0.syncs.fetch_add(1, Ordering::Relaxed);
        let mut tree = lock(&self.0.tree);
        tree.synced = tree.names.clone();
        Ok(())
    }

    fn boot(&self) -> Option<u128> {
        Some(self.0.boot)
    }
}

impl SimulatedDisk {
    /// Called before each operation: the disk may be full, or the power may fail. Then what is left of the disk is kept,
    /// and operations go on without a meaning.
    fn step(&self) -> io::Result<()> {
        let mut crash = lock(&self.0.crash);
        if crash.after == Some(0) && crash.left.is_none() {
            crash.left = Some(match &mut crash.rng {
                Some(rng) => self.lose_power(rng),
                None => self.copy(),
            });
        }
        crash.after = crash.after.map(|after| after.saturating_sub(1));
        let mut fails_after = lock(&self.0.fails_after);
        let fails = *fails_after == Some(0);
        *fails_after = fails_after.and_then(|after| after.checked_sub(1));
        if fails || self.0.full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    /// Has the process be killed after so many operations: the disk is as it is then.
    pub(super) fn kill_after(&self, operations: u32) {
        let mut crash = lock(&self.0.crash);
        (crash.after, crash.rng) = (Some(operations), None);
    }

    /// Has one operation fail after so many.
    pub(super) fn fail_after(&self, operations: u32) {
        *lock(&self.0.fails_after) = Some(operations);
    }

    /// Whether every operation fails from now on.
    pub(super) fn set_full(&self, full: bool) {
        self.0.full.store(full, Ordering::Relaxed);
    }

    /// Whether a sync of an increment does not end until this is called with false.
    pub(super) fn hold_syncs(&self, held: bool) {
        *lock(&self.0.held) = held;
        self.0.released.notify_all();
    }

    /// How often a file or a directory was synced.
    pub(super) fn syncs(&self) -> u32 {
        self.0.syncs.load(Ordering::Relaxed)
    }

    /// The disk as it is, with everything synced.
    pub(super) fn copy(&self) -> Self {
        let tree = lock(&self.0.tree);
        let names = tree.names.iter().map(|(path, inode)| {
            let bytes = lock(inode).bytes.clone();
            let synced = bytes.clone();
            (path.clone(), Arc::new(Mutex::new(Inode { bytes, synced })))
        });
        Self::with(names.collect(), self.0.boot)
    }

    fn with(names: Names, boot: u128) -> Self {
        let synced = names.clone();
        Self(Arc::new(Shared {
            tree: Mutex::new(Tree { names, synced }),
            boot,
            ..Shared::default()
        }))
    }

    /// Has the power fail after so many operations.
    pub(super) fn crash_after(&self, operations: u32, rng: fastrand::Rng) {
        let mut crash = lock(&self.0.crash);
        (crash.after, crash.rng) = (Some(operations), Some(rng));
    }

    /// What the power failure left, if it has come.
    pub(super) fn left(&self) -> Option<Self> {
        lock(&self.0.crash).left.clone()
    }

    /// The power fails: what is left is a new disk.
    pub(super) fn lose_power(&self, rng: &mut fastrand::Rng) -> Self {
        let tree = lock(&self.0.tree);
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
        Self::with(left, self.0.boot + 1)
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
