//! Endings: listeners that stop beside others, addresses that are free again, peers that do not read.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use kumi_unison::driver::Traffic;
use kumi_unison::{
    ChannelOptions, ChannelSpec, ConnectionContext, EventPolicy, NetworkError, ProtocolClient,
    ServerLimits, UnisonChannel,
};
use serde_json::json;
use tokio::sync::mpsc;

use crate::lab::{Lab, options, within};

#[tokio::test]
async fn a_listener_that_shuts_down_leaves_the_others_of_its_registry_alone() {
    let lab = Lab::start();
    let other = lab
        .server
        .listen("127.0.0.1:0".parse().unwrap(), &lab.tls)
        .unwrap();
    let client = lab.client_at(other.local_addr()).await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let (pinned, tls) = (lab.pinned(), lab.tls.clone());
    let Lab { server, handle, .. } = lab;
    let address = handle.local_addr();
    within(handle.shutdown(Duration::from_secs(5))).await;
    assert_eq!(
        within(channel.request("echo", json!(1))).await.unwrap(),
        json!(1)
    );
    within(client.open_channel("echo")).await.unwrap();

    // The same server listens again, where it did before.
    let again = server.listen(address, &tls).unwrap();
    let address = again.local_addr().to_string();
    let client = ProtocolClient::connect_with(&address, pinned, options());
    let client = within(client).await.unwrap();
    let channel = within(client.open_channel("echo")).await.unwrap();
    assert_eq!(
        within(channel.request("echo", json!(2))).await.unwrap(),
        json!(2)
    );
}

#[tokio::test]
async fn a_registry_that_drains_is_not_listened_with() {
    let lab = Lab::start();
    lab.server.registry().start_draining();
    let address = "127.0.0.1:0".parse().unwrap();
    let error = lab.server.listen(address, &lab.tls).err().unwrap();
    assert!(matches!(error, NetworkError::Draining { .. }), "{error:?}");
    assert!(error.is_not_executed());
}

#[tokio::test]
async fn an_address_is_free_when_a_shutdown_returns() {
    for _ in 0..5 {
        let lab = Lab::start();
        let client = lab.client().await;
        let _channel = within(client.open_channel("echo")).await.unwrap();
        // Somebody who answers nothing is being dialled from the same socket.
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let unanswered = silent.local_addr().unwrap().to_string();
        let (pinned, address) = (lab.pinned(), lab.address());
        let handle = Arc::new(lab.handle);
        let dialling = {
            let handle = handle.clone();
            tokio::spawn(async move { handle.connect(&unanswered, pinned, options()).await.err() })
        };
        let mut packet = [0; 2048];
        let waiting =
            tokio::task::spawn_blocking(move || silent.recv_from(&mut packet).map(|_| silent));
        let _silent = within(waiting).await.unwrap().unwrap();
        dialling.abort();
        let _ = dialling.await;
        let handle = Arc::into_inner(handle).unwrap();
        within(handle.shutdown(Duration::from_millis(100))).await;
        UdpSocket::bind(address).unwrap();
    }
}

#[tokio::test]
async fn a_taken_port_says_that_it_cannot_be_listened_on() {
    let lab = Lab::start();
    let taken = lab.server.listen(lab.address(), &lab.tls);
    let error = taken.err().unwrap();
    assert!(matches!(&error, NetworkError::Listen { .. }), "{error:?}");
    assert!(
        error.to_string().starts_with("cannot listen on 127.0.0.1:"),
        "{error}"
    );
}

#[tokio::test]
async fn a_peer_that_does_not_read_its_events_is_closed_and_told() {
    let (report, mut reported) = mpsc::unbounded_channel();
    let lab = Lab::with(ServerLimits::default(), |server| {
        let options = ChannelOptions::default()
            .event_policy(EventPolicy::Wait)
            .credit_timeout(Duration::from_millis(300));
        let spec = ChannelSpec::new("ticks").options(options);
        let handler = move |_: Arc<ConnectionContext>, channel: UnisonChannel| {
            let report = report.clone();
            async move {
                loop {
                    if let Err(error) = channel.send_event("Tick", json!(1)).await {
                        let _ = report.send(error);
                        return Ok(());
                    }
                }
            }
        };
        server.register_channel_with(spec, handler);
    });
    let client = lab.client().await;
    let channel = within(client.open_channel("ticks")).await.unwrap();
    let error = within(reported.recv()).await.unwrap();
    assert_eq!(error, NetworkError::EventOverflow);
    let ended = within(async {
        loop {
            if let Err(error) = channel.recv().await {
                break error;
            }
        }
    })
    .await;
    assert!(matches!(ended, NetworkError::ClosedByPeer(_)), "{ended:?}");
}

#[tokio::test]
async fn a_closed_port_is_known_at_once_and_named() {
    let lab = Lab::start();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    // Far longer than the test may take.
    let options = options().connect_timeout(Duration::from_secs(3600));
    let connecting = ProtocolClient::connect_with(&address, lab.pinned(), options);
    let error = within(connecting).await.err().unwrap().to_string();
    let expected = format!("cannot connect: {address}: nothing listens on UDP port ");
    assert!(error.starts_with(&expected), "{error}");
}

#[tokio::test]
async fn a_closed_channel_and_a_closed_client_name_the_server() {
    let lab = Lab::start();
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let other = within(client.open_channel("echo")).await.unwrap();
    channel.close().await.unwrap();
    let expected = format!("the channel to {} is closed", lab.address());
    let called = within(channel.request("echo", json!(1))).await.unwrap_err();
    let told = within(channel.send_event("echo", json!(1))).await;
    let received = within(channel.recv()).await.unwrap_err();
    let ended = within(channel.closed()).await;
    within(client.close()).await;
    let opened = within(client.open_channel("echo")).await.unwrap_err();
    let pinged = within(client.ping()).await.unwrap_err();
    for error in [called, told.unwrap_err(), received, ended, opened, pinged] {
        assert!(matches!(error, NetworkError::Closed { .. }), "{error:?}");
        assert_eq!(error.to_string(), expected);
    }
    let other = within(other.request("echo", json!(1))).await.unwrap_err();
    assert!(
        other.to_string().contains(&lab.address().to_string()),
        "{other}"
    );
}

#[tokio::test]
async fn a_servers_socket_counts_what_goes_through_it() {
    let lab = Lab::start();
    let before = lab.handle.traffic();
    assert_eq!(before, Traffic::default());
    let client = lab.client().await;
    let channel = within(client.open_channel("echo")).await.unwrap();
    let mut large = vec![0; 50_000];
    fastrand::Rng::with_seed(4).fill(&mut large);
    within(channel.request_bytes("echo", large)).await.unwrap();
    let after = lab.handle.traffic();
    assert!(
        after.sent_bytes > 50_000 && after.received_bytes > 50_000,
        "{after:?}"
    );
    let largest = 6400;
    assert!(
        after.sent_datagrams >= after.sent_bytes / largest,
        "{after:?}"
    );
    assert!(
        after.received_datagrams >= after.received_bytes / largest,
        "{after:?}"
    );
}
