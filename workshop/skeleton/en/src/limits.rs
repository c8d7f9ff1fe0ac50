//! Given. How much a client may send or keep.

/// The longest command, in bytes (1 MB).
pub const MAX_MESSAGE: usize = 1024 * 1024;

/// The longest line that announces a length, in bytes.
pub const MAX_LINE: u64 = 64;

/// The largest number of arguments in one command.
pub const MAX_ARGUMENTS: usize = 1024;

/// The longest value, in bytes (512 KB).
pub const MAX_VALUE: usize = 512 * 1024;

/// The largest number of keys.
pub const MAX_KEYS: usize = 10_000;

/// How many messages may wait for one client (step 6).
pub const MAX_QUEUED: usize = 1024;
