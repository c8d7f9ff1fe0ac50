//! What a schema may cost. Every bound that reading, checking or generating keeps stands here, by name.

pub use kumi_kdl::{MAX_BLOCK_DEPTH, MAX_DIAGNOSTICS, MAX_FILE_BYTES};

/// How many files one schema may consist of, imports included.
pub const MAX_FILES: usize = 256;

/// How long a chain of imports may be.
pub const MAX_IMPORT_DEPTH: usize = 16;

/// The longest name of anything, in bytes. Names travel with every message.
pub const MAX_NAME_BYTES: usize = 128;

/// How many typedefs may stand on top of each other.
pub const MAX_TYPEDEF_DEPTH: usize = 32;

/// How many values, fields, messages or channels one thing may have.
pub const MAX_MEMBERS: usize = 4096;
