//! Builds programs that live in a workspace of their own, next to this one, when they are needed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The folder of such a workspace.
pub(crate) fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Builds it with optimisations; the error is what cargo had to say.
pub(crate) fn build(workspace: &Path, flags: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO");
    let output = Command::new(cargo.as_deref().unwrap_or(OsStr::new("cargo")))
        .args(["build", "--release", "--quiet"])
        .args(flags)
        .current_dir(workspace)
        .output()
        .context("cannot start cargo")?;
    if output.status.success() {
        return Ok(());
    }
    bail!("{}", String::from_utf8_lossy(&output.stderr).trim())
}

/// The line of a build's output that says most.
pub(crate) fn first_cause(text: &str) -> &str {
    let says_why = |line: &&str| line.contains("Error: ") || line.starts_with("error");
    let lines = || text.lines().map(str::trim);
    lines()
        .find(|line| line.contains("Error: "))
        .or_else(|| lines().find(says_why))
        .unwrap_or("for no reason it gave")
}

/// Reads the numbers of the line `outcome A B C ...`.
pub(crate) fn outcome<const N: usize>(text: &str) -> Option<[f64; N]> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("outcome "))?;
    let numbers: Vec<f64> = line
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_as_many_numbers_as_were_asked_for() {
        assert_eq!(
            outcome("noise\noutcome 1.5 2 3e4\n"),
            Some([1.5, 2.0, 30_000.0])
        );
        assert_eq!(outcome::<4>("outcome 1 2 3"), None);
        assert_eq!(outcome::<1>("outcome one"), None);
        assert_eq!(outcome::<1>(""), None);
    }

    #[test]
    fn the_cause_of_a_failed_build_is_one_line() {
        let text = "error: failed to run custom build command\n  Error: \"no protoc\"\nmore";
        assert_eq!(first_cause(text), "Error: \"no protoc\"");
        assert_eq!(first_cause("error: a\nb"), "error: a");
    }
}
