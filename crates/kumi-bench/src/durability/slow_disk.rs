//! The longest wait of a write while a snapshot or a rewrite runs on a disk whose syncs take long.
//!
//! The disk is slow because a library loaded before libc (LD_PRELOAD) has every fsync and fdatasync sleep first. `cc`
//! compiles it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::writers::{Probe, Writers, persistence};
use super::{Bench, VALUE, key};
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::servers::{Contender, Server};
use crate::wire::{self, Connection};

/// The library's source.
const DELAY: &str = include_str!("../../../../tests/slow_disk/delay.c");
/// Between two looks at whether the snapshot has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// A snapshot that takes longer than this is taken for stuck.
const LIMIT: Duration = Duration::from_secs(600);

/// What is measured: a name, a command, and the fields of INFO that are 0 when it has ended.
const RUNS: [(&str, &[u8], &[&str]); 2] = [
    ("bgsave", b"BGSAVE", &["rdb_bgsave_in_progress"]),
    (
        "rewrite",
        b"BGREWRITEAOF",
        &["aof_rewrite_in_progress", "aof_rewrite_scheduled"],
    ),
];

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let library = compile(&bench.stage.subdirectory("slow-disk")?)?;
    let mut rows: Vec<Row> = Vec::new();
    for (name, ..) in RUNS {
        rows.push(
            Row::new(
                format!("durability.slow_disk.{name}.longest_wait"),
                format!("{name}: longest wait of a write"),
                "ms",
            )
            .goal(Some(Goal::RatioAtMost(2.0))),
        );
        rows.push(Row::new(
            format!("durability.slow_disk.{name}.seconds"),
            format!("{name}: duration"),
            "s",
        ));
    }
    for contender in &bench.contenders {
        let name = contender.name();
        let slow = contender
            .with_variable("LD_PRELOAD", library.as_os_str())
            .with_variable("SLOW_DISK_MS", bench.args.sync_ms.to_string());
        let figures =
            run(bench, &slow).with_context(|| format!("cannot measure {name} on a slow disk"))?;
        for (row, figure) in rows.iter_mut().zip(figures) {
            row.add(name, Sample::single(figure));
        }
    }
    let title = format!(
        "{} keys on a disk with {} ms per sync, {} connections write at pipeline {}, appendfsync everysec",
        bench.args.keys, bench.args.sync_ms, bench.args.connections, bench.args.pipeline
    );
    report.section(title, rows);
    Ok(())
}

fn compile(directory: &Path) -> Result<PathBuf> {
    let (source, library) = (directory.join("delay.c"), directory.join("delay.so"));
    fs::write(&source, DELAY)?;
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([&library, &source])
        .status()
        .context("cannot run cc")?;
    if !compiled.success() {
        bail!("cc failed");
    }
    Ok(library)
}

/// The longest wait in milliseconds and the duration in seconds, for each of [`RUNS`].
fn run(bench: &Bench<'_>, contender: &Contender) -> Result<Vec<f64>> {
    let args = bench.args;
    let directory = bench.stage.subdirectory("slow")?;
    let dir = directory.to_str().context("a path that is no text")?;
    let directives = [
        ("dir", dir),
        ("appendonly", "yes"),
        ("auto-aof-rewrite-percentage", "0"),
    ];
    let server = contender.start(&bench.stage, &directives)?;
    bench
        .progress
        .line(&format!("{}: loading {} keys", contender.name(), args.keys));
    wire::load(server.address(), args.keys, |index, out| {
        wire::push_command(out, &[b"SET", key(index).as_bytes(), VALUE]);
    })?;
    let writers = Writers::start(server.address(), args.connections, args.pipeline, args.keys)?;
    let mut figures = Vec::new();
    for (name, command, fields) in RUNS {
        bench
            .progress
            .line(&format!("{}: {name} on a slow disk", contender.name()));
        let (wait_ms, seconds) = longest_wait(&server, command, fields)?;
        figures.extend([wait_ms, seconds]);
    }
    writers.stop()?;
    Ok(figures)
}

fn longest_wait(server: &Server, command: &[u8], fields: &[&str]) -> Result<(f64, f64)> {
    let probe = Probe::of_writes(server.address())?;
    let mut connection = Connection::open(server.address())?;
    let start = Instant::now();
    connection.command(&[command])?;
    while !has_ended(&mut connection, fields)? {
        if start.elapsed() > LIMIT {
            bail!("it did not end");
        }
        thread::sleep(LOOK_INTERVAL);
    }
    let seconds = start.elapsed().as_secs_f64();
    let waits = Sample::new(probe.stop()?).context("the probe got no reply")?;
    for status in ["rdb_last_bgsave_status", "aof_last_bgrewrite_status"] {
        let status = persistence(&mut connection, status)?;
        if status != "ok" {
            bail!("it failed: {status}");
        }
    }
    Ok((waits.max(), seconds))
}

fn has_ended(connection: &mut Connection, fields: &[&str]) -> Result<bool> {
    for field in fields {
        if persistence(connection, field)? != "0" {
            return Ok(false);
        }
    }
    Ok(true)
}
