//! What a schema may cost. Every bound that reading, checking or generating keeps stands here, by name.

/// The largest file that is read.
pub const MAX_FILE_BYTES: usize = 1024 * 1024;

/// How many files one schema may consist of, imports included.
pub const MAX_FILES: usize = 256;

/// How long a chain of imports may be.
pub const MAX_IMPORT_DEPTH: usize = 16;

/// How deep blocks may nest in a file. The grammar needs five levels.
pub const MAX_BLOCK_DEPTH: usize = 32;

/// How many errors are reported in one go; the rest is only counted.
pub const MAX_DIAGNOSTICS: usize = 50;

/// The longest name of anything, in bytes. Names travel with every message.
pub const MAX_NAME_BYTES: usize = 128;

/// How many typedefs may stand on top of each other.
pub const MAX_TYPEDEF_DEPTH: usize = 32;

/// How many values, fields, messages or channels one thing may have.
pub const MAX_MEMBERS: usize = 4096;
