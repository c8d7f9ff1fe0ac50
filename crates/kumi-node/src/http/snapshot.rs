//! What the HTTP server shows, as plain values, and who hands it over.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use kumi_cluster::DriverMetrics;

/// Hands facts about the node to the HTTP server, which calls it on its own thread.
pub trait Source: Send + Sync + 'static {
    /// Whether the node can be used now. Called often: it looks at what is known and waits for nothing.
    fn readiness(&self) -> Readiness;

    /// Collects facts for `/metrics`. It may wait for the store; the server gives up after
    /// [`HttpOptions::snapshot_wait`](super::HttpOptions::snapshot_wait) and drops the future.
    fn snapshot(&self) -> Pin<Box<dyn Future<Output = NodeSnapshot> + Send>>;

    /// Whether this opens `/metrics` on listeners that are not on loopback. Compared in constant time:
    /// [`Trust::is_metrics_token`](crate::trust::Trust::is_metrics_token).
    fn is_metrics_token(&self, presented: &[u8]) -> bool;
}

/// Whether a node can be used, and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Readiness {
    /// Everything that the node's roles need is there.
    Ready,
    /// The store reads its data.
    Loading,
    /// The node is not a member of its cluster: it has not been let in yet, or not any more.
    NotJoined,
    /// No store is known, or it does not answer.
    NoStore,
    /// The node drains and leaves the cluster.
    Leaving,
}

impl Readiness {
    /// The reason in one word, and in a sentence.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Readiness::Ready => ("ready", "the node can be used"),
            Readiness::Loading => ("loading", "the store reads its data"),
            Readiness::NotJoined => ("not joined", "the node is not a member of its cluster"),
            Readiness::NoStore => ("no store", "no store is known, or it does not answer"),
            Readiness::Leaving => ("leaving", "the node ends its work and leaves the cluster"),
        }
    }
}

/// Facts about one node at one moment. What is none or empty is left out of the metrics.
#[derive(Clone, Debug, Default)]
pub struct NodeSnapshot {
    /// The node's name.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// What it does: `store`, `member`, `worker`, `http`.
    pub roles: Vec<String>,
    /// Things that need attention, by severity (`red`, `yellow`).
    pub attention: BTreeMap<String, u64>,
    /// The store, where this node is the one that reports it.
    pub store: Option<StoreFacts>,
    /// Membership, where the node takes part in it.
    pub members: Option<MemberFacts>,
    /// The queues that this node reports.
    pub queues: Vec<QueueFacts>,
    /// The units that this node reports.
    pub units: Vec<UnitFacts>,
    /// The programs that this node runs.
    pub programs: Vec<ProgramFacts>,
}

/// What the store says about itself.
#[derive(Clone, Debug, Default)]
pub struct StoreFacts {
    /// The reply of `INFO everything`; none if the store did not answer.
    pub info: Option<String>,
}

/// What this node knows of the cluster's members.
#[derive(Clone, Debug, Default)]
pub struct MemberFacts {
    /// Members by status in lower case, as `kumi cluster members` names it.
    pub by_status: BTreeMap<String, u64>,
    /// For how long the longest suspicion lasts; none without one.
    pub longest_suspicion_seconds: Option<f64>,
    /// The highest phi of the members that this node watches.
    pub highest_phi: Option<f64>,
    /// What the driver sent, received and dropped.
    pub gossip: DriverMetrics,
}

/// One queue of jobs.
#[derive(Clone, Debug, Default)]
pub struct QueueFacts {
    /// The queue's name.
    pub queue: String,
    /// Tasks by state in lower case.
    pub tasks: BTreeMap<String, u64>,
    /// How long the oldest waiting task has waited; none if no task waits.
    pub oldest_waiting_seconds: Option<f64>,
    /// Workers that ask for tasks.
    pub workers: u64,
    /// Whether the queue is paused.
    pub is_paused: bool,
    /// What happened so far by kind, such as `enqueued`, `succeeded`, `failed`, `dead` and `released`.
    pub events: BTreeMap<String, u64>,
}

/// One unit of MUF, over all of its instances.
#[derive(Clone, Debug, Default)]
pub struct UnitFacts {
    /// The unit's name.
    pub unit: String,
    /// Processes of this name.
    pub instances: u64,
    /// Requests that the unit has served so far.
    pub requests: u64,
    /// Of these, those that were answered with an error.
    pub errors: u64,
    /// Within this time 99 of 100 recent requests were answered; none without recent requests.
    pub p99_seconds: Option<f64>,
}

/// One program that the node runs.
#[derive(Clone, Debug, Default)]
pub struct ProgramFacts {
    /// The name it was configured with.
    pub program: String,
    /// Processes that run now.
    pub running: u64,
    /// How often a process was started again after its end.
    pub restarts: u64,
}
