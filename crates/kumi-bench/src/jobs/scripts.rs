//! How much CPU time of the server the largest scripts take. One is sent at a time, and the server does nothing else: what
//! its clock shows between two readings is the script, and reading and answering the request. The duration that the server
//! itself notes would include the time in which something else had the core.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use futures_util::future::join_all;
use kumi_jobs::{
    Ask, Claim, ENQUEUE_LIMIT, Filter, Finish, Gone, Jobs, NewTask, Outcome, Owner, Paging,
    Progress, Queue, Room, Serial, TURN_LIMIT, Task, TaskEnvelope, TaskId, Unique,
};

use crate::jobs::client::{Mail, go, say};
use crate::jobs::trial;
use crate::procfs::CpuTime;

const LEASE: Duration = Duration::from_secs(60);

/// The type of tasks with keys.
const KEYED: &str = "keyed";

/// Enqueues and runs so many tasks in batches as large as they get; says the longest enqueue and the longest turn, in
/// microseconds of the server's CPU time, and then the scripts on tasks with keys.
pub(super) async fn run(queue: Arc<dyn Queue>, url: &str, count: usize) -> Result<()> {
    let address = url.trim_start_matches("redis://").trim_end_matches('/');
    let address = address.parse().context("the server's address")?;
    let pid = trial::info(address, "server", "process_id")?;
    let jobs = Jobs::with_queue(queue.clone());
    go()?;
    let (mut enqueue_us, mut turn_us) = (0.0_f64, 0.0_f64);
    for first in (0..count).step_by(ENQUEUE_LIMIT) {
        let mails: Vec<Mail> = (first..first + ENQUEUE_LIMIT).map(Mail::new).collect();
        let begun = CpuTime::of(pid)?;
        jobs.enqueue_all(mails).await?;
        enqueue_us = enqueue_us.max(micros_since(pid, begun)?);
    }
    let ask = ask(Mail::TYPE, LEASE);
    let mut reports = Vec::new();
    let mut done = 0;
    loop {
        let reported = reports.len();
        let begun = CpuTime::of(pid)?;
        let turn = queue.turn(reports, ask.clone()).await?;
        turn_us = turn_us.max(micros_since(pid, begun)?);
        ensure!(turn.finished.len() == reported, "a report was left out");
        done += reported;
        reports = turn.claims.iter().map(succeeded).collect();
        if reports.is_empty() {
            break;
        }
    }
    ensure!(done >= count, "{done} of {count} tasks were done");
    let keyed = keyed(&queue, pid).await?;
    let keyed: Vec<String> = keyed.iter().map(ToString::to_string).collect();
    say(&format!("done {enqueue_us} {turn_us} {}", keyed.join(" ")))
}

/// A new owner's ask for as many tasks as one turn gives.
fn ask(task_type: &str, lease: Duration) -> Ask {
    Ask {
        owner: Owner::random(),
        nonce: fastrand::u64(..),
        lease,
        types: vec![Room {
            task_type: task_type.into(),
            room: TURN_LIMIT,
        }],
        max: TURN_LIMIT,
    }
}

/// A task with a unique key and a serial key of its own.
fn keyed_task(number: usize) -> Result<NewTask> {
    let payload = serde_json::to_vec(&Mail::new(number))?;
    let mut task = NewTask::new(TaskEnvelope::json(KEYED, payload));
    task.unique = Some(Unique {
        key: format!("unique-{number}").into(),
        window: None,
    });
    task.serial = Some(Serial {
        key: format!("serial-{number}").into(),
        hold_on_dead: false,
    });
    Ok(task)
}

/// What the scripts take on tasks with keys, in microseconds: an enqueue, a turn, a reap, a release, a cancel, a page of a
/// listing and a purge.
async fn keyed(queue: &Arc<dyn Queue>, pid: u32) -> Result<[f64; 7]> {
    let mut enqueue_us = 0.0_f64;
    for first in (0..3 * ENQUEUE_LIMIT).step_by(ENQUEUE_LIMIT) {
        let tasks = (first..first + ENQUEUE_LIMIT).map(keyed_task);
        let tasks: Vec<NewTask> = tasks.collect::<Result<_>>()?;
        let begun = CpuTime::of(pid)?;
        queue.enqueue(tasks).await?;
        enqueue_us = enqueue_us.max(micros_since(pid, begun)?);
    }
    let ask_once = ask(KEYED, LEASE);
    let claims = queue.dequeue_ready(ask_once.clone()).await?;
    for claim in &claims {
        let progress = Progress {
            percent: 50,
            note: "half".into(),
        };
        queue.progress(claim, progress).await?;
    }
    // Long enough for all of them to be registered. A result for a waiter that has gone costs the same.
    let waits = join_all(claims.iter().map(|claim| queue.done(claim.id)));
    let _ = tokio::time::timeout(Duration::from_millis(500), waits).await;
    let reports: Vec<Finish> = claims.iter().map(succeeded).collect();
    let begun = CpuTime::of(pid)?;
    let turn = queue.turn(reports, ask_once.clone()).await?;
    let turn_us = micros_since(pid, begun)?;
    ensure!(turn.claims.len() == TURN_LIMIT, "too few claims");
    // A lease that has ended when it is looked at.
    queue
        .dequeue_ready(ask(KEYED, Duration::from_millis(1)))
        .await?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let begun = CpuTime::of(pid)?;
    queue.reap().await?;
    let reap_us = micros_since(pid, begun)?;
    let gone = Gone::Life(ask_once.owner);
    let begun = CpuTime::of(pid)?;
    queue.release_owner(&gone, Duration::ZERO).await?;
    let release_us = micros_since(pid, begun)?;
    let begun = CpuTime::of(pid)?;
    queue.cancel(turn.claims[0].id).await?;
    let cancel_us = micros_since(pid, begun)?;
    let begun = CpuTime::of(pid)?;
    queue
        .list(&Filter::default(), &Paging::newest(TURN_LIMIT))
        .await?;
    let list_us = micros_since(pid, begun)?;
    let ids: Vec<TaskId> = claims.iter().take(2).map(|claim| claim.id).collect();
    let begun = CpuTime::of(pid)?;
    queue.purge(ids).await?;
    let purge_us = micros_since(pid, begun)?;
    Ok([
        enqueue_us, turn_us, reap_us, release_us, cancel_us, list_us, purge_us,
    ])
}

fn succeeded(claim: &Claim) -> Finish {
    Finish::new(claim, Outcome::Succeeded(Some(b"null".as_slice().into())))
}

fn micros_since(pid: u32, begun: CpuTime) -> Result<f64> {
    let busy = CpuTime::of(pid).context("the server ended")?.since(begun);
    Ok(busy.busy_ns as f64 / 1000.0)
}
