//! Workers that crash, stall or are declared gone.

use super::{Fixture, LEASE, table_of, task};
use crate::{
    Cancel, ClusterId, Finished, Gone, Lease, NodeLife, OWNERS_PAGE, Outcome, Owner, QueueError,
    Released, TURN_LIMIT, TaskState,
};
use std::time::Duration;

table_of!(
    an_ended_lease_gives_everything_back,
    a_report_after_the_lease_was_reaped_is_refused,
    a_renewed_lease_holds,
    five_crashes_are_the_end,
    a_release_gives_back_at_once,
    a_live_owner_is_not_released,
    a_release_of_an_owner_that_holds_nothing_refuses_nobody,
    all_workers_of_a_node_s_life_are_released_together,
    releases_by_membership_can_be_switched_off,
    an_outage_of_all_links_releases_no_worker,
    owners_are_listed_in_pages,
    older_lives_are_released_together,
    many_tasks_are_released_in_order,
    a_worker_can_ask_what_it_holds,
    a_worker_is_told_how_much_it_holds,
    what_a_worker_holds_says_what_is_to_be_cancelled,
    a_cancelled_task_of_a_crashed_worker_is_cancelled,
    a_lost_task_comes_back_after_about_a_second,
    an_outage_is_not_charged_to_workers,
    a_lease_ends_where_calls_are_far_apart,
    a_lease_ends_where_the_queue_is_used_now_and_then,
);

async fn an_ended_lease_gives_everything_back(f: &Fixture<'_>) {
    let ids = [f.simple().await, f.simple().await];
    let claims = f.claims(2).await;
    f.live(14).await;
    assert_eq!(f.queue.reap().await.expect("the queue answers"), 0);
    f.live(1).await;
    assert_eq!(f.queue.reap().await.expect("the queue answers"), 2);
    for id in ids {
        let record = f.record(id).await;
        assert_eq!(
            (record.state, record.attempts),
            (TaskState::RetryScheduled, 1)
        );
        assert!(
            record
                .last_error
                .expect("the suite relies on it")
                .contains(f.owner.as_str())
        );
    }
    // Another worker has them.
    f.advance(2).await;
    let other = f.worker(Owner::random());
    let again = other.claims(2).await;
    assert_eq!(again.len(), 2);
    assert_eq!(
        f.finish(&claims[0], Outcome::Succeeded(None)).await,
        Finished::Refused
    );
    assert_eq!(
        f.queue
            .heartbeat(&f.owner, LEASE)
            .await
            .expect("the queue answers"),
        Lease::Lost
    );
    other.succeed(&again[0]).await;
}

/// Between the reap and the next claim, the task has no worker.
async fn a_report_after_the_lease_was_reaped_is_refused(f: &Fixture<'_>) {
    let mut last_attempt = task();
    last_attempt.max_attempts = 1;
    let id = f.add(last_attempt).await.id();
    let cases = [
        (id, TaskState::Dead),
        (f.simple().await, TaskState::RetryScheduled),
    ];
    let claims = f.claims(2).await;
    f.live(15).await;
    assert_eq!(f.queue.reap().await.expect("the queue answers"), 2);
    f.check_states(&cases).await;
    for claim in &claims {
        let outcomes = [Outcome::Succeeded(None), Outcome::GivenBack];
        for outcome in outcomes {
            assert_eq!(f.finish(claim, outcome).await, Finished::Refused);
        }
    }
    f.check_states(&cases).await;
}

async fn a_renewed_lease_holds(f: &Fixture<'_>) {
    let id = f.simple().await;
    let claim = f.claim().await;
    for _ in 0..5 {
        f.advance(10).await;
        let lease = f
            .queue
            .heartbeat(&f.owner, LEASE)
            .await
            .expect("the queue answers");
        assert_eq!(lease, Lease::Renewed(1));
    }
    assert_eq!(f.queue.reap().await.expect("the queue answers"), 0);
    assert_eq!(f.state(id).await, TaskState::Running);
    // A turn renews too.
    f.advance(10).await;
    f.turn(&[], 0).await;
    f.advance(10).await;
    assert_eq!(f.queue.reap().await.expect("the queue answers"), 0);
    f.succeed(&claim).await;
    assert_eq!(
        f.queue
            .heartbeat(&f.owner, LEASE)
            .await
            .expect("the queue answers"),
        Lease::Lost
    );
}

async fn five_crashes_are_the_end(f: &Fixture<'_>) {
    let id = f.simple().await;
    for _ in 0..5 {
        let crashing = f.worker(Owner::random());
        assert_eq!(crashing.claim().await.id, id);
        f.live(15).await;
        f.queue.reap().await.expect("the queue answers");
        f.advance(3_600).await;
    }
    let record = f.record(id).await;
    assert_eq!((record.state, record.attempts), (TaskState::Dead, 5));
}

async fn a_release_gives_back_at_once(f: &Fixture<'_>) {
    let mut ids = [f.simple().await, f.simple().await, f.simple().await];
    let claims = f.claims(2).await;
    // What is given back is ordered by id.
    ids[..2].sort_unstable();
    f.advance(3).await;
    let gone = Gone::Life(f.owner.clone());
    let released = f.queue.release_owner(&gone, Duration::from_secs(2)).await;
    assert_eq!(
        released.expect("the suite relies on it"),
        Released::Tasks(2)
    );
    assert_eq!(f.record(ids[0]).await.attempts, 1);
    let other = f.worker(Owner::random());
    let order: Vec<_> = other.claims(9).await.iter().map(|claim| claim.id).collect();
    assert_eq!(order, ids, "they are first in line, by id");
    // The released life has no say any more.
    let turn = f.queue.turn(Vec::new(), f.ask(&[("a", 1)], 1)).await;
    assert!(matches!(turn, Err(QueueError::OwnerReleased(_))));
    let beat = f.queue.heartbeat(&f.owner, LEASE).await;
    assert!(matches!(beat, Err(QueueError::OwnerReleased(_))));
    let running = f.queue.running(&f.owner).await;
    assert!(matches!(running, Err(QueueError::OwnerReleased(_))));
    let late = f.queue.mark_succeeded(&claims[0], None).await;
    assert!(matches!(late, Err(QueueError::OwnerReleased(_))));
}

async fn a_live_owner_is_not_released(f: &Fixture<'_>) {
    let id = f.simple().await;
    let claim = f.claim().await;
    f.advance(10).await;
    f.queue
        .heartbeat(&f.owner, LEASE)
        .await
        .expect("the queue answers");
    f.advance(1).await;
    let gone = Gone::Life(f.owner.clone());
    let released = f.queue.release_owner(&gone, Duration::from_secs(2)).await;
    assert_eq!(released.expect("the suite relies on it"), Released::Alive);
    assert_eq!(f.state(id).await, TaskState::Running);
    f.succeed(&claim).await;
}

/// A worker of a node of cluster 1, 2 and so on.
fn worker_of(cluster: u64, node: &str, life: u64, part: &str) -> Owner {
    let cluster = ClusterId::from_raw(cluster);
    let node = format!("@{cluster}/{node}~{life:016x}");
    let node: NodeLife = node.parse().expect("a life");
    node.owner(part).expect("a part")
}

fn node_of(owner: &Owner) -> Gone {
    Gone::Node(owner.node().expect("a worker of a node"))
}

async fn a_release_of_an_owner_that_holds_nothing_refuses_nobody(f: &Fixture<'_>) {
    let owner = worker_of(1, "n", 1, "a");
    let silent_for = Duration::from_secs(3);
    f.simple().await;
    for gone in [Gone::Life(owner.clone()), node_of(&owner)] {
        let released = f.queue.release_owner(&gone, silent_for).await;
        assert_eq!(released.expect("the queue answers"), Released::Tasks(0));
        let beat = f.queue.heartbeat(&owner, LEASE).await;
        assert_eq!(beat.expect("it is not refused"), Lease::Lost);
    }
    let worker = f.worker(owner);
    let claim = worker.claim().await;
    worker.succeed(&claim).await;
}

async fn all_workers_of_a_node_s_life_are_released_together(f: &Fixture<'_>) {
    let owners = [
        worker_of(1, "n", 2, "a"),
        worker_of(1, "n", 2, "b"),
        // Another cluster on the same queue, a later and an earlier life, another node, and a worker by itself.
        worker_of(2, "n", 2, "a"),
        worker_of(1, "n", 3, "a"),
        worker_of(1, "n", 1, "a"),
        worker_of(1, "n.b", 2, "a"),
        "n~0000000000000002".parse().expect("an owner"),
    ];
    let mut claims = Vec::new();
    for owner in &owners {
        f.simple().await;
        claims.push(f.worker(owner.clone()).claim().await);
    }
    f.live(2).await;
    let silent_for = Duration::from_secs(3);
    let release = async |owner: &Owner| {
        let released = f.queue.release_owner(&node_of(owner), silent_for).await;
        released.expect("the queue answers")
    };
    // One of its workers is heard: the node lives.
    f.queue.heartbeat(&owners[1], LEASE).await.expect("a lease");
    f.live(2).await;
    assert_eq!(release(&owners[0]).await, Released::Alive);
    f.live(1).await;
    assert_eq!(release(&owners[0]).await, Released::Tasks(2));
    // The life is refused, with workers that held nothing too; all others are not.
    let idle = worker_of(1, "n", 2, "c");
    for (owner, holds) in owners.iter().zip(0..).chain([(&idle, 0)]) {
        let is_refused = holds < 2;
        let lease = f.queue.heartbeat(owner, LEASE).await;
        assert_eq!(lease.is_err(), is_refused, "{owner}");
    }
    let late = f.queue.mark_succeeded(&claims[0], None).await;
    assert!(matches!(late, Err(QueueError::OwnerReleased(_))));
    let other = f.worker(Owner::random());
    assert_eq!(other.claims(9).await.len(), 2);
}

async fn releases_by_membership_can_be_switched_off(f: &Fixture<'_>) {
    let owner = worker_of(1, "n", 1, "a");
    f.simple().await;
    f.worker(owner.clone()).claim().await;
    f.live(5).await;
    let silent_for = Duration::from_secs(3);
    assert!(f.queue.releases().await.expect("the queue answers"));
    f.queue
        .set_releases(false)
        .await
        .expect("the queue answers");
    assert!(!f.queue.releases().await.expect("the queue answers"));
    let gone = node_of(&owner);
    let released = f.queue.release_owner(&gone, silent_for).await;
    assert_eq!(released.expect("the queue answers"), Released::Off);
    let lease = f.queue.heartbeat(&owner, LEASE).await;
    assert_eq!(lease.expect("it is not refused"), Lease::Renewed(1));
    f.queue.set_releases(true).await.expect("the queue answers");
    assert!(f.queue.releases().await.expect("the queue answers"));
    f.queue
        .set_releases(false)
        .await
        .expect("the queue answers");
    // A person may release it nevertheless, by its own name.
    f.live(5).await;
    let by_name = Gone::Life(owner.clone());
    let released = f.queue.release_owner(&by_name, silent_for).await;
    assert_eq!(released.expect("the queue answers"), Released::Tasks(1));
}

/// No script ran for 20 s: the first caller afterwards cannot tell which workers died.
async fn an_outage_of_all_links_releases_no_worker(f: &Fixture<'_>) {
    let (alive, dead) = (worker_of(1, "n", 1, "a"), worker_of(1, "m", 1, "a"));
    for owner in [&alive, &dead] {
        f.simple().await;
        f.worker(owner.clone()).claim().await;
    }
    f.live(2).await;
    f.queue.heartbeat(&alive, LEASE).await.expect("a lease");
    let silent_for = Duration::from_secs(3);
    let release = async |owner: &Owner| {
        let released = f.queue.release_owner(&node_of(owner), silent_for).await;
        released.expect("the queue answers")
    };
    f.advance(20).await;
    for owner in [&dead, &alive] {
        assert_eq!(release(owner).await, Released::Alive, "{owner}");
    }
    // The releaser asks every second, and the live worker comes back after some.
    for second in 0..4 {
        f.live(1).await;
        for owner in [&dead, &alive] {
            assert_eq!(release(owner).await, Released::Alive, "{owner} {second}");
        }
    }
    let lease = f.queue.heartbeat(&alive, LEASE).await;
    assert_eq!(lease.expect("it was not released"), Lease::Renewed(1));
    // What died is given back in the end, by its lease or by a release.
    for _ in 0..11 {
        f.live(1).await;
        f.queue.heartbeat(&alive, LEASE).await.expect("a lease");
    }
    f.queue.reap().await.expect("the queue answers");
    assert_eq!(release(&alive).await, Released::Alive);
    let owners = f.queue.owners().await.expect("the queue answers");
    let names: Vec<&Owner> = owners.iter().map(|holding| &holding.owner).collect();
    assert_eq!(names, [&alive]);
}

async fn owners_are_listed_in_pages(f: &Fixture<'_>) {
    let nodes = (0..OWNERS_PAGE as u64 + 20).map(|life| worker_of(1, "n", life, "a"));
    let alone = ["a~0000000000000001", "0~0000000000000001"];
    let alone = alone.map(|text| text.parse::<Owner>().expect("an owner"));
    let mut owners: Vec<Owner> = nodes.chain(alone).collect();
    for owner in &owners {
        f.simple().await;
        f.worker(owner.clone()).claim().await;
    }
    owners.sort_unstable();
    let (mut listed, mut after) = (Vec::new(), String::new());
    loop {
        let page = f.queue.owners_after(&after).await;
        let page = page.expect("the queue answers");
        assert!(page.len() <= OWNERS_PAGE, "{}", page.len());
        let Some(last) = page.last() else { break };
        after = last.owner.to_string();
        assert!(page.iter().all(|holding| holding.running == 1));
        listed.extend(page.into_iter().map(|holding| holding.owner));
    }
    assert_eq!(listed, owners);
    // Those of one cluster begin after its prefix.
    let prefix = NodeLife::cluster_prefix(ClusterId::from_raw(1));
    let page = f.queue.owners_after(&prefix).await;
    let page = page.expect("the queue answers");
    assert_eq!(page[0].owner, worker_of(1, "n", 0, "a"));
    assert_eq!(page[0].renewed_at.after(LEASE), page[0].lease_ends_at);
}

async fn older_lives_are_released_together(f: &Fixture<'_>) {
    let life = |name: &str, life: u64| -> Owner {
        format!("{name}~{life:016x}")
            .parse()
            .expect("the suite relies on it")
    };
    let owners = [
        life("node", 1),
        life("node", 2),
        life("node", 3),
        life("other", 1),
    ];
    for owner in &owners {
        f.simple().await;
        f.worker(owner.clone()).claim().await;
    }
    f.live(5).await;
    let gone = Gone::Before(owners[2].clone());
    let released = f.queue.release_owner(&gone, Duration::from_secs(2)).await;
    assert_eq!(
        released.expect("the suite relies on it"),
        Released::Tasks(2)
    );
    // A life that held nothing is refused too, and a later release of fewer lives changes nothing.
    for before in [&owners[2], &owners[0]] {
        let gone = Gone::Before(before.clone());
        let released = f.queue.release_owner(&gone, Duration::from_secs(2)).await;
        assert_eq!(
            released.expect("the suite relies on it"),
            Released::Tasks(0)
        );
        let idle = [life("node", 0), life("node", 4), life("other", 0)];
        let others = idle.iter().zip([false, true, true]);
        for (owner, holds) in owners.iter().zip([false, false, true, true]).chain(others) {
            let lease = f.queue.heartbeat(owner, LEASE).await;
            assert_eq!(lease.is_ok(), holds, "{owner}");
        }
    }
}

async fn many_tasks_are_released_in_order(f: &Fixture<'_>) {
    let life = |life: u64| -> Owner {
        format!("node~{life:016x}")
            .parse()
            .expect("the suite relies on it")
    };
    let claim = async |owner: &Owner, count: usize| {
        let mut ids = Vec::new();
        while ids.len() < count {
            let tasks: Vec<_> = (ids.len()..count)
                .take(TURN_LIMIT)
                .map(|_| task())
                .collect();
            let (worker, room) = (f.worker(owner.clone()), tasks.len());
            f.queue.enqueue(tasks).await.expect("the queue answers");
            ids.extend(worker.claims(room).await.iter().map(|claim| claim.id));
        }
        ids.sort_unstable();
        ids
    };
    let all_claims = async || {
        let (worker, mut ids) = (f.worker(Owner::random()), Vec::new());
        loop {
            let claims = worker.claims(TURN_LIMIT).await;
            if claims.is_empty() {
                break ids;
            }
            ids.extend(claims.iter().map(|claim| claim.id));
        }
    };
    let release = async |gone: Gone| {
        f.advance(3).await;
        let released = f.queue.release_owner(&gone, Duration::from_secs(2)).await;
        released.expect("the suite relies on it")
    };
    let held = claim(&life(1), 250).await;
    assert_eq!(release(Gone::Life(life(1))).await, Released::Tasks(250));
    assert_eq!(all_claims().await, held);
    // The lives of a name are released one after the other, each to the head of the line.
    let (older, newer) = (claim(&life(2), 120).await, claim(&life(3), 130).await);
    let own = claim(&life(4), 1).await;
    assert_eq!(release(Gone::Before(life(4))).await, Released::Tasks(250));
    assert_eq!(all_claims().await, [newer, older].concat());
    assert_eq!(f.state(own[0]).await, TaskState::Running);
}

async fn a_worker_can_ask_what_it_holds(f: &Fixture<'_>) {
    for _ in 0..30 {
        f.simple().await;
    }
    let mut claims = f.claims(25).await;
    claims.sort_by_key(|claim| claim.id);
    assert_eq!(
        f.queue.running(&f.owner).await.expect("the queue answers"),
        claims
    );
    f.succeed(&claims.remove(0)).await;
    assert_eq!(
        f.queue.running(&f.owner).await.expect("the queue answers"),
        claims
    );
    assert!(
        f.queue
            .running(&Owner::random())
            .await
            .expect("the queue answers")
            .is_empty()
    );
}

async fn a_worker_is_told_how_much_it_holds(f: &Fixture<'_>) {
    for _ in 0..30 {
        f.simple().await;
    }
    assert_eq!(f.turn(&[], 0).await.held, 0);
    let turn = f.turn(&[("a", 20)], 20).await;
    assert_eq!(turn.held, 20);
    assert_eq!(f.turn(&[("a", 5)], 5).await.held, 25);
    f.succeed(&turn.claims[0]).await;
    assert_eq!(f.turn(&[], 0).await.held, 24);
    let lease = f.queue.heartbeat(&f.owner, LEASE).await;
    assert_eq!(lease.expect("the queue answers"), Lease::Renewed(24));
    let other = f.worker(Owner::random());
    assert_eq!(other.turn(&[("a", 1)], 1).await.held, 1);
    assert_eq!(f.turn(&[], 0).await.held, 24);
}

async fn what_a_worker_holds_says_what_is_to_be_cancelled(f: &Fixture<'_>) {
    let ids = [f.simple().await, f.simple().await];
    let claims = f.claims(2).await;
    assert!(claims.iter().all(|claim| !claim.cancel_requested));
    let cancel = f.queue.cancel(ids[1]).await;
    assert_eq!(cancel.expect("the queue answers"), Cancel::Requested);
    let held = f.queue.running(&f.owner).await.expect("the queue answers");
    assert_eq!(held.len(), 2);
    for claim in held {
        assert_eq!(claim.cancel_requested, claim.id == ids[1]);
    }
}

async fn a_cancelled_task_of_a_crashed_worker_is_cancelled(f: &Fixture<'_>) {
    let id = f.simple().await;
    f.claim().await;
    assert_eq!(
        f.queue.cancel(id).await.expect("the queue answers"),
        Cancel::Requested
    );
    f.live(15).await;
    f.queue.reap().await.expect("the queue answers");
    assert_eq!(f.state(id).await, TaskState::Cancelled);
}

/// A task whose lease ended waits for about a second, whatever its attempt.
async fn a_lost_task_comes_back_after_about_a_second(f: &Fixture<'_>) {
    let id = f.simple().await;
    for attempt in 1..5 {
        assert_eq!(f.worker(Owner::random()).claim().await.attempt, attempt);
        f.live(15).await;
        f.queue.reap().await.expect("the queue answers");
        let record = f.record(id).await;
        let due = record.next_run_at.expect("it waits");
        let delay = due.since(record.updated_at).as_millis();
        assert!((750..1_250).contains(&delay), "{delay}");
        f.live(2).await;
    }
}

/// No worker can renew its lease while the queue was away.
async fn an_outage_is_not_charged_to_workers(f: &Fixture<'_>) {
    let (alive, crashed) = (f.worker(Owner::random()), f.worker(Owner::random()));
    let mut last_attempt = task();
    last_attempt.max_attempts = 1;
    f.add(last_attempt).await;
    let (held, lost) = (alive.claim().await, f.simple().await);
    crashed.claim().await;
    for _ in 0..2 {
        f.advance(18).await;
        // A third worker comes first.
        f.turn(&[("a", 9)], 9).await;
        assert_eq!(f.queue.reap().await.expect("the queue answers"), 0);
        let gone = Gone::Life(crashed.owner.clone());
        let released = f.queue.release_owner(&gone, Duration::from_secs(2)).await;
        assert_eq!(released.expect("the queue answers"), Released::Alive);
        f.live(2).await;
    }
    alive.succeed(&held).await;
    // The time between the outages counts: two seconds then, and two since.
    f.live(10).await;
    assert_eq!(f.queue.reap().await.expect("the queue answers"), 0);
    assert_eq!(f.state(lost).await, TaskState::Running);
    f.live(1).await;
    assert_eq!(f.queue.reap().await.expect("the queue answers"), 1);
    assert_eq!(f.state(lost).await, TaskState::RetryScheduled);
}

/// Workers that are started from time to time: the time between them is no outage that revives a lease for ever.
async fn a_lease_ends_where_the_queue_is_used_now_and_then(f: &Fixture<'_>) {
    let id = f.simple().await;
    f.worker(Owner::random()).claim().await;
    for round in 0..4 {
        assert_eq!(f.state(id).await, TaskState::Running, "round {round}");
        f.advance(12).await;
        f.turn(&[], 0).await;
        let owners = f.queue.owners().await.expect("the queue answers");
        assert_eq!(owners.len(), 1, "round {round}");
        f.live(4).await;
        f.queue.reap().await.expect("the queue answers");
    }
    assert_eq!(f.state(id).await, TaskState::RetryScheduled);
}

/// Idle workers ask every 5 s: that is no outage for ever.
async fn a_lease_ends_where_calls_are_far_apart(f: &Fixture<'_>) {
    for (seconds, calls) in [(5, 4), (60, 2), (12, 3)] {
        let id = f.simple().await;
        f.worker(Owner::random()).claim().await;
        for call in 1..=calls {
            assert_eq!(f.state(id).await, TaskState::Running, "call {call}");
            f.advance(seconds).await;
            match seconds {
                5 => drop(f.turn(&[], 0).await),
                _ => drop(f.queue.reap().await.expect("the queue answers")),
            }
        }
        assert_eq!(f.state(id).await, TaskState::RetryScheduled, "{seconds}");
        let cancel = f.queue.cancel(id).await;
        assert_eq!(cancel.expect("the queue answers"), Cancel::Cancelled);
    }
}
