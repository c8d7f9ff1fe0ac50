//! `foca` and `chitchat` on the same simulated network, in a program of their own that is built when it is needed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::args::{ClusterArgs, ClusterPart};
use crate::cluster::ours::Cluster;
use crate::cluster::rows::Rows;
use crate::cluster::{LOSS, OURS, Plan, Seen};
use crate::progress::Task;
use crate::workspace;

const PROGRAM: &str = "kumi-bench-cluster-peers";
const FOCA: &str = "foca";
const CHITCHAT: &str = "chitchat";
/// Nodes of the comparison with chitchat, whose messages hold a digest of all nodes.
const CHITCHAT_NODES: usize = 200;

/// Builds the program, in its own workspace.
pub(super) fn build(_: &Plan, _: &ClusterArgs, _: &mut Rows, _: &mut Task) -> Result<()> {
    workspace::build(&workspace::folder("peers"), &["--package", PROGRAM])
        .context("cannot build the peers; --no-peers leaves them out")
}

/// A join storm, a calm while and crashes of foca.
pub(super) fn foca(plan: &Plan, args: &ClusterArgs, rows: &mut Rows, _: &mut Task) -> Result<()> {
    let wanted = |part, number| if args.wants(part) { number } else { 0 };
    let calm = wanted(ClusterPart::Calm, plan.calm_seconds);
    let crashes = wanted(ClusterPart::Crash, plan.crashes as u64);
    let seen = measure(FOCA, &[plan.nodes as u64, plan.seed, calm, crashes])?;
    rows.main(FOCA, args, &seen);
    Ok(())
}

/// False deaths of foca.
pub(super) fn foca_loss(plan: &Plan, _: &ClusterArgs, rows: &mut Rows, _: &mut Task) -> Result<()> {
    let words = [
        "foca-loss".to_owned(),
        plan.nodes.to_string(),
        (plan.seed + 1).to_string(),
        LOSS.to_string(),
        plan.loss_seconds.to_string(),
    ];
    let [downs] = run(&words)?;
    rows.add("loss10.false_deaths", FOCA, downs);
    Ok(())
}

/// Fewer nodes of ours beside as many of chitchat.
pub(super) fn chitchat(
    plan: &Plan,
    _: &ClusterArgs,
    rows: &mut Rows,
    task: &mut Task,
) -> Result<()> {
    let nodes = CHITCHAT_NODES.min(plan.nodes);
    let mut cluster = Cluster::storm(nodes, plan.seed)?;
    let mut ours = cluster.seen();
    cluster.calm(plan.calm_seconds, &mut ours)?;
    ours.crash_seconds = cluster.crashes(1)?;
    drop(cluster);
    task.detail("chitchat");
    let theirs = measure(CHITCHAT, &[nodes as u64, plan.seed, plan.calm_seconds])?;
    rows.small(OURS, nodes, &ours);
    rows.small(CHITCHAT, nodes, &theirs);
    Ok(())
}

fn measure(peer: &str, numbers: &[u64]) -> Result<Seen> {
    let mut words = vec![peer.to_owned()];
    words.extend(numbers.iter().map(u64::to_string));
    let [joined, join_cpu, bytes, packets, calm_cpu, resident, crash] = run(&words)?;
    Ok(Seen {
        joined_seconds: joined,
        join_cpu_seconds: join_cpu,
        bytes_per_second: bytes,
        packets_per_second: packets,
        calm_cpu_seconds: calm_cpu,
        resident_bytes: resident,
        crash_seconds: crash,
    })
}

/// One run of the peers' program.
fn run<const N: usize>(words: &[String]) -> Result<[f64; N]> {
    let program: PathBuf = workspace::folder("peers")
        .join("target/release")
        .join(PROGRAM);
    let output = Command::new(&program)
        .args(words)
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    workspace::outcome(&text).with_context(|| format!("the peers' program said {text:?}"))
}
