//! ULIDs: identifiers that sort by the time they were made. The time and the randomness are handed in.
//!
//! ```text
//!  48 bits: milliseconds since 1970     80 bits: random
//!  01ARZ3NDEK                           TSV4RRFFQ69G5FAV      (Crockford's base 32, 5 bits a letter)
//! ```

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Letters of a ULID.
pub const ULID_LEN: usize = 26;

/// Makes a ULID.
///
/// ```
/// let mut rng = fastrand::Rng::with_seed(7);
/// let earlier = kumi_muf::core::ulid(1_700_000_000_000, &mut rng);
/// let later = kumi_muf::core::ulid(1_700_000_000_001, &mut rng);
/// assert!(earlier < later && later.len() == 26);
/// ```
pub fn ulid(unix_ms: u64, rng: &mut fastrand::Rng) -> String {
    let bits = (u128::from(unix_ms) & 0xffff_ffff_ffff) << 80 | (rng.u128(..) & ((1 << 80) - 1));
    let letter = |i: usize| ALPHABET[(bits >> (5 * (ULID_LEN - 1 - i)) & 31) as usize] as char;
    (0..ULID_LEN).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_leads() {
        let mut rng = fastrand::Rng::with_seed(1);
        // The ULID specification's own example of a timestamp part.
        assert!(ulid(1_469_918_176_385, &mut rng).starts_with("01ARYZ6S41"));
        assert!(ulid(u64::MAX, &mut rng).starts_with("7ZZZZZZZZZ"));
    }

    #[test]
    fn two_of_one_millisecond_differ() {
        let mut rng = fastrand::Rng::with_seed(1);
        assert_ne!(ulid(5, &mut rng), ulid(5, &mut rng));
    }
}
