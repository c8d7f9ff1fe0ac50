//! `kumi-bench cluster`: membership of 1,000 nodes in virtual time, beside `foca` and `chitchat` on the same simulated
//! network.
//!
//! Nodes run in this process on one thread, and those of the peers in another one. Virtual times and byte counts of
//! ours and of foca are functions of the seed; CPU times and memory are this machine's. Only the part `wire` opens sockets: its nodes are
//! real ones, in real time.

mod ours;
mod peers;
mod probe;
mod rows;
mod wire;

use anyhow::Result;

use crate::args::{ClusterArgs, ClusterPart};
use crate::cluster::ours::Cluster;
use crate::cluster::rows::Rows;
use crate::procfs::CpuTime;
use crate::progress::{Progress, Task};
use crate::report::Report;

pub(crate) const SECOND_US: u64 = 1_000_000;

const OURS: &str = "kumi";
/// What figures are compared with.
const REFERENCE: &str = "foca";
/// How many packets all links lose when they lose some.
const LOSS: f64 = 0.1;
/// How many packets the links of some nodes lose.
const BAD_LOSS: f64 = 0.8;

/// What was seen of a cluster that joined, was left alone for a while, and lost nodes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// From the first start until all nodes knew all nodes; NaN when it never came to that.
    pub(crate) joined_seconds: f64,
    pub(crate) join_cpu_seconds: f64,
    /// Per node, in the calm while, with what headers add.
    pub(crate) bytes_per_second: f64,
    pub(crate) packets_per_second: f64,
    pub(crate) calm_cpu_seconds: f64,
    /// Of the process in which all nodes live.
    pub(crate) resident_bytes: f64,
    /// From a crash until all others knew.
    pub(crate) crash_seconds: f64,
}

/// The numbers of one run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    nodes: usize,
    seed: u64,
    /// The calm while, in virtual seconds.
    calm_seconds: u64,
    /// How long real nodes are left alone before they are measured, and how long that takes, in real seconds.
    wire_seconds: (u64, u64),
    /// How long losses last, in virtual seconds.
    loss_seconds: u64,
    crashes: usize,
    flip_flop_cycles: usize,
}

impl Plan {
    fn of(args: &ClusterArgs) -> Plan {
        let (loss_seconds, crashes, flip_flop_cycles, wire_seconds) = match args.quick {
            true => (60, 2, 1, (3, 5)),
            // After joining, path discovery and comparisons of tables go on for a while.
            false => (600, 5, 3, (30, 60)),
        };
        Plan {
            nodes: args.nodes.get(),
            seed: args.seed,
            calm_seconds: 60,
            wire_seconds,
            loss_seconds,
            crashes,
            flip_flop_cycles,
        }
    }
}

/// One measurement: what is said while it runs, and how it is done.
type Step = (
    &'static str,
    fn(&Plan, &ClusterArgs, &mut Rows, &mut Task) -> Result<()>,
);

/// Measures and prints the report.
pub(crate) fn run(args: &ClusterArgs) -> Result<()> {
    let plan = Plan::of(args);
    let progress = Progress::new();
    let mut rows = Rows::new(&plan);
    let steps = steps(args);
    let mut task = progress.task("cluster", steps.len());
    for (name, measure) in steps {
        task.begin(name);
        measure(&plan, args, &mut rows, &mut task)?;
        task.end();
    }
    drop(task);

    let mut report = Report::against(REFERENCE);
    report.note(format!(
        "lan({}), seed {}; latency 0.25 to 0.75 ms; bytes are encoded envelopes and 60 B for each packet",
        plan.nodes, plan.seed
    ));
    if args.no_peers {
        report.note("foca and chitchat were left out");
    } else {
        report.note("foca carries no metadata here, kumi and chitchat 64 B per node");
        report.note(
            "chitchat is not seed-exact: it draws from the operating system's random numbers, and its packets arrive on \
             whole milliseconds",
        );
    }
    rows.into_sections(&plan, &mut report);
    report.end();
    Ok(())
}

fn steps(args: &ClusterArgs) -> Vec<Step> {
    let wants = |part| args.wants(part);
    let main = [ClusterPart::Join, ClusterPart::Calm, ClusterPart::Crash]
        .into_iter()
        .any(wants);
    let mut steps: Vec<Step> = Vec::new();
    if main {
        steps.push(("kumi: join storm, calm, crashes", measure_main));
    }
    if wants(ClusterPart::Loss) {
        steps.push(("kumi: all links lose 10%", measure_loss));
    }
    if wants(ClusterPart::BadLinks) {
        steps.push(("kumi: 1% of the nodes behind 80% loss", measure_bad_links));
    }
    if wants(ClusterPart::FlipFlop) {
        steps.push(("kumi: 1% of the nodes one-way", measure_flip_flop));
    }
    if wants(ClusterPart::Wire) {
        steps.push(("kumi: real nodes on loopback", wire::measure));
    }
    if args.no_peers {
        return steps;
    }
    let ours = steps.len();
    if main {
        steps.push(("foca: join storm, calm, crashes", peers::foca));
    }
    if wants(ClusterPart::Loss) {
        steps.push(("foca: all links lose 10%", peers::foca_loss));
    }
    if wants(ClusterPart::Chitchat) {
        steps.push(("kumi and chitchat: fewer nodes", peers::chitchat));
    }
    if steps.len() > ours {
        steps.insert(ours, ("building the peers", peers::build));
    }
    steps
}

/// Joining, a calm minute and crashes.
fn measure_main(plan: &Plan, args: &ClusterArgs, rows: &mut Rows, task: &mut Task) -> Result<()> {
    let mut cluster = Cluster::storm(plan.nodes, plan.seed)?;
    let mut seen = cluster.seen();
    if args.wants(ClusterPart::Join) {
        rows.add("join_sizes", OURS, cluster.sizes as f64);
    }
    if args.wants(ClusterPart::Calm) {
        task.detail("kumi: calm");
        cluster.calm(plan.calm_seconds, &mut seen)?;
    }
    if args.wants(ClusterPart::Crash) {
        task.detail("kumi: crashes");
        seen.crash_seconds = cluster.crashes(plan.crashes)?;
    }
    rows.main(OURS, args, &seen);
    Ok(())
}

fn measure_loss(plan: &Plan, _: &ClusterArgs, rows: &mut Rows, task: &mut Task) -> Result<()> {
    let mut cluster = Cluster::storm(plan.nodes, plan.seed + 1)?;
    let counts = cluster.random_loss(LOSS, plan.loss_seconds, task);
    rows.add("loss10.false_deaths", OURS, counts.deaths as f64);
    rows.add("loss10.suspicions", OURS, counts.suspicions as f64);
    Ok(())
}

fn measure_bad_links(plan: &Plan, _: &ClusterArgs, rows: &mut Rows, task: &mut Task) -> Result<()> {
    let mut cluster = Cluster::storm(plan.nodes, plan.seed + 2)?;
    let counts = cluster.bad_places(BAD_LOSS, plan.loss_seconds, task);
    rows.add("loss80.false_deaths", OURS, counts.deaths as f64);
    rows.add("loss80.suspicions", OURS, counts.suspicions as f64);
    Ok(())
}

fn measure_flip_flop(plan: &Plan, _: &ClusterArgs, rows: &mut Rows, task: &mut Task) -> Result<()> {
    let mut cluster = Cluster::storm(plan.nodes, plan.seed + 3)?;
    let seen = cluster.flip_flop(plan.flip_flop_cycles, task);
    let slowest = seen.rejoin_seconds.iter().copied().fold(0.0, f64::max);
    rows.add("flip_flop.other_deaths", OURS, seen.other_deaths as f64);
    rows.add("flip_flop.rejoin", OURS, slowest);
    rows.add("flip_flop.unheard_died", OURS, seen.unheard_died as f64);
    Ok(())
}

/// CPU time of this process so far.
pub(crate) fn cpu_seconds() -> Result<f64> {
    Ok(CpuTime::of(std::process::id())?.busy_ns as f64 / 1e9)
}
