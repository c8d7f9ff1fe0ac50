//! Versions that clients and files are told.

/// The Redis version whose behaviour the commands follow.
pub const REDIS_VERSION: &str = "7.2.5";
/// The version of kumi.
pub const KUMI_VERSION: &str = env!("CARGO_PKG_VERSION");
