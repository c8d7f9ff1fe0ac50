//! `kumi-bench store`: the store beside redis-server, and valkey-server where one can be had.

mod bursts;
pub(crate) mod client;
pub(crate) mod driver;
pub(crate) mod echo;
pub(crate) mod engine;
mod growth;
pub(crate) mod idle;
mod lag;
mod large;
pub(crate) mod memory;
pub(crate) mod profile;
pub(crate) mod servers;
pub(crate) mod valkey;
pub(crate) mod workloads;

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::{Part, Plan, StoreArgs};
use crate::parts::measure_parts;
use crate::progress::Progress;
use crate::report::{REFERENCE, Report};
use crate::store::servers::{Contender, Stage};

/// A load average above this at the start is worth a word.
const BUSY_LOAD: f64 = 0.5;

/// Measures what was asked for and prints the report. A part that fails leaves the others their figures.
pub(crate) fn run(args: &StoreArgs) -> Result<()> {
    let plan = Plan::of(args);
    let progress = Progress::new();
    let wanted: Vec<Part> = Part::value_variants()
        .iter()
        .copied()
        .filter(|&part| args.wants(part))
        .collect();
    let driven = |part: &Part| matches!(part, Part::Workloads | Part::Large);
    let benchmark = match wanted.iter().any(driven) {
        true => driver::find_benchmark(&args.redis_benchmark)?,
        false => PathBuf::new(),
    };
    let mut report = args.servers.report(REFERENCE);
    let contenders = match wanted.iter().any(|&part| part != Part::Growth) {
        true => servers::contenders(&args.servers, &progress, &mut report)?,
        false => Vec::new(),
    };
    raise_open_files();
    let stage = Stage::new(args.no_pin)?;
    describe(&stage, &contenders, &mut report);
    measure_parts(wanted, &progress, report, |part, report| match part {
        Part::Workloads => {
            workloads::measure(&stage, &plan, &contenders, &benchmark, &progress, report)
        }
        Part::Bursts => bursts::measure(&stage, &plan, &contenders, &progress, report),
        Part::Memory => memory::measure(&stage, &plan, &contenders, &progress, report),
        Part::Lag => lag::measure(&stage, &plan, &contenders, &progress, report),
        Part::Growth => growth::measure(&stage, &plan, &progress, report),
        Part::Idle => idle::measure(&stage, &plan, &contenders, &progress, report),
        Part::Large => large::measure(&stage, &plan, &contenders, &benchmark, &progress, report),
    })
}

/// Says under which circumstances the figures came to be.
pub(crate) fn describe(stage: &Stage, contenders: &[Contender], report: &mut Report) {
    for contender in contenders {
        report.note(format!("{}: {}", contender.name(), contender.version()));
    }
    report.note(format!("cores: {}", stage.cores()));
    if let Ok(setting) = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled") {
        report.note(format!("transparent huge pages: {}", setting.trim()));
    }
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse().ok());
    if let Some(load) = load.filter(|&load: &f64| load > BUSY_LOAD) {
        report.note(format!(
            "the load average was {load:.1} at the start: other work may disturb these figures"
        ));
    }
}

/// Ten thousand connections need as many descriptors; servers inherit the limit.
pub(crate) fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Refused only where the hard limit sank meanwhile; the idle measurement checks what it needs itself.
    let _ = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
}
