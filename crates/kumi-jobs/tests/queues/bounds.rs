//! What one script does at most, by the server's count of the commands that scripts call.

use crate::servers::{Kind, Server, on_both_servers};
use crate::work::Site;
use kumi_jobs::{
    Ask, Claim, ENQUEUE_LIMIT, Filter, Finish, Gone, Jobs, Lease, NewTask, NodeLife, Order,
    Outcome, Owner, Paging, Queue, RedisOptions, Released, Room, Serial, TURN_LIMIT, TaskEnvelope,
    TaskId, TaskState,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

on_both_servers![
    a_finish_skips_a_part_of_the_cancelled_tasks_of_its_line,
    a_page_ends_before_its_payloads_are_large,
    a_purge_walks_over_a_part_of_the_list,
    a_listing_of_a_state_reads_no_other_tasks,
    a_purge_by_filter_takes_many_out_at_once,
    a_release_of_many_tasks_sorts_a_part_of_them,
    a_line_of_a_million_is_listed_to_its_end,
    a_gap_is_charged_to_none_of_many_workers,
    leases_are_extended_from_where_the_last_script_stopped,
    a_release_of_a_node_reads_the_tasks_of_each_owner_once_and_wakes_others,
    the_load_of_many_types_looks_at_a_part_of_them,
];

/// Calls of a command so far, those of scripts included.
fn calls(server: &Server, command: &str) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]);
    let prefix = format!("cmdstat_{command}:calls=");
    let line = stats.lines().find_map(|line| line.strip_prefix(&prefix));
    let count = line.and_then(|line| line.split(',').next());
    count.map_or(0, |count| count.parse().expect("a number"))
}

fn ask(owner: &Owner, max: usize) -> Ask {
    Ask {
        owner: owner.clone(),
        nonce: 1,
        lease: Duration::from_secs(60),
        types: vec![Room {
            task_type: "a".into(),
            room: max,
        }],
        max,
    }
}

async fn connected(server: &Server) -> Jobs {
    Jobs::connect(&server.url()).await.expect("a queue")
}

async fn enqueue(queue: &dyn Queue, tasks: &[NewTask]) {
    for batch in tasks.chunks(ENQUEUE_LIMIT) {
        queue.enqueue(batch.to_vec()).await.expect("enqueued");
    }
}

async fn a_finish_skips_a_part_of_the_cancelled_tasks_of_its_line(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server).await;
    let (queue, owner) = (jobs.queue(), Owner::random());
    let tasks: Vec<NewTask> = (0..600)
        .map(|_| {
            let mut task = NewTask::new(TaskEnvelope::json("a", "{}"));
            task.serial = Some(Serial {
                key: "k".into(),
                hold_on_dead: false,
            });
            task
        })
        .collect();
    enqueue(&**queue, &tasks).await;
    let claims = queue.dequeue_ready(ask(&owner, 9)).await.expect("a claim");
    for task in &tasks[1..] {
        queue.cancel(task.id).await.expect("cancelled");
    }
    let mut report = vec![Finish::new(&claims[0], Outcome::Succeeded(None))];
    let mut turns = 0;
    loop {
        let before = calls(&server, "lpop");
        let turn = queue.turn(std::mem::take(&mut report), ask(&owner, 9));
        let turn = turn.await.expect("a turn");
        let taken = calls(&server, "lpop") - before;
        assert!(taken <= TURN_LIMIT as u64 + 5, "{taken} ids in one script");
        turns += 1;
        if !turn.more {
            break;
        }
    }
    let least = tasks.len() / TURN_LIMIT;
    assert!((least..least + 3).contains(&turns), "{turns}");
}

async fn a_page_ends_before_its_payloads_are_large(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server).await;
    let size = 100 << 10;
    let payload = format!("\"{}\"", "x".repeat(size));
    let tasks: Vec<NewTask> = (0..100)
        .map(|_| NewTask::new(TaskEnvelope::json("a", payload.clone())))
        .collect();
    enqueue(&**jobs.queue(), &tasks).await;
    let filter = Filter::default();
    let (mut seen, mut cursor) = (BTreeSet::new(), None);
    loop {
        let paging = Paging::oldest(100).after(cursor);
        let page = jobs.queue().list(&filter, &paging).await;
        let page = page.expect("a page");
        assert!(page.tasks.len() * size < 2 << 20, "{}", page.tasks.len());
        seen.extend(page.tasks.iter().map(|task| task.id));
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    let all: BTreeSet<_> = tasks.iter().map(|task| task.id).collect();
    assert_eq!(seen, all);
}

/// Enqueues tasks and ends them well.
async fn succeed(queue: &dyn Queue, count: usize) -> Vec<NewTask> {
    let owner = Owner::random();
    let tasks: Vec<NewTask> = (0..count)
        .map(|_| NewTask::new(TaskEnvelope::json("a", "{}")))
        .collect();
    enqueue(queue, &tasks).await;
    let mut reports = Vec::new();
    loop {
        let turn = queue.turn(reports, ask(&owner, TURN_LIMIT)).await;
        let claims = turn.expect("a turn").claims;
        let report = |claim| Finish::new(claim, Outcome::Succeeded(None));
        reports = claims.iter().map(report).collect();
        if reports.is_empty() {
            return tasks;
        }
    }
}

async fn a_listing_of_a_state_reads_no_other_tasks(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server).await;
    let (queue, owner) = (jobs.queue(), Owner::random());
    let tasks: Vec<NewTask> = (0..3_000)
        .map(|_| NewTask::new(TaskEnvelope::json("a", "{}")))
        .collect();
    enqueue(&**queue, &tasks).await;
    let claims = queue.dequeue_ready(ask(&owner, 1)).await.expect("a claim");
    let failed = queue.mark_failed(&claims[0], "no".into(), None).await;
    failed.expect("a reply");
    let read = || calls(&server, "hmget") + calls(&server, "hscan");
    let before = read();
    let dead = Filter::of(TaskState::Dead);
    let page = queue
        .list(&dead, &Paging::newest(50))
        .await
        .expect("a page");
    assert_eq!((page.tasks.len(), page.looked, page.cursor), (1, 1, None));
    assert!(read() - before <= 2, "{} reads", read() - before);
    // The page after the last of them is found again, deep in a line.
    let queued = Filter::of(TaskState::Queued);
    let mut paging = Paging::newest(100);
    for _ in 0..20 {
        let page = queue.list(&queued, &paging).await.expect("a page");
        assert_eq!(page.looked, 100);
        paging.after = page.cursor;
    }
    // A page's cursor needs two more.
    assert!(read() - before <= 2_050, "{} reads", read() - before);
    assert_eq!(calls(&server, "hscan"), 0);
}

async fn a_purge_by_filter_takes_many_out_at_once(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server).await;
    let queue = jobs.queue();
    succeed(&**queue, 3_000).await;
    let purged = jobs.purge(Filter::default()).await.expect("a reply");
    assert_eq!(purged, 3_000);
    // One walk over the list for each step of at least a hundred tasks.
    assert!(calls(&server, "lrem") <= 30, "{}", calls(&server, "lrem"));
    assert_eq!(queue.counts_by_state().await.expect("counts").total(), 0);
}

async fn a_purge_walks_over_a_part_of_the_list(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server).await;
    let queue = jobs.queue();
    let tasks = succeed(&**queue, 3_000).await;
    let scripts = || calls(&server, "evalsha") + calls(&server, "eval");
    let (before, ids) = (scripts(), tasks.iter().map(|task| task.id));
    let mut ids: Vec<_> = ids.rev().take(50).collect();
    // One that is named twice is purged once.
    ids.push(ids[0]);
    assert_eq!(queue.purge(ids).await.expect("a reply"), 50);
    assert_eq!(calls(&server, "lrem"), 50);
    let scripts = scripts() - before;
    assert!(scripts >= 3, "{scripts} scripts");
    let counts = queue.counts_by_state().await.expect("counts");
    assert_eq!(counts.of(TaskState::Succeeded), 2_950);
}

async fn a_release_of_many_tasks_sorts_a_part_of_them(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server).await;
    let (queue, owner) = (jobs.queue(), Owner::random());
    let count = 1_000;
    let tasks: Vec<NewTask> = (0..count)
        .map(|_| NewTask::new(TaskEnvelope::json("a", "{}")))
        .collect();
    enqueue(&**queue, &tasks).await;
    let mut claims: Vec<Claim> = Vec::new();
    while claims.len() < count {
        let more = queue.dequeue_ready(ask(&owner, TURN_LIMIT)).await;
        claims.extend(more.expect("claims"));
    }
    claims.sort_by_key(|claim| claim.id);
    assert_eq!(queue.running(&owner).await.expect("claims"), claims);
    assert_eq!(calls(&server, "hkeys"), 0, "they are read in parts");
    let gone = Gone::Life(owner);
    let released = queue.release_owner(&gone, Duration::ZERO).await;
    assert_eq!(released.expect("a reply"), Released::Tasks(count));
    // Few are left at the end, and are read at once: 400 of them, in calls of one turn's worth.
    let at_once = calls(&server, "hkeys");
    assert!(at_once <= 400 / TURN_LIMIT as u64, "{at_once} calls");
    let counts = queue.counts_by_state().await.expect("counts");
    assert_eq!(counts.of(TaskState::Queued), count as u64);
}

/// Both ends of a line move by more than a million ids between two pages.
async fn a_line_of_a_million_is_listed_to_its_end(kind: Kind) {
    let server = Server::start(kind);
    for order in [Order::Newest, Order::Oldest] {
        let url = server.url();
        let (_, name) = url.split_once("queue=").expect("a name");
        let jobs = Jobs::connect(&url).await.expect("a queue");
        let queue = jobs.queue();
        let tasks: Vec<NewTask> = (0..300)
            .map(|_| NewTask::new(TaskEnvelope::json("a", "{}")))
            .collect();
        enqueue(&**queue, &tasks).await;
        let filter = Filter::of(TaskState::Queued);
        let mut paging = Paging {
            order,
            ..Paging::newest(100)
        };
        let page = queue.list(&filter, &paging).await.expect("a page");
        let mut seen: Vec<TaskId> = page.tasks.iter().map(|task| task.id).collect();
        paging.after = page.cursor;
        // Ids without a record stand for tasks that were purged. What is given back comes to the head.
        let (far, near) = match order {
            Order::Newest => ("RPUSH", "LPUSH"),
            Order::Oldest => ("LPUSH", "RPUSH"),
        };
        let fill = format!(
            "local ids = {{}} for n = 1, 1000 do ids[n] = 'filler-' .. n end \
             for _ = 1, 1100 do redis.call('{far}', KEYS[1], unpack(ids)) end \
             return redis.call('{near}', KEYS[1], 'filler-0')"
        );
        let line = format!("kumi:jobs:{{{name}}}:ready:1:a");
        assert_eq!(server.cli(&["EVAL", &fill, "1", &line]), "1100301");
        while paging.after.is_some() {
            let page = queue.list(&filter, &paging).await.expect("a page");
            seen.extend(page.tasks.iter().map(|task| task.id));
            paging.after = page.cursor;
            assert!(seen.len() <= tasks.len(), "{order:?}: listed twice");
        }
        let expected: BTreeSet<TaskId> = tasks.iter().map(|task| task.id).collect();
        assert_eq!(seen.len(), expected.len(), "{order:?}");
        assert_eq!(BTreeSet::from_iter(seen), expected, "{order:?}");
    }
}

/// More workers than one script gives a grace to run a task each, and the server is away for longer than their leases.
async fn a_gap_is_charged_to_none_of_many_workers(kind: Kind) {
    const WORKERS: usize = 2_300;
    let server = Server::start(kind);
    let clock = Arc::new(AtomicU64::new(1_700_000_000_000));
    let options = RedisOptions::from_url(&server.url()).expect("a URL");
    let queue = options.virtual_clock(clock.clone()).connect().await;
    let queue = queue.expect("a queue");
    let tasks: Vec<NewTask> = (0..WORKERS)
        .map(|_| NewTask::new(TaskEnvelope::json("a", "{}")))
        .collect();
    enqueue(&queue, &tasks).await;
    let owners: Vec<Owner> = (0..WORKERS).map(|_| Owner::random()).collect();
    for owner in &owners {
        let claims = queue.dequeue_ready(ask(owner, 1)).await.expect("a claim");
        assert_eq!(claims.len(), 1);
        // Not all at the same moment.
        clock.fetch_add(1, Ordering::SeqCst);
    }
    let other = Owner::random();
    let running = async || {
        let counts = queue.counts_by_state().await.expect("counts");
        counts.of(TaskState::Running)
    };
    let turns = async |count: usize| {
        for _ in 0..count {
            let turn = queue.turn(Vec::new(), ask(&other, 1)).await;
            turn.expect("a turn");
        }
    };
    // In the second gap all leases end at the same moment.
    for _ in 0..2 {
        clock.fetch_add(90_000, Ordering::SeqCst);
        turns(20).await;
        assert_eq!(running().await, WORKERS as u64);
        for owner in &owners {
            let lease = queue.heartbeat(owner, Duration::from_secs(60)).await;
            assert_eq!(lease.expect("a reply"), Lease::Renewed(1));
        }
    }
    // Workers that do not come back lose their tasks nevertheless.
    for _ in 0..70 {
        clock.fetch_add(1_000, Ordering::SeqCst);
        queue
            .heartbeat(&other, Duration::from_secs(60))
            .await
            .expect("a reply");
    }
    turns(20).await;
    let left = running().await;
    assert!(left <= WORKERS as u64 - 20, "{left}");
}

/// A script extends 500 leases. The key `grace` holds where the next one goes on, and is gone after the last.
async fn leases_are_extended_from_where_the_last_script_stopped(kind: Kind) {
    const WORKERS: usize = 1_200;
    const LEASE_MS: u64 = 60_000;
    let server = Server::start(kind);
    let url = server.url();
    let (_, name) = url.split_once("queue=").expect("a name");
    let key = |key: &str| format!("kumi:jobs:{{{name}}}:{key}");
    let clock = Arc::new(AtomicU64::new(1_700_000_000_000));
    let options = RedisOptions::from_url(&url).expect("a URL");
    let queue = options.virtual_clock(clock.clone()).connect().await;
    let queue = queue.expect("a queue");
    let tasks: Vec<NewTask> = (0..WORKERS)
        .map(|_| NewTask::new(TaskEnvelope::json("a", "{}")))
        .collect();
    enqueue(&queue, &tasks).await;
    let owners: Vec<Owner> = (0..WORKERS).map(|_| Owner::random()).collect();
    for owner in &owners {
        let claims = queue.dequeue_ready(ask(owner, 1)).await.expect("a claim");
        assert_eq!(claims.len(), 1);
        clock.fetch_add(1, Ordering::SeqCst);
    }
    let reap = async || assert_eq!(queue.reap().await.expect("a reply"), 0);
    // How many leases end at this moment.
    let ending_at = |end: u64| {
        let end = end.to_string();
        let count = server.cli(&["ZCOUNT", &key("owners"), &end, &end]);
        count.parse::<usize>().expect("a number")
    };
    let pulse = server.cli(&["GET", &key("pulse")]);
    let now = clock.fetch_add(90_000, Ordering::SeqCst) + 90_000;
    reap().await;
    assert_eq!(ending_at(now + LEASE_MS), 500);
    let grace = server.cli(&["GET", &key("grace")]);
    let words: Vec<&str> = grace.split(' ').collect();
    assert_eq!((words[0], words[2]), (&*pulse, "1"), "{grace}");
    // The lease of the first worker is not extended yet.
    let gone = Gone::Life(owners[0].clone());
    let released = queue.release_owner(&gone, Duration::from_secs(2)).await;
    assert_eq!(released.expect("a reply"), Released::Alive);
    assert_eq!(ending_at(now + LEASE_MS), 1_000);
    reap().await;
    assert_eq!(ending_at(now + LEASE_MS), WORKERS);
    assert_eq!(server.cli(&["EXISTS", &key("grace")]), "0");
    assert_eq!(server.cli(&["GET", &key("pulse")]), now.to_string());
    // What another gap left behind does not count: believed, it would leave all leases out.
    clock.fetch_add(1_500, Ordering::SeqCst);
    let other = queue
        .heartbeat(&Owner::random(), Duration::from_secs(60))
        .await;
    assert_eq!(other.expect("a reply"), Lease::Lost);
    server.cli(&["SET", &key("grace"), "1 1 0"]);
    clock.fetch_add(90_000, Ordering::SeqCst);
    for _ in 0..3 {
        reap().await;
    }
    assert_eq!(ending_at(now + 90_000 + LEASE_MS), WORKERS);
    assert_eq!(server.cli(&["EXISTS", &key("grace")]), "0");
}

async fn a_release_of_a_node_reads_the_tasks_of_each_owner_once_and_wakes_others(kind: Kind) {
    let site = Site::start(kind).await;
    let (server, queue) = (&site.server, site.jobs.queue());
    let (parts, each) = (30, 10);
    let node: NodeLife = "@0000000000000001/n~0000000000000001"
        .parse()
        .expect("a life");
    let tasks: Vec<NewTask> = (0..parts * each)
        .map(|_| NewTask::new(TaskEnvelope::json("a", "{}")))
        .collect();
    enqueue(&**queue, &tasks).await;
    for part in 0..parts {
        let owner = node.owner(&format!("p{part}")).expect("an owner");
        let claims = queue.dequeue_ready(ask(&owner, each)).await;
        assert_eq!(claims.expect("claims").len(), each);
    }
    let before = calls(server, "hkeys");
    let released = queue.release_owner(&Gone::Node(node), Duration::ZERO).await;
    assert_eq!(released.expect("released"), Released::Tasks(parts * each));
    let reads = calls(server, "hkeys") - before;
    assert!(reads <= parts as u64 + 6, "{reads}");
    // The waits of the node's workers may each take a marker.
    let markers = server.cli(&["LLEN", &site.key("wake:a")]);
    assert_eq!(markers, (parts + 1).to_string());
}

async fn the_load_of_many_types_looks_at_a_part_of_them(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server).await;
    let tasks: Vec<NewTask> = (0..300)
        .map(|number| NewTask::new(TaskEnvelope::json(format!("t{number}"), "{}")))
        .collect();
    enqueue(&**jobs.queue(), &tasks).await;
    let looks = || calls(&server, "lrange") + calls(&server, "hmget");
    let before = looks();
    let load = jobs.queue().load().await.expect("a load");
    assert!(load.ready_since.is_some());
    let looks = looks() - before;
    assert!((300..=400).contains(&looks), "{looks}");
}
