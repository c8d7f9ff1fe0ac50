//! CPU per operation of store and jobs on a node, beside the separate commands.
//!
//! The store of `kumi up` beside kumi-server with the keyspace events that a node's store sends, driven by redis-benchmark and by
//! a worker of kumi-jobs; and a node's worker beside a worker alone, both with handlers that do nothing and a runtime of as many
//! threads as there are cores. Runs take turns.

use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::jobs::parties::Party;
use crate::jobs::trial::Trial;
use crate::node::Bench;
use crate::node::nodes::{Nodes, Places, Plan, STORE};
use crate::node::options::NetworkPreset;
use crate::node::up::Up;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::driver::{self, Driver, Load};
use crate::store::servers::{self, Contender, Server};

/// The keyspace events of a node's store.
const EVENTS: (&str, &str) = ("notify-keyspace-events", "K$xg");

/// The same with every write synced, as the store of the nodes that work: how long a turn takes decides how many tasks it has.
const SYNCED: [(&str, &str); 3] = [EVENTS, ("appendonly", "yes"), ("appendfsync", "always")];

/// What a node may cost more than the separate command.
const WITHIN: f64 = 1.05;

/// The column of the separate commands.
const SEPARATE: &str = "separate";

/// Commands that drive the store.
const COMMANDS: [(&str, &[&str]); 2] = [
    ("set", &["SET", "key:__rand_int__", "xxxxxxxxxxxxxxxx"]),
    ("get", &["GET", "key:__rand_int__"]),
];
const PIPELINE: usize = 16;
const CONNECTIONS: usize = 50;
const KEYS: usize = 100_000;

/// Requests and tasks of a run.
const REQUESTS: usize = 1_000_000;
const TASKS: usize = 20_000;

/// Tasks that a worker runs at once: as many as a node's.
const CONCURRENCY: usize = 100;

/// Interleaved runs, at most.
const RUNS: usize = 7;

/// The node that works.
const WORKER: usize = 1;

/// CPU times of an operation in microseconds, one per run.
#[derive(Default)]
struct Times {
    node: Vec<f64>,
    separate: Vec<f64>,
}

impl Times {
    fn into_row(self, name: &str, label: &str) -> Result<Row> {
        let row = Row::new(format!("node.cost.{name}"), label, "us");
        let mut row = row.goal(Some(Goal::RatioAtMostOf(SEPARATE, WITHIN)));
        row.add("kumi", Sample::new(self.node).context("there are runs")?);
        row.add(
            SEPARATE,
            Sample::new(self.separate).context("there are runs")?,
        );
        Ok(row)
    }
}

/// `cost`.
pub(super) fn cost(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let separate = servers::kumi(bench.args.kumi_server.as_deref(), &bench.progress)?;
    let runs = bench.rounds.min(RUNS);
    let mut rows = Vec::new();
    for row in store(bench, &separate, runs)? {
        rows.push(report.shown(row));
    }
    rows.push(report.shown(queue(bench, &separate, runs)?));
    rows.push(report.shown(worker(bench, &separate, runs)?));
    let title =
        format!("CPU per operation on a node beside the separate commands, median of {runs}");
    report.section(title, rows);
    Ok(())
}

/// The store, driven by redis-benchmark.
fn store(bench: &Bench<'_>, separate: &Contender, runs: usize) -> Result<Vec<Row>> {
    let program = driver::find_benchmark(&bench.args.redis_benchmark)?;
    let driver = Driver::new(bench.stage, &program)?;
    let node = Up::start(bench.stage, bench.kumi()?)?;
    let server = separate.start(bench.stage, &[EVENTS])?;
    let requests = if bench.args.quick {
        REQUESTS / 10
    } else {
        REQUESTS
    };
    let mut rows = Vec::new();
    let mut task = bench.progress.task("store", runs * COMMANDS.len());
    for (name, command) in COMMANDS {
        let load = Load {
            command,
            pipeline: PIPELINE,
            connections: CONNECTIONS,
            keys: KEYS,
            requests,
            seconds: 3.0,
        };
        let run =
            |server: &Server| -> Result<f64> { Ok(driver.run(load, server)?.cpu_us_per_operation) };
        let mut times = Times::default();
        for number in 0..runs {
            task.begin(&format!("{name}, run {}", number + 1));
            times.node.push(run(&node.server)?);
            times.separate.push(run(&server)?);
            task.end();
        }
        rows.push(times.into_row(
            &format!("{name}_us"),
            &format!("store: {name}, P={PIPELINE}"),
        )?);
    }
    Ok(rows)
}

/// The store, under a worker that drains a queue.
fn queue(bench: &Bench<'_>, separate: &Contender, runs: usize) -> Result<Row> {
    let tasks = tasks(bench);
    let party = Party::ours(tasks)?;
    let run = |server: Server| -> Result<f64> {
        let trial = Trial::on(bench.stage, server);
        trial.fill(&party, tasks)?;
        let outcome = trial.measure(&party, "drain", tasks, CONCURRENCY)?;
        Ok(outcome.server_us(tasks))
    };
    let mut times = Times::default();
    let mut task = bench.progress.task("queue", runs);
    for number in 0..runs {
        task.begin(&format!("run {}", number + 1));
        let node = Up::start(bench.stage, bench.kumi()?)?;
        times.node.push(run(node.server)?);
        times
            .separate
            .push(run(separate.start(bench.stage, &[EVENTS])?)?);
        task.end();
    }
    times.into_row("task_store_us", "store: a task")
}

/// The worker of a node beside a worker alone.
fn worker(bench: &Bench<'_>, separate: &Contender, runs: usize) -> Result<Row> {
    let tasks = tasks(bench);
    let plan = Plan {
        preset: NetworkPreset::Local,
        nodes: 2,
        has_client: false,
        places: Places::Loopback,
    };
    let mut nodes = Nodes::start(bench.stage, plan)?;
    nodes.ask(STORE, "drain")?;
    let party = Party::ours_on_threads(tasks)?;
    let mut times = Times::default();
    let mut task = bench.progress.task("worker", runs);
    for number in 0..runs {
        task.begin(&format!("run {}", number + 1));
        times.node.push(drained(&mut nodes, tasks)?);
        let trial = Trial::on(bench.stage, separate.start(bench.stage, &SYNCED)?);
        trial.fill(&party, tasks)?;
        let outcome = trial.measure(&party, "drain", tasks, CONCURRENCY)?;
        times.separate.push(outcome.client_us(tasks));
        task.end();
    }
    times.into_row("task_worker_us", "worker: a task")
}

/// CPU time of a node's worker per task, in microseconds.
fn drained(nodes: &mut Nodes<'_>, tasks: usize) -> Result<f64> {
    nodes.ask(WORKER, "drain")?;
    let wanted = nodes.totals(STORE)?.succeeded + tasks as u64;
    nodes.ask(STORE, &format!("mail {tasks}"))?;
    let (before, begun) = (nodes.cpu_time(WORKER)?, Instant::now());
    nodes.ask(WORKER, "undrain")?;
    let succeeded = nodes.until_succeeded(STORE, wanted)?;
    ensure!(
        succeeded == wanted,
        "{succeeded} tasks and not {wanted} after {} s",
        begun.elapsed().as_secs()
    );
    let used = nodes.cpu_time(WORKER)?.since(before);
    Ok(used.busy_ns as f64 / 1000.0 / tasks as f64)
}

fn tasks(bench: &Bench<'_>) -> usize {
    if bench.args.quick { TASKS / 10 } else { TASKS }
}
