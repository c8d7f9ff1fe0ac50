//! Small calls while large ones are always in flight on the same connection.
//!
//! Raw quinn has the small calls on a stream that stays open and each transfer on a stream of its own; Unison has the
//! small calls on a channel and gives each transfer a stream, as its own documentation says to.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use tokio::task::JoinSet;

use super::load::{self, Caller, Load, Sides};
use super::raw::{self, Style};
use super::{OURS, RAW_STREAMS, ours};
use crate::progress::Progress;
use crate::report::Row;
use crate::stats::Sample;

const SMALL_BYTES: usize = 64;
const LARGE_BYTES: usize = 1024 * 1024;
/// Transfers in flight; each is echoed, so that both directions are busy.
const LARGE_IN_FLIGHT: usize = 2;
const CONTESTANTS: [&str; 2] = [RAW_STREAMS, OURS];

/// What a run gave.
#[derive(Clone, Copy)]
struct Outcome {
    p50_us: f64,
    p99_us: f64,
    transfers_per_second: f64,
}

/// A statistic of a run: its name in figures, its name for people, its unit, and how to get it.
type Statistic = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Outcome) -> f64,
);

const STATISTICS: [Statistic; 3] = [
    ("p50", "small calls, p50", "us", |run| run.p50_us),
    ("p99", "small calls, p99", "us", |run| run.p99_us),
    ("transfers", "transfers", "MiB/s", |run| {
        run.transfers_per_second
    }),
];

/// All runs, by contestant.
pub(super) struct Results(Vec<(&'static str, Vec<Outcome>)>);

impl Results {
    fn sample(&self, contestant: &str, statistic: fn(&Outcome) -> f64) -> Result<Sample> {
        let runs = self.0.iter().find(|(name, _)| *name == contestant);
        let values = runs.map(|(_, runs)| runs.iter().map(statistic).collect());
        values.and_then(Sample::new).context("no run was made")
    }

    pub(super) fn p99(&self, contestant: &str) -> Result<Sample> {
        self.sample(contestant, |run| run.p99_us)
    }

    pub(super) fn rows(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (name, label, unit, statistic) in STATISTICS {
            let mut row = Row::new(format!("unison.bulk.{name}"), label, unit);
            for contestant in CONTESTANTS {
                row.add(contestant, self.sample(contestant, statistic)?);
            }
            rows.push(row);
        }
        Ok(rows)
    }
}

/// Runs both contestants in turn.
pub(super) fn measure(
    sides: &Sides,
    runs: usize,
    period: Duration,
    progress: &Progress,
) -> Result<Results> {
    let mut results = Results(CONTESTANTS.map(|name| (name, Vec::new())).to_vec());
    let mut task = progress.task("calls beside transfers", runs * CONTESTANTS.len());
    for _ in 0..runs {
        for (name, outcomes) in &mut results.0 {
            task.begin(name);
            let outcome =
                run(name, sides, period).with_context(|| format!("cannot measure {name}"))?;
            outcomes.push(outcome);
            task.end();
        }
    }
    Ok(results)
}

fn run(name: &str, sides: &Sides, period: Duration) -> Result<Outcome> {
    let runtime = load::runtime()?;
    if name == RAW_STREAMS {
        let (_server, reach) = raw::start(sides, Style::Mixed(SMALL_BYTES))?;
        runtime.block_on(async {
            let client = raw::Client::connect(&reach).await?;
            let small = client.open_stream(Some(0)).await?;
            let large = client.stream_per_request(Some(1));
            beside(small, vec![large; LARGE_IN_FLIGHT], period).await
        })
    } else {
        let (_server, reach) = ours::start(sides)?;
        runtime.block_on(async {
            let client = ours::Client::connect(&reach).await?;
            let large = vec![client.caller(true); LARGE_IN_FLIGHT];
            beside(client.caller(false), large, period).await
        })
    }
}

/// Times small calls while transfers go on.
async fn beside<S: Caller, L: Caller>(
    small: S,
    large: Vec<L>,
    period: Duration,
) -> Result<Outcome> {
    let mut transfers = JoinSet::new();
    let (count, counted) = tokio::sync::watch::channel(0_u64);
    for (number, mut caller) in large.into_iter().enumerate() {
        let count = count.clone();
        let payloads: Vec<Bytes> = load::payloads(LARGE_BYTES, 1000 + number as u64);
        transfers.spawn(async move {
            for payload in payloads.iter().cycle() {
                caller.call(payload.clone()).await?;
                count.send_modify(|count| *count += 1);
            }
            anyhow::Ok(())
        });
    }
    let before = (Instant::now(), *counted.borrow());
    let small_calls = load::measure(
        None,
        vec![small],
        Load {
            size: SMALL_BYTES,
            in_flight: 1,
            period,
        },
    );
    let outcome = tokio::select! {
        outcome = small_calls => outcome?,
        Some(ended) = transfers.join_next() => {
            ended.context("a transfer panicked")??;
            anyhow::bail!("the transfers ended");
        }
    };
    let (elapsed, transferred) = (before.0.elapsed(), *counted.borrow() - before.1);
    Ok(Outcome {
        p50_us: outcome.p50_us,
        p99_us: outcome.p99_us,
        transfers_per_second: transferred as f64 / elapsed.as_secs_f64(),
    })
}
