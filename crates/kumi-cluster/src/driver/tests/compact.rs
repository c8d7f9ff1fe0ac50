//! What travels on the datagram channel: whole envelopes to a peer whose hello does not offer compact ones, compact ones to
//! a peer whose hello does.

use super::network::{TIMEOUT, key, start, stranger};
use crate::core::{Authority, Envelope, MAX_VERSION, MIN_VERSION, Message, NodeIdentity, NodeUid};
use crate::driver::compact::Head;
use crate::driver::link::{GOSSIP_CHANNEL, PACKET_CHANNEL};
use bytes::Bytes;
use kumi_unison::{ChannelOptions, Delivery};
use serde_json::{Value, json};

const CLUSTER: &str = "kumi";
const NONCE: u64 = 77;

/// The event in which a node answers a probe, and its payload, for a peer that begins with this hello.
async fn probed(hello: Value, probe: (&str, Bytes)) -> (std::string::String, Bytes, NodeIdentity) {
    let node = start(&key(), |_| {}).await;
    let client = stranger(&node).await;
    let gossip = client.open_channel(GOSSIP_CHANNEL).await.expect("it opens");
    gossip.send_event("hello", hello).await.expect("it is sent");
    gossip.recv().await.expect("the node's own hello");
    let options = ChannelOptions::new().delivery(Delivery::Unreliable);
    let packets = client.open_channel_with(PACKET_CHANNEL, options).await;
    let packets = packets.expect("the node knows the peer");
    let sent = packets.send_event_bytes(probe.0, probe.1);
    sent.await.expect("it fits a datagram");
    let reply = tokio::time::timeout(TIMEOUT, packets.recv()).await;
    let reply = reply.expect("in time").expect("the channel is open");
    (reply.method, reply.payload, node.identity())
}

fn sender() -> NodeIdentity {
    NodeIdentity {
        authority: Authority::new("10.9.9.9:1").expect("a name"),
        uid: NodeUid::from_raw(5),
    }
}

fn probe() -> Bytes {
    let envelope = Envelope {
        cluster: CLUSTER.into(),
        versions: (MIN_VERSION, MAX_VERSION),
        sender: sender(),
        message: Message::Probe { nonce: NONCE },
    };
    envelope.encode().into()
}

fn is_probe_ack(envelope: &[u8], from: &NodeIdentity) {
    let envelope = Envelope::decode(envelope).expect("an envelope");
    assert_eq!(envelope.sender, *from);
    assert_eq!(envelope.cluster, CLUSTER);
    assert!(
        matches!(envelope.message, Message::ProbeAck { nonce: NONCE, .. }),
        "{envelope:?}"
    );
}

#[tokio::test]
async fn a_peer_that_offers_compact_envelopes_gets_them() {
    let versions = [MIN_VERSION, MAX_VERSION, MAX_VERSION];
    let hello = json!({
        "authority": sender().authority.as_str(), "uid": 5, "cluster": CLUSTER, "envelopes": versions,
    });
    let ours = Head::new(versions, CLUSTER, &sender());
    let compact = ours.strip(&probe()).expect("its own head");
    let (method, payload, node) = probed(hello, ("c", compact)).await;
    assert_eq!(method, "c");
    assert!(payload.len() < 12, "{payload:?}");
    let theirs = Head::new(versions, CLUSTER, &node);
    is_probe_ack(&theirs.restore(&payload).expect("not empty"), &node);
}

#[tokio::test]
async fn a_peer_without_compact_envelopes_gets_whole_ones() {
    let hello = json!({"authority": sender().authority.as_str(), "uid": 5, "cluster": CLUSTER});
    let (method, payload, node) = probed(hello, ("m", probe())).await;
    assert_eq!(method, "m");
    is_probe_ack(&payload, &node);
}
