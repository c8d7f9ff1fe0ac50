//! What real nodes send: processes' worth of nodes in this one, on loopback, over UDP and IPv4, counted at their sockets.
//!
//! Bytes are all that QUIC sends, acknowledgements included, and 28 bytes of UDP and IPv4 headers for each datagram.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use kumi_cluster::{ClusterNode, MembershipRuntimeConfig, NodeOptions, Security, Transport};
use kumi_unison::ClusterKey;

use crate::args::ClusterArgs;
use crate::cluster::rows::Rows;
use crate::cluster::{OURS, Plan};
use crate::progress::Task;

/// Real nodes.
pub(crate) const NODES: usize = 20;
/// The cluster size that their settings are for.
const SETTINGS_NODES: usize = 1000;
/// Headers of UDP and IPv4.
const HEADER_BYTES: u64 = 28;
const JOIN_LIMIT: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(100);

/// Fills the rows of real nodes.
pub(crate) fn measure(
    plan: &Plan,
    _: &ClusterArgs,
    rows: &mut Rows,
    task: &mut Task,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let (bytes, datagrams) = runtime.block_on(run(plan.wire_seconds, task))?;
    rows.add("wire_bytes", OURS, bytes);
    rows.add("wire_datagrams", OURS, datagrams);
    Ok(())
}

/// Bytes and datagrams per second and node.
async fn run((settle, seconds): (u64, u64), task: &mut Task) -> Result<(f64, f64)> {
    let nodes = started().await?;
    task.detail("kumi: real nodes join");
    let joined = async {
        while !nodes
            .iter()
            .all(|node| node.members().members.len() == NODES)
        {
            tokio::time::sleep(LOOK).await;
        }
    };
    let joined = tokio::time::timeout(JOIN_LIMIT, joined).await;
    joined.context("the real nodes never agreed")?;
    tokio::time::sleep(Duration::from_secs(settle)).await;
    task.detail("kumi: real nodes, calm");
    let before = sent(&nodes)?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after = sent(&nodes)?;
    for node in &nodes {
        ensure!(
            node.members().members.len() == NODES,
            "a node was lost while nothing happened"
        );
    }
    let per_node =
        |after: u64, before: u64| (after - before) as f64 / seconds as f64 / NODES as f64;
    let figures = (per_node(after.0, before.0), per_node(after.1, before.1));
    for node in nodes {
        node.shutdown().await;
    }
    Ok(figures)
}

async fn started() -> Result<Vec<ClusterNode>> {
    let key = ClusterKey::from_secret(&ClusterKey::random_secret()?)?;
    let security = Security::key(&key)?;
    let mut nodes: Vec<ClusterNode> = Vec::new();
    for _ in 0..NODES {
        let seed = nodes.first().map(|first| first.authority().clone());
        let config = MembershipRuntimeConfig::lan(SETTINGS_NODES);
        let options = NodeOptions::new(config).seeds(seed);
        nodes.push(ClusterNode::start(options, Transport::quic(security.clone())).await?);
    }
    Ok(nodes)
}

/// Bytes with headers, and datagrams, that all nodes have sent.
fn sent(nodes: &[ClusterNode]) -> Result<(u64, u64)> {
    let mut total = (0, 0);
    for node in nodes {
        let traffic = node.traffic().context("the node has a socket")?;
        total.0 += traffic.sent_bytes + HEADER_BYTES * traffic.sent_datagrams;
        total.1 += traffic.sent_datagrams;
    }
    Ok(total)
}
