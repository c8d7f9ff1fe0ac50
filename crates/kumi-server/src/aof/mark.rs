//! Comment lines that guard an append-only file. Redis skips lines that begin with `#`.
//!
//! ```text
//! #K:open:89abcdef01234567    a server begins to write here; the seed of the checksums
//! #K:sync:1234                everything before byte 1234 of the file is synced
//! *3 ...                      requests
//! #K:87:0123456789abcdef      the end of a group: its length, and the CRC-64 of its bytes
//! #K:close                    the server ended here
//! ```
//!
//! A group is what is written at once. It begins behind the mark of the group before, or behind `#K:open`, and may begin
//! with a line `#K:sync` and a line `#TS` with the time. It holds whole requests, and whole transactions.
//!
//! The seed is random and stays the same in a file: a value that a client stores cannot look like a group of the file.
//! `#K:open` without a seed is read as well.

use kumi_store::crc64;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// How a file without a seed is opened.
#[cfg(test)]
pub(crate) const OPEN: &[u8] = b"#K:open\r\n";
pub(crate) const CLOSE: &[u8] = b"#K:close\r\n";
/// More than what a server writes at once when it opens a file, in bytes.
pub(crate) const OPEN_BYTES: usize = 128;
/// The longest line that a mark can be, in bytes.
pub(crate) const MAX_LEN: usize = 64;

/// A comment line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A server begins to write; the seed, 0 for none.
    Open(u64),
    Close,
    /// Everything before this position of the file was synced.
    Sync(u64),
    /// The end of a group of this length and checksum.
    Group {
        len: u64,
        crc: u64,
    },
    /// Any other comment, also one that only looks like a mark.
    Comment,
}

impl Line {
    /// Reads a line, which begins with `#` and ends with a line feed.
    pub(crate) fn parse(line: &[u8]) -> Self {
        Self::parse_mark(line).unwrap_or(Line::Comment)
    }

    fn parse_mark(line: &[u8]) -> Option<Self> {
        let mark = line.strip_prefix(b"#K:")?.strip_suffix(b"\r\n")?;
        match mark {
            b"open" => return Some(Line::Open(0)),
            b"close" => return Some(Line::Close),
            _ => {}
        }
        if let Some(position) = mark.strip_prefix(b"sync:") {
            return decimal(position).map(Line::Sync);
        }
        if let Some(seed) = mark.strip_prefix(b"open:") {
            return hexadecimal(seed).map(Line::Open);
        }
        let colon = mark.iter().position(|&byte| byte == b':')?;
        let (len, crc) = (decimal(&mark[..colon])?, &mark[colon + 1..]);
        let crc = hexadecimal(crc)?;
        Some(Line::Group { len, crc })
    }
}

/// Whether this is a part of the line that opens a file, cut off at its end.
pub(crate) fn is_start_of_open(bytes: &[u8]) -> bool {
    const HEAD: &[u8] = b"#K:open:";
    let digits = bytes.strip_prefix(HEAD).map(<[u8]>::trim_ascii_end);
    HEAD.starts_with(bytes) || digits.is_some_and(|digits| digits.iter().all(is_hexadecimal))
}

fn is_hexadecimal(byte: &u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(byte)
}

/// Reads 16 lower-case digits.
fn hexadecimal(digits: &[u8]) -> Option<u64> {
    if digits.len() != 16 || !digits.iter().all(is_hexadecimal) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A random seed; never 0.
pub(crate) fn new_seed() -> u64 {
    // The keys of its hash function are random.
    RandomState::new().build_hasher().finish().max(1)
}

/// Appends the line that opens a file.
pub(crate) fn open_line(out: &mut Vec<u8>, seed: u64) {
    let _ = io_write(out, format_args!("#K:open:{seed:016x}\r\n"));
}

/// Appends the end of a group that consists of these two pieces.
#[cfg(test)]
pub(crate) fn end_group(out: &mut Vec<u8>, seed: u64, pieces: [&[u8]; 2]) {
    end_pieces(out, seed, pieces.into_iter());
}

/// Appends the end of a group that consists of these pieces.
pub(crate) fn end_pieces<'a>(out: &mut Vec<u8>, seed: u64, pieces: impl Iterator<Item = &'a [u8]>) {
    let (len, crc) = pieces.fold((0, seed), |(len, crc), piece| {
        (len + piece.len(), crc64::update(crc, piece))
    });
    // Writing to a vector cannot fail.
    let _ = io_write(out, format_args!("#K:{len}:{crc:016x}\r\n"));
}

/// Appends the line that says how far the file is synced.
pub(crate) fn sync_line(out: &mut Vec<u8>, position: u64) {
    let _ = io_write(out, format_args!("#K:sync:{position}\r\n"));
}

/// Appends the line with the time, as Redis writes it.
pub(crate) fn time_line(out: &mut Vec<u8>, unix_s: u64) {
    let _ = io_write(out, format_args!("#TS:{unix_s}\r\n"));
}

fn io_write(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) -> std::io::Result<()> {
    std::io::Write::write_fmt(out, text)
}

/// Looks for the proof that bytes are damaged and were not just never written: a group that ends well, and that says that
/// the file had been synced beyond a position. It is fed the bytes from that position on, in pieces of any length.
///
/// Such a group begins with a `#K:sync` line. Of the bytes before the last line only the places of these lines are kept,
/// each with the checksum of everything before it: the checksum of what is between two places follows from theirs.
#[derive(Debug)]
pub(crate) struct SyncProof {
    /// The position that a group has to exceed.
    position: u64,
    seed: u64,
    /// How many bytes have been looked at, and their checksum.
    taken: u64,
    crc: u64,
    /// What has not been looked at: it may be the beginning of a line.
    rest: Vec<u8>,
    /// Where a group may begin, with the checksum of what is before.
    starts: HashMap<u64, u64>,
    zeros: Zeros,
}

impl SyncProof {
    /// More places than this are not kept. Only values that hold many such lines lead to so many.
    const MAX_STARTS: usize = 1024 * 1024;

    pub(crate) fn new(position: u64, seed: u64) -> Self {
        Self {
            position,
            seed,
            taken: 0,
            crc: 0,
            rest: Vec::new(),
            starts: HashMap::new(),
            zeros: Zeros::default(),
        }
    }

    /// Takes the next bytes; returns whether they complete the proof.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> bool {
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        let (mut at, mut proved) = (0, false);
        while !proved {
            let found = find_mark(&rest[at..]);
            self.take(&rest[at..at + found]);
            at += found;
            let line = &rest[at..];
            let end = line.iter().take(MAX_LEN).position(|&byte| byte == b'\n');
            let len = match end {
                // It may go on with the next bytes.
                None if line.len() < MAX_LEN => break,
                None => HEAD.len(),
                Some(end) => {
                    let line = Line::parse(&line[..=end]);
                    proved = self.line(line);
                    match line {
                        // Another mark may begin in it.
                        Line::Comment => HEAD.len(),
                        _ => end + 1,
                    }
                }
            };
            self.take(&rest[at..at + len]);
            at += len;
        }
        rest.drain(..at);
        self.rest = rest;
        proved
    }

    /// Takes a line that begins here; returns whether it ends a group that is the proof.
    fn line(&mut self, line: Line) -> bool {
        match line {
            Line::Sync(position) if position > self.position => {
                if self.starts.len() == Self::MAX_STARTS {
                    self.starts.clear();
                }
                self.starts.insert(self.taken, self.crc);
                false
            }
            Line::Group { len, crc } => {
                let start = self.taken.checked_sub(len);
                let Some(before) = start.and_then(|start| self.starts.get(&start)) else {
                    return false;
                };
                self.crc ^ self.zeros.behind(before ^ self.seed, len) == crc
            }
            _ => false,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.crc = crc64::update(self.crc, bytes);
        self.taken += bytes.len() as u64;
    }
}

/// How all marks begin.
const HEAD: &[u8] = b"#K:";

/// Where the first mark may begin: the first place whose bytes are those of the head, as far as there are bytes.
fn find_mark(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|&byte| byte == HEAD[0]) {
        at += found;
        let seen = &bytes[at..bytes.len().min(at + HEAD.len())];
        if HEAD.starts_with(seen) {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Continues checksums over zeros, in steps of powers of two. A checksum is linear in each of its bits.
#[derive(Debug, Default)]
struct Zeros {
    /// What each bit becomes behind a power of two of zeros, as far as it was needed.
    powers: Vec<[u64; 64]>,
}

impl Zeros {
    /// The checksum `crc` continued over `len` zeros.
    fn behind(&mut self, mut crc: u64, mut len: u64) -> u64 {
        let mut power = 0;
        while len > 0 {
            if power == self.powers.len() {
                self.powers.push(match self.powers.last() {
                    None => std::array::from_fn(|bit| crc64::update(1 << bit, &[0])),
                    Some(last) => std::array::from_fn(|bit| combine(last, last[bit])),
                });
            }
            if len & 1 == 1 {
                crc = combine(&self.powers[power], crc);
            }
            len >>= 1;
            power += 1;
        }
        crc
    }
}

/// The sum of what the bits of `crc` become.
fn combine(step: &[u64; 64], crc: u64) -> u64 {
    let bits = (0..64).filter(|bit| (crc >> bit) & 1 == 1);
    bits.fold(0, |sum, bit| sum ^ step[bit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_they_are_written() {
        let mut out = Vec::new();
        end_group(&mut out, 0, [b"12345", b"6789"]);
        assert_eq!(out, b"#K:9:e9c6d914c4b8d9ca\r\n");
        let crc = 0xe9c6_d914_c4b8_d9ca;
        assert_eq!(Line::parse(&out), Line::Group { len: 9, crc });
        out.clear();
        sync_line(&mut out, u64::MAX);
        assert_eq!(Line::parse(&out), Line::Sync(u64::MAX));
        assert!(out.len() < MAX_LEN);
        assert_eq!(Line::parse(OPEN), Line::Open(0));
        out.clear();
        open_line(&mut out, 0x1234);
        assert_eq!(out, b"#K:open:0000000000001234\r\n");
        assert_eq!(Line::parse(&out), Line::Open(0x1234));
        assert_eq!(Line::parse(CLOSE), Line::Close);
        for other in [
            "#TS:1\r\n",
            "#K:open\n",
            "#K:9:e9\r\n",
            "#K:-1:e9c6d914c4b8d9ca\r\n",
            "#K:sync:\r\n",
            "#K:open:1234\r\n",
            "#\n",
        ] {
            assert_eq!(Line::parse(other.as_bytes()), Line::Comment, "{other}");
        }
    }

    #[test]
    fn a_later_group_proves_what_was_synced() {
        const SEED: u64 = 0x1234;
        let proved = |bytes: &[u8], position: u64, piece: usize| {
            let mut proof = SyncProof::new(position, SEED);
            bytes.chunks(piece).any(|bytes| proof.feed(bytes))
        };
        let body = b"*1\r\n$4\r\nPING\r\n";
        // Lines that only look like marks, also one in another, and a place where a group does not begin.
        let mut bytes = b"damaged #K: #K:1:x\r\n #K:#K:sync:78\r\n#K:sync:99\r\n".to_vec();
        bytes.extend_from_slice(body);
        end_group(&mut bytes, SEED, [b"", body]);
        let mut head = Vec::new();
        sync_line(&mut head, 77);
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(body);
        end_group(&mut bytes, SEED, [&head, body]);
        for piece in 1..=bytes.len() {
            assert!(proved(&bytes, 76, piece), "in pieces of {piece}");
            assert!(!proved(&bytes, 77, piece), "it is not synced beyond 77");
            assert!(!proved(&bytes[..bytes.len() - 1], 76, piece));
        }
        let start = bytes.len() - 3;
        for (index, bit) in [(start, 1), (start - 30, 2)] {
            let mut damaged = bytes.clone();
            damaged[index] ^= bit;
            assert!(!proved(&damaged, 76, 1024), "{index}");
        }
    }

    #[test]
    fn a_checksum_is_continued_over_zeros() {
        let mut continued = Zeros::default();
        for len in [0, 1, 2, 63, 64, 1000, 65_537] {
            for crc in [0, 1, u64::MAX, 0x0123_4567_89ab_cdef] {
                let zeros = vec![0; len];
                assert_eq!(
                    continued.behind(crc, len as u64),
                    crc64::update(crc, &zeros),
                    "{crc:x} and {len} zeros"
                );
            }
        }
    }
}
