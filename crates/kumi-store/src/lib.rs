//! The Redis-compatible engine, without a socket, a clock or a thread of its own.

mod config;
mod extended;
mod glob;
mod keyspace;
mod number;
