//! Text that is shown only where it is asked for by name.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kumi_unison::{ClusterKey, TlsError};
use ring::{digest, hmac};

/// A password or token: 43 characters of base64url. `Debug` does not show it.
///
/// ```
/// use kumi_node::trust::Trust;
/// use kumi_unison::ClusterKey;
/// let trust = Trust::from_key(&ClusterKey::from_secret(&[7; 32])?)?;
/// assert_eq!(format!("{:?}", trust.operator_key()), "Secret(..)");
/// assert_eq!(trust.operator_key().expose().len(), 43);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn of_bytes(bytes: &[u8; 32]) -> Secret {
        Secret(URL_SAFE_NO_PAD.encode(bytes))
    }

    pub(crate) fn of_text(text: String) -> Secret {
        Secret(text)
    }

    /// The text itself, to be sent or printed. It belongs in no log.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The key by which the holder of this secret, the operator's key, connects to nodes as a guest.
    pub(crate) fn guest_key(&self) -> Result<ClusterKey, TlsError> {
        ClusterKey::from_secret(self.0.as_bytes())
    }

    /// Whether this is the secret. How long that takes says nothing about where the two differ.
    pub fn is(&self, presented: &[u8]) -> bool {
        // `verify` compares two hashes in constant time. The key of the hash is of no importance.
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"compare");
        let expected = hmac::sign(&key, self.0.as_bytes());
        hmac::verify(&key, presented, expected.as_ref()).is_ok()
    }

    /// SHA-256 of the text in hexadecimal, as an ACL rule `#hash` has it.
    pub fn sha256_hex(&self) -> String {
        hex(digest::digest(&digest::SHA256, self.0.as_bytes()).as_ref())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_text_is_the_secret() {
        let secret = Secret::of_bytes(&[9; 32]);
        let text = secret.expose().to_owned();
        assert!(secret.is(text.as_bytes()));
        let longer = format!("{text}A");
        for other in ["", &text[1..], &text[..42], &longer, &text.to_lowercase()] {
            assert!(!secret.is(other.as_bytes()), "{other:?}");
        }
    }
}
