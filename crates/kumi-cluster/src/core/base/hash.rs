//! The hash that places nodes on the ring and tells tables apart.
//!
//! It is fixed, because every node has to compute the same one; it is not meant to resist a member that chooses
//! authorities to collide, which only a member of the cluster could.

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a over the bytes, then mixed, because FNV alone leaves short inputs close together on a ring.
pub(crate) fn bytes(bytes: &[u8]) -> u64 {
    let mut hash = OFFSET;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(PRIME);
    }
    mix(hash)
}

/// Folds one more value into a hash; the order matters.
pub(crate) fn fold(hash: u64, value: u64) -> u64 {
    mix(hash.rotate_left(23) ^ value.wrapping_mul(PRIME))
}

/// A bijection in which every input bit reaches every output bit.
pub(crate) fn mix(mut value: u64) -> u64 {
    value ^= value >> 32;
    value = value.wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^= value >> 32;
    value = value.wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^ (value >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::format;

    #[test]
    fn neighbouring_addresses_land_apart_on_the_ring() {
        let places: BTreeSet<u64> = (0..1000)
            .map(|index| bytes(format!("10.0.0.1:{index}").as_bytes()) >> 54)
            .collect();
        assert!(places.len() > 550, "{} of 1024 places used", places.len());
    }

    #[test]
    fn folding_depends_on_the_order() {
        assert_ne!(fold(fold(0, 1), 2), fold(fold(0, 2), 1));
    }
}
