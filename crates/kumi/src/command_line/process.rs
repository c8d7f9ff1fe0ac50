//! How this program starts the programs of others: through itself, so that they end with it however it ends.

use crate::command_line::terminal;
use kumi_node::programs::{self, Launcher, Output, Shim};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// The hidden first words of the command line by which this program starts itself.
const EXEC: &str = "__exec";
const GUARD: &str = "__guard";

/// Does what this program started itself for; none if a person or a script started it.
pub(crate) fn helper(args: &[OsString]) -> Option<ExitCode> {
    match args.get(1)?.to_str()? {
        EXEC => Some(programs::exec(&args[2..])),
        GUARD => Some(programs::guard()),
        _ => None,
    }
}

/// Starts programs that are killed with this one.
pub(crate) fn launcher() -> io::Result<Launcher> {
    Launcher::with_shim(Shim::new(this_program(), EXEC, GUARD).arg0("kumi"))
}

/// This program, even if its file was replaced since it was started.
fn this_program() -> PathBuf {
    match cfg!(target_os = "linux") {
        true => "/proc/self/exe".into(),
        false => std::env::current_exe().unwrap_or_else(|_| "kumi".into()),
    }
}

/// Standard error, for a command that runs one program: what the program wrote as it is, and notes.
pub(crate) struct StandardError;

impl Output for StandardError {
    fn text(&self, _program: &str, text: &[u8]) {
        // A terminal that was closed loses it, and there is work to end all the same.
        let _ = io::stderr().write_all(text);
    }

    fn note(&self, _program: &str, line: &str) {
        terminal::note(line);
    }
}
