//! Tasks that a worker lost, by the end of its lease or a release: no worker reports on them.

use super::id::{TaskId, Timestamp};
use super::record::TaskState;

/// A task that a worker lost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    pub(crate) id: TaskId,
    /// Its state now.
    pub(crate) state: TaskState,
    pub(crate) attempts: u32,
    /// While RetryScheduled.
    pub(crate) next_run_at: Timestamp,
    pub(crate) error: String,
}
