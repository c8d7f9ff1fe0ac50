//! The Redis-compatible engine, without a socket, a clock or a thread of its own.
//!
//! A [`Store`] holds the data and the sessions. The front that runs it owns the [`Outputs`], hands
//! in requests and clock readings, writes the output and carries out the effects it asks for.
//!
//! The layers are folders, in this order: `base`, `types`, `config`, `data`, `engine`, `commands`. One imports only
//! those before it, and a test holds it to that.

mod base;
mod commands;
pub mod config;
mod data;
mod engine;
#[doc(hidden)]
pub mod fuzzing;
#[cfg(test)]
mod reference;
#[cfg(test)]
#[path = "../../../tests/support/mod.rs"]
mod support;
#[cfg(test)]
mod testing;
mod types;

pub use base::clock::{Now, TurnTimes};
#[doc(hidden)]
pub use base::crc64;
pub use base::error::CommandError;
pub use base::glob::matches as glob_matches;
pub use base::ids::{DataId, SessionKey};
pub use base::seeds::Seeds;
pub use base::version::{KUMI_VERSION, REDIS_VERSION};
pub use commands::docs::{command_names, commands_markdown};
pub use config::Config;
pub use data::keyspace::{Garbage, Piece};
pub use data::propagation::Writes;
pub use engine::host::{AofFacts, ApplyError, Host, HostFacts, RewriteStart, WriteKeys};
pub use engine::output::Outputs;
pub use engine::session::{AofProgress, InputUse, Peer};
pub use engine::store::batch::MAX_BATCH_REQUESTS;
pub use engine::store::{
    Effect, Flow, GarbageBytes, HostUser, LoadError, Loaded, ReplayError, RunningCommand,
    ShutdownRequest, SnapshotEncoder, SnapshotError, SnapshotPurpose, SnapshotSink, Store,
};
