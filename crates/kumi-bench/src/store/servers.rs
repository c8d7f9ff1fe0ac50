//! The servers measured: finding them, building ours, starting and stopping them.
//!
//! Every server gets the same flags, a free loopback port and a directory of its own. No server is ever reused between
//! parts, so that one measurement's garbage is not the next one's baseline.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::children::{Child, Nursery};
use crate::cores::Cores;
use crate::procfs::{self, CpuTime};
use crate::progress::Progress;
use crate::report::{BEFORE, Report};
use crate::server_args::ServerArgs;
use crate::store::valkey;
use crate::wire::Connection;

/// How long a server may take until it answers PING.
const START_LIMIT: Duration = Duration::from_secs(15);
/// A port found free can be taken before the server binds it; then another one is tried.
const START_ATTEMPTS: usize = 3;
/// The cargo profile our server is measured with.
const PROFILE: &str = "dist";
/// The name of valkey-server in reports.
pub(crate) const VALKEY: &str = "valkey";
/// The name of the echo server in reports.
pub(crate) const FLOOR: &str = "floor";

/// What all servers of a run share: where they live, who owns them, which cores they get.
pub(crate) struct Stage {
    nursery: Nursery,
    cores: Cores,
    directory: TempDir,
}

impl Stage {
    pub(crate) fn new(no_pin: bool) -> Result<Stage> {
        let directory = tempfile::Builder::new()
            .prefix("kumi-bench-")
            .tempdir()
            .context("cannot make a temporary directory")?;
        let nursery = Nursery::new(directory.path().to_owned())?;
        let cores = if no_pin {
            Cores::Unpinned
        } else {
            Cores::pinned()
        };
        Ok(Stage {
            nursery,
            cores,
            directory,
        })
    }

    pub(crate) fn cores(&self) -> &Cores {
        &self.cores
    }

    /// Splits the cores between servers and clients from now on.
    pub(crate) fn pin(&mut self) {
        self.cores = Cores::pinned();
    }

    /// Starts a process on the clients' cores.
    pub(crate) fn spawn_client(&self, command: &mut Command) -> std::io::Result<Child> {
        self.nursery.spawn(command)
    }

    /// Starts a process on the servers' core.
    pub(crate) fn spawn_server(&self, command: &mut Command) -> std::io::Result<Child> {
        self.cores.on_server_side(|| self.nursery.spawn(command))
    }

    /// A new empty directory inside the temporary one.
    pub(crate) fn subdirectory(&self, prefix: &str) -> Result<PathBuf> {
        let directory = tempfile::Builder::new()
            .prefix(prefix)
            .tempdir_in(self.directory.path())
            .context("cannot make a temporary directory")?;
        Ok(directory.keep())
    }
}

/// How a server is started and greeted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Takes redis-server's flags and answers PING.
    Redis,
    /// Takes nats-server's, and says INFO by itself.
    Nats,
}

/// A server program that takes part.
#[derive(Clone, Debug)]
pub(crate) struct Contender {
    name: &'static str,
    kind: Kind,
    /// What this program is started with when it is the server itself; it takes a port and nothing else.
    subcommand: Option<&'static str>,
    program: PathBuf,
    version: String,
    /// Variables of its environment besides those of this process.
    variables: Vec<(&'static str, OsString)>,
}

impl Contender {
    pub(crate) fn new(name: &'static str, kind: Kind, program: PathBuf) -> Contender {
        let version = version_line(&program);
        Contender {
            name,
            kind,
            subcommand: None,
            program,
            version,
            variables: Vec::new(),
        }
    }

    /// The same server with one more variable of its environment.
    pub(crate) fn with_variable(
        &self,
        name: &'static str,
        value: impl Into<OsString>,
    ) -> Contender {
        let mut other = self.clone();
        other.variables.push((name, value.into()));
        other
    }

    /// The floor of the workloads (see [`echo`](super::echo)).
    pub(crate) fn floor() -> Result<Contender> {
        Ok(Contender {
            name: FLOOR,
            kind: Kind::Redis,
            subcommand: Some("echo-server"),
            program: env::current_exe().context("cannot find this program's own path")?,
            version: "the echo server of this program".to_owned(),
            variables: Vec::new(),
        })
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Starts this server with nothing persisted, plus `directives`, and waits until it answers.
    pub(crate) fn start(&self, stage: &Stage, directives: &[(&str, &str)]) -> Result<Server> {
        self.start_within(stage, directives, START_LIMIT)
    }

    /// The same for a server that has much to load before it answers.
    pub(crate) fn start_within(
        &self,
        stage: &Stage,
        directives: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Server> {
        let mut last = None;
        for _ in 0..START_ATTEMPTS {
            match self.start_once(stage, directives, limit) {
                Ok(server) => return Ok(server),
                Err(error) => last = Some(error),
            }
        }
        let error = last.unwrap_or_else(|| anyhow::anyhow!("it was never tried"));
        Err(error.context(format!("cannot start {}", self.program.display())))
    }

    fn start_once(
        &self,
        stage: &Stage,
        directives: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Server> {
        let directory = stage.subdirectory(self.name)?;
        let log = directory.join("log");
        let output = File::create(&log).context("cannot make a log file")?;
        let address = free_address()?;
        let mut command = Command::new(&self.program);
        match (self.subcommand, self.kind) {
            (Some(subcommand), _) => command.arg(subcommand),
            (None, Kind::Redis) => command
                .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
                .arg("--dir")
                .arg(&directory),
            (None, Kind::Nats) => command
                .args(["--addr", "127.0.0.1"])
                .current_dir(&directory),
        };
        command
            .args(["--port", &address.port().to_string()])
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("cannot share a log file")?)
            .stderr(output);
        for (name, value) in directives {
            command.arg(format!("--{name}")).arg(value);
        }
        let child = stage.spawn_server(&mut command)?;
        let server = Server {
            child,
            address,
            name: self.name,
        };
        server.wait_until_ready(self.kind, &log, limit)?;
        Ok(server)
    }
}

/// A running server; dropping it ends it.
pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    name: &'static str,
}

impl Server {
    /// A process that was started otherwise, and replies at this address.
    pub(crate) fn adopt(child: Child, address: SocketAddr, name: &'static str) -> Server {
        Server {
            child,
            address,
            name,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn cpu_time(&self) -> Result<CpuTime> {
        CpuTime::of(self.child.pid())
    }

    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        procfs::resident_bytes(self.child.pid())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Waits for the process to end by itself; `None` when it still runs after `limit`.
    pub(crate) fn wait(&self, limit: Duration) -> Result<Option<ExitStatus>> {
        self.child.wait(limit).context("cannot wait for the server")
    }

    fn wait_until_ready(&self, kind: Kind, log: &Path, limit: Duration) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.child.ended()? {
                bail!(
                    "it ended at once ({status}); the end of its log: {}",
                    end_of_log(log)
                );
            }
            let greeting = Connection::open(self.address).and_then(|mut connection| match kind {
                Kind::Redis => connection.command(&[b"PING"]),
                Kind::Nats => connection.reply(),
            });
            let expected: &[u8] = match kind {
                Kind::Redis => b"+PONG",
                Kind::Nats => b"INFO ",
            };
            if greeting.is_ok_and(|line| line.starts_with(expected)) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!(
            "it did not answer within {} s; the end of its log: {}",
            limit.as_secs(),
            end_of_log(log)
        )
    }
}

/// The servers of every run: ours, redis-server, and valkey-server if it can be found or installed; or two builds of ours.
pub(crate) fn contenders(
    args: &ServerArgs,
    progress: &Progress,
    report: &mut Report,
) -> Result<Vec<Contender>> {
    let ours = kumi(args.kumi_server.as_deref(), progress)?;
    if let Some(before) = &args.against {
        let before = find_program(before, "check --against")?;
        return Ok(vec![ours, Contender::new(BEFORE, Kind::Redis, before)]);
    }
    let hint = "install Debian's redis-server package, or name one with --redis-server";
    let redis = find_program(&args.redis_server, hint)?;
    let mut contenders = vec![ours, Contender::new("redis", Kind::Redis, redis)];
    match valkey::find(&args.valkey_server, progress) {
        Ok(program) => contenders.push(Contender::new(VALKEY, Kind::Redis, program)),
        Err(reason) => report.note(format!("{VALKEY} was not measured: {reason}")),
    }
    Ok(contenders)
}

/// Our server: the one named, or one built from this workspace.
pub(crate) fn kumi(kumi_server: Option<&Path>, progress: &Progress) -> Result<Contender> {
    let program = match kumi_server {
        Some(path) => find_program(path, "check --kumi-server")?,
        None => build_program("kumi-server", progress)?,
    };
    Ok(Contender::new("kumi", Kind::Redis, program))
}

/// Builds a package's program of the same name with the `dist` profile into the target directory this program runs from, so that
/// what is measured is what the sources say. When it is up to date, cargo does nothing. A bench copied elsewhere takes the program
/// beside it.
pub(crate) fn build_program(package: &str, progress: &Progress) -> Result<PathBuf> {
    let bench = env::current_exe().context("cannot find this program's own path")?;
    let beside = bench.with_file_name(package);
    let target = bench
        .ancestors()
        .nth(2)
        .filter(|directory| directory.join("CACHEDIR.TAG").exists());
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (Some(target), true) = (target, workspace.join("Cargo.toml").exists()) else {
        return find_program(&beside, &format!("name one with --{package}"));
    };
    progress.line(&format!(
        "building {package} (cargo build --profile {PROFILE} -p {package})"
    ));
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--profile", PROFILE, "-p", package])
        .args(["--bin", package, "--target-dir"])
        .arg(target)
        .current_dir(&workspace)
        .status()
        .with_context(|| format!("cannot run cargo; name a built program with --{package}"))?;
    if !status.success() {
        bail!("cargo could not build {package} ({status}); name a built one with --{package}");
    }
    find_program(
        &target.join(PROFILE).join(package),
        &format!("cargo built it elsewhere; name it with --{package}"),
    )
}

/// Where a program is, or an error with a hint.
pub(crate) fn find_program(program: &Path, hint: &str) -> Result<PathBuf> {
    on_path(program).with_context(|| format!("{} was not found: {hint}", program.display()))
}

/// A program given by path, or by name and then looked for on PATH.
pub(crate) fn on_path(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

fn version_line(program: &Path) -> String {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default();
    text.lines()
        .next()
        .unwrap_or("unknown version")
        .trim()
        .to_owned()
}

/// An address of the loopback interface whose port was free just now.
pub(crate) fn free_address() -> Result<SocketAddr> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot find a free port")?;
    listener.local_addr().context("cannot find a free port")
}

/// The last three lines of a log, joined to one; "none" if there are none.
pub(crate) fn end_of_log(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match lines.len() {
        0 => "none".to_owned(),
        count => lines[count.saturating_sub(3)..].join(" | "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_by_name_or_by_path() {
        assert!(on_path(Path::new("sh")).is_some());
        assert_eq!(
            on_path(Path::new("/bin/sh")),
            Some(PathBuf::from("/bin/sh"))
        );
        assert_eq!(on_path(Path::new("no-such-program-anywhere")), None);
        assert_eq!(on_path(Path::new("/nowhere/sh")), None);
    }

    #[test]
    fn the_end_of_a_log_is_its_last_lines() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        assert_eq!(end_of_log(&log), "none");
        fs::write(&log, "one\ntwo\n\n three\nfour\n").unwrap();
        assert_eq!(end_of_log(&log), "two | three | four");
    }
}
