//! SET with an append-only file.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::Bench;
use super::writers::Writers;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::servers::Contender;

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    for (policy, pipeline) in [("everysec", 16), ("always", 1)] {
        let row = |name: &str, unit| {
            let label = format!("appendfsync {policy}, pipeline {pipeline}: {name}");
            Row::new(format!("durability.log.{policy}.{name}"), label, unit)
        };
        let mut cpu = row("cpu_us", "us/op");
        let mut rate = row("throughput", "ops/s");
        let mut syncs = row("fsyncs", "per write");
        match policy {
            "everysec" => cpu = cpu.goal(Some(Goal::RatioAtMost(1.0 / 1.8))),
            _ => rate = rate.goal(Some(Goal::RatioAtLeast(1.0))),
        }
        for contender in &bench.contenders {
            match set(bench, contender, policy, pipeline) {
                Ok(written) => {
                    cpu.add(contender.name(), Sample::single(written.cpu_us));
                    rate.add(contender.name(), Sample::single(written.per_second));
                    match written.syncs {
                        Ok(per_write) => syncs.add(contender.name(), Sample::single(per_write)),
                        Err(error) => report.note(format!(
                            "fsyncs of {} were not counted: {error:#}",
                            contender.name()
                        )),
                    }
                }
                Err(error) => {
                    let name = contender.name();
                    report.note(format!("{name} was not measured with {policy}: {error:#}"));
                }
            }
        }
        rows.extend([cpu, rate, syncs].map(|row| report.shown(row)));
    }
    let title = format!(
        "SET with an append-only file, {} connections",
        bench.args.connections
    );
    report.section(title, rows);
    Ok(())
}

/// What writing gave.
struct Written {
    /// Microseconds of the server's CPU per SET.
    cpu_us: f64,
    per_second: f64,
    /// Calls of fsync and fdatasync per SET.
    syncs: Result<f64>,
}

fn set(bench: &Bench<'_>, contender: &Contender, policy: &str, pipeline: usize) -> Result<Written> {
    let args = bench.args;
    let directives = [("appendonly", "yes"), ("appendfsync", policy)];
    let server = contender.start(&bench.stage, &directives)?;
    let writers = Writers::start(server.address(), args.connections, pipeline, args.keys)?;
    // The first second warms up.
    writers.rate(Duration::from_secs_f64(args.seconds.min(1.0)));
    let (from, before) = (writers.written(), server.cpu_time()?);
    let rate = writers.rate(Duration::from_secs_f64(args.seconds));
    let busy_ns = server.cpu_time()?.since(before).busy_ns;
    let operations = (writers.written() - from).max(1);
    let from = writers.written();
    let syncs = count_syncs(server.pid(), args.seconds.min(2.0));
    let counted = (writers.written() - from).max(1);
    writers.stop()?;
    Ok(Written {
        cpu_us: busy_ns as f64 / 1000.0 / operations as f64,
        per_second: rate,
        syncs: syncs.map(|syncs| syncs / counted as f64),
    })
}

/// Has Linux's perf count calls of fsync and fdatasync of a process.
fn count_syncs(pid: u32, seconds: f64) -> Result<f64> {
    const EVENTS: &str = "syscalls:sys_enter_fdatasync,syscalls:sys_enter_fsync";
    let output = Command::new("perf")
        .args(["stat", "-x", ",", "-e", EVENTS, "-p", &pid.to_string()])
        .args(["--", "sleep", &seconds.to_string()])
        .output()
        .context("cannot run perf")?;
    // One line for each event: count,unit,event,...
    let text = String::from_utf8_lossy(&output.stderr);
    let counts: Vec<f64> = text
        .lines()
        .filter_map(|line| line.split(',').next()?.parse().ok())
        .collect();
    if counts.is_empty() {
        bail!("perf counted nothing: {}", text.trim());
    }
    Ok(counts.iter().sum())
}
