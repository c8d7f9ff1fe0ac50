//! The TLS configuration of a client: which servers it trusts, and its own certificate.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use super::server::roots_in;
use super::verify::{AuthorityVerifier, RuleVerifier, Shown, TrustRule};
use super::{ClusterKey, Credentials, Fingerprint, TlsError, TrustStore, provider};
use crate::wire::ALPN;

/// The TLS configuration of a client.
#[derive(Clone)]
pub struct ClientTls {
    trust: Trust,
    /// The client certificate, for servers that request one.
    credentials: Option<Credentials>,
    /// The name that the server is asked for, instead of its host.
    name: Option<String>,
}

#[derive(Clone)]
enum Trust {
    Rule(TrustRule),
    FirstUse(TrustStore),
    Authorities(Arc<RootCertStore>),
}

impl ClientTls {
    /// Trusts a server with one of these certificates; its names and dates are not checked.
    pub fn pinned(pins: impl IntoIterator<Item = Fingerprint>) -> Result<ClientTls, TlsError> {
        ClientTls::with(Trust::Rule(TrustRule::Pinned(pins.into_iter().collect())))
    }

    /// Trusts the certificate that a server has at the first connection, and from then on only that one (trust on first use).
    ///
    /// A server is identified by the host and port of the connection. Its certificate is recorded when the handshake is
    /// complete, which proves that the server holds the private key.
    pub fn trust_on_first_use(store: TrustStore) -> Result<ClientTls, TlsError> {
        ClientTls::with(Trust::FirstUse(store))
    }

    /// Trusts a certificate for the server's name that an authority of this PEM file signed.
    pub fn ca_file(roots: impl AsRef<Path>) -> Result<ClientTls, TlsError> {
        let roots = Arc::new(roots_in(roots.as_ref())?);
        ClientTls::with(Trust::Authorities(roots))
    }

    /// Trusts holders of this cluster key, and of its second key, and authenticates with the first.
    pub fn cluster(key: &ClusterKey) -> Result<ClientTls, TlsError> {
        let rule = TrustRule::Keys(key.public_keys()?);
        ClientTls::with(Trust::Rule(rule))?.with_credentials(key.credentials()?)
    }

    /// Trusts servers that hold this key as the key of their [guests](super::ServerTls::cluster_with_guests), and
    /// authenticates with it. Such a server lets the client open some of its channels only.
    pub fn guest(key: &ClusterKey) -> Result<ClientTls, TlsError> {
        let mut tls = ClientTls::cluster(key)?;
        tls.name = Some(key.guest_name()?);
        Ok(tls)
    }

    /// Trusts every server on a loopback address. Connecting to another address fails with [`TlsError::NotLoopback`] before
    /// anything is sent.
    pub fn danger_skip_verification_on_loopback() -> Result<ClientTls, TlsError> {
        ClientTls::with(Trust::Rule(TrustRule::Anything))
    }

    fn with(trust: Trust) -> Result<ClientTls, TlsError> {
        Ok(ClientTls {
            trust,
            credentials: None,
            name: None,
        })
    }

    /// Authenticates with these credentials to servers that request a certificate (mutual TLS). Fails when they cannot be
    /// used.
    pub fn with_credentials(mut self, credentials: Credentials) -> Result<ClientTls, TlsError> {
        self.credentials = Some(credentials);
        self.config("", &Shown::default())?;
        Ok(self)
    }

    /// The name that a server of this host is asked for.
    pub(crate) fn server_name<'a>(&'a self, host: &'a str) -> &'a str {
        self.name.as_deref().unwrap_or(host)
    }

    /// Prepares one connection to a host at an address.
    pub(crate) fn attempt(
        &self,
        host: &str,
        address: SocketAddr,
    ) -> Result<(Attempt, Arc<QuicClientConfig>), TlsError> {
        if matches!(self.trust, Trust::Rule(TrustRule::Anything)) && !is_loopback(address) {
            return Err(TlsError::NotLoopback { address });
        }
        if ServerName::try_from(host).is_err() {
            return Err(TlsError::ServerName {
                name: host.to_owned(),
            });
        }
        let shown = Shown::default();
        let peer = peer_name(host, address.port());
        let config = self.config(&peer, &shown)?;
        let config = QuicClientConfig::try_from(config).map_err(|_| TlsError::NoInitialSuite)?;
        let attempt = Attempt {
            trust: self.trust.clone(),
            peer,
            shown,
        };
        Ok((attempt, Arc::new(config)))
    }

    fn config(&self, peer: &str, shown: &Shown) -> Result<ClientConfig, TlsError> {
        let provider = provider();
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?;
        let by_rule = |rule: TrustRule| RuleVerifier::new(rule, shown.clone(), provider.clone());
        let verifier: Arc<dyn ServerCertVerifier> = match &self.trust {
            Trust::Rule(rule) => by_rule(rule.clone()),
            Trust::FirstUse(store) => by_rule(match store.known(peer) {
                Some(known) => TrustRule::Pinned(vec![known]),
                None => TrustRule::First,
            }),
            Trust::Authorities(roots) => {
                let authorities =
                    WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
                        .build()?;
                AuthorityVerifier::new(authorities, shown.clone())
            }
        };
        let builder = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.credentials {
            None => builder.with_no_client_auth(),
            Some(Credentials { chain, key, .. }) => {
                builder.with_client_auth_cert(chain.clone(), key.clone_key())?
            }
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(config)
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trust = match &self.trust {
            Trust::Rule(TrustRule::Pinned(_)) => "pinned",
            Trust::Rule(TrustRule::Keys(_)) => "cluster key",
            Trust::Rule(TrustRule::Anything | TrustRule::First) => "every peer on loopback",
            Trust::FirstUse(_) => "first use",
            Trust::Authorities(_) => "authorities",
        };
        f.debug_struct("ClientTls")
            .field("trust", &trust)
            .field("credentials", &self.credentials)
            .finish()
    }
}

/// One connection attempt: what its verifier saw, to record the certificate or report why it was refused.
pub(crate) struct Attempt {
    trust: Trust,
    peer: String,
    shown: Shown,
}

impl Attempt {
    /// Records the certificate for trust on first use. To be called when the handshake is complete: only then has the peer
    /// proved that it holds the certificate's key.
    pub(crate) fn confirm(&self) -> Result<(), TlsError> {
        match (&self.trust, self.shown.trusted()) {
            (Trust::FirstUse(store), Some(presented)) => store.remember(&self.peer, presented),
            _ => Ok(()),
        }
    }

    /// Why the verifier refused the peer, after a handshake that failed; `None` when something else was the reason.
    pub(crate) fn refusal(&self) -> Option<TlsError> {
        let peer = self.peer.clone();
        if let Some(fault) = self.shown.fault() {
            return Some(TlsError::Certificate { peer, fault });
        }
        let presented = self.shown.refused()?;
        match &self.trust {
            Trust::Rule(TrustRule::Pinned(_)) => Some(TlsError::NotPinned { peer, presented }),
            Trust::Rule(TrustRule::Keys(_)) => Some(TlsError::OtherCluster { peer }),
            Trust::FirstUse(store) => store.known(&peer).map(|known| TlsError::Changed {
                peer,
                presented,
                known,
            }),
            Trust::Rule(TrustRule::First | TrustRule::Anything) | Trust::Authorities(_) => None,
        }
    }
}

/// `host:port`, with an IPv6 address in brackets. Names are the same however they are written.
fn peer_name(host: &str, port: u16) -> String {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Whether an address is a loopback address, also an IPv4 address mapped to IPv6.
fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verification_is_skipped_for_loopback_only() {
        let tls = ClientTls::danger_skip_verification_on_loopback().unwrap();
        let check = |address: &str, expected: bool| {
            let address: SocketAddr = address.parse().unwrap();
            let outcome = tls.attempt("localhost", address);
            assert_eq!(outcome.is_ok(), expected, "{address}");
            if let Err(error) = outcome {
                assert!(matches!(error, TlsError::NotLoopback { .. }));
            }
        };
        check("127.0.0.1:1", true);
        check("127.8.9.10:1", true);
        check("[::1]:1", true);
        check("[::ffff:127.0.0.1]:1", true);
        check("[::ffff:192.0.2.1]:1", false);
        check("192.0.2.1:1", false);
        check("0.0.0.0:1", false);
        check("[::]:1", false);
        check("[2001:db8::1]:1", false);
    }

    #[test]
    fn a_peer_is_the_same_however_its_name_is_written() {
        assert_eq!(peer_name("Example.COM.", 1), "example.com:1");
        assert_eq!(peer_name("FE80::1", 1), "[fe80::1]:1");
    }

    #[test]
    fn names_and_addresses_are_names_and_nothing_else_is() {
        let tls = ClientTls::pinned([]).unwrap();
        let address = "127.0.0.1:1".parse().unwrap();
        for host in ["example.com", "127.0.0.1", "::1", "2001:db8::1"] {
            assert!(tls.attempt(host, address).is_ok(), "{host}");
        }
        for host in ["", "a b", "[::1]", "exa_mple..com"] {
            let error = tls.attempt(host, address).err();
            assert!(matches!(error, Some(TlsError::ServerName { .. })), "{host}");
        }
    }

    #[test]
    fn debug_says_whom_it_trusts_and_nothing_else() {
        let key = ClusterKey::from_secret(&[7; 32]).unwrap();
        let text = format!("{:?}", ClientTls::cluster(&key).unwrap());
        let credentials = key.credentials().unwrap();
        assert_eq!(
            text,
            format!("ClientTls {{ trust: \"cluster key\", credentials: Some({credentials:?}) }}")
        );
    }
}
