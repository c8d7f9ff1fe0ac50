//! A certificate chain with its private key.

use std::fmt;
use std::path::Path;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use super::{Fingerprint, TlsError};

/// A certificate chain, leaf first, and the leaf's private key. `Debug` shows its fingerprint only.
pub struct Credentials {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
    fingerprint: Fingerprint,
}

impl Credentials {
    /// A new key and a self-signed certificate for these names, which may be DNS names or IP addresses.
    ///
    /// It is not stored: peers that are to trust it are given its [`fingerprint`](Self::fingerprint).
    ///
    /// ```
    /// use kumi_unison::Credentials;
    /// let credentials = Credentials::development(&["localhost", "::1"])?;
    /// assert_eq!(credentials.fingerprint().to_string().len(), 64);
    /// # Ok::<(), kumi_unison::TlsError>(())
    /// ```
    pub fn development(names: &[&str]) -> Result<Credentials, TlsError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "kumi unison development");
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
        let certificate = params.self_signed(&key)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok(Credentials::new(
            certificate.der().clone(),
            Vec::new(),
            key.into(),
        ))
    }

    /// Reads a chain, leaf first, and its private key from PEM files.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Credentials, TlsError> {
        let mut certificates = certificates_in(chain.as_ref())?;
        let leaf = certificates.remove(0);
        let key = PrivateKeyDer::from_pem_file(key.as_ref()).map_err(|source| TlsError::Pem {
            path: key.as_ref().to_owned(),
            source,
        })?;
        Ok(Credentials::new(leaf, certificates, key))
    }

    pub(super) fn new(
        leaf: CertificateDer<'static>,
        issuers: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Credentials {
        let fingerprint = Fingerprint::of(&leaf);
        let mut chain = vec![leaf];
        chain.extend(issuers);
        Credentials {
            chain,
            key,
            fingerprint,
        }
    }

    /// The fingerprint of the leaf.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

impl Clone for Credentials {
    fn clone(&self) -> Credentials {
        Credentials {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
            fingerprint: self.fingerprint,
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

/// All certificates of a PEM file; at least one.
pub(super) fn certificates_in(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = |source| TlsError::Pem {
        path: path.to_owned(),
        source,
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .map_err(pem)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(pem)?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate {
            path: path.to_owned(),
        });
    }
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn development_certificates_differ_each_time() {
        let [one, other] = [(); 2].map(|()| Credentials::development(&["localhost"]).unwrap());
        assert_ne!(one.fingerprint(), other.fingerprint());
    }

    #[test]
    fn debug_shows_no_key() {
        let credentials = Credentials::development(&["localhost"]).unwrap();
        let text = format!("{credentials:?}");
        assert_eq!(
            text,
            format!(
                "Credentials {{ fingerprint: {:?}, .. }}",
                credentials.fingerprint()
            )
        );
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        let error = Credentials::development(&["héllo\u{0}"]).unwrap_err();
        assert!(matches!(error, TlsError::Generate(_)), "{error:?}");
    }

    #[test]
    fn pem_files_without_certificate_or_key_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let empty = directory.path().join("empty.pem");
        fs::write(&empty, "nothing here\n").unwrap();
        let missing = directory.path().join("missing.pem");
        let error = Credentials::from_pem_files(&empty, &empty).unwrap_err();
        assert!(matches!(&error, TlsError::NoCertificate { path } if *path == empty));
        let error = Credentials::from_pem_files(&missing, &empty).unwrap_err();
        assert!(matches!(&error, TlsError::Pem { path, .. } if *path == missing));
    }
}
