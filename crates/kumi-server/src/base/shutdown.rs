//! A handle that stops a running server from any thread.

use mio::Waker;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle that stops a server. Clones stop the same server.
///
/// ```
/// let shutdown = kumi_server::Shutdown::new();
/// shutdown.clone().request();
/// assert!(shutdown.is_requested());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Shutdown(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    requested: AtomicBool,
    /// The number of the signal that requested it, 0 if none did.
    signal: AtomicI32,
    /// The number of the signal that a request of the host stands for, 0 if it stands for none.
    stands_for: AtomicI32,
    /// Wakes the loop; `None` before the server runs.
    waker: Mutex<Option<Arc<Waker>>>,
    /// What is removed when the process ends at once.
    unfinished_file: Mutex<Option<PathBuf>>,
}

impl Shutdown {
    /// A handle for a server that has not been started.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the stop: the server accepts no more clients, replies to the requests it has
    /// received, and returns. A server that has not started yet stops right after its start.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the loop, if it runs.
    pub(crate) fn wake(&self) {
        let waker = lock(&self.0.waker);
        if let Some(waker) = waker.as_ref()
            && let Err(error) = waker.wake()
        {
            // The loop reads the flag at its next turn, at most one housekeeping period later.
            tracing::debug!(%error, "waking the server failed");
        }
    }

    /// Requests the stop because of a signal, whose number decides what is saved.
    pub(crate) fn request_by_signal(&self, signal: i32) {
        self.0.signal.store(signal, Ordering::SeqCst);
        self.request();
    }

    /// Says that requests from now on stand for a signal that the host has received: `shutdown-on-sigterm` or
    /// `shutdown-on-sigint` decides what is saved, and a server that cannot save it goes on as if it had not been asked. The
    /// server still completes the first base of its append-only file, and SHUTDOWN ABORT does not take the request back.
    pub fn stand_for_signal(&self, signal: i32) {
        self.0.stands_for.store(signal, Ordering::SeqCst);
    }

    /// The signal whose directive says how to stop.
    pub(crate) fn signal_of_directive(&self) -> Option<i32> {
        let stands_for = || Some(self.0.stands_for.load(Ordering::SeqCst));
        self.signal()
            .or_else(|| stands_for().filter(|&signal| signal != 0))
    }

    /// The signal that requested the stop.
    pub(crate) fn signal(&self) -> Option<i32> {
        Some(self.0.signal.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
    }

    /// Takes the request back: the server could not stop.
    pub(crate) fn withdraw(&self) {
        self.0.signal.store(0, Ordering::SeqCst);
        self.0.requested.store(false, Ordering::SeqCst);
    }

    /// Creates a file that is removed if the process ends at once, until [`Shutdown::finish_file`] is called. Nobody sees
    /// the file before its path is noted.
    pub(crate) fn create_unfinished(
        &self,
        create: impl FnOnce() -> io::Result<(PathBuf, File)>,
    ) -> io::Result<(PathBuf, File)> {
        let mut unfinished = lock(&self.0.unfinished_file);
        let (path, file) = create()?;
        *unfinished = Some(path.clone());
        Ok((path, file))
    }

    /// The file is complete, or removed.
    pub(crate) fn finish_file(&self) {
        *lock(&self.0.unfinished_file) = None;
    }

    /// Removes the file that the server is writing. For a process that is about to end before the file is complete.
    pub fn remove_unfinished_file(&self) {
        if let Some(path) = lock(&self.0.unfinished_file).take()
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(%error, "the unfinished file {} cannot be removed", path.display());
        }
    }

    /// Whether a stop has been requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::SeqCst)
    }

    /// Sets the waker of the running loop; `None` when the loop has ended.
    pub(crate) fn attach(&self, waker: Option<Arc<Waker>>) {
        *lock(&self.0.waker) = waker;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
