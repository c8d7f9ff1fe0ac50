//! MUF: units call each other and keep state through readable Redis keys.
//!
//! A unit is a program with a name. It calls others (`request`, `gather`), answers (`serve`), keeps values (`keep`,
//! `watch_keep`), lists the units that run (`units`) and observes their traffic (`tap`). All of it is keys
//! `MUF/UNIT/STATUS/ID` on a Redis server, so `redis-cli` is enough to watch it and to take part. `docs/muf.md` is for users,
//! `docs/muf-protocol.md` describes the protocol.
//!
//! Guarantees: a caller gets exactly one result, an answer or a typed error, within its timeout. A handler runs at least
//! once unless its backend crashes; it runs twice only after its lease lapsed or the server lost writes.
//!
//! [`Muf`] is the entry point. [`core`] is the protocol as a state machine without I/O, for other drivers and for tests.

mod builder;
pub mod core;
mod discovery;
mod driver;
mod error;
mod fault;
mod handler;
mod keep;
mod muf;
mod payload;
mod request;
mod serve;
mod tap;
mod traffic;

pub use crate::core::{Gathered, KeepEvent, NameError, Outcome, SERVED_BOUNDS_MS, Served};
pub use builder::Builder;
pub use discovery::Info;
pub use driver::Stats;
pub use error::Error;
pub use fault::Fault;
pub use handler::{IntoAnswer, Request};
pub use keep::{Keep, KeepWatch, Owned};
#[doc(hidden)]
pub use kumi_redis::without_password;
pub use kumi_redis::{Cause, Connection, ConnectionChanges, Error as ServerError};
pub use muf::Muf;
pub use payload::{Answer, IntoPayload, Json};
pub use request::{Answers, BoxedFuture, Call, Gather};
pub use serve::{Serve, Service};
pub use tap::Tap;
pub use traffic::{KeyEvent, Traffic};
