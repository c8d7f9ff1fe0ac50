//! What the connections of the HTTP server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::body::Bytes;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::options::{HttpOptions, TlsSource};
use super::snapshot::Source;

/// What all connections share.
pub(super) struct Shared {
    pub(super) options: HttpOptions,
    pub(super) source: Arc<dyn Source>,
    pub(super) stopping: CancellationToken,
    pub(super) counters: Counters,
    pub(super) last_scrape: LastScrape,
}

/// A listener's policy.
pub(super) struct Listening {
    pub(super) is_loopback: bool,
    pub(super) tls: Option<TlsSource>,
}

/// What the server counts about itself.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) requests: Counter,
    pub(super) accepted: Counter,
    pub(super) closed: Counter,
    pub(super) refused: Counter,
    /// Idle connections that were closed for new ones.
    pub(super) evicted: Counter,
}

#[derive(Default)]
pub(super) struct Counter(AtomicU64);

/// The server's counters at one moment.
pub(super) struct HttpFacts {
    pub(super) requests: u64,
    pub(super) connections: u64,
    pub(super) refused: u64,
    pub(super) evicted: u64,
}

impl Counter {
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(super) fn snapshot(&self) -> HttpFacts {
        HttpFacts {
            requests: self.requests.get(),
            connections: self.accepted.get().saturating_sub(self.closed.get()),
            refused: self.refused.get(),
            evicted: self.evicted.get(),
        }
    }
}

/// The metrics of one moment, and when their collection began.
#[derive(Default)]
pub(super) struct LastScrape(pub(super) Mutex<Option<(Instant, Bytes)>>);
