//! The data types behind the keys: structures without keys, deadlines, events or commands.
//!
//! A structure takes its limits, its hash seed and its random generator as arguments and knows what
//! it holds on the heap at any time. Commands reach it through the keyspace's door.

pub(crate) mod packed;
