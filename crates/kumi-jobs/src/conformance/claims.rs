//! Which tasks a worker gets, and how many.

use super::{Fixture, of_type, table_of, task};
use crate::{ENQUEUE_LIMIT, Finish, NewTask, Outcome, Priority, QueueError, TaskId, TaskState};
use std::time::Duration;

table_of!(
    tasks_of_a_type_run_in_order,
    priorities_share_by_weight,
    a_type_without_room_blocks_no_other,
    a_worker_that_asks_for_nothing_serves_no_type,
    types_take_turns,
    a_limit_bounds_all_workers,
    more_is_said_when_tasks_are_left,
    a_pause_stops_claims_only,
    what_is_due_starves_no_claim,
    cancelled_tasks_in_line_are_skipped,
    skipped_tasks_leave_order_and_shares,
);

async fn tasks_of_a_type_run_in_order(f: &Fixture<'_>) {
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(f.simple().await);
    }
    let more: Vec<_> = (0..20).map(|_| task()).collect();
    ids.extend(more.iter().map(|task| task.id));
    f.queue.enqueue(more).await.expect("the queue answers");
    let mut claimed: Vec<TaskId> = Vec::new();
    for max in [1, 3, 100] {
        claimed.extend(f.claims(max).await.iter().map(|claim| claim.id));
    }
    assert_eq!(claimed, ids);
}

async fn priorities_share_by_weight(f: &Fixture<'_>) {
    let mut tasks = Vec::new();
    for n in 0..120 {
        let mut new = task();
        new.priority = Priority::ALL[n % 4];
        tasks.push(new);
    }
    for batch in tasks.chunks(ENQUEUE_LIMIT) {
        let added = f.queue.enqueue(batch.to_vec()).await;
        added.expect("the queue answers");
    }
    let mut counts = [0; 4];
    for max in [1, 1, 1, 5, 7, 15] {
        for claim in f.claims(max).await {
            let task = tasks
                .iter()
                .find(|task| task.id == claim.id)
                .expect("the suite relies on it");
            counts[task.priority.level()] += 1;
        }
    }
    assert_eq!(counts, [16, 8, 4, 2]);
}

async fn a_type_without_room_blocks_no_other(f: &Fixture<'_>) {
    for name in ["a", "a", "b", "unserved", "c"] {
        f.add(of_type(name)).await;
    }
    let turn = f.turn(&[("a", 1), ("b", 0), ("c", 5)], 10).await;
    let mut types: Vec<_> = turn.claims.iter().map(|c| &*c.envelope.task_type).collect();
    types.sort_unstable();
    assert_eq!(types, ["a", "c"]);
    let counts = f.queue.counts_by_state().await.expect("the queue answers");
    let unserved: Vec<_> = counts.unserved().iter().map(ToString::to_string).collect();
    assert_eq!(unserved, ["unserved"]);
    let twice = f.queue.turn(Vec::new(), f.ask(&[("a", 1), ("a", 1)], 2));
    let error = twice.await.expect_err("a type is asked for once");
    assert!(matches!(error, QueueError::Invalid(_)), "{error}");
}

async fn a_worker_that_asks_for_nothing_serves_no_type(f: &Fixture<'_>) {
    f.add(of_type("a")).await;
    let served = async || {
        let counts = f.queue.counts_by_state().await.expect("the queue answers");
        counts.served.len()
    };
    f.turn(&[("a", 0)], 0).await;
    assert_eq!(served().await, 0);
    f.turn(&[("a", 0)], 1).await;
    assert_eq!(
        served().await,
        1,
        "it asks, and is at its limit for the type"
    );
}

async fn types_take_turns(f: &Fixture<'_>) {
    for _ in 0..10 {
        f.add(of_type("a")).await;
        f.add(of_type("b")).await;
    }
    let turn = f.turn(&[("a", 10), ("b", 10)], 6).await;
    let of_a = turn.claims.iter().filter(|c| &*c.envelope.task_type == "a");
    assert_eq!((turn.claims.len(), of_a.count()), (6, 3));
}

async fn a_limit_bounds_all_workers(f: &Fixture<'_>) {
    for _ in 0..5 {
        f.simple().await;
    }
    f.queue
        .limit("a", Some(2))
        .await
        .expect("the queue answers");
    let claims = f.claims(5).await;
    assert_eq!(claims.len(), 2);
    let other = f.worker(crate::Owner::random());
    let turn = other.turn(&[("a", 5)], 5).await;
    assert!(turn.claims.is_empty() && !turn.more);
    f.succeed(&claims[0]).await;
    assert_eq!(other.claims(5).await.len(), 1);
    f.queue.limit("a", None).await.expect("the queue answers");
    assert_eq!(other.claims(5).await.len(), 2);
}

async fn more_is_said_when_tasks_are_left(f: &Fixture<'_>) {
    for _ in 0..3 {
        f.simple().await;
    }
    assert!(!f.turn(&[("a", 1)], 1).await.more, "the worker is full");
    f.live(15).await;
    // The lease ended: the turn gives the task back and there is room for it, later.
    let turn = f.turn(&[("a", 9)], 9).await;
    assert_eq!((turn.claims.len(), turn.more), (2, false));
    assert!(turn.next_due.is_some());
}

async fn a_pause_stops_claims_only(f: &Fixture<'_>) {
    let first = f.simple().await;
    let claim = f.claim().await;
    f.queue.pause(true).await.expect("the queue answers");
    let second = f.simple().await;
    let turn = f.turn(&[("a", 5)], 5).await;
    assert!(turn.claims.is_empty() && turn.paused && !turn.more);
    assert!(
        f.queue
            .counts_by_state()
            .await
            .expect("the queue answers")
            .paused
    );
    f.succeed(&claim).await;
    f.check_states(&[(first, TaskState::Succeeded), (second, TaskState::Queued)])
        .await;
    f.queue.pause(false).await.expect("the queue answers");
    assert_eq!(f.claim().await.id, second);
}

/// Far more tasks are due than one turn moves into line, and a worker has much to report.
async fn what_is_due_starves_no_claim(f: &Fixture<'_>) {
    let later = Duration::from_secs(60);
    let tasks = |name: &str, count: usize, delay: Duration| -> Vec<NewTask> {
        let task = |_| NewTask {
            delay,
            ..of_type(name)
        };
        (0..count).map(task).collect()
    };
    for (name, count, delay) in [
        ("b", 80, Duration::ZERO),
        ("b", 80, later),
        ("c", 50, Duration::ZERO),
    ] {
        let added = f.queue.enqueue(tasks(name, count, delay)).await;
        added.expect("the queue answers");
    }
    // As many retries as delayed tasks.
    for _ in 0..2 {
        let claims = f.turn(&[("b", 40)], 40).await.claims;
        let failed = claims.iter().map(|claim| {
            let error = "no".to_owned();
            let retry_after = Some(later);
            Finish::new(claim, Outcome::Failed { error, retry_after })
        });
        let failed = f.queue.finish(failed.collect()).await;
        failed.expect("the queue answers");
    }
    let held = f.turn(&[("c", 50)], 50).await.claims;
    f.advance(60).await;
    let mut urgent = task();
    urgent.priority = Priority::High;
    f.add(urgent.clone()).await;
    let counts = async || f.queue.counts_by_state().await.expect("the queue answers");
    let reports = held
        .iter()
        .map(|claim| Finish::new(claim, Outcome::Succeeded(None)));
    let turn = f
        .queue
        .turn(reports.collect(), f.ask(&[("a", 50)], 50))
        .await;
    let turn = turn.expect("the queue answers");
    let claimed: Vec<TaskId> = turn.claims.iter().map(|claim| claim.id).collect();
    assert_eq!(claimed, [urgent.id]);
    assert!(turn.more);
    // Neither delayed tasks nor retries keep the others from coming up.
    let counts = counts().await;
    assert_eq!(counts.of(TaskState::Scheduled), 80 - 13);
    assert_eq!(counts.of(TaskState::RetryScheduled), 80 - 12);
}

/// A worker with one free slot gets the first task behind many cancelled ones within a few turns, and each turn that finds
/// none says that there is more.
async fn cancelled_tasks_in_line_are_skipped(f: &Fixture<'_>) {
    for (cancelled, most_turns) in [(150, 1), (3_000, 10)] {
        let tasks: Vec<NewTask> = (0..cancelled).map(|_| task()).collect();
        for batch in tasks.chunks(ENQUEUE_LIMIT) {
            let added = f.queue.enqueue(batch.to_vec()).await;
            added.expect("the queue answers");
            let ids = batch.iter().map(|task| task.id).collect();
            let cancelled = f.queue.cancel_all(ids).await;
            cancelled.expect("the queue answers");
        }
        let live = f.simple().await;
        for turns in 1.. {
            let turn = f.turn(&[("a", 1)], 1).await;
            if let [claim] = &turn.claims[..] {
                assert_eq!(claim.id, live);
                f.succeed(claim).await;
                break;
            }
            assert!(turn.more, "the worker is to ask again at once");
            assert!(turns < most_turns, "{turns} turns");
        }
    }
}

/// Cancelled tasks among others change neither which priority gets how many claims nor the order within one.
async fn skipped_tasks_leave_order_and_shares(f: &Fixture<'_>) {
    let mut tasks = Vec::new();
    for n in 0..240 {
        let mut new = task();
        new.priority = Priority::ALL[n % 4];
        tasks.push(new);
    }
    for batch in tasks.chunks(ENQUEUE_LIMIT) {
        let added = f.queue.enqueue(batch.to_vec()).await;
        added.expect("the queue answers");
    }
    // Half of each line, in runs of one to nine.
    let is_cancelled = |n: usize| (n / 4 * 7) % 18 < 9;
    for (n, task) in tasks.iter().enumerate() {
        if is_cancelled(n) {
            f.queue.cancel(task.id).await.expect("the queue answers");
        }
    }
    let mut claimed: [Vec<TaskId>; 4] = Default::default();
    for max in [1, 1, 1, 5, 7, 15] {
        let claims = f.claims(max).await;
        assert_eq!(claims.len(), max);
        for claim in claims {
            let task = tasks.iter().find(|task| task.id == claim.id);
            let task = task.expect("the suite relies on it");
            claimed[task.priority.level()].push(claim.id);
        }
    }
    assert_eq!(claimed.each_ref().map(Vec::len), [16, 8, 4, 2]);
    for (level, claimed) in claimed.iter().enumerate() {
        let line = tasks.iter().enumerate().skip(level).step_by(4);
        let live = line.filter(|(n, _)| !is_cancelled(*n));
        let first: Vec<TaskId> = live.map(|(_, task)| task.id).take(claimed.len()).collect();
        assert_eq!(*claimed, first, "priority {level}");
    }
}
