//! What operators and programs ask of a queue beside work: status, counts, listings, cancel, requeue, purge, schedules.

use super::super::id::{TaskId, Timestamp};
use super::super::record::{NewTask, TaskRecord, TaskState};
use super::super::settings::TURN_LIMIT;
use super::Machine;
use crate::error::QueueError;
use crate::queue::{Cancel, Counts, Filter, Page, Requeued, Schedule, Signal};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long after a worker's ask its types count as served.
pub(crate) const SERVED_FOR: Duration = Duration::from_secs(60);

impl Machine {
    pub(crate) fn status(&self, id: TaskId) -> Option<TaskRecord> {
        self.records.get(&id).map(|record| record.snapshot())
    }

    pub(crate) fn counts(&self, now: Timestamp) -> Counts {
        let nonzero = |counts: &[u64; 8]| -> BTreeMap<TaskState, u64> {
            TaskState::ALL
                .into_iter()
                .map(|state| (state, counts[state as usize]))
                .filter(|(_, count)| *count > 0)
                .collect()
        };
        let by_type = self
            .kinds
            .iter()
            .map(|kind| (kind.task_type.clone(), nonzero(&kind.counts)))
            .filter(|(_, counts)| !counts.is_empty());
        let served = self
            .served
            .iter()
            .filter(|(_, asked_at)| asked_at.after(SERVED_FOR) > now);
        let mut served: Vec<Arc<str>> = served.map(|(task_type, _)| task_type.clone()).collect();
        served.sort_unstable();
        Counts {
            by_type: by_type.collect(),
            served,
            paused: self.paused,
        }
    }

    /// A part of a listing, by id. Each page costs one pass over all records.
    pub(crate) fn list(
        &self,
        filter: &Filter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Page, QueueError> {
        let after = match cursor {
            None => None,
            Some(cursor) => Some(cursor.parse::<TaskId>().map_err(|_| {
                QueueError::Invalid(format!("'{cursor}' is not a cursor of this queue"))
            })?),
        };
        let limit = limit.max(1);
        let mut ids: Vec<TaskId> = self
            .records
            .values()
            .filter(|record| after.is_none_or(|after| record.id > after))
            .filter(|record| filter.admits(record.state, &record.envelope.task_type))
            .map(|record| record.id)
            .collect();
        let is_last = ids.len() <= limit;
        if !is_last {
            ids.select_nth_unstable(limit - 1);
            ids.truncate(limit);
        }
        ids.sort_unstable();
        Ok(Page {
            cursor: ids.last().filter(|_| !is_last).map(ToString::to_string),
            tasks: ids.iter().filter_map(|id| self.status(*id)).collect(),
        })
    }

    pub(crate) fn cancel(&mut self, now: Timestamp, id: TaskId) -> Cancel {
        self.beat(now, true);
        let Some(record) = self.records.get_mut(&id) else {
            return Cancel::Unknown;
        };
        match record.state {
            state if state.is_terminal() => return Cancel::AlreadyDone(state),
            TaskState::Running => {
                record.cancel_requested = true;
                if let Some(owner) = record.owner.clone() {
                    self.effects.signals.push((owner, Signal::Cancel(id)));
                }
                return Cancel::Requested;
            }
            TaskState::Scheduled => drop(self.scheduled.remove(&(record.next_run_at, id))),
            TaskState::RetryScheduled => drop(self.retry.remove(&(record.next_run_at, id))),
            _ => {}
        }
        self.end(id, now, TaskState::Cancelled);
        Cancel::Cancelled
    }

    pub(crate) fn requeue(&mut self, now: Timestamp, id: TaskId) -> Requeued {
        let Some(record) = self.records.get(&id) else {
            return Requeued::Unknown;
        };
        if record.state != TaskState::Dead {
            return Requeued::NotDead(record.state);
        }
        let died_at = record.updated_at;
        let unique = record.rare.as_ref().and_then(|rare| rare.unique.clone());
        if let Some(unique) = unique
            && let Err(holder) = self.take_unique(&unique.key, id, now)
        {
            return Requeued::Taken(holder);
        }
        self.dead.remove(&(died_at, id));
        if let Some(record) = self.records.get_mut(&id) {
            record.attempts = 0;
            record.given_back = 0;
        }
        self.admit(id, now);
        Requeued::Applied(self.records.get(&id).map_or(TaskState::Queued, |r| r.state))
    }

    /// Forgets tasks that are done.
    pub(crate) fn purge(&mut self, now: Timestamp, ids: &[TaskId]) -> usize {
        let mut purged = 0;
        for id in ids {
            let Some(record) = self.records.get(id) else {
                continue;
            };
            match record.state {
                TaskState::Dead => drop(self.dead.remove(&(record.updated_at, *id))),
                TaskState::Succeeded => self.succeeded.retain(|kept| kept != id),
                TaskState::Cancelled => self.cancelled.retain(|kept| kept != id),
                _ => continue,
            }
            self.forget(*id, now);
            purged += 1;
        }
        purged
    }

    /// Drops what was kept long enough, or is too much. At most one turn's worth of all together.
    pub(super) fn trim(&mut self, now: Timestamp) {
        let old = now
            .as_ms()
            .saturating_sub(self.retention.succeeded_for.as_millis() as u64);
        let mut left = TURN_LIMIT;
        while left > 0 {
            let Some(id) = self.succeeded.front().copied() else {
                break;
            };
            if self.succeeded.len() <= self.retention.succeeded && !self.is_older(id, old) {
                break;
            }
            self.succeeded.pop_front();
            self.forget(id, now);
            left -= 1;
        }
        while left > 0 {
            let Some(id) = self.cancelled.front().copied() else {
                break;
            };
            if self.cancelled.len() <= self.retention.succeeded && !self.is_older(id, old) {
                break;
            }
            self.cancelled.pop_front();
            self.forget(id, now);
            left -= 1;
        }
        while left > 0 {
            let Some((died_at, id)) = self.dead.first().copied() else {
                break;
            };
            let is_kept = self.dead.len() <= self.retention.dead
                && died_at.after(self.retention.dead_for) > now;
            if is_kept {
                break;
            }
            self.dead.pop_first();
            self.forget(id, now);
            left -= 1;
        }
    }

    fn is_older(&self, id: TaskId, ms: u64) -> bool {
        self.records
            .get(&id)
            .is_none_or(|record| record.updated_at.as_ms() <= ms)
    }

    pub(crate) fn pause(&mut self, paused: bool) {
        self.paused = paused;
        self.effects.wake |= !paused;
    }

    pub(crate) fn limit(&mut self, task_type: &str, limit: Option<u32>) {
        match limit {
            Some(limit) => drop(self.limits.insert(task_type.into(), limit)),
            None => drop(self.limits.remove(task_type)),
        }
        self.effects.wake = true;
    }

    pub(crate) fn put_schedule(&mut self, now: Timestamp, mut schedule: Schedule) {
        let same_times =
            |old: &&Schedule| old.expression == schedule.expression && old.zone == schedule.zone;
        let old = self.schedules.get(&schedule.name).filter(same_times);
        schedule.last_slot = old.map_or(now, |old| old.last_slot);
        self.schedule_sets.remove(&schedule.name);
        self.schedules.insert(schedule.name.clone(), schedule);
    }

    pub(crate) fn remove_schedule(&mut self, name: &str) -> bool {
        self.schedule_sets.remove(name);
        self.schedules.remove(name).is_some()
    }

    /// Answers the names that the set had and has no more.
    pub(crate) fn declare_schedules(
        &mut self,
        now: Timestamp,
        set: &str,
        schedules: Vec<Schedule>,
    ) -> Vec<String> {
        let mut old: Vec<String> = self
            .schedule_sets
            .iter()
            .filter(|(_, of)| *of == set)
            .map(|(name, _)| name.clone())
            .collect();
        for schedule in schedules {
            let name = schedule.name.clone();
            old.retain(|old| *old != name);
            self.put_schedule(now, schedule);
            self.schedule_sets.insert(name, set.to_owned());
        }
        for name in &old {
            self.remove_schedule(name);
        }
        old
    }

    pub(crate) fn schedules(&self) -> Vec<Schedule> {
        self.schedules.values().cloned().collect()
    }

    pub(crate) fn fire(
        &mut self,
        now: Timestamp,
        name: &str,
        last: Timestamp,
        slot: Timestamp,
        task: Option<NewTask>,
    ) -> Result<bool, QueueError> {
        let schedule = self.schedules.get(name);
        if schedule.is_none_or(|schedule| schedule.last_slot != last) {
            return Ok(false);
        }
        if let Some(task) = task {
            self.add(now, vec![task])?;
        }
        if let Some(schedule) = self.schedules.get_mut(name) {
            schedule.last_slot = slot;
        }
        Ok(true)
    }
}
