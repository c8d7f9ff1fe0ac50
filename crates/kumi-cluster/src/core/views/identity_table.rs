//! The current life of each authority, and whether it is quarantined.
//!
//! Members and quarantines are copied in from snapshots of their tables. A quarantine is reported before the membership is
//! looked at.

use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::reason::QuarantineReason;
use crate::core::state::quarantine::QuarantineEntry;
use crate::core::state::snapshot::Member;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Why an authority does not resolve.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// No active member is reached there.
    #[error("{0} is not a member")]
    Unknown(Authority),
    /// It is quarantined.
    #[error("{authority} is quarantined: {reason}")]
    Quarantined {
        /// The authority.
        authority: Authority,
        /// Why.
        reason: QuarantineReason,
    },
}

/// Current identities by authority.
#[derive(Clone, Debug, Default)]
pub struct IdentityTable {
    current: BTreeMap<Authority, NodeUid>,
    quarantine: BTreeMap<Authority, QuarantineEntry>,
}

impl IdentityTable {
    /// Replaces the members by those of a snapshot.
    pub fn sync_members(&mut self, members: &[Member]) {
        let pairs = members
            .iter()
            .map(|member| (member.authority.clone(), member.uid));
        self.current = pairs.collect();
    }

    /// Replaces the quarantines by those of a snapshot of the quarantine table.
    pub fn sync_quarantine(&mut self, entries: Vec<QuarantineEntry>) {
        let pairs = entries
            .into_iter()
            .map(|entry| (entry.authority.clone(), entry));
        self.quarantine = pairs.collect();
    }

    /// The current life of an authority.
    pub fn resolve(&self, authority: &Authority) -> Result<NodeIdentity, ResolveError> {
        let uid = self.current.get(authority).copied();
        let blocked = self
            .quarantine
            .get(authority)
            .filter(|entry| entry.uid.is_none() || entry.uid == uid);
        if let Some(entry) = blocked {
            return Err(ResolveError::Quarantined {
                authority: authority.clone(),
                reason: entry.reason.clone(),
            });
        }
        let uid = uid.ok_or_else(|| ResolveError::Unknown(authority.clone()))?;
        Ok(NodeIdentity {
            authority: authority.clone(),
            uid,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::base::metadata::MemberMetadata;
    use crate::core::base::reason::ReasonText;
    use crate::core::base::status::NodeStatus;
    use crate::core::base::time::TimerInstant;
    use crate::core::state::record::MemberRecord;

    #[test]
    fn quarantine_goes_before_membership_and_a_new_life_is_not_its_predecessor() {
        let authority = Authority::new("a:1").expect("valid");
        let identity = NodeIdentity {
            authority: authority.clone(),
            uid: NodeUid::from_raw(2),
        };
        let record = MemberRecord::new(identity.clone(), NodeStatus::Up, MemberMetadata::EMPTY);
        let mut table = IdentityTable::default();
        assert_eq!(
            table.resolve(&authority),
            Err(ResolveError::Unknown(authority.clone()))
        );
        table.sync_members(&[Member::of(&record)]);
        let entry = |uid, reason| QuarantineEntry {
            authority: authority.clone(),
            uid,
            reason,
            expires_at: TimerInstant::ZERO,
        };
        table.sync_quarantine(alloc::vec![entry(
            Some(NodeUid::from_raw(1)),
            QuarantineReason::Unreachable
        )]);
        assert_eq!(table.resolve(&authority), Ok(identity));
        let reason = QuarantineReason::Operator(ReasonText::escaped("no"));
        table.sync_quarantine(alloc::vec![entry(None, reason.clone())]);
        let refused = ResolveError::Quarantined {
            authority: authority.clone(),
            reason,
        };
        assert_eq!(table.resolve(&authority), Err(refused));
        table.sync_quarantine(Vec::new());
        assert!(table.resolve(&authority).is_ok());
    }
}
