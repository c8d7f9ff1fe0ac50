//! The named limits of a queue.

use std::time::Duration;

/// Attempts of a task whose producer named none, the first included.
pub const DEFAULT_MAX_ATTEMPTS: u32 = 5;

/// How often a snooze or a shutdown gives an attempt back.
pub const MAX_GIVEN_BACK: u32 = 100;

/// How long claims hold without a renewal, unless the worker says otherwise.
pub const LEASE: Duration = Duration::from_secs(15);

/// How often a worker with running tasks renews its lease.
pub const RENEWAL: Duration = Duration::from_secs(1);

/// Tasks that one call moves between lines, claims or finishes. With as many tasks that have keys, progress and waiters,
/// a script held the server for less than 5 ms where it was measured.
pub const TURN_LIMIT: usize = 50;

/// Tasks that one turn reports, gives back, moves into line and claims together. It bounds how long a turn's script runs.
pub(crate) const TURN_BUDGET: usize = 2 * TURN_LIMIT;

/// The part of a turn's budget that belongs to claims, however much is due.
pub(crate) const CLAIM_SHARE: usize = TURN_LIMIT / 2;

/// Ids of tasks that were cancelled in line which one turn takes out of lines, about 1 ms of a turn's script. A turn that
/// stops there says that there is more.
pub(crate) const SKIP_LIMIT: usize = 500;

/// Tasks in one enqueue, bounded as `TURN_LIMIT` is.
pub const ENQUEUE_LIMIT: usize = 90;

/// Owners that one page of [`Queue::owners_after`](crate::Queue::owners_after) lists.
pub const OWNERS_PAGE: usize = 100;

/// What a queue accepts. [`Retention`] is what it keeps. Write `..Settings::default()`: fields may be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Largest payload. A larger one is an error of the enqueue.
    pub payload_limit_bytes: usize,
    /// Largest result that is kept. A task with a larger one succeeds without it.
    pub result_limit_bytes: usize,
    /// Largest stored step.
    pub step_limit_bytes: usize,
    /// Stored steps of one task.
    pub step_limit: usize,
    /// All stored steps of one task together.
    pub steps_limit_bytes: usize,
    /// Errors are cut to this length.
    pub error_limit_bytes: usize,
    /// Tasks that a memory queue holds, finished ones included.
    pub task_limit: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            payload_limit_bytes: 256 << 10,
            result_limit_bytes: 64 << 10,
            step_limit_bytes: 64 << 10,
            step_limit: 64,
            steps_limit_bytes: 1 << 20,
            error_limit_bytes: 4 << 10,
            task_limit: 10_000_000,
        }
    }
}

/// What a queue keeps of done tasks. It is stored with the queue, and [`Queue::keep`](crate::Queue::keep) changes it for
/// all programs. Write `..Retention::default()`: fields may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Succeeded tasks (and, counted apart, cancelled ones) that are kept.
    pub succeeded: usize,
    /// How long succeeded and cancelled tasks are kept.
    pub succeeded_for: Duration,
    /// Dead tasks that are kept.
    pub dead: usize,
    /// How long dead tasks are kept.
    pub dead_for: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const HOUR: u64 = 3_600;
        Self {
            succeeded: 10_000,
            succeeded_for: Duration::from_secs(HOUR),
            dead: 100_000,
            dead_for: Duration::from_secs(7 * 24 * HOUR),
        }
    }
}
