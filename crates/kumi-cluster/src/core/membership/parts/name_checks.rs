//! Checks whether the member that has a name is alive, before another node may have that name: for nodes that ask to join
//! here, and for this node itself.

use super::clock::Now;
use crate::core::base::identity::{Authority, NodeIdentity};
use crate::core::base::time::TimerInstant;
use crate::core::state::record::MemberRecord;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// The most checks at a time. A joiner beyond it is not answered, and asks again.
const MAX_CHECKS: usize = 64;

/// How many probes the holder of a name gets.
const PROBES: u32 = 3;

/// A probe of the member that has a name.
#[derive(Clone, Debug)]
struct Check {
    holder: NodeIdentity,
    /// When the probe is sent once more, because it or its answer may be lost.
    resend_at: TimerInstant,
    until: TimerInstant,
    /// The record of the node that wants to join under that name; `None` if it is this node, which is a member.
    joiner: Option<MemberRecord>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct NameChecks {
    /// By the nonce of the probe.
    pending: BTreeMap<u64, Check>,
    /// The member in an earlier life that has the name of this node, and when it is probed next.
    namesake: Option<(NodeIdentity, TimerInstant)>,
}

impl NameChecks {
    /// Whether this holder is being checked for this joiner, or for this node.
    pub(crate) fn is_pending(&self, holder: &NodeIdentity, joiner: Option<&Authority>) -> bool {
        self.pending.values().any(|check| {
            let authority = check.joiner.as_ref().map(|record| &record.authority);
            check.holder == *holder && authority == joiner
        })
    }

    /// Notes a check whose probe has this nonce and is sent `PROBES` times, `timeout` apart; false when there are too many.
    pub(crate) fn begin(
        &mut self,
        nonce: u64,
        holder: NodeIdentity,
        joiner: Option<MemberRecord>,
        timeout: Duration,
        now: Now,
    ) -> bool {
        if self.pending.len() >= MAX_CHECKS {
            return false;
        }
        let check = Check {
            holder,
            resend_at: now.own + timeout,
            until: now.own + timeout * PROBES,
            joiner,
        };
        self.pending.insert(nonce, check);
        true
    }

    /// The holder of a name answered the probe with this nonce, in the life that was probed or a later one: returns it, and the
    /// joiner that is refused; without a joiner it is this node.
    pub(crate) fn answered(
        &mut self,
        nonce: u64,
        by: &NodeIdentity,
    ) -> Option<(NodeIdentity, Option<MemberRecord>)> {
        let holder = &self.pending.get(&nonce)?.holder;
        if holder.authority != by.authority || holder.uid > by.uid {
            return None;
        }
        let check = self.pending.remove(&nonce)?;
        Some((by.clone(), check.joiner))
    }

    /// Ends the checks that were not answered in time; returns the joiners that may have the name.
    pub(crate) fn take_unanswered(&mut self, now: Now) -> Vec<MemberRecord> {
        let mut joiners = Vec::new();
        self.pending.retain(|_, check| {
            let is_pending = now.own < check.until;
            if !is_pending {
                joiners.extend(check.joiner.take());
            }
            is_pending
        });
        joiners
    }

    /// The probes that are due once more, with their nonces.
    pub(crate) fn due_probes(&mut self, timeout: Duration, now: Now) -> Vec<(u64, Authority)> {
        let due = self.pending.iter_mut();
        let due = due.filter(|(_, check)| now.own >= check.resend_at);
        let due = due.map(|(nonce, check)| {
            check.resend_at = now.own + timeout;
            (*nonce, check.holder.authority.clone())
        });
        due.collect()
    }

    /// A member in an earlier life has the name of this node: it is probed from `at` on.
    pub(crate) fn set_namesake(&mut self, namesake: NodeIdentity, at: TimerInstant) {
        self.namesake = Some((namesake, at));
    }

    /// The member that has the name of this node, if it has to be probed now.
    pub(crate) fn due_namesake(&self, now: Now) -> Option<&NodeIdentity> {
        let (namesake, at) = self.namesake.as_ref()?;
        (now.own >= *at).then_some(namesake)
    }

    pub(crate) fn clear_namesake(&mut self) {
        self.namesake = None;
    }

    /// No check is pending any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn deadline(&self) -> Option<TimerInstant> {
        let namesake = self.namesake.as_ref().map(|(_, at)| *at);
        let pending = self.pending.values();
        let pending = pending.map(|check| check.until.min(check.resend_at));
        pending.chain(namesake).min()
    }

    pub(crate) fn len(&self) -> usize {
        self.pending.len()
    }
}
