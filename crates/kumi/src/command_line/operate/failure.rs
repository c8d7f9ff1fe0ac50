//! Why one of these commands ends other than well, and the exit code that tells a script which it was.

use crate::command_line::exit::chain;
use crate::command_line::terminal::Unwritten;
use kumi_node::driver::client::ClientError;
use std::fmt;
use std::process::ExitCode;

/// The table of exit codes as `--help` shows it. A test compares it with [`Failure::code`].
pub(super) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed in another way
  2  the command line makes no sense, or several nodes run here and none was named
  4  the key cannot be read, or is not the key of that cluster
  5  the node refused
  7  no node runs here, or none answers at that address
  8  no such node or store

Environment:
  KUMI_CLUSTER_KEY_FILE  the key file for --at, where --key-file names none, unless it is empty
  NO_COLOR               no colours";

/// Nothing runs any more when one of these is returned.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line parsed, but asks for something that cannot be.
    Usage(String),
    /// The operator's files are missing, unreadable or readable by others.
    Key(String),
    /// No node runs on this machine.
    NothingRuns(String),
    /// No live store has the id.
    NoStore(String),
    /// A node did not do it.
    Client(ClientError),
    /// Any other error of the system.
    Other(anyhow::Error),
}

impl Failure {
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Key(_) | Failure::Client(ClientError::OtherKey { .. }) => 4,
            Failure::Client(ClientError::Refused(_)) => 5,
            Failure::NothingRuns(_)
            | Failure::Client(
                ClientError::Unreachable { .. }
                | ClientError::NoStatus { .. }
                | ClientError::Lost(_),
            ) => 7,
            Failure::NoStore(_) | Failure::Client(ClientError::NoMember { .. }) => 8,
            Failure::Client(_) | Failure::Other(_) => 1,
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        Failure::Client(error)
    }
}

impl From<Unwritten> for Failure {
    fn from(unwritten: Unwritten) -> Self {
        Failure::Other(unwritten.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(text)
            | Failure::Key(text)
            | Failure::NothingRuns(text)
            | Failure::NoStore(text) => f.write_str(text),
            Failure::Client(error) => f.write_str(&chain(error)),
            Failure::Other(error) => write!(f, "{error:#}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kumi_unison::NetworkError;

    #[test]
    fn every_code_stands_in_the_table() {
        let unreachable = || ClientError::Unreachable {
            address: "a:1".into(),
            source: NetworkError::deadline(),
        };
        let other_key = ClientError::OtherKey {
            address: "a:1".into(),
            source: NetworkError::closed(),
        };
        let no_member = ClientError::NoMember {
            name: "x".into(),
            known: vec!["a".into(), "b".into()],
        };
        let text = Failure::from(unreachable()).to_string();
        assert_eq!(
            text,
            "no node answers at a:1: check the address, that the node runs, and that its UDP port is open: \
             the deadline passed"
        );
        assert_eq!(
            no_member.to_string(),
            "no live member is called x: there is a, b"
        );
        let failures = [
            Failure::Usage("x".into()),
            Failure::Key("x".into()),
            other_key.into(),
            ClientError::Refused("x".into()).into(),
            Failure::NothingRuns("x".into()),
            unreachable().into(),
            ClientError::Lost(NetworkError::closed()).into(),
            no_member.into(),
            Failure::NoStore("x".into()),
            Failure::Other(anyhow::anyhow!("x")),
        ];
        let codes: Vec<u8> = failures.iter().map(Failure::code).collect();
        assert_eq!(codes, [2, 4, 4, 5, 7, 7, 7, 8, 8, 1]);
        for code in codes {
            let row = format!("\n  {code}  ");
            assert!(EXIT_CODES.contains(&row), "no row for {code}");
        }
    }
}
