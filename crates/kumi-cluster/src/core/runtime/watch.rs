//! Failure detection of the watched members: direct probe, indirect probes, suspicion, death.
//!
//! A subject whose silence is suspicious is asked directly, then through three others, and only then accused. An accuser
//! that receives from the subject again takes its accusation back and tells the subject, which refutes the suspicion itself.
//!
//! A verdict takes a quorum of standing accusers for the whole of `suspect_timeout`, and is spoken only by one of them
//! that still receives nothing. Monitors that are suspects themselves are left out of the count, but only if two accusers
//! stand against them: otherwise a node that receives nothing, and therefore suspects every member it watches, could
//! discount all other monitors and declare members dead alone.

use super::clock::Now;
use super::learn::ended;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::codec::Message;
use crate::core::config::MembershipRuntimeConfig;
use crate::core::event::MembershipEvent;
use crate::core::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::phi::DetectorEffect;
use crate::core::record::{Accusation, MemberRecord};
use crate::core::status::NodeStatus;
use crate::core::table::Slot;
use crate::core::time::TimerInstant;
use crate::core::transport::Delivery;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// How many others are asked to probe.
const INDIRECT_PROBES: usize = 3;
/// The most probes made for others at a time.
const MAX_RELAYS: usize = 256;
/// How many standing accusers it takes to leave a suspect out of the monitors that count.
const ACCUSERS_TO_DISCOUNT: usize = 2;
/// After so many heartbeat intervals without a message from any member, this node takes itself to be the one that is cut off.
const RECEIVES_NOTHING_AFTER_BEATS: u32 = 4;

/// The stage of failure detection for one watched member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Quiet,
    /// A direct probe is pending.
    Direct {
        nonce: u64,
        until: TimerInstant,
    },
    /// Indirect probes are pending.
    Indirect {
        nonce: u64,
        until: TimerInstant,
    },
    /// Accused by this node.
    Accusing,
}

/// What kind of message was received from a watched member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// A heartbeat, with its number; it is acknowledged if the sender is suspected.
    Heartbeat(u64),
    /// A heartbeat reported by a provider.
    Reported,
    /// Any other message.
    Word,
}

#[derive(Clone, Debug)]
struct Watch {
    uid: NodeUid,
    phase: Phase,
    /// The highest heartbeat that came; older ones are echoes.
    sequence: u64,
    /// Since when a quorum stands, while this node accuses.
    quorum_since: Option<TimerInstant>,
}

/// A probe made for another member.
#[derive(Clone, Debug)]
struct Relay {
    origin: Authority,
    nonce: u64,
    until: TimerInstant,
}

/// Every member this node watches.
#[derive(Debug, Default)]
pub(super) struct Watches {
    of: BTreeMap<Slot, Watch>,
    /// Those that watch this node.
    monitors: Vec<Slot>,
    /// The ring that the two were taken from.
    epoch: Option<u64>,
    relays: BTreeMap<u64, Relay>,
}

impl Watches {
    pub(super) fn contains(&self, slot: Slot) -> bool {
        self.of.contains_key(&slot)
    }

    pub(super) fn slots(&self) -> Vec<Slot> {
        self.of.keys().copied().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn relays_len(&self) -> usize {
        self.relays.len()
    }

    /// The life in this slot is another one, or gone; the members to watch are found again from the ring.
    pub(super) fn forget(&mut self, slot: Slot) {
        if self.of.remove(&slot).is_some() {
            self.epoch = None;
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn deadline(&self) -> Option<TimerInstant> {
        let phases = self.of.values().filter_map(|watch| watch.phase.until());
        phases.min()
    }
}

impl Phase {
    fn until(self) -> Option<TimerInstant> {
        match self {
            Self::Direct { until, .. } | Self::Indirect { until, .. } => Some(until),
            Self::Quiet | Self::Accusing => None,
        }
    }
}

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
        let limit = self.config.heartbeat_interval * RECEIVES_NOTHING_AFTER_BEATS;
        now.own.saturating_since(self.heard_at.own) > limit
    }

    /// Brings the watches in line with the ring.
    fn refresh_watches(&mut self, now: Now) {
        let epoch = self.table.ring().epoch();
        if self.watches.epoch == Some(epoch) {
            return;
        }
        self.watches.epoch = Some(epoch);
        let Some((slot, place)) = self.own_place() else {
            self.drop_watches(&[], now);
            return;
        };
        self.watches.monitors = self.table.ring().after(place, slot, self.watchers());
        let subjects = self.table.ring().before(place, slot, self.watchers());
        self.drop_watches(&subjects, now);
        for subject in subjects {
            let Some(entry) = self.table.entry(subject) else {
                continue;
            };
            let (authority, uid) = (&entry.record.authority, entry.record.uid);
            if !self.watches.contains(subject) {
                self.detector.forget(authority);
                self.detector.watch(authority, now.own);
                let watch = Watch {
                    uid,
                    phase: Phase::Quiet,
                    sequence: 0,
                    quorum_since: None,
                };
                self.watches.of.insert(subject, watch);
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

    /// Stops watching members that are not among `subjects`, and takes back accusations of them.
    fn drop_watches(&mut self, subjects: &[Slot], now: Now) {
        let dropped: Vec<Slot> = self
            .watches
            .of
            .keys()
            .copied()
            .filter(|slot| !subjects.contains(slot))
            .collect();
        for slot in dropped {
            let watch = self.watches.of.remove(&slot);
            if watch.is_some_and(|watch| watch.phase == Phase::Accusing) {
                self.withdraw(slot, now);
            }
            if let Some(entry) = self.table.entry(slot) {
                self.detector.forget(&entry.record.authority);
            }
        }
    }

    /// Every heartbeat interval: tell the monitors, and look whether a quorum stands.
    pub(super) fn poll_heartbeat(&mut self, now: Now) {
        if self.timers.heartbeat.is_none_or(|at| now.own < at) {
            return;
        }
        self.timers.heartbeat = Some(now.own + self.config.heartbeat_interval);
        self.health.beat();
        self.review_suspects(now);
        self.refresh_watches(now);
        self.beat();
        self.judge(now);
        let relays = &mut self.watches.relays;
        if !relays.is_empty() {
            relays.retain(|_, relay| now.own < relay.until);
        }
    }

    /// A heartbeat to every monitor: one encoding for all.
    pub(super) fn beat(&mut self) {
        if self.own_place().is_none() {
            return;
        }
        self.sequence += 1;
        let message = Message::Heartbeat {
            sequence: self.sequence,
            incarnation: self.own.incarnation,
        };
        let kind = message.kind();
        let bytes = self.seal(message);
        let listeners = if self.config.gossip_enabled {
            self.authorities(&self.watches.monitors)
        } else {
            // Members that were declared dead too: it takes a heartbeat to find out that a broken network has healed.
            let own = &self.own.identity.authority;
            let named = self.named.iter().filter(|named| *named != own);
            named.cloned().collect()
        };
        for authority in listeners {
            self.send_bytes(&authority, bytes.clone(), Delivery::Datagram, kind);
        }
    }

    /// Silences that have become suspicious, and probes that were not answered.
    pub(super) fn poll_watches(&mut self, now: Now) {
        for effect in self.detector.poll(now.own) {
            if let DetectorEffect::Suspect(authority) = effect
                && let Some(slot) = self.table.slot_of(&authority)
            {
                self.probe(slot, now);
            }
        }
        if self.watches.deadline().is_none_or(|at| now.own < at) {
            return;
        }
        for slot in self.watches.slots() {
            let phase = self.watches.of.get(&slot).map(|watch| watch.phase);
            match phase {
                Some(Phase::Direct { until, .. }) if now.own >= until => {
                    self.probe_indirectly(slot, now)
                }
                Some(Phase::Indirect { until, .. }) if now.own >= until => match self.is_waking() {
                    true => self.rest(slot, now),
                    false => self.accuse(slot, now),
                },
                _ => {}
            }
        }
    }

    fn probe(&mut self, slot: Slot, now: Now) {
        let nonce = self.rng.word();
        let until = now.own + self.config.probe_timeout * self.health.multiplier();
        let Some(authority) = self.set_phase(slot, Phase::Direct { nonce, until }) else {
            return;
        };
        self.send(&authority, Message::Probe { nonce }, Delivery::Datagram);
    }

    fn probe_indirectly(&mut self, slot: Slot, now: Now) {
        let nonce = self.rng.word();
        let until = now.own + self.config.probe_timeout * self.health.multiplier() * 2;
        let Some(authority) = self.set_phase(slot, Phase::Indirect { nonce, until }) else {
            return;
        };
        let Some(uid) = self.watches.of.get(&slot).map(|watch| watch.uid) else {
            return;
        };
        let target = NodeIdentity { authority, uid };
        // The subject is asked once more beside the others: one lost packet should not count as silence.
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

    fn set_phase(&mut self, slot: Slot, phase: Phase) -> Option<Authority> {
        let watch = self.watches.of.get_mut(&slot)?;
        watch.phase = phase;
        let entry = self.table.entry(slot)?;
        Some(entry.record.authority.clone())
    }

    fn accuse(&mut self, slot: Slot, now: Now) {
        let Some(authority) = self.set_phase(slot, Phase::Accusing) else {
            return;
        };
        if let Some(watch) = self.watches.of.get_mut(&slot) {
            watch.quorum_since = None;
        }
        if self.change_word(slot, true, now) {
            self.metrics.accusations += 1;
            self.note(MembershipEvent::Accused { authority });
        }
    }

    fn withdraw(&mut self, slot: Slot, now: Now) {
        if self.change_word(slot, false, now) {
            self.metrics.withdrawals += 1;
        }
    }

    /// Adds or withdraws this node's accusation of the member in this slot.
    fn change_word(&mut self, slot: Slot, accuse: bool, now: Now) -> bool {
        let Some(entry) = self.table.entry(slot) else {
            return false;
        };
        let (from, me) = (entry.record.status, self.own.identity.uid);
        let round = entry.record.accusations.round_of(me);
        let stands = round % 2 == 1;
        let (Some(next), true) = (round.checked_add(1), stands != accuse) else {
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

    /// Declares members dead whose suspicion has had a quorum of accusers for `suspect_timeout`.
    fn judge(&mut self, now: Now) {
        let accused: Vec<Slot> = self
            .watches
            .of
            .iter()
            .filter(|(_, watch)| watch.phase == Phase::Accusing)
            .map(|(&slot, _)| slot)
            .collect();
        for slot in accused {
            let Some(record) = self.table.entry(slot).map(|entry| &entry.record) else {
                continue;
            };
            let unspoken = record
                .accusations
                .round_of(self.own.identity.uid)
                .is_multiple_of(2);
            let answered = record.status == NodeStatus::Suspect && unspoken;
            if record.status == NodeStatus::Up || answered {
                // It has refuted this node's suspicion, and still nothing arrives from it: detection starts over. An accusation
                // by another member in the new incarnation is not this node's.
                self.rest(slot, now);
                continue;
            }
            let stands =
                record.status == NodeStatus::Suspect && self.quorum_stands(slot, record, now);
            let timeout = self.config.suspect_timeout * self.health.multiplier();
            let Some(watch) = self.watches.of.get_mut(&slot) else {
                continue;
            };
            if !stands {
                watch.quorum_since = None;
                continue;
            }
            let since = *watch.quorum_since.get_or_insert(now.own);
            if now.own.saturating_since(since) >= timeout {
                self.convict(slot, now);
            }
        }
    }

    /// Whether enough of the monitors that count accuse this subject.
    pub(super) fn quorum_stands(&self, slot: Slot, record: &MemberRecord, now: Now) -> bool {
        let me = self.own.identity.uid;
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

    fn convict(&mut self, slot: Slot, now: Now) {
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        let verdict = ended(&entry.record, NodeStatus::Dead);
        self.metrics.convictions += 1;
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

    /// What is known of the silence of others is from before this node was suspended. Accusations stand, but a quorum has
    /// to stand for the whole time anew.
    pub(super) fn start_inquiries_over(&mut self, now: Now) {
        for slot in self.watches.slots() {
            let Some(watch) = self.watches.of.get_mut(&slot) else {
                continue;
            };
            watch.quorum_since = None;
            if watch.phase != Phase::Accusing {
                self.rest(slot, now);
            }
        }
    }

    /// The member is alive: pending probes and this node's accusation end.
    fn rest(&mut self, slot: Slot, now: Now) {
        let Some(authority) = self.set_phase(slot, Phase::Quiet) else {
            return;
        };
        self.detector.touch(&authority, now.own);
    }

    /// Something came from the very life that is watched in this slot.
    pub(super) fn heard_subject(&mut self, slot: Slot, sign: Sign, now: Now) {
        let Some(watch) = self.watches.of.get_mut(&slot) else {
            return;
        };
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        if entry.record.uid != watch.uid {
            return;
        }
        let authority = entry.record.authority.clone();
        let fresh = match sign {
            Sign::Heartbeat(sequence) => sequence > watch.sequence,
            Sign::Reported => true,
            Sign::Word => false,
        };
        if let Sign::Heartbeat(sequence) = sign {
            watch.sequence = watch.sequence.max(sequence);
        }
        watch.quorum_since = None;
        let phase = core::mem::replace(&mut watch.phase, Phase::Quiet);
        if fresh {
            self.detector.record_heartbeat(&authority, now.own);
        } else {
            self.detector.touch(&authority, now.own);
        }
        if phase != Phase::Quiet {
            // The member was alive: this node may be the one that does not receive, so its local health suffers.
            self.health.doubt();
        }
        if phase == Phase::Accusing {
            self.withdraw(slot, now);
            self.note(MembershipEvent::Reachable {
                authority: authority.clone(),
            });
            // To be heard does not lift a suspicion, to refute it does. A heartbeat is answered with that anyway.
            if !matches!(sign, Sign::Heartbeat(_)) {
                self.tell_suspected(slot, &authority);
            }
        }
    }

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
        if let Some(relay) = self.watches.relays.remove(&nonce) {
            let message = Message::ProbeReply {
                nonce: relay.nonce,
                target: identity.clone(),
                incarnation,
            };
            self.send(&relay.origin, message, Delivery::Datagram);
        }
        let asked = self.watches.of.iter().find(|(_, watch)| match watch.phase {
            Phase::Direct { nonce: asked, .. } | Phase::Indirect { nonce: asked, .. } => {
                asked == nonce && watch.uid == identity.uid
            }
            Phase::Quiet | Phase::Accusing => false,
        });
        if let Some((&slot, _)) = asked {
            self.heard_subject(slot, Sign::Word, now);
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
        if self.watches.relays.len() >= MAX_RELAYS || self.state != MembershipRuntimeState::Member {
            return;
        }
        let own_nonce = self.rng.word();
        let until = now.own + self.config.probe_timeout * 4;
        self.watches.relays.insert(
            own_nonce,
            Relay {
                origin: origin.clone(),
                nonce,
                until,
            },
        );
        self.send(
            &target.authority,
            Message::Probe { nonce: own_nonce },
            Delivery::Datagram,
        );
    }
}
