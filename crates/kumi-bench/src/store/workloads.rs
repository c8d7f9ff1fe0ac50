//! Throughput and server CPU per operation, driven by redis-benchmark.
//!
//! All servers run side by side with the same keys and take turns, run by run, so that a slow minute of the machine
//! hits each of them. Throughput is redis-benchmark's own figure; with one client thread it is often the client's limit
//! and not the server's, which is why CPU time of the server process per operation is the figure that counts. Most of
//! it is spent in system calls, so the part above the floor (see [`echo`](super::echo)) is given too: what a server
//! adds to them.

use std::path::Path;

use anyhow::{Context, Result};

use crate::args::Plan;
use crate::progress::{Progress, Task};
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::driver::{Driver, Load, Run};
use crate::store::servers::{Contender, FLOOR, Server, Stage, VALKEY};
use crate::wire;

/// Bytes of a value. [`VALUE`] is one.
pub(crate) const VALUE_BYTES: usize = 16;
const VALUE: &str = "xxxxxxxxxxxxxxxx";
const KEY: &str = "key:__rand_int__";
/// The pipeline of the workloads that are measured with one only.
const PIPELINE: usize = 16;
/// Above this share of time spent waiting for a core, a run was disturbed.
const DISTURBED_PERCENT: f64 = 5.0;

/// One command that is repeated. In the order in which they are measured: a later one may leave the data changed.
pub(crate) const COMMANDS: [Command; 6] = [
    Command {
        name: "set",
        label: "SET",
        words: &["SET", KEY, VALUE],
        goals: Goals::Pipelines,
    },
    Command {
        name: "get",
        label: "GET",
        words: &["GET", KEY],
        goals: Goals::Pipelines,
    },
    Command {
        name: "mget",
        label: "MGET of 10",
        words: &["MGET", KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY],
        goals: Goals::OnePipeline,
    },
    Command {
        name: "mset",
        label: "MSET of 10",
        words: &[
            "MSET", KEY, VALUE, KEY, VALUE, KEY, VALUE, KEY, VALUE, KEY, VALUE, KEY, VALUE, KEY,
            VALUE, KEY, VALUE, KEY, VALUE, KEY, VALUE,
        ],
        goals: Goals::OnePipeline,
    },
    Command {
        name: "incr",
        label: "INCR",
        words: &["INCR", "counter:__rand_int__"],
        goals: Goals::OnePipeline,
    },
    // A TTL no run lasts as long as.
    Command {
        name: "set_ex",
        label: "SET with EX",
        words: &["SET", KEY, VALUE, "EX", "100000"],
        goals: Goals::OnePipeline,
    },
];

/// A command of the workloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Command {
    /// In figures.
    pub(crate) name: &'static str,
    label: &'static str,
    pub(crate) words: &'static [&'static str],
    goals: Goals,
}

/// With which pipelines a command is measured, and what is wanted of it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Goals {
    /// With every pipeline of the plan. CPU beside redis-server and Valkey, in all and above the floor.
    Pipelines,
    /// With [`PIPELINE`] only. CPU beside redis-server.
    OnePipeline,
}

impl Command {
    /// The keys it increments have to be there, or the first run would fill the keyspace.
    pub(crate) fn needs_counters(&self) -> bool {
        self.name == "incr"
    }

    fn pipelines(&self, plan: &Plan) -> Vec<usize> {
        match self.goals {
            Goals::Pipelines => plan.pipelines.clone(),
            Goals::OnePipeline => vec![PIPELINE],
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Workload {
    command: Command,
    pipeline: usize,
}

impl Workload {
    fn label(self) -> String {
        format!("{} P={}", self.command.label, self.pipeline)
    }

    /// Requests of the run that finds out how fast a server is: a tenth of a second or two.
    fn trial_requests(self) -> usize {
        let requests = match self.pipeline {
            0..=3 => 20_000,
            4..=31 => 80_000,
            _ => 150_000,
        };
        match self.command.words.len() {
            0..=9 => requests,
            _ => requests / 5,
        }
    }

    fn cpu_goal(self) -> Option<Goal> {
        match (self.command.goals, self.pipeline) {
            (Goals::Pipelines, 1) => Some(Goal::RatioAtMost(1.0 / 1.05)),
            (Goals::Pipelines, 16) => Some(Goal::RatioAtMostOf(VALKEY, 1.0 / 1.35)),
            (Goals::Pipelines, 64) => Some(Goal::RatioAtMostOf(VALKEY, 1.0 / 1.5)),
            (Goals::OnePipeline, _) => Some(Goal::RatioAtMost(1.0 / 1.8)),
            _ => None,
        }
    }

    fn above_floor_goal(self) -> Option<Goal> {
        match (self.command.goals, self.pipeline) {
            (Goals::Pipelines, 16 | 64) => Some(Goal::RatioAtMost(0.28)),
            _ => None,
        }
    }

    fn rows(self, servers: &[Server], runs: &[Vec<Run>]) -> Result<[Row; 3]> {
        let name = format!("store.{}.p{}", self.command.name, self.pipeline);
        let label = self.label();
        let row = |figure, title, unit| {
            Row::new(format!("{name}.{figure}"), format!("{label} {title}"), unit)
        };
        let mut throughput = row("throughput", "throughput", "op/s");
        let mut cpu = row("cpu_us", "server CPU", "us/op").goal(self.cpu_goal());
        let mut above = row("above_floor_us", "CPU above the floor", "us/op");
        above = above.goal(self.above_floor_goal());
        let cpu_of = |runs: &[Run]| {
            let values = runs.iter().map(|run| run.cpu_us_per_operation).collect();
            Sample::new(values).context("no run was made")
        };
        let floor = servers
            .iter()
            .zip(runs)
            .find(|(server, _)| server.name() == FLOOR);
        let floor_us = floor.map(|(_, runs)| cpu_of(runs)).transpose()?;
        for (server, runs) in servers.iter().zip(runs) {
            let rates = runs.iter().map(|run| run.operations_per_second).collect();
            throughput.add(
                server.name(),
                Sample::new(rates).context("no run was made")?,
            );
            let sample = cpu_of(runs)?;
            if let Some(floor_us) = floor_us.as_ref().filter(|_| server.name() != FLOOR) {
                above.add(server.name(), sample.minus(floor_us.median()));
            }
            cpu.add(server.name(), sample);
        }
        Ok([throughput, cpu, above])
    }
}

/// Measures every workload on every contender, and on the floor.
pub(crate) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    benchmark: &Path,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let workloads: Vec<Workload> = COMMANDS
        .into_iter()
        .flat_map(|command| {
            let pipelines = command.pipelines(plan).into_iter();
            pipelines.map(move |pipeline| Workload { command, pipeline })
        })
        .collect();
    let per_workload = (contenders.len() + 1) * (plan.runs + 1);
    let mut task = progress.task(
        "workloads",
        2 * contenders.len() + workloads.len() * per_workload,
    );
    let mut servers = Vec::new();
    for contender in contenders {
        let server = contender.start(stage, &[])?;
        load_keys(&server, plan.keys, &mut task)?;
        servers.push(server);
    }
    servers.push(Contender::floor()?.start(stage, &[])?);
    let turns = Turns {
        driver: Driver::new(stage, benchmark)?,
        plan,
    };
    let mut rows = Vec::new();
    let mut waited: Vec<f64> = vec![0.0; servers.len()];
    for workload in workloads {
        if workload.command.needs_counters() {
            for server in servers.iter().filter(|server| server.name() != FLOOR) {
                load_counters(server, plan.keys, &mut task)?;
            }
        }
        let runs = turns.take(workload, &servers, &mut task)?;
        rows.extend(workload.rows(&servers, &runs)?.map(|row| report.shown(row)));
        for (most, runs) in waited.iter_mut().zip(&runs) {
            *most = runs
                .iter()
                .map(|run| run.waited_percent)
                .fold(*most, f64::max);
        }
    }
    for (server, most) in servers.iter().zip(waited) {
        if most > DISTURBED_PERCENT {
            let name = server.name();
            report.note(format!(
                "disturbed: {name} waited up to {most:.0}% of a run for its core"
            ));
        }
    }
    let title = format!(
        "Workloads: {} connections, {} keys, {VALUE_BYTES}-byte values, median of {} (lowest..highest)",
        plan.connections, plan.keys, plan.runs
    );
    report.section(title, rows);
    Ok(())
}

fn load_keys(server: &Server, keys: usize, task: &mut Task) -> Result<()> {
    task.begin(&format!("loading {keys} keys into {}", server.name()));
    preload(server, keys)?;
    task.end();
    Ok(())
}

fn load_counters(server: &Server, keys: usize, task: &mut Task) -> Result<()> {
    task.begin(&format!("loading {keys} counters into {}", server.name()));
    preload_counters(server, keys)?;
    task.end();
    Ok(())
}

/// Sets every key redis-benchmark may pick, so that no run measures a keyspace that still fills up.
pub(crate) fn preload(server: &Server, keys: usize) -> Result<()> {
    let loaded = wire::load(server.address(), keys, |index, out| {
        let key = format!("key:{index:012}");
        wire::push_command(out, &[b"SET", key.as_bytes(), VALUE.as_bytes()]);
    });
    loaded
        .and_then(|()| wire::check_count(server.address(), keys))
        .with_context(|| format!("cannot load keys into {}", server.name()))
}

/// The same for the keys of INCR.
pub(crate) fn preload_counters(server: &Server, keys: usize) -> Result<()> {
    wire::load(server.address(), keys, |index, out| {
        let key = format!("counter:{index:012}");
        wire::push_command(out, &[b"SET", key.as_bytes(), b"10"]);
    })
    .with_context(|| format!("cannot load counters into {}", server.name()))
}

struct Turns<'a> {
    driver: Driver<'a>,
    plan: &'a Plan,
}

impl Turns<'_> {
    /// The runs of one workload, by server.
    fn take(
        &self,
        workload: Workload,
        servers: &[Server],
        task: &mut Task,
    ) -> Result<Vec<Vec<Run>>> {
        let label = workload.label();
        let mut load = Load {
            command: workload.command.words,
            pipeline: workload.pipeline,
            connections: self.plan.connections,
            keys: self.plan.keys,
            requests: workload.trial_requests(),
            seconds: self.plan.run_seconds,
        };
        let mut requests = 0;
        for server in servers {
            task.begin(&format!("{label} {}: trial", server.name()));
            let trial = self.driver.run(load, server)?;
            // The floor is fast; at its rate the runs of the others would take much longer than planned.
            if server.name() != FLOOR {
                let lasting = requests_lasting(trial.operations_per_second, self.plan.run_seconds);
                requests = requests.max(lasting);
            }
            task.end();
        }
        load.requests = requests;
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); servers.len()];
        for round in 0..self.plan.runs {
            for turn in 0..servers.len() {
                // The order changes each round: a place in it may be an advantage.
                let which = (round + turn) % servers.len();
                let server = &servers[which];
                task.begin(&format!(
                    "{label} {}: run {} of {}",
                    server.name(),
                    round + 1,
                    self.plan.runs
                ));
                runs[which].push(self.driver.run(load, server)?);
                task.end();
            }
        }
        Ok(runs)
    }
}

/// Requests that keep a server of this speed busy for `seconds`, with a little to spare, in whole thousands.
pub(crate) fn requests_lasting(operations_per_second: f64, seconds: f64) -> usize {
    let thousands = (operations_per_second * seconds * 1.1 / 1000.0).ceil();
    (thousands as usize).max(1) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_has_its_length() {
        assert_eq!(VALUE.len(), VALUE_BYTES);
        assert_eq!(VALUE.as_bytes(), [b'x'; VALUE_BYTES]);
    }

    #[test]
    fn requests_are_whole_thousands_that_last_long_enough() {
        assert_eq!(requests_lasting(100_000.0, 3.0), 330_000);
        assert_eq!(requests_lasting(100_001.0, 3.0), 331_000);
        assert_eq!(requests_lasting(1.0, 0.1), 1000);
    }

    #[test]
    fn every_command_that_has_a_goal_is_judged_at_pipeline_16() {
        for command in COMMANDS {
            let workload = Workload {
                command,
                pipeline: PIPELINE,
            };
            assert!(workload.cpu_goal().is_some(), "{}", command.name);
        }
    }
}
