//! Opening channels and calling over them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use kumi_unison::{
    CallOptions, ChannelOptions, ChannelSpec, ChannelStatus, NetworkError, Payload, SchemaId,
    ServerLimits, ServiceHandler,
};
use serde_json::json;

use crate::lab::{Echo, Lab, within};

const HASH: [u8; 32] = [7; 32];

#[tokio::test]
async fn a_call_gets_its_answer_in_each_format() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let answer = within(channel.request("echo", json!({"a": [1, null]}))).await;
    assert_eq!(answer.unwrap(), json!({"a": [1, null]}));
    let bytes = Bytes::from_static(b"\x00\xff raw");
    let answer = within(channel.request_bytes("echo", bytes.clone())).await;
    assert_eq!(answer.unwrap(), bytes);
}

#[tokio::test]
async fn large_and_empty_payloads_come_back_whole() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for size in [0, 1, 2047, 2048, 65_536, 1 << 20, 7 << 20] {
        let mut payload = vec![0; size];
        random.fill(&mut payload);
        for own_stream in [false, true] {
            let options = CallOptions::new().own_stream(own_stream);
            let call = channel.call("echo", Payload::bytes(payload.clone()), options);
            let answer = within(call).await.unwrap();
            assert!(answer.bytes == payload, "{size} bytes, {own_stream}");
        }
    }
}

#[tokio::test]
async fn large_calls_beyond_what_a_connection_may_hold_take_turns() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    // Ten of seven MiB, echoed: each direction has more than twice the 32 MiB that either side holds.
    let mut payload = vec![0; 7 << 20];
    random.fill(&mut payload);
    let payload = Bytes::from(payload);
    let calls = (0..10).map(|_| channel.request_bytes("echo", payload.clone()));
    for answer in within(futures_util::future::join_all(calls)).await {
        assert!(answer.unwrap() == payload);
    }
    assert_eq!(lab.echo.ran(), 10);
}

#[tokio::test]
async fn a_large_call_that_waits_for_its_turn_ends_by_its_deadline() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let payload = Payload::bytes(vec![7; 1 << 20]);
    let options = CallOptions::new().deadline(Duration::from_millis(50));
    let error = within(channel.call("gate", payload, options)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, NetworkError::Deadline { .. }), "{error:?}");
    let expected = format!(
        "the deadline passed without an answer from {}",
        lab.address()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(channel.load(), (0, 0, 0));
}

#[tokio::test]
async fn a_missing_channel_is_refused_with_what_exists() {
    let lab = Lab::with(ServerLimits::default(), |server| {
        server.register_channel("other", ServiceHandler::new(Echo::default()));
    });
    let client = lab.client().await;
    let error = within(client.open_channel("ecko")).await.unwrap_err();
    let NetworkError::ChannelNotFound {
        name,
        mut available,
    } = error
    else {
        panic!("{error:?}");
    };
    available.sort();
    assert_eq!(name, "ecko");
    assert_eq!(available, ["echo", "other"]);
}

#[tokio::test]
async fn busy_and_unavailable_channels_say_so() {
    let lab = Lab::start();
    let client = lab.client().await;
    lab.server.set_status("echo", ChannelStatus::Busy);
    let error = within(client.open_channel("echo")).await.unwrap_err();
    assert_eq!(error, NetworkError::Busy);
    lab.server.set_status("echo", ChannelStatus::Unavailable);
    let error = within(client.open_channel("echo")).await.unwrap_err();
    assert!(
        matches!(error, NetworkError::Unavailable { .. }),
        "{error:?}"
    );
    lab.server.set_status("echo", ChannelStatus::Available);
    within(client.open_channel("echo")).await.unwrap();
}

#[tokio::test]
async fn requests_sent_before_the_acknowledgement_are_answered() {
    let lab = Lab::start();
    let client = lab.client().await;
    let early = client.open_channel_early("echo", ChannelOptions::default());
    let channel = within(early).await.unwrap();
    let calls = (0..20).map(|number| channel.request("echo", json!(number)));
    let answers = within(futures_util::future::join_all(calls)).await;
    for (number, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.unwrap(), json!(number));
    }
}

#[tokio::test]
async fn a_refusal_fails_requests_that_were_sent_along() {
    let lab = Lab::start();
    let client = lab.client().await;
    let early = client.open_channel_early("nowhere", ChannelOptions::default());
    let channel = within(early).await.unwrap();
    let error = within(channel.request("echo", json!(1))).await.unwrap_err();
    assert!(
        matches!(error, NetworkError::ChannelNotFound { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn schemas_decide_what_may_be_sent() {
    let lab = Lab::with(ServerLimits::default(), |server| {
        let spec = ChannelSpec::new("typed").schema(SchemaId::new(HASH, "1.2.0"));
        server.register_channel_with(spec, ServiceHandler::new(Echo::default()));
    });
    let client = lab.client().await;
    let open = |hash, version| {
        let options = ChannelOptions::default().schema(SchemaId::new(hash, version));
        client.open_channel_with("typed", options)
    };
    let typed = || Payload::typed(&String::from("typed")).unwrap();

    let same = within(open(HASH, "1.2.0")).await.unwrap();
    let answer = within(same.call("echo", typed(), CallOptions::new())).await;
    assert_eq!(answer.unwrap().to_typed::<String>().unwrap(), "typed");

    let newer = within(open([8; 32], "1.3.0")).await.unwrap();
    let answer = within(newer.request("echo", json!("json"))).await;
    assert_eq!(answer.unwrap(), json!("json"));
    let error = within(newer.call("echo", typed(), CallOptions::new())).await;
    assert_eq!(error.unwrap_err(), NetworkError::TypedRefused);

    let error = within(open([8; 32], "2.0.0")).await.unwrap_err();
    assert!(
        matches!(error, NetworkError::SchemaMismatch { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn errors_of_a_handler_reach_the_caller() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let error = within(channel.request("fail", json!(null))).await;
    let Err(NetworkError::Remote(error)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(error.code, "nope");
    let error = within(channel.request("nothing", json!(null))).await;
    assert!(matches!(error, Err(NetworkError::Remote(_))), "{error:?}");
}

#[tokio::test]
async fn a_deadline_is_seen_by_the_handler_and_ends_the_call() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let options = CallOptions::new().deadline(Duration::from_secs(30));
    let payload = Payload::json(&()).unwrap();
    let left = within(channel.call("deadline", payload.clone(), options)).await;
    let left: Option<u64> = left.unwrap().to_json().unwrap();
    assert!(
        left.is_some_and(|left| left <= 30_000 && left > 1_000),
        "{left:?}"
    );

    let options = CallOptions::new().deadline(Duration::from_millis(50));
    let error = within(channel.call("gate", payload, options)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, NetworkError::Deadline { .. }), "{error:?}");
    let expected = format!(
        "the deadline passed without an answer from {}",
        lab.address()
    );
    assert_eq!(error.to_string(), expected);
    within(async {
        while lab.echo.cancelled.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_dropped_call_cancels_its_handler() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    for own_stream in [false, true] {
        let before = lab.echo.cancelled.load(Ordering::SeqCst);
        let payload = Payload::json(&()).unwrap();
        let options = CallOptions::new().own_stream(own_stream);
        tokio::select! {
            answer = channel.call("gate", payload, options) => panic!("{answer:?}"),
            () = lab.echo.one_begun() => {}
        }
        // Long before the deadline, which would fire the token as well.
        let cancelled = async {
            while lab.echo.cancelled.load(Ordering::SeqCst) == before {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), cancelled)
            .await
            .expect("the handler gets it");
        let answer = within(channel.request("echo", json!("after"))).await;
        assert_eq!(answer.unwrap(), json!("after"));
        lab.echo.one_begun().await;
    }
}

#[tokio::test]
async fn more_running_requests_than_allowed_are_not_executed() {
    let limits = ServerLimits::new().max_in_flight(4);
    let lab = Lab::with(limits, |_| {});
    let client = lab.client().await;
    let channels = [
        within(client.open_channel("echo")).await.unwrap(),
        within(client.open_channel("echo")).await.unwrap(),
    ];
    let calls = (0..12).map(|number| channels[number % 2].request("gate", json!(number)));
    let opening = async {
        for _ in 0..4 {
            lab.echo.one_begun().await;
        }
        lab.echo.gate.add_permits(12);
    };
    let calls = futures_util::future::join_all(calls);
    let (answers, ()) = within(async { tokio::join!(calls, opening) }).await;
    let answered = answers.iter().filter(|answer| answer.is_ok()).count() as u64;
    assert_eq!(answered, lab.echo.ran());
    for answer in answers {
        if let Err(error) = answer {
            assert_eq!(error, NetworkError::Busy);
        }
    }
}

#[tokio::test]
async fn ipv6_is_served_like_ipv4() {
    let tls = kumi_unison::ServerTls::development(&["::1"]).unwrap();
    let lab = Lab::at(
        "[::1]:0".parse().unwrap(),
        ServerLimits::default(),
        tls,
        |_| {},
    );
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    assert_eq!(
        within(channel.request("echo", json!(6))).await.unwrap(),
        json!(6)
    );
}
