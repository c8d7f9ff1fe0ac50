//! A server with every channel of the schema, and clients of it, in memory and over QUIC.

use super::*;
use kumi_unison::{
    Call, ChannelRegistry, ChannelSource, ClientOptions, ClientTls, MemoryClient, ProtocolClient,
    ProtocolServer, ReconnectPolicy, RemoteError, ServerHandle, ServerTls,
};
// The schema has a message of this name.
use std::result::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

pub(super) type Sum = everything::Result;

/// How long anything may take before a test is considered stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the server waits between two ticks.
const TICK: Duration = Duration::from_millis(5);

/// Fails a test that is stuck instead of hanging.
pub(super) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("took too long")
}

/// What is beneath the generated code.
#[derive(Clone, Copy, Debug)]
pub(super) enum Over {
    Memory,
    Quic,
}

/// Makes two tests of each case.
macro_rules! over_both {
    ($($case:ident),* $(,)?) => {
        mod memory {
            $(#[tokio::test]
            async fn $case() {
                super::within(super::$case(super::Over::Memory)).await;
            })*
        }
        mod quic {
            $(#[tokio::test]
            async fn $case() {
                super::within(super::$case(super::Over::Quic)).await;
            })*
        }
    };
}
pub(super) use over_both;

/// A server that listens, if it is to.
pub(super) struct Listening {
    pub(super) registry: ChannelRegistry,
    endpoint: Option<(ServerHandle, ServerTls)>,
}

impl Listening {
    pub(super) fn start(over: Over, server: ProtocolServer) -> Listening {
        let endpoint = match over {
            Over::Memory => None,
            Over::Quic => {
                let tls = ServerTls::development(&["localhost"]).expect("a certificate");
                let any = "127.0.0.1:0".parse().expect("an address");
                Some((server.listen(any, &tls).expect("a port"), tls))
            }
        };
        Listening {
            registry: server.registry().clone(),
            endpoint,
        }
    }

    /// A client over whatever the server is reached by.
    pub(super) async fn client(&self) -> Box<dyn ChannelSource> {
        match &self.endpoint {
            None => Box::new(MemoryClient::connect(&self.registry)),
            Some(_) => Box::new(self.quic_client().await),
        }
    }

    /// A client that loses no time between two connections.
    pub(super) async fn quic_client(&self) -> ProtocolClient {
        let (handle, tls) = self.endpoint.as_ref().expect("it listens");
        let policy = ReconnectPolicy::new()
            .first_wait(Duration::from_millis(5))
            .max_wait(Duration::from_millis(50));
        let options = ClientOptions::new().reconnect(policy);
        let pinned = ClientTls::pinned([tls.fingerprint()]).expect("a pin");
        let address = handle.local_addr().to_string();
        within(ProtocolClient::connect_with(&address, pinned, options))
            .await
            .expect("a connection")
    }
}

/// Ends the connection under a client, which makes another.
pub(super) fn lose_connection(client: &ProtocolClient) {
    client.context().expect("a connection").close();
}

/// Every channel, served and open.
pub(super) struct Lab {
    pub(super) listening: Listening,
    pub(super) house: House,
    /// What the server noted, in order.
    pub(super) noted: mpsc::UnboundedReceiver<String>,
    pub(super) connection: EverythingQuicConnection,
    _client: Box<dyn ChannelSource>,
}

impl Lab {
    pub(super) async fn start(over: Over) -> Lab {
        let (house, noted) = House::new();
        let listening = Listening::start(over, house.server());
        let client = listening.client().await;
        let connection = EverythingQuicConnection::build(&*client)
            .await
            .expect("all channels open");
        Lab {
            listening,
            house,
            noted,
            connection,
            _client: client,
        }
    }

    /// The next thing the server noted.
    pub(super) async fn note(&mut self) -> String {
        self.noted.recv().await.expect("the server lives")
    }
}

/// Answers on every channel, and notes what happens.
#[derive(Clone)]
pub(super) struct House {
    /// Requests that came to be answered.
    pub(super) echoes: Arc<AtomicUsize>,
    pub(super) sums: Arc<AtomicUsize>,
    /// A permit for each sum and each echo, where they are to wait for one.
    pub(super) gate: Arc<Semaphore>,
    notes: mpsc::UnboundedSender<String>,
}

impl House {
    pub(super) fn new() -> (House, mpsc::UnboundedReceiver<String>) {
        let (notes, noted) = mpsc::unbounded_channel();
        let house = House {
            echoes: Arc::default(),
            sums: Arc::default(),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            notes,
        };
        (house, noted)
    }

    pub(super) fn server(&self) -> ProtocolServer {
        let server = ProtocolServer::new("test", "1.0.0", "test");
        register_main(&server, self.clone());
        register_callbacks(&server, self.clone());
        register_peers(&server, self.clone());
        register_ticks(&server, self.clone());
        register_upload(&server, self.clone());
        register_old_query(&server, self.clone());
        register_old_talk(&server, self.clone());
        register_old_both(&server, self.clone());
        register_user_service(&server, self.clone());
        server
    }

    fn note(&self, text: impl Into<String>) {
        // The receiver is gone at the end of a test.
        let _ = self.notes.send(text.into());
    }

    async fn pass_gate(&self) {
        self.gate.acquire().await.expect("never closed").forget();
    }
}

impl MainService for House {
    async fn echo(&self, call: Call<MainPeer>, request: Echo) -> Result<Echoed, RemoteError> {
        self.echoes.fetch_add(1, Ordering::SeqCst);
        self.note("echo");
        assert!(call.deadline().is_some());
        self.pass_gate().await;
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
        self.sums.fetch_add(1, Ordering::SeqCst);
        self.note("add");
        if request.terms.is_empty() {
            // Waits until the caller gives up.
            call.cancelled().cancelled().await;
            self.note("cancelled");
        }
        self.pass_gate().await;
        Ok(Sum::new(request.terms.iter().sum()))
    }

    async fn typing(&self, peer: &MainPeer, event: Typing) {
        self.note(format!("typing {}", event.on));
        let answer = Optionals {
            truth: Some(event.on),
            ..Optionals::default()
        };
        // A peer that has gone receives nothing.
        let _ = peer.send_optionals(&answer).await;
    }

    async fn channel_opened(&self, _: MainPeer) {
        self.note("opened");
    }

    async fn channel_closed(&self, _: &MainPeer) {
        self.note("closed");
    }
}

impl CallbacksService for House {
    async fn start(&self, peer: &CallbacksPeer, event: Start) {
        for round in 0..event.count {
            let confirmed = peer.confirm(&Confirm::new(format!("round {round}?"))).await;
            assert_eq!(confirmed, Ok(Confirmed::new(round % 2 == 0)));
        }
        self.note("confirmed");
    }
}

impl PeersService for House {
    async fn swap(&self, call: Call<PeersPeer>, request: Swap) -> Result<Many, RemoteError> {
        // Asks back before it answers.
        let back = Swap::new(Odd::new(format!("{} back", request.odd.r#type)));
        call.peer.swap(&back).await.map_err(RemoteError::from)
    }

    async fn wave(&self, peer: &PeersPeer, _: Wave) {
        let _ = peer.send_wave(&Wave {}).await;
    }
}

impl TicksService for House {
    async fn channel_opened(&self, peer: TicksPeer) {
        let mut count = 0;
        while peer.send_tick(&Tick::new(count)).await.is_ok() {
            count += 1;
            tokio::time::sleep(TICK).await;
        }
    }
}

impl UploadService for House {
    async fn chunk(&self, _: &UploadPeer, event: Chunk) {
        self.note(format!("chunk of {}", event.bytes.len()));
    }
}

impl OldQueryService for House {
    async fn query(&self, _: Call<OldQueryPeer>, request: Query) -> Result<Found, RemoteError> {
        Ok(Found::new(vec![request.q]))
    }
}

impl OldTalkService for House {
    async fn said(&self, peer: &OldTalkPeer, event: Said) {
        let _ = peer.send_heard(&Heard::new(event.text)).await;
    }
}

impl OldBothService for House {
    async fn left(&self, peer: &OldBothPeer, _: Left) {
        let _ = peer.send_right(&Right { n: Some(1) }).await;
    }

    async fn right(&self, peer: &OldBothPeer, _: Right) {
        let _ = peer.send_left(&Left {}).await;
    }
}

impl UserServiceService for House {
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
