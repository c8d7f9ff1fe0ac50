//! Looks on while nodes of ours run: who holds whom for what, who was given up without a reason, how many sizes of the
//! cluster were told.
//!
//! It only counts. Whether promises are kept is the business of the simulation's own tests.

use std::collections::BTreeSet;

use kumi_cluster::core::{MembershipRuntime, MembershipRuntimeOutcome};
use kumi_cluster::sim::{Watch, subject_of};
use kumi_cluster::{ClusterEvent, NodeStatus, NodeUid, TimerInstant};

/// What was seen.
#[derive(Debug)]
pub(crate) struct Probe {
    nodes: usize,
    /// By place and subject: the last status told, and of which life.
    told: Vec<Option<(NodeUid, NodeStatus)>>,
    /// The life that runs, by subject.
    running: Vec<Option<NodeUid>>,
    /// Nodes whose death would be no surprise.
    pub(crate) excused: Vec<bool>,
    /// The sizes of the cluster told in topology events, by place.
    sizes: Vec<BTreeSet<usize>>,
    /// Times a running node that nothing was done to was told to be Dead.
    pub(crate) false_deaths: u64,
    /// Times a member was told to be Suspect.
    pub(crate) suspicions: u64,
    /// When the last death of each subject was told.
    died_us: Vec<u64>,
    /// Nodes that asked for turns without end.
    pub(crate) stuck: u64,
}

impl Probe {
    pub(crate) fn new(nodes: usize) -> Probe {
        Probe {
            nodes,
            told: vec![None; nodes * nodes],
            running: vec![None; nodes],
            excused: vec![false; nodes],
            sizes: vec![BTreeSet::new(); nodes],
            false_deaths: 0,
            suspicions: 0,
            died_us: vec![0; nodes],
            stuck: 0,
        }
    }

    /// Whether all of these places hold the subject to be up, in the life that runs.
    pub(crate) fn all_hold_up(&self, places: &[usize], subject: usize) -> bool {
        let running = self.running[subject];
        let up = |&(uid, status): &(NodeUid, NodeStatus)| {
            Some(uid) == running && status == NodeStatus::Up
        };
        self.told_at(places, subject)
            .all(|told| told.as_ref().is_some_and(up))
    }

    /// Whether all of these places were told that the subject's life is over, and of no other life since.
    pub(crate) fn all_hold_dead(&self, places: &[usize], subject: usize) -> bool {
        self.told_at(places, subject)
            .all(|told| told.is_some_and(|(_, status)| status.is_terminal()))
    }

    fn told_at(
        &self,
        places: &[usize],
        subject: usize,
    ) -> impl Iterator<Item = Option<(NodeUid, NodeStatus)>> {
        places
            .iter()
            .map(move |place| self.told[place * self.nodes + subject])
    }

    /// When the last place learned of the subject's death.
    pub(crate) fn died_us(&self, subject: usize) -> u64 {
        self.died_us[subject]
    }

    /// The most sizes of the cluster that one node told.
    pub(crate) fn most_sizes(&self) -> usize {
        self.sizes.iter().map(BTreeSet::len).max().unwrap_or(0)
    }

    fn step(&mut self, at_us: u64, place: usize, subject: usize, uid: NodeUid, to: NodeStatus) {
        if to == NodeStatus::Dead {
            self.died_us[subject] = at_us;
            let runs = self.running[subject] == Some(uid);
            self.false_deaths += u64::from(runs && !self.excused[subject]);
        }
        self.suspicions += u64::from(to == NodeStatus::Suspect);
        self.told[place * self.nodes + subject] = Some((uid, to));
    }
}

impl Watch for Probe {
    fn started(&mut self, _at_us: u64, _place: usize, subject: usize, runtime: &MembershipRuntime) {
        self.running[subject] = Some(runtime.identity().uid);
    }

    fn ended(&mut self, _at_us: u64, place: usize, _runtime: &MembershipRuntime) {
        self.running[place] = None;
    }

    fn polled(
        &mut self,
        at_us: u64,
        place: usize,
        _now: TimerInstant,
        _runtime: &MembershipRuntime,
        outcome: &MembershipRuntimeOutcome,
    ) {
        for event in &outcome.member_events {
            match event {
                ClusterEvent::MemberStatusChanged {
                    node_id,
                    authority,
                    to,
                    ..
                } => {
                    if let Some(subject) = subject_of(authority) {
                        self.step(at_us, place, subject, *node_id, *to);
                    }
                }
                ClusterEvent::SelfDowned { successor, .. } => {
                    self.running[place] = successor.as_ref().map(|identity| identity.uid);
                }
                _ => {}
            }
        }
        if let Some(ClusterEvent::TopologyUpdated { members, .. }) = &outcome.topology_event {
            self.sizes[place].insert(members.len());
        }
    }

    fn stuck(&mut self, _at_us: u64, _place: usize) {
        self.stuck += 1;
    }
}
