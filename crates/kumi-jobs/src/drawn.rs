//! Ids, lives and delays that are drawn from this machine: from its clock and its random numbers. The core has the types.

use crate::core::{
    EXPECTED_NAME, Exponential, Owner, ParseIdError, RetryPolicy, TaskId, Timestamp,
};
use crate::random;
use kumi_common::{InvalidName, Life, Name};
use std::time::Duration;

impl TaskId {
    /// A new id, from this machine's clock and the operating system's random numbers.
    #[must_use]
    pub fn random() -> Self {
        Self::from_parts(Timestamp::of_this_machine(), random::u128())
    }
}

impl Owner {
    /// The owner with this name that starts its life now.
    ///
    /// # Errors
    /// If the name is not `[a-z0-9][a-z0-9.-]{0,62}`.
    pub fn new(name: &str) -> Result<Self, ParseIdError> {
        let name = Name::new(name).map_err(|InvalidName| ParseIdError::new(name, EXPECTED_NAME))?;
        let life = Life::new(Timestamp::of_this_machine().as_ms(), random::u64());
        Ok(name.with_life(life).into())
    }

    /// An owner with a random name.
    #[must_use]
    pub fn random() -> Self {
        Self::new(&format!("worker-{:012x}", random::u64() >> 16))
            .expect("the name holds only letters, digits and a hyphen")
    }
}

impl Timestamp {
    /// This machine's clock, which is not the queue's.
    pub(crate) fn of_this_machine() -> Self {
        let since_epoch = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Self::from_ms(since_epoch.as_millis() as u64)
    }
}

impl RetryPolicy for Exponential {
    fn delay(&self, attempt: u32, _error: &str) -> Option<Duration> {
        let bound = self.bound(attempt);
        Some(match self.jitter {
            true => bound.mul_f64(0.5 + random::unit() / 2.0),
            false => bound,
        })
    }
}
