//! Pauses that double. Jitter is left to the callers, which have the random numbers.

use core::time::Duration;

/// The pause after so many doublings of the first one, at most `highest`. It does not grow any more after 32 doublings.
///
/// ```
/// use std::time::Duration;
///
/// let (first, highest) = (Duration::from_millis(100), Duration::from_secs(10));
/// let pauses = [0, 1, 2, 60].map(|doublings| kumi_common::doubled(first, highest, doublings).as_millis());
/// assert_eq!(pauses, [100, 200, 400, 10_000]);
/// ```
#[must_use]
pub fn doubled(first: Duration, highest: Duration, doublings: u32) -> Duration {
    let factor = 2_u32.saturating_pow(doublings);
    first.saturating_mul(factor).min(highest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_the_highest_and_never_overflows() {
        let first = Duration::from_millis(50);
        let check = |highest: Duration, doublings: u32, expected: Duration| {
            assert_eq!(doubled(first, highest, doublings), expected, "{doublings}");
        };
        let two_seconds = Duration::from_secs(2);
        check(two_seconds, 0, first);
        check(two_seconds, 1, Duration::from_millis(100));
        check(two_seconds, 5, Duration::from_millis(1_600));
        for doublings in [6, 20, 31, 32, 33, u32::MAX] {
            check(two_seconds, doublings, two_seconds);
        }
        check(Duration::MAX, 24, first * (1 << 24));
        check(Duration::MAX, u32::MAX, first * u32::MAX);
        assert_eq!(doubled(Duration::MAX, Duration::MAX, 9), Duration::MAX);
        assert_eq!(doubled(Duration::ZERO, two_seconds, 60), Duration::ZERO);
        // The first pause is no exception.
        assert_eq!(doubled(two_seconds, first, 0), first);
    }
}
