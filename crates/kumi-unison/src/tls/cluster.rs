//! The cluster key: a secret that all members share, and the certificate derived from it.
//!
//! From the secret both sides derive the same Ed25519 key, and with it the same certificate. A handshake proves that
//! the peer holds the private key, and each side accepts that one public key and no other: the
//! holders of the secret are members, and no certificates are distributed. It does not distinguish members, and a member can
//! be excluded only by giving all others a new secret; where that matters, use a CA.
//!
//! ```text
//! prk    = HKDF-Extract-SHA256(salt = "kumi unison/1 cluster", ikm = secret)
//! seed   = HKDF-Expand-SHA256(prk, info = "kumi unison/1 cluster: ed25519 seed",   32 bytes)
//! serial = HKDF-Expand-SHA256(prk, info = "kumi unison/1 cluster: certificate id", 16 bytes)
//! ```
//!
//! The seed is the private key of RFC 8032. The certificate around it is self-signed, for the name `unison.cluster`,
//! and only its public key is compared, so another implementation may build the rest of it differently.
//!
//! While a key is replaced by another, a member holds both: it shows the first, and accepts peers that show either.
//!
//! A server may accept a second kind of key, that of guests, whose holders open some of its channels only. A guest and the
//! server prove to each other that they hold the guests' key in the same way. Which certificate the server shows depends on
//! the name that the client asks for (SNI):
//!
//! ```text
//! tag  = HKDF-Expand-SHA256(prk, info = "kumi unison/1 cluster: guest name", 8 bytes)
//! name = "guest-" + tag in hexadecimal + ".unison.cluster"
//! ```

use std::fmt;
use std::path::Path;

use ring::hkdf;
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use rustls::server::ParsedCertificate;

use super::{Credentials, TlsError, key_file};

/// Separates these keys from whatever else the same secret may be used for.
const SALT: &[u8] = b"kumi unison/1 cluster";
const SEED_LABEL: &[u8] = b"kumi unison/1 cluster: ed25519 seed";
const SERIAL_LABEL: &[u8] = b"kumi unison/1 cluster: certificate id";
const GUEST_LABEL: &[u8] = b"kumi unison/1 cluster: guest name";
/// The name in the certificate. It is never resolved.
const NAME: &str = "unison.cluster";
/// What precedes a seed in a PKCS#8 document of version 1 (RFC 8410): a sequence, the version, the algorithm, and
/// the headers of two nested octet strings.
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// A secret shared by all members of a cluster.
///
/// ```
/// use kumi_unison::ClusterKey;
/// let key = ClusterKey::from_secret(b"0123456789abcdef0123456789abcdef")?;
/// assert_eq!(format!("{key:?}"), "ClusterKey(..)");
/// assert!(ClusterKey::from_secret(b"short").is_err());
/// # Ok::<(), kumi_unison::TlsError>(())
/// ```
#[derive(Clone)]
pub struct ClusterKey {
    prk: hkdf::Prk,
    /// The second key of a file with two.
    second: Option<hkdf::Prk>,
}

impl ClusterKey {
    /// The least length of a secret. The derivation is fast and does not protect guessable secrets: use 32 random bytes.
    pub const MIN_SECRET_BYTES: usize = 16;

    /// Derives from the secret's bytes, taken as they are.
    pub fn from_secret(secret: &[u8]) -> Result<ClusterKey, TlsError> {
        if secret.len() < Self::MIN_SECRET_BYTES {
            return Err(TlsError::WeakClusterSecret {
                length: secret.len(),
                at_least: Self::MIN_SECRET_BYTES,
            });
        }
        let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, SALT).extract(secret);
        Ok(ClusterKey { prk, second: None })
    }

    /// This key with `other` as its second one: peers that show either key are accepted, and this one is shown.
    #[must_use]
    pub fn accepting(mut self, other: &ClusterKey) -> ClusterKey {
        self.second = Some(other.prk.clone());
        self
    }

    /// The second key, which is accepted and not shown; none unless the key is being replaced.
    pub fn second(&self) -> Option<ClusterKey> {
        let prk = self.second.clone()?;
        Some(ClusterKey { prk, second: None })
    }

    /// Reads a key file as `kumi cluster keygen` makes it: 64 hexadecimal digits and a line break. A file may have
    /// a second line with a second key, see [`ClusterKey::accepting`].
    ///
    /// A key file is a secret. One that others may read is refused, as ssh does with its keys. A file of root's may be
    /// readable by its group, which is how services are given theirs.
    ///
    /// ```no_run
    /// use kumi_unison::ClusterKey;
    /// let key = ClusterKey::from_file("/etc/kumi/cluster.key")?;
    /// # Ok::<(), kumi_unison::TlsError>(())
    /// ```
    pub fn from_file(path: impl AsRef<Path>) -> Result<ClusterKey, TlsError> {
        let (first, second) = key_file::read(path.as_ref())?;
        let key = ClusterKey::from_secret(&first)?;
        Ok(match second {
            Some(second) => key.accepting(&ClusterKey::from_secret(&second)?),
            None => key,
        })
    }

    /// Makes a key file with a new random secret, for its owner alone. A file that is there already is left as it is.
    pub fn create_file(path: impl AsRef<Path>) -> Result<ClusterKey, TlsError> {
        let secret = ClusterKey::random_secret()?;
        key_file::create(path.as_ref(), &secret)?;
        ClusterKey::from_secret(&secret)
    }

    /// A new random secret, to be handed to every member.
    pub fn random_secret() -> Result<[u8; 32], TlsError> {
        let mut secret = [0; 32];
        SystemRandom::new()
            .fill(&mut secret)
            .map_err(|_| TlsError::Unusable(rustls::Error::FailedToGetRandomBytes))?;
        Ok(secret)
    }

    /// Bytes for another purpose, derived from the first key by a label that no other purpose has. Labels of this crate
    /// begin with `kumi unison/1`.
    pub fn derive<const LENGTH: usize>(&self, label: &[u8]) -> Result<[u8; LENGTH], TlsError> {
        expand(&self.prk, label)
    }

    /// The certificate and key of every member.
    pub(super) fn credentials(&self) -> Result<Credentials, TlsError> {
        let mut document = PKCS8_HEAD.to_vec();
        document.extend(self.derive::<32>(SEED_LABEL)?);
        let key = PrivatePkcs8KeyDer::from(document);
        let pair = rcgen::KeyPair::from_pkcs8_der_and_sign_algo(&key, &rcgen::PKCS_ED25519)?;

        let mut params = rcgen::CertificateParams::new([NAME.to_owned()])?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, NAME);
        let serial = self.derive::<16>(SERIAL_LABEL)?;
        params.serial_number = Some(rcgen::SerialNumber::from_slice(&serial));
        let certificate = params.self_signed(&pair)?;
        Ok(Credentials::new(
            certificate.der().clone(),
            Vec::new(),
            key.into(),
        ))
    }

    /// The name that a guest with this key asks the server for.
    pub(super) fn guest_name(&self) -> Result<String, TlsError> {
        let tag = self.derive::<8>(GUEST_LABEL)?;
        let tag: String = tag.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("guest-{tag}.{NAME}"))
    }

    /// The key and, if there is one, the second key.
    pub(super) fn each(&self) -> impl Iterator<Item = ClusterKey> {
        let prk = self.prk.clone();
        let first = ClusterKey { prk, second: None };
        [Some(first), self.second()].into_iter().flatten()
    }

    /// The public keys members are known by: of the first key, and of the second if there is one.
    pub(super) fn public_keys(&self) -> Result<Vec<SubjectPublicKeyInfoDer<'static>>, TlsError> {
        let public_key = |key: ClusterKey| {
            let credentials = key.credentials()?;
            let leaf = ParsedCertificate::try_from(&credentials.chain[0])?;
            Ok(leaf.subject_public_key_info())
        };
        self.each().map(public_key).collect()
    }
}

/// The output of HKDF for a label.
pub(super) fn expand<const LENGTH: usize>(
    prk: &hkdf::Prk,
    label: &[u8],
) -> Result<[u8; LENGTH], TlsError> {
    let mut bytes = [0; LENGTH];
    prk.expand(&[label], Length(LENGTH))
        .and_then(|material| material.fill(&mut bytes))
        .map_err(|_| TlsError::Unusable(rustls::Error::General("HKDF refused".to_owned())))?;
    Ok(bytes)
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey(..)")
    }
}

/// How many bytes to expand to.
struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &[u8] = b"correct horse battery staple, long";

    #[test]
    fn both_sides_derive_the_same_certificate() {
        let [one, other] = [(); 2].map(|()| {
            let key = ClusterKey::from_secret(SECRET).unwrap();
            key.credentials().unwrap().fingerprint()
        });
        assert_eq!(one, other);
    }

    #[test]
    fn another_secret_gives_another_public_key() {
        let keys = [SECRET, b"another secret of enough bytes"].map(|secret| {
            let key = ClusterKey::from_secret(secret).unwrap();
            key.public_keys().unwrap()
        });
        assert_ne!(keys[0], keys[1]);
    }

    /// Anchors the derivation for other implementations: computed by HKDF as drawn in this file's head.
    #[test]
    fn the_seed_is_what_hkdf_gives_for_the_labels() {
        let key = ClusterKey::from_secret(SECRET).unwrap();
        let seed: [u8; 32] = key.derive(SEED_LABEL).unwrap();
        let hex: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "9920aed1994d3a18b193821d3b866f319ecf90d77e3b7c40407581930d158b40"
        );
    }

    #[test]
    fn random_secrets_differ() {
        assert_ne!(
            ClusterKey::random_secret().unwrap(),
            ClusterKey::random_secret().unwrap()
        );
    }
}
