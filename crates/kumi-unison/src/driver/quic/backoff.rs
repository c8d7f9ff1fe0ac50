//! How long to wait before the next attempt to connect.
//!
//! Each wait is drawn between nothing and a ceiling that doubles, so that clients of a server that came back do not
//! come back together.

use std::time::Duration;

use crate::NetworkError;

/// When and how often a lost connection is made again.
///
/// ```
/// use kumi_unison::ReconnectPolicy;
/// use std::time::Duration;
///
/// let policy = ReconnectPolicy::new()
///     .first_wait(Duration::from_millis(50))
///     .max_wait(Duration::from_secs(5))
///     .attempts(20);
/// assert_eq!(policy.ceiling(1), Duration::from_millis(100));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconnectPolicy {
    first_wait: Duration,
    max_wait: Duration,
    /// `None` never gives up.
    attempts: Option<u32>,
}

impl Default for ReconnectPolicy {
    fn default() -> ReconnectPolicy {
        ReconnectPolicy::new()
    }
}

impl ReconnectPolicy {
    /// The default policy: a first ceiling of 100 ms, at most 10 s, and no end.
    #[must_use]
    pub const fn new() -> ReconnectPolicy {
        ReconnectPolicy {
            first_wait: Duration::from_millis(100),
            max_wait: Duration::from_secs(10),
            attempts: None,
        }
    }

    /// A lost connection stays lost.
    #[must_use]
    pub const fn never() -> ReconnectPolicy {
        ReconnectPolicy::new().attempts(0)
    }

    /// The ceiling of the first wait. Default: 100 ms.
    #[must_use]
    pub const fn first_wait(mut self, ceiling: Duration) -> Self {
        self.first_wait = ceiling;
        self
    }

    /// The highest ceiling of a wait, not below the first. Default: 10 s.
    #[must_use]
    pub const fn max_wait(mut self, ceiling: Duration) -> Self {
        self.max_wait = ceiling;
        self
    }

    /// Attempts after which it is given up; 0 does not reconnect at all. Default: it is never given up.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = Some(attempts);
        self
    }

    /// Whether the values fit together; connecting with options that do not is refused with this error.
    ///
    /// # Errors
    /// [`NetworkError::Options`], when a wait is zero or the highest ceiling is below the first.
    ///
    /// ```
    /// use kumi_unison::ReconnectPolicy;
    /// use std::time::Duration;
    ///
    /// let policy = ReconnectPolicy::new().max_wait(Duration::from_millis(1));
    /// let error = policy.check().unwrap_err().to_string();
    /// assert_eq!(error, "reconnect policy: max_wait of 1ms is below first_wait of 100ms");
    /// ```
    pub fn check(&self) -> Result<(), NetworkError> {
        let ReconnectPolicy {
            first_wait,
            max_wait,
            attempts,
        } = self;
        if *attempts == Some(0) {
            return Ok(());
        }
        if first_wait.is_zero() {
            let text = "reconnect policy: first_wait is zero, so attempts would follow each other without a pause";
            return Err(NetworkError::Options(text.to_owned()));
        }
        if max_wait < first_wait {
            return Err(NetworkError::Options(format!(
                "reconnect policy: max_wait of {max_wait:?} is below first_wait of {first_wait:?}"
            )));
        }
        Ok(())
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
        kumi_common::doubled(self.first_wait, self.max_wait, attempt)
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
            let ceiling = Duration::from_millis(100 << attempt.min(7)).min(policy.max_wait);
            let wait = policy.wait(attempt, &mut random).unwrap();
            assert!(wait <= ceiling, "attempt {attempt}: {wait:?}");
        }
    }

    #[test]
    fn a_highest_ceiling_far_above_the_first_is_reached() {
        let policy = ReconnectPolicy::new()
            .first_wait(Duration::from_millis(1))
            .max_wait(Duration::from_secs(86_400));
        assert_eq!(policy.ceiling(26), Duration::from_millis(1 << 26));
        assert_eq!(policy.ceiling(27), Duration::from_secs(86_400));
    }

    #[test]
    fn attempts_end_when_they_are_counted() {
        let mut random = fastrand::Rng::with_seed(4);
        assert_eq!(ReconnectPolicy::never().wait(0, &mut random), None);
        let policy = ReconnectPolicy::new().attempts(2);
        assert!(policy.wait(1, &mut random).is_some());
        assert!(policy.wait(2, &mut random).is_none());
    }

    #[test]
    fn values_that_do_not_fit_together_are_an_error() {
        let policy = ReconnectPolicy::new();
        let zero = policy.clone().first_wait(Duration::ZERO);
        let crossed = policy.clone().max_wait(Duration::from_millis(99));
        for (policy, expected) in [(zero, "first_wait is zero"), (crossed, "below first_wait")] {
            let error = policy.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            // Without an attempt no wait matters.
            assert_eq!(policy.attempts(0).check(), Ok(()));
        }
        assert_eq!(policy.check(), Ok(()));
    }
}
