//! Reads the command line, starts what it asks for, and turns the outcome into an exit code.
//!
//! It has the options and the output of the binary; the libraries do the rest.

mod banner;
mod check;
mod cli;
mod cluster;
mod config;
mod development_tls;
mod exit;
mod hangup;
mod jobs;
mod key;
mod muf;
mod operate;
mod process;
mod reload;
mod schema;
mod state;
mod terminal;
mod tls_options;
mod up;
mod url;

use clap::{CommandFactory, Parser};
use cli::{Cli, Task};
use exit::Failure;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// What the binary does.
#[must_use]
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    // A script that swaps `redis-server` for `kumi server` relies on every argument arriving as it was written, so
    // this one never reaches the parser below, which has its own idea of `--help`, `--` and `-`.
    if args.get(1).is_some_and(|command| command == "server") {
        return kumi_server::main_from_args(args.into_iter().skip(2));
    }
    // Started by this program itself, for the programs of others that it runs.
    if let Some(code) = process::helper(&args) {
        return code;
    }
    match perform(Cli::parse_from(args)) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("kumi: {failure}");
            failure.exit_code()
        }
    }
}

fn perform(cli: Cli) -> Result<ExitCode, Failure> {
    let done = match cli.task {
        None => up::run(&cli.up),
        Some(Task::Up(options)) => up::run(&options),
        Some(Task::Operate(task)) => return Ok(operate::run(task)),
        Some(Task::Url(options)) => url::run(&options),
        Some(Task::Key(options)) => key::run(&options),
        Some(Task::Reload(options)) => reload::run(&options),
        Some(Task::CheckAof(options)) => return check::aof(&options),
        Some(Task::CheckRdb(options)) => return check::rdb(&options),
        Some(Task::Config(options)) => return config::run(&options),
        Some(Task::Muf(options)) => return Ok(muf::run(options)),
        Some(Task::Jobs(options)) => return Ok(jobs::run(options)),
        Some(Task::Schema(options)) => return Ok(schema::run(options)),
        Some(Task::Cluster(options)) => return Ok(cluster::run(options)),
        Some(Task::Server { args }) => Err(Failure::usage(format!(
            "'server' has to be the first word: kumi server {}",
            args.join(" ")
        ))),
        Some(Task::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "kumi", &mut script);
            print(&script)
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// Writes to standard output. A reader that has seen enough and left is no failure.
fn print(bytes: &[u8]) -> Result<(), Failure> {
    match std::io::stdout().write_all(bytes) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::other(
            anyhow::Error::new(error).context("writing to standard output"),
        )),
        _ => Ok(()),
    }
}
