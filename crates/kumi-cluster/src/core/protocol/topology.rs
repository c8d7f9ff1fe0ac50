//! Which changes become one event: the window that opens at the first change and closes a fixed time later.
//!
//! The event is the difference to the set told last, so a join and a leave inside one window cancel out, and a change
//! that was undone is not told at all. Metadata that was written anew is a difference too, with no member joined or gone.
//! Replaying the events gives the snapshot.

use crate::core::base::hash;
use crate::core::base::identity::{Authority, NodeIdentity};
use crate::core::base::time::TimerInstant;
use crate::core::protocol::event::ClusterEvent;
use crate::core::state::record::MemberRecord;
use crate::core::state::snapshot::Member;
use crate::core::state::table::MembershipTable;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

/// The difference between two sets of active members, and the hash of the later one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterTopology {
    /// Lives that were not in the earlier set.
    pub joined: Arc<[NodeIdentity]>,
    /// Lives that went by their own will or by order.
    pub left: Arc<[NodeIdentity]>,
    /// Lives that were declared dead or replaced.
    pub dead: Arc<[NodeIdentity]>,
    /// The hash over the sorted active (authority, uid, status): equal on nodes that agree.
    pub hash: u64,
}

/// Gathers changes and makes at most one event of them per window.
#[derive(Clone, Debug)]
pub(crate) struct TopologyEmitter {
    interval: Duration,
    /// When the open window closes.
    next_topology_emit_at: Option<TimerInstant>,
    emitted: Arc<[Member]>,
    emitted_hash: u64,
    /// Which writings of their metadata the members of that set had. Not part of the hash that nodes compare: metadata
    /// may come later than the member.
    emitted_metadata: u64,
    /// Lives that died inside the window: the difference alone cannot tell death from departure.
    died: BTreeSet<NodeIdentity>,
}

impl TopologyEmitter {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            next_topology_emit_at: None,
            emitted: Arc::from([]),
            emitted_hash: hash_of([].into_iter()),
            emitted_metadata: hash_of([].into_iter()),
            died: BTreeSet::new(),
        }
    }

    /// Something about the set of active members changed.
    pub(crate) fn changed(&mut self, now: TimerInstant) {
        self.next_topology_emit_at
            .get_or_insert(now + self.interval);
    }

    /// A life was declared dead or replaced.
    pub(crate) fn died(&mut self, identity: NodeIdentity, now: TimerInstant) {
        self.changed(now);
        self.died.insert(identity);
    }

    pub(crate) fn deadline(&self) -> Option<TimerInstant> {
        self.next_topology_emit_at
    }

    /// Closes the window when its time has come; an event only if the set differs from the one told last.
    pub(crate) fn poll(
        &mut self,
        table: &MembershipTable,
        blocked: impl FnOnce() -> Arc<[Authority]>,
        now: TimerInstant,
        observed_at: TimerInstant,
    ) -> Option<ClusterEvent> {
        if self.next_topology_emit_at.is_none_or(|at| now < at) {
            return None;
        }
        self.next_topology_emit_at = None;
        let died = core::mem::take(&mut self.died);
        let (hash, metadata) = (table_hash(table), metadata_hash(table));
        if hash == self.emitted_hash && metadata == self.emitted_metadata {
            return None;
        }
        let members = active_members(table);
        let before = core::mem::replace(&mut self.emitted, members.clone());
        self.emitted_hash = hash;
        self.emitted_metadata = metadata;
        let mut difference = Difference::between(&before, &members);
        let (dead, left) = difference
            .gone
            .drain(..)
            .partition(|gone| died.contains(gone));
        let (joined, left, dead): (Arc<[_]>, Arc<[_]>, Arc<[_]>) =
            (difference.joined.into(), Vec::into(left), Vec::into(dead));
        let topology = Arc::new(ClusterTopology {
            joined: joined.clone(),
            left: left.clone(),
            dead: dead.clone(),
            hash,
        });
        Some(ClusterEvent::TopologyUpdated {
            topology,
            members,
            joined,
            left,
            dead,
            blocked: blocked(),
            observed_at,
        })
    }
}

/// The lives in one sorted set and not in the other.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    pub(crate) joined: Vec<NodeIdentity>,
    pub(crate) gone: Vec<NodeIdentity>,
}

impl Difference {
    pub(crate) fn between(before: &[Member], after: &[Member]) -> Self {
        let mut difference = Self::default();
        let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
        loop {
            let key = |member: &&Member| (member.authority.clone(), member.uid);
            let order = match (old.peek(), new.peek()) {
                (None, None) => return difference,
                (Some(_), None) => core::cmp::Ordering::Less,
                (None, Some(_)) => core::cmp::Ordering::Greater,
                (Some(one), Some(two)) if one.authority == two.authority && one.uid == two.uid => {
                    core::cmp::Ordering::Equal
                }
                (Some(one), Some(two)) => key(one).cmp(&key(two)),
            };
            if order.is_le() {
                let gone = old.next().filter(|_| order.is_lt());
                difference.gone.extend(gone.map(Member::identity));
            }
            if order.is_ge() {
                let joined = new.next().filter(|_| order.is_gt());
                difference.joined.extend(joined.map(Member::identity));
            }
        }
    }
}

/// The active members of a table, sorted by authority.
pub(crate) fn active_members(table: &MembershipTable) -> Arc<[Member]> {
    let active = active_records(table).map(Member::of);
    active.collect::<Vec<_>>().into()
}

/// The hash that nodes compare.
pub(crate) fn table_hash(table: &MembershipTable) -> u64 {
    let active = table.iter().map(|(_, entry)| entry);
    let active = active.filter(|entry| entry.record.status.is_active());
    hash_of(active.map(|entry| entry.record.topology_hash(entry.place)))
}

/// The same for members that have left the table.
pub(crate) fn members_hash(members: &[Member]) -> u64 {
    hash_of(members.iter().map(|member| {
        let place = hash::fold(member.authority.place(), member.uid.raw());
        hash::fold(place, u64::from(member.status.code()))
    }))
}

/// Which writings of their metadata the active members have.
fn metadata_hash(table: &MembershipTable) -> u64 {
    hash_of(active_records(table).map(|record| record.metadata_stamp))
}

fn hash_of(members: impl Iterator<Item = u64>) -> u64 {
    members.fold(hash::mix(1), hash::fold)
}

fn active_records(table: &MembershipTable) -> impl Iterator<Item = &MemberRecord> {
    let records = table.iter().map(|(_, entry)| &entry.record);
    records.filter(|record| record.status.is_active())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::base::identity::NodeUid;
    use crate::core::base::metadata::MemberMetadata;
    use crate::core::base::status::NodeStatus::{self, *};
    use alloc::vec;

    const WINDOW: Duration = Duration::from_secs(1);

    fn identity(name: &str, uid: u64) -> NodeIdentity {
        let authority = Authority::new(name).expect("valid");
        NodeIdentity {
            authority,
            uid: NodeUid::from_raw(uid),
        }
    }

    /// Joined, left, dead, and the number of members.
    type Told = (
        Vec<NodeIdentity>,
        Vec<NodeIdentity>,
        Vec<NodeIdentity>,
        usize,
    );

    struct World {
        table: MembershipTable,
        emitter: TopologyEmitter,
    }

    impl World {
        fn new() -> Self {
            Self {
                table: MembershipTable::new(99),
                emitter: TopologyEmitter::new(WINDOW),
            }
        }

        fn set(&mut self, identity: &NodeIdentity, status: NodeStatus, ms: u64) {
            let record = MemberRecord::new(identity.clone(), status, MemberMetadata::EMPTY);
            self.table.apply(&record).expect("there is room");
            match status {
                Dead => self
                    .emitter
                    .died(identity.clone(), TimerInstant::from_millis(ms)),
                _ => self.emitter.changed(TimerInstant::from_millis(ms)),
            }
        }

        fn poll(&mut self, ms: u64) -> Option<Told> {
            let now = TimerInstant::from_millis(ms);
            let event = self.emitter.poll(&self.table, || Arc::from([]), now, now)?;
            let ClusterEvent::TopologyUpdated {
                topology,
                members,
                joined,
                left,
                dead,
                ..
            } = event
            else {
                panic!("another event");
            };
            assert_eq!(topology.hash, members_hash(&members));
            Some((joined.to_vec(), left.to_vec(), dead.to_vec(), members.len()))
        }
    }

    #[test]
    fn changes_inside_one_window_become_one_event() {
        let (mut world, a, b) = (World::new(), identity("a:1", 1), identity("b:1", 1));
        world.set(&a, Up, 100);
        world.set(&b, Up, 900);
        assert_eq!(
            world.emitter.deadline(),
            Some(TimerInstant::from_millis(1100))
        );
        assert_eq!(world.poll(1099), None);
        assert_eq!(world.poll(1100), Some((vec![a, b], vec![], vec![], 2)));
        assert_eq!(world.poll(9999), None);
    }

    #[test]
    fn a_join_and_leave_inside_one_window_cancel_out() {
        let (mut world, a) = (World::new(), identity("a:1", 1));
        world.set(&a, Up, 0);
        world.set(&a, Removed, 10);
        assert_eq!(world.poll(5000), None);
        assert_eq!(world.emitter.deadline(), None);
    }

    #[test]
    fn death_and_departure_are_told_apart() {
        let (mut world, a, b) = (World::new(), identity("a:1", 1), identity("b:1", 1));
        world.set(&a, Up, 0);
        world.set(&b, Up, 0);
        world.poll(1000);
        world.set(&a, Dead, 2000);
        world.set(&b, Removed, 2000);
        assert_eq!(world.poll(3000), Some((vec![], vec![b], vec![a], 0)));
    }

    #[test]
    fn a_restart_is_the_death_of_one_life_and_the_birth_of_another() {
        let (mut world, old, new) = (World::new(), identity("a:1", 1), identity("a:1", 2));
        world.set(&old, Up, 0);
        world.poll(1000);
        world
            .emitter
            .died(old.clone(), TimerInstant::from_millis(1500));
        world.set(&new, Joining, 1500);
        assert_eq!(world.poll(2500), Some((vec![new], vec![], vec![old], 1)));
    }

    #[test]
    fn metadata_that_comes_later_is_told_with_the_same_hash() {
        let (mut world, a) = (World::new(), identity("a:1", 1));
        world.set(&a, Up, 0);
        world.poll(1000);
        let hash = table_hash(&world.table);
        let record = MemberRecord {
            metadata_stamp: 2,
            metadata: MemberMetadata::from_bytes(b"later").expect("short"),
            ..MemberRecord::new(a, Up, MemberMetadata::EMPTY)
        };
        world.table.apply(&record).expect("there is room");
        world.emitter.changed(TimerInstant::from_millis(2000));
        assert_eq!(world.poll(3000), Some((vec![], vec![], vec![], 1)));
        assert_eq!(world.emitter.emitted[0].metadata.as_bytes(), b"later");
        assert_eq!(table_hash(&world.table), hash);
        world.emitter.changed(TimerInstant::from_millis(4000));
        assert_eq!(world.poll(5000), None, "told once");
    }

    #[test]
    fn a_changed_status_alone_is_an_event_with_no_member_joined_or_left() {
        let (mut world, a) = (World::new(), identity("a:1", 1));
        world.set(&a, Up, 0);
        world.poll(1000);
        world.set(&a, Suspect, 2000);
        assert_eq!(world.poll(3000), Some((vec![], vec![], vec![], 1)));
    }
}
