//! Measures one peer of kumi-cluster for `kumi-bench cluster` and prints one line.
//!
//! The peers are used as their own documentation has it, with their presets for one site. It takes no part in judging
//! them: it only runs what it is told to.

mod chitchat_peer;
mod foca_peer;
#[expect(
    dead_code,
    reason = "of what the bench reads about processes, only totals are of interest here"
)]
#[path = "../../../src/procfs.rs"]
mod procfs;
mod wire;

use std::process::ExitCode;

use anyhow::{Context, Result, bail};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What was seen of a peer; what was not asked for is 0.
#[derive(Debug, Default)]
struct Figures {
    /// NaN when the nodes never all knew each other.
    joined_seconds: f64,
    join_cpu_seconds: f64,
    /// Per node, in the calm while, as all of the following.
    bytes_per_second: f64,
    packets_per_second: f64,
    calm_cpu_seconds: f64,
    resident_bytes: u64,
    /// From a crash until everybody was told.
    crash_seconds: f64,
}

fn main() -> ExitCode {
    match run() {
        Ok(line) => {
            println!("outcome {line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Takes `foca NODES SEED CALM_SECONDS CRASHES`, `foca-loss NODES SEED LOSS SECONDS` or `chitchat NODES SEED
/// CALM_SECONDS`.
fn run() -> Result<String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let number = |word: &str| word.parse::<u64>().context("not a number");
    let count = |word: &str| word.parse::<usize>().context("not a number");
    let figures = match words[..] {
        ["foca", nodes, seed, calm, crashes] => {
            foca_peer::measure(count(nodes)?, number(seed)?, number(calm)?, count(crashes)?)?
        }
        ["foca-loss", nodes, seed, loss, seconds] => {
            let loss = loss.parse().context("not a number")?;
            let (nodes, seed) = (count(nodes)?, number(seed)?);
            let downs = foca_peer::false_downs(nodes, seed, loss, number(seconds)?)?;
            return Ok(downs.to_string());
        }
        ["chitchat", nodes, seed, calm] => {
            chitchat_peer::measure(count(nodes)?, number(seed)?, number(calm)?)?
        }
        _ => bail!("takes a peer and what is to be done with it"),
    };
    Ok(format!(
        "{} {} {} {} {} {} {}",
        figures.joined_seconds,
        figures.join_cpu_seconds,
        figures.bytes_per_second,
        figures.packets_per_second,
        figures.calm_cpu_seconds,
        figures.resident_bytes,
        figures.crash_seconds,
    ))
}

/// CPU time of this process so far.
fn cpu_seconds() -> Result<f64> {
    Ok(procfs::CpuTime::of(std::process::id())?.busy_ns as f64 / 1e9)
}
