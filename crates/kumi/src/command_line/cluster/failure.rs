//! Why a `kumi cluster` command ends other than well, and the exit code that tells a script which it was.

use crate::command_line::exit::chain;
use crate::command_line::terminal::Unwritten;
use kumi_cluster::{AdminError, DriverError, MembershipError};
use kumi_unison::NetworkError;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// The table of exit codes as `--help` shows it. A test compares it with [`Failure::code`].
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done; for 'up': left the cluster as asked
  1  failed in another way
  2  the command line makes no sense
  3  the address to listen on is taken already
  4  the key file or the certificates cannot be used
  5  the node refused
  7  no node of this cluster answers at that address
  8  no such member, or none of that name is quarantined

Environment:
  KUMI_CLUSTER_KEY_FILE  the key file, where --key-file names none, unless it is empty
  KUMI_CLUSTER_NODE      the node to ask, where --node names none, unless it is empty
  NO_COLOR               no colours";

/// Nothing runs any more when one of these is returned.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line parsed, but asks for something that cannot be.
    Usage(String),
    /// The operator's files are missing, unreadable or readable by others.
    Key(String),
    /// The node did not start.
    Start(DriverError),
    /// The node that was asked did not do it.
    Admin(AdminError),
    /// The node ended without being asked to.
    Ended(String),
    /// Whatever else the system came up with.
    Other(anyhow::Error),
}

impl Failure {
    pub(super) fn usage(text: impl Into<String>) -> Self {
        Failure::Usage(text.into())
    }

    pub(super) fn io(doing: &str, error: io::Error) -> Self {
        Failure::Other(anyhow::Error::new(error).context(doing.to_owned()))
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Start(error) if error.is_address_in_use() => 3,
            Failure::Start(DriverError::Tls(_)) | Failure::Key(_) => 4,
            Failure::Start(DriverError::AdvertiseNeeded { .. } | DriverError::Runtime(_)) => 2,
            Failure::Start(DriverError::Membership(MembershipError::MetadataTooLarge {
                ..
            })) => 2,
            Failure::Admin(AdminError::Refused(_)) => 5,
            Failure::Admin(AdminError::Unreachable { .. } | AdminError::Lost(_)) => 7,
            Failure::Admin(AdminError::UnknownMember(_)) => 8,
            Failure::Start(_) | Failure::Admin(_) | Failure::Ended(_) | Failure::Other(_) => 1,
        }
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        Failure::Start(error)
    }
}

impl From<AdminError> for Failure {
    fn from(error: AdminError) -> Self {
        Failure::Admin(error)
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
            Failure::Usage(text) | Failure::Key(text) | Failure::Ended(text) => f.write_str(text),
            Failure::Start(error) => f.write_str(&chain(error)),
            // Its cause says the same once more.
            Failure::Admin(error @ AdminError::Lost(NetworkError::ConnectionLost { .. })) => {
                error.fmt(f)
            }
            Failure::Admin(error) => f.write_str(&chain(error)),
            Failure::Other(error) => write!(f, "{error:#}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_table() {
        let failures = [
            Failure::usage("x"),
            Failure::Key("x".into()),
            Failure::Start(DriverError::Listen {
                address: ([127, 0, 0, 1], 1).into(),
                source: io::ErrorKind::AddrInUse.into(),
            }),
            Failure::Admin(AdminError::Refused("x".into())),
            Failure::Admin(AdminError::UnknownMember("x".into())),
            Failure::Ended("x".into()),
            Failure::Other(anyhow::anyhow!("x")),
            // A node whose engine panicked.
            DriverError::Failed.into(),
            // More metadata than there is room for beside the name.
            Failure::Start(MembershipError::MetadataTooLarge { len: 513 }.into()),
        ];
        let codes: Vec<u8> = failures.iter().map(Failure::code).collect();
        assert_eq!(codes, [2, 4, 3, 5, 8, 1, 1, 1, 2]);
        for code in codes {
            assert!(
                EXIT_CODES.contains(&format!("\n  {code}  ")),
                "no row for {code}"
            );
        }
    }

    #[test]
    fn a_taken_address_is_told_with_its_reason() {
        let failure = Failure::Start(DriverError::Listen {
            address: ([127, 0, 0, 1], 7400).into(),
            source: io::ErrorKind::AddrInUse.into(),
        });
        let text = failure.to_string();
        assert!(
            text.starts_with("cannot listen on 127.0.0.1:7400: "),
            "{text}"
        );
    }
}
