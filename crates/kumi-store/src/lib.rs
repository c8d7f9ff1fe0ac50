//! The Redis-compatible engine, without a socket, a clock or a thread of its own.
//!
//! A [`Store`] holds the data and the sessions. The front that runs it owns the [`Outputs`], hands
//! in requests and clock readings, writes the output and carries out the effects it asks for.

mod acl;
mod bits;
mod cmd;
mod command;
pub mod config;
#[doc(hidden)]
pub mod crc64;
mod docs;
mod error;
mod extended;
#[doc(hidden)]
pub mod fuzzing;
mod geo;
mod glob;
mod histogram;
mod host;
mod hyperloglog;
mod key_spec;
mod keyspace;
mod latency;
mod lzf;
mod number;
mod output;
mod propagation;
mod pubsub;
#[cfg_attr(
    not(test),
    allow(
        dead_code,
        unused_imports,
        reason = "parts of it are for files, which are not there yet"
    )
)]
mod rdb;
#[cfg(test)]
mod reference;
mod reply;
mod script;
mod seeds;
mod session;
mod size_class;
mod slowlog;
mod stats;
mod store;
#[cfg(test)]
#[path = "../../../tests/support/mod.rs"]
mod support;
#[cfg(test)]
mod testing;
#[allow(
    dead_code,
    reason = "some methods of the structures are for tests and fuzz targets alone"
)]
mod types;

pub use config::Config;
pub use docs::{command_names, commands_markdown};
pub use error::CommandError;
pub use glob::matches as glob_matches;
pub use host::{ApplyError, Host, HostFacts, LogFacts, Now, RewriteStart, TurnTimes, WriteKeys};
pub use keyspace::{Garbage, Piece};
pub use output::Outputs;
pub use propagation::Writes;
pub use seeds::Seeds;
pub use session::{InputUse, Peer, SessionKey};
pub use store::batch::MAX_BATCH_REQUESTS;
pub use store::{
    Effect, Flow, LoadError, Loaded, LogProgress, ReplayError, RunningCommand, ShutdownRequest,
    SnapshotEncoder, SnapshotError, SnapshotPurpose, SnapshotSink, Store,
};
pub(crate) use store::{ctx, delivery, waiting};

/// The Redis version whose behaviour the commands follow.
pub const REDIS_VERSION: &str = "7.2.5";
/// The version of kumi.
pub const KUMI_VERSION: &str = env!("CARGO_PKG_VERSION");
