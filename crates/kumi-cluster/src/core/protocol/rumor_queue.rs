//! The queue of updates to gossip: which are sent next, and how often each is sent.
//!
//! Every change that was applied becomes an update. It is sent a bounded number of times, about
//! `4 log10 N`, which reaches every member but a few of a million; push-pull reaches the rest. The updates sent least
//! often so far go first, the newest of them first. An update that is received from another member counts as sent, up to a
//! quarter of the times: where every member has it already, it leaves the queue early. An empty queue sends nothing.

use crate::core::base::identity::Authority;
use crate::core::state::table::Slot;
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
    /// How often it was sent.
    sent: u32,
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

/// The queue of updates to gossip.
#[derive(Clone, Debug)]
pub struct RumorQueue {
    rumors: BTreeMap<Subject, Rumor>,
    order: BTreeSet<(Priority, Subject)>,
    next_age: u64,
}

impl Default for RumorQueue {
    fn default() -> Self {
        Self {
            rumors: BTreeMap::new(),
            order: BTreeSet::new(),
            next_age: u64::MAX,
        }
    }
}

impl RumorQueue {
    /// How often an update is sent in a cluster of so many members.
    ///
    /// ```
    /// use kumi_cluster::core::RumorQueue;
    ///
    /// assert_eq!(RumorQueue::retransmissions(2), 2);
    /// assert_eq!(RumorQueue::retransmissions(1000), 13);
    /// ```
    pub fn retransmissions(members: usize) -> u32 {
        libm::ceil(4.0 * libm::log10(members as f64 + 1.0)).max(1.0) as u32
    }

    /// How many updates are queued: at most one per record and one per quarantine.
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
            sent: 0,
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

    /// Whether an update about this member is queued.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.rumors.contains_key(&Subject::Member(slot))
    }

    /// An update that is still queued was received from a member. That counts as sent, for at most a quarter of the times:
    /// each count used up by receiving is one peer fewer that gets it from this node.
    pub(crate) fn received_again(&mut self, slot: Slot, limit: u32) {
        let subject = Subject::Member(slot);
        let sent = self.rumors.get(&subject).map(|rumor| rumor.priority.sent);
        if sent.is_some_and(|sent| sent < limit / 4) {
            self.count_sent(&subject, 1, limit);
        }
    }

    /// Chooses the updates that fit into so many packets, and counts them as sent to so many `peers`. An update is in one
    /// packet only, because each peer gets all packets. One that fits no packet has one to itself, which is longer than the
    /// others. Subjects for which `len_of` returns `None` are dropped from the queue.
    pub(crate) fn fill(
        &mut self,
        packets: Packets,
        peers: u32,
        limit: u32,
        mut len_of: impl FnMut(&Subject, bool) -> Option<usize>,
    ) -> Vec<Vec<(Subject, bool)>> {
        /// How many updates that do not fit are passed over in search of one that does.
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
            self.count_sent(subject, peers, limit);
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

    fn count_sent(&mut self, subject: &Subject, times: u32, limit: u32) {
        let Some(mut rumor) = self.remove(subject) else {
            return;
        };
        rumor.priority.sent += times;
        if rumor.priority.sent < limit {
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
    fn an_update_is_sent_so_often_and_then_leaves_the_queue() {
        let mut queue = RumorQueue::default();
        queue.enqueue(subject("a"), false);
        let mut sent = 0;
        while !queue.is_empty() {
            sent += 3 * names(&queue.fill(one(100), 3, 13, |_, _| Some(10))).len();
        }
        assert_eq!(sent, 15);
    }

    #[test]
    fn updates_sent_least_often_go_first_and_of_those_the_newest() {
        let mut queue = RumorQueue::default();
        queue.enqueue(subject("a"), false);
        queue.enqueue(subject("b"), false);
        assert_eq!(
            names(&queue.fill(one(10), 1, 9, |_, _| Some(10))),
            vec!["b"]
        );
        assert_eq!(
            names(&queue.fill(one(10), 1, 9, |_, _| Some(10))),
            vec!["a"]
        );
        queue.enqueue(subject("a"), false);
        assert_eq!(
            names(&queue.fill(one(20), 1, 9, |_, _| Some(10))),
            vec!["a", "b"]
        );
    }

    #[test]
    fn a_later_update_replaces_an_earlier_one_and_keeps_the_metadata_due() {
        let mut queue = RumorQueue::default();
        queue.enqueue(subject("a"), true);
        queue.enqueue(subject("a"), false);
        assert_eq!(queue.len(), 1);
        assert_eq!(
            queue.fill(one(99), 1, 9, |_, _| Some(1)),
            vec![vec![(subject("a"), true)]]
        );
    }

    #[test]
    fn what_does_not_fit_waits_and_what_is_gone_is_dropped() {
        let mut queue = RumorQueue::default();
        for name in ["a", "b", "c"] {
            queue.enqueue(subject(name), false);
        }
        let len_of = |one: &Subject, _| match one {
            one if *one == subject("c") => None,
            one if *one == subject("b") => Some(500),
            _ => Some(10),
        };
        assert_eq!(names(&queue.fill(one(100), 1, 9, len_of)), vec!["a"]);
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn what_fits_no_packet_has_one_to_itself_and_delays_no_other() {
        let mut queue = RumorQueue::default();
        queue.enqueue(subject("small"), false);
        let long: Vec<alloc::string::String> =
            (0..20).map(|index| alloc::format!("long{index}")).collect();
        long.iter()
            .for_each(|name| queue.enqueue(subject(name), false));
        let packets = Packets {
            count: 8,
            budget: 100,
        };
        let mut sent: BTreeMap<alloc::string::String, usize> = BTreeMap::new();
        while !queue.is_empty() {
            let len_of = |one: &Subject, _| Some(if *one == subject("small") { 10 } else { 500 });
            let chosen = queue.fill(packets, 3, 6, len_of);
            assert!(chosen.len() <= 8);
            assert!(chosen.iter().all(|packet| packet.len() == 1));
            for name in names(&chosen) {
                *sent.entry(name.into()).or_default() += 1;
            }
        }
        assert_eq!(sent.len(), 21);
        assert!(sent.values().all(|&times| times == 2), "{sent:?}");
    }

    #[test]
    fn several_packets_hold_each_update_once() {
        let mut queue = RumorQueue::default();
        for name in ["a", "b", "c", "d", "e"] {
            queue.enqueue(subject(name), false);
        }
        let packets = Packets {
            count: 2,
            budget: 25,
        };
        let chosen = queue.fill(packets, 4, 99, |_, _| Some(10));
        assert_eq!(chosen.len(), 2);
        assert_eq!(names(&chosen), ["e", "d", "c", "b"]);
        let rest = queue.fill(packets, 4, 99, |_, _| Some(10));
        assert_eq!(names(&rest)[0], "a", "sent least often");
    }

    #[test]
    fn receiving_an_update_counts_as_sending_for_a_quarter_of_the_times_at_most() {
        let mut queue = RumorQueue::default();
        let mut table = crate::core::state::table::MembershipTable::new(9);
        let identity = crate::core::base::identity::NodeIdentity {
            authority: Authority::new("a").expect("valid"),
            uid: crate::core::base::identity::NodeUid::from_raw(1),
        };
        let record = crate::core::state::record::MemberRecord::new(
            identity,
            crate::core::base::status::NodeStatus::Up,
            crate::core::base::metadata::MemberMetadata::EMPTY,
        );
        table.apply(&record).expect("there is room");
        let slot = table.slot_of(&record.authority).expect("known");
        queue.enqueue(Subject::Member(slot), false);
        (0..99).for_each(|_| queue.received_again(slot, 12));
        let mut sent = 0;
        while queue.has(slot) {
            sent += queue.fill(one(99), 1, 12, |_, _| Some(1)).len();
        }
        assert_eq!(sent, 9);
    }
}
