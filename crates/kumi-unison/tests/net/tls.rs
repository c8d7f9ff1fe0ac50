//! Trust: who is believed, and what happens to everybody else.

use std::path::{Path, PathBuf};

use kumi_unison::tls::CertificateFault;
use kumi_unison::{
    ClientTls, ClusterKey, Credentials, IncomingRequest, NetworkError, Payload, ProtocolClient,
    RemoteError, ServerLimits, ServerTls, ServiceHandler, TlsError, TrustStore,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;

use crate::lab::{Lab, options, within};
use crate::log::Log;
use crate::proxy::Proxy;

fn lab(tls: ServerTls) -> Lab {
    Lab::at(
        "127.0.0.1:0".parse().unwrap(),
        ServerLimits::default(),
        tls,
        |_| {},
    )
}

async fn connect(lab: &Lab, tls: ClientTls) -> Result<ProtocolClient, NetworkError> {
    connect_to(&lab.address().to_string(), tls).await
}

async fn connect_to(address: &str, tls: ClientTls) -> Result<ProtocolClient, NetworkError> {
    within(ProtocolClient::connect_with(address, tls, options())).await
}

/// Asserts that a call goes through.
async fn works(client: &ProtocolClient) {
    let channel = within(client.open_channel("echo")).await.unwrap();
    within(channel.request("echo", json!(1))).await.unwrap();
}

fn tls_error(outcome: Result<ProtocolClient, NetworkError>) -> String {
    match outcome {
        Err(NetworkError::Tls(error)) => format!("{error:?}"),
        Err(error) => panic!("not about TLS: {error:?}"),
        Ok(_) => panic!("connected"),
    }
}

/// What was wrong with the certificate of this server.
fn certificate_fault(lab: &Lab, outcome: Result<ProtocolClient, NetworkError>) -> CertificateFault {
    let error = outcome.err().expect("not trusted");
    let NetworkError::Tls(error) = error else {
        panic!("not about TLS: {error:?}");
    };
    match &*error {
        TlsError::Certificate { peer, fault } => {
            assert_eq!(*peer, lab.address().to_string());
            fault.clone()
        }
        other => panic!("not about a certificate: {other:?}"),
    }
}

/// An authority that writes certificates into a directory.
struct Authority {
    directory: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), certificate.pem()).unwrap();
        Authority {
            directory,
            issuer: Issuer::new(params, key),
        }
    }

    fn roots(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Certificate and key files for these names.
    fn issue(&self, file: &str, names: &[&str]) -> (PathBuf, PathBuf) {
        self.issue_for(file, names, (2001, 4001))
    }

    /// Certificate and key files that are valid from the first day of a year to that of another.
    fn issue_for(&self, file: &str, names: &[&str], (from, to): (i32, i32)) -> (PathBuf, PathBuf) {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(names).unwrap();
        params.not_before = rcgen::date_time_ymd(from, 1, 1);
        params.not_after = rcgen::date_time_ymd(to, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let write = |suffix: &str, text: &str| {
            let path = self.directory.path().join(format!("{file}.{suffix}"));
            std::fs::write(&path, text).unwrap();
            path
        };
        (
            write("pem", &certificate.pem()),
            write("key", &key.serialize_pem()),
        )
    }

    fn credentials(&self, file: &str, names: &[&str]) -> Credentials {
        let (chain, key) = self.issue(file, names);
        Credentials::from_pem_files(chain, key).unwrap()
    }
}

#[tokio::test]
async fn a_pinned_certificate_is_believed_and_no_other() {
    let lab = Lab::start();
    works(&connect(&lab, lab.pinned()).await.unwrap()).await;
    let other = Credentials::development(&["localhost"]).unwrap();
    let tls = ClientTls::pinned([other.fingerprint()]).unwrap();
    let error = tls_error(connect(&lab, tls).await);
    assert!(error.starts_with("NotPinned"), "{error}");
}

#[tokio::test]
async fn what_a_server_showed_first_is_what_it_has_to_show_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("known");
    let [first, second] = [Lab::start(), Lab::start()];
    // Both servers are reached by the same name.
    let proxy = Proxy::start(first.address(), 1).await;
    let address = proxy.address().to_string();
    let tofu =
        |path: &Path| ClientTls::trust_on_first_use(TrustStore::file(path).unwrap()).unwrap();
    for _ in 0..2 {
        let client = connect_to(&address, tofu(&path)).await.unwrap();
        works(&client).await;
        client.close().await;
    }
    let known = TrustStore::file(&path).unwrap().known(&address);
    assert_eq!(known, Some(first.tls.fingerprint()));

    proxy.retarget(second.address());
    let error = tls_error(connect_to(&address, tofu(&path)).await);
    assert!(error.starts_with("Changed"), "{error}");
    let known = TrustStore::file(&path).unwrap().known(&address);
    assert_eq!(known, Some(first.tls.fingerprint()), "the first stays");
}

#[tokio::test]
async fn an_authority_is_believed_for_the_name_it_signed() {
    let authority = Authority::new();
    let (chain, key) = authority.issue("server", &["localhost", "127.0.0.1"]);
    let lab = lab(ServerTls::from_pem_files(chain, key).unwrap());
    let port = lab.address().port();
    let trusting = || ClientTls::ca_file(authority.roots()).unwrap();
    works(&connect(&lab, trusting()).await.unwrap()).await;
    let by_name = format!("localhost:{port}");
    works(&connect_to(&by_name, trusting()).await.unwrap()).await;
    let stranger = Authority::new();
    let tls = ClientTls::ca_file(stranger.roots()).unwrap();
    assert_eq!(
        certificate_fault(&lab, connect(&lab, tls).await),
        CertificateFault::UnknownIssuer
    );
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let (chain, key) = authority.issue("server", &["example.com"]);
    let lab = lab(ServerTls::from_pem_files(chain, key).unwrap());
    let tls = ClientTls::ca_file(authority.roots()).unwrap();
    assert_eq!(
        certificate_fault(&lab, connect(&lab, tls).await),
        CertificateFault::WrongName
    );
}

#[tokio::test]
async fn a_certificate_out_of_its_dates_is_refused() {
    let authority = Authority::new();
    for (years, expected) in [
        ((2001, 2002), CertificateFault::Expired),
        ((4001, 4002), CertificateFault::NotYetValid),
    ] {
        let (chain, key) = authority.issue_for("server", &["127.0.0.1"], years);
        let lab = lab(ServerTls::from_pem_files(chain, key).unwrap());
        let tls = ClientTls::ca_file(authority.roots()).unwrap();
        assert_eq!(certificate_fault(&lab, connect(&lab, tls).await), expected);
    }
}

#[tokio::test]
async fn a_client_whose_server_comes_back_with_another_certificate_says_so_and_goes_on() {
    let first = Lab::start();
    let proxy = Proxy::start(first.address(), 1).await;
    let client = first.client_at(proxy.address()).await;
    works(&client).await;

    let mut log = Log::capture();
    let stranger = Lab::start();
    drop(first.handle);
    proxy.retarget(stranger.address());
    let warning = within(log.warning()).await;
    assert!(warning.contains("which is not the pinned one"), "{warning}");
    assert!(warning.contains(&proxy.address().to_string()), "{warning}");

    let again = Lab::at(
        "127.0.0.1:0".parse().unwrap(),
        ServerLimits::default(),
        first.tls.clone(),
        |_| {},
    );
    proxy.retarget(again.address());
    works(&client).await;
}

#[tokio::test]
async fn mutual_tls_lets_in_whom_the_authority_signed() {
    let authority = Authority::new();
    let (chain, key) = authority.issue("server", &["127.0.0.1"]);
    let server = ServerTls::from_pem_files(chain, key)
        .unwrap()
        .require_client_ca(authority.roots())
        .unwrap();
    let lab = lab(server);
    let trusting = || ClientTls::ca_file(authority.roots()).unwrap();

    let member = authority.credentials("client", &["unit-1"]);
    let tls = trusting().with_credentials(member).unwrap();
    works(&connect(&lab, tls).await.unwrap()).await;

    let error = tls_error(connect(&lab, trusting()).await);
    assert!(error.starts_with("Refused"), "{error}");
    let server = lab.address().to_string();
    assert!(error.contains(&server), "{error}");

    let stranger = Authority::new().credentials("client", &["unit-1"]);
    let tls = trusting().with_credentials(stranger).unwrap();
    let error = tls_error(connect(&lab, tls).await);
    assert!(error.starts_with("Refused"), "{error}");
}

#[tokio::test]
async fn pinned_clients_are_let_in_and_no_others() {
    let [friend, stranger] = [(); 2].map(|()| Credentials::development(&["client"]).unwrap());
    let server = ServerTls::development(&["localhost"])
        .unwrap()
        .require_client_pins([friend.fingerprint()]);
    let lab = lab(server);
    let tls = lab.pinned().with_credentials(friend).unwrap();
    works(&connect(&lab, tls).await.unwrap()).await;
    let tls = lab.pinned().with_credentials(stranger).unwrap();
    let error = tls_error(connect(&lab, tls).await);
    assert!(error.starts_with("Refused"), "{error}");
}

#[tokio::test]
async fn a_handler_can_see_who_asks() {
    let credentials = Credentials::development(&["client"]).unwrap();
    let fingerprint = credentials.fingerprint();
    let tls = ServerTls::development(&["localhost"])
        .unwrap()
        .require_client_pins([fingerprint]);
    let address = "127.0.0.1:0".parse().unwrap();
    let lab = Lab::at(address, ServerLimits::default(), tls, |server| {
        let who = |request: IncomingRequest| async move {
            let shown = request.channel().context().peer_fingerprint();
            Payload::json(&shown.map(|shown| shown.to_string())).map_err(RemoteError::from)
        };
        server.register_channel("who", ServiceHandler::new(who));
    });
    let tls = lab.pinned().with_credentials(credentials).unwrap();
    let client = connect(&lab, tls).await.unwrap();
    let channel = within(client.open_channel("who")).await.unwrap();
    let answer = within(channel.request("m", json!(null))).await.unwrap();
    assert_eq!(answer, json!(fingerprint.to_string()));
    let server = client.context().unwrap();
    assert_eq!(server.peer_fingerprint(), Some(lab.tls.fingerprint()));
    assert_eq!(server.peer_certificates().len(), 1);
}

#[tokio::test]
async fn a_cluster_lets_in_who_knows_its_secret() {
    let key = ClusterKey::from_secret(b"the secret of this cluster, long").unwrap();
    let same = ClusterKey::from_secret(b"the secret of this cluster, long").unwrap();
    let other = ClusterKey::from_secret(b"the secret of another cluster...").unwrap();
    let lab = lab(ServerTls::cluster(&key).unwrap());
    let tls = ClientTls::cluster(&same).unwrap();
    works(&connect(&lab, tls).await.unwrap()).await;

    let error = tls_error(connect(&lab, ClientTls::cluster(&other).unwrap()).await);
    assert!(error.starts_with("OtherCluster"), "{error}");

    // Who knows the certificate but not its key gets no further than who knows nothing.
    let error = tls_error(connect(&lab, lab.pinned()).await);
    assert!(error.starts_with("Refused"), "{error}");
}

/// The steps of a replacement: members with the old key alone, with both in either order, with the new one alone.
#[tokio::test]
async fn members_with_two_keys_meet_holders_of_either() {
    let old = ClusterKey::from_secret(b"the secret of this cluster, old!").unwrap();
    let new = ClusterKey::from_secret(b"the secret of this cluster, new!").unwrap();
    let steps = [
        old.clone(),
        old.clone().accepting(&new),
        new.clone().accepting(&old),
        new.clone(),
    ];
    for (at, server) in steps.iter().enumerate() {
        let lab = lab(ServerTls::cluster(server).unwrap());
        for (other, client) in steps.iter().enumerate() {
            let met = connect(&lab, ClientTls::cluster(client).unwrap()).await;
            // Members differ by one step at a time. Both may also hold both keys.
            if at.abs_diff(other) <= 1 {
                works(&met.unwrap()).await;
            } else {
                tls_error(met);
            }
        }
    }
}

#[tokio::test]
async fn guests_open_only_what_is_open_to_them() {
    let secret = |text: &[u8]| ClusterKey::from_secret(text).unwrap();
    let key = secret(b"the secret of this cluster, long");
    let guests = secret(b"the secret of its guests, as long");
    let before = secret(b"the secret of its guests, before.");
    let both = guests.clone().accepting(&before);
    let lab = lab(ServerTls::cluster_with_guests(&key, &both).unwrap());
    works(
        &connect(&lab, ClientTls::cluster(&key).unwrap())
            .await
            .unwrap(),
    )
    .await;
    let guest = |key: &ClusterKey| ClientTls::guest(key).unwrap();
    for key in [&guests, &before] {
        let client = connect(&lab, guest(key)).await.unwrap();
        let refused = within(client.open_channel("echo")).await.unwrap_err();
        let is_unavailable = matches!(&refused, NetworkError::Unavailable { .. });
        assert!(is_unavailable, "{refused:?}");
        let unknown = within(client.open_channel("nothing")).await.unwrap_err();
        assert!(
            matches!(unknown, NetworkError::Unavailable { .. }),
            "{unknown:?}"
        );
    }
    let early = connect(&lab, guest(&guests)).await.unwrap();
    lab.server.registry().open_to_guests("echo");
    works(&connect(&lab, guest(&guests)).await.unwrap()).await;

    // A guest does not pass for a member, nor a stranger for a guest.
    let error = tls_error(connect(&lab, ClientTls::cluster(&guests).unwrap()).await);
    assert!(error.starts_with("OtherCluster"), "{error}");
    let stranger = secret(b"the secret of another cluster...");
    let error = tls_error(connect(&lab, guest(&stranger)).await);
    assert!(error.starts_with("OtherCluster"), "{error}");

    // Without guests no new one comes, and one that is there stays a guest.
    let echo = ServiceHandler::new(lab.echo.clone());
    lab.server.register_channel("members", echo);
    lab.handle
        .set_tls(&ServerTls::cluster(&key).unwrap())
        .unwrap();
    tls_error(connect(&lab, guest(&guests)).await);
    works(&early).await;
    let refused = within(early.open_channel("members")).await.unwrap_err();
    assert!(
        matches!(refused, NetworkError::Unavailable { .. }),
        "{refused:?}"
    );
}

#[tokio::test]
async fn skipping_verification_works_on_loopback_only() {
    let lab = Lab::start();
    let anybody = || ClientTls::danger_skip_verification_on_loopback().unwrap();
    works(&connect(&lab, anybody()).await.unwrap()).await;
    // Reserved for documentation, so nothing listens there; it has to be refused before anything is sent.
    let error = connect_to("192.0.2.1:4433", anybody()).await.err().unwrap();
    let NetworkError::Tls(error) = error else {
        panic!("{error:?}");
    };
    assert!(matches!(*error, TlsError::NotLoopback { .. }), "{error:?}");
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    let tls = || ClientTls::pinned([]).unwrap();
    for address in ["", "localhost", "localhost:0x1", "[::1]", "a b:1"] {
        assert!(connect_to(address, tls()).await.is_err(), "{address:?}");
    }
}
