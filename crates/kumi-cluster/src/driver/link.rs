//! One connection between two nodes, and what travels on it.
//!
//! ```text
//!   dialler                                        accepter
//!     open cluster.gossip (reliable)  ------------>
//!     hello { authority, uid, cluster } ---------->
//!                                     <------------  hello { authority, uid, cluster }
//!     open cluster.packets (datagrams) ----------->
//!     m  m  m  ...                    <----------->  both ways, on both channels
//! ```
//!
//! `m` is an envelope of the core as it is; a datagram `c` is one without its head, see [`compact`](super::compact).
//! The peer has proved that it belongs to the cluster before the first byte of this (the cluster's key, or a
//! certificate). With a key, any member may introduce itself as any other; with certificates, the authority of the hello
//! is checked, and every envelope has to be from it. Until the datagram channel is there, and whenever an envelope is
//! larger than a datagram, the reliable channel carries it.

use super::compact::Head;
use super::counters::Counters;
use super::inbound::InboundQueue;
use crate::core::wire::codec::ENVELOPE_VERSIONS;
use crate::core::{Authority, Delivery, MAX_CLUSTER_NAME_BYTES, NodeIdentity, NodeUid};
use bytes::Bytes;
use kumi_unison::{NetworkError, UnisonChannel};
use serde::{Deserialize, Serialize};
use std::string::String;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::vec::Vec;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The reliable channel's name.
pub(super) const GOSSIP_CHANNEL: &str = "cluster.gossip";
/// The datagram channel's name.
pub(super) const PACKET_CHANNEL: &str = "cluster.packets";
/// The events' names.
const HELLO: &str = "hello";
const ENVELOPE: &str = "m";
const COMPACT: &str = "c";

/// Datagrams waiting for one peer; more are dropped.
const DATAGRAM_QUEUE: usize = 256;
/// Reliable messages waiting for one peer; more are dropped, for a later comparison makes up for each.
const RELIABLE_QUEUE: usize = 32;
/// How old a datagram may become while it waits for a connection. An old heartbeat proves nothing.
const STALE: Duration = Duration::from_secs(2);
/// How long the other side may take to introduce itself.
pub(super) const HELLO_TIMEOUT: Duration = Duration::from_secs(3);

/// The first message of a connection: the identity of the node.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    authority: String,
    uid: u64,
    /// Sent so that a node with a wrong name learns why it gets no answer. Whether a peer is refused is the core's decision, from
    /// the name in every envelope.
    #[serde(default)]
    cluster: String,
    /// The version bytes of this node's envelopes, from a node that reads and writes compact ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    envelopes: Option<Vec<u8>>,
}

/// The peer at the other end, as it introduced itself.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) identity: NodeIdentity,
    /// Its cluster's name, if it is one that can be shown.
    pub(super) cluster: Option<String>,
    /// What its envelopes begin with, if it reads and writes compact ones.
    pub(super) head: Option<Head>,
}

impl Hello {
    pub(super) fn of(identity: &NodeIdentity, cluster: &str) -> Self {
        Self {
            authority: identity.authority.as_str().into(),
            uid: identity.uid.raw(),
            cluster: cluster.into(),
            envelopes: Some(ENVELOPE_VERSIONS.into()),
        }
    }

    pub(super) async fn send(&self, gossip: &UnisonChannel) -> Result<(), NetworkError> {
        gossip.send_event_json(HELLO, self).await
    }

    /// The peer's hello.
    pub(super) async fn receive(gossip: &UnisonChannel) -> Result<Peer, NetworkError> {
        let first = tokio::time::timeout(HELLO_TIMEOUT, gossip.recv()).await;
        let first = first.map_err(|_| NetworkError::deadline())??;
        let hello: Option<Hello> = match first.method == HELLO {
            true => serde_json::from_slice(&first.payload).ok(),
            false => None,
        };
        let peer = hello.and_then(|hello| {
            let authority = Authority::new(&hello.authority).ok()?;
            let uid = NodeUid::from_raw(hello.uid);
            let shown = hello.cluster.bytes().all(|byte| byte.is_ascii_graphic());
            let named = (1..=MAX_CLUSTER_NAME_BYTES).contains(&hello.cluster.len());
            let identity = NodeIdentity { authority, uid };
            let cluster = Some(hello.cluster).filter(|_| shown && named);
            // Versions of another form are those of a node that this one cannot read compact envelopes from.
            let versions = hello
                .envelopes
                .and_then(|versions| versions.try_into().ok());
            let head = versions.zip(cluster.as_deref());
            Some(Peer {
                head: head.map(|(versions, cluster)| Head::new(versions, cluster, &identity)),
                identity,
                cluster,
            })
        });
        peer.ok_or_else(|| NetworkError::Codec("the peer did not introduce itself".into()))
    }
}

/// The sending side of a link, connected or being connected. Its other half is [`Pump`].
#[derive(Debug)]
pub(super) struct Link {
    id: u64,
    /// What was dialled; `None` for a link that the peer made.
    dialled: Option<Authority>,
    begun: Instant,
    peer: OnceLock<NodeIdentity>,
    packets: OnceLock<UnisonChannel>,
    /// What envelopes of this node and of the peer begin with; set when both sides take compact ones.
    heads: OnceLock<(Head, Head)>,
    datagrams: mpsc::Sender<(Instant, Bytes)>,
    reliable: mpsc::Sender<Bytes>,
    /// Messages that were taken and that the channels do not have yet.
    unsent: AtomicUsize,
    stop: CancellationToken,
}

/// What waits to be sent on a link.
#[derive(Debug)]
pub(super) struct Waiting {
    datagrams: mpsc::Receiver<(Instant, Bytes)>,
    reliable: mpsc::Receiver<Bytes>,
}

impl Link {
    pub(super) fn new(id: u64, dialled: Option<Authority>) -> (Arc<Self>, Waiting) {
        let (datagrams, waiting_datagrams) = mpsc::channel(DATAGRAM_QUEUE);
        let (reliable, waiting_reliable) = mpsc::channel(RELIABLE_QUEUE);
        let link = Self {
            id,
            dialled,
            begun: Instant::now(),
            peer: OnceLock::new(),
            packets: OnceLock::new(),
            heads: OnceLock::new(),
            datagrams,
            reliable,
            unsent: AtomicUsize::new(0),
            stop: CancellationToken::new(),
        };
        let waiting = Waiting {
            datagrams: waiting_datagrams,
            reliable: waiting_reliable,
        };
        (Arc::new(link), waiting)
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// What was dialled, unless the peer made this link.
    pub(super) fn dialled(&self) -> Option<&Authority> {
        self.dialled.as_ref()
    }

    /// Notes the identity of the peer, from its hello.
    pub(super) fn introduce(&self, authority: Authority, uid: NodeUid) {
        let _ = self.peer.set(NodeIdentity { authority, uid });
    }

    /// Datagrams may be compact from now on, if the peer's hello has a head for them. The datagram channel opens only
    /// after both hellos have arrived, so the peer knows this node's head by then.
    pub(super) fn exchange_heads(&self, own: &NodeIdentity, cluster: &str, peer: Option<Head>) {
        if let Some(peer) = peer {
            let own = Head::new(ENVELOPE_VERSIONS, cluster, own);
            let _ = self.heads.set((own, peer));
        }
    }

    /// An envelope as it travels in a datagram: the event's name, and the bytes.
    fn datagram(&self, envelope: &Bytes) -> (&'static str, Bytes) {
        let compact = self.heads.get().and_then(|(own, _)| own.strip(envelope));
        match compact {
            Some(compact) => (COMPACT, compact),
            None => (ENVELOPE, envelope.clone()),
        }
    }

    /// The envelope of a datagram that arrived, if it is one.
    fn envelope(&self, name: &str, bytes: Bytes) -> Option<Bytes> {
        match name {
            ENVELOPE => Some(bytes),
            COMPACT => self.heads.get()?.1.restore(&bytes),
            _ => None,
        }
    }

    /// The datagram channel is there.
    pub(super) fn add_packets(&self, packets: UnisonChannel) {
        let _ = self.packets.set(packets);
    }

    /// Whether this name means the peer of this link.
    pub(super) fn is_of(&self, name: &Authority) -> bool {
        let peer = self.peer.get().map(|identity| &identity.authority);
        self.dialled.as_ref() == Some(name) || peer == Some(name)
    }

    /// Which life of the peer this link leads to, once it is known.
    pub(super) fn uid(&self) -> Option<NodeUid> {
        self.peer.get().map(|identity| identity.uid)
    }

    pub(super) fn peer(&self) -> Option<&NodeIdentity> {
        self.peer.get()
    }

    /// Puts a message into its queue; whether there was room.
    pub(super) fn offer(&self, delivery: Delivery, bytes: Bytes) -> bool {
        // Counted first, so that it cannot be sent before it is counted.
        self.unsent.fetch_add(1, Ordering::Relaxed);
        let taken = match delivery {
            Delivery::Datagram => self.datagrams.try_send((Instant::now(), bytes)).is_ok(),
            Delivery::Reliable => self.reliable.try_send(bytes).is_ok(),
        };
        if !taken {
            self.settled();
        }
        taken
    }

    /// Whether messages wait here that may still go out: for a connection that is there, or was begun since then.
    pub(super) fn has_unsent(&self, since: Instant) -> bool {
        let has_hope = self.peer.get().is_some() || self.begun >= since;
        has_hope && self.unsent.load(Ordering::Relaxed) > 0
    }

    /// A message was sent or dropped.
    fn settled(&self) {
        self.unsent.fetch_sub(1, Ordering::Relaxed);
    }

    /// Asks the link to end. Its task closes the connection.
    pub(super) fn close(&self) {
        self.stop.cancel();
    }

    /// Resolves when the link has been asked to end.
    pub(super) async fn closing(&self) {
        self.stop.cancelled().await;
    }
}

/// Moves messages between a link's queues and its channels until one of them ends.
pub(super) struct Pump {
    pub(super) link: Arc<Link>,
    pub(super) gossip: UnisonChannel,
    pub(super) inbound: InboundQueue,
    pub(super) counters: Arc<Counters>,
}

impl Pump {
    /// Ends when a channel fails or the peer closes it. Cancelling it drops what is queued, and is how a link ends.
    pub(super) async fn run(&self, waiting: Waiting, touched: impl Fn()) -> NetworkError {
        let Waiting {
            datagrams,
            reliable,
        } = waiting;
        let failed = tokio::try_join!(
            self.send_reliable(reliable),
            self.send_datagrams(datagrams),
            self.receive(touched),
        );
        failed.err().unwrap_or(NetworkError::closed())
    }

    async fn send_reliable(&self, mut waiting: mpsc::Receiver<Bytes>) -> Result<(), NetworkError> {
        while let Some(bytes) = waiting.recv().await {
            self.gossip.send_event_bytes(ENVELOPE, bytes).await?;
            self.counters.reliable_sent.increment();
            self.link.settled();
        }
        Ok(())
    }

    async fn send_datagrams(
        &self,
        mut waiting: mpsc::Receiver<(Instant, Bytes)>,
    ) -> Result<(), NetworkError> {
        while let Some((since, bytes)) = waiting.recv().await {
            if since.elapsed() > STALE {
                self.counters.stale_dropped.increment();
                self.link.settled();
                continue;
            }
            if let Some(packets) = self.link.packets.get() {
                let (name, datagram) = self.link.datagram(&bytes);
                match packets.send_event_bytes(name, datagram).await {
                    Ok(()) => {
                        self.counters.datagrams_sent.increment();
                        self.link.settled();
                        continue;
                    }
                    Err(NetworkError::FrameTooLarge { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            // Not sent here: the heartbeats behind it would wait for what the reliable channel is busy with.
            match self.link.reliable.try_send(bytes) {
                Ok(()) => self.counters.fallbacks.increment(),
                Err(_) => {
                    self.counters.outbound_dropped.increment();
                    self.link.settled();
                }
            }
        }
        Ok(())
    }

    async fn receive(&self, touched: impl Fn()) -> Result<(), NetworkError> {
        let Some(peer) = self.link.peer() else {
            return Ok(());
        };
        loop {
            let message = self.gossip.recv().await?;
            touched();
            if message.method == ENVELOPE {
                self.counters.received.increment();
                // The queue is closed once the node has stopped.
                if !self.inbound.push(&peer.authority, message.payload).await {
                    return Err(NetworkError::closed());
                }
            }
        }
    }
}

/// Reads a datagram channel until it ends. What the core cannot take at once is dropped, as the network would.
pub(super) async fn receive_packets(
    packets: &UnisonChannel,
    link: &Link,
    from: &Authority,
    inbound: &InboundQueue,
    counters: &Counters,
    touched: impl Fn(),
) -> NetworkError {
    loop {
        let message = match packets.recv().await {
            Ok(message) => message,
            Err(error) => return error,
        };
        if let Some(envelope) = link.envelope(&message.method, message.payload) {
            touched();
            counters.received.increment();
            if !inbound.try_push(from, envelope) {
                counters.inbound_dropped.increment();
            }
        }
    }
}
