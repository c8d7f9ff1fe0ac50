//! What a file may cost.

/// The largest file that callers of [`parse`](crate::parse) should read.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// How deep blocks may nest in a file.
pub const MAX_BLOCK_DEPTH: usize = 32;

/// How many errors are reported in one go; the rest is only counted.
pub const MAX_DIAGNOSTICS: usize = 50;
