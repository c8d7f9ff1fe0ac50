//! Generated code when the connection under it breaks and another is made.

use super::lab::{House, Lab, Listening, Over, Sum, lose_connection, within};
use super::*;
use kumi_unison::{Call, CallOptions, NetworkError, ProtocolClient, RemoteError, StreamItem};
// The schema has a message of this name.
use std::result::Result;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc;

/// As `Lab`, with a client whose connection can be lost.
struct Breakable {
    house: House,
    noted: mpsc::UnboundedReceiver<String>,
    client: ProtocolClient,
    connection: EverythingQuicConnection,
    _listening: Listening,
}

impl Breakable {
    async fn start() -> Breakable {
        let (house, noted) = House::new();
        let listening = Listening::start(Over::Quic, house.server());
        let client = listening.quic_client().await;
        let connection = EverythingQuicConnection::build(&client)
            .await
            .expect("all channels open");
        let mut breakable = Breakable {
            house,
            noted,
            client,
            connection,
            _listening: listening,
        };
        assert_eq!(breakable.note().await, "opened");
        breakable
    }

    async fn note(&mut self) -> String {
        within(self.noted.recv()).await.expect("the server lives")
    }
}

#[tokio::test]
async fn event_streams_go_on_and_say_that_something_may_be_missing() {
    let mut lab = Breakable::start().await;
    let main = lab.connection.main();
    let mut streams = main.event_streams();
    within(main.ping(&Ping {})).await.expect("an answer");
    assert_eq!(
        within(streams.posted.recv()).await,
        Ok(StreamItem::Event(Posted::new("server")))
    );
    lose_connection(&lab.client);
    // Every stream of the channel gets the loss, and then goes on.
    assert_eq!(within(streams.posted.recv()).await, Ok(StreamItem::Resumed));
    assert_eq!(
        within(streams.optionals.recv()).await,
        Ok(StreamItem::Resumed)
    );
    within(main.ping(&Ping {})).await.expect("an answer");
    assert_eq!(
        within(streams.posted.recv()).await,
        Ok(StreamItem::Event(Posted::new("server")))
    );
    // The server sees one client leave and another come, in either order.
    let mut notes = [lab.note().await, lab.note().await];
    notes.sort();
    assert_eq!(notes, ["closed", "opened"]);
    // Who asks for events only is not bothered. A request that may be repeated finds its way whatever happens.
    lose_connection(&lab.client);
    let echoed = within(main.echo(&Echo::new(scalars()))).await;
    assert_eq!(echoed, Ok(Echoed::new(scalars())));
    within(main.ping(&Ping {})).await.expect("an answer");
    assert_eq!(
        within(streams.posted.next()).await,
        Some(Ok(Posted::new("server")))
    );
}

#[tokio::test]
async fn only_what_the_schema_calls_idempotent_is_asked_again() {
    let mut lab = Breakable::start().await;
    lab.house.gate.forget_permits(usize::MAX);
    let main = lab.connection.main();
    let add = |main: MainClient| async move { main.add(&Add::new(vec![1])).await };
    let echo = |main: MainClient| async move { main.echo(&Echo::new(scalars())).await };
    // On a stream of their own the same holds.
    let apart = main
        .clone()
        .with_options(CallOptions::new().own_stream(true));
    let once = [
        tokio::spawn(add(main.clone())),
        tokio::spawn(add(apart.clone())),
    ];
    let again = [
        tokio::spawn(echo(main.clone())),
        tokio::spawn(echo(apart.clone().with_binary())),
    ];
    let mut begun: Vec<String> = Vec::new();
    for _ in 0..4 {
        begun.push(lab.note().await);
    }
    begun.sort();
    assert_eq!(begun, ["add", "add", "echo", "echo"]);
    lose_connection(&lab.client);
    for call in once {
        let lost = within(call).await.expect("no panic");
        let may_have_run = matches!(
            lost,
            Err(NetworkError::ConnectionLost {
                maybe_executed: true,
                ..
            })
        );
        assert!(may_have_run, "{lost:?}");
    }
    lab.house.gate.add_permits(100);
    for call in again {
        let echoed = within(call).await.expect("no panic").expect("an echo");
        assert_eq!(echoed.scalars, scalars());
    }
    assert_eq!(lab.house.sums.load(Ordering::SeqCst), 2, "never again");
    assert_eq!(lab.house.echoes.load(Ordering::SeqCst), 4, "each again");
    assert_eq!(within(add(main)).await, Ok(Sum::new(1)));
}

#[tokio::test]
async fn a_caller_may_call_idempotent_what_the_schema_does_not() {
    let mut lab = Breakable::start().await;
    lab.house.gate.forget_permits(usize::MAX);
    let options = CallOptions::new().idempotent(true);
    let main = lab.connection.main().with_options(options);
    let call = tokio::spawn(async move { main.add(&Add::new(vec![1])).await });
    assert_eq!(lab.note().await, "add");
    lose_connection(&lab.client);
    // The main channel of the old connection closes at a time of its own.
    while lab.note().await != "add" {}
    lab.house.gate.add_permits(100);
    assert_eq!(within(call).await.expect("no panic"), Ok(Sum::new(1)));
    assert_eq!(lab.house.sums.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_transient_channel_ends_and_the_others_stay() {
    let lab = Breakable::start().await;
    let mut waves = lab.connection.peers().wave_events();
    lose_connection(&lab.client);
    match within(waves.next()).await {
        Some(Err(NetworkError::ConnectionLost { .. })) => {}
        other => panic!("{other:?}"),
    }
    match within(lab.connection.peers().send_wave(&Wave {})).await {
        Err(NetworkError::ConnectionLost { .. }) => {}
        other => panic!("{other:?}"),
    }
    let echoed = within(lab.connection.main().echo(&Echo::new(scalars()))).await;
    assert_eq!(echoed, Ok(Echoed::new(scalars())));
    let sum = within(lab.connection.main().add(&Add::new(vec![1, 2]))).await;
    assert_eq!(sum, Ok(Sum::new(3)));
}

struct Yes;

impl CallbacksClientService for Yes {
    async fn confirm(
        &self,
        _: Call<CallbacksClient>,
        _: Confirm,
    ) -> Result<Confirmed, RemoteError> {
        Ok(Confirmed::new(true))
    }
}

#[tokio::test]
async fn a_client_goes_on_answering_its_server() {
    let mut lab = Breakable::start().await;
    let callbacks = lab.connection.callbacks();
    callbacks.serve_requests(Yes);
    within(callbacks.send_start(&Start::new(1)))
        .await
        .expect("sent");
    assert_eq!(lab.note().await, "confirmed");
    lose_connection(&lab.client);
    let resumed = within(lab.connection.callbacks.recv()).await;
    assert!(resumed.expect("open").is_resumed());
    within(callbacks.send_start(&Start::new(1)))
        .await
        .expect("sent");
    loop {
        // The main channel of the old connection closes at a time of its own.
        match &*lab.note().await {
            "confirmed" => break,
            "opened" | "closed" => {}
            other => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn unreliable_events_go_on() {
    let lab = Breakable::start().await;
    let mut ticks = lab.connection.ticks().tick_events();
    within(ticks.next()).await.expect("open").expect("sound");
    lose_connection(&lab.client);
    let mut resumed = false;
    for _ in 0..1000 {
        match within(ticks.recv()).await.expect("open") {
            StreamItem::Resumed => resumed = true,
            _ if resumed => return,
            _ => {}
        }
    }
    panic!("no tick came after the connection was made again");
}

#[tokio::test]
async fn one_client_holds_one_connection_for_all_its_channels() {
    let lab = Lab::start(Over::Quic).await;
    let connection = &lab.connection;
    let ids = [
        &connection.main,
        &connection.callbacks,
        &connection.ticks,
        &connection.user_service,
    ]
    .map(|channel| channel.context().connection_id);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}
