//! Programs of the team that a node or the command line runs: for a task, for a request, for many requests, or for as long
//! as the node runs.
//!
//! ```text
//! shim.rs       what ends programs when this process is killed
//! launch.rs     Launcher: sh with a command, in a process group of its own
//! child.rs      one command from its start to its end, with its input and output
//! lines.rs      what a program writes, line by line
//! task.rs       a command per task: a handler of kumi-jobs
//! answer.rs     a command per request          pipe.rs       one program for many requests
//! run.rs        a program that is kept running supervise.rs  the program of pipe.rs and its successors
//! ```
//! `core/programs.rs` decides when a program is started again. Nothing here prints: what programs write, and what is to be
//! said about them, goes to an [`Output`].

mod answer;
mod child;
#[cfg(test)]
mod heard;
mod launch;
mod lines;
mod pipe;
mod run;
mod shim;
mod supervise;
mod task;

pub use crate::core::programs::{Finished, RestartRule};
pub use answer::answer;
pub use launch::Launcher;
pub use run::{ProgramState, RunningProgram};
pub use shim::{Shim, exec, guard};
pub use supervise::{Closing, Supervised, Way};
pub use task::{OnEnd, TaskProgram};

use crate::config::Surroundings;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use tokio::process::Command;

/// The largest file with variables, in bytes.
const ENV_FILE_LIMIT: u64 = 64 << 10;

/// Variables of this process that are not for its programs: where the credentials of its service are, and the socket by
/// which it tells systemd how it is.
const WITHHELD: [&str; 2] = ["CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET"];

/// Where the text of programs goes. Its methods are called on threads of the runtime and must not block for long.
pub trait Output: Send + Sync + 'static {
    /// What a program wrote: a line of a program of `run`, or all that a command of a task or a request wrote to its standard
    /// error.
    fn text(&self, program: &str, text: &[u8]);
    /// A line about a program: it ended, it is started again.
    fn note(&self, program: &str, line: &str);
}

/// A program: its name in logs, its command, directory and variables.
#[derive(Clone)]
#[non_exhaustive]
pub struct Program {
    /// Names it in logs.
    pub name: Arc<str>,
    /// The shell command.
    pub command: Arc<str>,
    /// Directory, variables and the file with further ones.
    pub surroundings: Surroundings,
    /// Variables that the node sets.
    pub variables: Vec<(String, String)>,
    /// The standard error of a program of `pipe` goes to the output, line by line, and not to this process's.
    pub captures_errors: bool,
    /// Starts it.
    pub launcher: Launcher,
    /// Hears of it.
    pub output: Arc<dyn Output>,
}

impl Program {
    /// A program in this process's directory and environment.
    pub fn new(name: &str, command: &str, launcher: &Launcher, output: Arc<dyn Output>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            surroundings: Surroundings::default(),
            variables: Vec::new(),
            captures_errors: false,
            launcher: launcher.clone(),
            output,
        }
    }

    /// The program of an entry of `kumi.kdl`: `node` is the node's `name~life`, `url` the store's.
    #[must_use]
    pub fn of_node(mut self, surroundings: &Surroundings, node: &str, url: &str) -> Self {
        self.surroundings = surroundings.clone();
        self.variables = run::node_variables(node, url);
        self.captures_errors = true;
        self
    }

    /// The command, ready to be spawned. The file with variables is read each time.
    fn prepared(&self) -> io::Result<Command> {
        let mut command = self.launcher.shell(&self.command);
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_withheld(name)) {
            command.env_remove(name);
        }
        if let Some(dir) = &self.surroundings.dir {
            command.current_dir(dir);
        }
        if let Some(file) = &self.surroundings.env_file {
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", file.display()))
            };
            let text = bounded(file).map_err(named)?;
            for (name, value) in variables(&text) {
                command.env(name, value);
            }
        }
        command.envs(&self.surroundings.env);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    fn note(&self, line: impl std::fmt::Display) {
        self.output.note(&self.name, &line.to_string());
    }
}

/// Whether programs do not inherit a variable. `KUMI_*_FILE` names files with secrets, `KUMI_CLUSTER_KEY_FILE` among them.
fn is_withheld(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let names_secret = name.starts_with("KUMI_") && name.ends_with("_FILE");
    names_secret || WITHHELD.contains(&&*name)
}

fn bounded(file: &std::path::Path) -> io::Result<String> {
    use io::Read;
    let mut text = String::new();
    let file = std::fs::File::open(file)?;
    file.take(ENV_FILE_LIMIT + 1).read_to_string(&mut text)?;
    match text.len() as u64 > ENV_FILE_LIMIT {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(text),
    }
}

/// The lines `NAME=VALUE` of a file. Empty lines and those that begin with `#` are comments; quotes around a value are taken
/// off.
fn variables(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let (name, value) = (name.trim_end(), value.trim_start());
        let unquoted = ['"', '\'']
            .iter()
            .find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
        (!name.is_empty()).then_some((name, unquoted.unwrap_or(value)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_secrets_and_the_sockets_of_the_service_are_withheld() {
        for name in [
            "KUMI_CLUSTER_KEY_FILE",
            "KUMI_TOKEN_FILE",
            "NOTIFY_SOCKET",
            "CREDENTIALS_DIRECTORY",
        ] {
            assert!(is_withheld(name.as_ref()), "{name}");
        }
        for name in ["PATH", "KUMI_URL", "KUMI_CLUSTER_NODE", "DB_PASSWORD_FILE"] {
            assert!(!is_withheld(name.as_ref()), "{name}");
        }
    }

    #[test]
    fn lines_of_a_file_are_variables() {
        let text = "# a comment\n\nA=1\n B = \"two words\" \nC='x'\nno value\n=x\nD=a=b\nE=\"\nF=";
        let found: Vec<_> = variables(text).collect();
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "x"),
            ("D", "a=b"),
            ("E", "\""),
            ("F", ""),
        ];
        assert_eq!(found, expected);
    }
}
