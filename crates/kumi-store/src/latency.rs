//! LATENCY's event history: spikes above `latency-monitor-threshold`, one sample per second.

use crate::host::Now;
use std::collections::{BTreeMap, VecDeque};

/// Samples kept per event.
const HISTORY: usize = 160;

#[derive(Debug, Default)]
pub(crate) struct EventHistory {
    /// (unix seconds, milliseconds), oldest first.
    pub(crate) samples: VecDeque<(u64, u64)>,
    pub(crate) max_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct LatencyMonitor {
    /// Milliseconds; 0 is off.
    pub(crate) threshold_ms: u64,
    pub(crate) events: BTreeMap<&'static str, EventHistory>,
}

impl LatencyMonitor {
    /// Notes a spike if monitoring is on and it is long enough. Spikes of one event within one
    /// second are one sample, the worst of them.
    pub(crate) fn record(&mut self, event: &'static str, now: Now, duration_ms: u64) {
        if self.threshold_ms == 0 || duration_ms < self.threshold_ms {
            return;
        }
        let unix_s = now.unix_us / 1_000_000;
        let history = self.events.entry(event).or_default();
        history.max_ms = history.max_ms.max(duration_ms);
        match history.samples.back_mut() {
            Some((second, worst)) if *second == unix_s => *worst = (*worst).max(duration_ms),
            _ => {
                history.samples.push_back((unix_s, duration_ms));
                if history.samples.len() > HISTORY {
                    history.samples.pop_front();
                }
            }
        }
    }
}
