//! Reads a file of requests: splits it into runs of whole requests, and finds the place where it cannot be read on.
//!
//! A file is read in two ways. Behind `#K:open` a kumi server wrote it, in groups: requests count when the mark of their group
//! has come and fits. What is no whole group there is classified by `tail.rs`: it is loaded, cut off, or damage. Everywhere else
//! the file was written by another server, and is read as Redis reads it: request by request, with an incomplete one at the
//! end cut off.

use super::mark::{self, Line};
use super::tail::{self, Outcome, Section, Tail, Walk};
use super::window::{Edge, Element, Source, Window};
use kumi_store::crc64;
use std::io;
use std::ops::Range;

/// Requests are handed out in runs, or groups, of about this size together.
const RUN_BYTES: usize = 512 * 1024;
/// A group of this length is kept in memory only if it has a mark: what another server wrote may be much longer.
const LONG_GROUP: usize = 8 * 1024 * 1024;
const NO_MARK: &str = "the last group has no mark at its end";
pub(super) const NOT_COMPLETE: &str = "the last request is not complete";

/// Why a file cannot be read on.
#[derive(Debug)]
pub(crate) enum ScanError {
    /// The file cannot be read from disk.
    Read(io::Error),
    /// The bytes at this position are not what they should be.
    Damaged { at: u64, reason: String },
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        ScanError::Read(error)
    }
}

/// An end that is cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The length of what is good.
    pub(crate) at: u64,
    /// How many bytes the file has behind it.
    pub(crate) lost: u64,
    pub(crate) reason: String,
}

/// Reads one file.
pub(crate) struct Scanner<'s> {
    source: &'s dyn Source,
    /// The length of the file.
    len: u64,
    /// The present boot of the system.
    boot: Option<u128>,
    window: Window<'s>,
    /// Where the group, or the transaction that has not ended, begins in the buffer.
    group: usize,
    /// The group is longer than [`LONG_GROUP`] and has a mark.
    is_long: bool,
    /// Behind `#K:open`.
    guarded: bool,
    /// The seed of the checksums, from the last `#K:open`.
    seed: u64,
    /// What the groups behind the last `#K:open` say, and what the present one says.
    section: Section,
    says: Section,
    /// Up to this position of a guarded part the requests count without a mark, and then the file is cut off for the reason.
    plain: Option<(u64, Option<String>)>,
    in_transaction: bool,
    /// Requests that may be executed, in the buffer.
    runs: Vec<Range<usize>>,
    /// The request or comment that ended last was a request, so that the next one continues its run.
    continues: bool,
    cut: Option<Cut>,
    ended: bool,
}

impl<'s> Scanner<'s> {
    /// Reads a file of `len` bytes from position `skip` on. `boot` is the present boot of the system.
    pub(crate) fn new(
        source: &'s dyn Source,
        len: u64,
        skip: u64,
        boot: Option<u128>,
    ) -> io::Result<Self> {
        Ok(Self {
            source,
            len,
            boot,
            window: Window::open(source, len, skip)?,
            group: 0,
            is_long: false,
            guarded: false,
            seed: 0,
            section: Section::default(),
            says: Section::default(),
            plain: None,
            in_transaction: false,
            runs: Vec::new(),
            continues: false,
            cut: None,
            ended: false,
        })
    }

    /// Position in the file up to which everything has been handed out.
    pub(crate) fn position(&self) -> u64 {
        self.window.start + self.group as u64
    }

    /// The seed of the checksums, 0 if the file has none.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The end that is cut off, known when [`Scanner::next_runs`] has returned nothing.
    pub(crate) fn cut(&self) -> Option<&Cut> {
        self.cut.as_ref()
    }

    /// The bytes of a run, and its position in the file.
    pub(crate) fn run(&self, run: &Range<usize>) -> (&[u8], u64) {
        let position = self.window.start + run.start as u64;
        (&self.window.buffer[run.clone()], position)
    }

    /// Reads some groups, or some requests. Returns the runs of requests to execute, none at the end.
    pub(crate) fn next_runs(&mut self) -> Result<Option<Vec<Range<usize>>>, ScanError> {
        // What was handed out is no longer needed.
        self.window.forget(self.group);
        self.group = 0;
        self.runs.clear();
        self.continues = false;
        loop {
            self.leave_plain();
            if self.ended {
                break;
            }
            match self.window.element() {
                Element::Request { len, transaction } => {
                    if self.request(len, transaction) {
                        return Ok(Some(std::mem::take(&mut self.runs)));
                    }
                }
                Element::Comment(len) => {
                    if self.comment(len)? {
                        return Ok(Some(std::mem::take(&mut self.runs)));
                    }
                }
                Element::More => self.more()?,
                Element::Endless => self.endless()?,
                Element::Bad(flaw) => self.bad(flaw.reason)?,
            }
        }
        // What is before the end, or before what is cut off.
        Ok((!self.runs.is_empty()).then(|| std::mem::take(&mut self.runs)))
    }

    /// Whether requests count only with the mark of their group.
    fn needs_marks(&self) -> bool {
        self.guarded && self.plain.is_none()
    }

    /// Takes a request; returns whether there is something to hand out.
    fn request(&mut self, len: usize, transaction: Option<Edge>) -> bool {
        let (at, end) = (self.window.at, self.window.at + len);
        match self.runs.last_mut() {
            Some(run) if self.continues => run.end = end,
            _ => self.runs.push(at..end),
        }
        self.continues = true;
        self.window.at = end;
        if self.needs_marks() {
            return false;
        }
        match transaction {
            Some(Edge::Begin) => self.in_transaction = true,
            Some(Edge::End) => self.in_transaction = false,
            None => {}
        }
        if !self.in_transaction {
            self.group = end;
        }
        !self.in_transaction && self.runs[0].start + RUN_BYTES < end
    }

    /// Takes a comment; returns whether there is something to hand out.
    fn comment(&mut self, len: usize) -> Result<bool, ScanError> {
        let (at, end) = (self.window.at, self.window.at + len);
        let line = Line::parse(&self.window.buffer[at..end]);
        self.continues = false;
        if !self.needs_marks() {
            return self.plain_comment(line, end);
        }
        match line {
            Line::Group { len, crc } => {
                let group = &self.window.buffer[self.group..at];
                if group.len() as u64 != len || crc64::update(self.seed, group) != crc {
                    let reason = format!(
                        "the mark of a group of {len} bytes does not fit the {} bytes before it",
                        group.len()
                    );
                    self.bad(reason)?;
                    return Ok(false);
                }
                self.group = end;
                self.is_long = false;
                self.section.boot = self.says.boot.or(self.section.boot);
                self.section.fsync = self.says.fsync.or(self.section.fsync);
                self.section.fitted = true;
                self.says = Section::default();
            }
            Line::Open(seed) if at == self.group && (self.seed == 0 || seed == self.seed) => {
                self.group = end;
                self.open(line);
            }
            Line::Close if at == self.group => {
                self.group = end;
                self.open(line);
            }
            Line::Open(_) | Line::Close => {
                self.bad("a group has no mark at its end".into())?;
                return Ok(false);
            }
            Line::Boot(boot) => self.says.boot = Some(boot),
            Line::Fsync(fsync) => self.says.fsync = Some(fsync),
            Line::Sync(_) | Line::Comment => {}
        }
        self.window.at = end;
        let first = self.runs.first().map_or(end, |run| run.start);
        Ok(self.group == end && first + RUN_BYTES < end)
    }

    /// Takes a comment among requests that count without marks.
    fn plain_comment(&mut self, line: Line, end: usize) -> Result<bool, ScanError> {
        if self.in_transaction {
            if matches!(line, Line::Open(_)) {
                // A server that opens the file cuts such a transaction off.
                let reason = "a transaction that does not end, and a server that writes behind it";
                self.bad(reason.into())?;
                return Ok(false);
            }
            self.window.at = end;
            return Ok(false);
        }
        if let Line::Open(seed) = line
            && self.seed != 0
            && seed != self.seed
        {
            self.bad("a server opens the file with another seed of its checksums".into())?;
            return Ok(false);
        }
        self.window.at = end;
        self.group = end;
        if self.plain.is_none() {
            self.open(line);
        }
        Ok(self.guarded && self.plain.is_none() && !self.runs.is_empty())
    }

    /// What follows this line, which is not in a group, is guarded if the line opens the file.
    fn open(&mut self, line: Line) {
        self.guarded = false;
        (self.section, self.says) = (Section::default(), Section::default());
        if let Line::Open(seed) = line {
            (self.guarded, self.seed) = (true, seed);
        }
    }

    /// Ends the part of the file in which requests count without a mark.
    fn leave_plain(&mut self) {
        let is_there = |(until, _): &mut (u64, Option<String>)| *until == self.window.position();
        let Some((until, cut)) = self.plain.take_if(is_there) else {
            return;
        };
        if let Some(reason) = cut {
            self.ended = true;
            self.cut_off(reason);
        } else {
            self.ended = until == self.len;
        }
    }

    /// The end of the file.
    fn end(&mut self) -> Result<(), ScanError> {
        if self.group == self.window.buffer.len() {
            self.ended = true;
            return Ok(());
        }
        if self.guarded {
            return self.bad(NO_MARK.into());
        }
        self.ended = true;
        let reason = if self.in_transaction && self.window.at == self.window.buffer.len() {
            "a transaction has no EXEC"
        } else {
            NOT_COMPLETE
        };
        self.cut_off(reason.into());
        Ok(())
    }

    /// The next request is longer than the file. What the file has of it is not read into memory.
    fn endless(&mut self) -> Result<(), ScanError> {
        if self.guarded {
            return self.bad(NO_MARK.into());
        }
        self.ended = true;
        self.cut_off(NOT_COMPLETE.into());
        Ok(())
    }

    /// The next element is not in the buffer.
    fn more(&mut self) -> Result<(), ScanError> {
        if self.is_too_long()? {
            return self.bad(NO_MARK.into());
        }
        match self.window.fill()? {
            true => Ok(()),
            false => self.end(),
        }
    }

    /// Whether the group is long and has no mark.
    fn is_too_long(&mut self) -> Result<bool, ScanError> {
        let len = self.window.buffer.len() - self.group;
        if !self.needs_marks() || self.is_long || len < LONG_GROUP {
            return Ok(false);
        }
        let walk = tail::walk(self.source, self.len, self.position(), self.seed)?;
        self.is_long = matches!(walk, Walk::Mark);
        Ok(!self.is_long)
    }

    /// The next bytes are wrong: what is no whole group is loaded or cut off, or the file is damaged.
    fn bad(&mut self, reason: String) -> Result<(), ScanError> {
        if !self.guarded {
            let at = self.window.position();
            if !self.is_lost_open()? {
                return Err(ScanError::Damaged { at, reason });
            }
            self.ended = true;
            self.cut_off("what a server wrote when it opened the file is zeros".into());
            return Ok(());
        }
        let at = self.position();
        if self.plain.is_some() {
            // It was read before: the file has changed since then.
            return Err(ScanError::Damaged { at, reason });
        }
        let tail = Tail {
            source: self.source,
            len: self.len,
            at,
            seed: self.seed,
            section: self.section,
            boot: self.boot,
            reason,
        };
        match tail.classify()? {
            Outcome::Damaged { at, reason } => Err(ScanError::Damaged { at, reason }),
            Outcome::Cut(reason) => {
                self.ended = true;
                self.cut_off(reason);
                Ok(())
            }
            Outcome::Load { until, cut } => {
                self.drop_group();
                self.window.at = self.group;
                self.continues = false;
                self.in_transaction = false;
                self.says = Section::default();
                self.plain = Some((until, cut));
                Ok(())
            }
        }
    }

    /// Whether the rest of the file is what a power failure left of a `#K:open` that was not synced: the file has its
    /// length, and zeros. Nothing was acknowledged behind it.
    fn is_lost_open(&mut self) -> Result<bool, ScanError> {
        let window = &mut self.window;
        while window.buffer.len() - window.at <= mark::OPEN_BYTES && window.fill()? {}
        let rest = &window.buffer[window.at..];
        let Some(written) = rest.iter().position(|&byte| byte == 0) else {
            return Ok(false);
        };
        let (head, lost) = rest.split_at(written);
        if !mark::is_start_of_open(head) {
            return Ok(false);
        }
        if rest.len() <= mark::OPEN_BYTES {
            return Ok(true);
        }
        let is_written = |bytes: &[u8]| bytes.iter().any(|&byte| byte != 0);
        Ok(!is_written(lost) && !window.read_rest(is_written)?)
    }

    fn cut_off(&mut self, reason: String) {
        let at = self.position();
        let lost = self.len.saturating_sub(at);
        self.cut = Some(Cut { at, lost, reason });
        self.drop_group();
    }

    /// Runs of the present group do not count.
    fn drop_group(&mut self) {
        let group = self.group;
        self.runs.retain(|run| run.start < group);
        if let Some(run) = self.runs.last_mut() {
            run.end = run.end.min(group);
        }
    }
}

#[cfg(test)]
mod tests;
