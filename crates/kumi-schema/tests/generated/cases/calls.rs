//! Typed clients and servers, over the runtime's in-memory transport: the same code that runs over QUIC.

use super::*;
use kumi_unison::{
    Call, CallOptions, ChannelOptions, ChannelRegistry, ChannelSource, MemoryClient, NetworkError,
    RemoteError, SchemaId, StreamItem,
};
// The schema has a message of this name.
use std::result::Result;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

type Sum = super::super::everything::Result;

/// Answers on the main channel, and notes what happens.
#[derive(Clone, Default)]
struct Main {
    calls: Arc<AtomicUsize>,
    notes: Option<mpsc::UnboundedSender<String>>,
}

impl Main {
    fn note(&self, text: impl Into<String>) {
        if let Some(notes) = &self.notes {
            // Nobody listens at the end of a test.
            let _ = notes.send(text.into());
        }
    }
}

impl MainService for Main {
    async fn echo(&self, call: Call<MainPeer>, request: Echo) -> Result<Echoed, RemoteError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        assert!(call.deadline().is_some());
        Ok(Echoed {
            lists: request.lists,
            ..Echoed::new(request.scalars)
        })
    }

    async fn grow(&self, _: Call<MainPeer>, request: Grow) -> Result<Tree, RemoteError> {
        Ok(Tree::new("new", vec![request.tree]))
    }

    async fn ping(&self, call: Call<MainPeer>, _: Ping) -> Result<(), RemoteError> {
        let sent = call.peer.send_posted(&Posted::new("server")).await;
        sent.map_err(RemoteError::from)
    }

    async fn from_room(&self, _: Call<MainPeer>, _: FromRoom) -> Result<Defaults, RemoteError> {
        Err(RemoteError::new("no-room", "there is none"))
    }

    async fn add(&self, call: Call<MainPeer>, request: Add) -> Result<Sum, RemoteError> {
        if request.terms.is_empty() {
            // Waits until the caller gives up.
            call.cancelled().cancelled().await;
            self.note("cancelled");
        }
        Ok(Sum::new(request.terms.iter().sum()))
    }

    async fn typing(&self, peer: &MainPeer, event: Typing) {
        self.note(format!("typing {}", event.on));
        let answer = Optionals {
            truth: Some(event.on),
            ..Optionals::default()
        };
        // A peer that has gone hears nothing.
        let _ = peer.send_optionals(&answer).await;
    }

    async fn channel_opened(&self, _: MainPeer) {
        self.note("opened");
    }

    async fn channel_closed(&self, _: &MainPeer) {
        self.note("closed");
    }
}

struct Nothing;
impl CallbacksService for Nothing {
    async fn start(&self, peer: &CallbacksPeer, event: Start) {
        for round in 0..event.count {
            let confirmed = peer.confirm(&Confirm::new(format!("round {round}?"))).await;
            assert_eq!(confirmed, Ok(Confirmed::new(round % 2 == 0)));
        }
        // The test waits for this.
        assert_eq!(
            peer.confirm(&Confirm::new("done?")).await,
            Ok(Confirmed::new(true))
        );
    }
}
impl PeersService for Nothing {
    async fn swap(&self, call: Call<PeersPeer>, request: Swap) -> Result<Many, RemoteError> {
        // Asks back before it answers.
        let back = Swap::new(Odd::new(format!("{} back", request.odd.r#type)));
        call.peer.swap(&back).await.map_err(RemoteError::from)
    }
}
impl TicksService for Nothing {}
impl UploadService for Nothing {}
impl OldQueryService for Nothing {
    async fn query(&self, _: Call<OldQueryPeer>, request: Query) -> Result<Found, RemoteError> {
        Ok(Found::new(vec![request.q]))
    }
}
impl OldTalkService for Nothing {
    async fn said(&self, peer: &OldTalkPeer, event: Said) {
        let _ = peer.send_heard(&Heard::new(event.text)).await;
    }
}
impl OldBothService for Nothing {}
impl UserServiceService for Nothing {
    async fn create_user(
        &self,
        _: Call<UserServicePeer>,
        request: CreateUser,
    ) -> Result<CreateUserResponse, RemoteError> {
        Ok(CreateUserResponse::new(request.name.len() as i64))
    }

    async fn count(
        &self,
        _: Call<UserServicePeer>,
        _: Count,
    ) -> Result<CountResponse, RemoteError> {
        Ok(CountResponse::new(3))
    }
}

fn server(main: Main) -> ChannelRegistry {
    let registry = ChannelRegistry::new("test", "1.0.0", "test");
    register_main(&registry, main);
    register_callbacks(&registry, Nothing);
    register_peers(&registry, Nothing);
    register_ticks(&registry, Nothing);
    register_upload(&registry, Nothing);
    register_old_query(&registry, Nothing);
    register_old_talk(&registry, Nothing);
    register_old_both(&registry, Nothing);
    register_user_service(&registry, Nothing);
    registry
}

async fn connected(main: Main) -> (MemoryClient, EverythingQuicConnection) {
    let client = MemoryClient::connect(&server(main));
    let connection = EverythingQuicConnection::build(&client)
        .await
        .expect("all channels open");
    (client, connection)
}

#[tokio::test]
async fn a_typed_call_is_answered_in_both_formats() {
    let main = Main::default();
    let (_client, connection) = connected(main.clone()).await;
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
    assert_eq!(main.calls.load(Ordering::Relaxed), 2);
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

#[tokio::test]
async fn what_breaks_the_schema_is_neither_sent_nor_handled() {
    let main = Main::default();
    let (_client, connection) = connected(main.clone()).await;
    let mut request = Echo::new(scalars());
    request.scalars.whole = 6;
    match connection.main().echo(&request).await {
        Err(NetworkError::Invalid(error)) => assert_eq!(error.path, "scalars.whole"),
        other => panic!("{other:?}"),
    }
    // A client without these checks is told by the server.
    let raw = serde_json::to_value(&request).expect("it is JSON");
    match connection.main.request("Echo", raw).await {
        Err(NetworkError::Remote(error)) => {
            assert!(
                error.message.contains("scalars.whole: it is more than 5"),
                "{error:?}"
            );
        }
        other => panic!("{other:?}"),
    }
    match connection.main.request("Unheard", json!({})).await {
        Err(NetworkError::Remote(error)) => assert_eq!(error.code, "method-not-found"),
        other => panic!("{other:?}"),
    }
    assert_eq!(main.calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_implementations_error_reaches_the_caller() {
    let (_client, connection) = connected(Main::default()).await;
    match connection.main().from_room(&FromRoom {}).await {
        Err(NetworkError::Remote(error)) => assert_eq!(
            (&*error.code, &*error.message),
            ("no-room", "there is none")
        ),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn events_come_on_streams_of_their_own() {
    let (notes, mut noted) = mpsc::unbounded_channel();
    let main = Main {
        notes: Some(notes),
        ..Main::default()
    };
    let (_client, connection) = connected(main).await;
    let client = connection.main();
    let mut streams = client.event_streams();
    assert_eq!(noted.recv().await.as_deref(), Some("opened"));
    client.send_typing(&Typing::new(true)).await.expect("sent");
    assert_eq!(noted.recv().await.as_deref(), Some("typing true"));
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
    connection.main.close().await.expect("closed");
    assert_eq!(streams.posted.next().await, None);
    assert_eq!(noted.recv().await.as_deref(), Some("typing false"));
    assert_eq!(noted.recv().await.as_deref(), Some("closed"));
}

#[tokio::test]
async fn a_stream_of_one_event_leaves_the_others_to_whoever_wants_them() {
    let (_client, connection) = connected(Main::default()).await;
    let client = connection.main();
    let mut posted = client.posted_events();
    client.send_typing(&Typing::new(true)).await.expect("sent");
    client.ping(&Ping {}).await.expect("an empty answer");
    assert_eq!(posted.next().await, Some(Ok(Posted::new("server"))));
    let other = connection.main.recv().await.expect("an event");
    assert_eq!(other.method, "Optionals");
}

#[tokio::test]
async fn dropping_a_call_tells_the_server() {
    let (notes, mut noted) = mpsc::unbounded_channel();
    let main = Main {
        notes: Some(notes),
        ..Main::default()
    };
    let (_client, connection) = connected(main).await;
    let client = connection
        .main()
        .with_options(CallOptions::new().deadline(Duration::from_millis(20)));
    assert_eq!(
        client.add(&Add::new(vec![])).await,
        Err(NetworkError::Deadline)
    );
    assert_eq!(noted.recv().await.as_deref(), Some("opened"));
    assert_eq!(noted.recv().await.as_deref(), Some("cancelled"));
    assert_eq!(
        connection.main().add(&Add::new(vec![1, 2])).await,
        Ok(Sum::new(3))
    );
}

/// Says yes to every other question, and wakes the test after the last.
struct Confirming {
    asked: Mutex<Vec<String>>,
    done: mpsc::UnboundedSender<Vec<String>>,
}

impl CallbacksClientService for Confirming {
    async fn confirm(
        &self,
        _: Call<CallbacksClient>,
        request: Confirm,
    ) -> Result<Confirmed, RemoteError> {
        let mut asked = self.asked.lock().expect("no panic");
        if request.question == "done?" {
            let _ = self.done.send(std::mem::take(&mut asked));
            return Ok(Confirmed::new(true));
        }
        asked.push(request.question);
        Ok(Confirmed::new(asked.len() % 2 == 1))
    }
}

#[tokio::test]
async fn the_server_may_ask_the_client() {
    let (_client, connection) = connected(Main::default()).await;
    let (done, mut finished) = mpsc::unbounded_channel();
    let client = connection.callbacks();
    client.serve_requests(Confirming {
        asked: Mutex::default(),
        done,
    });
    client.send_start(&Start::new(3)).await.expect("sent");
    let asked = finished.recv().await.expect("the server got through");
    assert_eq!(asked, ["round 0?", "round 1?", "round 2?"]);
}

struct Swapping;
impl PeersClientService for Swapping {
    async fn swap(&self, _: Call<PeersClient>, request: Swap) -> Result<Many, RemoteError> {
        assert_eq!(request.odd.r#type, "x back");
        Ok(Many::new(1, 2, 3, 4, 5, 6, 7, 8))
    }
}

#[tokio::test]
async fn both_sides_may_ask_at_once() {
    let (_client, connection) = connected(Main::default()).await;
    let client = connection.peers();
    client.serve_requests(Swapping);
    let many = client.swap(&Swap::new(Odd::new("x"))).await;
    assert_eq!(many, Ok(Many::new(1, 2, 3, 4, 5, 6, 7, 8)));
}

#[tokio::test]
async fn older_forms_work_like_any_other() {
    let (_client, connection) = connected(Main::default()).await;
    let talk = connection.old_talk();
    let mut heard = talk.heard_events();
    talk.send_said(&Said::new("hello")).await.expect("sent");
    assert_eq!(heard.next().await, Some(Ok(Heard::new("hello"))));
}

#[tokio::test]
async fn another_schema_of_the_same_major_version_speaks_json_only() {
    let registry = server(Main::default());
    let client = MemoryClient::connect(&registry);
    let other = ChannelOptions::new().schema(SchemaId::new([7; 32], "1.0.0"));
    let channel = client
        .open_channel("main", other)
        .await
        .expect("the same major version");
    let older = MainClient::from_channel(channel);
    assert_eq!(older.add(&Add::new(vec![1])).await, Ok(Sum::new(1)));
    let refused = older.with_binary().add(&Add::new(vec![1])).await;
    assert_eq!(refused, Err(NetworkError::TypedRefused));
    let foreign = ChannelOptions::new().schema(SchemaId::new([7; 32], "2.0.0"));
    match client.open_channel("main", foreign).await {
        Err(NetworkError::SchemaMismatch { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_connection_needs_every_channel() {
    let registry = server(Main::default());
    registry.remove_channel("ticks");
    let client = MemoryClient::connect(&registry);
    match EverythingQuicConnection::build(&client).await {
        Err(NetworkError::ChannelNotFound { name, .. }) => assert_eq!(name, "ticks"),
        other => panic!("{other:?}"),
    }
}
