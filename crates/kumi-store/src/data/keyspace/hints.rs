//! Hashes that were computed ahead of the commands that need them.
//!
//! The engine hashes the keys of a run of requests first and asks the processor to load their
//! buckets and entries, so that the cache misses of a pipeline overlap. When the commands run, the
//! door looks here before it hashes a key again. A hint is found by the address and length of the
//! key's bytes: they lie in the input buffer, which stays borrowed and unchanged as long as the
//! hints are. What a bucket held when it was prefetched is not kept: every lookup is made anew.

/// The hash of one key.
#[derive(Clone, Copy, Debug)]
struct Hint {
    address: usize,
    len: usize,
    hash: u64,
}

/// The hashes of a run of requests, in the order of the keys.
#[derive(Debug, Default)]
pub(crate) struct Hints {
    hints: Vec<Hint>,
    /// The hint the next key is compared with.
    next: usize,
}

impl Hints {
    /// Notes the hash of a key, behind those noted before.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], hash: u64) {
        self.hints.push(Hint {
            address: key.as_ptr().addr(),
            len: key.len(),
            hash,
        });
    }

    pub(crate) fn len(&self) -> usize {
        self.hints.len()
    }

    /// The hash at a place.
    pub(crate) fn hash_at(&self, place: usize) -> Option<u64> {
        self.hints.get(place).map(|hint| hint.hash)
    }

    pub(crate) fn hashes(&self) -> impl Iterator<Item = u64> {
        self.hints.iter().map(|hint| hint.hash)
    }

    /// The keys of the next command begin with this hint.
    #[inline]
    pub(crate) fn seek(&mut self, first: usize) {
        self.next = first;
    }

    /// The noted hash of a key, if it is the next one.
    #[inline]
    pub(super) fn take(&mut self, key: &[u8]) -> Option<u64> {
        let hint = self.hints.get(self.next)?;
        if hint.address != key.as_ptr().addr() || hint.len != key.len() {
            return None;
        }
        self.next += 1;
        Some(hint.hash)
    }

    /// Forgets all hints. The buffer they point into may change afterwards.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.hints.clear();
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_holds_for_the_same_bytes_in_the_same_place() {
        let buffer = b"abcdef".to_vec();
        let copy = buffer.clone();
        let mut hints = Hints::default();
        hints.push(&buffer[0..2], 7);
        hints.push(&buffer[2..4], 8);
        assert_eq!(hints.take(&copy[0..2]), None);
        assert_eq!(hints.take(&buffer[0..3]), None);
        assert_eq!(hints.take(&buffer[0..2]), Some(7));
        assert_eq!(hints.take(&buffer[2..4]), Some(8));
        assert_eq!(hints.take(&buffer[2..4]), None);
        hints.seek(1);
        assert_eq!(hints.take(&buffer[2..4]), Some(8));
        hints.clear();
        assert_eq!(hints.take(&buffer[0..2]), None);
    }
}
