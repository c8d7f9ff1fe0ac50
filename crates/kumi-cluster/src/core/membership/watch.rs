//! Failure detection of the watched members: direct probe, indirect probes, suspicion, death.
//!
//! A member whose silence is suspicious is probed directly, then through three other members, and then suspected: this node
//! adds its accusation to the member's record. When this node receives from the member again, it withdraws the accusation
//! and sends the member the suspicion, which the member refutes by a higher incarnation.
//!
//! A member is declared dead when a quorum of accusations has stood for the whole of `suspect_timeout`, by one of the
//! accusing monitors that still receives nothing from it. Monitors that are suspects themselves are not counted, but only if
//! two accusations stand against them: otherwise a node that receives nothing, and therefore suspects every member it
//! watches, could discount all other monitors and declare members dead alone.

use super::learn::ended;
use super::parts::clock::Now;
use super::parts::detection::{Phase, Sign};
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::status::NodeStatus;
use crate::core::protocol::config::MembershipRuntimeConfig;
use crate::core::protocol::event::MembershipEvent;
use crate::core::state::record::{Accusation, MemberRecord};
use crate::core::state::table::Slot;
use crate::core::wire::codec::Message;
use crate::core::wire::transport::Delivery;
use alloc::vec::Vec;

/// How many others are asked to probe.
const INDIRECT_PROBES: usize = 3;
/// How many standing accusations it takes to leave a suspect out of the monitors that count.
const ACCUSERS_TO_DISCOUNT: usize = 2;

impl MembershipRuntime {
    /// The monitors of the member in this slot.
    pub(super) fn monitor_slots(&self, slot: Slot) -> Vec<Slot> {
        let Some(entry) = self.table.entry(slot) else {
            return Vec::new();
        };
        self.table.ring().after(entry.place, slot, self.watchers())
    }

    /// By how many each is watched. Without gossip suspicions of others are not known: every member watches all.
    fn watchers(&self) -> usize {
        if self.config.gossip_enabled {
            self.config.monitors
        } else {
            usize::MAX
        }
    }

    /// Nothing came from any member for a while, so this node is the one that is cut off.
    pub(super) fn receives_nothing(&self, now: Now) -> bool {
        let interval = self.config.heartbeat_interval;
        self.local_health.receives_nothing(interval, now)
    }

    /// Brings the watches in line with the ring.
    fn refresh_watches(&mut self, now: Now) {
        if !self.detection.enter_ring(self.table.ring().epoch()) {
            return;
        }
        let Some((slot, place)) = self.own_place() else {
            self.keep_watches(&[], now);
            return;
        };
        let monitors = self.table.ring().after(place, slot, self.watchers());
        self.detection.set_monitors(monitors);
        let subjects = self.table.ring().before(place, slot, self.watchers());
        self.keep_watches(&subjects, now);
        for subject in subjects {
            if let Some(entry) = self.table.entry(subject) {
                let record = &entry.record;
                self.detection
                    .watch(subject, &record.authority, record.uid, now);
            }
        }
    }

    fn own_place(&self) -> Option<(Slot, u64)> {
        let slot = self.own_slot()?;
        let entry = self.table.entry(slot)?;
        let status = entry.record.status;
        let on_ring = status.is_active() && status != NodeStatus::Joining;
        on_ring.then_some((slot, entry.place))
    }

    /// Stops watching members that are not among `subjects`, and withdraws this node's accusations of them.
    fn keep_watches(&mut self, subjects: &[Slot], now: Now) {
        for (slot, was_suspected) in self.detection.keep_watches(subjects) {
            if was_suspected {
                self.withdraw(slot, now);
            }
            if let Some(entry) = self.table.entry(slot) {
                self.detection.forget_intervals(&entry.record.authority);
            }
        }
    }

    /// Every heartbeat interval: sends a heartbeat to the monitors, and declares members dead against which a quorum has stood
    /// long enough.
    pub(super) fn poll_heartbeat(&mut self, now: Now) {
        if self.detection.beat_at().is_none_or(|at| now.own < at) {
            return;
        }
        let next = now.own + self.config.heartbeat_interval;
        self.detection.set_beat_at(next);
        self.local_health.beat();
        self.review_suspects(now);
        self.refresh_watches(now);
        self.beat();
        self.declare_dead(now);
        self.detection.drop_late_relays(now);
    }

    /// A heartbeat to every monitor: one encoding for all.
    pub(super) fn beat(&mut self) {
        if self.own_place().is_none() {
            return;
        }
        let message = Message::Heartbeat {
            sequence: self.detection.next_sequence(),
            incarnation: self.own.incarnation(),
        };
        let kind = message.kind();
        let bytes = self.seal(message);
        let receivers = if self.config.gossip_enabled {
            self.authorities(self.detection.monitors())
        } else {
            // Members that were declared dead too: it takes a heartbeat to find out that a broken network has healed.
            self.addresses.named_but(self.own.authority())
        };
        for authority in receivers {
            self.outbox
                .send(&authority, bytes.clone(), Delivery::Datagram, kind);
        }
    }

    /// Silences that have become suspicious, and probes that were not answered.
    pub(super) fn poll_watches(&mut self, now: Now) {
        for authority in self.detection.suspicious(now) {
            if let Some(slot) = self.table.slot_of(&authority) {
                self.probe(slot, now);
            }
        }
        if self
            .detection
            .probe_deadline()
            .is_none_or(|at| now.own < at)
        {
            return;
        }
        for slot in self.detection.slots() {
            match self.detection.phase(slot) {
                Some(Phase::Direct { until, .. }) if now.own >= until => {
                    self.probe_indirectly(slot, now)
                }
                Some(Phase::Indirect { until, .. }) if now.own >= until => match self.is_waking() {
                    true => self.start_over(slot, now),
                    false => self.suspect(slot, now),
                },
                _ => {}
            }
        }
    }

    fn probe(&mut self, slot: Slot, now: Now) {
        let nonce = self.rng.word();
        let until = now.own + self.config.probe_timeout * self.local_health.multiplier();
        let Some(subject) = self.set_phase(slot, Phase::Direct { nonce, until }) else {
            return;
        };
        self.send(
            &subject.authority,
            Message::Probe { nonce },
            Delivery::Datagram,
        );
    }

    fn probe_indirectly(&mut self, slot: Slot, now: Now) {
        let nonce = self.rng.word();
        let until = now.own + self.config.probe_timeout * self.local_health.multiplier() * 2;
        let Some(target) = self.set_phase(slot, Phase::Indirect { nonce, until }) else {
            return;
        };
        // The member itself is probed once more: one lost packet must not count as silence.
        self.send(
            &target.authority,
            Message::Probe { nonce },
            Delivery::Datagram,
        );
        for helper in self.random_peers(INDIRECT_PROBES, Some(slot)) {
            let message = Message::ProbeRequest {
                nonce,
                target: target.clone(),
            };
            self.send(&helper, message, Delivery::Datagram);
        }
    }

    /// Sets the phase of a watched member; the life that is watched, or `None` if there is none.
    fn set_phase(&mut self, slot: Slot, phase: Phase) -> Option<NodeIdentity> {
        let uid = self.detection.set_phase(slot, phase)?;
        let entry = self.table.entry(slot)?;
        let authority = entry.record.authority.clone();
        Some(NodeIdentity { authority, uid })
    }

    /// No probe was answered: this node adds its accusation to the member's record, which makes it a suspect.
    fn suspect(&mut self, slot: Slot, now: Now) {
        let Some(subject) = self.set_phase(slot, Phase::Suspected) else {
            return;
        };
        self.detection.clear_quorum(slot);
        if self.set_accusation(slot, true, now) {
            self.outbox.metrics_mut().accusations += 1;
            let authority = subject.authority;
            self.outbox.note(MembershipEvent::Suspected { authority });
        }
    }

    /// Withdraws this node's accusation of the member in this slot, if it stands.
    fn withdraw(&mut self, slot: Slot, now: Now) {
        if self.set_accusation(slot, false, now) {
            self.outbox.metrics_mut().withdrawals += 1;
        }
    }

    /// Adds or withdraws this node's accusation of the member in this slot; whether that changed the record.
    fn set_accusation(&mut self, slot: Slot, stands: bool, now: Now) -> bool {
        let Some(entry) = self.table.entry(slot) else {
            return false;
        };
        let (from, me) = (entry.record.status, self.own.uid());
        let round = entry.record.accusations.round_of(me);
        let stood = round % 2 == 1;
        let (Some(next), true) = (round.checked_add(1), stood != stands) else {
            return false;
        };
        if !self.table.accuse(
            slot,
            Accusation {
                accuser: me,
                round: next,
            },
        ) {
            return false;
        }
        self.stepped(slot, from, now);
        let stamp = self
            .table
            .entry(slot)
            .map_or(0, |entry| entry.record.metadata_stamp);
        self.spread(slot, stamp);
        true
    }

    /// Declares members dead against which a quorum of accusations has stood for `suspect_timeout`.
    fn declare_dead(&mut self, now: Now) {
        for slot in self.detection.suspected() {
            let Some(record) = self.table.entry(slot).map(|entry| &entry.record) else {
                continue;
            };
            let has_none = record
                .accusations
                .round_of(self.own.uid())
                .is_multiple_of(2);
            let has_refuted = record.status == NodeStatus::Suspect && has_none;
            if record.status == NodeStatus::Up || has_refuted {
                // It has refuted this node's suspicion, and still nothing arrives from it: detection starts over. An accusation
                // by another member in the new incarnation is not this node's.
                self.start_over(slot, now);
                continue;
            }
            let stands =
                record.status == NodeStatus::Suspect && self.quorum_stands(slot, record, now);
            let timeout = self.config.suspect_timeout * self.local_health.multiplier();
            if !stands {
                self.detection.clear_quorum(slot);
                continue;
            }
            let since = self.detection.quorum_stands(slot, now);
            if since.is_some_and(|since| now.own.saturating_since(since) >= timeout) {
                self.declare_member_dead(slot, now);
            }
        }
    }

    /// Whether a quorum of the monitors that count accuses this member, this node among them.
    pub(super) fn quorum_stands(&self, slot: Slot, record: &MemberRecord, now: Now) -> bool {
        let me = self.own.uid();
        if record.accusations.round_of(me).is_multiple_of(2) {
            return false;
        }
        if self.is_waking() || self.table.ring().len() > 2 && self.receives_nothing(now) {
            return false;
        }
        if !self.config.gossip_enabled {
            // Members do not report others: what this node receives itself decides.
            return true;
        }
        let monitors = self.monitor_slots(slot);
        let counts = |record: &&MemberRecord| {
            let discounted = record.status == NodeStatus::Suspect
                && record.accusations.standing().count() >= ACCUSERS_TO_DISCOUNT;
            record.uid == me || !discounted
        };
        let records = monitors.iter().filter_map(|&slot| self.table.entry(slot));
        let counted: Vec<NodeUid> = records
            .map(|entry| &entry.record)
            .filter(counts)
            .map(|record| record.uid)
            .collect();
        let standing = record
            .accusations
            .standing()
            .filter(|accuser| counted.contains(accuser));
        standing.count() >= MembershipRuntimeConfig::quorum(counted.len())
    }

    /// Declares one member dead, and sends it the verdict.
    fn declare_member_dead(&mut self, slot: Slot, now: Now) {
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        let verdict = ended(&entry.record, NodeStatus::Dead);
        self.outbox.metrics_mut().convictions += 1;
        self.apply(&verdict, now);
        // The member may receive although nothing arrives from it; it can then join again under a new uid.
        let authority = verdict.authority.clone();
        self.send(
            &authority,
            Message::Verdict {
                record: verdict,
                quarantine: None,
            },
            Delivery::Datagram,
        );
    }

    /// Starts detection over for all members that this node does not suspect: their silence was measured while this node was
    /// suspended. Accusations stand, but a quorum has to stand for the whole time anew.
    pub(super) fn start_detection_over(&mut self, now: Now) {
        for slot in self.detection.slots() {
            self.detection.clear_quorum(slot);
            if self.detection.phase(slot) != Some(Phase::Suspected) {
                self.start_over(slot, now);
            }
        }
    }

    /// Ends the probes of a member and this node's suspicion of it; its silence counts from now on.
    fn start_over(&mut self, slot: Slot, now: Now) {
        if let Some(subject) = self.set_phase(slot, Phase::Idle) {
            self.detection.received(&subject.authority, false, now);
        }
    }

    /// Handles a message of the life in this slot, if it is watched: probes and this node's suspicion end.
    pub(super) fn heard_subject(&mut self, slot: Slot, sign: Sign, now: Now) {
        let Some(record) = self.table.entry(slot).map(|entry| &entry.record) else {
            return;
        };
        let Some((phase, is_heartbeat)) = self.detection.heard(slot, record.uid, sign) else {
            return;
        };
        let authority = record.authority.clone();
        self.detection.received(&authority, is_heartbeat, now);
        if phase != Phase::Idle {
            // The member was alive: this node may be the one that does not receive, so its local health suffers.
            self.local_health.doubt();
        }
        if phase == Phase::Suspected {
            self.withdraw(slot, now);
            self.outbox.note(MembershipEvent::Reachable {
                authority: authority.clone(),
            });
            // Only the member's refutation ends the suspicion, so it is sent the suspicion. A heartbeat is acknowledged with
            // it in any case.
            if !matches!(sign, Sign::Heartbeat(_)) {
                self.tell_suspected(slot, &authority);
            }
        }
    }

    /// Sends a suspect its suspicion, which it refutes.
    fn tell_suspected(&mut self, slot: Slot, authority: &Authority) {
        let record = self.table.entry(slot).map(|entry| &entry.record);
        let suspected = record.filter(|record| record.status == NodeStatus::Suspect);
        if let Some(incarnation) = suspected.map(|record| record.incarnation) {
            let message = Message::HeartbeatAck {
                sequence: 0,
                suspected: Some(incarnation),
                not_my_monitor: false,
            };
            self.send(authority, message, Delivery::Datagram);
        }
    }

    /// An answer to a probe, direct or through a member.
    ///
    /// The incarnation is the one that the member sent: the table may have an earlier uid.
    pub(super) fn probe_answered(
        &mut self,
        nonce: u64,
        identity: &NodeIdentity,
        incarnation: u64,
        now: Now,
    ) {
        self.name_holder_answered(nonce, identity, now);
        if let Some((origin, nonce)) = self.detection.take_relay(nonce) {
            let message = Message::ProbeReply {
                nonce,
                target: identity.clone(),
                incarnation,
            };
            self.send(&origin, message, Delivery::Datagram);
        }
        if let Some(slot) = self.detection.probed(nonce, identity.uid) {
            self.heard_subject(slot, Sign::Message, now);
        }
    }

    /// Probes a member on behalf of another.
    pub(super) fn relay_probe(
        &mut self,
        origin: &Authority,
        nonce: u64,
        target: &NodeIdentity,
        now: Now,
    ) {
        if self.detection.has_all_relays() || self.state != MembershipRuntimeState::Member {
            return;
        }
        let own_nonce = self.rng.word();
        let until = now.own + self.config.probe_timeout * 4;
        self.detection
            .relay(own_nonce, (origin.clone(), nonce), until);
        self.send(
            &target.authority,
            Message::Probe { nonce: own_nonce },
            Delivery::Datagram,
        );
    }
}
