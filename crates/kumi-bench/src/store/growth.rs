//! The longest engine step while the keyspace grows.
//!
//! The engine runs inside this process, on one thread and without a socket, and every call into it is timed by that
//! thread's own CPU clock: a preempted thread does not look slow, a table that rehashes at once does. What the clock
//! cannot tell from work is a virtual machine that lost its core to the host; such a moment does not come back in the
//! next run at the same place, which is why the longest step is taken per run and the median of those is judged.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use kumi_resp::OwnedArgs;
use kumi_store::{ApplyError, Config, Host, HostFacts, Now, Peer, SessionKey, Store};
use rustix::time::{ClockId, clock_gettime};

use crate::args::Plan;
use crate::progress::{Progress, Task};
use crate::report::{Goal, Report, Row};
use crate::stats::{Histogram, Sample};
use crate::store::servers::Stage;

/// Commands executed before output and effects are taken, as a front does after a read.
const BATCH: usize = 64;
/// The progress bar moves this many times a run.
const PROGRESS_STEPS: usize = 20;
const NEAREST_TTL_MS: u64 = 1_000_000;
const FARTHEST_TTL_MS: u64 = 2_000_000;
const SEED: u64 = 0x6b75_6d69;

/// What is shown of a run, as percentiles.
const STATISTICS: [(&str, f64); 4] = [
    ("p50", 50.0),
    ("p99", 99.0),
    ("p99.99", 99.99),
    ("longest", 100.0),
];
/// No step may take longer.
const LONGEST_STEP_US: f64 = 5000.0;

/// What one run gave.
struct Run {
    steps_ns: Histogram,
    /// Keys there were when the longest step came.
    longest_at_keys: usize,
}

/// Grows a keyspace, with and without TTLs, as often as the plan says.
pub(crate) fn measure(
    stage: &Stage,
    plan: &Plan,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let mut task = progress.task("growth", 2 * plan.growth_runs * PROGRESS_STEPS);
    let mut rows = Vec::new();
    for with_ttl in [false, true] {
        let (variant, label) = if with_ttl {
            ("ttl", "random TTLs")
        } else {
            ("plain", "without TTLs")
        };
        let mut runs = Vec::new();
        for number in 0..plan.growth_runs {
            task.begin(&format!(
                "{} keys {label}, run {} of {}",
                plan.growth_keys,
                number + 1,
                plan.growth_runs
            ));
            let run = stage
                .cores()
                .on_server_side(|| grow(plan.growth_keys, with_ttl, &mut task));
            runs.push(run.with_context(|| format!("cannot grow a keyspace {label}"))?);
        }
        for (statistic, percent) in STATISTICS {
            let goal = (statistic == "longest").then_some(Goal::AtMost(LONGEST_STEP_US));
            let name = format!("store.growth.{variant}.{statistic}");
            let mut row = Row::new(name, format!("{label}: {statistic}"), "us").goal(goal);
            let us = |run: &Run| run.steps_ns.percentile(percent) / 1000.0;
            let sample = Sample::new(runs.iter().map(us).collect());
            row.add("kumi", sample.context("no run was made")?);
            rows.push(row);
        }
        for run in &runs {
            report.note(format!(
                "growth {label}: of {} steps the longest came at {} keys",
                run.steps_ns.count(),
                run.longest_at_keys
            ));
        }
    }
    let title = format!(
        "Growth to {} keys: thread CPU of an engine step",
        plan.growth_keys
    );
    report.section(title, rows);
    Ok(())
}

fn grow(keys: usize, with_ttl: bool, task: &mut Task) -> Result<Run> {
    let mut host = BenchHost;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut store = Store::new(Config::default(), random.fork(), host.now());
    let session = store.connect(Peer::default(), host.now());
    let mut run = Run {
        steps_ns: Histogram::default(),
        longest_at_keys: 0,
    };
    let progress_every = keys.div_ceil(PROGRESS_STEPS);
    for index in 0..keys {
        let key = format!("key:{index:012}");
        let value = format!("value:{index:010}");
        let ttl_ms = random.u64(NEAREST_TTL_MS..FARTHEST_TTL_MS).to_string();
        let words = ["SET", &key, &value, "PX", &ttl_ms];
        let request = OwnedArgs::from_slices(&words[..if with_ttl { 5 } else { 3 }]);
        let now = host.now();
        run.time(index, || {
            // SET neither blocks nor closes; its answer is checked with the batch.
            let _ = store.execute(session, request.as_args(), now, &mut host);
        });
        if now.unix_ms() >= store.next_deadline() {
            run.time(index, || store.poll(&mut host));
        }
        if (index + 1) % BATCH == 0 || index + 1 == keys {
            take_output(&mut store, session)?;
        }
        if (index + 1) % progress_every == 0 || index + 1 == keys {
            task.end();
        }
    }
    Ok(run)
}

impl Run {
    fn time(&mut self, keys: usize, step: impl FnOnce()) {
        let start = thread_cpu();
        step();
        let spent = thread_cpu().saturating_sub(start);
        let spent_ns = u64::try_from(spent.as_nanos()).unwrap_or(u64::MAX);
        if spent_ns > self.steps_ns.max() {
            self.longest_at_keys = keys;
        }
        self.steps_ns.record(spent_ns);
    }
}

/// Does what a front does after a batch, and checks that every command was answered with OK.
fn take_output(store: &mut Store, session: SessionKey) -> Result<()> {
    let list = store.sessions_with_output();
    store.recycle_output_list(list);
    let output = store.output(session);
    if output.chunks(5).any(|reply| reply != b"+OK\r\n") {
        bail!(
            "the engine answered {}",
            String::from_utf8_lossy(output).trim()
        );
    }
    let length = output.len();
    store.written(session, length);
    drop(store.effects());
    Ok(())
}

/// CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A world that has clocks and nothing else.
struct BenchHost;

impl Host for BenchHost {
    fn now(&mut self) -> Now {
        let unix = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mono = clock_gettime(ClockId::Monotonic);
        let mono_ns = mono
            .tv_sec
            .saturating_mul(1_000_000_000)
            .saturating_add(mono.tv_nsec);
        Now {
            unix_us: u64::try_from(unix.as_micros()).unwrap_or(u64::MAX),
            mono_ns: u64::try_from(mono_ns).unwrap_or(0),
        }
    }

    fn apply_config(&mut self, _: &Config, _: &[&'static str]) -> Result<(), ApplyError> {
        Ok(())
    }

    fn rewrite_config(&mut self, _: &Config) -> Result<(), String> {
        Err("there is no file to write to".to_owned())
    }

    fn facts(&mut self) -> HostFacts {
        HostFacts::default()
    }

    fn sleep(&mut self, _: Duration) {}

    fn serve_others(&mut self, _: &mut Store) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_step_is_remembered_with_its_place() {
        let mut run = Run {
            steps_ns: Histogram::default(),
            longest_at_keys: 0,
        };
        run.time(1, || {});
        run.time(2, || {
            let start = thread_cpu();
            while thread_cpu() - start < Duration::from_millis(20) {}
        });
        run.time(3, || {});
        assert_eq!(run.longest_at_keys, 2);
        assert!(run.steps_ns.max() >= 20_000_000);
    }

    #[test]
    fn growing_times_every_command() {
        let mut task = Progress::new().task("growth", PROGRESS_STEPS);
        for with_ttl in [false, true] {
            let run = grow(1000, with_ttl, &mut task).unwrap();
            assert!(run.steps_ns.count() >= 1000);
        }
    }
}
