//! MODULE: there are no modules, and none can be loaded.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::help;
use crate::engine::command::{Command, flag};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "module",
    arity: -2,
    since: "4.0.0",
    complexity: "Depends on subcommand.",
    summary: "Lists modules, of which there are none.",
    subcommands: SUBCOMMANDS,
    ..Command::BASE
}];

const SUB: Command = Command {
    arity: -3,
    flags: flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING,
    since: "4.0.0",
    run: refuse,
    ..Command::BASE
};

const SUBCOMMANDS: &[Command] = &[
    Command {
        name: "list",
        arity: 2,
        flags: flag::ADMIN | flag::NOSCRIPT,
        complexity: "O(N) where N is the number of loaded modules.",
        summary: "Returns the loaded modules: an empty list.",
        tips: &["nondeterministic_output_order"],
        run: list,
        ..SUB
    },
    Command {
        name: "load",
        summary: "Answers with an error: modules cannot be loaded.",
        usage: "path [arg [arg ...]]",
        ..SUB
    },
    Command {
        name: "loadex",
        since: "7.0.0",
        summary: "Answers with an error: modules cannot be loaded.",
        usage: "path [CONFIG name value [CONFIG name value ...]] [ARGS arg [arg ...]]",
        ..SUB
    },
    Command {
        name: "unload",
        arity: 3,
        summary: "Answers with an error: no module is loaded.",
        usage: "name",
        ..SUB
    },
    Command {
        name: "help",
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        since: "5.0.0",
        summary: "Describes the subcommands.",
        run: help::from_rows,
        ..SUB
    },
];

fn list(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.reply.array(0);
    Ok(())
}

fn refuse(_: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    Err(CommandError::fixed("ERR Modules are not supported."))
}

#[cfg(test)]
mod tests;
