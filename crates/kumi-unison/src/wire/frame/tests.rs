//! Frames cut, packed, damaged and cut short.

use proptest::prelude::*;

use super::*;
use crate::wire::{
    Codec, ContentType, MessageType, Outgoing, Output, PacketType, ProtocolMessage, encode_frame,
    encode_unframed,
};

fn message(id: u64, method: &str, payload: Vec<u8>) -> ProtocolMessage {
    ProtocolMessage::request(id, method, ContentType::Bytes, payload)
}

fn frame(message: &ProtocolMessage) -> Vec<u8> {
    encode_frame(PacketType::Data, message, &Codec::new()).unwrap()
}

fn read_all(reader: &mut FrameReader) -> Result<Vec<ProtocolMessage>, WireError> {
    let mut messages = Vec::new();
    while let Some(packet) = reader.next()? {
        messages.push(ProtocolMessage::decode(&packet.header, &packet.body)?.0);
    }
    Ok(messages)
}

fn read(bytes: &[u8]) -> Result<Vec<ProtocolMessage>, WireError> {
    let mut reader = FrameReader::new();
    reader.push(Bytes::copy_from_slice(bytes));
    let messages = read_all(&mut reader)?;
    reader.end()?;
    Ok(messages)
}

#[test]
fn a_frame_has_these_bytes() {
    let bytes = frame(&ProtocolMessage::event(
        "tick",
        ContentType::Json,
        &b"{\"n\":1}"[..],
    ));
    #[rustfmt::skip]
    let expected = [
        0, 0, 0, 96,
        1, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0,
        bytes[16], bytes[17], bytes[18], bytes[19],
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        b'{', b'"', b'n', b'"', b':', b'1', b'}', 0,
        0, 0, 0, 0, 0, 0, 0, 0,
        b't', b'i', b'c', b'k', 0xff, 0xff, 0xff, 0xff,
        2, 0, 0, 0, 0xe4, 0xff, 0xff, 0xff,
        7, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(bytes, expected);
    // The checksum, computed bit by bit as IEEE 802.3 has it.
    let mut summed = bytes[4..].to_vec();
    summed[12..16].fill(0);
    let mut crc = u32::MAX;
    for byte in summed {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    assert_eq!(bytes[16..20], (!crc).to_le_bytes());
}

#[test]
fn every_flipped_bit_is_noticed() {
    let plain = frame(&message(3, "some.method", vec![9; 50]));
    let compressed = frame(&message(4, "some.method", vec![9; 5_000]));
    for good in [plain, compressed] {
        assert_eq!(read(&good).unwrap().len(), 1);
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bytes = good.clone();
                bytes[at] ^= 1 << bit;
                assert!(read(&bytes).is_err(), "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn every_truncation_is_noticed() {
    let good = frame(&message(3, "some.method", vec![9; 50]));
    for len in 1..good.len() {
        assert_eq!(read(&good[..len]), Err(WireError::Truncated), "{len} bytes");
    }
    assert_eq!(read(&[]).unwrap(), []);
}

#[test]
fn a_length_is_judged_before_its_bytes_come() {
    let check = |prefix: u32, expected: WireError| {
        let mut reader = FrameReader::new();
        reader.push(Bytes::copy_from_slice(&prefix.to_be_bytes()));
        assert_eq!(reader.next().unwrap_err(), expected);
    };
    let max = MAX_MESSAGE_SIZE;
    check(
        max as u32 + 1,
        WireError::FrameTooLarge { len: max + 1, max },
    );
    check(
        u32::MAX,
        WireError::FrameTooLarge {
            len: u32::MAX as usize,
            max,
        },
    );
    check(
        0x0100_0000,
        WireError::FrameTooLarge {
            len: 0x0100_0000,
            max,
        },
    );
    check(
        55,
        WireError::LengthMismatch {
            frame: 55,
            header: HEADER_LEN,
        },
    );
    check(
        0,
        WireError::LengthMismatch {
            frame: 0,
            header: HEADER_LEN,
        },
    );
}

#[test]
fn a_length_that_differs_from_the_header_is_refused_with_the_header() {
    let mut bytes = frame(&message(1, "m", vec![0; 100]));
    bytes[3] += 1;
    let mut reader = FrameReader::new();
    reader.push(Bytes::copy_from_slice(&bytes[..PREFIX_LEN + HEADER_LEN]));
    assert!(matches!(
        reader.next(),
        Err(WireError::LengthMismatch { .. })
    ));
}

#[test]
fn a_claimed_length_allocates_nothing() {
    let mut output = Output::new(0);
    let payload = Bytes::from(vec![0; 7 << 20]);
    let noise: Bytes = (0..7_u32 << 20)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect::<Vec<_>>()
        .into();
    for payload in [payload, noise] {
        let message = message(1, "m", payload.to_vec());
        output
            .push(
                &Outgoing::message(PacketType::Data, &message),
                0,
                &Codec::new(),
            )
            .unwrap();
    }
    let mut chunks = Vec::new();
    output.take(&mut chunks);
    let bytes = chunks.concat();
    let mut reader = FrameReader::new();
    let first = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize + PREFIX_LEN;
    reader.push(Bytes::copy_from_slice(&bytes[first..first + 200]));
    assert!(reader.next().unwrap().is_none());
    assert!(
        reader.body.capacity() <= 1024 && reader.buffered_bytes() <= 200,
        "{}",
        reader.body.capacity()
    );
}

#[test]
fn many_tiny_chunks_are_folded_together() {
    let bytes = frame(&message(1, "m", vec![3; 1_500]));
    let mut reader = FrameReader::new();
    for byte in &bytes[..bytes.len() - 1] {
        reader.push(Bytes::copy_from_slice(&[*byte]));
        assert!(reader.next().unwrap().is_none());
        assert!(reader.chunks.len() <= HELD_CHUNKS);
    }
    reader.push(Bytes::copy_from_slice(&bytes[bytes.len() - 1..]));
    assert!(reader.next().unwrap().is_some());
    assert_eq!(reader.buffered_bytes(), 0);
}

#[test]
fn the_legacy_form_is_told_apart_by_its_first_byte() {
    let request = message(9, "old.call", b"hello".to_vec());
    let bytes = encode_unframed(&request, &Codec::new()).unwrap();
    assert_eq!(bytes[0], 1);
    for cut in 0..=bytes.len() {
        let mut reader = FrameReader::detecting_legacy();
        for part in [&bytes[..cut], &bytes[cut..]] {
            reader.push(Bytes::copy_from_slice(part));
            assert!(
                reader.next().unwrap().is_none(),
                "complete only at the stream's end"
            );
        }
        assert!(reader.is_legacy());
        let packet = reader.end().unwrap().unwrap();
        assert_eq!(
            ProtocolMessage::decode(&packet.header, &packet.body)
                .unwrap()
                .0,
            request
        );
    }
}

#[test]
fn a_legacy_packet_with_too_few_or_too_many_bytes_is_refused() {
    let bytes = encode_unframed(&message(9, "old.call", b"hello".to_vec()), &Codec::new()).unwrap();
    for len in 4..bytes.len() {
        let mut reader = FrameReader::detecting_legacy();
        reader.push(Bytes::copy_from_slice(&bytes[..len]));
        assert!(reader.next().unwrap().is_none());
        assert!(reader.end().is_err(), "{len} bytes");
    }
    let mut reader = FrameReader::detecting_legacy();
    reader.push(Bytes::from([&bytes[..], b"x"].concat()));
    assert!(matches!(
        reader.next(),
        Err(WireError::LengthMismatch { .. })
    ));
}

#[test]
fn a_server_reads_frames_too_and_refuses_other_lengths() {
    let mut reader = FrameReader::detecting_legacy();
    reader.push(frame(&message(1, "m", vec![1])).into());
    assert_eq!(read_all(&mut reader).unwrap().len(), 1);
    let mut reader = FrameReader::detecting_legacy();
    reader.push(Bytes::from_static(&[2, 0, 0, 0]));
    assert!(matches!(
        reader.next(),
        Err(WireError::FrameTooLarge { .. })
    ));
}

#[test]
fn header_and_message_must_agree() {
    let check = |change: fn(&mut PacketHeader)| {
        let request = message(7, "m", vec![1]);
        let mut reader = FrameReader::new();
        reader.push(frame(&request).into());
        let Packet { mut header, body } = reader.next().unwrap().unwrap();
        change(&mut header);
        ProtocolMessage::decode(&header, &body).map(|_| ())
    };
    assert_eq!(check(|_| ()), Ok(()));
    assert!(check(|header| header.message_id = 8).is_err());
    assert!(check(|header| header.message_id = 0).is_err());
    assert!(check(|header| header.response_to = 7).is_err());
    assert!(check(|header| header.flags = PacketFlags::ERROR).is_err());
    assert!(check(|header| header.flags = PacketFlags::METADATA).is_err());
}

#[test]
fn a_compressed_bomb_is_refused() {
    let compressed = zstd::bulk::compress(&vec![0; 32 << 20], 1).unwrap();
    for payload_len in [1_000, (MAX_MESSAGE_SIZE - HEADER_LEN) as u32] {
        let header = PacketHeader {
            packet_type: PacketType::Data,
            flags: PacketFlags::COMPRESSED,
            payload_len,
            compressed_len: compressed.len() as u32,
            crc32: 0,
            sequence: 0,
            timestamp_ns: 0,
            stream_id: 0,
            message_id: 1,
            response_to: 0,
        };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&compressed);
        let mut bytes = ((HEADER_LEN + compressed.len()) as u32)
            .to_be_bytes()
            .to_vec();
        bytes.extend_from_slice(&header.to_bytes_with_crc(&hasher));
        bytes.extend_from_slice(&compressed);
        assert!(matches!(read(&bytes), Err(WireError::Decompress(_))));
    }
}

fn any_message() -> impl Strategy<Value = ProtocolMessage> {
    let payload = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        (any::<u8>(), 0_usize..9_000).prop_map(|(byte, len)| vec![byte; len]),
        proptest::collection::vec(any::<u8>(), 2_000..6_000),
    ];
    ("[a-z.]{0,40}", payload, 0_u8..4, 1_u64..).prop_map(|(method, payload, kind, id)| {
        let (msg_type, id) = match kind {
            0 => (MessageType::Request, id),
            1 => (MessageType::Response, id),
            2 => (MessageType::Event, 0),
            _ => (MessageType::Error, id),
        };
        ProtocolMessage {
            id,
            method,
            msg_type,
            content_type: ContentType::Bytes,
            payload: payload.into(),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn packed_frames_come_out_whole_however_they_are_cut(
        messages in proptest::collection::vec(any_message(), 1..12),
        cuts in proptest::collection::vec(1_usize..5_000, 0..40),
    ) {
        let codec = Codec::new();
        let mut output = Output::new(5);
        for message in &messages {
            output.push(&Outgoing::message(PacketType::Data, message), 1, &codec).unwrap();
        }
        let mut chunks = Vec::new();
        let queued = output.queued_bytes();
        output.take(&mut chunks);
        let mut bytes = Bytes::from(chunks.concat());
        prop_assert_eq!(bytes.len(), queued);
        prop_assert_eq!(output.taken(), output.end());
        let mut reader = FrameReader::new();
        let mut read = Vec::new();
        let mut cuts = cuts.into_iter();
        while !bytes.is_empty() {
            let cut = cuts.next().unwrap_or(usize::MAX).min(bytes.len());
            reader.push(bytes.split_to(cut));
            read.extend(read_all(&mut reader).unwrap());
        }
        prop_assert!(reader.end().unwrap().is_none());
        prop_assert_eq!(read, messages);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        for mut reader in [FrameReader::new(), FrameReader::detecting_legacy()] {
            reader.push(Bytes::from(bytes.clone()));
            let _ = read_all(&mut reader).and_then(|_| reader.end());
        }
    }
}
