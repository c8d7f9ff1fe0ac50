//! Unison: typed requests and events over QUIC, and in memory.
