//! CONFIG: reading and changing directives while the server runs.
//!
//! `config/` defines the directives and their values. This file applies a change, all of it or
//! nothing.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::help;
use crate::config::{Config, ConfigError, Origin};
use crate::engine::command::{Command, flag};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "config",
    arity: -2,
    since: "2.0.0",
    complexity: "Depends on subcommand.",
    summary: "Reads and changes the configuration.",
    subcommands: SUBCOMMANDS,
    ..Command::BASE
}];

const SUB: Command = Command {
    arity: 2,
    flags: flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE,
    since: "2.0.0",
    ..Command::BASE
};

const SUBCOMMANDS: &[Command] = &[
    Command {
        name: "get",
        arity: -3,
        complexity: "O(N) when N is the number of configuration parameters provided",
        summary: "Returns the directives that match any of the glob patterns, with their values.",
        usage: "parameter [parameter ...]",
        run: get,
        ..SUB
    },
    Command {
        name: "set",
        arity: -4,
        hides: Some(is_sensitive_value),
        complexity: "O(N) when N is the number of configuration parameters provided",
        summary: "Sets directives, all of them or none.",
        flags: SUB.flags | flag::CHANGES_INPUT,
        usage: "parameter value [parameter value ...]",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: set,
        ..SUB
    },
    Command {
        name: "resetstat",
        summary: "Sets the statistics of INFO back to zero.",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: resetstat,
        ..SUB
    },
    Command {
        name: "rewrite",
        since: "2.8.0",
        summary: "Writes the configuration in force to the file it came from.",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: rewrite,
        ..SUB
    },
    Command {
        name: "help",
        flags: flag::LOADING | flag::STALE,
        since: "5.0.0",
        summary: "Describes the subcommands.",
        run: help::from_rows,
        ..SUB
    },
];

fn get(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let found = ctx.config().get(args.iter().skip(2));
    ctx.reply.map(found.len());
    for (name, value) in &found {
        ctx.reply.bulk(name);
        ctx.reply.bulk(value);
    }
    Ok(())
}

/// Directives that say where the data is that is being loaded.
const NOT_WHILE_LOADING: [&[u8]; 2] = [b"appendonly", b"dir"];

/// Whether an argument is the value of a directive that holds a secret.
fn is_sensitive_value(args: Args<'_>, position: usize) -> bool {
    position > 2 && position % 2 == 1 && args.get(position - 1).is_some_and(Config::is_sensitive)
}

fn set(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let words: Vec<&[u8]> = args.iter().skip(2).collect();
    let (pairs, []) = words.as_chunks::<2>() else {
        return Err(CommandError::SYNTAX);
    };
    let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|&[name, value]| (name, value)).collect();
    let local = ctx.session().identity.peer.is_local();
    let waits = |(name, _): &(&[u8], &[u8])| {
        let mut names = NOT_WHILE_LOADING.iter();
        names.any(|known| name.eq_ignore_ascii_case(known))
    };
    if ctx.is_loading() && pairs.iter().any(waits) {
        return Err(CommandError::LOADING);
    }
    let refused = |error: ConfigError| match error {
        ConfigError::Unknown(shown) => unknown_option(&pairs, &shown),
        error => CommandError::new(format!("ERR {error}")),
    };
    ctx.change_config(|config, host| {
        // A name relative to the working directory would mean another place once that is changed.
        let is_dir = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(b"dir");
        let directory = pairs.iter().copied().find(is_dir);
        let directory = directory.map(|(_, path)| host.absolute(path));
        let mut pairs = pairs.clone();
        for pair in pairs.iter_mut().filter(|pair| is_dir(pair)) {
            pair.1 = directory.as_deref().unwrap_or(pair.1);
        }
        let changes = config
            .set_many(&pairs, Origin::Client { local })
            .map_err(refused)?;
        let names: Vec<&'static str> = changes.names().collect();
        host.apply_config(config, &names).map_err(|error| {
            config.revert(changes);
            refused(ConfigError::failed(&error.directive, error.message))
        })
    })?;
    ctx.reply.ok();
    Ok(())
}

/// The error about a name that is no directive's, with the bytes that were sent.
fn unknown_option(pairs: &[(&[u8], &[u8])], shown: &str) -> CommandError {
    let mut names = pairs.iter().map(|(name, _)| *name);
    let name = names.find(|name| String::from_utf8_lossy(name) == shown);
    let beginning: &[u8] = b"ERR Unknown option or number of arguments for CONFIG SET - '";
    CommandError::new([beginning, name.unwrap_or(shown.as_bytes()), b"'"].concat())
}

fn resetstat(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let rejected_connections = ctx.host.facts().rejected_connections;
    ctx.telemetry().stats.reset(rejected_connections);
    ctx.reset_keyspace_stats();
    ctx.reset_eviction_stats();
    ctx.reply.ok();
    Ok(())
}

pub(super) fn rewrite(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.note_users_for_rewrite();
    let parts = ctx.parts();
    let written = parts.host.rewrite_config(parts.config);
    written.map_err(|text| CommandError::new(format!("ERR {text}")))?;
    ctx.reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests;
