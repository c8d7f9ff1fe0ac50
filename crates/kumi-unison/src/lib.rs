//! Unison: typed requests and events over QUIC, and in memory.

mod quic;
mod tls;
