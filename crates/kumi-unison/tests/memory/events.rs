//! Events over the in-memory transport: credit, policies, and that a stalled consumer stalls no other.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{echo, registry_with};
use bytes::Bytes;
use futures_util::StreamExt;
use kumi_unison::{
    ChannelOptions, ChannelRegistry, ChannelSource, ChannelSpec, ChannelUpdate, ConnectionContext,
    EventPolicy, IncomingRequest, MemoryClient, NetworkError, Payload, UnisonChannel,
};
use serde_json::json;
use tokio::sync::mpsc;

/// How long the server's side lets a peer return no credit.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server side that hands its channels to the test.
fn handing_over(policy: EventPolicy) -> (ChannelRegistry, mpsc::UnboundedReceiver<UnisonChannel>) {
    let (give, take) = mpsc::unbounded_channel();
    let registry = ChannelRegistry::new("test", "0.1.0", "default");
    let options = ChannelOptions::new()
        .event_policy(policy)
        .credit_timeout(PATIENCE);
    let spec = ChannelSpec::new("feed").options(options);
    registry.register_channel_with(
        spec,
        move |_context: Arc<ConnectionContext>, channel: UnisonChannel| {
            // Only the first is wanted by every test.
            let _ = give.send(channel.clone());
            async move { channel.serve(echo).await }
        },
    );
    (registry, take)
}

async fn pair(
    policy: EventPolicy,
    events: u32,
    bytes: u32,
) -> (UnisonChannel, UnisonChannel, MemoryClient) {
    let (registry, mut take) = handing_over(policy);
    let client = MemoryClient::connect(&registry);
    let options = ChannelOptions::new().event_window(events, bytes);
    let near = client.open_channel("feed", options).await.unwrap();
    let far = take.recv().await.unwrap();
    (near, far, client)
}

#[tokio::test]
async fn events_arrive_in_order_and_take_no_answer() {
    let (near, far, _client) = pair(EventPolicy::Wait, 256, 1 << 20).await;
    for n in 0..100 {
        far.send_event("tick", json!(n)).await.unwrap();
        near.send_event("tock", json!(n)).await.unwrap();
    }
    for n in 0..100 {
        let event = near.recv().await.unwrap();
        assert_eq!(
            (event.method.as_str(), &event.payload[..]),
            ("tick", n.to_string().as_bytes())
        );
        assert_eq!(
            &far.recv().await.unwrap().payload[..],
            n.to_string().as_bytes()
        );
    }
}

#[tokio::test]
async fn waiting_loses_nothing_and_holds_no_more_than_the_window() {
    let (near, far, _client) = pair(EventPolicy::Wait, 8, 1 << 20).await;
    let sender = tokio::spawn(async move {
        for n in 0..1_000_u32 {
            far.send_event("n", json!(n)).await.unwrap();
        }
        far
    });
    for n in 0..1_000_u32 {
        let event = near.recv().await.unwrap();
        assert_eq!(&event.payload[..], n.to_string().as_bytes());
    }
    let far = sender.await.unwrap();
    let metrics = far.context().metrics().snapshot();
    assert_eq!((metrics.events_sent, metrics.events_dropped), (1_000, 0));
    assert!(metrics.events_waited > 0);
}

#[tokio::test]
async fn bytes_are_credited_too_and_the_largest_event_passes() {
    let (near, far, _client) = pair(EventPolicy::Wait, 256, 10_000).await;
    let sender = tokio::spawn(async move {
        for len in [1_000, 9_000, 100_000, 10, 2_000_000, 10_000, 0, 5_000] {
            far.send_event_bytes("b", vec![7; len]).await.unwrap();
        }
    });
    for len in [1_000, 9_000, 100_000, 10, 2_000_000, 10_000, 0, 5_000] {
        assert_eq!(near.recv().await.unwrap().payload.len(), len);
    }
    sender.await.unwrap();
}

#[tokio::test]
async fn dropping_keeps_the_newest_and_counts_the_rest() {
    let (near, far, client) = pair(EventPolicy::DropOldest, 10, 1 << 20).await;
    for n in 0..1_000_u32 {
        far.send_event("n", json!(n)).await.unwrap();
    }
    let mut got = Vec::new();
    // The last one is certainly kept, so it tells the end.
    while got.last() != Some(&999) {
        let event = near.recv().await.unwrap();
        got.push(serde_json::from_slice::<u32>(&event.payload).unwrap());
    }
    let dropped = client.server_context().metrics().snapshot().events_dropped;
    assert_eq!(got.len() as u64 + dropped, 1_000);
    assert!(got.len() >= 20, "a window on the way and a window kept");
    assert!(got.is_sorted());
}

#[tokio::test]
async fn closing_is_a_policy_too() {
    let (near, far, _client) = pair(EventPolicy::Close, 3, 1 << 20).await;
    for n in 0..3 {
        far.send_event("n", json!(n)).await.unwrap();
    }
    assert_eq!(
        far.send_event("n", json!(3)).await,
        Err(NetworkError::EventOverflow)
    );
    assert_eq!(far.closed().await, NetworkError::EventOverflow);
    near.closed().await;
}

#[tokio::test(start_paused = true)]
async fn a_stalled_consumer_slows_no_request() {
    for policy in [EventPolicy::Wait, EventPolicy::DropOldest] {
        let (near, far, client) = pair(policy, 16, 64 * 1024).await;
        let flood = tokio::spawn({
            let far = far.clone();
            async move {
                for _ in 0..10_000 {
                    far.send_event_bytes("x", vec![1; 1_000]).await?;
                }
                Ok::<_, NetworkError>(())
            }
        });
        let other = client
            .open_channel("feed", ChannelOptions::new())
            .await
            .unwrap();
        let before = tokio::time::Instant::now();
        for n in 0..200 {
            assert_eq!(near.request("m", json!(n)).await.unwrap(), json!(n));
            assert_eq!(other.request("m", json!(n)).await.unwrap(), json!(n));
        }
        // Paused time moves only when everything waits: no request waited for anything but its answer.
        assert_eq!(before.elapsed(), Duration::ZERO);
        let metrics = client.server_context().metrics().snapshot();
        assert!(
            metrics.events_sent <= 16,
            "no more than the window went out: {}",
            metrics.events_sent
        );
        near.close().await.unwrap();
        let flooded = flood.await.unwrap();
        assert_eq!(
            flooded.is_ok(),
            policy == EventPolicy::DropOldest,
            "{flooded:?}"
        );
    }
}

#[tokio::test]
async fn an_event_sent_before_the_acknowledgement_waits_for_credit() {
    let (registry, mut take) = handing_over(EventPolicy::Wait);
    let client = MemoryClient::connect(&registry);
    let near = client.begin_channel("feed", ChannelOptions::new()).unwrap();
    near.send_event("early", json!(1)).await.unwrap();
    let far = take.recv().await.unwrap();
    assert_eq!(far.recv().await.unwrap().method, "early");
}

#[tokio::test]
async fn a_name_can_be_taken_apart_and_given_back() {
    let (near, far, _client) = pair(EventPolicy::Wait, 256, 1 << 20).await;
    far.send_event("a", json!(1)).await.unwrap();
    far.send_event("b", json!(2)).await.unwrap();
    let mut only_b = near.events("b");
    assert_eq!(only_b.recv().await.unwrap().payload, "2");
    assert_eq!(near.recv().await.unwrap().payload, "1");
    far.send_event("b", json!(3)).await.unwrap();
    far.send_event("a", json!(4)).await.unwrap();
    assert_eq!(near.recv().await.unwrap().payload, "4");
    drop(only_b);
    assert_eq!(near.recv().await.unwrap().payload, "3");
}

#[tokio::test]
async fn discarded_events_hold_no_credit_and_are_counted() {
    let (near, far, client) = pair(EventPolicy::Wait, 4, 1 << 20).await;
    near.discard_events();
    let mut wanted = near.events("wanted");
    for n in 0..100 {
        far.send_event("noise", json!(n)).await.unwrap();
    }
    far.send_event("wanted", json!(1)).await.unwrap();
    assert_eq!(wanted.recv().await.unwrap().method, "wanted");
    assert_eq!(client.context().metrics().snapshot().events_discarded, 100);
}

#[tokio::test]
async fn events_that_nobody_takes_leave_credit_to_those_that_are_waited_for() {
    let (near, far, client) = pair(EventPolicy::Wait, 8, 1 << 20).await;
    let mut wanted = near.events("wanted");
    let sender = tokio::spawn(async move {
        for n in 0..100 {
            far.send_event("noise", json!(n)).await?;
        }
        far.send_event("wanted", json!(1)).await
    });
    assert_eq!(wanted.recv().await.unwrap().method, "wanted");
    assert_eq!(sender.await.unwrap(), Ok(()));
    // The newest are kept for a receiver that asks for them later.
    for n in 96..100 {
        assert_eq!(near.recv().await.unwrap().payload, n.to_string());
    }
    assert_eq!(client.context().metrics().snapshot().events_dropped, 96);
}

#[tokio::test]
async fn events_that_came_before_the_end_are_still_received() {
    let (near, far, _client) = pair(EventPolicy::Wait, 256, 1 << 20).await;
    for n in 0..5 {
        far.send_event("n", json!(n)).await.unwrap();
    }
    far.close().await.unwrap();
    near.closed().await;
    for _ in 0..5 {
        near.recv().await.unwrap();
    }
    assert_eq!(near.recv().await.unwrap_err(), NetworkError::closed());
}

#[tokio::test]
async fn a_dropped_receive_loses_no_event() {
    let (near, far, _client) = pair(EventPolicy::Wait, 256, 1 << 20).await;
    for n in 0..50 {
        let impatient = tokio::time::timeout(Duration::ZERO, near.recv()).await;
        assert!(impatient.is_err());
        far.send_event("n", json!(n)).await.unwrap();
        assert_eq!(near.recv().await.unwrap().payload, n.to_string());
    }
}

#[tokio::test]
async fn reserved_names_are_refused() {
    let (near, _far, _client) = pair(EventPolicy::Wait, 256, 1 << 20).await;
    assert!(matches!(
        near.send_event("__x", json!(1)).await,
        Err(NetworkError::Codec(_))
    ));
}

#[tokio::test]
async fn handlers_may_send_events_while_they_answer() {
    let handler = |_context: Arc<ConnectionContext>, channel: UnisonChannel| async move {
        let service = |request: IncomingRequest| async move {
            for n in 0..3 {
                request.channel().send_event("progress", json!(n)).await?;
            }
            Ok(Payload::bytes(Bytes::new()))
        };
        channel.serve(service).await
    };
    let client = MemoryClient::connect(&registry_with("work", handler));
    let channel = client
        .open_channel("work", ChannelOptions::new())
        .await
        .unwrap();
    channel.request_bytes("go", Bytes::new()).await.unwrap();
    for n in 0..3 {
        assert_eq!(channel.recv().await.unwrap().payload, n.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_waited_for_and_one_that_reads_nothing_is_closed() {
    const WINDOW: u32 = 256;
    const SENDERS: usize = 300;
    let (near, far, _client) = pair(EventPolicy::Wait, WINDOW, 1 << 20).await;
    let senders: Vec<_> = (0..SENDERS)
        .map(|n| {
            let far = far.clone();
            tokio::spawn(async move { far.send_event("n", json!(n)).await })
        })
        .collect();
    // Far less than the patience between two events, far more for a quarter of the window.
    for _ in 0..SENDERS {
        tokio::time::sleep(PATIENCE / 3).await;
        near.recv().await.unwrap();
    }
    for sender in senders {
        assert_eq!(sender.await.unwrap(), Ok(()));
    }

    let begun = tokio::time::Instant::now();
    let mut sent = 0;
    let error = loop {
        match far.send_event("n", json!(sent)).await {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((sent, error), (WINDOW, NetworkError::EventOverflow));
    let waited = begun.elapsed();
    assert!(waited >= PATIENCE && waited < PATIENCE * 2, "{waited:?}");
    assert_eq!(far.closed().await, NetworkError::EventOverflow);
}

#[tokio::test]
async fn a_channel_that_ended_is_listed_no_more_while_its_handles_live() {
    let (near, far, client) = pair(EventPolicy::Wait, 4, 1 << 20).await;
    let refused = client
        .begin_channel("missing", ChannelOptions::new())
        .unwrap();
    assert_eq!(client.context().channels().len(), 2);
    refused.opened().await.unwrap_err();
    assert_eq!(client.context().channels(), [near.handle()]);
    near.close().await.unwrap();
    far.closed().await;
    assert_eq!(client.context().channels(), []);
    assert_eq!(client.server_context().channels(), []);
    assert!(near.is_closed() && far.is_closed() && refused.is_closed());
}

#[tokio::test]
async fn a_subscriber_gets_the_identity_and_each_change_after_it() {
    let (registry, _take) = handing_over(EventPolicy::Wait);
    let (identity, mut updates) = registry.subscribe();
    assert_eq!(identity.channels.len(), 1);
    registry.remove_channel("feed");
    let removed = ChannelUpdate::Removed("feed".to_owned());
    assert_eq!(updates.next().await, Some(Ok(removed)));
    drop(registry);
    assert_eq!(updates.recv().await, None);
}
