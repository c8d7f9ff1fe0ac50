//! One node: a store, membership, workers, programs, status and HTTP, started and stopped together.
//!
//! A library without signals, printing or exits: the `kumi` binary is one user of it, a program that embeds a node is
//! another. [`Node`] is the entry point.
#![forbid(unsafe_code)]

pub mod config;
pub mod core;
pub mod driver;
pub mod http;
mod node;
pub mod trust;

pub use driver::programs;
pub use node::{Builder, Node, NodeError};
