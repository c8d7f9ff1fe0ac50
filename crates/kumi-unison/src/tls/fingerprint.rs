//! SHA-256 over a certificate's DER form: what people compare and pin.

use std::fmt;
use std::str::FromStr;

use ring::digest;
use rustls::pki_types::CertificateDer;

use super::TlsError;

/// The SHA-256 of a certificate, as `openssl x509 -fingerprint -sha256` prints it.
///
/// ```
/// use kumi_unison::Fingerprint;
/// let text = "ab".repeat(32);
/// let fingerprint: Fingerprint = text.parse()?;
/// assert_eq!(fingerprint.to_string(), text);
/// # Ok::<(), kumi_unison::TlsError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER form.
    pub fn of(certificate: &CertificateDer<'_>) -> Fingerprint {
        let digest = digest::digest(&digest::SHA256, certificate);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Fingerprint(bytes)
    }

    /// The digest itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Fingerprint {
    fn from(bytes: [u8; 32]) -> Fingerprint {
        Fingerprint(bytes)
    }
}

impl FromStr for Fingerprint {
    type Err = TlsError;

    /// Takes 64 hexadecimal digits of either case; colons between them are ignored.
    fn from_str(text: &str) -> Result<Fingerprint, TlsError> {
        let mut bytes = [0; 32];
        let mut digits = 0;
        for character in text.chars().filter(|&character| character != ':') {
            let digit = character.to_digit(16).ok_or(TlsError::FingerprintSyntax)? as u8;
            let byte: &mut u8 = bytes
                .get_mut(digits / 2)
                .ok_or(TlsError::FingerprintSyntax)?;
            *byte = *byte << 4 | digit;
            digits += 1;
        }
        if digits == 64 {
            Ok(Fingerprint(bytes))
        } else {
            Err(TlsError::FingerprintSyntax)
        }
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: bool) {
        assert_eq!(text.parse::<Fingerprint>().is_ok(), expected, "{text:?}");
    }

    #[test]
    fn only_64_digits_are_a_fingerprint() {
        check(&"0f".repeat(32), true);
        check(&"0F".repeat(32), true);
        check(&["0f"; 32].join(":"), true);
        check(&"0f".repeat(31), false);
        check(&"0f".repeat(33), false);
        check(&"0g".repeat(32), false);
        check("", false);
        check(&"0f".repeat(1000), false);
    }

    #[test]
    fn the_digest_is_sha_256_of_the_whole_certificate() {
        let empty = Fingerprint::of(&CertificateDer::from(Vec::new()));
        assert_eq!(
            empty.to_string(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
