//! Any bytes as the archive of a message: refused or understood, whatever their alignment, and never a panic.

use bytes::Bytes;
use kumi_unison::ProtocolMessage;

/// Runs one input.
pub fn run(input: &[u8]) {
    let archive = Bytes::copy_from_slice(input);
    let read = ProtocolMessage::from_archive(&archive);
    let mut shifted = vec![0];
    shifted.extend_from_slice(input);
    let shifted = Bytes::from(shifted).slice(1..);
    assert_eq!(ProtocolMessage::from_archive(&shifted), read);
    if let Ok(message) = read {
        let again = message.to_archive().expect("it was an archive");
        assert_eq!(ProtocolMessage::from_archive(&again), Ok(message));
    }
}
