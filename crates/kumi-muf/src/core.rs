//! The protocol without I/O: no socket, no clock, no task, and no randomness but what it is handed.
//!
//! [`Core`] is the whole of one unit. A driver feeds it pushes, replies and the time, and does what it says. The same
//! core runs under the tokio driver of this crate and under the simulation in `tests/simulation/`, where time is a
//! number and the server loses writes.

mod backend;
mod bulk;
mod command;
mod gather;
mod glob;
mod ids;
mod ignored;
mod key;
mod name;
mod output;
mod owned;
mod requester;
mod served;
mod settings;
mod timers;
mod turn;
mod ulid;
mod unit;
mod watch;

pub use backend::BackendCounters;
pub use command::{
    Command, Lost, Op, PRESENT_LIMIT, Replies, Reply, SearchStep, SearchToken, Time, Token,
};
pub use gather::GatherSpec;
pub(crate) use ids::IdMap;
pub use ignored::{KeyError, why_ignored};
pub use key::{Audience, Key, RequestId, RequestKeys, Status, key};
pub use name::{
    NAME_LIMIT_BYTES, NameError, Pattern, Target, UnitName, check_name, is_reserved_keep,
};
pub(crate) use output::shown;
pub use output::{
    CallError, CallId, GatherId, Gathered, Incoming, JobId, KeepEvent, Outcome, Output, OwnedId,
    ServiceId, WatchId,
};
pub use requester::CallSpec;
pub use served::{SERVED_BOUNDS_MS, Served};
pub(crate) use settings::INFO_LIMIT_BYTES;
pub use settings::Settings;
pub use ulid::{ULID_LEN, ulid};
pub use unit::Core;
pub use watch::KeepPattern;
