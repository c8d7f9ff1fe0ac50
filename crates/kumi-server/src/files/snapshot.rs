//! The thread that writes a snapshot: it encodes the engine's pieces into a temporary file, syncs it
//! and puts it into its place.
//!
//! [`start`] serves every kind of file: a [`Plan`] says under which temporary name the file is
//! written and what is done once it is complete and on disk (`commit`, on the same thread). The
//! engine learns of the end through the returned sink; see `kumi_store::Store::start_snapshot` for
//! the engine's side.
//!
//! Dropping the sink cancels the thread. `commit` runs before that drop returns or never, so a
//! cancelled snapshot cannot replace a file that was written after it. The drop waits for nothing else: the thread may be in
//! the middle of a sync that takes its time.

use kumi_store::{Piece, SnapshotEncoder, SnapshotSink};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// With `rdb-save-incremental-fsync`, the file is synced every so many bytes.
const SYNC_BYTES: usize = 4 * 1024 * 1024;
/// A delay of a key is slept in parts of this length, so that a cancelled thread ends soon.
const DELAY_PART: Duration = Duration::from_millis(5);

/// How soon a cancellation looks again whether a file is in its place.
const COMMIT_PART: Duration = Duration::from_micros(200);

/// Puts a complete file into its place.
type Commit = Box<dyn FnOnce(&Path) -> io::Result<()> + Send>;
/// What follows when the file is in its place.
type Afterwards = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// How a snapshot is written.
pub(crate) struct Plan {
    /// The name of the file while it is written. Nothing else may use it.
    pub(crate) temporary: PathBuf,
    /// Sync the file every few megabytes.
    pub(crate) incremental_fsync: bool,
    /// `rdb-key-save-delay`: microseconds per key, or minus the number of keys per microsecond. A change counts at once.
    pub(crate) key_delay_us: Arc<AtomicI64>,
    /// Whether the file may be put into its place. The thread waits for it; one that is cancelled meanwhile ends.
    pub(crate) may_commit: Arc<AtomicBool>,
    /// What is done with the complete, synced file. A cancellation waits for it, so it should be short.
    pub(crate) commit: Commit,
    /// What is done then. A cancellation does not wait for it.
    pub(crate) afterwards: Afterwards,
}

/// Creates the file and starts the thread.
///
/// # Errors
/// The file cannot be created.
pub(crate) fn start(encoder: SnapshotEncoder, plan: Plan) -> io::Result<Box<dyn SnapshotSink>> {
    let file = File::create(&plan.temporary)?;
    let (queue, orders) = channel();
    let shared = Arc::new(Shared::default());
    let temporary = plan.temporary.clone();
    let writer = Writer {
        encoder,
        file: Synced {
            file,
            unsynced: 0,
            incremental: plan.incremental_fsync,
        },
        shared: Arc::clone(&shared),
        plan,
    };
    let thread = Builder::new()
        .name("kumi-snapshot".into())
        .spawn(move || writer.run(&orders))
        .inspect_err(|_| discard(&temporary))?;
    Ok(Box::new(Sink {
        queue: Some(queue),
        shared,
        thread: Some(thread),
        temporary,
    }))
}

enum Order {
    Write(Piece),
    Finish,
}

const RUNNING: u8 = 0;
const CANCELLED: u8 = 1;
const COMMITTING: u8 = 2;
const COMMITTED: u8 = 3;

#[derive(Debug, Default)]
struct Shared {
    /// RUNNING until one side wins: the thread that commits, or the engine that cancels.
    state: AtomicU8,
    queued_bytes: AtomicUsize,
    keys: AtomicU64,
    outcome: Mutex<Option<io::Result<()>>>,
}

impl Shared {
    /// Moves from RUNNING to another state; says whether it was running.
    fn leave_running(&self, state: u8) -> bool {
        let order = Ordering::SeqCst;
        self.state
            .compare_exchange(RUNNING, state, order, order)
            .is_ok()
    }
}

/// The engine's end.
#[derive(Debug)]
struct Sink {
    queue: Option<Sender<Order>>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    temporary: PathBuf,
}

impl Sink {
    fn send(&self, order: Order) {
        // A thread that failed is gone, and its outcome says why.
        let _ = self.queue.as_ref().map(|queue| queue.send(order));
    }
}

impl SnapshotSink for Sink {
    fn push(&mut self, piece: Piece) {
        let bytes = piece.heap_bytes();
        self.shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.send(Order::Write(piece));
    }

    fn queued_bytes(&self) -> usize {
        self.shared.queued_bytes.load(Ordering::Relaxed)
    }

    fn keys_written(&self) -> u64 {
        self.shared.keys.load(Ordering::Relaxed)
    }

    fn end(&mut self) {
        self.send(Order::Finish);
    }

    fn outcome(&mut self) -> Option<io::Result<()>> {
        // Looked at first: a thread that has ended has left its outcome before.
        let has_ended = self.thread.as_ref().is_some_and(JoinHandle::is_finished);
        let outcome = &self.shared.outcome;
        let outcome = outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if outcome.is_none() && has_ended && self.shared.state.load(Ordering::SeqCst) != CANCELLED {
            discard(&self.temporary);
            let reason = "the thread that writes the snapshot panicked";
            return Some(Err(io::Error::other(reason)));
        }
        outcome
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.queue = None;
        if self.shared.leave_running(CANCELLED) {
            // The thread may be in the middle of a sync; the file has no name any more, and ends with it.
            discard(&self.temporary);
        } else {
            // The thread is committing, which is short, or has done so.
            while self.shared.state.load(Ordering::SeqCst) == COMMITTING
                && self
                    .thread
                    .as_ref()
                    .is_some_and(|thread| !thread.is_finished())
            {
                std::thread::park_timeout(COMMIT_PART);
            }
        }
    }
}

/// The thread's end.
struct Writer {
    encoder: SnapshotEncoder,
    file: Synced,
    shared: Arc<Shared>,
    plan: Plan,
}

impl Writer {
    fn run(mut self, orders: &Receiver<Order>) {
        lower_priority();
        let written = self.write(orders);
        let Writer { shared, plan, .. } = self;
        while matches!(written, Ok(true)) && !plan.may_commit.load(Ordering::Acquire) {
            if shared.state.load(Ordering::SeqCst) != RUNNING {
                return;
            }
            std::thread::park_timeout(DELAY_PART);
        }
        let outcome = match written {
            Ok(true) if shared.leave_running(COMMITTING) => {
                let committed = (plan.commit)(&plan.temporary);
                shared.state.store(COMMITTED, Ordering::SeqCst);
                committed.and_then(|()| (plan.afterwards)())
            }
            // Cancelled: the outcome is not needed.
            Ok(_) => return,
            Err(error) if shared.leave_running(COMMITTING) => Err(error),
            Err(_) => return,
        };
        if outcome.is_err() {
            discard(&plan.temporary);
        }
        *shared
            .outcome
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(outcome);
    }

    /// Writes everything; false if it was cancelled.
    fn write(&mut self, orders: &Receiver<Order>) -> io::Result<bool> {
        let shared = Arc::clone(&self.shared);
        let mut delay = KeyDelay::new(Arc::clone(&self.plan.key_delay_us));
        let mut each_key = || {
            shared.keys.fetch_add(1, Ordering::Relaxed);
            delay.wait(|| shared.state.load(Ordering::Relaxed) != RUNNING)
        };
        while let Ok(order) = orders.recv() {
            let piece = match order {
                Order::Write(piece) => piece,
                Order::Finish => {
                    self.encoder.finish(&mut self.file)?;
                    self.file.file.sync_all()?;
                    return Ok(true);
                }
            };
            let written = self.encoder.write(&piece, &mut self.file, &mut each_key);
            let bytes = piece.heap_bytes();
            shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            written?;
        }
        Ok(false)
    }
}

/// Has the system prefer the engine's thread where both want the same core.
fn lower_priority() {
    /// About a fifth of a core that a thread of the usual priority wants, too.
    const NICE: i32 = 7;
    // On Linux this is a property of the calling thread; elsewhere it would slow the whole process down.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::debug!(%error, "the priority of the snapshot's thread stays");
    }
}

/// A file that is synced now and then, so that the last sync has little to do.
struct Synced {
    file: File,
    unsynced: usize,
    incremental: bool,
}

impl Write for Synced {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written;
        if self.incremental && self.unsynced >= SYNC_BYTES {
            self.unsynced = 0;
            self.file.sync_data()?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// `rdb-key-save-delay` and `key-load-delay`.
pub(crate) struct KeyDelay {
    delay_us: Arc<AtomicI64>,
    keys: i64,
}

impl KeyDelay {
    /// A delay that another thread may change.
    pub(crate) fn new(delay_us: Arc<AtomicI64>) -> Self {
        Self { delay_us, keys: 0 }
    }

    pub(crate) fn fixed(delay_us: i64) -> Self {
        Self::new(Arc::new(AtomicI64::new(delay_us)))
    }

    /// Waits as long as one key takes, or until the delay changes; an error if `cancelled` becomes true.
    pub(crate) fn wait(&mut self, cancelled: impl Fn() -> bool) -> io::Result<()> {
        let delay_us = self.delay_us.load(Ordering::Relaxed);
        let mut left = match delay_us {
            0 => Duration::ZERO,
            1.. => Duration::from_micros(delay_us.unsigned_abs()),
            ..0 => {
                self.keys += 1;
                let due = self.keys >= delay_us.saturating_neg();
                self.keys = if due { 0 } else { self.keys };
                Duration::from_micros(u64::from(due))
            }
        };
        loop {
            if cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            if left.is_zero() || self.delay_us.load(Ordering::Relaxed) != delay_us {
                return Ok(());
            }
            let part = left.min(DELAY_PART);
            std::thread::sleep(part);
            left -= part;
        }
    }
}

/// Removes a file that is not needed; it may be gone already.
fn discard(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, "the temporary file {} cannot be removed", path.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_is_a_failed_snapshot() {
        let thread = std::thread::spawn(|| panic!("meant to be seen"));
        let mut sink = Sink {
            queue: None,
            shared: Arc::default(),
            thread: Some(thread),
            temporary: "no-such-file".into(),
        };
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        let outcome = loop {
            if let Some(outcome) = sink.outcome() {
                break outcome;
            }
            assert!(std::time::Instant::now() < deadline, "nothing is told");
            std::thread::yield_now();
        };
        let error = outcome.expect_err("nothing was written");
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}
