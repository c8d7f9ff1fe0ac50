//! What is done by the clock: heartbeats, polling, rechecks, looking after slow watchers and the connections.
//!
//! There is one alarm for all of it and for the core. Nothing here is exact: a unit that has nothing to do wakes up about
//! once a second.

use super::messages::{Recipient, Report};
use super::schedule::{OVERFLOW_CHECK_MS, RECHECK_BEATS};
use super::state::Driver;
use crate::core::{GatherId, Time, WatchId};

impl Driver {
    /// When something is due, here or in the core.
    pub(super) fn next_alarm(&self) -> Time {
        let schedule = &self.schedule;
        let watchers_at = self.has_slow_watchers().then_some(schedule.watchers_at);
        let poll_at = schedule.poll_ms.map(|_| schedule.poll_at);
        let times = [watchers_at, poll_at, self.core.poll_timeout()];
        let others = schedule
            .beat_at
            .min(schedule.fleet_at)
            .min(schedule.recheck_at);
        times.into_iter().flatten().fold(others, Time::min)
    }

    /// Does all that is due.
    pub(super) fn alarmed(&mut self) {
        let now = self.now();
        if self.core.poll_timeout().is_some_and(|at| at <= now) {
            self.core.handle_timeout(now);
        }
        if self.schedule.beat_at <= now {
            self.schedule.beat_at = now.plus(self.schedule.heartbeat_ms);
            self.beat(now);
        }
        if let Some(poll_ms) = self
            .schedule
            .poll_ms
            .filter(|_| self.schedule.poll_at <= now)
        {
            self.schedule.poll_at = now.plus(poll_ms);
            self.core.poll_watches();
        }
        if self.has_slow_watchers() && self.schedule.watchers_at <= now {
            self.schedule.watchers_at = now.plus(OVERFLOW_CHECK_MS);
            self.check_watchers();
        }
        if self.schedule.fleet_at <= now {
            self.schedule.fleet_at = now.plus(self.schedule.fleet_ms);
            self.connections.look_after();
        }
        if self.schedule.recheck_at <= now {
            let period_ms = RECHECK_BEATS.saturating_mul(self.schedule.heartbeat_ms);
            self.schedule.recheck_at = now.plus(period_ms);
            self.recheck();
        }
    }

    /// Checks that the server still sends the events that are needed. Where we poll, there is nothing to rely on.
    fn recheck(&mut self) {
        let polls = self.settings.poll_ms.is_some();
        if self.notifications.is_checking || polls || !self.connections.all_up() {
            return;
        }
        self.notifications.is_checking = true;
        let checking = self.connections.check_events();
        self.tasks
            .spawn(async move { Report::Rechecked(checking.await) });
    }

    /// Whether a watcher is owed a gap, or the rest of a snapshot, or a gather has answers for its reader.
    fn has_slow_watchers(&self) -> bool {
        self.watches.has_slow()
            || self.core.unread_watches().next().is_some()
            || self.core.unread_gathers().next().is_some()
    }

    /// Tells watches that were too slow, and have room again, that they missed something. How much room they have for
    /// the rest of a snapshot is looked at after each turn.
    fn check_watchers(&mut self) {
        let now = self.now();
        for watch in self.watches.recovered() {
            self.core.watch_gap(watch, now);
        }
    }

    /// Goes on with snapshots and gathers that are larger than their readers had room for.
    pub(super) fn make_room(&mut self) {
        let unread: Vec<GatherId> = self.core.unread_gathers().collect();
        for gather in unread {
            if let Some(room) = self.calls.gather_room(gather) {
                self.core.gather_room(gather, room);
            }
        }
        let unread: Vec<WatchId> = self.core.unread_watches().collect();
        for watch in unread {
            if let Some(room) = self.watches.room(watch) {
                let now = self.now();
                self.core.watch_room(watch, room, now);
            }
        }
    }

    /// Adds what was served since the last heartbeat to the numbers of the unit. Answers whether there was something.
    pub(super) fn write_served(&mut self) -> bool {
        let commands = self.services.served.take(self.unit.as_str());
        let is_sent = self.is_shown && !commands.is_empty();
        if is_sent {
            self.connections.send(Recipient::Served, commands, false);
        }
        is_sent
    }

    fn beat(&mut self, now: Time) {
        self.write_served();
        let stats = self.current_stats();
        if let Some((info, _, owned)) = &self.info {
            let stats = stats.to_json(&info.instance);
            self.core.update_owned(*owned, stats, now);
        }
    }
}
