//! The events of one name, apart from all others.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::Stream;

use super::Handle;
use crate::core::Lane;
use crate::error::NetworkError;
use crate::wire::ProtocolMessage;

/// Receives the events of one name, also as a [`Stream`]. Credit goes back as they are taken; dropped, what it has not taken goes back to the
/// channel's `recv`.
#[derive(Debug)]
pub struct EventReceiver {
    handle: Arc<Handle>,
    lane: Lane,
    /// Its number among the waiting tasks.
    waiting: Option<u64>,
    /// The stream has ended.
    ended: bool,
}

impl EventReceiver {
    pub(super) fn new(handle: Arc<Handle>, method: &str) -> Self {
        let lane = handle.driver.core().add_lane(method);
        Self {
            handle,
            lane,
            waiting: None,
            ended: false,
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
            .driver
            .poll_event(self.lane, &mut self.waiting, cx)
    }
}

/// Ends with the channel, after the error that says how it ended, unless it was closed.
impl Stream for EventReceiver {
    type Item = Result<ProtocolMessage, NetworkError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let receiver = self.get_mut();
        if receiver.ended {
            return Poll::Ready(None);
        }
        receiver.poll_recv(cx).map(|received| match received {
            Ok(event) => Some(Ok(event)),
            Err(error) => {
                receiver.ended = true;
                (!matches!(error, NetworkError::Closed { .. })).then_some(Err(error))
            }
        })
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        let lane = self.lane;
        self.handle
            .driver
            .step_here(|core, effects| core.remove_lane(lane, effects));
    }
}
