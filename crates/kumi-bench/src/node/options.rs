//! What `kumi-bench node` and the nodes that it starts take on their command lines.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// What `node` takes.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Fewer rounds and shorter waits: every part is sampled, and the peers are left out
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure only these parts; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    pub(crate) only: Vec<NodePart>,

    /// Rounds of `kill` and `restart`; others take fewer [default: 50, or 2 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroUsize>,

    /// Tasks that a node runs when it is killed or stopped; a node runs 100 at once
    #[arg(long, default_value = "100", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) tasks: u32,

    /// Measure kumi alone
    #[arg(long)]
    pub(crate) no_peers: bool,

    /// The kumi whose `up` is measured by rest, ready, cost and scrapes [default: built from this workspace]
    #[arg(long, value_name = "PATH")]
    pub(crate) kumi: Option<PathBuf>,

    /// The kumi-server that `cost` compares with [default: built from this workspace]
    #[arg(long, value_name = "PATH")]
    pub(crate) kumi_server: Option<PathBuf>,

    /// The redis-server that BullMQ is on
    #[arg(long, default_value = "redis-server", value_name = "PATH")]
    pub(crate) redis_server: PathBuf,

    /// The redis-benchmark that drives the store in `cost`
    #[arg(long, default_value = "redis-benchmark", value_name = "PATH")]
    pub(crate) redis_benchmark: PathBuf,

    /// The node that runs BullMQ
    #[arg(long, default_value = "node", value_name = "PATH")]
    pub(crate) node: PathBuf,

    /// Do not pin servers and clients to different cores in `cost`
    #[arg(long)]
    pub(crate) no_pin: bool,
}

impl NodeArgs {
    /// Whether a part was asked for; without `--only`, every part was.
    pub(crate) fn wants(&self, part: NodePart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// One independent part of the measurements of nodes. `Cost` is the last: it pins this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NodePart {
    /// A node with 100 running tasks is killed: how soon all of them run elsewhere, beside a plain lease and BullMQ
    Kill,
    /// The same for a node that is started again at once
    Restart,
    /// A node is stopped for 20 s with SIGSTOP, and goes on: nothing is reported twice
    Pause,
    /// The store's node is killed under load and started again: nothing is lost
    Store,
    /// All five nodes are restarted one after the other under load
    Rolling,
    /// Three nodes in network namespaces with loss, delay and a partition that heals
    Partition,
    /// CPU and memory of a node at rest
    Rest,
    /// From the start of a node until it is ready
    Ready,
    /// How much scrapes of /metrics delay commands
    Scrapes,
    /// CPU per operation of store and jobs on a node beside the separate commands
    Cost,
}

/// The network that a node's timeouts are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetworkPreset {
    Local,
    Lan,
}

impl NetworkPreset {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Lan => "lan",
        }
    }
}

/// What a node of the measurements takes.
#[derive(Debug, Args)]
pub(crate) struct NodeRunArgs {
    #[arg(long)]
    pub(crate) name: String,
    #[arg(long)]
    pub(crate) state_dir: PathBuf,
    #[arg(long, value_enum)]
    pub(crate) preset: NetworkPreset,
    #[arg(long)]
    pub(crate) bind: IpAddr,
    /// UDP port of membership; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    #[arg(long)]
    pub(crate) join: Option<String>,
    /// Runs the cluster's store on this port, with every write synced.
    #[arg(long)]
    pub(crate) store_port: Option<u16>,
    /// Runs tasks and answers requests.
    #[arg(long)]
    pub(crate) works: bool,
}
