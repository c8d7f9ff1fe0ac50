//! The longest engine step while the keyspace grows.
//!
//! Each run is a process of its own (see [`engine`]), because a second run in the
//! same one would find the memory of the first already mapped. Every call into the engine is timed
//! by its thread's CPU clock: a preempted thread does not look slow, a table that rehashes at once
//! does. What that clock cannot tell from work is an interrupt, or a virtual machine that lost its
//! core to the host. So two more figures are given: the longest of as many empty steps, which is
//! the machine's alone; and the longest step that came at the same key in every run, which is the
//! engine's alone, as the same keys are set in the same order with the same hash seed.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::args::{EngineLoad, Plan};
use crate::progress::{Progress, Task};
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::engine::{self, LONG_STEP_NS, PROGRESS_STEPS};
use crate::store::servers::Stage;

/// No step may take longer.
const LONGEST_STEP_US: f64 = 2000.0;

/// What one run gave.
#[derive(Clone, Debug, Default, PartialEq)]
struct Run {
    /// Percentiles of the steps in nanoseconds, by name.
    steps_ns: BTreeMap<String, f64>,
    /// Steps of some length, by the number of keys there were.
    long_steps_ns: BTreeMap<usize, u64>,
}

/// Grows a keyspace, with and without TTLs, as often as the plan says.
pub(crate) fn measure(
    stage: &Stage,
    plan: &Plan,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let loads = [
        (EngineLoad::Plain, "without TTLs"),
        (EngineLoad::Ttl, "random TTLs"),
        (EngineLoad::Empty, "empty steps"),
    ];
    let mut task = progress.task("growth", loads.len() * plan.growth_runs * PROGRESS_STEPS);
    let mut rows = Vec::new();
    let mut outcome = Ok(());
    for (load, label) in loads {
        // What was measured before a failure is still worth showing.
        match runs(stage, plan, load, label, &mut task) {
            Ok(runs) => {
                let measured = load_rows(load, label, &runs)?.into_iter();
                rows.extend(measured.map(|row| report.shown(row)));
            }
            Err(error) => outcome = Err(error),
        }
    }
    let title = format!(
        "Growth to {} keys: thread CPU of an engine step, median of {}",
        plan.growth_keys, plan.growth_runs
    );
    report.section(title, rows);
    outcome
}

fn runs(
    stage: &Stage,
    plan: &Plan,
    load: EngineLoad,
    label: &str,
    task: &mut Task,
) -> Result<Vec<Run>> {
    let (keys, of) = (plan.growth_keys, plan.growth_runs);
    let mut runs = Vec::new();
    for number in 1..=of {
        task.begin(&format!("{keys} keys, {label}: run {number} of {of}"));
        runs.push(run(stage, keys, load, task).with_context(|| label.to_owned())?);
    }
    Ok(runs)
}

fn load_rows(load: EngineLoad, label: &str, runs: &[Run]) -> Result<Vec<Row>> {
    let row = |statistic: &str, label: String| {
        Row::new(format!("store.growth.{load}.{statistic}"), label, "us")
    };
    let goal = (load != EngineLoad::Empty).then_some(Goal::AtMost(LONGEST_STEP_US));
    let mut rows = Vec::new();
    for (statistic, _) in engine::STATISTICS {
        let us = |run: &Run| Some(run.steps_ns.get(statistic)? / 1000.0);
        let values: Option<Vec<f64>> = runs.iter().map(us).collect();
        let sample = values
            .and_then(Sample::new)
            .context("a figure is missing")?;
        let is_longest = statistic == engine::LONGEST;
        let mut row = row(statistic, format!("{label}: {statistic}"));
        row = row.goal(goal.filter(|_| is_longest));
        row.add("kumi", sample);
        rows.push(row);
    }
    if runs.len() > 1 && load != EngineLoad::Empty {
        let longest_us = longest_in_every_run(runs) as f64 / 1000.0;
        let mut row = row(
            "longest_in_every_run",
            format!("{label}: longest in every run"),
        );
        row = row.goal(goal);
        row.add("kumi", Sample::single(longest_us));
        rows.push(row);
    }
    Ok(rows)
}

/// The longest step that was long in every run at the same place, taken at its shortest. Steps too
/// short to have been noted count with the length from which they are noted.
fn longest_in_every_run(runs: &[Run]) -> u64 {
    let Some((first, others)) = runs.split_first() else {
        return 0;
    };
    let in_all = first.long_steps_ns.iter().map(|(keys, &ns)| {
        let shortest = |run: &Run| run.long_steps_ns.get(keys).copied().unwrap_or(LONG_STEP_NS);
        others.iter().map(shortest).fold(ns, u64::min)
    });
    in_all.fold(LONG_STEP_NS, u64::max)
}

/// Runs the engine in another process and reads what it says.
fn run(stage: &Stage, keys: usize, load: EngineLoad, task: &mut Task) -> Result<Run> {
    let program = env::current_exe().context("cannot find this program's own path")?;
    let mut command = Command::new(program);
    command
        .args([
            "engine-run",
            "--keys",
            &keys.to_string(),
            "--load",
            &load.to_string(),
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = stage
        .spawn_server(&mut command)
        .context("cannot start the engine")?;
    let stdout = child.stdout.take().context("the engine has no output")?;
    let mut run = Run::default();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("cannot hear the engine")?;
        match line == engine::PROGRESS {
            true => task.end(),
            false => run
                .take_line(&line)
                .with_context(|| format!("the engine said {line:?}"))?,
        }
    }
    if !run.steps_ns.contains_key(engine::LONGEST) {
        bail!("the engine ended early");
    }
    Ok(run)
}

impl Run {
    /// `step NAME NANOSECONDS` or `long KEYS NANOSECONDS`
    fn take_line(&mut self, line: &str) -> Result<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["step", name, ns] => {
                self.steps_ns.insert(name.to_owned(), ns.parse()?);
            }
            ["long", keys, ns] => {
                self.long_steps_ns.insert(keys.parse()?, ns.parse()?);
            }
            _ => bail!("not a line it should say"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lines: &[&str]) -> Run {
        let mut run = Run::default();
        for line in lines {
            run.take_line(line).unwrap();
        }
        run
    }

    #[test]
    fn lines_of_the_engine_become_a_run() {
        let run = run(&["step p50 850", "long 12 5000000"]);
        assert_eq!(run.steps_ns["p50"], 850.0);
        assert_eq!(run.long_steps_ns[&12], 5_000_000);
        for line in ["", "step p50", "long x 1", "else 1 2"] {
            assert!(Run::default().take_line(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn a_step_that_was_long_only_once_is_the_machines() {
        let runs = [
            run(&["long 10 9000000", "long 20 700000", "long 30 300000"]),
            run(&["long 20 600000", "long 30 8000000"]),
        ];
        assert_eq!(longest_in_every_run(&runs), 600_000);
    }

    #[test]
    fn without_a_step_long_in_every_run_the_limit_of_noting_is_the_bound() {
        let runs = [run(&["long 10 9000000"]), run(&["long 11 9000000"])];
        assert_eq!(longest_in_every_run(&runs), LONG_STEP_NS);
    }
}
