//! The commands, a file per family. Each file opens with its rows; the functions follow in the
//! same order. To find a command, open its family; to add one, write a row and a function.

mod acl;
mod bitmaps;
mod client;
mod config;
mod connection;
mod debug;
pub(crate) mod dump;
mod elements;
mod expire;
#[cfg(test)]
mod extremes;
mod functions;
mod geo;
mod hashes;
mod help;
mod hyperloglog;
mod info;
mod introspect;
mod keys;
mod latency;
#[cfg(test)]
mod limit_tests;
mod lists;
mod memory;
mod modules;
mod object;
mod parse;
mod pubsub;
mod scan;
mod scripting;
mod server;
mod sets;
mod slowlog;
mod sort;
mod sorted_sets;
mod streams;
mod strings;
mod transactions;
#[cfg(test)]
mod transcript;

#[cfg(test)]
pub(crate) use dump::payload;

use crate::command::Command;

/// Every row there is.
pub(crate) const FAMILIES: &[&[Command]] = &[
    connection::COMMANDS,
    acl::COMMANDS,
    client::COMMANDS,
    strings::COMMANDS,
    hashes::COMMANDS,
    sets::COMMANDS,
    sorted_sets::COMMANDS,
    streams::COMMANDS,
    geo::COMMANDS,
    bitmaps::COMMANDS,
    hyperloglog::COMMANDS,
    lists::COMMANDS,
    keys::COMMANDS,
    dump::COMMANDS,
    sort::COMMANDS,
    expire::COMMANDS,
    scan::COMMANDS,
    object::COMMANDS,
    pubsub::COMMANDS,
    transactions::COMMANDS,
    scripting::COMMANDS,
    functions::COMMANDS,
    server::COMMANDS,
    slowlog::COMMANDS,
    info::COMMANDS,
    config::COMMANDS,
    introspect::COMMANDS,
    latency::COMMANDS,
    memory::COMMANDS,
    modules::COMMANDS,
    debug::COMMANDS,
];
