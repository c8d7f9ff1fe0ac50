//! Tasks with types: what a producer enqueues and a handler takes.

use crate::core::{DEFAULT_MAX_ATTEMPTS, Exponential, Priority, RetryPolicy};
use kumi_common::Chain;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A kind of task: its payload is the value itself, in JSON.
///
/// ```
/// use kumi_jobs::{Options, Task};
/// use std::time::Duration;
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendEmail {
///     to: String,
/// }
///
/// impl Task for SendEmail {
///     const TYPE: &'static str = "send_email";
///     type Output = String;
///     fn options() -> Options {
///         Options::new().max_attempts(5).time_limit(Duration::from_secs(30))
///     }
/// }
/// assert_eq!(SendEmail::TYPE, "send_email");
/// ```
pub trait Task: Serialize + DeserializeOwned + Send + 'static {
    /// Names the handler.
    const TYPE: &'static str;

    /// What the handler returns.
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// How tasks of this kind are run.
    fn options() -> Options {
        Options::new()
    }
}

/// How tasks of a kind are run.
#[derive(Clone)]
pub struct Options {
    pub(crate) max_attempts: u32,
    pub(crate) priority: Priority,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) cancel_grace: Duration,
    pub(crate) retry: Arc<dyn RetryPolicy>,
}

impl Options {
    /// Five attempts with exponential back-off, normal priority, no time limit, five seconds of grace after a cancel.
    #[must_use]
    pub fn new() -> Self {
        Self {
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            priority: Priority::Normal,
            time_limit: None,
            cancel_grace: Duration::from_secs(5),
            retry: Arc::new(Exponential::default()),
        }
    }

    /// How often a task is tried, the first time included.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.max_attempts = attempts;
        self
    }

    /// The level of new tasks.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// A run that takes longer is cancelled and counts as failed.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// How long a cancelled run may go on before its future is dropped.
    #[must_use]
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.cancel_grace = grace;
        self
    }

    /// When failed attempts are repeated.
    #[must_use]
    pub fn retry(mut self, policy: impl RetryPolicy) -> Self {
        self.retry = Arc::new(policy);
        self
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("max_attempts", &self.max_attempts)
            .field("priority", &self.priority)
            .field("time_limit", &self.time_limit)
            .field("cancel_grace", &self.cancel_grace)
            .finish_non_exhaustive()
    }
}

/// How a handler ends without a result. `?` turns any error into `Retry`, with the text of its sources: a type of its own,
/// `anyhow::Error`, `Box<dyn Error + Send + Sync>`, or a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskError {
    /// Try again, when the type's retry policy says so.
    Retry(String),
    /// Try again after this delay.
    RetryAfter(Duration, String),
    /// Never try again: the task is Dead.
    Abort(String),
    /// Not yet: run again after this delay. The attempt is given back, up to 100 times per task.
    Snooze(Duration),
}

impl TaskError {
    /// An error to be tried again.
    pub fn retry(error: impl fmt::Display) -> Self {
        Self::Retry(error.to_string())
    }

    /// An error that no attempt will cure.
    pub fn abort(error: impl fmt::Display) -> Self {
        Self::Abort(error.to_string())
    }
}

impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for TaskError {
    fn from(error: E) -> Self {
        Self::Retry(Chain(&*error.into()).to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_error_means_retry_with_its_sources() {
        #[derive(Debug, thiserror::Error)]
        #[error("sending failed")]
        struct Failed(#[source] std::num::ParseIntError);
        let error = Failed("x".parse::<u8>().unwrap_err());
        let expected = "sending failed: invalid digit found in string";
        assert_eq!(TaskError::from(error), TaskError::Retry(expected.into()));
    }

    #[test]
    fn errors_in_boxes_of_any_kind_mean_retry_with_their_sources() {
        type Boxed = Box<dyn std::error::Error + Send + Sync>;
        fn parsed(text: &str) -> anyhow::Result<u8> {
            use anyhow::Context;
            text.parse().context("the number of copies")
        }
        fn boxed(text: &str) -> Result<u8, Boxed> {
            Ok(text.parse()?)
        }
        let by_anyhow = || -> Result<u8, TaskError> { Ok(parsed("x")?) };
        let by_box = || -> Result<u8, TaskError> { Ok(boxed("x")?) };
        let by_text = || -> Result<u8, TaskError> { Err("no")? };
        let retry = |text: &str| Err(TaskError::Retry(text.into()));
        let invalid = "invalid digit found in string";
        assert_eq!(
            by_anyhow(),
            retry(&format!("the number of copies: {invalid}"))
        );
        assert_eq!(by_box(), retry(invalid));
        assert_eq!(by_text(), retry("no"));
    }
}
