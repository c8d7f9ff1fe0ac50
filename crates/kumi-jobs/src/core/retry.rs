//! When a failed task runs again.

use super::id::TaskId;
use std::time::Duration;

/// Decides when a failed attempt is repeated. The queue alone decides that attempts are used up.
pub trait RetryPolicy: Send + Sync + 'static {
    /// The delay before the next attempt after `attempt` (1 for the first) failed, or None to give up.
    fn delay(&self, attempt: u32, error: &str) -> Option<Duration>;
}

/// A delay that grows by a factor per attempt, up to a cap. With jitter it is drawn between half of the grown value and all
/// of it, so that tasks that failed together do not come back together, and none comes back at once.
///
/// The default is for an outage of minutes: after the first failure 2 to 4 s, then 8 to 16 s, 32 to 64 s, 128 to 256 s, and
/// so on up to an hour. The five attempts of a task span 170 to 340 s.
#[derive(Debug, Clone, PartialEq)]
pub struct Exponential {
    /// The bound after the first failure.
    pub first: Duration,
    /// How much the bound grows per attempt.
    pub factor: f64,
    /// The largest bound.
    pub cap: Duration,
    /// Whether the delay is drawn between half of the bound and the bound.
    pub jitter: bool,
}

impl Default for Exponential {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(4),
            factor: 4.0,
            cap: Duration::from_secs(3_600),
            jitter: true,
        }
    }
}

impl Exponential {
    /// The largest delay after `attempt` failed.
    #[must_use]
    pub fn bound(&self, attempt: u32) -> Duration {
        let grown = self
            .factor
            .powi(i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX));
        let seconds = self.first.as_secs_f64() * grown;
        Duration::try_from_secs_f64(seconds).map_or(self.cap, |delay| delay.min(self.cap))
    }
}

/// The same delay after every failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed(pub Duration);

impl RetryPolicy for Fixed {
    fn delay(&self, _attempt: u32, _error: &str) -> Option<Duration> {
        Some(self.0)
    }
}

/// The back-off that a producer gives a task: as [`Exponential`] with jitter, in numbers that are stored with the task. It
/// takes the place of the policy that the worker has for the task's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The bound after the first failure.
    pub first: Duration,
    /// The largest bound.
    pub cap: Duration,
    /// How much the bound grows per attempt; 1 for the same one each time.
    pub factor: u32,
}

impl Backoff {
    /// Reads what [`Backoff::stored`] writes.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut numbers = text.split(' ').map(|number| number.parse::<u64>().ok());
        let mut number = || numbers.next().flatten();
        Some(Self {
            first: Duration::from_millis(number()?),
            cap: Duration::from_millis(number()?),
            factor: u32::try_from(number()?).ok()?,
        })
    }

    /// Milliseconds, milliseconds and the factor.
    pub(crate) fn stored(&self) -> String {
        let (first, cap) = (self.first.as_millis(), self.cap.as_millis());
        format!("{first} {cap} {}", self.factor)
    }
}

impl RetryPolicy for Backoff {
    fn delay(&self, attempt: u32, error: &str) -> Option<Duration> {
        let grown = Exponential {
            first: self.first,
            factor: f64::from(self.factor),
            cap: self.cap,
            jitter: true,
        };
        grown.delay(attempt, error)
    }
}

/// The delay before a task whose worker's lease ended runs again: about a second, because the task itself did not fail. It
/// is spread by a hash of the id and the attempt: a queue draws no random numbers, and its scripts compute the same.
pub(crate) fn reap_delay(id: TaskId, attempts: u32) -> Duration {
    let mix = |hash: u64, byte: u8| (hash * 33 + u64::from(byte)) % 1_000_003;
    let hash = id.short().into_iter().fold(u64::from(attempts), mix);
    Duration::from_millis(750 + hash % 500)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{DEFAULT_MAX_ATTEMPTS, Timestamp};
    use std::collections::BTreeSet;

    #[test]
    fn the_bound_grows_up_to_the_cap() {
        let policy = Exponential::default();
        let seconds: Vec<u64> = [1, 2, 3, 4, 5, 6, 40, u32::MAX]
            .map(|attempt| policy.bound(attempt).as_secs())
            .into();
        assert_eq!(seconds, [4, 16, 64, 256, 1_024, 3_600, 3_600, 3_600]);
    }

    #[test]
    fn five_attempts_outlast_an_outage_of_two_minutes() {
        let policy = Exponential::default();
        for _ in 0..1_000 {
            let mut span = Duration::ZERO;
            for attempt in 1..DEFAULT_MAX_ATTEMPTS {
                let (delay, bound) = (policy.delay(attempt, "").unwrap(), policy.bound(attempt));
                assert!(delay >= Duration::from_secs(1), "{delay:?}");
                assert!((bound / 2..=bound).contains(&delay), "{delay:?}");
                span += delay;
            }
            let (least, most) = (Duration::from_secs(170), Duration::from_secs(340));
            assert!((least..=most).contains(&span), "{span:?}");
        }
    }

    #[test]
    fn a_stored_back_off_is_read_back() {
        let backoff = Backoff {
            first: Duration::from_millis(1_500),
            cap: Duration::from_secs(60),
            factor: 3,
        };
        assert_eq!(backoff.stored(), "1500 60000 3");
        assert_eq!(Backoff::read(&backoff.stored()), Some(backoff));
        for wrong in ["", "1 2", "1 2 x", "1 2 99999999999"] {
            assert_eq!(Backoff::read(wrong), None, "{wrong}");
        }
        let delay = backoff.delay(2, "").unwrap().as_millis();
        assert!((2_250..=4_500).contains(&delay), "{delay}");
    }

    #[test]
    fn lost_tasks_come_back_after_about_a_second_but_not_together() {
        let delays: BTreeSet<u128> = (0..100)
            .map(|n| {
                let id = TaskId::from_parts(Timestamp::from_ms(1_700_000_000_000), n << 70);
                reap_delay(id, 1).as_millis()
            })
            .collect();
        assert!(
            delays.iter().all(|ms| (750..1_250).contains(ms)),
            "{delays:?}"
        );
        assert!(delays.len() > 50, "{delays:?}");
        let id = TaskId::from_parts(Timestamp::from_ms(1), 1);
        assert_ne!(reap_delay(id, 1), reap_delay(id, 2));
    }
}
