//! The drivers of a node: they run the cores, with processes, sockets, timers and tasks.

pub mod programs;
pub mod releaser;
