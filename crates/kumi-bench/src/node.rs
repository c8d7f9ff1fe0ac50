//! `kumi-bench node`: what a cluster of nodes reaches, with real processes.
//!
//! Nodes that are killed, stopped and restarted are `kumi-bench node-run`, which say when a task began; what a node costs is
//! measured on `kumi up`. `node/process.rs` says why.

mod at_rest;
mod cost;
mod nodes;
pub(crate) mod options;
mod partition;
mod peers;
pub(crate) mod process;
mod takeover;
mod under_load;
mod up;

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use crate::node::options::{NodeArgs, NodePart};
use crate::parts::measure_parts;
use crate::progress::Progress;
use crate::report::Report;
use crate::store::describe;
use crate::store::servers::{self, Stage};

/// The peer that times are compared with.
const REFERENCE: &str = "bullmq";

/// Rounds of what takes long, at most.
const LONG_ROUNDS: usize = 3;

/// What all parts need.
struct Bench<'a> {
    args: &'a NodeArgs,
    stage: &'a Stage,
    progress: Progress,
    rounds: usize,
    /// Rounds of what takes long, and of peers.
    long_rounds: usize,
    tasks: usize,
    has_peers: bool,
    /// How long a node at rest is watched.
    rest: Duration,
    /// The kumi whose `up` is measured, once it was found or built.
    kumi: &'a OnceCell<PathBuf>,
}

impl Bench<'_> {
    fn kumi(&self) -> Result<&Path> {
        if let Some(program) = self.kumi.get() {
            return Ok(program);
        }
        let program = match &self.args.kumi {
            Some(path) => servers::find_program(path, "check --kumi")?,
            None => servers::build_program("kumi", &self.progress)?,
        };
        Ok(self.kumi.get_or_init(|| program))
    }
}

/// Measures what was asked for and prints the report. A part that fails leaves the others their figures.
pub(crate) fn run(args: &NodeArgs) -> Result<()> {
    let progress = Progress::new();
    let mut report = Report::against(REFERENCE);
    let mut stage = Stage::new(true)?;
    describe(&stage, &[], &mut report);
    let (rounds, rest) = match args.quick {
        true => (2, Duration::from_secs(5)),
        false => (50, Duration::from_secs(20)),
    };
    let rounds = args.runs.map_or(rounds, NonZeroUsize::get);
    let kumi = OnceCell::new();
    let parts = NodePart::value_variants().iter().copied();
    let wanted: Vec<NodePart> = parts.filter(|&part| args.wants(part)).collect();
    measure_parts(wanted, &progress, report, |part, report| {
        if part == NodePart::Cost && !args.no_pin {
            stage.pin();
            report.note(format!("cores in Cost: {}", stage.cores()));
        }
        let bench = Bench {
            args,
            stage: &stage,
            progress,
            long_rounds: rounds.min(if args.quick { 1 } else { LONG_ROUNDS }),
            rounds,
            tasks: args.tasks as usize,
            has_peers: !args.no_peers && !args.quick,
            rest,
            kumi: &kumi,
        };
        match part {
            NodePart::Kill => takeover::kill(&bench, report),
            NodePart::Restart => takeover::restart(&bench, report),
            NodePart::Pause => takeover::pause(&bench, report),
            NodePart::Store => under_load::store(&bench, report),
            NodePart::Rolling => under_load::rolling(&bench, report),
            NodePart::Partition => partition::partition(&bench, report),
            NodePart::Rest => at_rest::rest(&bench, report),
            NodePart::Ready => at_rest::ready(&bench, report),
            NodePart::Scrapes => at_rest::scrapes(&bench, report),
            NodePart::Cost => cost::cost(&bench, report),
        }
    })
}
