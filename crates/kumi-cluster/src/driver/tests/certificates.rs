//! Nodes that show certificates of one authority: which of them get in, and what each may announce.

use super::network::{
    TIMEOUT, behind_one_name, event, joining, key, members, start, trouble, until,
};
use crate::core::{
    Authority, ClusterEvent, DownReason, Envelope, EnvelopeError, MAX_VERSION, MIN_VERSION,
    MemberMetadata, MemberRecord, MembershipDelta, MembershipRuntimeConfig, Message, NodeIdentity,
    NodeStatus, NodeUid, Seen,
};
use crate::driver::link::GOSSIP_CHANNEL;
use crate::driver::{
    AdminClient, AdminError, ClusterNode, ClusterWatch, MemoryNetwork, NodeOptions, Security,
    Transport,
};
use bytes::Bytes;
use kumi_unison::{
    ClientOptions, ClientTls, ClusterKey, Credentials, ProtocolClient, UnisonChannel,
};
use std::format;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::string::{String, ToString};
use std::vec::Vec;

#[tokio::test]
async fn certificates_of_one_authority_let_nodes_in_and_others_stay_outside() {
    let ours = Certificates::new();
    let first = start(&ours.issue(), |_| {}).await;
    let mut watch = first.subscribe();
    let second = joining(&ours.issue(), first.authority()).await;
    members(&mut watch, 2).await;
    let theirs = Certificates::new();
    let outsider = joining(&theirs.issue(), first.authority()).await;
    trouble(&outsider).await;
    let asked = AdminClient::connect(first.authority().as_str(), &theirs.issue()).await;
    assert!(
        matches!(asked, Err(AdminError::Unreachable { .. })),
        "{asked:?}"
    );
    assert_eq!(second.members().members.len(), 2);
}

#[tokio::test]
async fn a_node_is_refused_under_the_name_of_another() {
    let ours = Certificates::new();
    let first = start(&ours.issue(), |_| {}).await;
    let mut watch = first.subscribe();
    let second = joining(&ours.issue(), first.authority()).await;
    members(&mut watch, 2).await;
    let victim = second.authority().clone();
    // Signed by the same authority, for another port of the host, another host, or no node at all.
    for uris in [
        &["kumi://127.0.0.1:1"][..],
        &["kumi://127.0.0.2"],
        &["kumi-role:operator"],
        &[],
    ] {
        let before = first.metrics().impostors;
        let thief = ours.issue_with(&["127.0.0.1"], uris);
        let impostor = start(&thief, |options| {
            options.advertise = Some(victim.clone());
            options.seeds = Vec::from([first.authority().clone()]);
        })
        .await;
        until(|| first.metrics().impostors > before).await;
        drop(impostor);
    }
    // Neither the node whose name was used nor the one that was asked gives it up.
    for node in [&first, &second] {
        assert_eq!(node.status(), Some(NodeStatus::Up));
        assert_eq!(node.members().members.len(), 2);
    }
}

fn envelope(sender: &NodeIdentity, message: Message) -> Bytes {
    let envelope = Envelope {
        cluster: "kumi".into(),
        versions: (MIN_VERSION, MAX_VERSION),
        sender: sender.clone(),
        message,
    };
    envelope.encode().into()
}

/// Gossip in which its sender tells that a life of another node has this status.
fn rumour(sender: &NodeIdentity, of: NodeIdentity, status: NodeStatus) -> Bytes {
    let record = MemberRecord::new(of, status, MemberMetadata::EMPTY);
    let delta = MembershipDelta {
        records: Vec::from([record]),
        ..MembershipDelta::default()
    };
    let seen = Seen::default();
    envelope(sender, Message::Push { seen, delta })
}

/// A holder of a certificate of the authority, for a name of its own.
fn sender() -> NodeIdentity {
    NodeIdentity {
        authority: Authority::new("127.0.0.1:1").expect("a name"),
        uid: NodeUid::from_raw(5),
    }
}

/// Connects to a node and introduces itself by this identity, with a certificate for 127.0.0.1.
async fn introduced(
    ours: &Certificates,
    node: &ClusterNode,
    by: &NodeIdentity,
) -> (ProtocolClient, UnisonChannel) {
    let tls = ours.client_tls(&["127.0.0.1"], &["kumi://127.0.0.1"]);
    // Where it listens, which is not where it says if it shares the name of another.
    let at = node.local_addr().expect("a socket").to_string();
    let client = ProtocolClient::connect_with(&at, tls, ClientOptions::default()).await;
    let client = client.expect("its certificate is good");
    let channel = client.open_channel(GOSSIP_CHANNEL).await.expect("it opens");
    let hello = serde_json::json!({
        "authority": by.authority.as_str(), "uid": by.uid.raw(), "cluster": "kumi",
    });
    channel
        .send_event("hello", hello)
        .await
        .expect("it is sent");
    channel.recv().await.expect("the node introduces itself");
    (client, channel)
}

/// Why a node has begun another life.
async fn self_downed(watch: &mut ClusterWatch) -> (DownReason, bool) {
    event(watch, |event| match event {
        ClusterEvent::SelfDowned {
            reason, successor, ..
        } => Some((*reason, successor.is_some())),
        _ => None,
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_life_that_is_only_announced_by_gossip_stops_no_node() {
    let ours = Certificates::new();
    let first = start(&ours.issue(), |_| {}).await;
    let mut watch = first.subscribe();
    let victim = joining(&ours.issue(), first.authority()).await;
    members(&mut watch, 2).await;
    let mut downs = victim.subscribe();
    let before = victim.identity();

    // A member of the authority, under a name of its own, tells every node of a later life of the victim.
    // The first of the two is more than a day ahead of all clocks, and is refused.
    let later = [u64::MAX, before.uid.raw() + (1 << 40)].map(|raw| NodeIdentity {
        authority: before.authority.clone(),
        uid: NodeUid::from_raw(raw),
    });
    let mut open = Vec::new();
    for node in [&first, &victim] {
        let (client, channel) = introduced(&ours, node, &sender()).await;
        for life in &later {
            let forged = rumour(&sender(), life.clone(), NodeStatus::Up);
            let sent = channel.send_event_bytes("m", forged);
            sent.await.expect("it is sent");
        }
        open.push((client, channel));
    }
    let downed = self_downed(&mut downs).await;
    assert_eq!(downed, (DownReason::Claimed, true));
    assert!(victim.identity().uid > before.uid);
    until(|| victim.status() == Some(NodeStatus::Up)).await;
    until(|| first.members().hash == victim.members().hash).await;
    let known = || {
        let members = first.members().members;
        members
            .iter()
            .map(crate::core::Member::identity)
            .collect::<Vec<_>>()
    };
    until(|| known().contains(&victim.identity())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gossip_makes_no_node_leave_and_an_operator_does() {
    let ours = Certificates::new();
    let first = start(&ours.issue(), |_| {}).await;
    let mut watch = first.subscribe();
    let victim = joining(&ours.issue(), first.authority()).await;
    members(&mut watch, 2).await;
    let mut downs = victim.subscribe();
    let before = victim.identity();

    let (_client, channel) = introduced(&ours, &victim, &sender()).await;
    let forged = rumour(&sender(), before.clone(), NodeStatus::Leaving);
    let sent = channel.send_event_bytes("m", forged);
    sent.await.expect("it is sent");
    let downed = self_downed(&mut downs).await;
    assert_eq!(downed, (DownReason::Claimed, true));
    assert!(victim.identity().uid > before.uid);
    until(|| victim.status() == Some(NodeStatus::Up)).await;

    let at = victim.authority().as_str();
    let operator = AdminClient::connect(at, &ours.issue()).await;
    let operator = operator.expect("connected");
    operator.leave().await.expect("an operator");
    tokio::time::timeout(TIMEOUT, victim.ended())
        .await
        .expect("it leaves");
    members(&mut watch, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_the_name_of_another_node_is_refused() {
    let ours = Certificates::new();
    let first = start(&ours.issue(), |_| {}).await;
    let mut watch = first.subscribe();
    let second = joining(&ours.issue(), first.authority()).await;
    members(&mut watch, 2).await;
    assert_eq!(first.metrics().refused, 0, "honest nodes name themselves");

    let (_client, channel) = introduced(&ours, &first, &sender()).await;
    let heartbeat = Message::Heartbeat {
        sequence: 1,
        incarnation: 1,
    };
    let joiner = NodeIdentity {
        authority: Authority::new("127.0.0.1:2").expect("a name"),
        uid: NodeUid::from_raw(5),
    };
    let record = MemberRecord::new(joiner.clone(), NodeStatus::Joining, MemberMetadata::EMPTY);
    for forged in [
        envelope(&second.identity(), heartbeat),
        envelope(&joiner, Message::Join { record }),
    ] {
        let sent = channel.send_event_bytes("m", forged);
        sent.await.expect("it is sent");
    }
    let refused = event(&mut watch, |event| match event {
        ClusterEvent::PeerRefused {
            authority, reason, ..
        } => Some((authority.clone(), *reason)),
        _ => None,
    });
    let expected = (sender().authority, EnvelopeError::SenderMismatch);
    assert_eq!(refused.await, expected);
    until(|| first.metrics().refused == 2).await;
    let is_joiner = |member: &crate::core::Member| member.authority == joiner.authority;
    assert!(!first.members().members.iter().any(is_joiner));
}

#[test]
fn a_connection_that_has_ended_proves_no_identity() {
    let authority = sender().authority;
    let mutual = Transport::quic(Certificates::new().issue());
    assert!(!mutual.proves(None, &authority));
    assert!(Transport::quic(key()).proves(None, &authority));
    assert!(Transport::memory(&MemoryNetwork::new()).proves(None, &authority));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_life_that_is_met_takes_over() {
    let ours = Certificates::new();
    let node = start(&ours.issue(), |_| {}).await;
    let mut downs = node.subscribe();
    let own = node.identity();
    // It proves the same authority, as a process of the same name on another machine would.
    let tls = ours.client_tls(&["127.0.0.1"], &["kumi://127.0.0.1"]);
    let at = node.authority().as_str();
    let client = ProtocolClient::connect_with(at, tls, ClientOptions::default()).await;
    let client = client.expect("its certificate is good");
    let channel = client.open_channel(GOSSIP_CHANNEL).await.expect("it opens");
    let hello = serde_json::json!({
        "authority": own.authority.as_str(), "uid": own.uid.raw() + 1, "cluster": "kumi",
    });
    channel
        .send_event("hello", hello)
        .await
        .expect("it is sent");
    let reason = event(&mut downs, |event| match event {
        ClusterEvent::SelfDowned { reason, .. } => Some(*reason),
        _ => None,
    });
    assert_eq!(reason.await, DownReason::Superseded);
    tokio::time::timeout(TIMEOUT, node.ended())
        .await
        .expect("it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_nodes_with_one_name_the_one_that_the_name_leads_to_stays() {
    let ours = Certificates::new();
    let first = start(&ours.issue(), |_| {}).await;
    let mut first_downs = first.subscribe();
    let started = first.identity().uid.unix_ms();
    until(|| crate::driver::clock::unix_ms() > started).await;
    let name = first.authority().clone();
    let second = start(&ours.issue(), |options| options.advertise = Some(name)).await;
    let mut second_downs = second.subscribe();
    let later = second.identity();
    assert!(later.uid > first.identity().uid);
    let mut open = Vec::new();
    let mut tell = async |node: &ClusterNode, life: NodeIdentity| {
        let (client, channel) = introduced(&ours, node, &sender()).await;
        let heard = rumour(&sender(), life, NodeStatus::Up);
        let sent = channel.send_event_bytes("m", heard);
        sent.await.expect("it is sent");
        open.push((client, channel));
    };

    // At its own address it finds itself, so it goes on above the later start.
    tell(&first, later.clone()).await;
    let downed = self_downed(&mut first_downs).await;
    assert_eq!(downed, (DownReason::Claimed, true));
    assert!(first.identity().uid > later.uid);
    // There the later start finds the first one.
    tell(&second, first.identity()).await;
    let downed = self_downed(&mut second_downs).await;
    assert_eq!(downed, (DownReason::Superseded, false));
    tokio::time::timeout(TIMEOUT, second.ended())
        .await
        .expect("it stops");
    until(|| first.status() == Some(NodeStatus::Up)).await;
}

#[tokio::test]
async fn a_certificate_for_one_port_is_for_that_port() {
    let ours = Certificates::new();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let bind = socket.local_addr().expect("bound");
    let own = ours.issue_with(&["127.0.0.1"], &[&format!("kumi://{bind}")]);
    let first = start(&ours.issue(), |_| {}).await;
    let mut watch = first.subscribe();
    drop(socket);
    let _second = start(&own, |options| {
        options.bind = bind;
        options.seeds = Vec::from([first.authority().clone()]);
    })
    .await;
    members(&mut watch, 2).await;
}

#[tokio::test]
async fn a_member_without_the_role_of_an_operator_gives_no_orders() {
    let ours = Certificates::new();
    let node = start(&ours.issue(), |_| {}).await;
    let at = node.authority().as_str();
    let member = ours.issue_for(&["127.0.0.1"]);
    let client = AdminClient::connect(at, &member).await.expect("connected");
    let refused = client.leave().await.expect_err("it is no operator");
    assert!(refused.to_string().contains("role"), "{refused}");
    assert!(client.members().await.is_err());
    let operator = ours.issue_with(&[], &["kumi-role:operator"]);
    let client = AdminClient::connect(at, &operator)
        .await
        .expect("connected");
    assert_eq!(client.members().await.expect("allowed").members.len(), 1);
}

#[tokio::test]
async fn certificates_are_replaced_while_a_node_runs() {
    let (old, new) = (Certificates::new(), Certificates::new());
    let node = start(&old.issue(), |_| {}).await;
    let at = node.authority().as_str();
    let kept = AdminClient::connect(at, &old.issue())
        .await
        .expect("connected");
    node.set_security(new.issue()).await.expect("it listens");
    let client = AdminClient::connect(at, &new.issue())
        .await
        .expect("connected");
    client.members().await.expect("an operator");
    let refused = AdminClient::connect(at, &old.issue()).await;
    assert!(matches!(refused, Err(AdminError::Unreachable { .. })));
    // What was open stays.
    kept.members().await.expect("it goes on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_certificates_for_the_common_name_they_do_so_too() {
    let ours = Certificates::new();
    let names = ["127.0.0.1", "seeds.test"];
    let securities = [ours.issue_for(&names), ours.issue_for(&names)];
    let nodes = behind_one_name(&securities, true).await;
    until(|| nodes.iter().all(|node| node.members().members.len() == 2)).await;
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused_whatever_the_address() {
    let ours = Certificates::new();
    let securities = [
        ours.issue_for(&["127.0.0.1"]),
        ours.issue_for(&["127.0.0.1"]),
    ];
    let nodes = behind_one_name(&securities, true).await;
    for node in nodes {
        until(|| !node.unreachable().is_empty()).await;
        let (seed, reason) = node.unreachable().remove(0);
        assert_eq!(seed.as_str(), "seeds.test:7400");
        assert!(reason.contains("seeds.test"), "{reason}");
    }
}

/// An authority of the test's own, in PEM files.
pub(super) struct Certificates {
    directory: tempfile::TempDir,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Certificates {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let key = rcgen::KeyPair::generate().expect("randomness");
        let mut params = rcgen::CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let authority = params.self_signed(&key).expect("a certificate");
        let written = std::fs::write(directory.path().join("ca.pem"), authority.pem());
        written.expect("it is our directory");
        Self {
            issuer: rcgen::Issuer::new(params, key),
            directory,
        }
    }

    /// For a node on loopback, with any port, that is an operator too.
    pub(super) fn issue(&self) -> Security {
        self.issue_with(&["127.0.0.1"], &["kumi://127.0.0.1", "kumi-role:operator"])
    }

    /// For a node of these names, with any port.
    fn issue_for(&self, names: &[&str]) -> Security {
        let uris: Vec<String> = names.iter().map(|name| format!("kumi://{name}")).collect();
        let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
        self.issue_with(names, &uris)
    }

    fn issue_with(&self, names: &[&str], uris: &[&str]) -> Security {
        let file = self.write(names, uris);
        let security = Security::mutual(file("cert.pem"), file("key.pem"), file("ca.pem"));
        security.expect("fitting files")
    }

    /// What a client shows and trusts that is no node.
    pub(super) fn client_tls(&self, names: &[&str], uris: &[&str]) -> ClientTls {
        let file = self.write(names, uris);
        let own = Credentials::from_pem_files(file("cert.pem"), file("key.pem"));
        let trusting = ClientTls::ca_file(file("ca.pem")).expect("a certificate");
        let tls = trusting.with_credentials(own.expect("fitting files"));
        tls.expect("fitting files")
    }

    /// Writes a new certificate over the one before, and says where files are.
    fn write(&self, names: &[&str], uris: &[&str]) -> impl Fn(&str) -> PathBuf {
        let key = rcgen::KeyPair::generate().expect("randomness");
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let mut params = rcgen::CertificateParams::new(names).expect("a name");
        for uri in uris {
            let uri = rcgen::SanType::URI((*uri).try_into().expect("ASCII"));
            params.subject_alt_names.push(uri);
        }
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let directory = self.directory.path().to_path_buf();
        let file = move |name: &str| directory.join(name);
        std::fs::write(file("cert.pem"), signed.pem()).expect("it is our directory");
        std::fs::write(file("key.pem"), key.serialize_pem()).expect("it is our directory");
        file
    }
}

#[test]
fn what_a_node_is_made_of_shows_no_secret() {
    let secret = b"a secret that no log may show";
    let key = ClusterKey::from_secret(secret).expect("long enough");
    let shared = Security::key(&key).expect("a certificate");
    let ours = Certificates::new();
    let mutual = ours.issue();
    let pem = std::fs::read_to_string(ours.directory.path().join("key.pem")).expect("a key");
    let (der, _) = rcgen::KeyPair::from_pem(&pem)
        .map(|key| (key.serialize_der(), key))
        .expect("it was written here");
    let shown = [
        format!("{key:?}"),
        format!("{shared:?}"),
        format!("{mutual:?}"),
        format!("{:?}", Transport::quic(shared.clone())),
        format!("{:#?}", Transport::quic(mutual.clone())),
        format!("{:?}", NodeOptions::new(MembershipRuntimeConfig::local())),
    ];
    // As text, and as the list of numbers that a derived `Debug` writes.
    let numbers = |bytes: &[u8]| {
        let numbers: Vec<String> = bytes.iter().map(ToString::to_string).collect();
        numbers.join(", ")
    };
    let secrets = [
        String::from_utf8_lossy(secret).into_owned(),
        numbers(secret),
        pem.lines().nth(1).expect("base64").into(),
        numbers(&der[der.len() - 32..]),
    ];
    for text in &shown {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for secret in &secrets {
            assert!(!flat.contains(secret.as_str()), "{text}");
        }
    }
}
