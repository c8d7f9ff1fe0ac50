//! Throughput and server CPU per operation, driven by redis-benchmark.
//!
//! All servers run side by side with the same keys and take turns, run by run, so that a slow minute of the machine
//! hits each of them. Throughput is redis-benchmark's own figure; with one client thread it is often the client's limit
//! and not the server's, which is why CPU time of the server process per operation is the figure that counts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::args::Plan;
use crate::progress::{Progress, Task};
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::servers::{Contender, Server, Stage, find_program};
use crate::wire;

/// redis-benchmark's `-d`: bytes of a value.
const VALUE_BYTES: usize = 16;
/// A run this many times longer than planned is taken for hung.
const PATIENCE: f64 = 20.0;
/// Lets the server finish closing connections, which belongs to the run before, not to the next.
const SETTLE: Duration = Duration::from_millis(50);
/// Above this share of time spent waiting for a core, a run was disturbed.
const DISTURBED_PERCENT: f64 = 5.0;

#[derive(Clone, Copy, Debug)]
struct Workload {
    /// redis-benchmark's `-t`.
    test: &'static str,
    pipeline: usize,
}

impl Workload {
    fn label(self) -> String {
        format!("{} P={}", self.test.to_uppercase(), self.pipeline)
    }

    /// Requests of the run that finds out how fast a server is: some tenths of a second.
    fn trial_requests(self) -> usize {
        match self.pipeline {
            0..=3 => 30_000,
            4..=31 => 250_000,
            _ => 500_000,
        }
    }

    fn cpu_goal(self) -> Option<Goal> {
        match self.pipeline {
            1 => Some(Goal::RatioAtMost(1.05)),
            16 | 64 => Some(Goal::RatioAtMost(1.0 / 1.5)),
            _ => None,
        }
    }

    fn rows(self, servers: &[Server], runs: &[Vec<Run>]) -> Result<[Row; 2]> {
        let name = format!("store.{}.p{}", self.test, self.pipeline);
        let label = self.label();
        let mut throughput = Row::new(
            format!("{name}.throughput"),
            format!("{label} throughput"),
            "op/s",
        );
        let mut cpu = Row::new(
            format!("{name}.cpu_us"),
            format!("{label} server CPU"),
            "us/op",
        )
        .goal(self.cpu_goal());
        for (server, runs) in servers.iter().zip(runs) {
            let sample = |figure: fn(&Run) -> f64| {
                Sample::new(runs.iter().map(figure).collect()).context("no run was made")
            };
            throughput.add(server.name(), sample(|run| run.operations_per_second)?);
            cpu.add(server.name(), sample(|run| run.cpu_us_per_operation)?);
        }
        Ok([throughput, cpu])
    }
}

/// What one run gave.
#[derive(Clone, Copy, Debug)]
struct Run {
    operations_per_second: f64,
    cpu_us_per_operation: f64,
    /// Time the server was ready but had no core, in percent of the run.
    waited_percent: f64,
}

/// Finds redis-benchmark.
pub(crate) fn find_benchmark(program: &Path) -> Result<PathBuf> {
    find_program(
        program,
        "install Debian's redis-tools package, or name one with --redis-benchmark",
    )
}

/// Measures every workload on every contender.
pub(crate) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    benchmark: &Path,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let workloads: Vec<Workload> = ["set", "get"]
        .into_iter()
        .flat_map(|test| {
            plan.pipelines
                .iter()
                .map(move |&pipeline| Workload { test, pipeline })
        })
        .collect();
    let per_workload = contenders.len() * (plan.runs + 1);
    let mut task = progress.task(
        "workloads",
        contenders.len() + workloads.len() * per_workload,
    );
    let mut servers = Vec::new();
    for contender in contenders {
        task.begin(&format!(
            "loading {} keys into {}",
            plan.keys,
            contender.name()
        ));
        let server = contender.start(stage, &[])?;
        preload(&server, plan.keys)
            .with_context(|| format!("cannot load keys into {}", contender.name()))?;
        servers.push(server);
        task.end();
    }
    let driver = Driver {
        stage,
        plan,
        program: benchmark,
        output: stage.subdirectory("redis-benchmark")?.join("csv"),
    };
    let mut rows = Vec::new();
    let mut waited: Vec<f64> = vec![0.0; servers.len()];
    for workload in workloads {
        let runs = driver.take_turns(workload, &servers, &mut task)?;
        rows.extend(workload.rows(&servers, &runs)?);
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

/// Sets every key redis-benchmark may pick, so that no run measures a keyspace that still fills up.
fn preload(server: &Server, keys: usize) -> Result<()> {
    let value = [b'x'; VALUE_BYTES];
    wire::load(server.address(), keys, |index, out| {
        wire::push_command(
            out,
            &[b"SET", format!("key:{index:012}").as_bytes(), &value],
        );
    })?;
    wire::check_count(server.address(), keys)
}

struct Driver<'a> {
    stage: &'a Stage,
    plan: &'a Plan,
    program: &'a Path,
    /// Where redis-benchmark writes; a file, because a pipe nobody reads could stop it.
    output: PathBuf,
}

impl Driver<'_> {
    /// The runs of one workload, by server.
    fn take_turns(
        &self,
        workload: Workload,
        servers: &[Server],
        task: &mut Task,
    ) -> Result<Vec<Vec<Run>>> {
        let label = workload.label();
        let mut requests = 0;
        for server in servers {
            task.begin(&format!("{label} {}: trial", server.name()));
            let trial = self.run(workload, server, workload.trial_requests())?;
            requests = requests.max(requests_lasting(
                trial.operations_per_second,
                self.plan.run_seconds,
            ));
            task.end();
        }
        let mut runs: Vec<Vec<Run>> = vec![Vec::new(); servers.len()];
        for round in 0..self.plan.runs {
            for turn in 0..servers.len() {
                // Who comes first changes each round, so that coming second is nobody's fixed advantage.
                let which = (round + turn) % servers.len();
                let server = &servers[which];
                task.begin(&format!(
                    "{label} {}: run {} of {}",
                    server.name(),
                    round + 1,
                    self.plan.runs
                ));
                runs[which].push(self.run(workload, server, requests)?);
                task.end();
            }
        }
        Ok(runs)
    }

    fn run(&self, workload: Workload, server: &Server, requests: usize) -> Result<Run> {
        self.run_benchmark(workload, server, requests)
            .with_context(|| {
                format!(
                    "redis-benchmark failed: {} against {}",
                    workload.label(),
                    server.name()
                )
            })
    }

    fn run_benchmark(&self, workload: Workload, server: &Server, requests: usize) -> Result<Run> {
        let output = File::create(&self.output).context("cannot make an output file")?;
        let mut command = Command::new(self.program);
        command
            .args([
                "-h",
                "127.0.0.1",
                "-p",
                &server.address().port().to_string(),
            ])
            .args(["-t", workload.test, "-n", &requests.to_string()])
            .args([
                "-c",
                &self.plan.connections.to_string(),
                "-P",
                &workload.pipeline.to_string(),
            ])
            .args([
                "-r",
                &self.plan.keys.to_string(),
                "-d",
                &VALUE_BYTES.to_string(),
                "--csv",
            ])
            .stdin(Stdio::null())
            .stderr(output.try_clone().context("cannot share an output file")?)
            .stdout(output);
        let before = server.cpu_time()?;
        let child = self
            .stage
            .spawn_client(&mut command)
            .context("cannot start it")?;
        let limit = Duration::from_secs_f64(60.0 + self.plan.run_seconds * PATIENCE);
        let status = child.wait(limit)?;
        thread::sleep(SETTLE);
        let used = server.cpu_time()?.since(before);
        let text = fs::read_to_string(&self.output).unwrap_or_default();
        match status {
            None => bail!(
                "it did not end within {} s; it said: {}",
                limit.as_secs(),
                text.trim()
            ),
            Some(status) if !status.success() => bail!("{status}; it said: {}", text.trim()),
            Some(_) => {}
        }
        let operations_per_second = parse_rate(&text, workload.test)
            .with_context(|| format!("no rate in its output: {}", text.trim()))?;
        let run_ns = requests as f64 / operations_per_second * 1e9;
        Ok(Run {
            operations_per_second,
            cpu_us_per_operation: used.busy_ns as f64 / 1000.0 / requests as f64,
            waited_percent: used.waited_ns as f64 / run_ns * 100.0,
        })
    }
}

/// The rate of a test in redis-benchmark's CSV, whose first two columns are the test and its requests per second.
fn parse_rate(csv: &str, test: &str) -> Option<f64> {
    csv.lines().find_map(|line| {
        let mut columns = line
            .split(',')
            .map(|column| column.trim().trim_matches('"'));
        let name = columns.next()?;
        if !name.eq_ignore_ascii_case(test) {
            return None;
        }
        columns
            .next()?
            .parse()
            .ok()
            .filter(|rate: &f64| *rate > 0.0)
    })
}

/// Requests that keep a server of this speed busy for `seconds`, with a little to spare, in whole thousands.
fn requests_lasting(operations_per_second: f64, seconds: f64) -> usize {
    let thousands = (operations_per_second * seconds * 1.1 / 1000.0).ceil();
    (thousands as usize).max(1) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET\",\"114942.53\",\"0.243\"\n\"GET\",\"0.00\",\"1\"\n";

    #[test]
    fn the_rate_is_the_second_column_of_the_tests_row() {
        assert_eq!(parse_rate(CSV, "set"), Some(114_942.53));
    }

    #[test]
    fn a_missing_or_empty_rate_is_none() {
        assert_eq!(parse_rate(CSV, "get"), None);
        assert_eq!(parse_rate(CSV, "incr"), None);
        assert_eq!(parse_rate("Could not connect to server", "set"), None);
    }

    #[test]
    fn requests_are_whole_thousands_that_last_long_enough() {
        assert_eq!(requests_lasting(100_000.0, 3.0), 330_000);
        assert_eq!(requests_lasting(100_001.0, 3.0), 331_000);
        assert_eq!(requests_lasting(1.0, 0.1), 1000);
    }
}
