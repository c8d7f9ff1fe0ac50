//! The same random histories on the Redis queue and on the memory queue, which is the state machine itself: every reply
//! and every record has to be the same. Virtual time; the seed is printed.

use crate::conformance::Virtual;
use crate::servers::{Kind, Server, on_both_servers};
use futures_util::FutureExt;
use kumi_jobs::conformance::Harness;
use kumi_jobs::{
    Ask, Claim, Enqueued, Events, Finish, Gone, NewTask, Outcome, Owner, Priority, Queue, Released,
    Retention, Room, Serial, Settings, TaskEnvelope, TaskId, TaskState, Timestamp, Unique,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

const TYPES: [&str; 3] = ["a", "b", "c"];

struct Pair {
    rng: fastrand::Rng,
    redis: Arc<dyn Queue>,
    model: Arc<dyn Queue>,
    redis_time: Virtual,
    model_time: Virtual,
    claims: Vec<Claim>,
    ids: Vec<TaskId>,
    owners: Vec<Owner>,
    /// Lives of workers so far; a later one is greater.
    lives: u64,
    /// Subscriptions to the Redis queue and to the model, in every second history: scripts take other paths then.
    events: Option<(Events, Events)>,
}

/// Runs a call on both queues and compares the replies.
macro_rules! both {
    ($pair:expr, $call:ident($($arg:expr),*)) => {{
        let redis = $pair.redis.$call($($arg),*).await.map_err(|error| error.to_string());
        let model = $pair.model.$call($($arg),*).await.map_err(|error| error.to_string());
        assert_eq!(redis, model, stringify!($call));
        redis
    }};
}

impl Pair {
    async fn new(seed: u64, port: u16) -> Self {
        let (redis_time, model_time) = (Virtual::new(Some(port)), Virtual::new(None));
        let retention = Retention {
            // Every third history keeps no succeeded task.
            succeeded: if seed.is_multiple_of(3) { 0 } else { 20 },
            dead: 10,
            ..Retention::default()
        };
        let redis = redis_time.queue(Settings::default()).await;
        let model = model_time.queue(Settings::default()).await;
        for queue in [&redis, &model] {
            queue.keep(retention).await.expect("a reply");
        }
        let events = match seed.is_multiple_of(2) {
            true => {
                let (redis, model) = (redis.subscribe().await, model.subscribe().await);
                Some((redis.expect("events"), model.expect("events")))
            }
            false => None,
        };
        Self {
            rng: fastrand::Rng::with_seed(seed),
            redis,
            model,
            redis_time,
            model_time,
            claims: Vec::new(),
            ids: Vec::new(),
            owners: (0..4).map(|index| owner_of(index, 1)).collect(),
            lives: 1,
            events,
        }
    }

    fn any(&mut self) -> TaskId {
        match self.ids.is_empty() {
            true => TaskId::from_parts(Timestamp::from_ms(1), 1),
            false => self.ids[self.rng.usize(..self.ids.len())],
        }
    }

    fn task(&mut self) -> NewTask {
        let name = TYPES[self.rng.usize(..TYPES.len())];
        let mut task = NewTask::new(TaskEnvelope::json(name, vec![b'x'; self.rng.usize(..99)]));
        task.max_attempts = self.rng.u32(1..7);
        task.priority = Priority::ALL[self.rng.usize(..4)];
        if self.rng.u8(..4) == 0 {
            task.delay = Duration::from_millis(self.rng.u64(1..60_000));
        }
        if self.rng.u8(..3) == 0 {
            task.serial = Some(Serial {
                key: format!("k{}", self.rng.u8(..4)).into(),
                hold_on_dead: self.rng.bool(),
            });
        }
        if self.rng.u8(..4) == 0 {
            let window = Duration::from_millis(self.rng.u64(1..60_000));
            task.unique = Some(Unique {
                key: format!("k{}", self.rng.u8(..4)).into(),
                window: self.rng.bool().then_some(window),
            });
        }
        task
    }

    fn report(&mut self) -> Option<Finish> {
        if self.claims.is_empty() {
            return None;
        }
        let index = self.rng.usize(..self.claims.len());
        let claim = match self.rng.u8(..8) {
            0 => self.claims[index].clone(),
            _ => self.claims.swap_remove(index),
        };
        let delay = Duration::from_millis(self.rng.u64(..20_000));
        let outcome = match self.rng.u8(..8) {
            0..3 => Outcome::Succeeded(self.rng.bool().then(|| "1".into())),
            3..5 => Outcome::Failed {
                error: format!("error {}", self.rng.u8(..)),
                retry_after: (self.rng.u8(..4) > 0).then_some(delay),
            },
            5 => Outcome::Snoozed(delay),
            6 => Outcome::GivenBack,
            _ => Outcome::Cancelled,
        };
        Some(Finish::new(&claim, outcome))
    }

    fn ask(&mut self) -> Ask {
        let owner = self.owners[self.rng.usize(..4)].clone();
        let mut types: Vec<Room> = TYPES
            .iter()
            .map(|name| Room {
                task_type: (*name).into(),
                room: self.rng.usize(..4),
            })
            .collect();
        self.rng.shuffle(&mut types);
        Ask {
            owner,
            nonce: self.rng.u64(..),
            lease: Duration::from_secs(15),
            types,
            max: self.rng.usize(..6),
        }
    }

    async fn step(&mut self) {
        match self.rng.u8(..25) {
            0..7 => {
                let tasks: Vec<NewTask> = (0..self.rng.usize(1..4)).map(|_| self.task()).collect();
                let made = both!(self, enqueue(tasks.clone())).expect("made");
                let new = |made: &Enqueued| match made {
                    Enqueued::New(id, _) => Some(*id),
                    _ => None,
                };
                self.ids.extend(made.iter().filter_map(new));
                if self.rng.u8(..4) == 0 {
                    let _ = both!(self, enqueue(tasks.clone()));
                }
            }
            7..17 => {
                let count = self.rng.usize(..4);
                let reports: Vec<Finish> = (0..count).filter_map(|_| self.report()).collect();
                let ask = self.ask();
                if let Ok(turn) = both!(self, turn(reports.clone(), ask.clone())) {
                    self.claims.extend(turn.claims);
                }
            }
            17 => {
                let id = self.any();
                let _ = both!(self, cancel(id));
            }
            18 => {
                let ids = vec![self.any(), self.any()];
                let _ = both!(self, requeue(ids.clone()));
            }
            19 => {
                let ids = vec![self.any()];
                let _ = both!(self, purge(ids.clone()));
            }
            20 => {
                let index = self.rng.usize(..4);
                let owner = self.owners[index].clone();
                let gone = match (self.rng.u8(..3), owner.node()) {
                    (0, _) => Gone::Before(owner),
                    (1, Some(node)) => Gone::Node(node),
                    _ => Gone::Life(owner),
                };
                let silent = Duration::from_secs(self.rng.u64(..10));
                if let Ok(Released::Tasks(_)) = both!(self, release_owner(&gone, silent)) {
                    self.lives += 1;
                    // Both workers of the node go on in another life.
                    let indexes = if index < 2 { index..index + 1 } else { 2..4 };
                    for index in indexes {
                        self.owners[index] = owner_of(index, self.lives);
                    }
                }
            }
            21 => {
                let limit = (self.rng.u8(..3) == 0).then(|| self.rng.u32(1..3));
                let name = TYPES[self.rng.usize(..3)];
                let _ = both!(self, limit(name, limit));
            }
            22 => {
                let paused = self.rng.u8(..4) == 0;
                let _ = both!(self, pause(paused));
            }
            23 => drop(both!(self, reap())),
            _ => {
                let owner = self.owners[self.rng.usize(..4)].clone();
                let _ = both!(self, heartbeat(&owner, Duration::from_secs(15)));
                let _ = both!(self, running(&owner));
            }
        }
        if self.rng.u8(..3) == 0 {
            // Now and then there is an outage, or the clock is set back.
            let by = match self.rng.u8(..20) {
                0 => self.rng.u64(..60_000) as i64,
                1 => -(self.rng.u64(..60_000) as i64),
                2..8 => self.rng.u64(..10_000) as i64,
                _ => self.rng.u64(..3_000) as i64,
            };
            for clock in [&self.redis_time.clock, &self.model_time.clock] {
                let now = clock.load(Ordering::SeqCst);
                clock.store(now.saturating_add_signed(by), Ordering::SeqCst);
            }
        }
    }

    /// Compares everything that can be asked for.
    async fn compare(&mut self) {
        let counts = both!(self, counts_by_state()).expect("counts");
        both!(self, load()).expect("a load");
        let (mut known, ids) = (0, self.ids.clone());
        for id in &ids {
            let record = both!(self, get_status(*id)).expect("a status");
            let state = record.map(|record| (record.state, record.attempts, record.max_attempts));
            known += u64::from(state.is_some());
            assert!(state.is_none_or(|(_, attempts, max)| attempts <= max));
        }
        assert_eq!(counts.total(), known, "counts add up");
        let sum: u64 = TaskState::ALL.iter().map(|state| counts.of(*state)).sum();
        assert_eq!(sum, known);
        if let Some((redis, model)) = &mut self.events {
            // The model reports moves at once, a server a little later.
            while let Some(expected) = model.recv().now_or_never() {
                let moved = tokio::time::timeout(Duration::from_secs(30), redis.recv()).await;
                assert_eq!(moved.expect("the same move"), expected);
            }
        }
    }
}

/// A worker in this life: the first two by themselves, the others of one node.
fn owner_of(index: usize, life: u64) -> Owner {
    let owner = match index {
        0 | 1 => format!("w{index}~{life:016x}"),
        _ => format!("@0000000000000001/n~{life:016x}/w{index}"),
    };
    owner.parse().expect("an owner")
}

on_both_servers![a_server_does_what_the_state_machine_does];

async fn a_server_does_what_the_state_machine_does(kind: Kind) {
    let server = Server::start(kind);
    let first = match std::env::var("KUMI_JOBS_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => fastrand::u64(..) >> 1,
    };
    for seed in first..first + 8 {
        println!("KUMI_JOBS_SEED={seed}");
        let mut pair = Pair::new(seed, server.port).await;
        for step in 0..250 {
            pair.step().await;
            if step % 25 == 24 {
                pair.compare().await;
            }
        }
    }
}
