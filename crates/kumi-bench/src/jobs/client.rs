//! The client of one measurement of a job queue: a process of its own, so that its CPU time is its own.
//!
//! The bench starts it with an operation, reads `ready`, takes its readings, writes a line, reads `done` and takes its
//! readings again. Kumi's client and the Rust peers' clients share this file; BullMQ's is `peers/bullmq/client.mjs`,
//! which does the same.

use std::future::Future;
use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use tokio::sync::{Notify, Semaphore, mpsc};

/// Enqueues in flight in `enqueue-many`.
const IN_FLIGHT: usize = 64;

/// Tasks in one call of `enqueue-bulk`.
pub(crate) const BULK: usize = 90;

/// How long a new worker is left alone before it counts as idle.
const SETTLE: Duration = Duration::from_secs(2);

/// The pause between two tasks of `wake`, after which the worker is idle again.
const BETWEEN: Duration = Duration::from_millis(25);

/// How long `wake` goes on with a worker that polls slowly, and the tasks it times at least.
const WAKE_LIMIT: Duration = Duration::from_secs(20);
const WAKES_AT_LEAST: usize = 5;

/// A task whose JSON has 200 bytes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Mail {
    pub(crate) to: String,
    pub(crate) number: u64,
    pub(crate) body: String,
}

impl Mail {
    pub(crate) fn new(number: usize) -> Mail {
        Mail {
            to: "someone@example.org".to_owned(),
            // Ten digits, whichever number it is.
            number: 1_000_000_000 + number as u64,
            body: "x".repeat(142),
        }
    }
}

/// What handlers did.
pub(crate) struct Runs {
    count: AtomicUsize,
    wanted: usize,
    reached: Notify,
    starts: mpsc::UnboundedSender<Instant>,
}

impl Runs {
    pub(crate) fn new(wanted: usize) -> (Arc<Runs>, mpsc::UnboundedReceiver<Instant>) {
        let (starts, receiver) = mpsc::unbounded_channel();
        let runs = Runs {
            count: AtomicUsize::new(0),
            wanted,
            reached: Notify::new(),
            starts,
        };
        (Arc::new(runs), receiver)
    }

    /// What a handler calls: the only work it does.
    pub(crate) fn ran(&self, mail: &Mail) {
        assert!(mail.number >= 1_000_000_000, "the task was decoded");
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if self.wanted == 0 {
            // A receiver that is gone measures nothing any more.
            let _ = self.starts.send(Instant::now());
        } else if count == self.wanted {
            self.reached.notify_one();
        }
    }

    /// Resolves when the wanted number of tasks has run.
    pub(crate) async fn reached(&self) {
        if self.count.load(Ordering::Relaxed) < self.wanted {
            self.reached.notified().await;
        }
    }
}

/// A job queue's client.
pub(crate) trait Party: Clone + Send + Sync + 'static {
    /// Enqueues one task.
    fn enqueue(&self, mail: Mail) -> impl Future<Output = Result<()>> + Send;

    /// Enqueues many tasks in the way that is fastest for them.
    fn enqueue_bulk(&self, mails: Vec<Mail>) -> impl Future<Output = Result<()>> + Send;

    /// Runs a worker until it is dropped.
    fn work(&self, concurrency: usize, runs: Arc<Runs>) -> impl Future<Output = Result<()>> + Send;
}

/// Carries out an operation: `enqueue-one`, `enqueue-many`, `enqueue-bulk`, `drain`, `wake` or `idle`.
pub(crate) async fn run(
    party: impl Party,
    operation: &str,
    count: usize,
    concurrency: usize,
) -> Result<()> {
    match operation {
        "enqueue-one" => {
            go()?;
            for number in 0..count {
                party.enqueue(Mail::new(number)).await?;
            }
        }
        "enqueue-many" => {
            go()?;
            enqueue_many(&party, count).await?;
        }
        "enqueue-bulk" => {
            go()?;
            for first in (0..count).step_by(BULK) {
                let mails = (first..count.min(first + BULK)).map(Mail::new).collect();
                party.enqueue_bulk(mails).await?;
            }
        }
        "drain" => {
            go()?;
            let (runs, _starts) = Runs::new(count);
            tokio::select! {
                ended = party.work(concurrency, runs.clone()) => ended.context("the worker ended")?,
                () = runs.reached() => {}
            }
        }
        "wake" => return wake(party, count, concurrency).await,
        "idle" => {
            let (runs, _starts) = Runs::new(0);
            let worker = tokio::spawn(async move { party.work(concurrency, runs).await });
            tokio::time::sleep(SETTLE).await;
            go()?;
            return worker.await?;
        }
        _ => bail!("no operation is named {operation}"),
    }
    say("done")
}

async fn enqueue_many(party: &impl Party, count: usize) -> Result<()> {
    let permits = Arc::new(Semaphore::new(IN_FLIGHT));
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..count {
        let permit = permits.clone().acquire_owned().await?;
        let party = party.clone();
        calls.spawn(async move {
            let made = party.enqueue(Mail::new(number)).await;
            drop(permit);
            made
        });
        while let Some(made) = calls.try_join_next() {
            made??;
        }
    }
    while let Some(made) = calls.join_next().await {
        made??;
    }
    Ok(())
}

/// Times from the call that enqueues a task to the start of its handler, with an idle worker.
async fn wake(party: impl Party, count: usize, concurrency: usize) -> Result<()> {
    let (runs, mut starts) = Runs::new(0);
    let working = party.clone();
    let worker = tokio::spawn(async move { working.work(concurrency, runs).await });
    tokio::time::sleep(SETTLE).await;
    go()?;
    let mut times_us = Vec::with_capacity(count);
    let end = Instant::now() + WAKE_LIMIT;
    for number in 0..count {
        if number >= WAKES_AT_LEAST && Instant::now() >= end {
            break;
        }
        tokio::time::sleep(BETWEEN).await;
        let begun = Instant::now();
        party.enqueue(Mail::new(number)).await?;
        let Some(started) = starts.recv().await else {
            worker.await??;
            bail!("the worker ended");
        };
        times_us.push((started - begun).as_secs_f64() * 1e6);
    }
    worker.abort();
    times_us.sort_by(f64::total_cmp);
    let at =
        |share: f64| times_us[((times_us.len() as f64 * share) as usize).min(times_us.len() - 1)];
    say(&format!("done {} {}", at(0.5), at(0.99)))
}

/// Says that everything is prepared, and waits for the word to begin.
pub(crate) fn go() -> Result<()> {
    say("ready")?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(())
}

pub(crate) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()?;
    Ok(())
}
