//! Whose queues are measured, and how their clients are started.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::progress::Progress;
use crate::report::Report;
use crate::store::servers::on_path;
use crate::store::valkey::cache_directory;
use crate::workspace;

pub(crate) const OURS: &str = "kumi";
pub(super) const BULLMQ: &str = "bullmq";
pub(super) const OXANA: &str = "oxana";

/// The Rust peers: the name, and the feature of the peers' program, which names the crate too.
const RUST_PEERS: [(&str, &str, &str); 3] = [
    ("bullmq-rs", "bullmq", "bullmq-official"),
    ("apalis", "apalis", "apalis-redis"),
    (OXANA, "oxana", "oxana"),
];

const PEERS_PROGRAM: &str = "kumi-bench-jobs-peers";

/// The files that make BullMQ's client.
const BULLMQ_FILES: [(&str, &str); 3] = [
    (
        "package.json",
        include_str!("../../peers/bullmq/package.json"),
    ),
    (
        "package-lock.json",
        include_str!("../../peers/bullmq/package-lock.json"),
    ),
    ("client.mjs", include_str!("../../peers/bullmq/client.mjs")),
];

/// A queue that takes part.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    pub(super) name: &'static str,
    start: Start,
}

#[derive(Clone, Debug)]
enum Start {
    /// `kumi-bench jobs-client`, which keeps as many succeeded tasks as this, on one thread or on one per core.
    Ours {
        program: PathBuf,
        keep: usize,
        on_threads: bool,
    },
    /// `kumi-bench jobs-client --bare`.
    Bare(PathBuf),
    /// The Rust peers' program.
    Rust(PathBuf),
    /// BullMQ's client, in the directory where npm installed it.
    Node { node: PathBuf, directory: PathBuf },
}

impl Party {
    /// Kumi, keeping so many succeeded tasks.
    pub(crate) fn ours(keep: usize) -> Result<Party> {
        Party::ours_with(keep, false)
    }

    /// The same on as many threads as there are cores, like a node.
    pub(crate) fn ours_on_threads(keep: usize) -> Result<Party> {
        Party::ours_with(keep, true)
    }

    fn ours_with(keep: usize, on_threads: bool) -> Result<Party> {
        let program = own_program()?;
        Ok(Party {
            name: OURS,
            start: Start::Ours {
                program,
                keep,
                on_threads,
            },
        })
    }

    /// A list without a queue around it: what is not the queue's.
    pub(super) fn bare() -> Result<Party> {
        Ok(Party {
            name: "bare list",
            start: Start::Bare(own_program()?),
        })
    }

    /// Whether the peer keeps the status of tasks that succeeded.
    pub(super) fn keeps_status(&self) -> bool {
        self.name != OXANA
    }

    /// The command that carries out an operation.
    pub(crate) fn command(
        &self,
        url: &str,
        operation: &str,
        count: usize,
        concurrency: usize,
    ) -> Command {
        let mut command = match &self.start {
            Start::Ours {
                program,
                keep,
                on_threads,
            } => {
                let mut command = Command::new(program);
                command.args(["jobs-client", "--keep", &keep.to_string(), url]);
                if *on_threads {
                    command.arg("--on-threads");
                }
                command
            }
            Start::Bare(program) => {
                let mut command = Command::new(program);
                command.args(["jobs-client", "--bare", url]);
                command
            }
            Start::Rust(program) => {
                let mut command = Command::new(program);
                command.args([self.name, url]);
                command
            }
            Start::Node { node, directory } => {
                let mut command = Command::new(node);
                command.current_dir(directory).args(["client.mjs", url]);
                command
            }
        };
        command
            .args([operation, &count.to_string(), &concurrency.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }
}

fn own_program() -> Result<PathBuf> {
    env::current_exe().context("cannot find this program's own path")
}

/// All peers that can be had here. Those that cannot are named in the report, with the reason.
pub(super) fn peers(node: &Path, progress: &Progress, report: &mut Report) -> Vec<Party> {
    let mut peers = Vec::new();
    match bullmq(node, progress) {
        Ok(party) => peers.push(party),
        Err(error) => report.note(format!("{BULLMQ} was not measured: {error:#}")),
    }
    match rust_program(progress, report) {
        Ok((program, names)) => peers.extend(names.into_iter().map(|name| Party {
            name,
            start: Start::Rust(program.clone()),
        })),
        Err(error) => report.note(format!("the Rust peers were not measured: {error:#}")),
    }
    peers
}

/// Builds the Rust peers together or, if that fails, without those that do not build alone.
fn rust_program(progress: &Progress, report: &mut Report) -> Result<(PathBuf, Vec<&'static str>)> {
    let folder = workspace::folder("peers");
    let build = |features: &[&str]| {
        let features = features.join(",");
        progress.line(&format!("building the peers ({features})"));
        let flags = ["--package", PEERS_PROGRAM, "--features", &features];
        workspace::build(&folder, &flags)
    };
    let all: Vec<&str> = RUST_PEERS.iter().map(|(_, feature, _)| *feature).collect();
    let mut names: Vec<&str> = RUST_PEERS.iter().map(|(name, ..)| *name).collect();
    if build(&all).is_err() {
        let mut built = Vec::new();
        names.clear();
        for (name, feature, package) in RUST_PEERS {
            match build(&[feature]) {
                Ok(()) => {
                    names.push(name);
                    built.push(feature);
                }
                Err(error) => report.note(format!(
                    "{package} was not measured, since it cannot be built: {}",
                    workspace::first_cause(&error.to_string())
                )),
            }
        }
        if names.is_empty() {
            bail!("none of them can be built");
        }
        build(&built)?;
    }
    Ok((folder.join("target/release").join(PEERS_PROGRAM), names))
}

/// Installs BullMQ into the bench's cache directory, in the versions of the lock file. `npm ci` would be stricter, but
/// wants entries for the native parts of every platform.
pub(crate) fn bullmq(node: &Path, progress: &Progress) -> Result<Party> {
    let node = on_path(node).with_context(|| format!("{} was not found", node.display()))?;
    let directory = cache_directory()
        .context("there is no home directory")?
        .join("bullmq");
    fs::create_dir_all(&directory).context("cannot make the cache directory")?;
    let is_same = |name: &str, text: &str| {
        fs::read_to_string(directory.join(name)).is_ok_and(|found| found == text)
    };
    let [package, lock, _] = BULLMQ_FILES;
    let is_installed = is_same("installed.json", lock.1) && is_same(package.0, package.1);
    for (name, text) in BULLMQ_FILES {
        fs::write(directory.join(name), text).context("cannot write the client")?;
    }
    if !is_installed {
        progress.line(&format!(
            "installing BullMQ (npm install in {})",
            directory.display()
        ));
        let output = Command::new("npm")
            .args([
                "install",
                "--ignore-scripts",
                "--no-audit",
                "--no-fund",
                "--no-save",
            ])
            .current_dir(&directory)
            .stdin(Stdio::null())
            .output()
            .context("npm cannot be run")?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let reason = text.lines().find(|line| line.contains("error"));
            bail!(
                "`npm install` failed: {}",
                reason.unwrap_or("for no reason it gave").trim()
            );
        }
        // Written last: an installation that was interrupted is made again.
        fs::write(directory.join("installed.json"), lock.1).context("cannot write the client")?;
    }
    Ok(Party {
        name: BULLMQ,
        start: Start::Node { node, directory },
    })
}
