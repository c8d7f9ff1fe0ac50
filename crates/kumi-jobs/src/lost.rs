//! Tasks that a worker lost, by the end of its lease or a release: no worker reports on them, so the queue logs what
//! became of them.

use crate::core::{TaskId, TaskState, Timestamp, reap_delay};

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

impl Lost {
    /// Logs it in the words of a failed run.
    pub(crate) fn tell(&self) {
        let Self {
            id,
            state,
            attempts,
            next_run_at,
            error,
        } = self;
        let err = error.as_str();
        tracing::info!(task_id = %id, attempt = attempts, err, "Failed");
        match state {
            TaskState::RetryScheduled => {
                let (next_run_at, backoff) = (next_run_at.as_ms(), reap_delay(*id, *attempts));
                tracing::info!(task_id = %id, next_run_at, ?backoff, "RetryScheduled");
            }
            TaskState::Dead => {
                tracing::warn!(task_id = %id, last_error = err, attempts, "Dead");
            }
            state => tracing::info!(task_id = %id, attempt = attempts, %state, "Moved"),
        }
    }
}
