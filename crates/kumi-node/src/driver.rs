//! The drivers of a node: they run the cores, with processes, sockets, timers and tasks.
//!
//! ```text
//! state_dir, keys, certificate     what the node keeps, proves itself with and shows
//! store                            its own store
//! membership, lives, member_times  its place among the members
//! route, store_client, store_link, store_probe
//!                                  which store it uses, and whether that replies
//! queues, releaser                 tasks of departed nodes are given back
//! work, serve, run_program, cron   what it runs; programs starts processes
//! status, channel                  what it tells, and what it is told to do
//! tasks                            which of its parts have panicked
//! client                           asks and tells nodes, from a command or a program
//! ```

pub(crate) mod certificate;
pub mod channel;
pub mod client;
pub(crate) mod cron;
pub(crate) mod keys;
pub(crate) mod lives;
pub(crate) mod member_times;
pub(crate) mod membership;
pub mod programs;
pub(crate) mod queues;
pub mod releaser;
pub(crate) mod route;
pub(crate) mod run_program;
pub(crate) mod serve;
pub mod state_dir;
pub(crate) mod status;
pub(crate) mod store;
pub(crate) mod store_client;
pub(crate) mod store_link;
pub(crate) mod store_probe;
pub(crate) mod tasks;
pub(crate) mod work;

pub use certificate::CertificateError;
pub use keys::KeyError;
pub use membership::JoinError;
pub use route::{app_url, app_url_at};
pub use store::{StoreError, apply_directives};
