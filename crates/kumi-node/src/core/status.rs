//! The status document: what a node says about itself, and what a cluster is, for people and for programs.
//!
//! [`NodeStatus`] is one node's reply. Its own part (workers, programs, units it serves) is about that node alone; its
//! cluster part (members, store, queues, cron) is about what all nodes share, so that every node gives the same figures.
//! [`ClusterStatus`] is made of all replies: own parts side by side or summed, shared parts taken once. `merge.rs` does
//! that, `text.rs` writes it for people; as JSON it is this document.

pub(in crate::core) mod figures;
mod merge;
mod text;

#[cfg(test)]
mod tests;

pub use text::Rendering;

use serde::{Deserialize, Serialize};

/// The version of the documents. A reader does not take a later one.
pub const STATUS_FORMAT: u32 = 1;

/// The largest document that is read, in bytes.
pub const MAX_STATUS_BYTES: usize = 4 << 20;

/// Entries of each list of a document. [`LeftOut`] says how many more there were.
pub const MAX_ENTRIES: usize = 1_000;

/// Nodes whose replies are merged.
pub const MAX_NODES: usize = 1_000;

/// What one node says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// [`STATUS_FORMAT`].
    pub format: u32,
    /// What needs attention, the worst first.
    pub attention: Vec<Attention>,
    /// This node.
    pub node: NodeSelf,
    /// The members, as this node sees them.
    pub members: Vec<MemberStatus>,
    /// The store, as this node sees it; none if the node knows none.
    pub store: Option<StoreStatus>,
    /// The units that this node serves.
    pub units: Vec<UnitStatus>,
    /// The queues of the store.
    pub queues: Vec<QueueStatus>,
    /// The workers of this node.
    pub workers: Vec<WorkerStatus>,
    /// The programs that this node runs.
    pub programs: Vec<ProgramStatus>,
    /// The schedules of the store.
    pub cron: Vec<CronStatus>,
    /// Lists that had more entries than fit.
    pub left_out: Vec<LeftOut>,
}

/// What a cluster is, made of the replies of its nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterStatus {
    /// [`STATUS_FORMAT`].
    pub format: u32,
    /// What needs attention, the worst first.
    pub attention: Vec<Attention>,
    /// When the replies were merged, in milliseconds since 1970.
    pub at_unix_ms: u64,
    /// The nodes that replied, by name.
    pub nodes: Vec<NodeSelf>,
    /// The names of the nodes that did not reply.
    pub silent: Vec<String>,
    /// The members.
    pub members: Vec<MemberStatus>,
    /// The store.
    pub store: Option<StoreStatus>,
    /// Units, each summed over the nodes that serve it.
    pub units: Vec<UnitStatus>,
    /// Queues.
    pub queues: Vec<QueueStatus>,
    /// Workers of all nodes.
    pub workers: Vec<WorkerStatus>,
    /// Programs of all nodes.
    pub programs: Vec<ProgramStatus>,
    /// Schedules.
    pub cron: Vec<CronStatus>,
    /// Lists that had more entries than fit.
    pub left_out: Vec<LeftOut>,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something does not work, or data is at risk.
    Red,
    /// Something will not work for long, or works worse than it should.
    Yellow,
}

/// The kinds of attention. Their names in JSON stay as they are; the order is that of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AttentionKind {
    /// The pinned store is not reached.
    StoreAway,
    /// A store with another id is live.
    StoreOther,
    /// Two primaries of one data set are live.
    StoreTwoPrimaries,
    /// Nodes pinned different stores.
    StorePinsDiffer,
    /// The last snapshot failed.
    StoreSaveFailed,
    /// The AOF cannot be written.
    StoreAofFailed,
    /// The store loads its data.
    StoreLoading,
    /// The store is close to its memory limit.
    StoreMemory,
    /// The disk of a node's state directory is nearly full.
    DiskFull,
    /// A part of a node has ended by a mistake in the program.
    PartFailed,
    /// The membership of a node has ended.
    MembershipEnded,
    /// A node is not let in: a live node has its name.
    NameTaken,
    /// A node is kept out by an operator.
    NodeQuarantined,
    /// Too few seeds reply.
    SeedsUnreachable,
    /// A member died.
    MemberDead,
    /// A member is suspected.
    MemberSuspected,
    /// A node did not reply to the request for its status.
    NodeSilent,
    /// A node's clock differs from the store's.
    ClockOff,
    /// Tasks wait that no worker asks for.
    QueueUnserved,
    /// Tasks use up their attempts.
    QueueDead,
    /// A queue is paused.
    QueuePaused,
    /// A program ends again and again.
    ProgramCrashing,
    /// A key file has had two keys for long.
    TwoKeys,
}

/// One thing that needs attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// How bad it is.
    pub severity: Severity,
    /// What it is.
    pub kind: AttentionKind,
    /// The queue, node or program that it is about; one of each kind and subject in a document.
    pub subject: String,
    /// The same for people.
    pub words: String,
}

/// A node about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeSelf {
    /// Its name.
    pub name: String,
    /// Its present life.
    pub life: String,
    /// The version of kumi.
    pub version: String,
    /// Its roles.
    pub roles: Vec<String>,
    /// What it does now: `joining`, `up`, `draining`, `leaving`, or `ended` after the end of its membership.
    pub state: String,
    /// Whether `/readyz` says so.
    pub ready: bool,
    /// When it started, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// Its clock at the time of the reply.
    pub clock_unix_ms: u64,
    /// How far its clock is ahead of the store's, in milliseconds; none without a store.
    pub clock_ahead_ms: Option<i64>,
    /// Bytes that are free on the disk of its state directory.
    pub disk_free_bytes: Option<u64>,
    /// The size of that disk.
    pub disk_bytes: Option<u64>,
    /// Seeds that it was given.
    pub seeds: u32,
    /// Seeds that replied to the last attempt.
    pub seeds_reached: u32,
    /// The address of a seed that cannot be connected to, and the error; none for a member.
    pub seed_error: Option<String>,
    /// Why it is not a member, as its seeds replied; none for a member, and while no seed has replied.
    pub kept_out: Option<KeptOut>,
    /// Its parts that have ended by a mistake in the program.
    pub failed_parts: Vec<String>,
    /// Since when its key file has had two keys, in milliseconds since 1970.
    pub two_keys_since_unix_ms: Option<u64>,
    /// Departed lives whose tasks this node still has to give back.
    pub departed_lives: u32,
}

/// Why a node is not a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeptOut {
    /// A live node has its name.
    NameTaken {
        /// Where that node is.
        address: String,
    },
    /// An operator keeps its address out of the cluster for a while.
    Quarantined {
        /// Who does, and why.
        reason: String,
    },
    /// Its membership has ended, because a later start of the same node took its place or because of a mistake in the
    /// program. It does not join again.
    Ended,
}

/// A member.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberStatus {
    /// Its name.
    pub name: String,
    /// Its life.
    pub life: String,
    /// Where it is reached.
    pub address: String,
    /// `joining`, `up`, `suspect`, `leaving`, `dead`.
    pub status: String,
    /// How long it has had this status, in milliseconds, as the replying node knows.
    pub for_ms: u64,
    /// Its roles.
    pub roles: Vec<String>,
    /// The version of kumi.
    pub version: String,
}

/// The store.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoreStatus {
    /// The id of the data set; empty for an outside store without one.
    pub id: String,
    /// The node it runs on; empty for an outside store.
    pub node: String,
    /// Where it is reached, without credentials.
    pub address: String,
    /// Since when it is not reached, in milliseconds since 1970; none while it is.
    pub away_since_unix_ms: Option<u64>,
    /// What is wrong with the stores of the cluster.
    pub problems: Vec<StoreProblem>,
    /// How much of the data is loaded, in percent, while it loads.
    pub loading_percent: Option<f64>,
    /// Keys in all databases.
    pub keys: u64,
    /// Memory in use.
    pub memory_bytes: u64,
    /// The memory limit; none if there is none.
    pub memory_limit_bytes: Option<u64>,
    /// Whether the store evicts keys when memory is short. Otherwise it refuses writes.
    pub evicts: bool,
    /// Commands in a second.
    pub ops_per_second: f64,
    /// Of the reads of keys, those that found one; none if there were no reads.
    pub hit_rate: Option<f64>,
    /// Connected clients.
    pub clients: u64,
    /// Whether the AOF is on.
    pub aof: bool,
    /// Whether the AOF was written the last time.
    pub aof_ok: Option<bool>,
    /// When the last snapshot was saved, in milliseconds since 1970.
    pub saved_unix_ms: Option<u64>,
    /// Whether the last snapshot succeeded; none if there was none.
    pub save_ok: Option<bool>,
}

/// What is wrong with the stores of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum StoreProblem {
    /// A store with another id than the pinned one is live.
    Other {
        /// The pinned id.
        pinned: String,
        /// The other id.
        id: String,
        /// The node of the other store.
        node: String,
    },
    /// Two primaries of one data set are live.
    TwoPrimaries {
        /// The data set.
        id: String,
        /// Their nodes.
        nodes: Vec<String>,
    },
    /// A node pinned another store at first.
    PinsDiffer {
        /// The id that the replying node pinned.
        ours: String,
        /// The id that the other node pinned.
        theirs: String,
        /// The other node.
        node: String,
    },
}

/// A unit that is called through MUF.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnitStatus {
    /// Its name.
    pub name: String,
    /// Instances that serve it.
    pub instances: u32,
    /// Calls in a second.
    pub calls_per_second: f64,
    /// Calls in a second that ended with an error.
    pub errors_per_second: f64,
    /// The 99th percentile of the time of a call, in milliseconds. Of several instances it is the worst.
    pub p99_ms: Option<f64>,
}

/// A queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueStatus {
    /// Its name.
    pub name: String,
    /// Tasks that wait for a worker.
    pub waiting: u64,
    /// Tasks that run later: scheduled ones and retries.
    pub later: u64,
    /// How long the oldest waiting task has waited, in milliseconds.
    pub oldest_ms: Option<u64>,
    /// Tasks that run.
    pub running: u64,
    /// Tasks that used up their attempts.
    pub dead: u64,
    /// Of these, those that came within the last [`dead_window_ms`](Self::dead_window_ms).
    pub dead_lately: u64,
    /// The time that `dead_lately` covers.
    pub dead_window_ms: u64,
    /// Tasks that ended in a second.
    pub done_per_second: f64,
    /// Waiting tasks of types that no worker has asked for within the last minute.
    pub unserved: u64,
    /// Those types.
    pub unserved_types: Vec<String>,
    /// Whether claims are stopped.
    pub paused: bool,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerStatus {
    /// Its node.
    pub node: String,
    /// The queue that it serves.
    pub queue: String,
    /// Tasks that it runs.
    pub running: u32,
    /// Tasks that it may run at once.
    pub concurrency: u32,
    /// Tasks that ended in a second.
    pub done_per_second: f64,
    /// Whether it claims no more tasks.
    pub draining: bool,
}

/// A program that a node runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgramStatus {
    /// Its node.
    pub node: String,
    /// Its name.
    pub name: String,
    /// `running`, `waiting` (for its next start) or `stopped`.
    pub state: String,
    /// How often it ended in a row without having run for long.
    pub crashes: u32,
    /// How it last ended.
    pub last_end: Option<String>,
    /// When it is started next, in milliseconds from the reply on.
    pub next_start_ms: Option<u64>,
}

/// A schedule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CronStatus {
    /// Its queue.
    pub queue: String,
    /// Its name.
    pub name: String,
    /// Its five fields.
    pub expression: String,
    /// Its time zone.
    pub zone: String,
    /// The last slot that was decided, in milliseconds since 1970.
    pub last_unix_ms: Option<u64>,
    /// The next slot.
    pub next_unix_ms: Option<u64>,
}

/// A list that had more entries than fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeftOut {
    /// The list.
    pub list: String,
    /// Entries that were left out.
    pub entries: u64,
}

/// A text that is no status of a node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StatusError {
    /// It is larger than any that a node writes.
    #[error("a status of {0} bytes is too large (up to {MAX_STATUS_BYTES})")]
    TooLarge(usize),
    /// A later version of kumi wrote it.
    #[error(
        "format {0} of a status is later than this version of kumi knows (up to {STATUS_FORMAT})"
    )]
    Newer(u32),
    /// It has no format, or one that never was.
    #[error("format {0} of a status does not exist")]
    Format(u32),
    /// It is no such document.
    #[error("this is no status of a node")]
    Malformed(#[source] serde_json::Error),
}

/// The part of a document that says how to read the rest.
#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    format: u32,
}

impl NodeStatus {
    /// Reads a node's reply. Fields that this version does not know are skipped, and missing ones have defaults.
    ///
    /// # Errors
    /// If it is too large, of a later format, or no such document.
    pub fn from_json(text: &[u8]) -> Result<Self, StatusError> {
        if text.len() > MAX_STATUS_BYTES {
            return Err(StatusError::TooLarge(text.len()));
        }
        let version: Version = serde_json::from_slice(text).map_err(StatusError::Malformed)?;
        match version.format {
            STATUS_FORMAT => {}
            newer if newer > STATUS_FORMAT => return Err(StatusError::Newer(newer)),
            other => return Err(StatusError::Format(other)),
        }
        let status: Self = serde_json::from_slice(text).map_err(StatusError::Malformed)?;
        Ok(status.bounded())
    }

    /// The document with at most [`MAX_ENTRIES`] entries in each list, and a note for each list that was cut.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let left_out = &mut self.left_out;
        cut(&mut self.members, "members", left_out);
        cut(&mut self.units, "units", left_out);
        cut(&mut self.queues, "queues", left_out);
        cut(&mut self.workers, "workers", left_out);
        cut(&mut self.programs, "programs", left_out);
        cut(&mut self.cron, "cron", left_out);
        self.attention.truncate(MAX_ENTRIES);
        self.left_out.truncate(MAX_ENTRIES);
        self
    }
}

/// Cuts a list, and adds what was cut to the note of that list.
fn cut<T>(list: &mut Vec<T>, name: &str, left_out: &mut Vec<LeftOut>) {
    let entries = list.len().saturating_sub(MAX_ENTRIES) as u64;
    if entries > 0 {
        list.truncate(MAX_ENTRIES);
        note_left_out(left_out, name, entries);
    }
}

/// Adds entries to the note of a list.
fn note_left_out(left_out: &mut Vec<LeftOut>, name: &str, entries: u64) {
    match left_out.iter_mut().find(|note| note.list == name) {
        Some(note) => note.entries = note.entries.saturating_add(entries),
        None => left_out.push(LeftOut {
            list: name.into(),
            entries,
        }),
    }
}

/// Sorts attention by severity, kind and subject, and keeps the worst of each kind and subject.
pub(crate) fn order(attention: &mut Vec<Attention>) {
    attention.sort_by(|a, b| {
        let key = |one: &Attention| (one.kind, one.subject.clone(), one.severity);
        key(a).cmp(&key(b))
    });
    attention.dedup_by(|later, first| later.kind == first.kind && later.subject == first.subject);
    attention.sort_by_key(|one| (one.severity, one.kind));
    attention.truncate(MAX_ENTRIES);
}
