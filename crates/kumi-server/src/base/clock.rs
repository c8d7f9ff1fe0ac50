//! The engine's wall clock and monotonic clock, from one reading.
//!
//! A command is timed by one reading of the monotonic clock, and the wall clock is derived from it.
//! The offset between the two is read again at every turn of the loop: a step of the system clock
//! takes effect within one turn, and durations are not affected by it.

use kumi_store::Now;
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Reads the monotonic clock and derives the wall clock.
#[derive(Debug)]
pub(crate) struct Clock {
    /// The origin of monotonic time.
    origin: Instant,
    /// The wall clock at `origin`, as of the last `rebase`.
    origin_unix_us: u64,
    last: Now,
    /// The last reading of the system's coarse clock.
    coarse: Timespec,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let mut clock = Self {
            origin: Instant::now(),
            origin_unix_us: 0,
            last: Now::default(),
            coarse: clock_gettime(ClockId::MonotonicCoarse),
        };
        clock.rebase();
        clock
    }

    /// Reads the clocks.
    pub(crate) fn read(&mut self) -> Now {
        let mono_ns = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last = Now {
            unix_us: self.origin_unix_us + mono_ns / 1000,
            mono_ns,
        };
        self.last
    }

    /// Whether the coarse clock, which moves every few milliseconds, has moved since the last call.
    /// It is read from memory, without the cost of a precise reading.
    #[inline]
    pub(crate) fn ticked(&mut self) -> bool {
        let coarse = clock_gettime(ClockId::MonotonicCoarse);
        std::mem::replace(&mut self.coarse, coarse) != coarse
    }

    /// Reads the system's wall clock again.
    pub(crate) fn rebase(&mut self) -> Now {
        let unix_us = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |time| {
                u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
            });
        let mono_us = self.read().mono_ns / 1000;
        self.origin_unix_us = unix_us.saturating_sub(mono_us);
        self.last.unix_us = self.origin_unix_us + mono_us;
        self.last
    }

    /// The last reading; no system call.
    pub(crate) fn last(&self) -> Now {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_move_together() {
        let mut clock = Clock::new();
        let first = clock.last();
        let second = loop {
            let now = clock.read();
            if now.mono_ns > first.mono_ns + 10_000 {
                break now;
            }
        };
        let mono_us = second.mono_ns / 1000 - first.mono_ns / 1000;
        assert_eq!(second.unix_us - first.unix_us, mono_us);
    }

    #[test]
    fn the_wall_clock_is_the_systems_after_a_rebase() {
        let mut clock = Clock::new();
        clock.origin_unix_us = 1_000_000;
        assert!(clock.read().unix_ms() < 3_600_000);
        let system_ms = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .expect("now is after 1970")
            .as_millis() as u64;
        assert!(clock.rebase().unix_ms().abs_diff(system_ms) < 60_000);
    }
}
