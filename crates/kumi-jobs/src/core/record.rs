//! What a queue holds: the envelope that a program wrote, and the record around it that only the queue changes.

use super::id::{TaskId, Timestamp, Token};
use super::owner::Owner;
use super::retry::Backoff;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// The media type of a payload whose producer named none.
pub const JSON: &str = "application/json";

/// The result of a task without output.
pub(crate) const NULL: &[u8] = b"null";

/// A task as data: its type names the handler, its payload is the handler's argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEnvelope {
    /// Names the handler, for instance `send_email`.
    pub task_type: Arc<str>,
    /// The handler's argument.
    pub payload: Bytes,
    /// The payload's media type; [`JSON`] unless the producer says otherwise.
    pub content_type: Cow<'static, str>,
}

impl TaskEnvelope {
    /// An envelope with a JSON payload.
    #[must_use]
    pub fn json(task_type: impl Into<Arc<str>>, payload: impl Into<Bytes>) -> Self {
        Self {
            task_type: task_type.into(),
            payload: payload.into(),
            content_type: Cow::Borrowed(JSON),
        }
    }
}

/// Where a task is in its life. `transition::TABLE` lists the moves between states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskState {
    /// Waits in a line for a worker.
    Queued,
    /// A worker holds a claim on it.
    Running,
    /// Its handler returned a result.
    Succeeded,
    /// An attempt failed; the next one starts at `next_run_at`.
    RetryScheduled,
    /// Its attempts are used up, or a handler aborted it.
    Dead,
    /// Its first run, or the run after a snooze, starts at `next_run_at`.
    Scheduled,
    /// Another task with its serial key comes first.
    Blocked,
    /// It was cancelled before a handler returned a result.
    Cancelled,
}

impl TaskState {
    /// All states, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Running,
        Self::Scheduled,
        Self::RetryScheduled,
        Self::Blocked,
        Self::Succeeded,
        Self::Dead,
        Self::Cancelled,
    ];

    /// Whether a task in this state is done. Only a requeue brings a dead task back.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Dead | Self::Cancelled)
    }

    /// The name in documents and on the command line, such as `retry_scheduled`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::RetryScheduled => "retry_scheduled",
            Self::Dead => "dead",
            Self::Scheduled => "scheduled",
            Self::Blocked => "blocked",
            Self::Cancelled => "cancelled",
        }
    }

    /// The letter by which a record in Redis names the state.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Queued => 'q',
            Self::Running => 'r',
            Self::Succeeded => 's',
            Self::RetryScheduled => 'e',
            Self::Dead => 'd',
            Self::Scheduled => 'w',
            Self::Blocked => 'b',
            Self::Cancelled => 'c',
        }
    }

    /// The state that a letter names.
    #[must_use]
    pub fn from_letter(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.letter() == letter)
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TaskState {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|state| state.name() == text);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|state| state.name()).collect();
            format!("'{text}' is not a state; states are {}", names.join(", "))
        })
    }
}

/// How soon a task is claimed beside others: levels share claims 8 to 4 to 2 to 1, so none starves.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Priority {
    /// 8 of 15 claims.
    High,
    /// 4 of 15 claims.
    #[default]
    Normal,
    /// 2 of 15 claims.
    Low,
    /// 1 of 15 claims.
    Bulk,
}

impl Priority {
    /// All levels, the most urgent first.
    pub const ALL: [Self; 4] = [Self::High, Self::Normal, Self::Low, Self::Bulk];

    /// 0 for the most urgent level, 3 for the least.
    #[must_use]
    pub fn level(self) -> usize {
        self as usize
    }

    /// The priority of a level from 0 to 3.
    #[must_use]
    pub fn from_level(level: usize) -> Option<Self> {
        Self::ALL.get(level).copied()
    }
}

impl FromStr for Priority {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "high" => Ok(Self::High),
            "normal" => Ok(Self::Normal),
            "low" => Ok(Self::Low),
            "bulk" => Ok(Self::Bulk),
            _ => Err(format!(
                "'{text}' is not a priority; priorities are high, normal, low, bulk"
            )),
        }
    }
}

/// A key of which at most one task is unfinished at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    /// The key, unique within the queue.
    pub key: Arc<str>,
    /// The key is held at least this long after the enqueue, unless the task ends Dead or Cancelled.
    pub window: Option<Duration>,
}

/// A key whose tasks run one after the other, in the order in which they became eligible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serial {
    /// The key, within the queue.
    pub key: Arc<str>,
    /// Whether a dead task keeps its place, so that later tasks wait until it is requeued or purged.
    pub hold_on_dead: bool,
}

/// A task to enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    /// Chosen by the producer, so that a repeated enqueue is recognised.
    pub id: TaskId,
    /// The task as data.
    pub envelope: TaskEnvelope,
    /// How often it may be claimed before it is Dead, the first time included.
    pub max_attempts: u32,
    /// Its level among the waiting tasks.
    pub priority: Priority,
    /// How long after the enqueue it becomes eligible.
    pub delay: Duration,
    /// At most one unfinished task has this key.
    pub unique: Option<Unique>,
    /// Tasks with this key run one after the other.
    pub serial: Option<Serial>,
    /// The producer's trace context, in the form of a W3C `traceparent` header.
    pub trace: Option<Arc<str>>,
    /// When failed attempts are repeated; None leaves it to the worker.
    pub backoff: Option<Backoff>,
}

impl NewTask {
    /// A task with a new id and the defaults: five attempts, normal priority, eligible at once.
    #[must_use]
    pub fn new(envelope: TaskEnvelope) -> Self {
        Self::with_id(TaskId::random(), envelope)
    }

    /// As `new`, with this id.
    pub(crate) fn with_id(id: TaskId, envelope: TaskEnvelope) -> Self {
        Self {
            id,
            envelope,
            max_attempts: super::DEFAULT_MAX_ATTEMPTS,
            priority: Priority::Normal,
            delay: Duration::ZERO,
            unique: None,
            serial: None,
            trace: None,
            backoff: None,
        }
    }
}

/// How far a running task says it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// 0 to 100.
    pub percent: u8,
    /// What it does just now.
    pub note: String,
}

/// What a queue knows of one task, as of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskRecord {
    /// The task's id.
    pub id: TaskId,
    /// The task as data.
    pub envelope: TaskEnvelope,
    /// Where it is in its life.
    pub state: TaskState,
    /// Claims charged against `max_attempts`. A snooze and a shutdown give the charge back.
    pub attempts: u32,
    /// The claim that reaches this number is the last.
    pub max_attempts: u32,
    /// Claims so far. It never decreases.
    pub runs: u32,
    /// How often a charge was given back, at most 100 times.
    pub given_back: u32,
    /// Its level among the waiting tasks.
    pub priority: Priority,
    /// The error of the last failed attempt.
    pub last_error: Option<String>,
    /// When it becomes eligible, while it is Scheduled or RetryScheduled.
    pub next_run_at: Option<Timestamp>,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When its state last changed.
    pub updated_at: Timestamp,
    /// The worker that holds the claim, while it is Running.
    pub owner: Option<Owner>,
    /// The last claim's token.
    pub token: Option<Token>,
    /// Whether a cancel waits for the running handler.
    pub cancel_requested: bool,
    /// What the running handler reported last.
    pub progress: Option<Progress>,
    /// The handler's result, if it succeeded and the result was kept.
    pub result: Option<Bytes>,
    /// Whether the result was too large to keep.
    pub result_dropped: bool,
    /// Its serial key.
    pub serial: Option<Serial>,
    /// Its unique key.
    pub unique: Option<Unique>,
    /// The producer's trace context.
    pub trace: Option<Arc<str>>,
    /// The producer's back-off.
    pub backoff: Option<Backoff>,
}

/// The text's beginning, of at most `limit` bytes.
pub(crate) fn cut(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        let is_boundary = |at: &usize| text.is_char_boundary(*at);
        let end = (0..=limit).rev().find(is_boundary).unwrap_or(0);
        text.truncate(end);
    }
    text
}
