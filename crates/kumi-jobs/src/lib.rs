//! kumi-jobs: a job runtime. Tasks are data (a type and a JSON payload); handlers are registered by type; a failed task
//! is retried by being queued again; every state is visible.
//!
//! One trait, [`Queue`], has two implementations: [`InMemoryQueue`] in this process, and [`RedisQueue`] on any Redis from 6.2
//! on or a Redis Cluster. The state machine behind them opens no socket and reads no clock. Delivery is
//! at-least-once; every report on a run carries the claim's token, and one with an old token changes nothing.
//!
//! ```
//! use kumi_jobs::{Context, Jobs, Task, TaskError, Worker};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Greet { name: String }
//!
//! impl Task for Greet {
//!     const TYPE: &'static str = "greet";
//!     type Output = String;
//! }
//!
//! async fn greet(task: Greet, cx: Context<&'static str>) -> Result<String, TaskError> {
//!     Ok(format!("{}, {}", cx.state(), task.name))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let jobs = Jobs::memory();
//! let handle = jobs.enqueue(Greet { name: "Ann".into() }).await?;
//! let done = async { assert_eq!(handle.result().await.ok().as_deref(), Some("Hello, Ann")) };
//! Worker::new(&jobs, "Hello").handle(greet).run_until(done).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
#[cfg(feature = "conformance")]
pub mod conformance;
mod context;
mod core;
mod cron;
mod drawn;
mod error;
mod jobs;
mod lost;
mod memory;
mod queue;
mod random;
mod redis;
mod registry;
mod schedules;
mod stopping;
mod task;
mod worker;

pub use check::SCHEDULES_LIMIT;
pub use context::Context;
pub use core::{
    Ask, Backoff, Cancel, Claim, ClusterId, Counts, Cursor, DEFAULT_MAX_ATTEMPTS, ENQUEUE_LIMIT,
    Enqueued, Exponential, Filter, Finish, Finished, Fixed, Forgotten, Gone, Holding,
    ID_PAGE_LIMIT, IdPage, IdPrefix, JSON, LEASE, Lease, Load, MAX_GIVEN_BACK, NewTask, NodeLife,
    OWNERS_PAGE, Order, Outcome, Owner, PAGE_LIMIT, Page, Paging, ParseIdError, Priority, Progress,
    RENEWAL, Released, Requeued, Retention, RetryPolicy, Room, SEARCH_LIMIT_BYTES, Schedule,
    Serial, Settings, Signal, TURN_LIMIT, TaskEnvelope, TaskEvent, TaskId, TaskRecord, TaskState,
    Timestamp, Token, Totals, Turn, Unique, transition,
};
pub use error::{QueueError, ResultError};
pub use jobs::{Enqueue, Handle, IntoTask, Jobs};
pub use kumi_redis::Error as ServerError;
pub use memory::InMemoryQueue;
pub use queue::{Events, Notice, Queue, Reply};
pub use redis::{FORMAT, RedisOptions, RedisQueue, queue_names};
pub use registry::{DuplicateType, Execution, Registry, TaskHandler};
pub use schedules::Schedules;
pub use task::{Options, Task, TaskError};
pub use tokio_util::sync::CancellationToken;
pub use worker::{Worker, WorkerControl, WorkerError};

/// The Rust of the user's guide, compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/jobs.md")]
mod guide {}
