//! Requests that are known to be answered, for as long as their REQ may still be found by a sweep.
//!
//! Only hashes are kept, in two generations. Two requests with one hash would make a sweep skip one of them; the next
//! sweep after the generation ended finds it. With hashes of 64 bits that is not expected to happen.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::core::command::Time;
use crate::core::key::RequestId;

/// Most hashes in one generation. Past that a sweep asks the server instead.
const GENERATION_LIMIT: usize = 200_000;

#[derive(Debug, Default)]
pub(super) struct Recent {
    young: HashSet<u64>,
    old: HashSet<u64>,
    turned: Time,
}

impl Recent {
    pub(super) fn insert(&mut self, unit: &str, id: &RequestId, now: Time, life_ms: u64) {
        if now.since(self.turned) >= life_ms {
            self.old = std::mem::take(&mut self.young);
            self.turned = now;
        }
        if self.young.len() < GENERATION_LIMIT {
            self.young.insert(hash(unit, id));
        }
    }

    pub(super) fn contains(&self, unit: &str, id: &RequestId) -> bool {
        let hash = hash(unit, id);
        self.young.contains(&hash) || self.old.contains(&hash)
    }

    /// Forgets all requests: a server that lost writes may have lost their answers.
    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
    }
}

fn hash(unit: &str, id: &RequestId) -> u64 {
    let mut hasher = DefaultHasher::new();
    (unit, id.as_str()).hash(&mut hasher);
    hasher.finish()
}
