//! Maps keyed by request ids.
//!
//! Ids count up, so a fast hash spreads them well enough, and every call looks its id up four times. A peer that chooses ids
//! to collide slows down its own channel, by no more than its in-flight limit.

/// A map from request ids.
pub(super) type IdMap<T> = rustc_hash::FxHashMap<u64, T>;
