//! Encodes messages into the buffers that are written, and copies no long payload.
//!
//! A short message is encoded into a buffer it shares with its neighbours, so a burst of calls leaves in one write. A
//! long one keeps its payload where the application put it: header, payload and archive tail become three chunks.
//! Checksums and compression of long messages are done in [`Outgoing::prepare`], before the channel is locked; only
//! the sequence number waits for the lock.

use bytes::{BufMut, Bytes, BytesMut};

use super::compress::{COMPRESSION_THRESHOLD, Codec};
use super::error::WireError;
use super::header::{HEADER_LEN, PacketFlags, PacketHeader, PacketType};
use super::message::{
    ContentType, MAX_METHOD, MessageType, Metadata, ProtocolMessage, ROOT_LEN, archive_head,
    archive_head_len, archive_len, archive_tail,
};
use super::{MAX_MESSAGE_SIZE, PREFIX_LEN};

/// Room of the buffer that short messages share; one that does not fit begins another.
const BATCH_BYTES: usize = 16 * 1024;
/// Room of the first buffer after a pause: most bursts are short.
const FIRST_BATCH_BYTES: usize = 4 * 1024;

/// A message about to leave.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) packet_type: PacketType,
    /// Flags beyond those that follow from the message itself.
    pub(crate) flags: PacketFlags,
    pub(crate) msg_type: MessageType,
    pub(crate) content_type: ContentType,
    /// As in [`ProtocolMessage::id`].
    pub(crate) id: u64,
    pub(crate) method: &'a str,
    pub(crate) payload: &'a Bytes,
    pub(crate) metadata: Option<Metadata>,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn message(packet_type: PacketType, message: &'a ProtocolMessage) -> Self {
        Self {
            packet_type,
            flags: PacketFlags::NONE,
            msg_type: message.msg_type,
            content_type: message.content_type,
            id: message.id,
            method: &message.method,
            payload: &message.payload,
            metadata: None,
        }
    }

    /// Bytes of the packet's payload before compression.
    pub(crate) fn body_len(&self) -> usize {
        let metadata = self.metadata.as_ref().map_or(0, Metadata::wire_len);
        metadata + archive_len(self.method, self.payload.len())
    }

    /// Whether [`Self::prepare`] does work that should not be done under a lock.
    pub(crate) fn is_long(&self) -> bool {
        self.body_len() >= COMPRESSION_THRESHOLD
    }

    /// Compresses the message and computes its checksum.
    pub(crate) fn prepare(&self, codec: &Codec) -> Result<Prepared, WireError> {
        self.check()?;
        let metadata_len = self.metadata.as_ref().map_or(0, Metadata::wire_len);
        let mut front = Vec::with_capacity(metadata_len + archive_head_len(self.method));
        if let Some(metadata) = &self.metadata {
            metadata.write(&mut front);
        }
        archive_head(&mut front, self.method);
        let mut tail = Vec::with_capacity(2 * ROOT_LEN);
        archive_tail(
            &mut tail,
            self.id,
            self.method,
            self.msg_type,
            self.content_type,
            self.payload.len(),
        );
        let mut header = self.header();
        let mut hasher = crc32fast::Hasher::new();
        let (front, bulk, tail) = match codec.compress([&front, self.payload, &tail])? {
            Some(compressed) => {
                header.flags = header.flags.with(PacketFlags::COMPRESSED);
                header.compressed_len = compressed.len() as u32;
                (Bytes::new(), Bytes::from(compressed), Bytes::new())
            }
            None => (Bytes::from(front), self.payload.clone(), Bytes::from(tail)),
        };
        for piece in [&front, &bulk, &tail] {
            hasher.update(piece);
        }
        Ok(Prepared {
            header,
            hasher,
            front,
            bulk,
            tail,
        })
    }

    fn check(&self) -> Result<(), WireError> {
        let len = HEADER_LEN + self.body_len();
        if len > MAX_MESSAGE_SIZE {
            return Err(WireError::TooLarge {
                len,
                max: MAX_MESSAGE_SIZE,
            });
        }
        if self.method.len() > MAX_METHOD {
            return Err(WireError::Message("method name too long"));
        }
        Ok(())
    }

    fn header(&self) -> PacketHeader {
        let mut flags = self.flags;
        if let Some(metadata) = &self.metadata {
            flags = flags.with(metadata.flags());
        }
        let (message_id, response_to) = match self.msg_type {
            MessageType::Request => (self.id, 0),
            MessageType::Event => (0, 0),
            MessageType::Response => (0, self.id),
            MessageType::Error => {
                flags = flags.with(PacketFlags::ERROR);
                (0, self.id)
            }
        };
        PacketHeader {
            packet_type: self.packet_type,
            flags,
            payload_len: self.body_len() as u32,
            compressed_len: 0,
            crc32: 0,
            sequence: 0,
            timestamp_ns: 0,
            stream_id: 0,
            message_id,
            response_to,
        }
    }
}

/// A message that only lacks its sequence number.
pub(crate) struct Prepared {
    header: PacketHeader,
    hasher: crc32fast::Hasher,
    front: Bytes,
    bulk: Bytes,
    tail: Bytes,
}

impl Prepared {
    /// Bytes of it that are held apart, most of it.
    pub(crate) fn bulk_bytes(&self) -> usize {
        self.bulk.len()
    }

    /// Replaces the bulk by the same bytes under another owner.
    pub(crate) fn with_bulk(mut self, change: impl FnOnce(Bytes) -> Bytes) -> Self {
        self.bulk = change(self.bulk);
        self
    }
}

/// What is to be written to one stream, in order.
#[derive(Debug, Default)]
pub(crate) struct Output {
    chunks: Vec<Bytes>,
    /// Short messages since the last chunk.
    batch: BytesMut,
    queued_bytes: usize,
    /// All bytes ever queued: a position, by which a message is known to have been taken or not.
    total: u64,
    sequence: u64,
    stream_id: u64,
}

impl Output {
    pub(crate) fn new(stream_id: u64) -> Self {
        Self {
            stream_id,
            ..Self::default()
        }
    }

    /// Queues a message of any length, preparing a long one here and now.
    pub(crate) fn push(
        &mut self,
        message: &Outgoing<'_>,
        timestamp_ns: u64,
        codec: &Codec,
    ) -> Result<(), WireError> {
        if message.is_long() {
            self.push_prepared(message.prepare(codec)?, timestamp_ns);
            return Ok(());
        }
        message.check()?;
        let header = self.number(message.header(), timestamp_ns);
        let body_len = message.body_len();
        self.make_room(PREFIX_LEN + HEADER_LEN + body_len);
        let start = self.batch.len();
        self.batch.put_u32((HEADER_LEN + body_len) as u32);
        self.batch.put_slice(&header.to_bytes());
        if let Some(metadata) = &message.metadata {
            metadata.write(&mut self.batch);
        }
        archive_head(&mut self.batch, message.method);
        self.batch.put_slice(message.payload);
        let Outgoing {
            id,
            method,
            msg_type,
            content_type,
            payload,
            ..
        } = *message;
        archive_tail(
            &mut self.batch,
            id,
            method,
            msg_type,
            content_type,
            payload.len(),
        );
        PacketHeader::set_checksum(&mut self.batch[start + PREFIX_LEN..]);
        self.account(PREFIX_LEN + HEADER_LEN + body_len);
        Ok(())
    }

    /// Queues what [`Outgoing::prepare`] made.
    pub(crate) fn push_prepared(&mut self, prepared: Prepared, timestamp_ns: u64) {
        let Prepared {
            header,
            hasher,
            front,
            bulk,
            tail,
        } = prepared;
        let header = self.number(header, timestamp_ns);
        let packet_len = HEADER_LEN + header.wire_len();
        self.make_room(PREFIX_LEN + HEADER_LEN + front.len());
        self.batch.put_u32(packet_len as u32);
        self.batch.put_slice(&header.to_bytes_with_crc(&hasher));
        self.batch.put_slice(&front);
        self.chunks.push(self.batch.split().freeze());
        self.chunks.push(bulk);
        if !tail.is_empty() {
            self.chunks.push(tail);
        }
        self.account(PREFIX_LEN + packet_len);
    }

    /// Lets the shared buffer hold `len` bytes more. Growing it would copy what is in it, so a full one becomes a chunk.
    fn make_room(&mut self, len: usize) {
        if self.batch.capacity() - self.batch.len() >= len {
            return;
        }
        if self.batch.is_empty() {
            self.batch.reserve(FIRST_BATCH_BYTES.max(len));
        } else {
            self.chunks.push(self.batch.split().freeze());
            self.batch.reserve(BATCH_BYTES.max(len));
        }
    }

    /// Moves everything queued to `into`, in order.
    pub(crate) fn take(&mut self, into: &mut Vec<Bytes>) {
        into.append(&mut self.chunks);
        if !self.batch.is_empty() {
            into.push(self.batch.split().freeze());
        }
        self.queued_bytes = 0;
    }

    /// Drops everything queued.
    pub(crate) fn clear(&mut self) {
        self.chunks = Vec::new();
        self.batch = BytesMut::new();
        self.queued_bytes = 0;
    }

    /// The only message queued, without the length before it: what a datagram holds.
    pub(crate) fn take_packet(&mut self) -> Bytes {
        let mut chunks = Vec::new();
        self.take(&mut chunks);
        match &mut chunks[..] {
            [frame] => frame.split_off(PREFIX_LEN.min(frame.len())),
            pieces => Bytes::from(pieces.concat()).split_off(PREFIX_LEN),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queued_bytes == 0
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// The position after the last message queued.
    pub(crate) fn end(&self) -> u64 {
        self.total
    }

    /// The position up to which everything was taken.
    pub(crate) fn taken(&self) -> u64 {
        self.total - self.queued_bytes as u64
    }

    fn number(&mut self, mut header: PacketHeader, timestamp_ns: u64) -> PacketHeader {
        header.sequence = self.sequence;
        header.timestamp_ns = timestamp_ns;
        header.stream_id = self.stream_id;
        self.sequence += 1;
        header
    }

    fn account(&mut self, bytes: usize) {
        self.queued_bytes += bytes;
        self.total += bytes as u64;
    }
}

/// Whether a message can be sent at all.
pub(crate) fn check(message: &Outgoing<'_>) -> Result<(), WireError> {
    message.check()
}

/// One message as a frame of its own, the first of its stream. Channels batch instead; this is for tools and tests.
///
/// # Errors
/// When the message is longer than a packet may be.
pub fn encode_frame(
    packet_type: PacketType,
    message: &ProtocolMessage,
    codec: &Codec,
) -> Result<Vec<u8>, WireError> {
    let mut output = Output::new(0);
    output.push(&Outgoing::message(packet_type, message), 0, codec)?;
    let mut chunks = Vec::new();
    output.take(&mut chunks);
    Ok(chunks.concat())
}

/// One message in the legacy form: the packet alone, without a length before it.
///
/// # Errors
/// When the message is longer than a packet may be.
pub fn encode_unframed(message: &ProtocolMessage, codec: &Codec) -> Result<Vec<u8>, WireError> {
    let mut frame = encode_frame(PacketType::Data, message, codec)?;
    frame.drain(..PREFIX_LEN);
    Ok(frame)
}
