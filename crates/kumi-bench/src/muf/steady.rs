//! Backends that wait beside a large keyspace of others: what their upkeep costs the server, and whether it serves.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::muf::{load, parties};
use crate::store::servers::{Contender, Server, Stage};
use crate::wire::{self, Connection};

/// Backends of one service, each with a connection of its own.
pub(super) const BACKENDS: usize = 20;
/// What a backend does once after it connected is over by then, but for searches.
const SETTLE: Duration = Duration::from_secs(2);
/// The searches of backends that begin are over when there was no SCAN for this long, and are waited for at most so long.
const NO_SCAN: Duration = Duration::from_secs(10);
const SEARCHES: Duration = Duration::from_secs(1800);
/// Calls after the quiet period; each must be answered.
pub(super) const CALLS: usize = 500;

/// What a run gave.
pub(super) struct Outcome {
    /// CPU of the server without any client, in percent of a core.
    pub(super) alone_percent: f64,
    /// CPU of the server while the backends wait, in percent of a core.
    pub(super) waiting_percent: f64,
    pub(super) answered: usize,
}

/// Fills a server with keys that are not MUF's, lets backends wait there, and then calls them.
pub(super) fn run(
    stage: &Stage,
    contender: &Contender,
    keys: usize,
    period: Duration,
) -> Result<Outcome> {
    let server = contender.start(stage, &[("enable-debug-command", "yes")])?;
    let mut connection = Connection::open(server.address())?;
    let count = keys.to_string();
    connection.command(&[b"DEBUG", b"POPULATE", count.as_bytes(), b"other"])?;
    drop(connection);
    wire::check_count(server.address(), keys)?;
    thread::sleep(SETTLE);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    runtime.block_on(measure(&server, period))
}

async fn measure(server: &Server, period: Duration) -> Result<Outcome> {
    let alone_percent = busy_percent(server, period).await?;
    let parties = parties::connect_announced(server.address(), BACKENDS).await?;
    tokio::time::sleep(SETTLE).await;
    end_of_searches(server).await?;
    let waiting_percent = busy_percent(server, period).await?;
    let mut answered = 0;
    for _ in 0..CALLS {
        answered += usize::from(parties.caller.call().await.is_ok());
    }
    Ok(Outcome {
        alone_percent,
        waiting_percent,
        answered,
    })
}

/// Waits until the backends have searched for what was sent before they began.
async fn end_of_searches(server: &Server) -> Result<()> {
    let begun = Instant::now();
    let mut before = None;
    loop {
        let scans = load::calls_of(server.address(), &["scan"])?;
        if before == Some(scans) {
            return Ok(());
        }
        anyhow::ensure!(begun.elapsed() < SEARCHES, "the backends still search");
        before = Some(scans);
        tokio::time::sleep(NO_SCAN).await;
    }
}

/// The server's CPU during a period, in percent of a core.
async fn busy_percent(server: &Server, period: Duration) -> Result<f64> {
    let (begun, before) = (Instant::now(), server.cpu_time()?);
    tokio::time::sleep(period).await;
    let used_ns = server.cpu_time()?.since(before).busy_ns as f64;
    Ok(100.0 * used_ns / begun.elapsed().as_nanos() as f64)
}
