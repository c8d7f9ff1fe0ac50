//! `kumi-bench types`: lists, hashes, sets, sorted sets and streams beside redis-server and valkey-server.

mod client;
mod commands;
mod memory;
mod requests;
mod values;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::args::{TypesArgs, TypesPart};
use crate::progress::Progress;
use crate::report::Report;
use crate::stats::Sample;
use crate::store::servers::{self, Stage};
use crate::store::{describe, raise_open_files};

/// Measures what was asked for and prints the report. A part that fails leaves the others their figures.
pub(crate) fn run(args: &TypesArgs) -> Result<()> {
    let progress = Progress::new();
    let mut report = Report::default();
    let contenders = servers::contenders(&args.servers, &progress, &mut report)?;
    raise_open_files();
    let stage = Stage::new(args.no_pin)?;
    describe(&stage, &contenders, &mut report);
    let mut failed = 0;
    for &part in TypesPart::value_variants() {
        if !args.wants(part) {
            continue;
        }
        let outcome = match part {
            TypesPart::Commands => {
                commands::measure(&stage, args, &contenders, &progress, &mut report)
            }
            TypesPart::Small | TypesPart::Large | TypesPart::Sizes => {
                memory::measure(part, &stage, args, &contenders, &progress, &mut report)
            }
        };
        if let Err(error) = outcome {
            failed += 1;
            progress.line(&format!("{part:?} failed: {error:#}"));
            report.note(format!("{part:?} was not measured: {error:#}"));
        }
    }
    print!("{}\n{}", report.tables(), report.figures());
    if failed > 0 {
        bail!("{failed} of the measurements failed");
    }
    Ok(())
}

/// The values of the runs of one row.
fn sample(values: Vec<f64>) -> Result<Sample> {
    Sample::new(values).context("no run was made")
}
