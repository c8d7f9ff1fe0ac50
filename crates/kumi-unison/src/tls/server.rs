//! The TLS configuration of a server: its certificate, and which clients may connect.

use std::path::Path;
use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use ring::hkdf;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::cluster::expand;
use super::credentials::certificates_in;
use super::verify::{RuleVerifier, Shown, TrustRule};
use super::{ClusterKey, Credentials, Fingerprint, TlsError, provider};
use crate::wire::ALPN;

/// The TLS configuration of a server.
///
/// ```
/// use kumi_unison::{ClientTls, ServerTls};
/// // A certificate of this process only; clients are given its fingerprint.
/// let server = ServerTls::development(&["localhost", "127.0.0.1"])?;
/// let client = ClientTls::pinned([server.fingerprint()])?;
/// # let _ = client;
/// # Ok::<(), kumi_unison::TlsError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ServerTls {
    credentials: Credentials,
    clients: Clients,
}

/// The secret from which stateless reset tokens are derived.
pub(crate) struct ResetSecret(pub(crate) [u8; 64]);

/// Which clients may connect.
#[derive(Clone, Debug)]
enum Clients {
    Every,
    Verified(Arc<dyn ClientCertVerifier>),
}

impl ServerTls {
    /// A new self-signed certificate for these names, for this process only. Every client may connect.
    pub fn development(names: &[&str]) -> Result<ServerTls, TlsError> {
        ServerTls::with(Credentials::development(names)?)
    }

    /// The certificate and key of these PEM files. Every client may connect.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<ServerTls, TlsError> {
        ServerTls::with(Credentials::from_pem_files(chain, key)?)
    }

    /// These credentials. Every client may connect. Fails when the key is not the certificate's.
    pub fn with(credentials: Credentials) -> Result<ServerTls, TlsError> {
        let tls = ServerTls {
            credentials,
            clients: Clients::Every,
        };
        tls.quic_config()?;
        Ok(tls)
    }

    /// The cluster's certificate. Only holders of the cluster key, or of its second key, may connect.
    pub fn cluster(key: &ClusterKey) -> Result<ServerTls, TlsError> {
        let rule = TrustRule::Keys(key.public_keys()?);
        Ok(ServerTls::with(key.credentials()?)?.admit(rule))
    }

    /// Only clients whose certificate an authority of this PEM file signed may connect (mutual TLS).
    pub fn require_client_ca(mut self, roots: impl AsRef<Path>) -> Result<ServerTls, TlsError> {
        let roots = Arc::new(roots_in(roots.as_ref())?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build()?;
        self.clients = Clients::Verified(verifier);
        Ok(self)
    }

    /// Only clients with one of these certificates may connect (mutual TLS).
    pub fn require_client_pins(self, pins: impl IntoIterator<Item = Fingerprint>) -> ServerTls {
        self.admit(TrustRule::Pinned(pins.into_iter().collect()))
    }

    fn admit(mut self, rule: TrustRule) -> ServerTls {
        let verifier = RuleVerifier::new(rule, Shown::default(), provider());
        self.clients = Clients::Verified(verifier);
        self
    }

    /// The fingerprint of the server's certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        self.credentials.fingerprint()
    }

    /// The reset secret, which another process with the same private key derives too.
    pub(crate) fn reset_secret(&self) -> Result<ResetSecret, TlsError> {
        let key = self.credentials.key.secret_der();
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"kumi unison/1 reset").extract(key);
        Ok(ResetSecret(expand(&prk, b"kumi unison/1 reset: tokens")?))
    }

    /// The configuration for a QUIC endpoint.
    pub(crate) fn quic_config(&self) -> Result<Arc<QuicServerConfig>, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let builder = match &self.clients {
            Clients::Every => builder.with_no_client_auth(),
            Clients::Verified(verifier) => builder.with_client_cert_verifier(verifier.clone()),
        };
        let Credentials { chain, key, .. } = &self.credentials;
        let mut config = builder.with_single_cert(chain.clone(), key.clone_key())?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.send_tls13_tickets = 0;
        let config = QuicServerConfig::try_from(config).map_err(|_| TlsError::NoInitialSuite)?;
        Ok(Arc::new(config))
    }
}

/// All authorities of a PEM file.
pub(super) fn roots_in(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates_in(path)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let [mut one, other] = [(); 2].map(|()| Credentials::development(&["localhost"]).unwrap());
        one.key = other.key.clone_key();
        let error = ServerTls::with(one).unwrap_err();
        assert!(matches!(error, TlsError::Unusable(_)), "{error:?}");
    }
}
