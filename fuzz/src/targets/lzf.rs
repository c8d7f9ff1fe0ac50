//! Any bytes: what was compressed comes back, and compressed text of any kind is expanded or refused.

/// Runs one input.
pub fn run(input: &[u8]) {
    let [low, high, bytes @ ..] = input else {
        return;
    };
    kumi_store::fuzzing::lzf(bytes, usize::from(u16::from_le_bytes([*low, *high])));
}
