//! The command line, and the plan it resolves to.
//!
//! Every number a measurement uses is in [`Plan`], so that what `--quick` changes can be read in one place.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::eviction::traces::Trace;
use crate::node::options::{NodeArgs, NodeRunArgs};
use crate::server_args::ServerArgs;
use crate::types::options::TypesArgs;

/// Measures kumi side by side with its peers.
#[derive(Debug, Parser)]
#[command(name = "kumi-bench", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure kumi-server beside redis-server, and valkey-server where one can be had
    Store(StoreArgs),
    /// Measure hits and cost of a full cache, beside redis-server
    Eviction(EvictionArgs),
    /// Measure lists, hashes, sets, sorted sets and streams beside redis-server and valkey-server
    Types(TypesArgs),
    /// Print which functions of kumi-server take the CPU time of a workload (needs Linux's perf)
    Profile(ProfileArgs),
    /// Measure scripts, functions, ACL checks and queues on kumi-server beside redis-server and valkey-server
    Scripts(ScriptsArgs),
    /// Measure MUF calls, on kumi-server, redis-server and valkey-server, beside NATS request/reply
    Muf(MufArgs),
    /// Measure Unison beside raw quinn, tonic, tarpc and club-unison
    Unison(UnisonArgs),
    /// Measure membership of 1,000 nodes in virtual time, beside foca and chitchat
    Cluster(ClusterArgs),
    /// Measure kumi-jobs beside BullMQ, apalis and oxana, and its queue in memory beside a channel
    Jobs(JobsArgs),
    /// Measure saving under writes, loading, the append-only file and TLS, beside redis-server
    Durability(DurabilityArgs),
    /// Measure nodes as processes: tasks of killed nodes, restarts under load, a node at rest, what a node costs
    Node(NodeArgs),
    /// Run a node of one measurement (started by `node` itself)
    #[command(hide = true)]
    NodeRun(NodeRunArgs),
    /// Run kumi's client of one measurement (started by `jobs` itself)
    #[command(hide = true)]
    JobsClient(JobsClientArgs),
    /// Run tasks through the queue in memory (started by `jobs` itself)
    #[command(hide = true)]
    JobsMemory(JobsMemoryArgs),
    /// Hold idle connections until standard input closes (started by `store` itself)
    #[command(hide = true)]
    IdleClient(IdleClientArgs),
    /// Grow a keyspace inside this process (started by `store` itself)
    #[command(hide = true)]
    EngineRun(EngineRunArgs),
    /// Answer the workloads' requests without a store (started by `store` itself)
    #[command(hide = true)]
    EchoServer(EchoServerArgs),
}

/// What `store` takes.
#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    /// Fewer runs, shorter runs, less data: a rough picture in a few minutes
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure only these parts; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    pub(crate) only: Vec<Part>,

    /// Interleaved runs per workload, of which the median counts [default: 5, or 3 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroUsize>,

    /// How long one run of a workload should last [default: 3, or 1 with --quick]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<f64>,

    /// Pipeline depths of the workloads
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 64], value_name = "DEPTH")]
    pub(crate) pipelines: Vec<usize>,

    /// Keys of the workloads and of the memory measurement
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    pub(crate) keys: usize,

    /// Keys of the growth measurement [default: 10000000, or 1000000 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) growth_keys: Option<usize>,

    #[command(flatten)]
    pub(crate) servers: ServerArgs,

    /// The redis-benchmark that drives the workloads
    #[arg(long, default_value = "redis-benchmark", value_name = "PATH")]
    pub(crate) redis_benchmark: PathBuf,

    /// Do not pin server and client to different cores
    #[arg(long)]
    pub(crate) no_pin: bool,
}

impl StoreArgs {
    /// Whether a part was asked for; without `--only`, every part was.
    pub(crate) fn wants(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// What `eviction` takes.
#[derive(Debug, Args)]
pub(crate) struct EvictionArgs {
    /// Keys that fit into the cache
    #[arg(long, default_value_t = 20_000, value_name = "N")]
    pub(crate) keys: usize,

    /// Accesses of one trace
    #[arg(long, default_value_t = 300_000, value_name = "N")]
    pub(crate) accesses: usize,

    /// How long a trace takes at least: accesses are dated by the second
    #[arg(long, default_value_t = 15.0, value_name = "SECONDS")]
    pub(crate) seconds: f64,

    /// Traces of each kind
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) seeds: u64,

    /// Only these traces; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "TRACE")]
    pub(crate) only: Vec<Trace>,

    /// Keys of the store in which SETs evict
    #[arg(long, default_value_t = 500_000, value_name = "N")]
    pub(crate) set_keys: usize,

    /// `maxmemory` of the store whose resident memory is measured
    #[arg(long, default_value = "128", value_name = "MIB")]
    pub(crate) memory_mib: NonZeroUsize,

    /// Runs of the evicting SETs and of the resident memory, of which the median counts
    #[arg(long, default_value = "3", value_name = "N")]
    pub(crate) runs: NonZeroUsize,

    /// The kumi-server to measure [default: built from this workspace]
    #[arg(long, value_name = "PATH")]
    pub(crate) kumi_server: Option<PathBuf>,

    /// The redis-server to compare with
    #[arg(long, default_value = "redis-server", value_name = "PATH")]
    pub(crate) redis_server: PathBuf,

    /// Do not pin server and client to different cores
    #[arg(long)]
    pub(crate) no_pin: bool,
}

impl EvictionArgs {
    /// The traces that were asked for; without `--only`, all of them.
    pub(crate) fn traces(&self) -> &[Trace] {
        if self.only.is_empty() {
            Trace::value_variants()
        } else {
            &self.only
        }
    }
}

/// What `scripts` takes.
#[derive(Debug, Args)]
pub(crate) struct ScriptsArgs {
    /// Fewer and shorter runs: a rough picture in about a minute
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure only these parts; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    pub(crate) only: Vec<ScriptsPart>,

    /// Interleaved runs per figure, of which the median counts [default: 5, or 3 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroUsize>,

    /// How long one run of redis-benchmark should last [default: 0.6, or 0.2 with --quick]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<f64>,

    /// Pipeline depths of the scripts and of the ACL checks
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16], value_name = "DEPTH")]
    pub(crate) pipelines: Vec<usize>,

    /// Jobs of one run of a queue [default: 8000 of BullMQ and 40000 of kumi-jobs, fewer with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) servers: ServerArgs,

    /// The redis-benchmark that drives scripts and ACL checks
    #[arg(long, default_value = "redis-benchmark", value_name = "PATH")]
    pub(crate) redis_benchmark: PathBuf,

    /// The node that runs BullMQ
    #[arg(long, default_value = "node", value_name = "PATH")]
    pub(crate) node: PathBuf,

    /// Leave out BullMQ, the interpreters of mlua and luna-core, which are installed and built on first use
    #[arg(long)]
    pub(crate) no_peers: bool,

    /// Do not pin servers and clients to different cores
    #[arg(long)]
    pub(crate) no_pin: bool,
}

impl ScriptsArgs {
    /// Whether a part was asked for; without `--only`, every part was.
    pub(crate) fn wants(&self, part: ScriptsPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// One independent part of the measurements of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScriptsPart {
    /// Server CPU of EVALSHA and FCALL
    Scripts,
    /// Server CPU of GET and SET with ten users and pattern rules
    Acl,
    /// BullMQ and kumi-jobs on each server
    Queues,
    /// CPU time of Lua programs in each interpreter
    Interpreter,
}

/// What `profile` takes.
#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// The workload: set, get, mget, mset, incr or set_ex
    #[arg(default_value = "get", value_name = "WORKLOAD")]
    pub(crate) workload: String,

    /// Requests in one write of a client
    #[arg(long, default_value_t = 16, value_name = "DEPTH")]
    pub(crate) pipeline: usize,

    /// Keys in the store
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    pub(crate) keys: usize,

    /// How long samples are taken
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub(crate) seconds: f64,

    /// Functions to print
    #[arg(long, default_value_t = 25, value_name = "N")]
    pub(crate) functions: usize,

    /// The kumi-server to profile [default: built from this workspace]
    #[arg(long, value_name = "PATH")]
    pub(crate) kumi_server: Option<PathBuf>,

    /// The redis-benchmark that drives the workload
    #[arg(long, default_value = "redis-benchmark", value_name = "PATH")]
    pub(crate) redis_benchmark: PathBuf,
}

/// What `muf` takes.
#[derive(Debug, Args)]
pub(crate) struct MufArgs {
    /// Fewer and shorter runs: a rough picture in less than a minute
    #[arg(long)]
    pub(crate) quick: bool,

    /// Interleaved runs per load, of which the median counts [default: 5, or 3 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroUsize>,

    /// How long one run should last [default: 3, or 1 with --quick]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<f64>,

    /// Measure only these parts; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    pub(crate) only: Vec<MufPart>,

    /// Keys of others beside which backends wait [default: 10000000, or 100000 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) keys: Option<NonZeroUsize>,

    #[command(flatten)]
    pub(crate) servers: ServerArgs,

    /// The nats-server to compare with
    #[arg(long, default_value = "nats-server", value_name = "PATH")]
    pub(crate) nats_server: PathBuf,

    /// Do not pin servers and clients to different cores
    #[arg(long)]
    pub(crate) no_pin: bool,
}

impl MufArgs {
    /// Whether a part was asked for; without `--only`, every part was.
    pub(crate) fn wants(&self, part: MufPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// One independent part of the MUF measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MufPart {
    /// Latency, throughput and CPU of calls
    Calls,
    /// Server commands per call
    Commands,
    /// What backends that wait cost a server with many keys of others
    Steady,
}

/// What `unison` takes.
#[derive(Debug, Args)]
pub(crate) struct UnisonArgs {
    /// Fewer and shorter runs: a rough picture in about a minute
    #[arg(long)]
    pub(crate) quick: bool,

    /// Interleaved runs per load, of which the median counts [default: 5, or 3 with --quick]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroUsize>,

    /// How long one run should last [default: 1.5, or 0.5 with --quick]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) seconds: Option<f64>,

    /// Run only these contestants, separated by commas; goals that need others are not judged
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    pub(crate) only: Vec<String>,

    /// Leave out tonic, tarpc and club-unison, which are built on first use
    #[arg(long)]
    pub(crate) no_peers: bool,

    /// Do not pin servers and clients to different cores
    #[arg(long)]
    pub(crate) no_pin: bool,
}

/// What `cluster` takes.
#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// A minute instead of ten on bad networks, seconds for real nodes, fewer crashes and cycles
    #[arg(long)]
    pub(crate) quick: bool,

    /// Measure only these parts; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    pub(crate) only: Vec<ClusterPart>,

    /// Nodes of the cluster; the goals are for 1,000
    #[arg(long, default_value = "1000", value_name = "N")]
    pub(crate) nodes: NonZeroUsize,

    /// What everything random comes from
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) seed: u64,

    /// Measure kumi alone
    #[arg(long)]
    pub(crate) no_peers: bool,
}

impl ClusterArgs {
    /// Whether a part was asked for; without `--only`, every part was.
    pub(crate) fn wants(&self, part: ClusterPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// One independent part of the cluster measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusterPart {
    /// All nodes start within a second
    Join,
    /// Traffic, CPU and memory while nothing happens
    Calm,
    /// How long until everybody knows of a crash
    Crash,
    /// False deaths when all links lose packets
    Loss,
    /// False deaths when some nodes lose most packets
    BadLinks,
    /// Some nodes are unheard, and hear nothing, in turns
    FlipFlop,
    /// Fewer nodes, beside chitchat
    Chitchat,
    /// What 20 real nodes send over UDP while nothing happens
    Wire,
}

/// What `jobs` takes.
#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// Tasks of one run
    #[arg(long, default_value = "100000", value_name = "N")]
    pub(crate) tasks: NonZeroUsize,

    /// Tasks of one run of the queue in memory
    #[arg(long, default_value = "1000000", value_name = "N")]
    pub(crate) memory_tasks: NonZeroUsize,

    /// Interleaved runs, of which the median counts
    #[arg(long, default_value = "5", value_name = "N")]
    pub(crate) runs: NonZeroUsize,

    /// Measure only these parts; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    pub(crate) only: Vec<JobsPart>,

    /// Measure kumi alone
    #[arg(long)]
    pub(crate) no_peers: bool,

    /// The redis-server that all queues are on
    #[arg(long, default_value = "redis-server", value_name = "PATH")]
    pub(crate) redis_server: PathBuf,

    /// The node that runs BullMQ
    #[arg(long, default_value = "node", value_name = "PATH")]
    pub(crate) node: PathBuf,

    /// Do not pin servers and clients to different cores
    #[arg(long)]
    pub(crate) no_pin: bool,
}

impl JobsArgs {
    /// Whether a part was asked for; without `--only`, every part was.
    pub(crate) fn wants(&self, part: JobsPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// One independent part of the job measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum JobsPart {
    /// Tasks that wait are run by one worker
    Drain,
    /// Tasks are enqueued one at a time, 64 at a time and in bulk
    Enqueue,
    /// How soon an idle worker starts a task, and what it sends meanwhile
    Idle,
    /// How long the longest script holds the server
    Scripts,
    /// Bytes per queued task, and the queue in memory
    Memory,
}

/// What `durability` takes.
#[derive(Debug, Args)]
pub(crate) struct DurabilityArgs {
    /// Measure only these parts; several may be given, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    pub(crate) only: Vec<DurabilityPart>,

    /// Keys in the store; the project's goals are for 5000000, which takes a quarter of an hour
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    pub(crate) keys: usize,

    /// Connections that write
    #[arg(long, default_value_t = 50, value_name = "N")]
    pub(crate) connections: usize,

    /// Requests in one write of a connection while saving
    #[arg(long, default_value_t = 16, value_name = "DEPTH")]
    pub(crate) pipeline: usize,

    /// How long throughput is measured where nothing else sets an end
    #[arg(long, default_value_t = 5.0, value_name = "SECONDS")]
    pub(crate) seconds: f64,

    /// How much longer a sync takes on the slow disk
    #[arg(long, default_value_t = 400, value_name = "MILLISECONDS")]
    pub(crate) sync_ms: u32,

    /// The kumi-server to measure [default: built from this workspace]
    #[arg(long, value_name = "PATH")]
    pub(crate) kumi_server: Option<PathBuf>,

    /// The redis-server to compare with
    #[arg(long, default_value = "redis-server", value_name = "PATH")]
    pub(crate) redis_server: PathBuf,

    /// Do not pin servers and clients to different cores
    #[arg(long)]
    pub(crate) no_pin: bool,
}

impl DurabilityArgs {
    /// Whether a part was asked for; without `--only`, every part was.
    pub(crate) fn wants(&self, part: DurabilityPart) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

/// One independent part of the durability measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityPart {
    /// BGSAVE while clients write
    Saving,
    /// Loading an RDB file and an append-only file
    Loading,
    /// SET with an append-only file
    Log,
    /// BGSAVE and BGREWRITEAOF while clients write, on a disk whose syncs take long
    SlowDisk,
    /// GET over TLS
    Tls,
}

/// What kumi's client takes.
#[derive(Debug, Args)]
pub(crate) struct JobsClientArgs {
    #[arg(long, default_value_t = 0)]
    pub(crate) keep: usize,
    /// A bare list instead of a queue.
    #[arg(long)]
    pub(crate) bare: bool,
    /// A thread per core instead of one.
    #[arg(long)]
    pub(crate) on_threads: bool,
    pub(crate) url: String,
    pub(crate) operation: String,
    pub(crate) count: usize,
    pub(crate) concurrency: usize,
}

/// What a run of the queue in memory takes.
#[derive(Debug, Args)]
pub(crate) struct JobsMemoryArgs {
    #[arg(long)]
    pub(crate) tasks: usize,
}

/// What the idle client takes.
#[derive(Debug, Args)]
pub(crate) struct IdleClientArgs {
    #[arg(long)]
    pub(crate) address: SocketAddr,
    #[arg(long)]
    pub(crate) connections: usize,
}

/// What the echo server takes.
#[derive(Debug, Args)]
pub(crate) struct EchoServerArgs {
    #[arg(long)]
    pub(crate) port: u16,
}

/// What a run of the engine takes.
#[derive(Debug, Args)]
pub(crate) struct EngineRunArgs {
    #[arg(long)]
    pub(crate) keys: usize,
    #[arg(long, value_enum)]
    pub(crate) load: EngineLoad,
}

/// What the engine is made to do, one step at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineLoad {
    /// Set keys
    Plain,
    /// Set keys with random TTLs
    Ttl,
    /// Nothing
    Empty,
}

impl fmt::Display for EngineLoad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EngineLoad::Plain => "plain",
            EngineLoad::Ttl => "ttl",
            EngineLoad::Empty => "empty",
        })
    }
}

/// One independent part of the store measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Throughput and server CPU per operation, driven by redis-benchmark
    Workloads,
    /// Server CPU per operation, driven by a client that a fast server does not wait for
    Bursts,
    /// Resident bytes per key, with and without a TTL
    Memory,
    /// How late `expired` events are
    Lag,
    /// The longest engine step while the keyspace grows
    Growth,
    /// CPU used while nothing but open connections is there
    Idle,
    /// Large replies, values and requests, many databases, shutdown, memory accounting
    Large,
}

/// The numbers of one `store` run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Interleaved runs per workload.
    pub(crate) runs: usize,
    /// How long a run of a workload should at least last.
    pub(crate) run_seconds: f64,
    pub(crate) pipelines: Vec<usize>,
    /// Connections redis-benchmark opens.
    pub(crate) connections: usize,
    /// Keys preloaded for the workloads, which then pick among them at random, and loaded to measure memory.
    pub(crate) keys: usize,
    /// Fresh servers per variant of the memory measurement.
    pub(crate) memory_runs: usize,
    /// Numbers of keys with a far deadline beside which lag is measured.
    pub(crate) lag_backgrounds: Vec<usize>,
    /// Keys whose `expired` events are timed.
    pub(crate) lag_probes: usize,
    /// Rounds of probes per background.
    pub(crate) lag_runs: usize,
    /// How late an event may be and still count as delivered.
    pub(crate) lag_window: Duration,
    pub(crate) growth_runs: usize,
    /// Keys the growth measurement ends with.
    pub(crate) growth_keys: usize,
    pub(crate) idle_connections: usize,
    pub(crate) idle_period: Duration,
    /// The sizes of the large measurements are divided by this.
    pub(crate) large_divisor: usize,
}

impl Plan {
    pub(crate) fn of(args: &StoreArgs) -> Plan {
        let full = Plan {
            runs: 5,
            run_seconds: 3.0,
            pipelines: args.pipelines.clone(),
            connections: 50,
            keys: args.keys,
            memory_runs: 3,
            lag_backgrounds: vec![0, 100_000, 1_000_000],
            lag_probes: 1_000,
            lag_runs: 3,
            lag_window: Duration::from_secs(40),
            growth_runs: 3,
            growth_keys: 10_000_000,
            idle_connections: 10_000,
            idle_period: Duration::from_secs(30),
            large_divisor: 1,
        };
        let mut plan = if args.quick {
            Plan {
                runs: 3,
                run_seconds: 1.0,
                memory_runs: 1,
                lag_backgrounds: vec![0, 100_000],
                lag_runs: 1,
                lag_window: Duration::from_secs(10),
                growth_keys: 1_000_000,
                idle_period: Duration::from_secs(10),
                large_divisor: 10,
                ..full
            }
        } else {
            full
        };
        if let Some(runs) = args.runs {
            plan.runs = runs.get();
            plan.memory_runs = plan.memory_runs.min(plan.runs);
            plan.lag_runs = plan.lag_runs.min(plan.runs);
            plan.growth_runs = plan.growth_runs.min(plan.runs);
        }
        if let Some(seconds) = args.seconds {
            plan.run_seconds = seconds.max(0.1);
        }
        if let Some(keys) = args.growth_keys {
            plan.growth_keys = keys;
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn store_args(line: &str) -> StoreArgs {
        let words = ["kumi-bench", "store"]
            .into_iter()
            .chain(line.split_whitespace());
        match Cli::try_parse_from(words).unwrap().command {
            Command::Store(args) => args,
            _ => unreachable!("`store` was asked for"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_only_every_part_is_wanted() {
        let args = store_args("");
        assert!(Part::value_variants().iter().all(|&part| args.wants(part)));
    }

    #[test]
    fn only_takes_several_parts() {
        let args = store_args("--only lag,idle");
        assert!(args.wants(Part::Lag) && args.wants(Part::Idle) && !args.wants(Part::Memory));
    }

    #[test]
    fn runs_given_by_hand_win_over_quick() {
        assert_eq!(Plan::of(&store_args("--quick --runs 7")).runs, 7);
        assert_eq!(Plan::of(&store_args("--quick")).runs, 3);
        assert_eq!(Plan::of(&store_args("")).runs, 5);
    }

    #[test]
    fn engine_loads_are_written_as_they_are_read() {
        for load in EngineLoad::value_variants() {
            assert_eq!(EngineLoad::from_str(&load.to_string(), false), Ok(*load));
        }
    }

    #[test]
    fn zero_runs_are_refused() {
        assert!(Cli::try_parse_from(["kumi-bench", "store", "--runs", "0"]).is_err());
    }
}
