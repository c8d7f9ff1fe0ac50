//! What the HTTP server shows of a node.
//!
//! The server has a thread and a runtime of its own. Facts are collected on the node's runtime, where the connections are. It
//! serves before there are facts: while the node's own store reads its data, and until membership has started.

use super::queue_part::QueueReply;
use super::{Collected, Collector, Parts, Phase};
use crate::core::status::Severity;
use crate::driver::keys::Keys;
use crate::http::{
    MemberFacts, NodeSnapshot, ProgramFacts, Readiness, Source, StoreFacts, UnitFacts,
};
use kumi_cluster::NodeStatus as MemberState;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Handle;

/// The node, for its HTTP server.
pub(crate) struct NodeSource {
    pub(crate) name: String,
    /// Whether the node starts a store of its own.
    pub(crate) has_store: bool,
    pub(crate) keys: Keys,
    /// The token of the configuration, instead of the derived one.
    pub(crate) token: Option<Arc<str>>,
    pub(crate) runtime: Handle,
    /// Empty while the node starts.
    pub(crate) collector: OnceLock<Collector>,
}

impl Source for NodeSource {
    fn readiness(&self) -> Readiness {
        match self.collector.get() {
            Some(collector) => readiness(&collector.parts),
            None if self.has_store => Readiness::Loading,
            None => Readiness::NotJoined,
        }
    }

    fn snapshot(&self) -> Pin<Box<dyn Future<Output = NodeSnapshot> + Send>> {
        let Some(collector) = self.collector.get().cloned() else {
            let snapshot = NodeSnapshot {
                name: self.name.clone(),
                version: kumi_store::KUMI_VERSION.to_owned(),
                ..NodeSnapshot::default()
            };
            return Box::pin(async move { snapshot });
        };
        let collecting = self.runtime.spawn(async move {
            let collected = collector.collect().await;
            snapshot(&collector.parts, &collected)
        });
        // A collection that panicked, which tokio has reported, has no facts.
        Box::pin(async move { collecting.await.unwrap_or_default() })
    }

    fn is_metrics_token(&self, presented: &[u8]) -> bool {
        match (&self.token, &self.keys.now().trust) {
            (Some(token), _) => is_same(token.as_bytes(), presented),
            (None, Some(trust)) => trust.is_metrics_token(presented),
            (None, None) => false,
        }
    }
}

/// Compares two hashes in constant time.
fn is_same(token: &[u8], presented: &[u8]) -> bool {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, b"compare");
    let expected = ring::hmac::sign(&key, token);
    ring::hmac::verify(&key, presented, expected.as_ref()).is_ok()
}

/// Whether the node can be used. Waits for nothing.
pub(super) fn readiness(parts: &Parts) -> Readiness {
    let reach = parts.link.reach();
    let is_member = parts.standing.borrow().is_member;
    match *parts.phase.borrow() {
        Phase::Leaving => Readiness::Leaving,
        // A node that joins no other is a member from its start on.
        Phase::Running if !is_member => Readiness::NotJoined,
        Phase::Running if reach.is_loading => Readiness::Loading,
        Phase::Running if reach.is_up => Readiness::Ready,
        Phase::Running => Readiness::NoStore,
    }
}

fn snapshot(parts: &Parts, collected: &Collected) -> NodeSnapshot {
    let status = &collected.status;
    let mut attention: BTreeMap<String, u64> = BTreeMap::new();
    for one in &status.attention {
        let severity = match one.severity {
            Severity::Red => "red",
            Severity::Yellow => "yellow",
        };
        *attention.entry(severity.to_owned()).or_default() += 1;
    }
    // What all nodes share is reported by one of them.
    let reports = reports_shared(parts);
    let queues = match reports {
        true => collected.queues.iter().map(QueueReply::facts).collect(),
        false => Vec::new(),
    };
    let info = collected.info.clone();
    NodeSnapshot {
        name: parts.name.clone(),
        version: status.node.version.clone(),
        roles: status.node.roles.clone(),
        attention,
        store: reports.then_some(StoreFacts { info }),
        members: members(parts),
        queues,
        units: units(parts),
        programs: programs(parts),
    }
}

/// The node of the store reports it; of a store outside of the cluster, the member whose name sorts first.
fn reports_shared(parts: &Parts) -> bool {
    let choice = parts.link.choice();
    match choice.route.as_deref() {
        Some(route) if route.node.is_empty() => {
            let Some(node) = parts.node.upgrade() else {
                return false;
            };
            let members = node.members().members;
            let up = members
                .iter()
                .filter(|member| member.status == MemberState::Up);
            let first = up.filter_map(|member| member.name_and_life()).min();
            first.is_some_and(|first| first.name() == parts.name)
        }
        _ => parts.has_store,
    }
}

fn members(parts: &Parts) -> Option<MemberFacts> {
    let node = parts.node.upgrade()?;
    let members = node.members().members;
    let mut by_status: BTreeMap<String, u64> = BTreeMap::new();
    for member in members.iter() {
        *by_status
            .entry(member.status.as_str().to_owned())
            .or_default() += 1;
    }
    let suspects = members
        .iter()
        .filter(|member| member.status == MemberState::Suspect);
    let longest = suspects.map(|member| parts.times.held(member)).max();
    Some(MemberFacts {
        by_status,
        longest_suspicion_seconds: longest.map(|held| held.as_secs_f64()),
        highest_phi: None,
        gossip: node.metrics(),
    })
}

fn units(parts: &Parts) -> Vec<UnitFacts> {
    let work = parts.work();
    let units = work.units.iter().map(|(name, counters)| {
        let served = counters.served();
        UnitFacts {
            unit: name.clone(),
            instances: 1,
            requests: served.requests(),
            errors: served.errors,
            p99_seconds: served.quantile(0.99).map(|time| time.as_secs_f64()),
        }
    });
    units.collect()
}

fn programs(parts: &Parts) -> Vec<ProgramFacts> {
    let work = parts.work();
    let programs = work.programs.iter().map(|(name, state)| {
        let state = state.borrow();
        ProgramFacts {
            program: name.clone(),
            running: u64::from(state.pid.is_some()),
            restarts: state.starts.saturating_sub(1),
        }
    });
    programs.collect()
}
