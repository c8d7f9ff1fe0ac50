//! `kumi-bench scripts`: scripts, functions and ACL checks on kumi-server beside redis-server and valkey-server, the Lua
//! interpreters beside each other, and the queues of BullMQ and kumi-jobs on both servers.
//!
//! Every figure is CPU time of the server process, except the jobs per second of the queues.

mod acl;
mod evaluate;
mod interpreter;
mod programs;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::args::{ScriptsArgs, ScriptsPart};
use crate::jobs::on_servers;
use crate::parts::measure_parts;
use crate::progress::{Progress, Task};
use crate::report::REFERENCE;
use crate::stats::Sample;
use crate::store::driver::{self, Driver, Load, Run};
use crate::store::servers::{self, Server, Stage};
use crate::store::workloads::requests_lasting;
use crate::store::{describe, raise_open_files};
use crate::wire::{self, Connection};

/// Keys in each server.
const KEYS: usize = 100_000;
/// A key of redis-benchmark, one of [`KEYS`].
const KEY: &str = "key:__rand_int__";
/// Connections redis-benchmark opens.
const CONNECTIONS: usize = 50;

/// The numbers of one run of the bench.
struct Plan {
    /// Interleaved runs per figure, of which the median counts.
    runs: usize,
    /// How long a run of redis-benchmark should last.
    seconds: f64,
    pipelines: Vec<usize>,
    /// Jobs of one run of BullMQ, and tasks of one of kumi-jobs.
    jobs: usize,
    tasks: usize,
}

impl Plan {
    fn of(args: &ScriptsArgs) -> Plan {
        let (runs, seconds, jobs, tasks) = match args.quick {
            true => (3, 0.2, 2_000, 10_000),
            false => (5, 0.6, 8_000, 40_000),
        };
        Plan {
            runs: args.runs.map_or(runs, |runs| runs.get()),
            seconds: args.seconds.map_or(seconds, |seconds| seconds.max(0.05)),
            pipelines: args.pipelines.clone(),
            jobs: args.jobs.map_or(jobs, |jobs| jobs.get()),
            tasks: args.jobs.map_or(tasks, |jobs| jobs.get()),
        }
    }
}

/// Measures what was asked for and prints the report. A part that fails leaves the others their figures.
pub(crate) fn run(args: &ScriptsArgs) -> Result<()> {
    let plan = Plan::of(args);
    let progress = Progress::new();
    let benchmark = driver::find_benchmark(&args.redis_benchmark)?;
    let mut report = args.servers.report(REFERENCE);
    let contenders = servers::contenders(&args.servers, &progress, &mut report)?;
    raise_open_files();
    let stage = Stage::new(args.no_pin)?;
    describe(&stage, &contenders, &mut report);
    let driver = Driver::new(&stage, &benchmark)?;
    let wanted = ScriptsPart::value_variants().iter().copied();
    let wanted = wanted.filter(|&part| args.wants(part));
    measure_parts(wanted, &progress, report, |part, report| match part {
        ScriptsPart::Scripts => {
            evaluate::measure(&stage, &plan, &contenders, &driver, &progress, report)
        }
        ScriptsPart::Acl => acl::measure(&stage, &plan, &contenders, &progress, report),
        ScriptsPart::Queues => on_servers::measure(
            &stage,
            &contenders,
            (!args.no_peers).then_some(&*args.node),
            on_servers::Size {
                runs: plan.runs,
                jobs: plan.jobs,
                tasks: plan.tasks,
            },
            &progress,
            report,
        ),
        ScriptsPart::Interpreter => interpreter::measure(
            &stage,
            &plan,
            &contenders,
            !args.no_peers,
            &progress,
            report,
        ),
    })
}

/// A trial that finds how many requests a run takes, then the runs of all servers in turns. `label` is shown meanwhile.
fn take_turns(
    driver: &Driver<'_>,
    plan: &Plan,
    mut load: Load<'_>,
    servers: &[Server],
    label: &str,
    task: &mut Task,
) -> Result<Vec<Vec<Run>>> {
    let mut requests = 0;
    for server in servers {
        task.begin(&format!("{label} {}: trial", server.name()));
        let trial = driver.run(load, server)?;
        requests = requests.max(requests_lasting(trial.operations_per_second, plan.seconds));
        task.end();
    }
    load.requests = requests;
    let mut runs = vec![Vec::new(); servers.len()];
    for round in 0..plan.runs {
        for turn in 0..servers.len() {
            let which = (round + turn) % servers.len();
            let server = &servers[which];
            task.begin(&format!("{label} {}: run {}", server.name(), round + 1));
            runs[which].push(driver.run(load, server)?);
            task.end();
        }
    }
    Ok(runs)
}

/// What redis-benchmark sends in the trial.
fn load<'a>(plan: &Plan, command: &'a [&'a str], pipeline: usize, requests: usize) -> Load<'a> {
    Load {
        command,
        pipeline,
        connections: CONNECTIONS,
        keys: KEYS,
        requests,
        seconds: plan.seconds,
    }
}

/// The server CPU per operation of some runs.
fn cpu(runs: &[Run]) -> Result<Sample> {
    let values = runs.iter().map(|run| run.cpu_us_per_operation).collect();
    Sample::new(values).context("no run was made")
}

fn title(what: &str, plan: &Plan) -> String {
    format!(
        "{what}: {CONNECTIONS} connections, {KEYS} keys, median of {} (lowest..highest)",
        plan.runs
    )
}

/// Sends a command whose reply is a bulk string, and returns its bytes.
fn bulk_reply(connection: &mut Connection, words: &[&[u8]]) -> Result<String> {
    let mut bytes = Vec::new();
    wire::push_command(&mut bytes, words);
    connection.send(&bytes)?;
    let header = connection.reply()?;
    ensure!(
        header.starts_with(b"$"),
        "the reply is {}",
        header.escape_ascii()
    );
    let body = connection.reply()?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}
