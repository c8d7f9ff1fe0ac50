//! Unison over QUIC: the server, the client and their streams.
