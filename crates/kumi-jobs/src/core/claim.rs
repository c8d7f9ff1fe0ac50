//! What a worker and a queue say to each other: asks, claims, reports, turns, leases and signals.

use super::id::{TaskId, Timestamp, Token};
use super::owner::Owner;
use super::record::{TaskEnvelope, TaskState};
use super::retry::Backoff;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Room for one type in a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// A type that the worker has a handler for.
    pub task_type: Arc<str>,
    /// How many tasks of it the worker would start now.
    pub room: usize,
}

/// A worker's wish for tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The worker.
    pub owner: Owner,
    /// A random number, drawn anew for each ask, which becomes part of the tokens of its claims.
    pub nonce: u64,
    /// How long its claims hold without a renewal.
    pub lease: Duration,
    /// What it can run. Types that come first are tried first within a priority, so a worker rotates them.
    pub types: Vec<Room>,
    /// How many tasks it would start now, of all types.
    pub max: usize,
}

/// A task that a worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The task.
    pub id: TaskId,
    /// The task as data.
    pub envelope: TaskEnvelope,
    /// The right to report on this run.
    pub token: Token,
    /// The worker.
    pub owner: Owner,
    /// The number of this attempt, 1 for the first.
    pub attempt: u32,
    /// The number of this run; more than `attempt` after a snooze or a shutdown.
    pub runs: u32,
    /// The attempt with this number is the last.
    pub max_attempts: u32,
    /// When the task was enqueued.
    pub created_at: Timestamp,
    /// The producer's trace context.
    pub trace: Option<Arc<str>>,
    /// The producer's back-off, instead of that of the handler.
    pub backoff: Option<Backoff>,
    /// Whether the run is to be cancelled; false in the reply to a turn.
    pub cancel_requested: bool,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The handler returned a result; None if it is not to be kept.
    Succeeded(Option<Bytes>),
    /// The handler failed. It is retried after the delay if attempts are left, or never if there is no delay.
    Failed {
        /// What went wrong.
        error: String,
        /// The delay before the next attempt.
        retry_after: Option<Duration>,
    },
    /// The handler wants to run later. The attempt is given back.
    Snoozed(Duration),
    /// The worker shuts down. The attempt is given back and the task waits at the head of its line.
    GivenBack,
    /// The handler ended because it was cancelled.
    Cancelled,
}

/// The report on one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// The task.
    pub id: TaskId,
    /// The claim's token.
    pub token: Token,
    /// The claim's owner.
    pub owner: Owner,
    /// How the run ended.
    pub outcome: Outcome,
}

impl Finish {
    /// The report on a claim.
    #[must_use]
    pub fn new(claim: &Claim, outcome: Outcome) -> Self {
        Self {
            id: claim.id,
            token: claim.token,
            owner: claim.owner.clone(),
            outcome,
        }
    }
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finished {
    /// The task moved to this state.
    Applied(TaskState),
    /// The same report was applied before; its reply was lost.
    AlreadyApplied,
    /// The token is not the task's current one. Nothing changed.
    Refused,
    /// There is no such task; it may have been purged after an earlier report.
    Unknown,
}

/// What a turn did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Turn {
    /// What became of each report, in order.
    pub finished: Vec<Finished>,
    /// Tasks for the worker.
    pub claims: Vec<Claim>,
    /// The queue's clock.
    pub now: Timestamp,
    /// When something is next due: a delayed task, a retry, or the end of a lease.
    pub next_due: Option<Timestamp>,
    /// Whether tasks for which there was room were left in line, or more tasks are due than one turn moves.
    pub more: bool,
    /// Whether the queue is paused.
    pub paused: bool,
    /// How many tasks the worker holds after this turn. More than it knows of are claims whose reply it did not get.
    pub held: usize,
}

/// Whether an owner still has its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lease {
    /// It was renewed, over so many tasks.
    Renewed(usize),
    /// The owner has no tasks in the queue: it finished them, or its lease ended and they were given back.
    Lost,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// There may be something to claim.
    Ready,
    /// This running task is to be cancelled.
    Cancel(TaskId),
    /// The owner asked for the wait to end.
    Poke,
}
