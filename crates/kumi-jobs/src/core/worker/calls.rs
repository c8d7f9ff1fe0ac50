//! The one call in flight, and the pauses after calls that failed.

use super::action::Moment;
use std::time::Duration;

/// The pauses after failed calls grow from the first to the second.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// When the call in flight was sent.
    in_flight: Option<Moment>,
    /// Calls start no earlier than this.
    not_before: Moment,
    /// Calls that failed since the last turn or heartbeat that did not. A Recover comes after each
    /// turn that failed, so its success says nothing.
    failures: u32,
}

impl Calls {
    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Whether none is in flight and the pause is over.
    pub(super) fn may_send(&self, now: Moment) -> bool {
        self.in_flight.is_none() && now >= self.not_before
    }

    pub(super) fn not_before(&self) -> Moment {
        self.not_before
    }

    pub(super) fn send(&mut self, now: Moment) {
        self.in_flight = Some(now);
    }

    /// The reply to the call in flight is there. Answers when it was sent.
    pub(super) fn replied(&mut self) -> Moment {
        self.in_flight.take().unwrap_or_default()
    }

    /// A turn or a heartbeat did not fail.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// A call or a wait failed: the next call comes after a pause.
    pub(super) fn pause(&mut self, now: Moment) {
        self.failures = self.failures.saturating_add(1);
        self.not_before = now + kumi_common::doubled(RETRY_FIRST, RETRY_LAST, self.failures - 1);
    }
}
