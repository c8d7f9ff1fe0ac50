//! Thousands of clusters in virtual time, each a function of its seed, with every promise of membership checked.
//!
//! A failing seed prints the command that replays it. `KUMI_SIM_SEEDS` changes how many seeds are run.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step of a test is a failed test"
)]

mod run;
mod scenario;

use std::env;
use std::panic;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use kumi_cluster::sim::Coverage;

use crate::run::{Report, run};
use crate::scenario::Size;

/// How many small clusters are simulated.
const SMALL_SEEDS: u64 = 2_000;
/// How many clusters of 1,000 nodes.
const LARGE_SEEDS: u64 = 3;
/// Failing seeds that are shown.
const SHOWN: usize = 5;

#[test]
fn small_clusters_keep_every_promise_whatever_happens() {
    let coverage = run_seeds(Size::Small, seeds("KUMI_SIM_SEEDS", SMALL_SEEDS));
    println!("{coverage}");
    let unseen: Vec<&str> = coverage
        .counters()
        .filter(|&(_, count)| count == 0)
        .map(|(name, _)| name)
        .collect();
    assert!(unseen.is_empty(), "never happened: {unseen:?}");
}

#[test]
fn a_thousand_nodes_keep_every_promise() {
    let coverage = run_seeds(Size::Large, seeds("KUMI_SIM_LARGE_SEEDS", LARGE_SEEDS));
    println!("{coverage}");
    assert!(coverage.deads > 0 && coverage.suspicions > 0 && coverage.refutations > 0);
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let (one, two, other) = (
        run(7, Size::Small, false),
        run(7, Size::Small, false),
        run(8, Size::Small, false),
    );
    assert_eq!((one.trace, one.coverage), (two.trace, two.coverage));
    assert_ne!(one.trace, other.trace);
}

/// Runs the seed in `KUMI_SIM_SEED` and prints everything that happens; without one, a seed that is known to be quick.
#[test]
fn replay() {
    let seed = env::var("KUMI_SIM_SEED").ok();
    let size = match env::var("KUMI_SIM_SIZE").as_deref() {
        Ok("large") => Size::Large,
        _ => Size::Small,
    };
    let verbose = seed.is_some();
    let report = run(seed.map_or(1, |seed| seed.parse().unwrap()), size, verbose);
    println!(
        "agreed after {:?} us; {}",
        report.agreed_after_us, report.coverage
    );
    assert!(report.passed(), "{report}");
}

fn seeds(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |count| count.parse().unwrap())
}

/// Runs seeds on as many threads as there are cores, and adds up what they saw.
fn run_seeds(size: Size, count: u64) -> Coverage {
    let next = AtomicU64::new(0);
    let outcome: Mutex<(Coverage, Vec<Report>, Vec<u64>)> = Mutex::default();
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    let report = panic::catch_unwind(|| run(seed, size, false))
                        .unwrap_or_else(|_| Report::panicked(seed, size));
                    let mut outcome = outcome.lock().unwrap();
                    outcome.0.add(&report.coverage);
                    outcome.2.extend(report.agreed_after_us);
                    if !report.passed() {
                        outcome.1.push(report);
                    }
                }
            });
        }
    });
    let (coverage, mut failures, mut agreed) = outcome.into_inner().unwrap();
    agreed.sort_unstable();
    if let (Some(middle), Some(last)) = (agreed.get(agreed.len() / 2), agreed.last()) {
        println!(
            "agreed after {:.1} s (median), {:.1} s (slowest)",
            *middle as f64 / 1e6,
            *last as f64 / 1e6
        );
    }
    failures.sort_by_key(|report| report.seed);
    let shown: Vec<String> = failures
        .iter()
        .take(SHOWN)
        .map(ToString::to_string)
        .collect();
    for failure in &failures {
        println!("seed {}: {}", failure.seed, failure.violations[0]);
    }
    assert!(
        failures.is_empty(),
        "{} of {count} seeds failed\n{}",
        failures.len(),
        shown.join("\n")
    );
    coverage
}
