//! Certificates of a `rediss://` connection: those that are trusted, and the one that is shown to the server.
//!
//! The server's certificate is always verified. `#insecure` in a URL is an error, because a server's own certificate can
//! be named as a root (`cacert`), which is as easy and is verified.

use crate::error::QueueError;
use ::redis::{ConnectionAddr, ConnectionInfo};
use std::path::Path;
#[cfg(feature = "tls")]
use std::time::Duration;

/// Certificates in PEM, as the options or the URL give them.
#[derive(Clone, Default)]
pub(super) struct Certificates {
    /// Roots to trust instead of the system's.
    pub(super) roots: Option<Vec<u8>>,
    /// The chain of this client, for servers that demand one.
    pub(super) chain: Option<Vec<u8>>,
    /// The private key of the chain.
    pub(super) key: Option<Vec<u8>>,
}

impl Certificates {
    fn is_empty(&self) -> bool {
        self.roots.is_none() && self.chain.is_none() && self.key.is_none()
    }

    /// The connection's parameters with these certificates in them.
    pub(super) fn join(&self, info: ConnectionInfo) -> Result<ConnectionInfo, QueueError> {
        match info.addr() {
            ConnectionAddr::TcpTls { insecure: true, .. } => Err(QueueError::Config(
                "#insecure is not supported: trust the server's certificate with cacert=FILE"
                    .into(),
            )),
            ConnectionAddr::TcpTls { .. } => self.parameters(info),
            _ if self.is_empty() => Ok(info),
            _ => Err(QueueError::Config(
                "certificates need a URL that begins with rediss://".into(),
            )),
        }
    }

    #[cfg(feature = "tls")]
    fn parameters(&self, info: ConnectionInfo) -> Result<ConnectionInfo, QueueError> {
        use ::redis::{Client, ClientTlsConfig, TlsCertificates};
        use rustls::crypto::{CryptoProvider, ring};

        // The redis crate takes the process's provider, and panics if there is none and two are compiled in. A program
        // that prefers another one installs it before it connects.
        if CryptoProvider::get_default().is_none() {
            // An error means that another thread was faster.
            let _ = ring::default_provider().install_default();
        }
        if let Some(roots) = &self.roots {
            check_roots(roots)?;
        }
        let client_tls = match (&self.chain, &self.key) {
            (Some(chain), Some(key)) => Some(ClientTlsConfig {
                client_cert: chain.clone(),
                client_key: key.clone(),
            }),
            (None, None) => None,
            _ => {
                return Err(QueueError::Config(
                    "a client's certificate and its key (cert=FILE and key=FILE) are needed together"
                        .into(),
                ));
            }
        };
        let certificates = TlsCertificates {
            client_tls,
            root_cert: self.roots.clone(),
        };
        let client = Client::build_with_tls(info, certificates)
            .map_err(|error| QueueError::Config(format!("certificates do not fit: {error}")))?;
        Ok(client.get_connection_info().clone())
    }

    #[cfg(not(feature = "tls"))]
    fn parameters(&self, _: ConnectionInfo) -> Result<ConnectionInfo, QueueError> {
        Err(no_tls())
    }
}

/// The redis crate takes a file without any certificate for an empty list of roots, and then trusts no server.
#[cfg(feature = "tls")]
fn check_roots(pem: &[u8]) -> Result<(), QueueError> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(pem) {
        certificate.map_err(|error| {
            QueueError::Config(format!("the root certificates are not PEM: {error}"))
        })?;
        count += 1;
    }
    match count {
        0 => Err(QueueError::Config(
            "the root certificates hold no certificate in PEM".into(),
        )),
        _ => Ok(()),
    }
}

/// A `rediss://` URL needs a build with TLS.
pub(super) fn check_scheme(url: &str, has_tls: bool) -> Result<(), QueueError> {
    match has_tls || !url.starts_with("rediss:") {
        true => Ok(()),
        false => Err(no_tls()),
    }
}

fn no_tls() -> QueueError {
    QueueError::Config("TLS is not built in: enable the feature `tls` of kumi-jobs".into())
}

/// Whether a server that should speak TLS replies to a PING without it.
///
/// A server without TLS takes the first message of a handshake for the beginning of a command. It replies with an error
/// or, mostly, is silent until the handshake's time is over. A server with TLS replies to the PING with an alert, or not
/// at all.
#[cfg(feature = "tls")]
pub(super) async fn answers_in_plain(address: &ConnectionAddr) -> bool {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// How long a reply to the PING may take.
    const REPLY: Duration = Duration::from_secs(1);

    let ConnectionAddr::TcpTls { host, port, .. } = address else {
        return false;
    };
    let first_byte = async {
        let mut stream = tokio::net::TcpStream::connect((host.as_str(), *port)).await?;
        stream.write_all(b"PING\r\n").await?;
        stream.read_u8().await
    };
    // PONG, or an error such as NOAUTH.
    let reply = tokio::time::timeout(REPLY, first_byte).await;
    matches!(reply, Ok(Ok(b'+' | b'-')))
}

#[cfg(not(feature = "tls"))]
pub(super) async fn answers_in_plain(_: &ConnectionAddr) -> bool {
    false
}

/// Reads a file that the URL names.
pub(super) fn read(name: &str, path: &str) -> Result<Vec<u8>, QueueError> {
    std::fs::read(Path::new(path))
        .map_err(|error| QueueError::Config(format!("{name}={path} cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_tls_names_the_feature() {
        assert!(check_scheme("redis://h", false).is_ok());
        assert!(check_scheme("rediss://h", true).is_ok());
        let error = check_scheme("rediss://h", false).unwrap_err().to_string();
        assert!(error.contains("feature `tls`"), "{error}");
    }
}
