//! Slots: what runs, and claims that wait for a free one.

use super::super::id::{TaskId, Token};
use super::action::{Moment, Stop};
use super::ahead::Waiting;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

pub(super) struct Slots {
    concurrency: usize,
    /// The most that run of single types.
    limits: HashMap<Arc<str>, usize>,
    running: HashMap<TaskId, Run>,
    running_of: HashMap<Arc<str>, usize>,
    /// Slots that handlers of earlier lives have, by type.
    taken_of: HashMap<Arc<str>, usize>,
    /// Claims that have no slot yet.
    pub(super) waiting: Waiting,
}

/// A handler that goes on.
struct Run {
    token: Token,
    attempt: u32,
    task_type: Arc<str>,
    /// The reason of the first stop, if there was one.
    stopping: Option<Stop>,
}

impl Run {
    fn stop(&mut self, id: TaskId, reason: Stop, stops: &mut VecDeque<(TaskId, Token, Stop)>) {
        if self.stopping.is_none() {
            self.stopping = Some(reason);
            stops.push_back((id, self.token, reason));
        }
    }
}

impl Slots {
    pub(super) fn new(concurrency: usize, limits: HashMap<Arc<str>, usize>) -> Self {
        Self {
            concurrency,
            limits,
            running: HashMap::new(),
            running_of: HashMap::new(),
            taken_of: HashMap::new(),
            waiting: Waiting::default(),
        }
    }

    /// Slots without a running task, of this life or of an earlier one.
    pub(super) fn free(&self) -> usize {
        let taken: usize = self.taken_of.values().sum();
        self.concurrency.saturating_sub(self.running.len() + taken)
    }

    /// How many tasks of each type run.
    pub(super) fn running_of(&self) -> &HashMap<Arc<str>, usize> {
        &self.running_of
    }

    /// Handlers of earlier lives have these slots. Answers whether fewer than before.
    pub(super) fn set_taken(&mut self, taken_of: HashMap<Arc<str>, usize>) -> bool {
        let sum = |taken: &HashMap<Arc<str>, usize>| taken.values().sum::<usize>();
        let before = sum(&self.taken_of);
        self.taken_of = taken_of;
        sum(&self.taken_of) < before
    }

    /// How many tasks of a type run, in this life or an earlier one.
    fn busy_with(&self, task_type: &str) -> usize {
        let of = |counts: &HashMap<Arc<str>, usize>| counts.get(task_type).copied().unwrap_or(0);
        of(&self.running_of) + of(&self.taken_of)
    }

    /// Slots that no running task has and no claim waits for.
    pub(super) fn room(&self) -> usize {
        self.free().saturating_sub(self.waiting.len())
    }

    /// How many tasks of a type may be claimed, at most `room`.
    pub(super) fn limited(&self, task_type: &str, room: usize) -> usize {
        match self.limits.get(task_type) {
            None => room,
            Some(limit) => {
                let held = self.busy_with(task_type) + self.waiting.len_of(task_type);
                limit.saturating_sub(held).min(room)
            }
        }
    }

    /// The task of the oldest waiting claim whose type is below its limit: a claim whose reply was lost may come in
    /// addition to those that were asked for within it.
    pub(super) fn startable(&self) -> Option<TaskId> {
        if self.limits.is_empty() {
            return self.waiting.ids().next().map(|(id, _)| id);
        }
        let may_start = |(id, task_type): &(TaskId, &str)| match self.limits.get(*task_type) {
            None => true,
            // A run of the same task is about to be replaced.
            Some(limit) => self.busy_with(task_type) < *limit || self.running.contains_key(id),
        };
        self.waiting.ids().find(may_start).map(|(id, _)| id)
    }

    /// Whether nothing runs.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether something runs or waits for a slot.
    pub(super) fn holds_some(&self) -> bool {
        !self.running.is_empty() || !self.waiting.is_empty()
    }

    /// How many tasks run or wait for a slot.
    pub(super) fn held(&self) -> usize {
        self.running.len() + self.waiting.len()
    }

    /// Whether this claim runs or waits for a slot.
    pub(super) fn knows(&self, id: TaskId, token: Token) -> bool {
        let running = self.running.get(&id);
        running.is_some_and(|run| run.token == token) || self.waiting.holds(id, token)
    }

    /// When the oldest claim has waited for a slot for long enough.
    pub(super) fn overdue_at(&self) -> Option<Moment> {
        self.waiting.deadline()
    }

    pub(super) fn start(&mut self, id: TaskId, token: Token, attempt: u32, task_type: Arc<str>) {
        *self.running_of.entry(task_type.clone()).or_default() += 1;
        let run = Run {
            token,
            attempt,
            task_type,
            stopping: None,
        };
        self.running.insert(id, run);
    }

    /// Forgets an older run of a task that is about to run again.
    pub(super) fn replace(&mut self, id: TaskId) -> Option<Token> {
        if self.running.is_empty() {
            return None;
        }
        let old = self.running.remove(&id)?;
        self.forget(&old.task_type);
        Some(old.token)
    }

    /// A run has ended. Answers its attempt; none if it is not this claim that runs.
    pub(super) fn end(&mut self, id: TaskId, token: Token) -> Option<u32> {
        if self.running.get(&id)?.token != token {
            return None;
        }
        let run = self.running.remove(&id)?;
        self.forget(&run.task_type);
        Some(run.attempt)
    }

    /// What runs, in an order that does not depend on the table.
    fn ids(&self) -> Vec<TaskId> {
        let mut ids: Vec<TaskId> = self.running.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    fn forget(&mut self, task_type: &str) {
        if let Some(count) = self.running_of.get_mut(task_type) {
            *count -= 1;
        }
    }

    /// Stops the run of a task. Answers whether there is one.
    pub(super) fn stop(
        &mut self,
        id: TaskId,
        reason: Stop,
        stops: &mut VecDeque<(TaskId, Token, Stop)>,
    ) -> bool {
        let run = self.running.get_mut(&id);
        let is_here = run.is_some();
        if let Some(run) = run {
            run.stop(id, reason, stops);
        }
        is_here
    }

    pub(super) fn stop_all(&mut self, reason: Stop, stops: &mut VecDeque<(TaskId, Token, Stop)>) {
        for id in self.ids() {
            self.stop(id, reason, stops);
        }
    }

    /// Runs that were not told to stop, with their attempt.
    pub(super) fn not_stopping(&self) -> impl Iterator<Item = (TaskId, u32)> + '_ {
        let runs = self.running.iter();
        let runs = runs.filter(|(_, run)| run.stopping.is_none());
        runs.map(|(id, run)| (*id, run.attempt))
    }

    /// Stops the runs and drops the waiting claims that are not among these tokens. Answers how many.
    pub(super) fn lose_all_but(
        &mut self,
        held: &HashMap<TaskId, Token>,
        stops: &mut VecDeque<(TaskId, Token, Stop)>,
    ) -> usize {
        let mut lost = self.waiting.retain(held);
        for id in self.ids() {
            if let Some(run) = self.running.get_mut(&id)
                && held.get(&id) != Some(&run.token)
                && run.stopping.is_none()
            {
                run.stop(id, Stop::LeaseLost, stops);
                lost += 1;
            }
        }
        lost
    }

    /// Takes all runs, with their attempt.
    pub(super) fn take_running(&mut self) -> Vec<(TaskId, Token, u32)> {
        self.running_of.clear();
        let runs = self.running.drain();
        runs.map(|(id, run)| (id, run.token, run.attempt)).collect()
    }

    pub(super) fn clear(&mut self) {
        self.running.clear();
        self.running_of.clear();
        self.waiting = Waiting::default();
    }
}
