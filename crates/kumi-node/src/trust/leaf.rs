//! A node's certificate with its private key, and the names in it.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use rcgen::{Certificate, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};

use super::verify;
use super::{Secret, TrustError};

/// The id of a data set: lower-case letters and digits. A store's certificate has it as the name `store-<id>.kumi`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoreId(String);

impl StoreId {
    /// With `store-` it fits one label of a DNS name.
    pub const MAX_LENGTH: usize = 57;

    /// Checks an id.
    pub fn new(id: &str) -> Result<StoreId, TrustError> {
        let is_valid = (1..=Self::MAX_LENGTH).contains(&id.len())
            && id
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        match is_valid {
            true => Ok(StoreId(id.to_owned())),
            false => Err(TrustError::StoreId { id: id.to_owned() }),
        }
    }

    /// The id alone.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that the store's certificate has. It is never resolved.
    pub fn certificate_name(&self) -> String {
        format!("store-{}.kumi", self.0)
    }
}

/// The names that a node's certificate is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafNames {
    node: String,
    hosts: Vec<String>,
    store: Option<StoreId>,
}

impl LeafNames {
    /// `node` is the node's own name; `hosts` are the addresses and names that others reach it by.
    pub fn new(node: &str, hosts: impl IntoIterator<Item = String>) -> LeafNames {
        LeafNames {
            node: node.to_owned(),
            hosts: hosts.into_iter().collect(),
            store: None,
        }
    }

    /// The node has the store with this id.
    #[must_use]
    pub fn with_store(mut self, store: StoreId) -> LeafNames {
        self.store = Some(store);
        self
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// The hosts, and the store's name.
    pub(super) fn alternative_names(&self) -> Result<Vec<SanType>, TrustError> {
        let store = self.store.as_ref().map(StoreId::certificate_name);
        let all = self.hosts.iter().chain(&store);
        all.map(|name| {
            alternative_name(name).ok_or_else(|| TrustError::Name { name: name.clone() })
        })
        .collect()
    }
}

fn alternative_name(name: &str) -> Option<SanType> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Some(SanType::IpAddress(address));
    }
    // What no client would check a certificate against is refused.
    let ServerName::DnsName(_) = ServerName::try_from(name).ok()? else {
        return None;
    };
    Some(SanType::DnsName(name.try_into().ok()?))
}

/// A certificate that the authority signed, with its private key. `Debug` does not show the key.
pub struct Leaf {
    certificate: CertificateDer<'static>,
    certificate_pem: String,
    key: PrivateKeyDer<'static>,
    key_pem: Secret,
    made: SystemTime,
    ends: SystemTime,
}

impl Leaf {
    pub(super) fn new(
        certificate: Certificate,
        pair: &KeyPair,
        made: SystemTime,
        ends: SystemTime,
    ) -> Leaf {
        Leaf {
            certificate_pem: certificate.pem(),
            certificate: certificate.into(),
            key: PrivatePkcs8KeyDer::from(pair.serialize_der()).into(),
            key_pem: Secret::of_text(pair.serialize_pem()),
            made,
            ends,
        }
    }

    /// The certificate in PEM, for `tls-cert-file`.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The private key in PEM, for `tls-key-file`: a file for its owner alone.
    pub fn key_pem(&self) -> &Secret {
        &self.key_pem
    }

    /// From here on the certificate is to be replaced: half of its life is over.
    pub fn renew_at(&self) -> SystemTime {
        let life = self.ends.duration_since(self.made).unwrap_or_default();
        self.made + life / 2
    }

    /// Whether a new certificate is due at this time: half of its life is over, or the clock was set back before the
    /// time it was made at.
    pub fn is_due(&self, now: SystemTime) -> bool {
        now >= self.renew_at() || now < self.made
    }

    /// The end of its life.
    pub fn ends_at(&self) -> SystemTime {
        self.ends
    }

    /// How a listener shows this certificate. Clients show none: they log in as a user, or with a token.
    pub fn server_config(&self) -> Result<Arc<rustls::ServerConfig>, TrustError> {
        verify::server_config(vec![self.certificate.clone()], self.key.clone_key())
    }
}

impl fmt::Debug for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaf")
            .field("ends", &self.ends)
            .finish_non_exhaustive()
    }
}
