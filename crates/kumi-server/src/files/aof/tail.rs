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
//! Bytes without a mark have no checksum. After a power failure a request does not count if it has zeros that may be lost pages.
//! A lost page differs from zeros that were written by its place: it begins or ends where a block of the file does. A page
//! that is lost in the middle of a value leaves the requests as they are; any other one has a zero where a request, its
//! header or the end of a line should be.

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

/// The bytes in question.
pub(super) struct Question<'a> {
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
pub(super) enum Verdict {
    /// The requests up to this position are loaded. What is behind it is cut off for the reason, or it is `#K:open`.
    Load { until: u64, cut: Option<String> },
    /// All of them are cut off.
    Cut(String),
    /// From this position on nothing can be loaded.
    Damaged { at: u64, reason: String },
}

impl Question<'_> {
    pub(super) fn judge(self) -> io::Result<Verdict> {
        let walk = Walk::run(self.source, self.len, self.at, self.seed)?;
        let found = self.search(&walk)?;
        // The server that wrote them was killed, or ended: everything that it has written is there.
        let power_held = self.boot.is_some() && self.boot == self.section.boot;
        let (at, reason) = (self.at, self.reason);
        let damaged = |reason| Ok(Verdict::Damaged { at, reason });
        if let Some(first) = found.first {
            let lost = self.section.fsync == Some(Fsync::EverySecond) && !power_held;
            if lost && !found.synced {
                return Ok(Verdict::Cut(reason));
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
        if found.own_mark || walk.end == End::Mark {
            return match power_held {
                true => damaged(format!("{reason}, and a mark is there")),
                false => Ok(Verdict::Cut(reason)),
            };
        }
        Ok(walk.verdict(self.len, power_held))
    }

    /// Looks for whole groups among the bytes, and behind them.
    fn search(&self, walk: &Walk) -> io::Result<Found> {
        let until = match walk.end {
            // What follows belongs to another server.
            End::Open => walk.position,
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

/// How bytes without a mark end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// With the file.
    File,
    /// The file ends within an element.
    Incomplete,
    /// With bytes that are neither a request nor a comment.
    Bad { reason: String, zeros: Zeros },
    /// With the mark of a group, or one of another server.
    Mark,
    /// With the mark of the next server that opened the file.
    Open,
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
    /// `zeros` is where they are in a file of `len` bytes, `at` the end of the last whole group: all before it was written at
    /// once, so that a page may be lost from there on.
    fn of(zeros: Range<u64>, at: u64, len: u64) -> Self {
        let is_long = zeros.end - zeros.start >= BLOCK;
        let (begins, ends) = (
            zeros.start.is_multiple_of(BLOCK),
            zeros.end.is_multiple_of(BLOCK),
        );
        if zeros.is_empty() {
            Zeros::Written
        } else if zeros.end >= len {
            Zeros::LostEnd
        } else if is_long && (begins || ends) || zeros.start == at && ends {
            Zeros::LostPages
        } else {
            Zeros::Written
        }
    }
}

/// The requests and comments without a mark.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) end: End,
    /// Where that is.
    position: u64,
    /// The end of what can be executed: the last request or comment outside of a transaction.
    whole: u64,
    /// The same before the first request with zeros that may be lost pages.
    before_zeros: Option<u64>,
}

impl Walk {
    /// Walks over a file of `len` bytes from a position on. It keeps one request in memory.
    pub(super) fn run(source: &dyn Source, len: u64, at: u64, seed: u64) -> io::Result<Self> {
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
                        Line::Open(other) if other == seed => break End::Open,
                        Line::Open(_) | Line::Close | Line::Group { .. } => break End::Mark,
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
                        true => End::File,
                        false => End::Incomplete,
                    };
                }
                Element::Endless => break End::Incomplete,
                Element::Bad(flaw) => {
                    let zeros = zeros_around(source, &window, flaw.at, len)?;
                    break End::Bad {
                        reason: flaw.reason,
                        zeros: Zeros::of(zeros, at, len),
                    };
                }
            };
            let element = &window.buffer[window.at..window.at + count];
            if has_lost_pages(element, window.position(), at, len) {
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
        Ok(Self {
            end,
            position: window.position(),
            whole,
            before_zeros,
        })
    }

    /// What is done with a file of `len` bytes. `power_held` says that the system has run since the bytes were written.
    fn verdict(self, len: u64, power_held: bool) -> Verdict {
        let at = self.whole;
        let damaged = |reason| Verdict::Damaged { at, reason };
        let cut = match self.end {
            End::Open if self.whole == self.position => return Verdict::load(at, None),
            End::Open => {
                let reason = "a transaction that does not end, and a server that writes behind it";
                return damaged(reason.into());
            }
            End::Mark => return damaged("a mark that does not fit".into()),
            End::Bad { reason, zeros } => match zeros {
                Zeros::Written => return damaged(reason),
                Zeros::LostPages if power_held => return damaged(reason),
                Zeros::LostPages | Zeros::LostEnd => Some(reason),
            },
            End::File if self.whole == len => None,
            End::File => Some("a transaction has no EXEC".into()),
            End::Incomplete => Some(super::scan::NOT_COMPLETE.into()),
        };
        match self.before_zeros.filter(|_| !power_held) {
            Some(until) => Verdict::load(until, Some(LOST.into())),
            None => Verdict::load(at, cut),
        }
    }
}

impl Verdict {
    fn load(until: u64, cut: Option<String>) -> Self {
        Verdict::Load { until, cut }
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
fn has_lost_pages(element: &[u8], position: u64, at: u64, len: u64) -> bool {
    let mut next = 0;
    while let Some(zero) = element[next..].iter().position(|&byte| byte == 0) {
        let start = next + zero;
        let zeros = element[start..].iter().take_while(|&&byte| byte == 0);
        next = start + zeros.count();
        let zeros = position + start as u64..position + next as u64;
        if Zeros::of(zeros, at, len) != Zeros::Written {
            return true;
        }
    }
    false
}
