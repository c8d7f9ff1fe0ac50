//! The TLS configuration of a server: its certificate, and which clients may connect.

use std::path::Path;
use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use ring::hkdf;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
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
    guests: Guests,
}

/// The keys of guests, who may open some channels only. By default there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guests {
    keys: Vec<SubjectPublicKeyInfoDer<'static>>,
    /// What guests are shown, by the name that they ask for.
    certificates: Vec<(String, Credentials)>,
}

impl Guests {
    /// Whether the holder of this certificate is a guest. One that cannot be read is no member's.
    pub(crate) fn has(&self, certificate: &[u8]) -> bool {
        if self.keys.is_empty() {
            return false;
        }
        let certificate = CertificateDer::from(certificate);
        match ParsedCertificate::try_from(&certificate) {
            Ok(leaf) => self.keys.contains(&leaf.subject_public_key_info()),
            Err(_) => true,
        }
    }

    /// Adds the keys of others. No key of a guest ever becomes one of a member.
    pub(crate) fn add(&mut self, others: &Guests) {
        for key in &others.keys {
            if !self.keys.contains(key) {
                self.keys.push(key.clone());
            }
        }
    }
}

/// Shows guests the certificate of their key, and all others that of the server.
#[derive(Debug)]
struct ByName {
    server: Arc<CertifiedKey>,
    guests: Vec<(String, Arc<CertifiedKey>)>,
}

impl ByName {
    fn new(tls: &ServerTls) -> Result<Self, TlsError> {
        let provider = provider();
        let certified = |credentials: &Credentials| {
            let Credentials { chain, key, .. } = credentials;
            let certified = CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider)?;
            Ok::<_, TlsError>(Arc::new(certified))
        };
        let guests = tls.guests.certificates.iter();
        let guests = guests.map(|(name, shown)| Ok((name.clone(), certified(shown)?)));
        Ok(ByName {
            server: certified(&tls.credentials)?,
            guests: guests.collect::<Result<_, TlsError>>()?,
        })
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let asked = hello.server_name();
        let guest = self
            .guests
            .iter()
            .find(|(name, _)| asked == Some(name.as_str()));
        Some(guest.map_or_else(|| self.server.clone(), |(_, shown)| shown.clone()))
    }
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
            guests: Guests::default(),
        };
        tls.quic_config()?;
        Ok(tls)
    }

    /// The cluster's certificate. Only holders of the cluster key, or of its second key, may connect.
    pub fn cluster(key: &ClusterKey) -> Result<ServerTls, TlsError> {
        let rule = TrustRule::Keys(key.public_keys()?);
        Ok(ServerTls::with(key.credentials()?)?.admit(rule))
    }

    /// As [`cluster`](Self::cluster), and holders of the guests' key, or of its second key, may connect as guests: they open
    /// only channels that are [open to guests](crate::ChannelRegistry::open_to_guests). They hold no other key and cannot
    /// pass for a member.
    pub fn cluster_with_guests(
        key: &ClusterKey,
        guests: &ClusterKey,
    ) -> Result<ServerTls, TlsError> {
        let certificates = guests
            .each()
            .map(|guest| Ok((guest.guest_name()?, guest.credentials()?)));
        let guests = Guests {
            keys: guests.public_keys()?,
            certificates: certificates.collect::<Result<_, TlsError>>()?,
        };
        let mut keys = key.public_keys()?;
        keys.extend(guests.keys.iter().cloned());
        let mut tls = ServerTls::with(key.credentials()?)?.admit(TrustRule::Keys(keys));
        tls.guests = guests;
        tls.quic_config()?;
        Ok(tls)
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

    /// The keys of guests.
    pub(crate) fn guests(&self) -> &Guests {
        &self.guests
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
        let mut config = match self.guests.certificates.is_empty() {
            true => builder.with_single_cert(chain.clone(), key.clone_key())?,
            false => builder.with_cert_resolver(Arc::new(ByName::new(self)?)),
        };
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
    fn a_guest_is_known_by_its_key_whatever_its_certificate_says() {
        let [member, guest, old] = [1, 2, 3].map(|fill| ClusterKey::from_secret(&[fill; 32]));
        let (member, guest, old) = (member.unwrap(), guest.unwrap(), old.unwrap());
        let leaf = |key: &ClusterKey| key.credentials().unwrap().chain[0].clone();
        let tls = ServerTls::cluster_with_guests(&member, &guest).unwrap();
        let mut guests = tls.guests().clone();
        assert!(guests.has(&leaf(&guest)) && !guests.has(&leaf(&member)));
        assert!(guests.has(b"no certificate"));
        // The key alone counts: another certificate around it is the same guest's.
        let key = guest.credentials().unwrap().key;
        let rustls::pki_types::PrivateKeyDer::Pkcs8(key) = key else {
            panic!("another form of key");
        };
        let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&key, &rcgen::PKCS_ED25519);
        let params = rcgen::CertificateParams::new(["unison.cluster".to_owned()]).unwrap();
        let other = params.self_signed(&pair.unwrap()).unwrap();
        assert_ne!(other.der().as_ref(), leaf(&guest).as_ref());
        assert!(guests.has(other.der()));
        // Those of before stay guests.
        let replaced = ServerTls::cluster_with_guests(&member, &old).unwrap();
        guests.add(replaced.guests());
        assert!(guests.has(&leaf(&guest)) && guests.has(&leaf(&old)));
        assert!(
            !ServerTls::cluster(&member)
                .unwrap()
                .guests()
                .has(&leaf(&guest))
        );
    }

    #[test]
    fn a_key_of_another_certificate_is_refused() {
        let [mut one, other] = [(); 2].map(|()| Credentials::development(&["localhost"]).unwrap());
        one.key = other.key.clone_key();
        let error = ServerTls::with(one).unwrap_err();
        assert!(matches!(error, TlsError::Unusable(_)), "{error:?}");
    }
}
