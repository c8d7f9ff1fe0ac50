//! Whole nodes on loopback, in this process.

mod common;
mod lifecycle;
mod stores;
mod work;
