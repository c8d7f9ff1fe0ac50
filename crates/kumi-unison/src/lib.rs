//! Unison: typed requests and events over QUIC, and in memory.

mod quic;
#[allow(
    dead_code,
    unused_imports,
    reason = "the endpoints that use the rest of it come next"
)]
mod tls;

pub use tls::{ClientTls, ClusterKey, Credentials, Fingerprint, ServerTls, TlsError, TrustStore};
