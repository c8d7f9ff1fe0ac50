//! Worker processes that are killed, stopped and resumed, at each point of a task's run.

use crate::children::{Point, Worked};
use crate::servers::{Kind, Server, on_both_servers};
use crate::work::{self, Effects};
use kumi_jobs::{Gone, Jobs, Notice, Released, TaskId, TaskState};
use std::path::Path;
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

on_both_servers![
    nothing_is_lost_when_a_worker_dies_before_its_claim,
    nothing_is_lost_when_a_worker_dies_in_a_handler,
    nothing_is_lost_when_a_worker_dies_before_its_report,
    a_reported_task_does_not_run_again_when_its_worker_dies,
    a_stopped_worker_reports_too_late,
    a_released_worker_loses_its_tasks_at_once,
    a_deaf_handler_does_not_keep_its_worker_from_ending,
    a_worker_whose_clock_is_wrong_works_as_any_other,
];

/// What became of the first task after its worker was killed and another one did the rest.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    /// The first worker's handler took effect.
    first_effect: bool,
    /// How often it took effect in the second worker.
    second_effects: usize,
    result: u32,
    attempts: u32,
}

async fn killed_at(kind: Kind, point: Point) -> Outcome {
    let server = Server::start(kind);
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
    Outcome {
        first_effect: first.took_effect,
        second_effects: effects.times(0),
        result: serde_json::from_slice(&record.result.expect("a result")).expect("a number"),
        attempts: record.attempts,
    }
}

async fn nothing_is_lost_when_a_worker_dies_before_its_claim(kind: Kind) {
    let outcome = Outcome {
        first_effect: false,
        second_effects: 1,
        result: 0,
        attempts: 1,
    };
    assert_eq!(killed_at(kind, Point::BeforeClaim).await, outcome);
}

async fn nothing_is_lost_when_a_worker_dies_in_a_handler(kind: Kind) {
    let outcome = Outcome {
        first_effect: false,
        second_effects: 1,
        result: 0,
        attempts: 2,
    };
    assert_eq!(killed_at(kind, Point::MidHandler).await, outcome);
}

async fn nothing_is_lost_when_a_worker_dies_before_its_report(kind: Kind) {
    // The effect happened, and happens again: delivery is at-least-once.
    let outcome = Outcome {
        first_effect: true,
        second_effects: 1,
        result: 0,
        attempts: 2,
    };
    assert_eq!(killed_at(kind, Point::BeforeFinish).await, outcome);
}

async fn a_reported_task_does_not_run_again_when_its_worker_dies(kind: Kind) {
    let outcome = Outcome {
        first_effect: true,
        second_effects: 0,
        result: 1_000,
        attempts: 1,
    };
    assert_eq!(killed_at(kind, Point::AfterFinish).await, outcome);
}

async fn a_stopped_worker_reports_too_late(kind: Kind) {
    let server = Server::start(kind);
    let url = server.url();
    let jobs = Jobs::connect(&url).await.expect("a queue");
    let mut tasks = work::tasks(2);
    let late = tasks.split_off(1);
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
    // It goes on, and so does its handler, long after its lease. It has room for one task, so when it runs another one it
    // has reported the first.
    work::enqueue(&**jobs.queue(), &late).await;
    first.tell();
    first.signal("-CONT");
    let first = spawn_blocking(move || {
        first.wait_for("next");
        first
    });
    let first = first.await.expect("it runs the next task");
    work::all_succeed(&**jobs.queue(), vec![late[0].id]).await;
    let running = jobs.queue().running(&first.owner).await;
    assert!(running.expect("a reply").is_empty());
    let record = jobs.get_status(id).await.expect("a reply").expect("known");
    assert_eq!(
        record.result.as_deref(),
        Some(&b"0"[..]),
        "the second worker's result stands"
    );
    let mut successes = 0;
    loop {
        let notice = tokio::time::timeout(Duration::from_secs(30), events.recv()).await;
        let Some(Notice::Moved(event)) = notice.expect("the later task's end is an event") else {
            continue;
        };
        if event.to == TaskState::Succeeded {
            if event.id == late[0].id {
                break;
            }
            successes += 1;
        }
    }
    assert_eq!(successes, 1, "no stale report was accepted");
}

/// libfaketime shifts the wall clock of the worker's process by an hour.
async fn a_worker_whose_clock_is_wrong_works_as_any_other(kind: Kind) {
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
    assert!(
        Path::new(LIBRARY).exists(),
        "install Debian's faketime package"
    );
    for shift in ["-1h", "+1h"] {
        let server = Server::start(kind);
        let url = server.url();
        let jobs = Jobs::connect(&url).await.expect("a queue");
        let mut tasks = work::tasks(6);
        let hour = Duration::from_secs(3_600);
        tasks[5].delay = hour / 2;
        work::enqueue(&**jobs.queue(), &tasks).await;
        let environment = [
            ("LD_PRELOAD", LIBRARY),
            ("FAKETIME", shift),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let worker = Worked::with_environment(&url, Point::Never, &environment);
        let ids: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        work::all_succeed(&**jobs.queue(), ids[..5].to_vec()).await;
        for id in &ids[..5] {
            let record = jobs.get_status(*id).await.expect("a reply").expect("known");
            assert_eq!(record.attempts, 1, "{shift}: {record:?}");
        }
        let record = jobs.get_status(ids[5]).await.expect("a reply");
        let record = record.expect("known");
        assert_eq!(record.state, TaskState::Scheduled, "{shift}");
        let due = record.next_run_at.expect("it waits");
        assert_eq!(due.since(record.created_at), hour / 2, "{shift}");
        drop(worker);
    }
}

async fn a_deaf_handler_does_not_keep_its_worker_from_ending(kind: Kind) {
    let server = Server::start(kind);
    let url = server.url();
    let jobs = Jobs::connect(&url).await.expect("a queue");
    let tasks = work::tasks(1);
    work::enqueue(&**jobs.queue(), &tasks).await;
    let mut first = child(&url, Point::Deaf).await;
    first.tell();
    let owner = first.owner.clone();
    let ended = spawn_blocking(move || {
        first.wait_for("ended: true");
        first.child.wait().expect("it ended")
    });
    assert!(ended.await.expect("no panic").success());
    // It gave its task back before it ended, and the attempt with it.
    let running = jobs.queue().running(&owner).await;
    assert!(running.expect("a reply").is_empty());
    let record = jobs.get_status(tasks[0].id).await.expect("a reply");
    let record = record.expect("known");
    assert_eq!(
        (record.state, record.attempts, record.given_back),
        (TaskState::Queued, 0, 1)
    );
}

async fn a_released_worker_loses_its_tasks_at_once(kind: Kind) {
    let server = Server::start(kind);
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
