//! Whole nodes on loopback, in this process.

mod certificates;
mod client;
mod common;
mod lifecycle;
mod outside;
mod reload;
mod stores;
mod work;
