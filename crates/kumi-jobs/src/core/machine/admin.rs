//! What operators and programs ask of a queue beside work: status, counts, cancel, requeue, purge, schedules.

use super::super::claim::Signal;
use super::super::error::Refusal;
use super::super::id::{TaskId, Timestamp};
use super::super::record::{NewTask, TaskRecord, TaskState};
use super::super::reply::{Cancel, Counts, Load, Requeued, Schedule};
use super::super::settings::TURN_LIMIT;
use super::Machine;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// How long after a worker's ask its types count as served.
pub(crate) const SERVED_FOR: Duration = Duration::from_secs(60);

/// Ids at the head of each line that `load` looks at: those of cancelled tasks, and of tasks that were given back, may stand
/// before the one that waits longest.
const READY_LOOK: usize = 10;

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

    pub(crate) fn load(&self, now: Timestamp) -> Load {
        let lanes = self.kinds.iter().flat_map(|kind| &kind.lanes);
        let first = lanes.flat_map(|lane| lane.iter().take(READY_LOOK));
        let records = first.filter_map(|id| self.records.get(id));
        let waiting = records.filter(|record| record.state == TaskState::Queued);
        Load {
            now,
            totals: self.totals,
            ready_since: waiting.map(|record| record.updated_at).min(),
        }
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
            TaskState::Blocked => drop(self.blocked.remove(&(record.updated_at, id))),
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

    /// Forgets tasks that are done. Each list is gone over once at most, and not at all for tasks at its head.
    pub(crate) fn purge(&mut self, now: Timestamp, ids: &[TaskId]) -> usize {
        let mut purged: HashSet<TaskId> = HashSet::new();
        for id in ids {
            let Some(record) = self.records.get(id) else {
                continue;
            };
            if !record.state.is_terminal() {
                continue;
            }
            if record.state == TaskState::Dead {
                self.dead.remove(&(record.updated_at, *id));
            }
            self.forget(*id, now);
            purged.insert(*id);
        }
        let mut left = purged.len();
        for list in [&mut self.succeeded, &mut self.cancelled] {
            while left > 0 && list.front().is_some_and(|id| purged.contains(id)) {
                list.pop_front();
                left -= 1;
            }
        }
        // What is left was dead, or is further back.
        let is_listed = |list: &VecDeque<TaskId>| list.iter().any(|id| purged.contains(id));
        if left > 0 {
            for list in [&mut self.succeeded, &mut self.cancelled] {
                if is_listed(list) {
                    list.retain(|id| !purged.contains(id));
                }
            }
        }
        purged.len()
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
    ) -> Result<bool, Refusal> {
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
