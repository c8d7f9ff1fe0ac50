//! `cluster.admin`: what operators ask a node, as JSON over a Unison channel.
//!
//! A peer that can open the channel is part of the cluster. With a shared key that is enough: its holders may do everything
//! here. With certificates, a peer also needs the operator role in its own (the URI `kumi-role:operator`).
//!
//! ```text
//!   members                                    -> ClusterView
//!   leave                                      -> {}      the node leaves, and ends
//!   quarantine { authority, reason, for_ms }   -> {}
//!   release    { authority }                   -> {}
//!   metadata   { roles, services }             -> {}      replaces the metadata of the node
//!   watch                                      -> ClusterView, then events named `event`
//! ```

mod client;
mod server;
mod types;

pub use client::{AdminClient, AdminError, AdminWatch};
pub(super) use server::{Admin, AdminSlot, register};
pub use types::{AdminEvent, AdminEvents, ClusterView, MemberRow, QuarantineRow};

/// The channel's name.
pub const ADMIN_CHANNEL: &str = "cluster.admin";

/// The methods, and the event.
mod methods {
    pub(super) const MEMBERS: &str = "members";
    pub(super) const LEAVE: &str = "leave";
    pub(super) const QUARANTINE: &str = "quarantine";
    pub(super) const RELEASE: &str = "release";
    pub(super) const METADATA: &str = "metadata";
    pub(super) const WATCH: &str = "watch";
    pub(super) const EVENT: &str = "event";
}

/// The codes of refusals, as they travel.
mod codes {
    pub(super) const UNKNOWN_MEMBER: &str = "unknown-member";
    pub(super) const REFUSED: &str = "refused";
    pub(super) const NOT_OPERATOR: &str = "not-operator";
    pub(super) const TOO_MANY_WATCHERS: &str = "too-many-watchers";
    pub(super) const ENDING: &str = "ending";
}
