//! The job state machine: records, waiting lines, leases. Calls carry the time; effects for the driver gather until it
//! takes them.
//!
//! Waiting lines hold ids only; `records` is the one store of everything else. A cancelled task's id stays in its line
//! and is skipped when it comes up, because its record is no longer Queued (or Blocked): removing it at once would cost
//! a walk over the line. `redis/*.lua` does the same moves on the same structures, and the property tests compare both. A
//! script skips at most `TURN_LIMIT` such ids of serial lines, and a later one goes on; here all are skipped at once.

mod admin;
mod browse;
mod claim;
mod enqueue;
mod finish;
mod owners;
mod pulse;
mod released;
#[cfg(test)]
mod tests;

use super::claim::{Claim, Signal};
use super::id::{TaskId, Timestamp, Token};
use super::lost::Lost;
use super::owner::Owner;
use super::record::{
    NULL, NewTask, Priority, Progress, Serial, TaskEnvelope, TaskRecord, TaskState, Unique,
};
use super::reply::{Schedule, TaskEvent, Totals};
use super::retry::Backoff;
use super::settings::{Retention, Settings};
use bytes::Bytes;
use released::Refused;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// The waiting lines of one type, one per priority.
type Lanes = [VecDeque<TaskId>; 4];

pub(crate) struct Machine {
    settings: Settings,
    retention: Retention,
    /// Whether membership may release owners.
    releases: bool,
    totals: Totals,
    /// When a program last did something, within half a second.
    pulse: Option<Timestamp>,
    records: HashMap<TaskId, Box<Record>, IdState>,
    /// All types that a task was enqueued of. A record names its own by index.
    kinds: Vec<Kind>,
    kind_ids: HashMap<Arc<str>, u32>,
    /// The index that was last looked up for an enqueue.
    last_kind: u32,
    /// Scheduled tasks by their time.
    scheduled: BTreeSet<(Timestamp, TaskId)>,
    /// RetryScheduled tasks by their time.
    retry: BTreeSet<(Timestamp, TaskId)>,
    /// Blocked tasks by since when they are.
    blocked: BTreeSet<(Timestamp, TaskId)>,
    /// Dead tasks by when they died.
    dead: BTreeSet<(Timestamp, TaskId)>,
    /// Succeeded tasks, the oldest first.
    succeeded: VecDeque<TaskId>,
    /// Cancelled tasks, the oldest first.
    cancelled: VecDeque<TaskId>,
    owners: BTreeMap<Owner, Holder>,
    /// Lives that are refused.
    released: Refused,
    /// Lines of serial keys. The first task of a line is eligible, running, or dead and holding the line.
    serial: HashMap<Arc<str>, VecDeque<TaskId>>,
    /// Holders of unique keys.
    unique: HashMap<Arc<str>, TaskId>,
    /// Keys whose holder succeeded and whose window still runs, by its end.
    windows: BTreeSet<(Timestamp, Arc<str>)>,
    steps: HashMap<TaskId, BTreeMap<String, Bytes>>,
    limits: BTreeMap<Arc<str>, u32>,
    /// When a worker last asked for a type.
    served: HashMap<Arc<str>, Timestamp>,
    schedules: BTreeMap<String, Schedule>,
    /// The sets of the schedules that were declared in one, by the schedule's name.
    schedule_sets: BTreeMap<String, String>,
    /// Claims so far.
    claimed: u64,
    paused: bool,
    /// Whether moves are reported.
    pub(crate) listening: bool,
    /// Tasks whose end a caller waits for.
    pub(crate) watched: HashSet<TaskId>,
    effects: Effects,
}

/// What the driver has to do after a call.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Wake all that wait: something may be ready, or is due earlier than before.
    pub(crate) wake: bool,
    /// Moves, if `listening`.
    pub(crate) moved: Vec<TaskEvent>,
    /// Watched tasks that are done.
    pub(crate) done: Vec<TaskId>,
    /// Tasks that owners lost.
    pub(crate) lost: Vec<Lost>,
    /// Signals for owners.
    pub(crate) signals: Vec<(Owner, Signal)>,
}

/// A type of tasks.
struct Kind {
    task_type: Arc<str>,
    lanes: Lanes,
    /// Tasks by state.
    counts: [u64; 8],
}

struct Record {
    id: TaskId,
    /// The index of its type.
    kind: u32,
    envelope: TaskEnvelope,
    state: TaskState,
    priority: Priority,
    cancel_requested: bool,
    result_dropped: bool,
    /// The result is `null`, as for all tasks without output; `rare` has any other.
    result_null: bool,
    attempts: u32,
    max_attempts: u32,
    runs: u32,
    given_back: u32,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// While Scheduled or RetryScheduled.
    next_run_at: Timestamp,
    token: Option<Token>,
    /// While Running.
    owner: Option<Owner>,
    /// What most tasks do not have.
    rare: Option<Box<Rare>>,
}

#[derive(Default)]
struct Rare {
    serial: Option<Serial>,
    unique: Option<Unique>,
    trace: Option<Arc<str>>,
    backoff: Option<Backoff>,
    last_error: Option<String>,
    progress: Option<Progress>,
    result: Option<Bytes>,
}

/// An owner with running tasks.
struct Holder {
    lease_end: Timestamp,
    renewed_at: Timestamp,
    /// When the lease was extended without a renewal, after a gap.
    extended_at: Option<Timestamp>,
    running: HashSet<TaskId, IdState>,
}

type IdState = BuildHasherDefault<IdHasher>;

impl Holder {
    /// What the owner runs, by id.
    fn ids(&self) -> Vec<TaskId> {
        let mut ids: Vec<TaskId> = self.running.iter().copied().collect();
        ids.sort_unstable();
        ids
    }
}

impl Machine {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            retention: Retention::default(),
            releases: true,
            totals: Totals::default(),
            pulse: None,
            records: HashMap::default(),
            kinds: Vec::new(),
            kind_ids: HashMap::new(),
            last_kind: 0,
            scheduled: BTreeSet::new(),
            retry: BTreeSet::new(),
            blocked: BTreeSet::new(),
            dead: BTreeSet::new(),
            succeeded: VecDeque::new(),
            cancelled: VecDeque::new(),
            owners: BTreeMap::new(),
            released: Refused::default(),
            serial: HashMap::new(),
            unique: HashMap::new(),
            windows: BTreeSet::new(),
            steps: HashMap::new(),
            limits: BTreeMap::new(),
            served: HashMap::new(),
            schedules: BTreeMap::new(),
            schedule_sets: BTreeMap::new(),
            claimed: 0,
            paused: false,
            listening: false,
            watched: HashSet::new(),
            effects: Effects::default(),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn retention(&self) -> Retention {
        self.retention
    }

    pub(crate) fn keep(&mut self, retention: Retention) {
        self.retention = retention;
    }

    pub(crate) fn releases(&self) -> bool {
        self.releases
    }

    pub(crate) fn set_releases(&mut self, releases: bool) {
        self.releases = releases;
    }

    /// What gathered since the last call.
    pub(crate) fn take_effects(&mut self) -> Effects {
        std::mem::take(&mut self.effects)
    }

    /// Moves a record to a state: counts and events, not lines.
    fn set_state(&mut self, id: TaskId, now: Timestamp, to: TaskState) {
        if let Some(record) = self.records.get_mut(&id) {
            let moved = self.listening.then_some(&mut self.effects.moved);
            record.set_state(now, to, &mut self.kinds, moved);
        }
    }

    /// Puts a task whose state is set already into the line of its type, at the end or at the head.
    fn line_up(&mut self, id: TaskId, at_head: bool) {
        let Some(record) = self.records.get(&id) else {
            return;
        };
        let lane = &mut self.kinds[record.kind as usize].lanes[record.priority.level()];
        match at_head {
            true => lane.push_front(id),
            false => lane.push_back(id),
        }
        self.effects.wake = true;
    }

    /// Makes a task eligible: it joins its serial line if it is not at the head already, and waits as Queued or Blocked.
    fn admit(&mut self, id: TaskId, now: Timestamp) {
        let key = self.records.get(&id).and_then(|record| record.serial_key());
        let to = self.join_serial(id, key);
        self.set_state(id, now, to);
        match to {
            TaskState::Queued => self.line_up(id, false),
            _ => drop(self.blocked.insert((now, id))),
        }
    }

    /// Joins the line of a task's serial key. Answers whether the task waits there.
    fn join_serial(&mut self, id: TaskId, key: Option<Arc<str>>) -> TaskState {
        let Some(key) = key else {
            return TaskState::Queued;
        };
        let line = self.serial.entry(key).or_default();
        if line.front() == Some(&id) {
            return TaskState::Queued;
        }
        line.push_back(id);
        match line.len() {
            1 => TaskState::Queued,
            _ => TaskState::Blocked,
        }
    }

    /// Takes a task from the head of its serial line, if it is there, and lets the next one run.
    fn leave_serial(&mut self, id: TaskId, key: Option<Arc<str>>, now: Timestamp) {
        let Some(key) = key else {
            return;
        };
        let Some(line) = self.serial.get_mut(&key) else {
            return;
        };
        if line.front() != Some(&id) {
            return;
        }
        line.pop_front();
        let is_blocked = |id: &TaskId| {
            self.records
                .get(id)
                .is_some_and(|record| record.state == TaskState::Blocked)
        };
        while line.front().is_some_and(|next| !is_blocked(next)) {
            line.pop_front();
        }
        match line.front().copied() {
            Some(next) => {
                if let Some(record) = self.records.get(&next) {
                    self.blocked.remove(&(record.updated_at, next));
                }
                self.set_state(next, now, TaskState::Queued);
                self.line_up(next, false);
            }
            None => drop(self.serial.remove(&key)),
        }
    }

    /// Moves a task to a terminal state: its serial line, its unique key, what is kept of it.
    fn end(&mut self, id: TaskId, now: Timestamp, to: TaskState) {
        let Some(record) = self.records.get_mut(&id) else {
            return;
        };
        let moved = self.listening.then_some(&mut self.effects.moved);
        record.set_state(now, to, &mut self.kinds, moved);
        let holds_line = to == TaskState::Dead
            && record
                .rare
                .as_ref()
                .and_then(|rare| rare.serial.as_ref())
                .is_some_and(|serial| serial.hold_on_dead);
        if to != TaskState::Dead {
            if !self.steps.is_empty() {
                self.steps.remove(&id);
            }
            if let Some(rare) = &mut record.rare {
                rare.progress = None;
            }
        }
        let serial = record.serial_key();
        let unique = record.rare.as_ref().and_then(|rare| rare.unique.clone());
        if let Some(unique) = unique {
            let end = unique.window.map(|window| record.created_at.after(window));
            self.release_unique(id, &unique, now, end.filter(|_| to == TaskState::Succeeded));
        }
        if !holds_line {
            self.leave_serial(id, serial, now);
        }
        match to {
            TaskState::Succeeded => self.totals.succeeded += 1,
            TaskState::Cancelled => self.totals.cancelled += 1,
            _ => self.totals.dead += 1,
        }
        match to {
            TaskState::Succeeded if self.retention.succeeded == 0 => self.forget(id, now),
            TaskState::Succeeded => self.succeeded.push_back(id),
            TaskState::Cancelled => self.cancelled.push_back(id),
            _ => drop(self.dead.insert((now, id))),
        }
        if !self.watched.is_empty() && self.watched.remove(&id) {
            self.effects.done.push(id);
        }
    }

    /// Frees a unique key, or keeps it until `end`.
    fn release_unique(
        &mut self,
        id: TaskId,
        unique: &Unique,
        now: Timestamp,
        end: Option<Timestamp>,
    ) {
        if self.unique.get(&unique.key) != Some(&id) {
            return;
        }
        match end {
            Some(end) if end > now => drop(self.windows.insert((end, unique.key.clone()))),
            _ => drop(self.unique.remove(&unique.key)),
        }
    }

    /// Removes a terminal task's record. The lists by state are the caller's.
    fn forget(&mut self, id: TaskId, now: Timestamp) {
        if !self.steps.is_empty() {
            self.steps.remove(&id);
        }
        if let Some(record) = self.records.remove(&id) {
            self.kinds[record.kind as usize].counts[record.state as usize] -= 1;
            self.leave_serial(id, record.serial_key(), now);
        }
    }

    fn kind(&self, task_type: &str) -> Option<&Kind> {
        let index = self.kind_ids.get(task_type)?;
        self.kinds.get(*index as usize)
    }

    /// The index of a type, which is new or known.
    fn kind_of(&mut self, task_type: &Arc<str>) -> u32 {
        // Tasks of one type often come in a row, and to compare a short name is cheaper than to hash it.
        let last = self.kinds.get(self.last_kind as usize);
        if last.is_some_and(|kind| kind.task_type == *task_type) {
            return self.last_kind;
        }
        if let Some(index) = self.kind_ids.get(task_type) {
            self.last_kind = *index;
            return *index;
        }
        let index = u32::try_from(self.kinds.len()).expect("types are fewer than tasks in memory");
        self.kind_ids.insert(task_type.clone(), index);
        self.kinds.push(Kind {
            task_type: task_type.clone(),
            lanes: Lanes::default(),
            counts: [0; 8],
        });
        self.last_kind = index;
        index
    }

    fn is_empty_lane(&self, task_type: &str) -> bool {
        self.kind(task_type)
            .is_none_or(|kind| kind.lanes.iter().all(VecDeque::is_empty))
    }

    fn running_of(&self, task_type: &str) -> u64 {
        self.kind(task_type)
            .map_or(0, |kind| kind.counts[TaskState::Running as usize])
    }
}

impl Record {
    fn new(task: NewTask, kind: u32, now: Timestamp) -> Self {
        let is_rare = task.serial.is_some()
            || task.unique.is_some()
            || task.trace.is_some()
            || task.backoff.is_some();
        let rare = is_rare.then(|| {
            Box::new(Rare {
                serial: task.serial,
                unique: task.unique,
                trace: task.trace,
                backoff: task.backoff,
                ..Rare::default()
            })
        });
        Self {
            id: task.id,
            kind,
            envelope: task.envelope,
            state: TaskState::Queued,
            priority: task.priority,
            cancel_requested: false,
            result_dropped: false,
            result_null: false,
            attempts: 0,
            max_attempts: task.max_attempts,
            runs: 0,
            given_back: 0,
            created_at: now,
            updated_at: now,
            next_run_at: now,
            token: None,
            owner: None,
            rare,
        }
    }

    /// Counts a move, and reports it if there are subscribers.
    fn set_state(
        &mut self,
        now: Timestamp,
        to: TaskState,
        kinds: &mut [Kind],
        moved: Option<&mut Vec<TaskEvent>>,
    ) {
        let from = std::mem::replace(&mut self.state, to);
        self.updated_at = now;
        let counts = &mut kinds[self.kind as usize].counts;
        counts[from as usize] -= 1;
        counts[to as usize] += 1;
        if let Some(moved) = moved {
            moved.push(TaskEvent {
                id: self.id,
                task_type: self.envelope.task_type.clone(),
                from: Some(from),
                to,
                attempts: self.attempts,
                at: now,
            });
        }
    }

    /// The claim on a running task.
    fn claim(&self) -> Option<Claim> {
        Some(Claim {
            id: self.id,
            envelope: self.envelope.clone(),
            token: self.token?,
            owner: self.owner.clone()?,
            attempt: self.attempts,
            runs: self.runs,
            max_attempts: self.max_attempts,
            created_at: self.created_at,
            trace: self.rare.as_ref().and_then(|rare| rare.trace.clone()),
            backoff: self.rare.as_ref().and_then(|rare| rare.backoff),
            cancel_requested: self.cancel_requested,
        })
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    fn serial_key(&self) -> Option<Arc<str>> {
        let serial = self.rare.as_ref()?.serial.as_ref()?;
        Some(serial.key.clone())
    }

    fn snapshot(&self) -> TaskRecord {
        let is_timed = matches!(self.state, TaskState::Scheduled | TaskState::RetryScheduled);
        let rare = self.rare.as_deref();
        TaskRecord {
            id: self.id,
            envelope: self.envelope.clone(),
            state: self.state,
            attempts: self.attempts,
            max_attempts: self.max_attempts,
            runs: self.runs,
            given_back: self.given_back,
            priority: self.priority,
            last_error: rare.and_then(|rare| rare.last_error.clone()),
            next_run_at: is_timed.then_some(self.next_run_at),
            created_at: self.created_at,
            updated_at: self.updated_at,
            owner: self.owner.clone(),
            token: self.token,
            cancel_requested: self.cancel_requested,
            progress: rare.and_then(|rare| rare.progress.clone()),
            result: match self.result_null {
                true => Some(Bytes::from_static(NULL)),
                false => rare.and_then(|rare| rare.result.clone()),
            },
            result_dropped: self.result_dropped,
            serial: rare.and_then(|rare| rare.serial.clone()),
            unique: rare.and_then(|rare| rare.unique.clone()),
            trace: rare.and_then(|rare| rare.trace.clone()),
            backoff: rare.and_then(|rare| rare.backoff),
        }
    }
}

/// Ids are random in their low bits. One multiplication spreads them over the table; ids that a producer chose to
/// collide cost only that producer's own queue.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0.rotate_left(8) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn write_u128(&mut self, bits: u128) {
        let folded = (bits as u64) ^ ((bits >> 64) as u64).rotate_left(32);
        self.0 = folded.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
