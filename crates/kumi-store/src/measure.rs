//! How long commands take, with as few readings of the clock as the answer needs.
//!
//! A reading costs as much as a third of a GET. So the clock is read after every command that is
//! not FAST, and once for a group of FAST ones of a run, whose time is shared out evenly. The
//! system's coarse clock, which costs next to nothing, tells when one of a group took long: then
//! the precise clock is read at once, and the time belongs to the command that just ran. A low
//! `slowlog-log-slower-than`, the latency monitor and MONITOR clients need exact times: then the
//! clock is read after every command.

use crate::command::{CommandId, flag};
use crate::host::Host;
use crate::store::Store;

/// FAST commands that share one reading of the clock.
const GROUP: usize = 16;
/// A limit of the slow log below this needs exact times. It is well above the period of the
/// system's coarse clock, 4 ms at most.
const COARSE_LIMIT_NS: u64 = 9_000_000;
/// A group that took longer than this had one slow command in it: the last.
const LONG_GROUP_NS: u64 = 1_000_000;

/// Commands that ran since the clock was last read.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    unmeasured: Vec<CommandId>,
}

impl Store {
    /// Whether a command may leave the reading of the clock to a later one.
    #[inline]
    pub(crate) fn shares_reading(&self, flags: u32) -> bool {
        self.in_batch
            && flags & flag::FAST != 0
            && self.meter.unmeasured.len() < GROUP
            && self.slow_ns >= COARSE_LIMIT_NS
            && self.latency.threshold_ms == 0
            && self.monitors.is_empty()
    }

    /// Notes a command whose time is not known yet.
    #[inline]
    pub(crate) fn leave_unmeasured(&mut self, id: CommandId) {
        self.meter.unmeasured.push(id);
    }

    /// Shares the time since the last reading out among the commands that ran since, the last of
    /// them not noted yet; returns its share.
    pub(crate) fn share_out(&mut self, elapsed_ns: u64) -> u64 {
        if self.meter.unmeasured.is_empty() {
            return elapsed_ns;
        }
        let commands = self.meter.unmeasured.len() as u64 + 1;
        let (share_ns, last_ns) = if elapsed_ns > LONG_GROUP_NS {
            (0, elapsed_ns)
        } else {
            (elapsed_ns / commands, elapsed_ns / commands)
        };
        self.record_unmeasured(share_ns);
        last_ns
    }

    /// Reads the clock for the commands that left it to a later one.
    pub(crate) fn end_measuring(&mut self, host: &mut dyn Host) {
        let commands = self.meter.unmeasured.len() as u64;
        if commands == 0 {
            return;
        }
        let before_ns = self.now.mono_ns;
        self.now = host.now();
        let elapsed_ns = self.now.mono_ns.saturating_sub(before_ns);
        self.record_unmeasured(elapsed_ns / commands);
    }

    fn record_unmeasured(&mut self, share_ns: u64) {
        let mut commands = std::mem::take(&mut self.meter.unmeasured);
        for id in commands.drain(..) {
            self.record_call(id, share_ns, false);
        }
        self.meter.unmeasured = commands;
    }
}
