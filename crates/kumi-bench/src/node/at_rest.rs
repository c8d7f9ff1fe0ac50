//! What a node costs that has all roles and nothing to do, how soon it is ready, and what scrapes of its metrics delay.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::node::Bench;
use crate::node::up::{Up, get};
use crate::report::{Goal, Report, Row};
use crate::stats::{Histogram, Sample};
use crate::wire::Connection;

/// After its start a node writes its files and looks for queues.
const SETTLE: Duration = Duration::from_secs(3);

/// Scrapes in all, and how many a second.
const SCRAPES: u64 = 1_000;
const SCRAPES_A_SECOND: u64 = 50;

/// With and without scrapes in turn, so long each, and how many times more windows than planned there may be where scrapes are
/// slow.
const WINDOW: Duration = Duration::from_secs(1);
const MOST_WINDOWS: usize = 3;

/// The column of what was measured without scrapes.
const QUIET: &str = "quiet";

const MEBIBYTE: f64 = (1 << 20) as f64;

/// `rest`.
pub(super) fn rest(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let mut task = bench.progress.task("rest", 1);
    task.begin("a node with all roles");
    let up = Up::start(bench.stage, bench.kumi()?)?;
    thread::sleep(SETTLE);
    let before = up.server.cpu_time()?;
    let begun = Instant::now();
    thread::sleep(bench.rest);
    let used = up.server.cpu_time()?.since(before);
    let percent = used.busy_ns as f64 / begun.elapsed().as_nanos() as f64 * 100.0;
    let resident = up.server.resident_bytes()? as f64 / MEBIBYTE;
    task.end();
    drop(task);
    let row = |name, label, unit, goal, value| {
        let mut row = Row::new(name, label, unit).goal(Some(Goal::AtMost(goal)));
        row.add("kumi", Sample::single(value));
        row
    };
    let rows = vec![
        row("node.rest.cpu_percent", "CPU of a core", "%", 1.0, percent),
        row(
            "node.rest.resident",
            "resident memory",
            "MiB",
            40.0,
            resident,
        ),
    ];
    let title = format!(
        "A node at rest with all roles, over {} s",
        bench.rest.as_secs()
    );
    report.section(title, rows);
    Ok(())
}

/// `ready`.
pub(super) fn ready(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let rounds = bench.rounds.min(20);
    let mut task = bench.progress.task("ready", rounds);
    let mut milliseconds = Vec::new();
    for number in 0..rounds {
        task.begin(&format!("start {}", number + 1));
        let up = Up::start(bench.stage, bench.kumi()?)?;
        milliseconds.push(up.ready_within.as_secs_f64() * 1000.0);
        task.end();
    }
    drop(task);
    let row = Row::new("node.ready.ms", "start to /readyz", "ms");
    let mut row = row.goal(Some(Goal::AtMost(300.0)));
    row.add(
        "kumi",
        Sample::new(milliseconds).context("there are starts")?,
    );
    report.section(
        format!("A node of all roles starts, median of {rounds}"),
        vec![row],
    );
    Ok(())
}

/// `scrapes`.
pub(super) fn scrapes(bench: &Bench<'_>, report: &mut Report) -> Result<()> {
    let scrapes = if bench.args.quick {
        SCRAPES / 10
    } else {
        SCRAPES
    };
    let windows = (scrapes / SCRAPES_A_SECOND) as usize;
    let mut task = bench.progress.task("scrapes", windows);
    let up = Up::start(bench.stage, bench.kumi()?)?;
    thread::sleep(SETTLE);
    let scraper = Scraper::default();
    let (mut quiet, mut scraped) = (Histogram::default(), Histogram::default());
    let mut connection = Connection::open(up.server.address())?;
    thread::scope(|scope| -> Result<()> {
        let scraping = scope.spawn(|| scraper.run(up.http));
        let mut pinged = Ok(());
        for number in 0..windows * MOST_WINDOWS {
            if scraper.done() >= scrapes || pinged.is_err() || scraping.is_finished() {
                break;
            }
            task.begin(&format!("window {}", number + 1));
            pinged = ping(&mut connection, &mut quiet);
            scraper.is_on.store(true, Ordering::SeqCst);
            pinged = pinged.and_then(|()| ping(&mut connection, &mut scraped));
            scraper.is_on.store(false, Ordering::SeqCst);
            task.end();
        }
        scraper.is_over.store(true, Ordering::SeqCst);
        let ended = scraping.join();
        ended.map_err(|_| anyhow::anyhow!("the scraper failed"))??;
        pinged
    })?;
    let done = scraper.done();
    drop(task);
    let mut rows = Vec::new();
    let milliseconds = |histogram: &Histogram, percent| histogram.percentile(percent) / 1e6;
    for (name, percent) in [("p50", 50.0), ("p99_9", 99.9), ("longest", 100.0)] {
        let label = format!("PING beside scrapes, {name}");
        let mut row = Row::new(format!("node.scrapes.{name}_ms"), label, "ms");
        row.add("kumi", Sample::single(milliseconds(&scraped, percent)));
        row.add(QUIET, Sample::single(milliseconds(&quiet, percent)));
        rows.push(row);
    }
    let delay = milliseconds(&scraped, 100.0) - milliseconds(&quiet, 100.0);
    let row = Row::new(
        "node.scrapes.delay_ms",
        "longest beside the longest without",
        "ms",
    );
    let mut row = row.goal(Some(Goal::AtMost(1.0)));
    row.add("kumi", Sample::single(delay));
    rows.push(row);
    report.section(
        format!("{done} scrapes of /metrics, {SCRAPES_A_SECOND} a second"),
        rows,
    );
    Ok(())
}

/// Scrapes while it is switched on.
#[derive(Default)]
struct Scraper {
    is_on: AtomicBool,
    is_over: AtomicBool,
    done: AtomicU64,
}

impl Scraper {
    fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    fn run(&self, http: SocketAddr) -> Result<()> {
        while !self.is_over.load(Ordering::SeqCst) {
            if self.is_on.load(Ordering::SeqCst) {
                let reply = get(http, "/metrics")?;
                ensure!(
                    reply.starts_with("HTTP/1.1 200") && reply.contains("redis_up 1"),
                    "a scrape was answered with {:?}",
                    reply.lines().next()
                );
                self.done.fetch_add(1, Ordering::SeqCst);
            }
            thread::sleep(Duration::from_secs(1) / SCRAPES_A_SECOND as u32);
        }
        Ok(())
    }
}

/// One command after the other for a window.
fn ping(connection: &mut Connection, times_ns: &mut Histogram) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < WINDOW {
        let at = Instant::now();
        connection.command(&[b"PING"])?;
        times_ns.record(at.elapsed().as_nanos() as u64);
    }
    Ok(())
}
