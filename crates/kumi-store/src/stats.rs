//! Counters that INFO, LATENCY HISTOGRAM and CONFIG RESETSTAT read and reset.

use std::collections::BTreeMap;

/// Buckets of a latency histogram: powers of two from about a microsecond to about 18 minutes.
pub(crate) const LATENCY_BUCKETS: usize = 31;

/// What is known of one command.
#[derive(Clone, Debug)]
pub(crate) struct CommandStats {
    pub(crate) calls: u64,
    pub(crate) usec: u64,
    /// Refused before it ran.
    pub(crate) rejected: u64,
    /// Ran and answered an error.
    pub(crate) failed: u64,
    /// Calls by duration; bucket `n` ends at `1024 << n` nanoseconds.
    pub(crate) histogram: [u64; LATENCY_BUCKETS],
}

impl Default for CommandStats {
    fn default() -> Self {
        Self {
            calls: 0,
            usec: 0,
            rejected: 0,
            failed: 0,
            histogram: [0; LATENCY_BUCKETS],
        }
    }
}

impl CommandStats {
    pub(crate) fn record(&mut self, duration_ns: u64, track_latency: bool) {
        self.calls += 1;
        self.usec += duration_ns / 1000;
        if track_latency {
            let bucket = (64 - (duration_ns >> 10).leading_zeros()) as usize;
            self.histogram[bucket.min(LATENCY_BUCKETS - 1)] += 1;
        }
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
        if elapsed_ms > 0 {
            self.samples[self.next] = total.saturating_sub(self.last_total) * 1000 / elapsed_ms;
            self.next = (self.next + 1) % self.samples.len();
        }
        self.last_total = total;
        self.last_ms = now_ms;
    }

    pub(crate) fn per_second(&self) -> u64 {
        self.samples.iter().sum::<u64>() / self.samples.len() as u64
    }
}

/// Server-wide counters.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) commands: Vec<CommandStats>,
    /// By code word; see `MAX_ERROR_CODES`.
    pub(crate) errors: BTreeMap<Box<[u8]>, u64>,
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
    pub(crate) auth_denied: u64,
    pub(crate) ops_rate: Rate,
    pub(crate) input_rate: Rate,
    pub(crate) output_rate: Rate,
    pub(crate) largest_input_bytes: usize,
    pub(crate) largest_output_bytes: usize,
    pub(crate) active_expiry_us: u64,
}

/// Codes beyond these are counted in the total only: a client can make codes up (by MULTI or a
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
        } else if self.errors.len() < MAX_ERROR_CODES {
            self.errors.insert(code.into(), 1);
        }
    }

    /// CONFIG RESETSTAT.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            peak_memory_bytes: self.peak_memory_bytes,
            peak_memory_us: self.peak_memory_us,
            ..Self::new(self.commands.len())
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_fall_into_the_bucket_that_ends_above_them() {
        let mut stats = CommandStats::default();
        stats.record(1023, true);
        stats.record(1024, true);
        stats.record(2048, true);
        stats.record(u64::MAX, true);
        assert_eq!(stats.histogram[..3], [1, 1, 1]);
        assert_eq!(stats.histogram[LATENCY_BUCKETS - 1], 1);
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
}
