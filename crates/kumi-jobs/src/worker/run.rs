//! The worker's loop: one call to the queue in flight, everything else beside it.
//!
//! Reports gather while a call is in flight and go out with the next turn, which also asks for new tasks. When there is
//! nothing to report and nothing to claim, the loop waits on the queue's signals. After a call that failed, it is unknown
//! whether the call was carried out: reports are sent again, and the queue is asked what this worker holds, so that claims
//! whose reply was lost are started too.
//!
//! Claims start as far as there are free slots. While handlers end at their first poll, `ahead.rs` lets the worker claim
//! more than that, and send the next turn before it runs what the last one brought.

mod held;

use super::ahead::{Pace, Waiting};
use super::execute::{self, Beginning, Running, Stop};
use super::{RENEWAL, WorkerError, WorkerSettings};
use crate::core::{TURN_LIMIT, TaskId, Timestamp};
use crate::error::QueueError;
use crate::queue::{Ask, Claim, Finish, Lease, Outcome, Queue, Room, Signal, Turn};
use crate::registry::Registry;
use futures_util::future::BoxFuture;
use std::collections::HashMap;
use std::future::{Future, poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// The longest wait for signals.
const WAIT: Duration = Duration::from_secs(5);

/// How long a worker that always has a call in flight goes without looking for signals.
const DEAF: Duration = Duration::from_secs(1);

/// The pauses after failed calls grow from the first to the second.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_LAST: Duration = Duration::from_secs(2);

/// Handlers are polled by the worker itself for this long after a turn; what is left gets tasks of its own.
const INLINE: Duration = Duration::from_millis(1);

/// Handlers that are polled between two looks at the clock.
const CLOCK_STEP: usize = 4;

/// How long a worker that ends tries to report.
const LAST_REPORTS: Duration = Duration::from_secs(5);

pub(super) struct Run<S> {
    queue: Arc<dyn Queue>,
    state: Arc<S>,
    registry: Registry<S>,
    settings: WorkerSettings,
    types: Vec<Arc<str>>,
    /// Where the next ask's list of types begins.
    rotation: usize,
    running: HashMap<TaskId, Running>,
    running_of: HashMap<Arc<str>, usize>,
    /// Claims that have no slot yet.
    waiting: Waiting,
    pace: Pace,
    call: Option<InFlight>,
    /// Calls start no earlier than this.
    not_before: Instant,
    /// Reports that the queue has not confirmed, with their attempt. The first `sent` of them are in flight.
    reports: Vec<(Finish, u32)>,
    sent: usize,
    reports_sender: mpsc::UnboundedSender<Finish>,
    reports_receiver: mpsc::UnboundedReceiver<Finish>,
    /// When the last confirmed renewal was sent.
    renewed: Instant,
    /// The lease was given up since the last renewal.
    lapsed: bool,
    /// When signals were last waited for or looked for.
    listened: Instant,
    /// Whether signals may be looked for: not twice in a row, so that a slow queue still gets reports and renewals.
    may_look: bool,
    /// Cancels of tasks that are not here: the call in flight may bring them.
    early_cancels: Vec<TaskId>,
    /// Whether there may be something to claim.
    hungry: bool,
    /// Set while this worker may hold tasks or cancels that it does not know of: a time at which it is known to have had
    /// its lease, should there be such tasks.
    unsure: Option<Instant>,
    /// When the queue was last asked what this worker holds.
    looked: Option<Instant>,
    stopping: bool,
    /// Why this worker stops, if it is not told to: the queue has another format.
    foreign: Option<QueueError>,
    /// Calls that failed since the last turn or heartbeat that did not. A look at what this worker holds comes after each
    /// turn that failed, so its success says nothing.
    failures: u32,
    /// Handlers are polled once where they are claimed. On a runtime of one thread nothing would run beside them anyway,
    /// and a handler that does not wait needs no task of its own.
    inline: bool,
}

/// The reply to the one call in flight.
enum Reply {
    Turn(Result<Turn, QueueError>),
    Beat(Result<Lease, QueueError>),
    Running(Result<Vec<Claim>, QueueError>),
    Signals(Result<Vec<Signal>, QueueError>),
}

type Call = BoxFuture<'static, Reply>;

/// A call and when it was sent.
struct InFlight {
    call: Call,
    sent_at: Instant,
}

type Wait = BoxFuture<'static, Result<Vec<Signal>, QueueError>>;

impl<S: Send + Sync + 'static> Run<S> {
    pub(super) fn new(
        queue: Arc<dyn Queue>,
        state: Arc<S>,
        registry: Registry<S>,
        settings: WorkerSettings,
        types: Vec<Arc<str>>,
    ) -> Self {
        let (reports_sender, reports_receiver) = mpsc::unbounded_channel();
        Self {
            queue,
            state,
            registry,
            settings,
            types,
            rotation: crate::random::u64() as usize % 1_000,
            running: HashMap::new(),
            running_of: HashMap::new(),
            waiting: Waiting::default(),
            pace: Pace::default(),
            call: None,
            not_before: Instant::now(),
            reports: Vec::new(),
            sent: 0,
            reports_sender,
            reports_receiver,
            renewed: Instant::now(),
            lapsed: false,
            listened: Instant::now(),
            may_look: true,
            early_cancels: Vec::new(),
            hungry: true,
            unsure: None,
            looked: None,
            stopping: false,
            foreign: None,
            failures: 0,
            inline: Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread,
        }
    }

    pub(super) async fn until(mut self, stop: impl Future) -> Result<(), WorkerError> {
        tokio::pin!(stop);
        let mut wait: Option<(Wait, Vec<Arc<str>>, bool)> = None;
        let mut next_due: Option<Duration> = None;
        let mut give_up_at: Option<Instant> = None;
        let mut in_grace = false;
        let mut batch = Vec::new();
        loop {
            // Before anything is started: what came in a reply that was too late is not run.
            self.check_lease();
            self.start_waiting();
            let now = Instant::now();
            if self.foreign.is_some() && give_up_at.is_none() {
                give_up_at = Some(now + self.settings.shutdown);
            }
            if wait.is_some() {
                self.listened = now;
            }
            self.send(now);
            if self.stopping && !self.holds_some() && self.call.is_none() && self.unsure.is_none() {
                break;
            }
            if in_grace && self.running.is_empty() {
                break;
            }
            if self.call.is_none() && wait.is_none() && !self.stopping && now >= self.not_before {
                let types = self.types_with_room();
                let at_most = next_due
                    .filter(|_| !types.is_empty())
                    .unwrap_or(WAIT)
                    .min(WAIT);
                wait = Some((self.start_wait(types.clone(), at_most), types, false));
            }
            if let Some((_, types, poked)) = &mut wait
                && !*poked
                && self.call.is_none()
                && (self.stopping
                    || self
                        .types_with_room()
                        .iter()
                        .any(|room| !types.contains(room)))
            {
                *poked = true;
                self.spawn_poke();
            }
            let lease_end = self.lease_end();
            let beat_at = self.renewed + RENEWAL;
            let not_before = self.not_before;
            let overdue_at = self.waiting.deadline();
            tokio::select! {
                // A queue that replies at once has a reply at every turn of this loop: what else there is goes first.
                biased;
                _ = &mut stop, if !self.stopping => {
                    self.stopping = true;
                    self.give_back_waiting();
                    give_up_at = Some(Instant::now() + self.settings.shutdown);
                }
                signals = poll_wait(&mut wait) => {
                    wait = None;
                    self.listened = Instant::now();
                    match signals {
                        Ok(signals) => self.take_signals(&signals),
                        Err(error) => {
                            self.not_before = Instant::now() + self.pause();
                            tracing::warn!(owner = %self.settings.owner, error = &error as &dyn std::error::Error, "a wait on the queue failed");
                            self.hungry = true;
                            self.may_lack_a_cancel();
                        }
                    }
                }
                reply = poll(&mut self.call) => {
                    let sent_at = self.call.take().map_or(now, |call| call.sent_at);
                    match self.take_reply(reply, sent_at)? {
                        Ok(due) => {
                            if due.is_some() { next_due = due; }
                            if self.pace.is_ahead() && !self.stopping { self.send_ahead().await; }
                            // A queue that replies at once would keep this loop from ever waiting. And the runtime of
                            // one thread writes a call to its socket while this task does not run.
                            if self.inline { tokio::task::yield_now().await; }
                        }
                        Err(error) => {
                            self.not_before = Instant::now() + self.pause();
                            tracing::warn!(owner = %self.settings.owner, error = &error as &dyn std::error::Error, "a call to the queue failed");
                        }
                    }
                }
                _ = self.reports_receiver.recv_many(&mut batch, TURN_LIMIT) => {
                    for report in batch.drain(..) {
                        self.take_report(report);
                    }
                }
                () = sleep_until(beat_at), if self.call.is_none() && self.holds_some() && now < beat_at => {}
                () = sleep_until(not_before), if self.call.is_none() && now < not_before => {}
                () = sleep_until(lease_end), if self.holds_some() && !self.lapsed => {}
                () = sleep_until(overdue_at.unwrap_or(now)), if overdue_at.is_some() => {
                    // What came after the oldest has no slot either, and is to stay behind it in its line.
                    self.give_back_waiting();
                }
                () = sleep_until(give_up_at.unwrap_or(now)), if give_up_at.is_some() => {
                    if in_grace {
                        break;
                    }
                    // Reports and renewals go on, so that no other worker gets a task before its handler has ended.
                    in_grace = true;
                    give_up_at = Some(self.give_up());
                }
            }
        }
        self.abandon();
        self.last_reports().await;
        match self.foreign.take() {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    /// Sends the next call, if there is something to say and none is in flight.
    fn send(&mut self, now: Instant) {
        if self.call.is_none() && now >= self.not_before {
            let call = self.next_call(now);
            self.call = call.map(|call| InFlight { call, sent_at: now });
        }
    }

    /// Sends the next turn before the claims of the last one are run, so that the queue and this worker work at the same
    /// time. The first poll of a call puts it on its way.
    async fn send_ahead(&mut self) {
        self.hungry = true;
        self.send(Instant::now());
        let Some(InFlight { call, .. }) = &mut self.call else {
            return;
        };
        if let Poll::Ready(reply) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            *call = Box::pin(ready(reply));
        }
    }

    fn next_call(&mut self, now: Instant) -> Option<Call> {
        let (queue, owner) = (self.queue.clone(), self.settings.owner.clone());
        if self.unsure.is_some() {
            self.looked = Some(now);
            let lease = self.settings.lease;
            return Some(Box::pin(async move {
                Reply::Running(queue.recover(&owner, lease).await)
            }));
        }
        let holds_tasks = !self.running.is_empty() || !self.waiting.is_empty();
        if holds_tasks && self.may_look && now >= self.listened + DEAF {
            self.may_look = false;
            return Some(Box::pin(async move {
                Reply::Signals(queue.wait(&owner, Vec::new(), Duration::ZERO).await)
            }));
        }
        // Whatever is sent now comes between two looks for signals.
        self.may_look = true;
        let asks = self.hungry && self.free() > 0 && !self.stopping;
        let max = match asks {
            true => self.pace.ask(self.room()),
            false => 0,
        };
        if max > 0 || !self.reports.is_empty() {
            if max > 0 {
                self.hungry = false;
            } else {
                self.pace.report_only();
            }
            let reports: Vec<Finish> = self
                .reports
                .iter()
                .take(TURN_LIMIT)
                .map(|(report, _)| report.clone())
                .collect();
            self.sent = reports.len();
            let ask = self.ask(max);
            return Some(Box::pin(async move {
                Reply::Turn(queue.turn(reports, ask).await)
            }));
        }
        if self.holds_some() && now >= self.renewed + RENEWAL {
            let lease = self.settings.lease;
            return Some(Box::pin(async move {
                Reply::Beat(queue.heartbeat(&owner, lease).await)
            }));
        }
        None
    }

    fn ask(&mut self, max: usize) -> Ask {
        self.rotation = self.rotation.wrapping_add(1);
        let first = self.rotation % self.types.len();
        let types = self.types[first..].iter().chain(&self.types[..first]);
        Ask {
            owner: self.settings.owner.clone(),
            // Not the same for two asks: a server that lost its last writes counts its claims again from an earlier number.
            nonce: crate::random::u64(),
            lease: self.settings.lease,
            types: types
                .map(|task_type| Room {
                    task_type: task_type.clone(),
                    room: self.limited(task_type, max),
                })
                .collect(),
            max: max.min(TURN_LIMIT),
        }
    }

    /// The outer error ends the worker; the inner one is a call that failed.
    fn take_reply(
        &mut self,
        reply: Reply,
        sent_at: Instant,
    ) -> Result<Result<Option<Duration>, QueueError>, WorkerError> {
        let sent = std::mem::take(&mut self.sent);
        let failed = match reply {
            Reply::Turn(Ok(turn)) => {
                self.failures = 0;
                self.renew(sent_at);
                let held = turn.held;
                let due = self.take_turn(sent, turn);
                self.compare(held, sent_at);
                return Ok(Ok(due));
            }
            Reply::Running(Ok(claims)) => {
                let unsure = self.unsure.take();
                self.hungry = true;
                let to_cancel = claims.iter().filter(|claim| claim.cancel_requested);
                let to_cancel: Vec<TaskId> = to_cancel.map(|claim| claim.id).collect();
                self.lose_all_but(&claims);
                let unknown = claims.into_iter().filter(|claim| !self.knows(claim));
                let unknown: Vec<Claim> = unknown.collect();
                if let (Some(sent_at), false) = (unsure, unknown.is_empty()) {
                    // They show that the turn whose reply was lost was executed, and renewed the lease.
                    self.renew(self.renewed.max(sent_at));
                }
                self.take_claims(unknown);
                to_cancel.into_iter().for_each(|id| self.cancel(id));
                self.cancel_early();
                return Ok(Ok(None));
            }
            Reply::Beat(Ok(lease)) => {
                self.failures = 0;
                self.renew(sent_at);
                match lease {
                    Lease::Lost => {
                        self.tell_lost();
                        self.lose_lease();
                    }
                    Lease::Renewed(held) => self.compare(held, sent_at),
                }
                self.cancel_early();
                return Ok(Ok(None));
            }
            Reply::Signals(signals) => {
                self.listened = Instant::now();
                match signals {
                    Ok(signals) => {
                        self.take_signals(&signals);
                        self.cancel_early();
                        return Ok(Ok(None));
                    }
                    Err(error) => {
                        self.may_lack_a_cancel();
                        error
                    }
                }
            }
            Reply::Turn(Err(error)) => {
                self.unsure.get_or_insert(sent_at);
                self.pace.slow_down();
                error
            }
            Reply::Beat(Err(error)) | Reply::Running(Err(error)) => error,
        };
        if let QueueError::OwnerReleased(_) = &failed {
            self.running.values().for_each(Running::abort);
            self.running.clear();
            self.waiting = Waiting::default();
            self.reports.clear();
            return Err(failed.into());
        }
        if let QueueError::Format { .. } = &failed {
            return self.stop_for(failed);
        }
        Ok(Err(failed))
    }

    fn take_turn(&mut self, sent: usize, turn: Turn) -> Option<Duration> {
        for ((report, attempt), finished) in self.reports.drain(..sent).zip(&turn.finished) {
            execute::tell(report.id, &report.outcome, attempt, *finished, turn.now);
        }
        let is_full = self.pace.replied(turn.claims.len(), turn.more);
        self.hungry |= turn.more || is_full;
        self.take_claims(turn.claims);
        self.cancel_early();
        let until = |due: Timestamp| due.since(turn.now).max(Duration::from_millis(1));
        Some(turn.next_due.map_or(WAIT, until))
    }

    /// Takes claims that are new here. A worker that stops gives them back.
    fn take_claims(&mut self, claims: Vec<Claim>) {
        if self.stopping {
            // Before what is given back already: that is older, and comes to stand before these in its line.
            let reports = claims.iter().rev().map(given_back).collect::<Vec<_>>();
            self.reports.splice(0..0, reports);
            return;
        }
        let (now, some_wait) = (Instant::now(), !self.waiting.is_empty());
        for claim in claims {
            if some_wait {
                // An older claim on the same task: its lease ended meanwhile.
                self.waiting.remove(claim.id);
            }
            self.waiting.push(claim, now);
        }
    }

    /// Starts the claims that wait, as far as there are free slots.
    fn start_waiting(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        if self
            .waiting
            .since()
            .is_some_and(|since| now >= since + self.settings.lease)
        {
            // This process stood still for so long that other workers may have these tasks.
            self.give_back_waiting();
            return;
        }
        let (inline_until, mut quick) = (now + INLINE, true);
        let (mut inline, mut started) = (self.inline, 0_usize);
        while self.free() > 0
            && let Some(claim) = self.waiting.pop()
        {
            if inline && started.is_multiple_of(CLOCK_STEP) {
                inline = Instant::now() < inline_until;
            }
            started += 1;
            quick &= self.start(claim, inline);
        }
        self.pace.ran(quick && self.waiting.is_empty());
    }

    /// Reports the claims that were not started.
    fn give_back_waiting(&mut self) {
        let all = self.waiting.take_all();
        self.reports.extend(all.map(|claim| given_back(&claim)));
    }

    fn renew(&mut self, sent_at: Instant) {
        (self.renewed, self.lapsed) = (sent_at, false);
    }

    /// When the lease ends that was renewed last.
    fn lease_end(&self) -> Instant {
        self.renewed + self.settings.lease
    }

    /// Notices that the lease has ended. What it covered is cancelled or given back.
    fn check_lease(&mut self) {
        if self.holds_some() && !self.lapsed && Instant::now() >= self.lease_end() {
            tracing::warn!(owner = %self.settings.owner, "the lease ran out; running tasks are cancelled");
            self.lose_lease();
        }
    }

    /// The lease is over, or may be: other workers may get what this one holds.
    fn lose_lease(&mut self) {
        self.lapsed = true;
        self.give_back_waiting();
        for running in self.running.values() {
            running.stop(Stop::LeaseLost);
        }
    }

    /// Logs which tasks this worker runs that the queue has given to others, each once.
    fn tell_lost(&self) {
        for (id, running) in &self.running {
            if !running.is_stopping() {
                tracing::warn!(task_id = %id, attempt = running.attempt, owner = %self.settings.owner, queue = self.queue.name(), "the lease was lost: the handler is cancelled and its report will be refused");
            }
        }
    }

    /// Starts a claim. True if it is over already.
    fn start(&mut self, claim: Claim, inline: bool) -> bool {
        let Some(registered) = self.registry.registered(&claim.envelope.task_type) else {
            // The queue answered with a type that was not asked for.
            self.reports.push(given_back(&claim));
            return true;
        };
        let (id, attempt) = (claim.id, claim.attempt);
        let mut beginning = Beginning::new(claim, registered, &self.state, &self.queue);
        if !self.running.is_empty()
            && let Some(old) = self.running.remove(&id)
        {
            // Its lease ended meanwhile, and the task came back to this worker. The old run's report will be refused.
            old.stop(Stop::LeaseLost);
            self.forget(&old.task_type);
        }
        if inline && let Some(report) = beginning.poll_once() {
            self.reports.push((report, attempt));
            self.hungry = true;
            return true;
        }
        let running = beginning.start(&self.reports_sender);
        *self
            .running_of
            .entry(running.task_type.clone())
            .or_default() += 1;
        self.running.insert(id, running);
        false
    }

    fn forget(&mut self, task_type: &str) {
        if let Some(count) = self.running_of.get_mut(task_type) {
            *count -= 1;
        }
    }

    fn take_report(&mut self, report: Finish) {
        let is_same = |running: &Running| running.token == report.token;
        let mut attempt = 0;
        if self.running.get(&report.id).is_some_and(is_same)
            && let Some(running) = self.running.remove(&report.id)
        {
            attempt = running.attempt;
            self.forget(&running.task_type);
        }
        self.reports.push((report, attempt));
        self.hungry = true;
    }

    fn take_signals(&mut self, signals: &[Signal]) {
        // A wait that ran out of time looks too: something may be due.
        self.hungry = true;
        for signal in signals {
            if let Signal::Cancel(id) = signal {
                self.cancel(*id);
            }
        }
    }

    fn cancel(&mut self, id: TaskId) {
        // A task that waits may run here too, by an older claim whose lease ended.
        let (running, waiting) = (self.running.get(&id), self.waiting.remove(id));
        let is_here = running.is_some() || waiting.is_some();
        if let Some(running) = running {
            running.stop(Stop::Cancelled);
        }
        if let Some(claim) = waiting {
            let report = Finish::new(&claim, Outcome::Cancelled);
            self.reports.push((report, claim.attempt));
        }
        if !is_here && (self.call.is_some() || self.unsure.is_some()) {
            self.early_cancels.push(id);
        }
    }

    /// Cancels what came before the claim did; no call is in flight that could bring the rest.
    fn cancel_early(&mut self) {
        for id in std::mem::take(&mut self.early_cancels) {
            self.cancel(id);
        }
    }

    fn start_wait(&self, types: Vec<Arc<str>>, at_most: Duration) -> Wait {
        let (queue, owner) = (self.queue.clone(), self.settings.owner.clone());
        Box::pin(async move { queue.wait(&owner, types, at_most).await })
    }

    /// Ends the wait in flight. If the poke fails, the wait ends by itself within seconds.
    fn spawn_poke(&self) {
        let (queue, owner) = (self.queue.clone(), self.settings.owner.clone());
        tokio::spawn(async move {
            if let Err(error) = queue.poke(&owner).await {
                tracing::debug!(%owner, error = &error as &dyn std::error::Error, "a poke failed");
            }
        });
    }

    fn types_with_room(&self) -> Vec<Arc<str>> {
        if self.room() == 0 {
            return Vec::new();
        }
        let has_room = |task_type: &&Arc<str>| self.room_for(task_type) > 0;
        self.types.iter().filter(has_room).cloned().collect()
    }

    /// Slots without a running task.
    fn free(&self) -> usize {
        self.settings.concurrency.saturating_sub(self.running.len())
    }

    /// Slots that no running task has and no claim waits for.
    fn room(&self) -> usize {
        self.free().saturating_sub(self.waiting.len())
    }

    fn room_for(&self, task_type: &str) -> usize {
        self.limited(task_type, self.room())
    }

    /// How many tasks of a type this worker may claim, at most `room`.
    fn limited(&self, task_type: &str, room: usize) -> usize {
        match self.settings.limits.get(task_type) {
            None => room,
            Some(limit) => {
                let running = self.running_of.get(task_type).copied().unwrap_or(0);
                let held = running + self.waiting.len_of(task_type);
                limit.saturating_sub(held).min(room)
            }
        }
    }

    fn holds_some(&self) -> bool {
        !self.running.is_empty() || !self.waiting.is_empty() || !self.reports.is_empty()
    }

    fn pause(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        kumi_common::doubled(RETRY_FIRST, RETRY_LAST, self.failures - 1)
    }

    /// The shutdown's deadline is over: cancels what runs. Answers until when it is waited for.
    fn give_up(&self) -> Instant {
        self.running
            .values()
            .for_each(|running| running.stop(Stop::Shutdown));
        let registered = self.types.iter();
        let registered = registered.filter_map(|task_type| self.registry.registered(task_type));
        let grace = execute::longest_grace(registered.map(|registered| &*registered.options));
        // A run that can be dropped reports by itself once the grace is over. One that blocks its thread cannot.
        Instant::now() + grace + Duration::from_millis(500)
    }

    /// Drops all runs and turns them into reports.
    fn abandon(&mut self) {
        for (id, running) in self.running.drain() {
            running.abort();
            let attempt = running.attempt;
            self.reports
                .push((running.given_back(id, &self.settings.owner), attempt));
        }
    }

    /// Sends what is left to report, and passes on a wake-up that this worker may have taken.
    async fn last_reports(&mut self) {
        let (queue, ask) = (self.queue.clone(), self.ask(0));
        let (call, held) = (self.call.take(), self.unconfirmed());
        let work = async move {
            let mut reports = unstarted(call).await;
            reports.extend(held);
            loop {
                let rest = reports.split_off(reports.len().min(TURN_LIMIT));
                queue.turn(reports, ask.clone()).await?;
                if rest.is_empty() {
                    return Ok::<(), QueueError>(());
                }
                reports = rest;
            }
        };
        match tokio::time::timeout(LAST_REPORTS, work).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(owner = %self.settings.owner, error = &error as &dyn std::error::Error, "the last reports failed; the lease will end");
            }
            Err(_) => {
                tracing::warn!(owner = %self.settings.owner, "the last reports took too long; the lease will end");
            }
        }
    }
}

impl<S> Run<S> {
    fn unconfirmed(&mut self) -> Vec<Finish> {
        self.reports.drain(..).map(|(report, _)| report).collect()
    }
}

impl<S> Drop for Run<S> {
    /// A worker that was dropped gives back what it holds, if there is still a runtime to do it on.
    fn drop(&mut self) {
        let (call, mut held) = (self.call.take(), self.unconfirmed());
        let waiting = self.waiting.take_all();
        held.extend(waiting.map(|claim| Finish::new(&claim, Outcome::GivenBack)));
        for (id, running) in self.running.drain() {
            running.abort();
            held.push(running.given_back(id, &self.settings.owner));
        }
        let is_done = held.is_empty() && call.is_none();
        if let (false, Ok(runtime)) = (is_done, Handle::try_current()) {
            let queue = self.queue.clone();
            runtime.spawn(async move {
                let mut reports = unstarted(call).await;
                reports.extend(held);
                while !reports.is_empty() {
                    let rest = reports.split_off(reports.len().min(TURN_LIMIT));
                    if queue.finish(reports).await.is_err() {
                        return;
                    }
                    reports = rest;
                }
            });
        }
    }
}

async fn poll(call: &mut Option<InFlight>) -> Reply {
    match call {
        Some(InFlight { call, .. }) => call.await,
        None => std::future::pending().await,
    }
}

/// The report on a claim that was not started, and its attempt, which is given back too.
fn given_back(claim: &Claim) -> (Finish, u32) {
    (Finish::new(claim, Outcome::GivenBack), claim.attempt)
}

/// Reports on the claims that the call in flight brings to a worker that has ended.
async fn unstarted(call: Option<InFlight>) -> Vec<Finish> {
    let Some(InFlight { call, .. }) = call else {
        return Vec::new();
    };
    let Reply::Turn(Ok(turn)) = call.await else {
        return Vec::new();
    };
    let report = |claim: &Claim| Finish::new(claim, Outcome::GivenBack);
    turn.claims.iter().rev().map(report).collect()
}

async fn poll_wait(
    wait: &mut Option<(Wait, Vec<Arc<str>>, bool)>,
) -> Result<Vec<Signal>, QueueError> {
    match wait {
        Some((wait, ..)) => wait.await,
        None => std::future::pending().await,
    }
}
