//! A queue on any Redis from 6.2 on, or a Redis Cluster.
//!
//! Every move is one script, so that it is atomic; the scripts do what `core/machine` does, on keys that all begin with
//! `kumi:jobs:{queue}:`. One queue is one slot, hence one core of one server. `link.rs` finds that server; `waits.rs` has
//! what blocks, on connections of its own.

mod browse;
mod codec;
mod connect;
mod link;
mod script;
mod waits;

pub use connect::{FORMAT, RedisOptions, queue_names};

use crate::check;
use crate::core::{
    Cursor, ENQUEUE_LIMIT, Filter, Forgotten, Holding, IdPage, NewTask, Owner, Page, Paging,
    Priority, Progress, Retention, Settings, TURN_LIMIT, TaskEnvelope, TaskId, TaskRecord,
    Timestamp,
};
use crate::error::QueueError;
use crate::queue::{
    Ask, Cancel, Claim, Counts, Enqueued, Events, Finish, Gone, Lease, Load, Queue, Released,
    Reply, Requeued, Schedule, Signal, Turn,
};
use ::redis::{Pipeline, Value};
use bytes::Bytes;
use codec::{Args, Unreadable, text};
use link::{Link, Repeat};
use script::Script;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of payloads in one enqueue script.
const ENQUEUE_BYTES: usize = 1 << 20;

/// Tasks in one purge script, which may leave some of them to the next one.
const PURGE_BATCH: usize = 50;

/// Claims in one reply about what a worker runs.
const CLAIMS_BATCH: usize = 20;

/// How long an enqueue waits for replicas before it fails.
const REPLICATION: Duration = Duration::from_secs(1);

/// How long a turn with reports waits for replicas before it goes on without them. A report that a failover loses makes
/// a task run again; the wait keeps later tasks of its serial key from starting before it is safe.
const TURN_REPLICATION: Duration = Duration::from_millis(200);

/// How many replicas have to confirm a write, and for how long they are waited for.
#[derive(Debug, Clone, Copy)]
struct Confirm {
    replicas: usize,
    within: Duration,
}

/// A queue on a Redis server or cluster. Clones share the connection.
#[derive(Clone)]
pub struct RedisQueue {
    shared: Arc<Shared>,
}

struct Shared {
    link: Link,
    prefix: String,
    settings: Settings,
    replicas: usize,
    clock: Option<Arc<AtomicU64>>,
    waits: waits::Waits,
}

impl Shared {
    fn new(
        link: Link,
        prefix: String,
        settings: Settings,
        replicas: usize,
        clock: Option<Arc<AtomicU64>>,
    ) -> Self {
        Self {
            link,
            prefix,
            settings,
            replicas,
            clock,
            waits: waits::Waits::default(),
        }
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Runs a script.
    async fn run(&self, script: &Script, args: Args, repeat: Repeat) -> Result<Value, QueueError> {
        let nothing = Confirm {
            replicas: 0,
            within: Duration::ZERO,
        };
        Ok(self.run_and_wait(script, args, repeat, nothing).await?.0)
    }

    /// Runs a script, and waits until replicas have what it wrote. Answers how many do.
    async fn run_and_wait(
        &self,
        script: &Script,
        mut args: Args,
        repeat: Repeat,
        confirm: Confirm,
    ) -> Result<(Value, usize), QueueError> {
        let now = match &self.clock {
            Some(clock) => text(clock.load(Ordering::SeqCst)),
            None => Vec::new(),
        };
        args.insert(0, now);
        let build = |in_full| {
            let mut pipeline = Pipeline::new();
            pipeline.add_command(script.command(in_full, &self.prefix, &args));
            if confirm.replicas > 0 {
                pipeline
                    .cmd("WAIT")
                    .arg(confirm.replicas)
                    .arg(confirm.within.as_millis() as u64);
            }
            pipeline
        };
        let done = self.send(&build(false), repeat, confirm).await;
        let done = match done {
            Err(QueueError::Server(error)) if error.code() == Some("NOSCRIPT") => {
                self.send(&build(true), repeat, confirm).await
            }
            done => done,
        };
        let mut values = done.map_err(connect::format_error)?.into_iter();
        let value = values.next().unwrap_or(Value::Nil);
        let confirmed = match values.next() {
            Some(confirmed) => usize::try_from(codec::integer(&confirmed)?).unwrap_or(0),
            None => 0,
        };
        Ok((value, confirmed))
    }

    async fn send(
        &self,
        commands: &Pipeline,
        repeat: Repeat,
        confirm: Confirm,
    ) -> Result<Vec<Value>, QueueError> {
        match confirm.replicas {
            0 => self.link.pipeline(commands, repeat).await,
            _ => self.confirm(commands, repeat).await,
        }
    }

    async fn admin(
        &self,
        operation: &str,
        args: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<Value, QueueError> {
        let args = std::iter::once(text(operation)).chain(args).collect();
        self.run(&script::ADMIN, args, Repeat::Yes).await
    }
}

/// A refusal that a script answered for an owner.
fn for_owner<T>(done: Result<T, QueueError>, owner: &Owner) -> Result<T, QueueError> {
    match done {
        Err(QueueError::Server(error)) if error.code() == Some("RELEASED") => {
            Err(QueueError::OwnerReleased(owner.clone()))
        }
        done => done,
    }
}

impl RedisQueue {
    /// Connects to a queue, such as `redis://localhost/?queue=mail`.
    ///
    /// # Errors
    /// As of [`RedisOptions::from_url`] and [`RedisOptions::connect`].
    pub async fn connect(url: &str) -> Result<Self, QueueError> {
        RedisOptions::from_url(url)?.connect().await
    }

    async fn enqueue_batch(
        &self,
        tasks: &[NewTask],
        out: &mut Vec<Enqueued>,
    ) -> Result<(), QueueError> {
        let mut args = vec![text(tasks.len())];
        tasks
            .iter()
            .for_each(|task| codec::task_args(task, &mut args));
        let confirm = Confirm {
            replicas: self.shared.replicas,
            within: REPLICATION,
        };
        let shared = &self.shared;
        let _permit = match confirm.replicas {
            0 => None,
            _ => shared.waits.producers.acquire().await.ok(),
        };
        let done = shared.run_and_wait(&script::ENQUEUE, args, Repeat::Yes, confirm);
        let (reply, confirmed) = done.await?;
        if confirmed < confirm.replicas {
            return Err(QueueError::NotReplicated {
                confirmed,
                wanted: confirm.replicas,
            });
        }
        for (value, task) in codec::array(reply)?.into_iter().zip(tasks) {
            out.push(codec::enqueued(value, task.id)?);
        }
        Ok(())
    }

    /// What an owner holds, and claims that cannot be read.
    async fn held(&self, owner: &Owner) -> Result<(Vec<Claim>, Vec<Unreadable>), QueueError> {
        let (mut ids, mut cursor) = (BTreeSet::new(), "0".to_owned());
        loop {
            let args = [text(owner), text(&cursor)];
            let page = for_owner(self.shared.admin("running", args).await, owner)?;
            let (next, page) = codec::page(page)?;
            for id in page {
                ids.insert(codec::bytes(id)?);
            }
            match next {
                Some(next) => cursor = next,
                None => break,
            }
        }
        let ids: Vec<Bytes> = ids.into_iter().collect();
        let (mut claims, mut unreadable) = (Vec::with_capacity(ids.len()), Vec::new());
        for batch in ids.chunks(CLAIMS_BATCH) {
            let args = std::iter::once(text(owner)).chain(batch.iter().map(|id| id.to_vec()));
            let reply = self.shared.admin("claims", args).await?;
            let (known, others) = codec::claims(reply, owner, &[])?;
            claims.extend(known);
            unreadable.extend(others);
        }
        Ok((claims, unreadable))
    }

    /// Ends tasks whose claims cannot be read, which no worker could run. Answers how many tasks the owner holds then; None
    /// if nothing was done. After an error, the worker asks what it holds and comes here again.
    async fn abort(
        &self,
        unreadable: &[Unreadable],
        owner: &Owner,
        lease: Duration,
    ) -> Option<usize> {
        if unreadable.is_empty() {
            return None;
        }
        for claim in unreadable {
            let task_id = String::from_utf8_lossy(&claim.id);
            tracing::warn!(
                ?task_id,
                err = claim.error.as_str(),
                "a task that cannot be run is ended"
            );
        }
        let ask = Ask {
            owner: owner.clone(),
            nonce: 0,
            lease,
            types: Vec::new(),
            max: 0,
        };
        let args = codec::abort_args(unreadable, &ask, &self.shared.settings);
        let done = self.shared.run(&script::TURN, args, Repeat::Yes).await;
        match done.and_then(|done| codec::turn(done, &ask)) {
            Ok((turn, _)) => Some(turn.held),
            Err(error) => {
                tracing::warn!(%owner, error = &error as &dyn std::error::Error, "tasks that cannot be run were not ended");
                None
            }
        }
    }
}

/// Splits tasks so that each part fits into one script.
fn batches(tasks: &[NewTask]) -> Vec<&[NewTask]> {
    let mut batches = Vec::new();
    let (mut start, mut size) = (0, 0);
    for (index, task) in tasks.iter().enumerate() {
        let bytes = task.envelope.payload.len();
        if index > start && (index - start == ENQUEUE_LIMIT || size + bytes > ENQUEUE_BYTES) {
            batches.push(&tasks[start..index]);
            (start, size) = (index, 0);
        }
        size += bytes;
    }
    if start < tasks.len() {
        batches.push(&tasks[start..]);
    }
    batches
}

/// A schedule as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredSchedule {
    expression: String,
    zone: String,
    task_type: String,
    payload: String,
    content_type: String,
    max_attempts: u32,
    /// Versions before it was stored used the default.
    #[serde(default)]
    priority: Priority,
}

/// A schedule's name, times and definition.
fn schedule_args(schedule: Schedule) -> Result<[Vec<u8>; 3], QueueError> {
    let payload = String::from_utf8(schedule.envelope.payload.to_vec())
        .map_err(|_| QueueError::Invalid("the payload of a schedule is UTF-8".into()))?;
    let times = format!("{} {}", schedule.zone, schedule.expression);
    let stored = StoredSchedule {
        expression: schedule.expression,
        zone: schedule.zone,
        task_type: schedule.envelope.task_type.to_string(),
        payload,
        content_type: schedule.envelope.content_type.into_owned(),
        max_attempts: schedule.max_attempts,
        priority: schedule.priority,
    };
    let stored = serde_json::to_vec(&stored)
        .map_err(|error| QueueError::Invalid(format!("the schedule cannot be stored: {error}")))?;
    Ok([schedule.name.into(), times.into(), stored])
}

/// Reads a stored schedule.
fn schedule(name: &[u8], stored: &[u8], last_slot: Option<&Value>) -> Result<Schedule, QueueError> {
    let unreadable = |error: &dyn std::fmt::Display| QueueError::Protocol(error.to_string());
    let stored: StoredSchedule =
        serde_json::from_slice(stored).map_err(|error| unreadable(&error))?;
    Ok(Schedule {
        name: String::from_utf8(name.to_vec()).map_err(|error| unreadable(&error))?,
        expression: stored.expression,
        zone: stored.zone,
        envelope: TaskEnvelope {
            task_type: stored.task_type.into(),
            payload: stored.payload.into(),
            content_type: stored.content_type.into(),
        },
        max_attempts: stored.max_attempts,
        priority: stored.priority,
        last_slot: last_slot
            .map(codec::timestamp)
            .transpose()?
            .unwrap_or_default(),
    })
}

impl Queue for RedisQueue {
    fn name(&self) -> &str {
        // The prefix of its keys is `kumi:jobs:{name}:`.
        let name = self.shared.prefix.split(['{', '}']).nth(1);
        name.unwrap_or_default()
    }

    fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    fn enqueue(&self, tasks: Vec<NewTask>) -> Reply<'_, Vec<Enqueued>> {
        Box::pin(async move {
            check::tasks(&tasks, &self.shared.settings)?;
            let mut made = Vec::with_capacity(tasks.len());
            for batch in batches(&tasks) {
                self.enqueue_batch(batch, &mut made).await?;
            }
            Ok(made)
        })
    }

    fn turn(&self, reports: Vec<Finish>, ask: Ask) -> Reply<'_, Turn> {
        Box::pin(async move {
            check::turn(&reports, &ask)?;
            let args = codec::turn_args(&reports, &ask, &self.shared.settings);
            let confirm = Confirm {
                replicas: if reports.is_empty() {
                    0
                } else {
                    self.shared.replicas
                },
                within: TURN_REPLICATION,
            };
            let shared = &self.shared;
            let done = shared
                .run_and_wait(&script::TURN, args, Repeat::No, confirm)
                .await;
            let (done, confirmed) = for_owner(done, &ask.owner)?;
            if confirmed < confirm.replicas {
                tracing::warn!(confirmed, wanted = confirm.replicas, "replicas are behind");
            }
            let (mut turn, unreadable) = codec::turn(done, &ask)?;
            if let Some(held) = self.abort(&unreadable, &ask.owner, ask.lease).await {
                turn.held = held;
            }
            Ok(turn)
        })
    }

    fn heartbeat<'a>(&'a self, owner: &'a Owner, lease: Duration) -> Reply<'a, Lease> {
        Box::pin(async move {
            check::lease(lease)?;
            let args = [text(owner), text(lease.as_millis())];
            let done = for_owner(self.shared.admin("heartbeat", args).await, owner)?;
            Ok(match codec::integer(&done)? {
                0 => Lease::Lost,
                held => Lease::Renewed(usize::try_from(held).unwrap_or(0)),
            })
        })
    }

    fn running<'a>(&'a self, owner: &'a Owner) -> Reply<'a, Vec<Claim>> {
        Box::pin(async move {
            let (claims, unreadable) = self.held(owner).await?;
            for claim in &unreadable {
                let task_id = String::from_utf8_lossy(&claim.id);
                tracing::warn!(?task_id, err = claim.error.as_str(), "a claim is left out");
            }
            Ok(claims)
        })
    }

    fn recover<'a>(&'a self, owner: &'a Owner, lease: Duration) -> Reply<'a, Vec<Claim>> {
        Box::pin(async move {
            let (claims, unreadable) = self.held(owner).await?;
            for batch in unreadable.chunks(CLAIMS_BATCH) {
                self.abort(batch, owner, lease).await;
            }
            Ok(claims)
        })
    }

    fn release_owner<'a>(&'a self, gone: &'a Gone, silent_for: Duration) -> Reply<'a, Released> {
        Box::pin(async move {
            let (mode, owner) = match gone {
                Gone::Life(owner) => ("life", owner.to_string()),
                Gone::Before(owner) => ("before", owner.to_string()),
                Gone::Node(node) => ("node", node.prefix()),
            };
            let (mut count, mut is_first) = (0, true);
            loop {
                let args = vec![
                    text(mode),
                    text(&owner),
                    text(silent_for.as_millis()),
                    text(u8::from(is_first)),
                ];
                let reply =
                    codec::array(self.shared.run(&script::RELEASE, args, Repeat::Yes).await?)?;
                let [released, more, lost]: [Value; 3] = reply
                    .try_into()
                    .map_err(|_| QueueError::Protocol("a release without three parts".into()))?;
                codec::tell_lost(lost)?;
                match codec::integer(&released)? {
                    -1 => return Ok(Released::Alive),
                    -2 => return Ok(Released::Off),
                    released => count += usize::try_from(released).unwrap_or(0),
                }
                if codec::integer(&more)? == 0 {
                    return Ok(Released::Tasks(count));
                }
                is_first = false;
            }
        })
    }

    fn reap(&self) -> Reply<'_, usize> {
        Box::pin(async move {
            let reply = self
                .shared
                .run(&script::REAP, Args::new(), Repeat::Yes)
                .await?;
            let [moved, lost]: [Value; 2] = codec::array(reply)?
                .try_into()
                .map_err(|_| QueueError::Protocol("a reap without two parts".into()))?;
            codec::tell_lost(lost)?;
            Ok(usize::try_from(codec::integer(&moved)?).unwrap_or(0))
        })
    }

    fn progress<'a>(&'a self, claim: &'a Claim, progress: Progress) -> Reply<'a, bool> {
        Box::pin(async move {
            let args = [
                codec::id_text(claim.id),
                text(claim.token),
                codec::progress_text(&progress),
            ];
            Ok(codec::integer(&self.shared.admin("progress", args).await?)? == 1)
        })
    }

    fn save_step<'a>(&'a self, claim: &'a Claim, name: &'a str, value: Bytes) -> Reply<'a, bool> {
        Box::pin(async move {
            let settings = &self.shared.settings;
            check::step(name, &value, settings)?;
            let args = [
                codec::id_text(claim.id),
                text(claim.token),
                name.into(),
                value.to_vec(),
                text(settings.step_limit),
                text(settings.steps_limit_bytes),
            ];
            match self.shared.admin("step", args).await? {
                Value::Int(-1) => Err(QueueError::TooMany {
                    what: "steps of one task",
                    limit: settings.step_limit,
                }),
                Value::Array(size) => Err(QueueError::TooLarge {
                    what: "the steps of one task",
                    size: size.first().map_or(Ok(0), codec::integer)?.unsigned_abs() as usize,
                    limit: settings.steps_limit_bytes,
                }),
                saved => Ok(codec::integer(&saved)? == 1),
            }
        })
    }

    fn steps(&self, id: TaskId) -> Reply<'_, BTreeMap<String, Bytes>> {
        Box::pin(async move {
            let mut command = ::redis::cmd("HGETALL");
            let name = id.short();
            let key = format!("steps:{}", String::from_utf8_lossy(&name));
            command.arg(self.shared.key(&key));
            let steps = codec::pairs(self.shared.link.call(&command, Repeat::Yes).await?)?;
            steps
                .into_iter()
                .map(|(name, value)| Ok((codec::string(name)?, codec::bytes(value)?)))
                .collect()
        })
    }

    fn cancel(&self, id: TaskId) -> Reply<'_, Cancel> {
        Box::pin(async move {
            let args = vec![codec::id_text(id)];
            codec::cancel(self.shared.run(&script::CANCEL, args, Repeat::Yes).await?)
        })
    }

    fn cancel_all(&self, ids: Vec<TaskId>) -> Reply<'_, Vec<Cancel>> {
        Box::pin(async move { self.cancel_many(&ids).await })
    }

    fn get_status(&self, id: TaskId) -> Reply<'_, Option<TaskRecord>> {
        Box::pin(
            async move { codec::record(self.shared.admin("status", [codec::id_text(id)]).await?) },
        )
    }

    fn counts_by_state(&self) -> Reply<'_, Counts> {
        Box::pin(async move { codec::counts(self.shared.admin("counts", []).await?) })
    }

    fn list<'a>(&'a self, filter: &'a Filter, paging: &'a Paging) -> Reply<'a, Page> {
        Box::pin(self.list_page(filter, paging))
    }

    fn list_ids<'a>(&'a self, filter: &'a Filter, paging: &'a Paging) -> Reply<'a, IdPage> {
        Box::pin(self.list_id_page(filter, paging))
    }

    fn forget<'a>(&'a self, filter: &'a Filter, after: Option<&'a Cursor>) -> Reply<'a, Forgotten> {
        Box::pin(self.forget_some(filter, after))
    }

    fn owners(&self) -> Reply<'_, Vec<Holding>> {
        Box::pin(self.holdings())
    }

    fn owners_after<'a>(&'a self, after: &'a str) -> Reply<'a, Vec<Holding>> {
        Box::pin(async move {
            let (mut owners, mut after) = (Vec::new(), after.to_owned());
            // A page may hold nothing but owners that cannot be read.
            while owners.is_empty() {
                let page = self.holdings_after(&after).await?;
                match page.last() {
                    Some((name, _)) => after.clone_from(name),
                    None => break,
                }
                owners.extend(page.into_iter().filter_map(|(_, holding)| holding));
            }
            Ok(owners)
        })
    }

    fn load(&self) -> Reply<'_, Load> {
        Box::pin(async move { codec::load(self.shared.admin("load", []).await?) })
    }

    fn releases(&self) -> Reply<'_, bool> {
        Box::pin(async move { Ok(codec::integer(&self.shared.admin("releases", []).await?)? == 1) })
    }

    fn set_releases(&self, on: bool) -> Reply<'_, ()> {
        Box::pin(async move {
            let args = [text(u8::from(on))];
            self.shared.admin("set_releases", args).await?;
            Ok(())
        })
    }

    fn requeue(&self, ids: Vec<TaskId>) -> Reply<'_, Vec<Requeued>> {
        Box::pin(async move {
            let mut replies = Vec::with_capacity(ids.len());
            for batch in ids.chunks(TURN_LIMIT) {
                let reply = self
                    .shared
                    .admin("requeue", batch.iter().copied().map(codec::id_text))
                    .await?;
                for value in codec::array(reply)? {
                    replies.push(codec::requeued(value)?);
                }
            }
            Ok(replies)
        })
    }

    fn purge(&self, ids: Vec<TaskId>) -> Reply<'_, usize> {
        Box::pin(async move {
            let (mut count, mut left) = (0, &ids[..]);
            while !left.is_empty() {
                let batch = left.iter().take(PURGE_BATCH).copied();
                let reply = self
                    .shared
                    .admin("purge", batch.map(codec::id_text))
                    .await?;
                let reply = codec::array(reply)?;
                let [purged, looked] = &reply[..] else {
                    return Err(QueueError::Protocol("a purge without two parts".into()));
                };
                count += usize::try_from(codec::integer(purged)?).unwrap_or(0);
                // At least one, so that the loop ends.
                let looked = usize::try_from(codec::integer(looked)?).unwrap_or(0).max(1);
                left = left.get(looked..).unwrap_or_default();
            }
            Ok(count)
        })
    }

    fn pause(&self, paused: bool) -> Reply<'_, ()> {
        Box::pin(async move {
            self.shared.admin("pause", [text(u8::from(paused))]).await?;
            Ok(())
        })
    }

    fn limit<'a>(&'a self, task_type: &'a str, limit: Option<u32>) -> Reply<'a, ()> {
        Box::pin(async move {
            check::task_type(task_type)?;
            let limit = limit.map(text).unwrap_or_default();
            self.shared
                .admin("limit", [task_type.into(), limit])
                .await?;
            Ok(())
        })
    }

    fn retention(&self) -> Reply<'_, Retention> {
        Box::pin(async move { codec::retention(self.shared.admin("retention", []).await?) })
    }

    fn keep(&self, retention: Retention) -> Reply<'_, ()> {
        Box::pin(async move {
            check::retention(&retention)?;
            let args = codec::retention_args(&retention);
            self.shared.admin("keep", args).await?;
            Ok(())
        })
    }

    fn wait<'a>(
        &'a self,
        owner: &'a Owner,
        types: Vec<Arc<str>>,
        at_most: Duration,
    ) -> Reply<'a, Vec<Signal>> {
        Box::pin(self.shared.wait(owner, types, at_most))
    }

    fn poke<'a>(&'a self, owner: &'a Owner) -> Reply<'a, ()> {
        Box::pin(self.shared.poke(owner))
    }

    fn done(&self, id: TaskId) -> Reply<'_, Option<TaskRecord>> {
        Box::pin(async move {
            waits::done(&self.shared, id).await?;
            self.get_status(id).await
        })
    }

    fn subscribe(&self) -> Reply<'_, Events> {
        Box::pin(waits::subscribe(&self.shared))
    }

    fn put_schedule(&self, schedule: Schedule) -> Reply<'_, ()> {
        Box::pin(async move {
            let args = schedule_args(schedule)?;
            self.shared.admin("schedule", args).await?;
            Ok(())
        })
    }

    fn declare_schedules<'a>(
        &'a self,
        set: &'a str,
        schedules: Vec<Schedule>,
    ) -> Reply<'a, Vec<String>> {
        Box::pin(async move {
            check::schedules(set, &schedules)?;
            let mut args: Args = vec![set.into()];
            for schedule in schedules {
                args.extend(schedule_args(schedule)?);
            }
            let removed = codec::array(self.shared.admin("declare", args).await?)?;
            removed.into_iter().map(codec::string).collect()
        })
    }

    fn remove_schedule<'a>(&'a self, name: &'a str) -> Reply<'a, bool> {
        Box::pin(async move {
            Ok(codec::integer(&self.shared.admin("unschedule", [name.into()]).await?)? == 1)
        })
    }

    fn schedules(&self) -> Reply<'_, (Timestamp, Vec<Schedule>)> {
        Box::pin(async move {
            let reply = codec::array(self.shared.admin("schedules", []).await?)?;
            let [now, stored, last]: [Value; 3] = reply
                .try_into()
                .map_err(|_| QueueError::Protocol("schedules without three parts".into()))?;
            let mut last_slots = BTreeMap::new();
            for (name, slot) in codec::pairs(last)? {
                last_slots.insert(codec::bytes(name)?, slot);
            }
            let mut schedules = Vec::new();
            for (name, stored) in codec::pairs(stored)? {
                let name = codec::bytes(name)?;
                let last_slot = last_slots.get(&name);
                match schedule(&name, &codec::bytes(stored)?, last_slot) {
                    Ok(schedule) => schedules.push(schedule),
                    // A newer version, or another program, may have stored what is not known here.
                    Err(error) => tracing::warn!(
                        schedule = %String::from_utf8_lossy(&name),
                        error = &error as &dyn std::error::Error,
                        "skipped: it cannot be read"
                    ),
                }
            }
            schedules.sort_by(|a, b| a.name.cmp(&b.name));
            Ok((codec::timestamp(&now)?, schedules))
        })
    }

    fn fire<'a>(
        &'a self,
        name: &'a str,
        last: Timestamp,
        slot: Timestamp,
        task: Option<NewTask>,
    ) -> Reply<'a, bool> {
        Box::pin(async move {
            let mut args = vec![name.into(), text(last.as_ms()), text(slot.as_ms())];
            if let Some(task) = &task {
                check::tasks(std::slice::from_ref(task), &self.shared.settings)?;
                codec::task_args(task, &mut args);
            }
            Ok(codec::integer(&self.shared.admin("fire", args).await?)? == 1)
        })
    }
}
