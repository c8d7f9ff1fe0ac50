//! Any bytes as a file of an append-only file: they are loaded up to a place or refused, and what was good is good again.

use kumi_server::fuzzing::scan_bytes;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    if let Some(good) = scan_bytes(bytes) {
        let good = usize::try_from(good).expect("it is in memory");
        assert_eq!(scan_bytes(&bytes[..good]), Some(good as u64));
    }
}
