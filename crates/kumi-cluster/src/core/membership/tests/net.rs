//! A few runtimes on a network that delivers after a fixed time, unless a test cuts it.

use crate::core::base::identity::{Authority, NodeUid};
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::status::NodeStatus;
use crate::core::base::time::TimerInstant;
use crate::core::membership::{LocalNode, MembershipRuntime, MembershipRuntimeOutcome};
use crate::core::protocol::event::{ClusterEvent, Departure, MembershipEvent};
use crate::core::{GossipOutbound, MembershipRuntimeConfig, MessageKind};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;

const LATENCY: Duration = Duration::from_millis(2);
/// The wall clock when a test begins.
pub(super) const UNIX_MS: u64 = 1_700_000_000_000;

type Parcel = (usize, usize, Arc<[u8]>);

pub(super) struct Net {
    pub(super) config: MembershipRuntimeConfig,
    pub(super) nodes: Vec<MembershipRuntime>,
    /// Nodes whose process is gone or stopped: they are neither polled nor told.
    pub(super) down: BTreeSet<usize>,
    /// LinkTable that carry nothing, from and to.
    pub(super) cut: BTreeSet<(usize, usize)>,
    pub(super) now: TimerInstant,
    /// By time of arrival and order of sending: from, to and what.
    queue: BTreeMap<(TimerInstant, u64), Parcel>,
    next: u64,
    pub(super) events: Vec<Vec<ClusterEvent>>,
    pub(super) notes: Vec<Vec<MembershipEvent>>,
    pub(super) departures: Vec<Vec<Departure>>,
    pub(super) packets: BTreeMap<(usize, MessageKind), u64>,
    /// Everything that was sent, when, and by whom, once a test asks for it.
    pub(super) log: Option<Vec<(TimerInstant, usize, GossipOutbound)>>,
}

pub(super) fn authority(index: usize) -> Authority {
    Authority::new(&format!("n{index}:1")).expect("valid")
}

pub(super) fn local_node(index: usize, unix_ms: u64) -> LocalNode {
    LocalNode {
        authority: authority(index),
        metadata: MemberMetadata::build("1.0", &["test"], &[]).expect("short"),
        unix_ms,
        uid: None,
    }
}

impl Net {
    pub(super) fn new(config: MembershipRuntimeConfig) -> Self {
        Self {
            config,
            nodes: Vec::new(),
            down: BTreeSet::new(),
            cut: BTreeSet::new(),
            now: TimerInstant::from_millis(1000),
            queue: BTreeMap::new(),
            next: 0,
            events: Vec::new(),
            notes: Vec::new(),
            departures: Vec::new(),
            packets: BTreeMap::new(),
            log: None,
        }
    }

    /// So many nodes that have found together.
    pub(super) fn settled(count: usize) -> Self {
        let mut net = Self::new(MembershipRuntimeConfig::local());
        for _ in 0..count {
            net.start(&[0]);
        }
        net.run(Duration::from_secs(5));
        net.assert_agreed(count);
        net.events.iter_mut().for_each(Vec::clear);
        net.departures.iter_mut().for_each(Vec::clear);
        net
    }

    pub(super) fn unix_ms(&self) -> u64 {
        UNIX_MS + self.now.as_micros() / 1000
    }

    /// A node that is not started yet.
    pub(super) fn add(&mut self) -> usize {
        let index = self.nodes.len();
        let node = local_node(index, self.unix_ms());
        let runtime = MembershipRuntime::new(self.config.clone(), node, index as u64, self.now);
        self.nodes
            .push(runtime.expect("the configuration is valid"));
        self.events.push(Vec::new());
        self.notes.push(Vec::new());
        self.departures.push(Vec::new());
        index
    }

    pub(super) fn start(&mut self, seeds: &[usize]) -> usize {
        let index = self.add();
        let seeds: Vec<Authority> = seeds.iter().map(|&seed| authority(seed)).collect();
        self.nodes[index]
            .start_member(&seeds, self.now)
            .expect("stopped before");
        index
    }

    /// A new process in place of an old one.
    pub(super) fn restart(&mut self, index: usize, node: LocalNode, seed: usize) {
        let runtime =
            MembershipRuntime::new(self.config.clone(), node, 1000 + index as u64, self.now);
        self.nodes[index] = runtime.expect("the configuration is valid");
        self.nodes[index]
            .start_member(&[authority(seed)], self.now)
            .expect("stopped before");
        self.down.remove(&index);
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.next_step().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            while let Some(entry) = self
                .queue
                .first_entry()
                .filter(|entry| entry.key().0 <= self.now)
            {
                let (from, to, bytes) = entry.remove();
                if !self.down.contains(&to) && !self.cut.contains(&(from, to)) {
                    // A refusal is counted by the runtime, and some tests are about that.
                    let _ = self.nodes[to].handle_message(&authority(from), &bytes, self.now);
                }
            }
            self.poll_due();
        }
        self.now = end;
    }

    fn next_step(&self) -> Option<TimerInstant> {
        let message = self.queue.first_key_value().map(|(&(at, _), _)| at);
        let nodes = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(index, _)| !self.down.contains(index));
        nodes
            .filter_map(|(_, node)| node.next_deadline())
            .chain(message)
            .min()
    }

    fn poll_due(&mut self) {
        for index in 0..self.nodes.len() {
            let due = self.nodes[index]
                .next_deadline()
                .is_some_and(|at| at <= self.now);
            if due && !self.down.contains(&index) {
                self.poll(index);
            }
        }
    }

    pub(super) fn poll(&mut self, index: usize) {
        let outcome = self.nodes[index].poll(self.now);
        self.publish(index, outcome);
    }

    /// Sends and keeps what a node has handed out.
    pub(super) fn publish(&mut self, index: usize, outcome: MembershipRuntimeOutcome) {
        for outbound in &outcome.gossip_outbound {
            *self.packets.entry((index, outbound.kind)).or_default() += 1;
            if let Some(log) = &mut self.log {
                log.push((self.now, index, outbound.clone()));
            }
            let to = (0..self.nodes.len()).find(|&to| authority(to) == outbound.to);
            if let Some(to) = to.filter(|&to| !self.cut.contains(&(index, to))) {
                self.next += 1;
                self.queue.insert(
                    (self.now + LATENCY, self.next),
                    (index, to, outbound.bytes.clone()),
                );
            }
        }
        self.notes[index].extend(outcome.membership_events.iter().cloned());
        self.departures[index].extend(outcome.departures.iter().cloned());
        self.events[index].extend(outcome.into_events());
    }

    /// A provider of one node tells it of a member.
    pub(super) fn name(&mut self, index: usize, uid: NodeUid, of: usize) {
        let outcome = self.nodes[index].handle_join(uid, authority(of), self.now);
        self.publish(index, outcome.expect("welcome"));
    }

    /// Cuts every link between the two groups, both ways.
    pub(super) fn part(&mut self, one: &[usize], two: &[usize]) {
        for &from in one {
            for &to in two {
                self.cut.extend([(from, to), (to, from)]);
            }
        }
    }

    pub(super) fn status(&self, viewer: usize, of: usize) -> Option<NodeStatus> {
        let record = self.nodes[viewer].table().record(&authority(of));
        record.map(|record| record.status)
    }

    pub(super) fn uid(&self, index: usize) -> NodeUid {
        self.nodes[index].identity().uid
    }

    /// What happened to this life in the eyes of a viewer.
    pub(super) fn steps(&self, viewer: usize, uid: NodeUid) -> Vec<NodeStatus> {
        let steps = self.events[viewer].iter().filter_map(|event| match event {
            ClusterEvent::MemberStatusChanged { node_id, to, .. } if *node_id == uid => Some(*to),
            _ => None,
        });
        steps.collect()
    }

    pub(super) fn count(&self, viewer: usize, wanted: impl Fn(&ClusterEvent) -> bool) -> usize {
        self.events[viewer]
            .iter()
            .filter(|event| wanted(event))
            .count()
    }

    pub(super) fn assert_agreed(&self, members: usize) {
        let living = (0..self.nodes.len()).filter(|index| !self.down.contains(index));
        let mut hashes = BTreeSet::new();
        for index in living {
            let snapshot = self.nodes[index].snapshot();
            let shown: Vec<_> = snapshot
                .members
                .iter()
                .map(|member| (&member.authority, member.status))
                .collect();
            assert_eq!(
                snapshot.members.len(),
                members,
                "node {index} sees {shown:?}"
            );
            hashes.insert(snapshot.hash);
        }
        assert_eq!(hashes.len(), 1);
    }
}
