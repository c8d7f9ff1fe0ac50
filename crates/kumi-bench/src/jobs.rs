//! `kumi-bench jobs`: kumi-jobs on redis-server, beside BullMQ on node, `bullmq-official`, `apalis-redis` and `oxana`,
//! and its queue in memory beside a bare channel.
//!
//! Every run has a fresh redis-server on a core of its own, and a client process on the others. Peers that keep the
//! status of a task that succeeded keep it for all tasks, and so does kumi beside them; `oxana` deletes it, and beside it
//! kumi keeps none. Handlers do nothing; a task is 200 bytes of JSON.

mod bare;
pub(crate) mod client;
mod memory;
mod monitor;
pub(crate) mod on_servers;
pub(crate) mod ours;
pub(crate) mod parties;
mod scripts;
pub(crate) mod trial;

use std::time::Duration;

use anyhow::{Context, Result};
use kumi_jobs::{ENQUEUE_LIMIT, TURN_LIMIT};

use crate::args::{JobsArgs, JobsMemoryArgs, JobsPart};
use crate::jobs::monitor::Monitor;
use crate::jobs::parties::{BULLMQ, OURS, Party};
use crate::jobs::trial::{Disk, Outcome, Trial};
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::describe;
use crate::store::servers::{self, Contender, Kind, Stage};
use crate::workspace;

const CONCURRENCY: [usize; 2] = [10, 100];

/// Tasks of a run that counts commands, in which the server is slower.
const COUNTED_TASKS: usize = 5_000;

/// Tasks of a run that times scripts.
const SCRIPT_TASKS: usize = 20_000;

/// How long an idle worker is watched: a multiple of the longest wait of all.
const IDLE: Duration = Duration::from_secs(30);

/// Tasks whose start on an idle queue is timed.
const WAKES: usize = 200;

/// How tasks are enqueued: the operation, its label, and the share of the tasks that it takes.
const ENQUEUES: [(&str, &str, usize); 3] = [
    ("enqueue-one", "one at a time", 10),
    ("enqueue-many", "64 at a time", 2),
    ("enqueue-bulk", "in bulk", 1),
];

/// The runs of each party that could be measured.
type Outcomes = Vec<(&'static str, Vec<Outcome>)>;

/// What all parts need.
struct Bench {
    stage: Stage,
    redis: Contender,
    /// Kumi first, keeping all, then the peers.
    parties: Vec<Party>,
    /// Kumi, keeping none.
    forgetful: Party,
    tasks: usize,
    runs: usize,
    progress: Progress,
}

/// Measures and prints the report.
pub(crate) fn run(args: &JobsArgs) -> Result<()> {
    let progress = Progress::new();
    let mut report = Report::against(BULLMQ);
    let hint = "install Debian's redis-server package, or name one with --redis-server";
    let redis = servers::find_program(&args.redis_server, hint)?;
    let tasks = args.tasks.get();
    let mut parties = vec![Party::ours(tasks)?];
    if !args.no_peers {
        parties.extend(parties::peers(&args.node, &progress, &mut report));
    }
    let bench = Bench {
        stage: Stage::new(args.no_pin)?,
        redis: Contender::new("redis", Kind::Redis, redis),
        parties,
        forgetful: Party::ours(0)?,
        tasks,
        runs: args.runs.get(),
        progress,
    };
    describe(
        &bench.stage,
        std::slice::from_ref(&bench.redis),
        &mut report,
    );
    if args.wants(JobsPart::Drain) {
        for disk in [Disk::None, Disk::EverySecond] {
            for concurrency in CONCURRENCY {
                bench.drain(disk, concurrency, &mut report)?;
            }
        }
    }
    if args.wants(JobsPart::Enqueue) {
        for disk in [Disk::None, Disk::EverySecond] {
            bench.enqueue(disk, &mut report)?;
        }
    }
    if args.wants(JobsPart::Idle) {
        bench.idle(&mut report)?;
    }
    if args.wants(JobsPart::Scripts) {
        bench.scripts(&mut report)?;
    }
    if args.wants(JobsPart::Memory) {
        bench.queued_bytes(&mut report)?;
        bench.in_memory(args.memory_tasks.get(), &mut report)?;
    }
    report.end();
    Ok(())
}

/// One run of the queue in memory, in a process of its own.
pub(crate) fn run_memory(args: &JobsMemoryArgs) -> Result<()> {
    let outcome = memory::measure(args.tasks)?;
    client::say(&format!(
        "outcome {} {} {} {}",
        outcome.task_us, outcome.flowing_us, outcome.channel_us, outcome.bytes
    ))
}

impl Bench {
    /// Interleaved runs of all these parties. A peer that fails is named in the report and has no outcomes.
    fn outcomes(
        &self,
        title: &'static str,
        parties: &[&Party],
        report: &mut Report,
        mut run: impl FnMut(&Party) -> Result<Outcome>,
    ) -> Result<Outcomes> {
        let mut outcomes = vec![Vec::new(); parties.len()];
        let mut failed = vec![false; parties.len()];
        let mut task = self.progress.task(title, self.runs * parties.len());
        for number in 0..self.runs {
            for (index, party) in parties.iter().enumerate() {
                if failed[index] {
                    continue;
                }
                task.begin(&format!("{}, run {}", party.name, number + 1));
                match run(party) {
                    Ok(outcome) => outcomes[index].push(outcome),
                    Err(error) if party.name == OURS => return Err(error),
                    Err(error) => {
                        report.note(format!("{title}: {} failed: {error:#}", party.name));
                        outcomes[index].clear();
                        failed[index] = true;
                    }
                }
                task.end();
            }
        }
        let named = parties.iter().map(|party| party.name).zip(outcomes);
        Ok(named.filter(|(_, outcomes)| !outcomes.is_empty()).collect())
    }

    /// As `outcomes`, for something that is counted once per party.
    fn counted<T>(
        &self,
        title: &'static str,
        parties: &[&Party],
        report: &mut Report,
        mut count: impl FnMut(&Party) -> Result<T>,
    ) -> Result<Vec<(&'static str, T)>> {
        let mut counts = Vec::new();
        let mut task = self.progress.task(title, parties.len());
        for party in parties {
            task.begin(party.name);
            match count(party) {
                Ok(count) => counts.push((party.name, count)),
                Err(error) if party.name == OURS => return Err(error),
                Err(error) => report.note(format!("{title}: {} failed: {error:#}", party.name)),
            }
            task.end();
        }
        Ok(counts)
    }

    /// Tasks that wait are run by one worker: with all parties that keep the status, and with those that do not.
    fn drain(&self, disk: Disk, concurrency: usize, report: &mut Report) -> Result<()> {
        let keeping: Vec<&Party> = self
            .parties
            .iter()
            .filter(|party| party.keeps_status())
            .collect();
        let mut deleting = vec![&self.forgetful];
        deleting.extend(self.parties.iter().filter(|party| !party.keeps_status()));
        for (parties, kind) in [(keeping, "keep"), (deleting, "delete")] {
            if parties.len() == 1 && kind == "delete" {
                continue;
            }
            let outcomes = self.outcomes("drain", &parties, report, |party| {
                let trial = Trial::start(&self.stage, &self.redis, disk)?;
                trial.fill(party, self.tasks)?;
                trial.measure(party, "drain", self.tasks, concurrency)
            })?;
            let name = figure(disk, &format!("{kind}.c{concurrency}"));
            let mut rows = rates(&outcomes, &name, self.tasks)?;
            if disk == Disk::None {
                rows.extend(self.commands(&parties, concurrency, kind, report)?);
            }
            for row in &mut rows {
                row.aim(drain_goal(row, kind));
            }
            let title = format!(
                "{} tasks, concurrency {concurrency}, {}, {}",
                self.tasks,
                if kind == "keep" {
                    "status kept"
                } else {
                    "deleted when done"
                },
                on_disk(disk)
            );
            report.section(title, rows);
        }
        Ok(())
    }

    /// Commands sent and calls inside scripts, per task.
    fn commands(
        &self,
        parties: &[&Party],
        concurrency: usize,
        kind: &str,
        report: &mut Report,
    ) -> Result<Vec<Row>> {
        let tasks = self.tasks.min(COUNTED_TASKS);
        let counts = self.counted("commands", parties, report, |party| {
            let trial = Trial::start(&self.stage, &self.redis, Disk::None)?;
            trial.fill(party, tasks)?;
            let monitor = Monitor::start(trial.address())?;
            trial.measure(party, "drain", tasks, concurrency)?;
            Ok(monitor.read())
        })?;
        let name = format!("jobs.{kind}.c{concurrency}");
        Ok(command_rows(&name, "per task", &counts, tasks as f64))
    }

    fn enqueue(&self, disk: Disk, report: &mut Report) -> Result<()> {
        let parties: Vec<&Party> = self.parties.iter().collect();
        for (operation, label, divisor) in ENQUEUES {
            let tasks = (self.tasks / divisor).max(1);
            let outcomes = self.outcomes("enqueue", &parties, report, |party| {
                let trial = Trial::start(&self.stage, &self.redis, disk)?;
                trial.measure(party, operation, tasks, 1)
            })?;
            let name = figure(disk, operation);
            let rows = rates(&outcomes, &name, tasks)?;
            report.section(
                format!("{tasks} tasks enqueued {label}, {}", on_disk(disk)),
                rows,
            );
        }
        Ok(())
    }

    /// How soon an idle worker starts a task, and what it sends meanwhile.
    fn idle(&self, report: &mut Report) -> Result<()> {
        let parties: Vec<&Party> = self.parties.iter().collect();
        let bare = Party::bare()?;
        let with_bare: Vec<&Party> = self.parties.iter().chain([&bare]).collect();
        let outcomes = self.outcomes("wake", &with_bare, report, |party| {
            let trial = Trial::start(&self.stage, &self.redis, Disk::None)?;
            trial.measure(party, "wake", WAKES, 10)
        })?;
        let mut rows = Vec::new();
        for (index, name, goal) in [(0, "p50", 1000.0), (1, "p99", 5000.0)] {
            let label = format!("enqueue to start, {name}");
            let row = Row::new(format!("jobs.wake.{name}"), label, "us");
            let mut row = row.goal(Some(Goal::AtMost(goal)));
            for (party, outcomes) in &outcomes {
                row.add(party, sample(outcomes, |outcome| outcome.said[index])?);
            }
            rows.push(row);
        }
        let counts = self.counted("idle", &parties, report, |party| {
            let trial = Trial::start(&self.stage, &self.redis, Disk::None)?;
            let mut client = trial.client(party, "idle", 0, 10)?;
            let monitor = Monitor::start(trial.address())?;
            client.go()?;
            std::thread::sleep(IDLE);
            Ok(monitor.read())
        })?;
        let mut counted = command_rows("jobs.idle", "per second", &counts, IDLE.as_secs_f64());
        counted[0].aim(Some(Goal::AtMost(0.5)));
        rows.extend(counted);
        report.section("An idle worker", rows);
        Ok(())
    }

    /// How much of the server's time the longest script takes, with batches as large as they get.
    fn scripts(&self, report: &mut Report) -> Result<()> {
        let ours = &self.parties[0];
        let tasks = self.tasks.min(SCRIPT_TASKS);
        let outcomes = self.outcomes("scripts", &[ours], report, |party| {
            let trial = Trial::start(&self.stage, &self.redis, Disk::None)?;
            trial.measure(party, "scripts", tasks, 1)
        })?;
        let mut rows = Vec::new();
        for (index, name, label) in [
            (0, "enqueue", format!("longest enqueue of {ENQUEUE_LIMIT}")),
            (
                1,
                "turn",
                format!("longest turn of {TURN_LIMIT} reports and claims"),
            ),
            (
                2,
                "enqueue_keys",
                format!("enqueue of {ENQUEUE_LIMIT} with unique and serial keys"),
            ),
            (
                3,
                "turn_keys",
                format!("turn of {TURN_LIMIT} with keys, progress and waiters"),
            ),
            (4, "reap", format!("reap of {TURN_LIMIT} with keys")),
            (5, "release", format!("release of {TURN_LIMIT} with keys")),
            (6, "cancel", "cancel of a task with keys".to_owned()),
            (7, "list", format!("a page of {TURN_LIMIT} tasks")),
            (8, "purge", "purge of two succeeded tasks".to_owned()),
        ] {
            let row = Row::new(format!("jobs.script_ms.{name}"), label, "CPU ms");
            let mut row = row.goal(Some(Goal::AtMost(5.0)));
            for (party, outcomes) in &outcomes {
                let milliseconds = |outcome: &Outcome| outcome.said[index] / 1000.0;
                row.add(party, sample(outcomes, milliseconds)?);
            }
            rows.push(row);
        }
        report.section("The largest scripts", rows);
        Ok(())
    }

    /// What a queued task takes in Redis.
    fn queued_bytes(&self, report: &mut Report) -> Result<()> {
        let parties: Vec<&Party> = self.parties.iter().collect();
        let counts = self.counted("memory", &parties, report, |party| {
            let trial = Trial::start(&self.stage, &self.redis, Disk::None)?;
            let empty = trial.used_bytes()?;
            trial.fill(party, self.tasks)?;
            Ok(trial.used_bytes()?.saturating_sub(empty))
        })?;
        let row = Row::new("jobs.redis_bytes", "a queued task in Redis", "bytes");
        let mut row = row.goal(Some(Goal::RatioAtMost(0.65)));
        for (party, bytes) in counts {
            row.add(party, Sample::single(bytes as f64 / self.tasks as f64));
        }
        report.section("Memory", vec![row]);
        Ok(())
    }

    fn in_memory(&self, tasks: usize, report: &mut Report) -> Result<()> {
        let program = std::env::current_exe().context("cannot find this program's own path")?;
        let mut outcomes: Vec<[f64; 4]> = Vec::new();
        let mut task = self.progress.task("in memory", self.runs);
        for number in 0..self.runs {
            task.begin(&format!("run {}", number + 1));
            let output = std::process::Command::new(&program)
                .args(["jobs-memory", "--tasks", &tasks.to_string()])
                .output()
                .context("cannot start this program again")?;
            let text = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            let outcome = workspace::outcome(&text);
            outcomes.push(outcome.with_context(|| format!("it said {text:?} {errors:?}"))?);
            task.end();
        }
        let rows = [
            (
                "throughput",
                "tasks on one core",
                "per second",
                Some(Goal::AtLeast(500_000.0)),
            ),
            (
                "flowing",
                "tasks on one core, enqueued while they run",
                "per second",
                None,
            ),
            ("channel", "a bare channel", "per second", None),
            ("ratio", "a task's CPU time", "channels", None),
            (
                "flowing_ratio",
                "a task's CPU time, enqueued while they run",
                "channels",
                None,
            ),
            ("bytes", "a queued task", "bytes", Some(Goal::AtMost(600.0))),
        ];
        let values = |index: usize| {
            let value = |[task_us, flowing_us, channel_us, bytes]: &[f64; 4]| match index {
                0 => 1e6 / task_us,
                1 => 1e6 / flowing_us,
                2 => 1e6 / channel_us,
                3 => task_us / channel_us,
                4 => flowing_us / channel_us,
                _ => *bytes,
            };
            Sample::new(outcomes.iter().map(value).collect()).context("no run was made")
        };
        let mut made = Vec::new();
        for (index, (name, label, unit, goal)) in rows.into_iter().enumerate() {
            let mut row = Row::new(format!("jobs.memory.{name}"), label, unit).goal(goal);
            row.add(OURS, values(index)?);
            made.push(row);
        }
        report.section(format!("{tasks} tasks in memory, by CPU time"), made);
        Ok(())
    }
}

fn sample(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> Result<Sample> {
    Sample::new(outcomes.iter().map(value).collect()).context("no run was made")
}

/// A statistic of a run: its name in figures, its name for people, its unit, and how to get it.
type Statistic = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Outcome, usize) -> f64,
);

const STATISTICS: [Statistic; 5] = [
    ("throughput", "throughput", "tasks/s", Outcome::per_second),
    ("server_us", "server CPU per task", "us", Outcome::server_us),
    ("client_us", "client CPU per task", "us", Outcome::client_us),
    ("server_busy", "server busy", "%", |run, _| {
        run.server_share()
    }),
    ("client_busy", "client busy", "%", |run, _| {
        run.client_share()
    }),
];

fn rates(outcomes: &Outcomes, name: &str, tasks: usize) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (statistic, label, unit, value) in STATISTICS {
        let mut row = Row::new(format!("{name}.{statistic}"), label, unit);
        for (party, outcomes) in outcomes {
            row.add(party, sample(outcomes, |outcome| value(outcome, tasks))?);
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Rows of commands sent and calls inside scripts, each divided by the number of tasks or seconds.
fn command_rows(
    name: &str,
    unit: &'static str,
    counts: &[(&'static str, (u64, u64))],
    divisor: f64,
) -> Vec<Row> {
    let mut sent = Row::new(format!("{name}.sent"), "commands sent", unit);
    let mut inside = Row::new(format!("{name}.inside"), "calls in scripts", unit);
    for (party, (outer, inner)) in counts {
        sent.add(party, Sample::single(*outer as f64 / divisor));
        inside.add(party, Sample::single(*inner as f64 / divisor));
    }
    vec![sent, inside]
}

fn figure(disk: Disk, name: &str) -> String {
    match disk {
        Disk::None => format!("jobs.{name}"),
        Disk::EverySecond => format!("jobs.aof.{name}"),
    }
}

fn on_disk(disk: Disk) -> &'static str {
    match disk {
        Disk::None => "without AOF",
        Disk::EverySecond => "AOF every second",
    }
}

/// Three times the throughput of the best peer that keeps the status and a third of the server's CPU time; twice and a
/// half beside one that deletes.
fn drain_goal(row: &Row, kind: &str) -> Option<Goal> {
    let factor = if kind == "keep" { 3.0 } else { 2.0 };
    match row.name().rsplit('.').next() {
        Some("throughput") => Some(Goal::RatioAtLeastOf(row.largest_other(OURS)?, factor)),
        Some("server_us") => Some(Goal::RatioAtMostOf(row.smallest_other(OURS)?, 1.0 / factor)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::parties::OXANA;

    #[test]
    fn the_best_peer_is_the_one_to_beat() {
        let row = |name: &str| {
            let mut row = Row::new(name, "", "");
            row.add(OURS, Sample::single(40.0));
            row.add(BULLMQ, Sample::single(10.0));
            row.add(OXANA, Sample::single(12.0));
            row
        };
        let goal = drain_goal(&row("jobs.keep.c10.throughput"), "keep");
        assert_eq!(goal, Some(Goal::RatioAtLeastOf(OXANA, 3.0)));
        let goal = drain_goal(&row("jobs.keep.c10.server_us"), "delete");
        assert_eq!(goal, Some(Goal::RatioAtMostOf(BULLMQ, 0.5)));
        assert_eq!(drain_goal(&row("jobs.keep.c10.client_us"), "keep"), None);
    }
}
