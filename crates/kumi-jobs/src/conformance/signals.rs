//! Waits, results and subscriptions: who is woken, and by what.

use super::{Fixture, table_of, task};
use crate::{Cancel, Notice, Outcome, Signal, TaskState, transition};
use std::time::Duration;
use tokio::time::timeout;

table_of!(
    an_enqueue_ends_a_wait,
    tasks_left_in_line_wake_the_next_worker,
    a_cancel_reaches_the_owner,
    a_poke_ends_a_wait_without_a_task,
    producers_are_told_of_the_end,
    subscribers_see_every_move,
);

/// No case waits that long unless it failed.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

async fn an_enqueue_ends_a_wait(f: &Fixture<'_>) {
    let wait = f.queue.wait(&f.owner, vec!["a".into()], LONGEST_WAIT);
    let (signals, _) = tokio::join!(wait, f.simple());
    assert_eq!(signals.expect("the suite relies on it"), [Signal::Ready]);
    f.claim().await;
    // Nothing more to claim: a wait for another type is not ended by this one.
    f.add(super::of_type("b")).await;
    let short = Duration::from_millis(20);
    let signals = f.queue.wait(&f.owner, vec!["a".into()], short).await;
    assert_eq!(signals.expect("the suite relies on it"), []);
}

async fn tasks_left_in_line_wake_the_next_worker(f: &Fixture<'_>) {
    f.queue
        .enqueue(vec![task(), task()])
        .await
        .expect("the queue answers");
    let wait = f.queue.wait(&f.owner, vec!["a".into()], LONGEST_WAIT).await;
    assert_eq!(wait.expect("the suite relies on it"), [Signal::Ready]);
    f.claim().await;
    let other = f.worker(crate::Owner::random());
    let wait = other
        .queue
        .wait(&other.owner, vec!["a".into()], LONGEST_WAIT)
        .await;
    assert_eq!(wait.expect("the suite relies on it"), [Signal::Ready]);
}

async fn a_cancel_reaches_the_owner(f: &Fixture<'_>) {
    let ids = [f.simple().await, f.simple().await];
    f.claims(2).await;
    for id in ids {
        assert_eq!(
            f.queue.cancel(id).await.expect("the queue answers"),
            Cancel::Requested
        );
    }
    let signals = f
        .queue
        .wait(&f.owner, Vec::new(), LONGEST_WAIT)
        .await
        .expect("the queue answers");
    assert_eq!(signals, ids.map(Signal::Cancel));
}

async fn a_poke_ends_a_wait_without_a_task(f: &Fixture<'_>) {
    let wait = f.queue.wait(&f.owner, vec!["a".into()], LONGEST_WAIT);
    let (signals, poked) = tokio::join!(wait, f.queue.poke(&f.owner));
    poked.expect("the suite relies on it");
    assert_eq!(signals.expect("the suite relies on it"), [Signal::Poke]);
}

async fn producers_are_told_of_the_end(f: &Fixture<'_>) {
    let ids = [f.simple().await, f.simple().await, f.simple().await];
    let work = async {
        let claims = f.claims(2).await;
        f.queue
            .mark_succeeded(&claims[0], Some("1".into()))
            .await
            .expect("the suite relies on it");
        f.kill(&claims[1]).await;
        f.queue.cancel(ids[2]).await.expect("the queue answers");
    };
    let wait = async |id| {
        let done = timeout(LONGEST_WAIT, f.queue.done(id)).await;
        done.expect("no hang")
            .expect("the suite relies on it")
            .map(|record| record.state)
    };
    let (first, second, third, ()) = tokio::join!(wait(ids[0]), wait(ids[1]), wait(ids[2]), work);
    assert_eq!(first, Some(TaskState::Succeeded));
    assert_eq!(second, Some(TaskState::Dead));
    assert_eq!(third, Some(TaskState::Cancelled));
    assert_eq!(
        wait(ids[0]).await,
        Some(TaskState::Succeeded),
        "afterwards too"
    );
    assert_eq!(wait(crate::TaskId::random()).await, None);
}

async fn subscribers_see_every_move(f: &Fixture<'_>) {
    let mut events = f.queue.subscribe().await.expect("the queue answers");
    let id = f.simple().await;
    f.fail(&f.claim().await, 5).await;
    f.advance(5).await;
    let claim = f.claim().await;
    f.finish(&claim, Outcome::Succeeded(None)).await;
    let expected = [
        (TaskState::Queued, 0),
        (TaskState::Running, 1),
        (TaskState::RetryScheduled, 1),
        (TaskState::Queued, 1),
        (TaskState::Running, 2),
        (TaskState::Succeeded, 2),
    ];
    let mut before = None;
    for (state, attempts) in expected {
        let notice = timeout(LONGEST_WAIT, events.recv()).await.expect("no hang");
        let Some(Notice::Moved(event)) = notice else {
            panic!("{notice:?}");
        };
        assert!(transition::allowed(event.from, event.to), "{event:?}");
        assert_eq!((event.id, event.from, event.to), (id, before, state));
        assert_eq!((&*event.task_type, event.attempts), ("a", attempts));
        before = Some(state);
    }
}
