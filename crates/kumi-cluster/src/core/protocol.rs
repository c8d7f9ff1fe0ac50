//! The parts of the protocol that stand alone: the failure detector, the queue of updates to gossip, the window of topology
//! events, the configuration, and the events that all of it ends in.

pub(crate) mod config;
pub(crate) mod event;
pub(crate) mod phi;
pub(crate) mod rumor_queue;
pub(crate) mod topology;
