//! Readings of the clocks, which the host hands in, and times measured with them.

/// A reading of the clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Wall clock, microseconds since the Unix epoch.
    pub unix_us: u64,
    /// A clock that never steps, nanoseconds since any fixed point: durations come from it.
    pub mono_ns: u64,
}

impl Now {
    /// Wall clock in milliseconds, the unit of deadlines.
    #[inline]
    #[must_use]
    pub fn unix_ms(self) -> u64 {
        self.unix_us / 1000
    }
}

/// The times of one turn of the event loop, a turn being what happens between two waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnTimes {
    /// The whole turn, in nanoseconds.
    pub busy_ns: u64,
    /// Of it, writing to the append-only file, in nanoseconds.
    pub aof_ns: u64,
    /// Of it, periodic work, in nanoseconds.
    pub cron_ns: u64,
}
