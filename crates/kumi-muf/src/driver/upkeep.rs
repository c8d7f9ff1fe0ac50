//! What is done by the clock: heartbeats, polling, rechecks, looking after slow watchers, silent nodes and the cluster's
//! map.
//!
//! There is one alarm for all of it and for the core. Nothing here is exact: a unit that has nothing to do wakes up about
//! once a second.

use std::time::Duration;

use super::ask::Stats;
use super::engine::{Engine, Watcher};
use crate::core::Time;

/// How often a watcher that was too slow is looked at.
const OVERFLOW_CHECK_MS: u64 = 50;

/// How often the fleet is looked at, at least: silent nodes, the slots of a cluster.
const FLEET_CHECK_MS: u64 = 1_000;

/// After how many heartbeats the server's flags are checked, and whether watched values are those that are known: another
/// client may have changed the flags or flushed the data, which sends no events.
const RECHECK_BEATS: u64 = 2;

/// Every how many rechecks the watched values themselves are read again, and not only looked for.
const THOROUGH_EVERY: u64 = 6;

/// When what is due next.
pub(super) struct Upkeep {
    heartbeat_ms: u64,
    poll_ms: Option<u64>,
    fleet_ms: u64,
    beat_at: Time,
    poll_at: Time,
    watchers_at: Time,
    fleet_at: Time,
    recheck_at: Time,
    rechecks: u64,
}

impl Upkeep {
    /// A reply counts as overdue after `response_timeout`, which is noticed a quarter of it later at the latest.
    pub(super) fn new(
        heartbeat: Duration,
        poll_ms: Option<u64>,
        response_timeout: Duration,
    ) -> Self {
        let quarter_ms = response_timeout.as_millis() as u64 / 4;
        Self {
            heartbeat_ms: (heartbeat.as_millis() as u64).max(1),
            poll_ms: poll_ms.map(|poll_ms| poll_ms.max(1)),
            fleet_ms: FLEET_CHECK_MS.min(quarter_ms).max(10),
            beat_at: Time(0),
            poll_at: Time(0),
            watchers_at: Time(0),
            fleet_at: Time(0),
            recheck_at: Time(RECHECK_BEATS.saturating_mul(heartbeat.as_millis() as u64)),
            rechecks: 0,
        }
    }

    /// Watched values have to be looked at this often from now on.
    pub(super) fn poll(&mut self, period: Duration) {
        self.poll_ms = Some((period.as_millis() as u64).max(1));
    }
}

impl Engine {
    /// When something is due, here or in the core.
    pub(super) fn next_alarm(&self) -> Time {
        let upkeep = &self.upkeep;
        let watchers_at = self.has_slow_watchers.then_some(upkeep.watchers_at);
        let poll_at = upkeep.poll_ms.map(|_| upkeep.poll_at);
        let times = [watchers_at, poll_at, self.core.poll_timeout()];
        let others = upkeep.beat_at.min(upkeep.fleet_at).min(upkeep.recheck_at);
        times.into_iter().flatten().fold(others, Time::min)
    }

    /// Does all that is due.
    pub(super) fn alarmed(&mut self) {
        let now = self.now();
        if self.core.poll_timeout().is_some_and(|at| at <= now) {
            self.core.handle_timeout(now);
        }
        if self.upkeep.beat_at <= now {
            self.upkeep.beat_at = now.plus(self.upkeep.heartbeat_ms);
            self.beat(now);
        }
        if let Some(poll_ms) = self.upkeep.poll_ms.filter(|_| self.upkeep.poll_at <= now) {
            self.upkeep.poll_at = now.plus(poll_ms);
            self.core.poll_watches();
        }
        if self.has_slow_watchers && self.upkeep.watchers_at <= now {
            self.upkeep.watchers_at = now.plus(OVERFLOW_CHECK_MS);
            self.check_watchers();
        }
        if self.upkeep.fleet_at <= now {
            self.upkeep.fleet_at = now.plus(self.upkeep.fleet_ms);
            self.drop_silent_nodes(now);
            self.refresh_topology(false);
        }
        if self.upkeep.recheck_at <= now {
            let period_ms = RECHECK_BEATS.saturating_mul(self.upkeep.heartbeat_ms);
            self.upkeep.recheck_at = now.plus(period_ms);
            self.recheck();
        }
    }

    /// The flags were checked. If events were missed, all that follows from that is done; if not, what sends no event
    /// of is looked for.
    pub(super) fn rechecked(&mut self, mended: bool, told: bool) {
        self.rechecking = false;
        let news = mended || told == self.untold;
        self.untold = !told;
        if news {
            tracing::warn!(told, "the server did not send all events");
            let now = self.now();
            self.core.handle_subscribed(now);
            self.taps.gap();
            return;
        }
        self.upkeep.rechecks += 1;
        let thorough = self.untold || self.upkeep.rechecks.is_multiple_of(THOROUGH_EVERY);
        let now = self.now();
        self.core.recheck_watches(thorough, now);
    }

    fn check_watchers(&mut self) {
        let roomy =
            |watcher: &Watcher| watcher.events.capacity() >= watcher.events.max_capacity() / 2;
        for (watch, watcher) in &mut self.watchers {
            if watcher.overflowed && roomy(watcher) {
                watcher.overflowed = false;
                self.core.watch_gap(*watch);
            }
        }
        self.has_slow_watchers = self.watchers.values().any(|watcher| watcher.overflowed);
    }

    fn beat(&mut self, now: Time) {
        let stats = self.current_stats();
        if let Some((info, _, owned)) = &self.info {
            let stats = stats.to_json(&info.instance);
            self.core.update_owned(*owned, stats, now);
        }
    }

    pub(super) fn current_stats(&self) -> Stats {
        self.stats
            .with(self.core.backend_counters(), self.core.pending_calls())
    }

    /// Writes which services there are now. With a new one this process represents all processes of its name.
    pub(super) fn tell_services(&mut self, new: bool) {
        let now = self.now();
        if let Some((info, owned, _)) = &mut self.info {
            let active = self.services.values().filter(|served| !served.draining);
            info.services = active.map(|served| served.pattern.to_string()).collect();
            info.services.sort_unstable();
            match new {
                true => {
                    self.core.change_owned(*owned, info.to_json(), now);
                }
                false => self.core.update_owned(*owned, info.to_json(), now),
            }
        }
    }
}
