//! What the core asks of a server, as data: small commands in pipelines, each with a token that comes back.
//!
//! Nothing here is encoded or sent. A driver turns an [`Op`] into one pipeline on one connection, and hands the token
//! back with all replies, or with [`Lost`] when it cannot know whether the commands ran.

use bytes::Bytes;

use super::key::{RequestId, Status};
use super::output::WatchId;

/// Milliseconds on a clock that never goes back. The driver chooses where zero is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

impl Time {
    /// This long after.
    pub fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to here; zero if it is not earlier.
    pub fn since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Most keys of a [`Command::Present`]: its last key is named eight times.
pub const PRESENT_LIMIT: usize = 4;

/// One server command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// `SET key value [NX] [PX ttl_ms]`, answered [`Reply::Ok`] or, when NX refused, [`Reply::Nil`].
    Set {
        /// The key to write.
        key: String,
        /// Its new value.
        value: Bytes,
        /// Its TTL in milliseconds; none is for ever.
        ttl_ms: Option<u64>,
        /// With NX: only if the key is not there.
        only_new: bool,
    },
    /// `SET key value XX KEEPTTL`, answered [`Reply::Ok`], or [`Reply::Nil`] when the key is not there. Subscribers get
    /// a new event for a value that stays the same.
    SetAgain {
        /// The key to write.
        key: String,
        /// Its new value.
        value: Bytes,
    },
    /// `GETRANGE key 0 limit`: at most one byte more than the limit, so that a value over it is recognised. Answered
    /// [`Reply::Value`], empty for a key that is not there: [`Command::Present`] distinguishes the two.
    Read {
        /// The key to read.
        key: String,
        /// Bytes of the value to read, without the one that shows that there are more.
        limit_bytes: usize,
    },
    /// `EXISTS` with the n-th key named 2^n times, answered [`Reply::Number`]: its bit n says whether key n is there. At
    /// most [`PRESENT_LIMIT`] keys. They share a slot unless the ID is bare.
    Present(Vec<String>),
    /// `EXISTS`, answered [`Reply::Number`] of how many are there.
    Exists(Vec<String>),
    /// `PEXPIRE`, answered [`Reply::Number`] 1, or 0 when the key is not there.
    Expire {
        /// The key that expires.
        key: String,
        /// Its new TTL in milliseconds.
        ttl_ms: u64,
    },
    /// `PTTL`, answered [`Reply::Number`]: -2 absent, -1 for ever.
    TimeToLive(String),
    /// `INCR`, answered [`Reply::Number`].
    Increment(String),
}

/// What a server said to one [`Command`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reply {
    /// Done.
    Ok,
    /// Not done, because of NX.
    Nil,
    /// A count.
    Number(i64),
    /// A value, or as much of it as was requested; empty for a key that is not there.
    Value(Bytes),
    /// The key holds something that is not a string, and so nothing of this protocol.
    WrongType,
    /// The server refused permanently (no permission, out of memory). A temporary failure is [`Lost`] instead.
    Refused(String),
}

impl Reply {
    /// The value, empty for any other reply.
    pub(crate) fn into_value(self) -> Bytes {
        match self {
            Reply::Value(value) => value,
            _ => Bytes::new(),
        }
    }

    /// The value unless it is empty: for keys that hold nothing empty.
    pub(crate) fn into_filled(self) -> Option<Bytes> {
        Some(self.into_value()).filter(|value| !value.is_empty())
    }

    /// The value of a key that may hold an empty one; `there` says whether the key was found.
    pub(crate) fn into_held(self, there: bool) -> Option<Bytes> {
        match self {
            Reply::Value(value) => Some(value).filter(|value| there || !value.is_empty()),
            _ => None,
        }
    }

    /// Whether key `index` of a [`Command::Present`] is there.
    pub(crate) fn has(&self, index: u32) -> bool {
        self.number() >> index & 1 == 1
    }

    /// Why it was refused, if it was.
    pub(crate) fn refusal(&self) -> Option<&str> {
        match self {
            Reply::Refused(text) => Some(text),
            _ => None,
        }
    }

    /// The number, zero for any other reply.
    pub(crate) fn number(&self) -> i64 {
        match self {
            Reply::Number(number) => *number,
            _ => 0,
        }
    }
}

/// The connection broke, or the server was in no state to answer: the commands may have run or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// The replies of one [`Op`], one per command.
pub type Replies = Result<Vec<Reply>, Lost>;

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
    /// Whatever the reply is, it changes nothing.
    Note,
    /// REQ was written.
    CallWrite { call: u64, bulk: bool },
    /// A large REQ was set again.
    CallAgain,
    /// Answers were read because a push said there is one.
    CallAnswer(u64),
    /// A large answer was read.
    CallFetch(u64),
    /// Answers, claim and REQ were read by the clock.
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
    /// Answers to gathers are looked for whose push was lost. It carries the search's number.
    Gather(u64),
    /// A watch takes its snapshot. It carries the snapshot's number.
    Watch(u64, u64),
}
