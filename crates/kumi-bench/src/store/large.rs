//! Large replies, values and requests, many databases, shutdown, and how true `used_memory` is.
//!
//! Each measurement starts fresh servers, one after the other. What a client sees is wall time, as others see it: while
//! a large request is served, a second connection sends PING after PING, and its longest wait is the stall of others.
//! With `--quick` the sizes are a tenth, and goals that are stated for the full size are still printed.

mod accounting;
mod databases;
mod requests;
mod stall;
mod teardown;

use std::path::Path;

use anyhow::{Context, Result};

use crate::args::Plan;
use crate::progress::Progress;
use crate::report::{Report, Row};
use crate::stats::Sample;
use crate::store::driver::Driver;
use crate::store::servers::{Contender, Stage};

const MB: usize = 1_000_000;

/// What a measurement is handed.
struct Setting<'a> {
    stage: &'a Stage,
    plan: &'a Plan,
    driver: Driver<'a>,
}

impl Setting<'_> {
    /// A size of the full measurement, as small as the plan wants it.
    fn size(&self, full: usize) -> usize {
        (full / self.plan.large_divisor).max(1)
    }
}

/// One thing that is measured on a server.
struct Subject {
    /// For progress.
    name: &'static str,
    /// The rows it fills, in the order of the figures `measure` returns.
    rows: fn() -> Vec<Row>,
    measure: fn(&Setting<'_>, &Contender) -> Result<Vec<f64>>,
}

const SUBJECTS: [Subject; 9] = [
    requests::OUTPUT_LIMIT,
    requests::MANY_ARGUMENTS,
    requests::LARGE_VALUE,
    requests::PAUSED_READER,
    databases::SET_WITH_DATABASES,
    databases::PING_WITH_DATABASES,
    accounting::USED_MEMORY,
    teardown::FLUSHALL,
    teardown::SHUTDOWN,
];

/// Measures every subject on every contender.
pub(crate) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    benchmark: &Path,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let setting = Setting {
        stage,
        plan,
        driver: Driver::new(stage, benchmark)?,
    };
    let mut task = progress.task("large", SUBJECTS.len() * contenders.len());
    let mut rows = Vec::new();
    let mut outcome = Ok(());
    for subject in SUBJECTS {
        let mut filled = (subject.rows)();
        for contender in contenders {
            task.begin(&format!("{}: {}", subject.name, contender.name()));
            // What was measured before a failure is still worth showing.
            match (subject.measure)(&setting, contender) {
                Ok(values) => {
                    for (row, value) in filled.iter_mut().zip(values) {
                        row.add(contender.name(), Sample::single(value));
                    }
                }
                Err(error) => {
                    let error = Err(error)
                        .with_context(|| format!("{} on {}", subject.name, contender.name()));
                    outcome = outcome.and(error);
                }
            }
            task.end();
        }
        rows.extend(filled.into_iter().map(|row| report.shown(row)));
    }
    let title = match plan.large_divisor {
        1 => "Large: one run each".to_owned(),
        divisor => format!("Large: one run each, sizes divided by {divisor}"),
    };
    report.section(title, rows);
    outcome
}

/// Bytes as megabytes of a million bytes.
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / MB as f64
}
