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
//! The compressor finds the references that liblzf finds as Redis configures it, so that what Redis compresses is
//! compressed here too, to the same bytes: DUMP's payload and DEBUG OBJECT's `serializedlength` are those of Redis. It
//! looks for one candidate per position, the last place whose three bytes had the same 16-bit hash. (Redis does not
//! clear its table of such places. On rare occasions an entry that an earlier text left behind gives it a reference that
//! a clean table does not have.)

/// A back reference reaches at most this far.
const MAX_DISTANCE: usize = 1 << 13;
/// The longest copy of one back reference.
const MAX_COPY: usize = 264;
/// The longest literal run.
const MAX_LITERALS: usize = 32;
/// The shortest text worth a back reference.
const MIN_COPY: usize = 3;
/// Shorter texts have a small table, longer ones one slot for each hash.
const SMALL_INPUT: usize = 4096;
const HASHES: usize = 1 << 16;

/// A compressed text is refused when it claims to become longer than this many times its own length: three bytes give
/// at most 264.
const MAX_RATIO: usize = 88;

/// A compressed text that is damaged, or that does not give the number of bytes it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt;

/// Compresses `input`, appending to `out`; `false`, with `out` as it was, when that would not save `min_saved` bytes, or
/// so few more that liblzf gives up.
pub(crate) fn compress(input: &[u8], out: &mut Vec<u8>, min_saved: usize) -> bool {
    let start = out.len();
    let done = match input.len().checked_sub(min_saved) {
        None | Some(0) => None,
        Some(limit) if input.len() < SMALL_INPUT => {
            let slots = (input.len() * 2).next_power_of_two();
            compress_with(SmallTable::new(slots), input, out, limit)
        }
        Some(limit) => compress_with(LargeTable(vec![0; HASHES]), input, out, limit),
    };
    if done.is_none() {
        out.truncate(start);
    }
    done.is_some()
}

/// Compresses to at most `limit` bytes, or gives up. `out` is then longer by what was written so far.
fn compress_with<T: Places>(
    mut table: T,
    input: &[u8],
    out: &mut Vec<u8>,
    limit: usize,
) -> Option<()> {
    let start = out.len();
    let mut run = Run::begin(out);
    let mut position = 0;
    while position + MIN_COPY <= input.len() {
        let earlier = table.replace(hash(&input[position..]), position);
        let copied = match earlier {
            // liblzf never refers to the first byte. A position wraps past 4 GiB; then other bytes are compared, or none.
            Some(earlier) if earlier > 0 && earlier < position => copied(input, earlier, position),
            _ => None,
        };
        let Some((length, distance)) = copied else {
            if out.len() - start >= limit {
                return None;
            }
            run.push(input[position], out);
            position += 1;
            continue;
        };
        // The longest reference, and the beginning of a run behind it.
        if run.end(out) - start + 4 >= limit {
            return None;
        }
        push_copy(out, length, distance);
        run = Run::begin(out);
        position += length;
        if position + MIN_COPY > input.len() {
            break;
        }
        // The last positions of the copy are the likeliest to match again.
        for known in position - 2..position {
            table.replace(hash(&input[known..]), known);
        }
    }
    if out.len() - start + 3 > limit {
        return None;
    }
    for &byte in &input[position..] {
        run.push(byte, out);
    }
    run.end(out);
    Some(())
}

/// A literal run that is being written: its control byte is in `out` already.
struct Run {
    control: usize,
}

impl Run {
    fn begin(out: &mut Vec<u8>) -> Run {
        out.push(0);
        Run {
            control: out.len() - 1,
        }
    }

    fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        out.push(byte);
        if out.len() - self.control > MAX_LITERALS {
            self.end(out);
            *self = Run::begin(out);
        }
    }

    /// Writes the control byte, or removes that of an empty run; the length of `out`.
    fn end(&self, out: &mut Vec<u8>) -> usize {
        match out.len() - self.control - 1 {
            0 => out.truncate(self.control),
            literals => out[self.control] = (literals - 1) as u8,
        }
        out.len()
    }
}

/// Where each hash was seen last.
trait Places {
    /// The last place of a hash, which is `position` from now on.
    fn replace(&mut self, hash: u16, position: usize) -> Option<usize>;
}

/// A slot for each hash: positions plus one, so that zero means an empty slot.
struct LargeTable(Vec<u32>);

impl Places for LargeTable {
    fn replace(&mut self, hash: u16, position: usize) -> Option<usize> {
        let place = (position as u32).wrapping_add(1);
        let earlier = std::mem::replace(&mut self.0[usize::from(hash)], place);
        (earlier as usize).checked_sub(1)
    }
}

/// The same for fewer positions than [`SMALL_INPUT`], with open addressing in twice as many slots as there are positions:
/// the hash in the upper half of a slot, and the position plus one in the lower.
struct SmallTable {
    slots: Vec<u32>,
    mask: usize,
}

impl SmallTable {
    fn new(slots: usize) -> SmallTable {
        SmallTable {
            slots: vec![0; slots],
            mask: slots - 1,
        }
    }
}

impl Places for SmallTable {
    fn replace(&mut self, hash: u16, position: usize) -> Option<usize> {
        let mut at = usize::from(hash) & self.mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 || slot >> 16 == u32::from(hash) {
                self.slots[at] = u32::from(hash) << 16 | (position as u32 + 1);
                return (slot as usize & 0xffff).checked_sub(1);
            }
            at = (at + 1) & self.mask;
        }
    }
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

/// liblzf's hash of three bytes, with a table of 16 bits and `VERY_FAST`.
fn hash(bytes: &[u8]) -> u16 {
    let first = u16::from_be_bytes([bytes[0], bytes[1]]);
    let second = u16::from_be_bytes([bytes[1], bytes[2]]);
    first.wrapping_sub(second.wrapping_mul(5))
}

/// How many bytes can be copied from `earlier` to `position`, and the distance, if it is worth a back reference.
///
/// liblzf leaves the last two bytes to a literal run, except where a copy of at most 19 bytes ends with them.
fn copied(input: &[u8], earlier: usize, position: usize) -> Option<(usize, usize)> {
    const UNROLLED: usize = 16;
    let distance = position - earlier;
    if distance > MAX_DISTANCE
        || input[earlier..earlier + MIN_COPY] != input[position..position + MIN_COPY]
    {
        return None;
    }
    let longest = MAX_COPY.min(input.len() - position - 2);
    let longest = match longest > UNROLLED {
        true => longest.max(MIN_COPY + UNROLLED),
        false => longest.max(MIN_COPY),
    };
    let length = input[earlier..]
        .iter()
        .zip(&input[position..position + longest])
        .take_while(|(left, right)| left == right)
        .count();
    Some((length, distance))
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
        let text = [b'a'; 24];
        let mut out = Vec::new();
        assert!(compress(&text, &mut out, 4));
        assert_eq!(out.len(), 9);
        // Before the last literals liblzf wants room for three bytes, of which it needs two here.
        let mut again = Vec::new();
        assert!(!compress(&text, &mut again, 15));
        assert!(again.is_empty());
        assert!(compress(&text, &mut again, 14));
    }

    #[test]
    fn texts_become_what_redis_makes_of_them() {
        // From redis-server 7.0.15: the text between the lengths and the footer of DUMP's payload.
        let cases: &[(&[u8], Option<&[u8]>)] = &[
            (
                b"aaaaaaaaaaaaaaaaaaaaaaaa",
                Some(b"\x01aa\xe0\x0b\x00\x01aa"),
            ),
            (
                b"abcabcabcabcabcabcabcabcabc",
                Some(b"\x03abca\xe0\x0c\x02\x01bc"),
            ),
            (
                b"The quick brown fox and the quick brown dog and the quick brown cat",
                Some(b"\x18The quick brown fox and t\xe0\x06\x17\x02dog\xe0\x0c\x17\x02cat"),
            ),
            (b"0123456789012345678901", None),
            (
                b"x0123456789abcdefghx0123456789abcdefgh",
                Some(b"\x13x0123456789abcdefghx\xe0\x07\x12\x01gh"),
            ),
            (
                b"xy0123456789abcdefgh-xy0123456789abcdefgh",
                Some(b"\x15xy0123456789abcdefgh-x\xe0\n\x14"),
            ),
            (b"no repetition here at all?", None),
            (
                b"abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz0123456789!!",
                Some(b"\x1fabcdefghijklmnopqrstuvwxyz012345\x046789a\xe0\x1a#\x01!!"),
            ),
        ];
        for &(input, expected) in cases {
            let mut out = Vec::new();
            let found = compress(input, &mut out, 4).then_some(out.as_slice());
            assert_eq!(found, expected, "{}", input.escape_ascii());
        }
    }

    #[test]
    fn both_tables_find_the_same_references() {
        let mut rng = fastrand::Rng::with_seed(11);
        for length in [5, 40, 95, 300, 1000, 4000] {
            let text: Vec<u8> = std::iter::repeat_with(|| rng.u8(b'a'..b'f'))
                .take(length)
                .collect();
            let (mut small, mut large) = (Vec::new(), Vec::new());
            let slots = (length * 2).next_power_of_two();
            let limit = length * 2;
            compress_with(SmallTable::new(slots), &text, &mut small, limit).unwrap();
            compress_with(LargeTable(vec![0; HASHES]), &text, &mut large, limit).unwrap();
            assert_eq!(small, large);
        }
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
