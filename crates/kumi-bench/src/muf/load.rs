//! One run: a fresh server, its parties, some calls to warm up, and then calls that are timed.

use std::net::SocketAddr;
use std::process;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

use crate::muf::parties::{self, Caller};
use crate::procfs::CpuTime;
use crate::stats::Sample;
use crate::store::servers::{Contender, Kind, Server, Stage};
use crate::wire::{self, Connection};

/// How long calls are made before they count.
const WARM_UP: Duration = Duration::from_millis(300);

/// How long single commands are timed, after the calls.
const READ_PERIOD: Duration = Duration::from_millis(300);

/// Commands that calls are made of. All others are upkeep by the clock (PING, SCAN) or ours (INFO).
const CALL_COMMANDS: [&str; 5] = ["set", "getrange", "exists", "pexpire", "incr"];

/// What is asked of a contender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    pub(super) in_flight: usize,
    /// Backends that match every call.
    pub(super) backends: usize,
    pub(super) period: Duration,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) latencies_us: Sample,
    pub(super) calls_per_second: f64,
    pub(super) server_us: f64,
    pub(super) client_us: f64,
    /// 0 on NATS, which has no commands in this sense.
    pub(super) commands_per_call: f64,
    /// The median of one command and its reply, one at a time; none on NATS.
    pub(super) round_trip_us: Option<f64>,
}

/// What had been used up at some moment.
struct Reading {
    at: Instant,
    server: CpuTime,
    client: CpuTime,
    commands: u64,
}

/// Starts the server, makes the calls and ends the server again.
pub(super) fn run(stage: &Stage, contender: &Contender, load: Load) -> Result<Outcome> {
    let server = contender.start(stage, &[])?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    runtime.block_on(measure(contender.kind(), &server, load))
}

async fn measure(kind: Kind, server: &Server, load: Load) -> Result<Outcome> {
    let parties = parties::connect(kind, server.address(), load.backends).await?;
    call_for(&parties.caller, load.in_flight, WARM_UP).await?;
    let before = read(kind, server)?;
    let latencies_us = call_for(&parties.caller, load.in_flight, load.period).await?;
    let after = read(kind, server)?;
    let round_trip_us = match kind {
        Kind::Redis => Some(time_reads(&parties.caller).await?),
        Kind::Nats => None,
    };

    let calls = latencies_us.len() as f64;
    let per_call_us =
        |earlier: CpuTime, later: CpuTime| later.since(earlier).busy_ns as f64 / 1000.0 / calls;
    Ok(Outcome {
        calls_per_second: calls / (after.at - before.at).as_secs_f64(),
        server_us: per_call_us(before.server, after.server),
        client_us: per_call_us(before.client, after.client),
        round_trip_us,
        commands_per_call: after.commands.saturating_sub(before.commands) as f64 / calls,
        latencies_us: Sample::new(latencies_us).context("no call was answered")?,
    })
}

/// Keeps calls in flight for a while and returns how long each took, in microseconds.
async fn call_for(caller: &Caller, in_flight: usize, period: Duration) -> Result<Vec<f64>> {
    let end = Instant::now() + period;
    let mut callers = JoinSet::new();
    for _ in 0..in_flight {
        let caller = caller.clone();
        callers.spawn(async move {
            let mut latencies_us = Vec::new();
            let mut begun = Instant::now();
            while begun < end {
                caller.call().await?;
                let answered = Instant::now();
                latencies_us.push((answered - begun).as_secs_f64() * 1e6);
                begun = answered;
            }
            anyhow::Ok(latencies_us)
        });
    }
    let mut all = Vec::new();
    while let Some(latencies_us) = callers.join_next().await {
        all.extend(latencies_us.context("a caller panicked")??);
    }
    Ok(all)
}

/// The median of one command and its reply, in microseconds.
async fn time_reads(caller: &Caller) -> Result<f64> {
    let end = Instant::now() + READ_PERIOD;
    let mut times_us = Vec::new();
    let mut begun = Instant::now();
    while begun < end {
        caller.read().await?;
        let answered = Instant::now();
        times_us.push((answered - begun).as_secs_f64() * 1e6);
        begun = answered;
    }
    let times_us = Sample::new(times_us).context("no command was answered")?;
    Ok(times_us.percentile(50.0))
}

fn read(kind: Kind, server: &Server) -> Result<Reading> {
    Ok(Reading {
        commands: match kind {
            Kind::Redis => commands_served(server.address())?,
            Kind::Nats => 0,
        },
        server: server.cpu_time()?,
        client: CpuTime::of(process::id())?,
        at: Instant::now(),
    })
}

/// How many of the commands that calls are made of this server has run.
fn commands_served(address: SocketAddr) -> Result<u64> {
    let calls = calls_of(address, &CALL_COMMANDS)?;
    if calls == 0 {
        bail!("INFO commandstats counts no commands");
    }
    Ok(calls)
}

/// How often a server has run these commands.
pub(super) fn calls_of(address: SocketAddr, commands: &[&str]) -> Result<u64> {
    let mut connection = Connection::open(address)?;
    let mut bytes = Vec::new();
    wire::push_command(&mut bytes, &[b"INFO", b"commandstats"]);
    connection.send(&bytes)?;
    let head = connection.reply()?;
    let length: usize = head
        .strip_prefix(b"$")
        .and_then(|digits| str::from_utf8(digits).ok()?.parse().ok())
        .context("INFO was not answered with a bulk string")?;
    let mut text = String::new();
    while text.len() < length {
        text.push_str(&String::from_utf8_lossy(&connection.reply()?));
        text.push_str("\r\n");
    }
    Ok(sum_of_calls(&text, commands))
}

/// Adds up lines such as `cmdstat_set:calls=12,usec=30,...`.
fn sum_of_calls(text: &str, commands: &[&str]) -> u64 {
    text.lines()
        .filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="))
        .filter(|(name, _)| commands.contains(name))
        .filter_map(|(_, rest)| rest.split(',').next()?.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_of_calls_are_counted() {
        let text = "# Commandstats\r\n\
                    cmdstat_set:calls=12,usec=30,usec_per_call=2.50\r\n\
                    cmdstat_config|get:calls=7,usec=1\r\n\
                    cmdstat_ping:calls=5,usec=1\r\n\
                    cmdstat_getrange:calls=3,usec=1\r\n";
        assert_eq!(sum_of_calls(text, &CALL_COMMANDS), 15);
        assert_eq!(sum_of_calls("", &CALL_COMMANDS), 0);
    }
}
