//! What a node derives from the cluster's key: passwords of the store's users, a certificate authority, tokens.
//!
//! Every node that holds the key derives the same, so nothing of it is sent or stored. The labels are below; a label has a
//! version, and its derivation never changes:
//!
//! ```text
//! prk = HKDF-Extract-SHA256(salt = "kumi unison/1 cluster", ikm = secret)     as for membership
//! x   = HKDF-Expand-SHA256(prk, info = label)
//!
//! kumi node/1 acl kumi-node     32 bytes, base64url without padding: the password of the store's user kumi-node
//! kumi node/1 acl kumi-app      32 bytes, base64url: the password of kumi-app
//! kumi node/1 operator          32 bytes, base64url: the operator's key
//! kumi node/1 metrics token     32 bytes, base64url: the bearer token of /metrics
//! kumi node/1 cluster id        8 bytes, hexadecimal: names the cluster; it is no secret
//! kumi node/1 ca || counter     32 bytes, a P-256 private key; the counter is one byte, from 0 up to a valid scalar
//! kumi node/1 ca serial         16 bytes, the serial number of the authority's certificate
//! ```
//!
//! A key file may hold two keys while a key is replaced. The first is used: its passwords, authority and id. Both are
//! accepted. With certificates of the operator's own (CA mode) there is no key, and nothing here is derived.
//!
//! This folder reads key files and the system's randomness. It opens no socket and reads no clock: times are arguments.

mod acl;
mod authority;
mod derived;
mod leaf;
mod secret;
mod signing_key;
#[cfg(test)]
mod tests;
mod verify;

pub use acl::AclUser;
pub use authority::Authority;
pub use derived::{ClusterId, Trust};
pub use leaf::{Leaf, LeafNames, StoreId};
pub use secret::Secret;

/// Why something could not be derived, signed or set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The key file cannot be used. The operator's to mend.
    #[error(transparent)]
    Key(#[from] kumi_unison::TlsError),
    /// A name of the node that a certificate cannot carry. The configuration's fault.
    #[error(
        "{name:?} is neither a DNS name nor an IP address, so no certificate can be made for it"
    )]
    Name {
        /// The name as given.
        name: String,
    },
    /// An id that is no id of a data set.
    #[error("{id:?} is not the id of a store: 1 to {limit} lower-case letters and digits", limit = StoreId::MAX_LENGTH)]
    StoreId {
        /// The id as given.
        id: String,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// TLS cannot be set up with what was derived.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
    /// The time is before 1970 or too late for a certificate.
    #[error("the clock shows a time that no certificate can carry")]
    Clock,
}
