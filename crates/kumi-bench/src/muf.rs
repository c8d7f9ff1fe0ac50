//! `kumi-bench muf`: MUF calls on kumi-server, redis-server and valkey-server, beside NATS request/reply.
//!
//! Callers and backends of all contenders live in this process, on one thread: MUF pays for its client work with the
//! same single core that NATS has. Every run gets a fresh server, so that the keys one run leaves behind do not expire
//! in another one's time. The keys of a run expire in its own: requests do after a second, answers (30 s) do not.

mod load;
mod parties;
mod steady;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::{MufArgs, MufPart};
use crate::muf::load::{Load, Outcome};
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::describe;
use crate::store::servers::{self, Contender, Kind, Stage};

/// What everything is compared with.
const NATS: &str = "nats";
const IN_FLIGHT: [usize; 2] = [1, 64];
const BACKENDS: [usize; 3] = [1, 2, 4];
/// Where Debian puts nats-server, which is not on every PATH.
const DEBIAN_NATS: &str = "/usr/sbin/nats-server";

/// A statistic of a run: its name in figures, its name for people, its unit, and how to get it.
type Statistic = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Outcome) -> f64,
);

const STATISTICS: [Statistic; 5] = [
    ("p50", "p50", "us", |run| run.latencies_us.percentile(50.0)),
    ("p99", "p99", "us", |run| run.latencies_us.percentile(99.0)),
    ("throughput", "throughput", "calls/s", |run| {
        run.calls_per_second
    }),
    ("server_us", "server CPU per call", "us", |run| {
        run.server_us
    }),
    ("client_us", "client CPU per call", "us", |run| {
        run.client_us
    }),
];

/// Measures and prints the report.
pub(crate) fn run(args: &MufArgs) -> Result<()> {
    let (runs, seconds) = if args.quick { (3, 1.0) } else { (5, 3.0) };
    let runs = args.runs.map_or(runs, |runs| runs.get());
    let seconds = args.seconds.unwrap_or(seconds).max(0.1);
    let progress = Progress::new();
    let mut report = args.servers.report(NATS);
    let mut contenders = servers::contenders(&args.servers, &progress, &mut report)?;
    if args.servers.against.is_none() {
        let nats = find_nats(&args.nats_server)?;
        contenders.push(Contender::new(NATS, Kind::Nats, nats));
    }

    let stage = Stage::new(args.no_pin)?;
    describe(&stage, &contenders, &mut report);
    let period = Duration::from_secs_f64(seconds);
    if args.wants(MufPart::Calls) {
        measure_calls(&stage, &contenders, runs, period, &progress, &mut report)?;
    }
    if args.wants(MufPart::Commands) {
        measure_commands(&stage, &contenders, period, &progress, &mut report)?;
    }
    if args.wants(MufPart::Steady) {
        let (keys, seconds) = if args.quick {
            (100_000, 1)
        } else {
            (10_000_000, 20)
        };
        let keys = args.keys.map_or(keys, |keys| keys.get());
        let period = Duration::from_secs(seconds);
        measure_steady(&stage, &contenders, keys, period, &progress, &mut report)?;
    }
    report.note(
        "a call is four round trips (request to push, claim, answer to push, read), NATS's is two; a server that pushed \
         values with its events would save the last of them (see \"one command alone\") and N+1 of 4+3N commands",
    );
    report.end();
    Ok(())
}

fn find_nats(program: &Path) -> Result<PathBuf> {
    let debian = PathBuf::from(DEBIAN_NATS);
    if program == Path::new("nats-server")
        && servers::on_path(program).is_none()
        && debian.is_file()
    {
        return Ok(debian);
    }
    let hint = "install it with `apt-get install nats-server`, or name one with --nats-server";
    servers::find_program(program, hint)
}

/// Latency, throughput and CPU with one backend.
fn measure_calls(
    stage: &Stage,
    contenders: &[Contender],
    runs: usize,
    period: Duration,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let mut task = progress.task("calls", IN_FLIGHT.len() * runs * contenders.len());
    for in_flight in IN_FLIGHT {
        let load = Load {
            in_flight,
            backends: 1,
            period,
        };
        let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); contenders.len()];
        for number in 0..runs {
            for (contender, outcomes) in contenders.iter().zip(&mut outcomes) {
                let name = contender.name();
                task.begin(&format!(
                    "{name}, {in_flight} in flight, run {}",
                    number + 1
                ));
                let outcome = load::run(stage, contender, load)
                    .with_context(|| format!("cannot measure {name}"))?;
                outcomes.push(outcome);
                task.end();
            }
        }
        let mut rows = Vec::new();
        for (name, label, unit, statistic) in STATISTICS {
            let figure = format!("muf.f{in_flight}.{name}");
            let mut row = Row::new(figure, label, unit).goal(call_goal(in_flight, name));
            for (contender, outcomes) in contenders.iter().zip(&outcomes) {
                let values = outcomes.iter().map(statistic).collect();
                row.add(
                    contender.name(),
                    Sample::new(values).context("no run was made")?,
                );
            }
            rows.push(row);
        }
        if in_flight == 1 {
            rows.push(round_trips(contenders, &outcomes));
        }
        report.section(
            format!(
                "Calls of {} bytes, {in_flight} in flight, one backend",
                parties::PAYLOAD.len()
            ),
            rows,
        );
    }
    Ok(())
}

/// One command and its reply: what the last of a call's four round trips, reading the answer, costs.
fn round_trips(contenders: &[Contender], outcomes: &[Vec<Outcome>]) -> Row {
    let mut row = Row::new("muf.f1.round_trip", "one command alone", "us");
    for (contender, outcomes) in contenders.iter().zip(outcomes) {
        let times_us = outcomes
            .iter()
            .filter_map(|run| run.round_trip_us)
            .collect();
        if let Some(times_us) = Sample::new(times_us) {
            row.add(contender.name(), times_us);
        }
    }
    row
}

fn call_goal(in_flight: usize, statistic: &str) -> Option<Goal> {
    match (in_flight, statistic) {
        (1, "p50") => Some(Goal::RatioAtMost(2.2)),
        (64, "throughput") => Some(Goal::RatioAtLeast(0.4)),
        _ => None,
    }
}

/// Those that MUF runs on.
fn redis_servers(contenders: &[Contender]) -> Vec<&Contender> {
    let is_redis = |contender: &&Contender| contender.kind() == Kind::Redis;
    contenders.iter().filter(is_redis).collect()
}

/// What the server has to do for a call, with more and more backends that match it.
fn measure_commands(
    stage: &Stage,
    contenders: &[Contender],
    period: Duration,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let servers = redis_servers(contenders);
    let mut task = progress.task("commands", BACKENDS.len() * servers.len());
    let mut rows = Vec::new();
    for backends in BACKENDS {
        let load = Load {
            in_flight: 1,
            backends,
            period,
        };
        let goal = Goal::AtMost((4 + 3 * backends) as f64);
        let mut row = Row::new(
            format!("muf.commands.b{backends}"),
            format!("{backends} matching"),
            "commands/call",
        )
        .goal(Some(goal));
        for contender in &servers {
            let name = contender.name();
            task.begin(&format!("{name}, {backends} backends"));
            let outcome = load::run(stage, contender, load)
                .with_context(|| format!("cannot count commands of {name}"))?;
            // What sweeps look up now and then is below this precision.
            let commands = (outcome.commands_per_call * 100.0).round() / 100.0;
            row.add(name, Sample::single(commands));
            task.end();
        }
        rows.push(row);
    }
    report.section("Server commands per call, by backends", rows);
    Ok(())
}

/// What backends that wait cost a server that holds many keys of others.
fn measure_steady(
    stage: &Stage,
    contenders: &[Contender],
    keys: usize,
    period: Duration,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let servers = redis_servers(contenders);
    let mut task = progress.task("steady", servers.len());
    let backends = steady::BACKENDS;
    let mut alone = Row::new("muf.steady.alone", "server without clients", "% of a core");
    let mut waiting = Row::new(
        "muf.steady.waiting",
        format!("{backends} backends wait"),
        "% of a core",
    )
    .goal(Some(Goal::AtMost(2.0)));
    let mut answered = Row::new(
        "muf.steady.answered",
        format!("answered of {} calls", steady::CALLS),
        "calls",
    )
    .goal(Some(Goal::AtLeast(steady::CALLS as f64)));
    for contender in servers {
        let name = contender.name();
        task.begin(&format!("{name}, {keys} keys of others"));
        let outcome = steady::run(stage, contender, keys, period)
            .with_context(|| format!("cannot measure {name} beside {keys} keys"))?;
        alone.add(name, Sample::single(outcome.alone_percent));
        waiting.add(name, Sample::single(outcome.waiting_percent));
        answered.add(name, Sample::single(outcome.answered as f64));
        task.end();
    }
    report.section(
        format!("{backends} backends beside {keys} keys of others"),
        vec![alone, waiting, answered],
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_nats_server_is_named_with_what_to_install() {
        let error = find_nats(Path::new("/nowhere/nats-server")).unwrap_err();
        assert!(
            error.to_string().contains("apt-get install nats-server"),
            "{error}"
        );
    }

    #[test]
    fn one_statistic_of_each_load_has_a_goal() {
        for in_flight in IN_FLIGHT {
            let aimed = STATISTICS
                .iter()
                .filter(|(name, ..)| call_goal(in_flight, name).is_some());
            assert_eq!(aimed.count(), 1, "{in_flight} in flight");
        }
    }
}
