//! Which tasks a worker gets, and how many.

use super::{Fixture, of_type, table_of, task};
use crate::{ENQUEUE_LIMIT, Finish, NewTask, Outcome, Priority, TaskId, TaskState};
use std::time::Duration;

table_of!(
    tasks_of_a_type_run_in_order,
    priorities_share_by_weight,
    a_type_without_room_blocks_no_other,
    types_take_turns,
    a_limit_bounds_all_workers,
    more_is_said_when_tasks_are_left,
    a_pause_stops_claims_only,
    what_is_due_starves_no_claim,
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
