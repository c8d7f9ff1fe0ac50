//! What a peer may send instead of what it should: a clear end for its stream, and nothing for anybody else.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{echo, registry_with};
use bytes::Bytes;
use kumi_unison::driver::{
    ConnectionLimits, MemoryRecv, MemorySend, TransportRecv, TransportSend, memory_stream,
};
use kumi_unison::wire::{
    Codec, ContentType, FrameReader, MessageType, PacketType, encode_frame, encode_unframed,
};
use kumi_unison::{
    ChannelOptions, ChannelRegistry, ChannelSource, ConnectionContext, MemoryClient, NetworkError,
    Payload, ProtocolMessage, RemoteError, ServiceHandler, UnisonChannel,
};
use serde_json::json;
use tokio::task::JoinHandle;

/// A stream to a server, driven by hand.
struct Raw {
    send: MemorySend,
    recv: MemoryRecv,
    served: JoinHandle<()>,
}

impl Raw {
    fn open(registry: &ChannelRegistry, context: &Arc<ConnectionContext>) -> Self {
        let ((send, recv), (far_send, far_recv)) = memory_stream();
        let (registry, context) = (registry.clone(), Arc::clone(context));
        let served =
            tokio::spawn(
                async move { registry.serve_stream(context, far_send, far_recv, 0).await },
            );
        Self { send, recv, served }
    }

    async fn write(&mut self, bytes: Vec<u8>) {
        // The server may have hung up already, and that is what is tested.
        let _ = self.send.write(&mut [Bytes::from(bytes)]).await;
    }

    /// Everything the server says until it ends the stream, in order or not.
    async fn answer(mut self) -> Vec<u8> {
        let mut chunks = Vec::new();
        while let Ok(true) = self.recv.read(&mut chunks).await {}
        self.served.await.unwrap();
        chunks.concat()
    }
}

fn opening(name: &str) -> Vec<u8> {
    let message = ProtocolMessage::request(
        1,
        format!("__channel:{name}"),
        ContentType::Json,
        &b"{}"[..],
    );
    encode_frame(PacketType::Handshake, &message, &Codec::new()).unwrap()
}

fn messages(bytes: Vec<u8>) -> Vec<ProtocolMessage> {
    let mut reader = FrameReader::new();
    reader.push(bytes.into());
    let mut messages = Vec::new();
    while let Some(packet) = reader.next().unwrap() {
        messages.push(
            ProtocolMessage::decode(&packet.header, &packet.body)
                .unwrap()
                .0,
        );
    }
    messages
}

fn code(message: &ProtocolMessage) -> String {
    assert_eq!(message.msg_type, MessageType::Error);
    serde_json::from_slice::<RemoteError>(&message.payload)
        .unwrap()
        .code
}

async fn serves_others(registry: &ChannelRegistry) {
    let client = MemoryClient::connect(registry);
    let channel = client
        .open_channel("echo", ChannelOptions::new())
        .await
        .unwrap();
    assert_eq!(channel.request("m", json!(1)).await.unwrap(), json!(1));
}

#[tokio::test]
async fn a_first_message_that_names_no_channel_is_told_so() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    let context = ConnectionContext::new();
    let request = ProtocolMessage::request(7, "hello", ContentType::Json, &b"{}"[..]);
    let mut raw = Raw::open(&registry, &context);
    raw.write(encode_frame(PacketType::Data, &request, &Codec::new()).unwrap())
        .await;
    let answer = messages(raw.answer().await);
    assert_eq!(
        (answer[0].id, code(&answer[0]).as_str()),
        (7, "channel-required")
    );
}

async fn legacy(registry: &ChannelRegistry, request: &ProtocolMessage) -> ProtocolMessage {
    let mut raw = Raw::open(registry, &ConnectionContext::new());
    raw.write(encode_unframed(request, &Codec::new()).unwrap())
        .await;
    raw.send.finish();
    let mut reader = FrameReader::detecting_legacy();
    reader.push(raw.answer().await.into());
    assert!(reader.next().unwrap().is_none());
    let packet = reader.end().unwrap().unwrap();
    ProtocolMessage::decode(&packet.header, &packet.body)
        .unwrap()
        .0
}

#[tokio::test]
async fn a_legacy_message_is_answered_in_its_own_form() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    let request = ProtocolMessage::request(7, "old.call", ContentType::Json, &b"[1]"[..]);
    assert_eq!(code(&legacy(&registry, &request).await), "channel-required");
    registry.register_legacy(
        |_: Arc<ConnectionContext>, message: ProtocolMessage| async move {
            match message.method.as_str() {
                "old.call" => Ok(Payload {
                    content_type: message.content_type,
                    bytes: message.payload,
                }),
                other => Err(RemoteError::method_not_found(other)),
            }
        },
    );
    let answer = legacy(&registry, &request).await;
    assert_eq!(
        answer,
        ProtocolMessage::response(7, ContentType::Json, &b"[1]"[..])
    );
    let other = ProtocolMessage {
        method: "new.call".to_owned(),
        ..request.clone()
    };
    assert_eq!(code(&legacy(&registry, &other).await), "method-not-found");
    let reserved = ProtocolMessage {
        method: "__channel:echo".to_owned(),
        ..request
    };
    assert_eq!(
        code(&legacy(&registry, &reserved).await),
        "channel-required"
    );
}

#[tokio::test]
async fn every_flipped_bit_of_an_opening_ends_that_stream_alone() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    let context = ConnectionContext::new();
    let good = opening("echo");
    for at in 0..good.len() {
        for bit in [0, 3, 7] {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            let mut raw = Raw::open(&registry, &context);
            raw.write(bytes).await;
            raw.send.finish();
            // Nothing, if it came in what looks like the legacy form; else the reason, and no agreement.
            let answer = raw.answer().await;
            let is_reason = answer.windows(8).any(|bytes| bytes == b"__closed");
            assert!(answer.is_empty() || is_reason, "byte {at}, bit {bit}");
        }
    }
    let metrics = context.metrics().snapshot();
    assert_eq!(metrics.protocol_errors, 3 * good.len() as u64);
    assert_eq!(metrics.channels_opened, 0);
    serves_others(&registry).await;
}

#[tokio::test]
async fn damage_on_an_open_channel_ends_it_and_the_handler_gets_the_reason() {
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let handler = move |_context: Arc<ConnectionContext>, channel: UnisonChannel| {
        let told = told.clone();
        async move {
            let result = channel.serve(echo).await;
            told.send(result.clone()).unwrap();
            result
        }
    };
    let registry = registry_with("damaged", handler);
    registry.register_channel("echo", ServiceHandler::new(echo));
    let context = ConnectionContext::new();
    let request = ProtocolMessage::request(2, "m", ContentType::Json, &b"{}"[..]);
    let good = encode_frame(PacketType::Data, &request, &Codec::new()).unwrap();
    let mut flipped = good.clone();
    flipped[70] ^= 1;
    let cases: [(&str, Vec<u8>); 5] = [
        ("a flipped bit", flipped),
        ("a packet with the number of another", good.clone()),
        ("half a frame and the end", good[..40].to_vec()),
        ("a length beyond the limit", vec![0xff; 4]),
        ("noise", vec![0; 64]),
    ];
    for (what, bytes) in cases {
        let mut raw = Raw::open(&registry, &context);
        raw.write(opening("damaged")).await;
        raw.write(bytes).await;
        raw.send.finish();
        raw.answer().await;
        let error = heard.recv().await.unwrap().unwrap_err();
        assert!(
            matches!(
                error,
                NetworkError::Wire(_) | NetworkError::FrameTooLarge { .. }
            ),
            "{what}: {error:?}"
        );
    }
    serves_others(&registry).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_says_nothing_is_given_up() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    let context = ConnectionContext::new();
    for part in [0, 3, 30] {
        let before = tokio::time::Instant::now();
        let mut raw = Raw::open(&registry, &context);
        raw.write(opening("echo")[..part].to_vec()).await;
        assert_eq!(raw.answer().await, b"");
        assert!(
            before.elapsed() <= Duration::from_secs(11),
            "{:?}",
            before.elapsed()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_frame_that_drips_is_given_up() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    let mut raw = Raw::open(&registry, &ConnectionContext::new());
    raw.write(opening("echo")).await;
    let before = tokio::time::Instant::now();
    let frame = encode_frame(
        PacketType::Data,
        &ProtocolMessage::request(2, "m", ContentType::Bytes, vec![0; 1_000]),
        &Codec::new(),
    )
    .unwrap();
    for byte in frame {
        if raw
            .send
            .write(&mut [Bytes::from(vec![byte])])
            .await
            .is_err()
        {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let elapsed = before.elapsed();
    assert!(
        elapsed >= Duration::from_secs(30) && elapsed < Duration::from_secs(40),
        "{elapsed:?}"
    );
}

#[tokio::test]
async fn frames_begun_on_many_streams_are_bounded_together() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    let limits = ConnectionLimits::default().max_partial_bytes(1024 * 1024);
    let context = ConnectionContext::with(limits, Arc::default());
    let mut rng = fastrand::Rng::with_seed(5);
    let noise: Vec<u8> = (0..400_000).map(|_| rng.u8(..)).collect();
    let request = ProtocolMessage::request(2, "m", ContentType::Bytes, noise);
    let frame = encode_frame(PacketType::Data, &request, &Codec::new()).unwrap();
    let mut streams = Vec::new();
    for _ in 0..10 {
        let mut raw = Raw::open(&registry, &context);
        raw.write(opening("echo")).await;
        raw.write(frame[..300_000].to_vec()).await;
        streams.push(raw);
    }
    // Three fit into the limit; the others are cut off.
    while context.metrics().snapshot().protocol_errors < 7 {
        tokio::task::yield_now().await;
    }
    drop(streams);
    while !context.channels().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(context.metrics().snapshot().protocol_errors, 7);
}

#[tokio::test]
async fn thousands_of_streams_opened_and_abandoned_leave_nothing() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    let context = ConnectionContext::new();
    for n in 0..3_000 {
        let mut raw = Raw::open(&registry, &context);
        match n % 3 {
            0 => {}
            1 => raw.write(opening("echo")[..20].to_vec()).await,
            _ => raw.write(opening("echo")).await,
        }
        drop(raw);
    }
    while !context.channels().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(context.running_requests(), 0);
    serves_others(&registry).await;
}

#[tokio::test]
async fn an_answer_to_nothing_ends_the_client_s_channel() {
    let ((send, recv), (mut far_send, _far_recv)) = memory_stream();
    let context = ConnectionContext::new();
    let channel = UnisonChannel::open(send, recv, 0, "c", ChannelOptions::new(), &context).unwrap();
    let answer = ProtocolMessage::response(99, ContentType::Json, &b"{}"[..]);
    let frame = encode_frame(PacketType::Data, &answer, &Codec::new()).unwrap();
    far_send.write(&mut [frame.into()]).await.unwrap();
    assert!(matches!(channel.closed().await, NetworkError::Violation(_)));
    assert_eq!(channel.load(), (0, 0, 0));
}

#[tokio::test]
async fn a_handler_that_never_serves_holds_no_more_requests_than_the_limit() {
    let handler = |_context: Arc<ConnectionContext>, channel: UnisonChannel| async move {
        channel.closed().await;
        Ok(())
    };
    let registry = registry_with("deaf", handler);
    let client = MemoryClient::connect(&registry);
    let options = ChannelOptions::new().default_deadline(Duration::from_millis(50));
    let channel = client.open_channel("deaf", options).await.unwrap();
    let calls = (0..3_000).map(|_| channel.request("m", json!(null)));
    for result in futures_util::future::join_all(calls).await {
        assert_eq!(result, Err(NetworkError::deadline()));
    }
    crate::support::at_rest(&channel).await;
}

/// A whole message as the `sequence`th packet of its stream.
fn numbered(sequence: u64, message: &ProtocolMessage) -> Vec<u8> {
    let mut frame = encode_frame(PacketType::Data, message, &Codec::new()).unwrap();
    let packet = &mut frame[4..];
    packet[16..24].copy_from_slice(&sequence.to_le_bytes());
    packet[12..16].fill(0);
    let crc = crc32fast::hash(packet);
    packet[12..16].copy_from_slice(&crc.to_le_bytes());
    frame
}

#[tokio::test]
async fn small_packets_that_unfold_to_much_are_counted_as_what_they_unfold_to() {
    const LIMIT: usize = 4 << 20;
    let deaf = |_context: Arc<ConnectionContext>, channel: UnisonChannel| async move {
        channel.closed().await;
        Ok(())
    };
    let registry = registry_with("deaf", deaf);
    registry.register_channel("echo", ServiceHandler::new(echo));
    let limits = ConnectionLimits::default().max_held_bytes(LIMIT);
    let context = ConnectionContext::with(limits, Arc::default());
    let mut raw = Raw::open(&registry, &context);
    raw.write(opening("deaf")).await;
    let zeros = vec![0; 1 << 20];
    let mut burst = Vec::new();
    for id in 1..=64 {
        let request = ProtocolMessage::request(id, "m", ContentType::Bytes, zeros.clone());
        burst.extend(numbered(id, &request));
    }
    assert!(burst.len() < LIMIT / 8, "{} bytes on the wire", burst.len());
    raw.write(burst).await;
    let refused = |context: &ConnectionContext| context.metrics().snapshot().requests_refused;
    while refused(&context) < 61 {
        assert!(context.held_bytes() <= LIMIT);
        tokio::task::yield_now().await;
    }
    assert!(context.held_bytes() > LIMIT / 2);
    let event = ProtocolMessage::event("e", ContentType::Bytes, zeros);
    raw.write(numbered(65, &event)).await;
    raw.answer().await;
    assert_eq!(context.metrics().snapshot().protocol_errors, 1);
    assert_eq!(context.held_bytes(), 0);
    serves_others(&registry).await;
}

#[tokio::test]
async fn a_datagram_is_not_unfolded_before_it_is_known_to_be_wanted() {
    let context = ConnectionContext::new();
    let mut packet = encode_unframed(
        &ProtocolMessage::event("e", ContentType::Bytes, vec![0; 8_000_000]),
        &Codec::new(),
    )
    .unwrap();
    assert!(packet.len() < 60_000);
    let before = std::time::Instant::now();
    for _ in 0..10_000 {
        context.deliver_datagram(Bytes::from(packet.clone()));
    }
    assert_eq!(context.metrics().snapshot().datagrams_dropped, 10_000);
    // Unfolding 80 GB takes more than that anywhere.
    assert!(before.elapsed() < Duration::from_secs(5));
    packet.truncate(20);
    context.deliver_datagram(Bytes::from(packet));
    assert_eq!(context.metrics().snapshot().datagrams_dropped, 10_001);
}

#[tokio::test]
async fn legacy_answers_that_are_not_read_are_bounded() {
    const ANSWER: usize = 1024 * 1024;
    const STREAMS: usize = 4;
    let mut noise = vec![0; ANSWER];
    fastrand::Rng::with_seed(3).fill(&mut noise);
    let noise = Bytes::from(noise);
    let registry = registry_with("echo", ServiceHandler::new(echo));
    registry.register_legacy(move |_: Arc<ConnectionContext>, _: ProtocolMessage| {
        std::future::ready(Ok::<_, RemoteError>(Payload::bytes(noise.clone())))
    });
    // Of answers it may hold twice as much.
    let limits = ConnectionLimits::default().max_held_bytes(ANSWER);
    let context = ConnectionContext::with(limits, Arc::new(Codec::new()));
    let request = ProtocolMessage::request(7, "old.call", ContentType::Json, &b"[1]"[..]);
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut raw = Raw::open(&registry, &context);
        raw.write(encode_unframed(&request, &Codec::new()).unwrap())
            .await;
        raw.send.finish();
        streams.push(raw);
    }
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(context.answer_bytes(), 2 * ANSWER);
    let mut whole = 0;
    for raw in streams {
        whole += usize::from(raw.answer().await.len() > ANSWER);
    }
    assert_eq!(whole, 2, "the others got a short error");
    assert_eq!(context.answer_bytes(), 0);
}
