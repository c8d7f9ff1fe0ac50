//! Calls on streams of their own are part of their channel, and what ends a channel ends what runs for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Hold, echo, registry_with};
use bytes::Bytes;
use kumi_unison::driver::{OWN_STREAM_BYTES, TransportRecv, TransportSend, memory_stream};
use kumi_unison::wire::{Codec, ContentType, PacketType, encode_frame};
use kumi_unison::{
    CallOptions, ChannelOptions, ChannelRegistry, ChannelSource, ChannelSpec, ConnectionContext,
    EventPolicy, IncomingRequest, Lifetime, MemoryClient, NetworkError, Payload, ProtocolMessage,
    RemoteError, UnisonChannel,
};
use serde_json::json;
use tokio::sync::Notify;

/// Well below the deadline that calls have when they say nothing, which would end them too.
const SOON: Duration = Duration::from_secs(10);

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future)
        .await
        .expect("took too long")
}

fn large() -> Payload {
    Payload::bytes(vec![7; OWN_STREAM_BYTES])
}

/// Counts how often it was opened and what was asked of it, tells an event and asks back on each call.
fn registry(opened: &Arc<AtomicUsize>) -> ChannelRegistry {
    let opened = Arc::clone(opened);
    let handler = move |_context: Arc<ConnectionContext>, channel: UnisonChannel| {
        opened.fetch_add(1, Ordering::SeqCst);
        let asked = Arc::new(AtomicUsize::new(0));
        async move {
            let service = move |request: IncomingRequest| {
                let asked = Arc::clone(&asked);
                async move {
                    let number = asked.fetch_add(1, Ordering::SeqCst);
                    let len = request.payload().bytes.len();
                    let channel = request.channel();
                    channel.send_event("asked", json!(number)).await?;
                    let back = channel.request("back", json!(len)).await?;
                    Payload::json(&(number, back)).map_err(RemoteError::from)
                }
            };
            channel.serve(service).await
        }
    };
    registry_with("c", handler)
}

#[tokio::test]
async fn a_large_call_reaches_the_channel_it_was_made_on() {
    let opened = Arc::default();
    let client = MemoryClient::connect(&registry(&opened));
    let options = ChannelOptions::new().service(echo);
    let channel = client.open_channel("c", options).await.unwrap();
    let small = || Payload::bytes(&b"small"[..]);
    let apart = CallOptions::new().own_stream(true);
    let calls = [
        (small(), CallOptions::new()),
        (large(), CallOptions::new()),
        (small(), apart),
        (small(), CallOptions::new()),
    ];
    for (number, (payload, options)) in calls.into_iter().enumerate() {
        let len = payload.bytes.len();
        let answer = soon(channel.call("m", payload, options)).await.unwrap();
        assert_eq!(answer.to_value().unwrap(), json!([number, len]));
        let event = soon(channel.recv()).await.unwrap();
        assert_eq!(
            (event.method.as_str(), &event.payload[..]),
            ("asked", number.to_string().as_bytes())
        );
    }
    assert_eq!(
        opened.load(Ordering::SeqCst),
        1,
        "one handler for all of them"
    );
}

#[tokio::test]
async fn a_large_call_made_before_the_acknowledgement_finds_its_channel() {
    let opened = Arc::default();
    let client = MemoryClient::connect(&registry(&opened));
    let options = ChannelOptions::new().service(echo);
    let channel = client.begin_channel("c", options).unwrap();
    let answer = soon(channel.call("m", large(), CallOptions::new())).await;
    assert_eq!(
        answer.unwrap().to_value().unwrap(),
        json!([0, OWN_STREAM_BYTES])
    );
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_part_of_nothing_is_refused() {
    let registry = registry_with("c", kumi_unison::ServiceHandler::new(echo));
    let ((mut send, mut recv), (far_send, far_recv)) = memory_stream();
    let context = ConnectionContext::new();
    let opening =
        ProtocolMessage::request(1, "__channel:c", ContentType::Json, &b"{\"part_of\":8}"[..]);
    let frame = encode_frame(PacketType::Handshake, &opening, &Codec::new()).unwrap();
    send.write(&mut [frame.into()]).await.unwrap();
    registry.serve_stream(context, far_send, far_recv, 12).await;
    let mut chunks = Vec::new();
    while let Ok(true) = recv.read(&mut chunks).await {}
    let answer = String::from_utf8_lossy(&chunks.concat()).into_owned();
    assert!(answer.contains("unavailable"), "{answer}");
}

#[tokio::test]
async fn a_call_dropped_or_a_channel_closed_cancels_the_handler() {
    for own_stream in [false, true] {
        for close in [false, true] {
            let hold = Hold::default();
            let handler = kumi_unison::ServiceHandler::new(hold.clone());
            let client = MemoryClient::connect(&registry_with("c", handler));
            let channel = client
                .open_channel("c", ChannelOptions::new())
                .await
                .unwrap();
            let call = tokio::spawn({
                let channel = channel.clone();
                let options = CallOptions::new().own_stream(own_stream);
                async move {
                    channel
                        .call("m", Payload::bytes(Bytes::new()), options)
                        .await
                }
            });
            soon(hold.started(1)).await;
            if close {
                channel.close().await.unwrap();
                assert_eq!(soon(call).await.unwrap(), Err(NetworkError::closed()));
            } else {
                call.abort();
            }
            soon(hold.cancelled(1)).await;
        }
    }
}

#[tokio::test]
async fn a_caller_that_ended_its_half_and_then_went_away_is_noticed() {
    let hold = Hold::default();
    let handler = kumi_unison::ServiceHandler::new(hold.clone());
    let registry = registry_with("c", handler);
    let ((mut send, recv), (far_send, far_recv)) = memory_stream();
    let served = tokio::spawn(async move {
        let context = ConnectionContext::new();
        registry.serve_stream(context, far_send, far_recv, 0).await;
    });
    let opening = ProtocolMessage::request(1, "__channel:c", ContentType::Json, &b"{}"[..]);
    let request = ProtocolMessage::request(2, "m", ContentType::Json, &b"{}"[..]);
    let mut first = encode_frame(PacketType::Handshake, &opening, &Codec::new()).unwrap();
    let mut second = encode_frame(PacketType::Data, &request, &Codec::new()).unwrap();
    second[4 + 16] = 1;
    second[4 + 12..4 + 16].fill(0);
    let crc = crc32fast::hash(&second[4..]);
    second[4 + 12..4 + 16].copy_from_slice(&crc.to_le_bytes());
    first.extend(second);
    send.write(&mut [first.into()]).await.unwrap();
    // A request without a deadline, and the end: only its handler's token could ever end it.
    send.finish();
    soon(hold.started(1)).await;
    drop(recv);
    soon(hold.cancelled(1)).await;
    soon(served).await.unwrap();
}

/// A persistent channel to a server whose handler is `handler`.
async fn persistent(registry: &ChannelRegistry, options: ChannelOptions) -> UnisonChannel {
    let ((send, recv), (far_send, far_recv)) = memory_stream();
    let registry = registry.clone();
    tokio::spawn(async move {
        let context = ConnectionContext::new();
        registry.serve_stream(context, far_send, far_recv, 0).await;
    });
    let options = options.lifetime(Lifetime::Persistent);
    let context = ConnectionContext::new();
    let channel = UnisonChannel::open(send, recv, 0, "c", options, &context).unwrap();
    // One may be over by then.
    let _ = channel.opened().await;
    channel
}

#[tokio::test]
async fn a_channel_closed_by_the_server_is_not_taken_for_lost() {
    let leave = Arc::new(Notify::new());
    let handler = {
        let leave = Arc::clone(&leave);
        move |_context: Arc<ConnectionContext>, channel: UnisonChannel| {
            let leave = Arc::clone(&leave);
            async move {
                tokio::select! {
                    answer = channel.request("q", json!(1)) => panic!("{answer:?}"),
                    () = leave.notified() => Ok(()),
                }
            }
        }
    };
    let hold = Hold::default();
    let options = ChannelOptions::new().service(hold.clone());
    let channel = persistent(&registry_with("c", handler), options).await;
    soon(hold.started(1)).await;
    // The server ends the channel while the client still works on an answer, which then has no receiver.
    leave.notify_one();
    assert!(!soon(channel.lost()).await, "it was closed");
    assert_eq!(soon(channel.closed()).await, NetworkError::closed());
}

#[tokio::test]
async fn a_channel_that_its_policy_closed_does_not_come_again() {
    let registry = ChannelRegistry::new("test", "0.1.0", "default");
    let spec =
        ChannelSpec::new("c").options(ChannelOptions::new().event_policy(EventPolicy::Close));
    registry.register_channel_with(
        spec,
        |_context: Arc<ConnectionContext>, channel: UnisonChannel| async move {
            while channel.send_event("e", json!(1)).await.is_ok() {}
            Ok(())
        },
    );
    // The events are not read, so credit runs out.
    let channel = persistent(&registry, ChannelOptions::new().event_window(8, 1_000)).await;
    assert!(!soon(channel.lost()).await, "it was closed");
    match soon(channel.closed()).await {
        NetworkError::ClosedByPeer(why) => assert_eq!(why.code, "event-overflow"),
        error => panic!("{error}"),
    }
}
