//! What the core asks of a server, as data: small commands in pipelines, each with a token that comes back.
//!
//! Nothing here is encoded or sent. A driver turns an [`Op`] into one pipeline on one connection, and hands the token
//! back with all replies, or with [`Lost`] when it cannot know whether the commands ran.

use super::key::{RequestId, Status};
use super::output::WatchId;

pub use kumi_redis::core::Time;
pub use kumi_redis::core::strings::{Command, Lost, PRESENT_LIMIT, Replies, Reply};

/// A pipeline: its commands run in order, on the server that owns its first key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// Comes back with the replies.
    pub token: Token,
    /// At least one.
    pub commands: Vec<Command>,
    /// A large value goes or comes with it, which must not delay other commands. It may run before or after any of them.
    pub bulk: bool,
}

/// Where the replies of an [`Op`] belong. Opaque to drivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(pub(crate) Purpose);

/// The steps of all conversations that wait for replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The reply is ignored.
    Note,
    /// REQ was written.
    CallWrite { call: u64, bulk: bool },
    /// A large REQ was set again.
    CallAgain,
    /// Answers were read because a push said there is one.
    CallAnswer(u64),
    /// A large answer was read.
    CallFetch(u64),
    /// Answers, claim and REQ were read because a timer was due.
    CallLook { call: u64, sent: Time },
    /// A gather's REQ was written.
    GatherWrite(u64),
    /// One backend's answer was read.
    GatherAnswer {
        gather: u64,
        status: Status,
        backend: String,
        bulk: bool,
    },
    /// A claim was tried, with REQ and both answers read. `parts` says what else was asked.
    Claim {
        job: u64,
        sent: Time,
        parts: ClaimParts,
    },
    /// A lease was renewed.
    Renew { job: u64, sent: Time },
    /// `.tries` was counted.
    Count { job: u64 },
    /// A request to all was read.
    Look { job: u64 },
    /// A large request was read.
    Fetch { job: u64 },
    /// An answer was written.
    Answer { job: u64, bulk: bool },
    /// The lock of a sweep was requested.
    SweepLock,
    /// The lock of searches was requested.
    SearchLock,
    /// A swept request was looked at.
    Check { unit: String, id: RequestId },
    /// A watched value was read.
    WatchRead(super::watch::Read),
    /// It was asked whether watched keys are still there.
    WatchCheck { watch: u64, keys: Vec<String> },
    /// An owned value's TTL was extended.
    OwnedRefresh { owned: u64 },
    /// A value that other processes of our name may write was read.
    OwnedLook { owned: u64 },
    /// An owned value was written.
    OwnedWrite { owned: u64, version: u64 },
}

/// What a claim asks besides REQ and whether there is an answer. The replies follow in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClaimParts {
    /// Both answers are read, because the ID is bare and they may be older than the request.
    pub(crate) answers: bool,
    /// The claim is read, because an earlier try of ours may have got it.
    pub(crate) claim: bool,
    /// The tracing side key is read.
    pub(crate) meta: bool,
    /// It is asked how long the claim has left.
    pub(crate) left: bool,
    /// It is asked whether REQ is there, before and after it is read, because a read of it returned nothing.
    pub(crate) presence: bool,
}

/// Where the keys of a search belong. Opaque to drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SearchToken(pub(crate) Search);

impl SearchToken {
    /// Whether the search is for a snapshot of this watch.
    pub(crate) fn is_for(self, watch: WatchId) -> bool {
        matches!(self.0, Search::Watch(id, _) if id == watch.0)
    }
}

/// How far a search has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchStep {
    /// More keys may follow.
    More,
    /// These were the last.
    Done,
    /// No more come, and some may have been left out.
    Failed,
}

/// What a search of the keyspace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Search {
    /// A backend sweeps for requests that were missed. It carries the sweep's number.
    Sweep(u64),
    /// Gathers look for answers whose push was lost. It carries the search's number.
    Gather(u64),
    /// A watch takes its snapshot. It carries the snapshot's number.
    Watch(u64, u64),
}
