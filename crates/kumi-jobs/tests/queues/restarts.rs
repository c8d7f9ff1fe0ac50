//! Servers that are killed and start again, with all of their data, with most of it, or without.

use crate::servers::{Kind, on_both_servers};
use crate::work::{self, Effects, Site, check_effects, ids};
use kumi_jobs::{
    Ask, Context, Execution, Finished, NewTask, Owner, QueueError, Room, TaskEnvelope, TaskHandler,
    TaskState, Worker,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

on_both_servers![
    a_server_that_restarts_with_its_data_loses_no_task,
    a_server_that_syncs_every_second_loses_only_the_last_tasks,
    a_server_that_restarts_without_its_data_accepts_no_stale_report,
    an_outage_is_charged_to_no_worker,
];

/// What a server that is killed may lose with `appendfsync everysec`: a write to the log waits for a running fsync, for two
/// seconds at most.
const LOSS: Duration = Duration::from_secs(3);

/// A new owner's ask for a few tasks.
fn ask(lease: Duration) -> Ask {
    Ask {
        owner: Owner::random(),
        nonce: 1,
        lease,
        types: vec![Room {
            task_type: "step".into(),
            room: 9,
        }],
        max: 9,
    }
}

async fn a_server_that_restarts_with_its_data_loses_no_task(kind: Kind) {
    let args = ["--appendonly", "yes", "--appendfsync", "always"];
    let Site {
        mut server, jobs, ..
    } = Site::with_args(kind, &args).await;
    let tasks = work::tasks(300);
    let effects = Effects::default();
    let done = async {
        for batch in tasks.chunks(100) {
            work::enqueue(&**jobs.queue(), batch).await;
            tokio::task::block_in_place(|| server.restart());
        }
        work::all_succeed(&**jobs.queue(), ids(&tasks)).await;
    };
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    work::check_sums(&**jobs.queue(), tasks.len()).await;
    check_effects(&effects, 300);
}

/// The server is killed while tasks are enqueued. What it acknowledged before and has no more is printed; it is the end of
/// its log, and no older than the last writes to that.
async fn a_server_that_syncs_every_second_loses_only_the_last_tasks(kind: Kind) {
    const TASKS: usize = 600;
    const KILLED_AFTER: usize = 500;
    let args = ["--appendonly", "yes", "--appendfsync", "everysec"];
    let Site {
        mut server, jobs, ..
    } = Site::with_args(kind, &args).await;
    let queue = jobs.queue();
    let mut tasks = work::plain_tasks(TASKS as u32);
    let ids = ids(&tasks);
    // This claim is over before the server is killed, and another worker runs its task.
    let rest = tasks.split_off(1);
    queue.enqueue(tasks).await.expect("enqueued");
    let mut acknowledged = vec![Instant::now()];
    let claims = queue.dequeue_ready(ask(Duration::from_secs(1))).await;
    let stale = claims.expect("claims").remove(0);
    assert_eq!(stale.id, ids[0]);

    let count = Arc::new(AtomicUsize::new(1));
    let (producer, counter) = (queue.clone(), count.clone());
    let producer = tokio::spawn(async move {
        for batch in rest.chunks(2) {
            // An enqueue that failed for want of a server is repeated by its producer.
            loop {
                match producer.enqueue(batch.to_vec()).await {
                    Ok(_) => break,
                    Err(QueueError::Io(_)) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            acknowledged.extend(batch.iter().map(|_| Instant::now()));
            counter.fetch_add(batch.len(), Ordering::SeqCst);
            // More than LOSS for all before the kill.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        acknowledged
    });
    while count.load(Ordering::SeqCst) < KILLED_AFTER && !producer.is_finished() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let killed_at = Instant::now();
    tokio::task::block_in_place(|| server.restart());
    let restarted_at = Instant::now();
    let acknowledged = producer.await.expect("no panic");

    let (mut known, mut lost) = (Vec::new(), Vec::new());
    for (index, id) in ids.iter().enumerate() {
        match jobs.get_status(*id).await.expect("a reply") {
            Some(_) => known.push(*id),
            None => lost.push(index),
        }
    }
    println!("{} of {TASKS} acknowledged tasks were lost", lost.len());
    if let (Some(first), Some(last)) = (lost.first(), lost.last()) {
        assert_eq!(last - first + 1, lost.len(), "not the end: {lost:?}");
    }
    for index in &lost {
        let at = acknowledged[*index];
        assert!(at + LOSS >= killed_at, "{index} was acknowledged long ago");
        assert!(at <= restarted_at, "{index} was enqueued afterwards");
    }

    let effects = Effects::default();
    let done = work::all_succeed(&**queue, known.clone());
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    work::check_sums(&**queue, known.len()).await;
    let late = queue.mark_succeeded(&stale, None).await.expect("a reply");
    assert_eq!(late, Finished::Refused);
}

async fn a_server_that_restarts_without_its_data_accepts_no_stale_report(kind: Kind) {
    let Site {
        mut server, jobs, ..
    } = Site::start(kind).await;
    let queue = jobs.queue();
    let ask = ask(Duration::from_secs(15));
    work::enqueue(&**queue, &work::tasks(1)).await;
    let old = queue
        .dequeue_ready(ask.clone())
        .await
        .expect("claims")
        .remove(0);
    tokio::task::block_in_place(|| server.restart());
    // The counter starts again: the same task, claimed again, gets the same count but not the same nonce.
    let mut again = NewTask::new(old.envelope.clone());
    again.id = old.id;
    queue.enqueue(vec![again]).await.expect("enqueued");
    let nonce = 2;
    let mut claims = queue
        .dequeue_ready(Ask {
            nonce,
            ..ask.clone()
        })
        .await;
    if claims.is_err() {
        // The first call after the restart found its connection broken.
        claims = queue.dequeue_ready(Ask { nonce, ..ask }).await;
    }
    let new = claims.expect("claims").remove(0);
    assert_eq!((old.id, old.token.count), (new.id, new.token.count));
    let stale = queue.mark_succeeded(&old, None).await.expect("a reply");
    assert_eq!(stale, Finished::Refused);
    let good = queue.mark_succeeded(&new, None).await.expect("a reply");
    assert_eq!(good, Finished::Applied(TaskState::Succeeded));
}

/// Runs until it is told to end.
struct Gate {
    runs: Arc<AtomicUsize>,
    go_on: tokio::sync::watch::Receiver<bool>,
}

impl TaskHandler<()> for Gate {
    fn task_type(&self) -> &str {
        "gate"
    }

    fn execute(&self, _payload: bytes::Bytes, _context: Context<()>) -> Execution {
        let (runs, mut go_on) = (self.runs.clone(), self.go_on.clone());
        Box::pin(async move {
            runs.fetch_add(1, Ordering::SeqCst);
            go_on.wait_for(|go_on| *go_on).await?;
            Ok("1".into())
        })
    }
}

/// Tasks of two workers end while the server is away for longer than a lease. The worker that comes back first must not
/// take what the other one has done: the tasks have one attempt.
async fn an_outage_is_charged_to_no_worker(kind: Kind) {
    const LEASE: Duration = Duration::from_secs(3);
    let args = ["--appendonly", "yes", "--appendfsync", "always"];
    let Site {
        mut server, jobs, ..
    } = Site::with_args(kind, &args).await;
    let tasks: Vec<NewTask> = (0..6)
        .map(|_| {
            let mut task = NewTask::new(TaskEnvelope::json("gate", "{}"));
            task.max_attempts = 1;
            task
        })
        .collect();
    jobs.queue().enqueue(tasks.clone()).await.expect("enqueued");
    let runs = Arc::new(AtomicUsize::new(0));
    let (tell, go_on) = tokio::sync::watch::channel(false);
    let worker = || {
        let gate = Gate {
            runs: runs.clone(),
            go_on: go_on.clone(),
        };
        Worker::new(&jobs, ())
            .handler(gate)
            .concurrency(3)
            .lease(LEASE)
    };
    let done = async {
        while runs.load(Ordering::SeqCst) < tasks.len() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        server.stop();
        tell.send(true).expect("handlers wait");
        // The time that the server is away is what is tested.
        tokio::time::sleep(LEASE + Duration::from_secs(3)).await;
        tokio::task::block_in_place(|| server.start_again());
        for id in ids(&tasks) {
            jobs.queue().done(id).await.expect("a reply");
        }
    };
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let other = tokio::spawn(worker().run_until(stopped));
    worker().run_until(done).await.expect("it worked");
    drop(stop);
    other.await.expect("no panic").expect("it worked");
    for id in ids(&tasks) {
        let record = jobs.get_status(id).await.expect("a reply").expect("known");
        assert_eq!(
            record.state,
            TaskState::Succeeded,
            "{:?}",
            record.last_error
        );
    }
}
