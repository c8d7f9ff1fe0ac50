//! What can go wrong between a program and a queue.

use crate::core::{Owner, Refusal, TaskId, TaskState};

/// A call to a queue that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The server could not be connected to, or the connection broke. The call may or may not have been carried out; every
    /// call can be repeated.
    #[error(transparent)]
    Io(kumi_redis::Error),
    /// The server answered with an error. Nothing changed, unless the user may run only some of the commands of a script
    /// ([`is_unauthorized`](Self::is_unauthorized)): what the script wrote before stays.
    #[error("the queue's server answered with an error")]
    Server(#[source] ::redis::RedisError),
    /// The server answered something that this version does not understand.
    #[error("the queue's server answered unexpectedly: {0}")]
    Protocol(String),
    /// A URL or a server setting does not fit. Nothing changed.
    #[error("{0}")]
    Config(String),
    /// A payload, a step or a name is larger than its limit. Nothing changed.
    #[error("{what} has {size} bytes; the limit is {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// Its size.
        size: usize,
        /// The limit.
        limit: usize,
    },
    /// More of something than its limit. Nothing changed.
    #[error("more than {limit} {what}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A name is empty or holds a character that it cannot hold. Nothing changed.
    #[error("{0}")]
    Invalid(String),
    /// The owner was declared gone; it has to stop. Nothing changed.
    #[error("the worker {0} was declared gone")]
    OwnerReleased(Owner),
    /// The queue's keys have another format than this program. Nothing changed. A worker reports what it runs, if the queue
    /// still takes reports, and ends.
    #[error("{}", format_text(queue, *ours))]
    Format {
        /// The format of the queue; `3>4` while it is moved from 3 to 4.
        queue: String,
        /// The format of this program.
        ours: u32,
    },
    /// The call was carried out, but fewer replicas than asked for confirmed it in time.
    #[error("{confirmed} of {wanted} replicas confirmed the write")]
    NotReplicated {
        /// How many confirmed.
        confirmed: usize,
        /// How many were asked for.
        wanted: usize,
    },
}

impl QueueError {
    /// Whether the server wants credentials, other ones, or a user with more permissions.
    #[must_use]
    pub fn is_unauthorized(&self) -> bool {
        match self {
            Self::Io(error) => error.is_unauthorized(),
            Self::Server(error) => {
                matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"))
                    || error.detail().is_some_and(is_denied_in_script)
            }
            _ => false,
        }
    }
}

/// What a URL or a server that does not fit it is to blame for is a matter of configuration.
impl From<kumi_redis::Error> for QueueError {
    fn from(error: kumi_redis::Error) -> Self {
        use kumi_redis::Error::{Database, Url, WithoutTls};
        match error {
            Url { .. } | WithoutTls { .. } | Database { .. } => Self::Config(error.to_string()),
            error => Self::Io(error),
        }
    }
}

impl From<Refusal> for QueueError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::TooLarge { what, size, limit } => Self::TooLarge { what, size, limit },
            Refusal::TooMany { what, limit } => Self::TooMany { what, limit },
            Refusal::Invalid(text) => Self::Invalid(text),
            Refusal::OwnerReleased(owner) => Self::OwnerReleased(owner),
        }
    }
}

/// The formats, and what to do about them.
fn format_text(queue: &str, ours: u32) -> String {
    let formats = format!("the queue has format {queue}, and this program has format {ours}");
    let newest: Option<u32> = queue.rsplit('>').next().and_then(|text| text.parse().ok());
    match newest {
        _ if queue.contains('>') => format!("{formats}: the queue is being moved"),
        Some(newest) if newest < ours => {
            format!("{formats}: 'kumi jobs upgrade' moves the queue to it")
        }
        _ => format!("{formats}: use a version of kumi that knows format {queue}"),
    }
}

/// Whether this is the text of a command that a script's user may not run. The code of such an error is ERR, before Redis
/// 7.0 with the place in the script before the text.
fn is_denied_in_script(text: &str) -> bool {
    // From Redis 7.2 on; before.
    text.contains("ACL failure in script: ")
        || text.contains("The user executing the script can't ")
}

/// Why there is no result to give out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultError {
    /// The queue failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The task is Dead.
    #[error("task {id} is dead: {error}")]
    Dead {
        /// The task.
        id: TaskId,
        /// The error of its last attempt.
        error: String,
    },
    /// The task was cancelled.
    #[error("task {0} was cancelled")]
    Cancelled(TaskId),
    /// The task succeeded with a result over the limit.
    #[error("task {0} succeeded, but its result was too large to keep")]
    TooLarge(TaskId),
    /// The task is unknown: never enqueued here, or purged.
    #[error("task {0} is unknown; it may have been purged")]
    Unknown(TaskId),
    /// The stored result is not of the type asked for.
    #[error("the result of task {id} cannot be decoded")]
    Decode {
        /// The task.
        id: TaskId,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// The task is in a state that this version does not know.
    #[error("task {id} ended as {state}")]
    State {
        /// The task.
        id: TaskId,
        /// Its state.
        state: TaskState,
    },
}
