//! Why a `kumi jobs` command ends other than well, and its exit code.

use crate::exit::chain;
use crate::terminal::Unwritten;
use kumi_jobs::{QueueError, WorkerError};
use std::process::ExitCode;

/// The table of exit codes as `--help` shows it.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed in another way
  2  the command line or the URL makes no sense, or a task cannot be enqueued
  3  the task that was waited for is dead or cancelled
  7  the server cannot be reached, or does not let us in
  8  there is no such task or schedule
  9  the worker to be released is alive

KUMI_URL, unless it is empty, is the server's URL where --url does not name one.";

#[derive(Debug)]
pub(super) enum Failure {
    Usage(String),
    Queue(QueueError),
    /// The task that was waited for has no result.
    Ended(String),
    Missing(String),
    /// The queue did not do it, for a reason of its own.
    Refused(String),
    Other(anyhow::Error),
}

impl Failure {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Usage(text) | Self::Ended(text) | Self::Missing(text) | Self::Refused(text) => {
                text.clone()
            }
            Self::Queue(error) => chain(error),
            Self::Other(error) => format!("{error:#}"),
        }
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::Queue(QueueError::Io(_)) => 7,
            Self::Queue(QueueError::Server(error)) if error.code() == Some("NOAUTH") => 7,
            Self::Queue(
                QueueError::Config(_)
                | QueueError::Invalid(_)
                | QueueError::TooLarge { .. }
                | QueueError::TooMany { .. },
            ) => 2,
            Self::Ended(_) => 3,
            Self::Missing(_) => 8,
            Self::Refused(_) => 9,
            Self::Queue(_) | Self::Other(_) => 1,
        })
    }
}

impl From<QueueError> for Failure {
    fn from(error: QueueError) -> Self {
        Self::Queue(error)
    }
}

impl From<WorkerError> for Failure {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Queue(error) => Self::Queue(error),
            other => Self::Usage(other.to_string()),
        }
    }
}

impl From<Unwritten> for Failure {
    fn from(error: Unwritten) -> Self {
        Self::Other(error.into())
    }
}
