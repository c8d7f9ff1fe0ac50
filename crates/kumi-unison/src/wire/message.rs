//! The message inside a packet, and its archive.
//!
//! The archive is rkyv's default format (little-endian, aligned, 32-bit relative pointers), read through rkyv's
//! validation every time. It is written by hand, because that puts the payload's bytes where they are sent from without
//! building an owned message first; a test holds the two writers to the same reading. Layout:
//!
//! ```text
//! | method, if longer than 8 bytes, with zeros up to a multiple of 16 | payload | zeros up to a multiple of 8 | root |
//!
//! root @0  id u64
//!      @8  method: up to 8 bytes in place, filled up with 0xff; else length and offset, see `method_field`
//!      @16 msg_type u8   @17 content_type u8   @18 zeros
//!      @20 payload's place relative to here, i32   @24 payload's length u32   @28 zeros
//! ```
//!
//! The root has 32 bytes and ends the archive. What it points to lies in the order of its fields, which rkyv's
//! validation demands. The payload begins at a multiple of 16, so that a typed one is read where it lies.

use bytes::{Buf, Bytes};

use super::error::WireError;
use super::header::{PacketFlags, PacketHeader};
use super::{MAX_PAYLOAD, METADATA_LEN, TRACE_LEN};
use crate::trace::TraceContext;

/// Bytes of an archive's root.
pub(super) const ROOT_LEN: usize = 32;

/// Where a payload begins in an archive: at a multiple of this.
pub(super) const PAYLOAD_ALIGN: usize = 16;

/// Method names up to this length lie in the root.
const INLINE_METHOD: usize = 8;

/// The longest method name.
pub(crate) const MAX_METHOD: usize = 1_024;

/// What a message is to its receiver.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
#[repr(u8)]
#[non_exhaustive]
pub enum MessageType {
    /// A request, which gets exactly one answer.
    Request,
    /// The answer of a handler that succeeded.
    Response,
    /// An event, which gets no answer.
    Event,
    /// The answer of a handler that failed, or of the runtime if it could not run one.
    Error,
}

/// How a payload's bytes are to be read.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize,
)]
#[repr(u8)]
#[non_exhaustive]
pub enum ContentType {
    /// UTF-8 JSON. Works between any two versions of a schema with the same major number.
    Json,
    /// Bytes whose meaning is the application's.
    Bytes,
    /// An rkyv archive of a type that both sides generated from the same schema.
    Typed,
}

/// One message: a request, an answer, an event or an error.
#[derive(Debug, Clone, PartialEq, Eq, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct ProtocolMessage {
    /// The request's id in requests and their answers, 0 in events.
    pub id: u64,
    /// What is asked or told. Empty in answers. Names that begin with `__` belong to the protocol.
    pub method: String,
    /// Request, answer, event or error.
    pub msg_type: MessageType,
    /// How to read `payload`.
    pub content_type: ContentType,
    /// The content.
    pub payload: Bytes,
}

/// The block that METADATA announces: 16 bytes before the archive.
///
/// ```text
/// @0 deadline_ms u32, 0 = none   @4 zeros   @8 zeros, not read
/// ```
///
/// and the block of 32 bytes after it that TRACE announces:
///
/// ```text
/// @0 version u8, 0   @1 flags u8   @2 zeros   @8 parent id, 8 bytes   @16 trace id, 16 bytes
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Metadata {
    /// Milliseconds the caller still waits, from when this was sent.
    pub deadline_ms: Option<u32>,
    /// The W3C trace context that the request belongs to.
    pub trace: Option<TraceContext>,
}

impl Metadata {
    /// The flags that announce what is written.
    pub(super) fn flags(&self) -> PacketFlags {
        match self.trace {
            Some(_) => PacketFlags::METADATA.with(PacketFlags::TRACE),
            None => PacketFlags::METADATA,
        }
    }

    /// Bytes that [`Self::write`] writes: a multiple of 16, so that the archive behind them stays aligned.
    pub(super) fn wire_len(&self) -> usize {
        METADATA_LEN + self.trace.map_or(0, |_| TRACE_LEN)
    }

    pub(super) fn write(&self, out: &mut impl bytes::BufMut) {
        out.put_u32_le(self.deadline_ms.unwrap_or(0));
        out.put_bytes(0, METADATA_LEN - 4);
        if let Some(trace) = &self.trace {
            out.put_u8(TRACE_VERSION);
            out.put_u8(trace.flags());
            out.put_bytes(0, 6);
            out.put_slice(&trace.parent_id());
            out.put_slice(&trace.trace_id());
        }
    }

    /// Takes the blocks that the header announces from the front of a body.
    fn take(flags: PacketFlags, body: &mut Bytes) -> Result<Self, WireError> {
        const INVALID: WireError = WireError::Message("metadata block");
        let has_trace = flags.contains(PacketFlags::TRACE);
        if !flags.contains(PacketFlags::METADATA) {
            return match has_trace {
                true => Err(INVALID),
                false => Ok(Self::default()),
            };
        }
        let block: [u8; METADATA_LEN] = take_chunk(body).ok_or(INVALID)?;
        let [d0, d1, d2, d3, 0, 0, 0, 0, ..] = block else {
            return Err(INVALID);
        };
        let deadline_ms = u32::from_le_bytes([d0, d1, d2, d3]);
        let trace = match has_trace {
            true => trace_of(&take_chunk(body).ok_or(INVALID)?)?,
            false => None,
        };
        Ok(Self {
            deadline_ms: (deadline_ms != 0).then_some(deadline_ms),
            trace,
        })
    }
}

/// The version of the trace block that this one writes.
const TRACE_VERSION: u8 = 0;

/// What a trace block says; nothing when it is of a later version, which is no reason to refuse the request.
fn trace_of(block: &[u8; TRACE_LEN]) -> Result<Option<TraceContext>, WireError> {
    const INVALID: WireError = WireError::Message("trace block");
    let [version, flags, rest @ ..] = block;
    if *version != TRACE_VERSION {
        return Ok(None);
    }
    let (Some([0, 0, 0, 0, 0, 0]), Some(parent_id), Some(trace_id)) = (
        rest.first_chunk::<6>(),
        rest[6..].first_chunk::<8>(),
        rest[14..].first_chunk::<16>(),
    ) else {
        return Err(INVALID);
    };
    let trace = TraceContext::new(*trace_id, *parent_id, *flags);
    trace.map(Some).ok_or(INVALID)
}

fn take_chunk<const N: usize>(body: &mut Bytes) -> Option<[u8; N]> {
    let chunk = *body.first_chunk::<N>()?;
    body.advance(N);
    Some(chunk)
}

impl ProtocolMessage {
    /// An event with these contents.
    pub fn event(
        method: impl Into<String>,
        content_type: ContentType,
        payload: impl Into<Bytes>,
    ) -> Self {
        Self {
            id: 0,
            method: method.into(),
            msg_type: MessageType::Event,
            content_type,
            payload: payload.into(),
        }
    }

    /// A request with these contents. `id` is not 0.
    pub fn request(
        id: u64,
        method: impl Into<String>,
        content_type: ContentType,
        payload: impl Into<Bytes>,
    ) -> Self {
        Self {
            id,
            method: method.into(),
            msg_type: MessageType::Request,
            content_type,
            payload: payload.into(),
        }
    }

    /// The answer to request `id`.
    pub fn response(id: u64, content_type: ContentType, payload: impl Into<Bytes>) -> Self {
        Self {
            id,
            method: String::new(),
            msg_type: MessageType::Response,
            content_type,
            payload: payload.into(),
        }
    }

    /// Whether this is not the peer's but the runtime's: the channel was reopened after its connection was lost, and
    /// events may have been missed in between.
    pub fn is_resumed(&self) -> bool {
        self.msg_type == MessageType::Event && self.method == super::methods::RESUMED
    }

    /// Reads the message of a packet whose payload, decompressed, is `body`. The message's payload is a view into
    /// `body`.
    ///
    /// # Errors
    /// When metadata or archive are invalid, or the header says something else than the message.
    pub fn decode(header: &PacketHeader, body: &Bytes) -> Result<(Self, Metadata), WireError> {
        Self::decode_owned(header, body.clone())
    }

    /// As [`decode`](Self::decode), of a body that is not needed afterwards.
    pub(crate) fn decode_owned(
        header: &PacketHeader,
        mut body: Bytes,
    ) -> Result<(Self, Metadata), WireError> {
        let metadata = Metadata::take(header.flags, &mut body)?;
        let message = Self::from_owned_archive(body)?;
        message.agree(header)?;
        Ok((message, metadata))
    }

    /// Reads an archive. `archive` should lie at a multiple of 8; if it does not, it is copied once.
    ///
    /// # Errors
    /// When it is no valid archive of a message.
    pub fn from_archive(archive: &Bytes) -> Result<Self, WireError> {
        Self::from_owned_archive(archive.clone())
    }

    fn from_owned_archive(archive: Bytes) -> Result<Self, WireError> {
        if archive.len() < ROOT_LEN {
            return Err(WireError::Message("not a valid archive"));
        }
        if archive.as_ptr().align_offset(8) == 0 {
            return Self::from_aligned(archive);
        }
        let mut aligned = rkyv::util::AlignedVec::<16>::with_capacity(archive.len());
        aligned.extend_from_slice(&archive);
        Self::from_aligned(Bytes::from_owner(aligned))
    }

    fn from_aligned(mut archive: Bytes) -> Result<Self, WireError> {
        let archived =
            rkyv::api::low::access::<ArchivedProtocolMessage, rkyv::rancor::Failure>(&archive)
                .map_err(|_| WireError::Message("not a valid archive"))?;
        if archived.method.len() > MAX_METHOD {
            return Err(WireError::Message("method name too long"));
        }
        let bytes = archived.payload.as_slice();
        let payload_at = bytes.as_ptr().addr() - archive.as_ptr().addr();
        let payload_len = bytes.len();
        let mut message = Self {
            id: archived.id.to_native(),
            method: archived.method.as_str().to_owned(),
            msg_type: match archived.msg_type {
                ArchivedMessageType::Request => MessageType::Request,
                ArchivedMessageType::Response => MessageType::Response,
                ArchivedMessageType::Event => MessageType::Event,
                ArchivedMessageType::Error => MessageType::Error,
            },
            content_type: match archived.content_type {
                ArchivedContentType::Json => ContentType::Json,
                ArchivedContentType::Bytes => ContentType::Bytes,
                ArchivedContentType::Typed => ContentType::Typed,
            },
            payload: Bytes::new(),
        };
        // An empty payload may lie anywhere.
        if payload_len > 0 {
            archive.truncate(payload_at + payload_len);
            archive.advance(payload_at);
            message.payload = archive;
        }
        Ok(message)
    }

    /// The message as rkyv itself archives it, for tests and other tools.
    ///
    /// # Errors
    /// When it is longer than a packet may be.
    pub fn to_archive(&self) -> Result<Bytes, WireError> {
        let archive =
            rkyv::to_bytes::<rkyv::rancor::Failure>(self).map_err(|_| WireError::TooLarge {
                len: self.payload.len(),
                max: MAX_PAYLOAD,
            })?;
        Ok(Bytes::from_owner(archive))
    }

    /// The header's ids and ERROR flag are those that this message must have.
    fn agree(&self, header: &PacketHeader) -> Result<(), WireError> {
        let ids = (header.message_id, header.response_to);
        let expected = match self.msg_type {
            MessageType::Request => (self.id, 0),
            MessageType::Response | MessageType::Error => (0, self.id),
            MessageType::Event => (0, 0),
        };
        if ids != expected || (self.msg_type == MessageType::Event) != (self.id == 0) {
            return Err(WireError::Disagreement("ids"));
        }
        if header.flags.contains(PacketFlags::ERROR) != (self.msg_type == MessageType::Error) {
            return Err(WireError::Disagreement("ERROR flag"));
        }
        Ok(())
    }
}

/// What precedes the payload in an archive: the method, if it is long, and padding.
pub(super) fn archive_head(out: &mut impl bytes::BufMut, method: &str) {
    if method.len() > INLINE_METHOD {
        out.put_slice(method.as_bytes());
        out.put_bytes(0, archive_head_len(method) - method.len());
    }
}

/// Bytes that [`archive_head`] writes, which is also where the payload begins.
pub(super) fn archive_head_len(method: &str) -> usize {
    if method.len() > INLINE_METHOD {
        method.len().next_multiple_of(PAYLOAD_ALIGN)
    } else {
        0
    }
}

/// What follows the payload in an archive: padding and the root.
pub(super) fn archive_tail(
    out: &mut impl bytes::BufMut,
    id: u64,
    method: &str,
    msg_type: MessageType,
    content_type: ContentType,
    payload_len: usize,
) {
    let payload_at = archive_head_len(method);
    let payload_end = payload_at + payload_len;
    let root_at = payload_end.next_multiple_of(8);
    out.put_bytes(0, root_at - payload_end);
    let mut root = [0; ROOT_LEN];
    root[..8].copy_from_slice(&id.to_le_bytes());
    root[8..16].copy_from_slice(&method_field(method, root_at + 8));
    root[16] = msg_type as u8;
    root[17] = content_type as u8;
    root[20..24].copy_from_slice(&distance(root_at + 20, payload_at).to_le_bytes());
    root[24..28].copy_from_slice(&(payload_len as u32).to_le_bytes());
    out.put_slice(&root);
}

/// Bytes of an archive.
pub(super) fn archive_len(method: &str, payload_len: usize) -> usize {
    (archive_head_len(method) + payload_len).next_multiple_of(8) + ROOT_LEN
}

/// A short method in place; a long one as length and offset. The two top bits of the first byte tell them apart: `10`
/// begins no UTF-8 text, so there the length has its low six bits, and its other bits follow in the next three bytes.
fn method_field(method: &str, field_at: usize) -> [u8; 8] {
    let mut field = [0xff; 8];
    if method.len() <= INLINE_METHOD {
        field[..method.len()].copy_from_slice(method.as_bytes());
    } else {
        let len = method.len() as u32;
        let split = (len & 0x3f) | 0x80 | ((len & !0x3f) << 2);
        field[..4].copy_from_slice(&split.to_le_bytes());
        field[4..].copy_from_slice(&distance(field_at, 0).to_le_bytes());
    }
    field
}

/// Relative pointers; both places lie in one packet, so the difference is small.
fn distance(from: usize, to: usize) -> i32 {
    to as i32 - from as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_hand(message: &ProtocolMessage) -> Bytes {
        let ProtocolMessage {
            id,
            method,
            msg_type,
            content_type,
            payload,
        } = message;
        let mut out = Vec::new();
        archive_head(&mut out, method);
        out.extend_from_slice(payload);
        archive_tail(
            &mut out,
            *id,
            method,
            *msg_type,
            *content_type,
            payload.len(),
        );
        assert_eq!(out.len(), archive_len(method, payload.len()));
        let mut aligned = rkyv::util::AlignedVec::<16>::new();
        aligned.extend_from_slice(&out);
        Bytes::from_owner(aligned)
    }

    #[test]
    fn both_writers_read_the_same() {
        let types = [
            MessageType::Request,
            MessageType::Response,
            MessageType::Event,
            MessageType::Error,
        ];
        let contents = [ContentType::Json, ContentType::Bytes, ContentType::Typed];
        for method_len in [0, 1, 7, 8, 9, 63, 64, 65, 255, 256, 300, MAX_METHOD] {
            for payload_len in [0, 1, 7, 8, 9, 64, 1_000] {
                for (n, msg_type) in types.into_iter().enumerate() {
                    let message = ProtocolMessage {
                        id: 0x0102_0304_0506_0708,
                        method: "m".repeat(method_len),
                        msg_type,
                        content_type: contents[n % 3],
                        payload: vec![n as u8; payload_len].into(),
                    };
                    let hand = by_hand(&message);
                    assert_eq!(ProtocolMessage::from_archive(&hand), Ok(message.clone()));
                    let owned =
                        rkyv::from_bytes::<ProtocolMessage, rkyv::rancor::Error>(&hand).unwrap();
                    assert_eq!(owned, message);
                    let derived = message.to_archive().unwrap();
                    assert_eq!(ProtocolMessage::from_archive(&derived), Ok(message));
                }
            }
        }
    }

    #[test]
    fn metadata_has_these_bytes_and_is_read_back() {
        let trace = TraceContext::new([1; 16], [2; 8], 3);
        let metadata = Metadata {
            deadline_ms: Some(0x0102),
            trace,
        };
        let mut out = Vec::new();
        metadata.write(&mut out);
        let mut expected = vec![2, 1];
        expected.extend([0; 14]);
        expected.extend([0, 3, 0, 0, 0, 0, 0, 0]);
        expected.extend([2; 8]);
        expected.extend([1; 16]);
        assert_eq!(out, expected);
        assert_eq!(out.len(), metadata.wire_len());
        let mut body = Bytes::from(out.clone());
        assert_eq!(Metadata::take(metadata.flags(), &mut body), Ok(metadata));
        assert!(body.is_empty());

        let wrong = |at: usize, value: u8| {
            let mut bytes = out.clone();
            bytes[at] = value;
            Metadata::take(metadata.flags(), &mut Bytes::from(bytes))
        };
        assert!(wrong(4, 1).is_err() && wrong(18, 1).is_err());
        assert_eq!(wrong(8, 1), Ok(metadata), "an older peer's trace id");
        let later = wrong(16, 1).unwrap();
        assert_eq!((later.deadline_ms, later.trace), (Some(0x0102), None));
        assert!(Metadata::take(PacketFlags::TRACE, &mut Bytes::from(out.clone())).is_err());
        for len in 0..out.len() {
            let mut short = Bytes::copy_from_slice(&out[..len]);
            assert!(Metadata::take(metadata.flags(), &mut short).is_err());
        }
    }

    #[test]
    fn the_archive_has_these_bytes() {
        let message = ProtocolMessage::request(5, "rooms.join", ContentType::Json, &b"{}"[..]);
        #[rustfmt::skip]
        let expected = [
            b'r', b'o', b'o', b'm', b's', b'.', b'j', b'o', b'i', b'n', 0, 0, 0, 0, 0, 0,
            b'{', b'}', 0, 0, 0, 0, 0, 0,
            5, 0, 0, 0, 0, 0, 0, 0,
            0x8a, 0, 0, 0, 0xe0, 0xff, 0xff, 0xff,
            0, 0, 0, 0, 0xe4, 0xff, 0xff, 0xff,
            2, 0, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(by_hand(&message), expected[..]);
    }

    #[test]
    fn a_payload_is_aligned_and_not_copied() {
        for method in [
            "",
            "short",
            "a.long.method",
            "a.method.longer.than.sixteen.bytes",
        ] {
            let archive = by_hand(&ProtocolMessage::request(
                1,
                method,
                ContentType::Bytes,
                vec![7; 100],
            ));
            let message = ProtocolMessage::from_archive(&archive).unwrap();
            let at = message.payload.as_ptr() as usize;
            assert_eq!(at % PAYLOAD_ALIGN, 0);
            assert!(archive.as_ptr_range().contains(&message.payload.as_ptr()));
        }
    }

    #[test]
    fn an_unaligned_archive_is_read_all_the_same() {
        let message = ProtocolMessage::event("tick", ContentType::Bytes, vec![7; 100]);
        let aligned = by_hand(&message);
        let mut shifted = vec![0];
        shifted.extend_from_slice(&aligned);
        for skip in 1..8 {
            let mut bytes = vec![0; skip];
            bytes.extend_from_slice(&aligned);
            assert_eq!(
                ProtocolMessage::from_archive(&Bytes::from(bytes).slice(skip..)),
                Ok(message.clone())
            );
        }
    }

    #[test]
    fn garbage_is_refused_and_never_panics() {
        let mut rng = fastrand::Rng::with_seed(3);
        let good = by_hand(&ProtocolMessage::request(
            1,
            "some.long.method",
            ContentType::Json,
            vec![1; 40],
        ));
        for _ in 0..20_000 {
            let mut bytes = good.to_vec();
            for _ in 0..rng.usize(1..6) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            bytes.truncate(rng.usize(..=bytes.len()));
            let _ = ProtocolMessage::from_archive(&Bytes::from(bytes));
        }
        assert!(ProtocolMessage::from_archive(&Bytes::new()).is_err());
        assert!(ProtocolMessage::from_archive(&Bytes::from_static(&[0xff; 64])).is_err());
    }
}
