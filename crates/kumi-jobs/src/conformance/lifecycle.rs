//! One task from its enqueue to its end.

use super::{Fixture, table_of, task};
use crate::{
    Enqueued, Filter, Finished, Outcome, Paging, Priority, QueueError, Settings, TaskState, Unique,
};
use std::time::Duration;

table_of!(
    a_task_runs_and_leaves_its_result,
    what_a_producer_wrote_arrives,
    a_repeated_enqueue_changes_nothing,
    a_delayed_task_waits_for_its_time,
    a_failed_task_waits_and_is_dead_after_its_attempts,
    an_abort_is_dead_at_once,
    only_the_current_token_counts,
    snoozing_and_giving_back_cost_no_attempt,
    giving_back_costs_an_attempt_after_a_hundred_times,
    what_is_too_large_is_an_error,
    large_results_are_not_kept,
    a_duration_over_a_hundred_years_is_an_error,
);

async fn a_task_runs_and_leaves_its_result(f: &Fixture<'_>) {
    let id = match f.add(task()).await {
        Enqueued::New(id, TaskState::Queued) => id,
        other => panic!("{other:?}"),
    };
    let before = f.record(id).await;
    assert_eq!(
        (before.attempts, before.runs, before.max_attempts),
        (0, 0, 5)
    );
    let claim = f.claim().await;
    assert_eq!((claim.id, claim.attempt, claim.runs), (id, 1, 1));
    assert_eq!(claim.created_at, before.created_at);
    let running = f.record(id).await;
    assert_eq!(running.state, TaskState::Running);
    assert_eq!(running.owner.as_ref(), Some(&f.owner));
    assert_eq!(running.token, Some(claim.token));
    assert!(f.claims(1).await.is_empty());
    let done = f.queue.mark_succeeded(&claim, Some("42".into())).await;
    assert_eq!(
        done.expect("the suite relies on it"),
        Finished::Applied(TaskState::Succeeded)
    );
    let after = f.record(id).await;
    assert_eq!(
        (after.state, after.result.as_deref()),
        (TaskState::Succeeded, Some(&b"42"[..]))
    );
    assert_eq!((after.owner, after.attempts), (None, 1));
}

async fn what_a_producer_wrote_arrives(f: &Fixture<'_>) {
    let mut new = task();
    new.envelope.payload = vec![0, 255, 13, 10].into();
    new.envelope.content_type = "application/octet-stream".into();
    new.max_attempts = 3;
    new.priority = Priority::Low;
    new.trace = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into());
    f.add(new.clone()).await;
    let claim = f.claim().await;
    assert_eq!((&claim.envelope, &claim.trace), (&new.envelope, &new.trace));
    assert_eq!(claim.max_attempts, 3);
    let record = f.record(new.id).await;
    assert_eq!((record.envelope, record.trace), (new.envelope, new.trace));
    assert_eq!((record.priority, record.max_attempts), (Priority::Low, 3));
}

async fn a_repeated_enqueue_changes_nothing(f: &Fixture<'_>) {
    let new = task();
    f.add(new.clone()).await;
    assert_eq!(f.add(new.clone()).await, Enqueued::Exists(new.id));
    f.claim().await;
    assert_eq!(f.add(new.clone()).await, Enqueued::Exists(new.id));
    assert_eq!(f.state(new.id).await, TaskState::Running);
    assert!(f.claims(5).await.is_empty());
}

async fn a_delayed_task_waits_for_its_time(f: &Fixture<'_>) {
    let mut new = task();
    new.delay = Duration::from_secs(60);
    assert_eq!(
        f.add(new.clone()).await,
        Enqueued::New(new.id, TaskState::Scheduled)
    );
    f.advance(59).await;
    let turn = f.turn(&[("a", 1)], 1).await;
    assert!(turn.claims.is_empty());
    let due = f.record(new.id).await.next_run_at;
    assert_eq!(turn.next_due, due);
    assert_eq!(
        due.expect("the suite relies on it").since(turn.now),
        Duration::from_secs(1)
    );
    f.advance(1).await;
    assert_eq!(f.claim().await.id, new.id);
    assert_eq!(f.record(new.id).await.next_run_at, None);
}

async fn a_failed_task_waits_and_is_dead_after_its_attempts(f: &Fixture<'_>) {
    let id = f.simple().await;
    for attempt in 1..=4 {
        let claim = f.claim().await;
        assert_eq!(claim.attempt, attempt);
        assert_eq!(
            f.fail(&claim, 10).await,
            Finished::Applied(TaskState::RetryScheduled)
        );
        f.advance(9).await;
        assert!(f.claims(1).await.is_empty());
        f.advance(1).await;
    }
    let claim = f.claim().await;
    assert_eq!(f.fail(&claim, 10).await, Finished::Applied(TaskState::Dead));
    f.advance(3_600).await;
    assert!(f.claims(1).await.is_empty());
    let record = f.record(id).await;
    assert_eq!(
        (record.state, record.attempts, record.runs),
        (TaskState::Dead, 5, 5)
    );
    assert_eq!(record.last_error.as_deref(), Some("no"));
}

async fn an_abort_is_dead_at_once(f: &Fixture<'_>) {
    let id = f.simple().await;
    f.kill(&f.claim().await).await;
    let record = f.record(id).await;
    assert_eq!((record.state, record.attempts), (TaskState::Dead, 1));
}

async fn only_the_current_token_counts(f: &Fixture<'_>) {
    let id = f.simple().await;
    let first = f.claim().await;
    assert_eq!(
        f.fail(&first, 0).await,
        Finished::Applied(TaskState::RetryScheduled)
    );
    assert_eq!(f.fail(&first, 0).await, Finished::AlreadyApplied);
    let second = f.claim().await;
    assert_ne!(first.token, second.token);
    assert_eq!(
        f.finish(&first, Outcome::Succeeded(None)).await,
        Finished::Refused
    );
    assert_eq!(f.state(id).await, TaskState::Running);
    f.succeed(&second).await;
    assert_eq!(
        f.finish(&second, Outcome::Succeeded(None)).await,
        Finished::AlreadyApplied
    );
    assert_eq!(
        f.finish(&first, Outcome::GivenBack).await,
        Finished::Refused
    );
    assert_eq!(f.state(id).await, TaskState::Succeeded);
    let mut unknown = second.clone();
    unknown.id = crate::TaskId::random();
    assert_eq!(
        f.finish(&unknown, Outcome::GivenBack).await,
        Finished::Unknown
    );
}

async fn snoozing_and_giving_back_cost_no_attempt(f: &Fixture<'_>) {
    let id = f.simple().await;
    for _ in 0..6 {
        let claim = f.claim().await;
        let snooze = Outcome::Snoozed(Duration::from_secs(5));
        assert_eq!(
            f.finish(&claim, snooze).await,
            Finished::Applied(TaskState::Scheduled)
        );
        assert!(f.claims(1).await.is_empty());
        f.advance(5).await;
        let claim = f.claim().await;
        let back = f.finish(&claim, Outcome::GivenBack).await;
        assert_eq!(back, Finished::Applied(TaskState::Queued));
    }
    let record = f.record(id).await;
    assert_eq!(
        (record.attempts, record.runs, record.given_back),
        (0, 12, 12)
    );
    // What is given back is first in line again.
    let later = f.simple().await;
    assert_eq!(
        f.claims(2)
            .await
            .iter()
            .map(|claim| claim.id)
            .collect::<Vec<_>>(),
        [id, later]
    );
}

async fn giving_back_costs_an_attempt_after_a_hundred_times(f: &Fixture<'_>) {
    let id = f.simple().await;
    for number in 1..=105 {
        let claim = f.claim().await;
        let attempt = 1 + u32::saturating_sub(number, 101);
        assert_eq!((claim.attempt, claim.runs), (attempt, number));
        let state = match number {
            105 => TaskState::Dead,
            _ => TaskState::Queued,
        };
        let back = f.finish(&claim, Outcome::GivenBack).await;
        assert_eq!(back, Finished::Applied(state), "time {number}");
    }
    let record = f.record(id).await;
    assert_eq!((record.attempts, record.given_back), (5, 100));
    let error = record.last_error.expect("the suite relies on it");
    assert_eq!(error, "given back more than 100 times");
}

async fn what_is_too_large_is_an_error(f: &Fixture<'_>) {
    let mut large = task();
    large.envelope.payload = vec![b'x'; f.queue.settings().payload_limit_bytes + 1].into();
    let error = f
        .queue
        .enqueue(vec![large])
        .await
        .expect_err("the suite relies on it");
    assert!(matches!(error, QueueError::TooLarge { .. }), "{error}");
    let many = (0..=crate::ENQUEUE_LIMIT).map(|_| task()).collect();
    let error = f
        .queue
        .enqueue(many)
        .await
        .expect_err("the suite relies on it");
    assert!(matches!(error, QueueError::TooMany { .. }), "{error}");
    let error = f
        .queue
        .enqueue(vec![super::of_type("a b")])
        .await
        .expect_err("the suite relies on it");
    assert!(matches!(error, QueueError::Invalid(_)), "{error}");
    assert_eq!(
        f.queue
            .counts_by_state()
            .await
            .expect("the queue answers")
            .total(),
        0
    );
}

async fn large_results_are_not_kept(f: &Fixture<'_>) {
    let settings = Settings {
        result_limit_bytes: 10,
        ..Settings::default()
    };
    let f = &f.again(settings).await;
    for (size, kept) in [(10, true), (11, false)] {
        let id = f.simple().await;
        let result = Outcome::Succeeded(Some(vec![b'x'; size].into()));
        f.finish(&f.claim().await, result).await;
        let record = f.record(id).await;
        assert_eq!(record.state, TaskState::Succeeded);
        assert_eq!(
            (record.result.is_some(), record.result_dropped),
            (kept, !kept)
        );
    }
}

async fn a_duration_over_a_hundred_years_is_an_error(f: &Fixture<'_>) {
    let most = Duration::from_secs(100 * 365 * 24 * 3_600);
    let windowed = |window| {
        let mut new = task();
        let key = "k".into();
        new.unique = Some(Unique {
            key,
            window: Some(window),
        });
        new
    };
    let delayed = |delay| {
        let mut new = task();
        new.delay = delay;
        new
    };
    let mut ids = Vec::new();
    for new in [windowed(most), delayed(most)] {
        ids.push(f.add(new).await.id());
    }
    for long in [most + Duration::from_millis(1), Duration::MAX] {
        for new in [windowed(long), delayed(long)] {
            let refused = f.queue.enqueue(vec![new]).await;
            assert!(matches!(refused, Err(QueueError::Invalid(_))));
        }
        let lease = f.queue.heartbeat(&f.owner, long).await;
        assert!(matches!(lease, Err(QueueError::Invalid(_))));
        let ask = crate::Ask {
            lease: long,
            ..f.ask(&[("a", 1)], 1)
        };
        let turn = f.queue.turn(Vec::new(), ask).await;
        assert!(matches!(turn, Err(QueueError::Invalid(_))));
    }
    let claim = f.claim().await;
    assert_eq!(claim.id, ids[0]);
    let late = f
        .queue
        .mark_failed(&claim, "no".into(), Some(Duration::MAX));
    assert!(matches!(late.await, Err(QueueError::Invalid(_))));
    // The longest ones can be read back.
    f.succeed(&claim).await;
    for (id, due) in [(ids[0], None), (ids[1], Some(most))] {
        let record = f.record(id).await;
        let waits = record.next_run_at.map(|due| due.since(record.created_at));
        assert_eq!(waits, due);
    }
    let page = f.queue.list(&Filter::default(), &Paging::newest(100)).await;
    assert_eq!(page.expect("the queue answers").tasks.len(), 2);
}
