//! Bits inside a string, for SETBIT, BITCOUNT, BITPOS, BITOP and BITFIELD. Bit 0 is the highest bit of the first byte.
//!
//! Pure functions over byte slices: keys, argument parsing and the growth of a string are the commands' part.

/// What the numbers of a range count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Byte,
    Bit,
}

/// A range as BITCOUNT and BITPOS take it: both ends included, negative ones counted from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: i64,
    /// `None` reaches to the end, and lets BITPOS see zeros behind it.
    pub(crate) end: Option<i64>,
    pub(crate) unit: Unit,
}

impl Range {
    /// The whole string.
    pub(crate) const ALL: Self = Self {
        start: 0,
        end: None,
        unit: Unit::Byte,
    };

    /// The bits from the first to behind the last, or `None` for an empty range.
    fn resolve(self, bytes: usize) -> Option<(u64, u64)> {
        let total = match self.unit {
            Unit::Byte => bytes as i64,
            Unit::Bit => (bytes as i64).checked_mul(8)?,
        };
        let from_end = |position: i64| match position {
            ..0 => total.saturating_add(position).max(0),
            _ => position,
        };
        let start = from_end(self.start);
        let last = self.end.map_or(total - 1, from_end).min(total - 1);
        if start > last {
            return None;
        }
        let scale = match self.unit {
            Unit::Byte => 8,
            Unit::Bit => 1,
        };
        Some((start as u64 * scale, (last as u64 + 1) * scale))
    }
}

/// The bit at an offset; 0 behind the end.
pub(crate) fn bit(bytes: &[u8], offset: u64) -> bool {
    usize::try_from(offset / 8)
        .ok()
        .and_then(|byte| bytes.get(byte))
        .is_some_and(|byte| byte & mask(offset) != 0)
}

/// Sets a bit of a string that is long enough, and returns the old one.
pub(crate) fn set_bit(bytes: &mut [u8], offset: u64, value: bool) -> bool {
    let byte = &mut bytes[(offset / 8) as usize];
    let old = *byte & mask(offset) != 0;
    if value {
        *byte |= mask(offset);
    } else {
        *byte &= !mask(offset);
    }
    old
}

fn mask(offset: u64) -> u8 {
    0x80 >> (offset % 8)
}

/// How many bits of a range are set.
pub(crate) fn count(bytes: &[u8], range: Range) -> u64 {
    // Redis looks at this before it counts from the end; otherwise such a range could become one bit or byte.
    if let Some(end) = range.end
        && range.start < 0
        && end < 0
        && range.start > end
    {
        return 0;
    }
    let Some((from, to)) = range.resolve(bytes.len()) else {
        return 0;
    };
    let (first, last) = ((from / 8) as usize, ((to - 1) / 8) as usize);
    let before = u64::from((bytes[first] & head_mask(from)).count_ones());
    let behind = u64::from((bytes[last] & tail_mask(to)).count_ones());
    popcount(&bytes[first..=last]) - before - behind
}

/// The bits of a byte before `from`.
fn head_mask(from: u64) -> u8 {
    !(0xff >> (from % 8))
}

/// The bits of a byte from `to` on; none when `to` is its end.
fn tail_mask(to: u64) -> u8 {
    match to % 8 {
        0 => 0,
        bits => 0xff >> bits,
    }
}

fn popcount(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let in_words: u64 = words
        .by_ref()
        .map(|word| u64::from(load(word).count_ones()))
        .sum();
    let rest: u64 = words
        .remainder()
        .iter()
        .map(|byte| u64::from(byte.count_ones()))
        .sum();
    in_words + rest
}

fn load(word: &[u8]) -> u64 {
    word.iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// The first bit of a range that is `wanted`. A clear bit is also found behind the string when the range has no end.
pub(crate) fn position(bytes: &[u8], wanted: bool, range: Range) -> Option<u64> {
    let (from, to) = range.resolve(bytes.len())?;
    let found = first_bit(bytes, wanted, from, to);
    match found {
        None if !wanted && range.end.is_none() => Some(to),
        found => found,
    }
}

fn first_bit(bytes: &[u8], wanted: bool, from: u64, to: u64) -> Option<u64> {
    let flip = if wanted { 0 } else { 0xff };
    let (first, last) = ((from / 8) as usize, ((to - 1) / 8) as usize);
    let mut masked = (bytes[first] ^ flip) & !head_mask(from);
    let mut at = first;
    if masked == 0 {
        let rest = &bytes[first + 1..=last];
        let words = rest
            .chunks_exact(8)
            .take_while(|word| word.iter().all(|&byte| byte == flip))
            .count();
        let skipped = words * 8;
        let offset = rest[skipped..].iter().position(|&byte| byte != flip)?;
        at = first + 1 + skipped + offset;
        masked = bytes[at] ^ flip;
    }
    let bit = at as u64 * 8 + u64::from(masked.leading_zeros());
    (bit < to).then_some(bit)
}

/// The operations of BITOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitOp {
    And,
    Or,
    Xor,
    Not,
}

/// The result of a BITOP in one buffer, into which the sources are folded one after the other. Shorter ones count as
/// filled up with zeros.
#[derive(Debug)]
pub(crate) struct Combined {
    op: BitOp,
    bytes: Vec<u8>,
    has_source: bool,
}

impl Combined {
    pub(crate) fn new(op: BitOp) -> Self {
        Self {
            op,
            bytes: Vec::new(),
            has_source: false,
        }
    }

    /// Folds the next source in. NOT has one source.
    pub(crate) fn add(&mut self, source: &[u8]) {
        if source.len() > self.bytes.len() {
            self.bytes.reserve_exact(source.len() - self.bytes.len());
            self.bytes.resize(source.len(), 0);
        }
        let (common, beyond) = self.bytes.split_at_mut(source.len());
        let pairs = common.iter_mut().zip(source);
        match self.op {
            BitOp::Not => pairs.for_each(|(out, byte)| *out = !byte),
            BitOp::And if self.has_source => {
                pairs.for_each(|(out, byte)| *out &= byte);
                beyond.fill(0);
            }
            BitOp::And | BitOp::Or => pairs.for_each(|(out, byte)| *out |= byte),
            BitOp::Xor => pairs.for_each(|(out, byte)| *out ^= byte),
        }
        self.has_source = true;
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The type of a BITFIELD field: `i1` to `i64`, `u1` to `u63`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    signed: bool,
    bits: u32,
}

/// What BITFIELD does with a value that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Overflow {
    Wrap,
    Sat,
    Fail,
}

impl Field {
    /// Reads a type; `None` for anything that is none.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (kind, digits) = text.split_first()?;
        let bits = crate::base::number::parse_i64(digits)?;
        let (signed, most) = match kind {
            b'i' => (true, 64),
            b'u' => (false, 63),
            _ => return None,
        };
        (1..=most).contains(&bits).then_some(Self {
            signed,
            bits: bits as u32,
        })
    }

    /// The number of bits.
    pub(crate) fn bits(self) -> u32 {
        self.bits
    }

    /// The smallest and the largest value.
    fn bounds(self) -> (i128, i128) {
        match self.signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1 << self.bits) - 1),
        }
    }

    /// The value at a bit offset; bits behind the end of the string are 0.
    pub(crate) fn read(self, bytes: &[u8], offset: u64) -> i64 {
        // A field touches at most nine bytes.
        let first = usize::try_from(offset / 8).unwrap_or(usize::MAX);
        let window = (0..9).fold(0u128, |window, index| {
            let byte = first.checked_add(index).and_then(|at| bytes.get(at));
            window << 8 | u128::from(byte.copied().unwrap_or(0))
        });
        let behind = 72 - (offset % 8) as u32 - self.bits;
        self.sign_extend((window >> behind) as u64)
    }

    /// Writes the low bits of a value at a bit offset of a string that is long enough.
    pub(crate) fn write(self, bytes: &mut [u8], offset: u64, value: i64) {
        for index in 0..self.bits {
            let shift = self.bits - 1 - index;
            set_bit(bytes, offset + u64::from(index), value >> shift & 1 == 1);
        }
    }

    /// What SET stores for a value; `None` when it does not fit and the policy is to fail.
    pub(crate) fn fit(self, value: i64, overflow: Overflow) -> Option<i64> {
        let (_, max) = self.bounds();
        // A negative number for an unsigned field is a huge one, as in Redis. One so far below a signed field that
        // its distance to the maximum does not fit into 64 bits saturates at the maximum, as in Redis.
        let far_below = self.bits < 64 && (max as i64).wrapping_sub(value) < 0;
        let value = match self.signed {
            true if far_below && overflow == Overflow::Sat => max,
            true => i128::from(value),
            false => i128::from(value as u64),
        };
        self.fit_exact(value, overflow)
    }

    /// What INCRBY stores; `None` when the sum does not fit and the policy is to fail.
    pub(crate) fn add(self, old: i64, increment: i64, overflow: Overflow) -> Option<i64> {
        self.fit_exact(i128::from(old) + i128::from(increment), overflow)
    }

    fn fit_exact(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = self.bounds();
        let fitting = match overflow {
            Overflow::Sat => value.clamp(min, max) as i64,
            Overflow::Wrap => self.sign_extend(value as u64),
            Overflow::Fail if (min..=max).contains(&value) => value as i64,
            Overflow::Fail => return None,
        };
        Some(fitting)
    }

    fn sign_extend(self, raw: u64) -> i64 {
        let unused = 64 - self.bits;
        match self.signed {
            true => (raw << unused) as i64 >> unused,
            false => (raw << unused >> unused) as i64,
        }
    }
}

#[cfg(test)]
mod tests;
