//! Thousands of clusters in virtual time, each a function of its seed, with every promise of membership checked.
//!
//! A failing seed prints the command that replays it. `KUMI_SIM_SEEDS` and `KUMI_SIM_LARGE_SEEDS` say how
//! many are run, `KUMI_SIM_FIRST` with which the numbers begin.

#![expect(
    clippy::unwrap_used,
    reason = "a failed step of a test is a failed test"
)]

mod forged;
mod names;
mod run;
mod scenario;
mod suspended;

use std::env;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;

use kumi_cluster::sim::Coverage;

use crate::run::{Report, run};
use crate::scenario::Size;

/// How many small clusters are simulated.
const SMALL_SEEDS: u64 = 2_000;
/// How many clusters of 1,000 nodes.
const LARGE_SEEDS: u64 = 3;
/// Seeds beyond those that are run which once found something: lives that came back with a node that had been kept out,
/// and an observer that went on seeing a life that was over.
const FOUND: [u64; 5] = [100_167, 100_264, 101_230, 102_156, 102_332];
/// Failing seeds that are shown.
const SHOWN: usize = 5;

#[test]
fn small_clusters_keep_every_promise_whatever_happens() {
    let coverage = coverage_of(Size::Small);
    println!("{coverage}");
    // A sample may miss what is rare.
    if number("KUMI_SIM_SEEDS", SMALL_SEEDS) < SMALL_SEEDS {
        return;
    }
    let unseen: Vec<&str> = coverage
        .counters()
        .filter(|&(_, count)| count == 0)
        .map(|(name, _)| name)
        .collect();
    assert!(unseen.is_empty(), "never happened: {unseen:?}");
}

#[test]
fn a_thousand_nodes_keep_every_promise() {
    let coverage = coverage_of(Size::Large);
    println!("{coverage}");
    assert!(coverage.deads > 0 && coverage.suspicions > 0 && coverage.refutations > 0);
}

#[test]
fn what_was_found_once_stays_mended() {
    for seed in FOUND {
        let report = run(seed, Size::Small, false);
        assert!(report.passed(), "{report}");
    }
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

/// All seeds of both sizes, run once for all tests: the large ones first, or one of them would be run alone at the end.
fn reports() -> &'static [Report] {
    static REPORTS: OnceLock<Vec<Report>> = OnceLock::new();
    REPORTS.get_or_init(|| {
        let first = number("KUMI_SIM_FIRST", 0);
        let seeds = |count| first..first + count;
        let large = seeds(number("KUMI_SIM_LARGE_SEEDS", LARGE_SEEDS));
        let small = seeds(number("KUMI_SIM_SEEDS", SMALL_SEEDS));
        let runs = large.map(|seed| (seed, Size::Large));
        run_all(runs.chain(small.map(|seed| (seed, Size::Small))).collect())
    })
}

fn number(variable: &str, default: u64) -> u64 {
    env::var(variable).map_or(default, |count| count.parse().unwrap())
}

/// Runs scenarios on as many threads as there are cores, in this order.
fn run_all(runs: Vec<(u64, Size)>) -> Vec<Report> {
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(&(seed, size)) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let report = panic::catch_unwind(|| run(seed, size, false))
                        .unwrap_or_else(|_| Report::panicked(seed, size));
                    reports.lock().unwrap().push(report);
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap();
    reports.sort_by_key(|report| report.seed);
    reports
}

/// What the seeds of a size saw together; a failure if one of them broke a promise.
fn coverage_of(size: Size) -> Coverage {
    let reports: Vec<&Report> = reports()
        .iter()
        .filter(|report| report.size == size)
        .collect();
    let mut agreed: Vec<u64> = reports
        .iter()
        .filter_map(|report| report.agreed_after_us)
        .collect();
    agreed.sort_unstable();
    if let (Some(middle), Some(last)) = (agreed.get(agreed.len() / 2), agreed.last()) {
        println!(
            "agreed after {:.1} s (median), {:.1} s (slowest)",
            *middle as f64 / 1e6,
            *last as f64 / 1e6
        );
    }
    // Equal for two builds whose nodes behave alike.
    let traces = reports.iter().fold(0u64, |all, report| {
        all.rotate_left(7).wrapping_mul(0x0000_0100_0000_01b3) ^ report.trace
    });
    println!("traces {traces:016x} of {} seeds", reports.len());
    let failures: Vec<&&Report> = reports.iter().filter(|report| !report.passed()).collect();
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
        "{} of {} seeds failed\n{}",
        failures.len(),
        reports.len(),
        shown.join("\n")
    );
    let mut coverage = Coverage::default();
    reports
        .iter()
        .for_each(|report| coverage.add(&report.coverage));
    coverage
}
