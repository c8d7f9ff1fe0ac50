//! The queue in memory: tasks per second on one core, beside a bare channel, and bytes per queued task.
//!
//! Runs in this process, on one thread. A task is encoded, enqueued, claimed, decoded, run and reported; the channel
//! carries the encoded task from one tokio task to another, which is what a program without a queue would do. The channel
//! holds few tasks at a time, so the queue is measured twice: with all tasks enqueued before the first runs, and with few
//! of them waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use kumi_jobs::{Context, Jobs, TaskError, Worker};

use crate::jobs::client::{Mail, Party, Runs};
use crate::jobs::ours::Kumi;
use crate::procfs::{self, CpuTime};

/// What one run gave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// CPU time per task through the queue, all enqueued first.
    pub(super) task_us: f64,
    /// CPU time per task through the queue, enqueued while others run.
    pub(super) flowing_us: f64,
    /// CPU time per task through a channel.
    pub(super) channel_us: f64,
    /// Resident bytes per queued task.
    pub(super) bytes: f64,
}

const BULK: usize = 500;
const CONCURRENCY: usize = 100;

/// Tasks that wait at most, where they are enqueued while others run.
const WAITING: usize = 10_000;

pub(super) fn measure(count: usize) -> Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    runtime.block_on(async {
        let channel_us = through_channel(count).await?;
        let (task_us, bytes) = through_queue(count).await?;
        let flowing_us = while_others_run(count).await?;
        Ok(Outcome {
            task_us,
            flowing_us,
            channel_us,
            bytes,
        })
    })
}

fn queue() -> Jobs {
    // It keeps 10,000 succeeded tasks for an hour, the default of every queue.
    Jobs::memory()
}

async fn through_queue(count: usize) -> Result<(f64, f64)> {
    let pid = std::process::id();
    let jobs = Kumi::new(queue());
    let resident = procfs::resident_bytes(pid)?;
    let begun = CpuTime::of(pid)?;
    for first in (0..count).step_by(BULK) {
        let mails = (first..count.min(first + BULK)).map(Mail::new).collect();
        jobs.enqueue_bulk(mails).await?;
    }
    let filled = procfs::resident_bytes(pid)?.saturating_sub(resident);
    let (runs, _starts) = Runs::new(count);
    tokio::select! {
        ended = jobs.work(CONCURRENCY, runs.clone()) => ended?,
        () = runs.reached() => {}
    }
    let busy = CpuTime::of(pid)?.since(begun).busy_ns;
    Ok((
        busy as f64 / 1000.0 / count as f64,
        filled as f64 / count as f64,
    ))
}

/// What the handlers share with the producer.
struct Flow {
    runs: Arc<Runs>,
    ran: AtomicUsize,
}

async fn count_one(mail: Mail, cx: Context<Arc<Flow>>) -> Result<(), TaskError> {
    let flow = cx.state();
    flow.runs.ran(&mail);
    flow.ran.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

async fn while_others_run(count: usize) -> Result<f64> {
    let (pid, jobs) = (std::process::id(), queue());
    let begun = CpuTime::of(pid)?;
    let (runs, _starts) = Runs::new(count);
    let flow = Arc::new(Flow {
        runs: runs.clone(),
        ran: AtomicUsize::new(0),
    });
    let worker = Worker::new(&jobs, flow.clone())
        .handle(count_one)
        .concurrency(CONCURRENCY);
    let producer = tokio::spawn(async move {
        for first in (0..count).step_by(BULK) {
            let next = count.min(first + BULK);
            while next > flow.ran.load(Ordering::Relaxed) + WAITING {
                tokio::task::yield_now().await;
            }
            jobs.enqueue_all((first..next).map(Mail::new)).await?;
        }
        anyhow::Ok(())
    });
    let work = async { anyhow::Ok(worker.run_until(runs.reached()).await?) };
    tokio::try_join!(work, async { anyhow::Ok(producer.await??) })?;
    let busy = CpuTime::of(pid)?.since(begun).busy_ns;
    Ok(busy as f64 / 1000.0 / count as f64)
}

async fn through_channel(count: usize) -> Result<f64> {
    let pid = std::process::id();
    let begun = CpuTime::of(pid)?;
    let (sender, mut receiver) = tokio::sync::mpsc::channel::<Vec<u8>>(BULK);
    let (runs, _starts) = Runs::new(count);
    let counted = runs.clone();
    let worker = tokio::spawn(async move {
        while let Some(task) = receiver.recv().await {
            counted.ran(&serde_json::from_slice(&task)?);
        }
        anyhow::Ok(())
    });
    for number in 0..count {
        sender.send(serde_json::to_vec(&Mail::new(number))?).await?;
    }
    drop(sender);
    worker.await??;
    let busy = CpuTime::of(pid)?.since(begun).busy_ns;
    Ok(busy as f64 / 1000.0 / count as f64)
}
