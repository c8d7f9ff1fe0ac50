//! What a node derives and shows, against real servers and clients.

mod abuse;
mod acl;
mod http;
mod prometheus;
mod store;
mod web;
