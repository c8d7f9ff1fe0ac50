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
    if session.multi.is_some() {
        return Err(CommandError::fixed("ERR MULTI calls can not be nested"));
    }
    session.multi = Some(Multi::default());
    ctx.reply.ok();
    Ok(())
}

fn exec(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let expired = ctx.watched_key_expired();
    let watch_broken = ctx.session().watch_broken || expired;
    let Some(multi) = &mut ctx.session().multi else {
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
    ctx.session().multi = None;
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
    if ctx.session().multi.is_none() {
        return Err(CommandError::fixed("ERR DISCARD without MULTI"));
    }
    ctx.discard_transaction();
    ctx.reply.ok();
    Ok(())
}

fn watch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if ctx.session().multi.is_some() {
        return Err(CommandError::fixed("ERR WATCH inside MULTI is not allowed"));
    }
    let db = ctx.db;
    for key in args.iter().skip(1) {
        if ctx.session().watched.insert((db, key.into())) {
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
mod tests {
    use crate::testing::Lab;

    #[test]
    fn nothing_is_queued_behind_a_refused_command() {
        let mut lab = Lab::new();
        let other = lab.connect();
        let mut check_queued = |line: &str, count: &str| {
            lab.run(line);
            let list = lab.run_as(other, "CLIENT LIST");
            let own = list.lines().find(|line| line.contains("id=1 ")).unwrap();
            assert!(own.contains(&format!(" multi={count} ")), "{line}: {own}");
        };
        check_queued("MULTI", "0");
        check_queued("SET a 1", "1");
        check_queued("SET a", "1");
        check_queued("SET a 2", "1");
        check_queued("EXEC", "-1");
    }

    #[test]
    fn exec_answers_all_queued_commands() {
        Lab::new().check(&[
            ("MULTI", "+OK\r\n"),
            ("SET a 1", "+QUEUED\r\n"),
            ("GET a", "+QUEUED\r\n"),
            ("EXEC", "*2\r\n+OK\r\n$1\r\n1\r\n"),
            ("EXEC", "-ERR EXEC without MULTI\r\n"),
            ("DISCARD", "-ERR DISCARD without MULTI\r\n"),
        ]);
    }

    #[test]
    fn a_refused_command_dooms_the_transaction() {
        let mut lab = Lab::new();
        lab.check(&[
            ("MULTI", "+OK\r\n"),
            (
                "GET",
                "-ERR wrong number of arguments for 'get' command\r\n",
            ),
        ]);
        lab.check(&[
            ("SET a 1", "+QUEUED\r\n"),
            (
                "EXEC",
                "-EXECABORT Transaction discarded because of previous errors.\r\n",
            ),
            ("GET a", "$-1\r\n"),
        ]);
    }

    #[test]
    fn nesting_is_an_error_that_leaves_the_transaction_alive() {
        Lab::new().check(&[
            ("MULTI", "+OK\r\n"),
            ("MULTI", "-ERR MULTI calls can not be nested\r\n"),
            ("WATCH a", "-ERR WATCH inside MULTI is not allowed\r\n"),
            ("PING", "+QUEUED\r\n"),
            ("EXEC", "*1\r\n+PONG\r\n"),
        ]);
    }

    #[test]
    fn a_changed_watched_key_makes_exec_answer_null() {
        let mut lab = Lab::new();
        let other = lab.connect();
        lab.check(&[
            ("WATCH a b", "+OK\r\n"),
            ("MULTI", "+OK\r\n"),
            ("PING", "+QUEUED\r\n"),
        ]);
        lab.run_as(other, "SET b 1");
        lab.check(&[
            ("EXEC", "*-1\r\n"),
            ("MULTI", "+OK\r\n"),
            ("PING", "+QUEUED\r\n"),
            ("EXEC", "*1\r\n+PONG\r\n"),
        ]);
    }

    #[test]
    fn unwatch_and_discard_forget_changes() {
        let mut lab = Lab::new();
        let other = lab.connect();
        lab.check(&[("WATCH a", "+OK\r\n")]);
        lab.run_as(other, "SET a 1");
        lab.check(&[
            ("UNWATCH", "+OK\r\n"),
            ("MULTI", "+OK\r\n"),
            ("EXEC", "*0\r\n"),
            ("WATCH a", "+OK\r\n"),
        ]);
        lab.run_as(other, "SET a 2");
        lab.check(&[
            ("MULTI", "+OK\r\n"),
            ("DISCARD", "+OK\r\n"),
            ("MULTI", "+OK\r\n"),
            ("EXEC", "*0\r\n"),
        ]);
    }

    #[test]
    fn select_inside_a_transaction_counts_for_what_follows() {
        Lab::new().check(&[
            ("MULTI", "+OK\r\n"),
            ("SELECT 2", "+QUEUED\r\n"),
            ("SET a 1", "+QUEUED\r\n"),
            ("EXEC", "*2\r\n+OK\r\n+OK\r\n"),
            ("GET a", "$1\r\n1\r\n"),
            ("SELECT 0", "+OK\r\n"),
            ("GET a", "$-1\r\n"),
        ]);
    }

    #[test]
    fn records_of_a_transaction_are_bracketed() {
        let mut lab = Lab::new();
        lab.store.listen_to_writes(true);
        lab.check(&[
            ("MULTI", "+OK\r\n"),
            ("SET a 1", "+QUEUED\r\n"),
            ("SET b 2", "+QUEUED\r\n"),
            ("EXEC", "*2\r\n+OK\r\n+OK\r\n"),
        ]);
        assert_eq!(lab.writes(), ["MULTI", "SET a 1", "SET b 2", "EXEC"]);
    }
}
