//! The engine: sessions, their output, the shape of a command and how one is run.
//!
//! Imports `base`, `types`, `config` and `data`. It is handed the rows of the commands and names none of them.

pub(crate) mod acl;
pub(crate) mod command;
pub(crate) mod host;
pub(crate) mod key_spec;
pub(crate) mod latency;
pub(crate) mod output;
pub(crate) mod pubsub;
pub(crate) mod reply;
pub(crate) mod script;
pub(crate) mod session;
pub(crate) mod slowlog;
pub(crate) mod stats;
pub(crate) mod store;
