//! Typed calls, in both directions.

use super::lab::{House, Lab, Listening, Over, Sum, over_both, within};
use super::*;
use kumi_unison::driver::OWN_STREAM_BYTES;
use kumi_unison::{
    Call, CallOptions, ChannelOptions, IncomingRequest, NetworkError, Payload, ProtocolServer,
    RemoteError, ServiceHandler,
};
// The schema has a message of this name.
use std::result::Result;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

over_both!(
    a_typed_call_is_answered_in_both_formats,
    what_breaks_the_schema_is_neither_sent_nor_handled,
    an_implementations_error_reaches_the_caller,
    giving_up_on_a_call_tells_the_server,
    a_large_call_takes_a_stream_of_its_own_and_opens_no_channel,
    the_server_may_ask_the_client,
    both_sides_may_ask_at_once,
    a_connection_needs_every_channel,
    a_connection_that_is_closed_ends_its_calls_as_lost,
);

async fn a_typed_call_is_answered_in_both_formats(over: Over) {
    let lab = Lab::start(over).await;
    let connection = &lab.connection;
    let request = Echo {
        lists: Some(lists()),
        ..Echo::new(scalars())
    };
    for client in [connection.main(), connection.main().with_binary()] {
        let echoed = client.echo(&request).await.expect("an echo");
        assert_eq!(
            (&echoed.scalars, &echoed.lists),
            (&request.scalars, &request.lists)
        );
        let grown = client.grow(&Grow::new(tree())).await.expect("a tree");
        assert_eq!(grown.children, [tree()]);
    }
    assert_eq!(lab.house.echoes.load(Ordering::SeqCst), 2);
    assert_eq!(
        connection.old_query().query(&Query::new("x")).await,
        Ok(Found::new(vec!["x".into()]))
    );
    assert_eq!(
        connection
            .user_service()
            .create_user(&CreateUser::new("ann"))
            .await,
        Ok(CreateUserResponse::new(3))
    );
    assert_eq!(
        connection.user_service().count(&Count {}).await,
        Ok(CountResponse::new(3))
    );
}

async fn what_breaks_the_schema_is_neither_sent_nor_handled(over: Over) {
    let lab = Lab::start(over).await;
    let mut request = Echo::new(scalars());
    request.scalars.whole = 6;
    match lab.connection.main().echo(&request).await {
        Err(NetworkError::Invalid(error)) => assert_eq!(error.path, "scalars.whole"),
        other => panic!("{other:?}"),
    }
    // A client without these checks gets the server's error.
    let main = &lab.connection.main;
    let raw = serde_json::to_value(&request).expect("it is JSON");
    match main.request("Echo", raw).await {
        Err(NetworkError::Remote(error)) => {
            assert!(
                error.message.contains("scalars.whole: it is more than 5"),
                "{error:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    match main.request("Unheard", json!({})).await {
        Err(NetworkError::Remote(error)) => assert_eq!(error.code, "method-not-found"),
        other => panic!("{other:?}"),
    }
    assert_eq!(lab.house.echoes.load(Ordering::SeqCst), 0);
}

async fn an_implementations_error_reaches_the_caller(over: Over) {
    let lab = Lab::start(over).await;
    match lab.connection.main().from_room(&FromRoom {}).await {
        Err(NetworkError::Remote(error)) => assert_eq!(
            (&*error.code, &*error.message),
            ("no-room", "there is none")
        ),
        other => panic!("{other:?}"),
    }
}

async fn giving_up_on_a_call_tells_the_server(over: Over) {
    let mut lab = Lab::start(over).await;
    let main = lab.connection.main();
    let hurried = main
        .clone()
        .with_options(CallOptions::new().deadline(Duration::from_millis(20)));
    let late = hurried.add(&Add::new(vec![])).await;
    assert!(
        matches!(late, Err(NetworkError::Deadline { .. })),
        "{late:?}"
    );
    assert_eq!(lab.note().await, "opened");
    assert_eq!(lab.note().await, "add");
    assert_eq!(lab.note().await, "cancelled");
    // Dropping the future is another way to give up.
    let call = tokio::spawn({
        let main = main.clone();
        async move { main.add(&Add::new(vec![])).await }
    });
    assert_eq!(lab.note().await, "add");
    call.abort();
    assert_eq!(lab.note().await, "cancelled");
    assert_eq!(main.add(&Add::new(vec![1, 2])).await, Ok(Sum::new(3)));
}

async fn a_large_call_takes_a_stream_of_its_own_and_opens_no_channel(over: Over) {
    let mut lab = Lab::start(over).await;
    assert_eq!(lab.note().await, "opened");
    let main = lab.connection.main();
    let terms = vec![1; OWN_STREAM_BYTES / 2];
    let sum = main.add(&Add::new(terms.clone())).await;
    assert_eq!(sum, Ok(Sum::new(terms.len() as i64)));
    let apart = main
        .clone()
        .with_binary()
        .with_options(CallOptions::new().own_stream(true));
    assert_eq!(apart.add(&Add::new(vec![1, 2])).await, Ok(Sum::new(3)));
    // The last thing heard shows that nothing else was noted before it.
    main.send_typing(&Typing::new(true)).await.expect("sent");
    for expected in ["add", "add", "typing true"] {
        assert_eq!(lab.note().await, expected);
    }
}

/// Says yes to every other question.
struct Confirming(Mutex<Vec<String>>);

impl CallbacksClientService for Confirming {
    async fn confirm(
        &self,
        _: Call<CallbacksClient>,
        request: Confirm,
    ) -> Result<Confirmed, RemoteError> {
        let mut asked = self.0.lock().expect("no panic");
        assert_eq!(request.question, format!("round {}?", asked.len()));
        asked.push(request.question);
        Ok(Confirmed::new(asked.len() % 2 == 1))
    }
}

async fn the_server_may_ask_the_client(over: Over) {
    let mut lab = Lab::start(over).await;
    assert_eq!(lab.note().await, "opened");
    let client = lab.connection.callbacks();
    client.serve_requests(Confirming(Mutex::default()));
    client.send_start(&Start::new(3)).await.expect("sent");
    assert_eq!(lab.note().await, "confirmed");
}

struct Swapping;

impl PeersClientService for Swapping {
    async fn swap(&self, _: Call<PeersClient>, request: Swap) -> Result<Many, RemoteError> {
        assert_eq!(request.odd.r#type, "x back");
        Ok(Many::new(1, 2, 3, 4, 5, 6, 7, 8))
    }
}

async fn both_sides_may_ask_at_once(over: Over) {
    let lab = Lab::start(over).await;
    let client = lab.connection.peers();
    client.serve_requests(Swapping);
    let many = client.swap(&Swap::new(Odd::new("x"))).await;
    assert_eq!(many, Ok(Many::new(1, 2, 3, 4, 5, 6, 7, 8)));
}

async fn a_connection_needs_every_channel(over: Over) {
    let (house, _noted) = House::new();
    let listening = Listening::start(over, house.server());
    listening.registry.remove_channel("ticks");
    let client = listening.client().await;
    match EverythingQuicConnection::build(&*client).await {
        Err(NetworkError::ChannelNotFound { name, available }) => {
            assert_eq!(name, "ticks");
            assert!(available.contains(&"main".to_owned()), "{available:?}");
        }
        other => panic!("{other:?}"),
    }
}

async fn a_connection_that_is_closed_ends_its_calls_as_lost(over: Over) {
    let (asked, mut requests) = tokio::sync::mpsc::unbounded_channel();
    let server = ProtocolServer::new("test", "1.0.0", "test");
    let service = move |request: IncomingRequest| {
        // The test reads them all.
        let _ = asked.send(request.channel().clone());
        let cancelled = request.cancelled();
        async move {
            cancelled.cancelled().await;
            Ok::<_, RemoteError>(Payload::bytes(&b""[..]))
        }
    };
    server.register_channel("hold", ServiceHandler::new(service));
    let listening = Listening::start(over, server);
    for closed_here in [true, false] {
        let client = listening.client().await;
        let opened = client.open_channel("hold", ChannelOptions::new()).await;
        let channel = opened.expect("it opens");
        let context = channel.context();
        let calls = [OWN_STREAM_BYTES, 8].map(|bytes| {
            let channel = channel.clone();
            tokio::spawn(async move { channel.request_bytes("m", vec![7; bytes]).await })
        });
        let mut far = requests.recv().await.expect("a request");
        far = requests.recv().await.unwrap_or(far);
        match closed_here {
            true => context.close(),
            false => far.context().close(),
        }
        let lost = |error: &NetworkError| matches!(error, NetworkError::ConnectionLost { .. });
        for call in calls {
            let error = call.await.expect("no panic").expect_err("no answer");
            assert!(lost(&error) && !error.is_not_executed(), "{error:?}");
        }
        let ended = [channel.closed().await, far.closed().await];
        assert!(ended.iter().all(lost), "{ended:?}");
    }
}
