//! Servers that forget scripts, lose replies or fail over, while workers work.

use crate::proxy::Proxy;
use crate::servers::{Cluster, Kind, Server, on_both_servers, queue_url};
use crate::work::{self, Effects, Site, check_effects, connected, ids};
use kumi_jobs::{
    Ask, Events, Filter, Jobs, Lease, NewTask, Notice, Owner, Paging, Priority, Queue, QueueError,
    RedisOptions, Room, Schedule, Signal, TaskEnvelope, TaskId, TaskState, Timestamp,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

on_both_servers![
    replies_that_are_lost_lose_no_task,
    replies_that_are_lost_lose_no_task_that_was_claimed_ahead,
    a_server_that_forgets_its_scripts_gets_them_again,
    a_subscription_goes_on_after_a_restart_without_data,
    a_subscription_in_resp3_delivers_moves,
    a_subscription_that_was_not_renewed_in_time_has_a_gap,
    a_subscription_whose_server_lost_its_data_has_a_gap,
    a_subscription_sees_that_moves_are_numbered_anew,
    a_signal_that_was_taken_is_not_lost_with_the_next_call,
    large_payloads_end_a_claim_and_stay_in_order,
    many_tasks_due_at_one_instant_all_run,
    a_producer_whose_clock_is_wrong_changes_nothing,
    a_server_that_evicts_is_refused,
    a_full_server_finishes_what_it_holds,
    a_schedule_that_cannot_be_read_hides_no_other,
    a_task_that_cannot_be_read_ends_and_stops_no_other,
    asking_what_an_owner_runs_changes_nothing,
    a_command_that_the_user_may_not_run_in_a_script_is_unauthorized,
];

async fn replies_that_are_lost_lose_no_task(kind: Kind) {
    let server = Server::start(kind);
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let proxy = Proxy::start(server.port, seed).await;
    let jobs = connected(&queue_url(proxy.port)).await;
    let tasks = work::tasks(200);
    proxy.cut(true);
    for batch in tasks.chunks(10) {
        jobs.queue()
            .enqueue(batch.to_vec())
            .await
            .expect("repeated until it is answered");
    }
    let effects = Effects::default();
    let done = async {
        work::all_succeed(&**jobs.queue(), ids(&tasks)).await;
        proxy.cut(false);
    };
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    assert!(proxy.cuts.load(Ordering::SeqCst) > 5, "something was cut");
    work::check_sums(&**jobs.queue(), tasks.len()).await;
    check_effects(&effects, 200);
}

/// Tasks whose handlers end at their first poll, on a runtime of one thread: the worker claims them ahead.
async fn replies_that_are_lost_lose_no_task_that_was_claimed_ahead(kind: Kind) {
    let work = async move {
        let server = Server::start(kind);
        let seed = fastrand::u64(..);
        println!("seed {seed}");
        let proxy = Proxy::start(server.port, seed).await;
        let url = |port: u16| format!("redis://127.0.0.1:{port}/?queue=ahead");
        // The worker's calls are cut; the producer's go past the proxy.
        let (jobs, cut) = (
            connected(&url(server.port)).await,
            connected(&url(proxy.port)).await,
        );
        let tasks = work::plain_tasks(3_000);
        work::enqueue(&**jobs.queue(), &tasks).await;
        let effects = Effects::default();
        proxy.cut(true);
        let most_running = AtomicU64::new(0);
        let watch = async {
            loop {
                let counts = jobs.queue().counts_by_state().await.expect("counts");
                most_running.fetch_max(counts.of(TaskState::Running), Ordering::Relaxed);
            }
        };
        let done = async {
            tokio::select! {
                () = watch => {}
                () = work::all_succeed(&**jobs.queue(), ids(&tasks)) => {}
            }
            proxy.cut(false);
        };
        work::quick_worker(&cut, &effects)
            .run_until(done)
            .await
            .expect("it worked");
        assert!(proxy.cuts.load(Ordering::SeqCst) > 5, "something was cut");
        let most_running = most_running.load(Ordering::Relaxed);
        assert!(most_running > 10, "it claimed {most_running} at most");
        work::check_sums(&**jobs.queue(), tasks.len()).await;
        check_effects(&effects, 3_000);
    };
    let on_one_thread = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().expect("a runtime");
        runtime.block_on(work);
    };
    let thread = tokio::task::spawn_blocking(on_one_thread);
    thread.await.expect("no panic");
}

async fn a_server_that_forgets_its_scripts_gets_them_again(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server.url()).await;
    let tasks = work::tasks(300);
    let effects = Effects::default();
    let done = async {
        for batch in tasks.chunks(50) {
            work::enqueue(&**jobs.queue(), batch).await;
            assert_eq!(server.cli(&["SCRIPT", "FLUSH"]), "OK");
        }
        work::all_succeed(&**jobs.queue(), ids(&tasks)).await;
    };
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    work::check_sums(&**jobs.queue(), tasks.len()).await;
    check_effects(&effects, 300);
}

/// Waits for the move of a task into the line.
async fn queued(events: &mut Events, id: TaskId) {
    let moved = async {
        loop {
            match events.recv().await.expect("the queue is there") {
                Notice::Moved(event) if event.id == id => return event,
                _ => {}
            }
        }
    };
    let moved = tokio::time::timeout(Duration::from_secs(60), moved).await;
    assert_eq!(moved.expect("no move").to, TaskState::Queued);
}

async fn a_subscription_goes_on_after_a_restart_without_data(kind: Kind) {
    let mut server = Server::start(kind);
    let jobs = connected(&server.url()).await;
    let queue = jobs.queue();
    let mut events = queue.subscribe().await.expect("events");
    let before = work::plain_tasks(500);
    work::enqueue(&**queue, &before).await;
    for task in &before {
        queued(&mut events, task.id).await;
    }
    tokio::task::block_in_place(|| server.restart());
    // Moves are numbered anew. The first ones may come before the subscription has asked for moves.
    let moved = async {
        let mut after = Vec::new();
        loop {
            let task = work::plain_tasks(1).remove(0);
            after.push(task.id);
            queue.enqueue(vec![task]).await.expect("enqueued");
            match tokio::time::timeout(Duration::from_secs(1), events.recv()).await {
                Ok(Some(Notice::Moved(event))) if after.contains(&event.id) => return,
                Ok(None) => panic!("the subscription ended"),
                _ => {}
            }
        }
    };
    let moved = tokio::time::timeout(Duration::from_secs(60), moved).await;
    moved.expect("no move");
}

async fn a_subscription_in_resp3_delivers_moves(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&format!("{}&protocol=resp3", server.url())).await;
    let mut events = jobs.queue().subscribe().await.expect("events");
    let task = work::plain_tasks(1).remove(0);
    let id = task.id;
    jobs.queue().enqueue(vec![task]).await.expect("enqueued");
    queued(&mut events, id).await;
}

/// Both subscriptions lapse, and one of them is renewed first.
async fn a_subscription_that_was_not_renewed_in_time_has_a_gap(kind: Kind) {
    let site = Site::start(kind).await;
    let (server, jobs) = (&site.server, &site.jobs);
    let mut events = [
        jobs.queue().subscribe().await.expect("events"),
        jobs.queue().subscribe().await.expect("events"),
    ];
    assert_eq!(server.cli(&["DEL", &site.key("listening")]), "1");
    for events in &mut events {
        let notice = tokio::time::timeout(Duration::from_secs(60), events.recv()).await;
        assert_eq!(notice.expect("no notice"), Some(Notice::Gap));
    }
    let task = work::plain_tasks(1).remove(0);
    let id = task.id;
    jobs.queue().enqueue(vec![task]).await.expect("enqueued");
    for events in &mut events {
        queued(events, id).await;
    }
}

/// Its connection does not break, and it has seen no move, or some.
async fn a_subscription_whose_server_lost_its_data_has_a_gap(kind: Kind) {
    for seen in [0, 2] {
        let Site { server, jobs, .. } = Site::start(kind).await;
        let mut events = jobs.queue().subscribe().await.expect("events");
        let mut tasks = work::plain_tasks(seen + 1);
        let last = tasks.remove(seen as usize);
        work::enqueue(&**jobs.queue(), &tasks).await;
        for task in &tasks {
            queued(&mut events, task.id).await;
        }
        assert_eq!(server.cli(&["FLUSHALL"]), "OK");
        let notice = tokio::time::timeout(Duration::from_secs(60), events.recv()).await;
        assert_eq!(notice.expect("no notice"), Some(Notice::Gap), "{seen} seen");
        let id = last.id;
        jobs.queue().enqueue(vec![last]).await.expect("enqueued");
        queued(&mut events, id).await;
    }
}

/// Another subscription starts the numbers anew, and more moves follow than there were before the loss.
async fn a_subscription_sees_that_moves_are_numbered_anew(kind: Kind) {
    let Site { server, jobs, .. } = Site::start(kind).await;
    let queue = jobs.queue();
    let mut events = queue.subscribe().await.expect("events");
    let tasks = work::plain_tasks(2);
    work::enqueue(&**queue, &tasks).await;
    for task in &tasks {
        queued(&mut events, task.id).await;
    }
    assert_eq!(server.cli(&["FLUSHALL"]), "OK");
    let mut others = queue.subscribe().await.expect("events");
    let after = work::plain_tasks(9);
    work::enqueue(&**queue, &after).await;
    for task in &after {
        queued(&mut others, task.id).await;
    }
    let notice = tokio::time::timeout(Duration::from_secs(60), events.recv()).await;
    assert_eq!(notice.expect("no notice"), Some(Notice::Gap));
}

/// A wait takes one signal and then those behind it by another command, which fails here.
async fn a_signal_that_was_taken_is_not_lost_with_the_next_call(kind: Kind) {
    let server = Server::start(kind);
    let url = server.url().replace("//", "//u:pw@");
    let (_, name) = url.rsplit_once('=').expect("a queue");
    let rules = [
        "ACL", "SETUSER", "u", "reset", "on", ">pw", "~*", "+@all", "-lpop",
    ];
    assert_eq!(server.cli(&rules), "OK");
    let jobs = connected(&url).await;
    let (owner, ids) = (Owner::random(), [TaskId::random(), TaskId::random()]);
    let control = format!("kumi:jobs:{{{name}}}:ctl:{owner}");
    for id in ids {
        server.cli(&["RPUSH", &control, &format!("c{id}")]);
    }
    for id in ids {
        let signals = jobs
            .queue()
            .wait(&owner, Vec::new(), Duration::from_secs(5));
        assert_eq!(signals.await.expect("signals"), [Signal::Cancel(id)]);
    }
}

async fn large_payloads_end_a_claim_and_stay_in_order(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server.url()).await;
    let queue = jobs.queue();
    let payload = format!("\"{}\"", "x".repeat(200 << 10));
    let task = |_| NewTask::new(TaskEnvelope::json("step", payload.clone()));
    let tasks: Vec<NewTask> = (0..20).map(task).collect();
    queue.enqueue(tasks.clone()).await.expect("enqueued");
    let ask = Ask {
        owner: Owner::random(),
        nonce: 1,
        lease: Duration::from_secs(15),
        types: vec![Room {
            task_type: "step".into(),
            room: 100,
        }],
        max: 100,
    };
    let mut claimed = Vec::new();
    while claimed.len() < 20 {
        let turn = queue.turn(Vec::new(), ask.clone()).await.expect("a turn");
        let bytes: usize = turn
            .claims
            .iter()
            .map(|claim| claim.envelope.payload.len())
            .sum();
        // Payloads are read in groups of eight.
        assert!(bytes < (1 << 20) + 8 * payload.len(), "{bytes} bytes");
        assert!(!turn.claims.is_empty());
        claimed.extend(turn.claims.iter().map(|claim| claim.id));
        assert_eq!(turn.more, claimed.len() < 20);
        let counts = queue.counts_by_state().await.expect("counts");
        let left = (20 - claimed.len()) as u64;
        assert_eq!(counts.of(TaskState::Queued), left);
        assert_eq!(counts.of(TaskState::Running), claimed.len() as u64);
    }
    assert_eq!(claimed, ids(&tasks));
}

/// Enqueues that wait for a replica which is not there hold up no heartbeat.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_replicas_holds_up_no_other_call() {
    let server = Server::start(Kind::Redis);
    let jobs = connected(&format!("{}&replicas=1", server.url())).await;
    // Each is given up after a second.
    let enqueue = |_| {
        let queue = jobs.queue().clone();
        tokio::spawn(async move { queue.enqueue(work::plain_tasks(1)).await })
    };
    let enqueues: Vec<_> = (0..128).map(enqueue).collect();
    tokio::task::block_in_place(|| {
        crate::servers::wait_until("a wait for replicas", || {
            !server
                .cli(&["INFO", "clients"])
                .contains("blocked_clients:0")
        });
    });
    let owner = Owner::random();
    let beat = jobs.queue().heartbeat(&owner, Duration::from_secs(15));
    assert_eq!(beat.await.expect("a reply"), Lease::Lost);
    let are_done = enqueues.iter().all(tokio::task::JoinHandle::is_finished);
    assert!(!are_done, "the heartbeat waited for all enqueues");
    for enqueue in enqueues {
        let failed = enqueue.await.expect("no panic").expect_err("no replica");
        assert!(
            matches!(failed, QueueError::NotReplicated { .. }),
            "{failed:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_loses_nothing_that_a_replica_confirmed() {
    let mut cluster = tokio::task::spawn_blocking(Cluster::start)
        .await
        .expect("a cluster");
    let url = cluster.url();
    let queue = url.split("queue=").nth(1).expect("a name").to_owned();
    let options = RedisOptions::from_url(&url).expect("a URL").replicas(1);
    let queue_on_cluster = options.connect().await.expect("a queue");
    let jobs = Jobs::with_queue(Arc::new(queue_on_cluster));
    let tasks = work::tasks(400);
    let effects = Effects::default();
    let (mut kept, mut unsure) = (Vec::new(), 0);
    let done = async {
        for (index, batch) in tasks.chunks(40).enumerate() {
            if index == 4 {
                let primary = cluster.primary_of(&format!("kumi:jobs:{{{queue}}}:"));
                cluster.kill(primary);
            }
            // An enqueue that was not confirmed is repeated by its producer until it is; the ids are the same.
            loop {
                match jobs.queue().enqueue(batch.to_vec()).await {
                    Ok(_) => break,
                    // The new primary has no replica: from here on nothing can be confirmed twice.
                    Err(QueueError::NotReplicated { .. }) => {
                        unsure += batch.len();
                        break;
                    }
                    Err(QueueError::Io(_)) => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            kept.extend(ids(batch));
        }
        work::all_succeed(&**jobs.queue(), kept).await;
    };
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    println!(
        "{unsure} of {} tasks were enqueued without a replica's word",
        tasks.len()
    );
    work::check_sums(&**jobs.queue(), tasks.len()).await;
    check_effects(&effects, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_starts_during_a_failover_loses_no_task() {
    let mut cluster = tokio::task::spawn_blocking(Cluster::start)
        .await
        .expect("a cluster");
    let url = format!("{}&replicas=1", cluster.url());
    let before = connected(&url).await;
    let tasks = work::tasks(100);
    work::enqueue(&**before.queue(), &tasks).await;
    drop(before);
    let name = url.split(['=', '&']).nth(1).expect("a name");
    let primary = cluster.primary_of(&format!("kumi:jobs:{{{name}}}:"));
    cluster.kill(primary);
    // Another node than the one that is gone.
    let other = cluster.ports[(primary + 1) % cluster.ports.len()];
    let url = format!("redis://127.0.0.1:{other}/?queue={name}");
    let jobs = connected(&url).await;
    let effects = Effects::default();
    let done = work::all_succeed(&**jobs.queue(), ids(&tasks));
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    work::check_sums(&**jobs.queue(), tasks.len()).await;
    check_effects(&effects, 100);
}

async fn many_tasks_due_at_one_instant_all_run(kind: Kind) {
    let count = match std::env::var_os("KUMI_JOBS_LONG") {
        Some(_) => 50_000,
        None => 2_000,
    };
    let server = Server::start(kind);
    // The clock stands still while tasks are enqueued, so that all are due in the same millisecond.
    let clock = Arc::new(AtomicU64::new(1_700_000_000_000));
    let options = RedisOptions::from_url(&server.url())
        .expect("a URL")
        .virtual_clock(clock.clone());
    let queue = Arc::new(options.connect().await.expect("a queue"));
    let retention = kumi_jobs::Retention {
        succeeded: count,
        ..kumi_jobs::Retention::default()
    };
    queue.keep(retention).await.expect("a reply");
    let jobs = Jobs::with_queue(queue.clone());
    let mut tasks = work::plain_tasks(count as u32);
    let delay = Duration::from_secs(60);
    tasks.iter_mut().for_each(|task| task.delay = delay);
    work::enqueue(&*queue, &tasks).await;
    let counts = queue.counts_by_state().await.expect("counts");
    assert_eq!(counts.of(TaskState::Scheduled), count as u64);
    clock.fetch_add(delay.as_millis() as u64, Ordering::SeqCst);
    let effects = Effects::default();
    let done = work::all_succeed(&*queue, ids(&tasks));
    work::worker(&jobs, &effects)
        .concurrency(200)
        .run_until(done)
        .await
        .expect("it worked");
    work::check_sums(&*queue, tasks.len()).await;
}

async fn a_producer_whose_clock_is_wrong_changes_nothing(kind: Kind) {
    let server = Server::start(kind);
    let jobs = connected(&server.url()).await;
    let queue = jobs.queue();
    let real = {
        let task = NewTask::new(TaskEnvelope::json("step", "{}"));
        queue.enqueue(vec![task.clone()]).await.expect("enqueued");
        queue
            .get_status(task.id)
            .await
            .expect("a reply")
            .expect("known")
            .created_at
    };
    let hour = 3_600_000;
    for wrong in [real.as_ms() - hour, real.as_ms() + hour] {
        let mut task = NewTask::new(TaskEnvelope::json("step", "{}"));
        task.id = TaskId::from_parts(Timestamp::from_ms(wrong), fastrand::u128(..));
        task.delay = Duration::from_secs(60);
        queue.enqueue(vec![task.clone()]).await.expect("enqueued");
        let record = queue
            .get_status(task.id)
            .await
            .expect("a reply")
            .expect("known");
        assert!(record.created_at.since(real) < Duration::from_secs(60));
        let due = record
            .next_run_at
            .expect("it waits")
            .since(record.created_at);
        assert_eq!(due, Duration::from_secs(60));
    }
}

async fn a_server_that_evicts_is_refused(kind: Kind) {
    let server = Server::start(kind);
    server.cli(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    connected(&server.url()).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "100mb"]);
    let error = Jobs::connect(&server.url()).await.expect_err("it evicts");
    assert!(error.to_string().contains("noeviction"), "{error}");
}

async fn a_full_server_finishes_what_it_holds(kind: Kind) {
    let server = Server::start(kind);
    let url = server.url();
    let jobs = connected(&url).await;
    let tasks = work::tasks(50);
    work::enqueue(&**jobs.queue(), &tasks).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    // A queue that is new, and the one with tasks, which a new connection works off.
    connected(&server.url()).await;
    let jobs = connected(&url).await;
    jobs.queue().poke(&Owner::random()).await.expect("poked");
    let mut events = jobs.queue().subscribe().await.expect("events");
    let error = jobs
        .queue()
        .enqueue(work::tasks(1))
        .await
        .expect_err("it is full");
    assert!(matches!(error, QueueError::Server(_)), "{error:?}");
    let effects = Effects::default();
    let done = work::all_succeed(&**jobs.queue(), ids(&tasks));
    work::worker(&jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    work::check_sums(&**jobs.queue(), tasks.len()).await;
    let moved = tokio::time::timeout(Duration::from_secs(30), events.recv()).await;
    assert!(matches!(moved, Ok(Some(Notice::Moved(_)))), "{moved:?}");
}

async fn a_command_that_the_user_may_not_run_in_a_script_is_unauthorized(kind: Kind) {
    let server = Server::start(kind);
    let url = server.url().replace("//", "//u:pw@");
    let (_, queue) = url.rsplit_once('=').expect("a queue");
    // The keys that a connection needs, and what a script is called with.
    let keys = [
        "queues",
        &format!("{{{queue}}}:version"),
        &format!("{{{queue}}}:"),
    ];
    let keys = keys.map(|key| format!("~kumi:jobs:{key}")).join(" ");
    for rules in ["~* +@all -hset", &format!("{keys} +@all")] {
        let mut command = vec!["ACL", "SETUSER", "u", "reset", "on", ">pw"];
        command.extend(rules.split(' '));
        assert_eq!(server.cli(&command), "OK");
        let jobs = connected(&url).await;
        let refused = jobs.queue().enqueue(work::tasks(1)).await;
        let error = refused.expect_err("it may not");
        assert!(error.is_unauthorized(), "{error:?}");
    }
    let jobs = connected(&server.url()).await;
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    let full = jobs.queue().enqueue(work::tasks(1)).await;
    assert!(!full.expect_err("it is full").is_unauthorized());
}

async fn a_schedule_that_cannot_be_read_hides_no_other(kind: Kind) {
    let site = Site::start(kind).await;
    let (server, jobs) = (&site.server, &site.jobs);
    for name in ["a", "b", "c"] {
        let schedule = Schedule {
            name: name.into(),
            expression: "0 9 * * *".into(),
            zone: "UTC".into(),
            envelope: TaskEnvelope::json("step", "{}"),
            max_attempts: 5,
            priority: Priority::default(),
            last_slot: Timestamp::default(),
        };
        jobs.put_schedule(schedule).await.expect("stored");
    }
    let spoil = |hash: &str, name: &str| {
        let key = site.key(hash);
        assert_eq!(server.cli(&["HSET", &key, name, "{"]), "0", "it is there");
    };
    spoil("cron", "a");
    spoil("cron:last", "b");
    let (_, schedules) = jobs.queue().schedules().await.expect("a reply");
    let names: Vec<&str> = schedules.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["c"]);
    assert!(jobs.queue().remove_schedule("a").await.expect("a reply"));
}

/// Records as a program in another language may write them.
async fn a_task_that_cannot_be_read_ends_and_stops_no_other(kind: Kind) {
    let site = Site::start(kind).await;
    let (server, queue) = (&site.server, site.jobs.queue());
    let tasks = work::plain_tasks(4);
    work::enqueue(&**queue, &tasks).await;
    let record_of = |index: usize| site.record_of(tasks[index].id);
    let default = ["HSET", &record_of(0), "m", "", "a", "", "C", ""];
    assert_eq!(server.cli(&default), "3");
    let many = ["HSET", &record_of(1), "m", "many"];
    assert_eq!(server.cli(&many), "1");
    let not_utf8 = "return redis.call('HSET', KEYS[1], 'C', '\\255')";
    let media = ["EVAL", not_utf8, "1", &record_of(2)];
    assert_eq!(server.cli(&media), "1");
    // Last, a task whose id is none.
    let payload = r#"{"number":9,"key":null}"#;
    server.cli(&["HSET", &site.key("t:mine"), "y", "step", "c", "1"]);
    server.cli(&["HSET", &site.key("payload"), "mine", payload]);
    server.cli(&["HINCRBY", &site.key("counts"), "q:step", "1"]);
    server.cli(&["RPUSH", &site.key("ready:1:step"), "mine"]);
    let expected = [
        (TaskState::Succeeded, ""),
        (TaskState::Dead, "the maximum of attempts is 'many'"),
        (TaskState::Dead, "the media type is not UTF-8"),
        (TaskState::Succeeded, ""),
    ];
    let done = async {
        for (task, (state, text)) in tasks.iter().zip(expected) {
            let done = tokio::time::timeout(Duration::from_secs(60), queue.done(task.id));
            let record = done.await.expect("no hang").expect("a reply");
            let record = record.expect("known");
            let error = record.last_error.unwrap_or_default();
            assert_eq!(record.state, state, "{error}");
            assert!(error.ends_with(text), "{error}");
        }
        let ended = async {
            while server.cli(&["HGET", &site.key("t:mine"), "s"]) != "d" {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(60), ended);
        ended.await.expect("the last one is dead");
    };
    let effects = Effects::default();
    work::worker(&site.jobs, &effects)
        .run_until(done)
        .await
        .expect("it worked");
    assert!(effects.times(0) >= 1 && effects.times(3) >= 1);
    let counts = queue.counts_by_state().await.expect("counts");
    assert_eq!(counts.of(TaskState::Dead), 3);
    let page = queue.list(&Filter::default(), &Paging::newest(100)).await;
    assert_eq!(page.expect("a page").tasks.len(), 4, "all that have an id");
}

/// The record of a task that runs is spoiled. Only the worker that runs it ends it.
async fn asking_what_an_owner_runs_changes_nothing(kind: Kind) {
    let site = Site::start(kind).await;
    let (server, queue) = (&site.server, site.jobs.queue());
    let tasks = work::plain_tasks(2);
    work::enqueue(&**queue, &tasks).await;
    let owner = Owner::random();
    let ask = Ask {
        owner: owner.clone(),
        nonce: 1,
        lease: Duration::from_secs(60),
        types: vec![Room {
            task_type: "step".into(),
            room: 2,
        }],
        max: 2,
    };
    let turn = queue.turn(Vec::new(), ask).await.expect("a turn");
    assert_eq!(turn.claims.len(), 2);
    let record = site.record_of(tasks[0].id);
    assert_eq!(server.cli(&["HSET", &record, "m", "many"]), "1");
    let lease = || server.cli(&["ZSCORE", &site.key("owners"), &owner.to_string()]);
    let before = lease();
    let ids = |claims: Vec<kumi_jobs::Claim>| claims.iter().map(|c| c.id).collect::<Vec<_>>();
    let running = queue.running(&owner).await.expect("claims");
    assert_eq!(ids(running), [tasks[1].id]);
    assert_eq!(server.cli(&["HGET", &record, "s"]), "r");
    assert_eq!(lease(), before);

    let held = queue.recover(&owner, Duration::from_secs(90)).await;
    assert_eq!(ids(held.expect("claims")), [tasks[1].id]);
    assert_eq!(server.cli(&["HGET", &record, "s"]), "d");
    assert_ne!(lease(), before);
}
