//! The workers of a node: one per queue, with the commands of `work` entries and the handlers of the program around it.
//!
//! A worker is an owner of the node's life, `@cluster/name~life/work`. When the node takes a new life, the worker moves on to
//! it: what it runs is reported under the old one. It claims while the node is a member and is not draining, and it is begun
//! again when the route to the store changes.
//!
//! A queue may declare a worker gone that lives: it was silent for some seconds, and a node that did not see it among the
//! members asked for its release. All owners of that life are refused then, for ever. The worker goes on as an owner of the
//! next higher life of the name. No member has that life, which the releasers of the others leave alone while it is later
//! than the member's; when the node dies, they find it by comparing, or its lease ends.

use super::lives::Standing;
use super::programs::{Launcher, Output, Program, TaskProgram};
use super::route::StoreRoute;
use super::store_link::StoreLink;
use crate::config::Work;
use kumi_common::{Chain, Name, NameAndLife, doubled};
use kumi_jobs::{
    ClusterId, Context, Execution, Jobs, LEASE, NodeLife, Options, Owner, QueueError, RedisOptions,
    Task, TaskError, TaskHandler, Worker, WorkerControl, WorkerError,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// The part of the node's life that its worker of a queue is.
const PART: &str = "work";

/// Tasks of the program's own handlers that run at once in one queue.
const HANDLER_CONCURRENCY: usize = 100;

/// The pause after a queue that could not be connected, or a worker that ended with an error.
const RETRY: Duration = Duration::from_secs(1);

/// The longest pause after a worker was declared gone although it lives. It doubles from `RETRY` each time.
const RELEASED_RETRY_MOST: Duration = Duration::from_secs(60);

/// Adds a handler of the program around the node to a worker.
pub(crate) type AddHandler =
    Arc<dyn Fn(Worker<()>, &Arc<WorkCounters>) -> Worker<()> + Send + Sync>;

/// What the worker of one queue runs.
#[derive(Clone, Default)]
pub(crate) struct QueuePlan {
    /// The name of the queue.
    pub(crate) queue: String,
    pub(crate) entries: Vec<Work>,
    pub(crate) handlers: Vec<AddHandler>,
}

impl QueuePlan {
    /// One plan per queue. Entries without a queue, and handlers, belong to the default one.
    pub(crate) fn of(work: &[Work], handlers: Vec<AddHandler>, default_queue: &str) -> Vec<Self> {
        let mut plans: BTreeMap<String, Self> = BTreeMap::new();
        for entry in work {
            let queue = entry.queue.as_deref().unwrap_or(default_queue);
            let plan = plans.entry(queue.to_owned()).or_default();
            plan.entries.push(entry.clone());
        }
        if !handlers.is_empty() {
            let plan = plans.entry(default_queue.to_owned()).or_default();
            plan.handlers = handlers;
        }
        let named = plans
            .into_iter()
            .map(|(queue, plan)| Self { queue, ..plan });
        named.collect()
    }

    /// Tasks that it may run at once.
    pub(crate) fn concurrency(&self) -> usize {
        let entries: usize = self.entries.iter().map(|entry| entry.concurrency).sum();
        match self.handlers.is_empty() {
            true => entries,
            false => entries + HANDLER_CONCURRENCY,
        }
    }

    fn lease(&self) -> Duration {
        let leases = self.entries.iter().map(|entry| entry.lease);
        leases.max().unwrap_or(LEASE)
    }
}

/// What the worker of one queue did.
#[derive(Debug, Default)]
pub(crate) struct WorkCounters {
    running: AtomicU64,
    done: AtomicU64,
}

impl WorkCounters {
    pub(crate) fn running(&self) -> u64 {
        self.running.load(Ordering::Relaxed)
    }

    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Counts a task that runs until the reply is dropped.
    fn begin(self: &Arc<Self>) -> Begun {
        self.running.fetch_add(1, Ordering::Relaxed);
        Begun(self.clone())
    }
}

struct Begun(Arc<WorkCounters>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        self.0.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// An async function as a handler that is added to every worker of the default queue.
pub(crate) fn handler<T, F, Fut>(run: F) -> AddHandler
where
    T: Task,
    F: Fn(T, Context<()>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T::Output, TaskError>> + Send + 'static,
{
    let run = Arc::new(run);
    Arc::new(move |worker: Worker<()>, counters: &Arc<WorkCounters>| {
        let (run, counters) = (run.clone(), counters.clone());
        worker.handle(move |task: T, context: Context<()>| {
            let begun = counters.begin();
            let running = run(task, context);
            async move {
                let _begun = begun;
                running.await
            }
        })
    })
}

/// A command that is counted.
struct Counted(TaskProgram, Arc<WorkCounters>);

impl TaskHandler<()> for Counted {
    fn task_type(&self) -> &str {
        TaskHandler::<()>::task_type(&self.0)
    }

    fn options(&self) -> Options {
        TaskHandler::<()>::options(&self.0)
    }

    fn execute(&self, payload: bytes::Bytes, context: Context<()>) -> Execution {
        let begun = self.1.begin();
        let running = self.0.execute(payload, context);
        Box::pin(async move {
            let _begun = begun;
            running.await
        })
    }
}

/// What all workers of a node need.
#[derive(Clone)]
pub(crate) struct WorkContext {
    pub(crate) link: StoreLink,
    pub(crate) cluster: ClusterId,
    pub(crate) standing: watch::Receiver<Standing>,
    pub(crate) launcher: Launcher,
    pub(crate) output: Arc<dyn Output>,
    /// How long running tasks may go on after the stop.
    pub(crate) stop_within: Duration,
}

/// The worker of one queue, until `stop`: then its running tasks end, or are given back after their time.
pub(crate) struct QueueWorker {
    pub(crate) plan: QueuePlan,
    pub(crate) context: WorkContext,
    pub(crate) counters: Arc<WorkCounters>,
}

impl QueueWorker {
    pub(crate) async fn run(self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let ready = async {
                let route = self.context.link.up().await;
                // Before the first join the node has no life to work in.
                let mut standing = self.context.standing.clone();
                let joined = standing.wait_for(|standing| standing.life.is_some()).await;
                let life = joined.ok().and_then(|standing| standing.life.clone());
                (route, life)
            };
            let (route, life) = tokio::select! {
                ready = ready => ready,
                () = stop.cancelled() => return,
            };
            let Some(life) = life else {
                return;
            };
            let node = NodeLife {
                cluster: self.context.cluster,
                node: life,
            };
            if let Err(error) = self.work(&route, &node, &stop).await {
                let queue = &self.plan.queue;
                tracing::error!(queue, error = %Chain(&error), "a worker ended; it begins again");
                tokio::select! {
                    () = sleep(RETRY) => {}
                    () = stop.cancelled() => {}
                }
            }
        }
    }

    /// Works over one route, until the stop or another route.
    async fn work(
        &self,
        route: &Arc<StoreRoute>,
        node: &NodeLife,
        stop: &CancellationToken,
    ) -> Result<(), WorkerError> {
        let connecting = connect(&route.url, &self.plan.queue);
        let jobs = tokio::select! {
            jobs = connecting => jobs?,
            () = stop.cancelled() => return Ok(()),
        };
        let mut worker = self.worker(&jobs, route, node)?;
        let control = worker.control();
        let link = &self.context.link;
        let ending = async {
            tokio::select! {
                () = stop.cancelled() => {}
                () = link.left(route) => {}
            }
        };
        let running = worker.run_until(ending);
        let steering = self.steer(&control, node);
        tokio::select! {
            ended = running => ended,
            () = steering => Ok(()),
        }
    }

    fn worker(
        &self,
        jobs: &Jobs,
        route: &StoreRoute,
        node: &NodeLife,
    ) -> Result<Worker<()>, WorkerError> {
        let mut worker = Worker::new(jobs, ())
            .owner(owner(node)?)
            .concurrency(self.plan.concurrency())
            .lease(self.plan.lease())
            .shutdown_within(self.context.stop_within);
        for entry in &self.plan.entries {
            let (launcher, output) = (&self.context.launcher, self.context.output.clone());
            let program = Program::new(&entry.task_type, &entry.exec, launcher, output);
            let program = program.of_node(&entry.surroundings, node.node.as_str(), &route.app_url);
            let program = TaskProgram::of(entry, program);
            worker = worker
                .limit_type(&entry.task_type, entry.concurrency)
                .handler(Counted(program, self.counters.clone()));
        }
        for add in &self.plan.handlers {
            worker = add(worker, &self.counters);
        }
        Ok(worker)
    }

    /// Moves the worker, which works in the life `node`, to the node's present life, and lets it claim while the node takes
    /// work. A worker that was declared gone goes on in another life. Never ends.
    async fn steer(&self, control: &WorkerControl, node: &NodeLife) {
        let mut standing = self.context.standing.clone();
        // The node's life among the members, and the one of the worker's owner.
        let mut of_node = node.node.clone();
        let mut own = node.node.clone();
        let mut releases = 0;
        loop {
            let now = standing.borrow_and_update().clone();
            if let Some(life) = now.life.clone().filter(|life| *life != of_node) {
                of_node = life.clone();
                own = life;
                releases = 0;
                self.renew(control, &own);
            }
            match now.takes_work() {
                true => control.undrain(),
                false => control.drain(),
            }
            let released = async {
                let owner = control.released().await;
                // Mostly a new life of the node comes, too.
                sleep(doubled(RETRY, RELEASED_RETRY_MOST, releases)).await;
                owner
            };
            tokio::select! {
                changed = standing.changed() => if changed.is_err() {
                    std::future::pending::<()>().await;
                },
                Some(owner) = released => {
                    let queue = &self.plan.queue;
                    tracing::warn!(queue, %owner, "the worker was declared gone although it runs; others run its tasks again, and it goes on as another owner");
                    releases = releases.saturating_add(1);
                    if let Some(next) = next_life(&own) {
                        own = next;
                        self.renew(control, &own);
                    }
                }
            }
        }
    }

    fn renew(&self, control: &WorkerControl, life: &NameAndLife) {
        let node = NodeLife {
            cluster: self.context.cluster,
            node: life.clone(),
        };
        if let Ok(owner) = owner(&node) {
            control.renew_life(owner);
        }
    }
}

/// The next higher life of the same name.
fn next_life(life: &NameAndLife) -> Option<NameAndLife> {
    let name = Name::new(life.name()).ok()?;
    Some(name.with_life(life.life().successor()?))
}

fn owner(node: &NodeLife) -> Result<Owner, WorkerError> {
    node.owner(PART)
        .map_err(|error| WorkerError::Config(error.to_string()))
}

/// The queue of this name on the store, over a connection of its own.
async fn connect(url: &str, queue: &str) -> Result<Jobs, QueueError> {
    let options = RedisOptions::from_url(url)?.queue(queue)?;
    Ok(Jobs::with_queue(Arc::new(options.connect().await?)))
}
