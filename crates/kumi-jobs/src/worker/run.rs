//! The driver of a worker: does what its core (`core/worker.rs`) says, and tells it what happened.
//!
//! It holds the futures: the call to the queue in flight, the wait for signals beside it, and the handlers. Everything that is
//! decided is decided in the core.

use super::control::{Controlled, ReleasedLife};
use super::execute::{self, Beginning, Running};
use super::{WorkerError, WorkerSettings};
use crate::core::worker::{
    Action, Call, CallError, Last, LifeId, Lives, Moment, Note, Reply, Rules, Step, Verdict,
};
use crate::core::{Claim, Finish, Outcome, Owner, TURN_LIMIT, TaskId, Token};
use crate::error::QueueError;
use crate::queue::{Lease, Queue, Signal, Turn};
use crate::random;
use crate::registry::Registry;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::future::{Future, poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Handlers are polled by the worker itself for this long after a turn; what is left gets tasks of its own.
const INLINE: Duration = Duration::from_millis(1);

/// Handlers that are polled between two looks at the clock.
const CLOCK_STEP: usize = 4;

/// How long a worker that ends tries to report.
const LAST_REPORTS: Duration = Duration::from_secs(5);

/// How much longer than its grace a handler that blocks its thread is waited for. One that can be dropped reports by itself
/// once the grace is over.
const AFTER_GRACE: Duration = Duration::from_millis(500);

pub(super) struct Run<S> {
    core: Lives,
    started: Instant,
    queue: Arc<dyn Queue>,
    state: Arc<S>,
    registry: Registry<S>,
    settings: WorkerSettings,
    /// A task may run twice, if its first run was given to another life of this worker.
    running: HashMap<(TaskId, Token), Running>,
    /// Runs of lives that were released which still block a thread; each ends with its type.
    abandoned: JoinSet<Arc<str>>,
    /// One of each life at most.
    calls: Vec<(LifeId, InFlight)>,
    waits: Vec<(LifeId, Wait)>,
    /// Orders and notices of the [`WorkerControl`](super::WorkerControl); none if the worker has no control.
    controlled: Option<Controlled>,
    /// The renewals that were carried out.
    renewals: u64,
    reports_sender: mpsc::UnboundedSender<Finish>,
    reports_receiver: mpsc::UnboundedReceiver<Finish>,
    /// Why this worker stops, if it is not told to: the queue has another format.
    foreign: Option<QueueError>,
    /// Handlers are polled once where they are claimed. On a runtime of one thread nothing would run beside them anyway,
    /// and a handler that does not wait needs no task of its own.
    inline: bool,
}

/// The queue's reply to the call in flight.
enum Replied {
    Turn(Result<Turn, QueueError>),
    Heartbeat(Result<Lease, QueueError>),
    Recover(Result<Vec<Claim>, QueueError>),
    Look(Result<Vec<Signal>, QueueError>),
}

type InFlight = BoxFuture<'static, Replied>;

type Wait = BoxFuture<'static, Result<Vec<Signal>, QueueError>>;

impl<S: Send + Sync + 'static> Run<S> {
    pub(super) fn new(
        queue: Arc<dyn Queue>,
        state: Arc<S>,
        registry: Registry<S>,
        settings: WorkerSettings,
        types: Vec<Arc<str>>,
        controlled: Option<Controlled>,
    ) -> Self {
        let (reports_sender, reports_receiver) = mpsc::unbounded_channel();
        let registered = types.iter();
        let registered = registered.filter_map(|task_type| registry.registered(task_type));
        let grace = execute::longest_grace(registered.map(|registered| &*registered.options));
        let rules = Rules {
            owner: settings.owner.clone(),
            concurrency: settings.concurrency,
            limits: settings.limits.clone(),
            types,
            lease: settings.lease,
            shutdown: settings.shutdown,
            grace: grace + AFTER_GRACE,
        };
        Self {
            core: Lives::new(rules, random::u64() as usize % 1_000),
            started: Instant::now(),
            queue,
            state,
            registry,
            settings,
            running: HashMap::new(),
            abandoned: JoinSet::new(),
            calls: Vec::new(),
            waits: Vec::new(),
            controlled,
            renewals: 0,
            reports_sender,
            reports_receiver,
            foreign: None,
            inline: Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread,
        }
    }

    pub(super) async fn until(mut self, stop: impl Future) -> Result<(), WorkerError> {
        tokio::pin!(stop);
        let mut batch = Vec::new();
        self.take_orders();
        while let Next::Sleep(until) = self.act() {
            if let (None, true, Some(owner)) =
                (&self.controlled, self.core.has_none(), self.core.released())
            {
                return Err(QueueError::OwnerReleased(owner.clone()).into());
            }
            let wake_at = until.map(|until| self.started + until.since_start());
            tokio::select! {
                // A queue that replies at once has a reply at every turn of this loop: what else there is goes first.
                biased;
                _ = &mut stop, if !self.core.is_ending() => self.core.handle_stop(self.now()),
                has_control = changed(&mut self.controlled), if !self.core.is_ending() => match has_control {
                    true => self.take_orders(),
                    false => self.controlled = None,
                },
                (life, signals) = first_of(&mut self.waits) => self.take_wait(life, signals),
                (life, reply) = first_of(&mut self.calls) => {
                    if self.take_reply(life, reply)? {
                        self.send_ahead(life).await;
                        // A queue that replies at once would keep this loop from ever waiting. And the runtime of
                        // one thread writes a call to its socket while this task does not run.
                        if self.inline { tokio::task::yield_now().await; }
                    }
                }
                _ = self.reports_receiver.recv_many(&mut batch, TURN_LIMIT) => {
                    for report in batch.drain(..) {
                        self.take_report(report);
                    }
                }
                Some(Ok(task_type)) = self.abandoned.join_next(), if !self.abandoned.is_empty() => {
                    self.core.handle_returned(&task_type);
                }
                () = sleep_until(wake_at.unwrap_or(self.started)), if wake_at.is_some() => {
                    self.core.handle_timeout(self.now());
                }
            }
        }
        self.last_reports().await;
        match self.foreign.take() {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    fn now(&self) -> Moment {
        Moment::after_start(self.started.elapsed())
    }

    /// Does what the core says until it has nothing more to do.
    fn act(&mut self) -> Next {
        let mut now = self.now();
        let (mut inline_until, mut started) = (None, 0_usize);
        let next = loop {
            let Step { life, action } = self.core.poll(now, &mut random::u64);
            let Some(life) = life else {
                break match action {
                    Action::Sleep(until) => Next::Sleep(until),
                    _ => Next::End,
                };
            };
            match action {
                Action::Start(claim) => {
                    if started.is_multiple_of(CLOCK_STEP) {
                        now = self.now();
                    }
                    started += 1;
                    let inline_until = *inline_until.get_or_insert(now + INLINE);
                    self.start(claim, self.inline && now < inline_until);
                }
                Action::Stop(id, token, reason) => {
                    if let Some(running) = self.running.get(&(id, token)) {
                        running.stop(reason);
                    }
                }
                Action::Send(call) => {
                    let call = self.call(life, call);
                    self.calls.push((life, call));
                }
                Action::Wait(types, at_most) => {
                    let wait = self.start_wait(life, types, at_most);
                    self.waits.push((life, wait));
                }
                Action::Poke => self.spawn_poke(life),
                Action::End => self.waits.retain(|(of, _)| *of != life),
                Action::Sleep(_) => {}
            }
        };
        self.tell();
        self.tell_control();
        next
    }

    /// Starts a claim, and tells the core whether it is over already.
    fn start(&mut self, claim: Claim, inline: bool) {
        let Some(registered) = self.registry.registered(&claim.envelope.task_type) else {
            self.core.cannot_start(&claim);
            return;
        };
        let key = (claim.id, claim.token);
        let mut beginning = Beginning::new(claim, registered, &self.state, &self.queue);
        if inline && let Some(report) = beginning.poll_once() {
            self.core.ended_at_once(report);
            return;
        }
        let running = beginning.start(&self.reports_sender);
        self.core.goes_on(running.task_type.clone());
        self.running.insert(key, running);
    }

    /// Does what a control wants.
    fn take_orders(&mut self) {
        let Some(controlled) = &mut self.controlled else {
            return;
        };
        let orders = controlled.orders.borrow_and_update().clone();
        if let Some(owner) = orders.owner {
            self.core.renew_life(owner);
        }
        self.renewals = orders.renewals;
        self.core.set_drained(orders.is_drained);
    }

    /// Tells a control whether the newest life was released.
    fn tell_control(&self) {
        let Some(controlled) = &self.controlled else {
            return;
        };
        let released = self.core.released().map(|owner| ReleasedLife {
            owner: owner.clone(),
            renewals: self.renewals,
        });
        controlled.released.send_if_modified(|told| {
            let is_new = *told != released;
            *told = released;
            is_new
        });
    }

    fn call(&self, life: LifeId, call: Call) -> InFlight {
        let (queue, owner) = (self.queue.clone(), self.core.owner(life).clone());
        let lease = self.settings.lease;
        match call {
            Call::Turn(reports, ask) => {
                Box::pin(async move { Replied::Turn(queue.turn(reports, ask).await) })
            }
            Call::Heartbeat => {
                Box::pin(async move { Replied::Heartbeat(queue.heartbeat(&owner, lease).await) })
            }
            Call::Recover => {
                Box::pin(async move { Replied::Recover(queue.recover(&owner, lease).await) })
            }
            Call::Look => Box::pin(async move {
                Replied::Look(queue.wait(&owner, Vec::new(), Duration::ZERO).await)
            }),
        }
    }

    /// Sends the next turn before the claims of the last one are run. The first poll of a call puts it on its way.
    async fn send_ahead(&mut self, life: LifeId) {
        let now = self.now();
        let Some(call) = self.core.send_ahead(life, now, &mut random::u64) else {
            return;
        };
        let mut call = self.call(life, call);
        if let Poll::Ready(reply) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            call = Box::pin(ready(reply));
        }
        self.calls.push((life, call));
    }

    fn start_wait(&self, life: LifeId, types: Vec<Arc<str>>, at_most: Duration) -> Wait {
        let (queue, owner) = (self.queue.clone(), self.core.owner(life).clone());
        Box::pin(async move { queue.wait(&owner, types, at_most).await })
    }

    /// Ends the wait in flight. If the poke fails, the wait ends by itself within seconds.
    fn spawn_poke(&self, life: LifeId) {
        let (queue, owner) = (self.queue.clone(), self.core.owner(life).clone());
        tokio::spawn(async move {
            if let Err(error) = queue.poke(&owner).await {
                tracing::debug!(%owner, error = &error as &dyn std::error::Error, "a poke failed");
            }
        });
    }

    fn take_report(&mut self, report: Finish) {
        self.running.remove(&(report.id, report.token));
        self.core.handle_ended(report);
    }

    fn take_wait(&mut self, life: LifeId, signals: Result<Vec<Signal>, QueueError>) {
        let now = self.now();
        match signals {
            Ok(signals) => self.core.handle_wait(life, now, Ok(&signals)),
            Err(error) => {
                self.core.handle_wait(life, now, Err(call_error(&error)));
                tracing::warn!(owner = %self.core.owner(life), error = &error as &dyn std::error::Error, "a wait on the queue failed");
            }
        }
    }

    /// Whether the call was carried out. An error ends the worker.
    fn take_reply(&mut self, life: LifeId, reply: Replied) -> Result<bool, WorkerError> {
        let mut failed = None;
        let reply = match reply {
            Replied::Turn(turn) => Reply::Turn(checked(turn, &mut failed)),
            Replied::Heartbeat(lease) => Reply::Heartbeat(checked(lease, &mut failed)),
            Replied::Recover(claims) => Reply::Recover(checked(claims, &mut failed)),
            Replied::Look(signals) => Reply::Look(checked(signals, &mut failed)),
        };
        let owner = self.core.owner(life).clone();
        let verdict = self.core.handle_reply(life, self.now(), reply);
        self.tell();
        let Some(error) = failed else {
            return Ok(true);
        };
        if matches!(error, QueueError::Format { .. }) {
            tracing::error!(%owner, error = &error as &dyn std::error::Error, "no more tasks are claimed");
        }
        match verdict {
            Verdict::GoOn => Ok(true),
            Verdict::Failed => {
                tracing::warn!(%owner, error = &error as &dyn std::error::Error, "a call to the queue failed");
                Ok(false)
            }
            Verdict::Ending => {
                self.foreign = Some(error);
                Ok(true)
            }
            // The worker goes on with another life, which it has or will be given.
            Verdict::Over
                if matches!(error, QueueError::OwnerReleased(_))
                    && (!self.core.is_last(life) || self.controlled.is_some()) =>
            {
                tracing::warn!(%owner, "this life of the worker was declared gone; what it runs is aborted");
                self.abort_life(&owner);
                Ok(false)
            }
            Verdict::Over => {
                self.abort_all();
                Err(error.into())
            }
        }
    }

    /// Logs what the core noted.
    fn tell(&mut self) {
        for (owner, note) in self.core.take_notes() {
            match note {
                Note::Reported(report, attempt, finished, now) => {
                    execute::tell(report.id, &report.outcome, attempt, finished, now);
                }
                Note::LeaseEnded => {
                    tracing::warn!(%owner, "the lease ran out; running tasks are cancelled");
                }
                Note::LeaseLost(id, attempt) => {
                    tracing::warn!(task_id = %id, attempt, %owner, queue = self.queue.name(), "the lease was lost: the handler is cancelled and its report will be refused");
                }
                Note::GivenAway(lost) => {
                    tracing::warn!(%owner, lost, "tasks were given to other workers; they are cancelled here");
                }
            }
        }
    }

    /// Sends what is left to report, and passes on a wake-up that this worker may have taken.
    async fn last_reports(&mut self) {
        self.abort_all();
        let until = Instant::now() + LAST_REPORTS;
        for last in self.core.take_last() {
            let owner = last.ask.owner.clone();
            let call = call_of(&mut self.calls, last.life);
            let sent = send_last(&*self.queue, last, call);
            match timeout_at(until, sent).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%owner, error = &error as &dyn std::error::Error, "the last reports failed; the lease will end");
                }
                Err(_) => {
                    tracing::warn!(%owner, "the last reports took too long; the lease will end");
                }
            }
        }
    }
}

impl<S> Run<S> {
    /// Drops the runs of a life. Those that block a thread have their slots until that is done with them.
    fn abort_life(&mut self, owner: &Owner) {
        let runs = self
            .running
            .extract_if(|_, running| running.owner == *owner);
        for (_, running) in runs {
            if let Some(thread) = running.abort() {
                self.core.abandon(running.task_type.clone());
                self.abandoned.spawn(async move {
                    // Nothing is sent: the sender is dropped.
                    let _ = thread.await;
                    running.task_type
                });
            }
        }
    }

    /// Drops all runs.
    fn abort_all(&mut self) {
        for (_, running) in self.running.drain() {
            drop(running.abort());
        }
    }
}

impl<S> Drop for Run<S> {
    /// A worker that was dropped gives back what it holds, if there is still a runtime to do it on.
    fn drop(&mut self) {
        self.abort_all();
        let mut last = Vec::new();
        for of_life in self.core.give_back_all(&mut random::u64) {
            let call = call_of(&mut self.calls, of_life.life);
            if call.is_some() || !of_life.reports.is_empty() {
                last.push((of_life, call));
            }
        }
        if let (false, Ok(runtime)) = (last.is_empty(), Handle::try_current()) {
            let queue = self.queue.clone();
            runtime.spawn(async move {
                for (last, call) in last {
                    let owner = last.ask.owner.clone();
                    if let Err(error) = send_last(&*queue, last, call).await {
                        tracing::warn!(%owner, error = &error as &dyn std::error::Error, "the last reports failed; the lease will end");
                    }
                }
            });
        }
    }
}

/// Sends the last reports of a life, and those on what its call in flight brings.
async fn send_last(
    queue: &dyn Queue,
    last: Last,
    call: Option<InFlight>,
) -> Result<(), QueueError> {
    let mut reports = unstarted(call).await;
    reports.extend(last.reports);
    loop {
        let rest = reports.split_off(reports.len().min(TURN_LIMIT));
        queue.turn(reports, last.ask.clone()).await?;
        if rest.is_empty() {
            return Ok(());
        }
        reports = rest;
    }
}

/// What the core's last action leaves to do.
enum Next {
    /// To sleep until this moment, or until something happens.
    Sleep(Option<Moment>),
    End,
}

/// What a call that failed means for the core; the error itself is for the log.
fn checked<T>(
    reply: Result<T, QueueError>,
    failed: &mut Option<QueueError>,
) -> Result<T, CallError> {
    reply.map_err(|error| {
        let for_core = call_error(&error);
        *failed = Some(error);
        for_core
    })
}

fn call_error(error: &QueueError) -> CallError {
    match error {
        QueueError::OwnerReleased(_) => CallError::Released,
        QueueError::Format { .. } => CallError::Format,
        _ => CallError::Other,
    }
}

/// Waits for the first of some futures, and takes it out; for ever if there is none.
async fn first_of<T>(futures: &mut Vec<(LifeId, BoxFuture<'static, T>)>) -> (LifeId, T) {
    poll_fn(|cx| {
        for (index, (life, future)) in futures.iter_mut().enumerate() {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                let life = *life;
                drop(futures.swap_remove(index));
                return Poll::Ready((life, output));
            }
        }
        Poll::Pending
    })
    .await
}

/// The call of a life, if one is in flight.
fn call_of(calls: &mut Vec<(LifeId, InFlight)>, life: LifeId) -> Option<InFlight> {
    let index = calls.iter().position(|(of, _)| *of == life)?;
    Some(calls.swap_remove(index).1)
}

/// Waits until a control wants something else, or is gone: then it answers false. For ever if there is none.
async fn changed(controlled: &mut Option<Controlled>) -> bool {
    match controlled {
        Some(controlled) => controlled.orders.changed().await.is_ok(),
        None => std::future::pending().await,
    }
}

/// Reports on the claims that the call in flight brings to a worker that has ended.
async fn unstarted(call: Option<InFlight>) -> Vec<Finish> {
    let Some(call) = call else {
        return Vec::new();
    };
    let Replied::Turn(Ok(turn)) = call.await else {
        return Vec::new();
    };
    let report = |claim: &Claim| Finish::new(claim, Outcome::GivenBack);
    turn.claims.iter().rev().map(report).collect()
}
