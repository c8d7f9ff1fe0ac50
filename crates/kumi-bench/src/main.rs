//! `kumi-bench`: measures kumi beside its peers, on this machine, in the same run.
//!
//! It starts every server it measures itself, on loopback and in a temporary directory, and leaves nothing behind.
//! It refuses to measure a server somebody else runs: there it could neither read the CPU time nor know the load.
//! Linux only, because CPU time and resident memory come from `/proc`.

mod args;
mod children;
mod cluster;
mod cores;
mod durability;
mod eviction;
mod jobs;
mod muf;
mod node;
mod parts;
mod procfs;
mod progress;
mod report;
mod scripts;
mod server_args;
mod stats;
mod store;
mod types;
mod unison;
mod wire;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

// The growth measurement runs the engine inside this process, so it gets the allocator the server has.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Store(args) => store::run(&args),
        Command::Eviction(args) => eviction::run(&args),
        Command::Types(args) => types::run(&args),
        Command::Scripts(args) => scripts::run(&args),
        Command::Muf(args) => muf::run(&args),
        Command::Unison(args) => unison::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Jobs(args) => jobs::run(&args),
        Command::Durability(args) => durability::run(&args),
        Command::Node(args) => node::run(&args),
        Command::NodeRun(args) => node::process::run(&args),
        Command::JobsClient(args) => jobs::ours::run(&args),
        Command::JobsMemory(args) => jobs::run_memory(&args),
        Command::IdleClient(args) => store::idle::hold_connections(&args),
        Command::EngineRun(args) => store::engine::run(&args),
        Command::EchoServer(args) => store::echo::run(&args),
        Command::Profile(args) => store::profile::run(&args),
    };
    children::leave_to_signal();
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kumi-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
