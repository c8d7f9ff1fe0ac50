//! The identity of a peer: certificates, pins and keys for QUIC's TLS 1.3.
//!
//! A [`ServerTls`] or a [`ClientTls`] is one whole decision about trust, made by a constructor whose name says what it
//! is. There is no default, and none that trusts every peer: the single constructor that verifies nothing
//! ([`ClientTls::danger_skip_verification_on_loopback`]) is refused for every address that is not this machine's own.
//!
//! The cryptography is `ring`'s, handed to rustls explicitly, so no process-wide default is read or set. Sessions are
//! never resumed and nothing is sent before the handshake is complete: each connection verifies its peer anew, and an
//! early request that was recorded cannot be replayed.

mod client;
mod cluster;
mod credentials;
mod error;
mod fingerprint;
mod key_file;
pub(crate) mod names;
mod server;
mod trust_store;
mod verify;

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

pub(crate) use self::client::Attempt;
pub use self::client::ClientTls;
pub use self::cluster::ClusterKey;
pub use self::credentials::Credentials;
pub use self::error::{CertificateFault, TlsError};
pub use self::fingerprint::Fingerprint;
pub use self::key_file::check_private_file;
pub(crate) use self::server::ResetSecret;
pub use self::server::ServerTls;
pub use self::trust_store::TrustStore;

/// The one provider of cryptography. Built where it is needed, so that a program that embeds this crate
/// chooses its process default itself.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
