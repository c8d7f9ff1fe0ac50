//! Any value behind a right footer, and the inside of each packed format: it is refused, or it can be read by every
//! command of its type, written and read again.

use crate::{packed_payload, read_restored};

/// Runs one input.
pub fn run(value: &[u8]) {
    // As it is: the footer is judged.
    kumi_store::fuzzing::restore(value);
    // With a footer of its own: the value is judged.
    let mut payload = value.to_vec();
    kumi_store::fuzzing::seal_dump(&mut payload);
    if kumi_store::fuzzing::restore(&payload) {
        read_restored(&payload);
    }
    // Inside a packed format whose header is right.
    if let Some(mut payload) = packed_payload(value) {
        kumi_store::fuzzing::seal_dump(&mut payload);
        if kumi_store::fuzzing::restore(&payload) {
            read_restored(&payload);
        }
    }
}
