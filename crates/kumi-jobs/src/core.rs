//! What is decided without I/O: the job state machine (`machine.rs`) and the worker (`worker.rs`), with the words that they and
//! their drivers share. No socket, no clock, no task, no random numbers.

mod claim;
mod error;
mod id;
mod listing;
mod lost;
mod machine;
mod owner;
mod record;
mod reply;
mod retry;
mod settings;
pub mod transition;
pub(crate) mod worker;

pub use claim::{Ask, Claim, Finish, Finished, Lease, Outcome, Room, Signal, Turn};
pub(crate) use error::Refusal;
pub(crate) use id::EXPECTED_NAME;
pub use id::{ParseIdError, TaskId, Timestamp, Token};
pub(crate) use listing::LOOK_LIMIT;
pub use listing::{
    Cursor, Filter, Forgotten, Holding, ID_PAGE_LIMIT, IdPage, IdPrefix, Order, PAGE_LIMIT, Page,
    Paging, SEARCH_LIMIT_BYTES,
};
pub(crate) use lost::Lost;
pub(crate) use machine::{Effects, Machine};
pub use owner::{ClusterId, NodeLife, Owner};
pub use record::{
    JSON, NewTask, Priority, Progress, Serial, TaskEnvelope, TaskRecord, TaskState, Unique,
};
pub(crate) use record::{NULL, cut};
pub use reply::{
    Cancel, Counts, Enqueued, Gone, Load, Released, Requeued, Schedule, TaskEvent, Totals,
};
pub(crate) use retry::reap_delay;
pub use retry::{Backoff, Exponential, Fixed, RetryPolicy};
pub use settings::{
    DEFAULT_MAX_ATTEMPTS, ENQUEUE_LIMIT, LEASE, MAX_GIVEN_BACK, OWNERS_PAGE, RENEWAL, Retention,
    Settings, TURN_LIMIT,
};
