//! Tests that every [`Queue`] passes, for implementations in this crate and elsewhere.
//!
//! A [`Harness`] makes fresh queues and moves their clock; [`run_all`] runs every case and panics at the first that fails,
//! as tests do. The cases never sleep: time passes only through [`Harness::advance`].

mod claims;
mod keys;
mod lease;
mod lifecycle;
mod listing;
mod operations;
mod signals;

use crate::{
    Ask, Claim, Enqueued, Finished, Lease, NewTask, Outcome, Owner, Queue, Room, Settings,
    TaskEnvelope, TaskId, TaskRecord, TaskState, Turn,
};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;

/// Makes queues for the cases and moves their clock.
pub trait Harness: Send + Sync {
    /// A new, empty queue.
    fn queue(&self, settings: Settings) -> BoxFuture<'_, Arc<dyn Queue>>;

    /// Moves the clock of all queues made here. A queue without a clock of its own may sleep.
    fn advance(&self, by: Duration) -> BoxFuture<'_, ()>;
}

/// One case.
pub type Case = for<'a> fn(&'a Fixture<'a>) -> BoxFuture<'a, ()>;

/// All cases by name.
#[must_use]
pub fn cases() -> Vec<(&'static str, Case)> {
    [
        lifecycle::CASES,
        claims::CASES,
        lease::CASES,
        keys::CASES,
        operations::CASES,
        listing::CASES,
        signals::CASES,
    ]
    .concat()
}

/// Runs all cases, each on a queue of its own.
pub async fn run_all(harness: &dyn Harness) {
    for (name, case) in cases() {
        println!("conformance: {name}");
        let fixture = Fixture::new(harness, Settings::default()).await;
        case(&fixture).await;
    }
}

/// What a case works with: a queue, its harness, and a worker's name.
pub struct Fixture<'a> {
    harness: &'a dyn Harness,
    queue: Arc<dyn Queue>,
    owner: Owner,
}

/// The lease of all claims.
const LEASE: Duration = Duration::from_secs(15);

impl<'a> Fixture<'a> {
    async fn new(harness: &'a dyn Harness, settings: Settings) -> Self {
        Self {
            harness,
            queue: harness.queue(settings).await,
            owner: Owner::random(),
        }
    }

    /// The same case on another queue.
    async fn again(&self, settings: Settings) -> Fixture<'a> {
        Fixture::new(self.harness, settings).await
    }

    /// The same queue for another worker.
    fn worker(&self, owner: Owner) -> Fixture<'a> {
        Fixture {
            harness: self.harness,
            queue: self.queue.clone(),
            owner,
        }
    }

    async fn advance(&self, seconds: u64) {
        self.harness.advance(Duration::from_secs(seconds)).await;
    }

    /// Lets time pass while other workers use the queue.
    async fn live(&self, seconds: u64) {
        for _ in 0..seconds {
            self.advance(1).await;
            let other = self.queue.heartbeat(&Owner::random(), LEASE).await;
            assert_eq!(other.expect("the queue answers"), Lease::Lost);
        }
    }

    async fn add(&self, task: NewTask) -> Enqueued {
        self.queue
            .enqueue(vec![task])
            .await
            .expect("the queue answers")[0]
    }

    /// Adds a task of type `a`.
    async fn simple(&self) -> TaskId {
        self.add(task()).await.id()
    }

    fn ask(&self, types: &[(&str, usize)], max: usize) -> Ask {
        Ask {
            owner: self.owner.clone(),
            nonce: 7,
            lease: LEASE,
            types: types
                .iter()
                .map(|(task_type, room)| Room {
                    task_type: (*task_type).into(),
                    room: *room,
                })
                .collect(),
            max,
        }
    }

    async fn turn(&self, types: &[(&str, usize)], max: usize) -> Turn {
        let ask = self.ask(types, max);
        self.queue
            .turn(Vec::new(), ask)
            .await
            .expect("the queue answers")
    }

    /// Claims up to `max` tasks of type `a`.
    async fn claims(&self, max: usize) -> Vec<Claim> {
        self.turn(&[("a", max)], max).await.claims
    }

    /// Claims the one task of type `a` there is to claim.
    async fn claim(&self) -> Claim {
        let mut claims = self.claims(1).await;
        assert_eq!(claims.len(), 1, "there is a task to claim");
        claims.remove(0)
    }

    async fn finish(&self, claim: &Claim, outcome: Outcome) -> Finished {
        self.queue
            .mark(claim, outcome)
            .await
            .expect("the queue answers")
    }

    async fn succeed(&self, claim: &Claim) {
        let done = self.finish(claim, Outcome::Succeeded(None)).await;
        assert_eq!(done, Finished::Applied(TaskState::Succeeded));
    }

    async fn fail(&self, claim: &Claim, retry_seconds: u64) -> Finished {
        let retry_after = Some(Duration::from_secs(retry_seconds));
        let error = "no".to_owned();
        self.finish(claim, Outcome::Failed { error, retry_after })
            .await
    }

    async fn kill(&self, claim: &Claim) {
        let done = self.queue.mark_failed(claim, "no".into(), None).await;
        assert_eq!(
            done.expect("the suite relies on it"),
            Finished::Applied(TaskState::Dead)
        );
    }

    async fn record(&self, id: TaskId) -> TaskRecord {
        let record = self.queue.get_status(id).await.expect("the queue answers");
        record.expect("the task is known")
    }

    async fn state(&self, id: TaskId) -> TaskState {
        self.record(id).await.state
    }

    async fn check_states(&self, expected: &[(TaskId, TaskState)]) {
        for (id, state) in expected {
            assert_eq!(self.state(*id).await, *state, "{id}");
        }
    }
}

/// A task of type `a`.
fn task() -> NewTask {
    of_type("a")
}

fn of_type(task_type: &str) -> NewTask {
    NewTask::new(TaskEnvelope::json(task_type, r#"{"n":1}"#))
}

/// Turns async functions into a table of cases.
macro_rules! table_of {
    ($($name:ident),* $(,)?) => {
        pub(super) const CASES: &[(&str, super::Case)] =
            &[$((stringify!($name), |fixture| Box::pin($name(fixture)))),*];
    };
}
use table_of;
