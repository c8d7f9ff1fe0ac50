//! A sequence in chunks whose order its user defines: the groups of a stream and the consumers of a group by their names.
//!
//! ```text
//!  few      one array of up to 256 elements
//!  many     an array of such arrays
//! ```
//!
//! One array needs no more memory than a vector, and its elements move for each insertion. Beyond 256 elements an insertion
//! or removal moves less than one array, and seldom the 24 bytes of each array behind it: 140 KB for a million elements.
//! `sorted.rs` is a map of the same shape, whose pairs are copied and whose arrays are shared.

use std::cmp::Ordering;

/// Elements in a full array.
const CHUNK: usize = 256;

/// A sequence of elements. It takes 24 bytes besides its arrays.
#[derive(Clone, Debug)]
pub(super) struct Ordered<T>(Chunks<T>);

#[derive(Clone, Debug)]
enum Chunks<T> {
    One(Vec<T>),
    /// In a box, so that a short sequence is as small as a vector.
    Many(Box<Many<T>>),
}

/// At least two arrays. None is empty, and of two neighbours at least one is a quarter full.
#[derive(Clone, Debug)]
struct Many<T> {
    chunks: Vec<Vec<T>>,
    /// All elements.
    len: usize,
}

const _: () = assert!(size_of::<Ordered<u32>>() == size_of::<Vec<u32>>());

/// Where an element is, or would be. Any insertion or removal makes it stale.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    chunk: usize,
    index: usize,
}

impl<T> Default for Ordered<T> {
    /// An empty sequence without an allocation.
    fn default() -> Self {
        Ordered(Chunks::One(Vec::new()))
    }
}

impl<T> Ordered<T> {
    /// Takes over elements that are in order.
    pub(super) fn from_vec(items: Vec<T>) -> Self {
        let len = items.len();
        if len <= CHUNK {
            return Ordered(Chunks::One(items));
        }
        let mut items = items.into_iter();
        let chunks =
            (0..len.div_ceil(CHUNK)).map(|_| items.by_ref().take(CHUNK).collect::<Vec<T>>());
        let chunks = chunks.collect();
        Ordered(Chunks::Many(Box::new(Many { chunks, len })))
    }

    fn into_vec(self) -> Vec<T> {
        match self.0 {
            Chunks::One(chunk) => chunk,
            Chunks::Many(many) => many.chunks.into_iter().flatten().collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.0 {
            Chunks::One(chunk) => chunk.len(),
            Chunks::Many(many) => many.len,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks().iter().flatten()
    }

    /// The place of an element, or the one it would get. `order` compares another element with it.
    #[inline]
    pub(super) fn find(&self, order: impl Fn(&T) -> Ordering) -> Result<Place, Place> {
        let chunk = match &self.0 {
            Chunks::One(_) => 0,
            Chunks::Many(many) => {
                let behind = many
                    .chunks
                    .partition_point(|chunk| chunk.first().is_some_and(|item| order(item).is_le()));
                behind.saturating_sub(1)
            }
        };
        let items = self.chunks().get(chunk).map_or(&[][..], Vec::as_slice);
        let found = items.binary_search_by(order);
        found
            .map(|index| Place { chunk, index })
            .map_err(|index| Place { chunk, index })
    }

    /// The place of the last element.
    pub(super) fn last(&self) -> Option<Place> {
        let chunk = self.chunks().len().checked_sub(1)?;
        let index = self.chunks().get(chunk)?.len().checked_sub(1)?;
        Some(Place { chunk, index })
    }

    #[inline]
    pub(super) fn get(&self, place: Place) -> Option<&T> {
        self.chunks().get(place.chunk)?.get(place.index)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        self.chunks_mut().get_mut(place.chunk)?.get_mut(place.index)
    }

    /// Inserts an element at the place that [`Ordered::find`] has told.
    pub(super) fn insert(&mut self, place: Place, item: T) {
        match &mut self.0 {
            Chunks::One(chunk) if chunk.len() < CHUNK => {
                reserve(chunk);
                chunk.insert(place.index, item);
            }
            _ => self.many().insert(place, item),
        }
    }

    /// Adds an element at the end.
    pub(super) fn push(&mut self, item: T) {
        let place = match self.last() {
            Some(Place { chunk, index }) => Place {
                chunk,
                index: index + 1,
            },
            None => Place { chunk: 0, index: 0 },
        };
        self.insert(place, item);
    }

    /// Removes the element at a place.
    pub(super) fn remove(&mut self, place: Place) -> Option<T> {
        match &mut self.0 {
            Chunks::One(chunk) => {
                let item = take(chunk, place.index)?;
                if chunk.is_empty() {
                    // The array of an empty sequence goes as well.
                    *chunk = Vec::new();
                }
                Some(item)
            }
            Chunks::Many(many) => {
                let item = many.remove(place)?;
                if many.chunks.len() <= 1 {
                    let only = many.chunks.pop().unwrap_or_default();
                    self.0 = Chunks::One(only);
                }
                Some(item)
            }
        }
    }

    /// Brings all elements into order.
    pub(super) fn sort_by(&mut self, order: impl FnMut(&T, &T) -> Ordering) {
        let mut items = std::mem::take(self).into_vec();
        items.sort_unstable_by(order);
        *self = Self::from_vec(items);
    }

    #[inline]
    fn chunks(&self) -> &[Vec<T>] {
        match &self.0 {
            Chunks::One(chunk) => std::slice::from_ref(chunk),
            Chunks::Many(many) => &many.chunks,
        }
    }

    #[inline]
    fn chunks_mut(&mut self) -> &mut [Vec<T>] {
        match &mut self.0 {
            Chunks::One(chunk) => std::slice::from_mut(chunk),
            Chunks::Many(many) => &mut many.chunks,
        }
    }

    fn many(&mut self) -> &mut Many<T> {
        if let Chunks::One(chunk) = &mut self.0 {
            let chunk = std::mem::take(chunk);
            let len = chunk.len();
            let chunks = vec![chunk];
            self.0 = Chunks::Many(Box::new(Many { chunks, len }));
        }
        match &mut self.0 {
            Chunks::Many(many) => many,
            Chunks::One(_) => unreachable!("it was made several arrays above"),
        }
    }
}

impl<T> Many<T> {
    fn insert(&mut self, place: Place, item: T) {
        let Place { chunk: at, index } = place;
        let last = at + 1 == self.chunks.len();
        let Some(chunk) = self.chunks.get_mut(at) else {
            return;
        };
        self.len += 1;
        if chunk.len() < CHUNK {
            reserve(chunk);
            return chunk.insert(index, item);
        }
        // Elements that arrive in order leave full arrays behind.
        let split = if last && index == CHUNK {
            CHUNK
        } else {
            CHUNK / 2
        };
        let mut upper = chunk.split_off(split);
        let (half, index) = if index > split || split == CHUNK {
            (&mut upper, index - split)
        } else {
            (chunk, index)
        };
        reserve(half);
        half.insert(index, item);
        self.chunks.insert(at + 1, upper);
    }

    fn remove(&mut self, place: Place) -> Option<T> {
        let chunk = self.chunks.get_mut(place.chunk)?;
        let item = take(chunk, place.index)?;
        let sparse = chunk.len() < CHUNK / 4;
        self.len -= 1;
        if sparse {
            self.merge(place.chunk);
        }
        Some(item)
    }

    /// Removes an array that is empty, or moves the elements of one with few to the one beside it.
    fn merge(&mut self, at: usize) {
        let len = |at: usize| self.chunks.get(at).map_or(CHUNK, Vec::len);
        if len(at) == 0 {
            self.chunks.remove(at);
        } else {
            let left = match at.checked_sub(1) {
                Some(left) if len(left) + len(at) <= CHUNK / 2 => left,
                _ if len(at) + len(at + 1) <= CHUNK / 2 => at,
                _ => return,
            };
            let right = self.chunks.remove(left + 1);
            if let Some(chunk) = self.chunks.get_mut(left) {
                chunk.extend(right);
            }
        }
        if self.chunks.len() < self.chunks.capacity() / 4 {
            self.chunks.shrink_to(self.chunks.len() * 2);
        }
    }
}

/// Makes room for one more element: twice as many as there were, up to a full array.
fn reserve<T>(chunk: &mut Vec<T>) {
    if chunk.len() == chunk.capacity() {
        let wanted = (chunk.len() * 2).clamp(1, CHUNK);
        chunk.reserve_exact(wanted - chunk.len());
    }
}

/// Removes an element, if there is one at this index.
fn take<T>(chunk: &mut Vec<T>, index: usize) -> Option<T> {
    (index < chunk.len()).then(|| chunk.remove(index))
}

impl<T: PartialEq> PartialEq for Ordered<T> {
    /// Whether both have the same elements, however they are divided.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<T: Eq> Eq for Ordered<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    type Pairs = Ordered<(u32, u32)>;

    fn find(pairs: &Pairs, key: u32) -> Result<Place, Place> {
        pairs.find(|(other, _)| other.cmp(&key))
    }

    fn insert(pairs: &mut Pairs, key: u32, value: u32) -> Option<u32> {
        match find(pairs, key) {
            Ok(place) => {
                let (_, old) = pairs.get_mut(place).unwrap();
                Some(std::mem::replace(old, value))
            }
            Err(place) => {
                pairs.insert(place, (key, value));
                None
            }
        }
    }

    fn remove(pairs: &mut Pairs, key: u32) -> Option<u32> {
        let place = find(pairs, key).ok()?;
        pairs.remove(place).map(|(_, value)| value)
    }

    /// No insertion or removal moves more than an array and the places of all arrays. Both are bounded here.
    fn assert_sound(pairs: &Pairs) {
        if let Chunks::Many(many) = &pairs.0 {
            assert!(many.chunks.len() > 1);
            for chunk in &many.chunks {
                assert!((1..=CHUNK).contains(&chunk.len()));
                assert!(chunk.capacity() <= CHUNK);
            }
            for two in many.chunks.windows(2) {
                assert!(two[0].len().max(two[1].len()) >= CHUNK / 4);
            }
            assert!(many.chunks.len() <= 1 + 2 * pairs.len() / (CHUNK / 4));
        } else {
            assert!(pairs.len() <= CHUNK);
        }
        assert!(pairs.iter().is_sorted_by(|one, other| one.0 < other.0));
        assert_eq!(pairs.iter().count(), pairs.len());
    }

    #[test]
    fn it_holds_what_an_ordered_map_holds() {
        for seed in 0..20 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let range = [200, 2000, 20_000][rng.usize(..3)];
            let (mut pairs, mut model) = (Pairs::default(), BTreeMap::new());
            for step in 0..8000_u32 {
                let key = rng.u32(..range);
                // First it grows, then it shrinks.
                let inserts = if step < 4000 { 8 } else { 2 };
                if rng.u32(..10) < inserts {
                    assert_eq!(insert(&mut pairs, key, step), model.insert(key, step));
                } else {
                    let first = model.range(key..).next().map_or(key, |(&key, _)| key);
                    assert_eq!(remove(&mut pairs, first), model.remove(&first));
                }
                assert_eq!(pairs.len(), model.len());
                let found = find(&pairs, key).ok().and_then(|place| pairs.get(place));
                assert_eq!(found.map(|(_, value)| value), model.get(&key));
                let last = pairs.last().and_then(|place| pairs.get(place));
                let expected = model.last_key_value().map(|(&key, &value)| (key, value));
                assert_eq!(last.copied(), expected);
                if step % 100 == 0 {
                    assert_sound(&pairs);
                    let expected = model.iter().map(|(&key, &value)| (key, value));
                    assert!(pairs.iter().copied().eq(expected));
                }
            }
            for key in 0..range {
                assert_eq!(remove(&mut pairs, key), model.remove(&key));
            }
            assert!(matches!(&pairs.0, Chunks::One(one) if one.capacity() == 0));
        }
    }

    #[test]
    fn a_long_sequence_stays_in_short_arrays() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut keys: Vec<u32> = (0..100_000).collect();
        rng.shuffle(&mut keys);
        let mut pairs = Pairs::default();
        for &key in &keys {
            insert(&mut pairs, key, 0);
        }
        assert_sound(&pairs);
        assert!(pairs.chunks().len() < 100_000 / (CHUNK / 2));
        for &key in &keys[..99_000] {
            assert_eq!(remove(&mut pairs, key), Some(0));
        }
        assert_sound(&pairs);
        assert_eq!(pairs.len(), 1000);
    }

    #[test]
    fn few_elements_take_one_array_without_room() {
        let mut pairs = Pairs::default();
        for key in 0..4 {
            insert(&mut pairs, key, 0);
            let wanted = [1, 2, 4, 4][key as usize];
            assert!(matches!(&pairs.0, Chunks::One(one) if one.capacity() == wanted));
        }
    }

    #[test]
    fn elements_in_order_leave_full_arrays() {
        let mut pairs = Pairs::default();
        for key in 0..1000 {
            pairs.push((key, 0));
        }
        assert_eq!(pairs.chunks().len(), 1000_usize.div_ceil(CHUNK));
        assert_sound(&pairs);
        // The same elements divided in another way.
        let mut other = Pairs::default();
        for key in (0..1000).rev() {
            insert(&mut other, key, 0);
        }
        assert_ne!(pairs.chunks().len(), other.chunks().len());
        assert_eq!(pairs, other);
        remove(&mut other, 500);
        assert_ne!(pairs, other);
        insert(&mut other, 500, 1);
        assert_ne!(pairs, other);
    }

    #[test]
    fn elements_are_sorted_all_at_once() {
        for len in [0, 1, 256, 257, 1000] {
            let mut keys: Vec<u32> = (0..len).collect();
            fastrand::Rng::with_seed(7).shuffle(&mut keys);
            let mut pairs = Pairs::default();
            for key in keys {
                pairs.push((key, key));
            }
            pairs.sort_by(|one, other| one.0.cmp(&other.0));
            assert_sound(&pairs);
            assert!(pairs.iter().copied().eq((0..len).map(|key| (key, key))));
        }
    }
}
