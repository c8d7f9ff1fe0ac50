//! What one client can take up of a server, and of its own patience.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use kumi_unison::wire::{Codec, ContentType, PacketType, encode_frame};
use kumi_unison::{
    CallOptions, ChannelOptions, IncomingRequest, NetworkError, Payload, ProtocolClient,
    ProtocolMessage, RemoteError, ServerLimits, ServiceHandler,
};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::lab::{Lab, options, within};
use crate::proxy::Proxy;
use crate::raw::RawClient;

#[tokio::test]
async fn a_connection_counts_until_its_last_handler_is_done() {
    let limits = ServerLimits::new().max_connections(1);
    let (begun, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let lab = Lab::with(limits, |server| {
        let (begun, gate) = (begun.clone(), gate.clone());
        // It does not care whether anybody still waits.
        let stubborn = move |request: IncomingRequest| {
            let (begun, gate) = (begun.clone(), gate.clone());
            async move {
                begun.add_permits(1);
                gate.acquire().await.expect("never closed").forget();
                Ok::<_, RemoteError>(request.into_payload())
            }
        };
        server.register_channel("stubborn", ServiceHandler::new(stubborn));
    });
    let client = lab.client().await;
    let channel = within(client.open_channel("stubborn")).await.unwrap();
    let call = tokio::spawn(async move { channel.request("m", json!(1)).await });
    within(begun.acquire()).await.unwrap().forget();
    within(client.close()).await;
    assert!(within(call).await.unwrap().is_err());

    let address = lab.address().to_string();
    let second = ProtocolClient::connect_with(&address, lab.pinned(), options());
    assert!(within(second).await.is_err(), "its handler still runs");
    assert_eq!(lab.handle.connections(), 1);
    gate.add_permits(1);
    within(async {
        while lab.handle.connections() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    lab.client().await;
}

#[tokio::test]
async fn what_one_client_holds_leaves_others_their_floor() {
    const LARGE: usize = 200 * 1024;
    const LARGE_CALLS: usize = 12;
    let limits = ServerLimits::new().max_total_bytes(1024 * 1024);
    let lab = Lab::with(limits, |_| {});
    let payload = |bytes: usize| {
        let mut payload = vec![0; bytes];
        fastrand::Rng::with_seed(5).fill(&mut payload);
        Payload::bytes(payload)
    };
    let greedy = lab.client().await;
    let channel = within(greedy.open_channel("echo")).await.unwrap();
    let calls = (0..LARGE_CALLS).map(|_| {
        let channel = channel.clone();
        let call = async move {
            channel
                .call("gate", payload(LARGE), CallOptions::new())
                .await
        };
        tokio::spawn(call)
    });
    let calls: Vec<_> = calls.collect();
    // One of them is refused, although the connection's own limit is 32 MiB.
    let refused = async {
        while !calls.iter().any(|call| call.is_finished()) {
            tokio::task::yield_now().await;
        }
    };
    within(refused).await;
    assert!(lab.echo.ran() < LARGE_CALLS as u64);

    let modest = lab.client().await;
    let channel = within(modest.open_channel("echo")).await.unwrap();
    let small = channel.call("echo", payload(32 * 1024), CallOptions::new());
    assert_eq!(within(small).await.unwrap().bytes.len(), 32 * 1024);

    lab.echo.gate.add_permits(LARGE_CALLS);
    within(futures_util::future::join_all(calls)).await;
    within(greedy.close()).await;
    let large = channel.call("echo", payload(LARGE), CallOptions::new());
    assert_eq!(within(large).await.unwrap().bytes.len(), LARGE);
}

#[tokio::test]
async fn a_channel_without_compression_sends_what_it_was_given() {
    const BYTES: usize = 200_000;
    let lab = Lab::start();
    let proxy = Proxy::start(lab.address(), 1).await;
    let client = lab.client_at(proxy.address()).await;
    let mut packets = Vec::new();
    for compression in [true, false] {
        let options = ChannelOptions::new().compression(compression);
        let channel = within(client.open_channel_with("echo", options))
            .await
            .unwrap();
        let before = proxy.counts().forwarded;
        let call = channel.call("fail", Payload::bytes(vec![7; BYTES]), CallOptions::new());
        assert!(matches!(within(call).await, Err(NetworkError::Remote(_))));
        packets.push(proxy.counts().forwarded - before);
    }
    // No datagram is longer than 6,400 bytes.
    assert!(packets[0] < 20, "{packets:?}");
    assert!(packets[1] >= BYTES as u64 / 6_400, "{packets:?}");
}

#[tokio::test]
async fn a_name_with_an_address_without_a_listener_is_reached_soon() {
    // Only on 127.0.0.1, while the name often stands for ::1 too, and first.
    let lab = Lab::start();
    let address = format!("localhost:{}", lab.address().port());
    let options = options().connect_timeout(Duration::from_secs(50));
    let begun = std::time::Instant::now();
    let connecting = ProtocolClient::connect_with(&address, lab.pinned(), options);
    let client = within(connecting).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20));
    within(client.close()).await;
}

#[tokio::test]
async fn many_large_calls_at_a_time_all_get_their_answers() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let mut random = fastrand::Rng::with_seed(9);
    let mut payload = vec![0; 8_000_000];
    random.fill(&mut payload);
    let payload = Bytes::from(payload);
    // Three times what either side is willing to hold of unfinished messages.
    let calls = (0..12).map(|_| {
        let options = CallOptions::new().deadline(Duration::from_secs(60));
        channel.call("echo", Payload::bytes(payload.clone()), options)
    });
    for answer in within(futures_util::future::join_all(calls)).await {
        assert!(answer.unwrap().bytes == payload);
    }
}

#[tokio::test]
async fn a_connection_lost_after_the_caller_ended_its_half_is_noticed() {
    let lab = Lab::start();
    let raw = RawClient::connect(lab.address()).await;
    let opening = ProtocolMessage::request(1, "__channel:echo", ContentType::Json, &b"{}"[..]);
    let mut bytes = encode_frame(PacketType::Handshake, &opening, &Codec::new()).unwrap();
    // Without a deadline, so that nothing else ends it.
    let request = ProtocolMessage::request(2, "gate", ContentType::Json, &b"{}"[..]);
    let mut frame = encode_frame(PacketType::Data, &request, &Codec::new()).unwrap();
    frame[4 + 16] = 1;
    frame[4 + 12..4 + 16].fill(0);
    let crc = crc32fast::hash(&frame[4..]);
    frame[4 + 12..4 + 16].copy_from_slice(&crc.to_le_bytes());
    bytes.extend(frame);
    let (mut send, _receive) = within(raw.connection.open_bi()).await.unwrap();
    within(send.write_all(&bytes)).await.unwrap();
    send.finish().unwrap();
    lab.echo.one_begun().await;
    raw.connection.close(0_u32.into(), b"");
    within(async {
        while lab.echo.cancelled.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    within(async {
        while lab.handle.connections() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
