//! Decides about bytes of a file that are no whole group: whether they are loaded, cut off, or damage.
//!
//! ```text
//! whole requests up to the end of the file, or      another server wrote them, or a kumi that was killed before it could
//! up to the `#K:open` of a later server             write the mark: they are loaded, as Redis loads them
//! the same, and then bytes that are no request      the requests are loaded and the rest is cut off
//! anything else, and nothing whole behind it        the group is cut off
//! a hole: something whole lies behind it            damage, and the server does not start
//! ```
//!
//! Only one hole is cut off with what is behind it. With `appendfsync everysec` the system has written the bytes since the
//! last sync in any order, so that a power failure leaves holes there, which are zeros. That is assumed only if the system has
//! been started again since then, or if that is not known.
//!
//! Bytes without a mark have no checksum. After a power failure they count only if they hold no zero byte, because they may
//! be a group of which some pages are lost.

use super::mark::Line;
use super::search::{Found, GroupSearch};
use super::window::{Edge, Element, Source, Window, request};
use kumi_store::config::Fsync;
use std::io::{self, Read};

/// So many bytes at the end of a file are searched for its last request.
const LAST_BYTES: u64 = 1024 * 1024;
/// So many places are tried.
const LAST_PLACES: usize = 10_000;

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
    Load {
        until: u64,
        cut: Option<String>,
    },
    /// All of them are cut off.
    Cut(String),
    Damaged(String),
}

impl Question<'_> {
    pub(super) fn judge(self) -> io::Result<Verdict> {
        let walk = Walk::run(self.source, self.len, self.at, self.seed)?;
        let found = self.search(&walk)?;
        // The server that wrote them was killed, or ended: everything that it has written is there.
        let power_held = self.boot.is_some() && self.boot == self.section.boot;
        let reason = self.reason;
        if let Some(first) = found.first {
            let lost = self.section.fsync == Some(Fsync::EverySecond) && !power_held;
            if lost && !found.synced {
                return Ok(Verdict::Cut(reason));
            }
            let why = match found.synced {
                true => ", and later bytes show that these had been synced",
                false => "",
            };
            return Ok(Verdict::Damaged(format!(
                "{reason}, and a whole group lies behind it at byte {first}{why}"
            )));
        }
        if found.other_seed && !self.section.fitted {
            let reason =
                "the seed of the checksums is damaged: the groups behind it fit another one";
            return Ok(Verdict::Damaged(reason.into()));
        }
        if found.own_mark || walk.end == End::Mark {
            return Ok(match power_held {
                true => Verdict::Damaged(format!("{reason}, and a mark is there")),
                false => Verdict::Cut(reason),
            });
        }
        let is_hole = matches!(walk.end, End::Bad(_));
        if is_hole && power_held && ends_with_request(self.source, self.len, self.at)? {
            return Ok(Verdict::Damaged(format!(
                "{reason}, and the file ends with a whole request"
            )));
        }
        let cut = match walk.end {
            End::Open if walk.whole == walk.position => None,
            End::Open => {
                let reason = "a transaction that does not end, and a server that writes behind it";
                return Ok(Verdict::Damaged(reason.into()));
            }
            End::Mark => return Ok(Verdict::Cut(reason)),
            _ if walk.has_zeros && !power_held => return Ok(Verdict::Cut(reason)),
            End::File if walk.whole == self.len => None,
            End::File => Some("a transaction has no EXEC".into()),
            End::Incomplete => Some(super::scan::NOT_COMPLETE.into()),
            End::Bad(reason) => Some(reason),
        };
        Ok(Verdict::Load {
            until: walk.whole,
            cut,
        })
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
            let read = (&mut reader)
                .take(super::window::CHUNK as u64)
                .read_to_end(&mut piece)?;
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
    Bad(String),
    /// With the mark of a group, or one of another server.
    Mark,
    /// With the mark of the next server that opened the file.
    Open,
}

/// The requests and comments without a mark.
#[derive(Debug)]
pub(super) struct Walk {
    pub(super) end: End,
    /// Where that is.
    position: u64,
    /// The end of what can be executed: the last request or comment outside of a transaction.
    whole: u64,
    /// There is a zero byte before `whole`.
    has_zeros: bool,
}

impl Walk {
    /// Walks over a file of `len` bytes from a position on. It keeps one request in memory.
    pub(super) fn run(source: &dyn Source, len: u64, at: u64, seed: u64) -> io::Result<Self> {
        let mut window = Window::open(source, len, at)?;
        let mut in_transaction = false;
        let (mut whole, mut has_zeros) = (at, false);
        let mut zeros = false;
        let end = loop {
            let count = match window.element() {
                Element::Request { len, transaction } => {
                    match transaction {
                        Some(Edge::Begin) => in_transaction = true,
                        Some(Edge::End) => in_transaction = false,
                        None => {}
                    }
                    len
                }
                Element::Comment(len) => {
                    match Line::parse(&window.buffer[window.at..window.at + len]) {
                        Line::Open(other) if other == seed => break End::Open,
                        Line::Open(_) | Line::Close | Line::Group { .. } => break End::Mark,
                        _ => {}
                    }
                    len
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
                Element::Bad(reason) => break End::Bad(reason),
            };
            zeros |= window.buffer[window.at..window.at + count].contains(&0);
            window.at += count;
            if !in_transaction {
                whole = window.position();
                has_zeros |= zeros;
            }
        };
        Ok(Self {
            end,
            position: window.position(),
            whole,
            has_zeros,
        })
    }
}

/// Whether a file ends with a whole request that begins behind a position.
fn ends_with_request(source: &dyn Source, len: u64, behind: u64) -> io::Result<bool> {
    let start = len.saturating_sub(LAST_BYTES).max(behind);
    let mut bytes = Vec::new();
    source
        .open(start)?
        .take(LAST_BYTES)
        .read_to_end(&mut bytes)?;
    let places = (1..bytes.len()).rev();
    let mut places = places.filter(|&at| bytes[at] == b'*' && bytes[at - 1] == b'\n');
    Ok(places.by_ref().take(LAST_PLACES).any(|at| {
        let rest = &bytes[at..];
        let element = request(rest, rest.len() as u64);
        matches!(element, Element::Request { len, .. } if len == rest.len())
    }))
}
