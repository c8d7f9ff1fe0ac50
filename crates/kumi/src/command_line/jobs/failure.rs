//! Why a `kumi jobs` command ends other than well, and its exit code.

use crate::command_line::exit::chain;
use crate::command_line::terminal::{self, Unwritten};
use kumi_jobs::{QueueError, ServerError, WorkerError};
use std::process::ExitCode;

/// The table of exit codes as `--help` shows it.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed in another way
  2  a mistake in the command line, the URL or the task
  3  the task that --wait waited for is dead or cancelled
  7  the server cannot be reached, or refused the connection
  8  the task or schedule does not exist, or more than one task begins so
  9  refused: the worker to be released is alive, or the task to be retried is not dead or its unique key is taken

KUMI_URL is the server's URL where --url does not name one.";

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

/// An error of a queue in one line.
pub(super) fn text(error: &QueueError) -> String {
    terminal::shown(&chain(error))
}

impl Failure {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Usage(text) | Self::Ended(text) | Self::Missing(text) | Self::Refused(text) => {
                text.clone()
            }
            Self::Queue(error) if error.is_unauthorized() => format!(
                "the server refused the connection: {}; user and password are part of the URL: \
                 redis://user:password@host:port",
                terminal::shown(&chain(error))
            ),
            Self::Queue(error @ QueueError::Io(server)) => {
                let advice = match server {
                    ServerError::Certificate { .. } => " (--cacert names certificates to trust)",
                    _ => "; is a server running there? --url or KUMI_URL names another",
                };
                format!("{}{advice}", text(error))
            }
            Self::Queue(error) => terminal::shown(&chain(error)),
            Self::Other(error) => format!("{error:#}"),
        }
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Usage(_) => 2,
            Self::Queue(QueueError::Io(_)) => 7,
            Self::Queue(error) if error.is_unauthorized() => 7,
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
