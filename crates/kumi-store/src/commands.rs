//! The commands. Each family opens with its rows; the functions follow in the same order. To find a command, open its
//! family; to add one, write a row and a function.
//!
//! Imports everything else, and is imported by nothing: the rows are handed to the engine when a store is made.

pub(crate) mod docs;
mod help;
mod options;
mod parse;
mod server;
#[cfg(test)]
mod tests;
mod typed;

use crate::base::clock::Now;
use crate::base::seeds::Seeds;
use crate::config::Config;
use crate::engine::command::Command;
use crate::engine::store::Store;

/// Every row there is.
pub(crate) const FAMILIES: &[&[Command]] = &[
    server::connection::COMMANDS,
    server::acl::COMMANDS,
    server::client::COMMANDS,
    typed::strings::COMMANDS,
    typed::hashes::COMMANDS,
    typed::sets::COMMANDS,
    typed::sorted_sets::COMMANDS,
    typed::streams::COMMANDS,
    typed::geo::COMMANDS,
    typed::bitmaps::COMMANDS,
    typed::hyperloglog::COMMANDS,
    typed::lists::COMMANDS,
    typed::keys::COMMANDS,
    typed::dump::COMMANDS,
    typed::sort::COMMANDS,
    typed::expire::COMMANDS,
    typed::scan::COMMANDS,
    typed::object::COMMANDS,
    server::pubsub::COMMANDS,
    server::transactions::COMMANDS,
    server::scripting::COMMANDS,
    server::functions::COMMANDS,
    server::process::COMMANDS,
    server::persistence::COMMANDS,
    server::replication::COMMANDS,
    server::slowlog::COMMANDS,
    server::info::COMMANDS,
    server::config::COMMANDS,
    server::introspect::COMMANDS,
    server::latency::COMMANDS,
    server::memory::COMMANDS,
    server::modules::COMMANDS,
    server::debug::COMMANDS,
];

impl Store {
    /// An empty store that knows every command. All randomness (hash seed, ids, RANDOMKEY) comes from `seeds`.
    #[must_use]
    pub fn new(config: Config, seeds: Seeds, now: Now) -> Self {
        Self::with_families(FAMILIES, config, seeds, now)
    }
}
