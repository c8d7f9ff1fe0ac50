//! What the core asks of a server, as data: small commands in pipelines, each with a token that comes back.
//!
//! Nothing here is encoded or sent. A driver turns an [`Op`] into one pipeline on one connection, and hands the token
//! back with all replies, or with [`Lost`] when it cannot know whether the commands ran.

use bytes::Bytes;

use super::key::{RequestId, Status};

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

/// One server command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Command {
    /// `SET key value [NX] [PX ttl_ms]`, answered [`Reply::Ok`] or, when NX refused, [`Reply::Nil`].
    Set {
        /// Where.
        key: String,
        /// What.
        value: Bytes,
        /// How long; none is for ever.
        ttl_ms: Option<u64>,
        /// Only if there is nothing yet.
        only_new: bool,
    },
    /// `MGET`, answered [`Reply::Values`] in the order asked. The keys share a slot unless the ID is bare.
    Values(Vec<String>),
    /// `EXISTS`, answered [`Reply::Number`] of how many are there.
    Exists(Vec<String>),
    /// `PEXPIRE`, answered [`Reply::Number`] 1, or 0 when the key is not there.
    Expire {
        /// Which.
        key: String,
        /// From now.
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
    /// Values, absent ones as `None`.
    Values(Vec<Option<Bytes>>),
    /// The server refused for good (no permission, out of memory). What passes by itself is [`Lost`] instead.
    Refused(String),
}

impl Reply {
    /// The values, none for any other reply.
    pub(crate) fn into_values(self) -> Vec<Option<Bytes>> {
        match self {
            Reply::Values(values) => values,
            _ => Vec::new(),
        }
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
}

/// Where the replies of an [`Op`] belong. Opaque to drivers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(pub(crate) Purpose);

/// The steps of all conversations that wait for replies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// REQ was written.
    CallWrite(u64),
    /// Answers were read because a push said there is one.
    CallAnswer(u64),
    /// Answers, claim and REQ were read by the clock.
    CallLook { call: u64, sent: Time },
    /// A gather's REQ was written.
    GatherWrite(u64),
    /// One backend's answer was read.
    GatherAnswer {
        gather: u64,
        status: Status,
        backend: String,
    },
    /// A claim was tried, with REQ and both answers read.
    Claim { job: u64, sent: Time },
    /// A lease was renewed.
    Renew { job: u64, sent: Time },
    /// `.tries` was counted.
    Count { job: u64 },
    /// A request to all was read.
    Look { job: u64 },
    /// An answer was written.
    Answer { job: u64 },
    /// A swept request was looked at.
    Check { unit: String, id: RequestId },
    /// A watched value was read.
    WatchRead {
        watch: u64,
        key: String,
        number: u64,
        sent: Time,
    },
    /// An owned value's TTL was extended.
    OwnedRefresh { owned: u64 },
    /// A value that other processes of our name may write was read.
    OwnedLook { owned: u64 },
    /// An owned value was written, or its end was set.
    OwnedWrite { owned: u64 },
}

/// Where the keys of a search belong. Opaque to drivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchToken(pub(crate) Search);

/// Who asked for a search of the keyspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// A backend sweeps for requests that nobody saw. It carries the sweep's number.
    Sweep(u64),
    /// A gather looks for answers whose push was lost.
    Gather(u64),
    /// A watch takes its snapshot. It carries the snapshot's number.
    Watch(u64, u64),
}
