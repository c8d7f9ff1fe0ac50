//! Worker processes that are killed, stopped and resumed, at each point of a task's run.

use crate::children::{Point, Worked};
use crate::servers::Server;
use crate::work::{self, Effects};
use kumi_jobs::{Gone, Jobs, Notice, Released, TaskId, TaskState};
use std::time::Duration;
use tokio::task::spawn_blocking;

async fn child(url: &str, point: Point) -> Worked {
    let url = url.to_owned();
    let start = move || {
        let mut child = Worked::start(&url, point);
        child.wait_for("stopped");
        child
    };
    spawn_blocking(start).await.expect("a child")
}

/// Kills a worker at a point, lets another one do the rest, and answers what the first task's result was and how often
/// it took effect in the second worker.
async fn killed_at(point: Point) -> (u32, usize, u32) {
    let server = Server::start();
    let url = server.url();
    let jobs = Jobs::connect(&url).await.expect("a queue");
    let tasks = work::tasks(5);
    let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
    work::enqueue(&**jobs.queue(), &tasks).await;
    let mut first = child(&url, point).await;
    first.child.kill().expect("it ran");
    first.child.wait().expect("it ended");
    let effects = Effects::default();
    let done = work::all_succeed(&**jobs.queue(), ids.clone());
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    work::check_sums(&**jobs.queue(), tasks.len()).await;
    let record = jobs
        .get_status(ids[0])
        .await
        .expect("a reply")
        .expect("known");
    let result = serde_json::from_slice(&record.result.expect("a result")).expect("a number");
    (result, effects.times(0), record.attempts)
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_a_worker_dies_before_its_claim() {
    assert_eq!(killed_at(Point::BeforeClaim).await, (0, 1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_a_worker_dies_in_a_handler() {
    assert_eq!(killed_at(Point::MidHandler).await, (0, 1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_when_a_worker_dies_before_its_report() {
    // The effect happened, and happens again: delivery is at-least-once.
    assert_eq!(killed_at(Point::BeforeFinish).await, (0, 1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reported_task_does_not_run_again_when_its_worker_dies() {
    let (result, again, attempts) = killed_at(Point::AfterFinish).await;
    assert_eq!((result, again, attempts), (1_000, 0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_worker_reports_too_late() {
    let server = Server::start();
    let url = server.url();
    let jobs = Jobs::connect(&url).await.expect("a queue");
    let tasks = work::tasks(1);
    work::enqueue(&**jobs.queue(), &tasks).await;
    let id = tasks[0].id;
    let mut events = jobs.queue().subscribe().await.expect("events");
    let mut first = child(&url, Point::UntilTold).await;
    first.signal("-STOP");
    let effects = Effects::default();
    let done = work::all_succeed(&**jobs.queue(), vec![id]);
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    // It goes on, and so does its handler, long after its lease.
    first.tell();
    first.signal("-CONT");
    let owner = first.owner.clone();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        jobs.queue()
            .running(&owner)
            .await
            .expect("a reply")
            .is_empty()
    );
    let record = jobs.get_status(id).await.expect("a reply").expect("known");
    assert_eq!(
        record.result.as_deref(),
        Some(&b"0"[..]),
        "the second worker's result stands"
    );
    let mut successes = 0;
    while let Ok(notice) = tokio::time::timeout(Duration::from_millis(200), events.recv()).await {
        if let Some(Notice::Moved(event)) = notice {
            successes += usize::from(event.to == TaskState::Succeeded);
        }
    }
    assert_eq!(successes, 1, "no stale report was accepted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_worker_loses_its_tasks_at_once() {
    let server = Server::start();
    let url = server.url();
    let jobs = Jobs::connect(&url).await.expect("a queue");
    let tasks = work::tasks(1);
    work::enqueue(&**jobs.queue(), &tasks).await;
    let mut first = child(&url, Point::MidHandler).await;
    let gone = Gone::Life(first.owner.clone());
    let alive = jobs
        .queue()
        .release_owner(&gone, Duration::from_secs(10))
        .await;
    assert_eq!(alive.expect("a reply"), Released::Alive);
    first.signal("-STOP");
    let released = jobs.queue().release_owner(&gone, Duration::ZERO).await;
    assert_eq!(released.expect("a reply"), Released::Tasks(1));
    let state = jobs.get_status(tasks[0].id).await.expect("a reply");
    assert_eq!(state.expect("known").state, TaskState::Queued);
    // It learns of it and ends.
    first.signal("-CONT");
    spawn_blocking(move || first.wait_for("ended: false"))
        .await
        .expect("it ended");
}
