//! Maps keyed by request ids.
//!
//! Ids count up, so one multiplication spreads them well enough, and every call looks its id up four times. A peer that
//! chooses ids to collide slows down its own channel, by no more than its in-flight limit.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from request ids.
pub(super) type IdMap<T> = HashMap<u64, T, BuildHasherDefault<IdHasher>>;

/// The golden ratio's fraction as a 64-bit integer: odd, with its bits well mixed.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id).wrapping_mul(MULTIPLIER);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_a_row_and_far_apart_are_found_again() {
        let mut map = IdMap::default();
        for shift in [0, 20, 40, 54] {
            for n in 1..=1_000_u64 {
                map.insert(n << shift, (n, shift));
            }
        }
        for n in 1..=1_000_u64 {
            assert_eq!(map.get(&(n << 54)), Some(&(n, 54)));
        }
        assert_eq!(map.get(&0), None);
    }
}
