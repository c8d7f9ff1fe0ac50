//! How much CPU time of the server the largest scripts take. One is sent at a time, and the server does nothing else: what
//! its clock shows between two readings is the script, and reading and answering the request. The duration that the server
//! itself notes would include the time in which something else had the core.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kumi_jobs::{Ask, ENQUEUE_LIMIT, Finish, Jobs, Outcome, Owner, Queue, Room, TURN_LIMIT, Task};

use crate::jobs::client::{Mail, go, say};
use crate::jobs::trial;
use crate::procfs::CpuTime;

const LEASE: Duration = Duration::from_secs(60);

/// Enqueues and runs so many tasks in batches as large as they get; says the longest enqueue and the longest turn, in
/// microseconds of the server's CPU time.
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
    let ask = Ask {
        owner: Owner::random(),
        nonce: fastrand::u64(..),
        lease: LEASE,
        types: vec![Room {
            task_type: Mail::TYPE.into(),
            room: TURN_LIMIT,
        }],
        max: TURN_LIMIT,
    };
    let mut reports = Vec::new();
    let mut done = 0;
    loop {
        let reported = reports.len();
        let begun = CpuTime::of(pid)?;
        let turn = queue.turn(reports, ask.clone()).await?;
        turn_us = turn_us.max(micros_since(pid, begun)?);
        ensure!(turn.finished.len() == reported, "a report was left out");
        done += reported;
        let report =
            |claim| Finish::new(claim, Outcome::Succeeded(Some(b"null".as_slice().into())));
        reports = turn.claims.iter().map(report).collect();
        if reports.is_empty() {
            break;
        }
    }
    ensure!(done >= count, "{done} of {count} tasks were done");
    say(&format!("done {enqueue_us} {turn_us}"))
}

fn micros_since(pid: u32, begun: CpuTime) -> Result<f64> {
    let busy = CpuTime::of(pid).context("the server ended")?.since(begun);
    Ok(busy.busy_ns as f64 / 1000.0)
}
