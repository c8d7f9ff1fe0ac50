//! Commands on sessions, messages, scripts and the server itself, a file or a folder per family.

pub(super) mod acl;
pub(super) mod client;
pub(super) mod config;
pub(super) mod connection;
pub(super) mod debug;
pub(super) mod functions;
pub(super) mod info;
pub(super) mod introspect;
pub(super) mod latency;
pub(super) mod memory;
pub(super) mod modules;
pub(super) mod persistence;
pub(super) mod process;
pub(super) mod pubsub;
pub(super) mod replication;
pub(super) mod scripting;
pub(super) mod slowlog;
pub(super) mod transactions;
