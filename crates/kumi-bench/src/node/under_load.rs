//! Nodes under load: the store's node is killed and started again, and all nodes are restarted one after the other.
//!
//! The load comes from one node that is left alone: tasks whose enqueue is repeated until it is acknowledged, and calls with a
//! deadline of 10 s.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::node::Bench;
use crate::node::nodes::{LIMIT, NODES, Nodes, Places, Plan, STORE, numbers};
use crate::node::options::NetworkPreset;
use crate::node::takeover::none_row;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;

/// Tasks and calls a second.
const TASKS: u64 = 50;
const CALLS: u64 = 50;

/// The node that makes the load.
const CLIENT: usize = NODES;

/// How long the load goes on before, between and after what happens.
const CALM: Duration = Duration::from_secs(3);

/// How long all nodes are left alone before their memory and descriptors are read.
const SETTLE: Duration = Duration::from_secs(5);

/// What memory and descriptors may grow by over a rolling restart.
const GROWTH: f64 = 1.1;

/// The column of what was read before the restarts.
const AT_FIRST: &str = "first";

const MEBIBYTE: f64 = (1 << 20) as f64;

fn start<'a>(bench: &Bench<'a>) -> Result<Nodes<'a>> {
    let plan = Plan {
        preset: NetworkPreset::Local,
        nodes: NODES,
        has_client: true,
        places: Places::Loopback,
    };
    Nodes::start(bench.stage, plan)
}

/// What a load came to.
struct Load {
    answered: u64,
    failed: u64,
    slowest_ms: u64,
    /// Tasks whose enqueue was acknowledged and that did not succeed, or succeeded twice.
    lost: u64,
}

/// Ends the load, and waits until all of its tasks have succeeded.
fn unload(nodes: &mut Nodes<'_>, succeeded_before: u64) -> Result<Load> {
    let reply = nodes.ask(CLIENT, "unload")?;
    let [enqueued, answered, failed, slowest_ms] = numbers(&reply)?;
    let wanted = succeeded_before + enqueued;
    nodes.until_succeeded(CLIENT, wanted)?;
    // A second report of a task would be counted now.
    nodes.listen(CALM);
    let succeeded = nodes.totals(CLIENT)?.succeeded;
    Ok(Load {
        answered,
        failed,
        slowest_ms,
        lost: wanted.abs_diff(succeeded),
    })
}

/// `store`: killed and started again, with `appendfsync always`.
pub(super) fn store(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let mut nodes = start(bench)?;
    let rounds = bench.long_rounds;
    let mut task = bench.progress.task("store", rounds);
    let (mut away, mut all_on, mut lost) = (Vec::new(), Vec::new(), 0);
    for number in 0..rounds {
        task.begin(&format!("round {}", number + 1));
        let before = nodes.totals(CLIENT)?.succeeded;
        nodes.ask(CLIENT, &format!("load {TASKS} 0"))?;
        nodes.listen(CALM);
        let at = nodes.kill(STORE);
        nodes.spawn(STORE)?;
        nodes.started(STORE)?;
        // Tasks that were claimed before the kill may have begun after it, but not after the store's node was ready.
        let ready = Instant::now();
        away.push((ready - at).as_secs_f64());
        nodes.begun.clear();
        let mut last = ready;
        nodes.wait(LIMIT, "a task on every node", |nodes| {
            let working: BTreeSet<usize> = nodes.begun.iter().map(|begun| begun.node).collect();
            last = nodes.begun.last().map_or(ready, |begun| begun.at);
            working.len() == NODES
        })?;
        all_on.push((last - at).as_secs_f64());
        nodes.listen(CALM);
        lost += unload(&mut nodes, before)?.lost;
        nodes.agree(NODES + 1)?;
        task.end();
    }
    let row = |name: &str, label: &str, values: Vec<f64>| {
        let mut row = Row::new(format!("node.store.{name}"), label, "s");
        row.add(
            "kumi",
            Sample::new(values).unwrap_or(Sample::single(f64::NAN)),
        );
        row
    };
    let rows = vec![
        row("ready", "until the store's node is ready again", away),
        row("all_on", "until every node has begun a task again", all_on),
        none_row(
            "node.store.lost",
            "acknowledged tasks lost or run to success twice",
            lost,
        ),
    ];
    let title = format!(
        "The store's node is killed and started again with appendfsync always, {TASKS} tasks a second, {rounds} rounds"
    );
    report.section(title, rows);
    Ok(())
}

/// `rolling`: all nodes are restarted one after the other, the store's too.
pub(super) fn rolling(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let mut nodes = start(bench)?;
    let turns = bench.long_rounds;
    let mut task = bench.progress.task("rolling", turns * NODES);
    let before = nodes.totals(CLIENT)?.succeeded;
    nodes.ask(CLIENT, &format!("load {TASKS} {CALLS}"))?;
    nodes.listen(SETTLE);
    let first = Footprint::of(&nodes)?;
    let mut seconds = Vec::new();
    for turn in 0..turns {
        for node in nodes.workers().rev() {
            task.begin(&format!("turn {}, node {node}", turn + 1));
            let at = Instant::now();
            nodes.stop(node)?;
            nodes.start_node(node)?;
            seconds.push(at.elapsed().as_secs_f64());
            nodes.agree(NODES + 1)?;
            nodes.listen(CALM);
            task.end();
        }
    }
    nodes.listen(SETTLE);
    let last = Footprint::of(&nodes)?;
    let load = unload(&mut nodes, before)?;
    let mut rows = vec![
        none_row(
            "node.rolling.calls_failed",
            "calls that failed",
            load.failed,
        ),
        none_row(
            "node.rolling.tasks_lost",
            "tasks lost or run to success twice",
            load.lost,
        ),
    ];
    let mut figure = |name: &str, label: &str, unit, values: Vec<f64>| {
        let mut row = Row::new(format!("node.rolling.{name}"), label, unit);
        row.add(
            "kumi",
            Sample::new(values).unwrap_or(Sample::single(f64::NAN)),
        );
        rows.push(row);
    };
    figure(
        "calls",
        "calls answered",
        "calls",
        vec![load.answered as f64],
    );
    figure(
        "slowest_call",
        "slowest call",
        "s",
        vec![load.slowest_ms as f64 / 1000.0],
    );
    figure("seconds", "a node's stop and start", "s", seconds);
    for (name, label, unit, now, then) in [
        (
            "memory",
            "memory of the node left alone",
            "MiB",
            last.client_bytes / MEBIBYTE,
            first.client_bytes / MEBIBYTE,
        ),
        (
            "memory_all",
            "memory of all nodes",
            "MiB",
            last.bytes / MEBIBYTE,
            first.bytes / MEBIBYTE,
        ),
        (
            "descriptors",
            "descriptors of the node left alone",
            "open",
            last.client_descriptors,
            first.client_descriptors,
        ),
        (
            "descriptors_all",
            "descriptors of all nodes",
            "open",
            last.descriptors,
            first.descriptors,
        ),
    ] {
        let row = Row::new(format!("node.rolling.{name}"), label, unit);
        let mut row = row.goal(Some(Goal::RatioAtMostOf(AT_FIRST, GROWTH)));
        row.add("kumi", Sample::single(now));
        row.add(AT_FIRST, Sample::single(then));
        rows.push(row);
    }
    let title = format!(
        "Rolling restart of {NODES} nodes, {turns} times, with {TASKS} tasks and {CALLS} calls a second; memory and descriptors beside \
         those before the restarts"
    );
    report.section(title, rows);
    Ok(())
}

/// Memory and descriptors of nodes.
struct Footprint {
    bytes: f64,
    descriptors: f64,
    client_bytes: f64,
    client_descriptors: f64,
}

impl Footprint {
    fn of(nodes: &Nodes<'_>) -> Result<Footprint> {
        let (mut bytes, mut descriptors) = (0, 0);
        for node in 0..nodes.len() {
            bytes += nodes.resident_bytes(node)?;
            descriptors += nodes.descriptors(node)?;
        }
        Ok(Footprint {
            bytes: bytes as f64,
            descriptors: descriptors as f64,
            client_bytes: nodes.resident_bytes(CLIENT)? as f64,
            client_descriptors: nodes.descriptors(CLIENT)? as f64,
        })
    }
}
