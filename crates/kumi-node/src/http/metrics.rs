//! A snapshot as Prometheus text: the store under the names of redis_exporter, everything else as `kumi_*`.
//!
//! Families, and the series within each, come in the same order every time. A family without a series is left out.

mod exposition;
mod node;
mod process;
mod store;

use exposition::Exposition;

use super::shared::HttpFacts;
use super::snapshot::{NodeSnapshot, Readiness};

/// All metrics of a node.
pub(super) fn text(snapshot: &NodeSnapshot, readiness: Readiness, http: &HttpFacts) -> String {
    let mut out = Exposition::default();
    if let Some(facts) = &snapshot.store {
        store::write(&mut out, facts.info.as_deref());
    }
    node::write(&mut out, snapshot, readiness);
    node::write_http(&mut out, http);
    process::write(&mut out);
    out.write_left_out();
    out.into_text()
}
