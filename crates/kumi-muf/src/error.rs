//! Errors of this crate. Each says whose fault it is and whether anything changed.

use bytes::Bytes;
use kumi_redis::Error as ServerError;

use crate::core::{CallError, NameError, shown};
use crate::fault::Fault;

/// Everything that a method of this crate can fail with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name, target or pattern is not one. The caller's fault; nothing was sent.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A payload is larger than the limit set when connecting. The caller's fault; nothing was sent.
    #[error("a payload of {size_bytes} bytes is over the limit of {limit_bytes}")]
    TooLarge {
        /// How large it is.
        size_bytes: usize,
        /// How large it may be.
        limit_bytes: usize,
    },
    /// An answer or a kept value is larger than the limit set when connecting, and was not read. A request that was
    /// answered so has run.
    #[error("the value is over the limit of {limit_bytes} bytes, and was not read")]
    TooLargeToRead {
        /// How large it may be.
        limit_bytes: usize,
    },
    /// A value could not be written as JSON. The caller's fault; nothing was sent.
    #[error("the value cannot be written as JSON")]
    Encode(#[source] serde_json::Error),
    /// An answer, a request or a kept value is not what it was to be read as. An answer's request has run.
    #[error("the {what} is not {wanted}: {}", shown(.reason.as_bytes()))]
    Decode {
        /// What was to be read: `answer`, `request`.
        what: &'static str,
        /// What was wanted.
        wanted: &'static str,
        /// Why it is not that.
        reason: String,
        /// What came.
        payload: Bytes,
    },
    /// No backend claimed the request while it existed. None that claims has run it.
    #[error("no backend claimed the request while it existed")]
    NoResponder,
    /// A backend claimed the request and did not answer in time. It may still be running there.
    #[error("claimed by {}, which did not answer in time", shown(.claimant.as_bytes()))]
    HandlerTimeout {
        /// The unit that claimed it last.
        claimant: String,
    },
    /// The backend ran the request and answered ERR.
    #[error("the backend answered with an error: {}", shown(.0))]
    Remote(Bytes),
    /// The server could not be reached until the deadline. The request may have run.
    #[error("the server at {server} could not be reached before the deadline{}", .reason.as_ref().map_or(String::new(), |reason| format!(": {reason}")))]
    Disconnected {
        /// The server of the URL: `host:port`, or the path of a Unix socket.
        server: String,
        /// Why the last attempt to connect failed, if one has: see [`Connection::Away`](crate::Connection::Away).
        reason: Option<String>,
    },
    /// The keyspace was not searched to its end in time: answers of a gather, or units, may be missing. The server was
    /// reached; a gather's request may have run, and the answers that came are in [`Answers`](crate::Answers). A gather
    /// with a longer timeout gives its search more time.
    #[error(
        "the search of the keyspace at {server} was not finished in time, and something may be missing"
    )]
    SearchUnfinished {
        /// The server of the URL: `host:port`, or the path of a Unix socket.
        server: String,
    },
    /// Answers of a gather were left unread: more than 10,000 backends answered, or the reader of
    /// [`Answers`](crate::Answers) did not take them before the deadline. The request may have run.
    #[error("answers were left unread: there are too many, or they were not taken in time")]
    AnswersLeft,
    /// The URL cannot be used, the server could not be connected to, or refused a command that is needed. What it was asked
    /// to do is not done; a request whose answer may not be read may have run.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The operating system gave no random number, of which IDs are made. Nothing was sent.
    #[error("the operating system gave no random number: {0}")]
    Random(String),
    /// This unit was closed.
    #[error("this unit is closed")]
    Closed,
}

impl Error {
    /// What the backend said with [`Fault`], if it did.
    pub fn fault(&self) -> Option<Fault> {
        match self {
            Error::Remote(payload) => Fault::read(payload),
            _ => None,
        }
    }

    /// The error of a call to a unit of this server; `away` is why the server is away, if it is.
    pub(crate) fn of_call(error: CallError, server: &str, away: Option<&str>) -> Self {
        match error {
            CallError::NoResponder => Error::NoResponder,
            CallError::HandlerTimeout { claimant } => Error::HandlerTimeout { claimant },
            CallError::Remote(payload) => Error::Remote(payload),
            CallError::Disconnected => Error::disconnected(server, away),
            CallError::SearchUnfinished => Error::search_unfinished(server),
            CallError::AnswersLeft => Error::AnswersLeft,
            CallError::Refused(reason) => Error::refused(server, reason),
            CallError::TooLarge { limit_bytes } => Error::TooLargeToRead { limit_bytes },
        }
    }

    pub(crate) fn disconnected(server: &str, reason: Option<&str>) -> Self {
        Error::Disconnected {
            server: server.to_owned(),
            reason: reason.map(str::to_owned),
        }
    }

    pub(crate) fn search_unfinished(server: &str) -> Self {
        Error::SearchUnfinished {
            server: server.to_owned(),
        }
    }

    pub(crate) fn notifications(server: &str, need: &str) -> Self {
        ServerError::Notifications {
            server: server.to_owned(),
            need: need.to_owned(),
        }
        .into()
    }

    pub(crate) fn refused(server: &str, reason: String) -> Self {
        ServerError::Refused {
            server: server.to_owned(),
            reason,
        }
        .into()
    }
}
