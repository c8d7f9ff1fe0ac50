//! Lua patterns. Matching uses an explicit stack of choices instead of recursion: each item of the pattern adds at most
//! one entry, so the depth is bounded by the pattern's length and the thread's stack is not used. Every step is charged
//! to a [`Meter`], so that the host can interrupt a match that takes exponential time.

use crate::vm::meter::Meter;
use crate::vm::{Error, ErrorKind, Result};

pub(crate) const MAX_CAPTURES: usize = 32;
/// Bytes of a set that one unit of work pays for.
const SET_BYTES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Unfinished,
    Position,
    Bytes(usize),
}

#[derive(Clone, Copy, Debug)]
struct Capture {
    start: usize,
    len: Length,
}

/// What a capture gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Captured {
    /// A place, counted from one.
    Position(usize),
    /// A range of the subject.
    Range(usize, usize),
    /// Opened and not closed; an error if it is used.
    Unfinished,
}

/// What to try, or to undo, when the match fails from here on.
enum Choice {
    Resume {
        s: usize,
        p: usize,
    },
    /// A greedy repetition that took `count` bytes from `s`.
    Fewer {
        s: usize,
        count: usize,
        after: usize,
    },
    /// A lazy repetition of the item at `item`.
    More {
        s: usize,
        item: usize,
        after: usize,
    },
    OpenedCapture,
    ClosedCapture(usize),
}

/// Why a pattern is invalid; the text of the error.
pub(crate) fn invalid(text: &str) -> Error {
    Error::from(ErrorKind::PatternError(text.to_owned()))
}

/// A pattern being matched against a subject.
pub(crate) struct Matcher<'a, 'm> {
    src: &'a [u8],
    pat: &'a [u8],
    captures: [Capture; MAX_CAPTURES],
    level: usize,
    choices: Vec<Choice>,
    meter: Meter<'m>,
}

impl<'a, 'm> Matcher<'a, 'm> {
    /// A pattern ends at its first zero byte, as in Lua 5.1.
    pub(crate) fn new(src: &'a [u8], pat: &'a [u8], meter: Meter<'m>) -> Matcher<'a, 'm> {
        let end = pat.iter().position(|b| *b == 0).unwrap_or(pat.len());
        Matcher {
            src,
            pat: &pat[..end],
            captures: [Capture {
                start: 0,
                len: Length::Unfinished,
            }; MAX_CAPTURES],
            level: 0,
            choices: Vec::new(),
            meter,
        }
    }

    /// Matches the pattern, without its anchor, at one place; the end of the match.
    pub(crate) fn match_at(&mut self, start: usize, pattern_start: usize) -> Result<Option<usize>> {
        self.level = 0;
        self.choices.clear();
        let mut place = Some((start, pattern_start));
        loop {
            place = match place {
                Some((s, p)) if p >= self.pat.len() => {
                    let _ = p;
                    return Ok(Some(s));
                }
                Some((s, p)) => self.step(s, p)?,
                None => match self.choices.pop() {
                    None => return Ok(None),
                    Some(choice) => self.retry(choice)?,
                },
            };
            self.meter.burn(1)?;
        }
    }

    fn retry(&mut self, choice: Choice) -> Result<Option<(usize, usize)>> {
        Ok(match choice {
            Choice::Resume { s, p } => Some((s, p)),
            Choice::Fewer { s, count, after } => {
                if count > 0 {
                    let count = count - 1;
                    self.choices.push(Choice::Fewer { s, count, after });
                    Some((s + count, after))
                } else {
                    None
                }
            }
            Choice::More { s, item, after } => {
                self.meter.burn((after - item) / SET_BYTES)?;
                if s < self.src.len() && self.single(self.src[s], item, after - 1) {
                    self.choices.push(Choice::More {
                        s: s + 1,
                        item,
                        after,
                    });
                    Some((s + 1, after))
                } else {
                    None
                }
            }
            Choice::OpenedCapture => {
                self.level -= 1;
                None
            }
            Choice::ClosedCapture(at) => {
                self.captures[at].len = Length::Unfinished;
                None
            }
        })
    }

    /// Matches one item of the pattern; where to go on, or nothing.
    fn step(&mut self, s: usize, p: usize) -> Result<Option<(usize, usize)>> {
        match self.pat[p] {
            b'(' => {
                let position = self.pat.get(p + 1) == Some(&b')');
                if self.level >= MAX_CAPTURES {
                    return Err(invalid("too many captures"));
                }
                self.captures[self.level] = Capture {
                    start: s,
                    len: if position {
                        Length::Position
                    } else {
                        Length::Unfinished
                    },
                };
                self.level += 1;
                self.choices.push(Choice::OpenedCapture);
                Ok(Some((s, if position { p + 2 } else { p + 1 })))
            }
            b')' => {
                let at = (0..self.level)
                    .rev()
                    .find(|at| self.captures[*at].len == Length::Unfinished)
                    .ok_or_else(|| invalid("invalid pattern capture"))?;
                self.captures[at].len = Length::Bytes(s - self.captures[at].start);
                self.choices.push(Choice::ClosedCapture(at));
                Ok(Some((s, p + 1)))
            }
            b'%' => match self.pat.get(p + 1) {
                Some(b'b') => self
                    .balance(s, p + 2)
                    .map(|end| end.map(|end| (end, p + 4))),
                Some(b'f') => self.frontier(s, p + 2),
                Some(digit) if digit.is_ascii_digit() => {
                    Ok(self.back_reference(s, *digit)?.map(|end| (end, p + 2)))
                }
                _ => self.item(s, p),
            },
            b'$' if p + 1 == self.pat.len() => Ok((s == self.src.len()).then_some((s, p + 1))),
            _ => self.item(s, p),
        }
    }

    fn item(&mut self, s: usize, p: usize) -> Result<Option<(usize, usize)>> {
        let end = self.class_end(p)?;
        self.meter.burn((end - p) / SET_BYTES)?;
        let matches = s < self.src.len() && self.single(self.src[s], p, end);
        Ok(match self.pat.get(end) {
            Some(b'?') => {
                if matches {
                    self.choices.push(Choice::Resume { s, p: end + 1 });
                    Some((s + 1, end + 1))
                } else {
                    Some((s, end + 1))
                }
            }
            Some(b'*') => self.greedy(s, p, end)?,
            Some(b'+') => {
                if matches {
                    self.greedy(s + 1, p, end)?
                } else {
                    None
                }
            }
            Some(b'-') => {
                self.choices.push(Choice::More {
                    s,
                    item: p,
                    after: end + 1,
                });
                Some((s, end + 1))
            }
            _ => matches.then_some((s + 1, end)),
        })
    }

    fn greedy(&mut self, s: usize, p: usize, end: usize) -> Result<Option<(usize, usize)>> {
        let cost = 1 + (end - p) / SET_BYTES;
        let (mut count, mut unpaid) = (0, 0);
        while s + count < self.src.len() && self.single(self.src[s + count], p, end) {
            count += 1;
            unpaid += cost;
            if unpaid >= 1024 {
                self.meter.burn(unpaid)?;
                unpaid = 0;
            }
        }
        if cost > 1 {
            self.meter.burn(unpaid)?;
        }
        if count > 0 {
            self.choices.push(Choice::Fewer {
                s,
                count,
                after: end + 1,
            });
        }
        Ok(Some((s + count, end + 1)))
    }

    fn balance(&mut self, s: usize, p: usize) -> Result<Option<usize>> {
        let (Some(&open), Some(&close)) = (self.pat.get(p), self.pat.get(p + 1)) else {
            return Err(invalid("unbalanced pattern"));
        };
        if self.src.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        for (at, &byte) in self.src.iter().enumerate().skip(s + 1) {
            if at % 1024 == 0 {
                self.meter.burn(1024)?;
            }
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    fn frontier(&mut self, s: usize, p: usize) -> Result<Option<(usize, usize)>> {
        if self.pat.get(p) != Some(&b'[') {
            return Err(invalid("missing '[' after '%f' in pattern"));
        }
        let end = self.class_end(p)?;
        self.meter.burn((end - p) / SET_BYTES)?;
        let before = if s == 0 { 0 } else { self.src[s - 1] };
        let here = self.src.get(s).copied().unwrap_or(0);
        let holds = !self.set_matches(before, p, end - 1) && self.set_matches(here, p, end - 1);
        Ok(holds.then_some((s, end)))
    }

    fn back_reference(&mut self, s: usize, digit: u8) -> Result<Option<usize>> {
        let at = (digit as usize).wrapping_sub(b'1' as usize);
        let capture = match self.captures[..self.level].get(at) {
            Some(capture) if capture.len != Length::Unfinished => *capture,
            _ => return Err(invalid("invalid capture index")),
        };
        let Length::Bytes(len) = capture.len else {
            // The length of a position capture is beyond any subject.
            return Ok(None);
        };
        self.meter.burn(len / 8)?;
        let wanted = &self.src[capture.start..capture.start + len];
        Ok(self.src[s..].starts_with(wanted).then_some(s + len))
    }

    /// The end of the single-character class at `p`.
    fn class_end(&self, p: usize) -> Result<usize> {
        let mut at = p + 1;
        match self.pat[p] {
            b'%' => {
                if at >= self.pat.len() {
                    return Err(invalid("malformed pattern (ends with '%')"));
                }
                Ok(at + 1)
            }
            b'[' => {
                if self.pat.get(at) == Some(&b'^') {
                    at += 1;
                }
                loop {
                    let missing = || invalid("malformed pattern (missing ']')");
                    let byte = *self.pat.get(at).ok_or_else(missing)?;
                    at += 1;
                    if byte == b'%' && at < self.pat.len() {
                        at += 1;
                    }
                    if *self.pat.get(at).ok_or_else(missing)? == b']' {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(at),
        }
    }

    /// Whether a byte matches the class `p..end`.
    #[inline]
    fn single(&self, byte: u8, p: usize, end: usize) -> bool {
        match self.pat[p] {
            b'.' => true,
            b'%' => class_matches(byte, self.pat[p + 1]),
            b'[' => self.set_matches(byte, p, end - 1),
            other => other == byte,
        }
    }

    /// Whether a byte is in the set between `p` (its bracket) and `close`.
    fn set_matches(&self, byte: u8, p: usize, close: usize) -> bool {
        let mut at = p + 1;
        let mut inside = true;
        if self.pat[at] == b'^' {
            inside = false;
            at += 1;
        }
        while at < close {
            if self.pat[at] == b'%' {
                at += 1;
                if class_matches(byte, self.pat[at]) {
                    return inside;
                }
                at += 1;
            } else if self.pat.get(at + 1) == Some(&b'-') && at + 2 < close {
                if (self.pat[at]..=self.pat[at + 2]).contains(&byte) {
                    return inside;
                }
                at += 3;
            } else {
                if self.pat[at] == byte {
                    return inside;
                }
                at += 1;
            }
        }
        !inside
    }

    pub(crate) fn capture_count(&self) -> usize {
        self.level
    }

    /// A capture of the last match; the whole match if the pattern has none.
    pub(crate) fn capture(&self, at: usize, start: usize, end: usize) -> Result<Captured> {
        if at >= self.level {
            return if at == 0 {
                Ok(Captured::Range(start, end))
            } else {
                Err(invalid("invalid capture index"))
            };
        }
        let capture = self.captures[at];
        match capture.len {
            Length::Bytes(len) => Ok(Captured::Range(capture.start, capture.start + len)),
            Length::Position => Ok(Captured::Position(capture.start + 1)),
            Length::Unfinished => Ok(Captured::Unfinished),
        }
    }
}

fn class_matches(byte: u8, class: u8) -> bool {
    let holds = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => crate::base::number::is_space(byte),
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    holds != class.is_ascii_uppercase()
}
