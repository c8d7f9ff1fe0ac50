//! The job state machine: no socket, no clock, no task, no random numbers.

mod id;
mod machine;
mod record;
mod retry;
mod settings;
pub mod transition;

pub use id::{Owner, ParseIdError, TaskId, Timestamp, Token};
pub(crate) use machine::{Effects, Machine};
pub(crate) use record::NULL;
pub use record::{
    JSON, NewTask, Priority, Progress, Serial, TaskEnvelope, TaskRecord, TaskState, Unique,
};
pub(crate) use retry::reap_delay;
pub use retry::{Backoff, Exponential, Fixed, RetryPolicy};
pub use settings::{
    DEFAULT_MAX_ATTEMPTS, ENQUEUE_LIMIT, MAX_GIVEN_BACK, Retention, Settings, TURN_LIMIT,
};
