//! The state of a unit's connections.

use std::time::Instant;

/// The state of a unit's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Connection {
    /// Connected to the server, or to all primaries of a cluster.
    Connected,
    /// The server, or a primary of a cluster, is away and is being connected again. Calls that wait for it go on when it
    /// is back.
    Away {
        /// When the first of them was lost.
        since: Instant,
    },
    /// The unit was closed.
    Closed,
}

impl Connection {
    /// Whether the server is connected.
    pub fn is_connected(self) -> bool {
        self == Connection::Connected
    }
}
