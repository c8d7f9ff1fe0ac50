//! The workshop's tools: the generator of skeletons, the staged wire tests, and what the `mini` command does.

pub mod bytes;
pub mod files;
pub mod generate;
pub mod hints;
pub mod lang;
pub mod mini;
pub mod runner;
pub mod server;
pub mod state;
pub mod steps;
pub mod wire;
