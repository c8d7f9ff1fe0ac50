//! Clients that speak QUIC but not Unison: whatever bytes a test wants to send.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Connection, Endpoint};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::lab::within;

/// A connection without a client on it.
pub(crate) struct RawClient {
    pub(crate) connection: Connection,
    _endpoint: Endpoint,
}

impl RawClient {
    pub(crate) async fn connect(server: SocketAddr) -> RawClient {
        let endpoint = endpoint();
        let connecting = endpoint
            .connect_with(config(b"unison/1"), server, "localhost")
            .unwrap();
        RawClient {
            connection: within(connecting).await.unwrap(),
            _endpoint: endpoint,
        }
    }

    /// Sends bytes on a stream of their own, ends it, and returns what comes back; `None` for a reset.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (mut send, mut receive) = within(self.connection.open_bi()).await.unwrap();
        // A server that has seen enough stops reading.
        let _ = send.write_all(bytes).await;
        let _ = send.finish();
        within(receive.read_to_end(1 << 20)).await.ok()
    }
}

pub(crate) fn endpoint() -> Endpoint {
    Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap()
}

pub(crate) fn config(alpn: &[u8]) -> quinn::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    tls.alpn_protocols = vec![alpn.to_vec()];
    quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()))
}

/// Hostile clients do not care whom they talk to.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
