//! LATENCY's event history: spikes above `latency-monitor-threshold`, one sample per second.

use crate::base::clock::Now;
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
    /// The history of an event, by the name a client gives.
    pub(crate) fn event(&self, name: &[u8]) -> Option<&EventHistory> {
        self.events.get(std::str::from_utf8(name).ok()?)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_bounded() {
        let mut latency = LatencyMonitor {
            threshold_ms: 1,
            ..LatencyMonitor::default()
        };
        for second in 0..1_000 {
            let now = Now {
                unix_us: second * 1_000_000,
                mono_ns: 0,
            };
            latency.record("command", now, 1_000 - second);
        }
        let history = latency.event(b"command").expect("an event was recorded");
        assert_eq!(history.samples.len(), HISTORY);
        assert_eq!(history.samples.back(), Some(&(999, 1)));
        assert_eq!(history.max_ms, 1_000);
    }

    #[test]
    fn short_events_and_a_threshold_of_zero_record_nothing() {
        let mut latency = LatencyMonitor::default();
        latency.record("command", Now::default(), 1_000);
        latency.threshold_ms = 10;
        latency.record("command", Now::default(), 9);
        assert!(latency.events.is_empty());
    }
}
