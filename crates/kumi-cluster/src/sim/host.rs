//! One simulated machine: a process that may or may not run, a clock of its own, and what waits while it is stopped.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::{Authority, MembershipRuntime, NodeName, NodeUid, TimerInstant};

/// How many packets wait for a stopped process, as in a socket's buffer; later ones are lost.
pub const INBOX_LIMIT: usize = 2048;
/// Where the virtual wall clock starts: some day in 2023.
const EPOCH_UNIX_MS: i64 = 1_700_000_000_000;

/// A machine. Several of them share an authority when two are configured with one address by mistake.
#[derive(Debug)]
pub struct Host {
    pub(super) authority: Authority,
    /// The number of the authority; differs from the place in the network only for a second process on one address.
    pub(super) subject: usize,
    pub(super) runtime: Option<MembershipRuntime>,
    pub(super) clock: HostClock,
    /// The name of its node; without one it has filler as metadata.
    pub(super) name: Option<NodeName>,
    pub(super) paused: bool,
    pub(super) inbox: VecDeque<(Authority, Arc<[u8]>)>,
    /// The wake-up that counts; others in the queue are stale.
    pub(super) wake: Option<(u64, u32)>,
    pub(super) wakes: u32,
    /// The uid of the last life, for a restart that keeps it.
    pub(super) last_uid: Option<NodeUid>,
}

impl Host {
    pub(super) fn new(authority: Authority, subject: usize, clock: HostClock) -> Self {
        Self {
            authority,
            subject,
            runtime: None,
            clock,
            name: None,
            paused: false,
            inbox: VecDeque::new(),
            wake: None,
            wakes: 0,
            last_uid: None,
        }
    }

    /// Where it is reached.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The number of its authority.
    pub fn subject(&self) -> usize {
        self.subject
    }

    /// The process, when there is one.
    pub fn runtime(&self) -> Option<&MembershipRuntime> {
        self.runtime.as_ref()
    }

    /// Whether the process exists but gets no time.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// What its clock shows.
    pub fn now(&self, at_us: u64) -> TimerInstant {
        self.clock.now(at_us)
    }
}

/// A clock with an origin, a speed and a wall clock of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostClock {
    /// What it showed at virtual time 0, in microseconds, and every jump since.
    pub offset_us: i64,
    /// How much faster it runs than virtual time, in parts per million.
    pub drift_ppm: i64,
    /// How wrong the wall clock is, in milliseconds.
    pub wall_error_ms: i64,
}

impl HostClock {
    /// What the monotone clock shows.
    pub fn now(&self, at_us: u64) -> TimerInstant {
        let at = i128::from(at_us);
        let shown = at + at * i128::from(self.drift_ppm) / 1_000_000 + i128::from(self.offset_us);
        TimerInstant::from_micros(u64::try_from(shown.max(0)).unwrap_or(u64::MAX))
    }

    /// The first virtual time at which it shows this.
    pub fn virtual_us(&self, shown: TimerInstant) -> u64 {
        let since = i128::from(shown.as_micros()) - i128::from(self.offset_us);
        let speed = 1_000_000 + i128::from(self.drift_ppm);
        let mut at_us = u64::try_from((since * 1_000_000 / speed).max(0)).unwrap_or(u64::MAX);
        // Dividing rounds down, so the clock may still be short of it by a microsecond or two.
        while at_us < u64::MAX && self.now(at_us) < shown {
            at_us += 1;
        }
        at_us
    }

    /// What the wall clock shows.
    pub fn unix_ms(&self, at_us: u64) -> u64 {
        let at_ms = i64::try_from(at_us / 1000).unwrap_or(i64::MAX);
        let shown = EPOCH_UNIX_MS
            .saturating_add(at_ms)
            .saturating_add(self.wall_error_ms);
        u64::try_from(shown).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_never_woken_for_too_early() {
        for drift_ppm in [-20_000, -3, 0, 1, 777, 15_000] {
            let clock = HostClock {
                offset_us: 12_345,
                drift_ppm,
                wall_error_ms: 0,
            };
            for shown_us in [12_345, 12_346, 999_999, 60_000_001] {
                let shown = TimerInstant::from_micros(shown_us);
                let at_us = clock.virtual_us(shown);
                assert!(clock.now(at_us) >= shown, "{drift_ppm} ppm, {shown_us}");
                assert!(
                    at_us == 0 || clock.now(at_us - 1) <= shown,
                    "{drift_ppm} ppm, {shown_us}"
                );
            }
        }
    }

    #[test]
    fn a_wrong_wall_clock_does_not_touch_the_monotone_one() {
        let clock = HostClock {
            offset_us: 5,
            drift_ppm: 0,
            wall_error_ms: -1000,
        };
        assert_eq!(clock.now(10), TimerInstant::from_micros(15));
        assert_eq!(clock.unix_ms(2_000_000), 1_700_000_001_000);
    }
}
