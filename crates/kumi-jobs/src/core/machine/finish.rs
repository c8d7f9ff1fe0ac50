//! Reports: what becomes of a task after a run.

use super::super::claim::{Finish, Finished, Outcome};
use super::super::error::Refusal;
use super::super::id::{TaskId, Timestamp, Token};
use super::super::record::{NULL, Progress, TaskState, cut};
use super::super::settings::MAX_GIVEN_BACK;
use super::{Machine, Record};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

/// The error of a task that was given back for the last time.
pub(crate) const GIVEN_BACK_TOO_OFTEN: &str = "given back more than 100 times";

/// Where a task goes when it stops running.
pub(super) enum Next {
    End(TaskState),
    /// To the head of its line.
    Line,
    /// To its line when the delay is over.
    Later(TaskState, Duration),
}

impl Machine {
    pub(super) fn finish(&mut self, now: Timestamp, reports: Vec<Finish>) -> Vec<Finished> {
        reports
            .into_iter()
            .map(|report| self.finish_one(now, report))
            .collect()
    }

    fn finish_one(&mut self, now: Timestamp, report: Finish) -> Finished {
        let Some(record) = self.records.get_mut(&report.id) else {
            return Finished::Unknown;
        };
        if record.token != Some(report.token) {
            return Finished::Refused;
        }
        if record.state != TaskState::Running {
            return Finished::AlreadyApplied;
        }
        let (result_limit, error_limit) = (
            self.settings.result_limit_bytes,
            self.settings.error_limit_bytes,
        );
        let keeps = self.retention.succeeded > 0;
        if matches!(report.outcome, Outcome::Failed { .. }) {
            self.totals.failed += 1;
        }
        let next = record.outcome(report.outcome, result_limit, error_limit, keeps);
        Finished::Applied(self.stop_running(report.id, now, next))
    }

    /// Takes a running task from its owner and puts it where it belongs next.
    pub(super) fn stop_running(&mut self, id: TaskId, now: Timestamp, next: Next) -> TaskState {
        let Some(record) = self.records.get_mut(&id) else {
            return TaskState::Cancelled;
        };
        record.cancel_requested = false;
        if let Some(owner) = record.owner.take()
            && let Some(holder) = self.owners.get_mut(&owner)
        {
            holder.running.remove(&id);
            if holder.running.is_empty() {
                self.owners.remove(&owner);
            }
        }
        if self.limits.contains_key(&record.envelope.task_type) {
            // A place under the bound is free again.
            self.effects.wake = true;
        }
        match next {
            Next::End(state) => {
                self.end(id, now, state);
                state
            }
            Next::Line => {
                self.set_state(id, now, TaskState::Queued);
                self.line_up(id, true);
                TaskState::Queued
            }
            Next::Later(state, delay) => {
                let due = now.after(delay);
                record.next_run_at = due;
                let line = match state {
                    TaskState::RetryScheduled => &mut self.retry,
                    _ => &mut self.scheduled,
                };
                self.effects.wake |= line.first().is_none_or(|first| due < first.0);
                line.insert((due, id));
                self.set_state(id, now, state);
                state
            }
        }
    }

    /// Stores how far a run is.
    pub(crate) fn progress(&mut self, id: TaskId, token: Token, progress: Progress) -> bool {
        let Some(record) = self.held(id, token) else {
            return false;
        };
        record.rare().progress = Some(progress);
        true
    }

    /// Stores a step's value.
    pub(crate) fn save_step(
        &mut self,
        id: TaskId,
        token: Token,
        name: &str,
        value: Bytes,
    ) -> Result<bool, Refusal> {
        if self.held(id, token).is_none() {
            return Ok(false);
        }
        let steps = self.steps.entry(id).or_default();
        let others: usize = steps
            .iter()
            .filter(|(other, _)| *other != name)
            .map(|(other, value)| other.len() + value.len())
            .sum();
        let size = others + name.len() + value.len();
        if !steps.contains_key(name) && steps.len() >= self.settings.step_limit {
            return Err(Refusal::TooMany {
                what: "steps of one task",
                limit: self.settings.step_limit,
            });
        }
        if size > self.settings.steps_limit_bytes {
            return Err(Refusal::TooLarge {
                what: "the steps of one task",
                size,
                limit: self.settings.steps_limit_bytes,
            });
        }
        steps.insert(name.to_owned(), value);
        Ok(true)
    }

    pub(crate) fn steps(&self, id: TaskId) -> BTreeMap<String, Bytes> {
        self.steps.get(&id).cloned().unwrap_or_default()
    }

    /// The record of a running task, for the holder of its token.
    fn held(&mut self, id: TaskId, token: Token) -> Option<&mut Record> {
        let record = self.records.get_mut(&id)?;
        let is_held = record.state == TaskState::Running && record.token == Some(token);
        is_held.then_some(record)
    }
}

impl Record {
    fn outcome(
        &mut self,
        outcome: Outcome,
        result_limit: usize,
        error_limit: usize,
        keeps: bool,
    ) -> Next {
        match outcome {
            Outcome::Succeeded(result) => {
                self.result_dropped = result
                    .as_ref()
                    .is_some_and(|result| result.len() > result_limit);
                match result.filter(|result| result.len() <= result_limit && keeps) {
                    Some(result) if result == NULL => self.result_null = true,
                    Some(result) => self.rare().result = Some(result),
                    None => {}
                }
                Next::End(TaskState::Succeeded)
            }
            Outcome::Failed { error, retry_after } => {
                self.rare().last_error = Some(cut(error, error_limit));
                match retry_after {
                    Some(_) if self.cancel_requested => Next::End(TaskState::Cancelled),
                    Some(delay) if self.attempts < self.max_attempts => {
                        Next::Later(TaskState::RetryScheduled, delay)
                    }
                    _ => Next::End(TaskState::Dead),
                }
            }
            Outcome::Snoozed(_) | Outcome::GivenBack if self.cancel_requested => {
                Next::End(TaskState::Cancelled)
            }
            Outcome::Snoozed(delay) => match self.give_back() {
                true => Next::Later(TaskState::Scheduled, delay),
                false => Next::End(TaskState::Dead),
            },
            Outcome::GivenBack => match self.give_back() {
                true => Next::Line,
                false => Next::End(TaskState::Dead),
            },
            Outcome::Cancelled => Next::End(TaskState::Cancelled),
        }
    }

    /// Gives the attempt back. False if the task can run no more.
    fn give_back(&mut self) -> bool {
        if self.given_back < MAX_GIVEN_BACK {
            self.given_back += 1;
            self.attempts -= 1;
            return true;
        }
        let is_left = self.attempts < self.max_attempts;
        if !is_left {
            self.rare().last_error = Some(GIVEN_BACK_TOO_OFTEN.into());
        }
        is_left
    }
}
