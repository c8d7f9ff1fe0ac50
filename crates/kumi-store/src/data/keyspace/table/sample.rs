//! Random entries for eviction: several at a time, each with the same probability.
//!
//! A draw takes one segment, one of its buckets and half of that bucket's slots, beginning at any of them. Segments are
//! drawn from the directory, where each has exactly one slot, so every slot of every bucket is part of a draw with the
//! same probability, whether the segment is full or was just split. The entries of one draw share two cache lines of
//! the table, and their own lines are loaded side by side.

use super::super::entry::Entry;
use super::super::segment::Segment;
use super::Table;

/// Draws that may come upon nothing (an empty directory slot, an empty part of a bucket) before it is given up.
const MAX_DRAWS: usize = 256;

impl Table {
    /// Visits at least `count` random entries; the same one may come more than once. A sparse table may give fewer,
    /// and none only if it is empty.
    pub(crate) fn sample<'a>(
        &'a self,
        rng: &mut fastrand::Rng,
        count: usize,
        mut visit: impl FnMut(&'a Entry),
    ) {
        let mut visited = 0;
        for _ in 0..MAX_DRAWS {
            if visited >= count || self.slots.is_empty() {
                break;
            }
            let slot = rng.usize(..self.slots.len());
            if let Some(segment) = self.slots[slot].segment.as_deref() {
                visited += segment.draw(rng, &mut visit);
            }
        }
        if visited == 0
            && let Some(entry) = self.random(rng)
        {
            visit(entry);
        }
    }

    /// Where an entry with exactly this hash stands.
    pub(crate) fn find_hash(&self, hash: u64) -> Option<super::Position> {
        let owner = self.owner(hash)?;
        let place = self
            .segment(owner)?
            .find(hash, |entry| self.hash(entry.key()) == hash)?;
        Some(super::Position::new(owner, place))
    }
}

impl Segment {
    /// Visits the entries of half a bucket; answers how many there were.
    fn draw<'a>(&'a self, rng: &mut fastrand::Rng, visit: &mut impl FnMut(&'a Entry)) -> usize {
        let (entries, spilled) = self.half_bucket(rng);
        for entry in entries.clone() {
            entry.prefetch();
        }
        let mut visited = 0;
        // A policy that looks at fewer entries than come takes the first of them, and those outside their bucket are rare.
        for entry in spilled.into_iter().chain(entries) {
            visit(entry);
            visited += 1;
        }
        visited
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::keyspace::NewValue;
    use std::collections::HashMap;

    fn table(keys: u32) -> Table {
        let mut table = Table::new((3, 4));
        for number in 0..keys {
            let key = number.to_le_bytes();
            let hash = table.hash(&key);
            table.insert_new(hash, Entry::new(&key, NewValue::Int(0), None, 0));
        }
        table
    }

    #[test]
    fn every_entry_comes_with_the_same_probability() {
        // Just after a round of splits, and in the middle of one: segments of two depths.
        for keys in [1300, 3000, 9000] {
            let table = table(keys);
            let mut seen: HashMap<u32, u32> = HashMap::new();
            let mut rng = fastrand::Rng::with_seed(u64::from(keys));
            let mut total = 0_u32;
            let per_key = 200;
            while total < keys * per_key {
                table.sample(&mut rng, 5, |entry| {
                    let key = entry.key().try_into().map_or(0, u32::from_le_bytes);
                    *seen.entry(key).or_default() += 1;
                    total += 1;
                });
            }
            assert_eq!(seen.len(), keys as usize, "every key comes");
            // 200 expected with a standard deviation of 14: six of them either way.
            for (key, count) in &seen {
                assert!((115..=285).contains(count), "{key} came {count} times");
            }
            // The variance over its mean is 1 for independent draws.
            let mean = f64::from(total) / f64::from(keys);
            let squares = seen
                .values()
                .map(|&count| (f64::from(count) - mean).powi(2));
            let dispersion = squares.sum::<f64>() / f64::from(keys) / mean;
            assert!((0.8..1.25).contains(&dispersion), "{dispersion}");
        }
    }

    #[test]
    fn a_nearly_empty_table_gives_what_it_has() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut visits = 0;
        table(0).sample(&mut rng, 5, |_| visits += 1);
        assert_eq!(visits, 0);
        for _ in 0..100 {
            let one = table(1);
            let before = visits;
            one.sample(&mut rng, 5, |_| visits += 1);
            assert!(visits > before);
        }
    }

    #[test]
    fn an_entry_is_found_by_its_hash() {
        let table = table(2000);
        for entry in table.iter() {
            let position = table.find_hash(table.hash(entry.key()));
            let found = position.map(|position| table.at(position).key());
            assert_eq!(found, Some(entry.key()));
        }
        assert!(table.find_hash(12345).is_none());
    }
}
