//! `kumi-bench types`: lists, hashes, sets, sorted sets and streams beside redis-server and valkey-server.

mod commands;
mod memory;
pub(crate) mod options;
mod plan;
mod requests;
mod values;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::parts::measure_parts;
use crate::progress::Progress;
use crate::report::REFERENCE;
use crate::stats::Sample;
use crate::store::servers::{self, Contender, Stage};
use crate::store::{describe, raise_open_files};
use crate::types::options::{TypesArgs, TypesPart};
use crate::types::plan::Plan;

/// What the parts share: where servers run, which ones, and how much is measured.
struct Setting<'a> {
    stage: &'a Stage,
    args: &'a TypesArgs,
    plan: Plan,
    contenders: &'a [Contender],
    progress: &'a Progress,
}

/// Measures what was asked for and prints the report. A part that fails leaves the others their figures.
pub(crate) fn run(args: &TypesArgs) -> Result<()> {
    let progress = Progress::new();
    let mut report = args.servers.report(REFERENCE);
    let contenders = servers::contenders(&args.servers, &progress, &mut report)?;
    raise_open_files();
    let stage = Stage::new(args.no_pin)?;
    describe(&stage, &contenders, &mut report);
    let setting = Setting {
        stage: &stage,
        args,
        plan: Plan::of(args),
        contenders: &contenders,
        progress: &progress,
    };
    let wanted = TypesPart::value_variants().iter().copied();
    let wanted = wanted.filter(|&part| args.wants(part));
    measure_parts(wanted, &progress, report, |part, report| match part {
        TypesPart::Commands => commands::measure(&setting, report),
        TypesPart::Small | TypesPart::Large | TypesPart::Sizes => {
            memory::measure(part, &setting, report)
        }
    })
}

/// The values of the runs of one row.
fn sample(values: Vec<f64>) -> Result<Sample> {
    Sample::new(values).context("no run was made")
}
