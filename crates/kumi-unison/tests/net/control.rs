//! The control stream: identity, updates, pings and going away.

use std::time::Duration;

use kumi_unison::{
    ChannelOptions, ChannelStatus, ChannelUpdate, Lifetime, NetworkError, ReconnectPolicy,
    ServerLimits, ServiceHandler,
};
use serde_json::json;

use crate::lab::{Echo, Lab, lost, options, within};

#[tokio::test]
async fn a_server_introduces_itself_with_its_channels() {
    let lab = Lab::start();
    let client = lab.client().await;
    let identity = client.identity();
    assert_eq!(
        (identity.name.as_str(), identity.namespace.as_str()),
        ("lab", "tests")
    );
    let names: Vec<&str> = identity
        .channels
        .iter()
        .map(|channel| channel.name.as_str())
        .collect();
    assert_eq!(names, ["echo"]);
}

#[tokio::test]
async fn changes_are_pushed_to_connected_clients() {
    let lab = Lab::start();
    let client = lab.client().await;
    let mut updates = client.updates();
    lab.server
        .register_channel("late", ServiceHandler::new(Echo::default()));
    let update = within(updates.recv()).await.unwrap().unwrap();
    assert!(matches!(&update, ChannelUpdate::Added(info) if info.name == "late"));
    lab.server.set_status("late", ChannelStatus::Busy);
    let update = within(updates.recv()).await.unwrap().unwrap();
    assert!(
        matches!(&update, ChannelUpdate::StatusChanged { name, status: ChannelStatus::Busy } if name == "late"),
        "{update:?}"
    );
    assert_eq!(
        client.identity().channel("late").unwrap().status,
        ChannelStatus::Busy
    );
    lab.server.remove_channel("late");
    let update = within(updates.recv()).await.unwrap().unwrap();
    assert!(matches!(&update, ChannelUpdate::Removed(name) if name == "late"));
    assert!(client.identity().channel("late").is_none());
}

#[tokio::test]
async fn a_client_that_missed_updates_is_told_everything_anew() {
    let lab = Lab::start();
    let client = lab.client().await;
    // Far more than the server keeps, before its task can tell any.
    for number in 0..5_000 {
        lab.server.register_channel(
            &format!("c{}", number % 50),
            ServiceHandler::new(Echo::default()),
        );
        lab.server
            .remove_channel(&format!("c{}", (number + 25) % 50));
    }
    let expected = lab.server.build_identity();
    within(async {
        let mut wanted: Vec<String> = names(&expected);
        wanted.sort();
        loop {
            let mut known = names(&client.identity());
            known.sort();
            if known == wanted {
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn names(identity: &kumi_unison::ServerIdentity) -> Vec<String> {
    identity
        .channels
        .iter()
        .map(|channel| channel.name.clone())
        .collect()
}

#[tokio::test]
async fn a_ping_is_answered() {
    let lab = Lab::start();
    let client = lab.client().await;
    for _ in 0..3 {
        within(client.ping()).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_that_goes_away_finishes_what_it_began_and_begins_nothing() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel_with(
        "echo",
        ChannelOptions::default().lifetime(Lifetime::Transient),
    ))
    .await
    .unwrap();
    let pending = {
        let channel = channel.clone();
        tokio::spawn(async move { channel.request("gate", json!("began")).await })
    };
    lab.echo.one_begun().await;
    let address = lab.address();
    let Lab { handle, echo, .. } = lab;
    let shutdown = tokio::spawn(handle.shutdown(Duration::from_secs(30)));
    // The client learns of it some time; from then on its requests are not executed.
    let refused = within(async {
        loop {
            match channel.request("echo", json!(1)).await {
                Ok(_) => tokio::task::yield_now().await,
                Err(error) => break error,
            }
        }
    })
    .await;
    assert!(
        matches!(refused, NetworkError::Draining { .. }),
        "{refused:?}"
    );
    let expected = format!("{address} is draining, the request was not executed");
    assert_eq!(refused.to_string(), expected);
    let ran = echo.ran();
    echo.gate.add_permits(1);
    assert_eq!(within(pending).await.unwrap().unwrap(), json!("began"));
    within(shutdown).await.unwrap();
    assert_eq!(echo.ran(), ran, "nothing ran after the refusal");
}

#[tokio::test]
async fn a_stuck_handler_does_not_hold_up_a_shutdown() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let pending = {
        let channel = channel.clone();
        tokio::spawn(async move { channel.request("gate", json!(0)).await })
    };
    lab.echo.one_begun().await;
    let server = lab.address();
    within(lab.handle.shutdown(Duration::from_millis(100))).await;
    let error = within(pending).await.unwrap().unwrap_err();
    assert_eq!(lost(error), (true, Some(server)));
}

#[tokio::test]
async fn a_full_server_refuses_and_serves_those_it_has() {
    let limits = ServerLimits::new().max_connections(2);
    let lab = Lab::with(limits, |_| {});
    let clients = [lab.client().await, lab.client().await];
    let address = lab.address().to_string();
    let third = kumi_unison::ProtocolClient::connect_with(
        &address,
        lab.pinned(),
        options().reconnect(ReconnectPolicy::never()),
    );
    let error = within(third).await.err().unwrap();
    assert!(matches!(error, NetworkError::Connect(_)), "{error:?}");
    for client in &clients {
        let channel = within(client.open_channel("echo")).await.unwrap();
        within(channel.request("echo", json!(1))).await.unwrap();
    }
    clients[0].close().await;
    within(async {
        while lab.handle.connections() > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    lab.client().await;
}
