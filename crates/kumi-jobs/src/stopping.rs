//! How a run is stopped: between its worker, which stops it, and its context, by which the handler sees that.

use crate::core::worker::Stop;
use std::sync::OnceLock;
use tokio_util::sync::CancellationToken;

/// Cancels a run. Most runs never ask for it, so the token is made when it is first needed.
#[derive(Default)]
pub(crate) struct Stopping {
    token: OnceLock<CancellationToken>,
    /// The first reason counts.
    reason: OnceLock<Stop>,
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

    pub(crate) fn stop(&self, reason: Stop) {
        // A second reason changes nothing.
        let _ = self.reason.set(reason);
        self.token().cancel();
    }
}
