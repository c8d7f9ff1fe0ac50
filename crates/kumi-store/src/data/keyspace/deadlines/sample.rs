//! Random records of the index, for eviction among few keys that expire.
//!
//! A map has no nth element, so the bounds of its chunks are listed when a record is first drawn, and again once an
//! eighth of them are new. A listed bound that is gone is passed over. A draw takes one of the places that a full chunk
//! has, so that records of long and of short chunks come alike.

use super::{CHUNK_MAX, Deadlines, unpack};

/// The list is made anew when this share of it is out of date.
const STALE_SHARE: usize = 8;
/// Draws that may come upon nothing before the first record is taken.
const MAX_DRAWS: usize = 64;

impl Deadlines {
    /// The deadline and hash of the earliest record.
    pub(crate) fn first_record(&self) -> Option<(u64, u64)> {
        let (_, chunk) = self.chunks.first_key_value()?;
        chunk.first().map(|&record| unpack(record))
    }

    /// The deadline and hash of a random record.
    pub(crate) fn random(&mut self, rng: &mut fastrand::Rng) -> Option<(u64, u64)> {
        if self.bounds.is_empty() || self.rebound * STALE_SHARE > self.bounds.len() {
            self.bounds.clear();
            self.bounds.extend(self.chunks.keys());
            self.bounds.shrink_to(2 * self.chunks.len());
            self.rebound = 0;
        }
        for _ in 0..MAX_DRAWS {
            if self.bounds.is_empty() {
                break;
            }
            let bound = &self.bounds[rng.usize(..self.bounds.len())];
            let place = rng.usize(..CHUNK_MAX);
            let record = self.chunks.get(bound).and_then(|chunk| chunk.get(place));
            if let Some(&record) = record {
                return Some(unpack(record));
            }
        }
        self.first_record()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_record_comes_with_about_the_same_probability() {
        let mut rng = fastrand::Rng::with_seed(5);
        let mut deadlines = Deadlines::new();
        for _ in 0..3000 {
            deadlines.insert(rng.u64(..1_000_000), rng.u64(..));
        }
        let mut seen: HashMap<(u64, u64), u32> = HashMap::new();
        for _ in 0..3000 * 200 {
            let record = deadlines.random(&mut rng).expect("there are records");
            *seen.entry(record).or_default() += 1;
        }
        assert_eq!(seen.len(), 3000);
        for count in seen.values() {
            assert!((115..=285).contains(count), "{count}");
        }
    }

    #[test]
    fn only_records_that_are_there_come() {
        let mut rng = fastrand::Rng::with_seed(6);
        let mut deadlines = Deadlines::new();
        assert_eq!(deadlines.random(&mut rng), None);
        let mut there = Vec::new();
        for round in 0..20_000_u64 {
            let record = (rng.u64(..1000) + round, rng.u64(..));
            deadlines.insert(record.0, record.1);
            there.push(record);
            if there.len() > 700 {
                let (deadline, hash) = there.swap_remove(rng.usize(..there.len()));
                assert!(deadlines.remove(deadline, hash));
            }
            if round % 16 == 0 {
                let drawn = deadlines.random(&mut rng).expect("there are records");
                assert!(there.contains(&drawn), "{drawn:?} in round {round}");
            }
        }
        let first = deadlines.first_record();
        assert_eq!(first, there.iter().min().copied());
    }
}
