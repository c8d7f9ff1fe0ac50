//! [`Node`]: one node, with all that its configuration says, started and stopped as a whole.
//!
//! ```text
//! start    state directory and keys, HTTP, store, join, workers        builder.rs, ground.rs, start.rs, work.rs
//! stop     workers drain, the node leaves, HTTP, store                 here
//! reload   another configuration or key while the node runs            reload.rs, work.rs
//! ```
//! No end of membership stops the store. Nothing here handles signals, prints, ends the process or changes its directory.

mod builder;
mod error;
mod ground;
mod listen;
mod reload;
mod start;
mod work;

pub use builder::Builder;
pub use error::NodeError;

use crate::config::{Cron, NodeConfig};
use crate::core::status::NodeStatus;
use crate::driver::certificate::NodeCertificate;
use crate::driver::keys::Keys;
use crate::driver::lives::Lives;
use crate::driver::queues::StoreQueues;
use crate::driver::releaser::RunningReleaser;
use crate::driver::route::StoreRoute;
use crate::driver::state_dir::{StateDir, StateLock};
use crate::driver::status::{Collector, NodeSource, Phase};
use crate::driver::store::OwnStore;
use crate::driver::store_link::StoreLink;
use crate::driver::tasks::Failures;
use crate::http::{HostNames, HttpServer, Readiness, Source};
use kumi_cluster::{ClusterNode, DriverError, MembershipSnapshot};
use kumi_common::NameAndLife;
use kumi_jobs::{ClusterId, Jobs};
use kumi_muf::Muf;
use kumi_server::{ServerError, ServerHandle};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use work::Work;

/// How often a part that others still look at is waited for before it is stopped, and how long each time.
const LOOKS: usize = 200;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// How long workers and units may take to end when the node's own store has ended before.
const WITHOUT_STORE: Duration = Duration::from_secs(2);

/// A running node. [`shutdown`](Self::shutdown) stops it in order; dropping it ends it like a crash, but for its store, which
/// is stopped and waited for.
///
/// ```
/// use kumi_node::Node;
/// use kumi_node::config::{StoreHere, StoreSection};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
/// let mut store = StoreHere::default();
/// store.directives.insert("port".into(), port.to_string());
/// let node = Node::builder()
///     .name("a")
///     .state_dir(directory.path())
///     .store(StoreSection::Here(store))
///     .ports(0, 0)
///     .serve("text.upper", |request: kumi_muf::Request| async move {
///         Ok::<_, kumi_muf::Error>(request.text()?.to_uppercase())
///     })
///     .start()
///     .await?;
/// node.ready().await;
/// let answer = node.muf().await?.request("text.upper", "hello").await?;
/// assert_eq!(answer.text()?, "HELLO");
/// assert_eq!(node.members().members.len(), 1);
/// node.shutdown().await?;
/// # Ok(())
/// # }
/// ```
pub struct Node {
    name: NameAndLife,
    advertised: Option<String>,
    notes: Vec<String>,
    state: StateDir,
    keys: Keys,
    link: StoreLink,
    queues: StoreQueues,
    collector: Collector,
    source: Arc<NodeSource>,
    lives: Lives,
    phase: watch::Sender<Phase>,
    stop: watch::Receiver<Option<Duration>>,
    failures: Failures,
    /// The unit of the node, and the route that it is connected by.
    muf: Mutex<Option<(Arc<StoreRoute>, Muf)>>,
    changeable: Changeable,
    running: Running,
    /// Dropped last: the store is in the directory.
    _lock: StateLock,
}

/// What a reload changes.
struct Changeable {
    /// What of its configuration is in force.
    config: Mutex<NodeConfig>,
    schedules: watch::Sender<Vec<Cron>>,
    /// The names that HTTP answers to, and the one that is always among them.
    hosts: HostNames,
    own_host: Option<String>,
    certificate: NodeCertificate,
    /// The program around the node handed the key over, so there is no file of it.
    has_given_key: bool,
    /// The clusters of the keys that were in use before, while a reload has not done all that follows from other keys.
    replaced_keys: Mutex<BTreeSet<ClusterId>>,
    work: Mutex<Work>,
    releaser: Mutex<Arc<RunningReleaser>>,
    /// The same, for status.
    shown_releaser: watch::Sender<Weak<RunningReleaser>>,
}

/// The parts of a node that have to be stopped.
struct Running {
    cluster: Arc<ClusterNode>,
    http: Option<HttpServer>,
    /// What follows membership, store and clock.
    background: JoinSet<()>,
    store: Option<OwnStore>,
}

impl Node {
    /// A node with the defaults of `kumi up`: a store, membership and HTTP on loopback.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// The name and the life in which it started.
    #[must_use]
    pub fn name(&self) -> &NameAndLife {
        &self.name
    }

    /// What a person should be told about the start: a replaced port, a chosen address, seeds that do not answer.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Its state directory.
    #[must_use]
    pub fn state_dir(&self) -> &Path {
        self.state.path()
    }

    /// The members that it knows.
    #[must_use]
    pub fn members(&self) -> MembershipSnapshot {
        self.running.cluster.members()
    }

    /// Where membership listens.
    #[must_use]
    pub fn membership_address(&self) -> Option<SocketAddr> {
        self.running.cluster.local_addr()
    }

    /// Where other machines reach its membership, `host:port`; none for a node on loopback.
    #[must_use]
    pub fn advertised(&self) -> Option<String> {
        self.advertised.clone()
    }

    /// Where HTTP listens.
    #[must_use]
    pub fn http_addresses(&self) -> &[SocketAddr] {
        let http = self.running.http.as_ref();
        http.map_or(&[], HttpServer::addresses)
    }

    /// Membership itself, for programs that need more of it.
    #[must_use]
    pub fn cluster(&self) -> &ClusterNode {
        &self.running.cluster
    }

    /// The URL of the store for programs of the team, as kumi-app; none before a store is known.
    #[must_use]
    pub fn store_url(&self) -> Option<String> {
        let route = self.link.choice().route?;
        Some(route.app_url.to_string())
    }

    /// The operator's key; none with certificates of the operator's own.
    #[must_use]
    pub fn operator_key(&self) -> Option<crate::trust::Secret> {
        let keys = self.keys.now();
        let trust = keys.trust.as_deref();
        trust.map(|trust| trust.operator_key().clone())
    }

    /// The node's unit, whose name is the node's. Waits for a store that replies.
    ///
    /// # Errors
    /// If the unit cannot be connected.
    pub async fn muf(&self) -> Result<Muf, NodeError> {
        let route = self.link.up().await;
        let mut kept = self.muf.lock().await;
        if let Some((at, muf)) = &*kept
            && *at == route
        {
            return Ok(muf.clone());
        }
        let unit = Muf::builder(&route.url, self.name.name());
        let muf = unit.version(kumi_store::KUMI_VERSION).connect().await?;
        *kept = Some((route, muf.clone()));
        Ok(muf)
    }

    /// The default queue: `default`, or the one that the URL of a store outside of the cluster names. Waits for a store that
    /// replies.
    ///
    /// # Errors
    /// If the queue cannot be connected.
    pub async fn jobs(&self) -> Result<Jobs, NodeError> {
        self.queue(&self.link.default_queue()).await
    }

    /// A queue by its name. Waits for a store that replies.
    ///
    /// # Errors
    /// If the name is none of a queue, or the queue cannot be connected.
    pub async fn queue(&self, name: &str) -> Result<Jobs, NodeError> {
        self.link.up().await;
        Ok(Jobs::with_queue(self.queues.queue(name).await?))
    }

    /// What the node says about itself and the cluster, not older than a second.
    pub async fn status(&self) -> NodeStatus {
        self.collector.collect().await.status.clone()
    }

    /// Whether the node can be used now, and why not.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.source.readiness()
    }

    /// Waits until the node can be used: it is a member, and its store replies. Dropping the future changes nothing.
    pub async fn ready(&self) {
        self.link.up().await;
        let mut standing = self.lives.standing();
        // The sender lives as long as the node.
        let _ = standing.wait_for(|standing| standing.is_member).await;
    }

    /// Stops or resumes the claims of its workers. What runs goes on.
    pub fn drain(&self, is_draining: bool) {
        self.lives.drain(is_draining);
    }

    /// Waits until the operator asks the node to stop, and returns how long running tasks may take. The caller then calls
    /// [`shutdown_within`](Self::shutdown_within).
    pub async fn stop_requested(&self) -> Duration {
        let mut stop = self.stop.clone();
        let grace = match stop.wait_for(Option::is_some).await {
            Ok(grace) => *grace,
            Err(_) => None,
        };
        match grace {
            Some(grace) => grace,
            None => std::future::pending().await,
        }
    }

    /// The way to the server of its own store; none for a node without one.
    #[must_use]
    pub fn store(&self) -> Option<&ServerHandle> {
        self.running.store.as_ref().map(OwnStore::handle)
    }

    /// Waits until the node's own store has ended: a client has sent SHUTDOWN, or it failed. The caller then calls
    /// [`shutdown`](Self::shutdown), which returns why. Never returns for a node without a store.
    pub async fn store_ended(&self) {
        match self.running.store.as_ref().map(OwnStore::has_ended) {
            // A sender that is gone has ended too.
            Some(mut has_ended) => drop(has_ended.wait_for(|has_ended| *has_ended).await),
            None => std::future::pending().await,
        }
    }

    /// Waits until a part of the node has ended by a panic, and names it. The rest goes on without that part, and status says
    /// so; a program that is started again when it ends calls [`shutdown`](Self::shutdown), which returns the same, and ends.
    pub async fn part_failed(&self) -> String {
        self.failures.first().await
    }

    /// Stops the node: its workers finish what they run or give it back, programs end, it leaves the cluster, and at last HTTP
    /// and the store stop. Dropping the future ends the rest like a crash.
    ///
    /// # Errors
    /// If it could not leave, the store did not end well, or a part had panicked. It has stopped all the same.
    pub async fn shutdown(self) -> Result<(), NodeError> {
        self.stop(None).await
    }

    /// The same; what its workers and programs still run after `grace`, or after the time that the configuration gives them, is
    /// given up. The grace of [`stop_requested`](Self::stop_requested) is for this.
    ///
    /// # Errors
    /// As [`shutdown`](Self::shutdown).
    pub async fn shutdown_within(self, grace: Duration) -> Result<(), NodeError> {
        self.stop(Some(grace)).await
    }

    async fn stop(self, grace: Option<Duration>) -> Result<(), NodeError> {
        let Self {
            mut running,
            phase,
            lives,
            muf,
            queues,
            collector,
            source,
            changeable,
            failures,
            ..
        } = self;
        phase.send_replace(Phase::Leaving);
        lives.drain(true);
        let own = running.store.as_ref().map(OwnStore::has_ended);
        let is_store_gone = own.is_some_and(|has_ended| *has_ended.borrow());
        // Nothing that ends now can be reported to a store that has ended.
        let limit = match is_store_gone {
            true => Some(WITHOUT_STORE),
            false => grace,
        };
        changeable.work.into_inner().end(limit).await;
        if let Some((_, muf)) = muf.into_inner() {
            // A store that is away has nothing to be told.
            let _ = timeout(WITHOUT_STORE, muf.close()).await;
        }
        if let Some(releaser) = alone(changeable.releaser.into_inner()).await {
            releaser.stop().await;
        }
        let left = match alone(running.cluster).await {
            // Nobody has to be told.
            Some(cluster) if cluster.members().members.len() <= 1 => {
                cluster.shutdown().await;
                Ok(())
            }
            Some(cluster) => cluster.leave().await,
            None => Ok(()),
        };
        if let Some(http) = running.http.take() {
            http.stop().await;
        }
        running.background.shutdown().await;
        drop((queues, collector, source));
        let stopped = match running.store.take() {
            Some(store) => store.stop().await,
            None => Ok(()),
        };
        outcome(stopped, failures.parts().into_iter().next(), left)
    }
}

/// What the end of a node is reported as. A node that could not leave has lost nothing, so that this hides no other failure.
fn outcome(
    stopped: Result<(), ServerError>,
    failed_part: Option<String>,
    left: Result<(), DriverError>,
) -> Result<(), NodeError> {
    stopped.map_err(NodeError::StoreEnd)?;
    match failed_part {
        Some(part) => Err(NodeError::PartFailed(part)),
        None => left.map_err(NodeError::Leave),
    }
}

/// Takes a part from those that look at it for a moment only. None if one of them does not end; dropping the part ends it.
async fn alone<T>(mut part: Arc<T>) -> Option<T> {
    for _ in 0..LOOKS {
        match Arc::try_unwrap(part) {
            Ok(part) => return Some(part),
            Err(shared) => part = shared,
        }
        sleep(LOOK_AGAIN).await;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_could_not_leave_still_says_what_failed() {
        let unable = || {
            let address = SocketAddr::from(([0, 0, 0, 0], 7400));
            Err(DriverError::AdvertiseNeeded { address })
        };
        let part = || Some("probe of the store".to_owned());
        let unsaved = Err(ServerError::Loop(std::io::Error::other("disk full")));
        let end = outcome(unsaved, part(), unable());
        assert!(matches!(end, Err(NodeError::StoreEnd(_))), "{end:?}");
        let end = outcome(Ok(()), part(), unable());
        assert!(matches!(end, Err(NodeError::PartFailed(_))), "{end:?}");
        let end = outcome(Ok(()), None, unable());
        assert!(matches!(end, Err(NodeError::Leave(_))), "{end:?}");
        assert!(outcome(Ok(()), None, Ok(())).is_ok());
    }
}
