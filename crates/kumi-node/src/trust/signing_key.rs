//! The authority's private key: a P-256 scalar from the cluster's key, in the form that ring and rcgen read.

use kumi_unison::ClusterKey;
use p256::SecretKey;
use p256::elliptic_curve::sec1::ToSec1Point;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::pki_types::PrivatePkcs8KeyDer;

use super::TrustError;

const LABEL: &[u8] = b"kumi node/1 ca";

/// PKCS#8 version 1 around an ECPrivateKey of P-256 (RFC 5915), up to the 32 bytes of the scalar:
///
/// ```text
/// SEQUENCE 135
///   INTEGER 0
///   SEQUENCE 19   OID ecPublicKey, OID prime256v1
///   OCTET STRING 109
///     SEQUENCE 107
///       INTEGER 1
///       OCTET STRING 32   the scalar
///       [1] 68            BIT STRING 66, no unused bits: 04, x, y
/// ```
const HEAD: [u8; 36] = [
    0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02,
    0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x6d, 0x30, 0x6b, 0x02,
    0x01, 0x01, 0x04, 0x20,
];
/// What stands between the scalar and the public key.
const MIDDLE: [u8; 5] = [0xa1, 0x44, 0x03, 0x42, 0x00];

/// The key pair that a cluster's key gives.
pub(super) fn key_pair(key: &ClusterKey) -> Result<KeyPair, TrustError> {
    let scalar = first_valid(|counter| Ok(key.derive::<32>(&[LABEL, &[counter]].concat())?))?;
    let document = PrivatePkcs8KeyDer::from(pkcs8(&scalar));
    // ring refuses a public key that does not belong to the scalar.
    Ok(KeyPair::from_pkcs8_der_and_sign_algo(
        &document,
        &PKCS_ECDSA_P256_SHA256,
    )?)
}

/// The first candidate that is a scalar of the curve: not zero, and below the group's order. A random one is not with a
/// probability of 2^-32.
fn first_valid(
    candidate: impl Fn(u8) -> Result<[u8; 32], TrustError>,
) -> Result<SecretKey, TrustError> {
    for counter in 0..=u8::MAX {
        if let Ok(scalar) = SecretKey::from_slice(&candidate(counter)?) {
            return Ok(scalar);
        }
    }
    Err(rcgen::Error::CouldNotParseKeyPair.into())
}

fn pkcs8(scalar: &SecretKey) -> Vec<u8> {
    let public = scalar.public_key().to_sec1_point(false);
    [&HEAD[..], &scalar.to_bytes(), &MIDDLE, public.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::secret::hex;

    /// The order of the group.
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        0xff, 0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63,
        0x25, 0x51,
    ];

    #[test]
    fn candidates_that_are_no_scalar_are_passed_over() {
        let mut below = ORDER;
        below[31] -= 1;
        let candidates = [[0; 32], [0xff; 32], ORDER, below, [1; 32]];
        let found = first_valid(|counter| Ok(candidates[usize::from(counter)])).unwrap();
        assert_eq!(found.to_bytes().as_slice(), below);
    }

    #[test]
    fn a_derivation_without_a_scalar_ends() {
        assert!(first_valid(|_| Ok([0xff; 32])).is_err());
    }

    /// Multiples of the base point as NIST lists them: 1, and the order less one.
    #[test]
    fn the_smallest_and_the_largest_scalar_are_accepted_by_ring() {
        let mut one = [0; 32];
        one[31] = 1;
        let mut last = ORDER;
        last[31] -= 1;
        for (scalar, y) in [(one, "4fe342e2"), (last, "b01cbd1c")] {
            let document = pkcs8(&first_valid(|_| Ok(scalar)).unwrap());
            let document = PrivatePkcs8KeyDer::from(document);
            let pair =
                KeyPair::from_pkcs8_der_and_sign_algo(&document, &PKCS_ECDSA_P256_SHA256).unwrap();
            let point = hex(pair.public_key_raw());
            assert!(point.starts_with("046b17d1f2e12c4247"), "{point}");
            assert!(point[66..].starts_with(y), "{point}");
        }
    }
}
