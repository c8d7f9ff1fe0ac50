//! Enqueue, and what is due.

use super::super::error::Refusal;
use super::super::id::{TaskId, Timestamp};
use super::super::record::{NewTask, TaskState};
use super::super::reply::{Enqueued, TaskEvent};
use super::super::settings::TURN_LIMIT;
use super::{Machine, Record};
use std::sync::Arc;

impl Machine {
    /// Adds tasks whose sizes were checked.
    pub(crate) fn enqueue(
        &mut self,
        now: Timestamp,
        tasks: Vec<NewTask>,
    ) -> Result<Vec<Enqueued>, Refusal> {
        let made = self.add(now, tasks)?;
        if made.iter().any(|made| matches!(made, Enqueued::New(..))) {
            self.beat(now, true);
        }
        Ok(made)
    }

    /// As `enqueue`, for a schedule: no program's sign of life.
    pub(super) fn add(
        &mut self,
        now: Timestamp,
        tasks: Vec<NewTask>,
    ) -> Result<Vec<Enqueued>, Refusal> {
        if self.records.len() + tasks.len() > self.settings.task_limit {
            return Err(Refusal::TooMany {
                what: "tasks in the queue",
                limit: self.settings.task_limit,
            });
        }
        Ok(tasks
            .into_iter()
            .map(|task| self.enqueue_one(now, task))
            .collect())
    }

    fn enqueue_one(&mut self, now: Timestamp, task: NewTask) -> Enqueued {
        let id = task.id;
        if self.records.contains_key(&id) {
            return Enqueued::Exists(id);
        }
        if let Some(unique) = &task.unique
            && let Err(holder) = self.take_unique(&unique.key, id, now)
        {
            return Enqueued::Duplicate(holder);
        }
        self.totals.enqueued += 1;
        let delay = task.delay;
        let kind = self.kind_of(&task.envelope.task_type);
        let mut record = Record::new(task, kind, now);
        // One copy of a type's name for all its records.
        let task_type = &self.kinds[kind as usize].task_type;
        if !Arc::ptr_eq(task_type, &record.envelope.task_type) {
            record.envelope.task_type = task_type.clone();
        }
        record.next_run_at = now.after(delay);
        let (next_run_at, level) = (record.next_run_at, record.priority.level());
        let state = match delay.is_zero() {
            true => self.join_serial(id, record.serial_key()),
            false => TaskState::Scheduled,
        };
        record.state = state;
        self.records.insert(id, Box::new(record));
        match state {
            TaskState::Scheduled => {
                let is_first = self
                    .scheduled
                    .first()
                    .is_none_or(|first| next_run_at < first.0);
                self.scheduled.insert((next_run_at, id));
                self.effects.wake |= is_first;
            }
            TaskState::Queued => {
                self.kinds[kind as usize].lanes[level].push_back(id);
                self.effects.wake = true;
            }
            _ => drop(self.blocked.insert((now, id))),
        }
        let kind = &mut self.kinds[kind as usize];
        kind.counts[state as usize] += 1;
        if self.listening {
            self.effects.moved.push(TaskEvent {
                id,
                task_type: kind.task_type.clone(),
                from: None,
                to: state,
                attempts: 0,
                at: now,
            });
        }
        Enqueued::New(id, state)
    }

    /// Takes a unique key for a task, or answers which task holds it.
    pub(super) fn take_unique(
        &mut self,
        key: &Arc<str>,
        id: TaskId,
        now: Timestamp,
    ) -> Result<(), TaskId> {
        if let Some(holder) = self.unique.get(key).copied() {
            let ended = self
                .windows
                .iter()
                .take_while(|(end, _)| *end <= now)
                .find(|(_, ended)| ended == key)
                .cloned();
            match ended {
                Some(window) => drop(self.windows.remove(&window)),
                None => return Err(holder),
            }
        }
        self.unique.insert(key.clone(), id);
        Ok(())
    }

    /// Moves what is due into line, within the budget, and frees unique keys whose window ended. True if more is due.
    pub(super) fn promote(&mut self, now: Timestamp, budget: &mut usize) -> bool {
        for _ in 0..TURN_LIMIT {
            match self.windows.first() {
                Some((end, _)) if *end <= now => {
                    if let Some((_, key)) = self.windows.pop_first() {
                        self.unique.remove(&key);
                    }
                }
                _ => break,
            }
        }
        // Where both have tasks that are due, each gets its half.
        let is_retry_due = self.retry.first().is_some_and(|(due, _)| *due <= now);
        let most = match is_retry_due {
            true => budget.div_ceil(2),
            false => *budget,
        };
        for _ in 0..TURN_LIMIT.min(most) {
            match self.scheduled.first() {
                Some((due, _)) if *due <= now => {
                    if let Some((_, id)) = self.scheduled.pop_first() {
                        *budget -= 1;
                        self.admit(id, now);
                    }
                }
                _ => break,
            }
        }
        for _ in 0..TURN_LIMIT.min(*budget) {
            match self.retry.first() {
                Some((due, _)) if *due <= now => {
                    if let Some((_, id)) = self.retry.pop_first() {
                        *budget -= 1;
                        self.admit(id, now);
                    }
                }
                _ => break,
            }
        }
        self.next_due().is_some_and(|due| due <= now)
    }

    /// When something is next due.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let scheduled = self.scheduled.first().map(|(due, _)| *due);
        let retry = self.retry.first().map(|(due, _)| *due);
        let lease = self.owners.values().map(|holder| holder.lease_end).min();
        [scheduled, retry, lease].into_iter().flatten().min()
    }
}
