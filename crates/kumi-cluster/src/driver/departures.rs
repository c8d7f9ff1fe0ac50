//! The stream of departures: uids that are no longer active, so that their jobs can be released.
//!
//! It begins with the lives that are active, and then has one [`Departure`] for each of them and for each that comes
//! later. A watcher that is too slow gets the number of skipped events and begins again with what is active then: a life that it
//! knew and that is not there any more is gone or forgotten, which of the two it has to find out elsewhere.

use super::shared::MembershipRuntimeShared;
use crate::core::{Departure, NodeIdentity};
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use futures_util::Stream;
use kumi_unison::driver::{Lagged, Subscription};
use std::sync::Arc;

/// Departures kept for the slowest watcher.
pub const DEPARTURE_BUFFER: usize = 4096;

/// An item of the stream of departures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LifeNotice {
    /// The lives that are active now, sorted; the first notice, and the one after each [`LifeNotice::Skipped`].
    Active(Arc<[NodeIdentity]>),
    /// A life is active no more.
    Departed(Departure),
    /// This many departures are missing here. What is active follows.
    Skipped(u64),
}

/// What travels to the watchers.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Departed(Departure),
    /// The core had no room for as many.
    Skipped(u64),
}

/// A subscription to departures, also as a [`Stream`]. Dropping it ends it.
#[derive(Debug)]
pub struct LifeWatch {
    shared: MembershipRuntimeShared,
    active: Option<Arc<[NodeIdentity]>>,
    departures: Subscription<Item>,
}

impl LifeWatch {
    pub(super) fn new(shared: MembershipRuntimeShared) -> Self {
        let (active, departures) = shared.lives();
        Self {
            shared,
            active: Some(active),
            departures,
        }
    }

    /// Waits for the next notice; `None` once the node has stopped. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<LifeNotice> {
        poll_fn(|cx| self.poll_notice(cx)).await
    }

    fn poll_notice(&mut self, cx: &mut Context<'_>) -> Poll<Option<LifeNotice>> {
        if let Some(active) = self.active.take() {
            return Poll::Ready(Some(LifeNotice::Active(active)));
        }
        let Poll::Ready(next) = self.departures.poll_recv(cx) else {
            return Poll::Pending;
        };
        let skipped = match next {
            Some(Ok(Item::Departed(departure))) => {
                return Poll::Ready(Some(LifeNotice::Departed(departure)));
            }
            None => return Poll::Ready(None),
            Some(Ok(Item::Skipped(skipped)) | Err(Lagged(skipped))) => skipped,
        };
        let (active, departures) = self.shared.lives();
        self.active = Some(active);
        self.departures = departures;
        Poll::Ready(Some(LifeNotice::Skipped(skipped)))
    }
}

impl Stream for LifeWatch {
    type Item = LifeNotice;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<LifeNotice>> {
        self.get_mut().poll_notice(cx)
    }
}
