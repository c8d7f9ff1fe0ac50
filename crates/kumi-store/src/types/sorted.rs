//! A sorted map in chunks, for keys that mostly arrive in order: the pending entries of a stream's group.
//!
//! ```text
//!  few      one sorted array of up to 64 pairs
//!  many     a ring of such arrays, each of them shared with copies of the map
//! ```
//!
//! A pair has neither a pointer nor a place of its own in a tree, and arrays that fill up from the end stay full: a
//! B-tree of the standard library leaves its nodes half empty then, and begins with room for eleven. A search is two
//! binary searches. An insertion or removal moves less than one array, and seldom pointers of the ring: 16 bytes for
//! each 64 pairs at most, which is little at any size that fits into memory.
//!
//! A copy of a large map copies the ring; an array that two maps share is copied before one of them changes it.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use super::shared::Shared;

/// Pairs in a full array.
const CHUNK: usize = 64;

type Chunk<K, V> = Vec<(K, V)>;

/// A sorted map.
#[derive(Clone, Debug)]
pub(crate) struct Sorted<K, V> {
    chunks: Chunks<K, V>,
    len: usize,
}

/// No array is empty, except the only one.
#[derive(Clone, Debug)]
enum Chunks<K, V> {
    One(Chunk<K, V>),
    Many(VecDeque<Shared<Chunk<K, V>>>),
}

/// Where a pair is, or would be.
#[derive(Clone, Copy, Debug)]
struct Place {
    chunk: usize,
    index: usize,
}

impl<K, V> Default for Sorted<K, V> {
    /// An empty map without an allocation.
    fn default() -> Self {
        Sorted {
            chunks: Chunks::One(Vec::new()),
            len: 0,
        }
    }
}

impl<K: Copy + Ord, V: Copy> Sorted<K, V> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many arrays there are: a measure of what a drop costs.
    pub(crate) fn pieces(&self) -> usize {
        match &self.chunks {
            Chunks::One(chunk) => usize::from(!chunk.is_empty()),
            Chunks::Many(chunks) => chunks.len(),
        }
    }

    /// Drops an array; `false` if there was none. The map must not be used afterwards except to drop the rest.
    pub(crate) fn drop_piece(&mut self) -> bool {
        match &mut self.chunks {
            Chunks::One(chunk) => !std::mem::take(chunk).is_empty(),
            Chunks::Many(chunks) => chunks.pop_back().is_some(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        let place = self.find(key).ok()?;
        let (_, value) = self.chunk(place.chunk)?.get(place.index)?;
        Some(value)
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let place = self.find(key).ok()?;
        let (_, value) = self.chunk_mut(place.chunk)?.get_mut(place.index)?;
        Some(value)
    }

    pub(crate) fn first(&self) -> Option<(K, &V)> {
        self.chunk(0)?.first().map(|(key, value)| (*key, value))
    }

    pub(crate) fn last(&self) -> Option<(K, &V)> {
        let last = self.chunk(self.chunk_count() - 1)?;
        last.last().map(|(key, value)| (*key, value))
    }

    /// The pairs with keys from one to another, both included, in order.
    pub(crate) fn range(&self, keys: RangeInclusive<K>) -> impl Iterator<Item = (K, &V)> {
        let (start, end) = keys.into_inner();
        let (Ok(place) | Err(place)) = self.find(start);
        self.iter_from(place)
            .take_while(move |(key, _)| *key <= end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.iter_from(Place { chunk: 0, index: 0 })
    }

    /// Sets the value of a key, and returns the one it had.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(key) {
            Ok(place) => {
                let (_, old) = self.chunk_mut(place.chunk)?.get_mut(place.index)?;
                Some(std::mem::replace(old, value))
            }
            Err(place) => {
                self.insert_at(place, (key, value));
                None
            }
        }
    }

    /// Removes a key, and returns its value.
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let place = self.find(key).ok()?;
        let chunk = self.chunk_mut(place.chunk)?;
        let (_, value) = chunk.remove(place.index);
        let sparse = chunk.len() < CHUNK / 4;
        if chunk.is_empty() {
            // The array of an empty map goes as well.
            *chunk = Vec::new();
        }
        self.len -= 1;
        if sparse {
            self.merge(place.chunk);
        }
        Some(value)
    }

    fn insert_at(&mut self, place: Place, pair: (K, V)) {
        self.len += 1;
        let Place { chunk: at, index } = place;
        let last = at + 1 == self.chunk_count();
        let Some(chunk) = self.chunk_mut(at) else {
            return;
        };
        if chunk.len() < CHUNK {
            reserve(chunk);
            return chunk.insert(index, pair);
        }
        // Keys that arrive in order leave full arrays behind.
        let split = if last && index == CHUNK {
            CHUNK
        } else {
            CHUNK / 2
        };
        let mut upper = chunk.split_off(split);
        let half = if index > split || split == CHUNK {
            &mut upper
        } else {
            &mut *chunk
        };
        let index = if index > split || split == CHUNK {
            index - split
        } else {
            index
        };
        reserve(half);
        half.insert(index, pair);
        self.many().insert(at + 1, Shared::new(upper));
    }

    /// Removes an array that is empty, or moves one with few pairs to the one beside it.
    fn merge(&mut self, at: usize) {
        let Chunks::Many(chunks) = &mut self.chunks else {
            return;
        };
        let len = |at: usize| chunks.get(at).map_or(usize::MAX, |chunk| chunk.len());
        if len(at) == 0 {
            chunks.remove(at);
        } else {
            let left = match at.checked_sub(1) {
                Some(left) if len(left) + len(at) <= CHUNK / 2 => left,
                _ if len(at).saturating_add(len(at + 1)) <= CHUNK / 2 => at,
                _ => return,
            };
            if let Some(right) = chunks.remove(left + 1) {
                chunks[left].extend_from_slice(&right);
            }
        }
        if chunks.len() < chunks.capacity() / 4 {
            chunks.shrink_to(chunks.len() * 2);
        }
        if chunks.len() <= 1 {
            let only = chunks.pop_back().map(Shared::into_inner);
            self.chunks = Chunks::One(only.unwrap_or_default());
        }
    }

    fn many(&mut self) -> &mut VecDeque<Shared<Chunk<K, V>>> {
        if let Chunks::One(chunk) = &mut self.chunks {
            let chunk = std::mem::take(chunk);
            self.chunks = Chunks::Many(VecDeque::from([Shared::new(chunk)]));
        }
        match &mut self.chunks {
            Chunks::Many(chunks) => chunks,
            Chunks::One(_) => unreachable!("it was made a ring above"),
        }
    }

    fn chunk_count(&self) -> usize {
        match &self.chunks {
            Chunks::One(_) => 1,
            Chunks::Many(chunks) => chunks.len(),
        }
    }

    #[inline]
    fn chunk(&self, at: usize) -> Option<&Chunk<K, V>> {
        match &self.chunks {
            Chunks::One(chunk) => (at == 0).then_some(chunk),
            Chunks::Many(chunks) => chunks.get(at).map(|chunk| &**chunk),
        }
    }

    #[inline]
    fn chunk_mut(&mut self, at: usize) -> Option<&mut Chunk<K, V>> {
        match &mut self.chunks {
            Chunks::One(chunk) => (at == 0).then_some(chunk),
            Chunks::Many(chunks) => chunks.get_mut(at).map(|chunk| &mut **chunk),
        }
    }

    /// The place of a key, or the one it would get.
    #[inline]
    fn find(&self, key: K) -> Result<Place, Place> {
        let chunk = match &self.chunks {
            Chunks::One(_) => 0,
            Chunks::Many(chunks) => {
                let starts_before = |chunk: &Shared<Chunk<K, V>>| {
                    chunk.first().is_some_and(|(first, _)| *first <= key)
                };
                // Most keys are beyond all others, or among the last.
                match chunks.back().is_some_and(starts_before) {
                    true => chunks.len() - 1,
                    false => chunks.partition_point(starts_before).saturating_sub(1),
                }
            }
        };
        let pairs = self.chunk(chunk).map_or(&[][..], |chunk| chunk);
        if pairs.last().is_none_or(|(last, _)| *last < key) {
            let index = pairs.len();
            return Err(Place { chunk, index });
        }
        let found = pairs.binary_search_by(|(other, _)| other.cmp(&key));
        found
            .map(|index| Place { chunk, index })
            .map_err(|index| Place { chunk, index })
    }

    fn iter_from(&self, place: Place) -> impl Iterator<Item = (K, &V)> {
        let here = self.chunk(place.chunk);
        let here = here.and_then(|chunk| chunk.get(place.index..));
        let rest = (place.chunk + 1..self.chunk_count()).filter_map(|at| self.chunk(at));
        let pairs = here.into_iter().flatten().chain(rest.flatten());
        pairs.map(|(key, value)| (*key, value))
    }
}

/// Makes room for one more pair: twice as many as there were, up to a full array.
fn reserve<K, V>(chunk: &mut Chunk<K, V>) {
    if chunk.len() == chunk.capacity() {
        let wanted = (chunk.len() * 2).clamp(1, CHUNK);
        chunk.reserve_exact(wanted - chunk.len());
    }
}

impl<K: Copy + Ord, V: Copy + PartialEq> PartialEq for Sorted<K, V> {
    /// Whether both have the same pairs, however they are divided.
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<K: Copy + Ord, V: Copy + Eq> Eq for Sorted<K, V> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn assert_sound(sorted: &Sorted<u32, u32>) {
        if let Chunks::Many(chunks) = &sorted.chunks {
            assert!(chunks.len() > 1);
            for chunk in chunks {
                assert!((1..=CHUNK).contains(&chunk.len()));
            }
        }
        let keys: Vec<u32> = sorted.iter().map(|(key, _)| key).collect();
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert_eq!(keys.len(), sorted.len());
    }

    #[test]
    fn it_holds_what_an_ordered_map_holds() {
        for seed in 0..20 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let range = [50, 400, 4000][rng.usize(..3)];
            let (mut sorted, mut model) = (Sorted::default(), BTreeMap::new());
            for step in 0..4000_u32 {
                let key = rng.u32(..range);
                // First it grows, then it shrinks.
                let inserts = if step < 2000 { 7 } else { 3 };
                if rng.u32(..10) < inserts {
                    assert_eq!(sorted.insert(key, step), model.insert(key, step));
                } else {
                    assert_eq!(sorted.remove(key), model.remove(&key));
                }
                assert_eq!(sorted.get(key), model.get(&key));
                assert_eq!(
                    sorted.first(),
                    model.first_key_value().map(|(k, v)| (*k, v))
                );
                assert_eq!(sorted.last(), model.last_key_value().map(|(k, v)| (*k, v)));
                if step % 50 == 0 {
                    assert_sound(&sorted);
                    let (start, end) = (rng.u32(..range), rng.u32(..range));
                    let (start, end) = (start.min(end), start.max(end));
                    let expected = model.range(start..=end).map(|(k, v)| (*k, v));
                    assert!(sorted.range(start..=end).eq(expected));
                }
            }
            for key in 0..range {
                assert_eq!(sorted.remove(key), model.remove(&key));
            }
            assert!(
                sorted.len() == 0
                    && matches!(&sorted.chunks, Chunks::One(one) if one.capacity() == 0)
            );
        }
    }

    #[test]
    fn keys_in_order_leave_full_arrays() {
        let mut sorted = Sorted::default();
        for key in 0..1000_u32 {
            sorted.insert(key, ());
        }
        assert_eq!(sorted.pieces(), 1000_usize.div_ceil(CHUNK));
        for key in 0..990 {
            assert!(sorted.remove(key).is_some());
        }
        assert_eq!((sorted.pieces(), sorted.len()), (1, 10));
        assert_eq!(sorted.range(995..=2000).count(), 5);
    }

    #[test]
    fn a_change_of_a_copy_does_not_reach_the_other() {
        let mut one = Sorted::default();
        for key in 0..500_u32 {
            one.insert(key, 0_u32);
        }
        let copy = one.clone();
        if let Some(value) = one.get_mut(7) {
            *value = 1;
        }
        one.remove(400);
        assert_eq!((copy.get(7), copy.get(400)), (Some(&0), Some(&0)));
        assert!(one != copy);
        one.insert(7, 0);
        one.insert(400, 0);
        assert!(one == copy);
    }

    #[test]
    fn it_is_dropped_in_pieces() {
        let mut sorted = Sorted::default();
        assert!(!sorted.drop_piece());
        for key in 0..200_u32 {
            sorted.insert(key, ());
        }
        let mut dropped = 0;
        while sorted.drop_piece() {
            dropped += 1;
        }
        assert_eq!(dropped, 4);
    }
}
