//! How a run is stopped: between its worker, which stops it, and its context, by which the handler sees that.

use crate::core::worker::Stop;
use std::sync::{Mutex, OnceLock, PoisonError};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Cancels a run. Most runs never ask for it, so the token is made when it is first needed.
#[derive(Default)]
pub(crate) struct Stopping {
    token: OnceLock<CancellationToken>,
    /// The first reason counts.
    reason: OnceLock<Stop>,
    /// Ends when the thread that the handler blocks is done with it, if it blocks one.
    thread: Mutex<Option<oneshot::Receiver<()>>>,
}

/// What holds a run's `Stopping`.
pub(crate) trait Stoppable: Send + Sync {
    fn stopping(&self) -> &Stopping;
}

impl Stopping {
    pub(crate) fn token(&self) -> &CancellationToken {
        self.token.get_or_init(CancellationToken::new)
    }

    /// Why the run was stopped by its worker.
    pub(crate) fn reason(&self) -> Option<&Stop> {
        self.reason.get()
    }

    /// The handler is about to block a thread. What this returns is dropped when the thread is done with it.
    pub(crate) fn block_thread(&self) -> oneshot::Sender<()> {
        let (sender, receiver) = oneshot::channel();
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(receiver);
        sender
    }

    /// Ends when the thread that the handler blocks is done with it; none if it blocks none.
    pub(crate) fn take_thread(&self) -> Option<oneshot::Receiver<()>> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        thread.take()
    }

    pub(crate) fn stop(&self, reason: Stop) {
        // A second reason changes nothing.
        let _ = self.reason.set(reason);
        self.token().cancel();
    }
}
