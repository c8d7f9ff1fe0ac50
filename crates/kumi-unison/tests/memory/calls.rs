//! Requests over the in-memory transport: answers, errors, deadlines, cancelling, closing, and nothing left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::{Hold, at_rest, echo, registry_with};
use bytes::Bytes;
use futures_util::FutureExt;
use kumi_unison::driver::ConnectionLimits;
use kumi_unison::{
    CallOptions, ChannelHandler, ChannelOptions, ChannelRegistry, ChannelSource, ChannelSpec,
    ChannelStatus, ConnectionContext, IncomingRequest, MemoryClient, NetworkError, Payload,
    RemoteError, SchemaId, ServiceHandler, UnisonChannel,
};
use serde_json::json;
use tokio::sync::mpsc;

async fn open(registry: &ChannelRegistry, name: &str) -> UnisonChannel {
    let client = MemoryClient::connect(registry);
    client
        .open_channel(name, ChannelOptions::new())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_request_gets_its_answer_in_every_format() {
    let channel = open(&registry_with("echo", ServiceHandler::new(echo)), "echo").await;
    assert_eq!(
        channel.request("m", json!({"a": [1, 2]})).await.unwrap(),
        json!({"a": [1, 2]})
    );
    assert_eq!(
        channel.request_bytes("m", &b"raw"[..]).await.unwrap(),
        Bytes::from_static(b"raw")
    );
    let typed: String = channel
        .request_typed("m", &"typed".to_owned())
        .await
        .unwrap();
    assert_eq!(typed, "typed");
    let numbers: Vec<u8> = channel.request_json("m", &[1, 2, 3]).await.unwrap();
    assert_eq!(numbers, [1, 2, 3]);
    assert_eq!(channel.load(), (0, 0, 0));
}

#[tokio::test]
async fn payloads_of_every_length_come_back_whole() {
    let channel = open(&registry_with("echo", ServiceHandler::new(echo)), "echo").await;
    let mut rng = fastrand::Rng::with_seed(11);
    for len in [
        0, 1, 63, 64, 1_900, 2_047, 2_048, 2_049, 5_000, 70_000, 300_000, 3_000_000,
    ] {
        let noise: Bytes = (0..len).map(|_| rng.u8(..)).collect::<Vec<_>>().into();
        assert_eq!(
            channel.request_bytes("m", noise.clone()).await.unwrap(),
            noise,
            "{len}"
        );
        let text = Bytes::from(vec![b'z'; len]);
        assert_eq!(
            channel.request_bytes("m", text.clone()).await.unwrap(),
            text,
            "{len}"
        );
    }
}

#[tokio::test]
async fn a_message_above_the_limit_is_refused_here_and_the_channel_lives() {
    let channel = open(&registry_with("echo", ServiceHandler::new(echo)), "echo").await;
    let huge = Bytes::from(vec![0; kumi_unison::wire::MAX_MESSAGE_SIZE]);
    let error = channel.request_bytes("m", huge).await.unwrap_err();
    assert!(
        matches!(error, NetworkError::FrameTooLarge { .. }),
        "{error}"
    );
    assert_eq!(channel.request("m", json!(1)).await.unwrap(), json!(1));
    assert_eq!(channel.load(), (0, 0, 0));
}

#[tokio::test]
async fn an_answer_above_the_limit_becomes_an_error() {
    let handler = ServiceHandler::new(|_: IncomingRequest| async {
        Ok(Payload::bytes(vec![0; kumi_unison::wire::MAX_MESSAGE_SIZE]))
    });
    let channel = open(&registry_with("big", handler), "big").await;
    let error = channel.request("m", json!(1)).await.unwrap_err();
    assert!(matches!(&error, NetworkError::Remote(remote) if remote.code == "answer-too-large"));
}

#[tokio::test]
async fn many_calls_at_a_time_get_their_own_answers() {
    let channel = open(&registry_with("echo", ServiceHandler::new(echo)), "echo").await;
    let calls = (0..5_000_u32).map(|n| {
        let channel = channel.clone();
        tokio::spawn(async move {
            let answer = channel.request("m", json!(n)).await.unwrap();
            assert_eq!(answer, json!(n));
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.unwrap();
    }
    assert_eq!(channel.load(), (0, 0, 0));
    let metrics = channel.context().metrics().snapshot();
    assert_eq!(
        (metrics.requests_sent, metrics.requests_answered),
        (5_000, 5_000)
    );
    assert!(
        metrics.writes < 2_500,
        "calls made together leave together: {} writes",
        metrics.writes
    );
}

#[tokio::test]
async fn a_handler_s_error_arrives_with_code_message_and_payload() {
    let handler = ServiceHandler::new(|request: IncomingRequest| async move {
        match request.method() {
            "full" => {
                Err(RemoteError::new("room-full", "no seat").with_payload(json!({"seats": 2})))
            }
            // A handler may use the runtime's words without being taken for it.
            "busy" => Err(RemoteError::new("busy", "mine")),
            other => Err(RemoteError::method_not_found(other)),
        }
    });
    let channel = open(&registry_with("rooms", handler), "rooms").await;
    let error = channel.request("full", json!(null)).await.unwrap_err();
    let expected = RemoteError::new("room-full", "no seat").with_payload(json!({"seats": 2}));
    assert_eq!(error, NetworkError::Remote(expected));
    let error = channel.request("busy", json!(null)).await.unwrap_err();
    assert_eq!(
        error,
        NetworkError::Remote(RemoteError::new("busy", "mine"))
    );
    let error = channel.request("nothing", json!(null)).await.unwrap_err();
    assert!(matches!(&error, NetworkError::Remote(remote) if remote.code == "method-not-found"));
}

#[tokio::test]
async fn a_panicking_handler_is_answered_for_and_the_channel_lives() {
    let handler = ServiceHandler::new(|request: IncomingRequest| async move {
        match request.method() {
            "now" => panic!("at once"),
            "later" => {
                tokio::task::yield_now().await;
                panic!("after waiting")
            }
            _ => Ok(request.into_payload()),
        }
    });
    let channel = open(&registry_with("p", handler), "p").await;
    for method in ["now", "later"] {
        let error = channel.request(method, json!(null)).await.unwrap_err();
        assert!(matches!(&error, NetworkError::Remote(remote) if remote.code == "internal"));
    }
    assert_eq!(channel.request("fine", json!(1)).await.unwrap(), json!(1));
    assert_eq!(channel.load(), (0, 0, 0));
}

#[tokio::test]
async fn an_unknown_channel_is_refused_with_the_list_and_early_requests_fail() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    registry.register_channel("chat", ServiceHandler::new(echo));
    let client = MemoryClient::connect(&registry);
    let channel = client.begin_channel("nope", ChannelOptions::new()).unwrap();
    let early = channel.request("m", json!(1)).await.unwrap_err();
    let available = vec!["chat".to_owned(), "echo".to_owned()];
    let expected = NetworkError::ChannelNotFound {
        name: "nope".to_owned(),
        available,
    };
    assert_eq!(early, expected);
    assert_eq!(channel.opened().await.unwrap_err(), expected);
    assert_eq!(channel.load(), (0, 0, 0));
}

#[tokio::test]
async fn a_status_refuses_the_opening_and_updates_are_told() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    let client = MemoryClient::connect(&registry);
    let mut updates = client.updates();
    let refused = |name: &'static str| {
        let client = client.clone();
        async move {
            client
                .open_channel(name, ChannelOptions::new())
                .await
                .unwrap_err()
        }
    };
    assert!(registry.set_status("echo", ChannelStatus::Busy));
    assert_eq!(refused("echo").await, NetworkError::Busy);
    assert!(registry.set_status("echo", ChannelStatus::Unavailable));
    assert_eq!(
        refused("echo").await,
        NetworkError::Unavailable {
            name: "echo".to_owned()
        }
    );
    assert!(!registry.set_status("other", ChannelStatus::Busy));
    assert!(registry.remove_channel("echo"));
    assert!(matches!(
        refused("echo").await,
        NetworkError::ChannelNotFound { .. }
    ));
    let mut identity = registry.build_identity();
    while let Some(Some(Ok(update))) = updates.recv().now_or_never() {
        identity.apply(&update);
    }
    assert_eq!(identity, client.identity());
}

#[tokio::test]
async fn early_requests_run_before_the_acknowledgement_is_waited_for() {
    let registry = registry_with("echo", ServiceHandler::new(echo));
    let client = MemoryClient::connect(&registry);
    let channel = client.begin_channel("echo", ChannelOptions::new()).unwrap();
    assert_eq!(channel.request("m", json!(1)).await.unwrap(), json!(1));
}

#[tokio::test]
async fn schemas_decide_which_formats_work() {
    let schema = |hash: u8, version: &'static str| SchemaId::new([hash; 32], version);
    let registry = ChannelRegistry::new("s", "1", "default");
    let spec = ChannelSpec::new("c").schema(schema(1, "1.4.0"));
    registry.register_channel_with(spec, ServiceHandler::new(echo));
    let client = MemoryClient::connect(&registry);

    let same = ChannelOptions::new().schema(schema(1, "1.4.0"));
    let channel = client.open_channel("c", same).await.unwrap();
    assert!(channel.typed_allowed());
    assert_eq!(
        channel.request_typed::<_, u32>("m", &7_u32).await.unwrap(),
        7
    );

    for options in [
        ChannelOptions::new().schema(schema(2, "1.9.0")),
        ChannelOptions::new(),
    ] {
        let channel = client.begin_channel("c", options).unwrap();
        // Before the acknowledgement the server refuses, after it the client knows.
        let early = channel
            .request_typed::<_, u32>("m", &7_u32)
            .await
            .unwrap_err();
        assert_eq!(early, NetworkError::TypedRefused);
        channel.opened().await.unwrap();
        assert!(!channel.typed_allowed());
        let late = channel
            .request_typed::<_, u32>("m", &7_u32)
            .await
            .unwrap_err();
        assert_eq!(late, NetworkError::TypedRefused);
        assert_eq!(channel.request("m", json!(7)).await.unwrap(), json!(7));
        assert_eq!(
            channel.send_event_typed("e", &7_u32).await,
            Err(NetworkError::TypedRefused)
        );
    }

    let other = ChannelOptions::new().schema(schema(3, "2.0.0"));
    let error = client.open_channel("c", other).await.unwrap_err();
    let (ours, theirs) = ("2.0.0".to_owned(), "1.4.0".to_owned());
    assert_eq!(error, NetworkError::SchemaMismatch { ours, theirs });
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_by_its_deadline_and_its_handler_is_told() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let handler = ServiceHandler::new(move |request: IncomingRequest| {
        let told = told.clone();
        async move {
            let left = request.deadline().unwrap() - tokio::time::Instant::now().into_std();
            told.send(left).unwrap();
            request.cancelled().cancelled().await;
            told.send(Duration::ZERO).unwrap();
            Ok(request.into_payload())
        }
    });
    let channel = open(&registry_with("slow", handler), "slow").await;
    let before = tokio::time::Instant::now();
    let options = CallOptions::new().deadline(Duration::from_millis(250));
    let call = channel
        .call("m", Payload::bytes(Bytes::new()), options)
        .await;
    assert_eq!(call, Err(NetworkError::deadline()));
    assert_eq!(before.elapsed(), Duration::from_millis(250));
    assert_eq!(heard.recv().await.unwrap(), Duration::from_millis(250));
    assert_eq!(heard.recv().await.unwrap(), Duration::ZERO);
    at_rest(&channel).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_deadline_has_the_channel_s() {
    let registry = registry_with("slow", ServiceHandler::new(Hold::default()));
    let client = MemoryClient::connect(&registry);
    let options = ChannelOptions::new().default_deadline(Duration::from_secs(5));
    let channel = client.open_channel("slow", options).await.unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(
        channel.request("m", json!(1)).await,
        Err(NetworkError::deadline())
    );
    assert_eq!(before.elapsed(), Duration::from_secs(5));
}

#[tokio::test]
async fn dropping_a_call_fires_the_handler_s_token_and_leaves_nothing() {
    let hold = Hold::default();
    let channel = open(
        &registry_with("slow", ServiceHandler::new(hold.clone())),
        "slow",
    )
    .await;
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { channel.request("m", json!(1)).await }
    });
    hold.started(1).await;
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    hold.cancelled(1).await;
    at_rest(&channel).await;
    assert_eq!(channel.context().metrics().snapshot().requests_cancelled, 1);
}

#[tokio::test]
async fn a_flood_of_cancelled_calls_runs_no_more_handlers_than_the_limit() {
    const LIMIT: u32 = 8;
    let hold = Hold::stubborn();
    let registry = ChannelRegistry::new("s", "1", "default");
    let spec = ChannelSpec::new("slow").options(ChannelOptions::new().max_in_flight(LIMIT));
    registry.register_channel_with(spec, ServiceHandler::new(hold.clone()));
    let channel = open(&registry, "slow").await;
    for _ in 0..50 {
        let calls = (0..20).map(|_| channel.request("m", json!(1)));
        let all = futures_util::future::join_all(calls);
        assert!(
            tokio::time::timeout(Duration::from_millis(1), all)
                .await
                .is_err()
        );
    }
    hold.started(LIMIT as usize).await;
    assert_eq!(hold.most_at_once(), LIMIT as usize);
    let (waiting, abandoned, _) = channel.load();
    assert!(
        waiting == 0 && abandoned <= LIMIT as usize,
        "{waiting} and {abandoned}"
    );
    hold.release();
    at_rest(&channel).await;
}

#[tokio::test]
async fn a_peer_that_ignores_the_limit_is_told_busy() {
    let hold = Hold::default();
    let registry = ChannelRegistry::new("s", "1", "default");
    let spec = ChannelSpec::new("slow").options(ChannelOptions::new().max_in_flight(4));
    registry.register_channel_with(spec, ServiceHandler::new(hold.clone()));
    let client = MemoryClient::connect(&registry);
    // Not acknowledged yet, the client allows itself more than the server does.
    let channel = client.begin_channel("slow", ChannelOptions::new()).unwrap();
    let calls = (0..10).map(|_| {
        let channel = channel.clone();
        async move { channel.request("m", json!(1)).await }
    });
    let all = tokio::spawn(futures_util::future::join_all(
        calls.map(Box::pin).collect::<Vec<_>>(),
    ));
    hold.started(4).await;
    hold.release();
    let results = all.await.unwrap();
    let busy = results
        .iter()
        .filter(|result| **result == Err(NetworkError::Busy))
        .count();
    let good = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!((good, busy), (4, 6));
    assert!(NetworkError::Busy.is_not_executed());
}

#[tokio::test]
async fn a_connection_s_limit_holds_over_all_its_channels() {
    let hold = Hold::default();
    let registry = registry_with("slow", ServiceHandler::new(hold.clone()));
    let limits = ConnectionLimits::default().max_in_flight(3);
    let far = ConnectionContext::with(limits, Arc::default());
    let client = MemoryClient::connect_with(&registry, ConnectionContext::new(), far);
    let mut calls = Vec::new();
    for _ in 0..3 {
        let channel = client
            .open_channel("slow", ChannelOptions::new())
            .await
            .unwrap();
        for _ in 0..3 {
            let channel = channel.clone();
            calls.push(tokio::spawn(
                async move { channel.request("m", json!(1)).await },
            ));
        }
    }
    hold.started(3).await;
    let mut busy = 0;
    for call in &mut calls {
        tokio::select! {
            biased;
            result = call => {
                assert_eq!(result.unwrap(), Err(NetworkError::Busy));
                busy += 1;
            }
            () = tokio::task::yield_now() => {}
        }
        if busy == 6 {
            break;
        }
    }
    hold.release();
    assert_eq!(hold.most_at_once(), 3);
}

#[tokio::test]
async fn both_sides_may_ask() {
    let handler = |_context: Arc<ConnectionContext>, channel: UnisonChannel| async move {
        let service = |request: IncomingRequest| async move {
            let channel = request.channel().clone();
            let back = channel
                .request("back", json!(2))
                .await
                .map_err(RemoteError::from)?;
            Ok(Payload::json(
                &json!({"asked": request.payload().to_value()?, "got": back}),
            )?)
        };
        channel.serve(service).await
    };
    let registry = registry_with("both", handler);
    let client = MemoryClient::connect(&registry);
    let options = ChannelOptions::new().service(|request: IncomingRequest| async move {
        assert_eq!(request.method(), "back");
        Ok(Payload::json(&json!("answered"))?)
    });
    let channel = client.open_channel("both", options).await.unwrap();
    let answer = channel.request("there", json!(1)).await.unwrap();
    assert_eq!(answer, json!({"asked": 1, "got": "answered"}));
}

#[tokio::test]
async fn closing_ends_calls_under_way_and_the_peer_learns_of_it() {
    let hold = Hold::default();
    let channel = open(
        &registry_with("slow", ServiceHandler::new(hold.clone())),
        "slow",
    )
    .await;
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { channel.request("m", json!(1)).await }
    });
    hold.started(1).await;
    channel.close().await.unwrap();
    assert_eq!(call.await.unwrap(), Err(NetworkError::closed()));
    assert_eq!(
        channel.request("m", json!(1)).await,
        Err(NetworkError::closed())
    );
    assert_eq!(channel.recv().await.unwrap_err(), NetworkError::closed());
    assert_eq!(channel.closed().await, NetworkError::closed());
    assert_eq!(channel.load(), (0, 0, 0));
    hold.release();
}

#[tokio::test]
async fn when_the_server_closes_calls_end_as_lost() {
    let handler = |_context: Arc<ConnectionContext>, channel: UnisonChannel| async move {
        channel.recv().await?;
        channel.close().await
    };
    let channel = open(&registry_with("short", handler), "short").await;
    let call = tokio::spawn({
        let channel = channel.clone();
        async move { channel.request("m", json!(1)).await }
    });
    channel.send_event("go", json!(null)).await.unwrap();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error, NetworkError::connection_lost(true));
    assert!(channel.recv().await.is_err());
    assert_eq!(channel.load(), (0, 0, 0));
}

#[tokio::test]
async fn the_last_handle_closes_the_channel() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let (told, mut heard) = mpsc::unbounded_channel();
    let handler = move |_context: Arc<ConnectionContext>, channel: UnisonChannel| {
        let (count, told) = (Arc::clone(&count), told.clone());
        async move {
            let result = channel.serve(echo).await;
            count.fetch_add(1, Ordering::SeqCst);
            told.send(()).unwrap();
            result
        }
    };
    let channel = open(&registry_with("echo", handler), "echo").await;
    let clone = channel.clone();
    drop(channel);
    assert_eq!(clone.request("m", json!(1)).await.unwrap(), json!(1));
    let context = clone.context();
    assert_eq!(context.channels().len(), 1);
    drop(clone);
    heard.recv().await.unwrap();
    assert_eq!(ended.load(Ordering::SeqCst), 1);
    while !context.channels().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn draining_refuses_what_comes_later_and_finishes_what_runs() {
    let hold = Hold::default();
    let registry = registry_with("slow", ServiceHandler::new(hold.clone()));
    let client = MemoryClient::connect(&registry);
    let channel = client
        .open_channel("slow", ChannelOptions::new())
        .await
        .unwrap();
    let running = tokio::spawn({
        let channel = channel.clone();
        async move { channel.request("m", json!("before")).await }
    });
    hold.started(1).await;
    registry.start_draining();
    assert_eq!(
        channel.request("m", json!("after")).await,
        Err(NetworkError::draining())
    );
    let late = client
        .open_channel("slow", ChannelOptions::new())
        .await
        .unwrap_err();
    assert_eq!(late, NetworkError::draining());
    // The client's side, once it was told, does not even ask.
    client.context().drain();
    assert_eq!(
        channel.request("m", json!("after")).await,
        Err(NetworkError::draining())
    );
    assert_eq!(registry.running_requests(), 1);
    hold.release();
    assert_eq!(running.await.unwrap().unwrap(), json!("before"));
}

#[tokio::test]
async fn a_large_call_takes_a_stream_of_its_own() {
    let (told, mut heard) = mpsc::unbounded_channel();
    let handler = move |_context: Arc<ConnectionContext>, channel: UnisonChannel| {
        told.send(channel.is_own_stream()).unwrap();
        async move { channel.serve(echo).await }
    };
    let channel = open(&registry_with("echo", handler), "echo").await;
    assert_eq!(heard.recv().await, Some(false));
    let metrics = || channel.context().metrics().snapshot();
    let large = Bytes::from(vec![1; kumi_unison::driver::OWN_STREAM_BYTES]);
    assert_eq!(
        channel.request_bytes("m", large.clone()).await.unwrap(),
        large
    );
    assert_eq!(metrics().channels_opened, 2);
    let options = CallOptions::new().own_stream(true);
    channel
        .call("m", Payload::bytes(Bytes::new()), options)
        .await
        .unwrap();
    assert_eq!(metrics().channels_opened, 3);
    assert_eq!(channel.request("m", json!(1)).await.unwrap(), json!(1));
    assert_eq!(metrics().channels_opened, 3);
    assert!(heard.try_recv().is_err(), "they are part of the channel");
}

#[test]
fn handlers_and_services_are_objects() {
    fn takes(_: &dyn ChannelHandler, _: &dyn kumi_unison::Service) {}
    takes(&ServiceHandler::new(echo), &echo);
}
