//! A memory queue that records its turns, takes time for them, loses replies and executes turns late.

use crate::core::{
    NewTask, Owner, Progress, Retention, Settings, TaskId, TaskRecord, TaskState, Timestamp,
};
use crate::queue::{
    Ask, Cancel, Claim, Counts, Enqueued, Events, Finish, Gone, Lease, Load, Queue, Released,
    Reply, Requeued, Schedule, Signal, Turn,
};
use crate::{Filter, Holding, InMemoryQueue, Page, Paging, QueueError};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A turn that asks for so many tasks.
    Sent(usize),
    Replied,
    /// A handler began.
    Ran,
    /// A wait for signals began.
    Waited,
}

pub(super) struct Probe {
    inner: InMemoryQueue,
    /// How long a reply takes.
    each_takes: Duration,
    /// Whether the reply to the turn with this number is lost.
    loses: fn(usize) -> bool,
    /// How many turns are replied to, if not all of them are; then no heartbeat is.
    renewals: Option<usize>,
    /// How long the reply takes that lists what runs.
    running_takes: Duration,
    /// The turn with this number fails, and is executed later.
    late: Option<(usize, Late)>,
    late_turn: Mutex<Option<(Vec<Finish>, Ask)>>,
    /// Whether the first wait that brings a cancel fails.
    loses_cancel: AtomicBool,
    seen: Mutex<Seen>,
}

/// When a turn that failed is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Late {
    /// After the next list of what runs.
    AfterRunning,
    /// Before the next heartbeat.
    BeforeHeartbeat,
}

#[derive(Default)]
struct Seen {
    events: Vec<Event>,
    turn_asks: Vec<Ask>,
    /// The most tasks that were Running after a turn, of each type.
    most_held_of: HashMap<Arc<str>, usize>,
    /// Of all types together.
    most_held: usize,
}

impl Probe {
    pub(super) fn new() -> Self {
        Self {
            inner: InMemoryQueue::new(),
            each_takes: Duration::ZERO,
            loses: |_| false,
            renewals: None,
            running_takes: Duration::ZERO,
            late: None,
            late_turn: Mutex::default(),
            loses_cancel: AtomicBool::new(false),
            seen: Mutex::default(),
        }
    }

    pub(super) fn each_takes(mut self, time: Duration) -> Self {
        self.each_takes = time;
        self
    }

    pub(super) fn loses(mut self, loses: fn(usize) -> bool) -> Self {
        self.loses = loses;
        self
    }

    pub(super) fn renews(mut self, turns: usize) -> Self {
        self.renewals = Some(turns);
        self
    }

    pub(super) fn running_takes(mut self, time: Duration) -> Self {
        self.running_takes = time;
        self
    }

    pub(super) fn executes_late(mut self, turn: usize, when: Late) -> Self {
        self.late = Some((turn, when));
        self
    }

    pub(super) fn loses_cancel(self) -> Self {
        self.loses_cancel.store(true, Ordering::SeqCst);
        self
    }

    pub(super) fn turn_asks(&self) -> Vec<Ask> {
        self.seen().turn_asks.clone()
    }

    async fn execute_late(&self, when: Late) {
        let is_now = self.late.is_some_and(|(_, late)| late == when);
        let turn = self.late_turn.lock().unwrap().take_if(|_| is_now);
        if let Some((reports, ask)) = turn {
            // Its reply goes nowhere.
            self.inner.turn(reports, ask).await.unwrap();
        }
    }

    pub(super) fn note(&self, event: Event) {
        self.seen().events.push(event);
    }

    pub(super) fn turns(&self) -> usize {
        let is_sent = |event: &&Event| matches!(event, Event::Sent(_));
        self.seen().events.iter().filter(is_sent).count()
    }

    pub(super) fn largest_ask(&self) -> usize {
        let asked = |event: &Event| match event {
            Event::Sent(max) => *max,
            _ => 0,
        };
        self.seen().events.iter().map(asked).max().unwrap_or(0)
    }

    /// Whether signals were waited for before the turn with this number.
    pub(super) fn waited_before(&self, turn: usize) -> bool {
        let (mut turns, mut waited) = (0, false);
        for event in &self.seen().events {
            match event {
                Event::Sent(_) if turns == turn => return waited,
                Event::Sent(_) => turns += 1,
                Event::Waited => waited = true,
                Event::Replied | Event::Ran => {}
            }
        }
        panic!("there were {turns} turns");
    }

    /// Handlers that began while a turn was in flight.
    pub(super) fn ran_in_flight(&self) -> usize {
        let (mut in_flight, mut count) = (false, 0);
        for event in &self.seen().events {
            match event {
                Event::Sent(_) => in_flight = true,
                Event::Replied => in_flight = false,
                Event::Ran => count += usize::from(in_flight),
                Event::Waited => {}
            }
        }
        count
    }

    pub(super) fn most_held(&self) -> usize {
        self.seen().most_held
    }

    pub(super) fn most_held_of(&self, task_type: &str) -> usize {
        let seen = self.seen();
        seen.most_held_of.get(task_type).copied().unwrap_or(0)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    async fn count(&self) {
        let counts = self.inner.counts_by_state().await.unwrap();
        let mut seen = self.seen();
        let held = counts.of(TaskState::Running) as usize;
        seen.most_held = seen.most_held.max(held);
        for (task_type, states) in counts.by_type {
            let held = states.get(&TaskState::Running).copied().unwrap_or(0) as usize;
            let most = seen.most_held_of.entry(task_type).or_default();
            *most = held.max(*most);
        }
    }
}

fn lost() -> QueueError {
    QueueError::Protocol("the reply is lost".into())
}

macro_rules! pass_on {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $reply:ty;)*) => {
        $(fn $name<'a>(&'a self, $($arg: $type),*) -> Reply<'a, $reply> {
            self.inner.$name($($arg),*)
        })*
    };
}

impl Queue for Probe {
    fn settings(&self) -> &Settings {
        self.inner.settings()
    }

    /// A look for signals takes as long as any call; a wait has a connection of its own.
    fn wait<'a>(
        &'a self,
        owner: &'a Owner,
        types: Vec<Arc<str>>,
        at_most: Duration,
    ) -> Reply<'a, Vec<Signal>> {
        Box::pin(async move {
            if !at_most.is_zero() {
                self.note(Event::Waited);
            } else if !self.each_takes.is_zero() {
                tokio::time::sleep(self.each_takes).await;
            }
            let signals = self.inner.wait(owner, types, at_most).await?;
            let is_cancel = |signal: &Signal| matches!(signal, Signal::Cancel(_));
            if signals.iter().any(is_cancel) && self.loses_cancel.swap(false, Ordering::SeqCst) {
                return Err(lost());
            }
            Ok(signals)
        })
    }

    fn turn(&self, reports: Vec<Finish>, ask: Ask) -> Reply<'_, Turn> {
        Box::pin(async move {
            let number = self.turns();
            self.note(Event::Sent(ask.max));
            self.seen().turn_asks.push(ask.clone());
            if self.late.is_some_and(|(late, _)| late == number) {
                *self.late_turn.lock().unwrap() = Some((reports, ask));
                self.note(Event::Replied);
                return Err(lost());
            }
            if self.renewals.is_some_and(|renewals| number >= renewals) {
                std::future::pending::<()>().await;
            }
            let turn = self.inner.turn(reports, ask).await;
            self.count().await;
            if !self.each_takes.is_zero() {
                tokio::time::sleep(self.each_takes).await;
            }
            self.note(Event::Replied);
            match (self.loses)(number) {
                true => Err(lost()),
                false => turn,
            }
        })
    }

    fn heartbeat<'a>(&'a self, owner: &'a Owner, lease: Duration) -> Reply<'a, Lease> {
        Box::pin(async move {
            if self.renewals.is_some() {
                std::future::pending::<()>().await;
            }
            self.execute_late(Late::BeforeHeartbeat).await;
            self.inner.heartbeat(owner, lease).await
        })
    }

    fn running<'a>(&'a self, owner: &'a Owner) -> Reply<'a, Vec<Claim>> {
        Box::pin(async move {
            tokio::time::sleep(self.running_takes).await;
            let running = self.inner.running(owner).await;
            self.execute_late(Late::AfterRunning).await;
            running
        })
    }

    pass_on! {
        fn enqueue(tasks: Vec<NewTask>) -> Vec<Enqueued>;
        fn release_owner(gone: &'a Gone, silent_for: Duration) -> Released;
        fn reap() -> usize;
        fn progress(claim: &'a Claim, progress: Progress) -> bool;
        fn save_step(claim: &'a Claim, name: &'a str, value: Bytes) -> bool;
        fn steps(id: TaskId) -> BTreeMap<String, Bytes>;
        fn cancel(id: TaskId) -> Cancel;
        fn get_status(id: TaskId) -> Option<TaskRecord>;
        fn counts_by_state() -> Counts;
        fn list(filter: &'a Filter, paging: &'a Paging) -> Page;
        fn owners() -> Vec<Holding>;
        fn requeue(ids: Vec<TaskId>) -> Vec<Requeued>;
        fn purge(ids: Vec<TaskId>) -> usize;
        fn pause(paused: bool) -> ();
        fn limit(task_type: &'a str, limit: Option<u32>) -> ();
        fn retention() -> Retention;
        fn load() -> Load;
        fn releases() -> bool;
        fn set_releases(on: bool) -> ();
        fn keep(retention: Retention) -> ();
        fn poke(owner: &'a Owner) -> ();
        fn done(id: TaskId) -> Option<TaskRecord>;
        fn subscribe() -> Events;
        fn put_schedule(schedule: Schedule) -> ();
        fn declare_schedules(set: &'a str, schedules: Vec<Schedule>) -> Vec<String>;
        fn remove_schedule(name: &'a str) -> bool;
        fn schedules() -> (Timestamp, Vec<Schedule>);
        fn fire(name: &'a str, last: Timestamp, slot: Timestamp, task: Option<NewTask>) -> bool;
    }
}
