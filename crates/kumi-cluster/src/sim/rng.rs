//! Random numbers for the simulator, apart from those of the nodes: what a network does must not change because a node
//! drew one number more.

/// A counter through a mixing function. The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct SimRng(u64);

impl SimRng {
    /// A generator from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xa076_1d64_78bd_642f) ^ 0x2545_f491_4f6c_dd1d)
    }

    /// Another generator, independent of what this one gives next.
    pub fn fork(&mut self) -> Self {
        Self::new(self.word())
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    }

    /// A number below `bound`; 0 when there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.word()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// A number in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// An index below `len`; 0 when there is none.
    pub fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// A number in `[0, 1)`.
    pub fn fraction(&mut self) -> f64 {
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True that often. Draws nothing when the answer is certain, so that a calm network costs nothing.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && (probability >= 1.0 || self.fraction() < probability)
    }

    /// One of them.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        from.get(self.index(from.len())).copied()
    }

    /// Brings them into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.index(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
        let (mut one, mut two, mut three) = (SimRng::new(7), SimRng::new(7), SimRng::new(8));
        let agree = (0..100).filter(|_| one.word() == two.word()).count();
        assert_eq!(agree, 100);
        assert_ne!(one.word(), three.word());
    }

    #[test]
    fn bounds_are_kept_and_reached() {
        let mut rng = SimRng::new(1);
        let mut seen = [false; 5];
        for _ in 0..200 {
            seen[rng.between(0, 4) as usize] = true;
        }
        assert_eq!(seen, [true; 5]);
        assert_eq!((rng.below(0), rng.index(0), rng.between(3, 3)), (0, 0, 3));
    }

    #[test]
    fn a_chance_comes_about_as_often_as_it_says() {
        let mut rng = SimRng::new(2);
        let hits = (0..10_000).filter(|_| rng.chance(0.1)).count();
        assert!((800..1200).contains(&hits), "{hits} of 10000");
        assert!(!rng.chance(0.0) && rng.chance(1.0));
    }
}
