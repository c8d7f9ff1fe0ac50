//! From a command line to a running server.

use crate::listen::Listeners;
use crate::server::run;
use crate::shutdown::Shutdown;
use anyhow::{Context, Result};
use kumi_store::Config;
use kumi_store::config::{Source, parse_command_line};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::ExitCode;

/// Runs `kumi-server` with these arguments, the program's name not included.
pub fn main_from_args(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<Vec<u8>> = args.into_iter().map(OsString::into_vec).collect();
    match start(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: &[Vec<u8>]) -> Result<()> {
    let command_line = parse_command_line(args);
    let mut config = Config::new();
    config.load_text(&command_line.options, &Source::CommandLine, &mut |_| {
        Err("not yet".into())
    })?;
    let listeners = Listeners::open(config.settings())?;
    eprintln!("Ready to accept connections");
    run(config, listeners, &Shutdown::new()).context("serving")
}
