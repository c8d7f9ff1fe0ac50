//! A handle that stops a running server from any thread.

use mio::Waker;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
    /// Wakes the loop; `None` before the server runs.
    waker: Mutex<Option<Arc<Waker>>>,
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
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// The signal that requested the stop.
    pub(crate) fn signal(&self) -> Option<i32> {
        Some(self.0.signal.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
    }

    /// Takes the request back: the server could not stop.
    pub(crate) fn withdraw(&self) {
        self.0.signal.store(0, Ordering::SeqCst);
        self.0.requested.store(false, Ordering::SeqCst);
    }

    /// Whether a stop has been requested.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::SeqCst)
    }

    /// Sets the waker of the running loop; `None` when the loop has ended.
    pub(crate) fn attach(&self, waker: Option<Arc<Waker>>) {
        *self.0.waker.lock().unwrap_or_else(PoisonError::into_inner) = waker;
    }
}
