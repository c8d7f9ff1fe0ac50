//! Failure detection: the members that this node watches and how far it is with each, the members that watch this node, the
//! probes it makes for others, and its own heartbeats.

use super::clock::Now;
use crate::core::base::identity::{Authority, NodeUid};
use crate::core::base::time::TimerInstant;
use crate::core::protocol::phi::{DetectorEffect, PhiConfig, PhiFailureDetector};
use crate::core::state::table::Slot;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The most probes made for others at a time.
const MAX_RELAYS: usize = 256;

/// The stage of failure detection for one watched member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Idle,
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
    /// Suspected by this node: its accusation is in the member's record.
    Suspected,
}

impl Phase {
    fn until(self) -> Option<TimerInstant> {
        match self {
            Self::Direct { until, .. } | Self::Indirect { until, .. } => Some(until),
            Self::Idle | Self::Suspected => None,
        }
    }
}

/// What kind of message was received from a watched member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// A heartbeat, with its number; it is acknowledged if the sender is suspected.
    Heartbeat(u64),
    /// A heartbeat reported by a provider.
    Reported,
    /// Any other message.
    Message,
}

#[derive(Clone, Debug)]
struct Watch {
    uid: NodeUid,
    phase: Phase,
    /// The highest heartbeat that came; one with a lower number was overtaken or doubled.
    sequence: u64,
    /// Since when a quorum of accusations stands, while this node suspects the member.
    quorum_since: Option<TimerInstant>,
}

/// A probe made for another member.
#[derive(Clone, Debug)]
struct Relay {
    origin: Authority,
    nonce: u64,
    until: TimerInstant,
}

#[derive(Debug)]
pub(crate) struct Detection {
    detector: PhiFailureDetector,
    watches: BTreeMap<Slot, Watch>,
    /// The members that watch this node.
    monitors: Vec<Slot>,
    /// The state of the ring that watches and monitors were taken from.
    epoch: Option<u64>,
    relays: BTreeMap<u64, Relay>,
    /// The number of the last heartbeat of this node.
    sequence: u64,
    /// When the next heartbeat is due, in the runtime's own time.
    beat_at: Option<TimerInstant>,
}

impl Detection {
    pub(crate) fn new(phi: PhiConfig) -> Self {
        Self {
            detector: PhiFailureDetector::new(phi),
            watches: BTreeMap::new(),
            monitors: Vec::new(),
            epoch: None,
            relays: BTreeMap::new(),
            sequence: 0,
            beat_at: None,
        }
    }

    /// Watches no member any more; heartbeats go on.
    pub(crate) fn clear(&mut self, phi: PhiConfig) {
        *self = Self {
            sequence: self.sequence,
            beat_at: self.beat_at,
            ..Self::new(phi)
        };
    }

    /// No heartbeat is due any more.
    pub(crate) fn stop(&mut self) {
        self.beat_at = None;
    }

    pub(crate) fn beat_at(&self) -> Option<TimerInstant> {
        self.beat_at
    }

    pub(crate) fn set_beat_at(&mut self, at: TimerInstant) {
        self.beat_at = Some(at);
    }

    /// The number of the next heartbeat.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The earliest deadline of heartbeats, silences and probes.
    pub(crate) fn deadline(&self) -> Option<TimerInstant> {
        let deadlines = [self.beat_at, self.probe_deadline(), self.silence_deadline()];
        deadlines.into_iter().flatten().min()
    }

    /// When the silence of the first watched member becomes suspicious.
    pub(crate) fn silence_deadline(&self) -> Option<TimerInstant> {
        self.detector.next_deadline()
    }

    /// When the first pending probe counts as unanswered.
    pub(crate) fn probe_deadline(&self) -> Option<TimerInstant> {
        let phases = self
            .watches
            .values()
            .filter_map(|watch| watch.phase.until());
        phases.min()
    }

    pub(crate) fn contains(&self, slot: Slot) -> bool {
        self.watches.contains_key(&slot)
    }

    /// The watched members.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.watches.keys().copied().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.watches.len()
    }

    pub(crate) fn relays_len(&self) -> usize {
        self.relays.len()
    }

    /// Whether the ring has changed since the watches were taken from it; if so, they count as taken from this state.
    pub(crate) fn enter_ring(&mut self, epoch: u64) -> bool {
        let is_new = self.epoch != Some(epoch);
        self.epoch = Some(epoch);
        is_new
    }

    pub(crate) fn set_monitors(&mut self, monitors: Vec<Slot>) {
        self.monitors = monitors;
    }

    pub(crate) fn monitors(&self) -> &[Slot] {
        &self.monitors
    }

    /// Watches a member, unless it is watched.
    pub(crate) fn watch(&mut self, slot: Slot, authority: &Authority, uid: NodeUid, now: Now) {
        if self.contains(slot) {
            return;
        }
        self.detector.forget(authority);
        self.detector.watch(authority, now.own);
        let watch = Watch {
            uid,
            phase: Phase::Idle,
            sequence: 0,
            quorum_since: None,
        };
        self.watches.insert(slot, watch);
    }

    /// The life in this slot is another one, or gone; the members to watch are found again from the ring.
    pub(crate) fn drop_watch(&mut self, slot: Slot) {
        if self.watches.remove(&slot).is_some() {
            self.epoch = None;
        }
    }

    /// Stops watching members that are not among these; returns each with whether this node suspected it.
    pub(crate) fn keep_watches(&mut self, subjects: &[Slot]) -> Vec<(Slot, bool)> {
        let mut dropped = Vec::new();
        self.watches.retain(|slot, watch| {
            let kept = subjects.contains(slot);
            if !kept {
                dropped.push((*slot, watch.phase == Phase::Suspected));
            }
            kept
        });
        dropped
    }

    /// Forgets the heartbeat intervals of an authority.
    pub(crate) fn forget_intervals(&mut self, authority: &Authority) {
        self.detector.forget(authority);
    }

    /// The members whose silence has become suspicious.
    pub(crate) fn suspicious(&mut self, now: Now) -> Vec<Authority> {
        let effects = self.detector.poll(now.own).into_iter();
        let suspicious = effects.filter_map(|effect| match effect {
            DetectorEffect::Suspect(authority) => Some(authority),
            _ => None,
        });
        suspicious.collect()
    }

    pub(crate) fn phi(&self, authority: &Authority, now: Now) -> Option<f64> {
        self.detector.phi(authority, now.own)
    }

    pub(crate) fn set_health_multiplier(&mut self, multiplier: u32) {
        self.detector.set_health_multiplier(multiplier);
    }

    /// A message of a watched member: a heartbeat counts as an interval, any other message only ends the silence.
    pub(crate) fn received(&mut self, authority: &Authority, is_heartbeat: bool, now: Now) {
        if is_heartbeat {
            self.detector.record_heartbeat(authority, now.own);
        } else {
            self.detector.touch(authority, now.own);
        }
    }

    pub(crate) fn phase(&self, slot: Slot) -> Option<Phase> {
        self.watches.get(&slot).map(|watch| watch.phase)
    }

    /// Sets the phase of a watched member; the life that is watched, or `None` for a member that is not.
    pub(crate) fn set_phase(&mut self, slot: Slot, phase: Phase) -> Option<NodeUid> {
        let watch = self.watches.get_mut(&slot)?;
        watch.phase = phase;
        Some(watch.uid)
    }

    /// The members that this node suspects.
    pub(crate) fn suspected(&self) -> Vec<Slot> {
        let watches = self.watches.iter();
        let suspected = watches.filter(|(_, watch)| watch.phase == Phase::Suspected);
        suspected.map(|(&slot, _)| slot).collect()
    }

    /// Notes that a quorum stands against a member; since when it does.
    pub(crate) fn quorum_stands(&mut self, slot: Slot, now: Now) -> Option<TimerInstant> {
        let watch = self.watches.get_mut(&slot)?;
        Some(*watch.quorum_since.get_or_insert(now.own))
    }

    /// No quorum stands against a member, or it has to stand for the whole time anew.
    pub(crate) fn clear_quorum(&mut self, slot: Slot) {
        if let Some(watch) = self.watches.get_mut(&slot) {
            watch.quorum_since = None;
        }
    }

    /// A message of this life arrived. Its probes and this node's suspicion end; returns the phase before, and whether it was a
    /// heartbeat that had not arrived before. `None` for a life that is not watched.
    pub(crate) fn heard(&mut self, slot: Slot, uid: NodeUid, sign: Sign) -> Option<(Phase, bool)> {
        let watch = self.watches.get_mut(&slot)?;
        if uid != watch.uid {
            return None;
        }
        let is_new = match sign {
            Sign::Heartbeat(sequence) => sequence > watch.sequence,
            Sign::Reported => true,
            Sign::Message => false,
        };
        if let Sign::Heartbeat(sequence) = sign {
            watch.sequence = watch.sequence.max(sequence);
        }
        watch.quorum_since = None;
        let phase = core::mem::replace(&mut watch.phase, Phase::Idle);
        Some((phase, is_new))
    }

    /// The member whose pending probe has this nonce, in the life that was probed.
    pub(crate) fn probed(&self, nonce: u64, uid: NodeUid) -> Option<Slot> {
        let mut watches = self.watches.iter();
        let found = watches.find(|(_, watch)| match watch.phase {
            Phase::Direct { nonce: sent, .. } | Phase::Indirect { nonce: sent, .. } => {
                sent == nonce && watch.uid == uid
            }
            Phase::Idle | Phase::Suspected => false,
        });
        found.map(|(&slot, _)| slot)
    }

    /// Whether no more probes are made for others at the moment.
    pub(crate) fn has_all_relays(&self) -> bool {
        self.relays.len() >= MAX_RELAYS
    }

    /// Notes a probe with this nonce that is made for `origin`, which asked for it with a nonce of its own.
    pub(crate) fn relay(&mut self, nonce: u64, origin: (Authority, u64), until: TimerInstant) {
        let (origin, origin_nonce) = origin;
        let relay = Relay {
            origin,
            nonce: origin_nonce,
            until,
        };
        self.relays.insert(nonce, relay);
    }

    /// The member that the probe with this nonce was made for, and its own nonce.
    pub(crate) fn take_relay(&mut self, nonce: u64) -> Option<(Authority, u64)> {
        let relay = self.relays.remove(&nonce)?;
        Some((relay.origin, relay.nonce))
    }

    /// Forgets probes for others that were not answered in time.
    pub(crate) fn drop_late_relays(&mut self, now: Now) {
        if !self.relays.is_empty() {
            self.relays.retain(|_, relay| now.own < relay.until);
        }
    }
}
