//! Any bytes, cut anywhere: frames read from the whole stream and from pieces of it are the same.

use bytes::Bytes;
use kumi_unison::ProtocolMessage;
use kumi_unison::wire::{FrameReader, PacketHeader};

/// What became of a stream of bytes.
#[derive(Debug, PartialEq)]
struct Outcome {
    packets: Vec<(PacketHeader, Bytes)>,
    error: Option<String>,
    legacy: bool,
}

/// Runs one input.
pub fn run(input: &[u8]) {
    // The first two bytes choose the form and the cuts, the rest is the stream.
    let [choice, seed, stream @ ..] = input else {
        return;
    };
    let detect = choice % 2 == 1;
    let mut rng = fastrand::Rng::with_seed(u64::from(*seed));
    let whole = read(stream, detect, || usize::MAX);
    let bytewise = read(stream, detect, || 1);
    let pieces = read(stream, detect, || rng.usize(1..200));
    assert_eq!(whole.packets, bytewise.packets);
    assert_eq!(whole.packets, pieces.packets);
    assert_eq!(whole.error.is_some(), bytewise.error.is_some());
    assert_eq!(whole.error.is_some(), pieces.error.is_some());
    for (header, body) in &whole.packets {
        let _ = ProtocolMessage::decode(header, body);
    }
}

/// Reads a stream that arrives in pieces, as a channel would.
fn read(stream: &[u8], detect: bool, mut piece: impl FnMut() -> usize) -> Outcome {
    let mut reader = if detect {
        FrameReader::detecting_legacy()
    } else {
        FrameReader::new()
    };
    let mut outcome = Outcome {
        packets: Vec::new(),
        error: None,
        legacy: false,
    };
    let mut rest = Bytes::copy_from_slice(stream);
    loop {
        let ended = rest.is_empty();
        let cut = piece().min(rest.len());
        reader.push(rest.split_to(cut));
        let mut next = reader.next();
        while let Ok(Some(packet)) = next {
            outcome.packets.push((packet.header, packet.body));
            next = reader.next();
        }
        if let Err(error) = next {
            outcome.error = Some(error.to_string());
            break;
        }
        assert!(reader.buffered_bytes() <= stream.len());
        if ended {
            match reader.end() {
                Ok(packet) => outcome
                    .packets
                    .extend(packet.map(|packet| (packet.header, packet.body))),
                Err(error) => outcome.error = Some(error.to_string()),
            }
            break;
        }
    }
    outcome.legacy = reader.is_legacy();
    outcome
}
