//! Maps by numbers that this process gave out.
//!
//! No peer chooses these numbers, so none can choose them to collide, and the keyed hash that names from the network need
//! is not necessary. Never to be used with anything received.

/// A map by a number, or a newtype of one.
pub(crate) type IdMap<K, V> = rustc_hash::FxHashMap<K, V>;
