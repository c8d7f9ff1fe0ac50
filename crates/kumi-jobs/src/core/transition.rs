//! The state diagram as a table: every move a task can make, and nothing else.
//!
//! Both queues report each move as an event; the property tests look each one up here. `docs/jobs.md` shows the same
//! table as a picture, and a test compares the two.

use super::record::TaskState::{self, *};

/// Why a task moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A producer enqueued it.
    Enqueue,
    /// Its time came.
    Due,
    /// The task before it in its serial line left.
    Unblock,
    /// A worker claimed it.
    Claim,
    /// Its handler returned a result.
    Success,
    /// Its handler failed, panicked or ran out of time.
    Failure,
    /// Its handler asked to run later.
    Snooze,
    /// Its worker shut down and gave it back.
    GiveBack,
    /// Its worker's lease ended.
    Reap,
    /// Its worker was declared gone.
    Release,
    /// An operator or a program cancelled it.
    Cancel,
    /// An operator requeued it.
    Requeue,
}

/// One row of the diagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// The state before; None for a task that did not exist.
    pub from: Option<TaskState>,
    /// Why it moves.
    pub cause: Cause,
    /// The state after.
    pub to: TaskState,
}

const fn row(from: Option<TaskState>, cause: Cause, to: TaskState) -> Transition {
    Transition { from, cause, to }
}

/// Every move there is.
pub const TABLE: &[Transition] = &[
    row(None, Cause::Enqueue, Queued),
    row(None, Cause::Enqueue, Scheduled),
    row(None, Cause::Enqueue, Blocked),
    row(Some(Scheduled), Cause::Due, Queued),
    row(Some(Scheduled), Cause::Due, Blocked),
    row(Some(RetryScheduled), Cause::Due, Queued),
    row(Some(Blocked), Cause::Unblock, Queued),
    row(Some(Queued), Cause::Claim, Running),
    row(Some(Running), Cause::Success, Succeeded),
    row(Some(Running), Cause::Failure, RetryScheduled),
    row(Some(Running), Cause::Failure, Dead),
    row(Some(Running), Cause::Failure, Cancelled),
    row(Some(Running), Cause::Snooze, Scheduled),
    row(Some(Running), Cause::Snooze, Dead),
    row(Some(Running), Cause::Snooze, Cancelled),
    row(Some(Running), Cause::GiveBack, Queued),
    row(Some(Running), Cause::GiveBack, Dead),
    row(Some(Running), Cause::GiveBack, Cancelled),
    row(Some(Running), Cause::Reap, RetryScheduled),
    row(Some(Running), Cause::Reap, Dead),
    row(Some(Running), Cause::Reap, Cancelled),
    row(Some(Running), Cause::Release, Queued),
    row(Some(Running), Cause::Release, Dead),
    row(Some(Running), Cause::Release, Cancelled),
    row(Some(Running), Cause::Cancel, Cancelled),
    row(Some(Queued), Cause::Cancel, Cancelled),
    row(Some(Scheduled), Cause::Cancel, Cancelled),
    row(Some(RetryScheduled), Cause::Cancel, Cancelled),
    row(Some(Blocked), Cause::Cancel, Cancelled),
    row(Some(Dead), Cause::Requeue, Queued),
    row(Some(Dead), Cause::Requeue, Blocked),
];

/// Whether the diagram has this move, whatever its cause.
#[must_use]
pub fn allowed(from: Option<TaskState>, to: TaskState) -> bool {
    TABLE.iter().any(|row| row.from == from && row.to == to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_requeue_leaves_a_terminal_state() {
        for row in TABLE {
            if row.from.is_some_and(TaskState::is_terminal) {
                assert_eq!(row.cause, Cause::Requeue, "{row:?}");
            }
        }
    }

    #[test]
    fn every_state_is_reached_and_every_unfinished_one_is_left() {
        for state in TaskState::ALL {
            assert!(TABLE.iter().any(|row| row.to == state), "{state}");
            let left = TABLE.iter().any(|row| row.from == Some(state));
            assert!(left || state.is_terminal(), "{state}");
        }
    }
}
