//! Lua interpreters beside each other: kumi-lua inside kumi-server, PUC-Rio's C Lua inside redis-server and
//! valkey-server, and mlua's Luau and Lua 5.1 and luna-core in a process of their own.
//!
//! The servers run a program by EVALSHA, whose own cost is small beside the milliseconds that a program takes. mlua has
//! room for one Lua per build, so the program is built once for each, outside this workspace.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::programs::{PROGRAMS, Program};
use super::{Plan, bulk_reply};
use crate::progress::Progress;
use crate::report::{Report, Row};
use crate::stats::Sample;
use crate::store::servers::{Contender, Server, Stage};
use crate::wire::Connection;
use crate::workspace;

/// The other interpreters, which are features of the peers' program too.
const PEERS: [&str; 3] = ["luau", "lua51", "luna"];
const PEERS_PACKAGE: &str = "kumi-bench-lua-peers";
/// How often a program runs in one measurement.
const REPEATS: usize = 20;

pub(super) fn measure(
    stage: &Stage,
    plan: &Plan,
    contenders: &[Contender],
    with_peers: bool,
    progress: &Progress,
    report: &mut Report,
) -> Result<()> {
    let mut peers = Vec::new();
    for peer in PEERS.into_iter().filter(|_| with_peers) {
        match build(peer, progress) {
            Ok(program) => peers.push((peer, program)),
            Err(error) => report.note(format!(
                "{peer} was not measured, since it cannot be built: {}",
                workspace::first_cause(&error.to_string())
            )),
        }
    }
    let mut servers = Vec::new();
    for contender in contenders {
        servers.push(contender.start(stage, &[])?);
    }
    let mut task = progress.task("interpreters", PROGRAMS.len() * plan.runs);
    let mut rows = Vec::new();
    for program in &PROGRAMS {
        let mut times: Vec<(&'static str, Vec<f64>)> = Vec::new();
        let mut expected = None;
        let mut agree = |name: &str, result: String| {
            let first = expected.get_or_insert_with(|| result.clone());
            ensure!(
                *first == result,
                "{}: {name} returns {result}, not {first}",
                program.name
            );
            Ok(())
        };
        for run in 0..plan.runs {
            task.begin(&format!("{}: run {}", program.label, run + 1));
            for server in &servers {
                let (result, us) = evaluate(server, program)?;
                agree(server.name(), result)?;
                push(&mut times, server.name(), us);
            }
            for (peer, binary) in peers.iter().filter(|_| !program.needs_server) {
                let (result, us) = run_peer(binary, program)
                    .with_context(|| format!("{peer} does not run {}", program.name))?;
                agree(peer, result)?;
                push(&mut times, peer, us);
            }
            task.end();
        }
        let mut row = Row::new(format!("lua.{}.cpu_us", program.name), program.label, "us");
        for (name, times) in times {
            row.add(name, Sample::new(times).context("no run was made")?);
        }
        rows.push(report.shown(row));
    }
    let title = format!(
        "CPU time of Lua programs without Redis calls, median of {} (lowest..highest)",
        plan.runs
    );
    report.section(title, rows);
    Ok(())
}

fn push(times: &mut Vec<(&'static str, Vec<f64>)>, name: &'static str, us: f64) {
    match times.iter_mut().find(|(other, _)| *other == name) {
        Some((_, times)) => times.push(us),
        None => times.push((name, vec![us])),
    }
}

/// Runs a program by EVALSHA. Returns its result, and the server's CPU time per run.
fn evaluate(server: &Server, program: &Program) -> Result<(String, f64)> {
    let mut connection = Connection::open(server.address())?;
    let source = program.source.as_bytes();
    let digest = bulk_reply(&mut connection, &[b"SCRIPT", b"LOAD", source])?;
    let words: [&[u8]; 3] = [b"EVALSHA", digest.as_bytes(), b"0"];
    let mut result = connection.command(&words)?;
    let before = server.cpu_time()?;
    for _ in 0..REPEATS {
        result = connection.command(&words)?;
    }
    let used = server.cpu_time()?.since(before);
    let result = String::from_utf8_lossy(&result);
    let result = result.trim_start_matches(':').to_owned();
    Ok((result, used.busy_ns as f64 / 1000.0 / REPEATS as f64))
}

/// Runs a program in a peer's process, which prints `outcome RESULT MICROSECONDS`.
fn run_peer(binary: &Path, program: &Program) -> Result<(String, f64)> {
    let mut child = Command::new(binary)
        .arg(REPEATS.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start it")?;
    let mut input = child.stdin.take().context("it has no input")?;
    input.write_all(program.source.as_bytes())?;
    drop(input);
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let [result, us] =
        workspace::outcome(&text).with_context(|| format!("it said {:?}", text.trim()))?;
    Ok((format!("{result}"), us))
}

/// Builds the peers' program with one interpreter, in a target directory of its own.
fn build(peer: &str, progress: &Progress) -> Result<PathBuf> {
    let folder = workspace::folder("peers");
    progress.line(&format!("building {peer}"));
    let target = folder.join("target").join(peer);
    let target_text = target.to_str().context("the path is not UTF-8")?;
    let flags = [
        "--package",
        PEERS_PACKAGE,
        "--features",
        peer,
        "--target-dir",
        target_text,
    ];
    workspace::build(&folder, &flags)?;
    Ok(target.join("release").join(PEERS_PACKAGE))
}
