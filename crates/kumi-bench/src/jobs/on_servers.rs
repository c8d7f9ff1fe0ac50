//! BullMQ and kumi-jobs on kumi-server beside redis-server: what a server spends per job, and how fast jobs are drained.

use std::path::Path;

use anyhow::Result;

use super::parties::{self, BULLMQ, Party};
use super::sample;
use super::trial::{Disk, Outcome, Trial};
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::store::servers::{Contender, Stage};

const CONCURRENCY: usize = 10;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) runs: usize,
    /// Jobs of one run of BullMQ.
    pub(crate) jobs: usize,
    /// Tasks of one run of kumi-jobs.
    pub(crate) tasks: usize,
}

/// Measures kumi-jobs, and BullMQ if a node is named.
pub(crate) fn measure(
    stage: &Stage,
    contenders: &[Contender],
    node: Option<&Path>,
    size: Size,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let mut rows = Vec::new();
    match node.map(|node| parties::bullmq(node, progress)) {
        Some(Ok(party)) => {
            let goals = [Some(0.95), Some(1.1)];
            rows.extend(rows_of(
                stage, contenders, &party, "bullmq", size.jobs, size.runs, goals, progress,
            )?);
        }
        Some(Err(error)) => report.note(format!("{BULLMQ} was not measured: {error:#}")),
        None => {}
    }
    let ours = Party::ours(size.tasks)?;
    let goals = [None, Some(1.3)];
    rows.extend(rows_of(
        stage,
        contenders,
        &ours,
        "kumi-jobs",
        size.tasks,
        size.runs,
        goals,
        progress,
    )?);
    report.section(
        format!(
            "Queues on each server, concurrency {CONCURRENCY}, median of {}",
            size.runs
        ),
        rows,
    );
    Ok(())
}

/// Rows of jobs per second and of server CPU per job; `goals` are the least rate as a share of redis-server's, and by
/// which factor the CPU time should be below redis-server's.
#[expect(clippy::too_many_arguments, reason = "called twice, side by side")]
fn rows_of(
    stage: &Stage,
    contenders: &[Contender],
    party: &Party,
    name: &'static str,
    jobs: usize,
    runs: usize,
    goals: [Option<f64>; 2],
    progress: &Progress,
) -> Result<[Row; 2]> {
    let mut task = progress.task(name, runs * contenders.len());
    let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); contenders.len()];
    for run in 0..runs {
        for (contender, outcomes) in contenders.iter().zip(&mut outcomes) {
            task.begin(&format!("on {}: run {}", contender.name(), run + 1));
            let trial = Trial::start(stage, contender, Disk::None)?;
            trial.fill(party, jobs)?;
            outcomes.push(trial.measure(party, "drain", jobs, CONCURRENCY)?);
            task.end();
        }
    }
    let row = |figure, label, unit| {
        Row::new(
            format!("queues.{name}.{figure}"),
            format!("{name} {label}"),
            unit,
        )
    };
    let mut rate = row("throughput", "throughput", "jobs/s").goal(goals[0].map(Goal::RatioAtLeast));
    let mut cpu = row("server_us", "server CPU per job", "us")
        .goal(goals[1].map(|factor| Goal::RatioAtMost(1.0 / factor)));
    for (contender, outcomes) in contenders.iter().zip(&outcomes) {
        rate.add(
            contender.name(),
            sample(outcomes, |outcome| outcome.per_second(jobs))?,
        );
        cpu.add(
            contender.name(),
            sample(outcomes, |outcome| outcome.server_us(jobs))?,
        );
    }
    Ok([rate, cpu])
}
