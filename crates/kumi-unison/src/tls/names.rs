//! The names in a peer's certificate, which was verified in the handshake.

use rustls::pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;

/// Whether a certificate has this host, a DNS name or an IP address, among its subject alternative names.
pub(crate) fn is_for_host(certificate: &[u8], host: &str) -> bool {
    let certificate = CertificateDer::from(certificate);
    let (Ok(certificate), Ok(host)) = (
        EndEntityCert::try_from(&certificate),
        ServerName::try_from(host),
    ) else {
        return false;
    };
    certificate.verify_is_valid_for_subject_name(&host).is_ok()
}

/// The URIs among a certificate's subject alternative names; none of a certificate that cannot be read.
pub(crate) fn uris(certificate: &[u8]) -> Vec<String> {
    let certificate = CertificateDer::from(certificate);
    match EndEntityCert::try_from(&certificate) {
        Ok(certificate) => certificate.valid_uri_names().map(str::to_owned).collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_and_uris_of_a_certificate_are_told() {
        let names = ["node.example".to_owned(), "10.0.0.1".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).unwrap();
        let uri = "kumi://node.example:7400".try_into().unwrap();
        params.subject_alt_names.push(rcgen::SanType::URI(uri));
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let der = certificate.der();
        for host in ["node.example", "NODE.example", "10.0.0.1"] {
            assert!(is_for_host(der, host), "{host}");
        }
        for host in ["other.example", "10.0.0.2", "", "a b", "node.example:7400"] {
            assert!(!is_for_host(der, host), "{host}");
        }
        assert_eq!(uris(der), ["kumi://node.example:7400"]);
        assert!(!is_for_host(b"junk", "node.example"));
        assert!(uris(b"junk").is_empty());
    }
}
