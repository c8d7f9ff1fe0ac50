//! `kumi jobs enqueue --wait`: how a task ends.
//!
//! A queue that keeps succeeded tasks replies with the task's record. A queue that keeps none (`keep --succeeded 0`) forgets a
//! task in the step in which it succeeds. There the moves of all tasks are subscribed to before the task is enqueued: the
//! move to Succeeded shows the end, and the result is not known any more.

use super::failure::Failure;
use super::progress;
use crate::command_line::terminal;
use kumi_jobs::{Events, Jobs, Notice, TaskId, TaskRecord, TaskState};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long after a task was forgotten its last move may take to arrive.
const LAST_MOVE: Duration = Duration::from_secs(5);

/// A wait for a task that is not enqueued yet.
pub(super) struct Wait {
    /// The moves of all tasks, if the queue keeps no succeeded tasks.
    moves: Option<Events>,
}

/// How a task ended.
enum End {
    Known(Box<TaskRecord>),
    /// It succeeded, and nothing is kept of it.
    Forgotten,
}

impl Wait {
    pub(super) async fn new(jobs: &Jobs) -> Result<Self, Failure> {
        let keeps_some = jobs.queue().retention().await?.succeeded > 0;
        let moves = match keeps_some {
            true => None,
            false => Some(jobs.queue().subscribe().await?),
        };
        Ok(Self { moves })
    }

    /// Waits for the end of a task and prints its result.
    pub(super) async fn print(self, jobs: &Jobs, id: TaskId) -> Result<(), Failure> {
        let record = match progress::watch(jobs, id, self.end(jobs, id)).await? {
            End::Known(record) => record,
            End::Forgotten => {
                terminal::note(format_args!(
                    "task {id} succeeded; the queue keeps no succeeded tasks, so its result is gone"
                ));
                return Ok(());
            }
        };
        match record.state {
            TaskState::Succeeded => {
                if record.result_dropped {
                    terminal::note(format_args!(
                        "task {id} succeeded, but its result was too large to keep"
                    ));
                }
                let mut result = record.result.unwrap_or_default().to_vec();
                if !result.ends_with(b"\n") {
                    result.push(b'\n');
                }
                Ok(terminal::write(&result)?)
            }
            state => {
                // A program or another client wrote it.
                let error = terminal::quoted(&record.last_error.unwrap_or_default());
                Err(Failure::Ended(format!("task {id} is {state}: {error}")))
            }
        }
    }

    async fn end(self, jobs: &Jobs, id: TaskId) -> Result<End, Failure> {
        let done = jobs.queue().done(id);
        let Some(mut moves) = self.moves else {
            let record = done.await?;
            let record = record.ok_or_else(|| super::missing(&format!("task {id} any more")))?;
            return Ok(End::Known(Box::new(record)));
        };
        tokio::pin!(done);
        // Set once the queue does not know the task any more.
        let mut until = None;
        loop {
            tokio::select! {
                notice = moves.recv() => match notice {
                    Some(Notice::Moved(moved)) if moved.id == id && moved.to == TaskState::Succeeded => {
                        return Ok(End::Forgotten);
                    }
                    Some(_) => {}
                    None => break,
                },
                record = &mut done, if until.is_none() => match record? {
                    Some(record) => return Ok(End::Known(Box::new(record))),
                    None => until = Some(Instant::now() + LAST_MOVE),
                },
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => break,
            }
        }
        Err(Failure::Missing(format!(
            "there is no task {id} any more; the queue keeps no succeeded tasks, and whether this one succeeded is not known"
        )))
    }
}
