//! Workers on the job state machine, on virtual time: calls whose request or reply is lost or that are executed late, a queue
//! that is away, processes that stand still, crash or are released, workers that are drained or take another life, cancels,
//! and stops in the middle.
//!
//! A seed stands for one history. What is checked: never more handlers than slots, in all lives of a worker together; no
//! call after call without a reason; a worker with free slots does not leave a ready task waiting; a drained one starts
//! nothing; a worker that stops ends in time; and every task ends.

use super::super::claim::{Ask, Claim, Finish, Outcome, Signal};
use super::super::error::Refusal;
use super::super::id::{TaskId, Timestamp, Token};
use super::super::machine::Machine;
use super::super::owner::Owner;
use super::super::record::{NewTask, TaskEnvelope, TaskState};
use super::super::reply::{Gone, Released};
use super::super::settings::Settings;
use super::{Action, Call, CallError, LifeId, Lives, Moment, Reply, Rules, Step, Stop, Verdict};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

const SEEDS: u64 = 40;

/// All times are in milliseconds.
const LEASE: u64 = 15_000;
const SHUTDOWN: u64 = 10_000;
const GRACE: u64 = 5_500;

/// Until then there are faults and new tasks.
const CALM: u64 = 60_000;

/// Until then every task has ended.
const DONE: u64 = CALM + 900_000;

/// How long a ready task may wait while a worker has a slot for it and nothing fails.
const LEFT_WAITING: u64 = 3_000;

/// Calls of one worker in a second that bring nothing, at most. Each new task and each end of a handler is a reason for one.
const USELESS_CALLS: usize = 60;

const TYPES: [&str; 2] = ["a", "b"];

/// At most so many tasks of type `b` run in one worker.
const LIMIT_OF_B: usize = 1;

struct World {
    random: fastrand::Rng,
    now: u64,
    machine: Machine,
    signals: HashMap<Owner, Vec<Signal>>,
    workers: Vec<Worker>,
    /// Turns that the queue executes although their worker got an error, and when at the latest.
    late: Vec<(u64, Vec<Finish>, Ask)>,
    /// The queue is away until then.
    away_until: u64,
    /// Meanwhile calls get no reply; otherwise they are refused at once.
    is_silent: bool,
    tasks: Vec<TaskId>,
    last_fault: u64,
    /// Earlier lives of workers that held tasks and were released.
    released_earlier: usize,
}

struct Worker {
    core: Lives,
    /// The owner of its newest life.
    owner: Owner,
    concurrency: usize,
    calls: BTreeMap<LifeId, Flight>,
    waits: BTreeMap<LifeId, Wait>,
    is_drained: bool,
    /// Its newest life was released: it is given another one then.
    lives_again_at: Option<u64>,
    /// Something was ordered.
    is_nudged: bool,
    handlers: Vec<Handler>,
    sleeps_until: Option<u64>,
    /// The process stands still until then.
    stalled_until: u64,
    stop_at: u64,
    ends_by: Option<u64>,
    has_ended: bool,
    useless: VecDeque<u64>,
    /// Since when a task is ready, it has a slot for it, and starts none.
    ready_since: Option<u64>,
}

/// A call on its way.
struct Flight {
    owner: Owner,
    call: Call,
    executes_at: Option<u64>,
    replies_at: u64,
    is_lost: bool,
    reply: Option<Reply>,
}

struct Wait {
    owner: Owner,
    types: Vec<Arc<str>>,
    until: u64,
}

struct Handler {
    claim: Claim,
    ends_at: u64,
    stopped: Option<Stop>,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            random: fastrand::Rng::with_seed(seed),
            now: 0,
            machine: Machine::new(Settings::default()),
            signals: HashMap::new(),
            workers: Vec::new(),
            late: Vec::new(),
            away_until: 0,
            is_silent: false,
            tasks: Vec::new(),
            last_fault: 0,
            released_earlier: 0,
        };
        for index in 0..3 {
            let worker = world.worker(index);
            world.workers.push(worker);
        }
        world
    }

    fn worker(&mut self, index: u64) -> Worker {
        let owner = owner(index, 0);
        let concurrency = self.random.usize(1..=6);
        let rules = Rules {
            owner: owner.clone(),
            concurrency,
            limits: HashMap::from([(TYPES[1].into(), LIMIT_OF_B)]),
            types: TYPES.map(Into::into).to_vec(),
            lease: Duration::from_millis(LEASE),
            shutdown: Duration::from_millis(SHUTDOWN),
            grace: Duration::from_millis(GRACE),
        };
        Worker {
            core: Lives::new(rules, self.random.usize(0..10)),
            owner,
            concurrency,
            calls: BTreeMap::new(),
            waits: BTreeMap::new(),
            is_drained: false,
            lives_again_at: None,
            is_nudged: false,
            handlers: Vec::new(),
            sleeps_until: Some(0),
            stalled_until: 0,
            // The first one stays.
            stop_at: match index {
                0 => u64::MAX,
                _ => self.random.u64(1_000..CALM),
            },
            ends_by: None,
            has_ended: false,
            useless: VecDeque::new(),
            ready_since: None,
        }
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_ms(1_700_000_000_000 + self.now)
    }

    fn moment(&self) -> Moment {
        Moment::after_start(Duration::from_millis(self.now))
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.now < CALM && self.random.u64(0..one_in) == 0
    }

    fn run(&mut self) {
        while self.now < DONE {
            self.disturb();
            self.step();
            if self.now > CALM && self.is_done() {
                return self.rest();
            }
        }
        let left: Vec<_> = self.unfinished().collect();
        let (count, first) = (left.len(), left.first());
        panic!("{count} tasks did not end, such as {first:?}");
    }

    /// What happens now, and on to the next moment at which something does.
    fn step(&mut self) {
        self.execute();
        for index in 0..self.workers.len() {
            self.serve(index);
        }
        self.check_ready();
        self.now = self.next_moment();
    }

    /// New tasks, cancels and faults.
    fn disturb(&mut self) {
        for index in 0..self.workers.len() {
            let worker = &self.workers[index];
            if worker.lives_again_at.is_some_and(|at| at <= self.now) {
                self.renew_life(index);
            }
            if self.now >= CALM && self.workers[index].is_drained {
                self.set_drained(index, false);
            }
        }
        if self.now >= CALM || !self.now.is_multiple_of(10) {
            return;
        }
        if self.chance(800) {
            let index = self.random.usize(0..self.workers.len());
            let earlier = Gone::Life(self.workers[index].owner.clone());
            self.renew_life(index);
            if self.random.u8(0..4) == 0 {
                let at = self.at();
                let released = self.machine.release_owner(at, &earlier, Duration::ZERO);
                self.released_earlier += usize::from(released != Released::Tasks(0));
                self.fault_until(self.now);
            }
        }
        if self.chance(800) {
            let index = self.random.usize(0..self.workers.len());
            let is_drained = self.workers[index].is_drained;
            self.set_drained(index, !is_drained);
        }
        if self.chance(30) {
            for _ in 0..self.random.u64(1..4) {
                let task_type = TYPES[usize::from(self.random.u8(0..3) == 0)];
                let id = TaskId::from_parts(self.at(), self.random.u128(..));
                let mut task = NewTask::with_id(id, TaskEnvelope::json(task_type, "1"));
                task.max_attempts = 3;
                self.tasks.push(id);
                let at = self.at();
                self.machine.enqueue(at, vec![task]).expect("room");
            }
        }
        if self.chance(40)
            && let Some(id) = self.random.choice(&self.tasks).copied()
        {
            let at = self.at();
            self.machine.cancel(at, id);
        }
        if self.chance(1_500) {
            let until = self.now + self.random.u64(100..25_000);
            self.away_until = self.away_until.max(until);
            self.is_silent = self.random.bool();
            // A call that gets no reply may be in flight for a while longer.
            self.fault_until(self.away_until + 3_000);
        }
        if self.chance(1_000) {
            let index = self.random.usize(0..self.workers.len());
            let takes = self.random.u64(100..20_000);
            let worker = &mut self.workers[index];
            worker.stalled_until = self.now + takes;
            worker.ends_by = worker.ends_by.map(|by| by + takes);
            self.fault_until(self.now + takes);
        }
        if self.chance(3_000) {
            let index = self.random.usize(1..self.workers.len());
            if self.random.bool() {
                // It crashes.
                self.workers[index].has_ended = true;
            } else {
                let (at, gone) = (self.at(), Gone::Life(self.workers[index].owner.clone()));
                self.machine.release_owner(at, &gone, Duration::ZERO);
            }
            self.fault_until(self.now);
        }
        self.take_effects();
    }

    fn renew_life(&mut self, index: usize) {
        let life = self.now + 1;
        let worker = &mut self.workers[index];
        worker.owner = owner(index as u64, life);
        worker.core.renew_life(worker.owner.clone());
        worker.lives_again_at = None;
        worker.is_nudged = true;
        worker.ready_since = None;
    }

    fn set_drained(&mut self, index: usize, is_drained: bool) {
        let worker = &mut self.workers[index];
        worker.is_drained = is_drained;
        worker.core.set_drained(is_drained);
        worker.is_nudged = true;
        worker.ready_since = None;
    }

    fn fault_until(&mut self, at: u64) {
        self.last_fault = self.last_fault.max(at);
    }

    fn take_effects(&mut self) {
        for (owner, signal) in self.machine.take_effects().signals {
            self.signals.entry(owner).or_default().push(signal);
        }
    }

    /// The queue's side of the calls.
    fn execute(&mut self) {
        let late = std::mem::take(&mut self.late);
        for (at, reports, ask) in late {
            if at > self.now {
                self.late.push((at, reports, ask));
            } else {
                // Its reply goes nowhere.
                let now = self.at();
                drop(self.machine.turn(now, reports, &ask));
            }
        }
        for index in 0..self.workers.len() {
            let flights = self.workers[index].calls.iter_mut();
            let due =
                flights.filter(|(_, flight)| flight.executes_at.is_some_and(|at| at <= self.now));
            let due: Vec<_> = due
                .map(|(life, flight)| {
                    flight.executes_at = None;
                    (*life, flight.owner.clone(), flight.call.clone())
                })
                .collect();
            for (life, owner, call) in due {
                let reply = self.reply(&owner, call);
                if let Some(flight) = self.workers[index].calls.get_mut(&life) {
                    flight.reply = Some(reply);
                }
            }
        }
        self.take_effects();
    }

    fn reply(&mut self, owner: &Owner, call: Call) -> Reply {
        let at = self.at();
        let is_away = self.now < self.away_until;
        let error = |refusal: Refusal| match refusal {
            Refusal::OwnerReleased(_) => CallError::Released,
            _ => CallError::Other,
        };
        match call {
            Call::Turn(..) if is_away => Reply::Turn(Err(CallError::Other)),
            Call::Heartbeat if is_away => Reply::Heartbeat(Err(CallError::Other)),
            Call::Recover if is_away => Reply::Recover(Err(CallError::Other)),
            Call::Look if is_away => Reply::Look(Err(CallError::Other)),
            Call::Turn(reports, ask) => {
                Reply::Turn(self.machine.turn(at, reports, &ask).map_err(error))
            }
            Call::Heartbeat => {
                let lease = Duration::from_millis(LEASE);
                Reply::Heartbeat(self.machine.heartbeat(at, owner, lease).map_err(error))
            }
            Call::Recover => Reply::Recover(self.machine.running(owner).map_err(error)),
            Call::Look => Reply::Look(Ok(self.signals.remove(owner).unwrap_or_default())),
        }
    }

    /// Tells a worker what happened, and lets it act.
    fn serve(&mut self, index: usize) {
        let worker = &self.workers[index];
        if worker.has_ended || worker.stalled_until > self.now {
            return;
        }
        let mut happened = std::mem::take(&mut self.workers[index].is_nudged);
        happened |= self.stop(index);
        happened |= self.end_handlers(index);
        let lives: Vec<LifeId> = self.workers[index].waits.keys().copied().collect();
        for life in lives {
            happened |= self.end_wait(index, life);
        }
        let lives: Vec<LifeId> = self.workers[index].calls.keys().copied().collect();
        for life in lives {
            happened |= self.end_call(index, life);
        }
        let now = self.moment();
        let worker = &mut self.workers[index];
        if worker.sleeps_until.is_some_and(|until| until <= self.now) {
            worker.core.handle_timeout(now);
            happened = true;
        }
        if happened && !self.workers[index].has_ended {
            self.act(index);
        }
        let worker = &self.workers[index];
        let is_late = worker.ends_by.is_some_and(|by| self.now > by);
        assert!(
            worker.has_ended || !is_late,
            "{} does not end",
            worker.owner
        );
    }

    fn stop(&mut self, index: usize) -> bool {
        let now = self.moment();
        let worker = &mut self.workers[index];
        let is_due = self.now >= worker.stop_at && !worker.core.is_ending();
        if is_due {
            worker.core.handle_stop(now);
            worker.ends_by = Some(self.now + SHUTDOWN + GRACE);
        }
        is_due
    }

    fn end_handlers(&mut self, index: usize) -> bool {
        let now = self.now;
        let handlers = &mut self.workers[index].handlers;
        let ended: Vec<Handler> = handlers.extract_if(.., |h| h.ends_at <= now).collect();
        for handler in &ended {
            let outcome = match handler.stopped {
                Some(Stop::Cancelled) => Outcome::Cancelled,
                Some(Stop::Shutdown | Stop::LeaseLost) => Outcome::GivenBack,
                None => self.outcome(),
            };
            let report = Finish::new(&handler.claim, outcome);
            self.workers[index].core.handle_ended(report);
        }
        !ended.is_empty()
    }

    fn outcome(&mut self) -> Outcome {
        match self.random.u8(0..20) {
            0..=14 => Outcome::Succeeded(None),
            15..=18 => Outcome::Failed {
                error: "no".into(),
                retry_after: Some(Duration::from_millis(self.random.u64(100..2_000))),
            },
            _ => Outcome::Snoozed(Duration::from_millis(500)),
        }
    }

    fn end_wait(&mut self, index: usize, life: LifeId) -> bool {
        let Some(Wait {
            owner,
            types,
            until,
        }) = self.workers[index].waits.get(&life)
        else {
            return false;
        };
        let (is_away, now) = (self.now < self.away_until, self.moment());
        let is_due = self.machine.next_due().is_some_and(|due| due <= self.at());
        let mut is_ready = |task_type: &Arc<str>| is_due || self.machine.is_ready(task_type);
        let is_ready = types.iter().any(&mut is_ready);
        let has_signals = self.signals.contains_key(owner);
        if !is_away && !is_ready && !has_signals && *until > self.now {
            return false;
        }
        let mut signals = match is_away {
            true => Vec::new(),
            false => self.signals.remove(owner).unwrap_or_default(),
        };
        if is_ready {
            signals.push(Signal::Ready);
        }
        let fails = is_away || self.chance(200);
        let worker = &mut self.workers[index];
        worker.waits.remove(&life);
        let signals = match fails {
            true => Err(CallError::Other),
            false => Ok(&signals[..]),
        };
        worker.core.handle_wait(life, now, signals);
        true
    }

    fn end_call(&mut self, index: usize, life: LifeId) -> bool {
        let (at, now) = (self.now, self.moment());
        let worker = &mut self.workers[index];
        let is_due = |flight: &Flight| flight.replies_at <= at;
        if !worker.calls.get(&life).is_some_and(is_due) {
            return false;
        }
        let Some(flight) = worker.calls.remove(&life) else {
            return false;
        };
        let lost = |call: &Call| match call {
            Call::Turn(..) => Reply::Turn(Err(CallError::Other)),
            Call::Heartbeat => Reply::Heartbeat(Err(CallError::Other)),
            Call::Recover => Reply::Recover(Err(CallError::Other)),
            Call::Look => Reply::Look(Err(CallError::Other)),
        };
        let reply = match flight.reply {
            Some(reply) if !flight.is_lost => reply,
            _ => lost(&flight.call),
        };
        let brings_nothing = match (&reply, &flight.call) {
            (Reply::Turn(Ok(turn)), Call::Turn(reports, _)) => {
                turn.claims.is_empty() && reports.is_empty()
            }
            (Reply::Heartbeat(reply), _) => reply.is_err(),
            (Reply::Recover(reply), _) => reply.is_err(),
            (Reply::Look(_), _) => false,
            (Reply::Turn(_), _) => true,
        };
        if brings_nothing {
            worker.useless.push_back(at);
            while worker
                .useless
                .front()
                .is_some_and(|first| *first + 1_000 <= at)
            {
                worker.useless.pop_front();
            }
            let calls = worker.useless.len();
            assert!(calls <= USELESS_CALLS, "{calls} useless calls in a second");
        }
        if worker.core.handle_reply(life, now, reply) == Verdict::Over {
            let owner = flight.owner;
            worker
                .handlers
                .retain(|handler| handler.claim.owner != owner);
            if owner == worker.owner {
                worker.lives_again_at = Some(at + self.random.u64(1..5_000));
            }
            return true;
        }
        let random = &mut self.random;
        if let Some(call) = worker.core.send_ahead(life, now, &mut || random.u64(..)) {
            self.send(index, life, call);
        }
        true
    }

    fn send(&mut self, index: usize, life: LifeId, call: Call) {
        let takes = self.random.u64(1..15);
        let mut flight = Flight {
            owner: self.workers[index].core.owner(life).clone(),
            executes_at: Some(self.now + self.random.u64(0..=takes)),
            replies_at: self.now + takes,
            is_lost: self.chance(40),
            reply: None,
            call,
        };
        if self.now < self.away_until && self.is_silent {
            flight.executes_at = None;
            flight.replies_at = self.now + self.random.u64(100..3_000);
        }
        if self.chance(80) {
            flight.executes_at = None;
            if let Call::Turn(reports, ask) = &flight.call
                && self.random.bool()
            {
                let at = flight.replies_at + self.random.u64(1..4_000);
                self.late.push((at, reports.clone(), ask.clone()));
            }
        }
        let before = self.workers[index].calls.insert(life, flight);
        assert!(before.is_none(), "one call of a life at a time");
    }

    fn act(&mut self, index: usize) {
        let now = self.moment();
        for steps in 0.. {
            assert!(steps < 1_000, "the core is never done");
            let (worker, random) = (&mut self.workers[index], &mut self.random);
            let Step { life, action } = worker.core.poll(now, &mut || random.u64(..));
            let Some(life) = life else {
                if let Action::Sleep(until) = action {
                    let until = until.map(|until| until.since_start().as_millis() as u64);
                    assert!(
                        until.is_none_or(|until| until > self.now),
                        "it sleeps not at all"
                    );
                    let is_alone = worker.calls.is_empty() && worker.waits.is_empty();
                    let can_wake = until.is_some() || worker.lives_again_at.is_some();
                    assert!(!is_alone || can_wake, "nothing can wake it");
                    worker.sleeps_until = until;
                } else {
                    self.end(index);
                }
                break;
            };
            match action {
                Action::Start(claim) => self.start(index, claim),
                Action::Stop(id, token, reason) => self.stop_handler(index, id, token, reason),
                Action::Send(call) => self.send(index, life, call),
                Action::Wait(types, at_most) => {
                    let wait = Wait {
                        owner: worker.core.owner(life).clone(),
                        types,
                        until: self.now + at_most.as_millis() as u64,
                    };
                    let before = worker.waits.insert(life, wait);
                    assert!(before.is_none(), "one wait of a life at a time");
                }
                Action::Poke => {
                    let owner = worker.core.owner(life).clone();
                    self.signals.entry(owner).or_default().push(Signal::Poke);
                }
                Action::End => drop(worker.waits.remove(&life)),
                Action::Sleep(_) => panic!("a life sleeps with the others"),
            }
        }
        let worker = &self.workers[index];
        let running = worker.handlers.iter().filter(|h| h.stopped.is_none());
        let of_b = running
            .clone()
            .filter(|h| &*h.claim.envelope.task_type == TYPES[1]);
        assert!(of_b.count() <= LIMIT_OF_B, "more of a type than its limit");
        assert!(
            running.count() <= worker.concurrency,
            "more handlers than slots"
        );
    }

    fn start(&mut self, index: usize, claim: Claim) {
        let worker = &mut self.workers[index];
        worker.ready_since = None;
        assert!(!worker.is_drained, "a drained worker starts nothing");
        assert_eq!(claim.owner, worker.owner, "only the newest life starts");
        let at_once = self.random.u8(0..3) == 0;
        if at_once {
            let outcome = self.outcome();
            let report = Finish::new(&claim, outcome);
            self.workers[index].core.ended_at_once(report);
            return;
        }
        let ends_at = self.now + self.random.u64(1..2_000);
        let worker = &mut self.workers[index];
        worker.core.goes_on(claim.envelope.task_type.clone());
        worker.handlers.push(Handler {
            claim,
            ends_at,
            stopped: None,
        });
    }

    fn stop_handler(&mut self, index: usize, id: TaskId, token: Token, reason: Stop) {
        let ends_at = self.now + self.random.u64(1..5_000);
        let handlers = &mut self.workers[index].handlers;
        let is_same = |h: &&mut Handler| h.claim.id == id && h.claim.token == token;
        if let Some(handler) = handlers.iter_mut().find(is_same) {
            handler.stopped = Some(reason);
            handler.ends_at = ends_at;
        }
    }

    /// What the driver does at the end; sometimes it does not get through.
    fn end(&mut self, index: usize) {
        let at = self.at();
        let worker = &mut self.workers[index];
        worker.has_ended = true;
        for last in worker.core.take_last() {
            if self.now >= self.away_until {
                drop(self.machine.turn(at, last.reports, &last.ask));
            }
        }
    }

    /// No worker leaves a ready task waiting for long while it has a slot for it.
    fn check_ready(&mut self) {
        // The limited type may have no room although there are free slots.
        let is_ready = self.machine.is_ready(TYPES[0]);
        for worker in &mut self.workers {
            let is_there = !worker.has_ended && worker.stalled_until <= self.now;
            let is_there = is_there && !worker.is_drained && worker.lives_again_at.is_none();
            let has_room = worker.handlers.len() < worker.concurrency;
            if !is_ready || !is_there || worker.core.is_ending() || !has_room {
                worker.ready_since = None;
                continue;
            }
            let since = *worker.ready_since.get_or_insert(self.now);
            let waited = self.now.saturating_sub(since.max(self.last_fault));
            let owner = &worker.owner;
            assert!(
                waited <= LEFT_WAITING,
                "a task waits {waited} ms for {owner}"
            );
        }
    }

    fn unfinished(&self) -> impl Iterator<Item = (TaskId, TaskState)> + '_ {
        let states = self.tasks.iter().filter_map(|id| {
            let record = self.machine.status(*id)?;
            Some((*id, record.state))
        });
        states.filter(|(_, state)| !state.is_terminal())
    }

    fn is_done(&self) -> bool {
        self.unfinished().next().is_none()
    }

    /// All is done: the worker that is left is quiet, and stops at once.
    fn rest(&mut self) {
        let (from, mut calls) = (self.now, 0);
        while self.now < from + 30_000 {
            let had_call = !self.workers[0].calls.is_empty();
            self.step();
            calls += usize::from(!had_call && !self.workers[0].calls.is_empty());
        }
        assert!(calls <= 20, "{calls} calls of an idle worker in 30 s");
        assert_eq!(self.machine.holdings(), [], "somebody holds tasks");
        self.workers[0].stop_at = self.now;
        let from = self.now;
        while !self.workers[0].has_ended {
            self.step();
        }
        assert!(self.now <= from + 1_000, "an idle worker stops at once");
    }

    /// When something happens next.
    fn next_moment(&self) -> u64 {
        let workers = self.workers.iter().filter(|worker| !worker.has_ended);
        let of_worker = |worker: &Worker| {
            let calls = worker.calls.values();
            let moments = [
                worker.sleeps_until,
                calls.clone().filter_map(|call| call.executes_at).min(),
                calls.map(|call| call.replies_at).min(),
                worker.waits.values().map(|wait| wait.until).min(),
                worker.lives_again_at,
                worker.handlers.iter().map(|handler| handler.ends_at).min(),
                Some(worker.stop_at).filter(|_| !worker.core.is_ending()),
            ];
            let first = moments.into_iter().flatten().min();
            first.map(|first| first.max(worker.stalled_until))
        };
        let due = self.machine.next_due();
        let due = due.map(|due| due.as_ms().saturating_sub(1_700_000_000_000));
        let late = self.late.iter().map(|(at, ..)| *at).min();
        let disturbance = (self.now < CALM).then(|| self.now / 10 * 10 + 10);
        let moments = workers.map(of_worker).chain([due, late, disturbance]);
        let next = moments.flatten().filter(|at| *at > self.now).min();
        next.unwrap_or(self.now + 1).min(self.now + 100)
    }
}

/// The owner of a worker's life that begins then.
fn owner(index: u64, begins_at: u64) -> Owner {
    let owner = format!("w-{index}~{begins_at:016x}");
    owner.parse().expect("an owner")
}

#[test]
fn workers_and_tasks_end_whatever_fails() {
    let mut released_earlier = 0;
    for seed in 0..SEEDS {
        println!("seed {seed}");
        let mut world = World::new(seed);
        world.run();
        released_earlier += world.released_earlier;
    }
    assert!(released_earlier > 0, "no earlier life was released");
}
