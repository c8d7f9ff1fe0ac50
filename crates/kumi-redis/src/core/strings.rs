//! Commands over keys that hold strings, and what a server replies to them, as data: those that MUF is made of. Job
//! queues send scripts, with commands of the `redis` crate.
//!
//! Nothing here is encoded or sent.

use bytes::Bytes;

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
    /// most [`PRESENT_LIMIT`] keys.
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
    /// `INCRBY`, answered [`Reply::Number`].
    IncrementBy {
        /// The key that holds a number.
        key: String,
        /// What is added to it.
        by: u64,
    },
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
    /// The key holds something that is not a string.
    WrongType,
    /// The server refused permanently (no permission, out of memory). A temporary failure is [`Lost`] instead.
    Refused(String),
}

impl Reply {
    /// The value, empty for any other reply.
    pub fn into_value(self) -> Bytes {
        match self {
            Reply::Value(value) => value,
            _ => Bytes::new(),
        }
    }

    /// The value unless it is empty: for keys that hold nothing empty.
    pub fn into_filled(self) -> Option<Bytes> {
        Some(self.into_value()).filter(|value| !value.is_empty())
    }

    /// The value of a key that may hold an empty one; `there` says whether the key was found.
    pub fn into_held(self, there: bool) -> Option<Bytes> {
        match self {
            Reply::Value(value) => Some(value).filter(|value| there || !value.is_empty()),
            _ => None,
        }
    }

    /// Whether key `index` of a [`Command::Present`] is there.
    pub fn has(&self, index: u32) -> bool {
        self.number() >> index & 1 == 1
    }

    /// Why it was refused, if it was.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Reply::Refused(text) => Some(text),
            _ => None,
        }
    }

    /// The number, zero for any other reply.
    pub fn number(&self) -> i64 {
        match self {
            Reply::Number(number) => *number,
            _ => 0,
        }
    }
}

/// The connection broke, or the server could not serve: the commands may have run or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

/// The replies of a pipeline, one per command.
pub type Replies = Result<Vec<Reply>, Lost>;
