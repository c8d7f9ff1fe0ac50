//! Counters that INFO, LATENCY HISTOGRAM and CONFIG RESETSTAT read and reset.

use crate::base::clock::TurnTimes;
use crate::base::error::CommandError;
use crate::base::histogram::Histogram;
use crate::base::ids::CommandId;
use crate::data::keyspace::Relocated;
use std::collections::BTreeMap;

/// What is known of one command.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommandStats {
    pub(crate) calls: u64,
    /// The time of all calls. Most take less than a microsecond, so it is summed in nanoseconds.
    total_ns: u64,
    /// Refused before it ran.
    pub(crate) rejected: u64,
    /// Ran and answered an error.
    pub(crate) failed: u64,
    pub(crate) histogram: Histogram,
}

impl CommandStats {
    /// Counts calls that took `each_ns` each.
    pub(crate) fn record(&mut self, calls: u64, each_ns: u64, track_latency: bool) {
        self.calls += calls;
        self.total_ns += calls * each_ns;
        if track_latency {
            self.histogram.record(calls, each_ns);
        }
    }

    /// The time of all calls in microseconds.
    pub(crate) fn usec(&self) -> u64 {
        self.total_ns / 1000
    }
}

/// Samples behind `instantaneous_ops_per_sec` and its relatives.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    samples: [u64; 16],
    next: usize,
    last_total: u64,
    last_ms: u64,
}

impl Rate {
    /// Takes a sample of a growing total.
    pub(crate) fn sample(&mut self, total: u64, now_ms: u64) {
        let elapsed_ms = now_ms.saturating_sub(self.last_ms);
        let added = total.saturating_sub(self.last_total) * 1000;
        if let Some(rate) = added.checked_div(elapsed_ms) {
            self.samples[self.next] = rate;
            self.next = (self.next + 1) % self.samples.len();
        }
        self.last_total = total;
        self.last_ms = now_ms;
    }

    pub(crate) fn per_second(&self) -> u64 {
        self.samples.iter().sum::<u64>() / self.samples.len() as u64
    }
}

/// How long a maximum counts as recent, in seconds.
const RECENT_S: u64 = 8;

/// The largest of the values noted within the last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentMax {
    /// A second and the largest value noted in it.
    seconds: [(u64, usize); RECENT_S as usize],
}

impl RecentMax {
    pub(crate) fn note(&mut self, value: usize, now_s: u64) {
        let slot = &mut self.seconds[(now_s % RECENT_S) as usize];
        if slot.0 != now_s {
            *slot = (now_s, 0);
        }
        slot.1 = slot.1.max(value);
    }

    pub(crate) fn largest(&self, now_s: u64) -> usize {
        let recent = self.seconds.iter().filter(|slot| slot.0 + RECENT_S > now_s);
        recent.map(|slot| slot.1).max().unwrap_or(0)
    }
}

/// Server-wide counters.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) commands: Vec<CommandStats>,
    /// By code word: the server's own codes, and at most `MAX_ERROR_CODES` others.
    pub(crate) errors: BTreeMap<Box<[u8]>, u64>,
    /// How many of `errors` are not the server's own codes.
    other_codes: usize,
    pub(crate) total_errors: u64,
    pub(crate) total_commands: u64,
    pub(crate) total_connections: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) peak_memory_bytes: usize,
    pub(crate) peak_memory_us: u64,
    pub(crate) output_limit_disconnections: u64,
    pub(crate) query_limit_disconnections: u64,
    /// Clients closed because all of them held more memory than `maxmemory-clients`.
    pub(crate) evicted_clients: u64,
    /// What was denied, by reason: command, key, channel, password.
    pub(crate) denied: [u64; 4],
    pub(crate) ops_rate: Rate,
    pub(crate) input_rate: Rate,
    pub(crate) output_rate: Rate,
    pub(crate) cycle_rate: Rate,
    /// Time spent in turns of the event loop; its rate over `cycle_rate` is the time of a turn.
    pub(crate) busy_rate: Rate,
    pub(crate) recent_input_bytes: RecentMax,
    pub(crate) recent_output_bytes: RecentMax,
    pub(crate) active_expiry_us: u64,
    /// What compaction looked at and moved, and for how long its walks that have ended ran.
    pub(crate) compaction: Relocated,
    pub(crate) compaction_ms: u64,
    /// INFO's `lazyfreed_objects`: keys removed by FLUSHALL ASYNC and FLUSHDB ASYNC. As in Redis, a string removed by
    /// UNLINK is not counted, because it is a single allocation.
    pub(crate) lazily_freed: u64,
    /// Memory accounted for before there was any data or client.
    pub(crate) startup_memory_bytes: usize,
    /// Turns of the event loop.
    pub(crate) turns: TurnStats,
    /// The host's own counter of rejected connections when statistics were last reset: it knows of no reset.
    pub(crate) rejected_before: u64,
}

/// What is known of the turns of the event loop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TurnStats {
    pub(crate) count: u64,
    /// The times of all turns.
    pub(crate) total: TurnTimes,
    /// The time of the longest turn.
    pub(crate) longest_ns: u64,
    /// The most commands that ran in one turn.
    pub(crate) most_commands: u64,
    /// `Stats::total_commands` at the end of the last turn.
    commands_before: u64,
}

impl TurnStats {
    /// Counts a turn, at whose end `total_commands` have run in all.
    #[inline]
    fn note(&mut self, turn: TurnTimes, total_commands: u64) {
        self.count += 1;
        self.total.busy_ns += turn.busy_ns;
        self.total.aof_ns += turn.aof_ns;
        self.total.cron_ns += turn.cron_ns;
        self.longest_ns = self.longest_ns.max(turn.busy_ns);
        let commands = total_commands.saturating_sub(self.commands_before);
        self.most_commands = self.most_commands.max(commands);
        self.commands_before = total_commands;
    }
}

/// The codes of the server's own errors, sorted. They are listed whatever else was counted.
const OWN_CODES: &[&[u8]] = &[
    b"BUSY",
    b"BUSYGROUP",
    b"BUSYKEY",
    b"ERR",
    b"EXECABORT",
    b"INVALIDOBJ",
    b"LOADING",
    b"MISCONF",
    b"NOAUTH",
    b"NOGROUP",
    b"NOPERM",
    b"NOPROTO",
    b"NOSCRIPT",
    b"NOTBUSY",
    b"OOM",
    b"TESTFAILED",
    b"UNBLOCKED",
    b"UNKILLABLE",
    b"WRONGPASS",
    b"WRONGTYPE",
];

/// Other codes beyond these are counted in the total only: a client can make codes up (by MULTI or a
/// script), and statistics must not grow with them.
const MAX_ERROR_CODES: usize = 128;

impl Stats {
    pub(crate) fn new(commands: usize) -> Self {
        Self {
            commands: vec![CommandStats::default(); commands],
            ..Self::default()
        }
    }

    pub(crate) fn count_error(&mut self, code: &[u8]) {
        self.total_errors += 1;
        if let Some(count) = self.errors.get_mut(code) {
            *count += 1;
            return;
        }
        if OWN_CODES.binary_search(&code).is_err() {
            if self.other_codes == MAX_ERROR_CODES {
                return;
            }
            self.other_codes += 1;
        }
        self.errors.insert(code.into(), 1);
    }

    /// Counts a turn of the event loop that has ended.
    #[inline]
    pub(crate) fn note_turn(&mut self, turn: TurnTimes) {
        self.turns.note(turn, self.total_commands);
    }

    /// Counts a command that was refused before it ran; without a row only its error.
    pub(crate) fn count_rejected(&mut self, id: Option<CommandId>, error: &CommandError) {
        if let Some(id) = id {
            self.commands[usize::from(id.0)].rejected += 1;
        }
        self.count_error(error.code());
    }

    /// CONFIG RESETSTAT. What describes the present stays.
    pub(crate) fn reset(&mut self, rejected_connections: u64) {
        *self = Self {
            peak_memory_bytes: self.peak_memory_bytes,
            peak_memory_us: self.peak_memory_us,
            startup_memory_bytes: self.startup_memory_bytes,
            recent_input_bytes: self.recent_input_bytes,
            recent_output_bytes: self.recent_output_bytes,
            rejected_before: rejected_connections,
            ..Self::new(self.commands.len())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_is_forgotten_after_some_seconds() {
        let mut recent = RecentMax::default();
        recent.note(7, 100);
        recent.note(3, 104);
        assert_eq!(recent.largest(104), 7);
        assert_eq!(recent.largest(108), 3);
        assert_eq!(recent.largest(112), 0);
        recent.note(1, 108);
        assert_eq!(recent.largest(108), 3);
    }

    #[test]
    fn a_rate_is_the_mean_of_the_last_samples() {
        let mut rate = Rate::default();
        for second in 1..=17 {
            rate.sample(second * 50, second * 1000);
        }
        assert_eq!(rate.per_second(), 50);
    }

    #[test]
    fn error_codes_are_bounded_but_the_total_counts_all() {
        let mut stats = Stats::new(0);
        for code in 0..1000 {
            stats.count_error(format!("CODE{code}").as_bytes());
        }
        assert_eq!(stats.errors.len(), MAX_ERROR_CODES);
        assert_eq!(stats.total_errors, 1000);
    }

    #[test]
    fn the_servers_own_codes_are_always_listed() {
        assert!(OWN_CODES.is_sorted());
        let mut stats = Stats::new(0);
        stats.count_error(b"ERR");
        for code in 0..1000 {
            stats.count_error(format!("CODE{code}").as_bytes());
        }
        for code in OWN_CODES {
            stats.count_error(code);
        }
        assert_eq!(stats.errors.len(), MAX_ERROR_CODES + OWN_CODES.len());
        assert_eq!(stats.errors.get(b"ERR".as_slice()), Some(&2));
        assert_eq!(stats.errors.get(b"WRONGTYPE".as_slice()), Some(&1));
        stats.reset(0);
        stats.count_error(b"CODE");
        assert_eq!(stats.errors.len(), 1);
    }

    /// Appends the codes of the errors that the sources in a directory make.
    fn collect_codes(directory: &std::path::Path, codes: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect_codes(&path, codes);
                continue;
            }
            let source = std::fs::read_to_string(&path).unwrap();
            for made in ["CommandError::fixed(", "CommandError::new(", "Self::fixed("] {
                for rest in source.split(made).skip(1) {
                    let rest = rest.trim_start();
                    let rest = rest.strip_prefix("format!(").unwrap_or(rest).trim_start();
                    let rest = rest.strip_prefix('b').unwrap_or(rest);
                    let literal = rest.strip_prefix('"');
                    let code = literal.and_then(|text| text.split_once(' '));
                    let code = code.map(|(code, _)| code.to_owned());
                    codes.extend(
                        code.filter(|code| code.bytes().all(|byte| byte.is_ascii_uppercase())),
                    );
                }
            }
        }
    }

    #[test]
    fn every_code_of_the_sources_is_an_own_code() {
        let mut codes = Vec::new();
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        collect_codes(&sources, &mut codes);
        codes.sort();
        codes.dedup();
        assert!(codes.len() > 10, "the scan finds few codes: {codes:?}");
        codes.retain(|code| !OWN_CODES.contains(&code.as_bytes()));
        assert!(codes.is_empty(), "not in OWN_CODES: {codes:?}");
    }
}
