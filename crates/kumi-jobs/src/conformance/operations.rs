//! What operators and handlers ask for: cancel, requeue, purge, listings, steps, retention, schedules.

use super::{Fixture, of_type, table_of, task};
use crate::cron::tick;
use crate::{
    Backoff, Cancel, ENQUEUE_LIMIT, Filter, Finished, Jobs, Outcome, Paging, Priority, Progress,
    QueueError, Requeued, Retention, Schedule, Settings, TaskEnvelope, TaskId, TaskState,
    Timestamp,
};
use std::collections::BTreeSet;
use std::time::Duration;

table_of!(
    cancel_says_what_it_did,
    a_finish_before_the_cancel_wins,
    requeue_brings_dead_tasks_back,
    purge_forgets_done_tasks_only,
    counts_add_up,
    totals_count_what_was_done_whatever_is_kept,
    the_oldest_ready_task_is_known,
    a_listing_shows_what_stays_put,
    steps_and_progress_need_the_token,
    steps_are_bounded,
    done_tasks_are_kept_for_a_while,
    a_cancel_drops_nothing,
    a_slot_is_decided_once,
    any_number_of_schedulers_enqueue_a_slot_once,
    a_schedule_whose_task_is_refused_stops_no_other,
    a_clock_that_was_wrong_silences_no_schedule,
    a_set_of_schedules_is_declared_as_a_whole,
    a_back_off_stays_with_its_task,
);

async fn cancel_says_what_it_did(f: &Fixture<'_>) {
    let mut delayed = task();
    delayed.delay = Duration::from_secs(60);
    f.add(delayed.clone()).await;
    let retried = f.simple().await;
    f.fail(&f.claim().await, 60).await;
    let queued = f.simple().await;
    for id in [delayed.id, retried, queued] {
        assert_eq!(
            f.queue.cancel(id).await.expect("the queue answers"),
            Cancel::Cancelled
        );
        assert_eq!(f.state(id).await, TaskState::Cancelled);
        let again = f.queue.cancel(id).await.expect("the queue answers");
        assert_eq!(again, Cancel::AlreadyDone(TaskState::Cancelled));
    }
    let unknown = f
        .queue
        .cancel(TaskId::random())
        .await
        .expect("the queue answers");
    assert_eq!(unknown, Cancel::Unknown);
    f.advance(120).await;
    assert!(f.claims(9).await.is_empty(), "nothing cancelled runs");
}

async fn a_finish_before_the_cancel_wins(f: &Fixture<'_>) {
    let outcomes = [
        (Outcome::Succeeded(None), TaskState::Succeeded),
        (Outcome::Cancelled, TaskState::Cancelled),
        (Outcome::GivenBack, TaskState::Cancelled),
        (Outcome::Snoozed(Duration::ZERO), TaskState::Cancelled),
    ];
    for (outcome, expected) in outcomes {
        let id = f.simple().await;
        let claim = f.claim().await;
        assert_eq!(
            f.queue.cancel(id).await.expect("the queue answers"),
            Cancel::Requested
        );
        assert!(f.record(id).await.cancel_requested);
        assert_eq!(f.finish(&claim, outcome).await, Finished::Applied(expected));
    }
    let id = f.simple().await;
    let claim = f.claim().await;
    f.queue.cancel(id).await.expect("the queue answers");
    assert_eq!(
        f.fail(&claim, 1).await,
        Finished::Applied(TaskState::Cancelled)
    );
}

async fn requeue_brings_dead_tasks_back(f: &Fixture<'_>) {
    let (dead, queued) = (f.simple().await, f.simple().await);
    f.kill(&f.claim().await).await;
    let unknown = TaskId::random();
    let requeued = f
        .queue
        .requeue(vec![dead, queued, unknown])
        .await
        .expect("the queue answers");
    let expected = [
        Requeued::Applied(TaskState::Queued),
        Requeued::NotDead(TaskState::Queued),
        Requeued::Unknown,
    ];
    assert_eq!(requeued, expected);
    let record = f.record(dead).await;
    assert_eq!((record.attempts, record.runs), (0, 1));
    let order: Vec<_> = f.claims(9).await.iter().map(|claim| claim.id).collect();
    assert_eq!(order, [queued, dead]);
}

async fn purge_forgets_done_tasks_only(f: &Fixture<'_>) {
    let ids = [
        f.simple().await,
        f.simple().await,
        f.simple().await,
        f.simple().await,
    ];
    let claims = f.claims(2).await;
    f.succeed(&claims[0]).await;
    f.kill(&claims[1]).await;
    f.queue.cancel(ids[2]).await.expect("the queue answers");
    assert_eq!(
        f.queue
            .purge(ids.to_vec())
            .await
            .expect("the queue answers"),
        3
    );
    assert_eq!(
        f.queue
            .purge(ids.to_vec())
            .await
            .expect("the queue answers"),
        0
    );
    for id in &ids[..3] {
        assert_eq!(
            f.queue.get_status(*id).await.expect("the queue answers"),
            None
        );
    }
    assert_eq!(f.state(ids[3]).await, TaskState::Queued);
    assert_eq!(
        f.queue
            .counts_by_state()
            .await
            .expect("the queue answers")
            .total(),
        1
    );
}

async fn counts_add_up(f: &Fixture<'_>) {
    for name in ["a", "a", "a", "a", "b"] {
        f.add(of_type(name)).await;
    }
    let claims = f.claims(3).await;
    f.succeed(&claims[0]).await;
    f.fail(&claims[1], 60).await;
    let counts = f.queue.counts_by_state().await.expect("the queue answers");
    let of = |state| counts.of(state);
    assert_eq!((of(TaskState::Queued), of(TaskState::Running)), (2, 1));
    assert_eq!(
        (of(TaskState::Succeeded), of(TaskState::RetryScheduled)),
        (1, 1)
    );
    assert_eq!(counts.total(), 5);
    assert_eq!(counts.by_type["b"][&TaskState::Queued], 1);
}

async fn totals_count_what_was_done_whatever_is_kept(f: &Fixture<'_>) {
    let totals = async || {
        let load = f.queue.load().await.expect("the queue answers");
        let totals = load.totals;
        let done = [totals.succeeded, totals.dead, totals.cancelled];
        (totals.enqueued, totals.failed, totals.lost, done)
    };
    assert_eq!(totals().await, (0, 0, 0, [0; 3]));
    let first = task();
    f.add(first.clone()).await;
    // The same task again is none more.
    f.add(first).await;
    for _ in 0..3 {
        f.simple().await;
    }
    assert_eq!(totals().await, (4, 0, 0, [0; 3]));
    let claims = f.claims(3).await;
    f.succeed(&claims[0]).await;
    f.fail(&claims[1], 60).await;
    f.kill(&claims[2]).await;
    assert_eq!(totals().await, (4, 2, 0, [1, 1, 0]));
    // A report that was applied before, and one that is refused, count nothing.
    let again = f.finish(&claims[0], Outcome::Succeeded(None)).await;
    assert_eq!(again, Finished::AlreadyApplied);
    let lost = f.claim().await.id;
    f.live(15).await;
    f.queue.reap().await.expect("the queue answers");
    f.queue.cancel(lost).await.expect("the queue answers");
    let expected = (4, 2, 1, [1, 1, 1]);
    assert_eq!(totals().await, expected);
    let ids = claims.iter().map(|claim| claim.id).collect();
    let purged = f.queue.purge(ids).await.expect("the queue answers");
    assert_eq!(purged, 2);
    assert_eq!(totals().await, expected, "what was forgotten counts");
    // What is forgotten as soon as it ends counts too.
    let retention = Retention {
        succeeded: 0,
        ..Retention::default()
    };
    keep(f, retention).await;
    f.simple().await;
    f.succeed(&f.claim().await).await;
    assert_eq!(totals().await, (5, 2, 1, [2, 1, 1]));
}

async fn the_oldest_ready_task_is_known(f: &Fixture<'_>) {
    let waits = async || {
        let load = f.queue.load().await.expect("the queue answers");
        load.ready_since
            .map(|since| load.now.since(since).as_secs())
    };
    assert_eq!(waits().await, None);
    let cancelled = f.simple().await;
    f.advance(5).await;
    f.simple().await;
    f.advance(1).await;
    f.add(of_type("b")).await;
    f.advance(1).await;
    assert_eq!(waits().await, Some(7));
    // A task that was cancelled in line waits no more.
    f.queue.cancel(cancelled).await.expect("the queue answers");
    assert_eq!(waits().await, Some(2));
    // Only what is ready counts.
    let mut delayed = task();
    delayed.delay = Duration::from_secs(60);
    f.add(delayed).await;
    let claim = f.claim().await;
    assert_eq!(waits().await, Some(1));
    // A task that is given back waits from then on.
    f.advance(3).await;
    f.finish(&claim, Outcome::GivenBack).await;
    assert_eq!(waits().await, Some(4));
    assert_eq!(f.turn(&[("b", 1)], 1).await.claims.len(), 1);
    assert_eq!(waits().await, Some(0));
}

async fn a_listing_shows_what_stays_put(f: &Fixture<'_>) {
    let tasks: Vec<_> = (0..300)
        .map(|n| of_type(if n % 3 == 0 { "b" } else { "a" }))
        .collect();
    for batch in tasks.chunks(ENQUEUE_LIMIT) {
        let added = f.queue.enqueue(batch.to_vec()).await;
        added.expect("the queue answers");
    }
    let filter = Filter::of(TaskState::Queued).task_type("b");
    let (mut seen, mut cursor) = (BTreeSet::new(), None);
    loop {
        let paging = Paging::newest(20).after(cursor);
        let page = f.queue.list(&filter, &paging).await;
        let page = page.expect("the queue answers");
        for task in page.tasks {
            assert_eq!(&*task.envelope.task_type, "b");
            seen.insert(task.id);
        }
        // Things move while pages are read.
        f.claims(7).await;
        f.add(of_type("c")).await;
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    let stayed: BTreeSet<_> = tasks
        .iter()
        .filter(|task| &*task.envelope.task_type == "b")
        .map(|task| task.id)
        .collect();
    assert_eq!(seen, stayed);
}

async fn steps_and_progress_need_the_token(f: &Fixture<'_>) {
    let id = f.simple().await;
    let old = f.claim().await;
    let half = Progress {
        percent: 50,
        note: "half of it".into(),
    };
    assert!(
        f.queue
            .progress(&old, half.clone())
            .await
            .expect("the queue answers")
    );
    assert!(
        f.queue
            .save_step(&old, "one", "1".into())
            .await
            .expect("the queue answers")
    );
    assert_eq!(f.record(id).await.progress, Some(half.clone()));
    f.fail(&old, 0).await;
    let new = f.claim().await;
    assert!(
        !f.queue
            .progress(&old, half.clone())
            .await
            .expect("the queue answers")
    );
    assert!(
        !f.queue
            .save_step(&old, "two", "2".into())
            .await
            .expect("the queue answers")
    );
    assert!(
        f.queue
            .save_step(&new, "two", "3".into())
            .await
            .expect("the queue answers")
    );
    let steps = f.queue.steps(id).await.expect("the queue answers");
    let steps: Vec<_> = steps
        .iter()
        .map(|(name, value)| (&**name, &**value))
        .collect();
    assert_eq!(steps, [("one", &b"1"[..]), ("two", &b"3"[..])]);
    f.succeed(&new).await;
    assert!(
        f.queue
            .steps(id)
            .await
            .expect("the queue answers")
            .is_empty(),
        "success drops them"
    );
    let dead = f.simple().await;
    let claim = f.claim().await;
    f.queue
        .save_step(&claim, "one", "1".into())
        .await
        .expect("the queue answers");
    f.kill(&claim).await;
    assert_eq!(
        f.queue.steps(dead).await.expect("the queue answers").len(),
        1,
        "a dead task keeps them"
    );
}

async fn steps_are_bounded(f: &Fixture<'_>) {
    let settings = Settings {
        step_limit: 3,
        step_limit_bytes: 10,
        steps_limit_bytes: 20,
        ..Settings::default()
    };
    let f = &f.again(settings).await;
    f.simple().await;
    let claim = f.claim().await;
    let save = async |name: &str, size: usize| {
        f.queue
            .save_step(&claim, name, vec![b'x'; size].into())
            .await
    };
    assert!(matches!(
        save("a", 11).await,
        Err(QueueError::TooLarge { .. })
    ));
    assert!(save("a", 10).await.expect("the queue answers"));
    assert!(matches!(
        save("b", 9).await,
        Err(QueueError::TooLarge { size: 21, .. })
    ));
    assert!(save("b", 8).await.expect("the queue answers"));
    assert!(
        save("b", 1).await.expect("the queue answers"),
        "a step is replaced"
    );
    assert!(save("c", 1).await.expect("the queue answers"));
    assert!(matches!(
        save("d", 1).await,
        Err(QueueError::TooMany { .. })
    ));
}

async fn keep(f: &Fixture<'_>, retention: Retention) {
    f.queue.keep(retention).await.expect("the queue answers");
    let kept = f.queue.retention().await.expect("the queue answers");
    assert_eq!(kept, retention);
}

async fn done_tasks_are_kept_for_a_while(f: &Fixture<'_>) {
    assert_eq!(
        f.queue.retention().await.expect("the queue answers"),
        Retention::default()
    );
    let retention = Retention {
        succeeded: 3,
        succeeded_for: Duration::from_secs(60),
        dead: 2,
        dead_for: Duration::from_secs(600),
    };
    keep(f, retention).await;
    let mut succeeded = Vec::new();
    for _ in 0..5 {
        succeeded.push(f.simple().await);
        f.succeed(&f.claim().await).await;
    }
    let mut dead = Vec::new();
    for _ in 0..3 {
        dead.push(f.simple().await);
        f.kill(&f.claim().await).await;
        f.advance(1).await;
    }
    let known = async |ids: &[TaskId]| {
        let mut known = Vec::new();
        for id in ids {
            known.push(
                f.queue
                    .get_status(*id)
                    .await
                    .expect("the queue answers")
                    .is_some(),
            );
        }
        known
    };
    assert_eq!(known(&succeeded).await, [false, false, true, true, true]);
    assert_eq!(known(&dead).await, [false, true, true]);
    f.advance(60).await;
    f.queue.reap().await.expect("the queue answers");
    assert_eq!(known(&succeeded).await, [false; 5]);
    assert_eq!(known(&dead).await, [false, true, true]);
    f.advance(600).await;
    f.queue.reap().await.expect("the queue answers");
    assert_eq!(known(&dead).await, [false; 3]);
    assert_eq!(
        f.queue
            .counts_by_state()
            .await
            .expect("the queue answers")
            .total(),
        0
    );
    // Keeping none forgets a success at once.
    let none = Retention {
        succeeded: 0,
        ..retention
    };
    keep(f, none).await;
    let id = f.simple().await;
    f.succeed(&f.claim().await).await;
    assert_eq!(
        f.queue.get_status(id).await.expect("the queue answers"),
        None
    );
    assert_eq!(
        f.queue
            .counts_by_state()
            .await
            .expect("the queue answers")
            .total(),
        0
    );
}

/// An operator who cancels a task may not know how much the queue's workers keep.
async fn a_cancel_drops_nothing(f: &Fixture<'_>) {
    let retention = Retention {
        succeeded: 1,
        ..Retention::default()
    };
    keep(f, retention).await;
    for _ in 0..3 {
        let id = f.simple().await;
        let cancel = f.queue.cancel(id).await;
        assert_eq!(cancel.expect("the queue answers"), Cancel::Cancelled);
    }
    for left in [3, 1] {
        let counts = f.queue.counts_by_state().await;
        let counts = counts.expect("the queue answers");
        assert_eq!(counts.of(TaskState::Cancelled), left);
        f.queue.reap().await.expect("the queue answers");
    }
}

async fn a_slot_is_decided_once(f: &Fixture<'_>) {
    let schedule = Schedule {
        name: "digest".into(),
        expression: "0 9 * * *".into(),
        zone: "UTC".into(),
        envelope: TaskEnvelope::json("a", "{}"),
        max_attempts: 7,
        priority: Priority::High,
        last_slot: Timestamp::default(),
    };
    f.queue
        .put_schedule(schedule.clone())
        .await
        .expect("the queue answers");
    let (now, stored) = f.queue.schedules().await.expect("the queue answers");
    assert_eq!(stored.len(), 1);
    let last = stored[0].last_slot;
    assert_eq!(last, now);
    assert_eq!(
        stored[0],
        Schedule {
            last_slot: last,
            ..schedule.clone()
        }
    );
    let slot = last.after(Duration::from_secs(60));
    assert!(
        f.queue
            .fire("digest", last, slot, Some(task()))
            .await
            .expect("the suite relies on it")
    );
    assert!(
        !f.queue
            .fire("digest", last, slot, Some(task()))
            .await
            .expect("the suite relies on it")
    );
    assert_eq!(f.claims(9).await.len(), 1);
    // The same times keep the slot; others start anew.
    f.advance(300).await;
    f.queue
        .put_schedule(schedule.clone())
        .await
        .expect("the queue answers");
    assert_eq!(
        f.queue.schedules().await.expect("the queue answers").1[0].last_slot,
        slot
    );
    let other = Schedule {
        zone: "Asia/Tokyo".into(),
        ..schedule
    };
    f.queue
        .put_schedule(other)
        .await
        .expect("the queue answers");
    let (now, stored) = f.queue.schedules().await.expect("the queue answers");
    assert_eq!(stored[0].last_slot, now);
    assert!(
        f.queue
            .remove_schedule("digest")
            .await
            .expect("the queue answers")
    );
    assert!(
        !f.queue
            .remove_schedule("digest")
            .await
            .expect("the queue answers")
    );
    assert!(
        !f.queue
            .fire("digest", now, slot, None)
            .await
            .expect("the queue answers")
    );
}

/// A schedule that enqueues a task of type `a` every minute.
fn every_minute(name: &str, payload: &'static str) -> Schedule {
    Schedule {
        name: name.into(),
        expression: "* * * * *".into(),
        zone: "UTC".into(),
        envelope: TaskEnvelope::json("a", payload),
        max_attempts: 5,
        priority: Priority::default(),
        last_slot: Timestamp::default(),
    }
}

async fn any_number_of_schedulers_enqueue_a_slot_once(f: &Fixture<'_>) {
    f.queue
        .put_schedule(every_minute("minutes", "{}"))
        .await
        .expect("the queue answers");
    let ticks = async || {
        let (first, second) = tokio::join!(tick(&*f.queue), tick(&*f.queue));
        first.and(second).expect("the queue answers")
    };
    for _ in 0..3 {
        f.advance(60).await;
        let next = ticks().await;
        assert!(next <= Duration::from_secs(60), "{next:?}");
        let claims = f.claims(9).await;
        assert_eq!(claims.len(), 1, "one task per slot");
        f.succeed(&claims[0]).await;
    }
    // Of a day without schedulers, the last slot is made up for.
    f.advance(24 * 3_600).await;
    ticks().await;
    let counts = f.queue.counts_by_state().await.expect("the queue answers");
    assert_eq!(counts.of(TaskState::Queued), 1);
}

async fn a_schedule_whose_task_is_refused_stops_no_other(f: &Fixture<'_>) {
    let settings = Settings {
        payload_limit_bytes: 10,
        ..Settings::default()
    };
    let f = &f.again(settings).await;
    for (name, payload) in [("1", r#""more than ten bytes""#), ("2", "{}")] {
        let schedule = every_minute(name, payload);
        f.queue
            .put_schedule(schedule)
            .await
            .expect("the queue answers");
    }
    f.advance(60).await;
    tick(&*f.queue).await.expect("the queue answers");
    assert_eq!(f.claims(9).await.len(), 1, "the second one fires");
    // A producer cannot store such a schedule.
    let jobs = Jobs::with_queue(f.queue.clone());
    let refused = jobs.put_schedule(every_minute("3", r#""more than ten bytes""#));
    assert!(matches!(
        refused.await,
        Err(QueueError::TooLarge { limit: 10, .. })
    ));
    let (_, stored) = f.queue.schedules().await.expect("the queue answers");
    assert_eq!(stored.len(), 2);
}

fn digest(name: &str, expression: &str) -> Schedule {
    Schedule {
        name: name.into(),
        expression: expression.into(),
        zone: "UTC".into(),
        envelope: TaskEnvelope::json("a", "{}"),
        max_attempts: 5,
        priority: Priority::Normal,
        last_slot: Timestamp::default(),
    }
}

/// A slot of next year was decided, and then the clock was set right.
async fn a_clock_that_was_wrong_silences_no_schedule(f: &Fixture<'_>) {
    let stored = f.queue.put_schedule(digest("hourly", "0 * * * *")).await;
    stored.expect("the queue answers");
    let last_slot = async || {
        let (now, schedules) = f.queue.schedules().await.expect("the queue answers");
        (now, schedules[0].last_slot)
    };
    let (now, last) = last_slot().await;
    let ahead = now.after(Duration::from_secs(365 * 24 * 3_600));
    let fired = f.queue.fire("hourly", last, ahead, None).await;
    assert!(fired.expect("the queue answers"));
    let queue = &*f.queue;
    tick(queue).await.expect("the queue answers");
    assert_eq!(last_slot().await, (now, now));
    f.advance(3_600).await;
    tick(queue).await.expect("the queue answers");
    assert_eq!(f.claims(9).await.len(), 1);
}

async fn a_set_of_schedules_is_declared_as_a_whole(f: &Fixture<'_>) {
    let declare = async |set: &str, names: &[(&str, &str)]| {
        let schedules = names.iter().map(|(name, times)| digest(name, times));
        let removed = f.queue.declare_schedules(set, schedules.collect()).await;
        removed.expect("the queue answers")
    };
    let names = async || {
        let (_, schedules) = f.queue.schedules().await.expect("the queue answers");
        let names = schedules.into_iter().map(|schedule| schedule.name);
        names.collect::<Vec<_>>()
    };
    let (nine, ten) = ("0 9 * * *", "0 10 * * *");
    let stored = f.queue.put_schedule(digest("alone", nine)).await;
    stored.expect("the queue answers");
    let none = Vec::<String>::new();
    assert_eq!(
        declare("mailer", &[("a", nine), ("b", nine), ("c", nine)]).await,
        none
    );
    assert_eq!(declare("other", &[("x", nine)]).await, none);
    f.advance(60).await;
    // What stays keeps its last slot, and what has other times counts from now.
    let removed = declare("mailer", &[("b", nine), ("c", ten), ("d", nine)]).await;
    assert_eq!(removed, ["a"]);
    assert_eq!(names().await, ["alone", "b", "c", "d", "x"]);
    let (now, schedules) = f.queue.schedules().await.expect("the queue answers");
    let ages = schedules
        .iter()
        .map(|schedule| now.since(schedule.last_slot).as_secs());
    assert_eq!(ages.collect::<Vec<_>>(), [60, 60, 0, 0, 60]);
    // A schedule that is stored alone leaves its set, and one that is declared joins another.
    let stored = f.queue.put_schedule(digest("b", nine)).await;
    stored.expect("the queue answers");
    assert_eq!(declare("other", &[("c", ten)]).await, ["x"]);
    assert_eq!(declare("mailer", &[]).await, ["d"]);
    assert_eq!(names().await, ["alone", "b", "c"]);
    let removed = f.queue.remove_schedule("c").await;
    assert!(removed.expect("the queue answers"));
    assert_eq!(declare("other", &[]).await, none);
}

async fn a_back_off_stays_with_its_task(f: &Fixture<'_>) {
    let backoff = Backoff {
        first: Duration::from_millis(1_500),
        cap: Duration::from_secs(60),
        factor: 3,
    };
    let mut patient = task();
    patient.backoff = Some(backoff);
    f.add(patient.clone()).await;
    assert_eq!(f.record(patient.id).await.backoff, Some(backoff));
    let claim = f.claim().await;
    assert_eq!(claim.backoff, Some(backoff));
    let held = f.queue.running(&f.owner).await;
    assert_eq!(
        held.expect("the queue answers"),
        std::slice::from_ref(&claim)
    );
    f.fail(&claim, 0).await;
    assert_eq!(f.claim().await.backoff, Some(backoff));
    patient.backoff = Some(Backoff {
        factor: 0,
        ..backoff
    });
    let refused = f.queue.enqueue(vec![patient]).await;
    assert!(matches!(refused, Err(QueueError::Invalid(_))));
}
