//! Errors of certificates, keys and the verification of peers.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::Fingerprint;
use crate::text::Shown;

/// Why a TLS configuration could not be made, or why a peer was not trusted. No text holds key material.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A PEM file could not be read or understood. The file's owner has to mend it; nothing was changed.
    #[error("cannot read the PEM file {}", path.display())]
    Pem {
        /// The file that was named.
        path: PathBuf,
        /// What the reader said.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// A PEM file holds no certificate, so there is nothing to show or to trust.
    #[error("there is no certificate in {}", path.display())]
    NoCertificate {
        /// The file that was named.
        path: PathBuf,
    },
    /// Certificates and keys were read but cannot be used together, or not for this.
    #[error("these certificates and keys cannot be used")]
    Unusable(#[from] rustls::Error),
    /// The client roots cannot be used to verify clients.
    #[error("these client roots cannot be used")]
    ClientRoots(#[from] rustls::server::VerifierBuilderError),
    /// A certificate could not be made, usually because a name in it is not a name.
    #[error("cannot make a certificate")]
    Generate(#[from] rcgen::Error),
    /// The crypto provider has no suite QUIC can start with: a fault of the build.
    #[error("the crypto provider lacks the suite QUIC starts with")]
    NoInitialSuite,
    /// A cluster secret is so short that it could be guessed.
    #[error("a cluster secret needs at least {at_least} bytes, this one has {length}")]
    WeakClusterSecret {
        /// How long the secret was.
        length: usize,
        /// How long it has to be.
        at_least: usize,
    },
    /// A key file could not be read.
    #[error("cannot read {}", path.display())]
    KeyFile {
        /// The file that was named.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file with a secret may be read by others than its owner, so others may know the secret.
    #[error(
        "{path} may be read by others (mode {mode:o}); make it yours alone: chmod 600 {path}",
        path = path.display()
    )]
    KeyFilePermissions {
        /// The file that was named.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A key file does not hold a cluster's secret.
    #[error("{} is not a key file: expected 64 hexadecimal digits", path.display())]
    KeyFileSyntax {
        /// The file that was named.
        path: PathBuf,
    },
    /// A key file was to be made where a file is. The file is as it was.
    #[error("{} exists already; a key is never overwritten", path.display())]
    KeyFileExists {
        /// The file that was named.
        path: PathBuf,
    },
    /// A key file could not be made. No part of one is left.
    #[error("cannot write {}", path.display())]
    KeyFileWrite {
        /// The file that was named.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A fingerprint is not 32 bytes in hexadecimal.
    #[error("a fingerprint is 64 hexadecimal digits, with or without colons")]
    FingerprintSyntax,
    /// Verification was switched off, but the server is not on this machine. Nothing was sent.
    #[error("{address} is not a loopback address: verification cannot be skipped there")]
    NotLoopback {
        /// Where the connection would have gone.
        address: SocketAddr,
    },
    /// A host name is neither a DNS name nor an address.
    #[error("{name:?} is neither a DNS name nor an IP address")]
    ServerName {
        /// The name as given.
        name: String,
    },
    /// The peer's certificate is not one of those pinned. The peer is another one than was meant, or has a new
    /// certificate; nothing was sent to it.
    #[error("{peer} showed the certificate {presented}, which is not the pinned one")]
    NotPinned {
        /// The peer that was dialled.
        peer: String,
        /// What was shown.
        presented: Fingerprint,
    },
    /// The peer had another certificate the first time. Remove its line from the trust store if that is intended.
    #[error("{peer} showed the certificate {presented}, but {known} is on record for it")]
    Changed {
        /// The peer that was dialled.
        peer: String,
        /// What was shown.
        presented: Fingerprint,
        /// What the trust store holds.
        known: Fingerprint,
    },
    /// The peer does not hold this cluster's key.
    #[error("{peer} does not belong to this cluster")]
    OtherCluster {
        /// The peer that was dialled.
        peer: String,
    },
    /// The peer's certificate is not trusted, or it is for another name or another time. Nothing was sent to the peer.
    #[error("{peer} showed a certificate that {fault}")]
    Certificate {
        /// The peer that was dialled.
        peer: String,
        /// What is wrong with the certificate.
        fault: CertificateFault,
    },
    /// The handshake failed on this side for another reason than the peer's certificate.
    #[error("the handshake with {peer} failed: {}", Shown(reason))]
    Handshake {
        /// The peer that was dialled.
        peer: String,
        /// What TLS said.
        reason: String,
    },
    /// The peer did not trust this side, or the two have no protocol in common. Usually this side's certificate is
    /// missing, or is not one that the server accepts.
    #[error("{peer} ended the handshake with TLS alert {alert}: {}", Shown(reason))]
    Refused {
        /// The peer that was dialled.
        peer: String,
        /// The alert's number, as in 116 for a certificate that is required and 120 for no common protocol.
        alert: u8,
        /// What QUIC says of it.
        reason: String,
    },
    /// The trust store's file could not be read or written.
    #[error("cannot use the trust store {}", path.display())]
    StoreIo {
        /// The store's file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The trust store's file could have been written by another user, so it is not trusted.
    #[error("others may write the trust store {}: its mode is {mode:o}, it has to be 600", path.display())]
    StorePermissions {
        /// The store's file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// A line of the trust store is not `peer fingerprint`.
    #[error("line {line} of the trust store {} is not `peer fingerprint`", path.display())]
    StoreSyntax {
        /// The store's file.
        path: PathBuf,
        /// Counted from one.
        line: usize,
    },
    /// The trust store holds as many peers as it may.
    #[error("the trust store is full at {limit} peers")]
    StoreFull {
        /// How many it holds at most.
        limit: usize,
    },
}

/// Why a certificate is not trusted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateFault {
    /// It was not signed by an authority that is trusted here.
    #[error("no authority trusted here has signed")]
    UnknownIssuer,
    /// It is for other names.
    #[error("is not for this name")]
    WrongName,
    /// It has expired.
    #[error("has expired")]
    Expired,
    /// It is not valid yet, or a clock is wrong.
    #[error("is not valid yet")]
    NotYetValid,
    /// Something else.
    #[error("cannot be used: {}", Shown(.0))]
    Other(String),
}

impl CertificateFault {
    pub(super) fn of(error: &rustls::Error) -> CertificateFault {
        use rustls::CertificateError as E;
        match error {
            rustls::Error::InvalidCertificate(fault) => match fault {
                // A signature that does not fit is that of another authority of the same name.
                E::UnknownIssuer | E::BadSignature => CertificateFault::UnknownIssuer,
                E::NotValidForName | E::NotValidForNameContext { .. } => {
                    CertificateFault::WrongName
                }
                E::Expired | E::ExpiredContext { .. } => CertificateFault::Expired,
                E::NotValidYet | E::NotValidYetContext { .. } => CertificateFault::NotYetValid,
                other => CertificateFault::Other(other.to_string()),
            },
            other => CertificateFault::Other(other.to_string()),
        }
    }
}

/// Two are equal when they say the same: what lies below cannot be compared.
impl PartialEq for TlsError {
    fn eq(&self, other: &TlsError) -> bool {
        self.to_string() == other.to_string()
    }
}
