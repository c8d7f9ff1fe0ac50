//! Serial and unique keys.

use super::{Fixture, table_of, task};
use crate::{
    Cancel, ENQUEUE_LIMIT, Enqueued, Finished, NewTask, Requeued, Serial, TaskState, Unique,
};
use std::time::Duration;

table_of!(
    serial_tasks_run_one_after_the_other,
    a_failed_serial_task_keeps_its_place,
    a_delayed_serial_task_joins_when_it_is_due,
    a_dead_serial_task_lets_the_next_run,
    a_strict_line_waits_for_its_dead_task,
    cancelled_serial_tasks_are_skipped,
    many_cancelled_serial_tasks_are_skipped,
    a_unique_key_is_held_until_the_end,
    a_window_outlives_success_only,
    a_dead_task_with_a_taken_key_stays_dead,
);

fn serial(key: &str, hold_on_dead: bool) -> NewTask {
    let mut new = task();
    new.serial = Some(Serial {
        key: key.into(),
        hold_on_dead,
    });
    new
}

fn unique(key: &str, window: Option<u64>) -> NewTask {
    let mut new = task();
    new.unique = Some(Unique {
        key: key.into(),
        window: window.map(Duration::from_secs),
    });
    new
}

async fn serial_tasks_run_one_after_the_other(f: &Fixture<'_>) {
    let tasks = [serial("x", false), serial("x", false), serial("y", false)];
    let states = [TaskState::Queued, TaskState::Blocked, TaskState::Queued];
    for (task, state) in tasks.iter().zip(states) {
        assert_eq!(f.add(task.clone()).await, Enqueued::New(task.id, state));
    }
    let claims = f.claims(9).await;
    assert_eq!(
        claims.iter().map(|c| c.id).collect::<Vec<_>>(),
        [tasks[0].id, tasks[2].id]
    );
    f.succeed(&claims[0]).await;
    assert_eq!(f.claim().await.id, tasks[1].id);
}

async fn a_failed_serial_task_keeps_its_place(f: &Fixture<'_>) {
    let tasks = [serial("x", false), serial("x", false)];
    f.queue
        .enqueue(tasks.to_vec())
        .await
        .expect("the queue answers");
    let claim = f.claim().await;
    f.fail(&claim, 10).await;
    assert!(f.claims(9).await.is_empty());
    f.advance(10).await;
    let claim = f.claim().await;
    assert_eq!(claim.id, tasks[0].id);
    f.succeed(&claim).await;
    assert_eq!(f.claim().await.id, tasks[1].id);
}

async fn a_delayed_serial_task_joins_when_it_is_due(f: &Fixture<'_>) {
    let (mut late, prompt) = (serial("x", false), serial("x", false));
    late.delay = Duration::from_secs(10);
    f.queue
        .enqueue(vec![late.clone(), prompt.clone()])
        .await
        .expect("the suite relies on it");
    f.check_states(&[
        (late.id, TaskState::Scheduled),
        (prompt.id, TaskState::Queued),
    ])
    .await;
    f.advance(10).await;
    let claims = f.claims(9).await;
    assert_eq!(claims.len(), 1);
    assert_eq!(f.state(late.id).await, TaskState::Blocked);
    f.succeed(&claims[0]).await;
    assert_eq!(f.claim().await.id, late.id);
}

async fn a_dead_serial_task_lets_the_next_run(f: &Fixture<'_>) {
    let tasks = [serial("x", false), serial("x", false)];
    f.queue
        .enqueue(tasks.to_vec())
        .await
        .expect("the queue answers");
    f.kill(&f.claim().await).await;
    let claim = f.claim().await;
    assert_eq!(claim.id, tasks[1].id);
    // Requeued, it joins at the end.
    let requeued = f
        .queue
        .requeue(vec![tasks[0].id])
        .await
        .expect("the queue answers");
    assert_eq!(requeued, [Requeued::Applied(TaskState::Blocked)]);
    f.succeed(&claim).await;
    assert_eq!(f.claim().await.id, tasks[0].id);
}

async fn a_strict_line_waits_for_its_dead_task(f: &Fixture<'_>) {
    let tasks = [serial("x", true), serial("x", true), serial("x", true)];
    f.queue
        .enqueue(tasks.to_vec())
        .await
        .expect("the queue answers");
    f.kill(&f.claim().await).await;
    assert!(f.claims(9).await.is_empty());
    let requeued = f
        .queue
        .requeue(vec![tasks[0].id])
        .await
        .expect("the queue answers");
    assert_eq!(requeued, [Requeued::Applied(TaskState::Queued)]);
    let claim = f.claim().await;
    assert_eq!((claim.id, claim.attempt), (tasks[0].id, 1));
    f.kill(&claim).await;
    assert_eq!(
        f.queue
            .purge(vec![tasks[0].id])
            .await
            .expect("the queue answers"),
        1
    );
    assert_eq!(f.claim().await.id, tasks[1].id);
}

async fn cancelled_serial_tasks_are_skipped(f: &Fixture<'_>) {
    let tasks: Vec<NewTask> = (0..4).map(|_| serial("x", false)).collect();
    f.queue
        .enqueue(tasks.clone())
        .await
        .expect("the queue answers");
    for index in [1, 2, 0] {
        let cancelled = f
            .queue
            .cancel(tasks[index].id)
            .await
            .expect("the queue answers");
        assert_eq!(cancelled, Cancel::Cancelled);
    }
    assert_eq!(
        f.claims(9).await.iter().map(|c| c.id).collect::<Vec<_>>(),
        [tasks[3].id]
    );
}

async fn many_cancelled_serial_tasks_are_skipped(f: &Fixture<'_>) {
    let tasks: Vec<NewTask> = (0..250).map(|_| serial("x", false)).collect();
    for batch in tasks.chunks(ENQUEUE_LIMIT) {
        let added = f.queue.enqueue(batch.to_vec()).await;
        added.expect("the queue answers");
    }
    let first = f.claim().await;
    assert_eq!(first.id, tasks[0].id);
    let last = &tasks[tasks.len() - 1];
    for task in &tasks[1..tasks.len() - 1] {
        f.queue.cancel(task.id).await.expect("the queue answers");
    }
    f.succeed(&first).await;
    // A queue may skip a part of them per call; whatever comes meanwhile waits behind the last one.
    let later = serial("x", false);
    assert_eq!(
        f.add(later.clone()).await,
        Enqueued::New(later.id, TaskState::Blocked)
    );
    let mut turns = 0;
    let claim = loop {
        let mut turn = f.turn(&[("a", 9)], 9).await;
        if let Some(claim) = turn.claims.pop() {
            assert!(turn.claims.is_empty(), "one at a time");
            break claim;
        }
        assert!(turn.more, "the worker asks again at once");
        turns += 1;
        assert!(turns < 10, "the line goes on");
    };
    assert_eq!(claim.id, last.id);
    f.succeed(&claim).await;
    assert_eq!(f.claim().await.id, later.id);
}

async fn a_unique_key_is_held_until_the_end(f: &Fixture<'_>) {
    let first = unique("k", None);
    f.add(first.clone()).await;
    assert_eq!(
        f.add(unique("k", None)).await,
        Enqueued::Duplicate(first.id)
    );
    assert!(matches!(
        f.add(unique("other", None)).await,
        Enqueued::New(..)
    ));
    let claim = f.claim().await;
    f.fail(&claim, 1).await;
    assert_eq!(
        f.add(unique("k", None)).await,
        Enqueued::Duplicate(first.id)
    );
    f.claims(1).await;
    f.advance(1).await;
    let claim = f.claim().await;
    assert_eq!(claim.id, first.id);
    f.succeed(&claim).await;
    assert!(matches!(f.add(unique("k", None)).await, Enqueued::New(..)));
}

async fn a_window_outlives_success_only(f: &Fixture<'_>) {
    let first = unique("k", Some(60));
    f.add(first.clone()).await;
    f.advance(10).await;
    f.succeed(&f.claim().await).await;
    assert_eq!(
        f.add(unique("k", Some(60))).await,
        Enqueued::Duplicate(first.id)
    );
    f.advance(49).await;
    assert_eq!(
        f.add(unique("k", Some(60))).await,
        Enqueued::Duplicate(first.id)
    );
    f.advance(1).await;
    let second = unique("k", Some(60));
    assert!(matches!(f.add(second.clone()).await, Enqueued::New(..)));
    // The old window's end does not free the new holder's key.
    f.turn(&[], 0).await;
    assert_eq!(
        f.add(unique("k", None)).await,
        Enqueued::Duplicate(second.id)
    );
    // The task outlives its window.
    f.advance(100).await;
    assert_eq!(
        f.add(unique("k", None)).await,
        Enqueued::Duplicate(second.id)
    );
    f.kill(&f.claim().await).await;
    let third = unique("k", Some(60));
    assert!(matches!(f.add(third.clone()).await, Enqueued::New(..)));
    assert_eq!(
        f.queue.cancel(third.id).await.expect("the queue answers"),
        Cancel::Cancelled
    );
    assert!(matches!(f.add(unique("k", None)).await, Enqueued::New(..)));
}

async fn a_dead_task_with_a_taken_key_stays_dead(f: &Fixture<'_>) {
    let (first, second) = (unique("k", None), unique("k", None));
    f.add(first.clone()).await;
    f.kill(&f.claim().await).await;
    f.add(second.clone()).await;
    let requeued = f
        .queue
        .requeue(vec![first.id])
        .await
        .expect("the queue answers");
    assert_eq!(requeued, [Requeued::Taken(second.id)]);
    assert_eq!(f.state(first.id).await, TaskState::Dead);
    let claim = f.claim().await;
    assert_eq!(
        f.fail(&claim, 1).await,
        Finished::Applied(TaskState::RetryScheduled)
    );
    f.queue.cancel(second.id).await.expect("the queue answers");
    let requeued = f
        .queue
        .requeue(vec![first.id])
        .await
        .expect("the queue answers");
    assert_eq!(requeued, [Requeued::Applied(TaskState::Queued)]);
    assert_eq!(
        f.add(unique("k", None)).await,
        Enqueued::Duplicate(first.id)
    );
}
