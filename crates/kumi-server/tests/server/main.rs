//! A running kumi-server, seen from outside: one module per subject.
//!
//! They are one program because each program of tests is linked with the whole server: one is built sooner than fifteen.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod acl;
mod aof;
mod aof_failures;
mod aof_policies;
mod as_redis;
mod blocking;
mod common;
mod crash;
mod embedded;
mod lifecycle;
mod live;
mod old_files;
mod scripts;
mod snapshots;
mod start;
mod tls;
mod traffic;
