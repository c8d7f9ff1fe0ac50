//! Commands on keys and their values, a file or a folder per family.

pub(super) mod bitmaps;
pub(super) mod dump;
mod elements;
pub(super) mod expire;
pub(super) mod geo;
pub(super) mod hashes;
pub(super) mod hyperloglog;
pub(super) mod keys;
pub(super) mod lists;
pub(super) mod object;
pub(super) mod scan;
pub(super) mod sets;
pub(super) mod sort;
pub(super) mod sorted_sets;
pub(super) mod streams;
pub(super) mod strings;
