//! The node's HTTP server: health, readiness and metrics.
//!
//! It runs on a thread of its own with a runtime of its own, so that a scrape takes no time from the store's threads or
//! from the caller's runtime. It knows nothing of the other parts: a [`Source`] hands it plain snapshots.
//!
//! | path | answer | where |
//! |---|---|---|
//! | `/healthz` | 200 while the process serves | every listener |
//! | `/readyz` | 200, or 503 with the reason | every listener |
//! | `/metrics` | Prometheus text, version 0.0.4 | loopback listeners; elsewhere with a bearer token |
//! | `/` | a list of the paths | every listener |
//!
//! A page in a browser can make the browser send requests to loopback addresses, under a name that the page's owner
//! controls (DNS rebinding). So the name in `Host` has to be an IP address, `localhost` or one that was configured.

mod connections;
mod hosts;
mod metrics;
mod options;
mod places;
mod routes;
mod server;
mod shared;
mod snapshot;

pub use hosts::HostNames;
pub use options::{HttpOptions, TlsSource};
pub use server::{HttpError, HttpListener, HttpServer};
pub use snapshot::{
    MemberFacts, NodeSnapshot, ProgramFacts, QueueFacts, Readiness, Source, StoreFacts, UnitFacts,
};
