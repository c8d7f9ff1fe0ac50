//! The estimator: Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", as Redis computes it.

use super::{MAX_VALUE, REGISTERS};

/// The constant of the estimate for infinitely many registers: 1 / (2 ln 2).
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// The cardinality for a histogram of register values.
pub(super) fn cardinality(histogram: &[u32; 64]) -> u64 {
    let m = REGISTERS as f64;
    let full = f64::from(histogram[usize::from(MAX_VALUE)]);
    let mut z = m * tau((m - full) / m);
    for &registers in histogram[1..usize::from(MAX_VALUE)].iter().rev() {
        z += f64::from(registers);
        z *= 0.5;
    }
    z += m * sigma(f64::from(histogram[0]) / m);
    (ALPHA * m * m / z).round() as u64
}

fn tau(share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let mut x = share;
    let mut y = 1.0;
    let mut z = 1.0 - x;
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

fn sigma(share: f64) -> f64 {
    if share == 1.0 {
        return f64::INFINITY;
    }
    let mut x = share;
    let mut y = 1.0;
    let mut z = x;
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}
