//! Channels whose events may be lost.

use std::sync::Arc;

use kumi_unison::{
    ChannelOptions, ChannelSpec, ConnectionContext, Delivery, NetworkError, ServerLimits,
    UnisonChannel,
};
use serde_json::json;

use crate::lab::{Lab, within};
use crate::proxy::{Conditions, Proxy};

fn options() -> ChannelOptions {
    ChannelOptions::default().delivery(Delivery::Unreliable)
}

/// A lab with a channel that sends back each event it gets.
fn lab() -> Lab {
    Lab::with(ServerLimits::default(), |server| {
        let spec = ChannelSpec::new("positions").delivery(Delivery::Unreliable);
        server.register_channel_with(
            spec,
            |_: Arc<ConnectionContext>, channel: UnisonChannel| async move {
                loop {
                    let event = channel.recv().await?;
                    let payload = serde_json::from_slice(&event.payload).unwrap_or_default();
                    channel.send_event(&event.method, payload).await?;
                }
            },
        );
    })
}

#[tokio::test]
async fn events_travel_both_ways_as_datagrams() {
    let lab = lab();
    let client = lab.client().await;
    let channel = within(client.open_channel_with("positions", options()))
        .await
        .unwrap();
    // None has to arrive, so it is said again until one does.
    let received = within(async {
        loop {
            channel.send_event("At", json!([1, 2])).await.unwrap();
            let soon = std::time::Duration::from_millis(200);
            if let Ok(event) = tokio::time::timeout(soon, channel.recv()).await {
                break event.unwrap();
            }
        }
    })
    .await;
    assert_eq!(received.method, "At");
    assert_eq!(&received.payload[..], b"[1,2]");
}

#[tokio::test]
async fn lost_datagrams_stay_lost_and_others_come() {
    let lab = lab();
    let proxy = Proxy::start(lab.address(), 21).await;
    let client = lab.client_at(proxy.address()).await;
    let channel = within(client.open_channel_with("positions", options()))
        .await
        .unwrap();
    proxy.set(Conditions {
        loss: 0.3,
        ..Conditions::default()
    });
    let mut sent = 0_u64;
    let mut received = 0;
    within(async {
        while received < 20 {
            channel.send_event("At", json!(sent)).await.unwrap();
            sent += 1;
            let soon = std::time::Duration::from_millis(50);
            if let Ok(event) = tokio::time::timeout(soon, channel.recv()).await {
                event.unwrap();
                received += 1;
            }
        }
    })
    .await;
    assert!(sent >= received);
}

#[tokio::test]
async fn requests_and_large_events_are_refused_on_such_a_channel() {
    let lab = lab();
    let client = lab.client().await;
    let channel = within(client.open_channel_with("positions", options()))
        .await
        .unwrap();
    let error = within(channel.request("At", json!(1))).await.unwrap_err();
    assert_eq!(error, NetworkError::Unreliable);
    // Random, so that it does not become small on the way.
    let mut large = vec![0; 100_000];
    fastrand::Rng::with_seed(22).fill(&mut large);
    let error = within(channel.send_event_bytes("At", large))
        .await
        .unwrap_err();
    assert!(
        matches!(error, NetworkError::FrameTooLarge { .. }),
        "{error:?}"
    );
    within(channel.send_event("At", json!(1))).await.unwrap();
}

/// What membership relies on: its messages of up to this many bytes go as datagrams on every path that carries QUIC.
#[tokio::test]
async fn an_event_of_1100_bytes_fits_a_datagram_of_the_smallest_path() {
    let lab = lab();
    let proxy = Proxy::start(lab.address(), 23).await;
    proxy.set(Conditions {
        mtu: 1200,
        ..Conditions::default()
    });
    let client = lab.client_at(proxy.address()).await;
    let channel = within(client.open_channel_with("positions", options()))
        .await
        .unwrap();
    within(channel.send_event_bytes("m", vec![7; 1100]))
        .await
        .unwrap();
    let large = within(channel.send_event_bytes("m", vec![7; 1190])).await;
    assert!(
        matches!(large, Err(NetworkError::FrameTooLarge { .. })),
        "{large:?}"
    );
}
