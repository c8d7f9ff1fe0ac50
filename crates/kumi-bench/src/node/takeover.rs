//! Tasks of a node that is killed, killed and started again at once, or stopped for a while: how soon they run elsewhere, and
//! whether each one succeeds once.
//!
//! Five nodes, of which the first has the store and the last one runs all tasks when it happens to it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::Signal;

use crate::node::Bench;
use crate::node::nodes::{NODES, Nodes, Places, Plan, STORE, TAKEOVER_LIMIT};
use crate::node::options::NetworkPreset;
use crate::node::peers;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;

/// The node that something happens to.
const VICTIM: usize = NODES - 1;

/// In seconds: how soon all tasks of a killed node run elsewhere, and how soon those of one that was started again at once do.
const WITHIN: [(NetworkPreset, f64); 2] = [(NetworkPreset::Local, 6.0), (NetworkPreset::Lan, 11.0)];
const RESTARTED_WITHIN: f64 = 6.0;

/// How long a node has been a member before it is killed, at least. One that dies with its first heartbeats is noticed later, and its
/// lease ends first.
const MEMBER_FOR: Duration = Duration::from_secs(3);

/// How long a node is stopped: longer than its lease.
const STOPPED: Duration = Duration::from_secs(20);

/// After a stopped node has come back and ended its handlers: how long its reports may take to arrive.
const REPORTS_ARRIVE: Duration = Duration::from_secs(2);

/// Another name for a queue whose tasks come back when the lease ends.
const LEASE: &str = "lease";

/// What one round came to.
#[derive(Clone, Copy, Debug)]
struct Round {
    seconds: f64,
    /// Tasks that did not succeed.
    lost: i64,
}

/// `kill`.
pub(super) fn kill(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    for (preset, within) in WITHIN {
        let ours = killed_rounds(bench, preset, bench.rounds, true)?;
        let mut row = seconds_row("kill", preset);
        row.add("kumi", seconds(&ours)?);
        if bench.has_peers && preset == NetworkPreset::Local {
            let rounds = bench.long_rounds;
            let lease = killed_rounds(bench, preset, rounds, false)?;
            row.add(LEASE, seconds(&lease)?);
            match peers::bullmq(bench, rounds) {
                Ok(times) => row.add("bullmq", sample(times)?),
                Err(error) => report.note(format!("bullmq was not measured: {error:#}")),
            }
        }
        rows.push(report.shown(row));
        rows.extend(verdicts("kill", preset, &ours, within).map(|row| report.shown(row)));
    }
    let title = format!(
        "A node with {} running tasks among {NODES} is killed: until all of them run elsewhere, {} rounds",
        bench.tasks, bench.rounds
    );
    report.section(title, rows);
    Ok(())
}

/// `restart`.
pub(super) fn restart(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let mut rows = Vec::new();
    for (preset, _) in WITHIN {
        let mut nodes = start(bench, preset)?;
        let mut task = bench.progress.task("restart", bench.rounds);
        let mut rounds = Vec::new();
        for number in 0..bench.rounds {
            task.begin(&format!("{}, round {}", preset.name(), number + 1));
            rounds.push(restarted(&mut nodes, bench.tasks)?);
            task.end();
        }
        let mut row = seconds_row("restart", preset);
        row.add("kumi", seconds(&rounds)?);
        rows.push(report.shown(row));
        let verdicts = verdicts("restart", preset, &rounds, RESTARTED_WITHIN);
        rows.extend(verdicts.map(|row| report.shown(row)));
    }
    let title = format!(
        "A node with {} running tasks is killed and started again at once: until all of them run, {} rounds",
        bench.tasks, bench.rounds
    );
    report.section(title, rows);
    Ok(())
}

/// `pause`.
pub(super) fn pause(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let mut nodes = start(bench, NetworkPreset::Local)?;
    let rounds = bench.long_rounds;
    let mut task = bench.progress.task("pause", rounds);
    let (mut seconds, mut stale, mut twice) = (Vec::new(), 0, 0);
    for number in 0..rounds {
        task.begin(&format!("round {}", number + 1));
        let round = paused(&mut nodes, bench.tasks)?;
        seconds.push(round.seconds);
        stale += round.stale;
        twice += round.twice.abs();
        task.end();
    }
    let mut row = seconds_row("pause", NetworkPreset::Local);
    row.add(
        "kumi",
        Sample::new(seconds).unwrap_or(Sample::single(f64::NAN)),
    );
    let rows = vec![
        row,
        none_row("node.pause.stale_accepted", "stale reports accepted", stale),
        none_row(
            "node.pause.reported_twice",
            "tasks that did not succeed exactly once",
            twice,
        ),
    ];
    let title = format!(
        "A node with {} running tasks gets SIGSTOP, and SIGCONT after {} s: until all of them run elsewhere, {rounds} rounds",
        bench.tasks,
        STOPPED.as_secs()
    );
    report.section(title, rows);
    Ok(())
}

fn start<'a>(bench: &Bench<'a>, preset: NetworkPreset) -> Result<Nodes<'a>> {
    let plan = Plan {
        preset,
        nodes: NODES,
        has_client: false,
        places: Places::Loopback,
    };
    Nodes::start(bench.stage, plan)
}

fn killed_rounds(
    bench: &Bench<'_>,
    preset: NetworkPreset,
    rounds: usize,
    releases: bool,
) -> Result<Vec<Round>> {
    let mut nodes = start(bench, preset)?;
    if !releases {
        nodes.ask(STORE, "releases off")?;
    }
    let mut task = bench.progress.task("kill", rounds);
    let mut done = Vec::new();
    for number in 0..rounds {
        let kind = if releases { "" } else { ", plain lease" };
        task.begin(&format!("{}{kind}, round {}", preset.name(), number + 1));
        done.push(killed(&mut nodes, bench.tasks)?);
        task.end();
    }
    Ok(done)
}

fn killed(nodes: &mut Nodes<'_>, tasks: usize) -> Result<Round> {
    let own = nodes.fill(VICTIM, tasks)?;
    let before = nodes.totals(STORE)?;
    let start = nodes.start_of(VICTIM)?;
    nodes.listen(MEMBER_FOR);
    let at = nodes.kill(VICTIM);
    let last = nodes.begun_elsewhere(&own, start, TAKEOVER_LIMIT)?;
    // The others let their tasks end when all nodes run again.
    nodes.start_node(VICTIM)?;
    nodes.finish()?;
    let lost = missing(nodes, before.succeeded + before.running)?;
    nodes.agree(NODES)?;
    Ok(Round {
        seconds: (last - at).as_secs_f64(),
        lost,
    })
}

fn restarted(nodes: &mut Nodes<'_>, tasks: usize) -> Result<Round> {
    let own = nodes.fill(VICTIM, tasks)?;
    let before = nodes.totals(STORE)?;
    let start = nodes.start_of(VICTIM)?;
    nodes.listen(MEMBER_FOR);
    let at = nodes.kill(VICTIM);
    nodes.spawn(VICTIM)?;
    nodes.started(VICTIM)?;
    let last = nodes.begun_elsewhere(&own, start, TAKEOVER_LIMIT)?;
    nodes.finish()?;
    let lost = missing(nodes, before.succeeded + before.running)?;
    nodes.agree(NODES)?;
    Ok(Round {
        seconds: (last - at).as_secs_f64(),
        lost,
    })
}

/// How many tasks are missing of those that should have succeeded by now; below zero if some were counted twice.
pub(super) fn missing(nodes: &mut Nodes<'_>, wanted: u64) -> Result<i64> {
    let succeeded = nodes.until_succeeded(STORE, wanted)?;
    Ok(wanted as i64 - succeeded as i64)
}

struct Paused {
    seconds: f64,
    /// Reports of the stopped node that were accepted after others had its tasks.
    stale: u64,
    /// How many tasks more, or less, have succeeded than there were.
    twice: i64,
}

fn paused(nodes: &mut Nodes<'_>, tasks: usize) -> Result<Paused> {
    let own = nodes.fill(VICTIM, tasks)?;
    let before = nodes.totals(STORE)?;
    let start = nodes.start_of(VICTIM)?;
    nodes.signal(VICTIM, Signal::STOP)?;
    let at = Instant::now();
    let last = nodes.begun_elsewhere(&own, start, TAKEOVER_LIMIT);
    thread::sleep(STOPPED.saturating_sub(at.elapsed()));
    nodes.signal(VICTIM, Signal::CONT)?;
    let last = last?;
    // Its handlers end while others hold their tasks.
    nodes.ask(VICTIM, "finish")?;
    nodes.agree(NODES)?;
    nodes.listen(REPORTS_ARRIVE);
    let stale = nodes.totals(STORE)?.succeeded - before.succeeded;
    nodes.finish()?;
    let wanted = before.succeeded + before.running;
    missing(nodes, wanted)?;
    nodes.listen(REPORTS_ARRIVE);
    let twice = nodes.totals(STORE)?.succeeded as i64 - wanted as i64;
    // It works again, in a new life.
    nodes.fill(VICTIM, 1)?;
    nodes.finish()?;
    missing(nodes, wanted + 1)?;
    Ok(Paused {
        seconds: (last - at).as_secs_f64(),
        stale,
        twice,
    })
}

fn seconds_row(part: &str, preset: NetworkPreset) -> Row {
    let preset = preset.name();
    Row::new(
        format!("node.{part}.{preset}.seconds"),
        format!("{preset}: until all run again"),
        "s",
    )
}

fn seconds(rounds: &[Round]) -> Result<Sample> {
    sample(rounds.iter().map(|round| round.seconds).collect())
}

fn sample(seconds: Vec<f64>) -> Result<Sample> {
    Sample::new(seconds).context("no round was made")
}

/// The slowest round beside the goal, and the tasks that were lost.
fn verdicts(part: &str, preset: NetworkPreset, rounds: &[Round], within: f64) -> [Row; 2] {
    let preset = preset.name();
    let slowest = rounds.iter().map(|round| round.seconds).fold(0.0, f64::max);
    let mut worst = Row::new(
        format!("node.{part}.{preset}.slowest"),
        format!("{preset}: slowest round"),
        "s",
    )
    .goal(Some(Goal::AtMost(within)));
    worst.add("kumi", Sample::single(slowest));
    let lost: u64 = rounds.iter().map(|round| round.lost.unsigned_abs()).sum();
    let lost = none_row(
        &format!("node.{part}.{preset}.lost"),
        &format!("{preset}: tasks lost or counted twice"),
        lost,
    );
    [worst, lost]
}

/// A count that has to be zero.
pub(super) fn none_row(name: &str, label: &str, count: impl TryInto<u32>) -> Row {
    let mut row = Row::new(name, label, "count").goal(Some(Goal::AtMost(0.0)));
    let count = count.try_into().unwrap_or(u32::MAX);
    row.add("kumi", Sample::single(f64::from(count)));
    row
}
