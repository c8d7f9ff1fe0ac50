//! The producer's side: a queue with types.

use crate::check;
use crate::core::{
    Backoff, ENQUEUE_LIMIT, Filter, ID_PAGE_LIMIT, NewTask, PAGE_LIMIT, Page, Paging, Priority,
    Serial, Settings, TaskEnvelope, TaskId, TaskRecord, TaskState, Timestamp, Unique,
};
use crate::cron::{self, Cron};
use crate::error::{QueueError, ResultError};
use crate::memory::InMemoryQueue;
use crate::queue::{Cancel, Counts, Enqueued, Queue, Reply, Requeued, Schedule};
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
use std::time::{Duration, SystemTime};

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
            at: None,
            output: PhantomData,
        }
    }

    /// Enqueues many tasks, in calls of up to [`ENQUEUE_LIMIT`] each: tasks, or tasks with options of their own. An error
    /// means that those of earlier calls are enqueued.
    ///
    /// ```
    /// # use kumi_jobs::{Jobs, Task};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Remind { user: u64 }
    /// # impl Task for Remind { const TYPE: &'static str = "remind"; type Output = (); }
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let jobs = Jobs::memory();
    /// jobs.enqueue_all((0..1_000).map(|user| Remind { user })).await?;
    /// let keyed = (0..1_000).map(|user| jobs.enqueue(Remind { user }).unique(format!("remind:{user}")));
    /// assert_eq!(jobs.enqueue_all(keyed).await?.len(), 1_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of [`Enqueue`].
    pub async fn enqueue_all<I: IntoTask>(
        &self,
        tasks: impl IntoIterator<Item = I>,
    ) -> Result<Vec<Handle<<I::Task as Task>::Output>>, QueueError> {
        let (task_type, options) = (Arc::from(I::Task::TYPE), I::Task::options());
        let (mut handles, mut buffer) = (Vec::new(), Vec::new());
        let mut random = random::Buffer::new();
        let mut tasks = tasks.into_iter().peekable();
        while tasks.peek().is_some() {
            let now = Timestamp::of_this_machine();
            let mut batch = Vec::with_capacity(tasks.size_hint().0.min(ENQUEUE_LIMIT));
            for task in tasks.by_ref().take(ENQUEUE_LIMIT) {
                let id = TaskId::from_parts(now, random.u128());
                batch.push(task.into_new(id, &task_type, &options, &mut buffer)?);
            }
            let made = self.queue.enqueue(batch).await?;
            made.iter().for_each(|made| tell(*made, I::Task::TYPE));
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

    /// A page of tasks that the filter admits, which goes on looking until it is full: until it has `paging.limit` tasks (at
    /// most [`PAGE_LIMIT`](crate::PAGE_LIMIT)), has looked at `look` ids, or is at the end. The page says how many it looked at,
    /// and its cursor goes on from there.
    ///
    /// ```
    /// use kumi_jobs::{Filter, Jobs, NewTask, Paging, TaskEnvelope, TaskState};
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let jobs = Jobs::memory();
    /// jobs.enqueue_raw(NewTask::new(TaskEnvelope::json("mail", r#"{"to":"ann"}"#))).await?;
    /// let filter = Filter::of(TaskState::Queued).text("ann");
    /// let page = jobs.search(&filter, Paging::newest(50), 10_000).await?;
    /// assert_eq!((page.tasks.len(), page.looked, page.cursor), (1, 1, None));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the cursor is of another listing, or the queue fails.
    pub async fn search(
        &self,
        filter: &Filter,
        mut paging: Paging,
        look: u64,
    ) -> Result<Page, QueueError> {
        let mut all = Page::default();
        let limit = paging.limit.clamp(1, PAGE_LIMIT);
        loop {
            paging.limit = limit - all.tasks.len();
            let page = self.queue.list(filter, &paging).await?;
            all.tasks.extend(page.tasks);
            all.looked += page.looked;
            all.cursor.clone_from(&page.cursor);
            let is_full = all.tasks.len() >= limit || all.looked >= look;
            if is_full || page.cursor.is_none() {
                return Ok(all);
            }
            paging.after = page.cursor;
        }
    }

    /// Brings back all dead tasks that the filter admits, the oldest first. Returns how many; one whose unique key is taken
    /// stays Dead. The filter's states do not matter.
    ///
    /// # Errors
    /// If the queue fails; tasks of earlier pages are back then.
    pub async fn requeue_dead(&self, filter: Filter) -> Result<usize, QueueError> {
        self.requeue_dead_with(filter, |_| {}).await
    }

    /// As `requeue_dead`; after each page, `progress` is called with the number of tasks requeued so far.
    ///
    /// # Errors
    /// As of `requeue_dead`.
    pub async fn requeue_dead_with(
        &self,
        mut filter: Filter,
        mut progress: impl FnMut(usize),
    ) -> Result<usize, QueueError> {
        filter.states = vec![TaskState::Dead];
        self.for_each_page(&filter, 0, requeue_page, &mut progress)
            .await
    }

    /// Does `work` with all tasks that the filter admits, page by page, the oldest first. Returns with how many it was done,
    /// and calls `progress` with that after each page; both with `before` added.
    async fn for_each_page(
        &self,
        filter: &Filter,
        before: usize,
        work: PageWork,
        progress: &mut impl FnMut(usize),
    ) -> Result<usize, QueueError> {
        let (mut paging, mut count) = (Paging::oldest(ID_PAGE_LIMIT), before);
        loop {
            let page = self.queue.list_ids(filter, &paging).await?;
            count += work(&*self.queue, page.ids).await?;
            progress(count);
            if page.cursor.is_none() {
                return Ok(count);
            }
            paging.after = page.cursor;
        }
    }

    /// Forgets all done tasks that the filter admits. Without states, these are Succeeded and Cancelled: dead tasks go only
    /// if they are asked for. Returns how many.
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
            filter.states = vec![TaskState::Succeeded, TaskState::Cancelled];
        }
        let (mut count, mut cursor) = (0, None);
        loop {
            let forgotten = self.queue.forget(&filter, cursor.as_ref()).await?;
            count += forgotten.tasks;
            progress(count);
            cursor = forgotten.cursor;
            if cursor.is_none() {
                return Ok(count);
            }
        }
    }

    /// Cancels all unfinished tasks that the filter admits, or asks their workers to. Without states, these are all that
    /// are not done. Returns how many.
    ///
    /// # Errors
    /// If the queue fails; tasks of earlier pages are cancelled then.
    pub async fn cancel(&self, filter: Filter) -> Result<usize, QueueError> {
        self.cancel_with(filter, |_| {}).await
    }

    /// As `cancel`; after each page, `progress` is called with the number of tasks cancelled so far.
    ///
    /// # Errors
    /// As of `cancel`.
    pub async fn cancel_with(
        &self,
        mut filter: Filter,
        mut progress: impl FnMut(usize),
    ) -> Result<usize, QueueError> {
        filter.states = filter.listed_states();
        filter.states.retain(|state| !state.is_terminal());
        // A cancelled task lets the next of its serial key into line, so that which still wait there go first.
        filter
            .states
            .sort_by_key(|state| *state != TaskState::Blocked);
        let mut count = 0;
        for state in std::mem::take(&mut filter.states) {
            filter.states = vec![state];
            count = self
                .for_each_page(&filter, count, cancel_page, &mut progress)
                .await?;
        }
        Ok(count)
    }
}

/// Does something with the tasks of a page. Returns with how many of them it was done.
type PageWork = for<'a> fn(&'a dyn Queue, Vec<TaskId>) -> Reply<'a, usize>;

fn requeue_page(queue: &dyn Queue, ids: Vec<TaskId>) -> Reply<'_, usize> {
    Box::pin(async move {
        let requeued = queue.requeue(ids).await?;
        let applied = |requeued: &&Requeued| matches!(requeued, Requeued::Applied(_));
        Ok(requeued.iter().filter(applied).count())
    })
}

fn cancel_page(queue: &dyn Queue, ids: Vec<TaskId>) -> Reply<'_, usize> {
    Box::pin(async move {
        let replies = queue.cancel_all(ids).await?;
        let done = |reply: &&Cancel| matches!(reply, Cancel::Cancelled | Cancel::Requested);
        Ok(replies.iter().filter(done).count())
    })
}

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
    /// Not before this time.
    at: Option<SystemTime>,
    output: PhantomData<fn() -> T>,
}

impl<T: Task> Enqueue<T> {
    /// Runs it no earlier than that much later. The last of `delay` and `at` counts.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.at = None;
        self.with(|task| task.delay = delay)
    }

    /// Runs it no earlier than at this time, by the clock of this machine: what is left until then when it is enqueued is
    /// its delay. A time that is past means at once.
    pub fn at(mut self, time: impl Into<SystemTime>) -> Self {
        self.at = Some(time.into());
        self
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

    /// The task as data, with what is left until its time.
    fn into_data(self) -> Result<NewTask, QueueError> {
        let mut task = self.task?;
        if let Some(at) = self.at {
            task.delay = at.duration_since(SystemTime::now()).unwrap_or_default();
        }
        Ok(task)
    }
}

/// What [`Jobs::enqueue_all`] takes: a task, or what [`Jobs::enqueue`] makes of it.
pub trait IntoTask: private::Sealed {
    /// Its kind.
    type Task: Task;

    /// The task as data: with this id, if it has none yet, and what tasks of one call share.
    #[doc(hidden)]
    fn into_new(
        self,
        id: TaskId,
        task_type: &Arc<str>,
        options: &Options,
        buffer: &mut Vec<u8>,
    ) -> Result<NewTask, QueueError>;
}

mod private {
    pub trait Sealed {}
    impl<T: crate::Task> Sealed for T {}
    impl<T: crate::Task> Sealed for super::Enqueue<T> {}
}

impl<T: Task> IntoTask for T {
    type Task = T;

    fn into_new(
        self,
        id: TaskId,
        task_type: &Arc<str>,
        options: &Options,
        buffer: &mut Vec<u8>,
    ) -> Result<NewTask, QueueError> {
        encode_as(id, &self, task_type, options, buffer)
    }
}

/// Its queue is not asked: the task goes where `enqueue_all` was called.
impl<T: Task> IntoTask for Enqueue<T> {
    type Task = T;

    fn into_new(
        self,
        _id: TaskId,
        _task_type: &Arc<str>,
        _options: &Options,
        _buffer: &mut Vec<u8>,
    ) -> Result<NewTask, QueueError> {
        self.into_data()
    }
}

impl<T: Task> IntoFuture for Enqueue<T> {
    type Output = Result<Handle<T::Output>, QueueError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let queue = self.queue.clone();
            let made = first(queue.enqueue(vec![self.into_data()?]).await?)?;
            tell(made, T::TYPE);
            Ok(Handle {
                queue,
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Remind(u32);

    impl Task for Remind {
        const TYPE: &'static str = "remind";
        type Output = ();
    }

    /// How long after its enqueue a task is due.
    async fn delay(handle: &Handle<()>) -> Option<Duration> {
        let record = handle.status().await.unwrap().unwrap();
        let due = record.next_run_at?;
        Some(due.since(record.created_at))
    }

    #[tokio::test]
    async fn a_task_waits_for_its_time() {
        let jobs = Jobs::memory();
        let hour = Duration::from_secs(3_600);
        let later = jobs.enqueue(Remind(1)).at(SystemTime::now() + hour).await;
        let waits = delay(&later.unwrap()).await.unwrap();
        assert!(
            waits <= hour && waits > hour - Duration::from_secs(60),
            "{waits:?}"
        );
        let past = jobs.enqueue(Remind(2)).at(SystemTime::UNIX_EPOCH).await;
        assert_eq!(delay(&past.unwrap()).await, None);
        // The last word counts.
        let enqueue = jobs.enqueue(Remind(3)).at(SystemTime::now() + hour);
        let soon = enqueue.delay(Duration::from_secs(5)).await.unwrap();
        assert_eq!(delay(&soon).await, Some(Duration::from_secs(5)));
    }

    #[tokio::test]
    async fn many_tasks_have_options_of_their_own() {
        let jobs = Jobs::memory();
        let tasks = (0..200).map(|n| {
            let enqueue = jobs.enqueue(Remind(n)).unique(format!("{}", n % 100));
            enqueue.delay(Duration::from_secs(u64::from(n)))
        });
        let handles = jobs.enqueue_all(tasks).await.unwrap();
        assert_eq!(handles.len(), 200);
        assert_eq!(delay(&handles[0]).await, None);
        assert_eq!(delay(&handles[7]).await, Some(Duration::from_secs(7)));
        assert_eq!(
            handles[107].enqueued(),
            Enqueued::Duplicate(handles[7].id())
        );
    }
}
