//! Unison without a network: the same channels, frames and credits between two parts of one process.
//!
//! What goes through here goes through the same bytes as over QUIC, checksums included, so a test in memory is a test
//! of the protocol. For values that need no bytes at all there are the typed channels of `local`.

mod client;
mod pipe;

pub use client::{ChannelSource, MemoryClient};
pub use pipe::{MemoryRecv, MemorySend, memory_stream};
