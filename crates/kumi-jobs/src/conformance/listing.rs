//! Listings by state: order, pages, searches, purges and cancels over them.

use super::{Fixture, of_type, table_of, task};
use crate::{
    Cursor, ENQUEUE_LIMIT, Filter, Finish, Jobs, NewTask, Order, Outcome, PAGE_LIMIT, Paging,
    QueueError, SEARCH_LIMIT_BYTES, Serial, TURN_LIMIT, TaskEnvelope, TaskId, TaskState,
};
use std::collections::BTreeSet;
use std::time::Duration;

table_of!(
    a_state_is_listed_in_order_from_both_ends,
    lines_are_listed_by_priority_and_type,
    blocked_and_running_tasks_are_listed,
    a_listing_looks_only_at_the_states_it_is_asked_for,
    a_search_says_how_far_it_looked,
    pages_go_on_while_shown_tasks_are_purged,
    pages_go_on_while_lines_move_at_both_ends,
    pages_go_on_where_the_last_task_was_lined_up_again,
    tasks_due_at_one_moment_fill_pages,
    a_purge_forgets_what_it_is_asked_for,
    a_filter_cancels_what_is_not_done,
    dead_tasks_are_requeued_by_filter,
    a_cursor_belongs_to_its_listing,
    workers_that_run_tasks_are_listed,
);

impl Fixture<'_> {
    async fn add_all(&self, tasks: &[NewTask]) {
        for batch in tasks.chunks(ENQUEUE_LIMIT) {
            let added = self.queue.enqueue(batch.to_vec()).await;
            added.expect("the queue answers");
        }
    }

    /// All ids of a listing, page by page, and how many were looked at.
    async fn listed(&self, filter: &Filter, mut paging: Paging) -> (Vec<TaskId>, u64) {
        let (mut ids, mut looked) = (Vec::new(), 0);
        loop {
            let page = self.queue.list(filter, &paging).await;
            let page = page.expect("the queue answers");
            assert!(page.tasks.len() <= paging.limit.min(PAGE_LIMIT));
            ids.extend(page.tasks.iter().map(|task| task.id));
            looked += page.looked;
            match page.cursor {
                Some(cursor) => paging.after = Some(cursor),
                None => return (ids, looked),
            }
        }
    }

    /// Claims all tasks of a type and ends them, a batch every second.
    async fn end_all(&self, task_type: &str, outcome: &Outcome) {
        let mut reports = Vec::new();
        loop {
            let ask = self.ask(&[(task_type, TURN_LIMIT)], TURN_LIMIT);
            let turn = self.queue.turn(reports, ask).await;
            let claims = turn.expect("the queue answers").claims;
            if claims.is_empty() {
                return;
            }
            let report = |claim| Finish::new(claim, outcome.clone());
            reports = claims.iter().map(report).collect();
            self.advance(1).await;
        }
    }
}

fn failed(retry_after: Option<Duration>) -> Outcome {
    Outcome::Failed {
        error: "the disk is full".into(),
        retry_after,
    }
}

fn ids(tasks: &[NewTask]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id).collect()
}

async fn a_state_is_listed_in_order_from_both_ends(f: &Fixture<'_>) {
    let hour = Duration::from_secs(3_600);
    let ends = [
        (TaskState::Succeeded, Some(Outcome::Succeeded(None))),
        (TaskState::Dead, Some(failed(None))),
        (TaskState::RetryScheduled, Some(failed(Some(hour)))),
        (TaskState::Cancelled, None),
        (TaskState::Scheduled, None),
        (TaskState::Queued, None),
    ];
    for (state, outcome) in ends {
        let f = &f.again(crate::Settings::default()).await;
        let mut tasks: Vec<NewTask> = (0..7).map(|_| task()).collect();
        // By the time of its last move or of its next run, not by the id.
        tasks.sort_by_key(|task| std::cmp::Reverse(task.id));
        for task in &mut tasks {
            if state == TaskState::Scheduled {
                task.delay = hour;
            }
            f.add(task.clone()).await;
            match &outcome {
                Some(outcome) => {
                    f.finish(&f.claim().await, outcome.clone()).await;
                }
                None if state == TaskState::Cancelled => {
                    f.queue.cancel(task.id).await.expect("the queue answers");
                }
                None => {}
            }
            f.advance(1).await;
        }
        let mut expected = ids(&tasks);
        let filter = Filter::of(state);
        for limit in [1, 3, 7, 100] {
            let (listed, looked) = f.listed(&filter, Paging::oldest(limit)).await;
            assert_eq!(listed, expected, "{state}, {limit} a page");
            // The cancelled ones still stand in line, and are looked at there.
            assert_eq!(looked, 7, "{state}");
            expected.reverse();
            let (listed, _) = f.listed(&filter, Paging::newest(limit)).await;
            assert_eq!(listed, expected, "{state}, {limit} a page, newest first");
            expected.reverse();
        }
    }
}

async fn lines_are_listed_by_priority_and_type(f: &Fixture<'_>) {
    let mut expected = Vec::new();
    for priority in crate::Priority::ALL {
        for task_type in ["a", "b"] {
            for _ in 0..2 {
                let mut task = of_type(task_type);
                task.priority = priority;
                expected.push(task);
            }
        }
    }
    // In line they come in the order of their lines, however they were enqueued.
    let mut enqueued = expected.clone();
    enqueued.reverse();
    for line in expected.chunks_mut(2) {
        line.reverse();
    }
    f.add_all(&enqueued).await;
    let filter = Filter::of(TaskState::Queued);
    for limit in [1, 3, 100] {
        let (listed, _) = f.listed(&filter, Paging::oldest(limit)).await;
        assert_eq!(listed, ids(&expected), "{limit} a page");
    }
    for line in expected.chunks_mut(2) {
        line.reverse();
    }
    let (listed, _) = f.listed(&filter, Paging::newest(3)).await;
    assert_eq!(listed, ids(&expected));
    expected.retain(|task| &*task.envelope.task_type == "b");
    let (listed, looked) = f.listed(&filter.task_type("b"), Paging::newest(3)).await;
    assert_eq!((listed, looked), (ids(&expected), 8));
}

async fn blocked_and_running_tasks_are_listed(f: &Fixture<'_>) {
    let tasks: Vec<NewTask> = (0..12)
        .map(|n| {
            let mut task = task();
            task.serial = Some(Serial {
                key: format!("k{}", n % 3).into(),
                hold_on_dead: false,
            });
            task
        })
        .collect();
    f.add_all(&tasks).await;
    let running: Vec<TaskId> = f.claims(9).await.iter().map(|claim| claim.id).collect();
    assert_eq!(running, ids(&tasks[..3]));
    let blocked: BTreeSet<TaskId> = ids(&tasks[3..]).into_iter().collect();
    for order in [Order::Newest, Order::Oldest] {
        for limit in [2, 100] {
            let paging = Paging {
                order,
                ..Paging::newest(limit)
            };
            let (listed, _) = f
                .listed(&Filter::of(TaskState::Running), paging.clone())
                .await;
            let mut expected = running.clone();
            expected.sort_unstable();
            if order == Order::Newest {
                expected.reverse();
            }
            assert_eq!(listed, expected);
            let mut both = Filter::of(TaskState::Blocked);
            both.states.push(TaskState::Running);
            let listed: BTreeSet<TaskId> = f.listed(&both, paging).await.0.into_iter().collect();
            assert_eq!(listed.difference(&blocked).count(), 3);
            assert_eq!(blocked.difference(&listed).count(), 0);
        }
    }
}

async fn a_listing_looks_only_at_the_states_it_is_asked_for(f: &Fixture<'_>) {
    let dead = f.simple().await;
    f.kill(&f.claim().await).await;
    let tasks: Vec<NewTask> = (0..300).map(|_| of_type("b")).collect();
    f.add_all(&tasks).await;
    let listed = f
        .listed(&Filter::of(TaskState::Dead), Paging::newest(50))
        .await;
    assert_eq!(listed, (vec![dead], 1));
    for state in [TaskState::Blocked, TaskState::Running, TaskState::Scheduled] {
        let listed = f.listed(&Filter::of(state), Paging::newest(50)).await;
        assert_eq!(listed, (vec![], 0), "{state}");
    }
    let none = Filter::of(TaskState::Queued).task_type("a");
    assert_eq!(f.listed(&none, Paging::newest(50)).await, (vec![], 0));
    let (listed, looked) = f.listed(&Filter::default(), Paging::newest(1_000)).await;
    assert_eq!((listed.len(), looked), (301, 301));
}

async fn a_search_says_how_far_it_looked(f: &Fixture<'_>) {
    let named = |name: &str| NewTask::new(TaskEnvelope::json("a", format!(r#"{{"to":"{name}"}}"#)));
    let mut tasks: Vec<NewTask> = (0..200).map(|n| named(&format!("user{n}"))).collect();
    tasks.push(of_type("b"));
    f.add_all(&tasks).await;
    let queued = Filter::of(TaskState::Queued);
    let check = async |filter: Filter, expected: &[TaskId], least: u64| {
        let (listed, looked) = f.listed(&filter, Paging::oldest(100)).await;
        assert_eq!((&*listed, looked), (expected, least), "{filter:?}");
    };
    check(queued.clone().task_type("b"), &[tasks[200].id], 1).await;
    check(
        queued.clone().id_prefix(tasks[7].id.into()),
        &[tasks[7].id],
        201,
    )
    .await;
    check(queued.clone().text("\"user17\""), &[tasks[17].id], 201).await;
    check(queued.clone().text("%w"), &[], 201).await;
    let prefix = tasks[0].id.to_string()[..4].parse().expect("hex digits");
    let (listed, _) = f
        .listed(&queued.clone().id_prefix(prefix), Paging::oldest(100))
        .await;
    assert_eq!(listed.len(), 201, "all were made within minutes");
    // Errors are searched too, inside their state.
    let claims = f.claims(2).await;
    f.kill(&claims[0]).await;
    f.finish(&claims[1], failed(None)).await;
    let dead = Filter::of(TaskState::Dead);
    check(dead.clone().text("disk is"), &[tasks[1].id], 2).await;
    check(dead.text("user0"), &[tasks[0].id], 2).await;
    let long = queued.clone().text("x".repeat(SEARCH_LIMIT_BYTES + 1));
    let refused = f.queue.list(&long, &Paging::newest(1)).await;
    assert!(matches!(refused, Err(QueueError::TooLarge { .. })));
    // A search that may look at few says so, and goes on.
    let jobs = Jobs::with_queue(f.queue.clone());
    let filter = queued.text("user150\"");
    let page = jobs.search(&filter, Paging::oldest(1), 10_000).await;
    let page = page.expect("the queue answers");
    assert_eq!(page.tasks.len(), 1);
    assert_eq!(page.looked, 149, "from the third on");
    let rest = Paging::oldest(1).after(page.cursor);
    let rest = jobs.search(&filter, rest, 10_000).await;
    let rest = rest.expect("the queue answers");
    assert_eq!((rest.tasks.len(), rest.looked, rest.cursor), (0, 50, None));
}

async fn pages_go_on_while_shown_tasks_are_purged(f: &Fixture<'_>) {
    for order in [Order::Newest, Order::Oldest] {
        for outcome in [Outcome::Succeeded(None), failed(None)] {
            let f = &f.again(crate::Settings::default()).await;
            let tasks: Vec<NewTask> = (0..60).map(|_| task()).collect();
            f.add_all(&tasks).await;
            f.end_all("a", &outcome).await;
            let filter = Filter::of(match outcome {
                Outcome::Succeeded(_) => TaskState::Succeeded,
                _ => TaskState::Dead,
            });
            let mut paging = Paging {
                order,
                ..Paging::newest(10)
            };
            let (mut seen, mut pages) = (BTreeSet::new(), 0);
            loop {
                let page = f.queue.list(&filter, &paging).await;
                let page = page.expect("the queue answers");
                let shown: Vec<TaskId> = page.tasks.iter().map(|task| task.id).collect();
                seen.extend(shown.clone());
                // Every other page is deleted as it is shown, and new ones come at the other end.
                if pages % 2 == 0 {
                    let purged = f.queue.purge(shown.clone()).await;
                    assert_eq!(purged.expect("the queue answers"), shown.len());
                }
                f.simple().await;
                f.end_all("a", &outcome).await;
                pages += 1;
                paging.after = page.cursor;
                if paging.after.is_none() || pages > 50 {
                    break;
                }
            }
            for task in &tasks {
                assert!(seen.contains(&task.id), "{order:?} {outcome:?}");
            }
        }
    }
}

async fn pages_go_on_while_lines_move_at_both_ends(f: &Fixture<'_>) {
    for order in [Order::Newest, Order::Oldest] {
        let f = &f.again(crate::Settings::default()).await;
        let tasks: Vec<NewTask> = (0..200).map(|_| task()).collect();
        f.add_all(&tasks).await;
        let mut paging = Paging {
            order,
            ..Paging::newest(10)
        };
        let (mut seen, mut claimed) = (BTreeSet::new(), BTreeSet::new());
        let mut pages = 0;
        loop {
            let page = f.queue.list(&Filter::of(TaskState::Queued), &paging).await;
            let page = page.expect("the queue answers");
            seen.extend(page.tasks.iter().map(|task| task.id));
            paging.after = page.cursor;
            pages += 1;
            if paging.after.is_none() || pages > 100 {
                break;
            }
            // Claims outrun the pages in one order, and meet them in the other; two of them come back to the head.
            let claims = f.claims(12).await;
            claimed.extend(claims.iter().map(|claim| claim.id));
            for claim in claims.iter().take(2) {
                f.finish(claim, Outcome::GivenBack).await;
            }
            f.add_all(&[task(), task(), task()]).await;
        }
        for task in &tasks {
            let stayed = !claimed.contains(&task.id);
            assert!(!stayed || seen.contains(&task.id), "{order:?}");
        }
    }
}

/// The task that a page ended with runs, fails, and is at the end of its line when the next page is asked for.
async fn pages_go_on_where_the_last_task_was_lined_up_again(f: &Fixture<'_>) {
    for order in [Order::Newest, Order::Oldest] {
        let f = &f.again(crate::Settings::default()).await;
        let tasks: Vec<NewTask> = (0..10).map(|_| task()).collect();
        f.add_all(&tasks).await;
        let mut paging = Paging {
            order,
            ..Paging::newest(3)
        };
        let filter = Filter::of(TaskState::Queued);
        let page = f.queue.list(&filter, &paging).await;
        let page = page.expect("the queue answers");
        let mut seen: Vec<TaskId> = page.tasks.iter().map(|task| task.id).collect();
        paging.after = page.cursor;
        // All tasks up to the last of the page, from the head on.
        let run = match order {
            Order::Newest => 8,
            Order::Oldest => 3,
        };
        for claim in f.claims(run).await {
            f.fail(&claim, 1).await;
        }
        f.advance(2).await;
        f.turn(&[], 0).await;
        seen.extend(f.listed(&filter, paging).await.0);
        for task in &tasks[run..] {
            let times = seen.iter().filter(|id| **id == task.id).count();
            assert_eq!(times, 1, "{order:?}");
        }
    }
}

async fn tasks_due_at_one_moment_fill_pages(f: &Fixture<'_>) {
    let mut tasks: Vec<NewTask> = (0..90).map(|_| task()).collect();
    for task in &mut tasks {
        task.delay = Duration::from_secs(60);
    }
    f.add_all(&tasks).await;
    let mut expected = ids(&tasks);
    expected.sort_unstable();
    let filter = Filter::of(TaskState::Scheduled);
    let mut paging = Paging::oldest(40);
    let page = f
        .queue
        .list(&filter, &paging)
        .await
        .expect("the queue answers");
    // The task of the cursor leaves.
    let left = page.tasks[39].id;
    f.queue.cancel(left).await.expect("the queue answers");
    paging.after = page.cursor;
    let (rest, _) = f.listed(&filter, paging).await;
    assert_eq!(rest, &expected[40..]);
}

async fn a_purge_forgets_what_it_is_asked_for(f: &Fixture<'_>) {
    let jobs = Jobs::with_queue(f.queue.clone());
    let of_both = |n: usize| of_type(if n.is_multiple_of(3) { "a" } else { "b" });
    let tasks: Vec<NewTask> = (0..700).map(of_both).collect();
    f.add_all(&tasks).await;
    let mut reports = Vec::new();
    loop {
        let ask = f.ask(&[("a", TURN_LIMIT), ("b", TURN_LIMIT)], TURN_LIMIT);
        let turn = f.queue.turn(reports, ask).await.expect("the queue answers");
        if turn.claims.is_empty() {
            break;
        }
        let report = |claim| Finish::new(claim, Outcome::Succeeded(None));
        reports = turn.claims.iter().map(report).collect();
        f.advance(1).await;
    }
    let dead = f.simple().await;
    f.kill(&f.claim().await).await;
    let cancelled = f.simple().await;
    f.queue.cancel(cancelled).await.expect("the queue answers");
    let waiting = f.simple().await;
    let succeeded = Filter::of(TaskState::Succeeded);
    let (before, _) = f.listed(&succeeded, Paging::oldest(100)).await;
    assert_eq!(before.len(), 700);
    let (others, _) = f
        .listed(&succeeded.clone().task_type("b"), Paging::oldest(100))
        .await;
    let purge = async |filter: Filter| jobs.purge(filter).await.expect("the queue answers");
    assert_eq!(
        purge(succeeded.clone().task_type("a").text("nowhere")).await,
        0
    );
    assert_eq!(purge(succeeded.clone().task_type("a")).await, 234);
    let (after, _) = f.listed(&succeeded, Paging::oldest(100)).await;
    assert_eq!(after, others, "the others keep their order");
    assert_eq!(purge(Filter::of(TaskState::Queued)).await, 0);
    // Dead tasks stay unless they are asked for.
    assert_eq!(purge(Filter::default()).await, 466 + 1);
    let counts = f.queue.counts_by_state().await.expect("the queue answers");
    assert_eq!(counts.total(), 2);
    f.check_states(&[(dead, TaskState::Dead), (waiting, TaskState::Queued)])
        .await;
    assert_eq!(purge(Filter::of(TaskState::Dead)).await, 1);
    for gone in [dead, cancelled] {
        let status = f.queue.get_status(gone).await;
        assert_eq!(status.expect("the queue answers"), None);
    }
    let claimed: Vec<TaskId> = f.claims(9).await.iter().map(|claim| claim.id).collect();
    assert_eq!(claimed, [waiting], "what waits is still claimed");
}

async fn a_filter_cancels_what_is_not_done(f: &Fixture<'_>) {
    let jobs = Jobs::with_queue(f.queue.clone());
    let mut tasks: Vec<NewTask> = (0..120).map(|_| task()).collect();
    for task in &mut tasks[60..] {
        task.serial = Some(Serial {
            key: "k".into(),
            hold_on_dead: false,
        });
    }
    tasks[119].delay = Duration::from_secs(60);
    f.add_all(&tasks).await;
    let other = f.add(of_type("b")).await.id();
    f.succeed(&f.claim().await).await;
    let running = f.claim().await;
    let cancel = async |filter: Filter| jobs.cancel(filter).await.expect("the queue answers");
    assert_eq!(cancel(Filter::of(TaskState::Succeeded)).await, 0);
    let queued = Filter::of(TaskState::Queued).id_prefix(tasks[5].id.into());
    assert_eq!(cancel(queued).await, 1);
    assert_eq!(f.state(tasks[5].id).await, TaskState::Cancelled);
    // Those in a serial line too: none of them runs because the one before it is gone.
    assert_eq!(cancel(Filter::default().task_type("a")).await, 118);
    assert!(f.record(running.id).await.cancel_requested);
    f.advance(120).await;
    assert!(f.claims(9).await.is_empty());
    assert_eq!(f.state(other).await, TaskState::Queued);
    let unknown = f.queue.cancel_all(vec![TaskId::random(), other]).await;
    let expected = [crate::Cancel::Unknown, crate::Cancel::Cancelled];
    assert_eq!(unknown.expect("the queue answers"), expected);
}

async fn dead_tasks_are_requeued_by_filter(f: &Fixture<'_>) {
    let jobs = Jobs::with_queue(f.queue.clone());
    let (first, second) = (f.simple().await, f.simple().await);
    let claims = f.claims(2).await;
    f.kill(&claims[0]).await;
    f.finish(&claims[1], failed(None)).await;
    let requeue = async |filter: Filter| {
        let requeued = jobs.requeue_dead(filter).await;
        requeued.expect("the queue answers")
    };
    assert_eq!(requeue(Filter::default().task_type("b")).await, 0);
    assert_eq!(requeue(Filter::default().text("disk")).await, 1);
    f.check_states(&[(first, TaskState::Dead), (second, TaskState::Queued)])
        .await;
    assert_eq!(requeue(Filter::default()).await, 1);
}

async fn a_cursor_belongs_to_its_listing(f: &Fixture<'_>) {
    let tasks: Vec<NewTask> = (0..3).map(|_| task()).collect();
    f.add_all(&tasks).await;
    let queued = Filter::of(TaskState::Queued);
    let page = f.queue.list(&queued, &Paging::newest(1)).await;
    let cursor = page
        .expect("the queue answers")
        .cursor
        .expect("there are more");
    let read: Cursor = cursor.to_string().parse().expect("any text is read");
    assert_eq!(read, cursor);
    let wrong = [
        (Filter::of(TaskState::Dead), cursor),
        (queued.clone(), "?".to_owned().into()),
        (queued.clone(), String::new().into()),
        (queued.clone(), Cursor::encode("q1 2 3")),
        (queued.clone(), Cursor::encode("組")),
    ];
    for (filter, cursor) in wrong {
        let paging = Paging::newest(1).after(Some(cursor));
        let refused = f.queue.list(&filter, &paging).await;
        let refused = refused.map(|page| page.tasks.len());
        assert!(
            matches!(refused, Err(QueueError::Invalid(_))),
            "{paging:?} {refused:?}"
        );
    }
}

async fn workers_that_run_tasks_are_listed(f: &Fixture<'_>) {
    let owners = async || f.queue.owners().await.expect("the queue answers");
    assert_eq!(owners().await, []);
    let tasks: Vec<NewTask> = (0..4).map(|_| task()).collect();
    f.add_all(&tasks).await;
    let other = f.worker(crate::Owner::random());
    let claims = f.claims(3).await;
    f.advance(2).await;
    other.claims(1).await;
    let mut expected = [(f.owner.clone(), 3), (other.owner.clone(), 1)];
    expected.sort();
    let found = owners().await;
    let shown: Vec<_> = found
        .iter()
        .map(|one| (one.owner.clone(), one.running))
        .collect();
    assert_eq!(shown, expected);
    let of = |owner: &crate::Owner| {
        found
            .iter()
            .find(|one| one.owner == *owner)
            .expect("it is there")
    };
    let (mine, others) = (of(&f.owner), of(&other.owner));
    assert_eq!(
        others.renewed_at.since(mine.renewed_at),
        Duration::from_secs(2)
    );
    assert_eq!(mine.lease_ends_at, mine.renewed_at.after(super::LEASE));
    for claim in &claims {
        f.succeed(claim).await;
    }
    assert_eq!(owners().await.len(), 1);
}
