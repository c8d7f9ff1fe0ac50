//! The random values that an engine is handed when it is made.
//!
//! Each value is a draw of its own. Clients see some of them, or what follows from them: the ids in INFO, the choices of
//! SRANDMEMBER and RANDOMKEY, the counters of OBJECT FREQ. None of these may tell anything about the hash seed: who knows
//! it can choose keys and members that all fall into one place of a table.

use crate::base::ids::DataId;
use std::fmt;

/// Secret and public random values of one engine.
///
/// A server fills [`Seeds::BYTES`] bytes from the operating system; a test derives all of them from a number.
///
/// ```
/// use kumi_store::Seeds;
///
/// let mut bytes = [0; Seeds::BYTES];
/// bytes[0] = 1; // A server asks the operating system for all of them.
/// assert!(Seeds::from_bytes(bytes) != Seeds::from_seed(7));
/// assert!(Seeds::from_seed(7) == Seeds::from_seed(7));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seeds {
    /// The key of SipHash for keys and for members of collections. Secret.
    pub(crate) hash: (u64, u64),
    /// The generator of RANDOMKEY, SRANDMEMBER and eviction samples.
    pub(crate) draws: u64,
    /// The generator behind the LFU counters.
    pub(crate) counters: u64,
    /// INFO's `run_id`.
    pub(crate) run_id: [u8; ID_BYTES],
    /// INFO's `master_replid`.
    pub(crate) replication_id: [u8; ID_BYTES],
    /// The id of the data set, unless one is loaded that has an id.
    pub(crate) data_id: DataId,
}

/// Bytes of an id, which has two hexadecimal digits for each.
const ID_BYTES: usize = 20;

impl Seeds {
    /// How many random bytes the values take.
    pub const BYTES: usize = 4 * 8 + 2 * ID_BYTES + DataId::BYTES;

    /// Takes the values from random bytes. No two values share a byte.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let number =
            |index: usize| u64::from_le_bytes(std::array::from_fn(|at| bytes[8 * index + at]));
        let id = |index: usize| {
            let start = 4 * 8 + index * ID_BYTES;
            std::array::from_fn(|at| bytes[start + at])
        };
        Self {
            hash: (number(0), number(1)),
            draws: number(2),
            counters: number(3),
            run_id: id(0),
            replication_id: id(1),
            data_id: DataId::from_bytes(std::array::from_fn(|at| bytes[4 * 8 + 2 * ID_BYTES + at])),
        }
    }

    /// Derives all values from a number: the same number makes an engine that does the same. For tests and tools alone:
    /// the values tell each other.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bytes = [0; Self::BYTES];
        rng.fill(&mut bytes);
        Self::from_bytes(bytes)
    }
}

impl fmt::Debug for Seeds {
    /// Shows no value: some are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seeds").finish_non_exhaustive()
    }
}

/// An id as INFO shows it.
pub(crate) fn hexadecimal(id: [u8; ID_BYTES]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Lab;

    /// What clients see of an engine's random values.
    fn visible(seeds: Seeds) -> Vec<String> {
        let mut lab = Lab::with_seeds(seeds);
        lab.configure("maxmemory-policy", "allkeys-lfu");
        let mut seen = vec![lab.run("INFO server"), lab.run("INFO replication")];
        // Small sets are sorted integers, whose order does not depend on the hash.
        for member in 0..100 {
            lab.run(&format!("SADD s {member}"));
        }
        for _ in 0..20 {
            seen.push(lab.run("SRANDMEMBER s 5"));
        }
        lab.run("SET k v");
        for _ in 0..500 {
            lab.run("GET k");
        }
        seen.push(lab.run("OBJECT FREQ k"));
        seen
    }

    #[test]
    fn the_same_seed_makes_an_engine_that_does_the_same() {
        assert_eq!(visible(Seeds::from_seed(3)), visible(Seeds::from_seed(3)));
        assert_ne!(visible(Seeds::from_seed(3)), visible(Seeds::from_seed(4)));
    }

    #[test]
    fn nothing_that_clients_see_depends_on_the_hash_seed() {
        let seeds = Seeds::from_seed(3);
        let other = Seeds {
            hash: (!seeds.hash.0, seeds.hash.1.rotate_left(7)),
            ..seeds
        };
        assert_eq!(visible(seeds), visible(other));
    }

    #[test]
    fn every_value_is_a_draw_of_its_own() {
        let bytes: [u8; Seeds::BYTES] = std::array::from_fn(|at| at as u8);
        let whole = Seeds::from_bytes(bytes);
        let mut changes = [0; 7];
        for at in 0..Seeds::BYTES {
            let mut bytes = bytes;
            bytes[at] ^= 1;
            let seeds = Seeds::from_bytes(bytes);
            let changed = [
                seeds.hash.0 != whole.hash.0,
                seeds.hash.1 != whole.hash.1,
                seeds.draws != whole.draws,
                seeds.counters != whole.counters,
                seeds.run_id != whole.run_id,
                seeds.replication_id != whole.replication_id,
                seeds.data_id != whole.data_id,
            ];
            assert_eq!(
                changed.iter().filter(|&&changed| changed).count(),
                1,
                "{at}"
            );
            for (count, changed) in changes.iter_mut().zip(changed) {
                *count += usize::from(changed);
            }
        }
        assert_eq!(changes, [8, 8, 8, 8, 20, 20, 16]);
        assert!(!format!("{whole:?}").contains("hash"));
    }
}
