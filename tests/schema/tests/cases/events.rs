//! Typed events: streams of them, both ways, reliable and not.

use super::lab::{House, Lab, Listening, Over, over_both, within};
use super::*;
use kumi_unison::{ChannelDirection, Delivery, Lifetime, NetworkError, StreamItem};

over_both!(
    events_come_on_streams_of_their_own,
    a_stream_of_one_event_leaves_the_others_to_other_readers,
    a_stream_of_one_event_is_not_held_up_by_the_others,
    events_of_a_client_reach_its_server,
    unreliable_events_come_and_nothing_can_be_asked,
    older_forms_work_like_any_other,
    a_server_says_what_the_schema_says,
    a_client_that_reads_no_events_is_answered_all_the_same,
    a_connection_outlives_the_client_that_built_it,
);

async fn events_come_on_streams_of_their_own(over: Over) {
    let mut lab = Lab::start(over).await;
    let client = lab.connection.main();
    let mut streams = client.event_streams();
    assert_eq!(lab.note().await, "opened");
    client.send_typing(&Typing::new(true)).await.expect("sent");
    assert_eq!(lab.note().await, "typing true");
    let optionals = streams
        .optionals
        .next()
        .await
        .expect("open")
        .expect("sound");
    assert_eq!(optionals.truth, Some(true));
    client.ping(&Ping {}).await.expect("an empty answer");
    client.ping(&Ping {}).await.expect("an empty answer");
    assert_eq!(streams.posted.next().await, Some(Ok(Posted::new("server"))));
    assert_eq!(
        streams.posted.recv().await,
        Ok(StreamItem::Event(Posted::new("server")))
    );
    // The binary format, and a stream in the sense of futures.
    client
        .clone()
        .with_binary()
        .send_typing(&Typing::new(false))
        .await
        .expect("sent");
    let optionals = futures_util::StreamExt::next(&mut streams.optionals)
        .await
        .expect("open")
        .expect("sound");
    assert_eq!(optionals.truth, Some(false));
    lab.connection.main.close().await.expect("closed");
    assert_eq!(streams.posted.next().await, None);
    assert_eq!(lab.note().await, "typing false");
    assert_eq!(lab.note().await, "closed");
}

async fn a_stream_of_one_event_leaves_the_others_to_other_readers(over: Over) {
    let lab = Lab::start(over).await;
    let client = lab.connection.main();
    let mut posted = client.posted_events();
    client.send_typing(&Typing::new(true)).await.expect("sent");
    client.ping(&Ping {}).await.expect("an empty answer");
    assert_eq!(posted.next().await, Some(Ok(Posted::new("server"))));
    let other = lab.connection.main.recv().await.expect("an event");
    assert_eq!(other.method, "Optionals");
}

/// Every ping makes an event that no task takes, more of them than both windows hold.
async fn a_stream_of_one_event_is_not_held_up_by_the_others(over: Over) {
    let lab = Lab::start(over).await;
    let client = lab.connection.main();
    let mut optionals = client.optionals_events();
    for _ in 0..700 {
        client.ping(&Ping {}).await.expect("an empty answer");
    }
    client.send_typing(&Typing::new(true)).await.expect("sent");
    let event = optionals.next().await.expect("open").expect("sound");
    assert_eq!(event.truth, Some(true));
    // A receiver that asks late gets the newest.
    let mut posted = client.posted_events();
    for _ in 0..100 {
        assert_eq!(posted.next().await, Some(Ok(Posted::new("server"))));
    }
}

async fn events_of_a_client_reach_its_server(over: Over) {
    let mut lab = Lab::start(over).await;
    assert_eq!(lab.note().await, "opened");
    let upload = lab.connection.upload();
    for length in [0, 3, 100_000] {
        let chunk = Chunk::new(vec![7; length]);
        upload.send_chunk(&chunk).await.expect("sent");
        assert_eq!(lab.note().await, format!("chunk of {length}"));
    }
    let binary = upload.with_binary();
    let chunk = Chunk::new(vec![7; 5]);
    binary.send_chunk(&chunk).await.expect("sent");
    assert_eq!(lab.note().await, "chunk of 5");
    let mut waves = lab.connection.peers().wave_events();
    let peers = lab.connection.peers();
    peers.send_wave(&Wave {}).await.expect("sent");
    assert_eq!(waves.next().await, Some(Ok(Wave {})));
}

async fn unreliable_events_come_and_nothing_can_be_asked(over: Over) {
    let lab = Lab::start(over).await;
    let mut ticks = lab.connection.ticks().tick_events();
    let first = ticks.next().await.expect("open").expect("sound");
    let second = ticks.next().await.expect("open").expect("sound");
    assert_ne!(first, second);
    // Only on a channel of datagrams is this refused without a word to the server.
    let asked = lab.connection.ticks.request("Tick", json!({})).await;
    assert_eq!(asked, Err(NetworkError::Unreliable));
}

async fn older_forms_work_like_any_other(over: Over) {
    let lab = Lab::start(over).await;
    let talk = lab.connection.old_talk();
    let mut heard = talk.heard_events();
    talk.send_said(&Said::new("hello")).await.expect("sent");
    assert_eq!(heard.next().await, Some(Ok(Heard::new("hello"))));
    let both = lab.connection.old_both();
    let mut streams = both.event_streams();
    both.send_left(&Left {}).await.expect("sent");
    assert_eq!(streams.right.next().await, Some(Ok(Right { n: Some(1) })));
    both.send_right(&Right::default()).await.expect("sent");
    assert_eq!(streams.left.next().await, Some(Ok(Left {})));
}

async fn a_server_says_what_the_schema_says(over: Over) {
    let lab = Lab::start(over).await;
    let identity = lab.listening.client().await.identity();
    let info = |name: &str| {
        let mut channels = identity.channels.iter();
        channels
            .find(|channel| channel.name == name)
            .unwrap_or_else(|| panic!("{name} is not offered: {identity:?}"))
    };
    let facts = |name: &str| {
        let info = info(name);
        (info.direction, info.lifetime, info.delivery)
    };
    assert_eq!(
        facts("ticks"),
        (
            ChannelDirection::ServerToClient,
            Lifetime::Persistent,
            Delivery::Unreliable
        )
    );
    assert_eq!(
        facts("peers"),
        (
            ChannelDirection::Bidirectional,
            Lifetime::Transient,
            Delivery::Reliable
        )
    );
    assert_eq!(facts("main").0, ChannelDirection::ClientToServer);
    let schema = info("main").schema.clone().expect("it has a schema");
    assert_eq!(
        (schema.hash, &*schema.version),
        (MAIN_CHANNEL_HASH, EVERYTHING_PROTOCOL_VERSION)
    );
    assert_eq!(identity.channels.len(), 9);
}

/// Every ping makes an event. Events beyond the room of both sides are dropped and do not delay other calls.
async fn a_client_that_reads_no_events_is_answered_all_the_same(over: Over) {
    let lab = Lab::start(over).await;
    let client = lab.connection.main();
    for _ in 0..700 {
        client.ping(&Ping {}).await.expect("an empty answer");
    }
}

async fn a_connection_outlives_the_client_that_built_it(over: Over) {
    let (house, _noted) = House::new();
    let listening = Listening::start(over, house.server());
    let client = listening.client().await;
    let connection = EverythingQuicConnection::build(&*client)
        .await
        .expect("all channels open");
    drop(client);
    for _ in 0..3 {
        connection.main().ping(&Ping {}).await.expect("an answer");
    }
}
