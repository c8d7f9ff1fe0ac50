//! Persistent channels that lose their stream and get another.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{Hold, echo, registry_with};
use kumi_unison::driver::{
    ConnectionLimits, MemoryRecv, MemorySend, TransportRecv, TransportSend, memory_stream,
};
use kumi_unison::wire::Codec;
use kumi_unison::{
    CallOptions, ChannelOptions, ChannelRegistry, ChannelSpec, ConnectionContext, EventPolicy,
    Lifetime, NetworkError, Payload, ServiceHandler, UnisonChannel,
};
use serde_json::json;
use tokio::task::JoinHandle;

/// A stream that can be cut: everything passes through two tasks that can be aborted.
struct Wire {
    tasks: Vec<JoinHandle<()>>,
}

impl Wire {
    fn to(registry: &ChannelRegistry) -> (MemorySend, MemoryRecv, Self) {
        let ((send, recv), middle) = memory_stream();
        let (other, (far_send, far_recv)) = memory_stream();
        let registry = registry.clone();
        let serve = tokio::spawn(async move {
            registry
                .serve_stream(ConnectionContext::new(), far_send, far_recv, 0)
                .await;
        });
        let there = tokio::spawn(carry(middle.1, other.0));
        let back = tokio::spawn(carry(other.1, middle.0));
        (
            send,
            recv,
            Self {
                tasks: vec![serve, there, back],
            },
        )
    }

    async fn cut(self) {
        for task in &self.tasks[1..] {
            task.abort();
        }
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

async fn carry(mut from: MemoryRecv, mut to: MemorySend) {
    let mut chunks = Vec::new();
    while let Ok(true) = from.read(&mut chunks).await {
        if to.write(&mut chunks).await.is_err() {
            return;
        }
        chunks.clear();
    }
    to.finish();
}

fn persistent() -> ChannelOptions {
    ChannelOptions::new().lifetime(Lifetime::Persistent)
}

fn open(registry: &ChannelRegistry, options: ChannelOptions) -> (UnisonChannel, Wire) {
    let (send, recv, wire) = Wire::to(registry);
    let context = ConnectionContext::new();
    (
        UnisonChannel::open(send, recv, 0, "c", options, &context).unwrap(),
        wire,
    )
}

fn reattach(channel: &UnisonChannel, registry: &ChannelRegistry) -> Wire {
    let (send, recv, wire) = Wire::to(registry);
    channel.reattach(send, recv, 4).unwrap();
    wire
}

#[tokio::test]
async fn a_lost_stream_ends_calls_and_a_new_one_resumes_the_channel() {
    let hold = Hold::default();
    let registry = registry_with("c", ServiceHandler::new(hold.clone()));
    let (channel, wire) = open(&registry, persistent());
    channel.opened().await.unwrap();
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { channel.request("m", json!(1)).await }
    });
    hold.started(1).await;
    wire.cut().await;
    assert!(channel.lost().await);
    let lost = NetworkError::connection_lost(true);
    assert_eq!(call.await.unwrap(), Err(lost));
    hold.cancelled(1).await;
    hold.release();

    let _wire = reattach(&channel, &registry);
    assert!(channel.recv().await.unwrap().is_resumed());
    assert_eq!(channel.request("m", json!(2)).await.unwrap(), json!(2));
    assert_eq!(hold.count(), 2, "the lost call was not repeated");
    assert_eq!(channel.context().metrics().snapshot().channels_resumed, 1);
    assert_eq!(channel.load(), (0, 0, 0));
}

#[tokio::test]
async fn only_idempotent_calls_are_repeated() {
    let hold = Hold::default();
    let registry = registry_with("c", ServiceHandler::new(hold.clone()));
    let (channel, wire) = open(&registry, persistent());
    let call = |idempotent| {
        let channel = channel.clone();
        let options = CallOptions::new().idempotent(idempotent);
        tokio::spawn(async move {
            channel
                .call("m", Payload::json(&idempotent)?, options)
                .await?
                .to_json::<bool>()
        })
    };
    let (plain, repeated) = (call(false), call(true));
    hold.started(2).await;
    wire.cut().await;
    let lost = NetworkError::connection_lost(true);
    assert_eq!(plain.await.unwrap(), Err(lost));
    hold.release();
    let _wire = reattach(&channel, &registry);
    assert_eq!(repeated.await.unwrap(), Ok(true));
    assert_eq!(hold.count(), 3);
}

#[tokio::test(start_paused = true)]
async fn calls_and_events_made_without_a_stream_wait_for_the_next() {
    let registry = registry_with("c", ServiceHandler::new(echo));
    let (channel, wire) = open(&registry, persistent());
    channel.opened().await.unwrap();
    wire.cut().await;
    assert!(channel.lost().await);
    let options = CallOptions::new().deadline(Duration::from_secs(1));
    let short = channel.call("m", Payload::json(&1).unwrap(), options).await;
    let lost = NetworkError::connection_lost(false);
    assert_eq!(short, Err(lost), "it never left");
    let waiting = tokio::spawn({
        let channel = channel.clone();
        async move {
            channel.send_event("e", json!(1)).await?;
            channel.request("m", json!(2)).await
        }
    });
    let _wire = reattach(&channel, &registry);
    assert_eq!(waiting.await.unwrap(), Ok(json!(2)));
}

#[tokio::test]
async fn a_channel_that_is_given_up_ends_everything() {
    let registry = registry_with("c", ServiceHandler::new(echo));
    let (channel, wire) = open(&registry, persistent().event_policy(EventPolicy::Wait));
    channel.opened().await.unwrap();
    wire.cut().await;
    assert!(channel.lost().await);
    let waiting = tokio::spawn({
        let channel = channel.clone();
        async move { channel.request("m", json!(1)).await }
    });
    let receiving = tokio::spawn({
        let channel = channel.clone();
        async move { channel.recv().await }
    });
    channel.fail(NetworkError::Connect("no server there".to_owned()));
    let error = NetworkError::Connect("no server there".to_owned());
    assert_eq!(waiting.await.unwrap(), Err(error.clone()));
    assert_eq!(receiving.await.unwrap().unwrap_err(), error);
    assert!(!channel.lost().await);
    let (send, recv, _wire) = Wire::to(&registry);
    assert_eq!(channel.reattach(send, recv, 8), Err(error));
}

#[tokio::test]
async fn a_transient_channel_ends_with_its_stream() {
    let registry = registry_with("c", ServiceHandler::new(echo));
    let (channel, wire) = open(&registry, ChannelOptions::new());
    channel.opened().await.unwrap();
    wire.cut().await;
    assert!(matches!(
        channel.closed().await,
        NetworkError::ConnectionLost { .. }
    ));
    let error = channel.request("m", json!(1)).await.unwrap_err();
    assert_eq!(error, NetworkError::connection_lost(false));
}

#[tokio::test]
async fn a_refusal_after_a_reconnection_ends_the_channel() {
    let registry = registry_with("c", ServiceHandler::new(echo));
    let (channel, wire) = open(&registry, persistent());
    channel.opened().await.unwrap();
    wire.cut().await;
    assert!(channel.lost().await);
    let other = registry_with("other", ServiceHandler::new(echo));
    let _wire = reattach(&channel, &other);
    let error = channel.request("m", json!(1)).await.unwrap_err();
    assert!(matches!(error, NetworkError::ChannelNotFound { .. }));
}

#[tokio::test]
async fn a_queued_call_that_fails_fast_ends_when_the_connection_is_lost() {
    let hold = Hold::default();
    let registry = ChannelRegistry::new("test", "0.1.0", "default");
    let options = ChannelOptions::new().max_in_flight(1);
    let spec = ChannelSpec::new("c").options(options);
    registry.register_channel_with(spec, ServiceHandler::new(hold.clone()));
    let (channel, wire) = open(&registry, persistent());
    channel.opened().await.unwrap();
    let call = |options: CallOptions| {
        let channel = channel.clone();
        tokio::spawn(async move {
            let payload = Payload::json(&1).unwrap();
            channel.call("m", payload, options).await
        })
    };
    let running = call(CallOptions::new());
    hold.started(1).await;
    // More than try again at a time, so that the last one stands in line behind others that wait.
    let patient: Vec<_> = (0..100).map(|_| call(CallOptions::new())).collect();
    let queued = call(CallOptions::new().fail_fast(true));
    tokio::task::yield_now().await;
    assert!(!queued.is_finished());
    wire.cut().await;
    let error = queued.await.unwrap().unwrap_err();
    assert!(error.is_not_executed(), "{error:?}");
    assert!(running.await.unwrap().is_err());
    assert!(patient.iter().all(|call| !call.is_finished()));

    hold.release();
    let _wire = reattach(&channel, &registry);
    for call in patient {
        // Before the acknowledgement more are sent than run at a time; those are refused.
        let ended = call.await.unwrap();
        assert!(
            matches!(ended, Ok(_) | Err(NetworkError::Busy)),
            "{ended:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_call_that_waits_for_room_ends_as_lost_without_a_stream() {
    const LARGE: usize = 40 * 1024;
    let registry = registry_with("c", ServiceHandler::new(echo));
    let (send, recv, wire) = Wire::to(&registry);
    // Room for one large call at a time.
    let limits = ConnectionLimits::default().max_held_bytes(64 * 1024);
    let context = ConnectionContext::with(limits, Arc::new(Codec::new()));
    let channel = UnisonChannel::open(send, recv, 0, "c", persistent(), &context).unwrap();
    channel.opened().await.unwrap();
    let call = |options: CallOptions| {
        let channel = channel.clone();
        let payload = Payload::bytes(vec![7; LARGE]);
        tokio::spawn(async move { channel.call("m", payload, options).await })
    };
    wire.cut().await;
    assert!(channel.lost().await);
    let lost = NetworkError::connection_lost(false);
    let holding = call(CallOptions::new().deadline(Duration::from_secs(3600)));
    tokio::task::yield_now().await;

    let begun = tokio::time::Instant::now();
    let fast = call(CallOptions::new().fail_fast(true)).await.unwrap();
    assert_eq!(fast, Err(lost.clone()));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    let deadline = Duration::from_secs(1);
    let patient = call(CallOptions::new().deadline(deadline)).await.unwrap();
    assert_eq!(patient, Err(lost), "it never left");
    assert!(begun.elapsed() >= deadline);

    let waiting = call(CallOptions::new());
    let _wire = reattach(&channel, &registry);
    for call in [holding, waiting] {
        assert_eq!(call.await.unwrap().unwrap().bytes.len(), LARGE);
    }
}

#[tokio::test(start_paused = true)]
async fn time_without_a_stream_counts_for_no_event_that_waits() {
    const SECOND: Duration = Duration::from_secs(1);
    let registry = ChannelRegistry::new("test", "0.1.0", "default");
    let spec = ChannelSpec::new("c").options(ChannelOptions::new().event_window(4, 1 << 20));
    // Keeps the channel and reads nothing.
    let unread = |_: Arc<ConnectionContext>, channel: UnisonChannel| async move {
        channel.closed().await;
        Ok(())
    };
    registry.register_channel_with(spec, unread);
    let (channel, wire) = open(&registry, persistent().credit_timeout(5 * SECOND));
    channel.opened().await.unwrap();
    let senders: Vec<_> = (0..20)
        .map(|n| {
            let channel = channel.clone();
            tokio::spawn(async move { channel.send_event("n", json!(n)).await })
        })
        .collect();
    tokio::time::sleep(4 * SECOND).await;
    wire.cut().await;
    assert!(channel.lost().await);
    tokio::time::sleep(99 * SECOND).await;
    let _wire = reattach(&channel, &registry);
    tokio::time::sleep(4 * SECOND).await;
    assert!(!channel.is_closed());
    tokio::time::sleep(2 * SECOND).await;
    assert_eq!(channel.closed().await, NetworkError::EventOverflow);
    let mut sent = 0;
    for sender in senders {
        sent += usize::from(sender.await.unwrap().is_ok());
    }
    assert_eq!(sent, 8, "a window on each stream");
}
