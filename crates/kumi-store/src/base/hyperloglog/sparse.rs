//! The sparse layout: walking its runs, and raising one register inside them.
//!
//! The bytes after a change are the ones Redis would leave, because clients GET and DUMP these strings: the same
//! splits of a run, the same merges afterwards (of at most five runs around the change), the same moment to go dense.

use super::{HEADER_BYTES, HllError, REGISTERS};

/// The longest ZERO run.
const MAX_ZEROS: usize = 64;
/// The longest VAL run.
const MAX_VALUES: usize = 4;
/// The largest value a VAL run can hold.
const MAX_SPARSE_VALUE: u8 = 32;
/// How many runs are looked at for merging after a change.
const MERGE_RUNS: usize = 5;

/// One run of equal registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// 0 for both kinds of zeros.
    pub(super) value: u8,
    pub(super) length: usize,
    /// Where it stands behind the header.
    pub(super) at: usize,
    /// How many bytes it takes.
    pub(super) bytes: usize,
}

/// The runs of a sparse string, from behind its header; ends early where half a run is left.
#[derive(Clone, Debug)]
pub(super) struct Runs<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Runs<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let at = self.at;
        let first = *self.bytes.get(at)?;
        let low = usize::from(first & 0x3f);
        let (value, length, bytes) = match first >> 6 {
            0 => (0, low + 1, 1),
            1 => (0, (low << 8 | usize::from(*self.bytes.get(at + 1)?)) + 1, 2),
            _ => ((first >> 2 & 0x1f) + 1, usize::from(first & 3) + 1, 1),
        };
        self.at += bytes;
        Some(Run {
            value,
            length,
            at,
            bytes,
        })
    }
}

/// What became of a register.
pub(super) enum Raised {
    Unchanged,
    Changed,
    /// The change does not fit the sparse layout; nothing was changed.
    NeedsDense,
}

/// Raises one register of a sparse string.
pub(super) fn raise(
    hll: &mut Vec<u8>,
    register: usize,
    value: u8,
    max_bytes: usize,
) -> Result<Raised, HllError> {
    if value > MAX_SPARSE_VALUE {
        return Ok(Raised::NeedsDense);
    }
    let (first, before, run) = locate(&hll[HEADER_BYTES..], register)?;
    if run.value >= value {
        return Ok(Raised::Unchanged);
    }
    // What replaces the run: the part before the register, the register, the part behind it.
    let mut parts = Vec::with_capacity(5);
    push_run(&mut parts, run.value, register - first);
    push_run(&mut parts, value, 1);
    push_run(&mut parts, run.value, first + run.length - 1 - register);
    if parts.len() > run.bytes && hll.len() + parts.len() - run.bytes > max_bytes {
        return Ok(Raised::NeedsDense);
    }
    let at = HEADER_BYTES + run.at;
    hll.splice(at..at + run.bytes, parts);
    merge(hll, HEADER_BYTES + before.unwrap_or(0));
    super::invalidate(hll);
    Ok(Raised::Changed)
}

/// The run that covers a register, with its first register and the place of the run before it.
fn locate(bytes: &[u8], register: usize) -> Result<(usize, Option<usize>, Run), HllError> {
    let mut first = 0;
    let mut before = None;
    for run in Runs::new(bytes) {
        if first + run.length > REGISTERS {
            break;
        }
        if register < first + run.length {
            return Ok((first, before, run));
        }
        first += run.length;
        before = Some(run.at);
    }
    Err(HllError::Corrupted)
}

/// Merges neighbouring VAL runs of one value, from `at` on.
fn merge(hll: &mut Vec<u8>, at: usize) {
    let mut at = at;
    for _ in 0..MERGE_RUNS {
        let Some(&byte) = hll.get(at) else {
            return;
        };
        match byte >> 6 {
            0 => at += 1,
            1 => at += 2,
            _ => match hll.get(at + 1) {
                Some(&next) if next >> 7 == 1 && next >> 2 == byte >> 2 => {
                    let length = usize::from(byte & 3) + 1 + usize::from(next & 3) + 1;
                    if length > MAX_VALUES {
                        at += 1;
                        continue;
                    }
                    hll[at + 1] = next & !3 | (length - 1) as u8;
                    hll.remove(at);
                }
                _ => at += 1,
            },
        }
    }
}

/// Appends a run in its shortest form; nothing when it is empty. A VAL run is never longer than the run it is part of.
fn push_run(out: &mut Vec<u8>, value: u8, length: usize) {
    match (value, length) {
        (_, 0) => {}
        (0, _) => push_zeros(out, length),
        _ => out.push(0x80 | (value - 1) << 2 | (length - 1) as u8),
    }
}

/// Appends a run of zeros.
pub(super) fn push_zeros(out: &mut Vec<u8>, length: usize) {
    let last = length - 1;
    if length <= MAX_ZEROS {
        out.push(last as u8);
    } else {
        out.push(0x40 | (last >> 8) as u8);
        out.push(last as u8);
    }
}
