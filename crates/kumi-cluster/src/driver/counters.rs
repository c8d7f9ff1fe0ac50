//! The counters of the driver. Every message that it drops is counted.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The counters of one node, as they change.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)*
        }

        /// The counters of one node at one moment. They only grow.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(default)]
        #[non_exhaustive]
        pub struct DriverMetrics {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub(super) fn snapshot(&self) -> DriverMetrics {
                DriverMetrics { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters! {
    /// Messages that left as datagrams.
    datagrams_sent,
    /// Messages that left on the reliable channel.
    reliable_sent,
    /// Datagrams that were too large for the path, or had no datagram channel, and were sent the reliable way.
    fallbacks,
    /// Messages that arrived.
    received,
    /// Messages that arrived and that the core refused.
    refused,
    /// Datagrams that arrived while the node was too busy to take them.
    inbound_dropped,
    /// Messages that found the queue towards their peer full.
    outbound_dropped,
    /// Datagrams that were dropped because they waited too long for a connection.
    stale_dropped,
    /// Messages to peers that could not be reached a moment ago.
    unreachable_dropped,
    /// Connections that were begun.
    dials,
    /// Connections that did not come about.
    dial_failures,
    /// Connections that peers made to this node.
    accepted,
    /// Peers that introduced themselves as another node than their certificate names, and were refused.
    impostors,
    /// Connections that were closed to make room for others.
    evicted,
    /// Connections that were closed because they were not used.
    idle_closed,
    /// Watchers that were too slow and missed events.
    watchers_lagged,
}

/// One counter.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn increment(&self) {
        self.add(1);
    }

    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }
}
