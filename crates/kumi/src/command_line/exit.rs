//! Failures of `kumi`, and the exit code of each.
//!
//! `kumi server` is not among it: it keeps the codes of `redis-server`.

use kumi_common::causes;
use kumi_node::NodeError;
use kumi_node::config::Diagnostics;
use kumi_node::driver::{JoinError, StoreError};
use kumi_server::{ListenError, LoadConfigError, ProgramError, StartError};
use kumi_store::config::{LoadError, Source};
use std::error::Error;
use std::fmt;
use std::io::ErrorKind;
use std::process::ExitCode;

/// The table of exit codes as `--help` shows it. A test compares it with [`Failure::code`].
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  stopped as asked (ctrl-c, SIGTERM or the SHUTDOWN command)
  1  failed while starting or running
  2  a mistake in the command line
  3  an address to listen on is taken already
  4  the configuration cannot be read, or has a line that is not accepted";

/// Nothing runs any more when one of these is returned.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The caller's command line parsed, but asks for something that cannot be.
    Usage(String),
    /// Another program listens there. The user picks another port or stops it.
    AddressInUse(ListenError),
    /// The operator's file is missing or unreadable.
    ConfigFile(anyhow::Error),
    /// The operator's `kumi.kdl` has errors.
    NodeFile(Diagnostics),
    /// A line of the file is unknown, wrong or refused.
    Line(LoadError),
    /// A directive of the command line is. The value stays untold: it may be a password.
    Setting { name: String, reason: String },
    /// Another program has a port of the node; the text says what to do.
    PortTaken(String),
    /// Any other error of the system or the server.
    Other(anyhow::Error),
}

impl Failure {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    pub(crate) fn other(error: impl Into<anyhow::Error>) -> Self {
        Self::Other(error.into())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Other(_) => 1,
            Failure::Usage(_) => 2,
            Failure::AddressInUse(_) | Failure::PortTaken(_) => 3,
            Failure::ConfigFile(_)
            | Failure::NodeFile(_)
            | Failure::Line(_)
            | Failure::Setting { .. } => 4,
        }
    }
}

/// An error with its causes, on one line. Some libraries repeat the cause in their own text; it is said once.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    for cause in causes(error) {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
    }
    text
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        if error.source.kind() == ErrorKind::AddrInUse {
            Failure::AddressInUse(error)
        } else {
            Failure::other(error)
        }
    }
}

impl From<ProgramError> for Failure {
    fn from(error: ProgramError) -> Self {
        match error {
            ProgramError::Listen(error) => error.into(),
            other => Failure::other(other),
        }
    }
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        match error {
            NodeError::Invalid(text) => Failure::Usage(text),
            NodeError::Store(
                StoreError::AddressTaken(error) | StoreError::Start(StartError::Listen(error)),
            ) => error.into(),
            NodeError::Join(JoinError::PortTaken(text)) | NodeError::HttpPortTaken(text) => {
                Failure::PortTaken(text)
            }
            NodeError::StoreEnd(error) => Failure::other(error),
            other => Failure::other(other),
        }
    }
}

impl From<LoadConfigError> for Failure {
    fn from(error: LoadConfigError) -> Self {
        match error {
            LoadConfigError::Line(error) => Failure::Line(error),
            other => Failure::ConfigFile(other.into()),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text) | Failure::PortTaken(text) => f.write_str(text),
            Failure::AddressInUse(error) if error.address.contains('/') => write!(
                f,
                "{} is there already and is not a socket; choose another path: kumi up --unixsocket PATH",
                error.address
            ),
            Failure::AddressInUse(error) => write!(
                f,
                "{} is taken by another program; choose another port: kumi up --port {}",
                error.address,
                port_to_suggest(&error.address)
            ),
            Failure::NodeFile(errors) => {
                let count = errors.len();
                let plural = if count == 1 { "" } else { "s" };
                write!(f, "the configuration has {count} error{plural}\n\n{errors}")
            }
            Failure::Line(error) => write!(
                f,
                "{}, line {}: {}: '{}'",
                file(error),
                error.line,
                error.reason,
                error.text
            ),
            Failure::Setting { name, reason } => write!(f, "directive '{name}': {reason}"),
            Failure::ConfigFile(error) | Failure::Other(error) => write!(f, "{error:#}"),
        }
    }
}

/// The file at fault, which may be one that another one includes.
fn file(error: &LoadError) -> &str {
    match &error.source_name {
        Source::File(name) => name,
        Source::Stdin => "standard input",
        Source::CommandLine => "command line",
    }
}

/// The port above the one that is taken.
fn port_to_suggest(address: &str) -> u16 {
    let taken = address
        .rsplit(':')
        .next()
        .and_then(|port| port.parse::<u16>().ok());
    taken.and_then(|port| port.checked_add(1)).unwrap_or(6380)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_use(address: &str) -> Failure {
        Failure::from(ListenError {
            address: address.into(),
            source: ErrorKind::AddrInUse.into(),
        })
    }

    #[test]
    fn a_taken_port_is_one_line_with_the_way_out() {
        let text = in_use("127.0.0.1:6379").to_string();
        assert_eq!(
            text,
            "127.0.0.1:6379 is taken by another program; choose another port: kumi up --port 6380"
        );
        assert!(
            in_use("/tmp/notes")
                .to_string()
                .starts_with("/tmp/notes is there already and is not a socket")
        );
        assert!(
            in_use("[::1]:65535")
                .to_string()
                .ends_with("kumi up --port 6380")
        );
    }

    #[test]
    fn a_cause_that_its_error_repeats_is_said_once() {
        let check = |context: &'static str, expected: &str| {
            let error = anyhow::anyhow!("no such file").context(context);
            let error = error.context("cannot start");
            let first = error.chain().next().expect("the error itself");
            assert_eq!(chain(first), expected);
        };
        let whole = "cannot start: cannot read kumi.conf: no such file";
        check("cannot read kumi.conf", whole);
        check("cannot read kumi.conf: no such file", whole);
    }

    #[test]
    fn every_code_stands_in_the_table() {
        let failures = [
            Failure::usage("x"),
            in_use("127.0.0.1:1"),
            Failure::PortTaken("x".into()),
            Failure::ConfigFile(anyhow::anyhow!("x")),
            Failure::NodeFile(Diagnostics::default()),
            Failure::other(anyhow::anyhow!("x")),
        ];
        for failure in failures {
            let row = format!("\n  {}  ", failure.code());
            assert!(EXIT_CODES.contains(&row), "no row for {failure:?}");
        }
    }
}
