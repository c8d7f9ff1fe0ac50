//! Errors of this crate. Each says whose fault it is and whether anything changed.

use std::time::Duration;

use bytes::Bytes;
use kumi_common::causes;

use crate::core::{CallError, NameError, shown};
use crate::fault::Fault;

/// What the `redis` crate, and behind it the system or the server, said of a connection. Its text has all of that, so it has
/// no source of its own: an error and its causes on one line would show the same twice.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Cause(redis::RedisError);

impl From<redis::RedisError> for Cause {
    fn from(error: redis::RedisError) -> Self {
        Self(error)
    }
}

impl std::ops::Deref for Cause {
    type Target = redis::RedisError;

    fn deref(&self) -> &redis::RedisError {
        &self.0
    }
}

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
    /// The server refused a command that is needed. What it was asked to do is not done; a request whose answer may not
    /// be read may have run.
    #[error("the server at {server} refused: {}", shown(.reason.as_bytes()))]
    Refused {
        /// The server of the URL: `host:port`, or the path of a Unix socket.
        server: String,
        /// The server's error.
        reason: String,
    },
    /// The text is not a URL, names something that is not supported, or the certificates given with it cannot be read.
    /// The caller's fault; nothing was opened.
    #[error("the URL {url}, or a certificate given with it, cannot be used")]
    Url {
        /// The URL without user, password and query.
        url: String,
        /// What is wrong with it.
        #[source]
        source: Cause,
    },
    /// The server could not be reached, or did not accept the credentials.
    #[error("cannot connect to {address}")]
    Connect {
        /// `host:port`, or the path of a Unix socket.
        address: String,
        /// What the system or the server said.
        #[source]
        source: Cause,
    },
    /// The server did not answer in time while connecting.
    #[error("no connection to {address} within {limit:?}")]
    ConnectTimeout {
        /// `host:port`, or the path of a Unix socket.
        address: String,
        /// How long it was waited for: `Builder::connect_timeout`.
        limit: Duration,
    },
    /// The server's certificate is not trusted: another authority signed it, it is for another name, or it has expired.
    /// Nothing was sent to the server.
    #[error("the certificate of {address} is not trusted: {reason}")]
    Certificate {
        /// `host:port`.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server sends no keyspace events, and this user may not change that.
    #[error(
        "the server at {server} does not send all keyspace events that are needed, and CONFIG is not allowed: set \
         notify-keyspace-events to at least {need}, or allow polling when connecting"
    )]
    Notifications {
        /// `host:port`, or the path of a Unix socket.
        server: String,
        /// The flags it has to have.
        need: String,
    },
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
}

impl Error {
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

    pub(crate) fn refused(server: &str, reason: String) -> Self {
        Error::Refused {
            server: server.to_owned(),
            reason,
        }
    }

    /// The error and what is behind it on one line, for a log.
    pub(crate) fn chain(&self) -> String {
        let mut text = self.to_string();
        for cause in causes(self) {
            text = format!("{text}: {}", shown(cause.to_string().as_bytes()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_says_of_a_connection_is_shown_once() {
        let refused = std::io::Error::from_raw_os_error(111);
        let said = refused.to_string();
        let error = Error::Connect {
            address: "127.0.0.1:1".into(),
            source: redis::RedisError::from(refused).into(),
        };
        let expected = format!("cannot connect to 127.0.0.1:1: {said}");
        assert_eq!(error.chain(), expected);
        assert_eq!(kumi_common::Chain(&error).to_string(), expected);
    }
}
