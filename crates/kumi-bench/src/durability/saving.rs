//! BGSAVE while clients write.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::writers::{Probe, Writers, persistence};
use super::{Bench, VALUE, key};
use crate::procfs;
use crate::report::{Goal, Report, Row};
use crate::stats::Sample;
use crate::store::servers::{Contender, Server};
use crate::wire::{self, Connection};

/// Between two readings of the memory.
const MEMORY_INTERVAL: Duration = Duration::from_millis(50);
/// Between two looks at whether the save has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);
/// A save that takes longer than this is taken for stuck.
const SAVE_LIMIT: Duration = Duration::from_secs(600);

/// What one save gave.
struct Saved {
    seconds: f64,
    probe_ms: Sample,
    /// Extra memory at its peak, in percent of what the server took before.
    extra_percent: f64,
    /// Throughput of the writers meanwhile, in percent of that before.
    kept_percent: f64,
    file_bytes: u64,
}

pub(super) fn measure(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let row = |name: &str, label: &str, unit, goal: Option<Goal>| {
        Row::new(format!("durability.bgsave.{name}"), label, unit).goal(goal)
    };
    let mut rows = vec![
        row("probe_p999", "probe p99.9 while saving", "ms", None),
        row("probe_max", "probe max while saving", "ms", None),
        row(
            "half.seconds",
            "at half load: duration",
            "s",
            Some(Goal::RatioAtMost(1.0)),
        ),
        row("half.probe_p999", "at half load: probe p99.9", "ms", None),
        row("half.kept", "at half load: throughput kept", "%", None),
        row(
            "extra_memory",
            "extra memory at its peak",
            "%",
            Some(Goal::AtMost(10.0)),
        ),
        row(
            "kept",
            "writers' throughput kept",
            "%",
            Some(Goal::AtLeast(70.0)),
        ),
        row("seconds", "duration", "s", Some(Goal::RatioAtMost(2.0))),
        row(
            "file",
            "size of the file",
            "bytes",
            Some(Goal::RatioAtMost(1.0)),
        ),
    ];
    for contender in &bench.contenders {
        let name = contender.name();
        let (saved, half) =
            save(bench, contender).with_context(|| format!("cannot save on {name}"))?;
        let figures = [
            saved.probe_ms.percentile(99.9),
            saved.probe_ms.max(),
            half.seconds,
            half.probe_ms.percentile(99.9),
            half.kept_percent,
            saved.extra_percent,
            saved.kept_percent,
            saved.seconds,
            saved.file_bytes as f64,
        ];
        for (row, figure) in rows.iter_mut().zip(figures) {
            row.add(name, Sample::single(figure));
        }
    }
    let title = format!(
        "BGSAVE of {} keys while {} connections write at pipeline {}",
        bench.args.keys, bench.args.connections, bench.args.pipeline
    );
    report.section(title, rows);
    Ok(())
}

/// Saves at full load, and at half of it.
fn save(bench: &Bench<'_>, contender: &Contender) -> Result<(Saved, Saved)> {
    let args = bench.args;
    let directory = bench.stage.subdirectory("saving")?;
    let dir = directory.to_str().context("a path that is no text")?;
    let server = contender.start(&bench.stage, &[("dir", dir)])?;
    bench
        .progress
        .line(&format!("{}: loading {} keys", contender.name(), args.keys));
    wire::load(server.address(), args.keys, |index, out| {
        wire::push_command(out, &[b"SET", key(index).as_bytes(), VALUE]);
    })?;
    wire::check_count(server.address(), args.keys)?;
    let writers = Writers::start(server.address(), args.connections, args.pipeline, args.keys)?;
    let rate = writers.rate(Duration::from_secs_f64(args.seconds));
    bench
        .progress
        .line(&format!("{}: saving at full load", contender.name()));
    let full = save_under(&server, &writers, rate, &file_of(&directory))?;
    writers.stop()?;
    let half_rate = rate / 2.0;
    let writers = Writers::start_paced(
        server.address(),
        args.connections,
        args.pipeline,
        args.keys,
        Some(half_rate),
    )?;
    let rate = writers.rate(Duration::from_secs_f64(args.seconds.min(2.0)));
    bench
        .progress
        .line(&format!("{}: saving at half load", contender.name()));
    let half = save_under(&server, &writers, rate, &file_of(&directory))?;
    writers.stop()?;
    Ok((full, half))
}

/// Saves while `writers` write; `rate_before` is what they do without a save.
fn save_under(server: &Server, writers: &Writers, rate_before: f64, file: &Path) -> Result<Saved> {
    let memory_before = procfs::proportional_bytes(server.pid())?;

    let probe = Probe::start(server.address())?;
    let memory = watch_memory(server.pid());
    let mut connection = Connection::open(server.address())?;
    let (from, start) = (writers.written(), Instant::now());
    connection.command(&[b"BGSAVE"])?;
    while persistence(&mut connection, "rdb_bgsave_in_progress")? != "0" {
        if start.elapsed() > SAVE_LIMIT {
            bail!("the save did not end");
        }
        thread::sleep(LOOK_INTERVAL);
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = (writers.written() - from) as f64 / seconds;
    let probe_ms = Sample::new(probe.stop()?).context("the probe got no reply")?;
    let memory_peak = memory.stop()?.max(memory_before);
    let status = persistence(&mut connection, "rdb_last_bgsave_status")?;
    if status != "ok" {
        bail!("the save failed: {status}");
    }
    Ok(Saved {
        seconds,
        probe_ms,
        extra_percent: (memory_peak - memory_before) as f64 / memory_before as f64 * 100.0,
        kept_percent: rate / rate_before * 100.0,
        file_bytes: fs::metadata(file)?.len(),
    })
}

pub(super) fn file_of(directory: &Path) -> PathBuf {
    directory.join("dump.rdb")
}

/// A thread that notes the largest sum of memory of a process and its children.
struct MemoryWatch {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<u64>,
}

fn watch_memory(pid: u32) -> MemoryWatch {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let thread = thread::spawn(move || {
        let mut peak = 0;
        while !stopped.load(Ordering::Relaxed) {
            // A child that ends between two readings is missing from the sum, as it should be.
            peak = peak.max(procfs::proportional_bytes(pid).unwrap_or(0));
            thread::sleep(MEMORY_INTERVAL);
        }
        peak
    });
    MemoryWatch { stop, thread }
}

impl MemoryWatch {
    fn stop(self) -> Result<u64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread
            .join()
            .map_err(|_| anyhow!("the thread that reads memory panicked"))
    }
}
