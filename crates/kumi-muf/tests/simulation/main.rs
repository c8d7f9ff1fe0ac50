//! The protocol's guarantees under seeded simulation: lost, doubled and late pushes, broken connections, servers that
//! restart and forget, backends that die or pause at every step.
//!
//! Ten thousand runs by default. `KUMI_MUF_SEED=n cargo test -p kumi-muf --test simulation` replays one run;
//! `KUMI_MUF_RUNS=n` chooses how many.

mod plan;
mod server;
mod world;

use kumi_muf::core::CallError;
use plan::{Plan, Tally, Weather};
use world::World;

const RUNS: u64 = 10_000;

/// Past all deadlines, outages and lives of keys.
const END_MS: u64 = 75_000;

#[test]
fn every_caller_gets_exactly_one_result_whatever_goes_wrong() {
    if let Some(seed) = number("KUMI_MUF_SEED") {
        let tally = check(seed).unwrap_or_else(|broken| panic!("{broken}"));
        println!("{tally:#?}");
        return;
    }
    let runs = number("KUMI_MUF_RUNS").unwrap_or(RUNS);
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
    let tallies: Vec<Result<Tally, String>> = std::thread::scope(|scope| {
        let worker = |first: u64| {
            move || {
                let mut sum = Tally::default();
                for seed in (first..runs).step_by(threads as usize) {
                    sum.merge(&check(seed)?);
                }
                Ok(sum)
            }
        };
        let workers: Vec<_> = (0..threads)
            .map(|first| scope.spawn(worker(first)))
            .collect();
        workers
            .into_iter()
            .map(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|_| Err("a run panicked".into()))
            })
            .collect()
    });
    let mut sum = Tally::default();
    for tally in tallies {
        sum.merge(&tally.unwrap_or_else(|broken| panic!("{broken}")));
    }
    println!("{runs} runs: {sum:#?}");
    if runs >= RUNS {
        assert_not_vacuous(&sum);
    }
}

/// Seeds past the default runs that have shown a fault of the core.
#[test]
fn seeds_that_have_shown_a_fault_keep_the_guarantees() {
    // A large request whose event was lost was not set again while other large requests were written.
    check(17_820).unwrap_or_else(|broken| panic!("{broken}"));
}

/// Runs a seed; a sentence about what was violated and how to see it again, if something was.
fn check(seed: u64) -> Result<Tally, String> {
    let told = std::panic::catch_unwind(|| {
        let mut world = World::new(Plan::new(seed));
        world.run(END_MS);
        world.count_backends();
        guarantees(&world).map(|()| world.tally.clone())
    });
    let result = told.unwrap_or_else(|_| Err("the core or the model panicked".into()));
    result.map_err(|what| {
        format!("seed {seed}: {what}\nreplay: KUMI_MUF_SEED={seed} cargo test -p kumi-muf --test simulation")
    })
}

fn guarantees(world: &World) -> Result<(), String> {
    if let Some(violation) = world.violations.first() {
        return Err(violation.clone());
    }
    let quiet = world.plan.weather == Weather::Calm;
    let remembered = world.plan.weather == Weather::Amnesia;
    for caller in world.callers.values() {
        let name = &caller.request;
        let wanted = usize::from(!caller.cancelled);
        if caller.results.len() != wanted {
            return Err(format!(
                "{name} got {} results: {:?}",
                caller.results.len(),
                caller.results
            ));
        }
        for (at, result) in &caller.results {
            let payload = match result {
                Ok(payload) | Err(CallError::Remote(payload)) => Some(payload),
                Err(_) => None,
            };
            if payload.is_some_and(|payload| *payload != caller.payload) {
                return Err(format!("{name} got somebody else's answer"));
            }
            // A pause may delay a caller itself; nothing else may.
            if *at > caller.deadline + 1_000 + 7_000 {
                return Err(format!(
                    "{name} ended {} ms after its deadline",
                    at - caller.deadline
                ));
            }
            // A backend that lost the request got it again: it was run, or is still running.
            let told = caller.deadline - caller.began >= 15_000;
            if remembered
                && told
                && matches!(
                    result,
                    Err(CallError::NoResponder | CallError::Disconnected)
                )
            {
                return Err(format!(
                    "{name} ended in {result:?} although the server came back"
                ));
            }
            // A push that was lost is made up for by the next look, once per lease. Large answers are read one after the other.
            let answered_at = world.server.answered_at.get(name);
            let reads_ms = world.plan.bulk_ms.unwrap_or(0) * world.plan.calls as u64;
            if quiet && answered_at.is_some_and(|answered_at| *at > answered_at + 2_500 + reads_ms)
            {
                return Err(format!(
                    "{name} was answered long before its caller was told at {at}"
                ));
            }
            let patient = caller.deadline >= at + 3_000;
            if quiet && payload.is_none() && patient {
                return Err(format!("{name} ended in {result:?} although nothing broke"));
            }
        }
        let runs = world.runs.get(name).map_or(&[][..], Vec::as_slice);
        if quiet && runs.is_empty() && caller.results.iter().any(|(_, result)| result.is_ok()) {
            return Err(format!("{name} was answered and never run"));
        }
        rerun_is_excused(world, name, runs, quiet)?;
    }
    for (answers, ends) in world.gathers.values() {
        let mut names: Vec<&str> = answers
            .iter()
            .map(|answer| answer.backend.as_str())
            .collect();
        names.sort_unstable();
        let told = names.len();
        names.dedup();
        if names.len() != told || ends.len() != 1 {
            return Err(format!(
                "a gather heard a backend twice or ended {} times: {answers:?}",
                ends.len()
            ));
        }
        if quiet && names.len() > world.plan.backends {
            return Err(format!(
                "{} of {} backends answered",
                names.len(),
                world.plan.backends
            ));
        }
    }
    Ok(())
}

/// A second run needs a lapsed lease before any answer, or a server that lost writes.
fn rerun_is_excused(
    world: &World,
    name: &str,
    runs: &[world::Run],
    quiet: bool,
) -> Result<(), String> {
    for (first, second) in runs.iter().zip(runs.iter().skip(1)) {
        // A request that was written again after a loss says that it may have run.
        let rewritten = world.server.rewritten.get(name);
        let is_between = |at: &u64| first.at < *at && *at <= second.at;
        let is_rewritten = rewritten.is_some_and(|times| times.iter().any(is_between));
        if is_rewritten && second.attempt == 1 {
            return Err(format!(
                "{name} was written again after a run and run as attempt 1: {runs:?}, {rewritten:?}"
            ));
        }
        let lost = world.server.lost_writes_at.is_some();
        if lost {
            continue;
        }
        if quiet {
            return Err(format!("{name} ran twice although nothing broke: {runs:?}"));
        }
        let claims = world.server.claims.get(name).map_or(&[][..], Vec::as_slice);
        let claim = claims
            .iter()
            .rev()
            .find(|(at, _)| *at <= second.at && *at >= first.at);
        let Some((claimed_at, _)) = claim else {
            return Err(format!(
                "{name} ran twice on one claim: {runs:?}, claims {claims:?}"
            ));
        };
        if world
            .server
            .answered_at
            .get(name)
            .is_some_and(|answered_at| answered_at < claimed_at)
        {
            return Err(format!(
                "{name} was answered, claimed again and run again: {runs:?}, claims {claims:?}"
            ));
        }
    }
    Ok(())
}

fn assert_not_vacuous(sum: &Tally) {
    for name in [
        "lost push",
        "duplicated push",
        "broken command connection",
        "broken push connection",
        "pause",
        "death",
        "restart that lost writes",
        "restart that kept all",
        "silently lost writes",
        "answer",
        "Remote",
        "NoResponder",
        "HandlerTimeout",
        "Disconnected",
        "cancelled call",
        "gathered answer",
        "takeover",
        "swept request",
        "lapsed lease",
        "resent answer",
        "silent backend",
        "lost claim",
        "large value",
        "rewritten request",
    ] {
        let count = sum.counts.get(name).copied().unwrap_or(0);
        assert!(count >= 50, "{name} happened only {count} times: {sum:#?}");
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
