//! `kumi-bench store`: the store beside redis-server, and valkey-server where there is one.

mod growth;
pub(crate) mod idle;
mod lag;
mod memory;
mod servers;
mod workloads;

use std::fs;

use anyhow::Result;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args::{Part, Plan, StoreArgs};
use crate::progress::Progress;
use crate::report::Report;
use crate::store::servers::{Contender, Stage};

/// Measures what was asked for and prints the report.
pub(crate) fn run(args: &StoreArgs) -> Result<()> {
    let plan = Plan::of(args);
    let progress = Progress::new();
    raise_open_files();
    let stage = Stage::new(args.no_pin)?;
    let mut report = Report::default();
    let needs_servers = [Part::Workloads, Part::Memory, Part::Lag, Part::Idle]
        .into_iter()
        .any(|part| args.wants(part));
    let contenders = if needs_servers {
        servers::contenders(args, &progress)?
    } else {
        Vec::new()
    };
    describe(&stage, &contenders, &mut report);

    if args.wants(Part::Workloads) {
        let benchmark = workloads::find_benchmark(&args.redis_benchmark)?;
        workloads::measure(
            &stage,
            &plan,
            &contenders,
            &benchmark,
            &progress,
            &mut report,
        )?;
    }
    if args.wants(Part::Memory) {
        memory::measure(&stage, &plan, &contenders, &progress, &mut report)?;
    }
    if args.wants(Part::Lag) {
        lag::measure(&stage, &plan, &contenders, &progress, &mut report)?;
    }
    if args.wants(Part::Growth) {
        growth::measure(&stage, &plan, &progress, &mut report)?;
    }
    if args.wants(Part::Idle) {
        idle::measure(&stage, &plan, &contenders, &progress, &mut report)?;
    }
    print!("{}\n{}", report.tables(), report.figures());
    Ok(())
}

/// Says under which circumstances the figures came to be.
fn describe(stage: &Stage, contenders: &[Contender], report: &mut Report) {
    for contender in contenders {
        report.note(format!("{}: {}", contender.name(), contender.version()));
    }
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    report.note(format!("cores: {} ({cpus} usable)", stage.cores()));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    if let Some(load) = load
        .split_whitespace()
        .next()
        .and_then(|word| word.parse::<f64>().ok())
        && load > 0.5
    {
        report.note(format!(
            "the load average was {load:.1} at the start: other work disturbs these figures"
        ));
    }
}

/// Ten thousand connections need as many descriptors; servers inherit the limit.
fn raise_open_files() {
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
