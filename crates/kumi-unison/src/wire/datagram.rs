//! Events in datagrams, in a short form.
//!
//! A datagram of QUIC is whole and authentic, has no order and carries one event, so it needs no length, no checksum, no
//! sequence number and no archive:
//!
//! ```text
//! | 0x80 + content type, u8 | stream id, QUIC varint | method's length u8 | method | payload |
//! ```
//!
//! A channel's event of 35 bytes with a name of one letter takes 39 bytes this way, and 128 as a packet. The first byte of a
//! packet is its version, which stays below 0x80, so a reader tells both forms apart. Events that are long enough to be
//! compressed, and those with long names, travel as packets.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::error::WireError;
use super::message::{ContentType, ProtocolMessage};

/// Set in the first byte of the short form.
const SHORT: u8 = 0x80;

/// The largest number that a QUIC varint holds.
const MAX_VARINT: u64 = (1 << 62) - 1;

/// An event in the short form; `None` if it has to travel as a packet.
pub(crate) fn encode_short(
    stream_id: u64,
    method: &str,
    content_type: ContentType,
    payload: &[u8],
) -> Option<Bytes> {
    let method_len = u8::try_from(method.len()).ok()?;
    if stream_id > MAX_VARINT {
        return None;
    }
    let mut out = BytesMut::with_capacity(10 + method.len() + payload.len());
    out.put_u8(SHORT | content_type as u8);
    put_varint(&mut out, stream_id);
    out.put_u8(method_len);
    out.put_slice(method.as_bytes());
    out.put_slice(payload);
    Some(out.freeze())
}

/// Whether a datagram has the short form.
pub(crate) fn is_short(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & SHORT != 0)
}

/// The stream and the event of a datagram in the short form. The payload is a view into the datagram.
///
/// # Errors
/// When it ends early, or its content type or name is none.
pub(crate) fn decode_short(mut datagram: Bytes) -> Result<(u64, ProtocolMessage), WireError> {
    const INVALID: WireError = WireError::Message("short datagram");
    let content_type = match datagram.try_get_u8().map_err(|_| INVALID)? & !SHORT {
        0 => ContentType::Json,
        1 => ContentType::Bytes,
        2 => ContentType::Typed,
        _ => return Err(INVALID),
    };
    let stream_id = take_varint(&mut datagram).ok_or(INVALID)?;
    let method_len = usize::from(datagram.try_get_u8().map_err(|_| INVALID)?);
    if datagram.len() < method_len {
        return Err(INVALID);
    }
    let method = datagram.split_to(method_len);
    let method = std::str::from_utf8(&method).map_err(|_| INVALID)?;
    Ok((
        stream_id,
        ProtocolMessage::event(method, content_type, datagram),
    ))
}

/// The two top bits of the first byte say how many bytes there are: 1, 2, 4 or 8, the highest first.
fn put_varint(out: &mut BytesMut, value: u64) {
    match value {
        0..0x40 => out.put_u8(value as u8),
        0x40..0x4000 => out.put_u16(0x4000 | value as u16),
        0x4000..0x4000_0000 => out.put_u32(0x8000_0000 | value as u32),
        _ => out.put_u64(0xc000_0000_0000_0000 | value),
    }
}

fn take_varint(bytes: &mut Bytes) -> Option<u64> {
    let len = 1 << (bytes.first()? >> 6);
    if bytes.len() < len {
        return None;
    }
    let value = bytes.get_uint(len);
    // The two bits lie at the top of the bytes that were read.
    Some(value & (u64::MAX >> (64 - 8 * len + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest name of an event in the short form.
    const MAX_SHORT_METHOD: usize = u8::MAX as usize;

    #[test]
    fn a_heartbeat_takes_four_bytes_more_than_its_payload() {
        let datagram = encode_short(4, "m", ContentType::Bytes, &[7; 35]).unwrap();
        assert_eq!(datagram.len(), 39);
        assert_eq!(datagram[..5], [0x81, 4, 1, b'm', 7]);
        assert!(is_short(&datagram));
    }

    #[test]
    fn events_come_back_as_they_were() {
        let ids = [
            0,
            63,
            64,
            16_383,
            16_384,
            (1 << 30) - 1,
            1 << 30,
            MAX_VARINT,
        ];
        let contents = [ContentType::Json, ContentType::Bytes, ContentType::Typed];
        for (n, stream_id) in ids.into_iter().enumerate() {
            for method in ["", "m", "caf\u{e9}", &"x".repeat(MAX_SHORT_METHOD)] {
                let payload = vec![n as u8; n * 7];
                let content_type = contents[n % 3];
                let datagram = encode_short(stream_id, method, content_type, &payload).unwrap();
                let (id, event) = decode_short(datagram).unwrap();
                assert_eq!(id, stream_id);
                assert_eq!(event, ProtocolMessage::event(method, content_type, payload));
            }
        }
    }

    #[test]
    fn what_has_no_short_form_is_left_to_packets() {
        let long = "x".repeat(MAX_SHORT_METHOD + 1);
        assert_eq!(encode_short(4, &long, ContentType::Json, b""), None);
        assert_eq!(encode_short(1 << 62, "m", ContentType::Json, b""), None);
    }

    #[test]
    fn garbage_is_refused_and_never_panics() {
        let good = encode_short(1 << 40, "method", ContentType::Json, b"payload").unwrap();
        for len in 0..16 {
            assert!(decode_short(good.slice(..len)).is_err(), "{len} bytes");
        }
        let mut random = fastrand::Rng::with_seed(9);
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..random.usize(..24)).map(|_| random.u8(..)).collect();
            let _ = decode_short(bytes.into());
        }
        for wrong in [&[0x83, 0, 0][..], &[0xff, 0, 0], &[0x80, 0, 2, 0xff, 0xfe]] {
            assert!(decode_short(Bytes::copy_from_slice(wrong)).is_err());
        }
    }
}
