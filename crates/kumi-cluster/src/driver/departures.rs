//! Which lives are over: a stream that jobs can be taken back on.
//!
//! It begins with the lives that are active, and then has one [`Departure`] for each of them and for each that comes
//! later. A watcher that is too slow gets the number of skipped events and begins again with what is active then: a life that it
//! knew and that is not there any more is gone or forgotten, which of the two it has to find out elsewhere.

use super::shared::MembershipRuntimeShared;
use crate::{Departure, NodeIdentity};
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Departures kept for the slowest watcher.
pub const DEPARTURE_BUFFER: usize = 4096;

/// What a watcher of lives gets.
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

/// A subscription to departures. Dropping it ends it.
#[derive(Debug)]
pub struct LifeWatch {
    shared: MembershipRuntimeShared,
    active: Option<Arc<[NodeIdentity]>>,
    receiver: broadcast::Receiver<Item>,
}

impl LifeWatch {
    pub(super) fn new(shared: MembershipRuntimeShared) -> Self {
        let (active, receiver) = shared.lives();
        Self {
            shared,
            active: Some(active),
            receiver,
        }
    }

    /// Waits for the next notice; `None` once the node has stopped. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<LifeNotice> {
        if let Some(active) = self.active.take() {
            return Some(LifeNotice::Active(active));
        }
        let skipped = match self.receiver.recv().await {
            Ok(Item::Departed(departure)) => return Some(LifeNotice::Departed(departure)),
            Err(RecvError::Closed) => return None,
            Ok(Item::Skipped(skipped)) | Err(RecvError::Lagged(skipped)) => skipped,
        };
        let (active, receiver) = self.shared.lives();
        self.active = Some(active);
        self.receiver = receiver;
        Some(LifeNotice::Skipped(skipped))
    }
}
