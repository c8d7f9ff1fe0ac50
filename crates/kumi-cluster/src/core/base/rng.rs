//! Random numbers from a seed that is handed in, so that a run is a function of its seeds.
//!
//! Good for choosing peers and spreading timers; not for anything that must not be guessed.

use core::time::Duration;

/// A counter through a mixing function: one word of state, a period of 2^64.
#[derive(Clone, Debug)]
pub(crate) struct ClusterRng(u64);

impl ClusterRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(crate::core::base::hash::mix(seed ^ 0x9e37_79b9_7f4a_7c15))
    }

    pub(crate) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        crate::core::base::hash::mix(self.0)
    }

    /// A number below `bound`, and 0 when there is none.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // The bias of taking the high half of a product is 2^-32 for the sizes of a cluster.
        let wide = u128::from(self.word()) * bound as u128;
        (wide >> 64) as usize
    }

    /// A duration in `[0, limit)`.
    pub(crate) fn within(&mut self, limit: Duration) -> Duration {
        let us = usize::try_from(limit.as_micros()).unwrap_or(usize::MAX);
        Duration::from_micros(self.below(us) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let (mut one, mut two) = (ClusterRng::new(7), ClusterRng::new(7));
        assert!((0..100).all(|_| one.word() == two.word()));
    }

    #[test]
    fn a_bounded_number_stays_below_its_bound_and_reaches_all_of_it() {
        let mut rng = ClusterRng::new(1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[rng.below(7)] = true;
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!(rng.below(0), 0);
    }
}
