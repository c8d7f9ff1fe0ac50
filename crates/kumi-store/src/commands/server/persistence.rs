//! SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE, and SHUTDOWN, which may save.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::engine::command::{Command, category, flag};
use crate::engine::host::RewriteStart;
use crate::engine::store::ctx::Ctx;
use crate::engine::store::{Effect, Flow, ShutdownRequest, SnapshotPurpose};
use kumi_resp::Args;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "save",
        flags: flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING | flag::NO_MULTI,
        complexity: "O(N), N being the number of keys of all databases.",
        summary: "Writes all data to the RDB file. No client is served meanwhile.",
        run: save,
        ..Command::BASE
    },
    Command {
        name: "bgsave",
        arity: -1,
        flags: flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING,
        complexity: "O(1)",
        summary: "Writes all data of this moment to the RDB file, while clients are served.",
        usage: "[SCHEDULE]",
        run: bgsave,
        ..Command::BASE
    },
    Command {
        name: "bgrewriteaof",
        flags: flag::ADMIN | flag::NOSCRIPT | flag::NO_ASYNC_LOADING,
        summary: "Writes the append-only file anew, as short as it can be.",
        run: bgrewriteaof,
        ..Command::BASE
    },
    Command {
        name: "lastsave",
        flags: flag::LOADING | flag::STALE | flag::FAST,
        categories: category::ADMIN | category::DANGEROUS,
        summary: "Returns when data was last saved to the RDB file, or else when the server started.",
        tips: &["nondeterministic_output"],
        run: lastsave,
        ..Command::BASE
    },
    Command {
        name: "shutdown",
        arity: -1,
        flags: flag::ADMIN
            | flag::NOSCRIPT
            | flag::LOADING
            | flag::STALE
            | flag::NO_MULTI
            | flag::ALLOW_BUSY,
        complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
        summary: "Stops the server.",
        usage: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]",
        run: shutdown,
        ..Command::BASE
    },
];

const SAVE_RUNS: CommandError = CommandError::fixed("ERR Background save already in progress");

fn save(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    if ctx.snapshot_purpose() == Some(SnapshotPurpose::Save) {
        return Err(SAVE_RUNS);
    }
    write_file(ctx)?;
    ctx.reply.ok();
    Ok(())
}

/// Writes the RDB file. The reason of a failure is in the log, as in Redis; here the client gets it
/// too.
fn write_file(ctx: &mut Ctx<'_>) -> CommandResult {
    ctx.save().map_err(|error| {
        tracing::error!(%error, "Error saving DB on disk");
        CommandError::new(format!("ERR the RDB file cannot be written: {error}"))
    })
}

fn bgsave(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let schedule = match args.len() {
        1 => false,
        2 if args[1].eq_ignore_ascii_case(b"SCHEDULE") => true,
        _ => return Err(CommandError::SYNTAX),
    };
    match ctx.snapshot_purpose() {
        Some(SnapshotPurpose::Save) => return Err(SAVE_RUNS),
        running if running.is_some() || ctx.begins_rewrite() || ctx.in_exec => {
            if !schedule && !ctx.in_exec {
                return Err(CommandError::fixed(
                    "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.",
                ));
            }
            ctx.schedule_save();
            ctx.reply.simple("Background saving scheduled");
        }
        _ => {
            ctx.save_in_background().map_err(|error| {
                CommandError::new(format!("ERR the RDB file cannot be written: {error}"))
            })?;
            ctx.reply.simple("Background saving started");
        }
    }
    Ok(())
}

fn bgrewriteaof(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let parts = ctx.parts();
    let started = parts.host.rewrite_aof(parts.config);
    let started = started.map_err(|reason| CommandError::new(format!("ERR {reason}")))?;
    // It begins when the running snapshot has ended, or behind the transaction.
    let waits = ctx.snapshot_purpose().is_some() || ctx.in_exec;
    ctx.reply.simple(match started {
        RewriteStart::Started if !waits => "Background append only file rewriting started",
        _ => "Background append only file rewriting scheduled",
    });
    Ok(())
}

fn lastsave(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let last_unix_s = ctx.last_save();
    ctx.reply.integer(last_unix_s.cast_signed());
    Ok(())
}

fn shutdown(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut request = ShutdownRequest::default();
    let (mut save, mut nosave, mut abort) = (false, false, false);
    let mut options = OptionReader::new(args, 1);
    while let Some(word) = options.word() {
        match &*word {
            b"save" => save = true,
            b"nosave" => nosave = true,
            b"now" => request.now = true,
            b"force" => request.force = true,
            b"abort" => abort = true,
            _ => return Err(CommandError::SYNTAX),
        }
    }
    let besides_abort = save || nosave || request != ShutdownRequest::default();
    if save && nosave || abort && besides_abort {
        return Err(CommandError::SYNTAX);
    }
    if abort {
        if !ctx.host.abort_shutdown() {
            return Err(CommandError::fixed("ERR No shutdown in progress."));
        }
        tracing::info!("Shutdown manually aborted.");
        ctx.reply.ok();
        return Ok(());
    }
    if let Some(busy) = ctx.busy_error().filter(|_| !nosave) {
        return Err(busy);
    }
    tracing::info!("User requested shutdown...");
    let wanted = (save || nosave).then_some(save);
    let saved = ctx.save_at_end(wanted, request.force);
    request.saved = saved.as_ref().is_ok_and(|&saved| saved);
    if saved.is_err() && !request.force {
        return Err(CommandError::fixed(
            "ERR Errors trying to SHUTDOWN. Check logs.",
        ));
    }
    ctx.effect(Effect::Shutdown(request));
    if let Some(running) = ctx.scripts().running.as_mut() {
        running.abandoned = true;
    }
    // The connection ends without an answer, and what was sent behind the command never runs.
    ctx.session().ending.closing = true;
    ctx.flow = Flow::Close;
    Ok(())
}

#[cfg(test)]
mod tests;
