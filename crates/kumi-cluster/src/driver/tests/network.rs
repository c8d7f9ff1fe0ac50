//! Nodes over QUIC on loopback: which peers may join, which are refused, and what hostile peers can do. Real time, so every wait is
//! for something that has to come, with a minute to spare.

use crate::core::{
    Authority, ClusterEvent, MAX_DATAGRAM_BYTES, MembershipRuntimeConfig, NodeStatus,
};
use crate::driver::link::{GOSSIP_CHANNEL, PACKET_CHANNEL};
use crate::driver::resolve::Resolver;
use crate::driver::{
    ADMIN_CHANNEL, AdminClient, AdminError, ClusterNode, ClusterWatch, DriverError, NodeOptions,
    Notice, Security, Transport,
};
use bytes::Bytes;
use kumi_unison::{
    ChannelOptions, ClientOptions, ClientTls, ClusterKey, Delivery, NetworkError, ProtocolClient,
    UnisonChannel,
};
use std::net::{SocketAddr, UdpSocket};
use std::string::{String, ToString};
use std::sync::Arc;
use std::time::Duration;
use std::vec::Vec;

pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

const SECRET: &[u8] = b"a secret of enough bytes";

pub(super) fn key() -> Security {
    keyed(SECRET)
}

fn keyed(secret: &[u8]) -> Security {
    let key = ClusterKey::from_secret(secret).expect("long enough");
    Security::key(&key).expect("a certificate")
}

pub(super) async fn start(
    security: &Security,
    change: impl FnOnce(&mut NodeOptions),
) -> ClusterNode {
    let mut options = NodeOptions::new(MembershipRuntimeConfig::local());
    change(&mut options);
    let started = ClusterNode::start(options, Transport::quic(security.clone())).await;
    started.expect("a free port on loopback")
}

pub(super) async fn joining(security: &Security, seed: &Authority) -> ClusterNode {
    start(security, |options| {
        options.seeds = Vec::from([seed.clone()])
    })
    .await
}

/// Waits for an event for which this holds.
pub(super) async fn event<T>(
    watch: &mut ClusterWatch,
    wanted: impl Fn(&ClusterEvent) -> Option<T>,
) -> T {
    let waiting = async {
        loop {
            let Some(notice) = watch.next().await else {
                panic!("the node has stopped");
            };
            if let Notice::Event(event) = notice
                && let Some(found) = wanted(&event)
            {
                return found;
            }
        }
    };
    let found = tokio::time::timeout(TIMEOUT, waiting).await;
    found.expect("it comes within a minute")
}

/// Waits for a topology of so many members, all Up.
pub(super) async fn members(watch: &mut ClusterWatch, count: usize) -> u64 {
    event(watch, |event| match event {
        ClusterEvent::TopologyUpdated {
            members, topology, ..
        } => {
            let up = |member: &crate::core::Member| member.status == NodeStatus::Up;
            (members.len() == count && members.iter().all(up)).then_some(topology.hash)
        }
        _ => None,
    })
    .await
}

/// Waits for something that no event tells of.
pub(super) async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let came = tokio::time::timeout(TIMEOUT, waiting).await;
    came.expect("it comes within a minute");
}

/// Why the node could not get to its seed.
pub(super) async fn trouble(node: &ClusterNode) -> String {
    until(|| !node.unreachable().is_empty()).await;
    node.unreachable().remove(0).1
}

/// A connection of somebody who has the key and speaks Unison, but is no node.
pub(super) async fn stranger(node: &ClusterNode) -> ProtocolClient {
    stranger_with(node, ClientOptions::default()).await
}

async fn stranger_with(node: &ClusterNode, options: ClientOptions) -> ProtocolClient {
    let key = ClusterKey::from_secret(SECRET).expect("long enough");
    let tls = ClientTls::cluster(&key).expect("a certificate");
    let address = node.authority().as_str();
    let client = ProtocolClient::connect_with(address, tls, options).await;
    client.expect("the key fits")
}

async fn ends(channel: &UnisonChannel) {
    let ended = async { while channel.recv().await.is_ok() {} };
    let ended = tokio::time::timeout(TIMEOUT, ended).await;
    ended.expect("the node closes it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seeds_are_addresses_or_names_and_news_travel_as_datagrams() {
    let security = key();
    let first = start(&security, |_| {}).await;
    let mut watch = first.subscribe();
    let by_address = joining(&security, first.authority()).await;
    let port = first.local_addr().expect("a socket").port();
    let name = Authority::new(&std::format!("localhost:{port}")).expect("a name");
    let by_name = joining(&security, &name).await;
    let hash = members(&mut watch, 3).await;
    for node in [&by_address, &by_name] {
        until(|| node.members().hash == hash).await;
        assert_eq!(node.status(), Some(NodeStatus::Up));
    }
    let sent = || by_name.metrics();
    until(|| sent().datagrams_sent > 20).await;
    assert!(sent().reliable_sent > 0, "{:?}", sent());
    assert!(sent().fallbacks < sent().datagrams_sent, "{:?}", sent());
    assert_eq!(sent().refused, 0);

    by_name.leave().await.expect("it is a member");
    members(&mut watch, 2).await;
    by_address.shutdown().await;
    members(&mut watch, 1).await;
}

#[tokio::test]
async fn the_largest_envelope_for_a_datagram_fits_one() {
    let first = start(&key(), |_| {}).await;
    // As a node dials: packets of 1,200 bytes, and no probes for larger ones.
    let client = stranger_with(&first, ClientOptions::new().mtu_discovery(false)).await;
    let gossip = client.open_channel(GOSSIP_CHANNEL).await.expect("it opens");
    let hello = serde_json::json!({"authority": "10.9.9.9:1", "uid": 5, "cluster": "kumi"});
    gossip.send_event("hello", hello).await.expect("it is sent");
    gossip.recv().await.expect("the node's own");
    let packets = ChannelOptions::new().delivery(Delivery::Unreliable);
    let packets = client.open_channel_with(PACKET_CHANNEL, packets).await;
    let packets = packets.expect("it opens");
    // Random bytes, which no compression makes shorter. The node counts them as refused.
    let mut random = fastrand::Rng::with_seed(7);
    let mut bytes = |len: usize| -> Bytes { (0..len).map(|_| random.u8(..)).collect() };
    let (largest, larger) = (bytes(MAX_DATAGRAM_BYTES), bytes(1200));
    let too_large = packets.send_event_bytes("m", larger).await;
    assert!(
        matches!(too_large, Err(NetworkError::FrameTooLarge { .. })),
        "{too_large:?}"
    );
    let arriving = async {
        while first.metrics().refused == 0 {
            let sent = packets.send_event_bytes("m", largest.clone()).await;
            sent.expect("it fits");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let arrived = tokio::time::timeout(TIMEOUT, arriving).await;
    arrived.expect("it comes within a minute");
}

#[tokio::test]
async fn a_node_with_another_key_is_refused_with_the_reason() {
    let first = start(&key(), |_| {}).await;
    let other = keyed(b"another secret of enough bytes");
    let outsider = joining(&other, first.authority()).await;
    let reason = trouble(&outsider).await;
    assert!(!reason.contains("secret"), "{reason}");
    assert_eq!(outsider.status(), Some(NodeStatus::Joining));
    assert_eq!(first.members().members.len(), 1);
    assert_eq!(first.metrics().accepted, 0);
    let asked = AdminClient::connect(first.authority().as_str(), &other).await;
    assert!(
        matches!(asked, Err(AdminError::Unreachable { .. })),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_node_of_another_cluster_is_refused_and_both_sides_know() {
    let security = key();
    let first = start(&security, |options| {
        options.config.cluster_name = "one".into()
    })
    .await;
    let mut watch = first.subscribe();
    let seed = first.authority().clone();
    let second = start(&security, |options| {
        options.config.cluster_name = "two".into();
        options.seeds = Vec::from([seed]);
    });
    let second = second.await;
    let refused = event(&mut watch, |event| match event {
        ClusterEvent::PeerRefused { authority, .. } => Some(authority.clone()),
        _ => None,
    });
    assert_eq!(refused.await, *second.authority());
    assert_eq!(trouble(&second).await, "it belongs to the cluster 'one'");
    assert_eq!(first.members().members.len(), 1);
}

#[tokio::test]
async fn garbage_on_the_port_changes_nothing() {
    let security = key();
    let first = start(&security, |_| {}).await;
    let mut watch = first.subscribe();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..2_000_usize {
        let mut packet: Vec<u8> = (0..random.usize(1..1400)).map(|_| random.u8(..)).collect();
        if round % 3 == 0 && packet.len() > 6 {
            // Looks like the beginning of a QUIC handshake.
            packet[..6].copy_from_slice(&[0xc3, 0, 0, 0, 1, 8]);
            packet.resize(1200, 0);
        }
        let sent = socket.send_to(&packet, first.authority().as_str());
        sent.expect("loopback takes it");
    }
    let second = joining(&security, first.authority()).await;
    members(&mut watch, 2).await;
    assert_eq!(second.members().members.len(), 2);
}

#[tokio::test]
async fn a_peer_that_speaks_nonsense_is_let_go_or_ignored() {
    let security = key();
    let first = start(&security, |_| {}).await;
    let mut watch = first.subscribe();
    let client = stranger(&first).await;

    let packets = ChannelOptions::new().delivery(Delivery::Unreliable);
    let early = client.open_channel_with(PACKET_CHANNEL, packets).await;
    if let Ok(early) = early {
        // Datagrams of somebody who has not said who it is.
        ends(&early).await;
    }
    let rude = client.open_channel(GOSSIP_CHANNEL).await.expect("it opens");
    let hello = rude.send_event_bytes(
        "hello",
        Bytes::from_static(b"{\"authority\":\"\\u001b[2J\"}"),
    );
    hello.await.expect("it is sent");
    ends(&rude).await;

    let polite = client.open_channel(GOSSIP_CHANNEL).await.expect("it opens");
    let hello = serde_json::json!({"authority": "10.9.9.9:1", "uid": 5, "more": [1, 2]});
    polite.send_event("hello", hello).await.expect("it is sent");
    polite.recv().await.expect("the node's own");
    for _ in 0..10 {
        let garbage = polite.send_event_bytes("m", Bytes::from_static(b"not an envelope"));
        garbage.await.expect("it is sent");
    }
    until(|| first.metrics().refused == 10).await;
    let second = joining(&security, first.authority()).await;
    members(&mut watch, 2).await;
    drop(second);
}

#[tokio::test]
async fn an_operator_asks_watches_and_is_answered_with_reasons() {
    let security = key();
    let first = start(&security, |_| {}).await;
    let second = joining(&security, first.authority()).await;
    let node = first.authority().as_str();
    let client = AdminClient::connect(node, &security).await.expect("a node");
    let view = client.members().await.expect("a view");
    assert_eq!((view.cluster.as_str(), view.node.as_str()), ("kumi", node));
    let unknown = client.release("10.9.9.9:1").await;
    assert!(
        matches!(unknown, Err(AdminError::UnknownMember(_))),
        "{unknown:?}"
    );
    let wrong = client
        .quarantine("two words", "", Duration::from_secs(1))
        .await;
    assert!(matches!(wrong, Err(AdminError::Refused(_))), "{wrong:?}");
    let wrong = client.quarantine("portless", "", Duration::from_secs(1));
    let wrong = wrong.await;
    assert!(matches!(wrong, Err(AdminError::Refused(_))), "{wrong:?}");

    let raw = stranger(&first).await;
    let raw = raw.open_channel(ADMIN_CHANNEL).await.expect("it opens");
    for (method, payload) in [("explode", "{}"), ("quarantine", "{"), ("release", "[]")] {
        let asked = raw
            .request_bytes(method, Bytes::from_static(payload.as_bytes()))
            .await;
        assert!(
            matches!(asked, Err(NetworkError::Remote(_))),
            "{method}: {asked:?}"
        );
    }

    let mut watch = client.watch().await.expect("a seat");
    assert!(!watch.first().hash.is_empty());
    let second = second.authority().to_string();
    let other = AdminClient::connect(node, &security).await.expect("a node");
    let order = other.quarantine(&second, "x", Duration::from_secs(60));
    order.await.expect("it is done");
    let told = tokio::time::timeout(TIMEOUT, async {
        loop {
            let event = watch.next().await.expect("the node runs");
            if let Some(crate::driver::AdminEvent::Quarantined { authority, .. }) = event {
                return authority;
            }
        }
    });
    assert_eq!(told.await.expect("it comes"), second);
    other.leave().await.expect("it leaves");
    tokio::time::timeout(TIMEOUT, first.ended())
        .await
        .expect("it ends");
}

#[tokio::test]
async fn an_observer_that_leaves_simply_ends() {
    let security = key();
    let first = start(&security, |_| {}).await;
    let seed = first.authority().clone();
    let observer = start(&security, |options| {
        options.observer = true;
        options.seeds = Vec::from([seed]);
    });
    let observer = observer.await;
    let mut watch = observer.subscribe();
    members(&mut watch, 1).await;
    observer.leave().await.expect("no member has to know");
    while watch.next().await.is_some() {}
}

#[tokio::test]
async fn a_node_without_the_admin_channel_cannot_be_asked() {
    let security = key();
    let first = start(&security, |options| options.admin = false).await;
    let asked = AdminClient::connect(first.authority().as_str(), &security).await;
    assert!(
        matches!(asked, Err(AdminError::Unreachable { .. })),
        "{asked:?}"
    );
}

/// Nodes that are all given one name. It leads to all of them, at once or after they have started.
pub(super) async fn behind_one_name(securities: &[Security], at_once: bool) -> Vec<ClusterNode> {
    // Ports are taken by sockets that live until the nodes bind them.
    let sockets: Vec<UdpSocket> = securities
        .iter()
        .map(|_| UdpSocket::bind("127.0.0.1:0").expect("a free port"))
        .collect();
    let addresses = sockets.iter().map(|socket| socket.local_addr());
    let addresses: Vec<SocketAddr> = addresses.map(|address| address.expect("bound")).collect();
    drop(sockets);
    let seeds = Authority::new("seeds.test:7400").expect("a name");
    let resolver = Resolver::default();
    let leads_to = if at_once { &addresses[..] } else { &[] };
    resolver.teach(&seeds, leads_to);
    let mut starting = tokio::task::JoinSet::new();
    for (bind, security) in addresses.iter().copied().zip(securities) {
        let mut options = NodeOptions::new(MembershipRuntimeConfig::local());
        options.bind = bind;
        options.seeds = Vec::from([seeds.clone()]);
        let transport = Transport::resolving(security.clone(), resolver.clone());
        starting.spawn(ClusterNode::start(options, transport));
    }
    let mut nodes = Vec::new();
    while let Some(started) = starting.join_next().await {
        nodes.push(started.expect("no panic").expect("the port is free"));
    }
    resolver.teach(&seeds, &addresses);
    nodes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_start_at_once_with_one_name_for_all_become_one_cluster() {
    let nodes = behind_one_name(&[key(), key(), key()], true).await;
    until(|| nodes.iter().all(|node| node.members().members.len() == 3)).await;
    until(|| {
        nodes
            .iter()
            .all(|node| node.status() == Some(NodeStatus::Up))
    })
    .await;
    let hash = || nodes.iter().map(|node| node.members().hash);
    until(|| hash().all(|one| Some(one) == hash().next())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_leads_to_them_only_after_their_start_is_looked_up_again() {
    let nodes = behind_one_name(&[key(), key()], false).await;
    until(|| nodes.iter().all(|node| node.members().members.len() == 2)).await;
    until(|| {
        nodes
            .iter()
            .all(|node| node.status() == Some(NodeStatus::Up))
    })
    .await;
}

/// An island whose name led only to itself is found by those whose name leads to it later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn islands_behind_one_name_come_together() {
    let seeds = Authority::new("seeds.test:7400").expect("a name");
    let resolver = Resolver::default();
    let mut nodes = Vec::new();
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for place in 0..3 {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        let bind = socket.local_addr().expect("bound");
        drop(socket);
        addresses.push(bind);
        // The third one finds only itself.
        let led_to = if place < 2 {
            &addresses[..]
        } else {
            &addresses[2..]
        };
        resolver.teach(&seeds, led_to);
        let mut options = NodeOptions::new(MembershipRuntimeConfig::local());
        options.bind = bind;
        options.seeds = Vec::from([seeds.clone()]);
        let transport = Transport::resolving(key(), resolver.clone());
        let node = ClusterNode::start(options, transport).await;
        nodes.push(node.expect("the port is free"));
        let island = &nodes[if place < 2 { 0 } else { 2 }..];
        until(|| {
            island
                .iter()
                .all(|node| node.members().members.len() == island.len())
        })
        .await;
        until(|| {
            island
                .iter()
                .all(|node| node.status() == Some(NodeStatus::Up))
        })
        .await;
    }
    resolver.teach(&seeds, &addresses);
    until(|| nodes.iter().all(|node| node.members().members.len() == 3)).await;
}

#[tokio::test]
async fn a_node_that_is_dropped_while_it_dials_gives_its_port_back() {
    // It takes packets and never answers.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let seed = silent.local_addr().expect("bound").to_string();
    let node = joining(&key(), &Authority::new(&seed).expect("a name")).await;
    until(|| node.metrics().dials > 0).await;
    silent.set_nonblocking(true).expect("a socket");
    until(|| silent.recv(&mut [0; 2048]).is_ok()).await;
    let port = node.local_addr().expect("a socket");
    assert!(UdpSocket::bind(port).is_err(), "the node has it");
    drop(node);
    until(|| UdpSocket::bind(port).is_ok()).await;
}

#[tokio::test]
async fn a_node_whose_engine_panics_ends_and_is_no_zombie() {
    let security = key();
    let first = start(&security, |_| {}).await;
    let mut options = NodeOptions::new(MembershipRuntimeConfig::local());
    options.seeds = Vec::from([first.authority().clone()]);
    let explode = Arc::new(tokio::sync::Notify::new());
    let fuse = explode.clone();
    let transport = Transport::quic(security.clone());
    let failing = ClusterNode::start_with(options, transport, |_, _| async move {
        fuse.notified().await;
        panic!("this test is about panics");
    });
    let failing = failing.await.expect("it starts");
    let address = failing.authority().to_string();
    let client = AdminClient::connect(&address, &security).await;
    let client = client.expect("it listens");
    let mut watch = failing.subscribe();
    assert!(!failing.has_failed());

    explode.notify_one();
    let ended = tokio::time::timeout(TIMEOUT, failing.ended()).await;
    ended.expect("it says so");
    assert!(failing.has_failed());
    while watch.next().await.is_some() {}
    let gone = tokio::time::timeout(TIMEOUT, client.gone()).await;
    gone.expect("the operator gets an error");
    until(|| UdpSocket::bind(&*address).is_ok()).await;
    let left = failing.leave().await;
    assert!(matches!(left, Err(DriverError::Failed)), "{left:?}");
}

#[tokio::test]
async fn a_watcher_gets_the_last_events_of_a_node_that_leaves() {
    let security = key();
    let node = start(&security, |_| {}).await;
    let name = node.authority().to_string();
    until(|| node.status() == Some(NodeStatus::Up)).await;
    let client = AdminClient::connect(&name, &security).await;
    let mut watch = client.expect("a node").watch().await.expect("a seat");
    let leaving = tokio::spawn(node.leave());
    let mut told = Vec::new();
    let hearing = async {
        while let Some(event) = watch.next().await.expect("the end is an event too") {
            if let crate::driver::AdminEvent::Status { to, .. } = event {
                told.push(to);
            }
        }
    };
    let heard = tokio::time::timeout(TIMEOUT, hearing).await;
    heard.expect("the node ends");
    assert_eq!(told.last().map(String::as_str), Some("removed"), "{told:?}");
    let left = leaving.await.expect("no panic");
    left.expect("it is a member");
}

#[tokio::test]
async fn a_quarantine_of_no_time_or_too_much_is_refused() {
    let security = key();
    let node = start(&security, |_| {}).await;
    let client = AdminClient::connect(node.authority().as_str(), &security).await;
    let client = client.expect("a node");
    for wrong in [Duration::ZERO, crate::core::MAX_QUARANTINE * 2] {
        let refused = client.quarantine("10.9.9.9:1", "", wrong).await;
        assert!(
            matches!(refused, Err(AdminError::Refused(_))),
            "{refused:?}"
        );
    }
    let longest = client.quarantine("10.9.9.9:1", "", crate::core::MAX_QUARANTINE);
    longest.await.expect("that long is allowed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_is_free_when_a_node_has_left_or_was_shut_down() {
    let security = key();
    for leaves in [true, false] {
        let first = start(&security, |_| {}).await;
        let seed = first.authority().clone();
        // One that is gone is still dialled, and answers nothing.
        let gone = joining(&security, &seed).await;
        let mut watch = first.subscribe();
        members(&mut watch, 2).await;
        let second = joining(&security, &seed).await;
        members(&mut watch, 3).await;
        drop(gone);
        let address = second.local_addr().expect("a socket");
        match leaves {
            true => second.leave().await.expect("it is a member"),
            false => second.shutdown().await,
        }
        UdpSocket::bind(address).expect("the port is free");
        first.shutdown().await;
    }
}
