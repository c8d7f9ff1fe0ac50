//! The running server: its version, its clock, and MONITOR.

use crate::base::error::{CommandError, CommandResult};
use crate::base::version::REDIS_VERSION;
use crate::commands::parse;
use crate::engine::command::{Command, flag};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const ADMIN: u32 = flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "lolwut",
        arity: -1,
        flags: flag::READONLY | flag::FAST,
        since: "5.0.0",
        complexity: "",
        summary: "Shows the version.",
        usage: "[VERSION version]",
        run: lolwut,
        ..Command::BASE
    },
    Command {
        name: "time",
        flags: flag::LOADING | flag::STALE | flag::FAST,
        since: "2.6.0",
        summary: "Returns the server's clock: Unix seconds, and microseconds of the second.",
        tips: &["nondeterministic_output"],
        run: time,
        ..Command::BASE
    },
    Command {
        name: "monitor",
        flags: ADMIN,
        complexity: "",
        summary: "Shows every command of every client as it runs.",
        run: monitor,
        ..Command::BASE
    },
];

/// The art of versions 5 and 6 is not drawn; every version shows the text that 7 shows.
fn lolwut(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if let (Some(option), Some(version)) = (args.get(1), args.get(2))
        && option.eq_ignore_ascii_case(b"version")
    {
        parse::integer(version)?;
    }
    let text = format!("Redis ver. {}\n", REDIS_VERSION);
    ctx.reply.verbatim_text(text.as_bytes());
    Ok(())
}

fn time(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let us = ctx.now.unix_us.cast_signed();
    ctx.reply.array(2);
    ctx.reply.bulk_integer(us / 1_000_000);
    ctx.reply.bulk_integer(us % 1_000_000);
    Ok(())
}

fn monitor(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    if ctx.in_exec {
        return Err(CommandError::fixed(
            "ERR MONITOR isn't allowed for DENY BLOCKING client",
        ));
    }
    let key = ctx.session;
    // A second MONITOR gets no answer at all, as the first one's feed already runs.
    if !std::mem::replace(&mut ctx.session().modes.monitor, true) {
        ctx.clients().monitors.push(key);
        ctx.reply.ok();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
