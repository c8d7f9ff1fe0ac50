//! Rates from counters that only grow: two readings give what happened in a second.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Counters that are remembered at once. Further ones have no rate.
const MAX_COUNTERS: usize = 4_096;

/// A counter that was not read for this long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// Readings closer than this belong together: their difference would be noise.
const SHORTEST: Duration = Duration::from_millis(500);

struct Reading {
    at: Instant,
    value: u64,
    rate: f64,
}

/// The last readings of counters, by name.
#[derive(Default)]
pub(crate) struct Rates(BTreeMap<String, Reading>);

impl Rates {
    /// What a counter grew by in a second since its last reading; 0 at the first one, and after it began anew.
    pub(crate) fn rate(&mut self, name: &str, value: u64, now: Instant) -> f64 {
        match self.0.get_mut(name) {
            Some(reading) => {
                let passed = now.saturating_duration_since(reading.at);
                if passed >= SHORTEST {
                    let grown = value.saturating_sub(reading.value);
                    let rate = grown as f64 / passed.as_secs_f64();
                    *reading = Reading {
                        at: now,
                        value,
                        rate,
                    };
                }
                reading.rate
            }
            None => {
                if self.0.len() >= MAX_COUNTERS {
                    self.0
                        .retain(|_, reading| now - reading.at < FORGOTTEN_AFTER);
                }
                if self.0.len() < MAX_COUNTERS {
                    let reading = Reading {
                        at: now,
                        value,
                        rate: 0.0,
                    };
                    self.0.insert(name.to_owned(), reading);
                }
                0.0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_was_added_in_a_second() {
        let mut rates = Rates::default();
        let began = Instant::now();
        let at = |ms: u64| began + Duration::from_millis(ms);
        assert_eq!(rates.rate("a", 100, at(0)), 0.0);
        assert_eq!(rates.rate("a", 300, at(2_000)), 100.0);
        // Too soon for another rate.
        assert_eq!(rates.rate("a", 301, at(2_100)), 100.0);
        assert_eq!(rates.rate("a", 300, at(4_000)), 0.0);
        // The counter began anew.
        assert_eq!(rates.rate("a", 5, at(6_000)), 0.0);
        assert_eq!(rates.rate("b", 5, at(6_000)), 0.0);
    }
}
