//! The runtime's clock.
//!
//! Deadlines are kept in a time that stands still while this node did: when a deadline is found to have passed long ago,
//! the node was stopped or its clock jumped, and all deadlines move by that lateness. No member is suspected for a silence
//! in which this node itself received nothing.

use crate::core::base::time::{TimerInstant, micros};
use core::time::Duration;

/// Lateness below this is the ordinary slack of timers.
const TOLERANCE: Duration = Duration::from_millis(150);

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// The driver's.
    pub(crate) raw: TimerInstant,
    /// The runtime's, which all deadlines are in.
    pub(crate) own: TimerInstant,
}

/// Translates between the two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// What the driver's clock is ahead of the runtime's.
    ahead_us: i128,
    last: Now,
}

impl Clock {
    pub(crate) fn new(now: TimerInstant) -> Self {
        // The runtime's time starts past zero, so that a driver's clock that jumps back has room.
        let own = TimerInstant::from_millis(1_000_000);
        Self {
            ahead_us: i128::from(now.as_micros()) - i128::from(own.as_micros()),
            last: Now { raw: now, own },
        }
    }

    pub(crate) fn last(&self) -> Now {
        self.last
    }

    /// Takes a reading of the driver's clock. `due` is the earliest deadline; returns the lateness, if it exceeds the slack.
    pub(crate) fn advance(
        &mut self,
        raw: TimerInstant,
        due: Option<TimerInstant>,
    ) -> (Now, Option<Duration>) {
        let behind =
            i128::from(raw.as_micros()) - self.ahead_us - i128::from(self.last.own.as_micros());
        if behind < 0 {
            // The driver's clock went back: time goes on from where it was.
            self.ahead_us += behind;
        }
        let mut own =
            self.last.own + Duration::from_micros(u64::try_from(behind.max(0)).unwrap_or(u64::MAX));
        let late = due.map_or(Duration::ZERO, |due| {
            own.saturating_since(due.max(self.last.own))
        });
        let late = (late > TOLERANCE).then_some(late);
        if let Some(late) = late {
            self.ahead_us += i128::from(micros(late));
            own = own.saturating_sub(late);
        }
        self.last = Now { raw, own };
        (self.last, late)
    }

    /// When the driver has to come back for a deadline of the runtime.
    pub(crate) fn to_raw(self, own: TimerInstant) -> TimerInstant {
        let raw = i128::from(own.as_micros()) + self.ahead_us;
        TimerInstant::from_micros(u64::try_from(raw.max(0)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> TimerInstant {
        TimerInstant::from_millis(ms)
    }

    #[test]
    fn a_late_reading_moves_every_deadline_by_the_lateness() {
        let mut clock = Clock::new(ms(0));
        let start = clock.last().own;
        let due = start + Duration::from_millis(500);
        let (now, late) = clock.advance(ms(10_500), Some(due));
        assert_eq!(late, Some(Duration::from_secs(10)));
        assert_eq!(now.own, due, "the deadline is due exactly now");
        assert_eq!(clock.to_raw(due + Duration::from_secs(1)), ms(11_500));
    }

    #[test]
    fn a_little_lateness_is_none() {
        let mut clock = Clock::new(ms(0));
        let due = clock.last().own + Duration::from_millis(500);
        let (now, late) = clock.advance(ms(600), Some(due));
        assert_eq!(late, None);
        assert_eq!(now.own, due + Duration::from_millis(100));
    }

    #[test]
    fn a_clock_that_goes_back_stops_time_and_no_deadline_is_lost() {
        let mut clock = Clock::new(ms(5000));
        let due = clock.last().own + Duration::from_millis(500);
        let (now, late) = clock.advance(ms(1000), Some(due));
        assert_eq!((now.own, late), (clock.last().own, None));
        assert_eq!(clock.to_raw(due), ms(1500));
    }
}
