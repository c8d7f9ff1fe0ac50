//! Runs redis-benchmark against a server and reads the rate it reports and the CPU time the server used.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::store::servers::{Server, Stage, find_program};

/// A run this many times longer than planned is taken for hung.
const TIMEOUT_FACTOR: f64 = 20.0;
/// Lets the server finish closing connections, which belongs to the run before, not to the next.
const SETTLE: Duration = Duration::from_millis(50);

/// What redis-benchmark sends, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    /// The command; redis-benchmark puts a random number of twelve digits for each `__rand_int__`.
    pub(crate) command: &'a [&'a str],
    /// Requests in one write of a connection.
    pub(crate) pipeline: usize,
    pub(crate) connections: usize,
    /// Random numbers are below this.
    pub(crate) keys: usize,
    pub(crate) requests: usize,
    /// How long the run is expected to last.
    pub(crate) seconds: f64,
}

/// What one run gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) operations_per_second: f64,
    pub(crate) cpu_us_per_operation: f64,
    /// Time the server was ready but had no core, in percent of the run.
    pub(crate) waited_percent: f64,
}

/// Finds redis-benchmark.
pub(crate) fn find_benchmark(program: &Path) -> Result<PathBuf> {
    find_program(
        program,
        "install Debian's redis-tools package, or name one with --redis-benchmark",
    )
}

/// A redis-benchmark on the clients' cores.
pub(crate) struct Driver<'a> {
    stage: &'a Stage,
    program: &'a Path,
    /// Where redis-benchmark writes; a file, because a full pipe would block it.
    output: PathBuf,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(stage: &'a Stage, program: &'a Path) -> Result<Driver<'a>> {
        Ok(Driver {
            stage,
            program,
            output: stage.subdirectory("redis-benchmark")?.join("csv"),
        })
    }

    pub(crate) fn run(&self, load: Load<'_>, server: &Server) -> Result<Run> {
        self.run_benchmark(load, server).with_context(|| {
            let command = load.command.first().unwrap_or(&"");
            format!(
                "redis-benchmark failed: {command} against {}",
                server.name()
            )
        })
    }

    fn run_benchmark(&self, load: Load<'_>, server: &Server) -> Result<Run> {
        let output = File::create(&self.output).context("cannot make an output file")?;
        let mut command = self.command(load, server);
        command
            .stderr(output.try_clone().context("cannot share an output file")?)
            .stdout(output);
        let before = server.cpu_time()?;
        let child = self
            .stage
            .spawn_client(&mut command)
            .context("cannot start it")?;
        let limit = Duration::from_secs_f64(60.0 + load.seconds * TIMEOUT_FACTOR);
        let status = child.wait(limit)?;
        thread::sleep(SETTLE);
        let used = server.cpu_time()?.since(before);
        let text = fs::read_to_string(&self.output).unwrap_or_default();
        match status {
            None => bail!(
                "it did not end within {} s; it said: {}",
                limit.as_secs(),
                text.trim()
            ),
            Some(status) if !status.success() => bail!("{status}; it said: {}", text.trim()),
            Some(_) => {}
        }
        let operations_per_second = parse_rate(&text, load.command)
            .with_context(|| format!("no rate in its output: {}", text.trim()))?;
        let run_ns = load.requests as f64 / operations_per_second * 1e9;
        Ok(Run {
            operations_per_second,
            cpu_us_per_operation: used.busy_ns as f64 / 1000.0 / load.requests as f64,
            waited_percent: used.waited_ns as f64 / run_ns * 100.0,
        })
    }

    /// The command line, with standard input closed.
    pub(crate) fn command(&self, load: Load<'_>, server: &Server) -> Command {
        let mut command = Command::new(self.program);
        let port = server.address().port();
        let numbers = [
            ("-p", usize::from(port)),
            ("-n", load.requests),
            ("-c", load.connections),
            ("-P", load.pipeline),
            ("-r", load.keys),
        ];
        command.args(["-h", "127.0.0.1"]);
        for (flag, number) in numbers {
            command.arg(flag).arg(number.to_string());
        }
        command.arg("--csv").args(load.command).stdin(Stdio::null());
        command
    }
}

/// The rate in redis-benchmark's CSV, whose first two columns are the command and its requests per second.
fn parse_rate(csv: &str, command: &[&str]) -> Option<f64> {
    let title = command.join(" ");
    csv.lines().find_map(|line| {
        let mut columns = line
            .split(',')
            .map(|column| column.trim().trim_matches('"'));
        if columns.next()? != title {
            return None;
        }
        columns
            .next()?
            .parse()
            .ok()
            .filter(|rate: &f64| *rate > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "\"test\",\"rps\",\"avg_latency_ms\"\n\"SET k v\",\"114942.53\",\"0.243\"\n\"GET k\",\"0.00\",\"1\"\n";

    #[test]
    fn the_rate_is_the_second_column_of_the_commands_row() {
        assert_eq!(parse_rate(CSV, &["SET", "k", "v"]), Some(114_942.53));
    }

    #[test]
    fn a_missing_or_empty_rate_is_none() {
        assert_eq!(parse_rate(CSV, &["GET", "k"]), None);
        assert_eq!(parse_rate(CSV, &["INCR", "k"]), None);
        assert_eq!(parse_rate("Could not connect to server", &["SET"]), None);
    }
}
