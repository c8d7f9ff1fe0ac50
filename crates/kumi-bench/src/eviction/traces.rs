//! Sequences of keys that a cache is asked for.

use clap::ValueEnum;

/// The skew of the popularity of keys.
const ZIPF_EXPONENT: f64 = 0.9;
/// Keys that are asked for again, for each key that fits into the cache.
const KEYS_PER_PLACE: usize = 10;
/// The hot set moves this often in a trace.
const SHIFTS: usize = 6;

/// A kind of trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Trace {
    /// Keys of a fixed popularity
    Zipf,
    /// The same, and every so often a scan over keys that are asked for once
    Scan,
    /// The same, and every so often other keys are popular
    Shift,
}

impl Trace {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Trace::Zipf => "zipf",
            Trace::Scan => "scan",
            Trace::Shift => "shift",
        }
    }

    /// The keys of a trace for a cache of `places` keys, by number.
    pub(crate) fn keys(self, places: usize, accesses: usize, seed: u64) -> Vec<u32> {
        let universe = places * KEYS_PER_PLACE;
        let mut sum = 0.0;
        let cumulative: Vec<f64> = (1..=universe)
            .map(|rank| {
                sum += (rank as f64).powf(-ZIPF_EXPONENT);
                sum
            })
            .collect();
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut once = universe;
        let mut keys = Vec::with_capacity(accesses + places);
        let mut next_scan = 4 * places;
        while keys.len() < accesses {
            if self == Trace::Scan && keys.len() >= next_scan {
                keys.extend((once..once + places).map(|key| key as u32));
                once += places;
                next_scan = keys.len() + 4 * places;
            }
            let draw = rng.f64() * sum;
            let rank = cumulative.partition_point(|&to| to < draw);
            let shift = match self {
                Trace::Shift => keys.len() * SHIFTS / accesses * places * 3 / 2,
                Trace::Zipf | Trace::Scan => 0,
            };
            keys.push(((rank + shift) % universe) as u32);
        }
        keys.truncate(accesses);
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_trace_is_repeatable_and_of_its_kind() {
        let distinct = |trace: Trace| {
            let keys = trace.keys(100, 20_000, 7);
            assert_eq!(keys, trace.keys(100, 20_000, 7));
            assert_ne!(keys, trace.keys(100, 20_000, 8));
            assert_eq!(keys.len(), 20_000);
            keys.into_iter().collect::<HashSet<_>>().len()
        };
        assert!(distinct(Trace::Zipf) <= 1000);
        assert!(distinct(Trace::Scan) > 3000, "keys that come once");
        assert!(distinct(Trace::Shift) <= 1000);
        let shifted = Trace::Shift.keys(100, 20_000, 7);
        let most = |part: &[u32]| part.iter().filter(|&&key| key == 0).count();
        assert!(most(&shifted[..2000]) > 4 * most(&shifted[18_000..]));
    }
}
