//! Unison beside raw QUIC and its peers: latency, throughput and CPU of calls that echo random bytes.
//!
//! Every contestant has its server and its client on a current-thread runtime each, and each of those on a core of its
//! own; runs of all contestants alternate. The in-memory transport has no two sides: all of it runs on the client's
//! core. Linux only, because CPU time per thread comes from `/proc`.

mod bulk;
mod load;
mod ours;
mod peers;
mod raw;
mod verdicts;

use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::UnisonArgs;
use crate::cores::Cores;
use crate::progress::Progress;
use crate::report::{Report, Row};
use crate::stats::Sample;
use crate::unison::load::{Load, Outcome, Sides};
use crate::unison::peers::Peers;
use crate::unison::raw::Style;
use crate::unison::verdicts::{Bound, Verdict};

const FLOOR: &str = "quinn-floor";
const RAW_STREAMS: &str = "quinn-streams";
/// Unison on one channel. The report knows the home side by this name.
const OURS: &str = "kumi";
const OUR_STREAMS: &str = "kumi-streams";
const MEMORY: &str = "kumi-memory";
const SIZES: [(usize, &str); 2] = [(64, "64 B"), (64 * 1024, "64 KiB")];
const IN_FLIGHT: [usize; 2] = [1, 64];

/// A statistic of a run: its name in figures, its name for people, its unit, and how to get it.
type Statistic = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Outcome) -> f64,
);

const STATISTICS: [Statistic; 5] = [
    ("p50", "p50", "us", |run| run.p50_us),
    ("p99", "p99", "us", |run| run.p99_us),
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

/// All runs of one load, by contestant.
struct Results {
    size: usize,
    in_flight: usize,
    runs: Vec<(&'static str, Vec<Outcome>)>,
}

impl Results {
    fn sample(&self, contestant: &str, statistic: fn(&Outcome) -> f64) -> Option<Sample> {
        let (_, runs) = self.runs.iter().find(|(name, _)| *name == contestant)?;
        Sample::new(runs.iter().map(statistic).collect())
    }
}

/// Measures and prints the report.
pub(crate) fn run(args: &UnisonArgs) -> Result<()> {
    let (runs, seconds) = if args.quick { (3, 0.5) } else { (5, 1.5) };
    let runs = args.runs.map_or(runs, |runs| runs.get());
    let period = Duration::from_secs_f64(args.seconds.unwrap_or(seconds).max(0.1));
    let progress = Progress::new();
    let peers = if args.no_peers {
        None
    } else {
        Some(Peers::build(&progress)?)
    };
    let cores = if args.no_pin {
        Cores::Unpinned
    } else {
        Cores::pinned()
    };
    let sides = match &cores {
        Cores::Unpinned => Sides::default(),
        Cores::Split { server, client } => Sides {
            server: server.clone(),
            client: client.clone(),
        },
    };

    let mut all = Vec::new();
    let names = contestants(peers.as_ref(), args);
    let mut task = progress.task("calls", SIZES.len() * IN_FLIGHT.len() * runs * names.len());
    for (size, _) in SIZES {
        for in_flight in IN_FLIGHT {
            let load = Load {
                size,
                in_flight,
                period,
            };
            let mut results = Results {
                size,
                in_flight,
                runs: names.iter().map(|name| (*name, Vec::new())).collect(),
            };
            for _ in 0..runs {
                for (name, outcomes) in &mut results.runs {
                    task.begin(&format!("{name}, {size} bytes, {in_flight} in flight"));
                    let outcome = measure(name, &sides, load, peers.as_ref())
                        .with_context(|| format!("cannot measure {name}"))?;
                    outcomes.push(outcome);
                    task.end();
                }
            }
            all.push(results);
        }
    }
    let beside_bulk = bulk::measure(&sides, runs, period, &progress)?;
    print(&cores, &all, &beside_bulk, peers.as_ref())
}

fn contestants(peers: Option<&Peers>, args: &UnisonArgs) -> Vec<&'static str> {
    let mut names = vec![FLOOR, RAW_STREAMS, OURS, OUR_STREAMS, MEMORY];
    if let Some(peers) = peers {
        names.extend(&peers.names);
    }
    names.retain(|name| args.only.is_empty() || args.only.iter().any(|only| only == name));
    names
}

/// One run of one contestant, with a fresh server and connection.
fn measure(name: &str, sides: &Sides, load: Load, peers: Option<&Peers>) -> Result<Outcome> {
    let runtime = load::runtime()?;
    match name {
        FLOOR => {
            let (server, reach) = raw::start(sides, Style::PingPong(load.size))?;
            runtime.block_on(async {
                let client = raw::Client::connect(&reach).await?;
                let mut callers = Vec::new();
                for _ in 0..load.in_flight {
                    callers.push(client.open_stream(None).await?);
                }
                load::measure(Some(&server), callers, load).await
            })
        }
        RAW_STREAMS => {
            let (server, reach) = raw::start(sides, Style::StreamPerRequest)?;
            runtime.block_on(async {
                let client = raw::Client::connect(&reach).await?;
                let callers = vec![client.stream_per_request(None); load.in_flight];
                load::measure(Some(&server), callers, load).await
            })
        }
        OURS | OUR_STREAMS => {
            let (server, reach) = ours::start(sides)?;
            runtime.block_on(async {
                let client = ours::Client::connect(&reach).await?;
                let callers = vec![client.caller(name == OUR_STREAMS); load.in_flight];
                load::measure(Some(&server), callers, load).await
            })
        }
        MEMORY => runtime.block_on(async {
            let client = ours::Client::in_memory().await?;
            let callers = vec![client.caller(false); load.in_flight];
            load::measure(None, callers, load).await
        }),
        peer => peers
            .context("the peers were not built")?
            .run(peer, sides, load),
    }
}

fn print(
    cores: &Cores,
    all: &[Results],
    beside_bulk: &bulk::Results,
    peers: Option<&Peers>,
) -> Result<()> {
    // One load is compared with the floor, the other with a stream per request, as the goals are.
    let mut reports = [Report::against(FLOOR), Report::against(RAW_STREAMS)];
    for results in all {
        let (_, size_name) = SIZES
            .into_iter()
            .find(|(size, _)| *size == results.size)
            .context("a size has no name")?;
        let mut rows = Vec::new();
        for (name, label, unit, statistic) in STATISTICS {
            let figure = format!("unison.b{}.f{}.{name}", results.size, results.in_flight);
            let mut row = Row::new(figure, label, unit);
            for (contestant, _) in &results.runs {
                let sample = results.sample(contestant, statistic);
                row.add(contestant, sample.context("no run was made")?);
            }
            rows.push(row);
        }
        let title = format!("Calls of {size_name}, {} in flight", results.in_flight);
        reports[usize::from(results.in_flight > 1)].section(title, rows);
    }
    let [one, many] = &mut reports;
    many.section(
        "64 B calls beside two transfers of 1 MiB that are always in flight",
        beside_bulk.rows()?,
    );
    many.note(format!("cores: {cores}"));
    many.note("kumi-memory runs client and server on one core, so all of its CPU is the client's");
    if let Some(peers) = peers {
        many.note("club-unison's client takes JSON only: its bytes travel as a base64 string");
        if let Some(missing) = &peers.missing {
            many.note(missing.clone());
        }
    }
    let verdicts = judge(all, beside_bulk)?;
    print!("\n{}{}", one.tables(), many.tables());
    println!("\nGoals");
    for verdict in &verdicts {
        println!("{}", verdict.line());
    }
    println!();
    for verdict in &verdicts {
        println!("{}", verdict.figure());
    }
    Ok(())
}

/// Everything the project wants to reach, as far as the contestants were run.
fn judge(all: &[Results], beside_bulk: &bulk::Results) -> Result<Vec<Verdict>> {
    let mut verdicts = Vec::new();
    for results in all {
        let (size, in_flight) = (results.size, results.in_flight);
        let place = format!("{size} bytes, {in_flight} in flight");
        let p50 = |name| results.sample(name, |run| run.p50_us);
        let rate = |name| results.sample(name, |run| run.calls_per_second);
        let prefix = format!("unison.b{size}.f{in_flight}");
        if in_flight == 1
            && let (Some(ours), Some(floor)) = (p50(OURS), p50(FLOOR))
        {
            verdicts.push(Verdict::new(
                format!("{prefix}.p50_vs_floor"),
                format!("{place}: p50 against the floor"),
                &ours,
                &floor,
                Bound::AtMost(1.25),
            ));
        }
        if let Some(raw) = rate(RAW_STREAMS) {
            let bound = if size == 64 && in_flight == 64 {
                Some(Bound::AtLeast(2.0))
            } else {
                (size > 64).then_some(Bound::AtLeast(0.9))
            };
            for name in [OURS, OUR_STREAMS] {
                // A stream for each small call is there for comparison only.
                let judged = name == OURS || size > 64;
                if let (Some(bound), Some(ours), true) = (bound, rate(name), judged) {
                    verdicts.push(Verdict::new(
                        format!("{prefix}.{name}.throughput_vs_raw_streams"),
                        format!("{place}: {name}'s throughput against a raw stream per request"),
                        &ours,
                        &raw,
                        bound,
                    ));
                }
            }
        }
        if size == 64 && in_flight == 64 {
            for peer in ["tonic", "tarpc", "club-unison"] {
                if let (Some(ours), Some(theirs)) = (rate(OURS), rate(peer)) {
                    verdicts.push(Verdict::new(
                        format!("{prefix}.throughput_vs_{peer}"),
                        format!("{place}: throughput against {peer}"),
                        &ours,
                        &theirs,
                        Bound::AtLeast(1.0),
                    ));
                }
            }
        }
    }
    verdicts.push(Verdict::new(
        "unison.bulk.p99_vs_raw",
        "64 B calls beside 1 MiB transfers: p99 against raw quinn",
        &beside_bulk.p99(OURS)?,
        &beside_bulk.p99(RAW_STREAMS)?,
        Bound::AtMost(1.5),
    ));
    Ok(verdicts)
}
