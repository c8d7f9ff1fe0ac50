//! Errors of this crate. Each says whose fault it is.

use std::time::Duration;

use kumi_common::{Chain, Shown};
use redis::ErrorKind;

/// Characters that errors show of what a server wrote.
const SHOWN_LIMIT: usize = 200;

/// What the `redis` crate, and behind it the system or the server, said of a connection. Its text has all of that, so it has
/// no source of its own: an error and its causes on one line would show the same twice.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", shown(&.0.to_string()))]
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

/// Why a server cannot be connected to, or does not do what is needed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a URL, names something that is not supported, or the certificates given with it cannot be used.
    /// The caller's fault; nothing was opened.
    #[error("the URL {url} cannot be used: {reason}")]
    Url {
        /// The URL without user, password and query.
        url: String,
        /// What is wrong with it, or with the certificates.
        reason: String,
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
        /// How long it was waited for.
        limit: Duration,
    },
    /// The server answers without TLS where the URL says TLS. The caller's fault; nothing but a PING was sent.
    #[error(
        "the server at {address} answers without TLS: its URL begins with redis://, not rediss://"
    )]
    WithoutTls {
        /// `host:port`.
        address: String,
    },
    /// The server does not have the database that the URL names. The caller's fault.
    #[error("the server at {address} has no database {database}: {}", shown(.reason))]
    Database {
        /// `host:port`, or the path of a Unix socket.
        address: String,
        /// The database of the URL.
        database: i64,
        /// The server's error.
        reason: String,
    },
    /// The connection broke, or got no reply in time, while commands were under way: they may have run or not.
    #[error("the connection to {address} broke")]
    Broken {
        /// `host:port`, or the path of a Unix socket.
        address: String,
        /// What the system said.
        #[source]
        source: Cause,
    },
    /// The server cannot serve now: it loads its data, is a replica, or its cluster has no node for the key. The
    /// command did not run.
    #[error("the server at {address} cannot serve now")]
    Unavailable {
        /// `host:port`, or the path of a Unix socket.
        address: String,
        /// The server's error.
        #[source]
        source: Cause,
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
    /// The server refused a command that is needed, which was not carried out.
    #[error("the server at {server} refused: {}", shown(.reason))]
    Refused {
        /// The server of the URL: `host:port`, or the path of a Unix socket.
        server: String,
        /// The server's error.
        reason: String,
    },
}

/// What a server wrote, as errors show it.
fn shown(text: &str) -> Shown<'_> {
    Shown {
        bytes: text.as_bytes(),
        limit_chars: SHOWN_LIMIT,
    }
}

impl Error {
    pub(crate) fn unusable(url: &str, reason: &str) -> Self {
        Error::Url {
            url: url.to_owned(),
            reason: reason.to_owned(),
        }
    }

    /// Whether the server wants credentials, other ones, or a user with more permissions.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        match self {
            Error::Connect { source, .. } => {
                matches!(source.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"))
            }
            _ => false,
        }
    }

    /// Whether a first attempt to connect failed for a reason that time does not cure: the URL is more likely wrong than the
    /// server about to start. A timeout may be a server that is busy, and what a server replies is for the caller to judge.
    #[must_use]
    pub fn is_definite(&self) -> bool {
        match self {
            Error::Connect { source, .. } => match source.kind() {
                ErrorKind::Io => !source.is_timeout(),
                ErrorKind::Parse | ErrorKind::Client | ErrorKind::InvalidClientConfig => true,
                _ => false,
            },
            Error::Url { .. }
            | Error::WithoutTls { .. }
            | Error::Database { .. }
            | Error::Certificate { .. } => true,
            _ => false,
        }
    }

    /// The error and its cause on one line, for a log.
    pub(crate) fn chain(&self) -> String {
        Chain(self).to_string()
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
    }
}
