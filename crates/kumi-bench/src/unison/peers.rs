//! The peers from crates.io, measured by a program of their own that is built when it is needed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::load::{Load, Outcome, Sides};
use crate::progress::Progress;
use crate::workspace;

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
        let folder = workspace::folder("peers");
        let mut task = progress.task("building the peers", 1);
        task.begin("cargo build --release");
        let (names, missing) = match workspace::build(&folder, &[]) {
            Ok(()) => (vec!["tonic", "tarpc", CLUB], None),
            Err(reason) => {
                workspace::build(&folder, &["--no-default-features"])
                    .context("cannot build the peers")?;
                let missing = format!(
                    "{CLUB} is missing, since it cannot be built: {}",
                    workspace::first_cause(&reason.to_string())
                );
                (vec!["tonic", "tarpc"], Some(missing))
            }
        };
        task.end();
        Ok(Peers {
            program: folder.join("target/release/kumi-bench-peers"),
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

fn list(cpus: &[usize]) -> String {
    let names: Vec<String> = cpus.iter().map(usize::to_string).collect();
    names.join(",")
}

/// Reads `outcome P50 P99 RATE SERVER CLIENT`.
fn parse(text: &str) -> Option<Outcome> {
    let [p50_us, p99_us, calls_per_second, server_us, client_us] = workspace::outcome(text)?;
    Some(Outcome {
        p50_us,
        p99_us,
        calls_per_second,
        server_us,
        client_us,
    })
}
