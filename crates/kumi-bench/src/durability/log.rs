//! SET with an append-only file.

use std::time::Duration;

use anyhow::Result;

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
        match policy {
            "everysec" => cpu = cpu.goal(Some(Goal::RatioAtMost(1.0 / 1.8))),
            _ => rate = rate.goal(Some(Goal::RatioAtLeast(1.0))),
        }
        for contender in &bench.contenders {
            match set(bench, contender, policy, pipeline) {
                Ok((cpu_us, per_second)) => {
                    cpu.add(contender.name(), Sample::single(cpu_us));
                    rate.add(contender.name(), Sample::single(per_second));
                }
                Err(error) => {
                    let name = contender.name();
                    report.note(format!("{name} was not measured with {policy}: {error:#}"));
                }
            }
        }
        rows.extend([cpu, rate]);
    }
    let title = format!(
        "SET with an append-only file, {} connections",
        bench.args.connections
    );
    report.section(title, rows);
    Ok(())
}

/// Microseconds of the server's CPU per SET, and SETs per second.
fn set(
    bench: &Bench<'_>,
    contender: &Contender,
    policy: &str,
    pipeline: usize,
) -> Result<(f64, f64)> {
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
    writers.stop()?;
    Ok((busy_ns as f64 / 1000.0 / operations as f64, rate))
}
