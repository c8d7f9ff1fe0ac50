//! What the store knows of its own work: counters, slow commands, latency samples.
//!
//! The time of commands is taken with as few readings of the clock as the answer needs. A reading
//! costs as much as a third of a GET. So the precise clock is read after every command whose time
//! depends on the data, and once for a group of others (FAST, and the forms of SET) of a run, whose
//! time is shared out evenly. The system's coarse clock is read after each of these. It is nearly
//! free, and shows when one of a group took long: then the precise clock is read at once, and the
//! time belongs to the command that just ran. A low
//! `slowlog-log-slower-than`, the latency monitor and MONITOR clients need exact times: then the
//! clock is read after every command.

use crate::base::clock::Now;
use crate::base::ids::CommandId;
use crate::base::seeds::{Seeds, hexadecimal};
use crate::config::Settings;
use crate::engine::command::flag;
use crate::engine::latency::LatencyMonitor;
use crate::engine::session::Session;
use crate::engine::slowlog::{self, SlowEntry, SlowLog};
use crate::engine::stats::Stats;
use kumi_resp::Args;

/// Commands of constant time that share one reading of the clock.
const GROUP: usize = 16;
/// A limit of the slow log below this needs exact times. It is well above the period of the
/// system's coarse clock, 4 ms at most.
const COARSE_LIMIT_NS: u64 = 9_000_000;
/// A group that took longer than this had one slow command in it: the last.
const LONG_GROUP_NS: u64 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Telemetry {
    pub(crate) stats: Stats,
    pub(crate) slowlog: SlowLog,
    pub(crate) latency: LatencyMonitor,
    pub(crate) started: Now,
    /// INFO's `run_id` and `master_replid`.
    pub(crate) run_id: String,
    pub(crate) replication_id: String,
    /// Commands at least this slow are logged.
    slow_ns: u64,
    track_latency: bool,
    /// Commands that ran since the clock was last read.
    unmeasured: Vec<CommandId>,
}

impl Telemetry {
    pub(super) fn new(commands: usize, seeds: &Seeds, started: Now) -> Self {
        Self {
            stats: Stats::new(commands),
            slowlog: SlowLog::default(),
            latency: LatencyMonitor::default(),
            started,
            run_id: hexadecimal(seeds.run_id),
            replication_id: hexadecimal(seeds.replication_id),
            slow_ns: u64::MAX,
            track_latency: false,
            unmeasured: Vec::new(),
        }
    }

    /// Copies what is needed at hand out of the configuration.
    pub(super) fn load_settings(&mut self, settings: &Settings) {
        self.slow_ns = u64::try_from(settings.slowlog_log_slower_than_us)
            .map_or(u64::MAX, |us| us.saturating_mul(1000));
        self.slowlog.set_limit(settings.slowlog_max_len);
        self.latency.threshold_ms = settings.latency_monitor_threshold_ms;
        self.track_latency = settings.latency_tracking;
    }

    /// Whether a command of a run may leave the reading of the clock to a later one.
    #[inline]
    pub(super) fn shares_reading(&self, flags: u32) -> bool {
        flags & flag::BRIEF != 0
            && self.unmeasured.len() < GROUP
            && self.slow_ns >= COARSE_LIMIT_NS
            && self.latency.threshold_ms == 0
    }

    /// Notes a command whose time is not known yet.
    #[inline]
    pub(super) fn leave_unmeasured(&mut self, id: CommandId) {
        self.unmeasured.push(id);
    }

    pub(super) fn has_unmeasured(&self) -> bool {
        !self.unmeasured.is_empty()
    }

    /// Shares the time since the last reading out among the commands that ran since, the last of
    /// them not noted yet; returns its share.
    pub(super) fn share_out(&mut self, elapsed_ns: u64) -> u64 {
        if self.unmeasured.is_empty() {
            return elapsed_ns;
        }
        let commands = self.unmeasured.len() as u64 + 1;
        let (share_ns, last_ns) = if elapsed_ns > LONG_GROUP_NS {
            (0, elapsed_ns)
        } else {
            (elapsed_ns / commands, elapsed_ns / commands)
        };
        self.record_unmeasured(share_ns);
        last_ns
    }

    /// Shares the time since the last reading out among all commands that ran since.
    pub(super) fn share_out_all(&mut self, elapsed_ns: u64) {
        let commands = self.unmeasured.len() as u64;
        if let Some(share_ns) = elapsed_ns.checked_div(commands) {
            self.record_unmeasured(share_ns);
        }
    }

    fn record_unmeasured(&mut self, share_ns: u64) {
        let Self {
            stats,
            unmeasured,
            track_latency,
            ..
        } = self;
        // A pipeline repeats itself: most groups are of one command.
        for same in unmeasured.chunk_by(|one, next| one == next) {
            let calls = same.len() as u64;
            stats.commands[usize::from(same[0].0)].record(calls, share_ns, *track_latency);
            stats.total_commands += calls;
        }
        unmeasured.clear();
    }

    /// Counts a command that ran.
    pub(crate) fn record_call(&mut self, id: CommandId, duration_ns: u64, failed: bool) {
        let stats = &mut self.stats.commands[usize::from(id.0)];
        stats.record(1, duration_ns, self.track_latency);
        stats.failed += u64::from(failed);
        self.stats.total_commands += 1;
    }

    /// Gives the latency monitor the time of a command.
    pub(super) fn record_latency(&mut self, flags: u32, now: Now, duration_ns: u64) {
        if self.latency.threshold_ms != 0 {
            let event = if flags & flag::FAST != 0 {
                "fast-command"
            } else {
                "command"
            };
            self.latency.record(event, now, duration_ns / 1_000_000);
        }
    }

    /// Whether SLOWLOG gets a command.
    pub(super) fn is_slow(&self, flags: u32, duration_ns: u64) -> bool {
        duration_ns >= self.slow_ns && flags & flag::SKIP_SLOWLOG == 0
    }

    /// Puts a command into SLOWLOG.
    pub(super) fn record_slow(
        &mut self,
        source: Option<&Session>,
        args: Args<'_>,
        duration_ns: u64,
        now: Now,
    ) {
        let (addr, name) = source
            .map(|session| {
                (
                    session.identity.peer.addr.clone(),
                    session.identity.name.clone(),
                )
            })
            .unwrap_or_default();
        self.slowlog.push(SlowEntry {
            id: 0,
            unix_s: now.unix_us / 1_000_000,
            duration_us: duration_ns / 1000,
            args: slowlog::clip(args),
            addr,
            name,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_commands_have_their_time_in_full() {
        let mut telemetry = Telemetry::new(2, &Seeds::from_seed(1), Now::default());
        let (get, set) = (CommandId(0), CommandId(1));
        for id in [get, get, set, get] {
            telemetry.leave_unmeasured(id);
        }
        let last_ns = telemetry.share_out(3500);
        telemetry.record_call(get, last_ns, false);
        let [gets, sets] = &telemetry.stats.commands[..] else {
            panic!("two commands")
        };
        assert_eq!((gets.calls, gets.usec()), (4, 2));
        assert_eq!((sets.calls, sets.usec()), (1, 0));
        assert_eq!(telemetry.stats.total_commands, 5);
        assert!(!telemetry.has_unmeasured());
    }

    #[test]
    fn a_long_group_is_the_time_of_its_last_command() {
        let mut telemetry = Telemetry::new(2, &Seeds::from_seed(1), Now::default());
        telemetry.leave_unmeasured(CommandId(0));
        assert_eq!(telemetry.share_out(20_000_000), 20_000_000);
        assert_eq!(telemetry.stats.commands[0].usec(), 0);
    }

    #[test]
    fn only_brief_commands_share_a_reading() {
        let telemetry = Telemetry::new(0, &Seeds::from_seed(1), Now::default());
        assert!(telemetry.shares_reading(flag::READONLY | flag::FAST));
        assert!(telemetry.shares_reading(flag::WRITE | flag::CONSTANT_TIME));
        assert!(!telemetry.shares_reading(flag::WRITE | flag::DENYOOM));
    }
}
