//! A consumer group: how far it has read, its consumers, and the entries that were delivered and not acknowledged.
//!
//! A pending entry stands in the group's list with its state, and by its id alone in the list of the consumer that owns
//! it. Consumers are named by a slot number inside the group, so that a pending entry needs no copy of a name.

use super::{Stream, StreamId};
use crate::types::Slices;
use crate::types::ordered::{Ordered, Place};
use crate::types::sorted::Sorted;
use std::ops::{Deref, DerefMut, RangeInclusive};

/// What a pending entry takes in the two sorted maps: its id twice, and its state.
const BYTES_PER_PENDING: usize = 2 * size_of::<StreamId>() + size_of::<Nack>();
/// What a consumer takes besides its name: its slot and its place in the order.
const BYTES_PER_CONSUMER: usize = size_of::<Option<Consumer>>() + size_of::<u32>();

/// A consumer's slot in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConsumerKey(u32);

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nack {
    pub(crate) consumer: ConsumerKey,
    /// When it was delivered last, in Unix milliseconds.
    pub(crate) delivery_time: i64,
    pub(crate) delivery_count: u64,
}

/// One consumer of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Consumer {
    name: Box<[u8]>,
    /// When it last asked for anything, in Unix milliseconds.
    pub(crate) seen_time: i64,
    /// When it last got anything; -1 for never.
    pub(crate) active_time: i64,
    /// The ids of its pending entries.
    pending: Sorted<StreamId, ()>,
}

impl Consumer {
    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// The ids of its pending entries in a range.
    pub(crate) fn pending(
        &self,
        range: RangeInclusive<StreamId>,
    ) -> impl Iterator<Item = StreamId> + '_ {
        let range = (range.start() <= range.end()).then_some(range);
        range
            .into_iter()
            .flat_map(|range| self.pending.range(range).map(|(id, ())| id))
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending.len()
    }
}

/// A consumer group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    last_id: StreamId,
    entries_read: Option<u64>,
    pending: Sorted<StreamId, Nack>,
    slots: Vec<Option<Consumer>>,
    /// The slots in use, in the order of the consumers' names.
    order: Ordered<u32>,
    /// The slots not in use.
    free: Vec<u32>,
    /// The bytes of all names.
    name_bytes: usize,
}

impl Group {
    pub(crate) fn new(last_id: StreamId, entries_read: Option<u64>) -> Self {
        Self {
            last_id,
            entries_read,
            ..Self::default()
        }
    }

    /// The last entry that was delivered to any consumer.
    pub(crate) fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// How many of the entries ever added the group has read, where it is known.
    pub(crate) fn entries_read(&self) -> Option<u64> {
        self.entries_read
    }

    /// Moves the group, as XGROUP SETID does.
    pub(crate) fn set_last_id(&mut self, last_id: StreamId, entries_read: Option<u64>) {
        self.last_id = last_id;
        self.entries_read = entries_read;
    }

    /// What the group takes from the heap, its own size included.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.pending.len() * BYTES_PER_PENDING
            + self.slots.len() * BYTES_PER_CONSUMER
            + self.name_bytes
    }

    pub(crate) fn find_consumer(&self, name: &[u8]) -> Option<ConsumerKey> {
        let place = self.find_name(name).ok()?;
        self.order.get(place).map(|&slot| ConsumerKey(slot))
    }

    /// The place of a name in the order, or the one it would get.
    fn find_name(&self, name: &[u8]) -> Result<Place, Place> {
        self.order
            .find(|&slot| name_of(&self.slots, slot).cmp(name))
    }

    /// Creates a consumer; `None` if there is one of that name.
    pub(crate) fn create_consumer(&mut self, name: &[u8], now_ms: i64) -> Option<ConsumerKey> {
        let place = self.find_name(name).err()?;
        let slot = self.add_consumer(name, now_ms, -1);
        self.order.insert(place, slot);
        Some(ConsumerKey(slot))
    }

    /// Adds a consumer that was serialised. Its name may be any; [`Group::sort_consumers`] follows behind the last one.
    pub(crate) fn restore_consumer(
        &mut self,
        name: &[u8],
        seen_time: i64,
        active_time: i64,
    ) -> ConsumerKey {
        let slot = self.add_consumer(name, seen_time, active_time);
        self.order.push(slot);
        ConsumerKey(slot)
    }

    /// Brings restored consumers into order, all at once: one by one they would be moved a quadratic number of times.
    /// `false` if two have the same name.
    pub(crate) fn sort_consumers(&mut self) -> bool {
        let name = |slot| name_of(&self.slots, slot);
        self.order
            .sort_by(|&one, &other| name(one).cmp(name(other)));
        self.order
            .iter()
            .is_sorted_by(|&&one, &&other| name(one) < name(other))
    }

    /// Gives a consumer a slot, without a place in the order.
    fn add_consumer(&mut self, name: &[u8], seen_time: i64, active_time: i64) -> u32 {
        let consumer = Consumer {
            name: name.into(),
            seen_time,
            active_time,
            pending: Sorted::default(),
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                if self.slots.is_empty() {
                    // Many groups have one consumer.
                    self.slots.reserve_exact(1);
                }
                self.slots.push(None);
                self.slots.len() as u32 - 1
            }
        };
        self.slots[slot as usize] = Some(consumer);
        self.name_bytes += name.len();
        slot
    }

    /// Removes a consumer with its pending entries, and returns how many it had; `None` if there is no such consumer.
    pub(crate) fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let place = self.find_name(name).ok()?;
        let slot = self.order.remove(place)?;
        let consumer = self.slots[slot as usize].take()?;
        self.free.push(slot);
        self.name_bytes -= name.len();
        for (id, ()) in consumer.pending.iter() {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// The consumer of a key. A key is good until its consumer is removed.
    pub(crate) fn consumer(&self, key: ConsumerKey) -> Option<&Consumer> {
        self.slots.get(key.0 as usize)?.as_ref()
    }

    pub(crate) fn consumer_mut(&mut self, key: ConsumerKey) -> Option<&mut Consumer> {
        self.slots.get_mut(key.0 as usize)?.as_mut()
    }

    /// The consumers in the order of their names.
    pub(crate) fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.order
            .iter()
            .filter_map(|&slot| self.consumer(ConsumerKey(slot)))
    }

    pub(crate) fn consumer_count(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// The first and the last pending entry.
    pub(crate) fn pending_ends(&self) -> Option<(StreamId, StreamId)> {
        let (first, _) = self.pending.first()?;
        let (last, _) = self.pending.last()?;
        Some((first, last))
    }

    /// The state of a pending entry.
    pub(crate) fn nack(&self, id: StreamId) -> Option<&Nack> {
        self.pending.get(id)
    }

    /// The pending entries in a range, in order.
    pub(crate) fn pending(
        &self,
        range: RangeInclusive<StreamId>,
    ) -> impl Iterator<Item = (StreamId, &Nack)> {
        let range = (range.start() <= range.end()).then_some(range);
        range
            .into_iter()
            .flat_map(|range| self.pending.range(range))
    }

    /// Makes an entry pending, or moves one that is to another consumer. `false`, and nothing happens, when there is
    /// no such consumer.
    pub(crate) fn set_pending(&mut self, id: StreamId, nack: Nack) -> bool {
        if self.consumer(nack.consumer).is_none() {
            return false;
        }
        let before = self.pending.insert(id, nack);
        if let Some(before) = before
            && before.consumer != nack.consumer
            && let Some(owner) = self.consumer_mut(before.consumer)
        {
            owner.pending.remove(id);
        }
        if let Some(owner) = self.consumer_mut(nack.consumer) {
            owner.pending.insert(id, ());
        }
        true
    }

    /// Marks an entry as delivered to a consumer, as XREADGROUP does without NOACK.
    pub(crate) fn deliver(&mut self, id: StreamId, consumer: ConsumerKey, now_ms: i64) -> bool {
        let nack = Nack {
            consumer,
            delivery_time: now_ms,
            delivery_count: 1,
        };
        self.set_pending(id, nack)
    }

    /// Counts another delivery of an entry that is pending, as XREADGROUP does for a consumer's history.
    pub(crate) fn redeliver(&mut self, id: StreamId, now_ms: i64) {
        if let Some(nack) = self.pending.get_mut(id) {
            nack.delivery_time = now_ms;
            nack.delivery_count = nack.delivery_count.saturating_add(1);
        }
    }

    /// Acknowledges an entry; returns whether it was pending.
    pub(crate) fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(nack) = self.pending.remove(id) else {
            return false;
        };
        if let Some(owner) = self.consumer_mut(nack.consumer) {
            owner.pending.remove(id);
        }
        true
    }
}

/// The name of the consumer in a slot.
fn name_of(slots: &[Option<Consumer>], slot: u32) -> &[u8] {
    let consumer = slots.get(slot as usize).and_then(Option::as_ref);
    consumer.map_or(&[][..], Consumer::name)
}

/// A group that is being changed. What the groups of its stream take is brought up to date when this is dropped.
#[derive(Debug)]
pub(crate) struct GroupMut<'a> {
    group: &'a mut Group,
    before_bytes: usize,
    total_bytes: &'a mut usize,
}

impl<'a> GroupMut<'a> {
    pub(super) fn new(group: &'a mut Group, total_bytes: &'a mut usize) -> Self {
        GroupMut {
            before_bytes: group.heap_bytes(),
            group,
            total_bytes,
        }
    }
}

impl Deref for GroupMut<'_> {
    type Target = Group;

    fn deref(&self) -> &Group {
        self.group
    }
}

impl DerefMut for GroupMut<'_> {
    fn deref_mut(&mut self) -> &mut Group {
        self.group
    }
}

impl Drop for GroupMut<'_> {
    fn drop(&mut self) {
        *self.total_bytes = *self.total_bytes - self.before_bytes + self.group.heap_bytes();
    }
}

impl Slices for Group {
    fn pieces(&self) -> usize {
        let consumers = self.slots.iter().flatten();
        let theirs: usize = consumers.map(|consumer| consumer.pending.pieces()).sum();
        self.pending.pieces() + theirs + self.slots.len()
    }

    fn drop_piece(&mut self) -> bool {
        if self.pending.drop_piece() {
            return true;
        }
        let last = self.slots.last_mut().and_then(Option::as_mut);
        if !last.is_some_and(|consumer| consumer.pending.drop_piece()) {
            self.slots.pop();
        }
        !self.slots.is_empty()
    }
}

/// How XCLAIM and XAUTOCLAIM take over an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    pub(crate) consumer: ConsumerKey,
    /// Entries that were delivered more recently stay where they are.
    pub(crate) min_idle_ms: i64,
    pub(crate) now_ms: i64,
    /// What becomes the time of the last delivery.
    pub(crate) delivery_time: i64,
    /// What becomes the number of deliveries; `None` counts one more.
    pub(crate) delivery_count: Option<u64>,
    /// The entry becomes pending if it is not.
    pub(crate) force: bool,
    /// Deliveries are not counted.
    pub(crate) just_id: bool,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claimed {
    /// The entry is the consumer's now.
    Yes,
    /// It is not pending, or was delivered too recently.
    No,
    /// The stream has it no more; it is not pending any longer if it was (`true`).
    Deleted(bool),
}

impl Stream {
    /// Claims an entry for a consumer of a group. `None` if there is no such group or consumer.
    pub(crate) fn claim(&mut self, group: &[u8], id: StreamId, claim: Claim) -> Option<Claimed> {
        let exists = self.get(id).is_some();
        let mut group = self.group_mut(group)?;
        group.consumer(claim.consumer)?;
        if !exists {
            return Some(Claimed::Deleted(group.acknowledge(id)));
        }
        let before = match group.nack(id) {
            Some(nack) => {
                let idle = claim.now_ms.wrapping_sub(nack.delivery_time);
                if claim.min_idle_ms > 0 && idle < claim.min_idle_ms {
                    return Some(Claimed::No);
                }
                nack.delivery_count
            }
            None if claim.force => 1,
            None => return Some(Claimed::No),
        };
        // A restored count may be the largest one.
        let counted = before.saturating_add(u64::from(!claim.just_id));
        let nack = Nack {
            consumer: claim.consumer,
            delivery_time: claim.delivery_time,
            delivery_count: claim.delivery_count.unwrap_or(counted),
        };
        group.set_pending(id, nack);
        if let Some(consumer) = group.consumer_mut(claim.consumer) {
            consumer.active_time = claim.now_ms;
        }
        Some(Claimed::Yes)
    }
}
