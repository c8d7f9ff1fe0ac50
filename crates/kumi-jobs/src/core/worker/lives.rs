//! The lives of one worker: the newest claims, and the earlier ones renew and report until their handlers have ended.
//!
//! A worker takes a new life while it runs when others believe that its present one is over. Each life is a [`WorkerCore`] with
//! an owner of its own; all share the slots and the limits of types. A worker whose newest life was released has none, and
//! waits for another.

use super::super::claim::{Ask, Claim, Finish, Outcome, Signal, Turn};
use super::super::owner::Owner;
use super::{Action, Call, CallError, Moment, Note, Reply, Rules, Verdict, WorkerCore};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// Lives of a worker that have not ended, at most. One more begins when one of them has.
pub(super) const LIVES_LIMIT: usize = 16;

/// Names a life of a worker. A later one has the higher number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LifeId(u32);

/// What the driver does next.
#[derive(Debug)]
pub(crate) struct Step {
    /// The life that it is for; none if it is for the whole worker.
    pub(crate) life: Option<LifeId>,
    /// `Action::Sleep` is for the whole worker only. `Action::End` of a life means that it has ended: its wait is dropped, and
    /// its call in flight may still bring claims. After that of the worker, what `take_last` returns is to be reported.
    pub(crate) action: Action,
}

impl Step {
    fn of(life: LifeId, action: Action) -> Self {
        let life = Some(life);
        Self { life, action }
    }
}

/// The last reports of a life, and an ask for no tasks that carries them.
#[derive(Debug)]
pub(crate) struct Last {
    pub(crate) life: LifeId,
    pub(crate) reports: Vec<Finish>,
    pub(crate) ask: Ask,
}

/// See the module. The order of calls is that of [`WorkerCore`].
pub(crate) struct Lives {
    /// For the next life; the owner is that of the newest one.
    rules: Rules,
    rotation: usize,
    /// Those that have not ended, the earliest first; at most `LIVES_LIMIT`.
    lives: Vec<(LifeId, WorkerCore)>,
    /// The owner of the life that begins when another one has ended.
    wanted: Option<Owner>,
    count: u32,
    /// How many handlers of lives that were released still run, by type: they cannot be dropped, and have their slots.
    abandoned: HashMap<Arc<str>, usize>,
    is_drained: bool,
    /// The worker ends.
    is_ending: bool,
    /// The life whose claim is being started.
    starting: LifeId,
    last: Vec<Last>,
    notes: Vec<(Owner, Note)>,
}

impl Lives {
    /// A worker that begins its first life now.
    pub(crate) fn new(rules: Rules, rotation: usize) -> Self {
        let mut lives = Self {
            rules,
            rotation,
            lives: Vec::new(),
            wanted: None,
            count: 0,
            abandoned: HashMap::new(),
            is_drained: false,
            is_ending: false,
            starting: LifeId(0),
            last: Vec::new(),
            notes: Vec::new(),
        };
        lives.begin();
        lives
    }

    fn begin(&mut self) {
        let mut core = WorkerCore::new(self.rules.clone(), self.rotation);
        core.set_drained(self.is_drained);
        self.lives.push((LifeId(self.count), core));
        self.count += 1;
    }

    /// Begins another life: the present one claims no more, and ends when its handlers have. Nothing changes if the owner is
    /// that of the newest life or of another one that has not ended, or the worker ends. Where there are `LIVES_LIMIT` lives,
    /// none claims until one has ended and this one begins.
    pub(crate) fn renew_life(&mut self, owner: Owner) {
        let is_known = self.lives.iter().any(|(_, core)| *core.owner() == owner);
        if self.is_ending || is_known || owner == self.rules.owner {
            return;
        }
        if let Some((_, newest)) = self.lives.last() {
            self.rotation = newest.rotation();
        }
        for (_, core) in &mut self.lives {
            core.retire();
        }
        self.wanted = Some(owner);
        self.begin_wanted();
    }

    fn begin_wanted(&mut self) {
        if self.lives.len() < LIVES_LIMIT
            && let Some(owner) = self.wanted.take()
        {
            self.rules.owner = owner;
            self.begin();
        }
    }

    /// Stops claims of this and all later lives, or resumes them.
    pub(crate) fn set_drained(&mut self, is_drained: bool) {
        self.is_drained = is_drained;
        for (_, core) in &mut self.lives {
            core.set_drained(is_drained);
        }
    }

    /// The owner of a life, or of the newest one if it has ended.
    pub(crate) fn owner(&self, life: LifeId) -> &Owner {
        let found = self.lives.iter().find(|(id, _)| *id == life);
        found.map_or(&self.rules.owner, |(_, core)| core.owner())
    }

    /// Whether the worker has no life but perhaps this one.
    pub(crate) fn is_last(&self, life: LifeId) -> bool {
        self.wanted.is_none() && self.lives.iter().all(|(id, _)| *id == life)
    }

    /// The owner of the newest life, if that was released and no other one is to begin.
    pub(crate) fn released(&self) -> Option<&Owner> {
        let newest = self.lives.last();
        let has_newest = newest.is_some_and(|(life, _)| life.0 + 1 == self.count);
        let is_released = !has_newest && self.wanted.is_none() && !self.is_ending;
        is_released.then_some(&self.rules.owner)
    }

    /// Whether all lives have ended.
    pub(crate) fn has_none(&self) -> bool {
        self.lives.is_empty()
    }

    pub(crate) fn poll(&mut self, now: Moment, random: &mut dyn FnMut() -> u64) -> Step {
        self.share_slots();
        let mut until: Option<Moment> = None;
        for index in 0..self.lives.len() {
            let (life, core) = &mut self.lives[index];
            let life = *life;
            match core.poll(now, random) {
                Action::Sleep(moment) => {
                    until = until.into_iter().chain(moment).min();
                }
                Action::End => {
                    self.end(index, random);
                    return Step::of(life, Action::End);
                }
                action => {
                    if matches!(action, Action::Start(_)) {
                        self.starting = life;
                    }
                    return Step::of(life, action);
                }
            }
        }
        Step {
            life: None,
            action: match self.is_ending && self.lives.is_empty() {
                true => Action::End,
                false => Action::Sleep(until),
            },
        }
    }

    /// A life has ended. If the worker goes on it holds nothing more: its handlers have ended, or it was released.
    fn end(&mut self, index: usize, random: &mut dyn FnMut() -> u64) {
        let (life, mut core) = self.lives.remove(index);
        self.take_notes_of(&mut core);
        if self.is_ending && !core.is_refused() {
            let (reports, ask) = (core.give_back_all(), core.last_ask(random()));
            self.last.push(Last { life, reports, ask });
        }
        self.begin_wanted();
    }

    /// A handler of a life that was released goes on, and keeps its slot.
    pub(crate) fn abandon(&mut self, task_type: Arc<str>) {
        *self.abandoned.entry(task_type).or_default() += 1;
    }

    /// A handler that was abandoned has ended.
    pub(crate) fn handle_returned(&mut self, task_type: &str) {
        if let Some(count) = self.abandoned.get_mut(task_type) {
            *count = count.saturating_sub(1);
        }
    }

    /// The newest life has the slots that the handlers of earlier ones leave.
    fn share_slots(&mut self) {
        let Some((newest, earlier)) = self.lives.split_last_mut() else {
            return;
        };
        let mut taken_of = self.abandoned.clone();
        for (_, core) in earlier {
            for (task_type, count) in core.running_of() {
                *taken_of.entry(task_type.clone()).or_default() += count;
            }
        }
        newest.1.set_taken(taken_of);
    }

    /// The core of a life; none if that has ended.
    fn core(&mut self, life: LifeId) -> Option<&mut WorkerCore> {
        let mut lives = self.lives.iter_mut();
        lives.find(|(id, _)| *id == life).map(|(_, core)| core)
    }

    pub(crate) fn send_ahead(
        &mut self,
        life: LifeId,
        now: Moment,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Call> {
        self.core(life)?.send_ahead(now, random)
    }

    pub(crate) fn ended_at_once(&mut self, report: Finish) {
        let life = self.starting;
        if let Some(core) = self.core(life) {
            core.ended_at_once(report);
        }
    }

    pub(crate) fn goes_on(&mut self, task_type: Arc<str>) {
        let life = self.starting;
        if let Some(core) = self.core(life) {
            core.goes_on(task_type);
        }
    }

    pub(crate) fn cannot_start(&mut self, claim: &Claim) {
        let life = self.starting;
        if let Some(core) = self.core(life) {
            core.cannot_start(claim);
        }
    }

    /// The worker is to stop: no life claims any more.
    pub(crate) fn handle_stop(&mut self, now: Moment) {
        self.is_ending = true;
        self.wanted = None;
        for (_, core) in &mut self.lives {
            core.handle_stop(now);
        }
    }

    /// A handler that took a slot has ended.
    pub(crate) fn handle_ended(&mut self, report: Finish) {
        let mut lives = self.lives.iter_mut();
        // The life of a report without one was released: its task belongs to others.
        if let Some((_, core)) = lives.find(|(_, core)| *core.owner() == report.owner) {
            core.handle_ended(report);
        }
    }

    pub(crate) fn handle_wait(
        &mut self,
        life: LifeId,
        now: Moment,
        signals: Result<&[Signal], CallError>,
    ) {
        if let Some(core) = self.core(life) {
            core.handle_wait(now, signals);
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Moment) {
        for (_, core) in &mut self.lives {
            core.handle_timeout(now);
        }
    }

    /// The reply to the call of a life. `Verdict::Over` is for that life alone, unless the queue has another format.
    pub(crate) fn handle_reply(&mut self, life: LifeId, now: Moment, reply: Reply) -> Verdict {
        let Some(core) = self.core(life) else {
            self.give_back_late(life, reply);
            return Verdict::GoOn;
        };
        let verdict = core.handle_reply(now, reply);
        if verdict == Verdict::Ending {
            self.handle_stop(now);
        }
        verdict
    }

    /// Adds the claims that a call brought to a life after its end to its last reports.
    fn give_back_late(&mut self, life: LifeId, reply: Reply) {
        let (Reply::Turn(Ok(Turn { claims, .. })) | Reply::Recover(Ok(claims))) = reply else {
            return;
        };
        let Some(last) = self.last.iter_mut().find(|last| last.life == life) else {
            return;
        };
        let is_reported = |claim: &Claim| {
            let mut reports = last.reports.iter();
            reports.any(|report| (report.id, report.token) == (claim.id, claim.token))
        };
        let claims = claims.iter().rev().filter(|claim| !is_reported(claim));
        let reports = claims.map(|claim| Finish::new(claim, Outcome::GivenBack));
        let reports: Vec<Finish> = reports.collect();
        last.reports.splice(0..0, reports);
    }

    /// Takes what is to be logged, with the owner that it is about.
    pub(crate) fn take_notes(&mut self) -> Vec<(Owner, Note)> {
        let mut lives = std::mem::take(&mut self.lives);
        for (_, core) in &mut lives {
            self.take_notes_of(core);
        }
        self.lives = lives;
        std::mem::take(&mut self.notes)
    }

    fn take_notes_of(&mut self, core: &mut WorkerCore) {
        let notes = core.take_notes().into_iter();
        let owner = core.owner();
        self.notes.extend(notes.map(|note| (owner.clone(), note)));
    }

    /// Whether the worker ends.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Takes the last reports of lives that have ended, the newest life first: what an earlier one gives back comes to stand
    /// before it in its line.
    pub(crate) fn take_last(&mut self) -> Vec<Last> {
        let mut last = std::mem::take(&mut self.last);
        last.sort_unstable_by_key(|last| Reverse(last.life));
        last
    }

    /// As `take_last`, of all lives: the worker is over at once.
    pub(crate) fn give_back_all(&mut self, random: &mut dyn FnMut() -> u64) -> Vec<Last> {
        self.is_ending = true;
        self.wanted = None;
        while !self.lives.is_empty() {
            self.end(0, random);
        }
        self.take_last()
    }
}
