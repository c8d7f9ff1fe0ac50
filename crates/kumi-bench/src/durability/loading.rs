//! Loading one RDB file and one append-only file, both written by redis-server, on both servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::saving::file_of;
use super::{Bench, VALUE, key};
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::wire::{self, Connection};

/// A server may take this long to load.
const LOAD_LIMIT: Duration = Duration::from_secs(300);
/// Where the append-only file is.
const LOG_DIRECTORY: &str = "appendonlydir";
/// Both files are loaded this often, of which the median counts.
const RUNS: usize = 3;

/// What is loaded.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Rdb,
    Log,
}

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    for source in [Source::Rdb, Source::Log] {
        let (name, what) = match source {
            Source::Rdb => ("load", "an RDB file"),
            Source::Log => ("load_log", "an append-only file"),
        };
        let made = make(bench, source)?;
        let mut seconds = Row::new(
            format!("durability.{name}.seconds"),
            "until it replies",
            "s",
        )
        .goal(Some(Goal::RatioAtMost(1.0 / 1.5)));
        let mut cpu = Row::new(format!("durability.{name}.cpu"), "CPU time until then", "s");
        for contender in &bench.contenders {
            bench
                .progress
                .line(&format!("{} loads {what}", contender.name()));
            let (mut waits, mut busy) = (Vec::new(), Vec::new());
            for _ in 0..RUNS {
                let directory = bench.stage.subdirectory("loaded")?;
                copy(&made, &directory, source)?;
                let dir = directory.to_str().context("a path that is no text")?;
                let log = if source == Source::Log { "yes" } else { "no" };
                let start = Instant::now();
                let directives = [("dir", dir), ("appendonly", log)];
                let server = contender.start_within(&bench.stage, &directives, LOAD_LIMIT)?;
                waits.push(start.elapsed().as_secs_f64());
                busy.push(server.cpu_time()?.busy_ns as f64 / 1e9);
                wire::check_count(server.address(), bench.args.keys)?;
                drop(server);
                // The next copy needs the room.
                fs::remove_dir_all(&directory).context("cannot remove the copy")?;
            }
            let sample = |values| Sample::new(values).context("nothing was measured");
            seconds.add(contender.name(), sample(waits)?);
            cpu.add(contender.name(), sample(busy)?);
        }
        let title = format!(
            "Loading {what} of {} SETs that redis-server wrote",
            bench.args.keys
        );
        report.section(title, vec![seconds, cpu]);
    }
    Ok(())
}

/// Has redis-server write the file; returns its directory.
fn make(bench: &Bench<'_>, source: Source) -> Result<PathBuf> {
    let redis = bench.contenders.last().context("redis-server takes part")?;
    let directory = bench.stage.subdirectory("loading")?;
    let dir = directory.to_str().context("a path that is no text")?;
    let log = if source == Source::Log { "yes" } else { "no" };
    let directives = [
        ("dir", dir),
        ("appendonly", log),
        ("appendfsync", "no"),
        ("auto-aof-rewrite-percentage", "0"),
    ];
    let server = redis.start(&bench.stage, &directives)?;
    wire::load(server.address(), bench.args.keys, |index, out| {
        wire::push_command(out, &[b"SET", key(index).as_bytes(), VALUE]);
    })?;
    if source == Source::Rdb {
        Connection::open(server.address())?.command(&[b"SAVE"])?;
    }
    Ok(directory)
}

/// Copies what is loaded into another directory.
fn copy(from: &Path, to: &Path, source: Source) -> Result<()> {
    if source == Source::Rdb {
        fs::copy(file_of(from), file_of(to)).context("cannot copy the file")?;
        return Ok(());
    }
    let (from, to) = (from.join(LOG_DIRECTORY), to.join(LOG_DIRECTORY));
    fs::create_dir(&to).context("cannot make a directory")?;
    for file in fs::read_dir(&from).context("redis-server wrote no append-only file")? {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name())).context("cannot copy the file")?;
    }
    Ok(())
}
