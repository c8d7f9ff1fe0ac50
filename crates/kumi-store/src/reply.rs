//! The writer a command is handed for its answer.
//!
//! Bytes go straight into the session's output buffer; no tree of values is ever built. The same
//! writer serves a socket, EXEC (the replies land between the array's header and its end) and,
//! later, a script. A writer knows its protocol version and nothing about sessions or sockets.

use kumi_resp::{Protocol, encode};

/// Where a collection's header goes once its length is known.
#[derive(Debug)]
#[must_use = "a deferred collection has no header until it is finished"]
pub(crate) struct Deferred(usize);

/// An answer in the making.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    out: Vec<u8>,
    protocol: Protocol,
}

impl Reply {
    /// Continues `out`, which may already hold earlier answers.
    pub(crate) fn new(out: Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    pub(crate) fn into_inner(self) -> Vec<u8> {
        self.out
    }

    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    pub(crate) fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// How many bytes are written; a mark for [`Reply::cut_back`].
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// Forgets everything written after `mark`.
    pub(crate) fn cut_back(&mut self, mark: usize) {
        self.out.truncate(mark);
    }

    pub(crate) fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    pub(crate) fn simple(&mut self, text: &str) {
        encode::simple(&mut self.out, text);
    }

    pub(crate) fn error(&mut self, text: &[u8]) {
        encode::error(&mut self.out, text);
    }

    pub(crate) fn integer(&mut self, value: i64) {
        encode::integer(&mut self.out, value);
    }

    /// An integer reply for a count.
    pub(crate) fn count(&mut self, value: usize) {
        encode::integer(&mut self.out, i64::try_from(value).unwrap_or(i64::MAX));
    }

    pub(crate) fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        encode::bulk(&mut self.out, bytes.as_ref());
    }

    /// A bulk string holding a decimal.
    pub(crate) fn bulk_integer(&mut self, value: i64) {
        encode::bulk_integer(&mut self.out, value);
    }

    pub(crate) fn null(&mut self) {
        encode::null(&mut self.out, self.protocol);
    }

    pub(crate) fn null_array(&mut self) {
        encode::null_array(&mut self.out, self.protocol);
    }

    pub(crate) fn array(&mut self, len: usize) {
        encode::array(&mut self.out, len);
    }

    pub(crate) fn map(&mut self, len: usize) {
        encode::map(&mut self.out, self.protocol, len);
    }

    pub(crate) fn set(&mut self, len: usize) {
        encode::set(&mut self.out, self.protocol, len);
    }

    pub(crate) fn double(&mut self, value: f64) {
        encode::double(&mut self.out, self.protocol, value);
    }

    pub(crate) fn verbatim_text(&mut self, bytes: &[u8]) {
        encode::verbatim(&mut self.out, self.protocol, b"txt", bytes);
    }

    /// Bytes that are encoded already.
    pub(crate) fn encoded(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Starts a collection whose length is known only at its end.
    pub(crate) fn defer(&mut self) -> Deferred {
        Deferred(self.out.len())
    }

    /// Puts the header of an array where it was deferred. That moves what follows by a few bytes:
    /// cheaper than a list of buffers for every reply that does not defer.
    pub(crate) fn finish_array(&mut self, deferred: Deferred, len: usize) {
        let mut header = Vec::with_capacity(16);
        encode::array(&mut header, len);
        self.out.splice(deferred.0..deferred.0, header);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deferred_header_lands_before_its_elements() {
        let mut reply = Reply::default();
        reply.ok();
        let deferred = reply.defer();
        reply.integer(1);
        reply.integer(2);
        reply.finish_array(deferred, 2);
        assert_eq!(reply.into_inner(), b"+OK\r\n*2\r\n:1\r\n:2\r\n");
    }

    #[test]
    fn cut_back_keeps_earlier_answers() {
        let mut reply = Reply::default();
        reply.ok();
        let mark = reply.len();
        reply.array(3);
        reply.cut_back(mark);
        assert_eq!(reply.into_inner(), b"+OK\r\n");
    }
}
