//! Watching a cluster: events as they happen, for as long as somebody listens.

use super::counters::Counters;
use crate::{ClusterEvent, MembershipSnapshot};
use std::sync::Arc;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Events kept for the slowest watcher. Who falls further behind is told how many it missed.
pub const WATCH_BUFFER: usize = 1024;

/// What a watcher gets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Something happened.
    Event(ClusterEvent),
    /// The watcher was too slow, and this many events are gone. What is true now is in
    /// [`members`](crate::MembershipRuntimeShared::members).
    Missed(u64),
}

/// A seat among the watchers. Dropping it gives it up.
#[derive(Debug)]
pub struct ClusterWatch {
    first: MembershipSnapshot,
    receiver: broadcast::Receiver<ClusterEvent>,
    counters: Arc<Counters>,
}

impl ClusterWatch {
    pub(super) fn new(
        first: MembershipSnapshot,
        receiver: broadcast::Receiver<ClusterEvent>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            first,
            receiver,
            counters,
        }
    }

    /// The members when the subscription began. No later change is missing from the events; one that was on its way
    /// may be in both.
    pub fn first(&self) -> &MembershipSnapshot {
        &self.first
    }

    /// Waits for the next notice; `None` once the node has stopped. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Notice> {
        match self.receiver.recv().await {
            Ok(event) => Some(Notice::Event(event)),
            Err(RecvError::Lagged(missed)) => {
                self.counters.watchers_lagged.increment();
                Some(Notice::Missed(missed))
            }
            Err(RecvError::Closed) => None,
        }
    }
}
