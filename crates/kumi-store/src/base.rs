//! What everything else stands on: numbers, texts, codes, small algorithms, ids and errors.
//!
//! Imports nothing else of this crate.

pub(crate) mod bits;
pub(crate) mod clock;
pub mod crc64;
pub(crate) mod error;
pub(crate) mod extended;
pub(crate) mod geo;
pub(crate) mod glob;
pub(crate) mod histogram;
pub(crate) mod hyperloglog;
pub(crate) mod ids;
pub(crate) mod lzf;
pub(crate) mod number;
pub(crate) mod seeds;
pub(crate) mod size_class;
pub(crate) mod version;
