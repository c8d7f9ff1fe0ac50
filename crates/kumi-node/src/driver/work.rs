//! The workers of a node: one per queue, with the commands of `work` entries and the handlers of the program around it.
//!
//! A worker is an owner of the node's life, `@cluster/name~life/work`. When the node takes a new life, the worker moves on to
//! it: what it runs is reported under the old one. It claims while the node is a member and is not draining, and it is begun
//! again when the route to the store changes.

use super::lives::Standing;
use super::programs::{Launcher, Output, Program, TaskProgram};
use super::route::StoreRoute;
use super::store_link::StoreLink;
use crate::config::Work;
use kumi_common::Chain;
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

/// The queue of tasks that name none.
pub(crate) const DEFAULT_QUEUE: &str = "default";

/// The part of the node's life that its worker of a queue is.
const PART: &str = "work";

/// Tasks of the program's own handlers that run at once in one queue.
const HANDLER_CONCURRENCY: usize = 100;

/// The pause after a queue that could not be connected, or a worker that ended with an error.
const RETRY: Duration = Duration::from_secs(1);

/// Adds a handler of the program around the node to a worker.
pub(crate) type AddHandler =
    Arc<dyn Fn(Worker<()>, &Arc<WorkCounters>) -> Worker<()> + Send + Sync>;

/// What the worker of one queue runs.
#[derive(Clone, Default)]
pub(crate) struct QueuePlan {
    /// The queue; none is the default one.
    pub(crate) queue: Option<String>,
    pub(crate) entries: Vec<Work>,
    pub(crate) handlers: Vec<AddHandler>,
}

impl QueuePlan {
    /// One plan per queue.
    pub(crate) fn of(work: &[Work], handlers: Vec<AddHandler>) -> Vec<Self> {
        let mut plans: BTreeMap<Option<String>, Self> = BTreeMap::new();
        for entry in work {
            let plan = plans.entry(entry.queue.clone()).or_default();
            plan.entries.push(entry.clone());
        }
        if !handlers.is_empty() {
            plans.entry(None).or_default().handlers = handlers;
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
                let queue = self.plan.queue.as_deref().unwrap_or(DEFAULT_QUEUE);
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
        let connecting = connect(&route.url, self.plan.queue.as_deref());
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
        let steering = self.steer(&control);
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

    /// Moves the worker to the node's present life, and lets it claim while the node takes work. Never ends.
    async fn steer(&self, control: &WorkerControl) {
        let mut standing = self.context.standing.clone();
        loop {
            let now = standing.borrow_and_update().clone();
            if let Some(life) = &now.life {
                let node = NodeLife {
                    cluster: self.context.cluster,
                    node: life.clone(),
                };
                if let Ok(owner) = owner(&node) {
                    control.renew_life(owner);
                }
            }
            match now.takes_work() {
                true => control.undrain(),
                false => control.drain(),
            }
            if standing.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

fn owner(node: &NodeLife) -> Result<Owner, WorkerError> {
    node.owner(PART)
        .map_err(|error| WorkerError::Config(error.to_string()))
}

/// The queue of this name on the store; none is the default one.
pub(crate) async fn connect(url: &str, queue: Option<&str>) -> Result<Jobs, QueueError> {
    let mut options = RedisOptions::from_url(url)?;
    if let Some(queue) = queue {
        options = options.queue(queue)?;
    }
    Ok(Jobs::with_queue(Arc::new(options.connect().await?)))
}
