//! HyperLogLog as a string, in Redis's own form: the same hash, registers, layouts and estimate.
//!
//! ```text
//! "HYLL" | encoding (0 dense, 1 sparse) | 3 unused bytes | cardinality (8 bytes LE, high bit set: stale) | registers
//! ```
//!
//! 16,384 registers of 6 bits. Dense: packed, low bits first, 12,288 bytes. Sparse: runs, until a value above 32 or
//! `hll-sparse-max-bytes` asks for dense.
//!
//! ```text
//! 00LLLLLL            L + 1 registers are 0          (ZERO,  1..=64)
//! 01LLLLLL LLLLLLLL   L + 1 registers are 0          (XZERO, 1..=16384)
//! 1vvvvvLL            L + 1 registers are v + 1      (VAL,   1..=4 registers, values 1..=32)
//! ```
//!
//! Strings come from clients, who may SET anything: every function checks what it walks, and a damaged string gives
//! [`HllError`], not a panic. Keys, replies and propagation are the commands' part.

mod estimate;
mod sparse;

use sparse::{Run, Runs};

/// How many registers there are; the low 14 bits of a hash choose one.
pub(crate) const REGISTERS: usize = 1 << 14;
/// The bytes before the registers.
const HEADER_BYTES: usize = 16;
/// The length of a dense string.
const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * 6 / 8;
const MAGIC: &[u8; 4] = b"HYLL";
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// The bit of the last header byte that says that the stored cardinality is stale.
const STALE: u8 = 0x80;
/// The largest value a register can have: a pattern in the other 50 bits of a hash.
const MAX_VALUE: u8 = 51;

/// Why a string cannot be used. `Display` is what the client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HllError {
    /// The string is no HyperLogLog at all.
    #[error("WRONGTYPE Key is not a valid HyperLogLog string value.")]
    NotHyperLogLog,
    /// The header is right and the registers are not. The string is unchanged.
    #[error("INVALIDOBJ Corrupted HLL object detected")]
    Corrupted,
}

/// The layout of a string's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Dense,
    Sparse,
}

/// A string that counts nothing yet, sparse.
pub(crate) fn empty() -> Vec<u8> {
    let mut hll = header(SPARSE);
    sparse::push_zeros(&mut hll, REGISTERS);
    hll
}

fn header(encoding: u8) -> Vec<u8> {
    let mut header = MAGIC.to_vec();
    header.push(encoding);
    header.resize(HEADER_BYTES, 0);
    header
}

/// Checks the header, and the length of a dense string.
pub(crate) fn encoding(hll: &[u8]) -> Result<Encoding, HllError> {
    if hll.len() < HEADER_BYTES || !hll.starts_with(MAGIC) {
        return Err(HllError::NotHyperLogLog);
    }
    match hll[4] {
        DENSE if hll.len() == DENSE_BYTES => Ok(Encoding::Dense),
        SPARSE => Ok(Encoding::Sparse),
        _ => Err(HllError::NotHyperLogLog),
    }
}

/// Counts an element. Returns whether a register changed; the caller calls [`invalidate`] after its last element.
pub(crate) fn add(
    hll: &mut Vec<u8>,
    element: &[u8],
    sparse_max_bytes: usize,
) -> Result<bool, HllError> {
    let (register, value) = pattern(element);
    raise(hll, register, value, sparse_max_bytes)
}

/// Raises a register to at least `value`; returns whether it changed. May turn a sparse string dense.
fn raise(
    hll: &mut Vec<u8>,
    register: usize,
    value: u8,
    sparse_max_bytes: usize,
) -> Result<bool, HllError> {
    if encoding(hll)? == Encoding::Sparse {
        match sparse::raise(hll, register, value, sparse_max_bytes)? {
            sparse::Raised::Unchanged => return Ok(false),
            sparse::Raised::Changed => return Ok(true),
            sparse::Raised::NeedsDense => make_dense(hll)?,
        }
    }
    let registers = &mut hll[HEADER_BYTES..];
    let changed = dense_get(registers, register) < value;
    if changed {
        dense_set(registers, register, value);
    }
    Ok(changed)
}

/// Marks the stored cardinality as stale.
pub(crate) fn invalidate(hll: &mut [u8]) {
    hll[HEADER_BYTES - 1] |= STALE;
}

/// The stored cardinality, unless it is stale. The string has a valid header.
pub(crate) fn cached(hll: &[u8]) -> Option<u64> {
    let bytes = hll.get(8..HEADER_BYTES)?.try_into().ok()?;
    (hll[HEADER_BYTES - 1] & STALE == 0).then(|| u64::from_le_bytes(bytes))
}

/// Stores a cardinality in the header.
pub(crate) fn store_cardinality(hll: &mut [u8], cardinality: u64) {
    hll[8..HEADER_BYTES].copy_from_slice(&cardinality.to_le_bytes());
}

/// The estimated number of different elements in one string.
pub(crate) fn count(hll: &[u8]) -> Result<u64, HllError> {
    let mut histogram = [0u32; 64];
    match encoding(hll)? {
        Encoding::Dense => {
            let registers = &hll[HEADER_BYTES..];
            for register in 0..REGISTERS {
                histogram[usize::from(dense_get(registers, register))] += 1;
            }
        }
        Encoding::Sparse => {
            for_each_run(hll, |run| {
                histogram[usize::from(run.value)] += run.length as u32
            })?;
        }
    }
    Ok(estimate::cardinality(&histogram))
}

/// The maximum of the registers of several strings: the registers of their union.
pub(crate) struct Union {
    registers: Box<[u8]>,
    any_dense: bool,
}

impl Union {
    pub(crate) fn new() -> Self {
        Self {
            registers: vec![0; REGISTERS].into(),
            any_dense: false,
        }
    }

    /// Merges a string in.
    pub(crate) fn merge(&mut self, hll: &[u8]) -> Result<(), HllError> {
        match encoding(hll)? {
            Encoding::Dense => {
                self.any_dense = true;
                for (register, max) in self.registers.iter_mut().enumerate() {
                    *max = (*max).max(dense_get(&hll[HEADER_BYTES..], register));
                }
            }
            Encoding::Sparse => {
                let registers = &mut self.registers;
                let mut first = 0;
                for_each_run(hll, |run| {
                    for max in &mut registers[first..first + run.length] {
                        *max = (*max).max(run.value);
                    }
                    first += run.length;
                })?;
            }
        }
        Ok(())
    }

    /// The estimate for the union.
    pub(crate) fn count(&self) -> u64 {
        let mut histogram = [0u32; 64];
        for &value in &self.registers {
            histogram[usize::from(value)] += 1;
        }
        estimate::cardinality(&histogram)
    }

    /// What PFMERGE leaves in its destination, whose old registers are part of the union. The destination becomes
    /// dense when a source is.
    pub(crate) fn store(
        &self,
        destination: &mut Vec<u8>,
        sparse_max_bytes: usize,
    ) -> Result<(), HllError> {
        if self.any_dense {
            make_dense(destination)?;
        }
        for (register, &value) in self.registers.iter().enumerate() {
            if value > 0 {
                raise(destination, register, value, sparse_max_bytes)?;
            }
        }
        invalidate(destination);
        Ok(())
    }
}

/// Turns a sparse string into a dense one; returns whether it was sparse. On an error the string is unchanged.
pub(crate) fn to_dense(hll: &mut Vec<u8>) -> Result<bool, HllError> {
    let sparse = encoding(hll)? == Encoding::Sparse;
    make_dense(hll)?;
    Ok(sparse)
}

fn make_dense(hll: &mut Vec<u8>) -> Result<(), HllError> {
    if encoding(hll)? == Encoding::Dense {
        return Ok(());
    }
    let mut dense = hll[..HEADER_BYTES].to_vec();
    dense[4] = DENSE;
    dense.resize(DENSE_BYTES, 0);
    let registers = &mut dense[HEADER_BYTES..];
    let mut first = 0;
    for_each_run(hll, |run| {
        if run.value > 0 {
            (first..first + run.length).for_each(|at| dense_set(registers, at, run.value));
        }
        first += run.length;
    })?;
    *hll = dense;
    Ok(())
}

/// All registers, for PFDEBUG GETREG.
pub(crate) fn registers(hll: &[u8]) -> Result<Vec<u8>, HllError> {
    let mut union = Union::new();
    union.merge(hll)?;
    Ok(union.registers.into_vec())
}

/// The runs of a sparse string as PFDEBUG DECODE prints them, or `None` for a dense one.
pub(crate) fn decode(hll: &[u8]) -> Result<Option<String>, HllError> {
    if encoding(hll)? == Encoding::Dense {
        return Ok(None);
    }
    let words: Vec<String> = Runs::new(&hll[HEADER_BYTES..])
        .map(|run| match run {
            Run {
                value: 0,
                bytes: 1,
                length,
                ..
            } => format!("z:{length}"),
            Run {
                value: 0, length, ..
            } => format!("Z:{length}"),
            Run { value, length, .. } => format!("v:{value},{length}"),
        })
        .collect();
    Ok(Some(words.join(" ")))
}

/// Checks that dense registers keep what is stored in them, and that estimates are near the truth in both layouts.
pub(crate) fn self_test() -> Result<(), String> {
    let mut registers = vec![0; DENSE_BYTES - HEADER_BYTES];
    for round in 0..64u8 {
        let value = |register: usize| ((register * 31) as u8 ^ round) & 63;
        (0..REGISTERS).for_each(|at| dense_set(&mut registers, at, value(at)));
        if let Some(at) = (0..REGISTERS).find(|&at| dense_get(&registers, at) != value(at)) {
            return Err(format!("register {at} does not keep its value"));
        }
    }
    let (mut sparse, mut dense) = (empty(), empty());
    to_dense(&mut dense).map_err(|error| error.to_string())?;
    for element in 1..=100_000u32 {
        for string in [&mut sparse, &mut dense] {
            add(string, &element.to_le_bytes(), 3000).map_err(|error| error.to_string())?;
        }
        // Five times the standard error of so many registers.
        if element.is_power_of_two() || element == 100_000 {
            let counts = [count(&sparse), count(&dense)];
            let near = |count| {
                f64::abs(count as f64 - f64::from(element)) <= 1.0 + f64::from(element) * 0.041
            };
            if counts[0] != counts[1] || !counts[0].is_ok_and(near) {
                return Err(format!("{element} elements are estimated as {counts:?}"));
            }
        }
    }
    Ok(())
}

/// Calls `visit` for every run of a sparse string, once it is known that they cover exactly all registers.
fn for_each_run(hll: &[u8], visit: impl FnMut(Run)) -> Result<(), HllError> {
    let runs = Runs::new(&hll[HEADER_BYTES..]);
    let covered = runs
        .clone()
        .fold((0, HEADER_BYTES), |(length, bytes), run| {
            (length + run.length, bytes + run.bytes)
        });
    // Half a run is left over behind the last one if the bytes do not add up.
    if covered != (REGISTERS, hll.len()) {
        return Err(HllError::Corrupted);
    }
    runs.for_each(visit);
    Ok(())
}

fn dense_get(registers: &[u8], register: usize) -> u8 {
    let (byte, shift) = (register * 6 / 8, register * 6 % 8);
    let next = registers.get(byte + 1).copied().unwrap_or(0);
    (u16::from_le_bytes([registers[byte], next]) >> shift) as u8 & 63
}

fn dense_set(registers: &mut [u8], register: usize, value: u8) {
    let (byte, shift) = (register * 6 / 8, register * 6 % 8);
    let bits = u16::from(value) << shift;
    let mask = !(63u16 << shift);
    registers[byte] = registers[byte] & mask as u8 | bits as u8;
    if let Some(next) = registers.get_mut(byte + 1) {
        *next = *next & (mask >> 8) as u8 | (bits >> 8) as u8;
    }
}

/// The register an element belongs to, and how many zero bits the rest of its hash begins with, plus one.
fn pattern(element: &[u8]) -> (usize, u8) {
    let hash = murmur64a(element, 0xadc8_3b19);
    let register = hash as usize % REGISTERS;
    let rest = hash >> 14 | 1 << (MAX_VALUE - 1);
    (register, rest.trailing_zeros() as u8 + 1)
}

/// MurmurHash2, the 64-bit version of Austin Appleby, reading little-endian on every machine.
fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |word: u64| {
        let word = word.wrapping_mul(M);
        (word ^ word >> 47).wrapping_mul(M)
    };
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().map(u64::from_le_bytes).unwrap_or(0);
        hash = (hash ^ mix(word)).wrapping_mul(M);
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let word = rest
            .iter()
            .rev()
            .fold(0, |word, &byte| word << 8 | u64::from(byte));
        hash = (hash ^ word).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}

#[cfg(test)]
mod tests;
