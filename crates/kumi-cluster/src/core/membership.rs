//! The membership of one node: a state machine that takes what arrived and the time, and returns what to do.
//!
//! Order of calls: [`MembershipRuntime::new`], then [`MembershipRuntime::start_member`] or
//! [`MembershipRuntime::start_client`], and from then on [`MembershipRuntime::handle_message`] for whatever arrives and
//! [`MembershipRuntime::poll`] after that and at [`MembershipRuntime::next_deadline`]. What a call has to
//! publish or to send is in the next outcome: that of the next poll, or of the next `handle_` call of a provider.
//!
//! It opens no socket, reads no clock, and draws random numbers only from the seed it was given: the same calls give the
//! same outcomes. One failure never drops the rest of a turn.

mod gossip;
mod join;
mod learn;
mod meeting;
mod names;
mod operator;
pub(crate) mod parts;
mod receive;
mod suspects;
mod waking;
mod watch;

use crate::core::base::error::{EnvelopeError, MembershipRuntimeError};
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::rng::ClusterRng;
use crate::core::base::status::NodeStatus;
use crate::core::base::time::TimerInstant;
use crate::core::protocol::config::MembershipRuntimeConfig;
use crate::core::protocol::event::{ClusterEvent, GoneCause, MembershipEvent};
use crate::core::protocol::topology::{TopologyEmitter, active_members, members_hash, table_hash};
use crate::core::state::quarantine::{QuarantineEntry, QuarantineTable};
use crate::core::state::snapshot::{MemberView, MembershipSnapshot};
use crate::core::state::table::{MembershipTable, Slot};
use crate::core::wire::codec::{Envelope, MAX_VERSION, MIN_VERSION, Message, Seen};
use crate::core::wire::transport::{Delivery, MessageKind};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use parts::addresses::Addresses;
use parts::claims::Claims;
use parts::clock::Now;
use parts::detection::Detection;
use parts::dissemination::Dissemination;
use parts::joining::Joining;
use parts::local_health::LocalHealth;
use parts::name_checks::NameChecks;
use parts::outbox::Outbox;
use parts::own::Own;
use parts::suspects::Suspects;
use parts::timeouts::StatusTimeouts;

pub use parts::outcome::{Footprint, MembershipMetrics, MembershipRuntimeOutcome};

/// Operators' orders are remembered for at least so long past their end: a machine that was put to sleep in between, and
/// has the order still, does not bring it back.
const MIN_ORDER_MEMORY: Duration = Duration::from_secs(3600);

/// The role of this node in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MembershipRuntimeState {
    /// It neither receives nor sends.
    Stopped,
    /// A member, or joining.
    Member,
    /// An observer: it follows the membership and is not a member.
    Client,
}

/// The identity and the metadata that a node starts with.
#[derive(Clone, Debug)]
pub struct LocalNode {
    /// The address at which other nodes reach it.
    pub authority: Authority,
    /// Its metadata.
    pub metadata: MemberMetadata,
    /// The wall clock at the moment of construction, in milliseconds since 1970. Uids are made of it, and compared with it
    /// where [meetings are required](MembershipRuntime::require_meeting).
    pub unix_ms: u64,
    /// The uid to continue under; `None` for a new one.
    pub uid: Option<NodeUid>,
}

/// The membership of one node.
///
/// ```
/// use core::time::Duration;
/// use kumi_cluster::core::{Authority, LocalNode, MemberMetadata, MembershipRuntime, MembershipRuntimeConfig, NodeStatus, TimerInstant};
///
/// let now = TimerInstant::ZERO;
/// let node = |name| LocalNode {
///     authority: Authority::new(name).expect("valid"),
///     metadata: MemberMetadata::EMPTY,
///     unix_ms: 1_700_000_000_000,
///     uid: None,
/// };
/// let mut first = MembershipRuntime::new(MembershipRuntimeConfig::local(), node("a:1"), 1, now)?;
/// let mut second = MembershipRuntime::new(MembershipRuntimeConfig::local(), node("b:1"), 2, now)?;
/// first.start_member(&[], now)?;
/// second.start_member(&[first.identity().authority], now)?;
///
/// // Hand over what each wants to send until both know each other.
/// for step in 0..20 {
///     let now = now + Duration::from_millis(step * 100);
///     for outbound in first.poll(now).gossip_outbound {
///         second.handle_message(&outbound.to, &outbound.bytes, now)?;
///     }
///     for outbound in second.poll(now).gossip_outbound {
///         first.handle_message(&outbound.to, &outbound.bytes, now)?;
///     }
/// }
/// assert_eq!(first.snapshot().members.len(), 2);
/// assert_eq!(first.topology_hash(), second.topology_hash());
/// assert_eq!(second.status(), Some(NodeStatus::Up));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MembershipRuntime {
    config: MembershipRuntimeConfig,
    state: MembershipRuntimeState,
    rng: ClusterRng,
    own: Own,
    claims: Claims,
    joining: Joining,
    name_checks: NameChecks,
    addresses: Addresses,
    local_health: LocalHealth,
    table: MembershipTable,
    timeouts: StatusTimeouts,
    quarantine: QuarantineTable,
    topology: TopologyEmitter,
    detection: Detection,
    suspects: Suspects,
    dissemination: Dissemination,
    outbox: Outbox,
}

impl MembershipRuntime {
    /// A runtime that is stopped. `seed` decides all its random choices.
    pub fn new(
        config: MembershipRuntimeConfig,
        node: LocalNode,
        seed: u64,
        now: TimerInstant,
    ) -> Result<Self, MembershipRuntimeError> {
        config.check()?;
        let mut rng = ClusterRng::new(seed);
        let uid = node
            .uid
            .unwrap_or_else(|| NodeUid::new(node.unix_ms, rng.word()));
        let identity = NodeIdentity {
            authority: node.authority,
            uid,
        };
        Ok(Self {
            state: MembershipRuntimeState::Stopped,
            rng,
            own: Own::new(identity, node.metadata, (node.unix_ms, now)),
            claims: Claims::default(),
            joining: Joining::default(),
            name_checks: NameChecks::default(),
            addresses: Addresses::new(config.max_address_book),
            local_health: LocalHealth::new(now),
            table: MembershipTable::new(config.max_members),
            timeouts: StatusTimeouts::default(),
            quarantine: QuarantineTable::new(
                config.max_members,
                config.dead_timeout.max(MIN_ORDER_MEMORY),
            ),
            topology: TopologyEmitter::new(config.topology_emit_interval),
            detection: Detection::new(config.phi()),
            suspects: Suspects::default(),
            dissemination: Dissemination::default(),
            outbox: Outbox::default(),
            config,
        })
    }

    /// The role of this node in the cluster.
    pub fn state(&self) -> MembershipRuntimeState {
        self.state
    }

    /// The current identity of this node; the uid changes when the node has to join again.
    pub fn identity(&self) -> NodeIdentity {
        self.own.identity().clone()
    }

    /// This node's own status as a member.
    pub fn status(&self) -> Option<NodeStatus> {
        (self.state == MembershipRuntimeState::Member).then_some(self.own.status())
    }

    /// This node's own incarnation.
    pub fn incarnation(&self) -> u64 {
        self.own.incarnation()
    }

    /// This node's own metadata.
    pub fn metadata(&self) -> &MemberMetadata {
        self.own.metadata()
    }

    /// The configuration it runs by.
    pub fn config(&self) -> &MembershipRuntimeConfig {
        &self.config
    }

    /// The active members, sorted by authority.
    pub fn snapshot(&self) -> MembershipSnapshot {
        let members = active_members(&self.table);
        MembershipSnapshot {
            version: self.table.version(),
            hash: members_hash(&members),
            members,
        }
    }

    /// All records, tombstones included, sorted by authority.
    pub fn members(&self) -> impl Iterator<Item = MemberView<'_>> {
        self.table.iter().map(|(slot, entry)| MemberView {
            record: &entry.record,
            heard_at: entry.heard_at,
            watched: self.detection.contains(slot),
        })
    }

    /// The membership table.
    pub fn table(&self) -> &MembershipTable {
        &self.table
    }

    /// The quarantines in force as of the last call.
    pub fn quarantine_snapshot(&self) -> Vec<QuarantineEntry> {
        self.quarantine.snapshot(self.local_health.now().raw)
    }

    /// The hash over the active members: equal on nodes that agree.
    pub fn topology_hash(&self) -> u64 {
        table_hash(&self.table)
    }

    /// The phi of a watched member.
    pub fn phi(&self, authority: &Authority) -> Option<f64> {
        self.detection.phi(authority, self.local_health.now())
    }

    /// The monitors of a member, as far as this node knows.
    pub fn monitors_of(&self, authority: &Authority) -> Vec<Authority> {
        let Some(slot) = self.table.slot_of(authority) else {
            return Vec::new();
        };
        self.authorities(&self.monitor_slots(slot))
    }

    /// The members that this node monitors.
    pub fn subjects(&self) -> Vec<Authority> {
        self.authorities(&self.detection.slots())
    }

    /// Counters since the start.
    pub fn metrics(&self) -> &MembershipMetrics {
        self.outbox.metrics()
    }

    /// The sizes of its maps and queues.
    pub fn footprint(&self) -> Footprint {
        Footprint {
            records: self.table.len(),
            rumors: self.dissemination.len(),
            timeouts: self.timeouts.len(),
            watches: self.detection.len(),
            suspects: self.suspects.len(),
            relays: self.detection.relays_len(),
            quarantines: self.quarantine.len(),
            addresses: self.addresses.former_len(),
            named: self.addresses.named_len(),
            name_checks: self.name_checks.len(),
            reports: self.outbox.reports_len(),
            pending: self.outbox.len(),
        }
    }

    /// Stops at once, without a message, as if the process had ended. What is queued is in the next outcome.
    pub fn stop(&mut self) -> Result<(), MembershipRuntimeError> {
        if self.state == MembershipRuntimeState::Stopped {
            return Err(MembershipRuntimeError::NotStarted);
        }
        self.enter_stopped();
        Ok(())
    }

    /// Takes in what arrived from `from`. An error means that nothing of it was applied; it is counted, and a peer of
    /// another cluster or version, or with a false sender, is reported once. Senders are compared with `from`, and their
    /// uids with the clock, only where [meetings are required](Self::require_meeting).
    pub fn handle_message(
        &mut self,
        from: &Authority,
        bytes: &[u8],
        now: TimerInstant,
    ) -> Result<(), EnvelopeError> {
        if self.state == MembershipRuntimeState::Stopped {
            return Err(EnvelopeError::NotStarted);
        }
        let now = self.advance(now);
        let taken = self
            .open(from, bytes, now)
            .map(|envelope| self.receive(envelope, now));
        match taken {
            Ok(()) => self.outbox.metrics_mut().received += 1,
            Err(error) => {
                self.outbox.metrics_mut().refused += 1;
                self.report_refused(from, error, now);
            }
        }
        taken
    }

    /// Runs the timers that are due at `now`, and returns what was queued since the last poll.
    pub fn poll(&mut self, now: TimerInstant) -> MembershipRuntimeOutcome {
        if self.state != MembershipRuntimeState::Stopped {
            let now = self.advance(now);
            self.poll_quarantine(now);
            self.poll_timeouts(now);
            self.poll_claim(now);
            self.poll_join(now);
            self.poll_names(now);
            self.poll_watches(now);
            self.poll_heartbeat(now);
            self.poll_push(now);
            self.poll_push_pull(now);
            self.poll_leave(now);
            self.poll_topology(now);
        }
        self.gathered()
    }

    /// Returns what is queued.
    fn gathered(&mut self) -> MembershipRuntimeOutcome {
        self.outbox.take()
    }

    /// When [`MembershipRuntime::poll`] is wanted next, on the driver's clock; `None` when stopped and empty. Not later
    /// than the last call when something waits to be handed out.
    pub fn next_deadline(&self) -> Option<TimerInstant> {
        if !self.outbox.is_empty() {
            return Some(self.local_health.now().raw);
        }
        if self.state == MembershipRuntimeState::Stopped {
            return None;
        }
        let own = self.due().map(|due| self.local_health.to_raw(due));
        [own, self.quarantine.next_expiry()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The earliest deadline in the runtime's own time.
    fn due(&self) -> Option<TimerInstant> {
        let deadlines = [
            self.detection.deadline(),
            self.dissemination.push_at(),
            self.dissemination.push_pull_at(),
            self.joining.deadline(),
            self.name_checks.deadline(),
            self.own.leave_ends(),
            self.claims.deadline(),
            self.timeouts.next(),
            self.topology.deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    /// Every call starts here: the clock moves, lateness shifts the deadlines, and a node that was cut off for too long
    /// takes a new uid before it sends or receives anything.
    fn advance(&mut self, raw: TimerInstant) -> Now {
        let due = self.due();
        let (now, late) = self.local_health.advance(raw, due);
        if let Some(late) = late {
            self.outbox.metrics_mut().late += 1;
            self.outbox.note(MembershipEvent::Late {
                late_us: crate::core::base::time::micros(late),
            });
            self.look_for_suspension(late, now);
        }
        let multiplier = self.local_health.multiplier();
        self.detection.set_health_multiplier(multiplier);
        self.renew_if_isolated(now);
        now
    }

    fn poll_quarantine(&mut self, now: Now) {
        for entry in self.quarantine.poll_expired(now.raw) {
            self.outbox
                .quarantine_event(ClusterEvent::QuarantineReleased {
                    authority: entry.authority,
                    observed_at: now.raw,
                });
        }
    }

    fn poll_topology(&mut self, now: Now) {
        let Self {
            topology,
            table,
            quarantine,
            ..
        } = self;
        let blocked = || {
            let entries = quarantine.snapshot(now.raw);
            // The detector blocks one life; a later life of the same authority is not kept out.
            let is_blocked = |entry: &QuarantineEntry| {
                let current = table.record(&entry.authority).map(|record| record.uid);
                entry
                    .uid
                    .is_none_or(|uid| current.is_none_or(|current| current <= uid))
            };
            entries
                .into_iter()
                .filter(is_blocked)
                .map(|entry| entry.authority)
                .collect::<Vec<_>>()
                .into()
        };
        let was_open = topology.deadline().is_some();
        let event = topology.poll(table, blocked, now.own, now.raw);
        if was_open && event.is_none() && topology.deadline().is_none() {
            self.outbox.metrics_mut().cancelled_windows += 1;
        }
        if let Some(event) = event {
            self.outbox.topology_event(event);
        }
    }

    fn open(&self, from: &Authority, bytes: &[u8], now: Now) -> Result<Envelope, EnvelopeError> {
        let envelope = Envelope::decode(bytes)?;
        if envelope.cluster != self.config.cluster_name {
            return Err(EnvelopeError::WrongCluster);
        }
        if envelope.sender == *self.own.identity() {
            return Err(EnvelopeError::OwnIdentity);
        }
        // No node passes on messages of others, so an honest sender is always the peer itself.
        if self.claims.requires_meeting() && envelope.sender.authority != *from {
            return Err(EnvelopeError::SenderMismatch);
        }
        if self.is_ahead(envelope.sender.uid, now) {
            return Err(EnvelopeError::SenderAhead);
        }
        Ok(envelope)
    }

    fn report_refused(&mut self, from: &Authority, error: EnvelopeError, now: Now) {
        let foreign = matches!(
            error,
            EnvelopeError::WrongCluster
                | EnvelopeError::Version { .. }
                | EnvelopeError::SenderMismatch
                | EnvelopeError::SenderAhead
        );
        if foreign && self.outbox.reports_refusal(from) {
            self.outbox.member_event(ClusterEvent::PeerRefused {
                authority: from.clone(),
                reason: error,
                observed_at: now.raw,
            });
        }
    }

    /// Queues a message.
    fn send(&mut self, to: &Authority, message: Message, delivery: Delivery) {
        let kind = message.kind();
        let bytes = self.seal(message);
        self.outbox.send(to, bytes, delivery, kind);
    }

    fn seal(&self, message: Message) -> Arc<[u8]> {
        let envelope = Envelope {
            cluster: self.config.cluster_name.clone(),
            versions: (MIN_VERSION, MAX_VERSION),
            sender: self.own.identity().clone(),
            message,
        };
        envelope.encode().into()
    }

    /// Queues the departure of a uid that is no longer active; without a cause it was forgotten. Its record, which has its
    /// name, must still be in the table.
    fn departed(&mut self, identity: NodeIdentity, cause: Option<GoneCause>, now: Now) {
        let record = self.table.record(&identity.authority);
        let name = match record.filter(|record| record.uid == identity.uid) {
            Some(record) => record.metadata.name(),
            None if identity.authority == *self.own.authority() => self.own.metadata().name(),
            None => None,
        };
        self.outbox.departed(name, identity, cause, now);
    }

    fn seen(&self) -> Seen {
        Seen {
            version: self.table.version(),
            digest: self.table.digest(),
        }
    }

    fn authorities(&self, slots: &[Slot]) -> Vec<Authority> {
        let entries = slots.iter().filter_map(|&slot| self.table.entry(slot));
        entries
            .map(|entry| entry.record.authority.clone())
            .collect()
    }

    fn own_slot(&self) -> Option<Slot> {
        self.table.slot_of(self.own.authority())
    }

    /// Sets the state to stopped and clears all timers, so that nothing more is sent.
    fn enter_stopped(&mut self) {
        self.state = MembershipRuntimeState::Stopped;
        self.detection.stop();
        self.dissemination.stop();
        self.joining.end();
        self.name_checks.clear();
        self.own.set_leave_ends(None);
        self.claims.take();
    }
}

impl Message {
    fn kind(&self) -> MessageKind {
        match self {
            Self::Heartbeat { .. } => MessageKind::Heartbeat,
            Self::HeartbeatAck { .. } => MessageKind::HeartbeatAck,
            Self::Probe { .. }
            | Self::ProbeAck { .. }
            | Self::ProbeRequest { .. }
            | Self::ProbeReply { .. } => MessageKind::Probe,
            Self::Push { .. } => MessageKind::Push,
            Self::PullRequest { .. } | Self::PullReply { .. } => MessageKind::PushPull,
            Self::Join { .. } | Self::Welcome { .. } | Self::JoinRefused { .. } => {
                MessageKind::Join
            }
            Self::Verdict { .. } => MessageKind::Verdict,
        }
    }
}

#[cfg(test)]
mod tests;
