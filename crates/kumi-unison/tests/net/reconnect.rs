//! Lost connections: what ends, what is sent again, what goes on.

use std::time::Duration;

use kumi_unison::{
    CallOptions, ChannelOptions, ChannelSpec, Lifetime, NetworkError, Payload, ProtocolClient,
    ReconnectPolicy, SchemaId, ServerLimits, ServerTls, ServiceHandler,
};
use serde_json::json;

use crate::lab::{Echo, Lab, lost, options, within};
use crate::proxy::{Conditions, Proxy};

fn persistent() -> ChannelOptions {
    ChannelOptions::default().lifetime(Lifetime::Persistent)
}

/// A second server that shows the same certificate.
fn successor(of: &Lab) -> Lab {
    Lab::at(
        "127.0.0.1:0".parse().unwrap(),
        ServerLimits::default(),
        of.tls.clone(),
        |_| {},
    )
}

/// Ends a server, as by a crash, and puts another in its place.
async fn replace(first: Lab, second: &Lab, client: &ProtocolClient, proxy: &Proxy) {
    drop(first.handle);
    within(async {
        while client.is_connected() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    proxy.retarget(second.address());
}

#[tokio::test]
async fn a_persistent_channel_resumes_on_the_next_connection() {
    let first = Lab::start();
    let proxy = Proxy::start(first.address(), 1).await;
    let client = first.client_at(proxy.address()).await;
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    within(channel.request("echo", json!(1))).await.unwrap();

    let second = successor(&first);
    replace(first, &second, &client, &proxy).await;
    let resumed = within(channel.recv()).await.unwrap();
    assert!(resumed.is_resumed(), "{resumed:?}");
    assert_eq!(
        within(channel.request("echo", json!(2))).await.unwrap(),
        json!(2)
    );
    assert_eq!(second.echo.ran(), 1);
}

#[tokio::test]
async fn a_server_started_again_ends_the_connections_of_the_one_before() {
    let first = Lab::start();
    let proxy = Proxy::start(first.address(), 20).await;
    let client = first.client_at(proxy.address()).await;
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    within(channel.request("echo", json!(1))).await.unwrap();

    // To the client it is as if the first had been killed: it says nothing any more.
    let second = successor(&first);
    proxy.retarget(second.address());
    let begun = std::time::Instant::now();
    let error = within(channel.request("echo", json!(2))).await.unwrap_err();
    assert_eq!(lost(error), (true, Some(proxy.address())));
    assert!(within(channel.recv()).await.unwrap().is_resumed());
    within(channel.request("echo", json!(3))).await.unwrap();
    assert_eq!(second.echo.ran(), 1);
    // Without it, the client would wait out its idle time of half a minute.
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(
        channel.context().connection_id,
        client.context().unwrap().connection_id
    );
}

#[tokio::test]
async fn a_server_does_not_reset_the_connections_of_another_one_with_its_key() {
    let first = Lab::start();
    let proxy = Proxy::start(first.address(), 21).await;
    let client = first.client_at(proxy.address()).await;
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    within(channel.request("echo", json!(1))).await.unwrap();

    // What the client sends goes to the second server for a while, which answers with resets.
    let second = Lab::named(
        "other",
        "127.0.0.1:0".parse().unwrap(),
        ServerLimits::default(),
        first.tls.clone(),
        |_| {},
    );
    let connection = client.context().unwrap().connection_id;
    proxy.retarget(second.address());
    let answered = async {
        while second.handle.traffic().sent_datagrams == 0 {
            tokio::task::yield_now().await;
        }
    };
    let lost = channel.request("echo", json!(2));
    within(async {
        tokio::select! {
            answer = lost => panic!("the second server ended the connection: {answer:?}"),
            () = answered => {}
        }
    })
    .await;
    proxy.retarget(first.address());
    within(channel.request("echo", json!(3))).await.unwrap();
    assert_eq!(client.context().unwrap().connection_id, connection);
    assert_eq!(second.echo.ran(), 0);
}

#[tokio::test]
async fn pending_calls_end_once_and_only_idempotent_ones_run_again() {
    let first = Lab::start();
    let proxy = Proxy::start(first.address(), 2).await;
    let client = first.client_at(proxy.address()).await;
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    let call = |idempotent: bool| {
        let channel = channel.clone();
        tokio::spawn(async move {
            let options = CallOptions::new().idempotent(idempotent);
            let payload = Payload::json(&idempotent).unwrap();
            channel.call("gate", payload, options).await
        })
    };
    let (once, again) = (call(false), call(true));
    first.echo.one_begun().await;
    first.echo.one_begun().await;

    let second = successor(&first);
    second.echo.gate.add_permits(10);
    replace(first, &second, &client, &proxy).await;
    let error = within(once).await.unwrap().unwrap_err();
    assert_eq!(lost(error), (true, Some(proxy.address())));
    let answer = within(again).await.unwrap().unwrap();
    assert!(answer.to_json::<bool>().unwrap());
    assert_eq!(second.echo.ran(), 1, "only the idempotent one ran again");
}

#[tokio::test]
async fn large_calls_are_repeated_like_small_ones() {
    let first = Lab::start();
    let proxy = Proxy::start(first.address(), 5).await;
    let client = first.client_at(proxy.address()).await;
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    let call = |idempotent: bool| {
        let channel = channel.clone();
        tokio::spawn(async move {
            let options = CallOptions::new().idempotent(idempotent);
            let payload = Payload::bytes(vec![
                u8::from(idempotent);
                kumi_unison::driver::OWN_STREAM_BYTES
            ]);
            channel.call("gate", payload, options).await
        })
    };
    let (once, again) = (call(false), call(true));
    first.echo.one_begun().await;
    first.echo.one_begun().await;

    let second = successor(&first);
    second.echo.gate.add_permits(10);
    replace(first, &second, &client, &proxy).await;
    let error = within(once).await.unwrap().unwrap_err();
    assert_eq!(lost(error), (true, Some(proxy.address())));
    assert_eq!(within(again).await.unwrap().unwrap().bytes[0], 1);
    assert_eq!(second.echo.ran(), 1, "only the idempotent one ran again");
}

#[tokio::test]
async fn a_transient_channel_ends_with_its_connection() {
    let first = Lab::start();
    let proxy = Proxy::start(first.address(), 3).await;
    let client = first.client_at(proxy.address()).await;
    let options = ChannelOptions::default().lifetime(Lifetime::Transient);
    let channel = within(client.open_channel_with("echo", options))
        .await
        .unwrap();
    let second = successor(&first);
    replace(first, &second, &client, &proxy).await;
    assert!(within(channel.recv()).await.is_err());
    assert!(within(channel.request("echo", json!(1))).await.is_err());
    // The client itself goes on.
    let fresh = within(client.open_channel("echo")).await.unwrap();
    within(fresh.request("echo", json!(1))).await.unwrap();
}

#[tokio::test]
async fn schemas_are_compared_again_after_a_loss() {
    let serve = |tls: ServerTls, version: &'static str| {
        Lab::at(
            "127.0.0.1:0".parse().unwrap(),
            ServerLimits::default(),
            tls,
            |server| {
                let schema = SchemaId::new([version.len() as u8 + 1; 32], version);
                let spec = ChannelSpec::new("typed").schema(schema);
                server.register_channel_with(spec, ServiceHandler::new(Echo::default()));
            },
        )
    };
    let first = serve(ServerTls::development(&["localhost"]).unwrap(), "1.0.0");
    let proxy = Proxy::start(first.address(), 4).await;
    let client = first.client_at(proxy.address()).await;
    let options = persistent().schema(SchemaId::new([6; 32], "1.0.0"));
    let channel = within(client.open_channel_with("typed", options))
        .await
        .unwrap();
    assert!(channel.typed_allowed());

    let second = serve(first.tls.clone(), "2.0.0-next");
    replace(first, &second, &client, &proxy).await;
    let error = within(channel.recv()).await.unwrap_err();
    assert!(
        matches!(error, NetworkError::SchemaMismatch { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn reconnecting_is_given_up_when_it_should_be() {
    let lab = Lab::start();
    let client_options = options().reconnect(ReconnectPolicy::never());
    let address = lab.address().to_string();
    let connecting = ProtocolClient::connect_with(&address, lab.pinned(), client_options);
    let client = within(connecting).await.unwrap();
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    let server = lab.address();
    drop(lab.handle);
    let error = within(channel.recv()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the connection to {server} was lost")
    );
    let error = within(channel.request("echo", json!(1))).await.unwrap_err();
    assert_eq!(lost(error), (false, Some(server)));
    assert!(within(client.open_channel("echo")).await.is_err());
    assert!(!client.is_connected());
}

#[tokio::test]
async fn a_connection_that_falls_silent_is_noticed_and_replaced() {
    let first = Lab::start();
    let proxy = Proxy::start(first.address(), 5).await;
    let client_options = options()
        .idle_timeout(Duration::from_millis(500))
        .keep_alive(Duration::from_millis(100))
        .connect_timeout(Duration::from_millis(500));
    let address = proxy.address().to_string();
    let connecting = ProtocolClient::connect_with(&address, first.pinned(), client_options);
    let client = within(connecting).await.unwrap();
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    proxy.set(Conditions {
        cut: true,
        ..Conditions::default()
    });
    within(async {
        while client.is_connected() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    proxy.set(Conditions::default());
    assert!(within(channel.recv()).await.unwrap().is_resumed());
    within(channel.request("echo", json!(1))).await.unwrap();
}

#[tokio::test]
async fn closing_a_client_ends_its_channels_and_its_connection() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    within(client.close()).await;
    assert!(within(channel.request("echo", json!(1))).await.is_err());
    within(async {
        while lab.handle.connections() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_call_that_found_no_connection_was_certainly_not_executed() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    let Lab { handle, echo, .. } = lab;
    drop(handle);
    within(async {
        while client.is_connected() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // The channel learns of it by its stream, which may be later.
    let fast = CallOptions::new().fail_fast(true);
    let short = CallOptions::new().deadline(Duration::from_millis(200));
    for options in [fast, short, short.own_stream(true), fast.own_stream(true)] {
        let call = channel.call("echo", Payload::json(&1).unwrap(), options);
        let error = within(call).await.expect_err("there is no server");
        assert!(error.is_not_executed(), "{error:?} with {options:?}");
    }
    assert_eq!(echo.ran(), 0);
}

#[tokio::test]
async fn a_channel_keeps_the_connection_of_a_client_that_was_dropped() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    drop(client);
    for number in 0..3 {
        let answer = within(channel.request("echo", json!(number))).await;
        assert_eq!(answer.unwrap(), json!(number));
    }
    // With the last channel the connection goes too.
    drop(channel);
    within(async {
        while lab.handle.connections() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn after_a_reconnection_the_connection_lists_and_counts_what_is_open_on_it() {
    let first = Lab::start();
    let proxy = Proxy::start(first.address(), 1).await;
    let client = first.client_at(proxy.address()).await;
    let channel = within(client.open_channel_with("echo", persistent()))
        .await
        .unwrap();
    within(channel.request("echo", json!(1))).await.unwrap();
    let before = client.context().expect("connected");
    let second = successor(&first);
    replace(first, &second, &client, &proxy).await;
    assert!(within(channel.recv()).await.unwrap().is_resumed());
    within(channel.request("echo", json!(2))).await.unwrap();

    let after = client.context().expect("connected");
    assert_ne!(before.connection_id, after.connection_id);
    let names = |context: &kumi_unison::ConnectionContext| -> Vec<String> {
        let channels = context.channels().into_iter();
        channels.map(|channel| channel.channel_name).collect()
    };
    assert_eq!(
        (names(&before), names(&after)),
        (vec![], vec!["echo".to_owned()])
    );
    assert_eq!(after.metrics().snapshot().requests_answered, 2);
    within(channel.close()).await.unwrap();
    drop(channel);
    within(async {
        while !names(&after).is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
