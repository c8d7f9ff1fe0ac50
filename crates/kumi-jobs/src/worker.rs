//! The worker: claims tasks, runs their handlers, reports how they ended.

mod control;
mod execute;
#[cfg(test)]
pub(crate) mod logged;
#[cfg(test)]
mod probe;
mod run;
#[cfg(test)]
mod tests;

pub use control::WorkerControl;

use crate::check::TYPES_LIMIT;
use crate::context::Context;
use crate::core::{LEASE, Owner, RENEWAL};
use crate::error::QueueError;
use crate::jobs::Jobs;
use crate::queue::Queue;
use crate::registry::{Async, Blocking, DuplicateType, Registry, TaskHandler};
use crate::task::{Task, TaskError};
use control::Controlled;
use std::collections::HashMap;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Tasks that a worker runs at once unless told otherwise.
const CONCURRENCY: usize = 100;

/// The most that a worker may run at once.
const CONCURRENCY_LIMIT: usize = 10_000;

/// Why a worker ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// Two handlers were given for one type.
    #[error(transparent)]
    DuplicateType(#[from] DuplicateType),
    /// No handler was given.
    #[error("the worker has no handlers")]
    NoHandlers,
    /// A setting is out of its bounds.
    #[error("{0}")]
    Config(String),
    /// The worker was declared gone; its tasks belong to others.
    #[error(transparent)]
    Queue(#[from] QueueError),
}

/// The builder of a worker: handlers, bounds, and then [`run_until`](Worker::run_until).
///
/// ```
/// use kumi_jobs::{Context, Jobs, Task, TaskError, Worker};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Add(u32, u32);
/// impl Task for Add {
///     const TYPE: &'static str = "add";
///     type Output = u32;
/// }
/// async fn add(task: Add, _: Context<()>) -> Result<u32, TaskError> {
///     Ok(task.0 + task.1)
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let jobs = Jobs::memory();
/// let handle = jobs.enqueue(Add(20, 22)).await?;
/// let worker = Worker::new(&jobs, ()).handle(add);
/// worker.run_until(async { assert_eq!(handle.result().await.ok(), Some(42)) }).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a worker does nothing before run_until"]
pub struct Worker<S> {
    queue: Arc<dyn Queue>,
    state: Arc<S>,
    registry: Registry<S>,
    settings: WorkerSettings,
    control: Option<(WorkerControl, Controlled)>,
    problem: Option<WorkerError>,
}

/// How a worker works.
#[derive(Clone)]
struct WorkerSettings {
    owner: Owner,
    concurrency: usize,
    limits: HashMap<Arc<str>, usize>,
    lease: Duration,
    shutdown: Duration,
    schedules: bool,
}

impl<S: Send + Sync + 'static> Worker<S> {
    /// A worker of a queue, with the state that its handlers share.
    pub fn new(jobs: &Jobs, state: S) -> Self {
        Self {
            queue: jobs.queue().clone(),
            state: Arc::new(state),
            registry: Registry::new(),
            settings: WorkerSettings {
                owner: Owner::random(),
                concurrency: CONCURRENCY,
                limits: HashMap::new(),
                lease: LEASE,
                shutdown: Duration::from_secs(30),
                schedules: true,
            },
            control: None,
            problem: None,
        }
    }

    /// Adds an async function as the handler of its task's type.
    pub fn handle<T, F, Fut>(self, run: F) -> Self
    where
        T: Task,
        F: Fn(T, Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T::Output, TaskError>> + Send + 'static,
    {
        self.handler(Async {
            run,
            task: PhantomData,
        })
    }

    /// Adds a function that computes for long or blocks its thread: it runs on threads of its own. A run that is
    /// cancelled goes on there until it looks at `Context::cancelled`; its result no longer counts.
    pub fn blocking<T, F>(self, run: F) -> Self
    where
        T: Task,
        F: Fn(T, Context<S>) -> Result<T::Output, TaskError> + Send + Sync + 'static,
    {
        self.handler(Blocking {
            run: Arc::new(run),
            task: PhantomData,
        })
    }

    /// Adds a handler on encoded payloads. A worker has at most 256 handlers.
    pub fn handler(mut self, handler: impl TaskHandler<S>) -> Self {
        if let Err(error) = self.registry.register(handler) {
            self.problem.get_or_insert(error.into());
        }
        self
    }

    /// How many tasks run at once; 100 unless told otherwise, at most 10,000.
    pub fn concurrency(mut self, tasks: usize) -> Self {
        if tasks == 0 || tasks > CONCURRENCY_LIMIT {
            let error = format!("a worker's concurrency is 1 to {CONCURRENCY_LIMIT}, not {tasks}");
            self.problem.get_or_insert(WorkerError::Config(error));
        }
        self.settings.concurrency = tasks;
        self
    }

    /// How many tasks of one type run at once in this worker. [`Queue::limit`] bounds all workers together.
    pub fn limit<T: Task>(self, tasks: usize) -> Self {
        self.limit_type(T::TYPE, tasks)
    }

    /// As `limit`, by name.
    pub fn limit_type(mut self, task_type: &str, tasks: usize) -> Self {
        self.settings.limits.insert(task_type.into(), tasks);
        self
    }

    /// The worker's name and life; random unless given.
    pub fn owner(mut self, owner: Owner) -> Self {
        self.settings.owner = owner;
        self
    }

    /// How long claims hold without a renewal; 15 s unless told otherwise, at least 2 s and at most 100 years.
    pub fn lease(mut self, lease: Duration) -> Self {
        if lease < 2 * RENEWAL {
            let error = format!("a lease is at least {:?}, not {lease:?}", 2 * RENEWAL);
            self.problem.get_or_insert(WorkerError::Config(error));
        }
        if let Err(error) = crate::check::lease(lease) {
            let error = WorkerError::Config(error.to_string());
            self.problem.get_or_insert(error);
        }
        self.settings.lease = lease;
        self
    }

    /// How long running tasks may go on after the stop, before they are cancelled and given back; 30 s unless told
    /// otherwise.
    pub fn shutdown_within(mut self, deadline: Duration) -> Self {
        self.settings.shutdown = deadline;
        self
    }

    /// Whether this worker also enqueues the tasks of schedules; it does unless told otherwise. Any number of workers may.
    pub fn schedules(mut self, run: bool) -> Self {
        self.settings.schedules = run;
        self
    }

    /// What steers this worker while it runs: drains it, or moves it to another life. With a control, a worker whose life
    /// was declared gone does not end, but waits to be given another one, as long as there is a clone of the control.
    pub fn control(&mut self) -> WorkerControl {
        let (control, _) = self.control.get_or_insert_with(WorkerControl::new);
        control.clone()
    }

    /// Works until `stop` resolves; then claims no more, lets running tasks finish, and gives back what does not finish
    /// in time. Dropping the future cancels running tasks and gives them back in a task of its own.
    ///
    /// # Errors
    /// If the worker was misconfigured, or declared gone by [`Queue::release_owner`] and has no control any more, or if the
    /// queue was moved to a format that this program does not have. In the last case the worker first lets running tasks finish, if the queue still
    /// takes reports.
    pub async fn run_until(self, stop: impl Future) -> Result<(), WorkerError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let types: Vec<Arc<str>> = self.registry.types().cloned().collect();
        if types.is_empty() {
            return Err(WorkerError::NoHandlers);
        }
        if types.len() > TYPES_LIMIT {
            return Err(WorkerError::Config(format!(
                "a worker has at most {TYPES_LIMIT} handlers, not {}",
                types.len()
            )));
        }
        for task_type in &types {
            crate::check::task_type(task_type)?;
        }
        let _scheduler = self.settings.schedules.then(|| {
            let scheduler = tokio::spawn(crate::cron::run(self.queue.clone()));
            Scheduler(scheduler.abort_handle())
        });
        // The worker's own clone of the control is dropped here.
        let controlled = self.control.map(|(_, controlled)| controlled);
        run::Run::new(
            self.queue,
            self.state,
            self.registry,
            self.settings,
            types,
            controlled,
        )
        .until(stop)
        .await
    }
}

/// Ends the scheduler together with its worker.
struct Scheduler(tokio::task::AbortHandle);

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.0.abort();
    }
}
