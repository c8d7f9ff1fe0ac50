//! Why a `kumi schema` command ends other than well, and the exit code that tells a script which it was.

use kumi_schema::Diagnostics;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The table of exit codes as `--help` shows it. A test compares it with [`Failure::code`].
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done; for 'diff', nothing broke that the major version does not announce
  1  a file cannot be read or written
  2  the command line makes no sense
  3  a schema has errors
  4  --check found a file that would change
  5  'diff' found breaking changes under the same major version";

/// Nothing that was not finished has been written when one of these is returned.
#[derive(Debug)]
pub(super) enum Failure {
    /// The command line parsed, but asks for something that cannot be.
    Usage(String),
    /// The author's schema is wrong.
    Schema(Diagnostics),
    /// What was done has been said already; this is only the code.
    WouldChange,
    /// As above.
    Breaks,
    /// A file that is not there, or that the system does not let us have.
    Other(anyhow::Error),
}

impl Failure {
    pub(super) fn io(doing: &str, path: &Path, error: io::Error) -> Self {
        Failure::Other(anyhow::Error::new(error).context(format!("{doing} {}", path.display())))
    }

    /// What is left to say on standard error.
    pub(super) fn text(&self) -> Option<String> {
        match self {
            Failure::Usage(text) => Some(format!("kumi: {text}")),
            Failure::Schema(errors) => Some(errors.to_string()),
            Failure::Other(error) => Some(format!("kumi: {error:#}")),
            Failure::WouldChange | Failure::Breaks => None,
        }
    }

    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Failure::Other(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Schema(_) => 3,
            Failure::WouldChange => 4,
            Failure::Breaks => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_table() {
        let failures = [
            Failure::Usage("x".into()),
            Failure::Schema(Diagnostics::default()),
            Failure::WouldChange,
            Failure::Breaks,
            Failure::Other(anyhow::anyhow!("x")),
        ];
        for failure in failures {
            let row = format!("\n  {}  ", failure.code());
            assert!(EXIT_CODES.contains(&row), "no row for {failure:?}");
        }
    }
}
