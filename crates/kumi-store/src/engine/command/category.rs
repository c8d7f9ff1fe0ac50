//! ACL categories beyond those that follow from the flags.

pub(crate) const KEYSPACE: u32 = 1 << 0;
pub(crate) const STRING: u32 = 1 << 1;
pub(crate) const CONNECTION: u32 = 1 << 2;
pub(crate) const TRANSACTION: u32 = 1 << 3;
pub(crate) const DANGEROUS: u32 = 1 << 4;
pub(crate) const SCRIPTING: u32 = 1 << 5;
/// For commands that tell of the server without the flag that keeps them out of MONITOR.
pub(crate) const ADMIN: u32 = 1 << 6;
pub(crate) const SET: u32 = 1 << 7;
pub(crate) const HASH: u32 = 1 << 8;
pub(crate) const BITMAP: u32 = 1 << 9;
pub(crate) const HYPERLOGLOG: u32 = 1 << 10;
pub(crate) const LIST: u32 = 1 << 11;
pub(crate) const STREAM: u32 = 1 << 12;
pub(crate) const SORTED_SET: u32 = 1 << 13;
pub(crate) const GEO: u32 = 1 << 14;
