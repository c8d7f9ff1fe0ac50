//! Channels of a program on the port of its node, over QUIC: who opens them, and how members are reached by name.

use super::certificates::Certificates;
use super::network::{TIMEOUT, event, key, members, start, stranger, until};
use crate::core::{ClusterEvent, MemberMetadata, MembershipRuntimeConfig, NodeName};
use crate::driver::peers::PEER_CHANNEL;
use crate::driver::{
    ClusterNode, DriverError, MemoryNetwork, NodeChannels, NodeOptions, PeerError, Security,
    Transport,
};
use kumi_unison::{
    ChannelOptions, ChannelRegistry, ChannelSource, ClientOptions, ConnectionContext,
    ProtocolClient, UnisonChannel,
};
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

const CHANNEL: &str = "kumi.node";

fn name(text: &str) -> NodeName {
    NodeName::new(text).expect("a name")
}

/// Channels of a program that tells each caller who it is.
fn who_am_i() -> NodeChannels {
    let channels = NodeChannels::from(ChannelRegistry::new("program", "1.0.0", "test"));
    let peers = channels.clone();
    let answer = move |context: Arc<ConnectionContext>, channel: UnisonChannel| {
        let peer = peers.peer(&context);
        async move {
            let told = peer.map(|peer| (peer.identity.to_string(), peer.name_and_life.to_string()));
            channel.send_event_json("you", &told).await?;
            while channel.recv().await.is_ok() {}
            Ok(())
        }
    };
    channels.registry().register_channel(CHANNEL, answer);
    channels
}

type Told = Option<(String, String)>;

async fn asked(source: &impl ChannelSource) -> Told {
    let channel = source.open_channel(CHANNEL, ChannelOptions::new()).await;
    let channel = channel.expect("the program offers it");
    let event = tokio::time::timeout(TIMEOUT, channel.recv()).await;
    let event = event.expect("in time").expect("an event");
    serde_json::from_slice(&event.payload).expect("JSON")
}

async fn named(security: &Security, text: &str, seeds: &[&ClusterNode]) -> ClusterNode {
    let seeds: Vec<_> = seeds.iter().map(|node| node.authority().clone()).collect();
    start(security, |options| {
        options.name = Some(name(text));
        options.seeds = seeds;
        options.channels = Some(who_am_i());
    })
    .await
}

#[tokio::test]
async fn a_member_opens_a_channel_of_another_program_by_name_and_is_known_there() {
    let security = key();
    let first = named(&security, "first", &[]).await;
    let mut watch = first.subscribe();
    let second = named(&security, "second", &[&first]).await;
    second.until_up().await.expect("nothing is in the way");
    members(&mut watch, 2).await;

    for (from, to) in [(&first, &second), (&second, &first)] {
        let connection = from.connect(to.name()).await.expect("a member");
        assert_eq!(connection.peer().identity, to.identity());
        assert_eq!(connection.peer().name_and_life, to.name_and_life());
        let own = (
            from.identity().to_string(),
            from.name_and_life().to_string(),
        );
        assert_eq!(asked(&connection).await, Some(own.clone()));
        assert_eq!(asked(&connection).await, Some(own), "a second channel");
        connection.close().await;
    }
    // A client that has the key and is no node has no identity.
    assert_eq!(asked(&stranger(&first).await).await, None);

    let unknown = second.connect(&name("third")).await;
    assert!(
        matches!(unknown, Err(PeerError::NotAMember(_))),
        "{unknown:?}"
    );
    let own = second.connect(&name("second")).await;
    assert!(matches!(own, Err(PeerError::Itself(_))), "{own:?}");
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test]
async fn an_identity_lasts_as_long_as_its_connection() {
    let security = key();
    let first = named(&security, "first", &[]).await;
    let mut watch = first.subscribe();
    let channels = who_am_i();
    let second = start(&security, |options| {
        options.name = Some(name("second"));
        options.seeds = Vec::from([first.authority().clone()]);
        options.channels = Some(channels.clone());
    })
    .await;
    members(&mut watch, 2).await;
    let connection = first.connect(second.name()).await.expect("a member");
    assert!(asked(&connection).await.is_some());
    assert_eq!(channels.known(), 1);
    drop(connection);
    until(|| channels.known() == 0).await;
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test]
async fn a_member_that_has_crashed_is_a_clear_error() {
    let security = key();
    let first = named(&security, "first", &[]).await;
    let mut watch = first.subscribe();
    let second = named(&security, "second", &[&first]).await;
    members(&mut watch, 2).await;
    let to = second.name().clone();
    second.shutdown().await;
    let refused = first.connect(&to).await.expect_err("it is gone");
    let shown = refused.to_string();
    let is_clear = shown.contains("second") || matches!(refused, PeerError::NotAMember(_));
    assert!(is_clear, "{shown}");
    first.shutdown().await;
}

#[tokio::test]
async fn with_certificates_the_identity_is_the_one_that_the_certificate_names() {
    let ours = Certificates::new();
    let first = named(&ours.issue(), "first", &[]).await;
    let mut watch = first.subscribe();
    let second = named(&ours.issue(), "second", &[&first]).await;
    members(&mut watch, 2).await;
    let connection = second.connect(first.name()).await.expect("a member");
    let own = (
        second.identity().to_string(),
        second.name_and_life().to_string(),
    );
    assert_eq!(asked(&connection).await, Some(own));

    // A holder of a certificate for another port introduces itself as the second node.
    let tls = ours.client_tls(&["127.0.0.1"], &["kumi://127.0.0.1:1"]);
    let at = first.local_addr().expect("a socket").to_string();
    let client = ProtocolClient::connect_with(&at, tls, ClientOptions::default()).await;
    let client = client.expect("its certificate is good");
    let channel = client.open_channel(PEER_CHANNEL).await.expect("it opens");
    let hello = serde_json::json!({
        "authority": second.authority().as_str(), "uid": second.identity().uid.raw(),
        "name": "second", "cluster": "kumi",
    });
    let sent = channel.send_event("hello", hello).await;
    sent.expect("it is sent");
    let answer = tokio::time::timeout(TIMEOUT, channel.recv()).await;
    assert!(answer.expect("in time").is_err());
    assert_eq!(first.metrics().impostors, 1);
    assert_eq!(asked(&client).await, None);
    first.shutdown().await;
    second.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn one_registry_serves_one_running_node() {
    let network = MemoryNetwork::new();
    let options = NodeOptions::new(MembershipRuntimeConfig::local()).channels(who_am_i());
    let first = ClusterNode::start(options.clone(), Transport::memory(&network)).await;
    let first = first.expect("a node");
    let second = ClusterNode::start(options.clone(), Transport::memory(&network)).await;
    assert!(
        matches!(second, Err(DriverError::ChannelTaken(_))),
        "{second:?}"
    );
    first.shutdown().await;
    let again = ClusterNode::start(options, Transport::memory(&network)).await;
    again.expect("the first one is gone").shutdown().await;
}

#[tokio::test]
async fn several_parts_of_a_program_change_their_own_metadata_and_others_see_it() {
    let security = key();
    let first = named(&security, "first", &[]).await;
    let mut watch = first.subscribe();
    let second = named(&security, "second", &[&first]).await;
    members(&mut watch, 2).await;
    let set = |key: &'static str, value: &'static str| {
        move |metadata: &MemberMetadata| metadata.with_service(key, Some(value))
    };
    second
        .update_metadata(set("store", "10.0.0.1:6379"))
        .expect("a member");
    second
        .update_metadata(set("http", "10.0.0.1:7480"))
        .expect("a member");
    let roles = second.update_metadata(|metadata| metadata.with_roles(&["store", "http"]));
    roles.expect("a member");
    let expected = [("store", "10.0.0.1:6379"), ("http", "10.0.0.1:7480")];
    event(&mut watch, |event| match event {
        ClusterEvent::TopologyUpdated { members, .. } => {
            let member = members
                .iter()
                .find(|member| member.metadata.name().as_ref() == Some(second.name()))?;
            let is_whole = member.metadata.services() == expected
                && member.metadata.roles() == ["store", "http"]
                && member.metadata.service("http") == Some("10.0.0.1:7480");
            is_whole.then_some(())
        }
        _ => None,
    })
    .await;
    let large = "x".repeat(600);
    let refused = second.update_metadata(|metadata| metadata.with_service("large", Some(&large)));
    assert!(refused.is_err());
    first.shutdown().await;
    second.shutdown().await;
}
