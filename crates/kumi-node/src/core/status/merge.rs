//! A cluster's status from the replies of its nodes.
//!
//! What nodes share is taken from one reply: members and store from the node that knows most of them, each queue and
//! each schedule from the first reply that has it. What is a node's own is listed, or summed where several nodes have a
//! part of one thing, as the instances of a unit. So each figure counts once, however many nodes replied.

use super::figures::age;
use super::{
    Attention, AttentionKind, ClusterStatus, CronStatus, MAX_ENTRIES, MAX_NODES, MemberStatus,
    NodeStatus, QueueStatus, STATUS_FORMAT, Severity, StoreStatus, UnitStatus, cut, note_left_out,
    order,
};
use kumi_common::Shown;
use std::collections::{BTreeMap, BTreeSet};

/// Characters of a name of another node that are shown.
const NAME_CHARS: usize = 63;

/// Lists that are about what all nodes share.
const SHARED_LISTS: [&str; 3] = ["members", "queues", "cron"];

impl ClusterStatus {
    /// Merges the replies of nodes, at most [`MAX_NODES`]; `silent` are the names of those that did not reply in time.
    #[must_use]
    pub fn merge(replies: Vec<NodeStatus>, silent: Vec<String>, at_unix_ms: u64) -> Self {
        let mut merged = Self {
            format: STATUS_FORMAT,
            at_unix_ms,
            ..Self::default()
        };
        let beyond = replies.len().saturating_sub(MAX_NODES) as u64;
        let mut replies: Vec<NodeStatus> = replies
            .into_iter()
            .take(MAX_NODES)
            .map(NodeStatus::bounded)
            .collect();
        replies.sort_by(|a, b| (&a.node.name, &a.node.life).cmp(&(&b.node.name, &b.node.life)));
        // A node that was asked twice has one reply; the later life is the node.
        replies.reverse();
        let mut names = BTreeSet::new();
        replies.retain(|reply| names.insert(reply.node.name.clone()));
        replies.reverse();

        merged.silent = silent
            .into_iter()
            .filter(|name| !names.contains(name))
            .collect();
        merged.silent.sort();
        merged.silent.dedup();
        merged.silent.truncate(MAX_NODES);
        if beyond > 0 {
            note_left_out(&mut merged.left_out, "nodes", beyond);
        }
        merged.members = members(&replies);
        merged.store = store(&replies);
        merged.units = units(&replies);
        merged.queues = shared(
            &replies,
            |reply| &reply.queues,
            |queue: &QueueStatus| queue.name.clone(),
        );
        merged.cron = shared(
            &replies,
            |reply| &reply.cron,
            |cron: &CronStatus| (cron.queue.clone(), cron.name.clone()),
        );
        let is_reached = merged.store.as_ref().is_some_and(is_reached);
        for mut reply in replies {
            if is_reached {
                tell_own_view(&mut reply);
            }
            merged.attention.extend(reply.attention);
            merged.workers.extend(reply.workers);
            merged.programs.extend(reply.programs);
            for note in reply.left_out {
                let mut noted = merged.left_out.iter();
                let noted = noted.find(|noted| noted.list == note.list);
                let more = match noted {
                    // Every node left out the same entries.
                    Some(noted) if SHARED_LISTS.contains(&&*note.list) => {
                        note.entries.saturating_sub(noted.entries)
                    }
                    _ => note.entries,
                };
                note_left_out(&mut merged.left_out, &note.list, more);
            }
            merged.nodes.push(reply.node);
        }
        merged
            .attention
            .extend(merged.silent.iter().map(|name| not_answering(name)));
        order(&mut merged.attention);
        merged.bound();
        merged
    }

    fn bound(&mut self) {
        let left_out = &mut self.left_out;
        cut(&mut self.members, "members", left_out);
        cut(&mut self.units, "units", left_out);
        cut(&mut self.queues, "queues", left_out);
        cut(&mut self.workers, "workers", left_out);
        cut(&mut self.programs, "programs", left_out);
        cut(&mut self.cron, "cron", left_out);
        left_out.truncate(MAX_ENTRIES);
        left_out.sort();
    }
}

fn not_answering(name: &str) -> Attention {
    Attention {
        severity: Severity::Yellow,
        kind: AttentionKind::NodeSilent,
        subject: name.into(),
        words: format!(
            "node {} did not answer: what it alone knows is missing here",
            shown(name)
        ),
    }
}

/// Says of a store that others reach that this node does not.
fn tell_own_view(reply: &mut NodeStatus) {
    let away = reply.store.as_ref();
    let away = away.and_then(|store| store.away_since_unix_ms);
    let for_ms = reply.node.clock_unix_ms.saturating_sub(away.unwrap_or(0));
    let attention = reply.attention.iter_mut();
    for one in attention.filter(|one| one.kind == AttentionKind::StoreAway) {
        one.subject.clone_from(&reply.node.name);
        one.words = format!(
            "node {} does not reach the store, for {}: its workers wait, its calls fail by their deadlines",
            shown(&reply.node.name),
            age(for_ms)
        );
    }
}

fn shown(name: &str) -> Shown<'_> {
    Shown {
        bytes: name.as_bytes(),
        limit_chars: NAME_CHARS,
    }
}

/// The members that the node with the largest view sees.
fn members(replies: &[NodeStatus]) -> Vec<MemberStatus> {
    let largest = replies.iter().rev().max_by_key(|reply| reply.members.len());
    let mut members = largest.map_or_else(Vec::new, |reply| reply.members.clone());
    members.sort_by(|a, b| (&a.name, &a.life).cmp(&(&b.name, &b.life)));
    members
}

fn is_reached(store: &StoreStatus) -> bool {
    store.away_since_unix_ms.is_none()
}

/// The store as its own node sees it; otherwise as a node sees it that reaches it. It is away if nobody reaches it.
/// Problems are those of all replies.
fn store(replies: &[NodeStatus]) -> Option<StoreStatus> {
    let seen = |reply: &&NodeStatus| reply.store.is_some();
    let rank = |reply: &&NodeStatus| {
        let store = reply.store.as_ref();
        let is_reached = store.is_some_and(is_reached);
        let is_here = store.is_some_and(|store| store.node == reply.node.name);
        (is_reached, is_here)
    };
    let best = replies.iter().rev().filter(seen).max_by_key(rank)?;
    let mut store = best.store.clone()?;
    for other in replies.iter().filter_map(|reply| reply.store.as_ref()) {
        for problem in &other.problems {
            if !store.problems.contains(problem) && store.problems.len() < MAX_ENTRIES {
                store.problems.push(problem.clone());
            }
        }
    }
    Some(store)
}

/// Each unit once, summed over the nodes that serve it. The worst percentile is that of the unit: percentiles cannot be
/// added.
fn units(replies: &[NodeStatus]) -> Vec<UnitStatus> {
    let mut units: BTreeMap<&str, UnitStatus> = BTreeMap::new();
    for unit in replies.iter().flat_map(|reply| &reply.units) {
        let sum = units.entry(&unit.name).or_insert_with(|| UnitStatus {
            name: unit.name.clone(),
            ..UnitStatus::default()
        });
        sum.instances = sum.instances.saturating_add(unit.instances);
        sum.calls_per_second += unit.calls_per_second;
        sum.errors_per_second += unit.errors_per_second;
        sum.p99_ms = match (sum.p99_ms, unit.p99_ms) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }
    units.into_values().collect()
}

/// Each entry of a list that all nodes share, from the first reply that has it.
fn shared<T: Clone, K: Ord>(
    replies: &[NodeStatus],
    list: impl Fn(&NodeStatus) -> &Vec<T>,
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut entries: BTreeMap<K, T> = BTreeMap::new();
    for entry in replies.iter().flat_map(list) {
        entries.entry(key(entry)).or_insert_with(|| entry.clone());
    }
    entries.into_values().collect()
}
