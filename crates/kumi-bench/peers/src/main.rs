//! Measures one peer of Unison for `kumi-bench unison` and prints one line.
//!
//! The peers are used as their own documentation has it, with their defaults, TLS 1.3 and `ring`, and an echo of bytes
//! as the service. It takes no part in judging them: it only runs the load it is told to.

#[cfg(feature = "club")]
mod club;
#[path = "../../src/unison/load.rs"]
mod load;
mod tarpc_peer;
mod tonic_peer;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::load::{Load, Outcome, Sides};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match run() {
        Ok(outcome) => {
            println!(
                "outcome {} {} {} {} {}",
                outcome.p50_us,
                outcome.p99_us,
                outcome.calls_per_second,
                outcome.server_us,
                outcome.client_us
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Takes: peer, payload bytes, calls in flight, seconds, the server's cores and the client's, as in `1` or `0,2`.
fn run() -> Result<Outcome> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [peer, size, in_flight, seconds, server, client] = &words[..] else {
        bail!("takes PEER BYTES IN_FLIGHT SECONDS SERVER_CPUS CLIENT_CPUS");
    };
    let load = Load {
        size: size.parse().context("BYTES is not a number")?,
        in_flight: in_flight.parse().context("IN_FLIGHT is not a number")?,
        period: Duration::from_secs_f64(seconds.parse().context("SECONDS is not a number")?),
    };
    let sides = Sides {
        server: cpus(server)?,
        client: cpus(client)?,
    };
    load::pin(&sides.client)?;
    match peer.as_str() {
        "tonic" => tonic_peer::run(&sides, load),
        "tarpc" => tarpc_peer::run(&sides, load),
        #[cfg(feature = "club")]
        "club-unison" => club::run(&sides, load),
        _ => bail!("no peer is named {peer}"),
    }
}

fn cpus(list: &str) -> Result<Vec<usize>> {
    list.split(',')
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().context("a core is not a number"))
        .collect()
}
