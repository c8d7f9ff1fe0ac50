//! End to end, through the built `kumi`: clients that nobody here wrote talk to a real node.

mod node;
mod redis_cli;
mod rust_client;
