//! SLOWLOG: the commands that took longest.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::{help, parse};
use crate::engine::command::{Command, flag};
use crate::engine::store::ctx::{Ctx, Parts};
use kumi_resp::Args;

/// Entries that SLOWLOG GET shows by default.
const SHOWN: usize = 10;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "slowlog",
    arity: -2,
    since: "2.2.12",
    complexity: "Depends on subcommand.",
    summary: "Inspects the log of slow commands.",
    subcommands: SUBCOMMANDS,
    ..Command::BASE
}];

const SUB: Command = Command {
    arity: 2,
    flags: flag::ADMIN | flag::LOADING | flag::STALE,
    since: "2.2.12",
    ..Command::BASE
};

const SUBCOMMANDS: &[Command] = &[
    Command {
        name: "get",
        arity: -2,
        complexity: "O(N) where N is the number of entries returned",
        summary: "Returns the newest entries, 10 by default, all of them for -1.",
        usage: "[count]",
        tips: &["request_policy:all_nodes", "nondeterministic_output"],
        run: get,
        ..SUB
    },
    Command {
        name: "len",
        summary: "Returns how many entries there are.",
        tips: &[
            "request_policy:all_nodes",
            "response_policy:agg_sum",
            "nondeterministic_output",
        ],
        run: len,
        ..SUB
    },
    Command {
        name: "reset",
        complexity: "O(N) where N is the number of entries in the slowlog",
        summary: "Empties the log.",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: reset,
        ..SUB
    },
    Command {
        name: "help",
        flags: flag::LOADING | flag::STALE,
        since: "6.2.0",
        summary: "Describes the subcommands.",
        run: help::from_rows,
        ..SUB
    },
];

fn get(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 3 {
        return Err(help::wrong_subcommand_arity(args));
    }
    let wanted = match args.get(2).map(parse::integer) {
        None => SHOWN,
        Some(Ok(-1)) => usize::MAX,
        Some(Ok(count)) if count >= 0 => usize::try_from(count).unwrap_or(usize::MAX),
        Some(_) => {
            return Err(CommandError::fixed(
                "ERR count should be greater than or equal to -1",
            ));
        }
    };
    let Parts {
        telemetry, reply, ..
    } = ctx.parts();
    let slowlog = &telemetry.slowlog;
    reply.array(wanted.min(slowlog.len()));
    for entry in slowlog.iter().take(wanted) {
        reply.array(6);
        reply.integer(entry.id.cast_signed());
        reply.integer(entry.unix_s.cast_signed());
        reply.integer(entry.duration_us.cast_signed());
        reply.array(entry.args.len());
        for arg in &entry.args {
            reply.bulk(arg);
        }
        reply.bulk(&entry.addr);
        reply.bulk(&entry.name);
    }
    Ok(())
}

fn len(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let entries = ctx.telemetry().slowlog.len();
    ctx.reply.count(entries);
    Ok(())
}

fn reset(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.telemetry().slowlog.reset();
    ctx.reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests;
