//! What a server costs while it has nothing to do but keep connections open.
//!
//! The connections are held by another process, this program started again, so that their descriptors and timers are
//! not part of the measurement and the bench's own limit does not matter. Each one is opened, answered once, and left.

use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Resource, getrlimit};

use crate::args::{IdleClientArgs, Plan};
use crate::progress::Progress;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::servers::{Contender, Stage};

/// Standard streams, listeners, logs: descriptors a process needs beside its connections.
const OTHER_DESCRIPTORS: u64 = 100;
/// Connections opened before their answers are awaited; less than the backlog servers usually listen with.
const BATCH: usize = 100;
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Lets the work of accepting connections end before the clock starts.
const SETTLE: Duration = Duration::from_secs(2);
const READY: &str = "ready";

/// Measures every contender.
pub(crate) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let connections = plan.idle_connections;
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    if limit < connections as u64 + OTHER_DESCRIPTORS {
        report.note(format!(
            "idle connections were not measured: {connections} of them need more open files than {limit} (ulimit -n)"
        ));
        return Ok(());
    }
    let mut task = progress.task("idle", contenders.len());
    let mut row =
        Row::new("store.idle.cpu_percent", "server CPU", "%").goal(Some(Goal::AtMost(1.0)));
    for contender in contenders {
        task.begin(&format!(
            "{connections} connections to {}",
            contender.name()
        ));
        let percent = cpu_percent(stage, plan, contender).with_context(|| {
            format!("cannot measure {} with idle connections", contender.name())
        })?;
        row.add(contender.name(), Sample::single(percent));
        task.end();
    }
    let title = format!(
        "Idle: {connections} connections, over {} s, in percent of a core",
        plan.idle_period.as_secs()
    );
    report.section(title, vec![row]);
    Ok(())
}

fn cpu_percent(stage: &Stage, plan: &Plan, contender: &Contender) -> Result<f64> {
    let maxclients = (plan.idle_connections + plan.idle_connections / 5).to_string();
    let server = contender.start(stage, &[("maxclients", &maxclients)])?;
    let mut command =
        Command::new(env::current_exe().context("cannot find this program's own path")?);
    command
        .args(["idle-client", "--address", &server.address().to_string()])
        .args(["--connections", &plan.idle_connections.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut client = stage
        .spawn_client(&mut command)
        .context("cannot start the idle client")?;
    let stdout = client
        .stdout
        .take()
        .context("the idle client has no output")?;
    let mut line = String::new();
    BufReader::new(stdout)
        .read_line(&mut line)
        .context("cannot hear the idle client")?;
    if line.trim() != READY {
        bail!("the idle client could not open its connections");
    }
    thread::sleep(SETTLE);
    let before = server.cpu_time()?;
    thread::sleep(plan.idle_period);
    let used = server.cpu_time()?.since(before);
    if client.ended()?.is_some() {
        bail!("the idle client lost its connections");
    }
    Ok(used.busy_ns as f64 / plan.idle_period.as_nanos() as f64 * 100.0)
}

/// The other process: opens the connections, says so, and holds them until standard input closes, which the end of the
/// bench does as well, however it came.
pub(crate) fn hold_connections(args: &IdleClientArgs) -> Result<()> {
    let mut held: Vec<TcpStream> = Vec::with_capacity(args.connections);
    while held.len() < args.connections {
        let first = held.len();
        for _ in first..args.connections.min(first + BATCH) {
            let mut stream =
                TcpStream::connect_timeout(&args.address, ANSWER_LIMIT).with_context(|| {
                    format!(
                        "cannot open connection {} to {}",
                        held.len() + 1,
                        args.address
                    )
                })?;
            stream.set_read_timeout(Some(ANSWER_LIMIT))?;
            stream.write_all(b"PING\r\n")?;
            held.push(stream);
        }
        for (offset, stream) in held[first..].iter_mut().enumerate() {
            let mut answer = [0; 7];
            stream
                .read_exact(&mut answer)
                .with_context(|| format!("connection {} was not answered", first + offset + 1))?;
            if &answer != b"+PONG\r\n" {
                bail!(
                    "connection {} got {:?}",
                    first + offset + 1,
                    String::from_utf8_lossy(&answer)
                );
            }
        }
    }
    println!("{READY}");
    io::stdout().flush()?;
    io::copy(&mut io::stdin(), &mut io::sink()).context("cannot wait on standard input")?;
    Ok(())
}
