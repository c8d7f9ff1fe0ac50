//! The port between workers and a queue: what a queue can do, in batches, and the words for it.
//!
//! A queue owns all state and the clock. A worker asks for claims, runs handlers, and reports outcomes with the claim's
//! token; a report with another token changes nothing. [`InMemoryQueue`](crate::InMemoryQueue) and
//! `RedisQueue` implement it, and the `conformance` feature has the tests that any other
//! implementation should pass.

pub(crate) use crate::core::{
    Ask, Cancel, Claim, Counts, Enqueued, Finish, Finished, Gone, Lease, Load, Outcome, Released,
    Requeued, Room, Schedule, Signal, TaskEvent, Turn,
};
use crate::core::{
    Cursor, Filter, Forgotten, Holding, ID_PAGE_LIMIT, IdPage, NewTask, OWNERS_PAGE, Owner, Page,
    Paging, Progress, Retention, Settings, TaskId, TaskRecord, Timestamp,
};
use crate::error::QueueError;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The future of a queue's call. Dropping it may leave the call done or not done, never half done.
pub type Reply<'a, T> = BoxFuture<'a, Result<T, QueueError>>;

/// What a subscription delivers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A task moved.
    Moved(TaskEvent),
    /// Moves may have been missed here, because the reader was too slow or the connection broke.
    Gap,
}

/// A subscription to the moves of all tasks. Dropping it ends it.
#[derive(Debug)]
pub struct Events(pub(crate) tokio::sync::mpsc::Receiver<Notice>);

impl Events {
    /// A subscription that delivers what is sent into the channel; for other implementations of [`Queue`].
    #[must_use]
    pub fn from_channel(receiver: tokio::sync::mpsc::Receiver<Notice>) -> Self {
        Self(receiver)
    }

    /// The next move; None when the queue is gone. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<Notice> {
        self.0.recv().await
    }
}

/// The same as [`Events::recv`], for combinators.
impl futures_util::Stream for Events {
    type Item = Notice;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Notice>> {
        self.0.poll_recv(cx)
    }
}

/// A store of tasks. All methods may be called from many tasks at once.
pub trait Queue: Send + Sync + 'static {
    /// Its name in the log; empty unless it has one.
    fn name(&self) -> &str {
        ""
    }

    /// The limits in force.
    fn settings(&self) -> &Settings;

    /// Adds tasks, at most [`ENQUEUE_LIMIT`](crate::ENQUEUE_LIMIT) of them. Repeating it with the same ids changes
    /// nothing.
    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Enqueued>>;

    /// Applies reports, gives back what ended leases held, moves what is due into line, and claims tasks: one step of a
    /// worker. At most [`TURN_LIMIT`](crate::TURN_LIMIT) reports and claims.
    fn turn(&self, reports: Vec<Finish>, ask: Ask) -> Reply<'_, Turn>;

    /// Claims tasks.
    fn dequeue_ready(&self, ask: Ask) -> Reply<'_, Vec<Claim>> {
        Box::pin(async move { Ok(self.turn(Vec::new(), ask).await?.claims) })
    }

    /// Applies reports.
    fn finish(&self, reports: Vec<Finish>) -> Reply<'_, Vec<Finished>> {
        Box::pin(async move {
            let Some(first) = reports.first() else {
                return Ok(Vec::new());
            };
            let ask = Ask {
                owner: first.owner.clone(),
                nonce: 0,
                lease: crate::core::LEASE,
                types: Vec::new(),
                max: 0,
            };
            Ok(self.turn(reports, ask).await?.finished)
        })
    }

    /// Reports that a run succeeded.
    fn mark_succeeded<'a>(
        &'a self,
        claim: &'a Claim,
        result: Option<Bytes>,
    ) -> Reply<'a, Finished> {
        self.mark(claim, Outcome::Succeeded(result))
    }

    /// Reports that a run failed; it is retried after the delay if attempts are left.
    fn mark_failed<'a>(
        &'a self,
        claim: &'a Claim,
        error: String,
        retry_after: Option<Duration>,
    ) -> Reply<'a, Finished> {
        self.mark(claim, Outcome::Failed { error, retry_after })
    }

    /// Reports how a run ended.
    fn mark<'a>(&'a self, claim: &'a Claim, outcome: Outcome) -> Reply<'a, Finished> {
        Box::pin(async move {
            let finished = self.finish(vec![Finish::new(claim, outcome)]).await?;
            finished
                .first()
                .copied()
                .ok_or(QueueError::Protocol("a report without a reply".into()))
        })
    }

    /// Extends the lease on all that an owner holds.
    fn heartbeat<'a>(&'a self, owner: &'a Owner, lease: Duration) -> Reply<'a, Lease>;

    /// What an owner holds. Changes nothing.
    fn running<'a>(&'a self, owner: &'a Owner) -> Reply<'a, Vec<Claim>>;

    /// As [`running`](Self::running), for a worker that sent an ask or waited for signals, and got no reply. A queue may
    /// end tasks among them that no worker can run, and extend the owner's lease by that. Default: it only reads.
    fn recover<'a>(&'a self, owner: &'a Owner, _lease: Duration) -> Reply<'a, Vec<Claim>> {
        self.running(owner)
    }

    /// Gives back at once what a crashed worker holds, unless it has renewed its lease within `silent_for`, or could not
    /// renew it until less than a lease ago, because the queue was away or its clock jumped. Zero asks for neither. The owner
    /// gets [`QueueError::OwnerReleased`] from then on, unless it held nothing: then nothing changes.
    ///
    /// A silence of all programs for 3 s counts as such an outage. Where no worker may hold tasks but the ones that are gone,
    /// the caller of a release calls [`heartbeat`](Self::heartbeat) every second, under an owner of its own.
    fn release_owner<'a>(&'a self, gone: &'a Gone, silent_for: Duration) -> Reply<'a, Released>;

    /// Gives back what ended leases held, moves what is due into line and drops what was kept long enough. Turns do it
    /// too; this is for a queue without workers. Answers how many tasks moved.
    fn reap(&self) -> Reply<'_, usize>;

    /// Stores how far a run is. False if the token is not current.
    fn progress<'a>(&'a self, claim: &'a Claim, progress: Progress) -> Reply<'a, bool>;

    /// Stores a step's value, so that later runs of the task find it. False if the token is not current.
    fn save_step<'a>(&'a self, claim: &'a Claim, name: &'a str, value: Bytes) -> Reply<'a, bool>;

    /// The stored steps of a task.
    fn steps(&self, id: TaskId) -> Reply<'_, BTreeMap<String, Bytes>>;

    /// Cancels a task, or asks its worker to.
    fn cancel(&self, id: TaskId) -> Reply<'_, Cancel>;

    /// Cancels many tasks, as `cancel` does each.
    fn cancel_all(&self, ids: Vec<TaskId>) -> Reply<'_, Vec<Cancel>> {
        Box::pin(async move {
            let mut replies = Vec::with_capacity(ids.len());
            for id in ids {
                replies.push(self.cancel(id).await?);
            }
            Ok(replies)
        })
    }

    /// What is known of a task; None if there is none or it was purged.
    fn get_status(&self, id: TaskId) -> Reply<'_, Option<TaskRecord>>;

    /// How many tasks are in each state.
    fn counts_by_state(&self) -> Reply<'_, Counts>;

    /// A part of a listing. Ends early where it looked at much and found little; its cursor goes on from there.
    fn list<'a>(&'a self, filter: &'a Filter, paging: &'a Paging) -> Reply<'a, Page>;

    /// As `list`, without the records; up to [`ID_PAGE_LIMIT`] ids.
    fn list_ids<'a>(&'a self, filter: &'a Filter, paging: &'a Paging) -> Reply<'a, IdPage> {
        Box::pin(async move {
            let page = self.list(filter, paging).await?;
            Ok(IdPage {
                ids: page.tasks.iter().map(|task| task.id).collect(),
                looked: page.looked,
                cursor: page.cursor,
            })
        })
    }

    /// One step of a purge: forgets done tasks that the filter admits, the oldest first. States that are not done are left
    /// out.
    fn forget<'a>(&'a self, filter: &'a Filter, after: Option<&'a Cursor>) -> Reply<'a, Forgotten> {
        Box::pin(async move {
            let Some(filter) = filter.done() else {
                return Ok(Forgotten::default());
            };
            let paging = Paging::oldest(ID_PAGE_LIMIT).after(after.cloned());
            let page = self.list_ids(&filter, &paging).await?;
            Ok(Forgotten {
                tasks: self.purge(page.ids).await?,
                looked: page.looked,
                cursor: page.cursor,
            })
        })
    }

    /// Workers that run tasks, by name. An idle worker has no entry in the queue.
    fn owners(&self) -> Reply<'_, Vec<Holding>>;

    /// A page of [`owners`](Self::owners): the first [`OWNERS_PAGE`](crate::OWNERS_PAGE) of those whose text sorts after this one,
    /// which need not be an owner. An empty page is the end.
    fn owners_after<'a>(&'a self, after: &'a str) -> Reply<'a, Vec<Holding>> {
        Box::pin(async move {
            let mut owners = self.owners().await?;
            owners.retain(|holding| holding.owner.as_str() > after);
            owners.truncate(OWNERS_PAGE);
            Ok(owners)
        })
    }

    /// How busy the queue is: what it did so far, and since when its oldest ready task waits.
    fn load(&self) -> Reply<'_, Load>;

    /// Whether membership may release owners ([`Gone::Node`]); it may unless it was switched off.
    fn releases(&self) -> Reply<'_, bool>;

    /// Switches releases by membership on or off, for all programs and across restarts. Without them, the tasks of a node that
    /// died come back when its leases end.
    fn set_releases(&self, on: bool) -> Reply<'_, ()>;

    /// Brings dead tasks back, with all their attempts.
    fn requeue(&self, ids: Vec<TaskId>) -> Reply<'_, Vec<Requeued>>;

    /// Forgets tasks that are done. Others stay. Answers how many went.
    fn purge(&self, ids: Vec<TaskId>) -> Reply<'_, usize>;

    /// Stops (or resumes) claims, on all workers and across restarts.
    fn pause(&self, paused: bool) -> Reply<'_, ()>;

    /// Bounds how many tasks of a type run at once, on all workers together; None lifts the bound.
    fn limit<'a>(&'a self, task_type: &'a str, limit: Option<u32>) -> Reply<'a, ()>;

    /// What the queue keeps of done tasks.
    fn retention(&self) -> Reply<'_, Retention>;

    /// Changes what the queue keeps of done tasks, for all programs and across restarts. Later calls drop what is too much.
    fn keep(&self, retention: Retention) -> Reply<'_, ()>;

    /// Waits until one of the types may have something to claim, a signal for the owner arrives, or the time is up. Not
    /// to be dropped before it ends, except when the worker ends: a dropped wait may have taken a signal with it.
    fn wait<'a>(
        &'a self,
        owner: &'a Owner,
        types: Vec<Arc<str>>,
        at_most: Duration,
    ) -> Reply<'a, Vec<Signal>>;

    /// Ends the wait of an owner.
    fn poke<'a>(&'a self, owner: &'a Owner) -> Reply<'a, ()>;

    /// Waits until a task is done, and answers its record; None if it is unknown, or was purged meanwhile.
    fn done(&self, id: TaskId) -> Reply<'_, Option<TaskRecord>>;

    /// Subscribes to the moves of all tasks, from now on.
    fn subscribe(&self) -> Reply<'_, Events>;

    /// Stores a schedule. One with the same name and times keeps its last slot; otherwise slots count from now.
    fn put_schedule(&self, schedule: Schedule) -> Reply<'_, ()>;

    /// Stores schedules as a set, in one step: those that the set had before and that are not among these are removed. A
    /// schedule that belonged to another set, or to none, belongs to this one from then on. At most
    /// [`SCHEDULES_LIMIT`](crate::SCHEDULES_LIMIT) of them. Answers the names of those that were removed.
    fn declare_schedules<'a>(
        &'a self,
        set: &'a str,
        schedules: Vec<Schedule>,
    ) -> Reply<'a, Vec<String>>;

    /// Removes a schedule. False if there was none.
    fn remove_schedule<'a>(&'a self, name: &'a str) -> Reply<'a, bool>;

    /// All schedules by name, and the queue's clock.
    fn schedules(&self) -> Reply<'_, (Timestamp, Vec<Schedule>)>;

    /// Decides a slot of a schedule, if `last` is still its last slot: enqueues the task (if there is one) and moves the
    /// last slot. Of many schedulers that try, one gets Some.
    fn fire<'a>(
        &'a self,
        name: &'a str,
        last: Timestamp,
        slot: Timestamp,
        task: Option<NewTask>,
    ) -> Reply<'a, bool>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InMemoryQueue;
    use crate::core::{TaskEnvelope, TaskState};
    use futures_util::StreamExt;

    /// Through the stream only: `recv` is tested by the conformance suite.
    #[tokio::test]
    async fn events_are_a_stream_that_ends_with_the_queue() {
        let queue = InMemoryQueue::new();
        let events = queue.subscribe().await.unwrap();
        let task = NewTask::new(TaskEnvelope::json("a", "null"));
        let id = task.id;
        queue.enqueue(vec![task]).await.unwrap();
        queue.cancel(id).await.unwrap();
        drop(queue);
        let moves = events.map(|notice| match notice {
            Notice::Moved(event) => (event.id, event.from, event.to),
            Notice::Gap => panic!("a gap"),
        });
        let expected = [
            (id, None, TaskState::Queued),
            (id, Some(TaskState::Queued), TaskState::Cancelled),
        ];
        assert_eq!(moves.collect::<Vec<_>>().await, expected);
    }
}
