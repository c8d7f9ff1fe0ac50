//! Failures of `kumi muf` commands, their messages and exit codes.

use super::shown;
use crate::command_line::exit::chain;
use crate::command_line::terminal::{self, Unwritten};
use kumi_muf::{Error, ServerError};
use std::error::Error as _;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

/// The table of exit codes as `--help` shows it. A test compares it with [`Failure::code`].
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed in another way
  2  a mistake in the command line, the URL, a name or a payload
  4  the backend answered with an error; its payload is on standard error
  5  no backend claimed the request in time; with --all, none answered
  6  a backend claimed the request and did not answer in time
  7  the server cannot be reached, or refused the connection or a command
  8  the value does not exist

KUMI_URL is the server's URL where --url does not name one.";

/// Nothing runs any more when one of these is returned.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line parsed, but asks for something that cannot be.
    Usage(String),
    /// What the unit said.
    Muf(Error),
    /// The server, named without its password, does not answer.
    Unreachable(String, Error),
    /// A request to all backends that none of them answered.
    Unanswered,
    /// The value to be read or ended does not exist.
    Missing(String),
    /// An error of the system.
    Other(anyhow::Error),
}

impl Failure {
    pub(super) fn io(doing: &str, error: io::Error) -> Self {
        Failure::Other(anyhow::Error::new(error).context(doing.to_owned()))
    }

    /// Writes it to standard error. A backend's error is its payload and nothing else, so that a script can read it.
    pub(super) fn report(&self) {
        let text = match self {
            Failure::Muf(Error::Remote(payload)) => {
                let mut bytes = match io::stderr().is_terminal() {
                    // Nothing that a backend says moves the cursor.
                    true => shown::quoted(payload).into_bytes(),
                    false => payload.to_vec(),
                };
                if !bytes.ends_with(b"\n") {
                    bytes.push(b'\n');
                }
                // Standard error may be closed.
                let _ = io::stderr().write_all(&bytes);
                return;
            }
            Failure::Usage(text) => text.clone(),
            Failure::Unanswered => "no backend answered".into(),
            Failure::Missing(key) => format!("nothing is kept at {}", terminal::shown(key)),
            Failure::Muf(Error::Server(ServerError::Notifications { need, .. })) => {
                // Only watching kept values needs generic events.
                let instead = if need.contains('g') {
                    ", or look by the clock: --poll 1s"
                } else {
                    ""
                };
                format!(
                    "the server does not send all keyspace events that are needed, and this user may not switch them \
                     on: have notify-keyspace-events set to at least {need}{instead}"
                )
            }
            // It was reached, and replied.
            Failure::Muf(Error::Server(ServerError::Connect { address, source }))
                if source.code().is_some() =>
            {
                let said = terminal::shown(&source.to_string());
                format!(
                    "the server at {address} refused the connection: {said}; user, password and database are part of the URL: \
                     redis://user:password@host:port/db"
                )
            }
            Failure::Unreachable(url, error) => {
                let causes = causes(error);
                format!(
                    "cannot reach {url}: {causes}; is a server running there? --url or KUMI_URL names another"
                )
            }
            Failure::Muf(Error::Server(error @ ServerError::Certificate { .. })) => {
                format!("{error} (--cacert names certificates to trust)")
            }
            Failure::Muf(error) => chain(error),
            Failure::Other(error) => format!("{error:#}"),
        };
        let _ = writeln!(io::stderr(), "kumi: {text}");
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Unanswered => 5,
            Failure::Missing(_) => 8,
            Failure::Unreachable(..) => 7,
            Failure::Other(_) => 1,
            Failure::Muf(error) => match error {
                Error::Name(_) | Error::TooLarge { .. } | Error::Encode(_) => 2,
                Error::Server(ServerError::Url { .. }) => 2,
                Error::Remote(_) => 4,
                Error::NoResponder => 5,
                Error::HandlerTimeout { .. } => 6,
                Error::Server(ServerError::Notifications { .. }) => 1,
                Error::Disconnected { .. } | Error::Server(_) => 7,
                _ => 1,
            },
        }
    }
}

/// What is behind a failed attempt to connect.
fn causes(error: &Error) -> String {
    match error.source() {
        Some(cause) => chain(cause),
        None => error.to_string(),
    }
}

impl From<Unwritten> for Failure {
    fn from(unwritten: Unwritten) -> Self {
        Failure::Other(unwritten.into())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Muf(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_table() {
        let failures = [
            Failure::Usage("x".into()),
            Failure::Unanswered,
            Failure::Missing("x".into()),
            Failure::Other(anyhow::anyhow!("x")),
            Error::Remote("x".into()).into(),
            Error::NoResponder.into(),
            Error::HandlerTimeout {
                claimant: "x".into(),
            }
            .into(),
            Error::Disconnected {
                server: "x".into(),
                reason: None,
            }
            .into(),
            Error::from(ServerError::Certificate {
                address: "x".into(),
                reason: "x".into(),
            })
            .into(),
            Error::Closed.into(),
        ];
        for failure in failures {
            let row = format!("\n  {}  ", failure.code());
            assert!(EXIT_CODES.contains(&row), "no row for {failure:?}");
        }
    }
}
