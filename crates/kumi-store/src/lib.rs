//! The Redis-compatible engine, without a socket, a clock or a thread of its own.
//!
//! A [`Store`] holds the data, the sessions and what waits to be written to them. Whoever runs it
//! hands in requests and clock readings, and carries out the effects it asks for.

mod cmd;
mod command;
pub mod config;
mod ctx;
mod delivery;
mod dispatch;
mod docs;
mod error;
mod extended;
mod glob;
mod histogram;
mod host;
mod key_spec;
mod keyspace;
mod latency;
mod number;
mod propagation;
mod pubsub;
mod reply;
mod session;
mod slowlog;
mod stats;
mod store;
#[cfg(test)]
mod testing;
#[allow(dead_code, reason = "the commands of these types come next")]
mod types;

pub use config::Config;
pub use docs::{command_names, commands_markdown};
pub use error::CommandError;
pub use glob::matches as glob_matches;
pub use host::{ApplyError, EventLoop, Host, HostFacts, Now};
pub use keyspace::Garbage;
pub use session::{InputUse, Peer, SessionKey};
pub use store::{Effect, Flow, ShutdownRequest, Store};

/// The Redis version whose behaviour the commands follow.
pub const REDIS_VERSION: &str = "7.2.5";
/// The version of kumi.
pub const KUMI_VERSION: &str = env!("CARGO_PKG_VERSION");
