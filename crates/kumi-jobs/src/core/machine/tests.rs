//! Random histories on virtual time, checked after every step: each task is in exactly one place, counts add up,
//! attempts stay within their bound, and every move is in the table.

use super::super::claim::{Ask, Finish, Finished, Outcome, Room};
use super::super::reply::{Enqueued, Gone, Released, Requeued};
use super::super::transition;
use super::*;
use std::time::Duration;

impl Machine {
    /// Panics if the structures disagree.
    fn check(&self) {
        let mut places: HashMap<TaskId, usize> = HashMap::new();
        let mut put = |id: &TaskId, expected: TaskState| {
            let state = self.records.get(id).map(|record| record.state);
            if state == Some(expected) {
                *places.entry(*id).or_default() += 1;
            }
            state == Some(expected)
        };
        for kind in &self.kinds {
            for lane in &kind.lanes {
                for id in lane {
                    put(id, TaskState::Queued);
                }
            }
        }
        for (_, id) in &self.scheduled {
            assert!(put(id, TaskState::Scheduled), "{id} is in scheduled");
        }
        for (_, id) in &self.retry {
            assert!(put(id, TaskState::RetryScheduled), "{id} is in retry");
        }
        for (_, id) in &self.dead {
            assert!(put(id, TaskState::Dead), "{id} is in dead");
        }
        for id in &self.succeeded {
            assert!(put(id, TaskState::Succeeded), "{id} is in succeeded");
        }
        for id in &self.cancelled {
            assert!(put(id, TaskState::Cancelled), "{id} is in cancelled");
        }
        for (owner, holder) in &self.owners {
            assert!(!holder.running.is_empty(), "{owner} holds nothing");
            for id in &holder.running {
                assert!(put(id, TaskState::Running), "{id} runs");
                assert_eq!(self.records[id].owner.as_ref(), Some(owner));
            }
        }
        for (key, line) in &self.serial {
            for (index, id) in line.iter().enumerate() {
                let is_blocked = put(id, TaskState::Blocked);
                assert!(index > 0 || !is_blocked, "the head of {key} is blocked");
            }
            let head = &self.records[line.front().expect("an empty line is removed")];
            let holds = head
                .rare
                .as_ref()
                .unwrap()
                .serial
                .as_ref()
                .unwrap()
                .hold_on_dead;
            assert!(!head.state.is_terminal() || (head.state == TaskState::Dead && holds));
        }
        let mut counts: HashMap<&str, [u64; 8]> = HashMap::new();
        for record in self.records.values() {
            assert_eq!(
                places.get(&record.id),
                Some(&1),
                "{} {}",
                record.id,
                record.state
            );
            counts.entry(&record.envelope.task_type).or_default()[record.state as usize] += 1;
            assert!(record.attempts <= record.max_attempts && record.attempts <= record.runs);
            assert_eq!(record.owner.is_some(), record.state == TaskState::Running);
        }
        for kind in &self.kinds {
            let found = counts.get(&*kind.task_type).copied().unwrap_or_default();
            assert_eq!(kind.counts, found, "{}", kind.task_type);
        }
    }

    /// Takes the moves and looks each one up in the table.
    fn check_moves(&mut self) {
        for event in self.take_effects().moved {
            assert!(
                transition::allowed(event.from, event.to),
                "{:?} -> {}",
                event.from,
                event.to
            );
        }
    }
}

const TYPES: [&str; 3] = ["a", "b", "c"];

struct World {
    rng: fastrand::Rng,
    machine: Machine,
    now: Timestamp,
    claims: Vec<Claim>,
    ids: Vec<TaskId>,
    owners: Vec<Owner>,
    /// Serial keys whose order was violated would show here: the last started number per key.
    started: HashMap<Arc<str>, u64>,
    order: HashMap<TaskId, u64>,
    /// Serial tasks so far.
    enqueued: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut machine = Machine::new(Settings::default());
        machine.keep(Retention {
            succeeded: 20,
            dead: 10,
            ..Retention::default()
        });
        machine.listening = true;
        let owners = (0..4).map(|n| format!("w{n}~{n:016x}").parse().unwrap());
        Self {
            rng: fastrand::Rng::with_seed(seed),
            machine,
            now: Timestamp::from_ms(1_000_000),
            claims: Vec::new(),
            ids: Vec::new(),
            owners: owners.collect(),
            started: HashMap::new(),
            order: HashMap::new(),
            enqueued: 0,
        }
    }

    fn ask(&mut self) -> Ask {
        let index = self.rng.usize(..self.owners.len());
        let mut types: Vec<Room> = TYPES
            .iter()
            .map(|name| Room {
                task_type: (*name).into(),
                room: self.rng.usize(..4),
            })
            .collect();
        self.rng.shuffle(&mut types);
        Ask {
            owner: self.owners[index].clone(),
            nonce: self.rng.u64(..),
            lease: Duration::from_secs(15),
            types,
            max: self.rng.usize(..6),
        }
    }

    fn task(&mut self) -> NewTask {
        let name = TYPES[self.rng.usize(..TYPES.len())];
        let mut task = NewTask::new(TaskEnvelope::json(name, "{}"));
        task.id = TaskId::from_parts(self.now, self.rng.u128(..));
        task.max_attempts = self.rng.u32(1..4);
        task.priority = Priority::ALL[self.rng.usize(..4)];
        if self.rng.u8(..4) == 0 {
            task.delay = Duration::from_millis(self.rng.u64(1..60_000));
        }
        let key = |rng: &mut fastrand::Rng| -> Arc<str> { format!("k{}", rng.u8(..4)).into() };
        if self.rng.u8(..3) == 0 {
            task.serial = Some(Serial {
                key: key(&mut self.rng),
                hold_on_dead: self.rng.bool(),
            });
        }
        if self.rng.u8(..4) == 0 {
            let window = self.rng.bool();
            task.unique = Some(Unique {
                key: key(&mut self.rng),
                window: window.then(|| Duration::from_millis(self.rng.u64(1..60_000))),
            });
        }
        task
    }

    fn report(&mut self) -> Option<Finish> {
        if self.claims.is_empty() {
            return None;
        }
        let index = self.rng.usize(..self.claims.len());
        // One in eight is repeated later: a stale or repeated report.
        let claim = match self.rng.u8(..8) {
            0 => self.claims[index].clone(),
            _ => self.claims.swap_remove(index),
        };
        let delay = Duration::from_millis(self.rng.u64(..20_000));
        let outcome = match self.rng.u8(..8) {
            0..3 => Outcome::Succeeded(Some("1".into())),
            3..5 => Outcome::Failed {
                error: "no".into(),
                retry_after: self.rng.bool().then_some(delay),
            },
            5 => Outcome::Snoozed(delay),
            6 => Outcome::GivenBack,
            _ => Outcome::Cancelled,
        };
        Some(Finish::new(&claim, outcome))
    }

    fn step(&mut self) {
        let any = |world: &mut Self| match world.ids.is_empty() {
            true => TaskId::from_parts(world.now, 0),
            false => world.ids[world.rng.usize(..world.ids.len())],
        };
        match self.rng.u8(..24) {
            0..7 => {
                let task = self.task();
                let (id, key) = (
                    task.id,
                    task.serial.as_ref().map(|serial| serial.key.clone()),
                );
                let eligible_now = task.delay.is_zero();
                let made = self.machine.enqueue(self.now, vec![task.clone()]).unwrap();
                if let Enqueued::New(..) = made[0] {
                    self.ids.push(id);
                    if eligible_now && key.is_some() {
                        self.order.insert(id, self.enqueued);
                        self.enqueued += 1;
                    }
                }
                // Repeating it changes nothing.
                if self.rng.u8(..4) == 0 {
                    let again = self.machine.enqueue(self.now, vec![task]).unwrap();
                    assert!(!matches!(again[0], Enqueued::New(..)));
                }
            }
            7..17 => {
                let reports: Vec<Finish> = (0..self.rng.usize(..4))
                    .filter_map(|_| self.report())
                    .collect();
                let ask = self.ask();
                let tokens: Vec<_> = reports.iter().map(|r| (r.id, r.token)).collect();
                let held: Vec<bool> = tokens
                    .iter()
                    .map(|(id, token)| {
                        let record = self.machine.records.get(id);
                        record.is_some_and(|r| {
                            r.state == TaskState::Running && r.token == Some(*token)
                        })
                    })
                    .collect();
                let Ok(turn) = self.machine.turn(self.now, reports, &ask) else {
                    return;
                };
                for ((finished, held), (id, _)) in turn.finished.iter().zip(held).zip(tokens) {
                    // A report counts only with the current token; a repeat within the turn does not count.
                    assert!(held || !matches!(finished, Finished::Applied(_)), "{id}");
                }
                for claim in &turn.claims {
                    self.check_order(claim.id);
                }
                assert!(turn.claims.len() <= ask.max);
                self.claims.extend(turn.claims);
            }
            17 => {
                let id = any(self);
                self.machine.cancel(self.now, id);
            }
            18 => {
                let id = any(self);
                if let Requeued::Applied(_) = self.machine.requeue(self.now, id) {
                    self.order.remove(&id);
                }
            }
            19 => {
                let id = any(self);
                self.machine.purge(self.now, &[id]);
            }
            20 => {
                let owner = self.rng.usize(..self.owners.len());
                let gone = Gone::Life(self.owners[owner].clone());
                let silent = Duration::from_secs(self.rng.u64(..10));
                if let Released::Tasks(_) = self.machine.release_owner(self.now, &gone, silent) {
                    // Its next life.
                    let life = self.rng.u64(..);
                    self.owners[owner] = format!("w{owner}~{life:016x}").parse().unwrap();
                }
            }
            21 => self.machine.limit(
                TYPES[self.rng.usize(..3)],
                match self.rng.u8(..3) {
                    0 => Some(self.rng.u32(1..3)),
                    _ => None,
                },
            ),
            22 => {
                let paused = self.rng.u8(..4) == 0;
                self.machine.pause(paused);
            }
            _ => {
                let owner = self.owners[self.rng.usize(..4)].clone();
                let _ = self
                    .machine
                    .heartbeat(self.now, &owner, Duration::from_secs(15));
            }
        }
        if self.rng.u8(..3) == 0 {
            self.now = self
                .now
                .after(Duration::from_millis(self.rng.u64(..10_000)));
        }
    }

    /// Tasks of one serial key that were eligible at their enqueue start in that order.
    fn check_order(&mut self, id: TaskId) {
        let Some(order) = self.order.get(&id).copied() else {
            return;
        };
        let key = self.machine.records[&id]
            .serial_key()
            .expect("a serial task");
        let last = self.started.entry(key).or_default();
        assert!(order >= *last, "{id} started after a later one");
        *last = order;
    }
}

#[test]
fn random_histories_keep_every_task_in_one_place() {
    let first = std::env::var("KUMI_JOBS_SEED").map_or_else(
        |_| fastrand::u64(..),
        |seed| seed.parse().expect("a number"),
    );
    for seed in first..first.saturating_add(150) {
        println!("KUMI_JOBS_SEED={seed}");
        let mut world = World::new(seed);
        for _ in 0..400 {
            world.step();
            world.machine.check();
            world.machine.check_moves();
        }
    }
}

fn one_type(machine: &mut Machine, now: Timestamp, max: usize) -> Vec<Claim> {
    let ask = Ask {
        owner: "w~0000000000000001".parse().unwrap(),
        nonce: 1,
        lease: Duration::from_secs(15),
        types: vec![Room {
            task_type: "a".into(),
            room: max,
        }],
        max,
    };
    machine.turn(now, Vec::new(), &ask).unwrap().claims
}

#[test]
fn priorities_share_claims_by_their_weights() {
    let mut machine = Machine::new(Settings::default());
    let now = Timestamp::from_ms(1);
    for n in 0..400_u128 {
        let mut task = NewTask::new(TaskEnvelope::json("a", "{}"));
        task.id = TaskId::from_parts(now, n << 64);
        task.priority = Priority::ALL[n as usize % 4];
        machine.enqueue(now, vec![task]).unwrap();
    }
    let mut counts = [0; 4];
    for _ in 0..30 {
        for claim in one_type(&mut machine, now, 5) {
            counts[machine.records[&claim.id].priority.level()] += 1;
        }
    }
    assert_eq!(counts, [80, 40, 20, 10]);
}

#[test]
fn a_task_that_kills_its_worker_five_times_is_dead() {
    let mut machine = Machine::new(Settings::default());
    let mut now = Timestamp::from_ms(1_000);
    let task = NewTask::new(TaskEnvelope::json("a", "{}"));
    let id = task.id;
    machine.enqueue(now, vec![task]).unwrap();
    for attempt in 1..=5 {
        assert_eq!(one_type(&mut machine, now, 1)[0].attempt, attempt);
        for _ in 0..8 {
            now = now.after(Duration::from_secs(2));
            let other = "v~0000000000000001".parse().unwrap();
            let lease = Duration::from_secs(15);
            machine.heartbeat(now, &other, lease).unwrap();
        }
        machine.reap(now);
        now = now.after(Duration::from_secs(60));
    }
    let record = machine.status(id).unwrap();
    assert_eq!((record.state, record.attempts), (TaskState::Dead, 5));
    let error = "the lease of worker w~0000000000000001 ended";
    assert_eq!(record.last_error.as_deref(), Some(error));
}
