//! Queues of another format: every script refuses them, a worker drains, and an upgrade moves them.

use crate::servers::{Kind, Server, on_both_servers};
use crate::work::{Site, connected};
use kumi_jobs::{
    Ask, Context, Execution, Filter, Gone, Jobs, NewTask, Owner, Paging, Priority, QueueError,
    RedisOptions, Room, Schedule, Serial, TaskEnvelope, TaskHandler, TaskState, Timestamp, Worker,
    WorkerError,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

on_both_servers![
    every_script_refuses_another_format,
    a_worker_of_a_queue_that_is_moved_drains,
    a_worker_of_a_queue_that_was_moved_ends,
    a_queue_of_the_format_before_is_moved,
    an_upgrade_finds_the_tasks_that_wait_in_serial_lines,
];

fn task() -> NewTask {
    NewTask::new(TaskEnvelope::json("a", "{}"))
}

fn ask(owner: &Owner) -> Ask {
    Ask {
        owner: owner.clone(),
        nonce: 1,
        lease: Duration::from_secs(15),
        types: vec![Room {
            task_type: "a".into(),
            room: 1,
        }],
        max: 1,
    }
}

async fn every_script_refuses_another_format(kind: Kind) {
    let site = Site::start(kind).await;
    let (server, jobs, owner) = (&site.server, &site.jobs, Owner::random());
    let queue = jobs.queue();
    let enqueued = queue.enqueue(vec![task(), task()]).await.expect("enqueued");
    let id = enqueued[1].id();
    let claim = queue.dequeue_ready(ask(&owner)).await.expect("a claim");
    let claim = &claim[0];
    let schedule = || Schedule {
        name: "s".into(),
        expression: "0 9 * * *".into(),
        zone: "UTC".into(),
        envelope: TaskEnvelope::json("a", "{}"),
        max_attempts: 5,
        priority: Priority::default(),
        last_slot: Timestamp::default(),
    };
    for version in ["2", "4", "2>3", "30"] {
        server.cli(&["SET", &site.key("version"), version]);
        let keys = || {
            let keys = server.cli(&["KEYS", "*"]);
            keys.lines().map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let before = keys();
        let check = |what: &str, error: Option<QueueError>| match error {
            Some(QueueError::Format { queue, ours: 3 }) => assert_eq!(queue, version, "{what}"),
            other => panic!("{what}: {other:?}"),
        };
        macro_rules! refused {
            ($call:ident($($arg:expr),*)) => {
                check(stringify!($call), queue.$call($($arg),*).await.err())
            };
        }
        let (gone, time) = (Gone::Life(owner.clone()), Timestamp::default());
        refused!(enqueue(vec![task()]));
        refused!(turn(Vec::new(), ask(&owner)));
        refused!(mark_succeeded(claim, None));
        refused!(heartbeat(&owner, Duration::from_secs(15)));
        refused!(running(&owner));
        refused!(release_owner(&gone, Duration::ZERO));
        refused!(reap());
        refused!(save_step(claim, "x", "1".into()));
        refused!(cancel(id));
        refused!(get_status(id));
        refused!(counts_by_state());
        refused!(cancel_all(vec![id]));
        refused!(list(&Filter::default(), &Paging::newest(10)));
        refused!(list_ids(&Filter::default(), &Paging::newest(10)));
        refused!(forget(&Filter::default(), None));
        refused!(owners());
        refused!(requeue(vec![id]));
        refused!(purge(vec![id]));
        refused!(pause(true));
        refused!(limit("a", Some(1)));
        refused!(done(id));
        refused!(put_schedule(schedule()));
        refused!(remove_schedule("s"));
        refused!(schedules());
        refused!(fire("s", time, time, None));
        check("connect", Jobs::connect(&site.url()).await.err());
        assert_eq!(keys(), before, "nothing is written");
    }
}

/// Says when it runs, and ends when it is told to.
struct Gate {
    runs: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl TaskHandler<()> for Gate {
    fn task_type(&self) -> &str {
        "a"
    }

    fn execute(&self, _payload: bytes::Bytes, _context: Context<()>) -> Execution {
        let (runs, go_on) = (self.runs.clone(), self.go_on.clone());
        Box::pin(async move {
            runs.notify_one();
            go_on.notified().await;
            Ok("7".into())
        })
    }
}

/// A worker that runs the first of two tasks when the queue's version changes. Answers how it ended, and the states.
async fn worker_at(kind: Kind, version: &str) -> (Result<(), WorkerError>, [TaskState; 2]) {
    let site = Site::start(kind).await;
    let jobs = &site.jobs;
    let enqueued = jobs.queue().enqueue(vec![task(), task()]).await;
    let ids = enqueued.expect("enqueued");
    let (runs, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gate = Gate {
        runs: runs.clone(),
        go_on: go_on.clone(),
    };
    let worker = Worker::new(jobs, ()).handler(gate).concurrency(2);
    let worker = tokio::spawn(
        worker
            .limit_type("a", 1)
            .run_until(std::future::pending::<()>()),
    );
    runs.notified().await;
    site.server.cli(&["SET", &site.key("version"), version]);
    go_on.notify_one();
    let ended = tokio::time::timeout(Duration::from_secs(60), worker).await;
    let ended = ended.expect("it ends").expect("no panic");
    site.server.cli(&["SET", &site.key("version"), "3"]);
    let mut states = [TaskState::Queued; 2];
    for (state, made) in states.iter_mut().zip(&ids) {
        let record = jobs.get_status(made.id()).await.expect("a reply");
        *state = record.expect("it is known").state;
    }
    (ended, states)
}

async fn a_worker_of_a_queue_that_is_moved_drains(kind: Kind) {
    let (ended, states) = worker_at(kind, "3>4").await;
    assert_eq!(states, [TaskState::Succeeded, TaskState::Queued]);
    let error = ended.expect_err("it says why").to_string();
    assert!(error.contains("format 3>4"), "{error}");
}

async fn a_worker_of_a_queue_that_was_moved_ends(kind: Kind) {
    let (ended, states) = worker_at(kind, "4").await;
    assert_eq!(states, [TaskState::Running, TaskState::Queued]);
    let error = ended.expect_err("it says why").to_string();
    assert!(error.contains("format 4"), "{error}");
}

/// The keys that a program of format 2 left: a task that waits, and one that a worker ran.
fn write_format_2(server: &Server, prefix: &str) {
    let now = server.cli(&["TIME"]);
    let seconds: u64 = now
        .lines()
        .next()
        .expect("seconds")
        .parse()
        .expect("digits");
    let (ago, lease_end) = (
        format!("{}000", seconds - 60),
        format!("{}000", seconds - 45),
    );
    let (waiting, ran) = ("01kq0000000000000000000001", "01kq0000000000000000000002");
    let owner = "w~0000000000000001";
    let token = "1-00000000000000ab";
    let commands: &[&[&str]] = &[
        &["SET", "version", "2"],
        &["SET", "tokens", "1"],
        &["HSET", "t:waiting", "y", "a", "c", &ago],
        &[
            "HSET", "t:ran", "y", "a", "c", &ago, "s", "r", "u", &ago, "a", "1", "k", token, "o",
            owner,
        ],
        &["HSET", "payload", waiting, "{}", ran, "{}"],
        &["RPUSH", "ready:1:a", waiting],
        &["HSET", "counts", "q:a", "1", "r:a", "1"],
        &["HSET", &format!("run:{owner}"), ran, &format!("{token} a")],
        &["ZADD", "owners", &lease_end, owner],
        &["HSET", "seen", owner, &ago],
        &["ZADD", "served", &ago, "a"],
    ];
    for command in commands {
        let key = command[1].replace("waiting", waiting).replace("ran", ran);
        let key = format!("{prefix}{key}");
        let mut words = vec![command[0], &key];
        words.extend(&command[2..]);
        server.cli(&words);
    }
}

async fn a_queue_of_the_format_before_is_moved(kind: Kind) {
    let server = Server::start(kind);
    let url = server.url();
    let name = url.split("queue=").nth(1).expect("a name");
    let prefix = format!("kumi:jobs:{{{name}}}:");
    let upgrade = async |force: bool| {
        let options = RedisOptions::from_url(&url).expect("a URL");
        options.upgrade(force).await
    };
    let error = upgrade(false).await.expect_err("there is none");
    assert!(error.to_string().contains("there is no queue"), "{error}");
    write_format_2(&server, &prefix);
    let error = Jobs::connect(&url).await.expect_err("another format");
    assert!(error.to_string().contains("kumi jobs upgrade"), "{error}");
    // A worker that asked a moment ago is one that does not look at the version.
    let now = format!(
        "{}000",
        server.cli(&["TIME"]).lines().next().expect("seconds")
    );
    server.cli(&["ZADD", &format!("{prefix}served"), &now, "b"]);
    let error = upgrade(false).await.expect_err("a worker is alive");
    assert!(error.to_string().contains("the type b"), "{error}");
    server.cli(&["ZREM", &format!("{prefix}served"), "b"]);
    assert_eq!(upgrade(false).await.expect("it is moved"), 2);
    assert_eq!(upgrade(true).await.expect("it was moved"), 3);
    let jobs = connected(&url).await;
    let counts = jobs.queue().counts_by_state().await.expect("counts");
    assert_eq!(counts.total(), 2);
    let (runs, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let gate = Gate {
        runs,
        go_on: go_on.clone(),
    };
    let done = async {
        loop {
            go_on.notify_one();
            let counts = jobs.queue().counts_by_state().await.expect("counts");
            if counts.of(TaskState::Succeeded) == 2 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let worker = Worker::new(&jobs, ()).handler(gate).run_until(done);
    let worked = tokio::time::timeout(Duration::from_secs(60), worker).await;
    worked.expect("both tasks run").expect("it worked");
}

async fn an_upgrade_finds_the_tasks_that_wait_in_serial_lines(kind: Kind) {
    let site = Site::start(kind).await;
    let tasks: Vec<NewTask> = (0..700)
        .map(|n| {
            let mut task = task();
            task.serial = (n % 2 == 0).then(|| Serial {
                key: "k".into(),
                hold_on_dead: false,
            });
            task
        })
        .collect();
    for batch in tasks.chunks(kumi_jobs::ENQUEUE_LIMIT) {
        let enqueued = site.jobs.queue().enqueue(batch.to_vec()).await;
        enqueued.expect("enqueued");
    }
    let blocked = site.key("blocked");
    let before = site
        .server
        .cli(&["ZRANGE", &blocked, "0", "-1", "WITHSCORES"]);
    assert_eq!(before.lines().count(), 2 * 349);
    // Format 2 has no such key.
    site.server.cli(&["DEL", &blocked]);
    site.server.cli(&["SET", &site.key("version"), "2"]);
    let options = RedisOptions::from_url(&site.url()).expect("a URL");
    assert_eq!(options.upgrade(true).await.expect("it is moved"), 2);
    let after = site
        .server
        .cli(&["ZRANGE", &blocked, "0", "-1", "WITHSCORES"]);
    assert_eq!(after, before);
    let page = site
        .jobs
        .queue()
        .list(&Filter::of(TaskState::Blocked), &Paging::oldest(100))
        .await;
    assert_eq!(page.expect("a page").tasks.len(), 100);
}
