//! How long each suspicion has stood at one incarnation, and when this node last completed a comparison with a member that
//! is Up.

use super::clock::Now;
use crate::core::base::identity::NodeUid;
use crate::core::base::status::NodeStatus;
use crate::core::base::time::TimerInstant;
use crate::core::state::table::{MembershipTable, Slot};
use alloc::collections::BTreeMap;
use core::time::Duration;

/// One suspicion, as long as it is about the same incarnation.
#[derive(Clone, Copy, Debug)]
struct Suspicion {
    uid: NodeUid,
    incarnation: u64,
    since: TimerInstant,
}

/// The suspects that this node knows of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Suspects {
    of: BTreeMap<Slot, Suspicion>,
    /// When a comparison with a member that was Up last came to its end.
    in_touch_at: TimerInstant,
    /// Whether some suspicion has stood long enough, and only a comparison is missing.
    waiting: bool,
}

impl Suspects {
    pub(crate) fn len(&self) -> usize {
        self.of.len()
    }

    /// A member became a suspect just now.
    pub(crate) fn note(&mut self, slot: Slot, table: &MembershipTable, now: Now) {
        let Some(record) = table.entry(slot).map(|entry| &entry.record) else {
            return;
        };
        let suspicion = Suspicion {
            uid: record.uid,
            incarnation: record.incarnation,
            since: now.own,
        };
        self.of.insert(slot, suspicion);
    }

    /// A comparison with a member that is Up is complete.
    pub(crate) fn in_touch(&mut self, now: Now) {
        self.in_touch_at = now.own;
    }

    /// Whether some suspicion has stood long enough, and only a comparison is missing.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting
    }

    /// Sets which suspects the ring passes over when monitors are chosen: those whose suspicion stood for `stands_after` and
    /// was followed by a comparison. Returns whether a verdict is overdue, so that another comparison is due.
    pub(crate) fn review(
        &mut self,
        table: &mut MembershipTable,
        timeout: Duration,
        stands_after: Duration,
        now: Now,
    ) -> bool {
        let in_touch_at = self.in_touch_at;
        let (mut waiting, mut overdue) = (false, false);
        self.of.retain(|&slot, suspicion| {
            let record = table.entry(slot).map(|entry| &entry.record);
            let record = record.filter(|record| {
                record.status == NodeStatus::Suspect && record.uid == suspicion.uid
            });
            let Some(incarnation) = record.map(|record| record.incarnation) else {
                return false;
            };
            if incarnation != suspicion.incarnation {
                // It has refuted in between.
                suspicion.incarnation = incarnation;
                suspicion.since = now.own;
            }
            let stood = suspicion.since + stands_after;
            table.pass_over(slot, in_touch_at >= stood);
            waiting |= now.own >= stood && in_touch_at < stood;
            // One comparison serves all suspicions whose verdict is overdue.
            let due = verdict_due(suspicion.since, timeout);
            let compare_at = if in_touch_at >= due {
                in_touch_at + timeout
            } else {
                due
            };
            overdue |= now.own >= compare_at;
            true
        });
        self.waiting = waiting;
        overdue
    }
}

/// When a verdict on a member that has been suspected since `since` should have arrived. It takes `suspect_timeout` from
/// the quorum on; half of that is added for the accusations and the verdict to spread.
fn verdict_due(since: TimerInstant, suspect_timeout: Duration) -> TimerInstant {
    since + suspect_timeout + suspect_timeout / 2
}
