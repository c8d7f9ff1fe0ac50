//! What is built from the outcomes and events of a [`MembershipRuntime`](crate::core::MembershipRuntime): the applied
//! topology, a log of events for subscribers, current identities, and the names of the design document.

pub mod document;
pub(crate) mod event_stream;
pub(crate) mod identity_table;
pub(crate) mod projection;
