//! The deadline index: which keys expire next, in exact order.
//!
//! Every key with a time to live has one record here, a pair of its deadline and the hash of its key. The records are
//! kept sorted in chunks of at most [`CHUNK_MAX`], and a `BTreeMap` finds the chunk a record belongs to:
//!
//! ```text
//!   bound          chunk (sorted, all records >= bound and < the next bound)
//!   0          ->  [ (1000, h), (1000, h'), (1017, h) ]
//!   (1018, h)  ->  [ (1018, h), (1019, h), ... ]
//! ```
//!
//! A record is sixteen bytes and moves with its deadline: changing a deadline is a removal and an insertion, so the
//! index is never larger than the number of keys that expire now. No operation moves more than one chunk of records,
//! and a chunk's capacity follows its length in small steps, so there is neither a long pause nor slack to speak of.
//!
//! It is a multiset and holds no keys: it cannot tell two keys of the same hash and deadline apart, does not know
//! whether a key still exists, and reads no clock. The keyspace answers for all of that.

use std::collections::BTreeMap;
use std::collections::btree_map::OccupiedEntry;

/// The most records a chunk holds. A full chunk is 2 KiB, which a single operation may have to move.
///
/// Neighbours that fit into one chunk become one. There is no margin between splitting and merging, on purpose: a
/// split is undone when the record that caused it leaves again, so a key whose deadline wanders leaves full chunks as
/// it found them. The price is that the same two kilobytes may be moved back and forth.
const CHUNK_MAX: usize = 128;

/// A chunk's capacity is its length rounded up to this many records.
const CAPACITY_STEP: usize = 16;

/// Neighbours are looked at whenever a removal leaves a multiple of this many records, because looking costs more
/// than removing.
const MERGE_CHECK_STEP: usize = 8;

const RECORD_BYTES: usize = size_of::<Record>();

/// What the map spends on a chunk besides its records: the bound, the vector's header, and the share of a node that
/// is empty (nodes of a map filled from one end stay a little over half full).
const CHUNK_OVERHEAD_BYTES: usize = 80;

/// A deadline in the upper and a hash in the lower half, so that one comparison orders by deadline first.
type Record = u128;

/// A multiset of (deadline, hash) pairs ordered by deadline.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    /// Never holds an empty chunk. Each key is at most its chunk's first record and above every record before it.
    chunks: BTreeMap<Record, Vec<Record>>,
    /// Bounds of the chunks at an earlier moment, from which a random one is drawn; empty until the first draw.
    bounds: Vec<Record>,
    /// Chunks that got a new bound since `bounds` was made.
    rebound: usize,
    len: usize,
    /// The sum of the chunks' capacities, in records.
    capacity: usize,
    /// The earliest deadline, kept here because it is asked for after every write.
    first: Option<u64>,
}

impl Deadlines {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The heap memory in use. The part that belongs to the map's nodes is an estimate.
    pub(crate) fn heap_bytes(&self) -> usize {
        (self.capacity + self.bounds.capacity()) * RECORD_BYTES
            + self.chunks.len() * CHUNK_OVERHEAD_BYTES
    }

    /// The earliest deadline.
    pub(crate) fn first(&self) -> Option<u64> {
        self.first
    }

    fn find_first(&self) -> Option<u64> {
        let (_, chunk) = self.chunks.first_key_value()?;
        chunk.first().map(|&record| unpack(record).0)
    }

    /// Adds a record. Adding an equal one again keeps both.
    pub(crate) fn insert(&mut self, deadline: u64, hash: u64) {
        let record = pack(deadline, hash);
        self.len += 1;
        self.first = Some(self.first.map_or(deadline, |first| first.min(deadline)));
        // Most deadlines are later than all others, and the last chunk is found without a search.
        let newest = self.chunks.last_key_value();
        let chunk = if newest.is_some_and(|(&bound, _)| bound <= record) {
            self.chunks.last_entry().map(OccupiedEntry::into_mut)
        } else {
            let below = self.chunks.range_mut(..=record).next_back();
            below.map(|(_, chunk)| chunk)
        };
        let Some(chunk) = chunk else {
            self.insert_before_all(record);
            return;
        };
        if chunk.len() < CHUNK_MAX {
            insert_sorted(chunk, record, &mut self.capacity);
            return;
        }
        if chunk.last().is_some_and(|&last| last < record) {
            // The chunk stays full and a new one begins: deadlines that come in rising order, which is the usual
            // case of one time to live for many keys, leave full chunks behind instead of half-empty ones.
            self.insert_alone(record);
            return;
        }
        self.split_and_insert(record);
    }

    /// Removes one record equal to the pair, and says whether there was one.
    pub(crate) fn remove(&mut self, deadline: u64, hash: u64) -> bool {
        let record = pack(deadline, hash);
        let Some((&bound, chunk)) = self.chunks.range_mut(..=record).next_back() else {
            return false;
        };
        let Ok(position) = chunk.binary_search(&record) else {
            return false;
        };
        chunk.remove(position);
        self.len -= 1;
        fit(chunk, &mut self.capacity);
        let left = chunk.len();
        if left == 0 {
            self.chunks.remove(&bound);
        } else if left <= CHUNK_MAX / 2 && left.is_multiple_of(MERGE_CHECK_STEP) {
            self.merge_neighbours(bound);
        }
        if self.first == Some(deadline) {
            self.first = self.find_first();
        }
        true
    }

    /// How many records have a deadline not after `now`. Looks at each chunk of them.
    pub(crate) fn count_due(&self, now: u64) -> usize {
        let limit = pack(now, u64::MAX);
        let due = self.chunks.range(..=limit).map(|(_, chunk)| chunk);
        due.map(|chunk| chunk.partition_point(|&record| record <= limit))
            .sum()
    }

    /// Takes up to `max` records whose deadline is not after `now`, in order, and appends them to `out`.
    pub(crate) fn pop_due(&mut self, now: u64, max: usize, out: &mut Vec<(u64, u64)>) {
        self.drain_due(now, max, out);
        self.first = self.find_first();
    }

    fn drain_due(&mut self, now: u64, max: usize, out: &mut Vec<(u64, u64)>) {
        let limit = pack(now, u64::MAX);
        let mut wanted = max;
        while wanted > 0 {
            let Some(mut entry) = self.chunks.first_entry() else {
                return;
            };
            let chunk = entry.get_mut();
            let due = chunk.partition_point(|&record| record <= limit);
            let taken = due.min(wanted);
            out.extend(chunk.drain(..taken).map(unpack));
            self.len -= taken;
            wanted -= taken;
            if chunk.is_empty() {
                self.capacity -= chunk.capacity();
                entry.remove();
            } else {
                fit(chunk, &mut self.capacity);
                return;
            }
        }
    }

    /// No bound is low enough: either there is no chunk, or the ones below the first have been emptied.
    fn insert_before_all(&mut self, record: Record) {
        match self.chunks.pop_first() {
            Some((_, mut chunk)) if chunk.len() < CHUNK_MAX => {
                insert_sorted(&mut chunk, record, &mut self.capacity);
                // The lowest bound there is, so that the next record below all others finds the chunk at once.
                self.chunks.insert(Record::MIN, chunk);
                self.rebound += 1;
            }
            Some((bound, chunk)) => {
                self.chunks.insert(bound, chunk);
                self.insert_alone(record);
            }
            None => self.insert_alone(record),
        }
    }

    /// Starts a chunk that holds only this record. No other chunk may have it as its bound.
    fn insert_alone(&mut self, record: Record) {
        let chunk = Vec::with_capacity(CAPACITY_STEP);
        self.capacity += chunk.capacity();
        self.rebound += 1;
        self.chunks.entry(record).or_insert(chunk).push(record);
    }

    /// Inserts into a full chunk by halving it.
    fn split_and_insert(&mut self, record: Record) {
        let Some((_, lower)) = self.chunks.range_mut(..=record).next_back() else {
            return;
        };
        let Some(middle) = boundary_near_middle(lower) else {
            // All records are equal, so no bound can part them. The chunk outgrows its limit. That takes more than a
            // hundred keys of one 64-bit keyed hash and one deadline, so it is only ever seen in a test.
            insert_sorted(lower, record, &mut self.capacity);
            return;
        };
        let mut upper = copied(&lower[middle..]);
        let bound = upper.first().copied().unwrap_or(record);
        lower.truncate(middle);
        fit(lower, &mut self.capacity);
        self.capacity += upper.capacity();
        let half = if record < bound { lower } else { &mut upper };
        insert_sorted(half, record, &mut self.capacity);
        self.chunks.insert(bound, upper);
        self.rebound += 1;
    }

    /// Joins the chunk at `bound` with a neighbour if they are small enough together.
    fn merge_neighbours(&mut self, bound: Record) {
        let Some(len) = self.chunks.get(&bound).map(Vec::len) else {
            return;
        };
        let fits = |other: &Vec<Record>| len + other.len() <= CHUNK_MAX;
        let above = self
            .chunks
            .range(bound..)
            .nth(1)
            .filter(|(_, chunk)| fits(chunk))
            .map(|(&bound, _)| bound);
        let below = || {
            self.chunks
                .range(..bound)
                .next_back()
                .filter(|(_, chunk)| fits(chunk))
                .map(|(&bound, _)| bound)
        };
        let (lower, upper) = match above {
            Some(above) => (bound, above),
            None => match below() {
                Some(below) => (below, bound),
                None => return,
            },
        };
        let Some(moved) = self.chunks.remove(&upper) else {
            return;
        };
        self.capacity -= moved.capacity();
        if let Some(chunk) = self.chunks.get_mut(&lower) {
            self.capacity -= chunk.capacity();
            chunk.reserve_exact(stepped(chunk.len() + moved.len()) - chunk.len());
            chunk.extend_from_slice(&moved);
            self.capacity += chunk.capacity();
        }
    }
}

fn pack(deadline: u64, hash: u64) -> Record {
    (u128::from(deadline) << 64) | u128::from(hash)
}

fn unpack(record: Record) -> (u64, u64) {
    ((record >> 64) as u64, record as u64)
}

/// The capacity that belongs to a length.
fn stepped(len: usize) -> usize {
    len.next_multiple_of(CAPACITY_STEP)
}

fn insert_sorted(chunk: &mut Vec<Record>, record: Record, total: &mut usize) {
    if chunk.len() == chunk.capacity() {
        *total -= chunk.capacity();
        chunk.reserve_exact(CAPACITY_STEP);
        *total += chunk.capacity();
    }
    let position = match chunk.last() {
        Some(&last) if record < last => chunk.partition_point(|&other| other <= record),
        _ => chunk.len(),
    };
    chunk.insert(position, record);
}

/// Gives back capacity that the length no longer accounts for. Without any slack kept, the memory in use depends on
/// the chunks' lengths alone, and a record that wanders through the index leaves no trace behind.
///
/// The records are copied, since allocators tend to answer a request to shrink by keeping the block as it is.
fn fit(chunk: &mut Vec<Record>, total: &mut usize) {
    if stepped(chunk.len()) < chunk.capacity() {
        *total -= chunk.capacity();
        *chunk = copied(chunk);
        *total += chunk.capacity();
    }
}

fn copied(records: &[Record]) -> Vec<Record> {
    let mut chunk = Vec::with_capacity(stepped(records.len()));
    chunk.extend_from_slice(records);
    chunk
}

/// The index nearest to the middle at which a record differs from the one before it.
fn boundary_near_middle(chunk: &[Record]) -> Option<usize> {
    let middle = chunk.len() / 2;
    let differs = |&index: &usize| chunk.get(index.wrapping_sub(1)) != chunk.get(index);
    let above = (middle..chunk.len()).find(differs);
    let below = (1..middle).rev().find(differs);
    match (below, above) {
        (Some(below), Some(above)) if middle - below < above - middle => Some(below),
        (below, above) => above.or(below),
    }
}

mod sample;
#[cfg(test)]
mod tests;
