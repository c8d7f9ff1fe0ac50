//! The task that the fault tests run, and the sums they check.

use crate::servers::{Kind, Server};
use kumi_jobs::{
    Context, Filter, Jobs, NewTask, Options, Paging, Queue, Serial, Task, TaskError, TaskId,
    TaskState, Worker,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A numbered task, perhaps of a serial key.
#[derive(Serialize, Deserialize, Clone)]
pub(crate) struct Step {
    pub(crate) number: u32,
    pub(crate) key: Option<u32>,
}

impl Task for Step {
    const TYPE: &'static str = "step";
    type Output = u32;
    fn options() -> Options {
        Options::new().retry(kumi_jobs::Fixed(Duration::from_millis(50)))
    }
}

/// A server of its own, and a queue on it.
pub(crate) struct Site {
    pub(crate) server: Server,
    pub(crate) jobs: Jobs,
    /// What all keys of the queue begin with.
    prefix: String,
}

impl Site {
    pub(crate) async fn start(kind: Kind) -> Self {
        Self::with_args(kind, &[]).await
    }

    pub(crate) async fn with_args(kind: Kind, args: &[&str]) -> Self {
        let server = Server::with_args(kind, args);
        let url = server.url();
        let name = url.split("queue=").nth(1).expect("a name");
        Self {
            prefix: format!("kumi:jobs:{{{name}}}:"),
            jobs: connected(&url).await,
            server,
        }
    }

    /// The URL of the queue.
    pub(crate) fn url(&self) -> String {
        let name = self.prefix.split(['{', '}']).nth(1).expect("a name");
        format!("redis://127.0.0.1:{}/?queue={name}", self.server.port)
    }

    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The key of a task's record.
    pub(crate) fn record_of(&self, id: TaskId) -> String {
        let stored = self.server.cli(&["HKEYS", &self.key("payload")]);
        let is_same = |text: &&str| text.parse::<TaskId>() == Ok(id);
        let stored = stored.lines().find(is_same).expect("it is stored");
        self.key(&format!("t:{stored}"))
    }
}

pub(crate) async fn connected(url: &str) -> Jobs {
    Jobs::connect(url).await.expect("a queue")
}

pub(crate) fn ids(tasks: &[NewTask]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id).collect()
}

/// Tasks `0..count` took effect, each serial line in its order.
pub(crate) fn check_effects(effects: &Effects, count: u32) {
    for number in 0..count {
        assert!(effects.times(number) >= 1, "{number} took no effect");
    }
    assert_eq!(effects.order_violations(), 0);
}

/// The effects of handlers in this process, in their order.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<Mutex<Vec<Step>>>);

impl Effects {
    pub(crate) fn times(&self, number: u32) -> usize {
        let effects = self.0.lock().expect("no panic");
        effects.iter().filter(|step| step.number == number).count()
    }

    /// How often a task of a serial key took effect after a later one.
    pub(crate) fn order_violations(&self) -> usize {
        let effects = self.0.lock().expect("no panic");
        let mut last: BTreeMap<u32, u32> = BTreeMap::new();
        let mut violations = 0;
        for step in effects.iter() {
            if let Some(key) = step.key {
                let before = last.insert(key, step.number);
                violations += usize::from(before.is_some_and(|before| before > step.number));
            }
        }
        violations
    }
}

async fn step(step: Step, cx: Context<Effects>) -> Result<u32, TaskError> {
    let number = step.number;
    cx.state().0.lock().expect("no panic").push(step);
    tokio::task::yield_now().await;
    Ok(number)
}

pub(crate) fn worker(jobs: &Jobs, effects: &Effects) -> Worker<Effects> {
    Worker::new(jobs, effects.clone())
        .handle(step)
        .concurrency(20)
        .lease(Duration::from_secs(3))
}

/// As `worker`, with a handler that ends at its first poll.
pub(crate) fn quick_worker(jobs: &Jobs, effects: &Effects) -> Worker<Effects> {
    let quick = |step: Step, cx: Context<Effects>| {
        let number = step.number;
        cx.state().0.lock().expect("no panic").push(step);
        std::future::ready(Ok(number))
    };
    Worker::new(jobs, effects.clone())
        .handle(quick)
        .concurrency(10)
        .lease(Duration::from_secs(3))
}

/// Tasks `0..count`, every second one in one of four serial lines.
pub(crate) fn tasks(count: u32) -> Vec<NewTask> {
    tasks_with_keys(count, |number| {
        number.is_multiple_of(2).then_some(number % 8)
    })
}

/// Tasks `0..count` that may all run at once.
pub(crate) fn plain_tasks(count: u32) -> Vec<NewTask> {
    tasks_with_keys(count, |_| None)
}

fn tasks_with_keys(count: u32, key_of: impl Fn(u32) -> Option<u32>) -> Vec<NewTask> {
    let task = |number: u32| {
        let key = key_of(number);
        let payload = serde_json::to_vec(&Step { number, key }).expect("JSON");
        let mut task = NewTask::new(kumi_jobs::TaskEnvelope::json(Step::TYPE, payload));
        task.serial = key.map(|key| Serial {
            key: format!("key-{key}").into(),
            hold_on_dead: false,
        });
        task
    };
    (0..count).map(task).collect()
}

pub(crate) async fn enqueue(queue: &dyn Queue, tasks: &[NewTask]) {
    for batch in tasks.chunks(kumi_jobs::ENQUEUE_LIMIT) {
        queue.enqueue(batch.to_vec()).await.expect("enqueued");
    }
}

/// Waits until all tasks succeeded.
pub(crate) async fn all_succeed(queue: &dyn Queue, ids: Vec<TaskId>) {
    for id in ids {
        let done = tokio::time::timeout(Duration::from_secs(90), queue.done(id)).await;
        let record = done.expect("no hang").expect("a reply").expect("known");
        assert_eq!(record.state, TaskState::Succeeded, "{record:?}");
    }
}

/// enqueued = succeeded, and nothing is left anywhere else.
pub(crate) async fn check_sums(queue: &dyn Queue, enqueued: usize) {
    let counts = queue.counts_by_state().await.expect("counts");
    assert_eq!(
        counts.of(TaskState::Succeeded),
        enqueued as u64,
        "{counts:?}"
    );
    assert_eq!(counts.total(), enqueued as u64, "{counts:?}");
    let mut running = Filter::of(TaskState::Running);
    running.states.push(TaskState::Queued);
    let page = queue.list(&running, &Paging::newest(100)).await;
    let page = page.expect("a page");
    assert!(page.tasks.is_empty());
}
