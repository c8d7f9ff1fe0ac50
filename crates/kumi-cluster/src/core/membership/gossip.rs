//! Gossip: pushes to a few random members, and push-pull exchanges with one.
//!
//! An exchange has at most three messages. The first carries a digest of the table and 64 shortened ones of its buckets; if
//! they agree, there is no second. The second carries the records of the buckets that differ, and names the buckets; the
//! third carries the records of those buckets that are newer at the node that began.

use super::parts::clock::Now;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::base::identity::Authority;
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::status::NodeStatus;
use crate::core::protocol::rumor_queue::{Packets, Subject};
use crate::core::state::record::MemberRecord;
use crate::core::state::snapshot::MembershipDelta;
use crate::core::state::table::{BUCKETS, Slot};
use crate::core::wire::codec::{MAX_ENVELOPE_BYTES, Message, Seen, encoded_len, encoded_rumor_len};
use crate::core::wire::transport::{Delivery, MAX_DATAGRAM_BYTES};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

/// The most datagrams of one push to one peer.
const MAX_PACKETS_PER_PUSH: usize = 8;
/// What an envelope takes besides the records: header, summary and counts, generously.
const ENVELOPE_OVERHEAD: usize = 64;
/// How soon a comparison may follow another one that a peer's view gave rise to.
const COMPARE_AGAIN: Duration = Duration::from_secs(1);

impl MembershipRuntime {
    /// Starts the push timer, which runs only while updates are queued.
    pub(super) fn wake_push(&mut self) {
        let is_off = self.dissemination.push_at().is_none();
        if is_off && self.state == MembershipRuntimeState::Member {
            let wait = self.rng.within(self.config.gossip_interval);
            let at = self.local_health.now().own + wait;
            self.dissemination.set_push_at(Some(at));
        }
    }

    pub(super) fn poll_push(&mut self, now: Now) {
        if self.dissemination.push_at().is_none_or(|at| now.own < at) {
            return;
        }
        self.dissemination.set_push_at(None);
        if self.own.status() == NodeStatus::Joining {
            // No member accepts its updates yet. They stay queued until it is Up, which is an update and starts this timer.
            return;
        }
        self.push(self.config.fanout, now);
        if self.dissemination.is_empty() {
            self.compare_after_news(now);
        } else {
            let at = now.own + self.config.gossip_interval;
            self.dissemination.set_push_at(Some(at));
        }
    }

    /// Pushes the most urgent updates to so many random peers.
    pub(super) fn push(&mut self, peers: usize, now: Now) {
        let peers = self.random_peers(peers, None);
        if peers.is_empty() {
            self.dissemination.clear();
            return;
        }
        let name_len = self.config.cluster_name.len() + self.own.authority().as_str().len();
        let budget = MAX_DATAGRAM_BYTES.saturating_sub(ENVELOPE_OVERHEAD + name_len);
        let limit = self.retransmissions();
        let Self {
            dissemination,
            table,
            quarantine,
            ..
        } = self;
        let len_of = |subject: &Subject, with_metadata: bool| match subject {
            Subject::Member(slot) => {
                let entry = table.entry(*slot)?;
                Some(encoded_len(&entry.record, with_metadata))
            }
            Subject::Quarantine(authority) => quarantine
                .rumor(authority, now.raw)
                .map(|rumor| encoded_rumor_len(&rumor)),
        };
        let packets = Packets {
            count: MAX_PACKETS_PER_PUSH,
            budget,
        };
        for chosen in dissemination.fill(packets, peers.len() as u32, limit, len_of) {
            let delta = self.delta_of(&chosen, now);
            let message = Message::Push {
                seen: self.seen(),
                delta,
            };
            let kind = message.kind();
            let bytes = self.seal(message);
            for peer in &peers {
                self.outbox
                    .send(peer, bytes.clone(), Delivery::Datagram, kind);
            }
        }
    }

    fn delta_of(&self, chosen: &[(Subject, bool)], now: Now) -> MembershipDelta {
        let version = self.table.version();
        let mut delta = MembershipDelta {
            from_version: version,
            to_version: version,
            ..MembershipDelta::default()
        };
        for (subject, with_metadata) in chosen {
            match subject {
                Subject::Member(slot) => {
                    let record = self.table.entry(*slot).map(|entry| entry.record.clone());
                    delta.records.extend(
                        record.map(|record| without_metadata_unless(*with_metadata, record)),
                    );
                }
                Subject::Quarantine(authority) => delta
                    .quarantines
                    .extend(self.quarantine.rumor(authority, now.raw)),
            }
        }
        delta
    }

    /// Distinct active peers, at random.
    pub(super) fn random_peers(&mut self, count: usize, except: Option<Slot>) -> Vec<Authority> {
        /// Draws per wanted peer before giving up: enough for all but tiny clusters, and those are listed instead.
        const DRAWS: usize = 4;
        let (own, active) = (self.own_slot(), self.table.active());
        let excluded = |slot: Slot| Some(slot) == own || Some(slot) == except;
        let mut chosen: Vec<Slot> = Vec::new();
        if active.len() <= count * DRAWS {
            let mut all: Vec<Slot> = active
                .iter()
                .copied()
                .filter(|&slot| !excluded(slot))
                .collect();
            while chosen.len() < count && !all.is_empty() {
                chosen.push(all.swap_remove(self.rng.below(all.len())));
            }
        } else {
            for _ in 0..count * DRAWS {
                let slot = active[self.rng.below(active.len())];
                if !excluded(slot) && !chosen.contains(&slot) {
                    chosen.push(slot);
                }
                if chosen.len() == count {
                    break;
                }
            }
        }
        self.authorities(&chosen)
    }

    /// Once per push-pull interval: compares with a random member, and tries the address of a former member.
    pub(super) fn poll_push_pull(&mut self, now: Now) {
        if self
            .dissemination
            .push_pull_at()
            .is_none_or(|at| now.own < at)
        {
            return;
        }
        let interval = self.config.push_pull_interval;
        // Spread by a quarter, so that nodes that started together do not stay together.
        let wait = interval - interval / 8 + self.rng.within(interval / 4);
        self.dissemination.set_push_pull_at(now.own + wait);
        if self.state == MembershipRuntimeState::Client {
            self.observe(now);
            return;
        }
        if self.own.status() == NodeStatus::Joining {
            return;
        }
        self.dissemination.compared(now.own);
        let mut peers = self.random_peers(1, None);
        peers.extend(self.lost_address());
        peers.extend(self.peers_in_trouble(now));
        let peers: BTreeSet<Authority> = peers.into_iter().collect();
        for authority in peers {
            self.compare(&authority, now);
        }
    }

    /// When all updates are sent, the next push-pull follows soon: it reaches members that a push has missed.
    fn compare_after_news(&mut self, now: Now) {
        if self.dissemination.push_pull_at().is_none() {
            return;
        }
        let soon =
            self.config.gossip_interval * 2 + self.rng.within(self.config.gossip_interval * 4);
        let earliest = self.dissemination.compared_at() + COMPARE_AGAIN * 2;
        self.dissemination
            .push_pull_by((now.own + soon).max(earliest));
    }

    /// An address without an active member: every other time a seed, where one should be, and
    /// otherwise any member that is gone, from the table or the address book.
    pub(super) fn lost_address(&mut self) -> Option<Authority> {
        let own = self.own.authority();
        let seeds: BTreeSet<&Authority> = self
            .addresses
            .seeds()
            .iter()
            .filter(|seed| *seed != own && !self.is_active(seed))
            .collect();
        let gone = self.table.iter().map(|(_, entry)| &entry.record);
        let gone = gone
            .filter(|record| record.status.is_terminal())
            .map(|record| &record.authority);
        let gone: BTreeSet<&Authority> = gone
            .chain(self.addresses.former())
            .filter(|authority| *authority != own && !seeds.contains(*authority))
            .collect();
        if seeds.is_empty() && gone.is_empty() {
            return None;
        }
        let a_seed = gone.is_empty() || !seeds.is_empty() && self.rng.below(2) == 0;
        let candidates = if a_seed { seeds } else { gone };
        let index = self.rng.below(candidates.len());
        candidates.into_iter().nth(index).cloned()
    }

    pub(super) fn is_active(&self, authority: &Authority) -> bool {
        let record = self.table.record(authority);
        record.is_some_and(|record| record.status.is_active())
    }

    /// A peer's view of the ring differs: compare with it, but not with every member at once.
    pub(super) fn compare_soon(&mut self, authority: &Authority, now: Now) {
        let member = self.state == MembershipRuntimeState::Member && self.config.gossip_enabled;
        if member && now.own.saturating_since(self.dissemination.compared_at()) >= COMPARE_AGAIN {
            self.dissemination.compared(now.own);
            self.compare(authority, now);
        }
    }

    pub(super) fn compare(&mut self, authority: &Authority, now: Now) {
        if !self.config.gossip_enabled {
            return;
        }
        let message = Message::PullRequest {
            seen: self.seen(),
            observer: false,
            bookmark: 0,
            quarantines: self.quarantine.digest(now.raw),
            buckets: self.short_buckets(),
        };
        self.send(authority, message, Delivery::Reliable);
    }

    fn short_buckets(&self) -> Box<[u32; BUCKETS]> {
        let mut short = Box::new([0; BUCKETS]);
        for (short, &bucket) in short.iter_mut().zip(self.table.buckets()) {
            *short = (crate::core::base::hash::mix(bucket) >> 32) as u32;
        }
        short
    }

    pub(super) fn answer_pull(
        &mut self,
        peer: &Authority,
        seen: Seen,
        buckets: &[u32; BUCKETS],
        quarantines: u64,
        now: Now,
    ) {
        let member = self.state == MembershipRuntimeState::Member
            && self.own.status() != NodeStatus::Joining;
        if !member || !self.config.gossip_enabled {
            return;
        }
        let ours = self.short_buckets();
        let pairs = ours.iter().zip(buckets).enumerate();
        let wanted = pairs.fold(0, |wanted, (index, (ours, theirs))| {
            wanted | u64::from(ours != theirs) << index
        });
        let orders_differ = quarantines != self.quarantine.digest(now.raw);
        if wanted == 0 && !orders_differ && seen.digest == self.table.digest() {
            self.in_touch_with(peer, now);
            return;
        }
        let delta = MembershipDelta {
            from_version: self.table.version(),
            to_version: self.table.version(),
            records: self.bucket_records(wanted),
            quarantines: if orders_differ {
                self.quarantine.rumors(now.raw)
            } else {
                Vec::new()
            },
        };
        // With no part that differs, one bit still asks for the peer's quarantines.
        let wanted = if orders_differ { wanted | 1 } else { wanted };
        let message = Message::PullReply {
            seen: self.seen(),
            wanted,
            delta: fitting(delta),
        };
        self.send(peer, message, Delivery::Reliable);
    }

    pub(super) fn finish_pull(
        &mut self,
        peer: &Authority,
        seen: Seen,
        wanted: u64,
        delta: &MembershipDelta,
        now: Now,
    ) {
        if self.state == MembershipRuntimeState::Client {
            self.observed(peer, seen, delta, now);
            return;
        }
        let theirs: BTreeMap<&Authority, &MemberRecord> = delta
            .records
            .iter()
            .map(|record| (&record.authority, record))
            .collect();
        // The records that the peer is missing are collected before its records are merged.
        let better = |record: &&MemberRecord| match theirs.get(&record.authority) {
            None => true,
            Some(known) => {
                let mut known = (*known).clone();
                known.merge(record) != crate::core::state::record::Merge::Unchanged
            }
        };
        let records: Vec<MemberRecord> = self
            .table
            .in_buckets(wanted)
            .filter(better)
            .cloned()
            .collect();
        self.learn_all(delta, now);
        self.in_touch_with(peer, now);
        if wanted == 0
            || self.state != MembershipRuntimeState::Member
            || self.own.status() == NodeStatus::Joining
        {
            return;
        }
        let quarantines = self.quarantine.rumors(now.raw);
        if records.is_empty() && quarantines.is_empty() {
            return;
        }
        let version = self.table.version();
        let delta = MembershipDelta {
            from_version: version,
            to_version: version,
            records,
            quarantines,
        };
        let message = Message::PullReply {
            seen: self.seen(),
            wanted: 0,
            delta: fitting(delta),
        };
        self.send(peer, message, Delivery::Reliable);
    }

    /// A client asks a member for the changes since its bookmark there.
    pub(super) fn observe(&mut self, now: Now) {
        /// One in so many requests goes to an address without an active member: otherwise a client that was shown one side of a
        /// partition would never see the other.
        const LOOK_AROUND: usize = 4;
        let peer = match self.random_peers(1, None).pop() {
            Some(peer) if !self.receives_nothing_for_long(now) => peer,
            // Seeds are asked first, because this table may be stale.
            _ if self.addresses.seeds().is_empty() => return,
            _ => {
                let seeds = self.addresses.seeds();
                seeds[self.rng.below(seeds.len())].clone()
            }
        };
        let peer = match self.rng.below(LOOK_AROUND) {
            0 => self.lost_address().unwrap_or(peer),
            _ => peer,
        };
        let slot = self.table.slot_of(&peer);
        let bookmark = slot
            .and_then(|slot| self.table.entry(slot))
            .map_or(0, |entry| entry.peer_version);
        let message = Message::PullRequest {
            seen: self.seen(),
            observer: true,
            bookmark,
            quarantines: 0,
            buckets: Box::new([0; BUCKETS]),
        };
        self.send(&peer, message, Delivery::Reliable);
    }

    fn receives_nothing_for_long(&self, now: Now) -> bool {
        self.local_health.silence(now).0 > self.config.push_pull_interval * 3
    }

    pub(super) fn answer_observer(&mut self, peer: &Authority, bookmark: u64, now: Now) {
        if self.state != MembershipRuntimeState::Member || self.own.status() == NodeStatus::Joining
        {
            return;
        }
        let delta = MembershipDelta {
            quarantines: self.quarantine.rumors(now.raw),
            ..self.table.delta_since(bookmark)
        };
        if delta.from_version == 0 {
            self.outbox.metrics_mut().snapshots += 1;
            self.outbox.metrics_mut().gaps += u64::from(bookmark > 0);
        }
        let all = delta.records.len();
        let mut delta = fitting(delta);
        if delta.records.len() < all {
            // The rest follows from where this part ends: changes are sent in the order of the log.
            let last = delta.records.last().map(|record| &record.authority);
            delta.to_version = last.map_or(bookmark, |last| self.table.position_of(last));
        }
        let message = Message::PullReply {
            seen: self.seen(),
            wanted: 0,
            delta,
        };
        self.send(peer, message, Delivery::Reliable);
    }

    /// A client applies what it received. A whole snapshot also shows which members are gone.
    fn observed(&mut self, peer: &Authority, seen: Seen, delta: &MembershipDelta, now: Now) {
        self.replaced(peer, delta, now);
        self.learn_all(delta, now);
        if delta.from_version == 0 && delta.to_version == seen.version {
            let told: BTreeSet<&Authority> = delta
                .records
                .iter()
                .map(|record| &record.authority)
                .collect();
            let entries = self.table.iter();
            let unseen = entries.filter(|(_, entry)| {
                entry.record.status.is_active() && !told.contains(&entry.record.authority)
            });
            let unseen: Vec<Slot> = unseen.map(|(slot, _)| slot).collect();
            self.lose_sight(&unseen, now);
        }
        if let Some(slot) = self.table.slot_of(peer)
            && let Some(entry) = self.table.entry_mut(slot)
        {
            entry.peer_version = delta.to_version;
        }
    }

    /// Forgets the later life of a peer that answers in an earlier one: it was started with a clock that was set back, and this
    /// client missed the end of the later life.
    fn replaced(&mut self, peer: &Authority, delta: &MembershipDelta, now: Now) {
        let mut records = delta.records.iter();
        let own = records.find(|record| record.authority == *peer && record.status.is_active());
        let slot = self.table.slot_of(peer);
        let known = slot.and_then(|slot| self.table.entry(slot));
        if let (Some(slot), Some(known), Some(own)) = (slot, known, own)
            && known.record.status.is_active()
            && known.record.uid > own.uid
        {
            self.lose_sight(&[slot], now);
        }
    }

    /// Forgets members that the peer does not have. Their lives need not be over, so no tombstone is left, and all bookmarks are
    /// reset, because other members would leave these records out as known. There is no status event; the next topology event
    /// has the members as left.
    fn lose_sight(&mut self, slots: &[Slot], now: Now) {
        if slots.is_empty() {
            return;
        }
        for &slot in slots {
            let record = self.table.entry(slot).map(|entry| &entry.record);
            let lost = record.filter(|record| record.status.is_active());
            if let Some(identity) = lost.map(|record| record.identity()) {
                self.departed(identity, None, now);
            }
            self.collect(slot);
        }
        let seen: Vec<Slot> = self.table.active().to_vec();
        for slot in seen {
            if let Some(entry) = self.table.entry_mut(slot) {
                entry.peer_version = 0;
            }
        }
        self.topology.changed(now.own);
    }
}

fn without_metadata_unless(wanted: bool, record: MemberRecord) -> MemberRecord {
    if wanted {
        return record;
    }
    MemberRecord {
        metadata_stamp: 0,
        metadata: MemberMetadata::EMPTY,
        ..record
    }
}

/// As much of a delta as fits an envelope. The rest is still different the next time.
pub(super) fn fitting(mut delta: MembershipDelta) -> MembershipDelta {
    let mut room = MAX_ENVELOPE_BYTES - 1024;
    delta
        .quarantines
        .truncate(crate::core::wire::codec::MAX_DELTA_QUARANTINES);
    for rumor in &delta.quarantines {
        room = room.saturating_sub(encoded_rumor_len(rumor));
    }
    let fits = delta
        .records
        .iter()
        .take(crate::core::wire::codec::MAX_DELTA_RECORDS)
        .take_while(|record| {
            let len = encoded_len(record, true);
            let fits = len <= room;
            room = room.saturating_sub(len);
            fits
        });
    let count = fits.count();
    delta.records.truncate(count);
    delta
}
