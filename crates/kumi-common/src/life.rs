//! Numbers of lives: one run of a program under a name that later runs have too.

use std::time::{SystemTime, UNIX_EPOCH};

/// A life that begins at `now`: 16 hex digits, which sort higher for a later life. They are microseconds since 1970 and
/// the random bits, which tell two lives of one microsecond apart.
///
/// ```
/// use std::time::{Duration, UNIX_EPOCH};
///
/// let first = kumi_common::life(UNIX_EPOCH + Duration::from_micros(1), 255);
/// assert_eq!(first, "00000000000001ff");
/// assert!(first < kumi_common::life(UNIX_EPOCH + Duration::from_micros(2), 0));
/// ```
#[must_use]
pub fn life(now: SystemTime, random: u8) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let number = ((since.as_micros() as u64) << 8) | u64::from(random);
    format!("{number:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_later_life_sorts_higher() {
        let at = |seconds: u64, random: u8| life(UNIX_EPOCH + Duration::from_secs(seconds), random);
        let lives = [
            at(0, 0),
            at(0, 1),
            at(1, 0),
            at(1_800_000_000, 9),
            at(1_800_000_001, 0),
            at(4_000_000_000, 255),
        ];
        assert!(lives.is_sorted(), "{lives:?}");
        assert!(lives.iter().all(|life| life.len() == 16), "{lives:?}");
        // A clock that was never set.
        assert_eq!(
            life(UNIX_EPOCH - Duration::from_secs(1), 7),
            "0000000000000007"
        );
    }
}
