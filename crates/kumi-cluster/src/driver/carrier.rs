//! Brings messages to peers and takes theirs: dials when there is no connection, accepts, keeps at most
//! [`MAX_LINKS`](super::MAX_LINKS), and forgets what failed.
//!
//! It never waits for a peer on behalf of the core. A message finds a queue with room or is dropped and counted; the
//! core repeats every message that matters.

use super::clock::Clock;
use super::counters::Counters;
use super::inbound::InboundQueue;
use super::link::{
    GOSSIP_CHANNEL, HELLO_TIMEOUT, Hello, Link, PACKET_CHANNEL, Peer, Pump, Waiting,
    receive_packets,
};
use super::link_table::{LinkTable, Way};
use super::shared::MembershipRuntimeShared;
use super::transport::{Connection, Transport, leads_back};
use crate::core::{Authority, GossipOutbound, GossipTransportError, NodeIdentity, NodeStatus};
use bytes::Bytes;
use kumi_common::Chain;
use kumi_unison::{
    ChannelOptions, ChannelRegistry, ChannelSpec, ConnectionContext, Delivery, NetworkError,
    UnisonChannel,
};
use std::collections::BTreeMap;
use std::format;
use std::net::SocketAddr;
use std::string::{String, ToString};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use std::vec::Vec;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

/// How long a connection may take to come about.
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);

/// A connection that carried nothing for this long is closed.
const UNUSED: Duration = Duration::from_secs(30);

/// The receive window of the reliable channel: a snapshot of a large cluster is a few MiB.
const GOSSIP_WINDOW: (u32, u32) = (64, 8 * 1024 * 1024);

/// Everything that links need, shared by their tasks.
#[derive(Debug)]
pub(super) struct Carrier {
    transport: Arc<Transport>,
    shared: MembershipRuntimeShared,
    cluster_name: String,
    inbound: InboundQueue,
    counters: Arc<Counters>,
    links: Mutex<LinkTable>,
    /// Links that peers made, by their connection: their datagram channel has to find them.
    accepted: Mutex<BTreeMap<Uuid, Arc<Link>>>,
    tasks: TaskTracker,
    clock: Clock,
    /// Wakes the task that runs the core, because the core was changed.
    pub(super) wake: Notify,
    stop: CancellationToken,
}

/// Where channel handlers find the carrier, which is made after the server listens: only then is the port known. They
/// do not keep it, because it has the listener, which has them: nothing of a dropped node would ever go.
pub(super) type CarrierSlot = Arc<OnceLock<Weak<Carrier>>>;

/// Offers the two channels of links.
pub(super) fn register(registry: &ChannelRegistry, slot: &CarrierSlot) {
    let gossip = slot.clone();
    let spec = ChannelSpec::new(GOSSIP_CHANNEL).options(gossip_options());
    registry.register_channel_with(spec, move |context: Arc<ConnectionContext>, channel| {
        let slot = gossip.clone();
        async move {
            match slot.get().and_then(Weak::upgrade) {
                Some(carrier) => carrier.accept(context, channel).await,
                None => Err(NetworkError::Busy),
            }
        }
    });
    let packets = slot.clone();
    let spec = ChannelSpec::new(PACKET_CHANNEL)
        .delivery(Delivery::Unreliable)
        .options(packet_options());
    registry.register_channel_with(spec, move |context: Arc<ConnectionContext>, channel| {
        let slot = packets.clone();
        async move {
            match slot.get().and_then(Weak::upgrade) {
                Some(carrier) => carrier.accept_packets(&context, channel).await,
                None => Err(NetworkError::Busy),
            }
        }
    });
}

fn gossip_options() -> ChannelOptions {
    ChannelOptions::new().event_window(GOSSIP_WINDOW.0, GOSSIP_WINDOW.1)
}

fn packet_options() -> ChannelOptions {
    ChannelOptions::new().delivery(Delivery::Unreliable)
}

impl Carrier {
    pub(super) fn new(
        transport: Arc<Transport>,
        shared: MembershipRuntimeShared,
        cluster_name: String,
        inbound: InboundQueue,
        counters: Arc<Counters>,
        clock: Clock,
        stop: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            transport,
            shared,
            cluster_name,
            inbound,
            counters,
            links: Mutex::default(),
            accepted: Mutex::default(),
            tasks: TaskTracker::new(),
            clock,
            wake: Notify::new(),
            stop,
        })
    }

    /// Queues a message for a peer.
    pub(super) fn send(
        self: &Arc<Self>,
        outbound: GossipOutbound,
    ) -> Result<(), GossipTransportError> {
        let now = Instant::now();
        let way = self.link_table().way_to(&outbound.to, now);
        let link = match way {
            Way::Link(link) => link,
            Way::None => self.dial(&outbound.to, now),
            Way::TooSoon => {
                self.counters.unreachable_dropped.increment();
                return Err(GossipTransportError::Unreachable(outbound.to));
            }
        };
        if link.offer(outbound.delivery, Bytes::from_owner(outbound.bytes)) {
            return Ok(());
        }
        self.counters.outbound_dropped.increment();
        Err(GossipTransportError::QueueFull(outbound.to))
    }

    /// Lives that are over: what leads to them is closed.
    pub(super) fn forget(&self, ended: &[NodeIdentity]) {
        for identity in ended {
            let gone = self
                .link_table()
                .of_ended(&identity.authority, identity.uid);
            gone.iter().for_each(|link| link.close());
        }
    }

    /// Closes links that were not used for a while.
    pub(super) fn sweep(&self) {
        let unused = self.link_table().unused(UNUSED, Instant::now());
        self.counters.idle_closed.add(unused.len() as u64);
        unused.iter().for_each(|link| link.close());
    }

    /// Closes all links. Those that are needed are made again.
    pub(super) fn close_all(&self) {
        let links = self.link_table().drain();
        links.iter().for_each(|link| link.close());
    }

    /// Whether messages wait for connections that are there, or were begun since then.
    pub(super) fn has_unsent(&self, since: Instant) -> bool {
        self.link_table().have_unsent(since)
    }

    /// How many connections there are, those that are being made included.
    pub(super) fn connections(&self) -> usize {
        self.link_table().len()
    }

    /// Peers whose last connection attempt failed, with the error.
    pub(super) fn failures(&self) -> Vec<(Authority, String)> {
        self.link_table().failures()
    }

    /// Closes everything and waits until every task has ended.
    pub(super) async fn shut(&self) {
        self.stop.cancel();
        let links = self.link_table().drain();
        links.iter().for_each(|link| link.close());
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Runs a task that ends with the node, at most so much later.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static, grace: Duration) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let too_late = async {
                stop.cancelled().await;
                tokio::time::sleep(grace).await;
            };
            tokio::select! {
                () = task => {}
                () = too_late => {}
            }
        });
    }

    /// Begins a connection. Messages may queue up in the link at once.
    fn dial(self: &Arc<Self>, to: &Authority, now: Instant) -> Arc<Link> {
        let mut links = self.link_table();
        let (link, waiting) = Link::new(links.fresh_id(), Some(to.clone()));
        let surplus = links.insert(to, link.clone(), now);
        drop(links);
        self.evict(surplus);
        self.counters.dials.increment();
        let (carrier, to, dialled) = (self.clone(), to.clone(), link.clone());
        self.tasks.spawn(async move {
            let mut held = None;
            tokio::select! {
                () = carrier.run_dialled(&to, &dialled, waiting, &mut held) => {}
                () = dialled.closing() => {}
                () = carrier.stop.cancelled() => {}
            }
            carrier.link_table().remove(dialled.id());
            if let Some(connection) = held {
                connection.close().await;
            }
        });
        link
    }

    /// The connection is put where the caller can close it, however this ends.
    async fn run_dialled(
        &self,
        to: &Authority,
        link: &Arc<Link>,
        waiting: Waiting,
        held: &mut Option<Connection>,
    ) {
        let own = self.shared.identity();
        let known = self.known();
        let is_first_attempt = known.is_empty() && !self.link_table().has_failed(to);
        let introducing = |connection| {
            let transport = &self.transport;
            introduce(transport, connection, own.clone(), &self.cluster_name)
        };
        let connecting =
            self.transport
                .dial(&own.authority, to, &known, is_first_attempt, introducing);
        let connected = tokio::time::timeout(DIAL_TIMEOUT + HELLO_TIMEOUT, connecting).await;
        let (connection, gossip, peer) = match connected {
            Ok(Ok(Some(connected))) => connected,
            Ok(Ok(None)) => return,
            Ok(Err(error)) => {
                let error = Chain(&error).to_string();
                tracing::debug!(peer = %to, %error, "cannot connect");
                return self.dial_failed(to, error);
            }
            Err(_) => {
                tracing::debug!(peer = %to, "no connection in time");
                return self.dial_failed(to, "no answer in time".into());
            }
        };
        let Peer {
            identity: peer,
            cluster,
            head,
        } = peer;
        link.exchange_heads(&own, &self.cluster_name, head);
        link.introduce(peer.authority.clone(), peer.uid);
        self.link_table().settle(link.id(), &peer.authority);
        if let Some(other) = cluster.filter(|name| *name != self.cluster_name) {
            // The peer's core refuses these messages and reports that at the peer; here only this failure shows the cause.
            let reason = format!("it belongs to the cluster '{other}'");
            self.link_table().wrong(to, reason, Instant::now());
        }
        let packets = held
            .insert(connection)
            .open(PACKET_CHANNEL, packet_options());
        let packets = packets.await.ok();
        if let Some(packets) = &packets {
            link.add_packets(packets.clone());
        }
        let pump = self.pump(link, gossip);
        let ended = match &packets {
            Some(packets) => tokio::select! {
                ended = pump.run(waiting, || self.touch(link)) => ended,
                ended = self.packets(packets, &peer.authority, link) => ended,
            },
            None => pump.run(waiting, || self.touch(link)).await,
        };
        tracing::debug!(peer = %peer.authority, error = %ended, "a connection ended");
    }

    /// Where the members are that need not be sought. A node that is not in yet takes whomever it finds.
    fn known(&self) -> Vec<SocketAddr> {
        if self.shared.with(|runtime| runtime.status()) == Some(NodeStatus::Joining) {
            return Vec::new();
        }
        let members = self.shared.members().members;
        let addresses = members.iter().map(|member| member.authority.as_str());
        addresses.filter_map(|text| text.parse().ok()).collect()
    }

    fn dial_failed(&self, to: &Authority, reason: String) {
        self.counters.dial_failures.increment();
        self.link_table().failed(to, reason, Instant::now());
    }

    /// A peer opened the reliable channel.
    async fn accept(
        self: &Arc<Self>,
        context: Arc<ConnectionContext>,
        gossip: UnisonChannel,
    ) -> Result<(), NetworkError> {
        let introduced = tokio::select! {
            peer = Hello::receive(&gossip) => peer?,
            () = self.stop.cancelled() => return Err(NetworkError::closed()),
        };
        let Peer {
            identity: peer,
            head,
            ..
        } = introduced;
        if !self.transport.proves(Some(&context), &peer.authority) {
            tracing::warn!(peer = %peer.authority, "a peer's certificate is for another node");
            self.counters.impostors.increment();
            return Err(impostor(&peer.authority));
        }
        let own = self.shared.identity();
        let hello = Hello::of(&own, &self.cluster_name);
        if peer.authority == own.authority && peer.uid > own.uid {
            self.met(&peer);
        }
        if peer == own {
            // A seed's name led back here. The dialler sees it too, and tries the name's next address.
            return hello.send(&gossip).await;
        }
        // Before this side's hello, on which the peer opens the datagram channel and expects to be known.
        let (link, waiting) = self.take_in(&peer);
        link.exchange_heads(&own, &self.cluster_name, head);
        let _accepted = Accepted::new(self, context.connection_id, link.clone());
        let pump = self.pump(&link, gossip.clone());
        let running = async {
            match hello.send(&gossip).await {
                Ok(()) => pump.run(waiting, || self.touch(&link)).await,
                Err(error) => error,
            }
        };
        let ended = tokio::select! {
            ended = running => ended,
            () = link.closing() => NetworkError::closed(),
            () = self.stop.cancelled() => NetworkError::closed(),
        };
        tracing::debug!(peer = %peer.authority, error = %ended, "a connection ended");
        Ok(())
    }

    /// Connects to this node's own authority, to see whether a later life of it runs there, and tells the core.
    pub(super) async fn meet(&self) {
        let own = self.shared.identity();
        let introducing = |connection| {
            let transport = &self.transport;
            introduce(transport, connection, own.clone(), &self.cluster_name)
        };
        let connecting = self.transport.dial_own(&own.authority, introducing);
        let connected = tokio::time::timeout(DIAL_TIMEOUT + HELLO_TIMEOUT, connecting).await;
        let found = match connected {
            Ok(Ok((connection, _, peer))) => {
                connection.close().await;
                Some(peer.identity)
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "no other node at this node's own address");
                None
            }
            Err(_) => None,
        };
        match found.filter(|peer| peer.authority == own.authority && peer.uid > own.uid) {
            Some(peer) => self.met(&peer),
            None => {
                let node = self.shared.name_and_life(&own);
                let node = node.map_or_else(|| own.to_string(), String::from);
                tracing::warn!(%node, "other nodes report a later life of this node that does not exist");
                let now = self.clock.now();
                self.shared.with(|runtime| runtime.not_met(now));
                self.wake.notify_one();
            }
        }
    }

    /// A peer has introduced itself as a later life of this node, and its identity was checked.
    fn met(&self, peer: &NodeIdentity) {
        let now = self.clock.now();
        self.shared.with(|runtime| runtime.met(peer, now));
        self.wake.notify_one();
    }

    /// Makes a link for a peer that has introduced itself.
    fn take_in(&self, peer: &NodeIdentity) -> (Arc<Link>, Waiting) {
        self.counters.accepted.increment();
        let mut links = self.link_table();
        let (link, waiting) = Link::new(links.fresh_id(), None);
        link.introduce(peer.authority.clone(), peer.uid);
        let surplus = links.insert(&peer.authority, link.clone(), Instant::now());
        links.settle(link.id(), &peer.authority);
        drop(links);
        self.evict(surplus);
        (link, waiting)
    }

    /// A peer opened the datagram channel, on a connection that it introduced itself on before.
    async fn accept_packets(
        &self,
        context: &ConnectionContext,
        packets: UnisonChannel,
    ) -> Result<(), NetworkError> {
        let link = self.accepted().get(&context.connection_id).cloned();
        let Some(link) = link else {
            return Err(NetworkError::closed());
        };
        let Some(peer) = link.peer() else {
            return Err(NetworkError::closed());
        };
        link.add_packets(packets.clone());
        tokio::select! {
            _ = self.packets(&packets, &peer.authority, &link) => {}
            () = link.closing() => {}
            () = self.stop.cancelled() => {}
        }
        Ok(())
    }

    async fn packets(
        &self,
        packets: &UnisonChannel,
        from: &Authority,
        link: &Link,
    ) -> NetworkError {
        let touched = || self.touch(link);
        receive_packets(packets, link, from, &self.inbound, &self.counters, touched).await
    }

    fn pump(&self, link: &Arc<Link>, gossip: UnisonChannel) -> Pump {
        Pump {
            link: link.clone(),
            gossip,
            inbound: self.inbound.clone(),
            counters: self.counters.clone(),
        }
    }

    fn evict(&self, surplus: Vec<Arc<Link>>) {
        self.counters.evicted.add(surplus.len() as u64);
        surplus.iter().for_each(|link| link.close());
    }

    fn touch(&self, link: &Link) {
        self.link_table().touch(link.id(), Instant::now());
    }

    fn link_table(&self) -> MutexGuard<'_, LinkTable> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accepted(&self) -> MutexGuard<'_, BTreeMap<Uuid, Arc<Link>>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A link that a peer made, for as long as its handler runs: it is forgotten also when the handler is aborted, as when it
/// waits for the core while its connection ends.
struct Accepted<'a> {
    carrier: &'a Carrier,
    connection: Uuid,
    link: Arc<Link>,
}

impl<'a> Accepted<'a> {
    fn new(carrier: &'a Carrier, connection: Uuid, link: Arc<Link>) -> Self {
        carrier.accepted().insert(connection, link.clone());
        Self {
            carrier,
            connection,
            link,
        }
    }
}

impl Drop for Accepted<'_> {
    fn drop(&mut self) {
        self.link.close();
        let mut accepted = self.carrier.accepted();
        // A peer that opens the channel twice on one connection has replaced it.
        let is_ours = |link: &Arc<Link>| Arc::ptr_eq(link, &self.link);
        if accepted.get(&self.connection).is_some_and(is_ours) {
            accepted.remove(&self.connection);
        }
        drop(accepted);
        self.carrier.link_table().remove(self.link.id());
    }
}

/// Opens the reliable channel of a new connection and exchanges names on it. Reaching oneself is a failure, so that
/// the next address of the name is tried.
async fn introduce(
    transport: &Transport,
    connection: Connection,
    own: NodeIdentity,
    cluster: &str,
) -> Result<(Connection, UnisonChannel, Peer), NetworkError> {
    let gossip = connection.open(GOSSIP_CHANNEL, gossip_options()).await?;
    Hello::of(&own, cluster).send(&gossip).await?;
    let peer = Hello::receive(&gossip).await?;
    if peer.identity == own {
        connection.close().await;
        return Err(leads_back());
    }
    let authority = &peer.identity.authority;
    let context = connection.context();
    if !transport.proves(context.as_deref(), authority) {
        connection.close().await;
        return Err(impostor(authority));
    }
    Ok((connection, gossip, peer))
}

/// Why a peer is not let in although an authority signed its certificate.
fn impostor(authority: &Authority) -> NetworkError {
    let text = format!("the peer introduces itself as {authority}, and its certificate does not");
    NetworkError::Connect(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{
        LocalNode, MemberMetadata, MembershipRuntime, MembershipRuntimeConfig, NodeUid,
        TimerInstant,
    };
    use crate::driver::MemoryNetwork;
    use kumi_unison::{ChannelSource, MemoryClient};
    use tokio::sync::mpsc;

    fn identity(name: &str) -> NodeIdentity {
        NodeIdentity {
            authority: Authority::new(name).expect("a name"),
            uid: NodeUid::from_raw(1),
        }
    }

    fn carrier() -> Arc<Carrier> {
        let node = LocalNode {
            authority: identity("a:1").authority,
            metadata: MemberMetadata::EMPTY,
            unix_ms: 1,
            uid: None,
        };
        let config = MembershipRuntimeConfig::local();
        let now = TimerInstant::from_millis(1);
        let runtime = MembershipRuntime::new(config, node, 1, now).expect("a runtime");
        Carrier::new(
            Arc::new(Transport::memory(&MemoryNetwork::new())),
            MembershipRuntimeShared::new(runtime),
            "kumi".into(),
            InboundQueue::new().0,
            Arc::default(),
            Clock::start(),
            CancellationToken::new(),
        )
    }

    #[tokio::test]
    async fn a_link_whose_handler_is_aborted_is_forgotten() {
        let carrier = carrier();
        let registry = ChannelRegistry::new("a", "1.0.0", "test");
        let (started, mut handlers) = mpsc::unbounded_channel();
        let accepting = carrier.clone();
        let accept = move |context: Arc<ConnectionContext>, channel: UnisonChannel| {
            let (carrier, started) = (accepting.clone(), started.clone());
            async move {
                let handler = tokio::spawn(async move { carrier.accept(context, channel).await });
                let _ = started.send(handler);
                Ok(())
            }
        };
        registry.register_channel(GOSSIP_CHANNEL, accept);
        let client = MemoryClient::connect(&registry);
        let meet = async || {
            let gossip = client.open_channel(GOSSIP_CHANNEL, gossip_options()).await;
            let gossip = gossip.expect("a channel");
            let hello = Hello::of(&identity("b:1"), "kumi");
            hello.send(&gossip).await.expect("sent");
            Hello::receive(&gossip).await.expect("a hello");
            gossip
        };
        let _first = meet().await;
        let _second = meet().await;
        assert_eq!((carrier.accepted().len(), carrier.connections()), (1, 2));
        let mut abort = async || {
            let handler = handlers.recv().await.expect("a handler");
            handler.abort();
            assert!(handler.await.is_err_and(|error| error.is_cancelled()));
        };
        abort().await;
        assert_eq!((carrier.accepted().len(), carrier.connections()), (1, 1));
        abort().await;
        assert_eq!((carrier.accepted().len(), carrier.connections()), (0, 0));
    }
}
