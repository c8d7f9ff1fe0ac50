//! The output of a channel: messages from when they are encoded until they are written, and what they take of the
//! connection's budget.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use super::answers::error_message;
use super::budget::Budget;
use super::unwritten::Unwritten;
use super::{REFUSAL_ALLOWANCE, REFUSALS_OVER_BUDGET, methods};
use crate::error::{NetworkError, RemoteError};
use crate::payload::Payload;
use crate::wire::{
    Codec, ContentType, MessageType, Outgoing, Output, PacketFlags, PacketType, Prepared,
};

pub(super) struct Outbox {
    output: Output,
    /// What the output takes of the connection's budget.
    unwritten: Unwritten,
    /// Bytes of refusals that the writer has not taken.
    refusal_bytes: usize,
    /// When the writer last took output.
    last_taken: Instant,
    /// Queued bytes from which requests and events wait.
    limit_bytes: usize,
    codec: Arc<Codec>,
    /// An instant and the Unix time at that instant, in nanoseconds: packets carry Unix time.
    wall: (Instant, u64),
}

impl Outbox {
    pub(super) fn new(
        stream_id: u64,
        limit_bytes: usize,
        budget: &Arc<Budget>,
        codec: Arc<Codec>,
        wall: (Instant, u64),
    ) -> Self {
        Self {
            output: Output::new(stream_id),
            unwritten: Unwritten::new(budget),
            refusal_bytes: 0,
            last_taken: wall.0,
            limit_bytes,
            codec,
            wall,
        }
    }

    /// Drops what is queued, and numbers packets from 0 on for a new stream.
    pub(super) fn begin_stream(&mut self, stream_id: u64) {
        self.clear();
        self.output = Output::new(stream_id);
    }

    pub(super) fn push(
        &mut self,
        now: Instant,
        message: &Outgoing<'_>,
    ) -> Result<(), NetworkError> {
        let timestamp = self.timestamp_ns(now);
        let before = self.output.queued_bytes();
        self.output.push(message, timestamp, &self.codec)?;
        self.unwritten.queue(self.output.queued_bytes() - before);
        Ok(())
    }

    /// Queues a message that was prepared, `charged` bytes of which are charged elsewhere.
    pub(super) fn push_prepared(&mut self, now: Instant, prepared: Prepared, charged: usize) {
        let timestamp = self.timestamp_ns(now);
        let before = self.output.queued_bytes();
        self.output.push_prepared(prepared, timestamp);
        let bytes = self.output.queued_bytes() - before;
        self.unwritten.queue(bytes.saturating_sub(charged));
    }

    pub(super) fn push_control(&mut self, now: Instant, method: &str, payload: &Bytes) {
        let message = Outgoing {
            packet_type: PacketType::Control,
            flags: PacketFlags::NONE,
            msg_type: MessageType::Event,
            content_type: ContentType::Bytes,
            id: 0,
            method,
            payload,
            metadata: None,
        };
        // Control payloads are bounded far below a packet, so this cannot fail.
        let pushed = self.push(now, &message);
        debug_assert!(pushed.is_ok(), "a control message fits a packet");
    }

    pub(super) fn push_error(
        &mut self,
        now: Instant,
        id: u64,
        method: &str,
        error: &RemoteError,
    ) -> Result<(), NetworkError> {
        let payload = Payload::json(error)?;
        self.push(now, &error_message(id, method, &payload))
    }

    /// Queues the refusal of a request that did not run.
    ///
    /// # Errors
    /// When too many refusals wait: the peer sends requests and does not read.
    pub(super) fn push_refusal(
        &mut self,
        now: Instant,
        id: u64,
        error: &NetworkError,
    ) -> Result<(), NetworkError> {
        let before = self.output.queued_bytes();
        let is_full = before > self.limit_bytes + REFUSAL_ALLOWANCE;
        let is_over = self.refusal_bytes > REFUSALS_OVER_BUDGET && self.unwritten.is_over();
        if is_full || is_over {
            return Err(NetworkError::Violation(
                "the peer asks and does not read".to_owned(),
            ));
        }
        self.push_error(now, id, methods::ERROR, &error.to_remote())?;
        self.refusal_bytes += self.output.queued_bytes() - before;
        Ok(())
    }

    /// Hands what is queued to the writer; false when nothing is.
    pub(super) fn take(&mut self, now: Instant, chunks: &mut Vec<Bytes>) -> bool {
        if self.output.is_empty() {
            return false;
        }
        self.output.take(chunks);
        self.unwritten.take();
        self.refusal_bytes = 0;
        self.last_taken = now;
        true
    }

    /// Hands what is queued to the writer for the last time.
    pub(super) fn take_last(&mut self, chunks: &mut Vec<Bytes>) {
        self.output.take(chunks);
        self.clear();
    }

    /// The writer has written what it took.
    pub(super) fn written(&mut self) {
        self.unwritten.written();
    }

    /// Whether the last write made room for senders that found none because the connection's output was above its limit.
    pub(super) fn take_made_room(&mut self) -> bool {
        self.unwritten.take_made_room()
    }

    /// Drops what is queued.
    pub(super) fn clear(&mut self) {
        self.output.clear();
        self.unwritten.clear_output();
        self.refusal_bytes = 0;
    }

    /// The account of the connection's budget, which kept events are charged to as well.
    pub(super) fn unwritten(&mut self) -> &mut Unwritten {
        &mut self.unwritten
    }

    /// Whether output is short enough to add to.
    pub(super) fn has_room(&self) -> bool {
        self.output.queued_bytes() < self.limit_bytes && self.unwritten.has_room()
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.output.queued_bytes()
    }

    /// When the writer last took output.
    pub(super) fn last_taken(&self) -> Instant {
        self.last_taken
    }

    /// The position after everything that was queued on this stream.
    pub(super) fn end(&self) -> u64 {
        self.output.end()
    }

    /// The position after everything that the writer has taken.
    pub(super) fn taken(&self) -> u64 {
        self.output.taken()
    }

    fn timestamp_ns(&self, now: Instant) -> u64 {
        let (base, base_ns) = self.wall;
        base_ns + now.saturating_duration_since(base).as_nanos() as u64
    }
}
