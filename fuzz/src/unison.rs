//! First inputs for Unison's targets: good frames, packets and archives of every kind.

use kumi_unison::ProtocolMessage;
use kumi_unison::wire::{
    Codec, ContentType, MessageType, PacketType, encode_frame, encode_unframed,
};

fn messages() -> Vec<ProtocolMessage> {
    let mut messages = Vec::new();
    for payload in [
        vec![],
        b"{}".to_vec(),
        vec![b'a'; 3_000],
        (0..=255).collect(),
    ] {
        for method in ["", "tick", "rooms.join.as.guest", "__channel:chat"] {
            let content = ContentType::Json;
            messages.push(ProtocolMessage::event(method, content, payload.clone()));
            messages.push(ProtocolMessage::request(
                7,
                method,
                content,
                payload.clone(),
            ));
            let response = ProtocolMessage::response(7, ContentType::Bytes, payload.clone());
            messages.push(ProtocolMessage {
                msg_type: MessageType::Error,
                ..response.clone()
            });
            messages.push(response);
        }
    }
    messages
}

fn frame(message: &ProtocolMessage) -> Vec<u8> {
    encode_frame(PacketType::Data, message, &Codec::new()).unwrap_or_default()
}

/// Streams of frames, and packets in the legacy form, behind the two bytes that the target takes.
pub fn streams() -> Vec<Vec<u8>> {
    let messages = messages();
    let framed = messages
        .iter()
        .map(|message| [vec![0, 3], frame(message)].concat());
    let legacy = messages.iter().map(|message| {
        let packet = encode_unframed(message, &Codec::new()).unwrap_or_default();
        [vec![1, 3], packet].concat()
    });
    let packed: Vec<u8> = messages.iter().take(4).flat_map(frame).collect();
    framed
        .chain(legacy)
        .chain([[vec![0, 9], packed].concat()])
        .collect()
}

/// Packets without a length before them.
pub fn packets() -> Vec<Vec<u8>> {
    messages()
        .iter()
        .map(|message| frame(message).split_off(4))
        .collect()
}

/// Archives alone.
pub fn archives() -> Vec<Vec<u8>> {
    let archive = |message: &ProtocolMessage| message.to_archive().unwrap_or_default().to_vec();
    messages().iter().map(archive).collect()
}

/// Names with a meaning.
pub fn words() -> Vec<String> {
    [
        "__channel:",
        "__cancel",
        "__credit",
        "__identity",
        "__error",
    ]
    .map(str::to_owned)
    .to_vec()
}
