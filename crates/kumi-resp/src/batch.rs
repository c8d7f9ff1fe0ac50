//! A run of whole requests, decoded before the first of them is executed.
//!
//! A pipelining client sends many requests in one packet. Decoding them all first lets a server
//! look up their keys together, so that the cache misses overlap. Only the plain form is taken
//! here: a complete multibulk request of at most [`MAX_ARGS`] arguments, none of them large. For
//! anything else (an inline request, a request that has not arrived whole, an error) the run ends,
//! and [`Decoder`](crate::Decoder) continues from the same byte.

use crate::args::{Args, Span};
use crate::decode::{Limits, short_bulk_header};
use crate::large::LARGE_ARG_BYTES;

/// The most arguments of a request in a batch.
const MAX_ARGS: usize = 99;

/// The place of one request.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Its spans end here; they begin where those of the request before end.
    spans_end: usize,
    /// The position of the first byte after the request.
    end: usize,
}

/// Requests of one buffer, by position. It keeps no bytes: the same buffer is handed in again to
/// read the arguments.
///
/// ```
/// use kumi_resp::{Batch, Limits};
///
/// let buffer = b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n*1\r\n$4\r\nPI";
/// let (mut batch, mut at) = (Batch::default(), 0);
/// while let Some(end) = batch.decode(buffer, at, &Limits::default(), usize::MAX) {
///     at = end;
/// }
/// assert_eq!(batch.len(), 2);
/// assert_eq!(&batch.args(buffer, 1)[1], b"hi");
/// assert_eq!(&buffer[batch.end(1)..], b"*1\r\n$4\r\nPI");
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    spans: Vec<Span>,
    requests: Vec<Request>,
}

impl Batch {
    /// How many requests there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Forgets all requests; the memory stays for the next run.
    #[inline]
    pub fn clear(&mut self) {
        self.spans.clear();
        self.requests.clear();
    }

    /// Adds the request that begins at position `at` of the buffer and returns the position after
    /// it. `None` if there is no plain request of at most `max_len` bytes; nothing is added then.
    #[inline]
    pub fn decode(
        &mut self,
        buffer: &[u8],
        at: usize,
        limits: &Limits,
        max_len: usize,
    ) -> Option<usize> {
        let first_span = self.spans.len();
        let end = self
            .decode_spans(buffer, at, limits)
            .filter(|end| end - at <= max_len);
        match end {
            Some(end) => self.requests.push(Request {
                spans_end: self.spans.len(),
                end,
            }),
            None => self.spans.truncate(first_span),
        }
        end
    }

    #[inline]
    fn decode_spans(&mut self, buffer: &[u8], at: usize, limits: &Limits) -> Option<usize> {
        let (count, header_len) = short_count(buffer.get(at..)?)?;
        let max_len = limits.max_bulk_len_now().min(LARGE_ARG_BYTES - 1);
        if count > limits.max_args_now() {
            return None;
        }
        let mut position = at + header_len;
        for _ in 0..count {
            let (len, header_len) = short_bulk_header(buffer.get(position..)?)?;
            let start = position + header_len;
            let end = start + len;
            position = end + 2;
            if len > max_len || position > buffer.len() {
                return None;
            }
            self.spans.push(Span { start, end });
        }
        Some(position)
    }

    /// The arguments of a request. `buffer` is the one the request was decoded from.
    ///
    /// # Panics
    /// When there is no such request.
    #[inline]
    #[must_use]
    pub fn args<'a>(&'a self, buffer: &'a [u8], index: usize) -> Args<'a> {
        let first = match index {
            0 => 0,
            _ => self.requests[index - 1].spans_end,
        };
        let spans = &self.spans[first..self.requests[index].spans_end];
        Args::new(buffer, spans, &[])
    }

    /// The position of the first byte after a request.
    ///
    /// # Panics
    /// When there is no such request.
    #[inline]
    #[must_use]
    pub fn end(&self, index: usize) -> usize {
        self.requests[index].end
    }
}

/// Reads `*<count>\r\n` of one or two digits at the start of `rest`: the count, and how long the
/// line is.
#[inline]
fn short_count(rest: &[u8]) -> Option<(usize, usize)> {
    const { assert!(MAX_ARGS == 99, "two digits") };
    match *rest.first_chunk()? {
        [b'*', one @ b'1'..=b'9', b'\r', _, _] => Some((usize::from(one - b'0'), 4)),
        [b'*', ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r', _] => {
            Some((usize::from(ten - b'0') * 10 + usize::from(one - b'0'), 5))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decoder, Step};
    use proptest::prelude::*;

    fn words(batch: &Batch, buffer: &[u8]) -> Vec<Vec<Vec<u8>>> {
        let args = |index| {
            batch
                .args(buffer, index)
                .iter()
                .map(<[u8]>::to_vec)
                .collect()
        };
        (0..batch.len()).map(args).collect()
    }

    #[test]
    fn requests_that_are_not_plain_end_the_run() {
        let limits = Limits::default();
        for rest in [
            "PING\r\n",
            "*0\r\n",
            "*-1\r\n",
            "*1\r\n$-1\r\n",
            "*2\r\n$4\r\nPING\r\n",
            "*1\r\n$4\r\nPING",
            "*100\r\n$4\r\n",
            "*1\r\n$04\r\nPING\r\n",
        ] {
            let buffer = format!("*1\r\n$4\r\nPING\r\n{rest}");
            let mut batch = Batch::default();
            let end = batch.decode(buffer.as_bytes(), 0, &limits, usize::MAX);
            assert_eq!(end, Some(14));
            assert_eq!(
                batch.decode(buffer.as_bytes(), 14, &limits, usize::MAX),
                None,
                "{rest:?}"
            );
            assert_eq!(words(&batch, buffer.as_bytes()), [[b"PING".to_vec()]]);
        }
    }

    #[test]
    fn limits_before_authentication_end_the_run() {
        let limits = Limits {
            authenticated: false,
            ..Limits::default()
        };
        let many = format!("*11\r\n{}", "$1\r\nx\r\n".repeat(11));
        assert_eq!(
            Batch::default().decode(many.as_bytes(), 0, &limits, usize::MAX),
            None
        );
        let long = format!("*1\r\n$20000\r\n{}\r\n", "x".repeat(20_000));
        assert_eq!(
            Batch::default().decode(long.as_bytes(), 0, &limits, usize::MAX),
            None
        );
    }

    proptest! {
        #[test]
        fn a_batch_reads_what_the_decoder_reads(
            requests in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 1..20),
                0..20,
            ),
            cut in 0usize..64,
        ) {
            let mut buffer = Vec::new();
            for request in &requests {
                crate::encode::array(&mut buffer, request.len());
                for arg in request {
                    crate::encode::bulk(&mut buffer, arg);
                }
            }
            buffer.truncate(buffer.len().saturating_sub(cut));
            let (mut batch, mut at) = (Batch::default(), 0);
            while let Some(end) = batch.decode(&buffer, at, &Limits::default(), usize::MAX) {
                at = end;
            }
            let (mut decoder, mut rest, mut expected) = (Decoder::new(), &buffer[..], Vec::new());
            while let Ok(Step::Request { args, consumed }) = decoder.decode(rest, &Limits::default()) {
                expected.push(args.iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
                rest = &rest[consumed..];
            }
            prop_assert_eq!(words(&batch, &buffer), expected);
            prop_assert_eq!(buffer.len() - at, rest.len());
        }
    }
}
