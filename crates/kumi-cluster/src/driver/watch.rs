//! Watching a cluster: events as they happen, for as long as the watch exists.

use super::counters::Counters;
use crate::core::{ClusterEvent, MembershipSnapshot};
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll};
use futures_util::Stream;
use kumi_unison::driver::Subscription;
use std::sync::Arc;

/// Events kept for the slowest watcher. A watcher that falls further behind gets the number of events that it missed.
pub const WATCH_BUFFER: usize = 1024;

/// What a watcher gets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// Something happened.
    Event(ClusterEvent),
    /// The watcher was too slow, and this many events are gone. What is true now is in
    /// [`members`](crate::driver::MembershipRuntimeShared::members).
    Missed(u64),
}

/// A subscription to the events of a cluster, also as a [`Stream`]. Dropping it ends it.
#[derive(Debug)]
pub struct ClusterWatch {
    first: MembershipSnapshot,
    events: Subscription<ClusterEvent>,
    counters: Arc<Counters>,
}

impl ClusterWatch {
    pub(super) fn new(
        first: MembershipSnapshot,
        events: Subscription<ClusterEvent>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            first,
            events,
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
        poll_fn(|cx| self.poll_notice(cx)).await
    }

    fn poll_notice(&mut self, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        self.events.poll_recv(cx).map(|next| {
            next.map(|event| match event {
                Ok(event) => Notice::Event(event),
                Err(lagged) => {
                    self.counters.watchers_lagged.increment();
                    Notice::Missed(lagged.0)
                }
            })
        })
    }
}

impl Stream for ClusterWatch {
    type Item = Notice;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notice>> {
        self.get_mut().poll_notice(cx)
    }
}
