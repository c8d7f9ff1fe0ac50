//! Loading one RDB file, written by redis-server, on both servers.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::saving::file_of;
use super::{Bench, VALUE, key};
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::wire::{self, Connection};

/// A server may take this long to load.
const LOAD_LIMIT: Duration = Duration::from_secs(300);

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let args = bench.args;
    let redis = bench.contenders.last().context("redis-server takes part")?;
    let source = bench.stage.subdirectory("loading")?;
    let dir = source.to_str().context("a path that is no text")?;
    let server = redis.start(&bench.stage, &[("dir", dir)])?;
    wire::load(server.address(), args.keys, |index, out| {
        wire::push_command(out, &[b"SET", key(index).as_bytes(), VALUE]);
    })?;
    Connection::open(server.address())?.command(&[b"SAVE"])?;
    drop(server);

    let mut seconds = Row::new("durability.load.seconds", "until it replies", "s")
        .goal(Some(Goal::RatioAtMost(1.0 / 1.5)));
    let mut cpu = Row::new("durability.load.cpu", "CPU time until then", "s");
    for contender in &bench.contenders {
        let directory = bench.stage.subdirectory("loaded")?;
        fs::copy(file_of(&source), file_of(&directory)).context("cannot copy the file")?;
        let dir = directory.to_str().context("a path that is no text")?;
        let start = Instant::now();
        let server = contender.start_within(&bench.stage, &[("dir", dir)], LOAD_LIMIT)?;
        seconds.add(
            contender.name(),
            Sample::single(start.elapsed().as_secs_f64()),
        );
        let busy_ns = server.cpu_time()?.busy_ns;
        cpu.add(contender.name(), Sample::single(busy_ns as f64 / 1e9));
        wire::check_count(server.address(), args.keys)?;
    }
    let title = format!(
        "Loading an RDB file of {} keys that redis-server wrote",
        args.keys
    );
    report.section(title, vec![seconds, cpu]);
    Ok(())
}
