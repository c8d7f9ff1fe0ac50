//! When a failed task runs again.

use std::time::Duration;

/// Decides when a failed attempt is repeated. The queue alone decides that attempts are used up.
pub trait RetryPolicy: Send + Sync + 'static {
    /// The delay before the next attempt after `attempt` (1 for the first) failed, or None to give up.
    fn delay(&self, attempt: u32, error: &str) -> Option<Duration>;
}

/// A delay that grows by a factor per attempt, up to a cap, with full jitter: the delay is uniform between zero and the
/// grown value, so that tasks that failed together do not come back together.
#[derive(Debug, Clone, PartialEq)]
pub struct Exponential {
    /// The bound after the first failure.
    pub first: Duration,
    /// How much the bound grows per attempt.
    pub factor: f64,
    /// The largest bound.
    pub cap: Duration,
    /// Whether the delay is drawn between zero and the bound.
    pub jitter: bool,
}

impl Default for Exponential {
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            factor: 2.0,
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

impl RetryPolicy for Exponential {
    fn delay(&self, attempt: u32, _error: &str) -> Option<Duration> {
        let bound = self.bound(attempt);
        Some(match self.jitter {
            true => bound.mul_f64(fastrand::f64()),
            false => bound,
        })
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

/// The delay before a task whose worker's lease ended runs again: the default back-off without jitter, because a queue
/// draws no random numbers.
pub(crate) fn reap_delay(attempts: u32) -> Duration {
    Exponential::default().bound(attempts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_up_to_the_cap() {
        let policy = Exponential::default();
        let seconds: Vec<u64> = [1, 2, 3, 12, 13, 40, u32::MAX]
            .map(|attempt| policy.bound(attempt).as_secs())
            .into();
        assert_eq!(seconds, [1, 2, 4, 2_048, 3_600, 3_600, 3_600]);
    }

    #[test]
    fn jitter_stays_within_the_bound() {
        let policy = Exponential::default();
        for _ in 0..1_000 {
            assert!(policy.delay(3, "").unwrap() <= Duration::from_secs(4));
        }
    }
}
