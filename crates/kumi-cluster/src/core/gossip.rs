//! The queue of updates to gossip: which are sent next, and how often each is sent.
//!
//! Every change that was applied becomes an update. It is sent a bounded number of times, about
//! `4 log10 N`, which reaches every member but a few of a million; push-pull reaches the rest. The updates sent least
//! often so far go first, the newest of them first. An update that is received from another member counts as sent, up to a
//! quarter of the times: where every member has it already, it leaves the queue early. An empty queue sends nothing.

use crate::core::identity::Authority;
use crate::core::table::Slot;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// The subject of an update. There is one update per subject: a later one replaces an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    Quarantine(Authority),
    Member(Slot),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Priority {
    told: u32,
    /// Counts down, so that the newest comes first.
    age: u64,
}

#[derive(Clone, Copy, Debug)]
struct Rumor {
    priority: Priority,
    with_metadata: bool,
}

/// The limits of one push.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packets {
    /// How many packets.
    pub(crate) count: usize,
    /// How many bytes fit into each.
    pub(crate) budget: usize,
}

/// The queue of updates.
#[derive(Clone, Debug)]
pub struct GossipEngine {
    rumors: BTreeMap<Subject, Rumor>,
    order: BTreeSet<(Priority, Subject)>,
    next_age: u64,
}

impl Default for GossipEngine {
    fn default() -> Self {
        Self {
            rumors: BTreeMap::new(),
            order: BTreeSet::new(),
            next_age: u64::MAX,
        }
    }
}

impl GossipEngine {
    /// How often a rumour is sent in a cluster of so many.
    ///
    /// ```
    /// use kumi_cluster::core::GossipEngine;
    ///
    /// assert_eq!(GossipEngine::retransmissions(2), 2);
    /// assert_eq!(GossipEngine::retransmissions(1000), 13);
    /// ```
    pub fn retransmissions(members: usize) -> u32 {
        libm::ceil(4.0 * libm::log10(members as f64 + 1.0)).max(1.0) as u32
    }

    /// How many rumours are waiting. There is at most one per record and quarantine.
    pub fn len(&self) -> usize {
        self.rumors.len()
    }

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.rumors.is_empty()
    }

    /// Queues an update of this subject. Metadata that is due stays due until it was sent often enough.
    pub(crate) fn enqueue(&mut self, subject: Subject, with_metadata: bool) {
        let before = self.remove(&subject);
        let with_metadata = with_metadata || before.is_some_and(|rumor| rumor.with_metadata);
        self.next_age -= 1;
        let priority = Priority {
            told: 0,
            age: self.next_age,
        };
        self.insert(
            subject,
            Rumor {
                priority,
                with_metadata,
            },
        );
    }

    /// Whether there is news about this member that is not told often enough yet.
    pub(crate) fn tells(&self, slot: Slot) -> bool {
        self.rumors.contains_key(&Subject::Member(slot))
    }

    /// An update that is still queued was received from a member. That counts as sent, for at most a quarter of the times:
    /// each count used up by receiving is one peer fewer that gets it from this node.
    pub(crate) fn heard_again(&mut self, slot: Slot, limit: u32) {
        let subject = Subject::Member(slot);
        let told = self.rumors.get(&subject).map(|rumor| rumor.priority.told);
        if told.is_some_and(|told| told < limit / 4) {
            self.told(&subject, 1, limit);
        }
    }

    /// Chooses what fits into so many packets, and counts it as told to `peers`. A rumour is in one packet only: who
    /// gets all of them should not get it twice. One that fits no packet has one to itself, which is longer than the
    /// others. Subjects without a length are gone.
    pub(crate) fn fill(
        &mut self,
        packets: Packets,
        peers: u32,
        limit: u32,
        mut len_of: impl FnMut(&Subject, bool) -> Option<usize>,
    ) -> Vec<Vec<(Subject, bool)>> {
        /// How many rumours that do not fit are passed over in search of one that does.
        const MAX_PASSED_OVER: usize = 8;
        let (mut chosen, mut gone) = (Vec::new(), Vec::new());
        let (mut packet, mut room, mut passed_over) = (Vec::new(), packets.budget, 0);
        for (_, subject) in &self.order {
            let with_metadata = self
                .rumors
                .get(subject)
                .is_some_and(|rumor| rumor.with_metadata);
            let Some(len) = len_of(subject, with_metadata) else {
                gone.push(subject.clone());
                continue;
            };
            let more = chosen.len() + 1 < packets.count;
            if len > packets.budget && more {
                chosen.push(Vec::from([(subject.clone(), with_metadata)]));
                continue;
            }
            if len > room && len <= packets.budget && more {
                chosen.push(core::mem::take(&mut packet));
                room = packets.budget;
            }
            if len <= room {
                room -= len;
                packet.push((subject.clone(), with_metadata));
            } else {
                passed_over += 1;
            }
            if passed_over > MAX_PASSED_OVER {
                break;
            }
        }
        chosen.push(packet);
        chosen.retain(|packet| !packet.is_empty());
        for subject in &gone {
            self.remove(subject);
        }
        for (subject, _) in chosen.iter().flatten() {
            self.told(subject, peers, limit);
        }
        chosen
    }

    /// There is no peer to send to. A member that comes later gets the whole table.
    pub(crate) fn clear(&mut self) {
        self.rumors.clear();
        self.order.clear();
    }

    pub(crate) fn forget(&mut self, subject: &Subject) {
        self.remove(subject);
    }

    fn told(&mut self, subject: &Subject, times: u32, limit: u32) {
        let Some(mut rumor) = self.remove(subject) else {
            return;
        };
        rumor.priority.told += times;
        if rumor.priority.told < limit {
            self.insert(subject.clone(), rumor);
        }
    }

    fn insert(&mut self, subject: Subject, rumor: Rumor) {
        self.order.insert((rumor.priority, subject.clone()));
        self.rumors.insert(subject, rumor);
    }

    fn remove(&mut self, subject: &Subject) -> Option<Rumor> {
        let rumor = self.rumors.remove(subject)?;
        self.order.remove(&(rumor.priority, subject.clone()));
        Some(rumor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    impl Subject {
        fn name(&self) -> &str {
            match self {
                Self::Quarantine(authority) => authority.as_str(),
                Self::Member(_) => "",
            }
        }
    }

    fn subject(name: &str) -> Subject {
        Subject::Quarantine(Authority::new(name).expect("valid"))
    }

    fn one(budget: usize) -> Packets {
        Packets { count: 1, budget }
    }

    fn names(chosen: &[Vec<(Subject, bool)>]) -> Vec<&str> {
        let subjects = chosen.iter().flatten().map(|(subject, _)| subject);
        subjects.map(Subject::name).collect()
    }

    #[test]
    fn a_rumour_is_told_so_often_and_then_no_more() {
        let mut engine = GossipEngine::default();
        engine.enqueue(subject("a"), false);
        let mut told = 0;
        while !engine.is_empty() {
            told += 3 * names(&engine.fill(one(100), 3, 13, |_, _| Some(10))).len();
        }
        assert_eq!(told, 15);
    }

    #[test]
    fn least_told_and_newest_go_first() {
        let mut engine = GossipEngine::default();
        engine.enqueue(subject("a"), false);
        engine.enqueue(subject("b"), false);
        assert_eq!(
            names(&engine.fill(one(10), 1, 9, |_, _| Some(10))),
            vec!["b"]
        );
        assert_eq!(
            names(&engine.fill(one(10), 1, 9, |_, _| Some(10))),
            vec!["a"]
        );
        engine.enqueue(subject("a"), false);
        assert_eq!(
            names(&engine.fill(one(20), 1, 9, |_, _| Some(10))),
            vec!["a", "b"]
        );
    }

    #[test]
    fn later_news_replace_earlier_ones_and_keep_the_metadata_due() {
        let mut engine = GossipEngine::default();
        engine.enqueue(subject("a"), true);
        engine.enqueue(subject("a"), false);
        assert_eq!(engine.len(), 1);
        assert_eq!(
            engine.fill(one(99), 1, 9, |_, _| Some(1)),
            vec![vec![(subject("a"), true)]]
        );
    }

    #[test]
    fn what_does_not_fit_waits_and_what_is_gone_is_dropped() {
        let mut engine = GossipEngine::default();
        for name in ["a", "b", "c"] {
            engine.enqueue(subject(name), false);
        }
        let len_of = |one: &Subject, _| match one {
            one if *one == subject("c") => None,
            one if *one == subject("b") => Some(500),
            _ => Some(10),
        };
        assert_eq!(names(&engine.fill(one(100), 1, 9, len_of)), vec!["a"]);
        assert_eq!(engine.len(), 2);
    }

    #[test]
    fn what_fits_no_packet_has_one_to_itself_and_delays_no_other() {
        let mut engine = GossipEngine::default();
        engine.enqueue(subject("small"), false);
        let long: Vec<alloc::string::String> =
            (0..20).map(|index| alloc::format!("long{index}")).collect();
        long.iter()
            .for_each(|name| engine.enqueue(subject(name), false));
        let packets = Packets {
            count: 8,
            budget: 100,
        };
        let mut told: BTreeMap<alloc::string::String, usize> = BTreeMap::new();
        while !engine.is_empty() {
            let len_of = |one: &Subject, _| Some(if *one == subject("small") { 10 } else { 500 });
            let chosen = engine.fill(packets, 3, 6, len_of);
            assert!(chosen.len() <= 8);
            assert!(chosen.iter().all(|packet| packet.len() == 1));
            for name in names(&chosen) {
                *told.entry(name.into()).or_default() += 1;
            }
        }
        assert_eq!(told.len(), 21);
        assert!(told.values().all(|&times| times == 2), "{told:?}");
    }

    #[test]
    fn several_packets_hold_each_rumour_once() {
        let mut engine = GossipEngine::default();
        for name in ["a", "b", "c", "d", "e"] {
            engine.enqueue(subject(name), false);
        }
        let packets = Packets {
            count: 2,
            budget: 25,
        };
        let chosen = engine.fill(packets, 4, 99, |_, _| Some(10));
        assert_eq!(chosen.len(), 2);
        assert_eq!(names(&chosen), ["e", "d", "c", "b"]);
        let rest = engine.fill(packets, 4, 99, |_, _| Some(10));
        assert_eq!(names(&rest)[0], "a", "told least");
    }

    #[test]
    fn listening_uses_up_a_quarter_of_the_tellings_at_most() {
        let mut engine = GossipEngine::default();
        let mut table = crate::core::table::MembershipTable::new(9);
        let identity = crate::core::identity::NodeIdentity {
            authority: Authority::new("a").expect("valid"),
            uid: crate::core::identity::NodeUid::from_raw(1),
        };
        let record = crate::core::record::MemberRecord::new(
            identity,
            crate::core::status::NodeStatus::Up,
            crate::core::metadata::MemberMetadata::EMPTY,
        );
        table.apply(&record).expect("there is room");
        let slot = table.slot_of(&record.authority).expect("known");
        engine.enqueue(Subject::Member(slot), false);
        (0..99).for_each(|_| engine.heard_again(slot, 12));
        let mut told = 0;
        while engine.tells(slot) {
            told += engine.fill(one(99), 1, 12, |_, _| Some(1)).len();
        }
        assert_eq!(told, 9);
    }
}
