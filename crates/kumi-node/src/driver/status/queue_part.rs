//! The queues' part of the status: what waits and runs, who asks for it, and the schedules.

use super::rates::Rates;
use crate::core::status::{CronStatus, QueueStatus};
use crate::driver::queues::StoreQueues;
use crate::http::QueueFacts;
use kumi_jobs::{Counts, Load, Queue, QueueError, Schedule, TaskState, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long the list of queues may take, and then each queue's replies to all questions. See `INFO_TIMEOUT`.
const QUEUE_TIMEOUT: Duration = Duration::from_millis(750);

/// Queues that are asked. Others are left out, and the document says how many.
pub(crate) const MAX_QUEUES: usize = 128;

/// Types without a worker that are named.
const MAX_TYPES: usize = 16;

/// The time that "lately" covers, and how often the number of dead tasks is remembered.
const LATELY: Duration = Duration::from_secs(600);
const REMEMBERED_EVERY: Duration = Duration::from_secs(10);

/// What one queue replied.
pub(crate) struct QueueReply {
    pub(crate) name: String,
    counts: Counts,
    load: Load,
    schedules: (Timestamp, Vec<Schedule>),
    workers: u64,
}

/// Asks all queues at once. Those that do not reply in time are missing.
pub(super) async fn ask(queues: &StoreQueues) -> (Vec<QueueReply>, u64) {
    let names = match timeout(QUEUE_TIMEOUT, queues.all()).await {
        Ok(Ok(names)) => names,
        _ => return (Vec::new(), 0),
    };
    let left_out = names.len().saturating_sub(MAX_QUEUES) as u64;
    let asked = names.into_iter().take(MAX_QUEUES).map(|name| async move {
        let reply = timeout(QUEUE_TIMEOUT, ask_one(queues, &name)).await;
        reply.ok()?.ok()
    });
    let replies = futures_util::future::join_all(asked).await;
    (replies.into_iter().flatten().collect(), left_out)
}

async fn ask_one(queues: &StoreQueues, name: &str) -> Result<QueueReply, QueueError> {
    let queue = queues.queue(name).await?;
    Ok(QueueReply {
        name: name.to_owned(),
        counts: queue.counts_by_state().await?,
        load: queue.load().await?,
        schedules: queue.schedules().await?,
        workers: queue.owners_after("").await?.len() as u64,
    })
}

/// How many tasks of each queue were dead at past times.
#[derive(Default)]
pub(super) struct Deaths(BTreeMap<String, VecDeque<(Instant, u64)>>);

impl Deaths {
    /// How many became dead lately, and the time that covers.
    fn lately(&mut self, queue: &str, total: u64, now: Instant) -> (u64, Duration) {
        if !self.0.contains_key(queue) && self.0.len() >= MAX_QUEUES {
            return (0, Duration::ZERO);
        }
        let readings = self.0.entry(queue.to_owned()).or_default();
        let is_old = |at: Instant| now.saturating_duration_since(at) > LATELY;
        // The oldest reading within the time stays, and the one before it goes.
        while readings.front().is_some_and(|(at, _)| is_old(*at)) {
            readings.pop_front();
        }
        let newest = readings.back().map(|(at, _)| *at);
        if newest.is_none_or(|newest| now.saturating_duration_since(newest) >= REMEMBERED_EVERY) {
            readings.push_back((now, total));
        }
        let (since, before) = readings.front().copied().unwrap_or((now, total));
        (
            total.saturating_sub(before),
            now.saturating_duration_since(since),
        )
    }
}

impl QueueReply {
    /// The queue in the status document.
    pub(super) fn status(&self, rates: &mut Rates, deaths: &mut Deaths) -> QueueStatus {
        let now = Instant::now();
        let of = |state| self.counts.of(state);
        let unserved = self.counts.unserved();
        let queued = |task_type: &Arc<str>| {
            let states = self.counts.by_type.get(task_type);
            states
                .and_then(|states| states.get(&TaskState::Queued))
                .copied()
        };
        let totals = &self.load.totals;
        let done = totals.succeeded + totals.dead + totals.cancelled;
        let (dead_lately, window) = deaths.lately(&self.name, totals.dead, now);
        QueueStatus {
            name: self.name.clone(),
            waiting: of(TaskState::Queued) + of(TaskState::Blocked),
            later: of(TaskState::Scheduled) + of(TaskState::RetryScheduled),
            oldest_ms: self.oldest_ms(),
            running: of(TaskState::Running),
            dead: of(TaskState::Dead),
            dead_lately,
            dead_window_ms: window.as_millis() as u64,
            done_per_second: rates.rate(&format!("queue {}", self.name), done, now),
            unserved: unserved.iter().filter_map(queued).sum(),
            unserved_types: unserved
                .iter()
                .take(MAX_TYPES)
                .map(ToString::to_string)
                .collect(),
            paused: self.counts.paused,
        }
    }

    /// Its schedules in the status document.
    pub(super) fn cron(&self) -> impl Iterator<Item = CronStatus> + '_ {
        let (now, schedules) = &self.schedules;
        schedules.iter().map(|schedule| {
            let last = schedule.last_slot.as_ms();
            CronStatus {
                queue: self.name.clone(),
                name: schedule.name.clone(),
                expression: schedule.expression.clone(),
                zone: schedule.zone.clone(),
                last_unix_ms: (last > 0).then_some(last),
                next_unix_ms: schedule.next_slot(*now).map(Timestamp::as_ms),
            }
        })
    }

    /// The queue in the metrics.
    pub(crate) fn facts(&self) -> QueueFacts {
        let mut tasks: BTreeMap<String, u64> = BTreeMap::new();
        for states in self.counts.by_type.values() {
            for (state, count) in states {
                *tasks.entry(state.name().to_owned()).or_default() += count;
            }
        }
        let totals = &self.load.totals;
        let events = [
            ("enqueued", totals.enqueued),
            ("succeeded", totals.succeeded),
            ("failed", totals.failed),
            ("lost", totals.lost),
            ("dead", totals.dead),
            ("cancelled", totals.cancelled),
        ];
        QueueFacts {
            queue: self.name.clone(),
            tasks,
            oldest_waiting_seconds: self.oldest_ms().map(|ms| ms as f64 / 1_000.0),
            workers: self.workers,
            is_paused: self.counts.paused,
            events: events.map(|(name, count)| (name.to_owned(), count)).into(),
        }
    }

    fn oldest_ms(&self) -> Option<u64> {
        let since = self.load.ready_since?;
        Some(self.load.now.as_ms().saturating_sub(since.as_ms()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_deaths_of_the_last_minutes_are_lately() {
        let mut deaths = Deaths::default();
        let began = Instant::now();
        let at = |seconds: u64| began + Duration::from_secs(seconds);
        assert_eq!(deaths.lately("q", 7, at(0)).0, 0);
        assert_eq!(deaths.lately("q", 9, at(20)), (2, Duration::from_secs(20)));
        assert_eq!(
            deaths.lately("q", 9, at(610)),
            (0, Duration::from_secs(590))
        );
    }
}
