//! Asking a running server to stop, from any thread.

use mio::Waker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A handle that stops a server. Clones stop the same one.
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
    /// Wakes the loop. None before the server runs.
    waker: Mutex<Option<Waker>>,
}

impl Shutdown {
    /// A handle for a server that is still to be started.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the server to stop: it accepts no more clients, answers what it has received, and
    /// returns. A server that does not run yet stops as soon as it does.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::SeqCst);
        let waker = self.0.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = waker.as_ref()
            && let Err(error) = waker.wake()
        {
            // The loop still sees the flag, at its next turn: that is a tenth of a second away.
            tracing::debug!(%error, "waking the server failed");
        }
    }

    /// Whether a stop was asked for.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::SeqCst)
    }

    /// Connects the handle with a running loop, or with none any more.
    pub(crate) fn attach(&self, waker: Option<Waker>) {
        *self.0.waker.lock().unwrap_or_else(PoisonError::into_inner) = waker;
    }
}
