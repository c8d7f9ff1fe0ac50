//! Random numbers of the operating system: ids, nonces and jitter that cannot be computed from another draw or from the time.

/// Bytes that one call to the operating system draws for many ids.
const BUFFER_BYTES: usize = 1_024;

fn fill(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("a system without random numbers runs no program");
}

pub(crate) fn u64() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_ne_bytes(bytes)
}

pub(crate) fn u128() -> u128 {
    let mut bytes = [0; 16];
    fill(&mut bytes);
    u128::from_ne_bytes(bytes)
}

/// A number from zero to one, one excluded.
pub(crate) fn unit() -> f64 {
    // The bits of a fraction of f64.
    const BITS: u32 = 53;
    (u64() >> (u64::BITS - BITS)) as f64 / (1_u64 << BITS) as f64
}

/// Many numbers with few calls to the operating system.
pub(crate) struct Buffer {
    bytes: [u8; BUFFER_BYTES],
    used: usize,
}

impl Buffer {
    pub(crate) fn new() -> Self {
        Self {
            bytes: [0; BUFFER_BYTES],
            used: BUFFER_BYTES,
        }
    }

    pub(crate) fn u128(&mut self) -> u128 {
        if self.used == BUFFER_BYTES {
            fill(&mut self.bytes);
            self.used = 0;
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.bytes[self.used..self.used + 16]);
        self.used += 16;
        u128::from_ne_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_draw_repeats() {
        let mut buffer = Buffer::new();
        let mut drawn: BTreeSet<u128> = (0..300).map(|_| buffer.u128()).collect();
        drawn.extend((0..300).map(|_| u128()));
        assert_eq!(drawn.len(), 600);
        assert!((0..300).all(|_| (0.0..1.0).contains(&unit())));
    }
}
