//! Given. The health figures that INFO shows.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that all connections share.
#[derive(Default)]
pub struct Stats {
    /// Connections that are open now.
    pub connections: AtomicU64,
    /// Commands executed since the start.
    pub commands: AtomicU64,
    /// Keys that active expiry deleted.
    pub actively_expired: AtomicU64,
}

impl Stats {
    /// The figures as text, one `name:value` per line, as INFO writes them.
    pub fn report(&self, keys: usize) -> String {
        format!(
            "connected_clients:{}\r\ntotal_commands_processed:{}\r\nactive_expired_keys:{}\r\nkeys:{keys}\r\n",
            self.connections.load(Ordering::Relaxed),
            self.commands.load(Ordering::Relaxed),
            self.actively_expired.load(Ordering::Relaxed),
        )
    }
}
