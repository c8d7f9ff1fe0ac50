//! The incremental decoder of requests, over a buffer that the caller owns and fills.
//!
//! ```text
//! *3\r\n  $3\r\n SET \r\n  $3\r\n key \r\n  $5\r\n value \r\n      a multibulk request
//! SET key value\r\n                                                an inline request
//! ```
//!
//! The decoder keeps positions, and no bytes but those of large arguments: its caller owns the
//! buffer, drops what was consumed, and passes it again with more bytes at its end. Bytes that were
//! parsed once are not parsed again, so the cost of a request does not depend on the number of reads
//! it arrives in.
//!
//! It is as lenient as Redis where Redis is lenient (the byte after a `\r`, and the two after an
//! argument, may be anything) and as strict where it is strict (lengths have no sign, blanks or
//! leading zeros). A claimed length allocates nothing: memory grows with the bytes received.

use crate::ProtocolError;
use crate::args::{Args, Span};
use crate::inline::{self, Words};
use crate::large::{LARGE_ARG_BYTES, Large};
use crate::number;
use crate::shared::SharedBytes;

/// The longest line with a length, in bytes. Redis closes the connection at the same limit.
const MAX_LENGTH_LINE: usize = 64 * 1024;

/// The most arguments of a request before authentication.
const MAX_UNAUTHENTICATED_ARGS: usize = 10;

/// The longest argument before authentication, in bytes.
const MAX_UNAUTHENTICATED_BULK: usize = 16 * 1024;

/// The most arguments a count of one digit can announce.
const FEW_ARGS: usize = 9;

/// The spans kept allocated between requests, so that one huge request does not hold its memory
/// for as long as the connection lasts.
const KEEP_SPANS: usize = 1024;

/// The same for the bytes of unquoted inline words.
const KEEP_SCRATCH: usize = 16 * 1024;

/// Limits for decoding requests. The default is Redis's.
///
/// ```
/// use kumi_resp::{Decoder, Limits, ProtocolError};
///
/// let limits = Limits { max_bulk_len: 1024, ..Limits::default() };
/// let error = Decoder::new().decode(b"*1\r\n$1025\r\n", &limits).unwrap_err();
/// assert_eq!(error, ProtocolError::InvalidBulkLength);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest argument, in bytes (`proto-max-bulk-len`).
    pub max_bulk_len: usize,
    /// The most arguments a request may claim.
    pub max_args: usize,
    /// The longest inline request, in bytes without its line feed.
    pub max_inline_len: usize,
    /// Whether the client has authenticated. Before that, a request has at most 10 arguments of 16 KiB.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_bulk_len: 512 * 1024 * 1024,
            max_args: i32::MAX as usize,
            max_inline_len: 64 * 1024,
            authenticated: true,
        }
    }
}

impl Limits {
    /// The longest argument the client may send now, in bytes.
    #[inline]
    pub(crate) fn max_bulk_len_now(&self) -> usize {
        if self.authenticated {
            self.max_bulk_len
        } else {
            self.max_bulk_len.min(MAX_UNAUTHENTICATED_BULK)
        }
    }

    /// The most arguments the client may send now.
    #[inline]
    pub(crate) fn max_args_now(&self) -> usize {
        if self.authenticated {
            self.max_args
        } else {
            self.max_args.min(MAX_UNAUTHENTICATED_ARGS)
        }
    }
}

/// The result of one call of [`Decoder::decode`].
///
/// ```
/// use kumi_resp::{Decoder, Limits, Step};
///
/// let mut decoder = Decoder::new();
/// let step = decoder.decode(b"*1\r\n$100\r\nabc", &Limits::default())?;
/// assert_eq!(step, Step::Incomplete { consumed: 0, need: 99 });
/// # Ok::<(), kumi_resp::ProtocolError>(())
/// ```
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A complete request.
    Request {
        /// Its arguments, at least one.
        args: Args<'a>,
        /// How many bytes it took from the start of the buffer, empty requests before it
        /// included. The next call's buffer starts after them.
        consumed: usize,
    },
    /// The request is not complete in the buffer.
    Incomplete {
        /// Bytes of empty requests at the start of the buffer. They must be dropped before the
        /// next call.
        consumed: usize,
        /// The least number of bytes that are missing: 1 when unknown, else the rest of an argument
        /// whose length is known. The client chose this number, so a caller must bound what it
        /// reserves at once.
        need: usize,
    },
}

/// The decoder of one connection, with the state of its incomplete request.
///
/// Call [`decode`](Self::decode) in a loop: after a request with the bytes that follow it, after
/// [`Step::Incomplete`] with the same bytes and more at their end.
///
/// ```
/// use kumi_resp::{Decoder, Limits, Step};
///
/// let limits = Limits::default();
/// let mut decoder = Decoder::new();
/// let mut buf: &[u8] = b"PING\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1\r\n$4\r\nPI";
/// let mut names = Vec::new();
/// while let Step::Request { args, consumed } = decoder.decode(buf, &limits)? {
///     names.push(args[0].to_vec());
///     buf = &buf[consumed..];
/// }
/// assert_eq!(names, [b"PING".to_vec(), b"GET".to_vec()]);
/// assert_eq!(buf, b"*1\r\n$4\r\nPI");
/// # Ok::<(), kumi_resp::ProtocolError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    /// The arguments found so far. All positions count from the buffer's first byte.
    spans: Vec<Span>,
    /// The arguments of a complete request of at most this many. A fixed array has no capacity checks.
    few_spans: [Span; FEW_ARGS],
    /// Inline words with their quotes resolved; unused by everything else.
    scratch: Vec<u8>,
    /// The position of the line or argument that is decoded next.
    pos: usize,
    /// The line at `pos` has no end before this position. Not before `pos` while a line is incomplete.
    scanned: usize,
    /// How many arguments are still to come; 0 between requests.
    args_left: usize,
    /// The length of the argument whose bytes begin at `pos`, when its line was read already.
    bulk_len: Option<usize>,
    /// The request's arguments from `LARGE_ARG_BYTES` on.
    large: Large,
}

/// What [`Decoder::advance`] found, without borrowing from the decoder.
enum Progress {
    Request { consumed: usize, words: Words },
    Incomplete { consumed: usize, need: usize },
}

impl Decoder {
    /// A decoder for a new connection. It allocates nothing before the first request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks for the next request in `buf`, which starts at the first byte not yet consumed.
    ///
    /// Empty requests (`*0`, `*-1`, blank lines) are skipped and counted as consumed. After an
    /// error the rest of the stream cannot be decoded; the decoder is in its initial state.
    #[inline]
    pub fn decode<'a>(
        &'a mut self,
        buf: &'a [u8],
        limits: &Limits,
    ) -> Result<Step<'a>, ProtocolError> {
        if let Some((count, consumed)) = self.whole_request(buf, limits) {
            let args = Args::new(buf, &self.few_spans[..count], &[]);
            return Ok(Step::Request { args, consumed });
        }
        match self.advance(buf, limits) {
            Ok(Progress::Request { consumed, words }) => {
                let bytes = match words {
                    Words::InPlace => buf,
                    Words::InScratch => &self.scratch,
                };
                let args = Args::new(bytes, &self.spans, self.large.done());
                Ok(Step::Request { args, consumed })
            }
            Ok(Progress::Incomplete { consumed, need }) => Ok(Step::Incomplete { consumed, need }),
            Err(error) => {
                self.reset();
                Err(error)
            }
        }
    }

    /// Whether no request is incomplete: the next byte is the first of a request.
    #[inline]
    pub fn is_between_requests(&self) -> bool {
        self.args_left == 0 && self.scanned == 0
    }

    /// Discards an incomplete request, so that the next call starts a new one.
    pub fn reset(&mut self) {
        self.begin(0);
        self.scanned = 0;
        self.args_left = 0;
        self.bulk_len = None;
    }

    /// The heap memory of the decoder that is in use, in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.scratch.capacity() + self.large.len()
    }

    /// The bytes of large arguments that have arrived. They are not in the caller's buffer.
    pub fn large_bytes(&self) -> usize {
        self.large.len()
    }

    /// How many bytes of a large argument that is arriving are still to come, and for how many of them there is room.
    pub fn large_missing(&self) -> (usize, usize) {
        match self.bulk_len {
            Some(len) if self.is_filling() => (self.large.missing(len), self.large.free()),
            _ => (0, 0),
        }
    }

    /// Whether the buffer ends inside of a large argument, so that the next bytes belong into
    /// [`Decoder::large_room`].
    pub fn is_filling(&self) -> bool {
        self.bulk_len
            .is_some_and(|len| len >= LARGE_ARG_BYTES && self.large.missing(len) > 0)
    }

    /// Where to append the next bytes of a large argument: as many as fit without growing, no
    /// more. Then call [`Decoder::settle`]. `None` when there is no large argument to fill, or no
    /// memory for it.
    pub fn large_room(&mut self) -> Option<&mut Vec<u8>> {
        if !self.is_filling() {
            return None;
        }
        let len = self.bulk_len?;
        self.large.room(len)
    }

    /// After [`Step::Incomplete`], and after filling [`Decoder::large_room`]: drops the bytes of a
    /// large argument from the buffer. `buf` is the buffer of the last call, its `consumed` bytes
    /// already dropped, and nothing appended.
    pub fn settle(&mut self, buf: &mut Vec<u8>) {
        if let Some(len) = self.bulk_len
            && len >= LARGE_ARG_BYTES
        {
            self.pos -= self.large.settle(buf, self.pos, len);
            self.scanned = self.scanned.min(self.pos);
        }
    }

    /// Whether the last request had large arguments.
    #[inline]
    pub fn has_large(&self) -> bool {
        !self.large.done().is_empty()
    }

    /// Takes the large arguments of the last request, which would otherwise be dropped with the
    /// next call.
    pub fn take_large(&mut self) -> Vec<SharedBytes> {
        self.large.take_done()
    }

    /// Sets the state to a request whose first byte is at `start`.
    fn begin(&mut self, start: usize) {
        self.spans.clear();
        if self.spans.capacity() > KEEP_SPANS {
            self.spans.shrink_to(KEEP_SPANS);
        }
        if self.scratch.capacity() > KEEP_SCRATCH {
            self.scratch.clear();
            self.scratch.shrink_to(KEEP_SCRATCH);
        }
        self.large.clear();
        self.pos = start;
    }

    /// The fast path: no request is incomplete, and one to nine arguments with plain lengths are all in
    /// the buffer. Returns their number and where the request ends. `None` means that
    /// [`Self::advance`] has to decode, which reads at most nine short lines a second time.
    #[inline]
    fn whole_request(&mut self, buf: &[u8], limits: &Limits) -> Option<(usize, usize)> {
        let is_ready = self.is_between_requests() && self.large.done().is_empty();
        if !is_ready || self.spans.capacity() > KEEP_SPANS {
            return None;
        }
        let [b'*', count @ b'1'..=b'9', b'\r', _] = *buf.first_chunk()? else {
            return None;
        };
        let count = usize::from(count - b'0');
        let max_len = limits.max_bulk_len_now().min(LARGE_ARG_BYTES - 1);
        if count > limits.max_args {
            return None;
        }
        let mut pos = 4;
        for span in self.few_spans.get_mut(..count)? {
            let (len, header_len) = short_bulk_header(buf.get(pos..)?)?;
            let start = pos + header_len;
            let end = start + len;
            pos = end + 2;
            if len > max_len || pos > buf.len() {
                return None;
            }
            *span = Span { start, end };
        }
        Some((count, pos))
    }

    #[inline(never)]
    fn advance(&mut self, buf: &[u8], limits: &Limits) -> Result<Progress, ProtocolError> {
        let seen = self.pos.max(self.scanned);
        if buf.len() < seen {
            // The caller removed bytes it should have kept. Waiting for them keeps every position inside the buffer.
            let need = seen - buf.len();
            return Ok(Progress::Incomplete { consumed: 0, need });
        }
        // The start of this request: above 0 only after empty requests.
        let mut start = 0;
        if self.args_left == 0 {
            loop {
                self.begin(start);
                let next = match buf.get(start) {
                    None => None,
                    Some(b'*') => self.multibulk_header(buf, limits)?,
                    Some(_) => match self.inline_request(buf, limits)? {
                        Some((consumed, _)) if self.spans.is_empty() => Some(consumed),
                        Some((consumed, words)) => return Ok(self.request(consumed, words)),
                        None => None,
                    },
                };
                match next {
                    None => return Ok(self.incomplete(start, 1)),
                    Some(next) if self.args_left == 0 => start = next,
                    Some(next) => {
                        self.pos = next;
                        break;
                    }
                }
            }
        }
        match self.bulks(buf, limits)? {
            None => Ok(self.request(self.pos, Words::InPlace)),
            Some(need) => Ok(self.incomplete(start, need)),
        }
    }

    /// Ends a request: the next call's buffer starts after it.
    #[inline]
    fn request(&mut self, consumed: usize, words: Words) -> Progress {
        self.pos = 0;
        self.scanned = 0;
        Progress::Request { consumed, words }
    }

    /// Makes all positions relative to `consumed`, the start of the next call's buffer.
    #[cold]
    fn incomplete(&mut self, consumed: usize, need: usize) -> Progress {
        if consumed > 0 {
            self.pos -= consumed;
            self.scanned = self.scanned.saturating_sub(consumed);
            for span in self.spans.iter_mut().filter(|span| !span.is_large()) {
                span.start -= consumed;
                span.end -= consumed;
            }
        }
        Progress::Incomplete { consumed, need }
    }

    /// Reads `*<count>` at `self.pos` into `args_left` and returns where the arguments start;
    /// `None` when the line has not ended yet. A count below 1 leaves `args_left` at 0.
    #[inline]
    fn multibulk_header(
        &mut self,
        buf: &[u8],
        limits: &Limits,
    ) -> Result<Option<usize>, ProtocolError> {
        let (count, next) = match buf[self.pos..] {
            [_, digit @ b'1'..=b'9', b'\r', _, ..] => (usize::from(digit - b'0'), self.pos + 4),
            _ => {
                let Some((line, next)) =
                    self.length_line(buf, ProtocolError::MultibulkLineTooLong)?
                else {
                    return Ok(None);
                };
                let count =
                    number::parse(&line[1..]).ok_or(ProtocolError::InvalidMultibulkLength)?;
                (usize::try_from(count).unwrap_or(0), next)
            }
        };
        if count > limits.max_args {
            return Err(ProtocolError::InvalidMultibulkLength);
        }
        if count > MAX_UNAUTHENTICATED_ARGS && !limits.authenticated {
            return Err(ProtocolError::UnauthenticatedMultibulkLength);
        }
        self.args_left = count;
        Ok(Some(next))
    }

    /// Reads arguments until none is left (`None`) or the buffer ends (how many bytes are
    /// missing at least). Positions are kept in local variables: this loop takes most of the time of
    /// decoding.
    #[inline]
    fn bulks(&mut self, buf: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let mut pos = self.pos;
        let mut args_left = self.args_left;
        let mut bulk_len = self.bulk_len.take();
        let max_len = limits.max_bulk_len_now();
        let need = loop {
            let len = match bulk_len.take() {
                Some(len) => len,
                None => {
                    let (len, next) = match short_bulk_header(&buf[pos..]) {
                        Some((len, header_len)) => (len, pos + header_len),
                        None => {
                            self.pos = pos;
                            match self.any_bulk_header(buf)? {
                                Some(found) => found,
                                None => break Some(1),
                            }
                        }
                    };
                    if len > max_len {
                        return Err(refused_bulk(len, limits));
                    }
                    pos = next;
                    len
                }
            };
            let is_large = len >= LARGE_ARG_BYTES;
            let left = if is_large {
                pos += self.large.fill(&buf[pos..], len);
                self.large.missing(len)
            } else {
                len
            };
            let available = buf.len() - pos;
            let wanted = left.saturating_add(2);
            if available < wanted {
                self.bulk_len = Some(len);
                break Some(wanted - available);
            }
            let end = pos + left;
            self.spans.push(if is_large {
                self.large.finish()
            } else {
                Span { start: pos, end }
            });
            pos = end + 2;
            args_left -= 1;
            if args_left == 0 {
                break None;
            }
        };
        self.pos = pos;
        self.args_left = args_left;
        Ok(need)
    }

    /// Reads any line at `self.pos`: a length and where the argument begins;
    /// `None` when the line has not ended yet.
    #[inline(never)]
    fn any_bulk_header(&mut self, buf: &[u8]) -> Result<Option<(usize, usize)>, ProtocolError> {
        let Some((line, next)) = self.length_line(buf, ProtocolError::BulkLineTooLong)? else {
            return Ok(None);
        };
        // The line ends at the first `\r`, which may be in the place of the `$`.
        let (first, digits) = line.split_first().unwrap_or((&b'\r', &[]));
        if *first != b'$' {
            return Err(ProtocolError::ExpectedDollar(*first));
        }
        let len = number::parse(digits)
            .and_then(|len| usize::try_from(len).ok())
            .ok_or(ProtocolError::InvalidBulkLength)?;
        Ok(Some((len, next)))
    }

    /// The line at `self.pos` up to its `\r`, and where the next one starts. The byte after the
    /// `\r` must be there, but is not looked at.
    fn length_line<'b>(
        &mut self,
        buf: &'b [u8],
        too_long: ProtocolError,
    ) -> Result<Option<(&'b [u8], usize)>, ProtocolError> {
        let from = self.scanned.max(self.pos);
        let limit = self.pos.saturating_add(MAX_LENGTH_LINE);
        match memchr::memchr(b'\r', &buf[from..]) {
            Some(offset) => {
                let end = from + offset;
                if end > limit {
                    return Err(too_long);
                }
                self.scanned = end;
                if end + 1 == buf.len() {
                    return Ok(None);
                }
                Ok(Some((&buf[self.pos..end], end + 2)))
            }
            None if buf.len() > limit => Err(too_long),
            None => {
                self.scanned = buf.len();
                Ok(None)
            }
        }
    }

    /// Splits the line at `self.pos` into words and returns where it ends; `None` when it has
    /// not ended yet.
    fn inline_request(
        &mut self,
        buf: &[u8],
        limits: &Limits,
    ) -> Result<Option<(usize, Words)>, ProtocolError> {
        let from = self.scanned.max(self.pos);
        let limit = self.pos.saturating_add(limits.max_inline_len);
        // As in Redis, a line ends before the first NUL byte or not at all.
        let found = memchr::memchr2(b'\n', 0, &buf[from..]);
        let line_feed = from + found.unwrap_or(buf.len() - from);
        if buf.get(line_feed) != Some(&b'\n') {
            if buf.len() > limit {
                return Err(ProtocolError::InlineTooLong);
            }
            self.scanned = line_feed;
            return Ok(None);
        }
        if line_feed > limit {
            return Err(ProtocolError::InlineTooLong);
        }
        let has_return = line_feed > self.pos && buf[line_feed - 1] == b'\r';
        let end = line_feed - usize::from(has_return);
        let words = inline::split(buf, self.pos, end, &mut self.spans, &mut self.scratch)?;
        Ok(Some((line_feed + 1, words)))
    }
}

/// Reads a well-formed `$<length>\r\n` of at most 8 digits at the start of `rest`: the length, and
/// the length of the line. `None` means that the slow path has to decode the line.
#[inline]
pub(crate) fn short_bulk_header(rest: &[u8]) -> Option<(usize, usize)> {
    // The shortest argument, `$0\r\n\r\n`, is longer than this.
    let [kind, first, second, third, _] = *rest.first_chunk()?;
    let first = first.wrapping_sub(b'0');
    if kind != b'$' || first > 9 {
        return None;
    }
    if second == b'\r' {
        return Some((usize::from(first), 4));
    }
    let second = second.wrapping_sub(b'0');
    if second > 9 || first == 0 {
        return None;
    }
    let two_digits = usize::from(first) * 10 + usize::from(second);
    if third == b'\r' {
        return Some((two_digits, 5));
    }
    let mut len = two_digits;
    for (index, &byte) in rest.iter().enumerate().take(10).skip(3) {
        if byte == b'\r' {
            return (rest.len() >= index + 2).then_some((len, index + 2));
        }
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        len = len * 10 + usize::from(digit);
    }
    None
}

#[cold]
fn refused_bulk(len: usize, limits: &Limits) -> ProtocolError {
    if len > limits.max_bulk_len {
        ProtocolError::InvalidBulkLength
    } else {
        ProtocolError::UnauthenticatedBulkLength
    }
}
