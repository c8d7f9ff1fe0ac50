//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! Dispatch queues commands, after the checks that every command passes: a command that fails them
//! gets an error at once, and EXEC then fails with EXECABORT.

use crate::base::error::{CommandError, CommandResult};
use crate::base::ids::CommandId;
use crate::engine::acl::Denied;
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::session::Multi;
use crate::engine::store::ctx::Ctx;
use kumi_resp::{Args, OwnedArgs};

const FLAGS: u32 = flag::NOSCRIPT | flag::LOADING | flag::STALE | flag::FAST | flag::ALLOW_BUSY;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "multi",
        flags: FLAGS | flag::UNQUEUED,
        categories: category::TRANSACTION,
        group: Group::Transactions,
        since: "1.2.0",
        summary: "Starts a transaction: commands are queued until EXEC.",
        run: multi,
        ..Command::BASE
    },
    Command {
        name: "exec",
        flags: flag::RUNS_QUEUED
            | flag::NOSCRIPT
            | flag::LOADING
            | flag::STALE
            | flag::SKIP_SLOWLOG
            | flag::UNQUEUED
            | flag::ENDS_TRANSACTION
            | flag::CHANGES_INPUT,
        categories: category::TRANSACTION,
        group: Group::Transactions,
        since: "1.2.0",
        complexity: "Depends on commands in the transaction",
        summary: "Runs the queued commands with nothing in between.",
        run: exec,
        ..Command::BASE
    },
    Command {
        name: "discard",
        flags: FLAGS | flag::UNQUEUED | flag::ENDS_TRANSACTION,
        categories: category::TRANSACTION,
        group: Group::Transactions,
        since: "2.0.0",
        complexity: "O(N), when N is the number of queued commands",
        summary: "Drops the queued commands.",
        run: discard,
        ..Command::BASE
    },
    Command {
        name: "watch",
        arity: -2,
        flags: FLAGS | flag::UNQUEUED,
        categories: category::TRANSACTION,
        keys: &[KeySpec::rest(1, key::RO)],
        group: Group::Transactions,
        since: "2.2.0",
        complexity: "O(1) for every key.",
        summary: "Makes EXEC run only if none of the keys changed since.",
        usage: "key [key ...]",
        run: watch,
        ..Command::BASE
    },
    Command {
        name: "unwatch",
        flags: FLAGS,
        categories: category::TRANSACTION,
        group: Group::Transactions,
        since: "2.2.0",
        summary: "Forgets all watched keys.",
        run: unwatch,
        ..Command::BASE
    },
];

fn multi(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let session = ctx.session();
    if session.transaction.multi.is_some() {
        return Err(CommandError::fixed("ERR MULTI calls can not be nested"));
    }
    session.transaction.multi = Some(Multi::default());
    ctx.reply.ok();
    Ok(())
}

fn exec(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let expired = ctx.watched_key_expired();
    let watch_broken = ctx.session().transaction.watch_broken || expired;
    let Some(multi) = &mut ctx.session().transaction.multi else {
        return Err(CommandError::fixed("ERR EXEC without MULTI"));
    };
    // The session counts as being in its transaction until the last command has run.
    let (commands, refused) = (std::mem::take(&mut multi.commands), multi.refused);
    ctx.unwatch_all();
    let result = if refused {
        Err(CommandError::fixed(
            "EXECABORT Transaction discarded because of previous errors.",
        ))
    } else if watch_broken {
        ctx.reply.null_array();
        Ok(())
    } else {
        run_queued(ctx, &commands);
        Ok(())
    };
    ctx.session().transaction.multi = None;
    result
}

fn run_queued(ctx: &mut Ctx<'_>, commands: &[(CommandId, OwnedArgs)]) {
    ctx.in_exec = true;
    ctx.reply.array(commands.len());
    for (id, args) in commands {
        // The user's rules may have changed since the command was queued.
        match ctx.check_permission(*id, args.as_args()) {
            Ok(()) => ctx.call(*id, args.as_args()),
            Err((denied, _)) => refuse_queued(ctx, *id, denied),
        }
    }
    ctx.in_exec = false;
    ctx.mark_propagated();
}

fn refuse_queued(ctx: &mut Ctx<'_>, id: CommandId, denied: Denied) {
    let reason = match denied {
        Denied::Command => "no permission to execute the command or subcommand",
        Denied::Key(_) => "no permission to touch the specified keys",
        Denied::Channel(_) => {
            "no permission to access one of the channels used as arguments to the command"
        }
    };
    let error = CommandError::new(format!(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command is no longer allowed for the following reason: {reason}"
    ));
    ctx.telemetry().stats.count_rejected(Some(id), &error);
    ctx.reply.error(error.as_bytes());
}

fn discard(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    if ctx.session().transaction.multi.is_none() {
        return Err(CommandError::fixed("ERR DISCARD without MULTI"));
    }
    ctx.discard_transaction();
    ctx.reply.ok();
    Ok(())
}

fn watch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if ctx.session().transaction.multi.is_some() {
        return Err(CommandError::fixed("ERR WATCH inside MULTI is not allowed"));
    }
    let db = ctx.db;
    for key in args.iter().skip(1) {
        if ctx.session().transaction.watched.insert((db, key.into())) {
            ctx.session().count_name(key);
            let expired = ctx.keys().is_expired_in_place(key);
            ctx.watch_key(key, expired);
        }
    }
    ctx.reply.ok();
    Ok(())
}

fn unwatch(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.unwatch_all();
    ctx.reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests;
