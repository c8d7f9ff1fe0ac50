//! Certificates and trust for QUIC connections.
