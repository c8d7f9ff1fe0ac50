//! Reads packets from the bytes of a stream, however these are split into chunks.
//!
//! A claimed length allocates nothing: arriving chunks are kept as they are, up to [`HELD_CHUNKS`] of them, and folded
//! into one growing buffer beyond that, so that many tiny chunks cannot pin many large buffers. When a frame is
//! complete its payload is copied once, into a buffer aligned for the archive. The header is checked as soon as its 56
//! bytes have arrived, before the payload has. Short frames that arrived together are copied into one buffer,
//! which spares each of them its own; that buffer is bounded, because a payload that is kept keeps all of it.
//!
//! The first four bytes of a stream tell the legacy form apart: its packet begins with version 1, which as a length
//! would be 16 MiB and more. A legacy packet ends with its stream.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Buf, Bytes};
use rkyv::util::AlignedVec;

use super::compress::decompress;
use super::error::WireError;
use super::header::{HEADER_LEN, PacketFlags, PacketHeader};
use super::message::PAYLOAD_ALIGN;
use super::{MAX_MESSAGE_SIZE, PREFIX_LEN, PROTOCOL_VERSION};

/// Chunks kept as they came. Sixty-four full datagrams hold a 64 KiB message.
const HELD_CHUNKS: usize = 64;

/// Frames up to this length, prefix aside, share a buffer with their neighbours.
const SHORT_FRAME: usize = 4 * 1024;

/// A shared buffer takes no further frame from this length on.
const SHARED_BYTES: usize = 8 * 1024;

/// What precedes a header in a shared buffer, so that the payload after it lies at a multiple of [`PAYLOAD_ALIGN`].
const SHARED_PAD: usize = PAYLOAD_ALIGN - HEADER_LEN % PAYLOAD_ALIGN;

/// A chunk below this is copied rather than kept: it may be a small part of a large buffer, which it would keep in memory.
const SMALL_CHUNK: usize = 1024;

/// A packet whose header, length and checksum were found good, decompressed.
#[derive(Debug, Clone)]
pub struct Packet {
    /// The header as it came.
    pub header: PacketHeader,
    /// The payload before compression: metadata, if the flag is set, then the archive.
    pub body: Bytes,
}

/// Takes a stream apart into packets.
///
/// Call [`push`](Self::push) with what arrives, then [`next`](Self::next) until it returns `None`. At the end of the
/// stream call [`end`](Self::end). After an error the reader is of no further use.
#[derive(Debug)]
pub struct FrameReader {
    form: Form,
    /// Prefix (if framed) and header, as far as they are in.
    head: [u8; PREFIX_LEN + HEADER_LEN],
    head_len: usize,
    /// The header, once it is in.
    header: Option<PacketHeader>,
    /// Payload bytes folded together.
    body: AlignedVec,
    /// What came after `body`.
    chunks: VecDeque<Bytes>,
    chunk_bytes: usize,
    /// Short packets that were complete together.
    ready: VecDeque<Packet>,
    /// Their headers and places while they are copied; kept for its memory.
    places: Vec<(PacketHeader, Range<usize>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Not known before the first bytes.
    Unknown,
    Framed,
    Legacy,
}

impl FrameReader {
    /// A reader of frames only.
    pub fn new() -> Self {
        Self::with_form(Form::Framed)
    }

    /// A reader that takes the legacy form too, as a server must.
    pub fn detecting_legacy() -> Self {
        Self::with_form(Form::Unknown)
    }

    fn with_form(form: Form) -> Self {
        Self {
            form,
            head: [0; PREFIX_LEN + HEADER_LEN],
            head_len: 0,
            header: None,
            body: AlignedVec::new(),
            chunks: VecDeque::new(),
            chunk_bytes: 0,
            ready: VecDeque::new(),
            places: Vec::new(),
        }
    }

    /// Takes over bytes that arrived.
    pub fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.chunk_bytes += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    /// The next packet, if it is complete.
    ///
    /// # Errors
    /// As soon as the bytes at hand cannot become a good packet.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would promise an end, and this has none"
    )]
    pub fn next(&mut self) -> Result<Option<Packet>, WireError> {
        if self.ready.is_empty() {
            self.share_buffer();
        }
        if let Some(packet) = self.ready.pop_front() {
            return Ok(Some(packet));
        }
        let Some(header) = self.read_head()? else {
            return Ok(None);
        };
        let want = header.wire_len();
        if self.form == Form::Legacy {
            // Ends with the stream: see `end`. More than announced is wrong already.
            if self.body.len() + self.chunk_bytes > want {
                return Err(self.legacy_mismatch(want));
            }
            self.fold_if_many(want);
            return Ok(None);
        }
        if self.body.len() + self.chunk_bytes < want {
            self.fold_if_many(want);
            return Ok(None);
        }
        self.complete(header, want).map(Some)
    }

    /// The stream has ended: a legacy packet is complete now, a frame may not be open.
    ///
    /// # Errors
    /// When the stream ended inside a frame.
    pub fn end(&mut self) -> Result<Option<Packet>, WireError> {
        if self.form != Form::Legacy {
            return if self.is_partial() {
                Err(WireError::Truncated)
            } else {
                Ok(None)
            };
        }
        let Some(header) = self.read_head()? else {
            return Err(WireError::Truncated);
        };
        let want = header.wire_len();
        if self.body.len() + self.chunk_bytes != want {
            return Err(self.legacy_mismatch(want));
        }
        self.complete(header, want).map(Some)
    }

    /// Whether a frame has begun and is not complete. The reader's driver bounds how long this lasts.
    pub fn is_partial(&self) -> bool {
        self.head_len > 0 || self.chunk_bytes > 0
    }

    /// Whether the stream turned out to carry the legacy form.
    pub fn is_legacy(&self) -> bool {
        self.form == Form::Legacy
    }

    /// Bytes held for packets that are not complete.
    pub fn buffered_bytes(&self) -> usize {
        self.head_len + self.body.len() + self.chunk_bytes
    }

    /// Takes the short frames that lie whole at the front. One that is not good is left to the general way, which says
    /// what is wrong with it.
    fn share_buffer(&mut self) {
        if self.form != Form::Framed || self.head_len > 0 {
            return;
        }
        let mut shared: AlignedVec = AlignedVec::new();
        while shared.len() < SHARED_BYTES
            && let Some(chunk) = self.chunks.front()
            && let Some((header, packet)) = short_frame(chunk)
        {
            if shared.is_empty() {
                shared.reserve((SHARED_PAD + self.chunk_bytes).min(SHARED_BYTES + SHORT_FRAME));
            }
            let start = shared.len().next_multiple_of(PAYLOAD_ALIGN) + SHARED_PAD;
            shared.resize(start, 0);
            shared.extend_from_slice(packet);
            if !header.checksum_fits_in_place(&mut shared[start..]) {
                break;
            }
            let frame_len = PREFIX_LEN + packet.len();
            self.places.push((header, start + HEADER_LEN..shared.len()));
            self.consume(frame_len);
        }
        if self.places.is_empty() {
            return;
        }
        let shared = Bytes::from_owner(shared);
        for (header, place) in self.places.drain(..) {
            let body = shared.slice(place);
            self.ready.push_back(Packet { header, body });
        }
    }

    fn read_head(&mut self) -> Result<Option<PacketHeader>, WireError> {
        if let Some(header) = self.header {
            return Ok(Some(header));
        }
        self.fill_head(PREFIX_LEN);
        if self.head_len < PREFIX_LEN {
            return Ok(None);
        }
        let prefix =
            u32::from_be_bytes([self.head[0], self.head[1], self.head[2], self.head[3]]) as usize;
        if self.form == Form::Unknown {
            self.form = if self.head[0] == PROTOCOL_VERSION {
                Form::Legacy
            } else {
                Form::Framed
            };
        }
        let header_at = if self.form == Form::Legacy {
            0
        } else {
            PREFIX_LEN
        };
        if self.form == Form::Framed {
            if prefix > MAX_MESSAGE_SIZE {
                return Err(WireError::FrameTooLarge {
                    len: prefix,
                    max: MAX_MESSAGE_SIZE,
                });
            }
            if prefix < HEADER_LEN {
                return Err(WireError::LengthMismatch {
                    frame: prefix,
                    header: HEADER_LEN,
                });
            }
        }
        self.fill_head(header_at + HEADER_LEN);
        let Some(bytes) = self.header_bytes() else {
            return Ok(None);
        };
        let header = PacketHeader::parse(&bytes)?;
        let wanted = HEADER_LEN + header.wire_len();
        if self.form == Form::Framed && prefix != wanted {
            return Err(WireError::LengthMismatch {
                frame: prefix,
                header: wanted,
            });
        }
        self.header = Some(header);
        Ok(Some(header))
    }

    /// The header's bytes, if all of them are in.
    fn header_bytes(&self) -> Option<[u8; HEADER_LEN]> {
        let header_at = if self.form == Form::Legacy {
            0
        } else {
            PREFIX_LEN
        };
        if self.head_len < header_at + HEADER_LEN {
            return None;
        }
        self.head[header_at..].first_chunk().copied()
    }

    fn fill_head(&mut self, want: usize) {
        while self.head_len < want {
            let Some(chunk) = self.chunks.front_mut() else {
                return;
            };
            let take = chunk.len().min(want - self.head_len);
            self.head[self.head_len..self.head_len + take].copy_from_slice(&chunk[..take]);
            self.head_len += take;
            self.consume(take);
        }
    }

    /// Drops `len` bytes from the front chunk.
    fn consume(&mut self, len: usize) {
        self.chunk_bytes -= len;
        if let Some(chunk) = self.chunks.front_mut() {
            chunk.advance(len);
            if chunk.is_empty() {
                self.chunks.pop_front();
            }
        }
    }

    fn fold_if_many(&mut self, want: usize) {
        let is_small = |chunk: &Bytes| chunk.len() < SMALL_CHUNK;
        if self.chunks.len() > HELD_CHUNKS || self.chunks.back().is_some_and(is_small) {
            self.fold(want);
        }
    }

    /// Moves payload bytes from the chunks to `body`, until it has `want` of them.
    fn fold(&mut self, want: usize) {
        while self.body.len() < want {
            let Some(chunk) = self.chunks.front() else {
                return;
            };
            let take = chunk.len().min(want - self.body.len());
            self.body.extend_from_slice(&chunk[..take]);
            self.consume(take);
        }
    }

    fn complete(&mut self, header: PacketHeader, want: usize) -> Result<Packet, WireError> {
        self.body.reserve_exact(want - self.body.len());
        self.fold(want);
        let body = std::mem::take(&mut self.body);
        let bytes = self.header_bytes().ok_or(WireError::Truncated)?;
        if !header.checksum_fits(&bytes, &body) {
            return Err(WireError::Checksum);
        }
        let body = if header.flags.contains(PacketFlags::COMPRESSED) {
            decompress(&body, header.payload_len as usize)?
        } else {
            body
        };
        self.header = None;
        self.head_len = 0;
        Ok(Packet {
            header,
            body: Bytes::from_owner(body),
        })
    }

    fn legacy_mismatch(&self, want: usize) -> WireError {
        WireError::LengthMismatch {
            frame: HEADER_LEN + self.body.len() + self.chunk_bytes,
            header: HEADER_LEN + want,
        }
    }
}

/// Header and bytes of the packet at the front of `chunk`, if it is short, whole, not compressed and of the length it
/// says.
fn short_frame(chunk: &[u8]) -> Option<(PacketHeader, &[u8])> {
    let len = u32::from_be_bytes(*chunk.first_chunk()?) as usize;
    if !(HEADER_LEN..=SHORT_FRAME).contains(&len) {
        return None;
    }
    let packet = chunk.get(PREFIX_LEN..PREFIX_LEN + len)?;
    let header = PacketHeader::parse(packet.first_chunk()?).ok()?;
    let fits = HEADER_LEN + header.wire_len() == len;
    (fits && !header.flags.contains(PacketFlags::COMPRESSED)).then_some((header, packet))
}

impl Default for FrameReader {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
