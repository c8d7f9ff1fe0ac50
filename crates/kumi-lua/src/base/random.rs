//! Redis's generator behind `math.random`: the linear congruence of `drand48` from a fixed start.

/// 48 bits of state.
#[derive(Debug)]
pub(crate) struct Random {
    state: u64,
}

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;
const LOW_WORD: u64 = 0x330E;
/// Every server starts here.
const START: u64 = 0x1234_ABCD_330E;

impl Random {
    pub(crate) fn new() -> Random {
        Random { state: START }
    }

    pub(crate) fn seed(&mut self, seed: i32) {
        self.state = u64::from(seed as u32) << 16 | LOW_WORD;
    }

    /// 31 bits.
    pub(crate) fn next(&mut self) -> i32 {
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        (self.state >> 17) as i32
    }

    /// In [0, 1).
    pub(crate) fn fraction(&mut self) -> f64 {
        f64::from(self.next() % i32::MAX) / f64::from(i32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_the_one_every_redis_gives() {
        assert_eq!(
            format!("{:.14}", Random::new().fraction()),
            "0.39646477363839"
        );
    }
}
