//! Verification of a `rediss://` server's certificate, and the certificate that we show.
//!
//! Certificates are always checked.

use redis::ConnectionAddr;
use tokio::net::TcpStream;

use super::stream::{Failed, Stream};
use crate::core::{Error, ServerUrl};

/// The TLS configuration with the authorities that are trusted; none for plain connections.
#[derive(Clone, Default)]
pub(super) struct Trust {
    #[cfg(feature = "tls")]
    connector: Option<tokio_rustls::TlsConnector>,
    /// The name that servers have to prove, if it is not the host.
    #[cfg(feature = "tls")]
    name: Option<String>,
}

impl Trust {
    /// What connections to the server of a URL and its neighbours need. Reads the files that the URL names.
    pub(super) fn new(url: &ServerUrl) -> Result<Self, Error> {
        match is_tls(url)? {
            #[cfg(feature = "tls")]
            true => Ok(Self {
                connector: Some(loaded::connector(url)?),
                name: url.certificates.name.clone(),
            }),
            _ => Ok(Self::default()),
        }
    }

    #[cfg(not(feature = "tls"))]
    pub(super) async fn meet(&self, _: &str, _: TcpStream) -> Result<Stream, Failed> {
        Err(super::stream::unusable("TLS is not built in: feature `tls`").into())
    }

    /// Shakes hands with the server, which has to prove that it is `host`, or has the name that the URL says instead.
    #[cfg(feature = "tls")]
    pub(super) async fn meet(&self, host: &str, stream: TcpStream) -> Result<Stream, Failed> {
        let (Some(connector), Ok(name)) = (
            &self.connector,
            tokio_rustls::rustls::pki_types::ServerName::try_from(
                self.name.as_deref().unwrap_or(host).to_owned(),
            ),
        ) else {
            return Err(super::stream::unusable("the server's name cannot be checked").into());
        };
        match connector.connect(name, stream).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(match certificate_fault(&error) {
                Some(reason) => Failed::Certificate(reason),
                None => error.into(),
            }),
        }
    }
}

impl ServerUrl {
    /// Reads the certificates that the URL names, and refuses what cannot be used. The system's own are not looked at:
    /// others may be given before they are needed.
    pub fn check_certificates(&self) -> Result<(), Error> {
        match is_tls(self)? {
            #[cfg(feature = "tls")]
            true => loaded::check(self),
            _ => Ok(()),
        }
    }
}

/// Whether the server speaks TLS. Certificates are an error if it does not.
fn is_tls(url: &ServerUrl) -> Result<bool, Error> {
    match url.info.addr() {
        ConnectionAddr::TcpTls { .. } => Ok(true),
        _ if url.certificates.is_empty() => Ok(false),
        _ => Err(Error::unusable(
            &url.to_string(),
            "certificates need a URL that begins with rediss://",
        )),
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

/// Certificates as they are in files, or were given.
#[cfg(feature = "tls")]
mod loaded {
    use std::sync::Arc;

    use tokio_rustls::TlsConnector;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

    use crate::core::url::{Certificates, Pem};
    use crate::core::{Error, ServerUrl};

    struct Loaded {
        roots: Option<Vec<u8>>,
        identity: Option<(Vec<u8>, Vec<u8>)>,
    }

    pub(super) fn connector(url: &ServerUrl) -> Result<TlsConnector, Error> {
        let config = load(&url.certificates).and_then(|loaded| loaded.config());
        let config = config.map_err(|reason| Error::unusable(&url.to_string(), &reason))?;
        Ok(Arc::new(config).into())
    }

    pub(super) fn check(url: &ServerUrl) -> Result<(), Error> {
        let checked = load(&url.certificates).and_then(|loaded| loaded.check());
        checked.map_err(|reason| Error::unusable(&url.to_string(), &reason))
    }

    fn load(certificates: &Certificates) -> Result<Loaded, String> {
        let read = |name: &str, pem: &Option<Pem>| match pem {
            Some(Pem::Bytes(bytes)) => Ok(Some(bytes.clone())),
            Some(Pem::File(path)) => std::fs::read(path)
                .map(Some)
                .map_err(|error| format!("{name}={} cannot be read: {error}", path.display())),
            None => Ok(None),
        };
        let (chain, key) = (
            read("cert", &certificates.chain)?,
            read("key", &certificates.key)?,
        );
        let identity = match (chain, key) {
            (Some(chain), Some(key)) => Some((chain, key)),
            (None, None) => None,
            _ => {
                let text = "a client's certificate and its key (cert=FILE and key=FILE) are needed together";
                return Err(text.into());
            }
        };
        Ok(Loaded {
            roots: read("cacert", &certificates.roots)?,
            identity,
        })
    }

    impl Loaded {
        fn check(&self) -> Result<(), String> {
            let roots = match &self.roots {
                Some(_) => self.roots()?,
                None => RootCertStore::empty(),
            };
            self.config_with(roots).map(drop)
        }

        fn config(&self) -> Result<ClientConfig, String> {
            self.config_with(self.roots()?)
        }

        fn config_with(&self, roots: RootCertStore) -> Result<ClientConfig, String> {
            let config =
                ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
                    .with_safe_default_protocol_versions()
                    .map_err(|_| "no version of TLS is supported")?
                    .with_root_certificates(roots);
            let Some((chain, key)) = &self.identity else {
                return Ok(config.with_no_client_auth());
            };
            let key = PrivateKeyDer::from_pem_slice(key)
                .map_err(|_| "the client's key holds no key in PEM")?;
            let chain = certificates(chain, "the client's certificate")?;
            config
                .with_client_auth_cert(chain, key)
                .map_err(|_| "the client's key does not fit its certificate".into())
        }

        fn roots(&self) -> Result<RootCertStore, String> {
            let mut roots = RootCertStore::empty();
            match &self.roots {
                Some(pem) => {
                    for root in certificates(pem, "what is to be trusted (cacert)")? {
                        roots.add(root).map_err(|error| {
                            format!("a root certificate cannot be read: {error}")
                        })?;
                    }
                }
                None => {
                    // The system's own that cannot be read are passed over, as other programs do.
                    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                }
            }
            match roots.is_empty() {
                true => Err("there is no root certificate to trust".into()),
                false => Ok(roots),
            }
        }
    }

    fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
        let certificates = CertificateDer::pem_slice_iter(pem);
        let certificates: Vec<_> = certificates
            .collect::<Result<_, _>>()
            .map_err(|error| format!("{what} is not PEM: {error}"))?;
        match certificates.is_empty() {
            true => Err(format!("{what} holds no certificate in PEM")),
            false => Ok(certificates),
        }
    }
}

#[cfg(all(test, feature = "tls"))]
mod tests {
    use super::*;

    #[test]
    fn certificates_that_cannot_be_used_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path.display().to_string()
        };
        let signed =
            |_| rcgen::generate_simple_self_signed(["h".to_owned()]).expect("a certificate");
        let [one, other] = [0, 1].map(signed);
        let empty = file("empty.pem", "");
        let cert = file("cert.pem", &one.cert.pem());
        let key = file("key.pem", &one.signing_key.serialize_pem());
        let wrong = file("wrong.pem", &other.signing_key.serialize_pem());
        let check = |query: String, expected: &str| {
            let url = ServerUrl::parse(&query).expect("a URL");
            let reasons = [
                Trust::new(&url).map(|_| ()).expect_err("no trust"),
                url.check_certificates().expect_err("no connection"),
            ];
            for error in reasons.map(|error| error.to_string()) {
                assert!(error.contains(expected), "{query}: {error}");
            }
        };
        check(
            format!("rediss://h/?cacert={empty}"),
            "no certificate in PEM",
        );
        check(
            format!("rediss://h/?cacert={cert}&cert={cert}"),
            "needed together",
        );
        check(
            format!("rediss://h/?cacert={cert}&cert={cert}&key={wrong}"),
            "does not fit",
        );
        check(
            format!("rediss://h/?cacert={cert}&cert={cert}&key={empty}"),
            "no key in PEM",
        );
        check(format!("redis://h/?cacert={cert}"), "begins with rediss://");
        check("rediss://h/?key=/no/such/key".into(), "key=/no/such/key");

        let fits = format!("rediss://h/?cacert={cert}&cert={cert}&key={key}");
        let url = ServerUrl::parse(&fits).expect("a URL");
        assert!(Trust::new(&url).is_ok() && url.check_certificates().is_ok());
    }

    #[tokio::test]
    async fn a_name_of_the_url_is_checked_instead_of_the_host() {
        use std::sync::Arc;
        use tokio_rustls::TlsAcceptor;
        use tokio_rustls::rustls::{ServerConfig, crypto::ring};

        let name = "store-1.kumi".to_owned();
        let signed = rcgen::generate_simple_self_signed([name]).expect("a certificate");
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("ca.pem");
        std::fs::write(&file, signed.cert.pem()).expect("a file");
        let key = signed
            .signing_key
            .serialize_der()
            .try_into()
            .expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![signed.cert.der().clone()], key)
            .expect("they fit");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
            .await
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        for (query, expected) in [
            ("", false),
            ("&name=store-1.kumi", true),
            ("&name=store-2.kumi", false),
        ] {
            let url = format!("rediss://{address}/?cacert={}{query}", file.display());
            let url = ServerUrl::parse(&url).expect("a URL");
            let trust = Trust::new(&url).expect("a trust");
            let meeting = async {
                let stream = TcpStream::connect(address).await.expect("a connection");
                trust.meet("127.0.0.1", stream).await.is_ok()
            };
            let accepting = async {
                let (stream, _) = listener.accept().await.expect("a client");
                acceptor.accept(stream).await.is_ok()
            };
            let (is_met, _) = tokio::join!(meeting, accepting);
            assert_eq!(is_met, expected, "{query}");
        }
    }
}
