//! Signals of the queue: waits for them, looks for them while calls are in flight, and cancels that came before their claim.

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
    /// Cancels of tasks that are not here: the call in flight may bring them.
    pub(super) early_cancels: Vec<TaskId>,
}

#[derive(Debug, Default)]
enum Wait {
    #[default]
    None,
    /// A wait for these types is in flight.
    For(Vec<Arc<str>>),
    /// As `For`, and it was asked to end.
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

    /// The wait in flight has ended. Answers whether it may have taken the mark of a type: it was for some, or was asked to
    /// end and may have been.
    pub(super) fn end_wait(&mut self, now: Moment) -> bool {
        self.listened = now;
        match std::mem::take(&mut self.wait) {
            Wait::None => false,
            Wait::For(types) => !types.is_empty(),
            Wait::Poked => true,
        }
    }

    /// Whether signals are to be looked for: none were for long.
    pub(super) fn is_look_due(&self, now: Moment) -> bool {
        self.looks == Looks::May && now >= self.listened + LOOK_INTERVAL
    }

    /// A look is sent.
    pub(super) fn look(&mut self) {
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
