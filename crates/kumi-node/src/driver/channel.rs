//! The channel `kumi.node` on the membership port: the node's status for every holder of the cluster's key, orders for the
//! operator, and a stream of changes. `schema/node.kdl` defines it.
//!
//! A connection has the rights of the operator once it has shown the operator's key. Whoever holds the cluster's key can derive
//! it: it limits people, not nodes. Somebody with the operator's key alone connects as a guest, for whom this is the only channel
//! of the port. With certificates of the operator's own there is no such key: a connection has the rights if its certificate has
//! the role, as for `cluster.admin`.

/// What `build.rs` wrote.
mod protocol {
    include!(concat!(env!("OUT_DIR"), "/node.rs"));
}

pub use protocol::{
    Attention as ChangedAttention, Change, Changed, Drain, Drained, KumiNodeClient,
    KumiNodeEventStreams, NodeDocument, Operate, Status, Stop, StoreUse, StoreUsed, Undrain,
};

use super::keys::Keys;
use super::lives::Lives;
use super::status::Collector;
use super::store_link::StoreLink;
use crate::core::status::{Attention, MAX_STATUS_BYTES, STATUS_FORMAT, Severity};
use kumi_unison::{Call, ChannelRegistry, ChannelSource, NetworkError, RemoteError, Timestamp};
use protocol::{KumiNodePeer, KumiNodeService};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio::time::sleep;

/// Changes that a slow client may be behind; it misses the oldest then.
const MAX_BEHIND: usize = 64;

/// How often it is looked for changes while a client has the channel open.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Characters of a text that a change carries.
const MAX_CHARS: usize = 1_000;

/// The name of the channel.
pub const CHANNEL: &str = "kumi.node";

/// The error of what only the operator may ask.
const FORBIDDEN: &str = "forbidden";

/// The URI of an operator's certificate.
const OPERATOR_ROLE: &str = "kumi-role:operator";

/// Announces changes of a node. Clones announce to the same clients.
#[derive(Clone, Debug)]
pub(crate) struct Changes(broadcast::Sender<Change>);

impl Changes {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(MAX_BEHIND))
    }

    pub(crate) fn tell(&self, change: Change) {
        // Without a client nobody needs it.
        let _ = self.0.send(change);
    }

    /// Looks for changes of attention and of the store, for as long as it is polled. Without clients it does nothing.
    pub(crate) async fn look(self, collector: Collector, link: StoreLink) {
        let mut before: Vec<Attention> = Vec::new();
        let mut was_up = link.reach().is_up;
        loop {
            sleep(LOOK_EVERY).await;
            if self.0.receiver_count() == 0 {
                continue;
            }
            let now = collector.collect().await.status.attention.clone();
            let is_among = |one: &Attention, list: &[Attention]| {
                let mut list = list.iter();
                list.any(|other| other.kind == one.kind && other.subject == one.subject)
            };
            for one in now.iter().filter(|one| !is_among(one, &before)) {
                self.tell(Change::AttentionRaised(shown(one)));
            }
            for one in before.iter().filter(|one| !is_among(one, &now)) {
                self.tell(Change::AttentionCleared(shown(one)));
            }
            before = now;
            let reach = link.reach();
            if reach.is_up != was_up {
                was_up = reach.is_up;
                let address = reach.route.map(|route| route.address.clone());
                let address = cut(&address.unwrap_or_default());
                self.tell(match was_up {
                    true => Change::StoreUp(address),
                    false => Change::StoreAway(address),
                });
            }
        }
    }
}

/// Opens the channel over a connection to a node.
///
/// # Errors
/// If the connection has ended, or the node does not offer the channel.
pub async fn open(connection: &impl ChannelSource) -> Result<KumiNodeClient, NetworkError> {
    let options = protocol::kumi_node_options();
    let channel = connection.open_channel(CHANNEL, options).await?;
    Ok(KumiNodeClient::from_channel(channel))
}

/// What the channel of a node needs.
pub(crate) struct NodeService {
    pub(crate) collector: Collector,
    pub(crate) link: StoreLink,
    pub(crate) keys: Keys,
    pub(crate) lives: Lives,
    pub(crate) changes: Changes,
    /// The grace of a stop that the operator asked for.
    pub(crate) stop: watch::Sender<Option<Duration>>,
    /// Connections that have shown the operator's key.
    pub(crate) operators: Arc<Mutex<BTreeSet<u128>>>,
}

impl NodeService {
    /// Offers the channel.
    pub(crate) fn register(self, registry: &ChannelRegistry) {
        protocol::register_kumi_node(registry, self);
    }

    fn check(&self, call: &Call<KumiNodePeer>) -> Result<(), RemoteError> {
        let (is_operator, needed) = match self.keys.now().trust {
            Some(_) => (
                self.operators().contains(&connection(&call.peer)),
                "show the operator's key (kumi key operator) first",
            ),
            None => (
                has_role(&call.peer),
                "the certificate needs the URI kumi-role:operator",
            ),
        };
        let words = || format!("only the operator may ask that: {needed}");
        is_operator
            .then_some(())
            .ok_or_else(|| RemoteError::new(FORBIDDEN, words()))
    }

    fn operators(&self) -> std::sync::MutexGuard<'_, BTreeSet<u128>> {
        self.operators
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn set_draining(&self, is_draining: bool) {
        self.lives.drain(is_draining);
        tracing::info!(
            is_draining,
            "the operator decided whether this node takes tasks"
        );
        self.changes.tell(Change::Draining(is_draining));
    }
}

impl KumiNodeService for NodeService {
    async fn status(
        &self,
        _call: Call<KumiNodePeer>,
        _request: Status,
    ) -> Result<NodeDocument, RemoteError> {
        let collected = self.collector.collect().await;
        let json = serde_json::to_string(&collected.status);
        match json {
            Ok(json) if json.len() <= MAX_STATUS_BYTES => {
                Ok(NodeDocument::new(i64::from(STATUS_FORMAT), json))
            }
            _ => Err(RemoteError::internal()),
        }
    }

    async fn operate(&self, call: Call<KumiNodePeer>, request: Operate) -> Result<(), RemoteError> {
        let keys = self.keys.now();
        let Some(trust) = &keys.trust else {
            return Err(RemoteError::new(
                FORBIDDEN,
                "this cluster has certificates of its own, and no operator's key: the certificate needs the URI kumi-role:operator",
            ));
        };
        if !trust.is_operator_key(request.key.as_bytes()) {
            tracing::warn!("a client showed a key that is not the operator's");
            return Err(RemoteError::new(
                FORBIDDEN,
                "this is not the operator's key of this cluster (kumi key operator prints it)",
            ));
        }
        self.operators().insert(connection(&call.peer));
        Ok(())
    }

    async fn drain(
        &self,
        call: Call<KumiNodePeer>,
        _request: Drain,
    ) -> Result<Drained, RemoteError> {
        self.check(&call)?;
        self.set_draining(true);
        let running = self.collector.running_tasks();
        Ok(Drained::new(i64::try_from(running).unwrap_or(i64::MAX)))
    }

    async fn undrain(
        &self,
        call: Call<KumiNodePeer>,
        _request: Undrain,
    ) -> Result<(), RemoteError> {
        self.check(&call)?;
        self.set_draining(false);
        Ok(())
    }

    async fn stop(&self, call: Call<KumiNodePeer>, request: Stop) -> Result<(), RemoteError> {
        self.check(&call)?;
        let grace = u64::try_from(request.grace_ms).unwrap_or_default();
        tracing::info!(grace_ms = grace, "the operator stops this node");
        self.changes
            .tell(Change::Stopping("the operator stops this node".into()));
        self.stop.send_replace(Some(Duration::from_millis(grace)));
        Ok(())
    }

    async fn store_use(
        &self,
        call: Call<KumiNodePeer>,
        request: StoreUse,
    ) -> Result<StoreUsed, RemoteError> {
        self.check(&call)?;
        let id = request.id.parse();
        let id = id.map_err(|error| RemoteError::invalid(format!("{}: {error}", request.id)))?;
        match self.link.use_store(id).await {
            Some(pinned) => {
                self.changes.tell(Change::StorePinned(pinned.to_string()));
                Ok(StoreUsed::new(pinned.to_string()))
            }
            None => Err(RemoteError::new(
                "outside",
                "this node uses a store outside of the cluster: change its configuration instead",
            )),
        }
    }

    async fn channel_opened(&self, peer: KumiNodePeer) {
        let mut changes = self.changes.0.subscribe();
        loop {
            let change = match changes.recv().await {
                Ok(change) => change,
                // The client asks for the status again.
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            let changed = Changed::new(Timestamp::now(), change);
            if peer.send_changed(&changed).await.is_err() {
                return;
            }
        }
    }

    async fn channel_closed(&self, peer: &KumiNodePeer) {
        self.operators().remove(&connection(peer));
    }
}

/// Whether the peer's certificate has the role of an operator.
fn has_role(peer: &KumiNodePeer) -> bool {
    let uris = peer.raw_channel().context().peer_uris();
    uris.iter().any(|uri| uri == OPERATOR_ROLE)
}

fn connection(peer: &KumiNodePeer) -> u128 {
    peer.raw_channel().context().connection_id.as_u128()
}

fn shown(attention: &Attention) -> ChangedAttention {
    let severity = match attention.severity {
        Severity::Red => protocol::Severity::Red,
        Severity::Yellow => protocol::Severity::Yellow,
    };
    let kind = serde_json::to_value(attention.kind);
    let kind = kind.ok().and_then(|kind| Some(kind.as_str()?.to_owned()));
    ChangedAttention::new(
        severity,
        kind.unwrap_or_else(|| "other".into()),
        cut(&attention.subject),
        cut(&attention.words),
    )
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}
