//! Looks for whole groups behind a place in a file that cannot be read on.
//!
//! A group behind the place is found by its mark: the mark has the group's length, so the group begins that many bytes
//! before it, and its checksum tells whether all bytes between are as they were written. The bytes come in pieces and are
//! not kept. Of them only the places are remembered where a group may begin, each with the checksum of everything before
//! it: the checksum of what is between two places follows from theirs.

use super::mark::{Line, MAX_LEN};
use kumi_store::crc64;
use std::collections::VecDeque;

/// Places where a group may begin that are remembered; the oldest are forgotten first. A group that begins before
/// all of them is not found.
const MAX_STARTS: usize = 1024 * 1024;
/// How all marks begin.
const HEAD: &[u8] = b"#K:";

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The position in the file of the first whole group.
    pub(super) first: Option<u64>,
    /// A whole group says that the file had been synced beyond the place.
    pub(super) synced: bool,
    /// The mark of the group that begins at the place is there.
    pub(super) own_mark: bool,
    /// Marks fit the bytes before them with another seed than that of the file: two marks with the same one, or the mark of
    /// the group that begins at the place with a seed that differs in one digit. A change in the first eight bytes of that
    /// group looks the same.
    pub(super) other_seed: bool,
}

/// The search. It is fed the bytes from a position of the file on.
#[derive(Debug)]
pub(super) struct GroupSearch {
    position: u64,
    seed: u64,
    /// How many bytes have been looked at, and their checksum.
    taken: u64,
    crc: u64,
    /// What has not been looked at: it may be the beginning of a line.
    rest: Vec<u8>,
    starts: VecDeque<Start>,
    zeros: Zeros,
    /// The length of the last group whose beginning is known, and what its mark has of the seed.
    trace: Option<(u64, u64)>,
    found: Found,
}

/// Where a group may begin.
#[derive(Clone, Copy, Debug)]
struct Start {
    at: u64,
    /// The checksum of everything before.
    crc: u64,
    /// How far the file is synced, if its first line says so.
    synced: u64,
}

impl GroupSearch {
    /// `position` is where the group begins that cannot be read.
    pub(super) fn new(position: u64, seed: u64) -> Self {
        Self {
            position,
            seed,
            taken: 0,
            crc: 0,
            rest: Vec::new(),
            starts: VecDeque::new(),
            zeros: Zeros::default(),
            trace: None,
            found: Found::default(),
        }
    }

    pub(super) fn found(&self) -> Found {
        self.found
    }

    /// Takes the next bytes; returns whether nothing more can be learned.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> bool {
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(bytes);
        let mut at = 0;
        while at < rest.len() {
            let next = rest[at..]
                .iter()
                .position(|&byte| matches!(byte, b'#' | b'*'));
            let next = next.map_or(rest.len(), |next| at + next);
            self.take(&rest[at..next]);
            at = next;
            let line = &rest[at..];
            if line.is_empty() {
                break;
            }
            let seen = &line[..line.len().min(HEAD.len())];
            if !HEAD.starts_with(seen) {
                // A request may begin here, or a line with the time. What is before it may be damaged.
                self.begin(0);
                self.take(&line[..1]);
                at += 1;
                continue;
            }
            let end = line.iter().take(MAX_LEN).position(|&byte| byte == b'\n');
            let len = match end {
                // It may go on with the next bytes.
                None if line.len() < MAX_LEN => break,
                None => HEAD.len(),
                Some(end) => {
                    let mark = Line::parse(&line[..=end]);
                    self.line(mark);
                    match mark {
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
        self.found.synced
    }

    /// Takes a mark that begins here.
    fn line(&mut self, line: Line) {
        match line {
            Line::Group { len, crc } => self.group(len, crc),
            Line::Sync(synced) => self.begin(synced),
            _ => self.begin(0),
        }
    }

    /// A group may begin here.
    fn begin(&mut self, synced: u64) {
        if self.starts.len() == MAX_STARTS {
            self.starts.pop_front();
        }
        self.starts.push_back(Start {
            at: self.taken,
            crc: self.crc,
            synced,
        });
    }

    /// The mark of a group of this length and checksum begins here.
    fn group(&mut self, len: u64, crc: u64) {
        let Some(at) = self.taken.checked_sub(len) else {
            return;
        };
        let (start_crc, synced) = if at == 0 {
            self.found.own_mark = true;
            (0, 0)
        } else {
            let Ok(index) = self.starts.binary_search_by_key(&at, |start| start.at) else {
                return;
            };
            (self.starts[index].crc, self.starts[index].synced)
        };
        // What the seed has become behind the group, if the bytes are those that were written.
        let seed = crc ^ self.crc ^ self.zeros.behind(start_crc, len);
        let of_file = self.zeros.behind(self.seed, len);
        if at == 0 {
            self.found.other_seed |= self.differs_in_a_digit(of_file ^ seed, len);
        } else if seed == of_file {
            let position = self.position + at;
            self.found.first.get_or_insert(position);
            self.found.synced |= synced > self.position;
            return;
        }
        if let Some((before_len, before_seed)) = self.trace.replace((len, seed)) {
            let ((short, one), (long, other)) = match before_len <= len {
                true => ((before_len, before_seed), (len, seed)),
                false => ((len, seed), (before_len, before_seed)),
            };
            self.found.other_seed |= self.zeros.behind(one, long - short) == other;
        }
    }

    /// Whether two seeds differ in one hexadecimal digit. `difference` is what has become of their difference behind `len`
    /// bytes.
    fn differs_in_a_digit(&mut self, difference: u64, len: u64) -> bool {
        (0..64).step_by(4).any(|digit| {
            let mut differences = (1..16).map(|change: u64| change << digit);
            differences.any(|change| self.zeros.behind(change, len) == difference)
        })
    }

    fn take(&mut self, bytes: &[u8]) {
        self.crc = crc64::update(self.crc, bytes);
        self.taken += bytes.len() as u64;
    }
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
    use crate::files::aof::mark::{end_group, sync_line};

    const SEED: u64 = 0x1234;

    fn search(bytes: &[u8], position: u64, piece: usize) -> Found {
        let mut search = GroupSearch::new(position, SEED);
        let _ = bytes.chunks(piece).any(|bytes| search.feed(bytes));
        search.found()
    }

    #[test]
    fn a_later_group_proves_what_was_synced() {
        let body = b"*1\r\n$4\r\nPING\r\n";
        // Lines that only look like marks, also one in another, and a place where a group does not begin.
        let mut bytes = b"damaged #K: #K:1:x\r\n #K:#K:sync:78\r\n#K:sync:99\r\n".to_vec();
        bytes.extend_from_slice(body);
        let first = bytes.len() - body.len();
        end_group(&mut bytes, SEED, [b"", body]);
        let mut head = Vec::new();
        sync_line(&mut head, 77);
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(body);
        end_group(&mut bytes, SEED, [&head, body]);
        for piece in 1..=bytes.len() {
            let found = search(&bytes, 76, piece);
            assert!(found.synced, "in pieces of {piece}");
            assert_eq!(found.first, Some(76 + first as u64), "in pieces of {piece}");
            assert!(
                !search(&bytes, 77, piece).synced,
                "it is not synced beyond 77"
            );
            assert!(!search(&bytes[..bytes.len() - 1], 76, piece).synced);
        }
        let start = bytes.len() - 3;
        for (index, bit) in [(start, 1), (start - 30, 2)] {
            let mut damaged = bytes.clone();
            damaged[index] ^= bit;
            let found = search(&damaged, 76, 1024);
            assert!(!found.synced && found.first.is_some(), "{index}");
        }
    }

    #[test]
    fn groups_without_a_line_before_them_are_found() {
        let body = b"*2\r\n$3\r\nDEL\r\n$1\r\na\r\n";
        let mut group = body.to_vec();
        end_group(&mut group, SEED, [b"", body]);
        let mut bytes = group.clone();
        // The first one is the group in question, and its mark is there.
        assert_eq!(
            search(&bytes, 5, 7),
            Found {
                own_mark: true,
                ..Found::default()
            }
        );
        bytes[10] ^= 1;
        bytes.extend_from_slice(&group);
        let expected = Found {
            first: Some(5 + group.len() as u64),
            own_mark: true,
            ..Found::default()
        };
        for piece in [1, 7, bytes.len()] {
            assert_eq!(search(&bytes, 5, piece), expected);
        }
        // A mark that is no longer one leaves the group behind it alone.
        let mark = body.len() + 1;
        bytes[mark] = b'J';
        let found = search(&bytes, 5, 100);
        assert_eq!((found.first, found.own_mark), (expected.first, false));
    }

    #[test]
    fn groups_of_another_seed_are_told_apart_from_damage() {
        let mut bytes = b"*1\r\n".to_vec();
        for body in [
            &b"*1\r\n$4\r\nPING\r\n"[..],
            b"*1\r\n$8\r\nFLUSHALL\r\n",
            b"*1\r\n$4\r\nPING\r\n",
        ] {
            bytes.extend_from_slice(body);
            end_group(&mut bytes, SEED ^ 1, [b"", body]);
        }
        let found = search(&bytes, 0, 10);
        assert_eq!((found.first, found.other_seed), (None, true));
        // One of them damaged, so that no two that follow each other fit.
        let at = bytes.windows(8).position(|bytes| bytes == b"FLUSHALL");
        bytes[at.unwrap()] ^= 1;
        assert!(!search(&bytes, 0, 10).other_seed);
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
