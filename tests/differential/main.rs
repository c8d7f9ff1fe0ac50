//! The differential test: what this server answers, a real `redis-server` answers too.
//!
//! Sequences of requests are generated from seeds, run on both servers over several connections in RESP2 and RESP3,
//! and compared byte for byte, keyspace events included. The reference is Debian's package `redis-server`, 7.0.15;
//! `known_differences.rs` lists where 7.2, which this server follows, is different. A mismatch is shrunk and printed
//! as lines for redis-cli. The run fails, too, if any command, option or declared error path never came up.
//!
//! ```text
//! cargo test -p kumi-server --test differential -- --nocapture
//!
//! KUMI_DIFF_SEED=17       run the sequence of this seed, and of those that follow
//! KUMI_DIFF_ITERS=1       how many
//! KUMI_DIFF_FRESH=500     run this many sequences that nobody has run before, besides the fixed ones
//! KUMI_DIFF_SHOW=1        print every sequence before it runs
//! KUMI_DIFF_KEEP_GOING=1  collect every distinct mismatch instead of stopping after a few
//! KUMI_DIFF_DECLARE=path  write the error paths that were seen, to renew error_paths.txt
//! KUMI_SERVER_BIN=path    test another binary
//! REDIS_SERVER_BIN=path   compare with another reference
//! ```

mod acl;
mod command;
mod compare;
mod coverage;
mod grammar;
mod known_differences;
mod one_sided;
mod propagation;
mod report;
mod rng;
mod run;
mod scenarios;
mod session;
mod shapes;
mod shrink;
#[path = "../support/mod.rs"]
mod support;
mod tables;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Instant, SystemTime};

use crate::command::Sequence;
use crate::coverage::Coverage;
use crate::report::Findings;
use crate::run::{Outcome, Pair};

/// Seeds of a full run: enough to reach every declared path, few enough for a minute and a half on two cores.
///
/// They are fixed, so that a change is judged by itself: what a seed nobody has tried finds in it may be older.
const FIXED_SEEDS: std::ops::Range<u64> = 1..8101;
/// How many pairs of servers work side by side.
const WORKERS: usize = 2;

#[test]
fn generated_sequences_match_the_reference() {
    let started = Instant::now();
    let findings = Findings::default();
    if let Some(seed) = number_from("KUMI_DIFF_SEED") {
        let iterations = number_from("KUMI_DIFF_ITERS").unwrap_or(1);
        println!("replaying {iterations} sequence(s) from seed {seed}");
        let coverage = run_all(Vec::new(), seed..seed + iterations, &findings);
        println!("{}", coverage.summary());
        declare(&coverage);
        findings.conclude();
        return;
    }

    let iterations = number_from("KUMI_DIFF_ITERS").map_or(FIXED_SEEDS, |count| 1..count + 1);
    let coverage = run_all(scenarios::all(), iterations, &findings);
    if let Some(count) = number_from("KUMI_DIFF_FRESH") {
        let fresh = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |now| now.as_nanos() as u64 >> 10);
        println!("fresh seed {fresh}: KUMI_DIFF_SEED={fresh} KUMI_DIFF_ITERS={count} replays it");
        let coverage = run_all(Vec::new(), fresh..fresh + count, &findings);
        println!("fresh: {}", coverage.summary());
    }
    println!(
        "{} in {:.1} s",
        coverage.summary(),
        started.elapsed().as_secs_f64()
    );

    declare(&coverage);
    findings.conclude();
    // A sample may miss what is rare.
    if number_from("KUMI_DIFF_ITERS").is_some_and(|count| count + 1 < FIXED_SEEDS.end) {
        return;
    }
    let missing = coverage.missing();
    assert!(
        missing.is_empty(),
        "never came up in the whole run:\n  {}",
        missing.join("\n  ")
    );
}

/// Writes the error paths that were seen, if that is asked for.
fn declare(coverage: &Coverage) {
    if let Some(path) = std::env::var_os("KUMI_DIFF_DECLARE") {
        std::fs::write(&path, coverage.declaration()).expect("the file can be written");
    }
}

/// The machinery itself: two servers that differ are told apart, and the sequence is cut to what shows it.
#[test]
fn a_planted_difference_is_found_and_shrunk() {
    let redis = reference_binary();
    let mut pair = Pair::start_with(&redis, &redis, &["--databases", "4"]).unwrap();
    let mut sequence = grammar::sequence(1);
    let planted = scenarios::steps("0> SET a 1\n0+ GET a\n0+ SELECT 9\n0+ GET a\n1> GET a");
    sequence.steps.splice(1..1, planted);
    let Ok(Outcome::Differs(mismatch)) = pair.run(&sequence, &mut Coverage::default()) else {
        panic!("the difference was not found");
    };
    let (shortest, mismatch) = shrink::shrink(&mut pair, &sequence, &mismatch);
    assert_eq!(
        shortest.steps,
        scenarios::steps("0> SELECT 9"),
        "{}",
        shortest.describe()
    );
    assert_eq!(mismatch.difference.reference, "+OK\\r\\n");
    assert_eq!(
        mismatch.difference.tested,
        "-ERR DB index is out of range\\r\\n"
    );
}

/// Runs scripted sequences and those of a range of seeds on several pairs of servers.
fn run_all(scripted: Vec<Sequence>, seeds: std::ops::Range<u64>, findings: &Findings) -> Coverage {
    let coverage = Mutex::new(Coverage::default());
    let next_scripted = AtomicUsize::new(0);
    let next_seed = AtomicU64::new(seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                let mut pair = Pair::start(&reference_binary(), &tested_binary())
                    .unwrap_or_else(|reason| panic!("{reason}"));
                let mut seen = Coverage::default();
                while !findings.are_enough() {
                    let index = next_scripted.fetch_add(1, Ordering::Relaxed);
                    let (sequence, seed) = match scripted.get(index) {
                        Some(sequence) => (sequence.clone(), None),
                        None => {
                            let seed = next_seed.fetch_add(1, Ordering::Relaxed);
                            if seed >= seeds.end {
                                break;
                            }
                            (grammar::sequence(seed), Some(seed))
                        }
                    };
                    if std::env::var_os("KUMI_DIFF_SHOW").is_some() {
                        println!("{}\n{}", sequence.name, sequence.describe());
                    }
                    match pair.run(&sequence, &mut seen) {
                        Ok(Outcome::Same) => {}
                        Ok(Outcome::PartedWays) => {
                            // The statistics of the servers are different from now on.
                            if let Err(reason) = pair.restart() {
                                findings.give_up(reason);
                            }
                        }
                        Ok(Outcome::Differs(mismatch)) => {
                            findings.add(&mut pair, &sequence, seed, &mismatch);
                            if let Err(reason) = pair.restart() {
                                findings.give_up(reason);
                            }
                        }
                        Ok(Outcome::Invalid(reason)) => {
                            findings.add_failure(format!(
                                "the reference cannot answer {}: {reason}\n{}",
                                sequence.name,
                                sequence.describe()
                            ));
                        }
                        Err(reason) => findings.give_up(format!("{}: {reason}", sequence.name)),
                    }
                }
                coverage
                    .lock()
                    .expect("no worker panics while it holds this")
                    .merge(seen);
            });
        }
    });
    coverage
        .into_inner()
        .expect("no worker panics while it holds this")
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{variable} is not a number: {text:?}")),
    )
}

/// The server to compare with.
fn reference_binary() -> PathBuf {
    let path = std::env::var_os("REDIS_SERVER_BIN")
        .map_or_else(|| PathBuf::from("/usr/bin/redis-server"), PathBuf::from);
    assert!(
        path.exists(),
        "{} is not there: the reference is Debian's redis-server (apt-get install redis-server), \
         or whatever REDIS_SERVER_BIN names",
        path.display()
    );
    path
}

/// The server under test.
fn tested_binary() -> PathBuf {
    std::env::var_os("KUMI_SERVER_BIN")
        .map(PathBuf::from)
        .or_else(|| option_env!("CARGO_BIN_EXE_kumi-server").map(PathBuf::from))
        .expect("the kumi-server binary is built with this test; KUMI_SERVER_BIN names another")
}
