//! Peers that want too much: streams opened and abandoned, handshakes begun and left.

use std::time::Duration;

use kumi_unison::ServerLimits;
use quinn::{Connecting, Endpoint};
use serde_json::json;

use crate::hostile::Victim;
use crate::lab::{Lab, PATIENCE, within};
use crate::proxy::{Conditions, Proxy};
use crate::raw::{self, RawClient};

const MIB: u64 = 1024 * 1024;

#[tokio::test]
async fn thousands_of_abandoned_streams_are_given_up() {
    const CONNECTIONS: usize = 6;
    const STREAMS: usize = 1_000;
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    let mut hostile = Vec::new();
    for _ in 0..CONNECTIONS {
        hostile.push(RawClient::connect(victim.address).await);
    }
    let mut held = Vec::new();
    for number in 0..CONNECTIONS * STREAMS {
        let connection = &hostile[number / STREAMS].connection;
        let (mut send, receive) = within(connection.open_bi()).await.unwrap();
        // One byte of a length, and then nothing, with both ends kept open.
        let _ = send.write_all(&[0]).await;
        held.push((send, receive));
        if number % 500 == 0 {
            within(channel.request("echo", json!(number)))
                .await
                .unwrap();
        }
    }
    // The server gives up on each of them, and tells.
    for (_, receive) in &mut held {
        assert!(within(receive.read_to_end(1)).await.is_err());
    }
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
    let peak = victim.peak_bytes();
    assert!(peak < 150 * MIB, "{} MiB", peak / MIB);
}

#[tokio::test]
async fn a_flood_of_handshakes_leaves_room_for_who_answers() {
    const ATTEMPTS: usize = 3_000;
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    // The server's answers never arrive, so each handshake stays half done, as with a forged address.
    let proxy = Proxy::start(victim.address, 31).await;
    proxy.set(Conditions {
        deaf: true,
        ..Conditions::default()
    });
    let endpoint = raw::endpoint();
    let mut attempts = Vec::new();
    for number in 0..ATTEMPTS {
        let attempt = endpoint.connect_with(raw::config(b"unison/1"), proxy.address(), "localhost");
        attempts.push(attempt.unwrap());
        if number % 100 == 0 {
            within(channel.request("echo", json!(number)))
                .await
                .unwrap();
        }
    }
    // In the midst of it, somebody who does answer gets in.
    for _ in 0..3 {
        let (client, newcomer) = victim.neighbour().await;
        within(newcomer.request("echo", json!("new")))
            .await
            .unwrap();
        within(client.close()).await;
    }
    drop(attempts);
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
    let peak = victim.peak_bytes();
    assert!(peak < 150 * MIB, "{} MiB", peak / MIB);
}

/// A server for which no handshake of this test times out.
fn patient() -> Lab {
    let limits = ServerLimits::new()
        .max_handshakes(HANDSHAKES)
        .handshake_timeout(2 * PATIENCE);
    Lab::with(limits, |_| {})
}

const HANDSHAKES: usize = 32;

/// Begins handshakes through a network that lets only some of the answers through.
async fn strangers(lab: &Lab, conditions: Conditions) -> (Proxy, Endpoint, Vec<Connecting>) {
    const STRANGERS: usize = 90;
    let proxy = Proxy::start(lab.address(), 32).await;
    proxy.set(conditions);
    let endpoint = raw::endpoint();
    let begin = |_| {
        let config = raw::config(b"unison/1");
        let begun = endpoint.connect_with(config, proxy.address(), "localhost");
        begun.unwrap()
    };
    let begun = (0..STRANGERS).map(begin).collect();
    (proxy, endpoint, begun)
}

#[tokio::test]
async fn strangers_that_answer_a_retry_and_go_no_further_keep_no_client_out() {
    let lab = patient();
    let retries_only = Conditions {
        retries_only: true,
        ..Conditions::default()
    };
    let _strangers = strangers(&lab, retries_only).await;
    within(async {
        while lab.handle.handshakes() < HANDSHAKES {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // The client has the address that all the strangers have.
    for number in 0..3 {
        let client = lab.client().await;
        let channel = within(client.open_channel("echo")).await.unwrap();
        within(channel.request("echo", json!(number)))
            .await
            .unwrap();
    }
    assert!(lab.handle.handshakes() <= HANDSHAKES);
}

#[tokio::test]
async fn strangers_that_answer_nothing_take_a_small_share_of_the_handshakes() {
    let lab = patient();
    let deaf = Conditions {
        deaf: true,
        ..Conditions::default()
    };
    let (proxy, _endpoint, begun) = strangers(&lab, deaf).await;
    // An answer to each, handshake or retry, is lost on its way.
    within(async {
        while proxy.counts().lost < begun.len() as u64 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(lab.handle.handshakes(), HANDSHAKES / 8);
    lab.client().await;
}

#[tokio::test]
async fn another_protocol_is_refused_in_the_handshake() {
    let victim = Victim::start();
    let endpoint = raw::endpoint();
    let connecting = endpoint
        .connect_with(raw::config(b"h3"), victim.address, "localhost")
        .unwrap();
    assert!(within(connecting).await.is_err());
    let (_client, channel) = victim.neighbour().await;
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_flood_of_cancelled_calls_runs_no_more_handlers_than_allowed() {
    let victim = Victim::start();
    let (_client, channel) = victim.neighbour().await;
    for _ in 0..200 {
        let calls = (0..20).map(|number| channel.request("gate", json!(number)));
        // Given up at once; the server has to hear of both the call and its end.
        let _ = tokio::time::timeout(
            Duration::from_millis(1),
            futures_util::future::join_all(calls),
        )
        .await;
    }
    within(channel.request("echo", json!("after")))
        .await
        .unwrap();
    let peak = victim.peak_bytes();
    assert!(peak < 150 * MIB, "{} MiB", peak / MIB);
}
