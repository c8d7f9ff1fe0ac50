//! Maps by numbers that we gave out ourselves.
//!
//! Nobody else chooses these numbers, so nobody can choose them to collide: one multiplication spreads them well enough,
//! and saves the keyed hash that names from the network need. Never to be used with anything received.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by a number, or a newtype of one.
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Spreads one number.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        // An odd constant near the golden ratio; the high half, which depends on all bits, is folded into the low one.
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_spread() {
        let hash = |number: u64| {
            let mut hasher = IdHasher::default();
            hasher.write_u64(number);
            hasher.finish()
        };
        // Tables use the low bits for the place and the top seven to tell neighbours apart.
        for low in [|hash: u64| hash & 1023, |hash: u64| hash >> 54] {
            let mut counts = [0u32; 1024];
            for number in 1..=10_240 {
                counts[low(hash(number)) as usize] += 1;
            }
            assert!(counts.iter().all(|count| *count < 40), "{counts:?}");
        }
    }
}
