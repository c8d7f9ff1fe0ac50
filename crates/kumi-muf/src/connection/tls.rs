//! Verification of a `rediss://` server's certificate, and the certificate that we show.
//!
//! Certificates are always checked: `#insecure` in a URL is refused, because trusting the server's own
//! certificate as a root is as easy and is verified.

use redis::{ConnectionAddr, RedisError};
use tokio::net::TcpStream;

use super::stream::{Failed, Stream, unusable};

/// Certificates as a builder collected them, in PEM.
#[derive(Clone, Default)]
pub(crate) struct Certificates {
    /// Roots to trust instead of the system's.
    pub(crate) roots: Option<Vec<u8>>,
    /// Our own chain and its key, for servers that ask.
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for Certificates {
    /// Shows no key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certificates")
            .field("own_roots", &self.roots.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

/// The TLS configuration with the authorities that are trusted; none for plain connections.
#[derive(Clone, Default)]
pub(crate) struct Trust {
    #[cfg(feature = "tls")]
    connector: Option<tokio_rustls::TlsConnector>,
}

impl Trust {
    /// What connections to `addr` and its neighbours need.
    #[cfg(not(feature = "tls"))]
    pub(crate) fn new(addr: &ConnectionAddr, _: &Certificates) -> Result<Self, RedisError> {
        match addr {
            ConnectionAddr::TcpTls { .. } => Err(unusable("TLS is not built in: feature `tls`")),
            _ => Ok(Self::default()),
        }
    }

    #[cfg(not(feature = "tls"))]
    pub(super) async fn meet(&self, _: &str, _: TcpStream) -> Result<Stream, Failed> {
        Err(unusable("TLS is not built in: feature `tls`").into())
    }

    /// What connections to `addr` and its neighbours need.
    #[cfg(feature = "tls")]
    pub(crate) fn new(
        addr: &ConnectionAddr,
        certificates: &Certificates,
    ) -> Result<Self, RedisError> {
        let connector = match addr {
            ConnectionAddr::TcpTls { insecure: true, .. } => {
                return Err(unusable(
                    "#insecure is not supported: name the certificate to trust instead",
                ));
            }
            ConnectionAddr::TcpTls { .. } => Some(connector(certificates)?),
            _ => None,
        };
        Ok(Self { connector })
    }

    /// Shakes hands with the server, which has to prove that it is `host`.
    #[cfg(feature = "tls")]
    pub(super) async fn meet(&self, host: &str, stream: TcpStream) -> Result<Stream, Failed> {
        let (Some(connector), Ok(name)) = (
            &self.connector,
            tokio_rustls::rustls::pki_types::ServerName::try_from(host.to_owned()),
        ) else {
            return Err(unusable("the server's name cannot be checked").into());
        };
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
            Err(error) => Err(match certificate_fault(&error) {
                Some(reason) => Failed::Certificate(reason),
                None => error.into(),
            }),
        }
    }
}

/// What is wrong with the server's certificate, if that is why a handshake failed.
#[cfg(feature = "tls")]
fn certificate_fault(error: &std::io::Error) -> Option<String> {
    use tokio_rustls::rustls::{CertificateError as E, Error};

    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let Error::InvalidCertificate(fault) = error else {
        return None;
    };
    Some(match fault {
        // A signature that does not fit is that of another authority of the same name.
        E::UnknownIssuer | E::BadSignature => {
            "no authority that is trusted here has signed it".to_owned()
        }
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            "it is not for this name".to_owned()
        }
        E::Expired | E::ExpiredContext { .. } => "it has expired".to_owned(),
        E::NotValidYet | E::NotValidYetContext { .. } => "it is not valid yet".to_owned(),
        other => other.to_string(),
    })
}

#[cfg(feature = "tls")]
fn connector(certificates: &Certificates) -> Result<tokio_rustls::TlsConnector, RedisError> {
    use std::sync::Arc;

    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

    let chain = |pem: &[u8]| -> Result<Vec<CertificateDer<'static>>, RedisError> {
        CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|_| unusable("a certificate is not PEM"))
    };
    let mut roots = RootCertStore::empty();
    match &certificates.roots {
        Some(pem) => {
            for root in chain(pem)? {
                roots
                    .add(root)
                    .map_err(|_| unusable("a root certificate cannot be read"))?;
            }
        }
        None => {
            // The system's own that cannot be read are passed over, as other programs do.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(unusable("there is no root certificate to trust"));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| unusable("no version of TLS is supported"))?
        .with_root_certificates(roots);
    let config = match &certificates.identity {
        Some((own, key)) => {
            let key =
                PrivateKeyDer::from_pem_slice(key).map_err(|_| unusable("our key is not PEM"))?;
            config
                .with_client_auth_cert(chain(own)?, key)
                .map_err(|_| unusable("our key does not fit our certificate"))?
        }
        None => config.with_no_client_auth(),
    };
    Ok(Arc::new(config).into())
}
