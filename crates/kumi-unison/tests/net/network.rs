//! Bad networks: loss, reordering, a path that gets narrower, an address that changes. Each call ends exactly once.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use kumi_unison::{CallOptions, Payload, ProtocolClient, UnisonChannel};
use serde_json::json;

use crate::lab::{Lab, within};
use crate::proxy::{Conditions, Proxy};

const CALLS: u64 = 300;
const IN_FLIGHT: usize = 16;

/// Makes many calls of many sizes, some on streams of their own, and returns when each has its own answer.
async fn call_much(channel: &UnisonChannel, seed: u64) {
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let room = Arc::new(tokio::sync::Semaphore::new(IN_FLIGHT));
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..CALLS {
        let permit = within(room.clone().acquire_owned()).await.unwrap();
        let size = [16, 500, 5_000, 40_000][random.usize(..4)];
        let mut payload = vec![0; size];
        random.fill(&mut payload);
        payload[..8].copy_from_slice(&number.to_le_bytes());
        let own_stream = random.u8(..8) == 0;
        let channel = channel.clone();
        calls.spawn(async move {
            let sent = Bytes::from(payload);
            let options = CallOptions::new().own_stream(own_stream);
            let call = channel.call("echo", Payload::bytes(sent.clone()), options);
            let answer = within(call).await.unwrap();
            assert!(answer.bytes == sent, "an answer of another call");
            drop(permit);
            number
        });
    }
    let mut ended = HashSet::new();
    while let Some(number) = calls.join_next().await {
        assert!(ended.insert(number.unwrap()));
    }
    assert_eq!(ended.len() as u64, CALLS);
}

async fn through(proxy: &Proxy, lab: &Lab) -> (ProtocolClient, UnisonChannel) {
    let client = lab.client_at(proxy.address()).await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    (client, channel)
}

#[tokio::test]
async fn calls_survive_loss_and_reordering() {
    let lab = Lab::start();
    let proxy = Proxy::start(lab.address(), 11).await;
    let (_client, channel) = through(&proxy, &lab).await;
    proxy.set(Conditions {
        loss: 0.05,
        reorder: 0.2,
        ..Conditions::default()
    });
    call_much(&channel, 11).await;
    assert_eq!(lab.echo.ran(), CALLS, "each ran once");
    let counts = proxy.counts();
    assert!(counts.lost > 0 && counts.held_back > 0, "{counts:?}");
}

#[tokio::test]
async fn a_connection_is_made_over_a_lossy_path() {
    let lab = Lab::start();
    let proxy = Proxy::start(lab.address(), 12).await;
    proxy.set(Conditions {
        loss: 0.15,
        ..Conditions::default()
    });
    let (_client, channel) = through(&proxy, &lab).await;
    within(channel.request("echo", json!(1))).await.unwrap();
}

#[tokio::test]
async fn calls_survive_a_path_that_gets_narrower() {
    let lab = Lab::start();
    let proxy = Proxy::start(lab.address(), 13).await;
    let (_client, channel) = through(&proxy, &lab).await;
    call_much(&channel, 13).await;
    // What QUIC promises to get by with.
    proxy.set(Conditions {
        mtu: 1200,
        ..Conditions::default()
    });
    call_much(&channel, 14).await;
    assert!(proxy.counts().too_large > 0, "{:?}", proxy.counts());
    proxy.set(Conditions::default());
    call_much(&channel, 15).await;
    assert_eq!(lab.echo.ran(), 3 * CALLS);
}

#[tokio::test]
async fn calls_survive_a_changed_address() {
    let lab = Lab::start();
    let proxy = Proxy::start(lab.address(), 16).await;
    let (client, channel) = through(&proxy, &lab).await;
    let connection = client.context().unwrap().connection_id;
    let calling = call_much(&channel, 16);
    let moving = async {
        let mut ran = 0;
        for step in 0..4 {
            // Some calls between two moves, so that each is made in the midst of work.
            while lab.echo.ran() < ran + 20 {
                tokio::task::yield_now().await;
            }
            ran = lab.echo.ran();
            if step % 2 == 0 {
                proxy.migrate();
            } else {
                client.rebind().unwrap();
            }
        }
    };
    within(async { tokio::join!(calling, moving) }).await;
    assert_eq!(lab.echo.ran(), CALLS, "each ran once");
    assert_eq!(
        client.context().unwrap().connection_id,
        connection,
        "the connection went on"
    );
}
