//! Points in time as the core sees them: a number that only the core's driver makes.
//!
//! The origin is the driver's choice and may differ from node to node; instants of two nodes are never compared. There
//! is deliberately no `now()`.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

/// A point on the driver's monotone clock, in microseconds since an origin of the driver's choice.
///
/// ```
/// use core::time::Duration;
/// use kumi_cluster::TimerInstant;
///
/// let start = TimerInstant::from_millis(5);
/// let later = start + Duration::from_millis(2);
/// assert_eq!(later.saturating_since(start), Duration::from_millis(2));
/// assert_eq!(start.saturating_since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimerInstant(u64);

impl TimerInstant {
    /// The earliest instant.
    pub const ZERO: Self = Self(0);

    /// The instant this many microseconds after the origin.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// The instant this many milliseconds after the origin; the far end of time when that does not fit.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1000))
    }

    /// Microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to here, or nothing when it is not earlier.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The instant that much earlier, or the origin.
    pub(crate) fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }
}

impl Add<Duration> for TimerInstant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }
}

impl fmt::Display for TimerInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

/// A duration as microseconds, cut off where a `u64` ends: half a million years.
pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A duration as milliseconds, for the wire.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
