//! `chitchat` on the simulated network: its server runs as it is, on a transport that asks the network when a packet
//! arrives, and on tokio's paused clock.
//!
//! It draws random numbers from the operating system, so the figures differ a little from run to run.

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result};
use chitchat::{
    ChitchatConfig, ChitchatHandle, ChitchatId, FailureDetectorConfig, ProtocolVersion,
    spawn_chitchat,
};
use tokio::time::{Instant, sleep, sleep_until};

use crate::wire::{Wire, address};
use crate::{Figures, cpu_seconds, procfs};

/// How often the nodes are looked at while something is waited for.
const LOOK: Duration = Duration::from_millis(100);
/// How many nodes are named as seeds.
const SEEDS: usize = 3;
const JOIN_LIMIT: Duration = Duration::from_secs(60);
const CRASH_LIMIT: Duration = Duration::from_secs(120);

/// A join storm, a calm while and a crash, on a clock that jumps to the next timer.
pub(crate) fn measure(nodes: usize, seed: u64, calm_seconds: u64) -> Result<Figures> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .context("cannot start a tokio runtime")?;
    runtime.block_on(run(nodes, seed, calm_seconds))
}

async fn run(nodes: usize, seed: u64, calm_seconds: u64) -> Result<Figures> {
    let cpu_at_start = cpu_seconds()?;
    let wire = Wire::new(nodes, seed);
    let begin = Instant::now();
    let mut handles = Vec::new();
    for place in 0..nodes {
        sleep_until(begin + Duration::from_secs(1) * place as u32 / nodes as u32).await;
        handles.push(start(place, &wire).await?);
    }
    let joined = wait(JOIN_LIMIT, || all_see(&handles, nodes)).await;
    let joined_seconds = if joined {
        begin.elapsed().as_secs_f64()
    } else {
        f64::NAN
    };
    let join_cpu_seconds = cpu_seconds()? - cpu_at_start;

    sleep(Duration::from_secs(20)).await;
    let (before, cpu) = (wire.totals(), cpu_seconds()?);
    sleep(Duration::from_secs(calm_seconds)).await;
    let (after, cpu_after) = (wire.totals(), cpu_seconds()?);
    let resident_bytes = procfs::resident_bytes(std::process::id())?;
    let per_node = |value: u64| value as f64 / calm_seconds as f64 / nodes as f64;

    let crashed = Instant::now();
    let victim = handles.pop().context("there are no nodes")?;
    victim.abort();
    wait(CRASH_LIMIT, || all_see(&handles, nodes - 1)).await;
    Ok(Figures {
        joined_seconds,
        join_cpu_seconds,
        bytes_per_second: per_node(after.bytes - before.bytes),
        packets_per_second: per_node(after.packets - before.packets),
        calm_cpu_seconds: cpu_after - cpu,
        resident_bytes,
        crash_seconds: crashed.elapsed().as_secs_f64(),
    })
}

async fn start(place: usize, wire: &Wire) -> Result<ChitchatHandle> {
    let own = address(place);
    let config = ChitchatConfig {
        chitchat_id: ChitchatId::new(format!("n{place}"), 1, own),
        cluster_id: String::from("kumi-bench"),
        gossip_interval: Duration::from_secs(1),
        listen_addr: own,
        seed_nodes: (0..SEEDS).map(|seed| address(seed).to_string()).collect(),
        failure_detector_config: FailureDetectorConfig::default(),
        marked_for_deletion_grace_period: Duration::from_secs(3600),
        catchup_callback: None,
        extra_liveness_predicate: None,
        protocol_version: ProtocolVersion::V1,
    };
    let metadata = vec![(String::from("metadata"), "x".repeat(64))];
    spawn_chitchat(config, metadata, wire).await
}

/// Looks again and again; whether it came to be so in time.
async fn wait<F: Future<Output = bool>>(limit: Duration, is_so: impl Fn() -> F) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < limit {
        if is_so().await {
            return true;
        }
        sleep(LOOK).await;
    }
    false
}

async fn all_see(handles: &[ChitchatHandle], nodes: usize) -> bool {
    for handle in handles {
        let live = handle
            .with_chitchat(|chitchat| chitchat.live_nodes().count())
            .await;
        if live != nodes {
            return false;
        }
    }
    true
}
