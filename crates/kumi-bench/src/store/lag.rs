//! How late `expired` events are.
//!
//! Beside many keys whose deadlines are far away, some probe keys get deadlines a few milliseconds apart. A subscriber
//! notes when each event arrives; lag is that minus the deadline, by the same clock, as both ends are on this machine.
//! The lag includes the subscriber's own scheduling, so on a busy machine it is an upper bound. A probe whose event did
//! not come within the window counts with the whole window, so percentiles cannot look better for what was never sent.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::args::Plan;
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::servers::{Contender, Server, Stage};
use crate::wire::{self, Connection};

const CHANNEL: &[u8] = b"__keyevent@0__:expired";
const NEAREST_BACKGROUND_MS: u64 = 1_000_000;
const FARTHEST_BACKGROUND_MS: u64 = 2_000_000;
/// The first probe is due this long after it was sent: time enough to send all of them.
const PROBE_DELAY_MS: u64 = 2_000;
const PROBE_STEP_MS: u64 = 3;
const SEED: u64 = 0x6b75_6d69;

/// What one round of probes gave.
#[derive(Clone, Debug, PartialEq)]
struct Round {
    /// Of all probes, in milliseconds; lost ones with the whole window.
    lags_ms: Sample,
    delivered: usize,
}

/// Measures lag beside every background on every contender.
pub(crate) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let mut task = progress.task(
        "lag",
        plan.lag_backgrounds.len() * contenders.len() * plan.lag_runs,
    );
    let mut rows = Vec::new();
    for &background in &plan.lag_backgrounds {
        let mut table = Rows::new(background, plan.lag_probes);
        for contender in contenders {
            let name = contender.name();
            let server = contender.start(stage, &[("notify-keyspace-events", "Ex")])?;
            load_background(&server, background)
                .with_context(|| format!("cannot load keys into {name}"))?;
            let mut rounds = Vec::new();
            for number in 0..plan.lag_runs {
                // Probes left over from a round would disturb the next one; and one such round says enough.
                if rounds
                    .last()
                    .is_none_or(|round: &Round| round.delivered == plan.lag_probes)
                {
                    task.begin(&format!(
                        "{name} beside {background} keys, round {}",
                        number + 1
                    ));
                    let round = probe(&server, plan)
                        .with_context(|| format!("cannot time events of {name}"))?;
                    if round.lags_ms.min() < 0.0 {
                        report.note(format!(
                            "{name} sent an `expired` event before the deadline"
                        ));
                    }
                    rounds.push(round);
                }
                task.end();
            }
            table.add(name, &rounds)?;
        }
        rows.extend(table.rows.into_iter().map(|row| report.shown(row)));
    }
    let title = format!(
        "Lag of `expired` events: {} probe keys, at most {} s late",
        plan.lag_probes,
        plan.lag_window.as_secs()
    );
    report.section(title, rows);
    Ok(())
}

/// The rows of one background, one per statistic.
struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    fn new(background: usize, probes: usize) -> Rows {
        let (latest, all) = match background {
            1_000_000 => (Some(Goal::AtMost(10.0)), Some(Goal::AtLeast(probes as f64))),
            _ => (None, None),
        };
        let row = |statistic: &str, unit| {
            let name = format!("store.expired_lag.bg{background}.{statistic}");
            Row::new(
                name,
                format!("beside {background} TTL keys: {statistic}"),
                unit,
            )
        };
        let rows = vec![
            row("p50", "ms"),
            row("p99", "ms").goal(latest),
            row("max", "ms"),
            row("delivered", "events").goal(all),
        ];
        Rows { rows }
    }

    fn add(&mut self, server: &'static str, rounds: &[Round]) -> Result<()> {
        let statistics: [fn(&Round) -> f64; 4] = [
            |round| round.lags_ms.percentile(50.0),
            |round| round.lags_ms.percentile(99.0),
            |round| round.lags_ms.max(),
            |round| round.delivered as f64,
        ];
        for (row, statistic) in self.rows.iter_mut().zip(statistics) {
            row.add(
                server,
                Sample::new(rounds.iter().map(statistic).collect()).context("no round was made")?,
            );
        }
        Ok(())
    }
}

fn load_background(server: &Server, keys: usize) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(SEED);
    wire::load(server.address(), keys, |index, out| {
        let ms = random
            .u64(NEAREST_BACKGROUND_MS..FARTHEST_BACKGROUND_MS)
            .to_string();
        let key = format!("key:{index:012}");
        wire::push_command(
            out,
            &[
                b"SET",
                key.as_bytes(),
                b"sixteen bytes ok",
                b"PX",
                ms.as_bytes(),
            ],
        );
    })?;
    wire::check_count(server.address(), keys)?;
    match keys {
        0 => Ok(()),
        _ => wire::check_ttl(server.address(), "key:000000000000"),
    }
}

fn probe(server: &Server, plan: &Plan) -> Result<Round> {
    let mut subscriber = Connection::open(server.address())?;
    let mut subscribe = Vec::new();
    wire::push_command(&mut subscribe, &[b"SUBSCRIBE", CHANNEL]);
    subscriber.send(&subscribe)?;
    // The confirmation ends with the number of subscriptions.
    while subscriber.reply()? != b":1" {}

    let first_ms = unix_now()?.as_millis() as u64 + PROBE_DELAY_MS;
    let mut waiting: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    wire::load(server.address(), plan.lag_probes, |index, out| {
        let deadline_ms = first_ms + index as u64 * PROBE_STEP_MS;
        let key = format!("probe:{index:06}").into_bytes();
        wire::push_command(
            out,
            &[
                b"SET",
                &key,
                b"v",
                b"PXAT",
                deadline_ms.to_string().as_bytes(),
            ],
        );
        waiting.insert(key, deadline_ms);
    })?;
    if unix_now()?.as_millis() as u64 >= first_ms {
        bail!("sending the probes took longer than until the first was due");
    }

    let mut lags_ms = Vec::new();
    while let Some(&latest_ms) = waiting.values().max() {
        let until = Duration::from_millis(latest_ms) + plan.lag_window;
        let Some(left) = until
            .checked_sub(unix_now()?)
            .filter(|left| !left.is_zero())
        else {
            break;
        };
        subscriber.fill(left)?;
        let now_ms = unix_now()?.as_secs_f64() * 1000.0;
        while let Some(line) = subscriber.buffered_line() {
            if let Some(deadline_ms) = waiting.remove(line) {
                lags_ms.push(now_ms - deadline_ms as f64);
            }
        }
    }
    round(lags_ms, plan.lag_probes, plan.lag_window)
}

/// Puts the lags of what arrived and the window of what did not into one sample.
fn round(mut lags_ms: Vec<f64>, probes: usize, window: Duration) -> Result<Round> {
    let window_ms = window.as_secs_f64() * 1000.0;
    lags_ms.retain(|&lag| lag <= window_ms);
    let delivered = lags_ms.len();
    lags_ms.resize(probes.max(delivered), window_ms);
    let lags_ms = Sample::new(lags_ms).context("there were no probes")?;
    Ok(Round { lags_ms, delivered })
}

fn unix_now() -> Result<Duration> {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .context("the clock stands before 1970")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_events_count_with_the_whole_window() {
        let round = round(vec![1.0, 2.0], 4, Duration::from_secs(40)).unwrap();
        assert_eq!(round.delivered, 2);
        assert_eq!(round.lags_ms.percentile(50.0), 2.0);
        assert_eq!(round.lags_ms.percentile(99.0), 40_000.0);
    }

    #[test]
    fn an_event_after_the_window_is_lost() {
        let round = round(vec![1.0, 40_000.5], 2, Duration::from_secs(40)).unwrap();
        assert_eq!(round.delivered, 1);
        assert_eq!(round.lags_ms.max(), 40_000.0);
    }

    #[test]
    fn the_goals_are_for_the_largest_background() {
        let lines = |background| {
            let mut rows = Rows::new(background, 1000);
            rows.add(
                "kumi",
                &[round(vec![1.0; 1000], 1000, Duration::from_secs(40)).unwrap()],
            )
            .unwrap();
            let mut report = Report::default();
            report.section("lag", rows.rows);
            report.figures()
        };
        assert_eq!(lines(1_000_000).matches("met=yes").count(), 2);
        assert_eq!(lines(0).matches("met=").count(), 0);
    }
}
