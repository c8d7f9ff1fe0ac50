//! The runtime's clock, and how far this node trusts what it does not receive: local health as in Lifeguard.
//!
//! Points rise when this node's timers ran late, or when a member that it probed or suspected was alive. They multiply the
//! timeouts of probes and suspicions. A node that was suspended, or that receives nothing at all, declares no member dead.

use super::clock::{Clock, Now};
use crate::core::base::time::TimerInstant;
use core::time::Duration;

/// After so many heartbeat intervals without a message from any member, this node takes itself to be the one that is cut off.
const RECEIVES_NOTHING_AFTER_BEATS: u32 = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalHealth {
    clock: Clock,
    score: Score,
    /// When anything valid last arrived from another node, on both clocks.
    heard_at: Now,
    /// Set while no message of a member has arrived since this node was suspended: messages count from this time on, in the
    /// runtime's time.
    waking: Option<TimerInstant>,
}

impl LocalHealth {
    pub(crate) fn new(now: TimerInstant) -> Self {
        let clock = Clock::new(now);
        Self {
            clock,
            score: Score::default(),
            heard_at: clock.last(),
            waking: None,
        }
    }

    /// The last reading of the clock.
    pub(crate) fn now(&self) -> Now {
        self.clock.last()
    }

    /// When the driver has to come back for a deadline of the runtime.
    pub(crate) fn to_raw(self, own: TimerInstant) -> TimerInstant {
        self.clock.to_raw(own)
    }

    /// Takes a reading of the driver's clock. `due` is the earliest deadline. Lateness beyond the slack of timers is returned,
    /// and counts against this node's health.
    pub(crate) fn advance(
        &mut self,
        raw: TimerInstant,
        due: Option<TimerInstant>,
    ) -> (Now, Option<Duration>) {
        let (now, late) = self.clock.advance(raw, due);
        if late.is_some() {
            self.score.doubt();
        }
        (now, late)
    }

    /// A member that this node probed or suspected was alive.
    pub(crate) fn doubt(&mut self) {
        self.score.doubt();
    }

    /// A heartbeat interval has passed.
    pub(crate) fn beat(&mut self) {
        self.score.beat();
    }

    /// The factor for the timeouts of probes and suspicions.
    pub(crate) fn multiplier(&self) -> u32 {
        self.score.multiplier()
    }

    /// Something valid arrived from another node, or this node starts to count anew.
    pub(crate) fn heard(&mut self, now: Now) {
        self.heard_at = now;
    }

    /// For how long nothing arrived: in the runtime's time, which leaves out suspensions, and on the driver's clock.
    pub(crate) fn silence(&self, now: Now) -> (Duration, Duration) {
        let awake = now.own.saturating_since(self.heard_at.own);
        let all = now.raw.saturating_since(self.heard_at.raw);
        (awake, all)
    }

    /// Nothing came from any member for a while, so this node is the one that is cut off.
    pub(crate) fn receives_nothing(&self, heartbeat_interval: Duration, now: Now) -> bool {
        self.silence(now).0 > heartbeat_interval * RECEIVES_NOTHING_AFTER_BEATS
    }

    /// This node was suspended. Messages of members count from `fresh_from` on.
    pub(crate) fn woke_up(&mut self, fresh_from: TimerInstant) {
        self.waking = Some(fresh_from);
    }

    /// Whether no message of a member has arrived since this node was suspended.
    pub(crate) fn is_waking(&self) -> bool {
        self.waking.is_some()
    }

    /// A message of a member arrived. It ends the waiting once it is recent enough.
    pub(crate) fn heard_member(&mut self, now: Now) {
        if self.waking.is_some_and(|fresh_from| now.own >= fresh_from) {
            self.waking = None;
        }
    }
}

/// Points against this node's own health.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    points: u32,
    calm_beats: u32,
}

impl Score {
    const MAX_POINTS: u32 = 4;
    /// After so many heartbeats without such an observation, one point is taken back.
    const CALM_BEATS: u32 = 10;

    fn doubt(&mut self) {
        self.points = (self.points + 1).min(Self::MAX_POINTS);
        self.calm_beats = 0;
    }

    fn beat(&mut self) {
        self.calm_beats += 1;
        if self.calm_beats >= Self::CALM_BEATS {
            self.calm_beats = 0;
            self.points = self.points.saturating_sub(1);
        }
    }

    fn multiplier(self) -> u32 {
        1 + self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_bounded_and_wear_off_with_calm_heartbeats() {
        let mut score = Score::default();
        (0..9).for_each(|_| score.doubt());
        assert_eq!(score.multiplier(), 5);
        (0..40).for_each(|_| score.beat());
        assert_eq!(score.multiplier(), 1);
    }
}
