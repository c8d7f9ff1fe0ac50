//! What a node derives and shows, against real servers and clients.

mod acl;
mod store;
