//! What a queue replies to producers and operators, and what it tells subscribers.

use super::id::{TaskId, Timestamp};
use super::owner::{NodeLife, Owner};
use super::record::{Priority, TaskEnvelope, TaskState};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What became of an enqueue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Enqueued {
    /// The task is new and in this state.
    New(TaskId, TaskState),
    /// A task with this id was enqueued before; nothing changed.
    Exists(TaskId),
    /// This task holds the unique key; nothing changed.
    Duplicate(TaskId),
}

impl Enqueued {
    /// The task to wait for.
    #[must_use]
    pub fn id(self) -> TaskId {
        match self {
            Self::New(id, _) | Self::Exists(id) | Self::Duplicate(id) => id,
        }
    }
}

/// What became of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cancel {
    /// It waited and is Cancelled now.
    Cancelled,
    /// It runs; its worker was asked to stop it.
    Requested,
    /// It was already done.
    AlreadyDone(TaskState),
    /// There is no such task.
    Unknown,
}

/// What became of a requeue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requeued {
    /// It waits again, with all its attempts.
    Applied(TaskState),
    /// It is not Dead.
    NotDead(TaskState),
    /// This task holds its unique key.
    Taken(TaskId),
    /// There is no such task.
    Unknown,
}

/// What became of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Released {
    /// So many tasks were given back.
    Tasks(usize),
    /// The owner renewed its lease recently, or could not; nothing changed.
    Alive,
    /// Releases by membership are switched off for this queue; nothing changed.
    Off,
}

/// The owners whose tasks are released.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gone {
    /// This life of this name.
    Life(Owner),
    /// All lives of this name before this one. Lives that hold nothing are refused from then on too.
    Before(Owner),
    /// All workers of this life of a node, as membership reports it. A queue can switch these releases off
    /// ([`Queue::set_releases`](crate::Queue::set_releases)).
    Node(NodeLife),
}

/// How many tasks of each type are in each state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Counts per type and state; zeros are left out.
    pub by_type: BTreeMap<Arc<str>, BTreeMap<TaskState, u64>>,
    /// Types for which a worker asked within the last minute.
    pub served: Vec<Arc<str>>,
    /// Whether claims are stopped.
    pub paused: bool,
}

impl Counts {
    /// How many tasks are in a state.
    #[must_use]
    pub fn of(&self, state: TaskState) -> u64 {
        self.by_type
            .values()
            .filter_map(|states| states.get(&state))
            .sum()
    }

    /// How many tasks there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_type.values().flat_map(BTreeMap::values).sum()
    }

    /// Types with unfinished tasks that no worker asked for within the last minute.
    #[must_use]
    pub fn unserved(&self) -> Vec<Arc<str>> {
        let unfinished = |states: &BTreeMap<TaskState, u64>| {
            states
                .iter()
                .any(|(state, count)| !state.is_terminal() && *count > 0)
        };
        self.by_type
            .iter()
            .filter(|(task_type, states)| unfinished(states) && !self.served.contains(task_type))
            .map(|(task_type, _)| task_type.clone())
            .collect()
    }
}

/// What a queue did since a version that counts it first wrote to it, whatever it keeps of that. The numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Totals {
    /// Tasks that were enqueued.
    pub enqueued: u64,
    /// Tasks that succeeded.
    pub succeeded: u64,
    /// Attempts that failed, those of tasks that are Dead by that included.
    pub failed: u64,
    /// Attempts whose worker was lost: its lease ended, or it was released.
    pub lost: u64,
    /// Tasks that became Dead.
    pub dead: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
}

/// How busy a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Load {
    /// The queue's clock. Two loads give rates.
    pub now: Timestamp,
    /// What the queue did since a version that counts it first wrote there.
    pub totals: Totals,
    /// Since when the task has been ready that has waited longest to be claimed, among the first ten of each line. A queue
    /// on a server looks at 400 lines and tasks together at most.
    pub ready_since: Option<Timestamp>,
}

/// One move of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskEvent {
    /// The task.
    pub id: TaskId,
    /// Its type.
    pub task_type: Arc<str>,
    /// The state before; None if it was just enqueued.
    pub from: Option<TaskState>,
    /// The state after.
    pub to: TaskState,
    /// Its attempts after the move.
    pub attempts: u32,
    /// When it moved.
    pub at: Timestamp,
}

/// A stored schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Names the schedule within the queue.
    pub name: String,
    /// Five fields: minute, hour, day of month, month, day of week.
    pub expression: String,
    /// An IANA time zone, such as `Asia/Tokyo`.
    pub zone: String,
    /// What is enqueued.
    pub envelope: TaskEnvelope,
    /// The attempts of each task.
    pub max_attempts: u32,
    /// The priority of each task.
    pub priority: Priority,
    /// The last slot that was decided: its task was enqueued, or it was skipped.
    pub last_slot: Timestamp,
}
