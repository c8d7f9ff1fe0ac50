//! Channels of the program on the node's port: which member has opened one, and connections to members by name.
//!
//! ```text
//!   caller                                          member
//!     open cluster.peer                 ----------->
//!     hello { authority, uid, name, cluster } ----->  checked against the peer's certificate, if there is one
//!                                       <-----------  hello { authority, uid, name, cluster }
//!     open the program's channels       ----------->  NodeChannels::peer gives the caller's name and life
//! ```
//!
//! Such a connection is apart from the links of membership, so it neither uses up their number nor waits for their traffic.
//! Any holder of the key or of a certificate may open the program's channels without the hello; it has no identity then.

use super::counters::Counters;
use super::error::DriverError;
use super::link::HELLO_TIMEOUT;
use super::shared::MembershipRuntimeShared;
use super::transport::{Connection, Transport};
use crate::core::{Authority, Member, NameAndLife, NodeIdentity, NodeName, NodeStatus, NodeUid};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kumi_unison::{
    ChannelOptions, ChannelRegistry, ChannelSource, ConnectionContext, NetworkError,
    ServerIdentity, UnisonChannel,
};
use serde::{Deserialize, Serialize};
use std::borrow::ToOwned;
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The channel on which a caller introduces itself.
pub(super) const PEER_CHANNEL: &str = "cluster.peer";
const HELLO: &str = "hello";

/// How long connecting to a member and the hello may take together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(6);

/// A member, or an observer, at the other end of a connection, in the life in which it made or accepted the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Its address and uid.
    pub identity: NodeIdentity,
    /// Its name and life, `name~life`.
    pub name_and_life: NameAndLife,
}

type PeerTable = Arc<Mutex<BTreeMap<Uuid, Peer>>>;

/// Channels that a node offers on its port, beside its own. Clones are the same channels.
///
/// The names that begin with `cluster.` are the node's. One registry serves one running node.
///
/// ```
/// use kumi_cluster::NodeChannels;
/// use kumi_unison::{ChannelRegistry, ConnectionContext, UnisonChannel};
/// use std::sync::Arc;
///
/// let channels = NodeChannels::from(ChannelRegistry::new("my-program", "1.0.0", "default"));
/// let peers = channels.clone();
/// channels.registry().register_channel("whoami", move |context: Arc<ConnectionContext>, channel: UnisonChannel| {
///     let peer = peers.peer(&context);
///     async move {
///         let name = peer.map_or("no member".into(), |peer| peer.name_and_life.to_string());
///         channel.send_event_json("you", &name).await?;
///         channel.closed().await; // the channel closes when the handler returns
///         Ok(())
///     }
/// });
/// assert!(channels.registry().channel_info("whoami").is_some());
/// ```
#[derive(Clone, Debug)]
pub struct NodeChannels {
    registry: ChannelRegistry,
    peers: PeerTable,
}

impl From<ChannelRegistry> for NodeChannels {
    fn from(registry: ChannelRegistry) -> Self {
        Self {
            registry,
            peers: Arc::default(),
        }
    }
}

impl NodeChannels {
    /// The registry, to add channels to. They may also be added while the node runs.
    pub fn registry(&self) -> &ChannelRegistry {
        &self.registry
    }

    /// The node at the other end of a connection that it made with [`ClusterNode::connect`](super::ClusterNode::connect). `None`
    /// for a client that did not introduce itself, as a program with the cluster's key. With certificates the authority is
    /// proved, with a shared key any holder of the key may claim any.
    pub fn peer(&self, context: &ConnectionContext) -> Option<Peer> {
        lock(&self.peers).get(&context.connection_id).cloned()
    }

    /// How many connections have an identity.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        lock(&self.peers).len()
    }
}

/// The channels of the node in a registry, for as long as the node runs.
#[derive(Debug)]
pub(super) struct Offered {
    registry: ChannelRegistry,
    names: &'static [&'static str],
}

impl Offered {
    /// Checks that no other node has its channels in this registry.
    pub(super) fn new(
        registry: &ChannelRegistry,
        names: &'static [&'static str],
    ) -> Result<Self, DriverError> {
        let mut taken = names.iter();
        if let Some(name) = taken.find(|name| registry.channel_info(name).is_some()) {
            return Err(DriverError::ChannelTaken((*name).to_owned()));
        }
        let registry = registry.clone();
        Ok(Self { registry, names })
    }

    /// Closes the connections that others have made, whatever channels they have open.
    pub(super) fn close_connections(&self) {
        self.registry.close_connections();
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        for name in self.names {
            self.registry.remove_channel(name);
        }
    }
}

/// Why there is no connection to a member.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// No active member has that name, as far as this node knows.
    #[error("no member is called {0}")]
    NotAMember(NodeName),
    /// The name is this node's own.
    #[error("{0} is this node itself")]
    Itself(NodeName),
    /// The member cannot be reached, or did not introduce itself.
    #[error("cannot connect to {name} at {authority}")]
    Connect {
        /// The member.
        name: NodeName,
        /// The address that was tried.
        authority: Authority,
        /// What happened.
        #[source]
        source: NetworkError,
    },
    /// Another node answers at the member's address.
    #[error("{found} answers at the address of {name}")]
    Another {
        /// The member.
        name: NodeName,
        /// The node that answered.
        found: NameAndLife,
    },
}

/// A connection to a member, for channels of the program. Dropping it closes it and its channels.
///
/// It has the lives that both nodes had when it was made. A node that takes a new life makes new connections.
#[derive(Debug)]
pub struct PeerConnection {
    connection: Connection,
    /// While it is open, the member knows who this node is.
    _hello: UnisonChannel,
    peer: Peer,
}

impl PeerConnection {
    /// The member at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Closes the connection, and waits until that is sent.
    pub async fn close(self) {
        self.connection.close().await;
    }
}

impl ChannelSource for PeerConnection {
    fn open_channel(
        &self,
        name: &str,
        options: ChannelOptions,
    ) -> BoxFuture<'_, Result<UnisonChannel, NetworkError>> {
        let name = name.to_owned();
        async move { self.connection.open(&name, options).await }.boxed()
    }

    fn identity(&self) -> ServerIdentity {
        self.connection.identity()
    }
}

/// The first message of a connection for channels of the program.
#[derive(Debug, Serialize, Deserialize)]
struct PeerHello {
    authority: String,
    uid: u64,
    name: String,
    cluster: String,
}

/// Introduces this node to members and takes their introductions.
#[derive(Debug)]
pub(super) struct Peers {
    transport: Arc<Transport>,
    shared: MembershipRuntimeShared,
    cluster_name: String,
    name: NodeName,
    table: PeerTable,
    counters: Arc<Counters>,
    stop: CancellationToken,
}

/// Where the channel's handler finds the node, which is made after the server listens.
pub(super) type PeersSlot = Arc<OnceLock<Weak<Peers>>>;

/// Offers the channel on which callers introduce themselves.
pub(super) fn register(registry: &ChannelRegistry, slot: &PeersSlot) {
    let slot = slot.clone();
    let accept = move |context: Arc<ConnectionContext>, channel: UnisonChannel| {
        let slot = slot.clone();
        async move {
            match slot.get().and_then(Weak::upgrade) {
                Some(peers) => peers.accept(&context, &channel).await,
                None => Err(NetworkError::Busy),
            }
        }
    };
    registry.register_channel(PEER_CHANNEL, accept);
}

impl Peers {
    pub(super) fn new(
        transport: Arc<Transport>,
        shared: MembershipRuntimeShared,
        cluster_name: String,
        name: NodeName,
        channels: &NodeChannels,
        counters: Arc<Counters>,
        stop: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            transport,
            shared,
            cluster_name,
            name,
            table: channels.peers.clone(),
            counters,
            stop,
        })
    }

    /// Runs the channel of one caller: it has an identity while this runs.
    async fn accept(
        &self,
        context: &ConnectionContext,
        channel: &UnisonChannel,
    ) -> Result<(), NetworkError> {
        let peer = tokio::select! {
            peer = self.receive(channel) => peer?,
            () = self.stop.cancelled() => return Err(NetworkError::closed()),
        };
        let authority = &peer.identity.authority;
        if !self.transport.proves(Some(context), authority) {
            tracing::warn!(peer = %authority, "a peer's certificate is for another node");
            self.counters.impostors.increment();
            return Err(wrong_certificate(authority));
        }
        let _known = Known::new(&self.table, context.connection_id, peer);
        self.hello().send(channel).await?;
        tokio::select! {
            // Nothing more is sent on it, so it ends with the connection.
            () = async { while channel.recv().await.is_ok() {} } => {}
            () = self.stop.cancelled() => {}
        }
        Ok(())
    }

    /// Connects to a member by its name.
    pub(super) async fn connect(&self, name: &NodeName) -> Result<PeerConnection, PeerError> {
        if *name == self.name {
            return Err(PeerError::Itself(name.clone()));
        }
        let members = self.shared.members().members;
        let named = members.iter().filter(|member| has_name(member, name));
        // A member that has crashed may be listed until it is declared dead; its restart has a later life.
        let later = named.max_by_key(|member| (member.status == NodeStatus::Up, member.uid));
        let Some(member) = later else {
            return Err(PeerError::NotAMember(name.clone()));
        };
        let to = &member.authority;
        let own = self.shared.identity().authority;
        let introducing = |connection| self.introduce(connection);
        let connecting = self.transport.dial(&own, to, &[], false, introducing);
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, connecting).await;
        let connected = match connected {
            Ok(Ok(Some(connected))) => Ok(connected),
            Ok(Ok(None)) => Err(NetworkError::closed()),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(NetworkError::deadline()),
        };
        let (connection, hello, peer) = connected.map_err(|source| PeerError::Connect {
            name: name.clone(),
            authority: to.clone(),
            source,
        })?;
        if peer.name_and_life.name() != name.as_str() {
            connection.close().await;
            let (name, found) = (name.clone(), peer.name_and_life);
            return Err(PeerError::Another { name, found });
        }
        Ok(PeerConnection {
            connection,
            _hello: hello,
            peer,
        })
    }

    async fn introduce(
        &self,
        connection: Connection,
    ) -> Result<(Connection, UnisonChannel, Peer), NetworkError> {
        let channel = connection.open(PEER_CHANNEL, ChannelOptions::new()).await?;
        self.hello().send(&channel).await?;
        let peer = self.receive(&channel).await?;
        let context = connection.context();
        let authority = &peer.identity.authority;
        if !self.transport.proves(context.as_deref(), authority) {
            let error = wrong_certificate(authority);
            connection.close().await;
            return Err(error);
        }
        Ok((connection, channel, peer))
    }

    fn hello(&self) -> PeerHello {
        let own = self.shared.identity();
        PeerHello {
            authority: own.authority.as_str().into(),
            uid: own.uid.raw(),
            name: self.name.as_str().into(),
            cluster: self.cluster_name.clone(),
        }
    }

    /// The introduction of the other side.
    async fn receive(&self, channel: &UnisonChannel) -> Result<Peer, NetworkError> {
        let first = tokio::time::timeout(HELLO_TIMEOUT, channel.recv()).await;
        let first = first.map_err(|_| NetworkError::deadline())??;
        let hello: Option<PeerHello> = match first.method == HELLO {
            true => serde_json::from_slice(&first.payload).ok(),
            false => None,
        };
        let hello = hello.ok_or_else(not_introduced)?;
        if hello.cluster != self.cluster_name {
            return Err(NetworkError::Connect(
                "the peer belongs to another cluster".into(),
            ));
        }
        let authority = Authority::new(&hello.authority).map_err(|_| not_introduced())?;
        let name = NodeName::new(&hello.name).map_err(|_| not_introduced())?;
        let uid = NodeUid::from_raw(hello.uid);
        Ok(Peer {
            identity: NodeIdentity { authority, uid },
            name_and_life: name.with_life(uid),
        })
    }
}

impl PeerHello {
    async fn send(&self, channel: &UnisonChannel) -> Result<(), NetworkError> {
        channel.send_event_json(HELLO, self).await
    }
}

/// A caller's entry in the table, which is removed when its channel ends.
struct Known<'a> {
    table: &'a PeerTable,
    connection: Uuid,
}

impl<'a> Known<'a> {
    fn new(table: &'a PeerTable, connection: Uuid, peer: Peer) -> Self {
        lock(table).insert(connection, peer);
        Self { table, connection }
    }
}

impl Drop for Known<'_> {
    fn drop(&mut self) {
        lock(self.table).remove(&self.connection);
    }
}

fn has_name(member: &Member, name: &NodeName) -> bool {
    member.metadata.name().as_ref() == Some(name)
}

fn not_introduced() -> NetworkError {
    NetworkError::Codec("the peer did not introduce itself".into())
}

fn wrong_certificate(authority: &Authority) -> NetworkError {
    let text = format!("the peer introduces itself as {authority}, and its certificate does not");
    NetworkError::Connect(text)
}

fn lock(table: &PeerTable) -> MutexGuard<'_, BTreeMap<Uuid, Peer>> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
