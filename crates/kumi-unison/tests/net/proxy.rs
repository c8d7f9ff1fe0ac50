//! A bad network in user space: forwards UDP between a client and a server, and loses, delays and reorders on the way.
//!
//! It draws from a seeded generator, so that a run can be repeated as far as the scheduler allows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// What happens to datagrams, in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    /// The share that is lost.
    pub(crate) loss: f64,
    /// The share that is held back for a while and so overtaken.
    pub(crate) reorder: f64,
    /// Datagrams with more bytes are lost.
    pub(crate) mtu: usize,
    /// Everything is lost.
    pub(crate) cut: bool,
    /// Everything the server sends is lost.
    pub(crate) deaf: bool,
    /// Everything the server sends is lost but retries.
    pub(crate) retries_only: bool,
}

impl Default for Conditions {
    fn default() -> Conditions {
        Conditions {
            loss: 0.0,
            reorder: 0.0,
            mtu: usize::MAX,
            cut: false,
            deaf: false,
            retries_only: false,
        }
    }
}

/// How long a datagram that is overtaken waits at most.
const HELD_BACK: Duration = Duration::from_millis(8);

/// A running proxy; it ends when this is dropped.
pub(crate) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    conditions: Mutex<Conditions>,
    server: Mutex<SocketAddr>,
    /// Asks for a new address towards the server.
    migrate: Notify,
    counts: Mutex<Counts>,
}

/// What the proxy did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) forwarded: u64,
    pub(crate) lost: u64,
    pub(crate) held_back: u64,
    pub(crate) too_large: u64,
}

impl Proxy {
    /// Forwards from a port of its own to the server.
    pub(crate) async fn start(server: SocketAddr, seed: u64) -> Proxy {
        let front = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = front.local_addr().unwrap();
        let shared = Arc::new(Shared {
            conditions: Mutex::new(Conditions::default()),
            server: Mutex::new(server),
            migrate: Notify::new(),
            counts: Mutex::new(Counts::default()),
        });
        let task = tokio::spawn(run(front, shared.clone(), seed));
        Proxy {
            address,
            shared,
            task,
        }
    }

    /// Where the client connects.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set(&self, conditions: Conditions) {
        *self.shared.conditions.lock().unwrap() = conditions;
    }

    /// From now on another server answers, as when one was started anew.
    pub(crate) fn retarget(&self, server: SocketAddr) {
        *self.shared.server.lock().unwrap() = server;
        self.migrate();
    }

    /// From now on the server sees the client at another address.
    pub(crate) fn migrate(&self) {
        self.shared.migrate.notify_one();
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.shared.counts.lock().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    until: Instant,
    to_server: bool,
    bytes: Vec<u8>,
}

async fn run(front: UdpSocket, shared: Arc<Shared>, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut back = connected(&shared).await;
    let mut client = None;
    let mut held: BinaryHeap<Reverse<Held>> = BinaryHeap::new();
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        let next = held.peek().map(|Reverse(held)| held.until);
        let (to_server, bytes) = tokio::select! {
            () = shared.migrate.notified() => {
                back = connected(&shared).await;
                continue;
            }
            () = async { tokio::time::sleep_until(next.unwrap_or_else(Instant::now)).await }, if next.is_some() => {
                if let Some(Reverse(due)) = held.pop() {
                    forward(&front, &back, client, due.to_server, &due.bytes).await;
                }
                continue;
            }
            received = front.recv_from(&mut from_client) => match received {
                // A client asks from another socket whether the port is closed.
                Ok((0, _)) => continue,
                Ok((length, from)) => {
                    client = Some(from);
                    (true, &from_client[..length])
                }
                Err(_) => continue,
            },
            received = back.recv(&mut from_server) => match received {
                Ok(length) => (false, &from_server[..length]),
                // A server that is not there answers with an ICMP message, which is an error here.
                Err(_) => {
                    tokio::task::yield_now().await;
                    continue;
                }
            },
        };
        let conditions = shared.conditions.lock().unwrap().clone();
        let mut counts = *shared.counts.lock().unwrap();
        let is_unheard = conditions.deaf || conditions.retries_only && !is_retry(bytes);
        if conditions.cut || (is_unheard && !to_server) || random.f64() < conditions.loss {
            counts.lost += 1;
        } else if bytes.len() > conditions.mtu {
            counts.too_large += 1;
        } else if random.f64() < conditions.reorder {
            counts.held_back += 1;
            held.push(Reverse(Held {
                until: Instant::now() + HELD_BACK.mul_f64(random.f64()),
                to_server,
                bytes: bytes.to_vec(),
            }));
        } else {
            counts.forwarded += 1;
            forward(&front, &back, client, to_server, bytes).await;
        }
        *shared.counts.lock().unwrap() = counts;
    }
}

/// Whether a datagram begins with a long header of the type Retry, QUIC version 1.
fn is_retry(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0xf0 == 0xf0)
}

async fn connected(shared: &Shared) -> UdpSocket {
    let server = *shared.server.lock().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server).await.unwrap();
    socket
}

/// What cannot be delivered is lost, as on any network.
async fn forward(
    front: &UdpSocket,
    back: &UdpSocket,
    client: Option<SocketAddr>,
    to_server: bool,
    bytes: &[u8],
) {
    let _: io::Result<usize> = match (to_server, client) {
        (true, _) => back.send(bytes).await,
        (false, Some(client)) => front.send_to(bytes, client).await,
        (false, None) => Ok(0),
    };
}
