//! What the two sides have to agree on before a channel is open, and what they are told when they do not.

use crate::support::echo;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use kumi_unison::driver::{MemoryRecv, MemorySend, TransportRecv, TransportSend, memory_stream};
use kumi_unison::wire::{Codec, ContentType, FrameReader, PacketType, encode_frame};
use kumi_unison::{
    ChannelOptions, ChannelRegistry, ChannelSource, ChannelSpec, ConnectionContext, Delivery,
    MemoryClient, NetworkError, ProtocolMessage, RemoteError, SchemaId, ServerIdentity,
    ServiceHandler, UnisonChannel, open_channels,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::Barrier;

fn registry(spec: ChannelSpec) -> ChannelRegistry {
    let registry = ChannelRegistry::new("test", "0.1.0", "default");
    registry.register_channel_with(spec, ServiceHandler::new(echo));
    registry
}

async fn open(spec: ChannelSpec, options: ChannelOptions) -> Result<(), NetworkError> {
    let client = MemoryClient::connect(&registry(spec));
    client.open_channel("c", options).await.map(|_| ())
}

#[tokio::test]
async fn both_sides_have_to_say_the_same_of_delivery() {
    for (here, there) in [
        (Delivery::Reliable, Delivery::Unreliable),
        (Delivery::Unreliable, Delivery::Reliable),
    ] {
        let spec = || ChannelSpec::new("c").delivery(there);
        let error = open(spec(), ChannelOptions::new().delivery(here)).await;
        let expected = NetworkError::DeliveryMismatch {
            ours: here.to_string(),
            theirs: there.to_string(),
        };
        assert_eq!(error, Err(expected));
        assert_eq!(
            open(spec(), ChannelOptions::new().delivery(there)).await,
            Ok(())
        );
    }
}

#[tokio::test]
async fn another_major_version_is_refused_whatever_the_hash() {
    let spec = ChannelSpec::new("c").schema(SchemaId::new([1; 32], "1.2.0"));
    let options = |version| ChannelOptions::new().schema(SchemaId::new([1; 32], version));
    assert_eq!(open(spec.clone(), options("1.3.0")).await, Ok(()));
    let error = open(spec, options("2.0.0")).await.unwrap_err();
    assert!(
        matches!(error, NetworkError::SchemaMismatch { .. }),
        "{error:?}"
    );
}

/// A client whose channels open only when three are being opened.
struct Together {
    client: MemoryClient,
    three: Barrier,
}

impl ChannelSource for Together {
    fn open_channel(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> BoxFuture<'_, Result<UnisonChannel, NetworkError>> {
        let opening = self.client.open_channel(name, options);
        Box::pin(async move {
            self.three.wait().await;
            opening.await
        })
    }

    fn identity(&self) -> ServerIdentity {
        self.client.identity()
    }
}

#[tokio::test(start_paused = true)]
async fn several_channels_open_in_one_round_trip_or_none_does() {
    let registry = registry(ChannelSpec::new("a"));
    for name in ["b", "c"] {
        registry.register_channel(name, ServiceHandler::new(echo));
    }
    let client = MemoryClient::connect(&registry);
    let together = Together {
        client: client.clone(),
        three: Barrier::new(3),
    };
    let open = async |names: [&str; 3]| {
        let channels = names.map(|name| (name, ChannelOptions::new()));
        let opening = open_channels(&together, channels);
        let opened = tokio::time::timeout(Duration::from_secs(60), opening).await;
        opened.expect("none waits for another")
    };
    let channels = open(["a", "b", "c"]).await.unwrap();
    for channel in &channels {
        assert_eq!(channel.request("m", json!(1)).await.unwrap(), json!(1));
    }
    drop(channels);
    let error = open(["a", "b", "missing"]).await.unwrap_err();
    assert!(
        matches!(error, NetworkError::ChannelNotFound { .. }),
        "{error:?}"
    );
    let closed = async {
        while !client.context().channels().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let closed = tokio::time::timeout(Duration::from_secs(60), closed).await;
    closed.expect("none stays open");
}

/// A peer that is not this runtime.
struct Foreign {
    send: MemorySend,
    recv: MemoryRecv,
    reader: FrameReader,
    sequence: u64,
}

impl Foreign {
    fn new((send, recv): (MemorySend, MemoryRecv)) -> Foreign {
        Foreign {
            send,
            recv,
            reader: FrameReader::new(),
            sequence: 0,
        }
    }

    fn client() -> Foreign {
        let (ours, (send, recv)) = memory_stream();
        let registry = registry(ChannelSpec::new("c"));
        let context = ConnectionContext::new();
        tokio::spawn(async move { registry.serve_stream(context, send, recv, 0).await });
        Foreign::new(ours)
    }

    async fn say(&mut self, packet_type: PacketType, message: &ProtocolMessage) {
        let mut frame = encode_frame(packet_type, message, &Codec::new()).unwrap();
        frame[4 + 16..4 + 24].copy_from_slice(&self.sequence.to_le_bytes());
        frame[4 + 12..4 + 16].fill(0);
        let crc = crc32fast::hash(&frame[4..]);
        frame[4 + 12..4 + 16].copy_from_slice(&crc.to_le_bytes());
        self.sequence += 1;
        self.send.write(&mut [Bytes::from(frame)]).await.unwrap();
    }

    async fn open(&mut self, content: &str) {
        let content = content.to_owned();
        let opening = ProtocolMessage::request(1, "__channel:c", ContentType::Json, content);
        self.say(PacketType::Handshake, &opening).await;
    }

    /// The next message; none at the stream's end.
    async fn hear(&mut self) -> Option<(PacketType, ProtocolMessage)> {
        loop {
            if let Some(packet) = self.reader.next().unwrap() {
                let (message, _) = ProtocolMessage::decode(&packet.header, &packet.body).unwrap();
                return Some((packet.header.packet_type, message));
            }
            let mut chunks = Vec::new();
            if !self.recv.read(&mut chunks).await.unwrap() {
                return None;
            }
            chunks.into_iter().for_each(|chunk| self.reader.push(chunk));
        }
    }

    /// Why the stream ended, which is the last thing on it.
    async fn close_reason(&mut self) -> RemoteError {
        let (packet_type, message) = self.hear().await.unwrap();
        assert_eq!(packet_type, PacketType::Control);
        assert_eq!(message.method, "__closed");
        assert!(self.hear().await.is_none());
        serde_json::from_slice(&message.payload).unwrap()
    }
}

#[tokio::test]
async fn an_opening_may_leave_out_anything() {
    for content in [
        "",
        "{}",
        r#"{"window":{}}"#,
        r#"{"window":{"events":1}}"#,
        r#"{"window":null,"schema":null,"part_of":null,"delivery":null}"#,
        r#"{"later":true}"#,
    ] {
        let mut client = Foreign::client();
        client.open(content).await;
        let (packet_type, message) = client.hear().await.unwrap();
        assert_eq!(packet_type, PacketType::Handshake, "{content}");
        let ack: Value = serde_json::from_slice(&message.payload).unwrap();
        assert_eq!(ack["typed"], json!(true), "{content}");
    }
}

#[tokio::test]
async fn who_breaks_a_rule_is_told_which() {
    for content in [
        "no JSON",
        r#"{"window":7}"#,
        r#"{"schema":{"hash":"ab","version":"1"}}"#,
    ] {
        let mut client = Foreign::client();
        client.open(content).await;
        assert_eq!(client.close_reason().await.code, "malformed", "{content}");
    }

    let mut client = Foreign::client();
    client.open("").await;
    client.hear().await.unwrap();
    client.sequence += 1;
    let request = ProtocolMessage::request(2, "m", ContentType::Json, "1");
    client.say(PacketType::Data, &request).await;
    let error = client.close_reason().await;
    assert_eq!(error.code, "malformed");
    assert_eq!(error.message, "packet 2 came where 1 was due");

    let mut client = Foreign::client();
    client.open("").await;
    client.hear().await.unwrap();
    let answer = ProtocolMessage::response(9, ContentType::Json, "1");
    client.say(PacketType::Handshake, &answer).await;
    assert_eq!(client.close_reason().await.code, "violation");
}

#[tokio::test]
async fn what_a_peer_says_at_the_end_is_why_calls_fail() {
    let (theirs, (send, recv)) = memory_stream();
    let context = ConnectionContext::new();
    let options = ChannelOptions::new().lifetime(kumi_unison::Lifetime::Persistent);
    let channel = UnisonChannel::open(send, recv, 0, "c", options, &context).unwrap();
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { channel.request("m", json!(1)).await }
    });
    let mut server = Foreign::new(theirs);
    assert_eq!(server.hear().await.unwrap().0, PacketType::Handshake);
    assert_eq!(server.hear().await.unwrap().0, PacketType::Data);
    let why = RemoteError::new("violation", "no peer may do that");
    let words = serde_json::to_vec(&why).unwrap();
    let closed = ProtocolMessage::event("__closed", ContentType::Json, words);
    server.say(PacketType::Control, &closed).await;
    let expected = NetworkError::ClosedByPeer(why);
    assert_eq!(call.await.unwrap(), Err(expected.clone()));
    assert_eq!(channel.closed().await, expected);
}
