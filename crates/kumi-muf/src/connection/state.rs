//! The state of a unit's connections.

use std::sync::Arc;
use std::time::Instant;

/// The state of a unit's connections.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Connection {
    /// Connected to the server, or to all primaries of a cluster.
    Connected,
    /// The server, or a primary of a cluster, is away and is being connected again. Calls that wait for it go on when it
    /// is back.
    #[non_exhaustive]
    Away {
        /// When the first of them was lost.
        since: Instant,
        /// Why the last attempt to connect failed; none before an attempt has failed. A server that refuses a subscription,
        /// because permissions were taken away, is tried again like one that is not there.
        reason: Option<Arc<str>>,
    },
    /// The unit was closed.
    Closed,
}

impl Connection {
    /// Whether the server is connected.
    pub fn is_connected(&self) -> bool {
        *self == Connection::Connected
    }

    /// Why the server is away, if an attempt to connect has failed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Connection::Away { reason, .. } => reason.as_deref(),
            Connection::Connected | Connection::Closed => None,
        }
    }
}
