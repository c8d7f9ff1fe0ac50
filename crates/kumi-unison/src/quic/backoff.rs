//! How long to wait before the next attempt to connect.
//!
//! Each wait is drawn between nothing and a ceiling that doubles, so that clients of a server that came back do not
//! come back together.

use std::time::Duration;

/// When and how often a lost connection is made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// The ceiling of the first wait.
    pub first: Duration,
    /// The highest ceiling.
    pub max: Duration,
    /// Attempts after which it is given up; `None` never does, `Some(0)` does not reconnect at all.
    pub attempts: Option<u32>,
}

impl Default for ReconnectPolicy {
    fn default() -> ReconnectPolicy {
        ReconnectPolicy {
            first: Duration::from_millis(100),
            max: Duration::from_secs(10),
            attempts: None,
        }
    }
}

impl ReconnectPolicy {
    /// A lost connection stays lost.
    pub fn never() -> ReconnectPolicy {
        ReconnectPolicy {
            attempts: Some(0),
            ..ReconnectPolicy::default()
        }
    }

    /// The wait before an attempt, the first being number 0; `None` once it is given up.
    pub(crate) fn wait(&self, attempt: u32, random: &mut fastrand::Rng) -> Option<Duration> {
        if self.attempts.is_some_and(|attempts| attempt >= attempts) {
            return None;
        }
        Some(self.pause(attempt, random))
    }

    /// A wait as it would be before this attempt, whether or not there will be one.
    pub(crate) fn pause(&self, attempt: u32, random: &mut fastrand::Rng) -> Duration {
        self.ceiling(attempt).mul_f64(random.f64())
    }

    /// The longest wait before an attempt, the first being number 0.
    ///
    /// ```
    /// use kumi_unison::ReconnectPolicy;
    /// let waits = [0, 1, 2, 60].map(|attempt| ReconnectPolicy::default().ceiling(attempt).as_millis());
    /// assert_eq!(waits, [100, 200, 400, 10_000]);
    /// ```
    pub fn ceiling(&self, attempt: u32) -> Duration {
        let doubled = self.first.saturating_mul(1 << attempt.min(20));
        doubled.min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_stay_below_a_ceiling_that_doubles_up_to_the_highest() {
        let policy = ReconnectPolicy::default();
        let mut random = fastrand::Rng::with_seed(4);
        for attempt in 0..100 {
            let ceiling = Duration::from_millis(100 << attempt.min(7)).min(policy.max);
            let wait = policy.wait(attempt, &mut random).unwrap();
            assert!(wait <= ceiling, "attempt {attempt}: {wait:?}");
        }
    }

    #[test]
    fn attempts_end_when_they_are_counted() {
        let mut random = fastrand::Rng::with_seed(4);
        assert_eq!(ReconnectPolicy::never().wait(0, &mut random), None);
        let policy = ReconnectPolicy {
            attempts: Some(2),
            ..ReconnectPolicy::default()
        };
        assert!(policy.wait(1, &mut random).is_some());
        assert!(policy.wait(2, &mut random).is_none());
    }
}
