//! The certificate authority of a cluster: the same subject, key, serial number, dates and extensions on every node.
//!
//! Its certificates on two nodes differ in the signature alone, because ECDSA draws a random number for each. Clients
//! compare subject and key, so a certificate of one node lets a client believe the leaves of every node.

use std::fmt;
use std::time::{Duration, SystemTime};

use kumi_unison::ClusterKey;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SerialNumber, date_time_ymd,
};
use rustls::pki_types::CertificateDer;

use super::leaf::{Leaf, LeafNames};
use super::{ClusterId, TrustError, signing_key};

const SERIAL_LABEL: &[u8] = b"kumi node/1 ca serial";

/// How far a leaf reaches back, for peers whose clock is behind.
const BACKDATED: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a leaf is valid from the time it was made.
const LIFE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The last second whose date fits into a certificate: the end of 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// Signs the certificates of a cluster's nodes. Every holder of the cluster's key is the same authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: Certificate,
}

impl Authority {
    pub(super) fn from_key(key: &ClusterKey, id: &ClusterId) -> Result<Authority, TrustError> {
        let pair = signing_key::key_pair(key)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(&format!("kumi cluster {id}"));
        params.serial_number = Some(SerialNumber::from_slice(&key.derive::<16>(SERIAL_LABEL)?));
        params.not_before = date_time_ymd(2020, 1, 1);
        // RFC 5280's date for "no end".
        params.not_after = date_time_ymd(9999, 12, 31);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&pair)?;
        let issuer = Issuer::new(params, pair);
        Ok(Authority {
            issuer,
            certificate,
        })
    }

    /// Makes a key and a certificate for a node: valid from a day before `now` until seven days after.
    pub fn sign(&self, names: &LeafNames, now: SystemTime) -> Result<Leaf, TrustError> {
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH);
        let since_epoch = since_epoch.map_err(|_| TrustError::Clock)?;
        let ends = since_epoch + LIFE;
        if ends.as_secs() > LAST_SECOND {
            return Err(TrustError::Clock);
        }
        let epoch = date_time_ymd(1970, 1, 1);
        let mut params = CertificateParams::default();
        params.subject_alt_names = names.alternative_names()?;
        params.distinguished_name = common_name(names.node());
        params.not_before = epoch + since_epoch.saturating_sub(BACKDATED);
        params.not_after = epoch + ends;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        let pair = KeyPair::generate()?;
        let certificate = params.signed_by(&pair, &self.issuer)?;
        Ok(Leaf::new(certificate, &pair, now, now + LIFE))
    }

    /// The authority's certificate.
    pub fn der(&self) -> &CertificateDer<'static> {
        self.certificate.der()
    }

    /// The authority's certificate, for `tls-ca-cert-file` and `cacert=`.
    pub fn pem(&self) -> String {
        self.certificate.pem()
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority(..)")
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}
