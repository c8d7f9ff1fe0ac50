//! The writer a command is handed for its reply.
//!
//! Bytes go straight into the session's output buffer; no tree of values is ever built. The same
//! writer serves a socket, EXEC (the replies land between the array's header and its end) and a
//! script. The writer knows its protocol version, and nothing about sockets.

use crate::engine::output::{CHUNK_BYTES, Outputs, SCRIPT_SLOT};
use kumi_resp::{Protocol, SharedBytes, encode};
use std::borrow::Cow;

/// More than any header and line end take.
const HEADER_BYTES: usize = 64;
/// A bulk string up to this long lies in one chunk.
const ONE_CHUNK_BYTES: usize = 1024;
/// Values from this length on go into the output by reference.
const SHARE_BYTES: usize = 32 * 1024;

/// Where a collection's header goes once its length is known.
#[derive(Debug)]
#[must_use = "a deferred collection has no header until it is finished"]
pub(crate) struct Deferred(usize);

/// Appends the reply of a running command to its session's output.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    outputs: &'a mut Outputs,
    slot: usize,
    protocol: Protocol,
}

impl<'a> Reply<'a> {
    /// Writes behind what the running session in `slot` has waiting.
    pub(crate) fn new(outputs: &'a mut Outputs, slot: usize, protocol: Protocol) -> Self {
        Self {
            outputs,
            slot,
            protocol,
        }
    }

    /// The output of all sessions, for what a command sends to others.
    pub(crate) fn outputs(&mut self) -> &mut Outputs {
        self.outputs
    }

    pub(crate) fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// Sends what follows to the script that runs, in its protocol. Returns what
    /// [`Reply::redirect_to_session`] takes.
    pub(crate) fn redirect_to_script(&mut self, protocol: Protocol) -> (usize, Protocol) {
        self.outputs.clear_script();
        let session = (self.slot, self.protocol);
        (self.slot, self.protocol) = (SCRIPT_SLOT, protocol);
        session
    }

    /// Sends what follows to the session again.
    pub(crate) fn redirect_to_session(&mut self, session: (usize, Protocol)) {
        (self.slot, self.protocol) = session;
    }

    /// How many bytes were written since [`Reply::redirect_to_script`].
    pub(crate) fn script_reply_bytes(&self) -> usize {
        self.outputs.script_reply_bytes()
    }

    /// What was written since [`Reply::redirect_to_script`].
    pub(crate) fn script_reply(&self) -> Cow<'_, [u8]> {
        self.outputs.script_reply()
    }

    pub(crate) fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// The position behind the last byte; a mark for [`Reply::cut_back`].
    #[inline]
    pub(crate) fn len(&mut self) -> usize {
        self.outputs.running(self.slot).0.len()
    }

    /// Whether the reply is larger than the output limit, so that nothing more of it is kept. A command whose reply has no
    /// other bound ends it then.
    pub(crate) fn is_over_limit(&mut self) -> bool {
        self.outputs.running(self.slot).0.is_over_limit()
    }

    /// Forgets everything written after `mark`.
    pub(crate) fn cut_back(&mut self, mark: usize) {
        let (buffer, pool) = self.outputs.running(self.slot);
        buffer.cut_back(mark, pool);
    }

    /// Keeps nothing of what is written from here on: CLIENT REPLY OFF and SKIP.
    pub(crate) fn discard(&mut self) {
        self.outputs.running(self.slot).0.discard_from_here();
    }

    /// Keeps what is written from here on: CLIENT REPLY ON.
    pub(crate) fn keep(&mut self) {
        let (buffer, pool) = self.outputs.running(self.slot);
        buffer.end_discard(pool);
    }

    /// A chunk with room for `need` bytes.
    #[inline]
    fn room(&mut self, need: usize) -> &mut Vec<u8> {
        let (buffer, pool) = self.outputs.running(self.slot);
        buffer.room(need, pool)
    }

    #[inline]
    pub(crate) fn ok(&mut self) {
        encode::ok(self.room(HEADER_BYTES));
    }

    pub(crate) fn simple(&mut self, text: &str) {
        self.text(text.len(), |out| encode::simple(out, text));
    }

    /// A status of any bytes; line breaks become spaces.
    pub(crate) fn simple_bytes(&mut self, text: &[u8]) {
        self.text(text.len(), |out| encode::simple(out, text));
    }

    pub(crate) fn error(&mut self, text: &[u8]) {
        self.text(text.len(), |out| encode::error(out, text));
    }

    #[inline]
    pub(crate) fn integer(&mut self, value: i64) {
        encode::integer(self.room(HEADER_BYTES), value);
    }

    /// An integer reply for a count.
    #[inline]
    pub(crate) fn count(&mut self, value: usize) {
        self.integer(i64::try_from(value).unwrap_or(i64::MAX));
    }

    #[inline]
    pub(crate) fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        if bytes.len() <= ONE_CHUNK_BYTES {
            encode::bulk(self.room(bytes.len() + HEADER_BYTES), bytes);
        } else {
            self.long_bulk(bytes);
        }
    }

    fn long_bulk(&mut self, bytes: &[u8]) {
        encode::bulk_header(self.room(HEADER_BYTES), bytes.len());
        self.encoded(bytes);
        self.encoded(b"\r\n");
    }

    /// A bulk string of a value that others hold too: long ones are not copied.
    pub(crate) fn bulk_shared(&mut self, bytes: &SharedBytes) {
        if bytes.len() < SHARE_BYTES {
            return self.bulk(bytes);
        }
        encode::bulk_header(self.room(HEADER_BYTES), bytes.len());
        let (buffer, pool) = self.outputs.running(self.slot);
        buffer.append_shared(bytes, pool);
        self.encoded(b"\r\n");
    }

    /// A bulk string holding a decimal.
    #[inline]
    pub(crate) fn bulk_integer(&mut self, value: i64) {
        encode::bulk_integer(self.room(HEADER_BYTES), value);
    }

    #[inline]
    pub(crate) fn null(&mut self) {
        let protocol = self.protocol;
        encode::null(self.room(HEADER_BYTES), protocol);
    }

    pub(crate) fn null_array(&mut self) {
        let protocol = self.protocol;
        encode::null_array(self.room(HEADER_BYTES), protocol);
    }

    #[inline]
    pub(crate) fn array(&mut self, len: usize) {
        encode::array(self.room(HEADER_BYTES), len);
    }

    pub(crate) fn map(&mut self, len: usize) {
        let protocol = self.protocol;
        encode::map(self.room(HEADER_BYTES), protocol, len);
    }

    pub(crate) fn set(&mut self, len: usize) {
        let protocol = self.protocol;
        encode::set(self.room(HEADER_BYTES), protocol, len);
    }

    pub(crate) fn double(&mut self, value: f64) {
        let protocol = self.protocol;
        // A number near the ends of the range is written without an exponent.
        self.text(ONE_CHUNK_BYTES, |out| encode::double(out, protocol, value));
    }

    pub(crate) fn verbatim_text(&mut self, bytes: &[u8]) {
        self.verbatim(b"txt", bytes);
    }

    pub(crate) fn verbatim(&mut self, format: &[u8; 3], bytes: &[u8]) {
        let protocol = self.protocol;
        self.text(bytes.len(), |out| {
            encode::verbatim(out, protocol, format, bytes);
        });
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        let protocol = self.protocol;
        encode::boolean(self.room(HEADER_BYTES), protocol, value);
    }

    /// A number of any length; line breaks become spaces.
    pub(crate) fn big_number(&mut self, digits: &[u8]) {
        let line: Vec<u8> = digits
            .iter()
            .map(|&byte| if b"\r\n".contains(&byte) { b' ' } else { byte })
            .collect();
        match self.protocol {
            Protocol::Resp2 => self.bulk(&line),
            Protocol::Resp3 => {
                self.encoded(b"(");
                self.encoded(&line);
                self.encoded(b"\r\n");
            }
        }
    }

    /// Bytes that are encoded already.
    #[inline]
    pub(crate) fn encoded(&mut self, bytes: &[u8]) {
        let (buffer, pool) = self.outputs.running(self.slot);
        buffer.append(bytes, pool);
    }

    /// Something of about `len` bytes that `write` encodes in one piece.
    fn text(&mut self, len: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if len <= CHUNK_BYTES / 4 {
            write(self.room(len + HEADER_BYTES));
        } else {
            let mut text = Vec::with_capacity(len + HEADER_BYTES);
            write(&mut text);
            self.encoded(&text);
        }
    }

    /// Starts a collection whose length is known only at its end.
    pub(crate) fn defer(&mut self) -> Deferred {
        Deferred(self.len())
    }

    /// Puts the header of an array where it was deferred.
    pub(crate) fn finish_array(&mut self, deferred: Deferred, len: usize) {
        self.finish(deferred, |header| encode::array(header, len));
    }

    /// Puts the header of a map where it was deferred.
    pub(crate) fn finish_map(&mut self, deferred: Deferred, len: usize) {
        let protocol = self.protocol;
        self.finish(deferred, |header| encode::map(header, protocol, len));
    }

    fn finish(&mut self, deferred: Deferred, write: impl FnOnce(&mut Vec<u8>)) {
        let mut header = Vec::with_capacity(32);
        write(&mut header);
        let (buffer, pool) = self.outputs.running(self.slot);
        buffer.insert(deferred.0, &header, pool);
    }
}
