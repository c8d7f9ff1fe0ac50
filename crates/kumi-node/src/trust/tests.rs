use std::sync::Arc;
use std::time::{Duration, SystemTime};

use kumi_unison::ClusterKey;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, ServerConfig, ServerConnection,
};

use super::{LeafNames, StoreId, Trust, TrustError};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn key(fill: u8) -> ClusterKey {
    ClusterKey::from_secret(&[fill; 32]).unwrap()
}

fn trust(fill: u8) -> Trust {
    Trust::from_key(&key(fill)).unwrap()
}

fn store(id: &str) -> StoreId {
    StoreId::new(id).unwrap()
}

fn names(id: &str) -> LeafNames {
    let hosts = ["10.0.0.1", "a.example", "::1"].map(str::to_owned);
    LeafNames::new("a", hosts).with_store(store(id))
}

/// Computed outside of this crate: HKDF by Python's hmac, the public key by `openssl ec`.
#[test]
fn what_a_key_gives_never_changes() {
    let secret: Vec<u8> = (0..32).collect();
    let trust = Trust::from_key(&ClusterKey::from_secret(&secret).unwrap()).unwrap();
    let node = trust.node_user();
    let app = trust.app_user();
    let check = |found: &str, expected: &str| assert_eq!(found, expected);
    check(
        node.password().expose(),
        "Uv8adunF00FysW9cpT1rLJIdt3awFqHPi1APiy7I558",
    );
    check(
        app.password().expose(),
        "d6VBIjlvabSrpHgOVy7k3IesEthHru9f0qBI6Cb7KWs",
    );
    check(
        trust.operator_key().expose(),
        "iqj40NKcNP10BGhU9IpACGHa_hhEJj3-WJLG3BEn5NQ",
    );
    check(
        trust.metrics_token().expose(),
        "s55Rs-UlN9_YB2wm-RjYUhlTFdBhTFNECLWmT9gOHUE",
    );
    check(trust.cluster_id().as_str(), "2dde0ff030b89b8e");
    let authority = trust.authority().der().as_ref();
    for part in [
        "7faa011174fbbc9ec9172a7b73bffb1b",
        "0420b1ff09bea55cbe409a8227a29a2a5452110a0a1ab17ae6bb7b789068a91147\
         bb3628a9a90e3841f2dba93174e98f9f58d358362d96268ca3708569a6af2b6b",
    ] {
        assert!(super::secret::hex(authority).contains(part), "{part}");
    }
}

/// Everything of the authority's certificate but its signature.
fn signed_part(certificate: &[u8]) -> &[u8] {
    // A sequence with a length of two bytes, whose first element is a sequence with a length of two bytes.
    assert_eq!(
        [
            certificate[0],
            certificate[1],
            certificate[4],
            certificate[5]
        ],
        [0x30, 0x82, 0x30, 0x82]
    );
    let length = usize::from(u16::from_be_bytes([certificate[6], certificate[7]]));
    &certificate[4..8 + length]
}

#[test]
fn every_node_is_the_same_authority() {
    let [one, other, foreign] = [7, 7, 8].map(trust);
    let part = |trust: &Trust| signed_part(trust.authority().der()).to_vec();
    assert_eq!(part(&one), part(&other));
    assert_ne!(part(&one), part(&foreign));
    let other_half = &one.authority().der()[4 + part(&one).len()..];
    assert!(
        other_half.len() < 100,
        "the rest is algorithm and signature"
    );
}

#[test]
fn nothing_secret_is_in_debug_output() {
    let trust = Trust::from_key(&key(7).accepting(&key(8))).unwrap();
    let leaf = trust
        .authority()
        .sign(&names("1"), SystemTime::now())
        .unwrap();
    let shown = format!(
        "{trust:?} {leaf:?} {:?} {:?}",
        trust.node_user(),
        trust.app_user()
    );
    let mut secrets = vec![leaf.key_pem().expose().to_owned()];
    for one in [&trust, &super::tests::trust(8)] {
        secrets.extend(
            [one.node_user(), one.app_user()].map(|user| user.password().expose().to_owned()),
        );
        secrets.push(one.operator_key().expose().to_owned());
        secrets.push(one.metrics_token().expose().to_owned());
    }
    assert_eq!(secrets.len(), 9);
    for secret in secrets {
        for part in [&secret[..], &secret[..12], &secret[secret.len() - 12..]] {
            assert!(!shown.contains(part), "{shown}");
        }
    }
    // The derived fields are named, so what stands there is what was hidden.
    assert!(shown.contains("node_password: Secret(..)"), "{shown}");
    assert!(shown.contains("authority: Authority(..)"), "{shown}");
}

#[test]
fn of_two_keys_the_first_is_used_and_both_are_accepted() {
    let [old, new] = [7, 8].map(trust);
    let both = Trust::from_key(&key(8).accepting(&key(7))).unwrap();
    assert_eq!(both.cluster_id(), new.cluster_id());
    assert_eq!(
        both.cluster_ids(),
        [new.cluster_id().clone(), old.cluster_id().clone()]
    );
    assert_eq!(
        both.node_user().password().expose(),
        new.node_user().password().expose()
    );
    let rules = both.node_user().rules();
    for one in [&old, &new] {
        let hash = format!("#{}", one.node_user().password().sha256_hex());
        assert!(rules.contains(&hash), "{rules:?}");
        assert!(both.is_operator_key(one.operator_key().expose().as_bytes()));
        assert!(both.is_metrics_token(one.metrics_token().expose().as_bytes()));
    }
    assert!(!old.is_operator_key(new.operator_key().expose().as_bytes()));
    assert_eq!(
        both.authorities_pem().matches("BEGIN CERTIFICATE").count(),
        2
    );
}

#[test]
fn a_leaf_is_renewed_at_half_its_life_and_when_the_clock_went_back() {
    let now = SystemTime::UNIX_EPOCH + 20_000 * DAY;
    let leaf = trust(7).authority().sign(&names("1"), now).unwrap();
    assert_eq!(leaf.renew_at(), now + DAY * 7 / 2);
    assert_eq!(leaf.ends_at(), now + DAY * 7);
    assert!(!leaf.is_due(now));
    assert!(!leaf.is_due(now + DAY * 3));
    assert!(leaf.is_due(now + DAY * 4));
    assert!(leaf.is_due(now - DAY * 2));
}

#[test]
fn a_name_or_a_time_that_no_certificate_can_carry_is_an_error() {
    let trust = trust(7);
    for wrong in [
        "",
        "a b",
        "*.example",
        "ü.example",
        "10.0.0.1:6379",
        "[::1]",
        "a/b",
        &"a".repeat(300),
    ] {
        let names = LeafNames::new("a", [wrong.to_owned()]);
        let error = trust
            .authority()
            .sign(&names, SystemTime::now())
            .unwrap_err();
        assert!(
            matches!(&error, TrustError::Name { name } if name == wrong),
            "{error:?}"
        );
    }
    for wrong in [
        SystemTime::UNIX_EPOCH - DAY,
        SystemTime::UNIX_EPOCH + DAY * 365 * 8_100,
    ] {
        let error = trust.authority().sign(&names("1"), wrong).unwrap_err();
        assert!(matches!(error, TrustError::Clock), "{error:?}");
    }
    for wrong in ["", "A", "a-b", "a.b", "ä", &"a".repeat(58)] {
        assert!(StoreId::new(wrong).is_err(), "{wrong:?}");
    }
    assert!(StoreId::new(&"a".repeat(57)).is_ok());
}

/// Shakes hands in memory; the client dials by this name.
fn handshake(
    client: Arc<ClientConfig>,
    dialled: &str,
    server: Arc<ServerConfig>,
) -> Result<(), Error> {
    let name = ServerName::try_from(dialled.to_owned()).unwrap();
    let mut client = ClientConnection::new(client, name).unwrap();
    let mut server = ServerConnection::new(server).unwrap();
    let mut rounds = 0;
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        server.read_tls(&mut &bytes[..]).unwrap();
        server.process_new_packets()?;
        bytes.clear();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets()?;
        }
        rounds += 1;
        assert!(rounds < 10, "the handshake comes to no end");
    }
    Ok(())
}

fn shows(trust: &Trust, names: &LeafNames, made: SystemTime) -> Arc<ServerConfig> {
    let leaf = trust.authority().sign(names, made).unwrap();
    leaf.server_config().unwrap()
}

fn meets(client: &Trust, id: &str, server: Arc<ServerConfig>) -> Result<(), Error> {
    let config = client.store_client_config(&store(id)).unwrap();
    handshake(config, "192.0.2.99", server)
}

#[test]
fn a_store_is_known_by_its_id_whatever_address_was_dialled() {
    let trust = trust(7);
    let now = SystemTime::now();
    meets(&trust, "abc1", shows(&trust, &names("abc1"), now)).unwrap();
    let other = meets(&trust, "abc1", shows(&trust, &names("abc2"), now)).unwrap_err();
    let unnamed = LeafNames::new("a", ["192.0.2.99".to_owned()]);
    let none = meets(&trust, "abc1", shows(&trust, &unnamed, now)).unwrap_err();
    for error in [other, none] {
        let is_name = matches!(
            &error,
            Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
            )
        );
        assert!(is_name, "{error:?}");
    }
}

#[test]
fn a_leaf_of_another_key_is_refused_and_of_the_second_key_accepted() {
    let [old, new] = [7, 8].map(trust);
    let both = Trust::from_key(&key(8).accepting(&key(7))).unwrap();
    let now = SystemTime::now();
    let error = meets(&old, "1", shows(&new, &names("1"), now)).unwrap_err();
    assert!(
        matches!(
            error,
            Error::InvalidCertificate(CertificateError::UnknownIssuer)
        ),
        "{error:?}"
    );
    for shown in [&old, &new] {
        meets(&both, "1", shows(shown, &names("1"), now)).unwrap();
    }
}

#[test]
fn clocks_may_differ_by_hours_and_not_by_weeks() {
    let trust = trust(7);
    let now = SystemTime::now();
    let hours = Duration::from_secs(23 * 60 * 60);
    for made in [now - DAY * 6, now - hours, now + hours] {
        meets(&trust, "1", shows(&trust, &names("1"), made)).unwrap();
    }
    for made in [now - DAY * 8, now + DAY * 2] {
        let error = meets(&trust, "1", shows(&trust, &names("1"), made)).unwrap_err();
        assert!(matches!(error, Error::InvalidCertificate(_)), "{error:?}");
    }
}

#[test]
fn clients_of_the_authority_file_know_a_node_by_its_addresses() {
    let trust = trust(7);
    let mut roots = rustls::RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(trust.authorities_pem().as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = Arc::new(client);
    let server = shows(&trust, &names("1"), SystemTime::now());
    for name in ["10.0.0.1", "a.example", "::1", "store-1.kumi"] {
        handshake(client.clone(), name, server.clone()).unwrap();
    }
    assert!(handshake(client, "10.0.0.2", server).is_err());
}

#[test]
fn each_leaf_has_a_key_of_its_own() {
    let trust = trust(7);
    let keys = [(); 2].map(|()| {
        let leaf = trust
            .authority()
            .sign(&names("1"), SystemTime::now())
            .unwrap();
        let certificate =
            CertificateDer::from_pem_slice(leaf.certificate_pem().as_bytes()).unwrap();
        let parsed = ParsedCertificate::try_from(&certificate).unwrap();
        parsed.subject_public_key_info().to_vec()
    });
    assert_ne!(keys[0], keys[1]);
}
