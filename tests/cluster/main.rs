//! `kumi cluster` as its users have it: real processes, real sockets, real signals.
//!
//! Nothing here holds a clock against the nodes: every test waits for what has to become true, for a minute if need
//! be, and prints how long it took.

mod certificates;
mod commands;
mod failures;
mod namespaces;
#[path = "../support/network.rs"]
mod network;
mod nodes;
mod partition;
#[path = "../support/process.rs"]
mod process;
mod proxy;
