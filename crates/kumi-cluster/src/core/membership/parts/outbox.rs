//! What the next outcome has: messages, events and departures, each in a bounded queue, and the counters.

use super::clock::Now;
use super::outcome::{MembershipMetrics, MembershipRuntimeOutcome};
use super::reports::Reports;
use crate::core::base::error::MembershipError;
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::protocol::event::{ClusterEvent, Departure, GoneCause, MembershipEvent};
use crate::core::wire::transport::{Delivery, GossipOutbound, MAX_DATAGRAM_BYTES, MessageKind};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use kumi_common::Name as NodeName;

/// The most messages that wait for a poll. With more than that, the driver does not poll.
const MAX_OUTBOX: usize = 16_384;
/// The most events that wait for a poll.
pub(crate) const MAX_EVENTS: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pending: MembershipRuntimeOutcome,
    metrics: MembershipMetrics,
    reports: Reports,
}

impl Outbox {
    /// Hands out what is queued.
    pub(crate) fn take(&mut self) -> MembershipRuntimeOutcome {
        core::mem::take(&mut self.pending)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// How many messages, events and departures wait.
    pub(crate) fn len(&self) -> usize {
        let pending = &self.pending;
        pending.quarantine_events.len()
            + pending.member_events.len()
            + pending.departures.len()
            + pending.gossip_outbound.len()
            + pending.membership_events.len()
    }

    pub(crate) fn metrics(&self) -> &MembershipMetrics {
        &self.metrics
    }

    /// The counters, for a caller that counts.
    pub(crate) fn metrics_mut(&mut self) -> &mut MembershipMetrics {
        &mut self.metrics
    }

    /// Queues an encoded message.
    pub(crate) fn send(
        &mut self,
        to: &Authority,
        bytes: Arc<[u8]>,
        delivery: Delivery,
        kind: MessageKind,
    ) {
        if self.pending.gossip_outbound.len() >= MAX_OUTBOX {
            self.metrics.dropped += 1;
            return;
        }
        // Long names and large metadata may not fit a datagram; such a message is sent on the reliable channel.
        let delivery = if bytes.len() > MAX_DATAGRAM_BYTES {
            Delivery::Reliable
        } else {
            delivery
        };
        self.metrics.sent[kind as usize] += 1;
        self.metrics.sent_bytes[kind as usize] += bytes.len() as u64;
        self.pending.gossip_outbound.push(GossipOutbound {
            to: to.clone(),
            bytes,
            delivery,
            kind,
        });
    }

    /// Drops the queued messages: they are of a uid or a view that has ended.
    pub(crate) fn drop_messages(&mut self) {
        self.pending.gossip_outbound.clear();
    }

    pub(crate) fn member_event(&mut self, event: ClusterEvent) {
        let queue = &mut self.pending.member_events;
        push_bounded(queue, event, &mut self.metrics.dropped);
    }

    pub(crate) fn quarantine_event(&mut self, event: ClusterEvent) {
        let queue = &mut self.pending.quarantine_events;
        push_bounded(queue, event, &mut self.metrics.dropped);
    }

    /// Replaces the topology event of the next outcome.
    pub(crate) fn topology_event(&mut self, event: ClusterEvent) {
        self.pending.topology_event = Some(event);
    }

    pub(crate) fn note(&mut self, event: MembershipEvent) {
        let queue = &mut self.pending.membership_events;
        push_bounded(queue, event, &mut self.metrics.dropped);
    }

    /// Notes what was refused.
    pub(crate) fn refuse(&mut self, error: MembershipError) {
        if matches!(error, MembershipError::InvalidTransition { .. }) {
            self.metrics.invalid_transitions += 1;
        }
        self.note(MembershipEvent::Refused { error });
    }

    /// Queues the departure of a life; without a cause it was forgotten.
    pub(crate) fn departed(
        &mut self,
        name: Option<NodeName>,
        identity: NodeIdentity,
        cause: Option<GoneCause>,
        now: Now,
    ) {
        if identity.uid == NodeUid::UNKNOWN {
            // Only a placeholder of a static cluster.
            return;
        }
        let observed_at = now.raw;
        let departure = match cause {
            Some(cause) => Departure::Gone {
                identity,
                name,
                cause,
                observed_at,
            },
            None => Departure::Forgotten {
                identity,
                name,
                observed_at,
            },
        };
        let pending = &mut self.pending;
        push_bounded(
            &mut pending.departures,
            departure,
            &mut pending.departures_skipped,
        );
    }

    /// Asks the driver to look for a later life of this node's authority.
    pub(crate) fn ask_to_meet(&mut self, uid: NodeUid) {
        self.pending.meet = Some(uid);
    }

    /// Messages of a peer are refused; whether that has to be reported, which is so once per peer.
    pub(crate) fn reports_refusal(&mut self, peer: &Authority) -> bool {
        self.reports.refused(peer)
    }

    /// A message of an earlier life came while the later one sends messages too; whether that has to be reported.
    pub(crate) fn reports_conflict(
        &mut self,
        authority: &Authority,
        other: NodeUid,
        pause: Duration,
        now: Now,
    ) -> bool {
        self.reports.conflict(authority, other, pause, now)
    }

    pub(crate) fn forget_conflict(&mut self, authority: &Authority) {
        self.reports.forget_conflict(authority);
    }

    pub(crate) fn clear_conflicts(&mut self) {
        self.reports.clear_conflicts();
    }

    pub(crate) fn reports_len(&self) -> usize {
        self.reports.len()
    }
}

fn push_bounded<T>(queue: &mut Vec<T>, item: T, dropped: &mut u64) {
    if queue.len() < MAX_EVENTS {
        queue.push(item);
    } else {
        *dropped += 1;
    }
}
