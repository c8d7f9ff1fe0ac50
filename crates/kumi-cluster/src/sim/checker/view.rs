//! One node as its events and records show it: its members, its topology, and its open departures.

use std::collections::BTreeSet;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

use crate::core::{Authority, Member, NodeIdentity, NodeStatus, NodeUid, TimerInstant};
use crate::sim::subject_of;

/// What one node has shown of itself.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) subject: usize,
    /// Which of all processes that were ever started this is.
    pub(super) process: u64,
    /// Whether it only watches the cluster.
    pub(super) is_client: bool,
    pub(super) cells: Vec<Cell>,
    /// The lives in the topology as its events tell it.
    pub(super) replay: Vec<Option<NodeUid>>,
    pub(super) replayed: usize,
    pub(super) topology: Option<(TimerInstant, u64)>,
    /// When the node last told of any change, or its sense of time was last disturbed, in virtual time.
    pub(super) changed_us: u64,
    /// By subject, the life that was reported as active and has no reported departure.
    pub(super) alive: Vec<Option<NodeUid>>,
    /// Authorities that operators kept out as of the last sweep.
    pub(super) ordered: BTreeSet<Authority>,
    /// Authorities whose quarantine was reported to be over since.
    pub(super) released: BTreeSet<Authority>,
}

/// What one node has shown about one authority.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    /// The last status that was reported.
    pub(super) told: Option<(NodeUid, NodeStatus)>,
    /// The last record seen.
    pub(super) record: Option<(NodeUid, u64, NodeStatus)>,
}

/// A topology event as plain facts.
#[derive(Clone, Copy, Debug)]
pub struct TopologyFacts<'a> {
    /// The active members.
    pub members: &'a [Member],
    /// Members that joined.
    pub joined: &'a [NodeIdentity],
    /// Members that left.
    pub left: &'a [NodeIdentity],
    /// Members that died.
    pub dead: &'a [NodeIdentity],
    /// The hash in the event.
    pub hash: u64,
    /// When, on the node's clock.
    pub observed_at: TimerInstant,
    /// The hash of the node's table right after.
    pub snapshot_hash: u64,
}

impl View {
    /// A process that has shown nothing yet.
    pub(super) fn new(subject: usize, process: u64, subjects: usize, at_us: u64) -> Self {
        Self {
            subject,
            process,
            is_client: false,
            cells: vec![Cell::default(); subjects],
            replay: vec![None; subjects],
            replayed: 0,
            topology: None,
            changed_us: at_us,
            alive: vec![None; subjects],
            ordered: BTreeSet::new(),
            released: BTreeSet::new(),
        }
    }

    /// Applies the differences of an event, and compares with the members it names.
    pub(super) fn replay(&mut self, event: &TopologyFacts<'_>) -> Result<(), String> {
        for gone in event.left.iter().chain(event.dead) {
            let subject =
                subject_of(&gone.authority).filter(|&subject| subject < self.replay.len());
            let subject =
                subject.ok_or_else(|| format!("no node has the name {}", gone.authority))?;
            if self.replay[subject].take() != Some(gone.uid) {
                return Err(format!("{gone} went without having been there"));
            }
            self.replayed -= 1;
        }
        for new in event.joined {
            let subject = subject_of(&new.authority).filter(|&subject| subject < self.replay.len());
            let subject =
                subject.ok_or_else(|| format!("no node has the name {}", new.authority))?;
            if let Some(before) = self.replay[subject].replace(new.uid) {
                return Err(format!("{new} came while #{before} was there"));
            }
            self.replayed += 1;
        }
        if self.replayed != event.members.len() {
            return Err(format!(
                "{} replayed, {} members",
                self.replayed,
                event.members.len()
            ));
        }
        for member in event.members {
            let subject =
                subject_of(&member.authority).filter(|&subject| subject < self.replay.len());
            if subject.and_then(|subject| self.replay[subject]) != Some(member.uid) {
                return Err(format!(
                    "{}#{} is a member, but not in the replay",
                    member.authority, member.uid
                ));
            }
        }
        Ok(())
    }
}
