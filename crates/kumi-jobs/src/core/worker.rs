//! The worker's core: which call to the queue comes next, which claims are started, what is stopped, and when. It does no
//! I/O, reads no clock and starts no task; `worker/run.rs` is its driver.
//!
//! One call to the queue is in flight at a time. Reports gather while it is, and go out with the next turn, which also asks for
//! new tasks. When there is nothing to report and nothing to claim, the worker waits on the queue's signals. After a call that
//! failed it is unknown whether the call was carried out: reports are sent again, and the queue is asked what this worker
//! holds, so that claims whose reply was lost are started too.
//!
//! Claims start as far as there are free slots. While handlers end at their first poll, `ahead.rs` lets the worker claim more
//! than that, and send the next turn before it runs what the last one brought.

mod action;
mod ahead;
mod calls;
mod hold;
mod listening;
mod lives;
mod reports;
#[cfg(test)]
mod simulation;
mod slots;
#[cfg(test)]
mod tests;

pub(crate) use action::{Action, Call, CallError, Moment, Note, Reply, Rules, Stop, Verdict};
#[cfg(test)]
pub(crate) use ahead::{BATCH, SLOT_TIMEOUT};

use super::claim::{Ask, Claim, Finish, Lease, Outcome, Room, Signal, Turn};
use super::id::{TaskId, Timestamp, Token};
use super::owner::Owner;
use super::settings::TURN_LIMIT;
pub(crate) use ahead::Pace;
use calls::Calls;
use hold::Hold;
use listening::Listening;
pub(crate) use lives::{Last, LifeId, Lives, Step};
use reports::Reports;
use slots::Slots;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The longest wait for signals.
const WAIT: Duration = Duration::from_secs(5);

/// Whether the worker claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Working,
    /// Nothing more is claimed until the worker is resumed; what runs goes on.
    Drained,
    /// As `Drained`, and this life ends once its last handler has ended and is reported: another life claims.
    Retiring,
    /// Nothing more is claimed; handlers may go on until this moment.
    Draining(Moment),
    /// Handlers were told to stop, and are waited for until this moment. Reports and renewals go on, so that no other worker
    /// gets a task before its handler has ended.
    Grace(Moment),
    /// The grace is over.
    Over,
    /// The queue takes no more calls of this life.
    Refused,
}

/// Whether there may be something to claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Supply {
    MayHaveSome,
    /// The last turn left nothing behind. A signal, the end of a wait or of a handler changes that.
    Empty,
}

/// A worker. The order of calls, again and again:
///
/// 1. `poll` until it answers `Action::Sleep`, each action being done before the next call; after `Action::End` nothing more.
/// 2. One of `handle_stop`, `handle_wait`, `handle_reply`, `handle_ended` and `handle_timeout`, when that happens. After
///    `handle_reply`, `send_ahead`, before `poll` starts what the reply brought.
/// 3. `take_notes`, whenever something is to be logged.
///
/// `now` never goes back from one call to the next. A random number is drawn for each turn.
pub(crate) struct WorkerCore {
    rules: Rules,
    phase: Phase,
    /// The queue has another format.
    is_foreign: bool,
    supply: Supply,
    /// How long after the last turn something is due in the queue.
    next_due: Option<Duration>,
    /// Where the next ask's list of types begins.
    rotation: usize,
    /// A turn without an ask is to be sent: a wait may have taken the marker that wakes other workers, and the turn leaves
    /// it again.
    passes_on: bool,
    slots: Slots,
    /// While claims are started: whether all that were started ended at once.
    batch: Option<bool>,
    /// The claim that is being started, and its attempt.
    starting: Option<(TaskId, Token, u32)>,
    pace: Pace,
    reports: Reports,
    calls: Calls,
    hold: Hold,
    listening: Listening,
    /// Runs that are to be stopped.
    stops: VecDeque<(TaskId, Token, Stop)>,
    notes: Vec<Note>,
}

impl WorkerCore {
    /// A worker that starts now, whose first ask begins with the type of this index.
    pub(crate) fn new(rules: Rules, rotation: usize) -> Self {
        Self {
            slots: Slots::new(rules.concurrency, rules.limits.clone()),
            rules,
            phase: Phase::Working,
            is_foreign: false,
            supply: Supply::MayHaveSome,
            next_due: None,
            rotation,
            passes_on: false,
            batch: None,
            starting: None,
            pace: Pace::default(),
            reports: Reports::default(),
            calls: Calls::default(),
            hold: Hold::default(),
            listening: Listening::default(),
            stops: VecDeque::new(),
            notes: Vec::new(),
        }
    }

    /// What is to be done next.
    pub(crate) fn poll(&mut self, now: Moment, random: &mut dyn FnMut() -> u64) -> Action {
        // Before anything is started: what came in a reply that was too late is not run.
        self.check_lease(now);
        if let Some((id, token, reason)) = self.stops.pop_front() {
            return Action::Stop(id, token, reason);
        }
        if let Some(start) = self.next_start(now) {
            return start;
        }
        self.listening.note_time(now);
        // The driver sends the last reports itself.
        if matches!(self.phase, Phase::Over | Phase::Refused) {
            return Action::End;
        }
        if let Some(call) = self.next_call(now, random) {
            return Action::Send(call);
        }
        if self.is_over() {
            return Action::End;
        }
        if let Some(wait) = self.next_wait(now) {
            return wait;
        }
        if self.wants_poke() {
            return Action::Poke;
        }
        Action::Sleep(self.timeout(now))
    }

    /// The next turn, before the claims of the last reply are started, so that the queue and this worker work at the same
    /// time.
    pub(crate) fn send_ahead(
        &mut self,
        now: Moment,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Call> {
        if !self.pace.is_ahead() || !self.may_claim() {
            return None;
        }
        self.supply = Supply::MayHaveSome;
        self.next_call(now, random)
    }

    /// The claim that is being started is over already.
    pub(crate) fn ended_at_once(&mut self, report: Finish) {
        let attempt = self.starting.take().map_or(0, |(_, _, attempt)| attempt);
        self.reports.push(report, attempt);
        self.supply = Supply::MayHaveSome;
    }

    /// The handler of the claim that is being started goes on, and takes a slot.
    pub(crate) fn goes_on(&mut self, task_type: Arc<str>) {
        self.batch = Some(false);
        if let Some((id, token, attempt)) = self.starting.take() {
            self.slots.start(id, token, attempt, task_type);
        }
    }

    /// There is no handler for the claim that is being started: the queue answered with a type that was not asked for.
    pub(crate) fn cannot_start(&mut self, claim: &Claim) {
        self.starting = None;
        self.reports.give_back(claim);
    }

    /// The worker is to stop: it claims no more.
    pub(crate) fn handle_stop(&mut self, now: Moment) {
        self.end_within(now, self.rules.shutdown);
    }

    /// Stops claims, until they are resumed by `false`. What runs goes on, and is renewed and reported.
    pub(crate) fn set_drained(&mut self, is_drained: bool) {
        match (self.phase, is_drained) {
            (Phase::Working, true) => self.stop_claims(Phase::Drained),
            (Phase::Drained, false) => {
                self.phase = Phase::Working;
                self.supply = Supply::MayHaveSome;
            }
            _ => {}
        }
    }

    /// Another life of this worker claims from now on. This one ends when it holds nothing more.
    pub(super) fn retire(&mut self) {
        if !self.is_ending() {
            self.stop_claims(Phase::Retiring);
        }
    }

    fn stop_claims(&mut self, phase: Phase) {
        self.give_back_waiting();
        self.phase = phase;
        self.passes_on = true;
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.rules.owner
    }

    /// Where the list of types of the next life begins.
    pub(super) fn rotation(&self) -> usize {
        self.rotation
    }

    /// How many handlers run, by type.
    pub(super) fn running_of(&self) -> &HashMap<Arc<str>, usize> {
        self.slots.running_of()
    }

    /// So many handlers of earlier lives run, by type: they share the slots and the limits.
    pub(super) fn set_taken(&mut self, taken_of: HashMap<Arc<str>, usize>) {
        if self.slots.set_taken(taken_of) {
            self.supply = Supply::MayHaveSome;
        }
    }

    /// A handler that took a slot has ended.
    pub(crate) fn handle_ended(&mut self, report: Finish) {
        // Another token: the task came back to this worker meanwhile. The report will be refused.
        let attempt = self.slots.end(report.id, report.token).unwrap_or(0);
        self.reports.push(report, attempt);
        self.supply = Supply::MayHaveSome;
    }

    /// A wait for signals has ended.
    pub(crate) fn handle_wait(
        &mut self,
        now: Moment,
        signals: Result<&[Signal], CallError>,
    ) -> Verdict {
        let may_have_taken_a_marker = self.listening.end_wait(now);
        self.passes_on |= may_have_taken_a_marker && !self.may_claim();
        match signals {
            Ok(signals) => {
                self.take_signals(signals);
                Verdict::GoOn
            }
            Err(_) => {
                self.calls.pause(now);
                self.supply = Supply::MayHaveSome;
                self.may_lack_a_cancel();
                Verdict::Failed
            }
        }
    }

    /// The moment of the last `Action::Sleep` has come.
    pub(crate) fn handle_timeout(&mut self, now: Moment) {
        if self.slots.overdue_at().is_some_and(|at| now >= at) {
            // What came after the oldest has no slot either, and is to stay behind it in its line.
            self.give_back_waiting();
            return;
        }
        match self.phase {
            Phase::Draining(until) if now >= until => {
                self.phase = Phase::Grace(now + self.rules.grace);
                self.slots.stop_all(Stop::Shutdown, &mut self.stops);
            }
            Phase::Grace(until) if now >= until => self.phase = Phase::Over,
            _ => {}
        }
    }

    /// The reply to the call in flight.
    pub(crate) fn handle_reply(&mut self, now: Moment, reply: Reply) -> Verdict {
        let sent_at = self.calls.replied();
        let error = match reply {
            Reply::Turn(Ok(turn)) => {
                self.take_turn(now, sent_at, turn);
                return Verdict::GoOn;
            }
            Reply::Recover(Ok(claims)) => {
                self.take_held(now, claims);
                return Verdict::GoOn;
            }
            Reply::Heartbeat(Ok(lease)) => {
                self.take_lease(sent_at, lease);
                return Verdict::GoOn;
            }
            Reply::Look(signals) => {
                self.listening.looked(now);
                match signals {
                    Ok(signals) => {
                        self.take_signals(&signals);
                        self.cancel_early();
                        return Verdict::GoOn;
                    }
                    Err(error) => {
                        self.may_lack_a_cancel();
                        error
                    }
                }
            }
            Reply::Turn(Err(error)) => {
                self.reports.unsent();
                self.hold.mark_unsure(sent_at);
                self.pace.slow_down();
                error
            }
            Reply::Heartbeat(Err(error)) | Reply::Recover(Err(error)) => error,
        };
        self.take_error(now, error)
    }

    /// Takes what is to be logged.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    /// Whether the worker ends: it claims no more, whatever comes.
    pub(crate) fn is_ending(&self) -> bool {
        !matches!(self.phase, Phase::Working | Phase::Drained)
    }

    /// Whether the queue takes no more calls of this life: it holds nothing, and has nothing to report.
    pub(super) fn is_refused(&self) -> bool {
        self.phase == Phase::Refused
    }

    fn may_claim(&self) -> bool {
        self.phase == Phase::Working
    }

    /// What a worker that ends still has to report: what is unconfirmed, and what it gives back. It holds nothing afterwards.
    pub(crate) fn give_back_all(&mut self) -> Vec<Finish> {
        self.give_back_waiting();
        for (id, token, attempt) in self.slots.take_running() {
            let report = Finish {
                id,
                token,
                owner: self.rules.owner.clone(),
                outcome: Outcome::GivenBack,
            };
            self.reports.push(report, attempt);
        }
        self.reports.take_all()
    }

    /// An ask for no tasks, which carries the last reports.
    pub(crate) fn last_ask(&mut self, nonce: u64) -> Ask {
        self.ask(0, nonce)
    }

    fn next_start(&mut self, now: Moment) -> Option<Action> {
        if self.batch.is_none() {
            let since = self.slots.waiting.since()?;
            if now >= since + self.rules.lease {
                // This process stood still for so long that other workers may have these tasks.
                self.give_back_waiting();
                return None;
            }
            self.batch = Some(true);
        }
        if self.slots.free() > 0
            && let Some(id) = self.slots.startable()
        {
            if let Some(token) = self.slots.replace(id) {
                // Its lease ended meanwhile, and the task came back to this worker. The old run's report will be refused.
                return Some(Action::Stop(id, token, Stop::LeaseLost));
            }
            let claim = self.slots.waiting.remove(id)?;
            self.starting = Some((claim.id, claim.token, claim.attempt));
            return Some(Action::Start(claim));
        }
        let all_ended = self.batch.take() == Some(true);
        self.pace.ran(all_ended && self.slots.waiting.is_empty());
        None
    }

    /// The next call, if there is something to say and none is in flight.
    fn next_call(&mut self, now: Moment, random: &mut dyn FnMut() -> u64) -> Option<Call> {
        if !self.calls.may_send(now) {
            return None;
        }
        if self.hold.is_unsure() {
            self.hold.asked(now);
            self.calls.send(now);
            return Some(Call::Recover);
        }
        if self.slots.holds_some() && self.listening.is_look_due(now) {
            self.listening.note_look();
            self.calls.send(now);
            return Some(Call::Look);
        }
        // Whatever is sent now comes between two looks for signals.
        self.listening.may_look_again();
        if let Some(turn) = self.next_turn(random) {
            self.calls.send(now);
            return Some(turn);
        }
        if self.holds_some() && now >= self.hold.renewal_at() {
            self.calls.send(now);
            return Some(Call::Heartbeat);
        }
        None
    }

    fn next_turn(&mut self, random: &mut dyn FnMut() -> u64) -> Option<Call> {
        let claims =
            self.supply == Supply::MayHaveSome && self.slots.free() > 0 && self.may_claim();
        let max = match claims {
            true => self.pace.ask(self.slots.room()),
            false => 0,
        };
        if max == 0 && self.reports.is_empty() && !self.passes_on {
            return None;
        }
        self.passes_on = false;
        match max {
            0 => self.pace.report_only(),
            _ => self.supply = Supply::Empty,
        }
        let reports = self.reports.send(TURN_LIMIT);
        let nonce = random();
        Some(Call::Turn(reports, self.ask(max, nonce)))
    }

    /// `nonce` is not the same for two asks: a server that lost its last writes counts its claims again from an earlier
    /// number.
    fn ask(&mut self, max: usize, nonce: u64) -> Ask {
        self.rotation = self.rotation.wrapping_add(1);
        let first = self.rotation % self.rules.types.len().max(1);
        let types = self.rules.types[first..]
            .iter()
            .chain(&self.rules.types[..first]);
        Ask {
            owner: self.rules.owner.clone(),
            nonce,
            lease: self.rules.lease,
            types: types
                .map(|task_type| Room {
                    task_type: task_type.clone(),
                    room: self.slots.limited(task_type, max),
                })
                .collect(),
            max: max.min(TURN_LIMIT),
        }
    }

    fn next_wait(&mut self, now: Moment) -> Option<Action> {
        if !self.calls.may_send(now) || self.listening.is_waiting() || self.is_ending() {
            return None;
        }
        let types = self.types_with_room();
        let due = self.next_due.filter(|_| !types.is_empty());
        let at_most = due.unwrap_or(WAIT).min(WAIT);
        self.listening.wait(types.clone());
        Some(Action::Wait(types, at_most))
    }

    /// Whether the wait in flight has to end: the worker does, or it has room for a type that is not waited for. Once for each
    /// wait.
    fn wants_poke(&mut self) -> bool {
        if self.calls.is_in_flight() || !self.listening.can_be_poked() {
            return false;
        }
        let is_wanted = self.is_ending()
            || !self.may_claim() && self.listening.waits_for_types()
            || self
                .types_with_room()
                .iter()
                .any(|task_type| !self.listening.waits_for(task_type));
        if is_wanted {
            self.listening.poked();
        }
        is_wanted
    }

    fn types_with_room(&self) -> Vec<Arc<str>> {
        let room = self.slots.room();
        if room == 0 || !self.may_claim() {
            return Vec::new();
        }
        let has_room = |task_type: &&Arc<str>| self.slots.limited(task_type, room) > 0;
        self.rules.types.iter().filter(has_room).cloned().collect()
    }

    /// Whether nothing is left to do for a worker that ends.
    fn is_over(&self) -> bool {
        match self.phase {
            Phase::Working | Phase::Drained => false,
            Phase::Over | Phase::Refused => true,
            Phase::Retiring if self.passes_on || self.listening.is_waiting() => false,
            Phase::Grace(_) if self.slots.is_idle() => true,
            Phase::Grace(_) | Phase::Draining(_) | Phase::Retiring => {
                !self.holds_some() && !self.calls.is_in_flight() && !self.hold.is_unsure()
            }
        }
    }

    /// When something is to be done next.
    fn timeout(&self, now: Moment) -> Option<Moment> {
        let (holds_some, is_quiet) = (self.holds_some(), !self.calls.is_in_flight());
        let renewal = Some(self.hold.renewal_at()).filter(|at| is_quiet && holds_some && now < *at);
        let pause = Some(self.calls.not_before()).filter(|at| is_quiet && now < *at);
        let lease_end = self.hold.ends_at(self.rules.lease);
        let lease_end = lease_end.filter(|_| holds_some);
        let give_up = match self.phase {
            Phase::Draining(until) | Phase::Grace(until) => Some(until),
            Phase::Working | Phase::Drained | Phase::Retiring | Phase::Over | Phase::Refused => {
                None
            }
        };
        let moments = [renewal, pause, lease_end, self.slots.overdue_at(), give_up];
        moments.into_iter().flatten().min()
    }

    /// Whether it runs something, is about to, or has something to report.
    fn holds_some(&self) -> bool {
        self.slots.holds_some() || !self.reports.is_empty()
    }

    fn end_within(&mut self, now: Moment, shutdown: Duration) {
        self.give_back_waiting();
        if matches!(
            self.phase,
            Phase::Working | Phase::Drained | Phase::Retiring
        ) {
            self.phase = Phase::Draining(now + shutdown);
        }
    }

    fn take_error(&mut self, now: Moment, error: CallError) -> Verdict {
        match error {
            CallError::Other => {
                self.calls.pause(now);
                Verdict::Failed
            }
            // A queue that takes no reports either answers the next call, which asks for nothing new, with the same error.
            CallError::Format if !self.is_foreign => {
                self.is_foreign = true;
                self.end_within(now, self.rules.shutdown);
                Verdict::Ending
            }
            CallError::Format | CallError::Released => {
                self.phase = Phase::Refused;
                self.slots.clear();
                self.reports.take_all();
                self.stops.clear();
                Verdict::Over
            }
        }
    }

    fn take_turn(&mut self, now: Moment, sent_at: Moment, turn: Turn) {
        self.calls.succeeded();
        self.hold.renew(sent_at);
        let confirmed = self.reports.confirm().zip(turn.finished);
        self.notes
            .extend(confirmed.map(|((report, attempt), finished)| {
                Note::Reported(report, attempt, finished, turn.now)
            }));
        if self.pace.replied(turn.claims.len(), turn.more) || turn.more {
            self.supply = Supply::MayHaveSome;
        }
        self.take_claims(now, turn.claims);
        self.cancel_early();
        let until = |due: Timestamp| due.since(turn.now).max(Duration::from_millis(1));
        self.next_due = Some(turn.next_due.map_or(WAIT, until));
        self.compare(turn.held, sent_at);
    }

    /// Takes claims that are new here. A worker that stops gives them back.
    fn take_claims(&mut self, now: Moment, claims: Vec<Claim>) {
        match self.may_claim() {
            false => self.reports.give_back_first(&claims),
            true => self.slots.waiting.extend(claims, now),
        }
    }

    /// Takes what the queue says that this worker holds.
    fn take_held(&mut self, now: Moment, claims: Vec<Claim>) {
        let unsure_since = self.hold.take_unsure();
        self.supply = Supply::MayHaveSome;
        let to_cancel = claims.iter().filter(|claim| claim.cancel_requested);
        let to_cancel: Vec<TaskId> = to_cancel.map(|claim| claim.id).collect();
        self.lose_all_but(&claims);
        let is_unknown = |claim: &Claim| !self.knows(claim);
        let unknown: Vec<Claim> = claims.into_iter().filter(is_unknown).collect();
        if let (Some(sent_at), false) = (unsure_since, unknown.is_empty()) {
            // They show that the turn whose reply was lost was executed, and renewed the lease.
            self.hold.renew(self.hold.renewed_at().max(sent_at));
        }
        self.take_claims(now, unknown);
        to_cancel.into_iter().for_each(|id| self.cancel(id));
        self.cancel_early();
    }

    fn take_lease(&mut self, sent_at: Moment, lease: Lease) {
        self.calls.succeeded();
        self.hold.renew(sent_at);
        match lease {
            Lease::Lost => {
                let running = self.slots.not_stopping();
                self.notes
                    .extend(running.map(|(id, attempt)| Note::LeaseLost(id, attempt)));
                self.lose_lease();
            }
            Lease::Renewed(held) => self.compare(held, sent_at),
        }
        self.cancel_early();
    }

    fn take_signals(&mut self, signals: &[Signal]) {
        // A wait that ran out of time looks too: something may be due.
        self.supply = Supply::MayHaveSome;
        for signal in signals {
            if let Signal::Cancel(id) = signal {
                self.cancel(*id);
            }
        }
    }

    fn cancel(&mut self, id: TaskId) {
        // A task that waits may run here too, by an older claim whose lease ended.
        let runs = self.slots.stop(id, Stop::Cancelled, &mut self.stops);
        let waiting = self.slots.waiting.remove(id);
        let is_here = runs || waiting.is_some();
        if let Some(claim) = waiting {
            let report = Finish::new(&claim, Outcome::Cancelled);
            self.reports.push(report, claim.attempt);
        }
        if !is_here && (self.calls.is_in_flight() || self.hold.is_unsure()) {
            self.listening.early_cancels.push(id);
        }
    }

    /// Cancels what came before the claim did; no call is in flight that could bring the rest.
    fn cancel_early(&mut self) {
        for id in std::mem::take(&mut self.listening.early_cancels) {
            self.cancel(id);
        }
    }

    /// A wait for signals failed. It may have taken a cancel with it.
    fn may_lack_a_cancel(&mut self) {
        self.hold.mark_unsure(self.hold.renewed_at());
    }

    /// Notices that the lease has ended. What it covered is cancelled or given back.
    fn check_lease(&mut self, now: Moment) {
        let ends_at = self.hold.ends_at(self.rules.lease);
        if self.holds_some() && ends_at.is_some_and(|at| now >= at) {
            self.notes.push(Note::LeaseEnded);
            self.lose_lease();
        }
    }

    /// The lease is over, or may be: other workers may get what this one holds.
    fn lose_lease(&mut self) {
        self.hold.give_up();
        self.give_back_waiting();
        self.slots.stop_all(Stop::LeaseLost, &mut self.stops);
    }

    /// Reports the claims that were not started.
    fn give_back_waiting(&mut self) {
        for claim in self.slots.waiting.take_all() {
            self.reports.give_back(&claim);
        }
    }

    /// Compares how many tasks the queue says that this worker holds with those that it knows of. A turn that failed may
    /// be executed after the queue was asked what this worker holds; its claims would stay Running as long as this worker
    /// renews its lease. If the queue counts fewer, a part of what this worker holds was given to others: a script gives back
    /// only so many tasks at once, and this worker has renewed its lease in between.
    fn compare(&mut self, held: usize, sent_at: Moment) {
        let known = self.slots.held() + self.reports.len();
        if held != known {
            self.hold.mark_count_differs(sent_at);
        }
    }

    /// Stops what the queue has given to others, by all that this worker holds.
    fn lose_all_but(&mut self, claims: &[Claim]) {
        let held: HashMap<TaskId, Token> =
            claims.iter().map(|claim| (claim.id, claim.token)).collect();
        let lost = self.slots.lose_all_but(&held, &mut self.stops);
        if lost > 0 {
            self.notes.push(Note::GivenAway(lost));
        }
    }

    /// Whether a claim runs here, waits to be started, or waits to be reported.
    fn knows(&self, claim: &Claim) -> bool {
        self.slots.knows(claim.id, claim.token) || self.reports.holds(claim.id, claim.token)
    }
}
