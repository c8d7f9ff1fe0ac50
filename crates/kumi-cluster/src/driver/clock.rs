//! The one place where the driver reads clocks: the core's monotone time, and the wall clock that names a node's life.

use crate::core::TimerInstant;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Translates between tokio's clock and the core's instants. Tests that pause tokio's clock pause this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that begins now.
    pub(super) fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// The core's time at this moment.
    pub(super) fn now(&self) -> TimerInstant {
        TimerInstant::ZERO + self.origin.elapsed()
    }

    /// When the core's instant comes, on tokio's clock.
    pub(super) fn at(&self, instant: TimerInstant) -> Instant {
        self.origin + Duration::from_micros(instant.as_micros())
    }
}

/// Milliseconds since 1970. Uids are made of them. A joiner whose clock is behind, and whose uid is refused as too old,
/// goes above the current one. With certificates, a clock that is more than a day ahead keeps its node out, and a node
/// whose clock is more than a day behind refuses members that started since, and reports `peer_refused` for them.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}
