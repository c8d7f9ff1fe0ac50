//! The log of tasks that a worker lost: no worker reports on them, so the queue logs what became of them.

use crate::core::{Lost, TaskState, reap_delay};

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
