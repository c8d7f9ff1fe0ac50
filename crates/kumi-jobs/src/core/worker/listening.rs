//! Signals of the queue: something to claim, a cancel, a poke. A wait is in flight beside the calls and starts when there is
//! nothing to send. A look is a call that ends at once, for a worker that runs tasks and always has something to send.
//! Also: cancels that came before their claim.

use super::super::id::TaskId;
use super::action::Moment;
use std::sync::Arc;
use std::time::Duration;

/// How long a worker that always has a call in flight goes without looking for signals.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Listening {
    wait: Wait,
    /// When signals were last waited for or looked for.
    listened: Moment,
    looks: Looks,
    /// Cancels of tasks that are not here: the reply to the call in flight, or the next Recover, may bring them.
    pub(super) early_cancels: Vec<TaskId>,
}

#[derive(Debug, Default)]
enum Wait {
    #[default]
    None,
    /// A wait for these types is in flight; without types it is for cancels and pokes only.
    For(Vec<Arc<str>>),
    /// It was asked to end; its types are not kept any more.
    Poked,
}

/// Whether signals may be looked for.
#[derive(Debug, Default, PartialEq, Eq)]
enum Looks {
    #[default]
    May,
    /// Not twice in a row, so that a slow queue still gets reports and renewals.
    JustDid,
}

impl Listening {
    pub(super) fn is_waiting(&self) -> bool {
        !matches!(self.wait, Wait::None)
    }

    pub(super) fn can_be_poked(&self) -> bool {
        matches!(self.wait, Wait::For(_))
    }

    pub(super) fn waits_for_types(&self) -> bool {
        matches!(&self.wait, Wait::For(types) if !types.is_empty())
    }

    pub(super) fn waits_for(&self, task_type: &Arc<str>) -> bool {
        matches!(&self.wait, Wait::For(types) if types.contains(task_type))
    }

    pub(super) fn wait(&mut self, types: Vec<Arc<str>>) {
        self.wait = Wait::For(types);
    }

    pub(super) fn poked(&mut self) {
        self.wait = Wait::Poked;
    }

    /// The wait in flight has ended. Answers whether it may have taken the marker that wakes one worker for a type: it was for
    /// types, or was poked, when its types are not known any more.
    pub(super) fn end_wait(&mut self, now: Moment) -> bool {
        self.listened = now;
        match std::mem::take(&mut self.wait) {
            Wait::None => false,
            Wait::For(types) => !types.is_empty(),
            Wait::Poked => true,
        }
    }

    /// Whether a look is due: nothing was waited or looked for during `LOOK_INTERVAL`, and the last call was no look.
    pub(super) fn is_look_due(&self, now: Moment) -> bool {
        !self.is_waiting() && self.looks == Looks::May && now >= self.listened + LOOK_INTERVAL
    }

    /// A look is sent.
    pub(super) fn note_look(&mut self) {
        self.looks = Looks::JustDid;
    }

    /// Another call is sent.
    pub(super) fn may_look_again(&mut self) {
        self.looks = Looks::May;
    }

    /// The reply to a look is there.
    pub(super) fn looked(&mut self, now: Moment) {
        self.listened = now;
    }

    /// While a wait is in flight, the worker listens.
    pub(super) fn note_time(&mut self, now: Moment) {
        if self.is_waiting() {
            self.listened = now;
        }
    }
}
