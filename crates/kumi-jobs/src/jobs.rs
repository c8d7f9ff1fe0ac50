//! The producer's side: a queue with types.

use crate::check;
use crate::core::{
    Backoff, ENQUEUE_LIMIT, NewTask, Priority, Serial, Settings, TaskEnvelope, TaskId, TaskRecord,
    TaskState, Timestamp, Unique,
};
use crate::cron::{self, Cron};
use crate::error::{QueueError, ResultError};
use crate::memory::InMemoryQueue;
use crate::queue::{Counts, Enqueued, Filter, Queue, Requeued, Schedule};
use crate::random;
use crate::redis::RedisQueue;
use crate::schedules::Schedules;
use crate::task::{Options, Task};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

tokio::task_local! {
    /// The trace context of the running task: what it enqueues carries it on.
    pub(crate) static TRACE: Option<Arc<str>>;
}

/// A queue, for producers. Clones share the connection.
#[derive(Clone)]
pub struct Jobs {
    queue: Arc<dyn Queue>,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}

impl Jobs {
    /// A queue in the memory of this process.
    #[must_use]
    pub fn memory() -> Self {
        Self::with_queue(Arc::new(InMemoryQueue::new()))
    }

    /// A queue on a Redis server or cluster, such as `redis://localhost/?queue=mail`.
    ///
    /// # Errors
    /// As of [`RedisQueue::connect`].
    pub async fn connect(url: &str) -> Result<Self, QueueError> {
        Ok(Self::with_queue(Arc::new(RedisQueue::connect(url).await?)))
    }

    /// Any queue.
    #[must_use]
    pub fn with_queue(queue: Arc<dyn Queue>) -> Self {
        Self { queue }
    }

    /// The queue itself.
    #[must_use]
    pub fn queue(&self) -> &Arc<dyn Queue> {
        &self.queue
    }

    /// A task to enqueue; `.await` it after its options. Repeated by the same future, it enqueues once.
    pub fn enqueue<T: Task>(&self, task: T) -> Enqueue<T> {
        let encoded = encode(&task);
        Enqueue {
            queue: self.queue.clone(),
            task: encoded,
            output: PhantomData,
        }
    }

    /// Enqueues many tasks, in calls of up to [`ENQUEUE_LIMIT`] each. An error means that those of earlier calls are
    /// enqueued.
    ///
    /// # Errors
    /// As of [`Enqueue`].
    pub async fn enqueue_all<T: Task>(
        &self,
        tasks: impl IntoIterator<Item = T>,
    ) -> Result<Vec<Handle<T::Output>>, QueueError> {
        let (task_type, options) = (Arc::from(T::TYPE), T::options());
        let (mut handles, mut buffer) = (Vec::new(), Vec::new());
        let mut random = random::Buffer::new();
        let mut tasks = tasks.into_iter().peekable();
        while tasks.peek().is_some() {
            let now = Timestamp::of_this_machine();
            let mut batch = Vec::with_capacity(tasks.size_hint().0.min(ENQUEUE_LIMIT));
            for task in tasks.by_ref().take(ENQUEUE_LIMIT) {
                let id = TaskId::from_parts(now, random.u128());
                let new = encode_as(id, &task, &task_type, &options, &mut buffer)?;
                batch.push(new);
            }
            let made = self.queue.enqueue(batch).await?;
            made.iter().for_each(|made| tell(*made, T::TYPE));
            handles.extend(made.into_iter().map(|made| Handle {
                queue: self.queue.clone(),
                made,
                output: PhantomData,
            }));
        }
        Ok(handles)
    }

    /// Enqueues a task as data, for instance one whose type is known only at run time. Within a handler, a task without a
    /// trace context gets that of the handler's task.
    ///
    /// # Errors
    /// If the payload or a name is too large, or the queue fails.
    pub async fn enqueue_raw(&self, mut task: NewTask) -> Result<Enqueued, QueueError> {
        task.trace = task.trace.or_else(current_trace);
        let task_type = task.envelope.task_type.clone();
        let made = first(self.queue.enqueue(vec![task]).await?)?;
        tell(made, &task_type);
        Ok(made)
    }

    /// Stores a schedule: in each slot of `expression` (minute, hour, day of month, month, day of week) in a time zone, a
    /// running worker enqueues the task, once, whatever the number of workers. `docs/jobs.md` has the rules.
    ///
    /// # Errors
    /// If the expression or the zone is not valid, the payload or a name is too large, or the queue fails.
    pub async fn cron<T: Task>(
        &self,
        name: &str,
        expression: &str,
        zone: &str,
        task: T,
    ) -> Result<(), QueueError> {
        let task = encode(&task)?;
        let schedule = Schedule {
            name: name.into(),
            expression: expression.into(),
            zone: zone.into(),
            envelope: task.envelope,
            max_attempts: task.max_attempts,
            priority: task.priority,
            last_slot: Timestamp::default(),
        };
        self.put_schedule(schedule).await
    }

    /// Stores a schedule whose task is data.
    ///
    /// # Errors
    /// As of `cron`.
    pub async fn put_schedule(&self, schedule: Schedule) -> Result<(), QueueError> {
        check_schedule(&schedule, self.queue.settings())?;
        self.queue.put_schedule(schedule).await
    }

    /// A program's set of schedules, to be declared as a whole.
    pub fn schedules(&self, set: &str) -> Schedules {
        Schedules::new(self.clone(), set)
    }

    /// A handle on a task that was enqueued before, perhaps by another program.
    #[must_use]
    pub fn handle<T: Task>(&self, id: TaskId) -> Handle<T::Output> {
        Handle {
            queue: self.queue.clone(),
            made: Enqueued::Exists(id),
            output: PhantomData,
        }
    }

    /// What is known of a task.
    ///
    /// # Errors
    /// If the queue fails.
    pub async fn get_status(&self, id: TaskId) -> Result<Option<TaskRecord>, QueueError> {
        self.queue.get_status(id).await
    }

    /// How many tasks are in each state.
    ///
    /// # Errors
    /// If the queue fails.
    pub async fn counts_by_state(&self) -> Result<Counts, QueueError> {
        self.queue.counts_by_state().await
    }

    /// Brings back all dead tasks, or those of one type. Returns how many; one whose unique key is taken stays Dead.
    ///
    /// # Errors
    /// If the queue fails; tasks of earlier pages are back then.
    pub async fn requeue_dead(&self, task_type: Option<Arc<str>>) -> Result<usize, QueueError> {
        self.requeue_dead_with(task_type, |_| {}).await
    }

    /// As `requeue_dead`; after each page, `progress` is called with the number of tasks requeued so far.
    ///
    /// # Errors
    /// As of `requeue_dead`.
    pub async fn requeue_dead_with(
        &self,
        task_type: Option<Arc<str>>,
        mut progress: impl FnMut(usize),
    ) -> Result<usize, QueueError> {
        let filter = Filter {
            states: vec![TaskState::Dead],
            task_type,
        };
        let (mut count, mut cursor) = (0, None);
        loop {
            let page = self.queue.list_ids(&filter, cursor.as_deref(), PAGE);
            let (ids, next) = page.await?;
            let requeued = self.queue.requeue(ids).await?;
            let applied = |requeued: &&Requeued| matches!(requeued, Requeued::Applied(_));
            count += requeued.iter().filter(applied).count();
            progress(count);
            cursor = next;
            if cursor.is_none() {
                return Ok(count);
            }
        }
    }

    /// Forgets all done tasks that the filter admits. Returns how many.
    ///
    /// # Errors
    /// If the queue fails; tasks of earlier pages are gone then.
    pub async fn purge(&self, filter: Filter) -> Result<usize, QueueError> {
        self.purge_with(filter, |_| {}).await
    }

    /// As `purge`; after each page, `progress` is called with the number of tasks forgotten so far.
    ///
    /// # Errors
    /// As of `purge`.
    pub async fn purge_with(
        &self,
        mut filter: Filter,
        mut progress: impl FnMut(usize),
    ) -> Result<usize, QueueError> {
        if filter.states.is_empty() {
            filter.states = TaskState::ALL
                .into_iter()
                .filter(|s| s.is_terminal())
                .collect();
        }
        let (mut count, mut cursor) = (0, None);
        loop {
            let page = self.queue.list_ids(&filter, cursor.as_deref(), PAGE);
            let (ids, next) = page.await?;
            count += self.queue.purge(ids).await?;
            progress(count);
            cursor = next;
            if cursor.is_none() {
                return Ok(count);
            }
        }
    }
}

/// Tasks looked at per call of a listing that goes over all.
const PAGE: usize = 200;

/// Checks what a schedule says before it is stored.
pub(crate) fn check_schedule(schedule: &Schedule, settings: &Settings) -> Result<(), QueueError> {
    check::key("the schedule's name", &schedule.name)?;
    Cron::parse(&schedule.expression, &schedule.zone)?;
    let task = cron::task_of(schedule, Timestamp::default());
    check::tasks(&[task], settings)
}

pub(crate) fn encode<T: Task>(task: &T) -> Result<NewTask, QueueError> {
    let (task_type, options) = (Arc::from(T::TYPE), T::options());
    encode_as(
        TaskId::random(),
        task,
        &task_type,
        &options,
        &mut Vec::new(),
    )
}

/// As `encode`, with the type, the options and the buffer that several tasks share. The payload has no spare capacity.
fn encode_as<T: Task>(
    id: TaskId,
    task: &T,
    task_type: &Arc<str>,
    options: &Options,
    buffer: &mut Vec<u8>,
) -> Result<NewTask, QueueError> {
    buffer.clear();
    serde_json::to_writer(&mut *buffer, task).map_err(|error| {
        QueueError::Invalid(format!("the {} cannot be encoded: {error}", T::TYPE))
    })?;
    let payload = Bytes::copy_from_slice(buffer);
    let mut new = NewTask::with_id(id, TaskEnvelope::json(task_type.clone(), payload));
    new.max_attempts = options.max_attempts;
    new.priority = options.priority;
    new.trace = current_trace();
    Ok(new)
}

/// The trace context of the task whose handler runs.
fn current_trace() -> Option<Arc<str>> {
    TRACE.try_with(Clone::clone).ok().flatten()
}

fn first(made: Vec<Enqueued>) -> Result<Enqueued, QueueError> {
    let none = || QueueError::Protocol("an enqueue without a reply".into());
    made.first().copied().ok_or_else(none)
}

fn tell(made: Enqueued, task_type: &str) {
    if let Enqueued::New(id, state) = made {
        tracing::info!(task_id = %id, task_type, %state, "Enqueued");
    }
}

/// A task that is about to be enqueued. Dropping it before it is awaited enqueues nothing.
#[must_use = "nothing is enqueued before .await"]
pub struct Enqueue<T: Task> {
    queue: Arc<dyn Queue>,
    task: Result<NewTask, QueueError>,
    output: PhantomData<fn() -> T>,
}

impl<T: Task> Enqueue<T> {
    /// Runs it no earlier than that much later.
    pub fn delay(self, delay: Duration) -> Self {
        self.with(|task| task.delay = delay)
    }

    /// If an unfinished task has this key, enqueues nothing and answers with that one.
    pub fn unique(self, key: impl AsRef<str>) -> Self {
        self.with(|task| {
            task.unique = Some(Unique {
                key: key.as_ref().into(),
                window: None,
            });
        })
    }

    /// As `unique`, and the key stays taken at least that long after the enqueue.
    pub fn unique_for(self, key: impl AsRef<str>, window: Duration) -> Self {
        self.with(|task| {
            task.unique = Some(Unique {
                key: key.as_ref().into(),
                window: Some(window),
            });
        })
    }

    /// Runs it after all earlier tasks with this key.
    pub fn serial(self, key: impl AsRef<str>) -> Self {
        self.with(|task| {
            task.serial = Some(Serial {
                key: key.as_ref().into(),
                hold_on_dead: false,
            });
        })
    }

    /// As `serial`, and if it ends Dead, later tasks wait until it is requeued or purged.
    pub fn serial_strict(self, key: impl AsRef<str>) -> Self {
        self.with(|task| {
            task.serial = Some(Serial {
                key: key.as_ref().into(),
                hold_on_dead: true,
            });
        })
    }

    /// Its level among the waiting tasks.
    pub fn priority(self, priority: Priority) -> Self {
        self.with(|task| task.priority = priority)
    }

    /// How often it is tried, the first time included.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.with(|task| task.max_attempts = attempts)
    }

    /// When its failed attempts are repeated, instead of what the worker's options for its type say.
    pub fn backoff(self, backoff: Backoff) -> Self {
        self.with(|task| task.backoff = Some(backoff))
    }

    /// The trace context that its handler gets, in the form of a W3C `traceparent` header.
    pub fn trace(self, traceparent: impl Into<Arc<str>>) -> Self {
        self.with(|task| task.trace = Some(traceparent.into()))
    }

    /// Its id, for a producer that repeats an enqueue across restarts.
    pub fn id(self, id: TaskId) -> Self {
        self.with(|task| task.id = id)
    }

    fn with(mut self, change: impl FnOnce(&mut NewTask)) -> Self {
        if let Ok(task) = &mut self.task {
            change(task);
        }
        self
    }
}

impl<T: Task> IntoFuture for Enqueue<T> {
    type Output = Result<Handle<T::Output>, QueueError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let made = first(self.queue.enqueue(vec![self.task?]).await?)?;
            tell(made, T::TYPE);
            Ok(Handle {
                queue: self.queue,
                made,
                output: PhantomData,
            })
        })
    }
}

/// A task that was enqueued.
pub struct Handle<O> {
    queue: Arc<dyn Queue>,
    made: Enqueued,
    output: PhantomData<fn() -> O>,
}

impl<O> fmt::Debug for Handle<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.made).finish()
    }
}

impl<O: DeserializeOwned> Handle<O> {
    /// The task's id; with a unique key, perhaps that of an earlier task.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.made.id()
    }

    /// What became of the enqueue.
    #[must_use]
    pub fn enqueued(&self) -> Enqueued {
        self.made
    }

    /// What is known of the task.
    ///
    /// # Errors
    /// If the queue fails.
    pub async fn status(&self) -> Result<Option<TaskRecord>, QueueError> {
        self.queue.get_status(self.id()).await
    }

    /// Waits for the task's end and decodes its result. Dropping the future changes nothing.
    ///
    /// # Errors
    /// If it ended without a result, its result was not kept, or the queue fails.
    pub async fn result(&self) -> Result<O, ResultError> {
        let id = self.id();
        let record = self.queue.done(id).await?;
        let record = record.ok_or(ResultError::Unknown(id))?;
        match (record.state, record.result) {
            (TaskState::Succeeded, Some(result)) => {
                serde_json::from_slice(&result).map_err(|source| ResultError::Decode { id, source })
            }
            (TaskState::Succeeded, None) if record.result_dropped => Err(ResultError::TooLarge(id)),
            (TaskState::Succeeded, None) => Err(ResultError::Unknown(id)),
            (TaskState::Dead, _) => Err(ResultError::Dead {
                id,
                error: record.last_error.unwrap_or_default(),
            }),
            (TaskState::Cancelled, _) => Err(ResultError::Cancelled(id)),
            (state, _) => Err(ResultError::State { id, state }),
        }
    }
}
