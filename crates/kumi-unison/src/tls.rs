//! TLS 1.3 for QUIC: certificates, pins, keys, and the rules by which peers are verified.
//!
//! A [`ServerTls`] or a [`ClientTls`] is a complete trust configuration, made by a constructor that is named after its rule.
//! There is no default. The only constructor that verifies nothing
//! ([`ClientTls::danger_skip_verification_on_loopback`]) works for loopback addresses only.
//!
//! The cryptography is `ring`'s, handed to rustls explicitly, so no process-wide default is read or set. Sessions are
//! never resumed and there is no 0-RTT data: each connection verifies its peer, and a recorded request cannot be
//! replayed.

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
pub use self::server::ServerTls;
pub(crate) use self::server::{Guests, ResetSecret};
pub use self::trust_store::TrustStore;

/// The cryptography provider. It is passed explicitly, so that the process default stays the embedding program's choice.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
