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
    fn the_document_shows_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/jobs.md");
        let document = std::fs::read_to_string(path).unwrap();
        let (_, after) = document.split_once("| from | cause | to |\n").unwrap();
        let mut shown = Vec::new();
        for line in after
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with('|'))
        {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            for to in cells[2].split(", ") {
                shown.push(format!("{} {} {to}", cells[0], cells[1]));
            }
        }
        let mut table: Vec<String> = TABLE
            .iter()
            .map(|row| {
                let from = row.from.map_or("(none)".into(), |from| format!("{from:?}"));
                format!("{from} {:?} {:?}", row.cause, row.to)
            })
            .collect();
        shown.sort_unstable();
        table.sort_unstable();
        assert_eq!(shown, table);
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
