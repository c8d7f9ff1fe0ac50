//! The outcome of a turn of the runtime, its counters, and the sizes of its queues.

use crate::core::base::identity::NodeUid;
use crate::core::protocol::event::{ClusterEvent, Departure, MembershipEvent};
use crate::core::wire::transport::{GossipOutbound, MessageKind};
use alloc::vec::Vec;

/// The outcome of a turn, in the order in which it is published and sent: quarantines, members, topology, messages. The
/// fields are independent: when publishing or sending one of them fails, the rest is still published and sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "nothing in it is handed out again"]
#[non_exhaustive]
pub struct MembershipRuntimeOutcome {
    /// Quarantines imposed or released, and joins refused because of one.
    pub quarantine_events: Vec<ClusterEvent>,
    /// Changes of members and of this node itself.
    pub member_events: Vec<ClusterEvent>,
    /// Lives that ended, and lives that were forgotten, in the order of their status events.
    pub departures: Vec<Departure>,
    /// Departures that were dropped because too many were queued. The caller has to look up what is active now.
    pub departures_skipped: u64,
    /// The topology, when its window has closed on a difference.
    pub topology_event: Option<ClusterEvent>,
    /// What is to be sent.
    pub gossip_outbound: Vec<GossipOutbound>,
    /// Notes for this node's own log.
    pub membership_events: Vec<MembershipEvent>,
    /// Other nodes report this later life of this node's own authority. The driver connects to that authority and calls
    /// [`MembershipRuntime::met`](crate::core::MembershipRuntime::met) with the peer it finds, or
    /// [`MembershipRuntime::not_met`](crate::core::MembershipRuntime::not_met).
    pub meet: Option<NodeUid>,
}

impl MembershipRuntimeOutcome {
    /// The events in the order in which they are published.
    pub fn into_events(self) -> impl Iterator<Item = ClusterEvent> {
        let events = self.quarantine_events.into_iter().chain(self.member_events);
        events.chain(self.topology_event)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.quarantine_events.is_empty()
            && self.member_events.is_empty()
            && self.departures.is_empty()
            && self.topology_event.is_none()
            && self.gossip_outbound.is_empty()
            && self.membership_events.is_empty()
            && self.meet.is_none()
    }
}

/// Counters since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MembershipMetrics {
    /// Messages queued for sending, by kind.
    pub sent: [u64; MessageKind::ALL.len()],
    /// Their bytes, by kind, without what a transport adds.
    pub sent_bytes: [u64; MessageKind::ALL.len()],
    /// Messages taken in.
    pub received: u64,
    /// Messages refused.
    pub refused: u64,
    /// Times this node began to suspect a member.
    pub accusations: u64,
    /// Times it withdrew its accusation because it received from the member again.
    pub withdrawals: u64,
    /// Times it refuted a suspicion.
    pub refutations: u64,
    /// Members that it declared dead itself.
    pub convictions: u64,
    /// Transitions of status that were not allowed.
    pub invalid_transitions: u64,
    /// Whole tables sent, to joiners and to observers.
    pub snapshots: u64,
    /// Of these, how many because an observer's bookmark did not fit.
    pub gaps: u64,
    /// Windows of the topology that closed without a difference.
    pub cancelled_windows: u64,
    /// Times it took a new uid because it had received nothing for too long.
    pub isolations: u64,
    /// Times it took a new uid because the others held its life to be dead or replaced.
    pub rebirths: u64,
    /// Times it was late.
    pub late: u64,
    /// Of these, how often it had been suspended.
    pub suspensions: u64,
    /// Messages and events dropped because they were not polled.
    pub dropped: u64,
}

impl MembershipMetrics {
    /// Messages of one kind.
    pub fn sent_of(&self, kind: MessageKind) -> u64 {
        self.sent[kind as usize]
    }

    /// Bytes of one kind.
    pub fn sent_bytes_of(&self, kind: MessageKind) -> u64 {
        self.sent_bytes[kind as usize]
    }
}

/// How much a runtime holds: every map and queue that can grow, for watching its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// Records, tombstones included.
    pub records: usize,
    /// Updates queued for gossip.
    pub rumors: usize,
    /// Timers of single members.
    pub timeouts: usize,
    /// Members watched.
    pub watches: usize,
    /// Suspects.
    pub suspects: usize,
    /// Probes made for others.
    pub relays: usize,
    /// Quarantines, orders past their end included.
    pub quarantines: usize,
    /// Remembered addresses.
    pub addresses: usize,
    /// Members that the caller of a static cluster has named.
    pub named: usize,
    /// Names that are being checked for joiners.
    pub name_checks: usize,
    /// Peers whose refusal was reported, and possible conflicts of authorities.
    pub reports: usize,
    /// Messages and events waiting for a poll.
    pub pending: usize,
}
