//! How long calls of a command took: counts per duration, two significant digits wide.
//!
//! A duration falls into a slot whose width is at most 1/128 of it, so that percentiles read off
//! the slots are as exact as Redis's. Slots exist up to the longest duration seen, so a command
//! that is always fast costs little and one that is never called costs nothing.
//!
//! ```text
//!   durations (ns)     slot width   slots
//!   0 .. 255           1            0 .. 255
//!   256 .. 511         2            256 .. 383
//!   512 .. 1023        4            384 .. 511      and so on, 128 slots per doubling
//! ```

/// Slots per doubling.
const HALF: u64 = 128;
/// Longer calls count as this long, which bounds the number of slots.
const LONGEST_NS: u64 = 1_000_000_000;

#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// Counts calls of one duration.
    pub(crate) fn record(&mut self, calls: u64, duration_ns: u64) {
        let slot = slot_of(duration_ns.clamp(1, LONGEST_NS));
        if slot >= self.counts.len() {
            self.counts.resize(slot + 1, 0);
        }
        self.counts[slot] += calls;
        self.total += calls;
    }

    /// Recorded calls.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The duration, in nanoseconds, that `percentile` percent of the calls did not exceed.
    pub(crate) fn at_percentile(&self, percentile: f64) -> u64 {
        let share = percentile.clamp(0.0, 100.0) / 100.0;
        let wanted = ((share * self.total as f64 + 0.5) as u64).max(1);
        let mut seen = 0;
        for (slot, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return end_of(slot);
            }
        }
        0
    }

    /// Upper bounds in microseconds, each twice the one before, with the number of calls up to
    /// each. Bounds that no call was added below are left out.
    pub(crate) fn doublings(&self) -> Vec<(u64, u64)> {
        let mut bounds = Vec::new();
        let (mut seen, mut shown, mut slot) = (0, 0, 0);
        let mut level_ns = 1024;
        while shown < self.total {
            let last = slot_of(level_ns);
            while slot <= last {
                seen += self.counts.get(slot).copied().unwrap_or(0);
                slot += 1;
            }
            if seen > shown {
                bounds.push((end_of(last) / 1000, seen));
                shown = seen;
            }
            level_ns *= 2;
        }
        bounds
    }
}

fn slot_of(duration_ns: u64) -> usize {
    if duration_ns < 2 * HALF {
        return duration_ns as usize;
    }
    let shift = u64::from(duration_ns.ilog2()) - 7;
    (shift * HALF + (duration_ns >> shift)) as usize
}

/// The longest duration that falls into a slot.
fn end_of(slot: usize) -> u64 {
    let slot = slot as u64;
    if slot < 2 * HALF {
        return slot;
    }
    let shift = slot / HALF - 1;
    let position = slot - shift * HALF;
    ((position + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_lies_in_its_slot() {
        let durations = (0..2000).chain((11..30).flat_map(|bits| {
            let start = 1u64 << bits;
            [start - 1, start, start + 1, start + start / 3]
        }));
        let mut last_slot = 0;
        for duration in durations {
            let slot = slot_of(duration);
            assert!(end_of(slot) >= duration, "{duration}");
            assert!(slot == 0 || end_of(slot - 1) < duration, "{duration}");
            assert!(end_of(slot) - duration <= duration / 128, "{duration}");
            last_slot = last_slot.max(slot);
        }
        assert!(last_slot < 4096);
    }

    #[test]
    fn percentiles_are_the_ends_of_slots() {
        let mut histogram = Histogram::default();
        for _ in 0..99 {
            histogram.record(1, 4_000);
        }
        histogram.record(1, 20_000);
        assert_eq!(histogram.at_percentile(50.0), 4_015);
        assert_eq!(histogram.at_percentile(99.0), 4_015);
        assert_eq!(histogram.at_percentile(99.9), 20_095);
        assert_eq!(histogram.at_percentile(100.0), 20_095);
        assert_eq!(Histogram::default().at_percentile(50.0), 0);
    }

    #[test]
    fn doublings_count_everything_below_them() {
        let mut histogram = Histogram::default();
        for us in [1, 3, 3, 12, 50_000] {
            histogram.record(1, us * 1000);
        }
        let expected = [(1, 1), (4, 3), (16, 4), (67_633, 5)];
        assert_eq!(histogram.doublings(), expected);
    }

    #[test]
    fn a_very_long_call_needs_no_more_slots() {
        let mut histogram = Histogram::default();
        histogram.record(1, u64::MAX);
        assert!(histogram.counts.len() < 4096);
        assert_eq!(histogram.total(), 1);
        assert_eq!(histogram.doublings().len(), 1);
    }
}
