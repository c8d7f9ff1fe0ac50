//! Events over QUIC, and consumers that stall.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use kumi_unison::{
    ChannelOptions, ChannelSpec, ConnectionContext, EventPolicy, IncomingRequest, Payload,
    RemoteError, ServerLimits, UnisonChannel,
};
use serde_json::json;

use crate::lab::{Lab, within};

/// Registers a channel that sends `count` numbered events, and answers `echo` meanwhile. Returns where the first
/// connection's context will be.
fn register_source(
    server: &kumi_unison::ProtocolServer,
    name: &str,
    policy: EventPolicy,
    count: u64,
    sent: Arc<AtomicU64>,
) -> Arc<OnceLock<Arc<ConnectionContext>>> {
    let seen: Arc<OnceLock<Arc<ConnectionContext>>> = Arc::default();
    let first = seen.clone();
    let options = ChannelOptions::default().event_policy(policy);
    let spec = ChannelSpec::new(name).options(options);
    let handler = move |context: Arc<ConnectionContext>, channel: UnisonChannel| {
        let sent = sent.clone();
        first.get_or_init(|| context);
        async move {
            channel.set_service(|request: IncomingRequest| async move {
                Ok::<Payload, RemoteError>(request.into_payload())
            });
            for number in 0..count {
                channel.send_event("Tick", json!(number)).await?;
                sent.fetch_add(1, Ordering::SeqCst);
            }
            channel.send_event("End", json!(null)).await?;
            channel.closed().await;
            Ok(())
        }
    };
    server.register_channel_with(spec, handler);
    seen
}

#[tokio::test]
async fn a_stalled_consumer_slows_no_request_and_loses_nothing() {
    const EVENTS: u64 = 2_000;
    let sent = Arc::new(AtomicU64::new(0));
    let lab = Lab::with(ServerLimits::default(), |server| {
        register_source(server, "ticks", EventPolicy::Wait, EVENTS, sent.clone());
    });
    let client = lab.client().await;
    let stalled = within(client.open_channel("ticks")).await.unwrap();
    let other = within(client.open_channel("echo")).await.unwrap();
    // The source stops when its credits are used up, far from its end.
    within(async {
        let mut last = u64::MAX;
        loop {
            for number in 0..50 {
                within(other.request("echo", json!(number))).await.unwrap();
                within(stalled.request("echo", json!(number)))
                    .await
                    .unwrap();
            }
            let now = sent.load(Ordering::SeqCst);
            if now == last && now > 0 {
                break;
            }
            last = now;
        }
    })
    .await;
    let at_rest = sent.load(Ordering::SeqCst);
    assert!(
        at_rest < EVENTS,
        "{at_rest} events were sent without a reader"
    );
    for expected in 0..EVENTS {
        let event = within(stalled.recv()).await.unwrap();
        let number: u64 = serde_json::from_slice(&event.payload).unwrap();
        assert_eq!(number, expected);
    }
    assert_eq!(within(stalled.recv()).await.unwrap().method, "End");
}

#[tokio::test]
async fn what_a_dropping_channel_loses_is_what_it_counts() {
    const EVENTS: u64 = 2_000;
    let sent = Arc::new(AtomicU64::new(0));
    let mut context = None;
    let lab = Lab::with(ServerLimits::default(), |server| {
        let policy = EventPolicy::DropOldest;
        context = Some(register_source(
            server,
            "ticks",
            policy,
            EVENTS,
            sent.clone(),
        ));
    });
    let client = lab.client().await;
    let stalled = within(client.open_channel("ticks")).await.unwrap();
    within(async {
        while sent.load(Ordering::SeqCst) < EVENTS {
            within(stalled.request("echo", json!(0))).await.unwrap();
        }
    })
    .await;
    let mut received = 0;
    let mut last = None;
    loop {
        let event = within(stalled.recv()).await.unwrap();
        if event.method == "End" {
            break;
        }
        let number: u64 = serde_json::from_slice(&event.payload).unwrap();
        assert!(last.is_none_or(|last| number > last), "out of order");
        last = Some(number);
        received += 1;
    }
    let context = context.unwrap();
    let dropped = context.get().unwrap().metrics().snapshot().events_dropped;
    assert_eq!(
        received + dropped,
        EVENTS,
        "{received} came, {dropped} were dropped"
    );
    assert!(dropped > 0);
}
