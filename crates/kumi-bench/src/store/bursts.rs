//! SET and GET from a client that is never the limit.
//!
//! redis-benchmark takes more CPU time for a pipelined request than a fast server does. That server then sleeps between
//! batches, a slow one never does, and the difference is in their CPU time. Here all connections have a batch waiting
//! before the server has answered the first (see [`client`](super::client)), so each server, the floor too, works in
//! bursts and sleeps once per round.

use anyhow::{Context, Result};

use crate::args::Plan;
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::client::{CONNECTIONS, Client};
use crate::store::servers::{Contender, FLOOR, Server, Stage, VALKEY};
use crate::store::workloads::{VALUE_BYTES, preload};
use crate::wire;

const PIPELINES: [usize; 2] = [16, 64];
/// Requests of the run before the measured ones.
const WARM_UP: usize = 50_000;
/// Requests of a measured run for each second that a run of the plan lasts.
const REQUESTS_PER_SECOND: f64 = 500_000.0;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Set,
    Get,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Set => "SET",
            Kind::Get => "GET",
        }
    }

    /// Appends a request for one of `keys` keys.
    fn push(self, keys: usize, random: &mut fastrand::Rng, out: &mut Vec<u8>) {
        let key = format!("key:{:012}", random.usize(..keys));
        match self {
            Kind::Set => wire::push_command(out, &[b"SET", key.as_bytes(), &[b'x'; VALUE_BYTES]]),
            Kind::Get => wire::push_command(out, &[b"GET", key.as_bytes()]),
        }
    }
}

/// Measures both commands with both pipelines on every contender, and on the floor.
pub(crate) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let cases = [Kind::Set, Kind::Get]
        .into_iter()
        .flat_map(|kind| PIPELINES.map(|pipeline| (kind, pipeline)));
    let mut task = progress.task("bursts", contenders.len() + 4 * (plan.runs + 1));
    let mut servers = Vec::new();
    for contender in contenders {
        task.begin(&format!("loading {} keys", plan.keys));
        let server = contender.start(stage, &[])?;
        preload(&server, plan.keys)?;
        servers.push(server);
        task.end();
    }
    servers.push(Contender::floor()?.start(stage, &[])?);
    let requests = (REQUESTS_PER_SECOND * plan.run_seconds) as usize;
    let mut rows = Vec::new();
    for (kind, pipeline) in cases {
        // The floor expects requests of one length on a connection.
        let clients: Result<Vec<Client>> = servers.iter().map(Client::open).collect();
        let mut clients = clients?;
        let mut random = fastrand::Rng::with_seed(1);
        let mut next = |_: usize, out: &mut Vec<u8>| kind.push(plan.keys, &mut random, out);
        task.begin(&format!("{} P={pipeline}: warming up", kind.name()));
        for client in &mut clients {
            client.send(WARM_UP, pipeline, &mut next)?;
        }
        task.end();
        let mut runs: Vec<Vec<f64>> = vec![Vec::new(); servers.len()];
        for round in 0..plan.runs {
            task.begin(&format!("{} P={pipeline}: run {}", kind.name(), round + 1));
            for turn in 0..servers.len() {
                // The order changes each round: a place in it may be an advantage.
                let which = (round + turn) % servers.len();
                let usage =
                    clients[which].measure(&servers[which], requests, pipeline, &mut next)?;
                runs[which].push(usage.cpu_us_per_request);
            }
            task.end();
        }
        let measured = rows_of(kind, pipeline, &servers, runs)?.into_iter();
        rows.extend(measured.map(|row| report.shown(row)));
    }
    let title = format!(
        "Bursts: {CONNECTIONS} connections, {} keys, {VALUE_BYTES}-byte values, median of {} (lowest..highest)",
        plan.keys, plan.runs
    );
    report.section(title, rows);
    Ok(())
}

fn rows_of(
    kind: Kind,
    pipeline: usize,
    servers: &[Server],
    runs: Vec<Vec<f64>>,
) -> Result<[Row; 2]> {
    let name = format!("store.burst.{}.p{pipeline}", kind.name().to_lowercase());
    let row = |figure, title| {
        let label = format!("{} P={pipeline} {title}", kind.name());
        Row::new(format!("{name}.{figure}"), label, "us/op")
    };
    let beside_valkey = if pipeline == 16 { 1.35 } else { 1.5 };
    let goal = Some(Goal::RatioAtMostOf(VALKEY, 1.0 / beside_valkey));
    let mut cpu = row("cpu_us", "server CPU").goal(goal);
    let above_goal = Some(Goal::RatioAtMost(0.28));
    let mut above = row("above_floor_us", "CPU above the floor").goal(above_goal);
    let mut samples = Vec::new();
    for (server, values) in servers.iter().zip(runs) {
        samples.push((server, Sample::new(values).context("no run was made")?));
    }
    let floor = samples.iter().find(|(server, _)| server.name() == FLOOR);
    let floor_us = floor.context("the floor was not measured")?.1.median();
    for (server, sample) in samples {
        if server.name() != FLOOR {
            above.add(server.name(), sample.minus(floor_us));
        }
        cpu.add(server.name(), sample);
    }
    Ok([cpu, above])
}
