//! The events of one name, apart from all others.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::Handle;
use crate::core::Lane;
use crate::error::NetworkError;
use crate::wire::ProtocolMessage;

/// Receives the events of one name. Credit goes back as they are taken; dropped, what it has not taken goes back to the
/// channel's `recv`.
#[derive(Debug)]
pub struct EventReceiver {
    handle: Arc<Handle>,
    lane: Lane,
    /// Its number among those who wait.
    waiting: Option<u64>,
}

impl EventReceiver {
    pub(super) fn new(handle: Arc<Handle>, method: &str) -> Self {
        let lane = handle.engine.core().add_lane(method);
        let waiting = None;
        Self {
            handle,
            lane,
            waiting,
        }
    }

    /// The next event, or the note that the channel resumed. Dropping the future loses none.
    ///
    /// # Errors
    /// When the channel ended, after all events that came before.
    pub async fn recv(&mut self) -> Result<ProtocolMessage, NetworkError> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// As [`recv`](Self::recv), for streams.
    pub fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ProtocolMessage, NetworkError>> {
        self.handle
            .engine
            .poll_event(self.lane, &mut self.waiting, cx)
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let lane = self.lane;
        self.handle
            .engine
            .step_here(|core, effects| core.remove_lane(lane, effects));
    }
}
