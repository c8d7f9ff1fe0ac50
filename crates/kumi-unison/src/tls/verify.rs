//! The verifiers without certificate authorities, and one with authorities that records why a certificate is not trusted.
//!
//! All of them check the handshake's signature with the certificate's key, so a copied certificate without its key is
//! refused. They differ in which certificates they trust. Names and dates of pinned certificates are not checked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved,
    SignatureScheme,
};

use super::{CertificateFault, Fingerprint};

/// Which certificates are trusted.
#[derive(Clone, Debug)]
pub(super) enum TrustRule {
    /// Exactly these.
    Pinned(Vec<Fingerprint>),
    /// Any; the caller records it when the handshake is complete.
    First,
    /// Every certificate with one of these keys.
    Keys(Vec<SubjectPublicKeyInfoDer<'static>>),
    /// Any, on loopback only.
    Anything,
}

/// The certificate of a peer and whether it was trusted, to report why a handshake failed, or to record it.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    /// The certificate's fingerprint, and whether it was trusted.
    certificate: Option<(Fingerprint, bool)>,
    /// Why it is not trusted.
    fault: Option<CertificateFault>,
}

impl Shown {
    pub(super) fn trusted(&self) -> Option<Fingerprint> {
        self.get(true)
    }

    pub(super) fn refused(&self) -> Option<Fingerprint> {
        self.get(false)
    }

    fn get(&self, wanted: bool) -> Option<Fingerprint> {
        let shown = self.seen().certificate;
        shown.and_then(|(fingerprint, trusted)| (trusted == wanted).then_some(fingerprint))
    }

    /// Why the peer's certificate is not trusted.
    pub(super) fn fault(&self) -> Option<CertificateFault> {
        self.seen().fault.clone()
    }

    fn set(&self, fingerprint: Fingerprint, trusted: bool) {
        self.seen().certificate = Some((fingerprint, trusted));
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Verifies a server or a client by a [`TrustRule`].
#[derive(Debug)]
pub(super) struct RuleVerifier {
    rule: TrustRule,
    shown: Shown,
    provider: Arc<CryptoProvider>,
}

impl RuleVerifier {
    pub(super) fn new(rule: TrustRule, shown: Shown, provider: Arc<CryptoProvider>) -> Arc<Self> {
        Arc::new(RuleVerifier {
            rule,
            shown,
            provider,
        })
    }

    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let fingerprint = Fingerprint::of(certificate);
        let trusted = match &self.rule {
            TrustRule::Pinned(pins) => pins.contains(&fingerprint),
            TrustRule::Keys(keys) => {
                let shown = ParsedCertificate::try_from(certificate)?;
                keys.contains(&shown.subject_public_key_info())
            }
            TrustRule::First | TrustRule::Anything => true,
        };
        self.shown.set(fingerprint, trusted);
        if trusted {
            Ok(())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// QUIC uses TLS 1.3 only, so a TLS 1.2 signature is an error of the peer.
fn no_older_tls() -> Error {
    PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into()
}

impl ServerCertVerifier for RuleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_older_tls())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for RuleVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_older_tls())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

/// Verifies a server by authorities, and records why it is not trusted.
#[derive(Debug)]
pub(super) struct AuthorityVerifier {
    authorities: Arc<WebPkiServerVerifier>,
    shown: Shown,
}

impl AuthorityVerifier {
    pub(super) fn new(authorities: Arc<WebPkiServerVerifier>, shown: Shown) -> Arc<Self> {
        Arc::new(AuthorityVerifier { authorities, shown })
    }
}

impl ServerCertVerifier for AuthorityVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.authorities
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            .inspect_err(|error| self.shown.seen().fault = Some(CertificateFault::of(error)))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_older_tls())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}
