//! The peers from crates.io, measured by a program of their own that is built when it is needed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::load::{Load, Outcome, Sides};
use crate::progress::Progress;

/// What is built: all peers, and, where that fails, all but the one that needs more than cargo.
const CLUB: &str = "club-unison";

/// The peers' program, and which of them it has.
pub(super) struct Peers {
    program: PathBuf,
    pub(super) names: Vec<&'static str>,
    /// Why a peer is missing.
    pub(super) missing: Option<String>,
}

impl Peers {
    /// Builds the program, in its own workspace.
    pub(super) fn build(progress: &Progress) -> Result<Peers> {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let mut task = progress.task("building the peers", 1);
        task.begin("cargo build --release");
        let (names, missing) = match cargo(&workspace, &[]) {
            Ok(()) => (vec!["tonic", "tarpc", CLUB], None),
            Err(reason) => {
                cargo(&workspace, &["--no-default-features"]).context("cannot build the peers")?;
                let missing = format!(
                    "{CLUB} is missing, since it cannot be built: {}",
                    first_cause(&reason.to_string())
                );
                (vec!["tonic", "tarpc"], Some(missing))
            }
        };
        task.end();
        Ok(Peers {
            program: workspace.join("target/release/kumi-bench-peers"),
            names,
            missing,
        })
    }

    /// One run of one peer, in a process of its own.
    pub(super) fn run(&self, name: &str, sides: &Sides, load: Load) -> Result<Outcome> {
        let output = Command::new(&self.program)
            .arg(name)
            .arg(load.size.to_string())
            .arg(load.in_flight.to_string())
            .arg(load.period.as_secs_f64().to_string())
            .arg(list(&sides.server))
            .arg(list(&sides.client))
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
        parse(&text).with_context(|| format!("the peers' program said {text:?}"))
    }
}

fn cargo(workspace: &Path, flags: &[&str]) -> Result<()> {
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
fn first_cause(text: &str) -> &str {
    let says_why = |line: &&str| line.contains("Error: ") || line.starts_with("error");
    let lines = || text.lines().map(str::trim);
    lines()
        .find(|line| line.contains("Error: "))
        .or_else(|| lines().find(says_why))
        .unwrap_or("for no reason it gave")
}

fn list(cpus: &[usize]) -> String {
    let names: Vec<String> = cpus.iter().map(usize::to_string).collect();
    names.join(",")
}

/// Reads `outcome P50 P99 RATE SERVER CLIENT`.
fn parse(text: &str) -> Option<Outcome> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("outcome "))?;
    let numbers: Vec<f64> = line
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    let [p50_us, p99_us, calls_per_second, server_us, client_us] = numbers[..] else {
        return None;
    };
    Some(Outcome {
        p50_us,
        p99_us,
        calls_per_second,
        server_us,
        client_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_five_numbers() {
        let outcome = parse("noise\noutcome 1.5 2 3e4 4 5\n").unwrap();
        assert_eq!((outcome.p50_us, outcome.client_us), (1.5, 5.0));
        assert!(parse("outcome 1 2 3 4").is_none());
        assert!(parse("").is_none());
    }

    #[test]
    fn the_cause_of_a_failed_build_is_one_line() {
        let text = "error: failed to run custom build command\n  Error: \"no protoc\"\nmore";
        assert_eq!(first_cause(text), "Error: \"no protoc\"");
        assert_eq!(first_cause("error: a\nb"), "error: a");
    }
}
