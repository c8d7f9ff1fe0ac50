//! The record of one member, and how two records of one authority are merged.
//!
//! Merging is a join in a lattice: commutative, associative and idempotent, so the order in which gossip arrives does not
//! matter. Records are ordered by, first to last:
//!
//! ```text
//!   uid                      a later life replaces the earlier one altogether
//!   Removed > Dead           absorb every incarnation of their uid: a life that ended does not become active again
//!   incarnation, then rank   Leaving > Suspect > Up > Joining
//! ```
//!
//! Two parts merge by themselves: the accusations against a Suspect (only at the same incarnation), and the metadata, which
//! its member stamps with a counter, so that an update may leave them out.
//!
//! The order does not check transitions, such as from Leaving back to Up: a merge that did would depend on the order of
//! arrival. The caller of a merge checks the transition afterwards ([`MemberRecord::settle`]).

use crate::core::base::hash;
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::status::NodeStatus;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// The most accusations in a record. A member has 9 monitors, or a few more while views of the ring differ.
pub const MAX_ACCUSERS: usize = 24;

/// One monitor's mark in the record of a member that it suspects. In an odd round it stands, in an even one it is withdrawn.
/// The higher round wins a merge, so withdrawals are gossiped like everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Accusation {
    /// The monitor.
    pub accuser: NodeUid,
    /// How often the monitor has set or withdrawn it.
    pub round: u16,
}

impl Accusation {
    /// Whether the accusation stands; otherwise it is withdrawn.
    pub const fn stands(self) -> bool {
        self.round % 2 == 1
    }
}

/// The accusations against a suspect at its present incarnation, sorted by monitor. Nearly always empty, and then as large as a
/// pointer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::box_collection,
    reason = "a thin pointer: nearly every record has none of them"
)]
pub struct Accusations(Option<Box<Vec<Accusation>>>);

impl Accusations {
    /// No accusations.
    pub const NONE: Self = Self(None);

    /// All of them, standing or withdrawn.
    pub fn as_slice(&self) -> &[Accusation] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    /// The monitors whose accusations stand.
    pub fn standing(&self) -> impl Iterator<Item = NodeUid> + '_ {
        let standing = self
            .as_slice()
            .iter()
            .filter(|accusation| accusation.stands());
        standing.map(|accusation| accusation.accuser)
    }

    /// The round of this monitor's accusation; 0 when there is none.
    pub fn round_of(&self, accuser: NodeUid) -> u16 {
        let all = self.as_slice();
        all.binary_search_by_key(&accuser, |accusation| accusation.accuser)
            .map_or(0, |index| all[index].round)
    }

    /// Adds one accusation; whether it was new, or of a higher round.
    ///
    /// Past the limit those of the lowest uids are kept. The lowest of a growing set do not depend on the order of arrival, so
    /// merging stays independent of it.
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
    /// The address of the member.
    pub authority: Authority,
    /// The life that the record is about.
    pub uid: NodeUid,
    /// The incarnation. Only the member raises it, to refute a suspicion.
    pub incarnation: u64,
    /// The status of this life.
    pub status: NodeStatus,
    /// The accusations against it. Empty unless it is Suspect.
    pub accusations: Accusations,
    /// Counts how often the member wrote its metadata; 0 in a record without metadata.
    pub metadata_stamp: u64,
    /// The member's metadata.
    pub metadata: MemberMetadata,
}

/// The effect of a merge on the record that was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Merge {
    /// The record did not change.
    Unchanged,
    /// The record changed, with the same uid; the status may have changed.
    Advanced,
    /// A later life has replaced the earlier one.
    Superseded,
}

impl MemberRecord {
    /// The record of a life at its first incarnation.
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

    /// Merges another record of the same authority: the result is the least record that is not below either.
    ///
    /// Both must be canonical, as decoded records and those of [`MemberRecord::new`] are: only a Suspect has accusations.
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

    /// Checks the transition of a merge that began at the status `before`; whether a life may take it. If it may not, the
    /// status goes back to `before` (Up for a Suspect), at the incarnation that was merged. There it outweighs the status that
    /// was merged, so all nodes that receive both records end with the same one.
    pub(crate) fn settle(&mut self, before: NodeStatus) -> bool {
        // Gossip skipped Up, which was in between.
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

    /// Removes what no sender writes: accusations of a member that is not Suspect, and metadata without a stamp.
    pub(crate) fn make_canonical(&mut self) {
        if self.status != NodeStatus::Suspect {
            self.accusations = Accusations::NONE;
        }
        if self.metadata_stamp == 0 {
            self.metadata = MemberMetadata::EMPTY;
        }
    }

    /// Metadata with the higher stamp wins. Different metadata with one stamp comes only from a faulty member; the greater
    /// bytes win, so that all nodes still agree.
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
