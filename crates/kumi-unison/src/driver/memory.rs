//! The memory transport: the same channels, frames and credits inside one process.
//!
//! Messages are encoded as over QUIC, checksums included, so a test in memory is a test of the protocol. The typed channels
//! of `local` pass values without encoding them.

mod client;
mod stream;

pub use client::{ChannelSource, MemoryClient};
pub use stream::{MemoryRecv, MemorySend, memory_stream};
