//! `kumi-bench eviction`: the share of hits of a full cache, its resident memory, and what an evicting SET costs, beside
//! redis-server.
//!
//! A client asks for the keys of a trace; a key that is missing is set. Each trace runs twice on each server: with room
//! for the same number of keys, and with the same `maxmemory`. What room a number of keys takes is found by filling a
//! fresh server of that kind. Both servers date accesses by the second, so the share of hits under LRU depends on how
//! many seconds a key stays: `--seconds` sets how long a trace takes.

mod resident;
pub(crate) mod traces;

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::args::EvictionArgs;
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::describe;
use crate::store::servers::{self, Contender, Kind, Stage};
use crate::wire::{self, Connection};
use traces::Trace;

/// Requests in flight.
const BATCH: usize = 50;
/// The share of a trace that only fills the cache.
const WARM_UP: usize = 5;
/// Points of the share of hits that may be lost with the same number of keys.
const LOST_POINTS: f64 = 0.5;

/// What bounds the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    SameKeys,
    SameMemory,
}

/// Measures and prints the report.
pub(crate) fn run(args: &EvictionArgs) -> Result<()> {
    let progress = Progress::new();
    let mut report = Report::default();
    let hint = "install Debian's redis-server package, or name one with --redis-server";
    let contenders = [
        servers::kumi(args.kumi_server.as_deref(), &progress)?,
        Contender::new(
            "redis",
            Kind::Redis,
            servers::find_program(&args.redis_server, hint)?,
        ),
    ];
    let stage = Stage::new(args.no_pin)?;
    describe(&stage, &contenders, &mut report);
    let mut room = Vec::new();
    for contender in &contenders {
        room.push(room_for(&stage, contender, args.keys)?);
        let bytes = room[room.len() - 1];
        report.note(format!(
            "{} keys take {bytes} bytes of maxmemory in {}",
            args.keys,
            contender.name()
        ));
    }
    let mut rows = Vec::new();
    for policy in ["allkeys-lru", "allkeys-lfu"] {
        for &trace in args.traces() {
            progress.line(&format!("{policy}, {}", trace.name()));
            let runs = run_trace(args, &stage, &contenders, &room, policy, trace)?;
            for bound in [Bound::SameKeys, Bound::SameMemory] {
                let mut samples = Vec::new();
                for (index, contender) in contenders.iter().enumerate() {
                    let of_it = |run: &&Run| run.contender == index && run.bound == bound;
                    let hits = runs.iter().filter(of_it).map(|run| run.hits).collect();
                    let sample = Sample::new(hits).context("no run was made")?;
                    samples.push((contender.name(), sample));
                }
                rows.push(report.shown(row(policy, trace, bound, samples)));
            }
        }
    }
    report.section(
        format!(
            "Hits of a full cache of {} keys, {} accesses in {} s",
            args.keys, args.accesses, args.seconds
        ),
        rows,
    );
    let mut row = Row::new("eviction.set", "SET that evicts a key: server CPU", "us/op")
        .goal(Some(Goal::RatioAtMost(1.0)));
    for contender in &contenders {
        progress.line(&format!("evicting SETs: {}", contender.name()));
        let mut costs = Vec::new();
        for _ in 0..args.runs.get() {
            costs.push(evicting_set(&stage, contender, args.set_keys)?);
        }
        row.add(
            contender.name(),
            Sample::new(costs).context("no run was made")?,
        );
    }
    report.section(
        format!(
            "A SET of a new key at maxmemory, {} keys, allkeys-lru",
            args.set_keys
        ),
        vec![row],
    );
    progress.line("resident memory");
    let limit = args.memory_mib.get() * 1024 * 1024;
    let rows = resident::measure(&stage, &contenders, limit, args.runs.get())?;
    report.section(
        format!(
            "Resident memory for each byte of used_memory, maxmemory {} MiB, allkeys-lru",
            args.memory_mib
        ),
        rows,
    );
    report.end();
    Ok(())
}

fn row(policy: &str, trace: Trace, bound: Bound, samples: Vec<(&'static str, Sample)>) -> Row {
    let (name, label) = match bound {
        Bound::SameKeys => ("keys", "same number of keys"),
        Bound::SameMemory => ("memory", "same maxmemory"),
    };
    let redis = samples.iter().find(|(name, _)| *name == "redis");
    let goal = redis.map(|(_, sample)| match bound {
        Bound::SameKeys => Goal::AtLeast(sample.median() - LOST_POINTS),
        Bound::SameMemory => Goal::AtLeast(sample.median()),
    });
    let mut row = Row::new(
        format!("eviction.{policy}.{}.{name}", trace.name()),
        format!("{policy}, {}, {label}", trace.name()),
        "%",
    )
    .goal(goal);
    for (name, sample) in samples {
        row.add(name, sample);
    }
    row
}

fn key(number: u32) -> String {
    format!("key:{number:012}")
}

const VALUE: &[u8] = b"value:0123456789";

/// `used_memory` of a server with so many keys.
fn room_for(stage: &Stage, contender: &Contender, keys: usize) -> Result<u64> {
    let server = contender.start(stage, &[])?;
    wire::load(server.address(), keys, |index, out| {
        wire::push_command(out, &[b"SET", key(index as u32).as_bytes(), VALUE]);
    })?;
    let mut connection = Connection::open(server.address())?;
    info(&mut connection, "memory", "used_memory:")
}

/// A number that INFO shows.
fn info(connection: &mut Connection, section: &str, field: &str) -> Result<u64> {
    connection.command(&[b"INFO", section.as_bytes()])?;
    let mut value = None;
    // The section ends with the bulk string, whose last line is empty or another field.
    connection.send(b"*1\r\n$4\r\nPING\r\n")?;
    loop {
        let line = connection.reply()?;
        if line == b"+PONG" {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(number) = text.strip_prefix(field) {
            value = number.parse().ok();
        }
    }
    value.with_context(|| format!("INFO does not show {field}"))
}

/// One run of a trace on one server.
struct Run {
    /// Which of the servers it was.
    contender: usize,
    bound: Bound,
    /// How many of 100 accesses found their key.
    hits: f64,
}

/// Runs the traces of all seeds on all servers at the same time: what is measured depends on seconds, not on speed.
fn run_trace(
    args: &EvictionArgs,
    stage: &Stage,
    contenders: &[Contender],
    room: &[u64],
    policy: &str,
    trace: Trace,
) -> Result<Vec<Run>> {
    let redis_room = *room.last().context("redis-server takes part")?;
    let pace = Duration::from_secs_f64(args.seconds);
    let mut started = Vec::new();
    for (index, (contender, &own_room)) in contenders.iter().zip(room).enumerate() {
        for (bound, limit) in [(Bound::SameKeys, own_room), (Bound::SameMemory, redis_room)] {
            let limit = limit.to_string();
            let directives = [("maxmemory", limit.as_str()), ("maxmemory-policy", policy)];
            for seed in 1..=args.seeds {
                started.push((index, bound, seed, contender.start(stage, &directives)?));
            }
        }
    }
    thread::scope(|scope| {
        let running: Vec<_> = started
            .iter()
            .map(|(contender, bound, seed, server)| {
                let address = server.address();
                let run = scope.spawn(move || {
                    let keys = trace.keys(args.keys, args.accesses, *seed);
                    share_of_hits(address, &keys, pace)
                });
                (*contender, *bound, run)
            })
            .collect();
        let mut runs = Vec::new();
        for (contender, bound, run) in running {
            let hits = run.join().map_err(|_| anyhow!("a client panicked"))?;
            let name = contenders[contender].name();
            let hits = hits.with_context(|| format!("{name}, {policy}, {}", trace.name()))?;
            runs.push(Run {
                contender,
                bound,
                hits,
            });
        }
        Ok(runs)
    })
}

/// Runs a trace; returns how many of 100 accesses found their key, without those of the warm-up.
fn share_of_hits(address: SocketAddr, keys: &[u32], pace: Duration) -> Result<f64> {
    let mut connection = Connection::open(address)?;
    let counted_from = keys.len() / WARM_UP;
    let (mut hits, mut asked) = (0_usize, 0_usize);
    let (mut out, mut missing) = (Vec::new(), Vec::new());
    let start = Instant::now();
    for (batch, numbers) in keys.chunks(BATCH).enumerate() {
        let due = pace.mul_f64((batch * BATCH) as f64 / keys.len() as f64);
        thread::sleep(due.saturating_sub(start.elapsed()));
        out.clear();
        for &number in numbers {
            wire::push_command(&mut out, &[b"GET", key(number).as_bytes()]);
        }
        connection.send(&out)?;
        missing.clear();
        for &number in numbers {
            let found = connection.reply()? != b"$-1";
            if found {
                connection.reply()?;
            } else if !missing.contains(&number) {
                missing.push(number);
            }
            if batch * BATCH >= counted_from {
                asked += 1;
                hits += usize::from(found);
            }
        }
        out.clear();
        for &number in &missing {
            wire::push_command(&mut out, &[b"SET", key(number).as_bytes(), VALUE]);
        }
        connection.send(&out)?;
        for _ in &missing {
            connection.reply()?;
        }
    }
    if info(&mut connection, "stats", "evicted_keys:")? == 0 {
        bail!("nothing was evicted: the trace is too short");
    }
    Ok(hits as f64 * 100.0 / asked as f64)
}

/// Microseconds of server CPU for a SET of a new key in a full store.
fn evicting_set(stage: &Stage, contender: &Contender, keys: usize) -> Result<f64> {
    let limit = room_for(stage, contender, keys)?.to_string();
    let directives = [
        ("maxmemory", limit.as_str()),
        ("maxmemory-policy", "allkeys-lru"),
    ];
    let server = contender.start(stage, &directives)?;
    let set = |from: usize, count: usize| {
        wire::load(server.address(), count, |index, out| {
            let key = key((from + index) as u32);
            wire::push_command(out, &[b"SET", key.as_bytes(), VALUE]);
        })
    };
    set(0, keys + keys / 10)?;
    let mut connection = Connection::open(server.address())?;
    let evicted = info(&mut connection, "stats", "evicted_keys:")?;
    let before = server.cpu_time()?;
    set(2 * keys, keys)?;
    let spent = server.cpu_time()?.since(before);
    let evicted = info(&mut connection, "stats", "evicted_keys:")? - evicted;
    if (evicted as f64) < 0.9 * keys as f64 {
        bail!("{keys} SETs evicted only {evicted} keys");
    }
    Ok(spent.busy_ns as f64 / 1000.0 / keys as f64)
}
