//! Any bytes as an RDB file: they are loaded or refused, and what was loaded can be saved and loaded again.

/// Runs one input.
pub fn run(file: &[u8]) {
    kumi_store::fuzzing::load_file(file);
}
