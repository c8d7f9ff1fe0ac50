//! The packet header: 56 bytes at explicit little-endian offsets, never a struct's memory.
//!
//! ```text
//!  @0  version u8      @1  type u8          @2  flags u16        @4  payload_len u32
//!  @8  compressed_len u32                   @12 crc32 u32
//!  @16 sequence u64    @24 timestamp_ns u64 @32 stream_id u64
//!  @40 message_id u64  @48 response_to u64
//! ```
//!
//! `payload_len` is the length before compression. `compressed_len` is the length as sent when COMPRESSED is set, and
//! 0 otherwise. Parsing checks what can be checked without the payload; the checksum is the frame reader's.

use super::error::WireError;
use super::{MAX_PAYLOAD, PROTOCOL_VERSION};

/// Bytes of a header.
pub const HEADER_LEN: usize = 56;

/// Where the checksum lies, which is taken as zero while it is computed.
const CRC_AT: usize = 12;

/// What a packet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum PacketType {
    /// A request, an answer or an event.
    Data = 0,
    /// CANCEL, credits, GOAWAY, channel updates.
    Control = 1,
    /// PING and its answer.
    Heartbeat = 2,
    /// The identity, the opening of a channel and its acknowledgement.
    Handshake = 3,
}

impl PacketType {
    fn from_byte(byte: u8) -> Result<Self, WireError> {
        match byte {
            0 => Ok(Self::Data),
            1 => Ok(Self::Control),
            2 => Ok(Self::Heartbeat),
            3 => Ok(Self::Handshake),
            other => Err(WireError::PacketType(other)),
        }
    }
}

/// The sixteen flag bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketFlags(u16);

impl PacketFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The payload is a zstd frame.
    pub const COMPRESSED: Self = Self(1 << 0);
    /// Reserved; refused.
    pub const ENCRYPTED: Self = Self(1 << 1);
    /// Reserved; refused.
    pub const FRAGMENTED: Self = Self(1 << 2);
    /// Reserved for the last of the fragments. Harmless without FRAGMENTED, and ignored.
    pub const LAST_FRAGMENT: Self = Self(1 << 3);
    /// A hint that nothing acts on yet.
    pub const PRIORITY_HIGH: Self = Self(1 << 4);
    /// The peer should answer with IS_ACK, as to a PING.
    pub const REQUIRES_ACK: Self = Self(1 << 5);
    /// This is the answer to REQUIRES_ACK.
    pub const IS_ACK: Self = Self(1 << 6);
    /// Sent only to keep the connection alive.
    pub const KEEPALIVE: Self = Self(1 << 7);
    /// The message is an Error.
    pub const ERROR: Self = Self(1 << 8);
    /// The payload opens with a metadata block.
    pub const METADATA: Self = Self(1 << 9);
    /// A trace block follows the metadata block. Not without METADATA.
    pub const TRACE: Self = Self(1 << 10);

    /// Every bit that is refused: ENCRYPTED, FRAGMENTED and those without a meaning.
    const REFUSED: u16 = Self::ENCRYPTED.0 | Self::FRAGMENTED.0 | !((1 << 11) - 1);

    /// The bits as they travel.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Flags from bits as they travel.
    ///
    /// # Errors
    /// When a bit is set that this version refuses.
    pub const fn from_bits(bits: u16) -> Result<Self, WireError> {
        if bits & Self::REFUSED != 0 {
            return Err(WireError::Flags(bits));
        }
        Ok(Self(bits))
    }

    /// Both sets together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other`'s bits are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A packet header, parsed or about to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketHeader {
    /// What the packet is for.
    pub packet_type: PacketType,
    /// How to read the payload.
    pub flags: PacketFlags,
    /// Payload length before compression.
    pub payload_len: u32,
    /// Payload length as sent if COMPRESSED, else 0.
    pub compressed_len: u32,
    /// CRC-32 (IEEE) over the header with this field zero, then the payload as sent.
    pub crc32: u32,
    /// The packet's number on its stream and direction, from 0 without gaps.
    pub sequence: u64,
    /// The sender's clock, nanoseconds since 1970. Information only.
    pub timestamp_ns: u64,
    /// The sender's id of the stream. Information only.
    pub stream_id: u64,
    /// The id of a request, else 0.
    pub message_id: u64,
    /// The id of the request that this answers, else 0.
    pub response_to: u64,
}

impl PacketHeader {
    /// Reads a header.
    ///
    /// # Errors
    /// When version, type, flags or lengths cannot be taken.
    pub fn parse(bytes: &[u8; HEADER_LEN]) -> Result<Self, WireError> {
        if bytes[0] != PROTOCOL_VERSION {
            return Err(WireError::Version(bytes[0]));
        }
        let header = Self {
            packet_type: PacketType::from_byte(bytes[1])?,
            flags: PacketFlags::from_bits(u16::from_le_bytes(array(bytes, 2)))?,
            payload_len: u32::from_le_bytes(array(bytes, 4)),
            compressed_len: u32::from_le_bytes(array(bytes, 8)),
            crc32: u32::from_le_bytes(array(bytes, CRC_AT)),
            sequence: u64::from_le_bytes(array(bytes, 16)),
            timestamp_ns: u64::from_le_bytes(array(bytes, 24)),
            stream_id: u64::from_le_bytes(array(bytes, 32)),
            message_id: u64::from_le_bytes(array(bytes, 40)),
            response_to: u64::from_le_bytes(array(bytes, 48)),
        };
        let compressed = header.flags.contains(PacketFlags::COMPRESSED);
        if compressed != (header.compressed_len != 0) {
            return Err(WireError::Disagreement("COMPRESSED and compressed_len"));
        }
        let longest = header.payload_len.max(header.compressed_len) as usize;
        if longest > MAX_PAYLOAD {
            return Err(WireError::FrameTooLarge {
                len: longest.saturating_add(HEADER_LEN),
                max: MAX_PAYLOAD + HEADER_LEN,
            });
        }
        Ok(header)
    }

    /// The bytes of this header.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = PROTOCOL_VERSION;
        bytes[1] = self.packet_type as u8;
        bytes[2..4].copy_from_slice(&self.flags.bits().to_le_bytes());
        bytes[4..8].copy_from_slice(&self.payload_len.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.compressed_len.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.crc32.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.timestamp_ns.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.stream_id.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.message_id.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.response_to.to_le_bytes());
        bytes
    }

    /// The bytes of this header with a checksum over itself and the payload, of which `payload` has seen every byte.
    pub(crate) fn to_bytes_with_crc(mut self, payload: &crc32fast::Hasher) -> [u8; HEADER_LEN] {
        self.crc32 = 0;
        let mut bytes = self.to_bytes();
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&bytes);
        hasher.combine(payload);
        bytes[CRC_AT..CRC_AT + 4].copy_from_slice(&hasher.finalize().to_le_bytes());
        bytes
    }

    /// Payload bytes that follow this header on the wire.
    pub fn wire_len(&self) -> usize {
        if self.flags.contains(PacketFlags::COMPRESSED) {
            self.compressed_len as usize
        } else {
            self.payload_len as usize
        }
    }

    /// Whether the checksum fits the header's bytes and the payload as it came.
    pub(crate) fn checksum_fits(&self, header: &[u8; HEADER_LEN], payload: &[u8]) -> bool {
        let mut zeroed = *header;
        zeroed[CRC_AT..CRC_AT + 4].fill(0);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&zeroed);
        hasher.update(payload);
        hasher.finalize() == self.crc32
    }

    /// As [`Self::checksum_fits`], of a copy of the whole packet, whose checksum is set to 0.
    pub(crate) fn checksum_fits_in_place(&self, packet: &mut [u8]) -> bool {
        let Some(checksum) = packet.get_mut(CRC_AT..CRC_AT + 4) else {
            return false;
        };
        checksum.fill(0);
        crc32fast::hash(packet) == self.crc32
    }

    /// Sets the checksum of a whole packet in which it is 0.
    pub(crate) fn set_checksum(packet: &mut [u8]) {
        let checksum = crc32fast::hash(packet);
        packet[CRC_AT..CRC_AT + 4].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// `N` bytes at `at`, which the caller's constant offsets keep inside the header.
fn array<const N: usize>(bytes: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> PacketHeader {
        PacketHeader {
            packet_type: PacketType::Handshake,
            flags: PacketFlags::COMPRESSED.with(PacketFlags::METADATA),
            payload_len: 0x0001_0203,
            compressed_len: 0x0000_0405,
            crc32: 0xa1a2_a3a4,
            sequence: 0x1111_1111_1111_1112,
            timestamp_ns: 0x2222_2222_2222_2223,
            stream_id: 0x3333_3333_3333_3334,
            message_id: 0x4444_4444_4444_4445,
            response_to: 0x5555_5555_5555_5556,
        }
    }

    #[test]
    fn every_field_lies_at_its_offset() {
        let bytes = sample().to_bytes();
        let table: [(usize, &[u8]); 11] = [
            (0, &[1]),
            (1, &[3]),
            (2, &[0x01, 0x02]),
            (4, &[0x03, 0x02, 0x01, 0x00]),
            (8, &[0x05, 0x04, 0x00, 0x00]),
            (12, &[0xa4, 0xa3, 0xa2, 0xa1]),
            (16, &[0x12, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11]),
            (24, &[0x23, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22]),
            (32, &[0x34, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33, 0x33]),
            (40, &[0x45, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44, 0x44]),
            (48, &[0x56, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55]),
        ];
        let mut covered = 0;
        for (at, expected) in table {
            assert_eq!(&bytes[at..at + expected.len()], expected, "at offset {at}");
            assert_eq!(at, covered, "fields leave no hole");
            covered = at + expected.len();
        }
        assert_eq!(covered, HEADER_LEN);
        assert_eq!(PacketHeader::parse(&bytes), Ok(sample()));
    }

    #[test]
    fn what_this_version_does_not_know_is_refused() {
        let good = sample().to_bytes();
        let with = |at: usize, value: u8| {
            let mut bytes = good;
            bytes[at] = value;
            PacketHeader::parse(&bytes)
        };
        assert_eq!(with(0, 0), Err(WireError::Version(0)));
        assert_eq!(with(0, 2), Err(WireError::Version(2)));
        assert_eq!(with(1, 4), Err(WireError::PacketType(4)));
        assert_eq!(
            with(2, 0b0000_0011),
            Err(WireError::Flags(0x0203)),
            "ENCRYPTED"
        );
        assert_eq!(
            with(2, 0b0000_0101),
            Err(WireError::Flags(0x0205)),
            "FRAGMENTED"
        );
        assert_eq!(
            with(3, 0b0000_1010),
            Err(WireError::Flags(0x0a01)),
            "bit 11"
        );
        assert_eq!(
            with(3, 0b1000_0010),
            Err(WireError::Flags(0x8201)),
            "bit 15"
        );
        assert!(
            matches!(with(2, 0), Err(WireError::Disagreement(_))),
            "compressed_len without COMPRESSED"
        );
        assert!(
            matches!(with(7, 0x01), Err(WireError::FrameTooLarge { .. })),
            "payload_len of 16 MiB"
        );
        assert!(
            matches!(with(10, 0xff), Err(WireError::FrameTooLarge { .. })),
            "compressed_len of 16 MiB"
        );
    }

    #[test]
    fn checksum_covers_header_and_payload() {
        let payload = b"payload";
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(payload);
        let bytes = sample().to_bytes_with_crc(&hasher);
        let header = PacketHeader::parse(&bytes).unwrap();
        assert!(header.checksum_fits(&bytes, payload));
        assert!(!header.checksum_fits(&bytes, b"paYload"));
    }
}
