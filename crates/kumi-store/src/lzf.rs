//! LZF, the compression of strings in RDB files and DUMP payloads: format-compatible with liblzf.
//!
//! A compressed text is a sequence of literal runs and back references:
//!
//! ```text
//! 000LLLLL  literal bytes...       L + 1 literal bytes follow (1..=32)
//! LLLooooo  oooooooo               copy L + 2 bytes (3..=8) from o + 1 bytes back
//! 111ooooo  LLLLLLLL  oooooooo     copy L + 9 bytes (9..=264) from o + 1 bytes back
//! ```
//!
//! The compressor looks for one candidate per position, the last place where the same three bytes hashed to the same
//! slot. It need not find the references liblzf finds; every liblzf reads what it writes.

/// A back reference reaches at most this far.
const MAX_DISTANCE: usize = 1 << 13;
/// The longest copy of one back reference.
const MAX_COPY: usize = 264;
/// The longest literal run.
const MAX_LITERALS: usize = 32;
/// The shortest text worth a back reference.
const MIN_COPY: usize = 3;
/// The hash table has at most this many slots, whatever the size of the input.
const MAX_TABLE_BITS: u32 = 16;

/// A compressed text is refused when it claims to become longer than this many times its own length: three bytes give
/// at most 264.
const MAX_RATIO: usize = 88;

/// A compressed text that is damaged, or that does not give the number of bytes it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt;

/// Compresses `input`, appending to `out`; `false`, with `out` as it was, when that would not save more than
/// `min_saved` bytes.
pub(crate) fn compress(input: &[u8], out: &mut Vec<u8>, min_saved: usize) -> bool {
    let start = out.len();
    let Some(limit) = input.len().checked_sub(min_saved) else {
        return false;
    };
    let bits = (usize::BITS - input.len().leading_zeros()).clamp(8, MAX_TABLE_BITS);
    // Positions plus one, so that zero means an empty slot.
    let mut table = vec![0u32; 1 << bits];
    let mut literals = 0;
    let mut position = 0;
    while position + MIN_COPY <= input.len() {
        let slot = hash(&input[position..], bits);
        let candidate = table[slot] as usize;
        table[slot] = (position as u32).wrapping_add(1);
        let copied = match candidate.checked_sub(1) {
            // A position wraps past 4 GiB; then the comparison below sees other bytes, or none.
            Some(earlier) if earlier < position && position - earlier <= MAX_DISTANCE => {
                common_prefix(input, earlier, position)
            }
            _ => 0,
        };
        if copied < MIN_COPY {
            position += 1;
            continue;
        }
        let distance = position + 1 - candidate;
        push_literals(out, &input[literals..position]);
        push_copy(out, copied, distance);
        if out.len() - start >= limit {
            out.truncate(start);
            return false;
        }
        // The last positions of the copy are the likeliest to match again.
        let end = position + copied;
        for known in end.saturating_sub(2)..end {
            if known + MIN_COPY <= input.len() {
                table[hash(&input[known..], bits)] = (known as u32).wrapping_add(1);
            }
        }
        position = end;
        literals = end;
    }
    push_literals(out, &input[literals..]);
    if out.len() - start >= limit {
        out.truncate(start);
        return false;
    }
    true
}

/// Decompresses to exactly `length` bytes, appended to `out`. On an error `out` is as it was. Never allocates more
/// than `input` can give.
pub(crate) fn decompress(input: &[u8], length: usize, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    if length > input.len().saturating_mul(MAX_RATIO) {
        return Err(Corrupt);
    }
    let start = out.len();
    out.reserve(length);
    let result = expand(input, start + length, start, out);
    if result.is_err() || out.len() != start + length {
        out.truncate(start);
        return Err(Corrupt);
    }
    Ok(())
}

fn expand(input: &[u8], end: usize, start: usize, out: &mut Vec<u8>) -> Result<(), Corrupt> {
    let mut rest = input;
    while let Some((&control, after)) = rest.split_first() {
        rest = after;
        if control < 32 {
            let (literals, after) = rest
                .split_at_checked(usize::from(control) + 1)
                .ok_or(Corrupt)?;
            if out.len() + literals.len() > end {
                return Err(Corrupt);
            }
            out.extend_from_slice(literals);
            rest = after;
            continue;
        }
        let mut length = usize::from(control >> 5) + 2;
        if control >> 5 == 7 {
            let (&more, after) = rest.split_first().ok_or(Corrupt)?;
            length += usize::from(more);
            rest = after;
        }
        let (&low, after) = rest.split_first().ok_or(Corrupt)?;
        rest = after;
        let distance = ((usize::from(control) & 0x1f) << 8 | usize::from(low)) + 1;
        if distance > out.len() - start || out.len() + length > end {
            return Err(Corrupt);
        }
        copy_back(out, distance, length);
    }
    Ok(())
}

/// Repeats the last `distance` bytes until `length` bytes were added; the source may overlap what is written.
fn copy_back(out: &mut Vec<u8>, distance: usize, length: usize) {
    let from = out.len() - distance;
    let mut left = length;
    while left > 0 {
        let piece = left.min(out.len() - from);
        out.extend_from_within(from..from + piece);
        left -= piece;
    }
}

fn hash(bytes: &[u8], bits: u32) -> usize {
    let three = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
    (three.wrapping_mul(0x9e37_79b1) >> (u32::BITS - bits)) as usize
}

fn common_prefix(input: &[u8], earlier: usize, position: usize) -> usize {
    let longest = MAX_COPY.min(input.len() - position);
    input[earlier..]
        .iter()
        .zip(&input[position..position + longest])
        .take_while(|(left, right)| left == right)
        .count()
}

fn push_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(MAX_LITERALS) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

fn push_copy(out: &mut Vec<u8>, length: usize, distance: usize) {
    let offset = distance - 1;
    let high = (offset >> 8) as u8;
    if length < 9 {
        out.push(((length - 2) << 5) as u8 | high);
    } else {
        out.push(7 << 5 | high);
        out.push((length - 9) as u8);
    }
    out.push(offset as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(input: &[u8]) -> Option<usize> {
        let mut packed = b"before".to_vec();
        if !compress(input, &mut packed, 0) {
            assert_eq!(packed, b"before");
            return None;
        }
        let packed = &packed[6..];
        assert!(packed.len() < input.len());
        let mut unpacked = b"kept".to_vec();
        decompress(packed, input.len(), &mut unpacked).unwrap();
        assert_eq!(&unpacked[4..], input);
        Some(packed.len())
    }

    #[test]
    fn repetition_shrinks_and_noise_is_left_alone() {
        assert!(round_trip(&[b'a'; 10_000]).unwrap() < 200);
        assert!(round_trip(b"abcabcabcabcabcabcabcabcabc").unwrap() < 12);
        let mut rng = fastrand::Rng::with_seed(7);
        let noise: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(5000).collect();
        assert_eq!(round_trip(&noise), None);
        // Farther apart than a reference reaches.
        let mut far = noise.clone();
        far.extend(std::iter::repeat_with(|| rng.u8(..)).take(9000));
        far.extend_from_slice(&noise);
        assert_eq!(round_trip(&far), None);
        assert_eq!(round_trip(b""), None);
    }

    #[test]
    fn savings_below_the_minimum_are_not_taken() {
        let mut out = Vec::new();
        assert!(compress(b"aaaaaaaaaaaaaaaaaaaa", &mut out, 4));
        let saved = 20 - out.len();
        let mut again = Vec::new();
        assert!(!compress(b"aaaaaaaaaaaaaaaaaaaa", &mut again, saved));
        assert!(compress(b"aaaaaaaaaaaaaaaaaaaa", &mut again, saved - 1));
    }

    #[test]
    fn damaged_texts_are_refused() {
        let cases: &[(&[u8], usize)] = &[
            (&[0x00], 1),                   // a literal run without its byte
            (&[0x1f, 1, 2], 32),            // a short literal run
            (&[0x20, 0x00], 3),             // a reference before the first byte
            (&[0x00, b'a', 0x20, 0x01], 4), // one byte too far back
            (&[0x00, b'a', 0x20], 4),       // half a reference
            (&[0x00, b'a', 0xe0], 10),      // a long reference without a length
            (&[0x00, b'a'], 2),             // fewer bytes than claimed
            (&[0x01, b'a', b'b'], 1),       // more bytes than claimed
            (&[0x00, b'a', 0x20, 0x00], 3), // a copy past the end
            (&[0x00, b'a'], usize::MAX),    // more than the input can give
        ];
        for &(input, length) in cases {
            let mut out = b"kept".to_vec();
            assert_eq!(
                decompress(input, length, &mut out),
                Err(Corrupt),
                "{input:?}"
            );
            assert_eq!(out, b"kept");
        }
        let mut out = Vec::new();
        assert_eq!(decompress(&[0x00, b'a', 0x20, 0x00], 4, &mut out), Ok(()));
        assert_eq!(out, b"aaaa");
    }

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(
            words in prop::collection::vec(prop::collection::vec(97u8..101, 1..9), 0..300)
        ) {
            round_trip(&words.concat());
        }

        #[test]
        fn any_bytes_are_expanded_or_refused(
            input in prop::collection::vec(any::<u8>(), 0..300), length in 0usize..3000
        ) {
            let mut out = Vec::new();
            if decompress(&input, length, &mut out).is_ok() {
                prop_assert_eq!(out.len(), length);
            }
        }
    }
}
