//! One measured run: a fresh server, tasks in it, and a client on cores of its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::children::Child;
use crate::jobs::parties::Party;
use crate::procfs::CpuTime;
use crate::store::servers::{Contender, Server, Stage};
use crate::wire::{self, Connection};

/// Words of a failed client's errors that are shown.
const COMPLAINT_WORDS: usize = 40;

/// Figures that a client may say; those that it leaves out are 0.
const FIGURES: usize = 9;

/// How the server writes to disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disk {
    None,
    EverySecond,
}

impl Disk {
    fn directives(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Disk::None => &[],
            Disk::EverySecond => &[("appendonly", "yes"), ("appendfsync", "everysec")],
        }
    }
}

/// A server, and the way to run clients against it.
pub(crate) struct Trial<'a> {
    stage: &'a Stage,
    server: Server,
}

/// What a client's operation took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(super) seconds: f64,
    pub(super) server: CpuTime,
    pub(super) client: CpuTime,
    /// The client's own figures.
    pub(super) said: [f64; FIGURES],
}

impl Outcome {
    pub(super) fn per_second(&self, tasks: usize) -> f64 {
        tasks as f64 / self.seconds
    }

    pub(crate) fn server_us(&self, tasks: usize) -> f64 {
        self.server.busy_ns as f64 / 1000.0 / tasks as f64
    }

    pub(crate) fn client_us(&self, tasks: usize) -> f64 {
        self.client.busy_ns as f64 / 1000.0 / tasks as f64
    }

    /// The share of the time in which the server had work to do: it ran, or something else had its core.
    pub(super) fn server_share(&self) -> f64 {
        share(self.server, self.seconds)
    }

    pub(super) fn client_share(&self) -> f64 {
        share(self.client, self.seconds)
    }
}

fn share(time: CpuTime, seconds: f64) -> f64 {
    (time.busy_ns + time.waited_ns) as f64 / 1e9 / seconds * 100.0
}

impl<'a> Trial<'a> {
    pub(super) fn start(stage: &'a Stage, redis: &Contender, disk: Disk) -> Result<Trial<'a>> {
        let server = redis.start(stage, disk.directives())?;
        Ok(Trial { stage, server })
    }

    /// On a server that runs already.
    pub(crate) fn on(stage: &'a Stage, server: Server) -> Trial<'a> {
        Trial { stage, server }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Starts a client and waits until it is prepared.
    pub(super) fn client(
        &self,
        party: &Party,
        operation: &str,
        count: usize,
        concurrency: usize,
    ) -> Result<Client> {
        let url = format!("redis://{}/", self.server.address());
        let mut command = party.command(&url, operation, count, concurrency);
        let complaints = self.stage.subdirectory("client")?.join("log");
        let log = File::create(&complaints).context("cannot make a log file")?;
        command.env("RUST_BACKTRACE", "0").stderr(log);
        let mut child = self
            .stage
            .spawn_client(&mut command)
            .with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("the client has no output")?;
        let mut client = Client {
            child,
            lines: BufReader::new(output),
            complaints,
        };
        let line = client.line()?;
        if line != "ready" {
            bail!("the client said '{line}'");
        }
        Ok(client)
    }

    /// Runs an operation and reads what it took.
    pub(crate) fn measure(
        &self,
        party: &Party,
        operation: &str,
        count: usize,
        concurrency: usize,
    ) -> Result<Outcome> {
        let mut client = self.client(party, operation, count, concurrency)?;
        let server = self.server.cpu_time()?;
        let own = CpuTime::of(client.child.pid())?;
        let begun = Instant::now();
        client.go()?;
        let line = client.line()?;
        let seconds = begun.elapsed().as_secs_f64();
        let said = line
            .strip_prefix("done")
            .with_context(|| format!("the client said '{line}'"))?;
        let mut numbers = said.split_whitespace().map(str::parse);
        let mut number = || numbers.next().transpose().ok().flatten().unwrap_or(0.0);
        Ok(Outcome {
            seconds,
            server: self.server.cpu_time()?.since(server),
            client: CpuTime::of(client.child.pid())?.since(own),
            said: std::array::from_fn(|_| number()),
        })
    }

    /// Enqueues tasks without measuring it.
    pub(crate) fn fill(&self, party: &Party, count: usize) -> Result<()> {
        self.measure(party, "enqueue-bulk", count, 1)?;
        Ok(())
    }

    /// Bytes that the server's data takes.
    pub(super) fn used_bytes(&self) -> Result<u64> {
        info(self.server.address(), "memory", "used_memory")
    }
}

/// A client that is prepared.
pub(super) struct Client {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    /// The file that it writes errors to.
    complaints: PathBuf,
}

/// A number that a server's INFO shows.
pub(super) fn info<T: FromStr>(address: SocketAddr, section: &str, field: &str) -> Result<T> {
    let mut connection = Connection::open(address)?;
    let mut bytes = Vec::new();
    wire::push_command(&mut bytes, &[b"INFO", section.as_bytes()]);
    connection.send(&bytes)?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while Instant::now() < deadline {
        let line = connection.reply()?;
        let line = String::from_utf8_lossy(&line);
        if let Some((name, value)) = line.split_once(':')
            && name == field
        {
            let number = value.trim_end().parse().ok();
            return number.with_context(|| format!("{field} is not a number: {value}"));
        }
    }
    bail!("INFO {section} has no {field}")
}

impl Client {
    /// Lets it begin.
    pub(super) fn go(&mut self) -> Result<()> {
        let input = self
            .child
            .stdin
            .as_mut()
            .context("the client has no input")?;
        input.write_all(b"go\n").context("the client ended")
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = self
            .lines
            .read_line(&mut line)
            .context("the client's output")?;
        if read == 0 {
            let text = fs::read_to_string(&self.complaints).unwrap_or_default();
            let words: Vec<&str> = text.split_whitespace().take(COMPLAINT_WORDS).collect();
            bail!("the client ended: {}", words.join(" "));
        }
        Ok(line.trim_end().to_owned())
    }
}
