//! A queue in the memory of one process.
//!
//! The state machine stands behind a mutex that is never held across an await. One `Notify` wakes the waiting workers
//! on enqueue and when something is due earlier than before; each looks for itself whether there is something for it.

use crate::check;
use crate::core::{
    Effects, Filter, Holding, Lost, Machine, NewTask, Owner, Page, Paging, Progress, Retention,
    Settings, TaskId, TaskRecord, Timestamp,
};
use crate::error::QueueError;
use crate::queue::{
    Ask, Cancel, Claim, Counts, Enqueued, Events, Finish, Gone, Lease, Load, Notice, Queue,
    Released, Reply, Requeued, Schedule, Signal, Turn,
};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// Moves that a slow subscriber may be behind before it gets a gap.
const EVENTS_BUFFER: usize = 4_096;

/// A queue in memory. Clones share it. Its tasks are gone when the process ends.
///
/// ```
/// use kumi_jobs::{InMemoryQueue, NewTask, Queue, TaskEnvelope, TaskState};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let queue = InMemoryQueue::new();
/// let task = NewTask::new(TaskEnvelope::json("send_email", r#"{"to":"a@example.org"}"#));
/// let id = queue.enqueue(vec![task]).await?[0].id();
/// assert_eq!(queue.get_status(id).await?.map(|record| record.state), Some(TaskState::Queued));
/// assert_eq!(queue.counts_by_state().await?.of(TaskState::Queued), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct InMemoryQueue {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    clock: Clock,
    state: Mutex<State>,
    notify: Notify,
}

struct State {
    machine: Machine,
    signals: HashMap<Owner, Vec<Signal>>,
    waiters: HashMap<TaskId, Vec<oneshot::Sender<()>>>,
    subscribers: Vec<Subscriber>,
}

struct Subscriber {
    sender: mpsc::Sender<Notice>,
    /// Whether it missed something that it was not told of yet.
    is_behind: bool,
}

/// Wall-clock milliseconds that follow tokio's clock, so that a test which pauses that clock moves the queue's too.
struct Clock {
    started: Instant,
    started_at: Timestamp,
    /// A test's clock, in milliseconds.
    virtual_ms: Option<Arc<AtomicU64>>,
}

impl Clock {
    fn now(&self) -> Timestamp {
        match &self.virtual_ms {
            Some(ms) => Timestamp::from_ms(ms.load(Ordering::SeqCst)),
            None => self.started_at.after(self.started.elapsed()),
        }
    }
}

impl Default for InMemoryQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl InMemoryQueue {
    /// An empty queue with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::with_settings(Settings::default())
    }

    /// An empty queue with these limits.
    #[must_use]
    pub fn with_settings(settings: Settings) -> Self {
        Self::with_clock(settings, None)
    }

    /// Takes the time from here, in milliseconds; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_virtual_clock(settings: Settings, clock: Arc<AtomicU64>) -> Self {
        Self::with_clock(settings, Some(clock))
    }

    fn with_clock(settings: Settings, virtual_ms: Option<Arc<AtomicU64>>) -> Self {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Self {
            shared: Arc::new(Shared {
                settings: settings.clone(),
                clock: Clock {
                    started: Instant::now(),
                    started_at: Timestamp::from_ms(since_epoch.as_millis() as u64),
                    virtual_ms,
                },
                state: Mutex::new(State {
                    machine: Machine::new(settings),
                    signals: HashMap::new(),
                    waiters: HashMap::new(),
                    subscribers: Vec::new(),
                }),
                notify: Notify::new(),
            }),
        }
    }

    /// Runs a step of the machine, then does what it asks for. A panic inside a step is a bug; the state is whole as far
    /// as the step came, so later calls go on with it.
    fn step<T>(&self, step: impl FnOnce(&mut Machine, Timestamp) -> T) -> T {
        let now = self.shared.clock.now();
        let mut state = self.lock();
        let answer = step(&mut state.machine, now);
        let mut effects = state.machine.take_effects();
        let lost = std::mem::take(&mut effects.lost);
        let wake = state.carry_out(effects);
        drop(state);
        lost.iter().for_each(Lost::tell);
        if wake {
            self.shared.notify.notify_waiters();
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A step whose reply is ready at once.
    fn call<'a, T: Send + 'a>(
        &'a self,
        step: impl FnOnce(&mut Machine, Timestamp) -> Result<T, QueueError>,
    ) -> Reply<'a, T> {
        Box::pin(ready(self.step(step)))
    }

    /// The signals for a wait that would end now, or when to look again.
    fn poll_wait(
        &self,
        owner: &Owner,
        types: &[Arc<str>],
    ) -> Result<Vec<Signal>, Option<Timestamp>> {
        let mut state = self.lock();
        let mut signals = state.signals.remove(owner).unwrap_or_default();
        let due = state.machine.next_due();
        let is_due = !types.is_empty() && due.is_some_and(|due| due <= self.shared.clock.now());
        if is_due
            || types
                .iter()
                .any(|task_type| state.machine.is_ready(task_type))
        {
            signals.push(Signal::Ready);
        }
        match signals.is_empty() {
            true => Err(due.filter(|_| !types.is_empty())),
            false => Ok(signals),
        }
    }
}

impl State {
    /// Carries out effects; true if waiting workers have to look.
    fn carry_out(&mut self, effects: Effects) -> bool {
        for id in effects.done {
            for waiter in self.waiters.remove(&id).into_iter().flatten() {
                // A waiter that went away needs no reply.
                let _ = waiter.send(());
            }
        }
        let wake = effects.wake || !effects.signals.is_empty();
        for (owner, signal) in effects.signals {
            self.signals.entry(owner).or_default().push(signal);
        }
        if !effects.moved.is_empty() {
            self.subscribers
                .retain_mut(|subscriber| subscriber.deliver(&effects.moved));
            self.machine.listening = !self.subscribers.is_empty();
        }
        wake
    }
}

impl Subscriber {
    /// False if the subscriber is gone.
    fn deliver(&mut self, moved: &[crate::queue::TaskEvent]) -> bool {
        for event in moved {
            if self.is_behind {
                match self.sender.try_send(Notice::Gap) {
                    Ok(()) => self.is_behind = false,
                    Err(mpsc::error::TrySendError::Full(_)) => continue,
                    Err(mpsc::error::TrySendError::Closed(_)) => return false,
                }
            }
            match self.sender.try_send(Notice::Moved(event.clone())) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(_)) => self.is_behind = true,
                Err(mpsc::error::TrySendError::Closed(_)) => return false,
            }
        }
        true
    }
}

impl Queue for InMemoryQueue {
    fn name(&self) -> &str {
        "memory"
    }

    fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Enqueued>> {
        self.call(|machine, now| {
            check::tasks(&tasks, machine.settings())?;
            Ok(machine.enqueue(now, tasks)?)
        })
    }

    fn turn(&self, reports: Vec<Finish>, ask: Ask) -> Reply<'_, Turn> {
        self.call(|machine, now| {
            check::turn(&reports, &ask)?;
            Ok(machine.turn(now, reports, &ask)?)
        })
    }

    fn heartbeat<'a>(&'a self, owner: &'a Owner, lease: Duration) -> Reply<'a, Lease> {
        self.call(|machine, now| {
            check::lease(lease)?;
            Ok(machine.heartbeat(now, owner, lease)?)
        })
    }

    fn running<'a>(&'a self, owner: &'a Owner) -> Reply<'a, Vec<Claim>> {
        self.call(|machine, _| Ok(machine.running(owner)?))
    }

    fn release_owner<'a>(&'a self, gone: &'a Gone, silent_for: Duration) -> Reply<'a, Released> {
        self.call(|machine, now| Ok(machine.release_owner(now, gone, silent_for)))
    }

    fn reap(&self) -> Reply<'_, usize> {
        self.call(|machine, now| Ok(machine.reap(now)))
    }

    fn progress<'a>(&'a self, claim: &'a Claim, progress: Progress) -> Reply<'a, bool> {
        self.call(|machine, _| Ok(machine.progress(claim.id, claim.token, progress)))
    }

    fn save_step<'a>(&'a self, claim: &'a Claim, name: &'a str, value: Bytes) -> Reply<'a, bool> {
        self.call(|machine, _| {
            check::step(name, &value, machine.settings())?;
            Ok(machine.save_step(claim.id, claim.token, name, value)?)
        })
    }

    fn steps(&self, id: TaskId) -> Reply<'_, BTreeMap<String, Bytes>> {
        self.call(|machine, _| Ok(machine.steps(id)))
    }

    fn cancel(&self, id: TaskId) -> Reply<'_, Cancel> {
        self.call(|machine, now| Ok(machine.cancel(now, id)))
    }

    fn get_status(&self, id: TaskId) -> Reply<'_, Option<TaskRecord>> {
        self.call(|machine, _| Ok(machine.status(id)))
    }

    fn counts_by_state(&self) -> Reply<'_, Counts> {
        self.call(|machine, now| Ok(machine.counts(now)))
    }

    fn list<'a>(&'a self, filter: &'a Filter, paging: &'a Paging) -> Reply<'a, Page> {
        self.call(|machine, _| Ok(machine.list(filter, paging)?))
    }

    fn owners(&self) -> Reply<'_, Vec<Holding>> {
        self.call(|machine, _| Ok(machine.holdings()))
    }

    fn load(&self) -> Reply<'_, Load> {
        self.call(|machine, now| Ok(machine.load(now)))
    }

    fn releases(&self) -> Reply<'_, bool> {
        self.call(|machine, _| Ok(machine.releases()))
    }

    fn set_releases(&self, on: bool) -> Reply<'_, ()> {
        self.call(|machine, _| {
            machine.set_releases(on);
            Ok(())
        })
    }

    fn requeue(&self, ids: Vec<TaskId>) -> Reply<'_, Vec<Requeued>> {
        self.call(|machine, now| Ok(ids.iter().map(|id| machine.requeue(now, *id)).collect()))
    }

    fn purge(&self, ids: Vec<TaskId>) -> Reply<'_, usize> {
        self.call(|machine, now| Ok(machine.purge(now, &ids)))
    }

    fn pause(&self, paused: bool) -> Reply<'_, ()> {
        self.call(|machine, _| {
            machine.pause(paused);
            Ok(())
        })
    }

    fn limit<'a>(&'a self, task_type: &'a str, limit: Option<u32>) -> Reply<'a, ()> {
        self.call(|machine, _| {
            machine.limit(task_type, limit);
            Ok(())
        })
    }

    fn retention(&self) -> Reply<'_, Retention> {
        self.call(|machine, _| Ok(machine.retention()))
    }

    fn keep(&self, retention: Retention) -> Reply<'_, ()> {
        self.call(|machine, _| {
            check::retention(&retention)?;
            machine.keep(retention);
            Ok(())
        })
    }

    fn wait<'a>(
        &'a self,
        owner: &'a Owner,
        types: Vec<Arc<str>>,
        at_most: Duration,
    ) -> Reply<'a, Vec<Signal>> {
        Box::pin(async move {
            let end = Instant::now() + at_most;
            loop {
                let notified = self.shared.notify.notified();
                tokio::pin!(notified);
                // Registered before the look, so that nothing in between is missed.
                notified.as_mut().enable();
                let due = match self.poll_wait(owner, &types) {
                    Ok(signals) => return Ok(signals),
                    Err(due) => due,
                };
                let due = due.map(|due| {
                    // A millisecond may have begun already: the rest of it is waited for too.
                    Instant::now() + due.since(self.shared.clock.now())
                });
                let until = due.map_or(end, |due| due.min(end));
                tokio::select! {
                    () = notified => {}
                    () = sleep_until(until) => {
                        if Instant::now() >= end {
                            return Ok(self.poll_wait(owner, &types).unwrap_or_default());
                        }
                    }
                }
            }
        })
    }

    fn poke<'a>(&'a self, owner: &'a Owner) -> Reply<'a, ()> {
        self.lock()
            .signals
            .entry(owner.clone())
            .or_default()
            .push(Signal::Poke);
        self.shared.notify.notify_waiters();
        Box::pin(ready(Ok(())))
    }

    fn done(&self, id: TaskId) -> Reply<'_, Option<TaskRecord>> {
        Box::pin(async move {
            let waiter = {
                let mut state = self.lock();
                match state.machine.status(id) {
                    Some(record) if !record.state.is_terminal() => {
                        let (sender, receiver) = oneshot::channel();
                        state.machine.watched.insert(id);
                        state.waiters.entry(id).or_default().push(sender);
                        receiver
                    }
                    known => return Ok(known),
                }
            };
            // The sender is dropped only together with the queue.
            let _ = waiter.await;
            self.get_status(id).await
        })
    }

    fn subscribe(&self) -> Reply<'_, Events> {
        let (sender, receiver) = mpsc::channel(EVENTS_BUFFER);
        let mut state = self.lock();
        state.machine.listening = true;
        state.subscribers.push(Subscriber {
            sender,
            is_behind: false,
        });
        drop(state);
        Box::pin(ready(Ok(Events(receiver))))
    }

    fn put_schedule(&self, schedule: Schedule) -> Reply<'_, ()> {
        self.call(|machine, now| {
            machine.put_schedule(now, schedule);
            Ok(())
        })
    }

    fn declare_schedules<'a>(
        &'a self,
        set: &'a str,
        schedules: Vec<Schedule>,
    ) -> Reply<'a, Vec<String>> {
        self.call(|machine, now| {
            check::schedules(set, &schedules)?;
            Ok(machine.declare_schedules(now, set, schedules))
        })
    }

    fn remove_schedule<'a>(&'a self, name: &'a str) -> Reply<'a, bool> {
        self.call(|machine, _| Ok(machine.remove_schedule(name)))
    }

    fn schedules(&self) -> Reply<'_, (Timestamp, Vec<Schedule>)> {
        self.call(|machine, now| Ok((now, machine.schedules())))
    }

    fn fire<'a>(
        &'a self,
        name: &'a str,
        last: Timestamp,
        slot: Timestamp,
        task: Option<NewTask>,
    ) -> Reply<'a, bool> {
        self.call(|machine, now| {
            check::tasks(task.as_slice(), machine.settings())?;
            Ok(machine.fire(now, name, last, slot, task)?)
        })
    }
}
