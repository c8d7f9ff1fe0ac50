//! What is done by the clock: slices of expiry and of compaction, waits and pauses that end, housekeeping.

use super::{Effect, Store};
use crate::base::clock::Now;
use crate::engine::host::Host;
use crate::engine::output::Outputs;
use std::time::Duration;

/// Every session is looked at this often: seldom, because there may be many.
const SWEEP_MS: u64 = 1000;
/// A slice of active expiry ends after this long.
const EXPIRY_SLICE_NS: u64 = 1_000_000;

/// When periodic work is due, in Unix milliseconds.
#[derive(Debug)]
pub(super) struct Cron {
    next_housekeeping_ms: u64,
    next_sweep_ms: u64,
    /// DEBUG PAUSE-CRON: neither housekeeping nor active expiry nor compaction.
    pub(super) paused: bool,
    /// DEBUG AOF-FLUSH-SLEEP: before writes go to the append-only file.
    pub(super) flush_sleep: Option<Duration>,
    /// A cycle of active expiry that has not ended, while the latency monitor is on.
    expiry_cycle: Option<ExpiryCycle>,
}

/// What the latency monitor calls `expire-cycle`: from the first key that is due until none is, and until the memory of what
/// expired is free unless `lazyfree-lazy-expire` is set. Clients are served between its slices and while memory is freed; in
/// Redis they wait. What expires or is freed after the last key was removed is not part of it.
#[derive(Clone, Copy, Debug)]
struct ExpiryCycle {
    start_ns: u64,
    /// No key is due any more.
    removed: bool,
    frees: Frees,
}

/// Whether values that expired are freed on another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frees {
    /// None, or all are free.
    No,
    /// They are yet to be handed over to that thread.
    Pending,
    /// They are free when that thread has dropped so many bytes in all.
    Until(u64),
}

/// What the store let go of, in bytes. The host drops it in the order in which it was handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GarbageBytes {
    /// Handed over since the start.
    pub handed_over: u64,
    /// Not dropped yet.
    pub waiting: u64,
}

impl Cron {
    pub(super) fn new(now: Now) -> Self {
        Self {
            next_housekeeping_ms: now.unix_ms(),
            next_sweep_ms: now.unix_ms() + SWEEP_MS,
            paused: false,
            flush_sleep: None,
            expiry_cycle: None,
        }
    }
}

impl Store {
    /// When `poll` has something to do, in Unix milliseconds.
    #[must_use]
    pub fn next_deadline(&self) -> u64 {
        let steady = |until_ns: u64| self.unix_ms_at(until_ns);
        let wait = self.clients.first_wait_end().map(steady);
        let pause = self.clients.pause.map(|pause| steady(pause.until_ns));
        let expiry = self.keyspace.next_deadline();
        if self.has_evictions() {
            return self.now.unix_ms();
        }
        let expiry = expiry.filter(|_| !self.upkeep.cron.paused);
        let compaction = self.upkeep.compaction.next_slice_ns().map(steady);
        let compaction = compaction.filter(|_| !self.upkeep.cron.paused);
        [wait, pause, expiry, compaction, self.snapshot_deadline()]
            .into_iter()
            .flatten()
            // A wall clock that was set back must not make the loop sleep until it has caught up.
            .fold(self.now.unix_ms() + self.housekeeping_ms(), u64::min)
            .min(self.upkeep.cron.next_housekeeping_ms)
    }

    /// A time of the steady clock in Unix milliseconds, as of the last reading of the clocks.
    pub(super) fn unix_ms_at(&self, mono_ns: u64) -> u64 {
        match mono_ns.checked_sub(self.now.mono_ns) {
            None | Some(0) => self.now.unix_ms(),
            Some(left_ns) => (self.now.unix_us + left_ns.div_ceil(1000)).div_ceil(1000),
        }
    }

    /// Does what is due: a slice of expiry or of compaction, waits that ended, the end of a pause, housekeeping.
    /// Work that is left over makes `next_deadline` lie in the past: serve clients, call again.
    pub fn poll(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        self.now = host.now();
        let now_ms = self.now.unix_ms();
        self.end_waits(outputs);
        let now_ns = self.now.mono_ns;
        let pause = self.clients.pause;
        if pause.is_some_and(|pause| now_ns >= pause.until_ns) {
            self.end_pause(outputs, host);
        }
        if !self.upkeep.cron.paused {
            self.expire_slice(host);
        } else {
            self.upkeep.cron.expiry_cycle = None;
        }
        if self.has_evictions() {
            self.continue_eviction(outputs, host);
        }
        self.drive_snapshot(host);
        if !self.upkeep.cron.paused {
            self.compact(host);
        }
        let period_ms = self.housekeeping_ms();
        if is_due(self.upkeep.cron.next_housekeeping_ms, period_ms, now_ms) {
            self.upkeep.cron.next_housekeeping_ms = now_ms + period_ms;
            if !self.upkeep.cron.paused {
                self.housekeeping(outputs, now_ms);
                self.save_when_due(host);
            }
        }
        self.settle(outputs, None);
        if self.keyspace.interest.waiters.has_ready() {
            self.serve_ready(outputs, host);
        }
    }

    /// The period of housekeeping, from `hz`.
    fn housekeeping_ms(&self) -> u64 {
        1000 / u64::from(self.config.settings().hz.clamp(1, 1000))
    }

    fn expire_slice(&mut self, host: &mut dyn Host) {
        let start = self.now;
        let mut looked_at = 0;
        let mut removed = false;
        loop {
            let batch = self.keyspace.expire_batch(start.unix_ms());
            if batch == 0 {
                removed = true;
                break;
            }
            looked_at += batch;
            self.now = host.now();
            if self.now.mono_ns.saturating_sub(start.mono_ns) >= EXPIRY_SLICE_NS {
                self.keyspace.stats.expiry_slices_cut += 1;
                break;
            }
        }
        if looked_at > 0 {
            let spent_ns = self.now.mono_ns.saturating_sub(start.mono_ns);
            self.telemetry.stats.active_expiry_us += spent_ns / 1000;
        }
        self.note_expiry(start, looked_at > 0, removed);
    }

    /// Notes a slice of expiry for the latency monitor.
    fn note_expiry(&mut self, start: Now, expired: bool, removed: bool) {
        if self.telemetry.latency.threshold_ms == 0 {
            self.upkeep.cron.expiry_cycle = None;
            return;
        }
        if self.upkeep.cron.expiry_cycle.is_none() && !expired {
            return;
        }
        let frees = self.keyspace.has_garbage() && !self.keyspace.expiry.lazy;
        let cycle = self.upkeep.cron.expiry_cycle.get_or_insert(ExpiryCycle {
            start_ns: start.mono_ns,
            removed: false,
            frees: Frees::No,
        });
        if !cycle.removed {
            cycle.removed = removed;
            if frees {
                cycle.frees = Frees::Pending;
            }
        }
        if cycle.frees == Frees::No {
            self.follow_expiry_cycle(self.now);
        }
    }

    /// Notes how far the values that expired are freed.
    #[inline]
    pub(super) fn follow_frees(&mut self, garbage: GarbageBytes) {
        if let Some(cycle) = &mut self.upkeep.cron.expiry_cycle {
            if cycle.frees == Frees::Pending {
                cycle.frees = Frees::Until(garbage.handed_over);
            }
            let dropped = garbage.handed_over - garbage.waiting.min(garbage.handed_over);
            if cycle.removed && matches!(cycle.frees, Frees::Until(end) if dropped >= end) {
                cycle.frees = Frees::No;
            }
        }
    }

    /// Tells the latency monitor how long a cycle of expiry has lasted, whether it has ended or not.
    #[inline]
    pub(super) fn follow_expiry_cycle(&mut self, now: Now) {
        if let Some(cycle) = self.upkeep.cron.expiry_cycle {
            if cycle.removed && cycle.frees == Frees::No {
                self.upkeep.cron.expiry_cycle = None;
            }
            let spent_ms = now.mono_ns.saturating_sub(cycle.start_ns) / 1_000_000;
            let latency = &mut self.telemetry.latency;
            latency.record("expire-cycle", now, spent_ms);
        }
    }

    fn housekeeping(&mut self, outputs: &mut Outputs, now_ms: u64) {
        let stats = &mut self.telemetry.stats;
        let (cycles, busy_us) = (stats.turns.count, stats.turns.total.busy_ns / 1000);
        stats.cycle_rate.sample(cycles, now_ms);
        stats.busy_rate.sample(busy_us, now_ms);
        stats.ops_rate.sample(stats.total_commands, now_ms);
        stats.input_rate.sample(stats.bytes_in, now_ms);
        stats.output_rate.sample(stats.bytes_out, now_ms);
        self.resize_reply_buffers(outputs, now_ms);
        self.tend_tracking(outputs, now_ms);
        self.keyspace.free_empty_tables();
        if is_due(self.upkeep.cron.next_sweep_ms, SWEEP_MS, now_ms) {
            self.upkeep.cron.next_sweep_ms = now_ms + SWEEP_MS;
            self.sweep_sessions(outputs, now_ms);
        }
        self.note_peak_memory();
    }

    /// Looks at a part of the sessions, all of them within a second.
    fn resize_reply_buffers(&mut self, outputs: &Outputs, now_ms: u64) {
        const FEWEST: usize = 5;
        let calls_per_second = 1000 / self.housekeeping_ms().max(1);
        let share = self.clients.sessions.len() / calls_per_second.max(1) as usize + 1;
        let policy = self.clients.reply_buffers;
        self.clients.sessions.visit(share.max(FEWEST), |session| {
            let pending = outputs.pending(session.key);
            session.memory.reply_buffer.resize(policy, pending, now_ms);
        });
    }

    /// Closes clients that were idle too long or sat above the soft output limit too long.
    fn sweep_sessions(&mut self, outputs: &mut Outputs, now_ms: u64) {
        let waiting = self.clients.sessions.iter();
        let waiting = waiting.map(|session| outputs.pending(session.key)).max();
        let now_s = self.now.unix_us / 1_000_000;
        let recent = &mut self.telemetry.stats.recent_output_bytes;
        recent.note(waiting.unwrap_or(0), now_s);
        // A value that was sent and then overwritten counts for the output from now on.
        outputs.count_shared();
        self.note_output(outputs);
        let timeout_ms = u64::from(self.config.settings().timeout_s) * 1000;
        let mut over_soft_limit = Vec::new();
        let mut idle = Vec::new();
        for session in self.clients.sessions.iter() {
            if session.memory.soft_limit_since_ms.is_some() {
                over_soft_limit.push(session.key);
            }
            let exempt = session.blocked.is_some()
                || session.modes.monitor
                || !session.subscriptions.is_empty();
            let idle_ms = now_ms.saturating_sub(session.activity.last_active_ms);
            if timeout_ms != 0 && !exempt && idle_ms > timeout_ms {
                tracing::debug!(conn_id = session.id, "Closing idle client");
                idle.push(session.key);
            }
        }
        for key in idle {
            self.note_leaving(key, "idle timeout");
            self.outbox.effects.push(Effect::Close(key));
        }
        for key in over_soft_limit {
            let pending = outputs.pending(key);
            self.check_output_limit(outputs, key, pending);
        }
    }
}

/// Whether periodic work is due. A next time that lies further ahead than the period means that
/// the wall clock was set back.
fn is_due(next_ms: u64, period_ms: u64, now_ms: u64) -> bool {
    now_ms >= next_ms || next_ms - now_ms > period_ms
}

#[cfg(test)]
mod tests {
    use crate::testing::Lab;

    #[test]
    fn databases_without_keys_take_no_memory_after_a_while() {
        let mut lab = Lab::new();
        let before = lab.store.keyspace.memory_bytes();
        lab.run("SELECT 3");
        for round in 0..2 {
            lab.run("SET key value");
            lab.run("DEL key");
            assert!(lab.store.keyspace.memory_bytes() > before, "round {round}");
            lab.advance_ms(1000);
            assert_eq!(lab.store.keyspace.memory_bytes(), before, "round {round}");
        }
        lab.check(&[
            ("SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n"),
            ("SET key value", "+OK\r\n"),
        ]);
        lab.advance_ms(1000);
        lab.check(&[("GET key", "$5\r\nvalue\r\n")]);
    }
}
