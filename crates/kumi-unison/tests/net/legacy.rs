//! Clients from before there were frames and channels.

use std::sync::Arc;

use bytes::Bytes;
use kumi_unison::wire::{
    Codec, ContentType, FrameReader, MessageType, PacketType, encode_frame, encode_unframed,
};
use kumi_unison::{ConnectionContext, Payload, ProtocolMessage, RemoteError, ServerLimits};
use serde_json::json;

use crate::lab::{Lab, within};
use crate::raw::RawClient;

fn lab() -> Lab {
    Lab::with(ServerLimits::default(), |server| {
        server.register_legacy(
            |_: Arc<ConnectionContext>, message: ProtocolMessage| async move {
                match message.method.as_str() {
                    "old.echo" => Ok(Payload {
                        content_type: message.content_type,
                        bytes: message.payload,
                    }),
                    other => Err(RemoteError::method_not_found(other)),
                }
            },
        );
    })
}

fn request(method: &str) -> ProtocolMessage {
    ProtocolMessage::request(7, method, ContentType::Json, &b"{\"old\":true}"[..])
}

/// Reads an answer without a length in front of it.
fn unframed(bytes: Vec<u8>) -> ProtocolMessage {
    let mut reader = FrameReader::detecting_legacy();
    reader.push(Bytes::from(bytes));
    let packet = match reader.next().unwrap() {
        Some(packet) => packet,
        None => reader.end().unwrap().unwrap(),
    };
    assert!(
        reader.is_legacy(),
        "the answer is unframed, as the question was"
    );
    ProtocolMessage::decode(&packet.header, &packet.body)
        .unwrap()
        .0
}

#[tokio::test]
async fn an_unframed_request_is_answered_unframed() {
    let lab = lab();
    let client = RawClient::connect(lab.address()).await;
    let bytes = encode_unframed(&request("old.echo"), &Codec::new()).unwrap();
    let answer = unframed(client.exchange(&bytes).await.unwrap());
    assert_eq!(answer.msg_type, MessageType::Response);
    assert_eq!(answer.id, 7);
    assert_eq!(&answer.payload[..], b"{\"old\":true}");

    let bytes = encode_unframed(&request("old.nothing"), &Codec::new()).unwrap();
    let answer = unframed(client.exchange(&bytes).await.unwrap());
    assert_eq!(answer.msg_type, MessageType::Error);
}

#[tokio::test]
async fn without_a_legacy_handler_a_channel_is_required() {
    let lab = Lab::start();
    let client = RawClient::connect(lab.address()).await;
    let bytes = encode_unframed(&request("old.echo"), &Codec::new()).unwrap();
    let answer = unframed(client.exchange(&bytes).await.unwrap());
    assert_eq!(answer.msg_type, MessageType::Error);
    assert!(
        String::from_utf8_lossy(&answer.payload).contains("channel-required"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn legacy_and_framed_clients_are_served_side_by_side() {
    let lab = lab();
    let old = RawClient::connect(lab.address()).await;
    let new = lab.client().await;
    let channel = within(new.open_channel("echo")).await.unwrap();
    let bytes = encode_unframed(&request("old.echo"), &Codec::new()).unwrap();
    for number in 0..10 {
        let answer = unframed(old.exchange(&bytes).await.unwrap());
        assert_eq!(answer.msg_type, MessageType::Response);
        let answer = within(channel.request("echo", json!(number))).await;
        assert_eq!(answer.unwrap(), json!(number));
    }
}

#[tokio::test]
async fn a_framed_first_message_without_a_channel_is_refused_with_a_reason() {
    let lab = Lab::start();
    let client = RawClient::connect(lab.address()).await;
    let bytes = encode_frame(PacketType::Data, &request("nowhere"), &Codec::new()).unwrap();
    let answer = client.exchange(&bytes).await.unwrap();
    let mut reader = FrameReader::new();
    reader.push(Bytes::from(answer));
    let packet = reader.next().unwrap().unwrap();
    let (answer, _) = ProtocolMessage::decode(&packet.header, &packet.body).unwrap();
    assert_eq!(answer.msg_type, MessageType::Error);
    assert!(
        String::from_utf8_lossy(&answer.payload).contains("channel-required"),
        "{answer:?}"
    );
}
