//! `kumi-bench profile`: which functions of kumi-server take the CPU time of a workload.
//!
//! Samples are taken by Linux's perf on a timer of the CPU clock, which works in virtual machines too, and include the
//! kernel's functions where the system allows it (`kernel.perf_event_paranoid` at 1 or less, or root).

use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::args::ProfileArgs;
use crate::progress::Progress;
use crate::store::driver::{self, Driver, Load};
use crate::store::servers::{self, Stage};
use crate::store::workloads::{COMMANDS, preload, preload_counters};

/// More than any server here answers in a second, so that the load outlasts the samples.
const REQUESTS_PER_SECOND: f64 = 4_000_000.0;
const CONNECTIONS: usize = 50;
const SAMPLES_PER_SECOND: &str = "1999";
/// Lets the load reach its speed.
const WARM_UP: Duration = Duration::from_secs(1);

/// Runs the workload, takes the samples and prints the functions, the most expensive first.
pub(crate) fn run(args: &ProfileArgs) -> Result<()> {
    let Some(command) = COMMANDS.iter().find(|row| row.name == args.workload) else {
        let names: Vec<&str> = COMMANDS.iter().map(|command| command.name).collect();
        bail!(
            "there is no workload {:?}; there are {}",
            args.workload,
            names.join(", ")
        );
    };
    let perf = servers::find_program("perf".as_ref(), "install Debian's linux-perf package")?;
    let benchmark = driver::find_benchmark(&args.redis_benchmark)?;
    let progress = Progress::new();
    let kumi = servers::kumi(args.kumi_server.as_deref(), &progress)?;
    let stage = Stage::new(false)?;
    let server = kumi.start(&stage, &[])?;
    progress.line(&format!("loading {} keys", args.keys));
    preload(&server, args.keys)?;
    if command.needs_counters() {
        preload_counters(&server, args.keys)?;
    }
    let seconds = args.seconds.max(0.1);
    let load = Load {
        command: command.words,
        pipeline: args.pipeline.max(1),
        connections: CONNECTIONS,
        keys: args.keys,
        requests: (REQUESTS_PER_SECOND * (seconds + WARM_UP.as_secs_f64())) as usize,
        seconds,
    };
    let mut client = Driver::new(&stage, &benchmark)?.command(load, &server);
    client.stdout(Stdio::null()).stderr(Stdio::null());
    let client = stage
        .spawn_client(&mut client)
        .context("cannot start redis-benchmark")?;
    thread::sleep(WARM_UP);
    progress.line(&format!("taking samples for {seconds} s"));
    let data = stage.subdirectory("perf")?.join("samples");
    let recorded = Command::new(&perf)
        .args([
            "record",
            "--quiet",
            "-e",
            "cpu-clock",
            "-F",
            SAMPLES_PER_SECOND,
        ])
        .args(["-p", &server.pid().to_string(), "-o"])
        .arg(&data)
        .args(["--", "sleep", &seconds.to_string()])
        .stdin(Stdio::null())
        .output()
        .context("cannot start perf")?;
    let outlasted = client.ended()?.is_none();
    drop(client);
    if !recorded.status.success() {
        bail!(
            "perf record: {}",
            String::from_utf8_lossy(&recorded.stderr).trim()
        );
    }
    if !outlasted {
        bail!("redis-benchmark ended before the samples were taken");
    }
    let report = Command::new(&perf)
        .args([
            "report",
            "--stdio",
            "--no-children",
            "-F",
            "overhead,dso,symbol",
        ])
        .args(["--percent-limit", "0.1", "-i"])
        .arg(&data)
        .stdin(Stdio::null())
        .output()
        .context("cannot start perf")?;
    if !report.status.success() {
        bail!(
            "perf report: {}",
            String::from_utf8_lossy(&report.stderr).trim()
        );
    }
    println!(
        "CPU samples of kumi-server: {} at pipeline {}, {} keys, {CONNECTIONS} connections",
        command.name, load.pipeline, args.keys
    );
    let text = String::from_utf8_lossy(&report.stdout);
    for line in functions(&text).take(args.functions) {
        println!("{line}");
    }
    Ok(())
}

/// The lines of perf's report that name a function, without its header.
fn functions(report: &str) -> impl Iterator<Item = &str> {
    let lines = report.lines().map(str::trim_end);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_and_empty_lines_are_left_out() {
        let report = "# To display\n#\n\n    12.00%  kumi-server  [.] find\n     1.00%  [kernel]  [k] read \n\n";
        let lines: Vec<&str> = functions(report).collect();
        assert_eq!(
            lines,
            [
                "    12.00%  kumi-server  [.] find",
                "     1.00%  [kernel]  [k] read"
            ]
        );
    }
}
