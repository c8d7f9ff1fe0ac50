//! What this worker knows about its lease, and about what the queue counts as its own.

use super::action::Moment;
use crate::core::settings::RENEWAL;
use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Hold {
    /// When the last confirmed renewal was sent.
    renewed_at: Moment,
    lease: LeaseState,
    knowledge: Knowledge,
    /// When the queue was last asked what this worker holds.
    asked_at: Option<Moment>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum LeaseState {
    #[default]
    Held,
    /// Given up since the last renewal.
    GivenUp,
}

/// Whether this worker knows all that it holds.
#[derive(Debug, Default)]
enum Knowledge {
    #[default]
    Sure,
    /// It may hold tasks or cancels that it does not know of. At this moment it is known to have had its lease, should there
    /// be such tasks.
    Unsure(Moment),
}

impl Hold {
    pub(super) fn renewed_at(&self) -> Moment {
        self.renewed_at
    }

    /// When the lease is to be renewed.
    pub(super) fn renewal_at(&self) -> Moment {
        self.renewed_at + RENEWAL
    }

    pub(super) fn renew(&mut self, sent_at: Moment) {
        self.renewed_at = sent_at;
        self.lease = LeaseState::Held;
    }

    pub(super) fn give_up(&mut self) {
        self.lease = LeaseState::GivenUp;
    }

    /// When a lease of this length ends; none if it was given up.
    pub(super) fn ends_at(&self, lease: Duration) -> Option<Moment> {
        let is_held = self.lease == LeaseState::Held;
        is_held.then(|| self.renewed_at + lease)
    }

    pub(super) fn is_unsure(&self) -> bool {
        matches!(self.knowledge, Knowledge::Unsure(_))
    }

    /// It may hold what it does not know of. An earlier moment stays.
    pub(super) fn mark_unsure(&mut self, leased_at: Moment) {
        if !self.is_unsure() {
            self.knowledge = Knowledge::Unsure(leased_at);
        }
    }

    /// As `mark_unsure`, because the queue counts other tasks than this worker. Not more often than leases are renewed, so that a count which is wrong costs little.
    pub(super) fn mark_count_differs(&mut self, sent_at: Moment) {
        let asked_lately = self.asked_at.is_some_and(|at| sent_at < at + RENEWAL);
        if !asked_lately {
            self.mark_unsure(sent_at);
        }
    }

    /// The queue is asked what this worker holds.
    pub(super) fn asked(&mut self, now: Moment) {
        self.asked_at = Some(now);
    }

    /// The queue has said what this worker holds. Answers the moment that `mark_unsure` was given.
    pub(super) fn take_unsure(&mut self) -> Option<Moment> {
        match std::mem::take(&mut self.knowledge) {
            Knowledge::Sure => None,
            Knowledge::Unsure(leased_at) => Some(leased_at),
        }
    }
}
