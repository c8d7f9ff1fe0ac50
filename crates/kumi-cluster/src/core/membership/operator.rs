//! Calls from this node's own side: a provider that knows of members, an operator, and changed metadata.

use super::learn::ended;
use super::parts::clock::Now;
use super::parts::detection::Sign;
use super::{MembershipRuntime, MembershipRuntimeOutcome, MembershipRuntimeState};
use crate::core::base::error::MembershipError;
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::reason::ReasonText;
use crate::core::base::status::NodeStatus;
use crate::core::base::time::{TimerInstant, millis};
use crate::core::protocol::event::ClusterEvent;
use crate::core::state::quarantine::{OrderTaken, QuarantineRumor};
use crate::core::state::record::MemberRecord;
use crate::core::state::snapshot::MembershipDelta;
use crate::core::wire::codec::Message;
use crate::core::wire::transport::Delivery;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

/// The last message of a node is not repeated, so it is sent to so many times as many peers as other updates.
const LAST_MESSAGE_FANOUTS: usize = 3;

impl MembershipRuntime {
    /// Adds a member on behalf of a provider, and returns what is queued. In a static cluster it is Up at once, and its uid
    /// may be [`NodeUid::UNKNOWN`] until a message of it arrives.
    ///
    /// When the member is refused, what is queued stays for the next outcome; a quarantined one adds a `MemberQuarantined`.
    pub fn handle_join(
        &mut self,
        node_id: NodeUid,
        authority: Authority,
        now: TimerInstant,
    ) -> Result<MembershipRuntimeOutcome, MembershipError> {
        self.handle_join_with(node_id, authority, MemberMetadata::EMPTY, now)
    }

    /// The same for a member whose metadata the provider knows.
    pub fn handle_join_with(
        &mut self,
        node_id: NodeUid,
        authority: Authority,
        metadata: MemberMetadata,
        now: TimerInstant,
    ) -> Result<MembershipRuntimeOutcome, MembershipError> {
        self.require_member()?;
        let now = self.advance(now);
        let uid = node_id;
        self.take_in(NodeIdentity { authority, uid }, metadata, now)?;
        Ok(self.gathered())
    }

    fn take_in(
        &mut self,
        identity: NodeIdentity,
        metadata: MemberMetadata,
        now: Now,
    ) -> Result<(), MembershipError> {
        self.admit(&identity, now)?;
        let authority = identity.authority.clone();
        if self.is_ahead(identity.uid, now) {
            let uid = identity.uid;
            return Err(MembershipError::UidAhead { authority, uid });
        }
        if let Some(known) = self.table.record(&authority) {
            if !self.config.gossip_enabled && identity.uid == NodeUid::UNKNOWN {
                // The life is that of the next message from it.
                self.addresses.name(authority);
                return Ok(());
            }
            if known.uid > identity.uid {
                return Err(MembershipError::Superseded {
                    authority,
                    current: known.uid,
                });
            }
            if known.uid == identity.uid && known.status.is_terminal() {
                let (from, to) = (known.status, NodeStatus::Joining);
                return Err(MembershipError::InvalidTransition {
                    authority,
                    from,
                    to,
                });
            }
        } else if self.saw_end_of(&authority, identity.uid) {
            let (from, to) = (NodeStatus::Removed, NodeStatus::Joining);
            return Err(MembershipError::InvalidTransition {
                authority,
                from,
                to,
            });
        } else if self.table.len() >= self.config.max_members {
            return Err(MembershipError::TableFull {
                limit: self.config.max_members,
            });
        }
        let status = if self.config.gossip_enabled {
            NodeStatus::Joining
        } else {
            // The record stays while the name does, so there are no more of them than there may be records.
            self.addresses.name(authority);
            NodeStatus::Up
        };
        self.learn(&MemberRecord::new(identity, status, metadata), now);
        Ok(())
    }

    /// Makes a member leave, and returns what is queued: the member receives its own record as Leaving, and leaves. For this
    /// node itself it is [`Self::leave`]. A member that [requires meetings](Self::require_meeting) does not leave because of a record: its
    /// present life ends, and it goes on under another uid. Call [`Self::leave`] on that member instead.
    pub fn handle_leave(
        &mut self,
        authority: &Authority,
        now: TimerInstant,
    ) -> Result<MembershipRuntimeOutcome, MembershipError> {
        self.require_member()?;
        if authority == self.own.authority() {
            self.leave(now)?;
            return Ok(self.gathered());
        }
        let now = self.advance(now);
        self.addresses.unname(authority);
        let record = self
            .table
            .record(authority)
            .filter(|record| record.status != NodeStatus::Removed);
        let Some(record) = record else {
            return Err(MembershipError::UnknownMember {
                authority: authority.clone(),
            });
        };
        if !record.status.may_become(NodeStatus::Leaving) {
            let error = MembershipError::InvalidTransition {
                authority: authority.clone(),
                from: record.status,
                to: NodeStatus::Leaving,
            };
            self.outbox.refuse(error.clone());
            return Err(error);
        }
        let record = ended(record, NodeStatus::Leaving);
        self.apply(&record, now);
        Ok(self.gathered())
    }

    /// A provider reports that a member is alive; returns what is queued. It counts as a heartbeat of that member, and as a
    /// message that this node received.
    pub fn handle_heartbeat(
        &mut self,
        authority: &Authority,
        now: TimerInstant,
    ) -> Result<MembershipRuntimeOutcome, MembershipError> {
        self.require_member()?;
        let now = self.advance(now);
        let active = self.is_active(authority) && authority != self.own.authority();
        if !active {
            return Err(MembershipError::UnknownMember {
                authority: authority.clone(),
            });
        }
        self.seen_alive(authority, Sign::Reported, now);
        Ok(self.gathered())
    }

    /// Merges a peer's delta, and returns what is queued. This is for a provider that reads deltas itself; envelopes go to
    /// [`Self::handle_message`], which also knows the uid of the peer.
    ///
    /// Records that cannot be applied are noted, the others are applied. A client may call this too.
    pub fn handle_gossip_delta(
        &mut self,
        peer: &Authority,
        mut delta: MembershipDelta,
        now: TimerInstant,
    ) -> Result<MembershipRuntimeOutcome, MembershipError> {
        if self.state == MembershipRuntimeState::Stopped {
            return Err(MembershipError::NotStarted);
        }
        let now = self.advance(now);
        for record in &mut delta.records {
            // Decoded records are canonical; those of a caller may not be.
            record.make_canonical();
        }
        self.learn_all(&delta, now);
        self.seen_alive(peer, Sign::Message, now);
        Ok(self.gathered())
    }

    /// A provider reports that this authority is alive, in the life that the table has.
    fn seen_alive(&mut self, authority: &Authority, sign: Sign, now: Now) {
        if authority == self.own.authority() {
            return;
        }
        self.local_health.heard(now);
        let slot = self.table.slot_of(authority);
        let Some(slot) = slot.filter(|_| self.is_active(authority)) else {
            return;
        };
        if let Some(entry) = self.table.entry_mut(slot) {
            entry.heard_at = Some(now.raw);
        }
        self.heard_subject(slot, sign, now);
    }

    /// Quarantines an authority in the whole cluster, with all its uids, and ends its current life. The text is escaped and
    /// cut to a limit.
    pub fn quarantine(
        &mut self,
        authority: &Authority,
        text: &str,
        ttl: Duration,
        now: TimerInstant,
    ) -> Result<(), MembershipError> {
        self.order(authority, ReasonText::escaped(text), ttl, now)
    }

    /// Lifts an operator's quarantine everywhere.
    pub fn release(
        &mut self,
        authority: &Authority,
        now: TimerInstant,
    ) -> Result<(), MembershipError> {
        self.order(authority, ReasonText::default(), Duration::ZERO, now)
    }

    /// Sends orders to one node, which need not be a member.
    pub(super) fn tell_orders(&mut self, to: &Authority, quarantines: Vec<QuarantineRumor>) {
        let version = self.table.version();
        let message = Message::Push {
            seen: self.seen(),
            delta: MembershipDelta {
                from_version: version,
                to_version: version,
                records: Vec::new(),
                quarantines,
            },
        };
        self.send(to, message, Delivery::Reliable);
    }

    fn order(
        &mut self,
        authority: &Authority,
        text: ReasonText,
        ttl: Duration,
        now: TimerInstant,
    ) -> Result<(), MembershipError> {
        self.require_member()?;
        let now = self.advance(now);
        let known = self.quarantine.version_of(authority);
        // Versions are made like uids, so that orders of two operators are told apart and the later one wins.
        let version = NodeUid::new(self.own.unix_ms(now), self.rng.word()).raw();
        let rumor = QuarantineRumor {
            authority: authority.clone(),
            version: version.max(known.saturating_add(1)),
            remaining_ms: millis(ttl),
            remember_ms: millis(ttl.saturating_add(self.quarantine.memory())),
            text,
        };
        if authority == self.own.authority() && !ttl.is_zero() {
            self.announce_own_end(NodeStatus::Dead, Some(&rumor));
        }
        if self.learn_order(&rumor, now) == OrderTaken::Full {
            return Err(MembershipError::TableFull {
                limit: self.config.max_members,
            });
        }
        if authority != self.own.authority() {
            // A quarantined node is no member, so gossip does not reach it.
            let order = self.quarantine.rumor(authority, now.raw);
            self.tell_orders(authority, order.into_iter().collect());
        }
        Ok(())
    }

    /// Sends the others the end of this node's life, and the order behind it if there is one. Afterwards this node is no member
    /// and does not gossip.
    pub(super) fn announce_own_end(&mut self, status: NodeStatus, order: Option<&QuarantineRumor>) {
        let own = self.own_slot().and_then(|slot| self.table.entry(slot));
        let Some(record) = own.map(|entry| ended(&entry.record, status)) else {
            return;
        };
        let version = self.table.version();
        let message = Message::Push {
            seen: self.seen(),
            delta: MembershipDelta {
                from_version: version,
                to_version: version,
                records: vec![record],
                quarantines: order.cloned().into_iter().collect(),
            },
        };
        let (kind, bytes) = (message.kind(), self.seal(message));
        for peer in self.random_peers(self.config.fanout * LAST_MESSAGE_FANOUTS, None) {
            self.outbox
                .send(&peer, bytes.clone(), Delivery::Reliable, kind);
        }
    }

    /// Replaces the metadata of this node.
    pub fn set_metadata(
        &mut self,
        metadata: MemberMetadata,
        now: TimerInstant,
    ) -> Result<(), MembershipError> {
        self.require_member()?;
        let now = self.advance(now);
        if metadata != *self.own.metadata() {
            self.own.set_metadata(metadata);
            if self.stamp_metadata(self.own.metadata_stamp(), now) {
                self.publish_self(now);
            }
        }
        Ok(())
    }

    pub(super) fn require_member(&self) -> Result<(), MembershipError> {
        match self.state {
            MembershipRuntimeState::Member => Ok(()),
            MembershipRuntimeState::Client => Err(MembershipError::ClientMayNot),
            MembershipRuntimeState::Stopped => Err(MembershipError::NotStarted),
        }
    }

    /// Refuses a life that is quarantined; the refusal is also an event of the next outcome.
    pub(super) fn admit(
        &mut self,
        identity: &NodeIdentity,
        now: Now,
    ) -> Result<(), MembershipError> {
        let Some(entry) = self
            .quarantine
            .blocks(&identity.authority, identity.uid, now.raw)
        else {
            return Ok(());
        };
        self.outbox
            .quarantine_event(ClusterEvent::MemberQuarantined {
                authority: entry.authority.clone(),
                node_id: entry.uid,
                reason: entry.reason.clone(),
                observed_at: now.raw,
            });
        Err(MembershipError::Quarantined {
            authority: entry.authority,
            reason: entry.reason,
            remaining: entry.expires_at.saturating_since(now.raw),
        })
    }
}
