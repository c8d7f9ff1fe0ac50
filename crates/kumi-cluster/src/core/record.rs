//! What one node knows about another, and how two such pieces of knowledge become one.
//!
//! Merging is a join in a lattice: commutative, associative and idempotent, whatever order gossip arrives in. A record
//! is, in this order of weight,
//!
//! ```text
//!   uid                      a later life replaces the earlier one altogether
//!   Removed > Dead           absorb every incarnation of their uid: no resurrection
//!   incarnation, then rank   Leaving > Suspect > Up > Joining
//! ```
//!
//! and beside it two parts that merge on their own: who accuses a Suspect (only at the same incarnation), and the
//! metadata, stamped by the subject with a counter of its own, so that a rumour may leave it out.
//!
//! The order knows nothing of steps that a life may not take, such as from Leaving back to Up: a merge that looked at
//! them would depend on what came first. The caller of a merge looks at the step afterwards.

use crate::core::hash;
use crate::core::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::metadata::MemberMetadata;
use crate::core::status::NodeStatus;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The most accusers a record carries. A subject has 9 monitors, or a few more while views of the ring differ.
pub const MAX_ACCUSERS: usize = 24;

/// One monitor's word on a suspect. An odd round accuses, an even one has taken it back; a later round outweighs an
/// earlier one, so withdrawal travels like everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Accusation {
    /// The monitor.
    pub accuser: NodeUid,
    /// How often it has changed its mind.
    pub round: u16,
}

impl Accusation {
    /// Whether the monitor accuses, as opposed to having taken it back.
    pub const fn stands(self) -> bool {
        self.round % 2 == 1
    }
}

/// The members that accuse a suspect at its present incarnation, sorted. Mostly empty, and then one word in size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::box_collection,
    reason = "a thin pointer: nearly every record has none of them"
)]
pub struct Accusations(Option<Box<Vec<Accusation>>>);

impl Accusations {
    /// No accuser.
    pub const NONE: Self = Self(None);

    /// All of them, standing or withdrawn.
    pub fn as_slice(&self) -> &[Accusation] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The monitors that accuse at the moment.
    pub fn standing(&self) -> impl Iterator<Item = NodeUid> + '_ {
        let standing = self
            .as_slice()
            .iter()
            .filter(|accusation| accusation.stands());
        standing.map(|accusation| accusation.accuser)
    }

    /// The round that this accuser is in; 0 when it never spoke.
    pub fn round_of(&self, accuser: NodeUid) -> u16 {
        let all = self.as_slice();
        all.binary_search_by_key(&accuser, |accusation| accusation.accuser)
            .map_or(0, |index| all[index].round)
    }

    /// Takes one monitor's word in; whether that said anything new.
    ///
    /// Past the limit the lowest accusers are kept. Keeping the lowest of a growing set is itself independent of order,
    /// so the lattice survives the limit.
    pub(crate) fn add(&mut self, accusation: Accusation) -> bool {
        let all = self.0.get_or_insert_default();
        match all.binary_search_by_key(&accusation.accuser, |known| known.accuser) {
            Ok(index) => {
                let newer = accusation.round > all[index].round;
                if newer {
                    all[index].round = accusation.round;
                }
                newer
            }
            Err(index) if index >= MAX_ACCUSERS => false,
            Err(index) => {
                all.insert(index, accusation);
                all.truncate(MAX_ACCUSERS);
                true
            }
        }
    }

    pub(crate) fn from_sorted(all: Vec<Accusation>) -> Self {
        if all.is_empty() {
            return Self::NONE;
        }
        Self(Some(Box::new(all)))
    }
}

/// The state of one authority as one node knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberRecord {
    /// Where the member is reached.
    pub authority: Authority,
    /// Which life this is about.
    pub uid: NodeUid,
    /// How often the subject has spoken up against suspicion. Only the subject raises it.
    pub incarnation: u64,
    /// What it is.
    pub status: NodeStatus,
    /// The members that accuse it. Empty unless it is Suspect.
    pub accusations: Accusations,
    /// Counts how often the subject wrote its metadata; 0 while it is not known.
    pub metadata_stamp: u64,
    /// What it says about itself.
    pub metadata: MemberMetadata,
}

/// What a merge did to the record that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Merge {
    /// Nothing: all of it was known.
    Unchanged,
    /// Something was learned, with the same uid; the status may have changed.
    Advanced,
    /// Another life has taken the authority over.
    Superseded,
}

impl MemberRecord {
    /// A node at its first incarnation.
    pub fn new(identity: NodeIdentity, status: NodeStatus, metadata: MemberMetadata) -> Self {
        Self {
            authority: identity.authority,
            uid: identity.uid,
            incarnation: 1,
            status,
            accusations: Accusations::NONE,
            metadata_stamp: 1,
            metadata,
        }
    }

    /// The identity that the record is about.
    pub fn identity(&self) -> NodeIdentity {
        NodeIdentity {
            authority: self.authority.clone(),
            uid: self.uid,
        }
    }

    /// Takes in what another node knows about the same authority: the least record that is not below either.
    ///
    /// Both must be canonical, as everything decoded or made here is: only a Suspect has accusers.
    pub fn merge(&mut self, other: &Self) -> Merge {
        debug_assert_eq!(self.authority, other.authority);
        if other.uid != self.uid {
            if other.uid < self.uid {
                return Merge::Unchanged;
            }
            self.clone_from(other);
            return Merge::Superseded;
        }
        let (weight, theirs) = (self.weight(), other.weight());
        let mut learned = self.merge_metadata(other);
        if theirs > weight {
            self.status = other.status;
            self.accusations = other.accusations.clone();
            learned = true;
        } else if theirs == weight {
            for &accusation in other.accusations.as_slice() {
                learned |= self.accusations.add(accusation);
            }
        }
        if other.incarnation > self.incarnation {
            self.incarnation = other.incarnation;
            learned = true;
        }
        if learned {
            Merge::Advanced
        } else {
            Merge::Unchanged
        }
    }

    /// After a merge that led here from `before`: whether that is a step which a life may take. If it is not, the
    /// record does not go back: a member that was seen to leave is leaving, and one that was seen to arrive has arrived, in the incarnation
    /// that was learned of too. There it outweighs what was said, so all who hear of both come to the same.
    pub(crate) fn settle(&mut self, before: NodeStatus) -> bool {
        // Up was in between; it was not received here.
        let skipped = (before, self.status) == (NodeStatus::Joining, NodeStatus::Suspect);
        if before == self.status || before.may_become(self.status) || skipped {
            return true;
        }
        self.status = match before {
            NodeStatus::Suspect => NodeStatus::Up,
            before => before,
        };
        self.accusations = Accusations::NONE;
        false
    }

    /// Drops what no sender writes.
    pub(crate) fn make_canonical(&mut self) {
        if self.status != NodeStatus::Suspect {
            self.accusations = Accusations::NONE;
        }
        if self.metadata_stamp == 0 {
            self.metadata = MemberMetadata::EMPTY;
        }
    }

    /// Metadata written later replaces what was there. Two texts with one stamp only come from a
    /// subject that contradicts itself; the greater bytes win, so that all nodes still agree.
    fn merge_metadata(&mut self, other: &Self) -> bool {
        let (ours, theirs) = (
            (self.metadata_stamp, &self.metadata),
            (other.metadata_stamp, &other.metadata),
        );
        let newer = theirs > ours;
        if newer {
            self.metadata_stamp = other.metadata_stamp;
            self.metadata = other.metadata.clone();
        }
        newer
    }

    /// The order within one uid. A terminal status weighs the same at every incarnation.
    fn weight(&self) -> (u8, u64, u8) {
        match self.status {
            NodeStatus::Removed => (2, 0, 0),
            NodeStatus::Dead => (1, 0, 0),
            status => (0, self.incarnation, status.code()),
        }
    }

    /// A hash of everything that two nodes have to agree on. The place is the authority's on the ring, which the table
    /// that keeps the record has at hand.
    pub(crate) fn digest(&self, place: u64) -> u64 {
        let mut digest = hash::fold(self.topology_hash(place), self.incarnation);
        digest = hash::fold(digest, self.metadata_stamp);
        for accusation in self.accusations.as_slice() {
            digest = hash::fold(digest, accusation.accuser.raw());
            digest = hash::fold(digest, u64::from(accusation.round));
        }
        digest
    }

    /// A hash of what a topology is made of.
    pub(crate) fn topology_hash(&self, place: u64) -> u64 {
        hash::fold(
            hash::fold(place, self.uid.raw()),
            u64::from(self.status.code()),
        )
    }
}

#[cfg(test)]
mod tests;
