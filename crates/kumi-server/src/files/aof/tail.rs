//! Decides about bytes of a file that are no whole group: whether they are loaded, cut off, or damage.
//!
//! ```text
//! whole requests up to the end of the file, or      another server wrote them, or a kumi that was killed before it could
//! up to the `#K:open` of a later server             write the mark: they are loaded, as Redis loads them
//! the same, and then an incomplete request,         the requests are loaded and the rest is cut off
//! or pages that were lost
//! a mark that does not fit, and nothing whole       damage; the group is cut off if the power may have failed
//! behind it
//! a hole: something whole lies behind it            damage, and the server does not start
//! other bytes that are no request                   damage, as in Redis
//! ```
//!
//! Only one hole is cut off with what is behind it. With `appendfsync everysec` the system has written the bytes since the
//! last sync in any order, so that a power failure leaves holes there, which are zeros. That is assumed only if the system has
//! been started again since then, or if that is not known.
//!
//! Bytes without a mark have no checksum. Requests that are whole up to the end of the file, or up to `#K:open`, are
//! loaded with the zeros in their values: a group of kumi that a power failure tore ends in its mark, in a part of it or in
//! zeros, not behind a request. If the bytes end in any other way after a power failure, a request does not count if it has
//! zeros that may be lost pages. A lost page differs from zeros that were written by its place: it begins or ends where a
//! block of the file does. A page that is lost in the middle of a value leaves the requests as they are; any other one has a
//! zero where a request, its header or the end of a line should be. Such a zero was never written, so there a whole
//! block of zeros is enough, also with zeros beside it that belong to a value.

use super::mark::Line;
use super::search::{Found, GroupSearch};
use super::window::{CHUNK, Edge, Element, Source, Window};
use kumi_store::config::Fsync;
use std::io::{self, Read};
use std::ops::Range;

/// The smallest block of a file that a file system loses as a whole, in bytes.
pub(super) const BLOCK: u64 = 512;
const LOST: &str = "zeros that a power failure left of what was not written";

/// What is known of the server that wrote the bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Section {
    /// The boot of its system.
    pub(super) boot: Option<u128>,
    pub(super) fsync: Option<Fsync>,
    /// A group of it was whole.
    pub(super) fitted: bool,
}

/// Bytes that are no whole group.
pub(super) struct Tail<'a> {
    pub(super) source: &'a dyn Source,
    /// The length of the file.
    pub(super) len: u64,
    /// Where they begin: behind a group, or behind `#K:open`.
    pub(super) at: u64,
    /// The seed of the checksums.
    pub(super) seed: u64,
    pub(super) section: Section,
    /// The present boot of the system.
    pub(super) boot: Option<u128>,
    /// Why they are no whole group.
    pub(super) reason: String,
}

/// What is done with the bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The requests up to this position are loaded. What is behind it is cut off for the reason, or it is `#K:open`.
    Load { until: u64, cut: Option<String> },
    /// All of them are cut off.
    Cut(String),
    /// From this position on nothing can be loaded.
    Damaged { at: u64, reason: String },
}

impl Tail<'_> {
    pub(super) fn classify(self) -> io::Result<Outcome> {
        let walk = walk(self.source, self.len, self.at, self.seed)?;
        let found = self.search(&walk)?;
        // The server that wrote them was killed, or ended: everything that it has written is there.
        let power_held = self.boot.is_some() && self.boot == self.section.boot;
        let (at, reason) = (self.at, self.reason);
        let damaged = |reason| Ok(Outcome::Damaged { at, reason });
        if let Some(first) = found.first {
            let lost = self.section.fsync == Some(Fsync::EverySecond) && !power_held;
            if lost && !found.synced {
                return Ok(Outcome::Cut(reason));
            }
            let why = match found.synced {
                true => ", and later bytes show that these had been synced",
                false => "",
            };
            return damaged(format!(
                "{reason}, and a whole group lies behind it at byte {first}{why}"
            ));
        }
        if found.other_seed && !self.section.fitted {
            let reason =
                "the seed of the checksums is damaged: the groups behind it fit another one";
            return damaged(reason.into());
        }
        match walk {
            Walk::Unmarked(requests) if !found.own_mark => Ok(requests.outcome(power_held)),
            Walk::Unmarked(_) | Walk::Mark if power_held => {
                damaged(format!("{reason}, and a mark is there"))
            }
            Walk::Unmarked(_) | Walk::Mark => Ok(Outcome::Cut(reason)),
        }
    }

    /// Looks for whole groups among the bytes, and behind them.
    fn search(&self, walk: &Walk) -> io::Result<Found> {
        let until = match walk {
            // What follows belongs to another server.
            Walk::Unmarked(Requests {
                end: End::Open(position),
                ..
            }) => *position,
            _ => self.len,
        };
        let mut search = GroupSearch::new(self.at, self.seed);
        let mut reader = self.source.open(self.at)?.take(until - self.at);
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let read = (&mut reader).take(CHUNK as u64).read_to_end(&mut piece)?;
            if read == 0 || search.feed(&piece) {
                return Ok(search.found());
            }
        }
    }
}

/// What the bytes are, up to the first thing that ends requests without a mark.
#[derive(Debug)]
pub(super) enum Walk {
    /// The mark of a group, or one of another server, is there.
    Mark,
    /// No mark is there.
    Unmarked(Requests),
}

/// Requests and comments without a mark.
#[derive(Debug)]
pub(super) struct Requests {
    end: End,
    /// The end of what can be executed: the last request or comment outside of a transaction.
    whole: u64,
    /// The same before the first request with zeros that may be lost pages.
    before_zeros: Option<u64>,
}

/// How bytes without a mark end.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// With the file, behind an element.
    File { in_transaction: bool },
    /// The file ends within an element.
    Incomplete,
    /// With bytes that are neither a request nor a comment.
    Bad { reason: String, zeros: Zeros },
    /// With the mark of the next server that opened the file, at this position.
    Open(u64),
}

/// What zeros in a file can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zeros {
    /// Nothing but bytes that were written.
    Written,
    /// Pages that were not written when the power failed.
    LostPages,
    /// The same, and nothing follows them.
    LostEnd,
}

impl Zeros {
    /// Zeros that a request, a comment or the end of a line should not have. `zeros` is where they are in a file of `len`
    /// bytes, `at` the end of the last whole group: all before it was written at once, so that a page may be lost from
    /// there on.
    fn of_flaw(zeros: &Range<u64>, at: u64, len: u64) -> Self {
        let first_block = zeros.start.next_multiple_of(BLOCK);
        let has_block = first_block + BLOCK <= zeros.end;
        let is_rest_of_block = zeros.start == at && first_block <= zeros.end;
        if zeros.is_empty() {
            Zeros::Written
        } else if zeros.end >= len {
            Zeros::LostEnd
        } else if has_block || is_rest_of_block {
            Zeros::LostPages
        } else {
            Zeros::Written
        }
    }

    /// Whether zeros within an argument may be lost pages. There, zeros may also be what was written.
    fn may_be_lost(zeros: &Range<u64>, at: u64) -> bool {
        let is_long = zeros.end - zeros.start >= BLOCK;
        let (begins, ends) = (
            zeros.start.is_multiple_of(BLOCK),
            zeros.end.is_multiple_of(BLOCK),
        );
        is_long && (begins || ends) || zeros.start == at && ends
    }
}

/// Walks over a file of `len` bytes from a position on. It keeps one request in memory.
pub(super) fn walk(source: &dyn Source, len: u64, at: u64, seed: u64) -> io::Result<Walk> {
    let mut window = Window::open(source, len, at)?;
    let mut in_transaction = false;
    let (mut whole, mut before_zeros) = (at, None);
    let end = loop {
        let (count, is_comment) = match window.element() {
            Element::Request { len, transaction } => {
                match transaction {
                    Some(Edge::Begin) => in_transaction = true,
                    Some(Edge::End) => in_transaction = false,
                    None => {}
                }
                (len, false)
            }
            Element::Comment(len) => {
                match Line::parse(&window.buffer[window.at..window.at + len]) {
                    Line::Open(other) if other == seed => break End::Open(window.position()),
                    Line::Open(_) | Line::Close | Line::Group { .. } => return Ok(Walk::Mark),
                    _ => {}
                }
                (len, true)
            }
            Element::More => {
                window.forget(window.at);
                if window.fill()? {
                    continue;
                }
                break match window.buffer.is_empty() {
                    true => End::File { in_transaction },
                    false => End::Incomplete,
                };
            }
            Element::Endless => break End::Incomplete,
            Element::Bad(flaw) => {
                let zeros = zeros_around(source, &window, flaw.at, len)?;
                break End::Bad {
                    reason: flaw.reason,
                    zeros: Zeros::of_flaw(&zeros, at, len),
                };
            }
        };
        let element = &window.buffer[window.at..window.at + count];
        if has_lost_pages(element, window.position(), at) {
            if is_comment {
                // The line end behind them is another one than that of the comment.
                break End::Bad {
                    reason: LOST.into(),
                    zeros: Zeros::LostPages,
                };
            }
            before_zeros.get_or_insert(whole);
        }
        window.at += count;
        if !in_transaction {
            whole = window.position();
        }
    };
    Ok(Walk::Unmarked(Requests {
        end,
        whole,
        before_zeros,
    }))
}

impl Requests {
    /// What is done with them. `power_held` says that the system has run since the bytes were written.
    fn outcome(self, power_held: bool) -> Outcome {
        let until = self.whole;
        let damaged = |reason| Outcome::Damaged { at: until, reason };
        let cut = match self.end {
            End::Open(position) if until == position => {
                return Outcome::Load { until, cut: None };
            }
            End::Open(_) => {
                let reason = "a transaction that does not end, and a server that writes behind it";
                return damaged(reason.into());
            }
            End::File {
                in_transaction: false,
            } => return Outcome::Load { until, cut: None },
            End::File {
                in_transaction: true,
            } => "a transaction has no EXEC".into(),
            End::Bad { reason, zeros } => match zeros {
                Zeros::Written => return damaged(reason),
                Zeros::LostPages if power_held => return damaged(reason),
                Zeros::LostPages | Zeros::LostEnd => reason,
            },
            End::Incomplete => super::scan::NOT_COMPLETE.into(),
        };
        match self.before_zeros.filter(|_| !power_held) {
            Some(until) => Outcome::Load {
                until,
                cut: Some(LOST.into()),
            },
            None => Outcome::Load {
                until,
                cut: Some(cut),
            },
        }
    }
}

/// Where the zeros are in a file of `len` bytes that have a wrong byte of the window's next element among them; an empty range if that byte
/// is none.
fn zeros_around(
    source: &dyn Source,
    window: &Window<'_>,
    wrong: usize,
    len: u64,
) -> io::Result<Range<u64>> {
    let wrong_at = window.position() + wrong as u64;
    let before = &window.buffer[window.at..window.at + wrong];
    let before = before.iter().rev().take_while(|&&byte| byte == 0).count();
    let mut end = wrong_at;
    let mut reader = source.open(wrong_at)?;
    let mut piece = Vec::new();
    loop {
        piece.clear();
        (&mut reader).take(CHUNK as u64).read_to_end(&mut piece)?;
        let zeros = piece.iter().take_while(|&&byte| byte == 0).count();
        end += zeros as u64;
        if piece.is_empty() {
            end = end.max(len);
        }
        if zeros < piece.len() || piece.is_empty() {
            break;
        }
    }
    match end == wrong_at {
        true => Ok(end..end),
        false => Ok(wrong_at - before as u64..end),
    }
}

/// Whether zeros in an element that begins at `position` may be lost pages.
fn has_lost_pages(element: &[u8], position: u64, at: u64) -> bool {
    let mut next = 0;
    while let Some(zero) = element[next..].iter().position(|&byte| byte == 0) {
        let start = next + zero;
        let zeros = element[start..].iter().take_while(|&&byte| byte == 0);
        next = start + zeros.count();
        let zeros = position + start as u64..position + next as u64;
        if Zeros::may_be_lost(&zeros, at) {
            return true;
        }
    }
    false
}
