//! rustls's configuration from the `tls-*` directives. Files are read when it is made: at the start, and again by CONFIG
//! SET of any of them.

use kumi_store::config::{TlsAuthClients, TlsSettings};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{
    ConfigBuilder, RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion,
    WantsVerifier, version,
};
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Sessions kept for resumption when `tls-session-cache-size` says 0, which means no limit in OpenSSL.
const MOST_SESSIONS: usize = 1 << 20;

/// A configuration that cannot be used: the operator's directive or file. Nothing changed.
#[derive(Debug, thiserror::Error)]
#[error("{directive}: {reason}")]
pub(crate) struct TlsConfigError {
    /// The directive to look at.
    pub(crate) directive: &'static str,
    pub(crate) reason: String,
}

fn wrong(directive: &'static str, reason: impl Into<String>) -> TlsConfigError {
    TlsConfigError {
        directive,
        reason: reason.into(),
    }
}

/// A certificate chain and its key, which a program gives a server. Clones share them.
#[derive(Clone)]
pub struct TlsIdentity(Arc<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>);

/// Text that holds no certificate, or no key that can be read. The caller's mistake.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsIdentityError(String);

impl TlsIdentity {
    /// Reads a chain of certificates, the server's own first, and its unencrypted key, both in PEM.
    ///
    /// # Errors
    /// One of them cannot be read. Whether they belong together shows when a server uses them.
    pub fn from_pem(certificates: &[u8], key: &[u8]) -> Result<Self, TlsIdentityError> {
        let unreadable = |what: &str, error: rustls::pki_types::pem::Error| {
            TlsIdentityError(format!("the {what} cannot be read: {error}"))
        };
        let chain = CertificateDer::pem_slice_iter(certificates);
        let chain: Vec<_> = chain
            .collect::<Result<_, _>>()
            .map_err(|error| unreadable("certificate", error))?;
        if chain.is_empty() {
            return Err(TlsIdentityError("there is no certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| unreadable("key", error))?;
        Ok(Self(Arc::new((chain, key))))
    }
}

impl fmt::Debug for TlsIdentity {
    /// Shows no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}

/// Makes the configuration of new connections with a certificate that a program has given. Clients show none. The other
/// directives hold as they do for `tls-port`.
pub(crate) fn build_for(
    identity: &TlsIdentity,
    tls: &TlsSettings,
) -> Result<Arc<ServerConfig>, TlsConfigError> {
    let (_, builder) = begin(tls)?;
    let (chain, key) = &*identity.0;
    let config = builder
        .with_no_client_auth()
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(|error| wrong("tls-cert-file", error.to_string()))?;
    Ok(finish(config, tls))
}

/// The versions and suites of the directives.
fn begin(
    tls: &TlsSettings,
) -> Result<
    (
        Arc<CryptoProvider>,
        ConfigBuilder<ServerConfig, WantsVerifier>,
    ),
    TlsConfigError,
> {
    let provider = Arc::new(CryptoProvider {
        cipher_suites: cipher_suites(tls.ciphersuites.as_deref())?,
        ..ring::default_provider()
    });
    let versions = versions(tls.protocols.as_deref())?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .map_err(|error| wrong("tls-protocols", error.to_string()))?;
    Ok((provider, builder))
}

/// Reads the files and makes the configuration of new connections.
pub(crate) fn build(tls: &TlsSettings) -> Result<Arc<ServerConfig>, TlsConfigError> {
    let (provider, builder) = begin(tls)?;
    let builder = match tls.auth_clients {
        TlsAuthClients::No => builder.with_no_client_auth(),
        TlsAuthClients::Yes | TlsAuthClients::Optional => {
            let roots = Arc::new(authorities(tls)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = match tls.auth_clients {
                TlsAuthClients::Optional => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            let verifier = verifier
                .build()
                .map_err(|error| wrong("tls-ca-cert-file", error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let config = builder
        .with_single_cert(certificates(tls)?, private_key(tls)?)
        .map_err(|error| wrong("tls-cert-file", error.to_string()))?;
    Ok(finish(config, tls))
}

/// The order of suites and the cache of sessions as the directives have them.
fn finish(mut config: ServerConfig, tls: &TlsSettings) -> Arc<ServerConfig> {
    config.ignore_client_order = tls.prefer_server_ciphers;
    config.session_storage = if tls.session_caching {
        let size = match tls.session_cache_size {
            0 => MOST_SESSIONS,
            size => size.min(MOST_SESSIONS),
        };
        ServerSessionMemoryCache::new(size)
    } else {
        Arc::new(NoServerSessionStorage {})
    };
    Arc::new(config)
}

/// The versions that `tls-protocols` names; all there are without it.
fn versions(
    names: Option<&[u8]>,
) -> Result<Vec<&'static SupportedProtocolVersion>, TlsConfigError> {
    let Some(names) = names else {
        return Ok(vec![&version::TLS13, &version::TLS12]);
    };
    let mut versions = Vec::new();
    for name in names
        .split(|&byte| byte == b' ')
        .filter(|name| !name.is_empty())
    {
        match name.to_ascii_lowercase().as_slice() {
            b"tlsv1.3" => versions.push(&version::TLS13),
            b"tlsv1.2" => versions.push(&version::TLS12),
            b"tlsv1.1" | b"tlsv1" => {
                return Err(wrong(
                    "tls-protocols",
                    "TLS 1.0 and 1.1 are broken and not spoken; use TLSv1.2 and TLSv1.3",
                ));
            }
            _ => {
                let name = name.escape_ascii();
                return Err(wrong("tls-protocols", format!("unknown version '{name}'")));
            }
        }
    }
    if versions.is_empty() {
        return Err(wrong("tls-protocols", "no version is named"));
    }
    Ok(versions)
}

/// All suites, those of TLS 1.3 restricted to the ones that `tls-ciphersuites` names, in its order.
fn cipher_suites(names: Option<&[u8]>) -> Result<Vec<SupportedCipherSuite>, TlsConfigError> {
    let all = ring::default_provider().cipher_suites;
    let Some(names) = names else {
        return Ok(all);
    };
    let mut chosen = Vec::new();
    for name in names
        .split(|&byte| byte == b':')
        .filter(|name| !name.is_empty())
    {
        let openssl_name = |suite: &SupportedCipherSuite| {
            let name = suite.suite().as_str().unwrap_or_default();
            name.replacen("TLS13_", "TLS_", 1)
        };
        let found = all
            .iter()
            .filter(|suite| suite.tls13().is_some())
            .find(|suite| openssl_name(suite).as_bytes() == name);
        let Some(suite) = found else {
            let name = name.escape_ascii();
            return Err(wrong(
                "tls-ciphersuites",
                format!(
                    "'{name}' is not TLS_AES_256_GCM_SHA384, TLS_AES_128_GCM_SHA256 or TLS_CHACHA20_POLY1305_SHA256"
                ),
            ));
        };
        chosen.push(*suite);
    }
    if chosen.is_empty() {
        return Err(wrong("tls-ciphersuites", "no suite is named"));
    }
    chosen.extend(all.iter().filter(|suite| suite.tls13().is_none()));
    Ok(chosen)
}

fn certificates(tls: &TlsSettings) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let Some(path) = &tls.cert_file else {
        return Err(wrong("tls-cert-file", "No tls-cert-file configured!"));
    };
    let certificates = read_certificates(Path::new(OsStr::from_bytes(path)))
        .map_err(|reason| wrong("tls-cert-file", reason))?;
    if certificates.is_empty() {
        return Err(wrong("tls-cert-file", "the file holds no certificate"));
    }
    Ok(certificates)
}

fn private_key(tls: &TlsSettings) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
    let Some(path) = &tls.key_file else {
        return Err(wrong("tls-key-file", "No tls-key-file configured!"));
    };
    let text = fs::read(OsStr::from_bytes(path))
        .map_err(|error| wrong("tls-key-file", error.to_string()))?;
    let encrypted = [
        &b"BEGIN ENCRYPTED PRIVATE KEY"[..],
        b"Proc-Type: 4,ENCRYPTED",
    ];
    let holds = |mark: &&[u8]| text.windows(mark.len()).any(|part| part == *mark);
    if encrypted.iter().any(holds) {
        return Err(wrong(
            "tls-key-file",
            "the key is encrypted, which kumi does not read: decrypt it with 'openssl pkey'",
        ));
    }
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| wrong("tls-key-file", error.to_string()))
}

/// The authorities that sign the certificates of clients.
fn authorities(tls: &TlsSettings) -> Result<RootCertStore, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    if let Some(path) = &tls.ca_cert_file {
        let add = |reason| wrong("tls-ca-cert-file", reason);
        for certificate in read_certificates(Path::new(OsStr::from_bytes(path))).map_err(add)? {
            roots
                .add(certificate)
                .map_err(|error| add(error.to_string()))?;
        }
    }
    if let Some(path) = &tls.ca_cert_dir {
        let entries = fs::read_dir(OsStr::from_bytes(path))
            .map_err(|error| wrong("tls-ca-cert-dir", error.to_string()))?;
        for entry in entries.flatten() {
            // A directory of authorities has other files, too: lists of revoked ones, readmes.
            for certificate in read_certificates(&entry.path()).unwrap_or_default() {
                let _ = roots.add(certificate);
            }
        }
    }
    if roots.is_empty() {
        return Err(wrong(
            "tls-ca-cert-file",
            "Either tls-ca-cert-file or tls-ca-cert-dir must be specified when tls-auth-clients is not 'no', and hold a certificate",
        ));
    }
    Ok(roots)
}

fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
    certificates
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_suites_are_chosen_by_openssls_names() {
        let names = |text: &str| versions(Some(text.as_bytes())).map(|versions| versions.len());
        assert_eq!(names("TLSv1.2 tlsv1.3").ok(), Some(2));
        assert_eq!(names("TLSv1.3").ok(), Some(1));
        for text in ["", "TLSv1", "TLSv1.1 TLSv1.2", "SSLv3"] {
            assert!(names(text).is_err(), "{text}");
        }
        let all = cipher_suites(None).map(|suites| suites.len()).unwrap_or(0);
        let suites = |text: &str| cipher_suites(Some(text.as_bytes()));
        let one = suites("TLS_CHACHA20_POLY1305_SHA256").expect("it is known");
        assert_eq!(one.len(), all - 2);
        assert_eq!(
            one[0].suite(),
            rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256
        );
        assert!(suites("TLS_NOPE").is_err());
        assert!(suites("").is_err());
        assert!(suites("ECDHE-RSA-AES128-GCM-SHA256").is_err());
    }

    #[test]
    fn what_is_missing_is_named() {
        let mut tls = TlsSettings::default();
        let directive = |tls: &TlsSettings| build(tls).err().map(|error| error.directive);
        assert_eq!(directive(&tls), Some("tls-ca-cert-file"));
        tls.auth_clients = TlsAuthClients::No;
        assert_eq!(directive(&tls), Some("tls-cert-file"));
        tls.cert_file = Some(b"/nonexistent".to_vec());
        assert_eq!(directive(&tls), Some("tls-cert-file"));
    }
}
