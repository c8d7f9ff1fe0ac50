//! Packets whose length and checksum are right, so that the fuzzer gets behind them: to flags, compression, metadata
//! and the message.

use bytes::Bytes;
use kumi_unison::ProtocolMessage;
use kumi_unison::wire::{Codec, FrameReader, HEADER_LEN, PacketType, encode_frame};

/// Runs one input.
pub fn run(input: &[u8]) {
    if input.len() < HEADER_LEN {
        return;
    }
    let mut packet = input.to_vec();
    packet[0] = 1;
    let len = (packet.len() - HEADER_LEN) as u32;
    // COMPRESSED decides which of the two lengths counts on the wire.
    let at = if packet[2] & 1 == 1 { 8 } else { 4 };
    packet[at..at + 4].copy_from_slice(&len.to_le_bytes());
    packet[12..16].fill(0);
    let crc = crc32fast::hash(&packet);
    packet[12..16].copy_from_slice(&crc.to_le_bytes());

    let mut stream = (packet.len() as u32).to_be_bytes().to_vec();
    stream.extend_from_slice(&packet);
    let mut reader = FrameReader::new();
    reader.push(Bytes::from(stream));
    let Ok(Some(packet)) = reader.next() else {
        return;
    };
    let Ok((message, _)) = ProtocolMessage::decode(&packet.header, &packet.body) else {
        return;
    };
    // What was understood is written and understood again.
    let frame =
        encode_frame(PacketType::Data, &message, &Codec::new()).expect("it came in a packet");
    let mut reader = FrameReader::new();
    reader.push(Bytes::from(frame));
    let packet = reader.next().expect("our own bytes").expect("all of them");
    let (again, _) = ProtocolMessage::decode(&packet.header, &packet.body).expect("our own bytes");
    assert_eq!(again, message);
}
