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
mod tests {
    use crate::testing::Lab;

    #[test]
    fn slow_commands_are_logged_newest_first() {
        let mut lab = Lab::new();
        lab.check(&[
            ("SLOWLOG GET", "*0\r\n"),
            ("CONFIG SET slowlog-log-slower-than 0", "+OK\r\n"),
            ("CLIENT SETNAME me", "+OK\r\n"),
            ("PING", "+PONG\r\n"),
            (
                "SLOWLOG GET 2",
                "*2\r\n*6\r\n:2\r\n:1700000000\r\n:0\r\n*1\r\n$4\r\nPING\r\n$0\r\n\r\n$2\r\nme\r\n\
                 *6\r\n:1\r\n:1700000000\r\n:0\r\n*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n$0\r\n\r\n$2\r\nme\r\n",
            ),
            ("SLOWLOG LEN", ":4\r\n"),
            ("CONFIG SET slowlog-max-len 2", "+OK\r\n"),
            ("SLOWLOG LEN", ":2\r\n"),
            ("CONFIG SET slowlog-log-slower-than -1", "+OK\r\n"),
            ("SLOWLOG RESET", "+OK\r\n"),
            ("SLOWLOG LEN", ":0\r\n"),
        ]);
    }

    #[test]
    fn only_commands_above_the_threshold_are_logged() {
        let mut lab = Lab::new();
        lab.allow_debug();
        lab.check(&[
            ("CONFIG SET slowlog-log-slower-than 50000", "+OK\r\n"),
            ("DEBUG SLEEP 0.049", "+OK\r\n"),
            ("SLOWLOG LEN", ":0\r\n"),
            ("DEBUG SLEEP 0.05", "+OK\r\n"),
            ("SLOWLOG LEN", ":1\r\n"),
        ]);
        assert!(lab.run("SLOWLOG GET").contains(":50000\r\n"));
    }

    #[test]
    fn reset_is_queued_and_kept_from_subscribers_although_it_is_named_like_another_command() {
        let mut lab = Lab::new();
        lab.check(&[
            ("MULTI", "+OK\r\n"),
            ("SLOWLOG RESET", "+QUEUED\r\n"),
            ("LATENCY RESET", "+QUEUED\r\n"),
            ("EXEC", "*2\r\n+OK\r\n:0\r\n"),
        ]);
        lab.run("SUBSCRIBE a");
        let refused = lab.run("SLOWLOG RESET");
        assert!(
            refused.starts_with("-ERR Can't execute 'slowlog|reset'"),
            "{refused}"
        );
    }

    #[test]
    fn wrong_counts_are_refused() {
        let refused = "-ERR count should be greater than or equal to -1\r\n";
        Lab::new().check(&[
            ("SLOWLOG GET -1", "*0\r\n"),
            ("SLOWLOG GET -2", refused),
            ("SLOWLOG GET x", refused),
            (
                "SLOWLOG GET 1 2",
                "-ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.\r\n",
            ),
            (
                "SLOWLOG LEN x",
                "-ERR wrong number of arguments for 'slowlog|len' command\r\n",
            ),
            (
                "SLOWLOG",
                "-ERR wrong number of arguments for 'slowlog' command\r\n",
            ),
        ]);
    }

    #[test]
    fn long_requests_are_clipped() {
        let mut lab = Lab::new();
        lab.run("CONFIG SET slowlog-log-slower-than 0");
        let long = "x".repeat(130);
        lab.run(&format!("WATCH {long} {}", "k ".repeat(40)));
        let shown = lab.run("SLOWLOG GET 1");
        assert!(shown.contains("... (2 more bytes)"), "{shown}");
        assert!(shown.contains("... (11 more arguments)"), "{shown}");
    }
}
