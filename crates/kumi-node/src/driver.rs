//! The drivers of a node: they run the cores, with sockets, timers and tasks.

pub mod releaser;
