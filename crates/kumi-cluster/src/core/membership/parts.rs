//! The parts of a [`MembershipRuntime`](super::MembershipRuntime). Each keeps its fields to itself, and none imports what
//! coordinates them: the files beside this folder call the methods of the parts, in the order that the protocol asks for.
//!
//! - [`own`]: this node's record of itself, and its wall clock.
//! - [`claims`]: reports of later lives of this node.
//! - [`joining`]: the attempts to join.
//! - [`name_checks`]: whether the member that has a name is alive.
//! - [`addresses`]: nodes that are known by other means than a record: seeds, named members, former members.
//! - [`local_health`]: the clock, and how far this node trusts what it does not receive.
//! - [`timeouts`]: when the status of a member changes by time alone.
//! - [`detection`]: the watched members, their probes, and the heartbeats of this node.
//! - [`suspects`]: how long each suspicion has stood.
//! - [`dissemination`]: the updates to push, and when to push and compare.
//! - [`outbox`]: what the next outcome has: messages, events, counters.
//!
//! The table of members, the quarantines and the topology window are parts too; they are in the layers before this one.

pub(crate) mod addresses;
pub(crate) mod claims;
pub(crate) mod clock;
pub(crate) mod detection;
pub(crate) mod dissemination;
pub(crate) mod joining;
pub(crate) mod local_health;
pub(crate) mod name_checks;
pub(crate) mod outbox;
pub(crate) mod outcome;
pub(crate) mod own;
mod reports;
pub(crate) mod suspects;
pub(crate) mod timeouts;
