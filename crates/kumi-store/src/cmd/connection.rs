//! The connection itself: PING, ECHO, SELECT, QUIT and friends.

use crate::command::{Command, Group, category, flag};
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use crate::store::Flow;
use kumi_resp::Args;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "ping",
        arity: -1,
        flags: flag::FAST,
        categories: category::CONNECTION,
        group: Group::Connection,
        since: "1.0.0",
        summary: "Answers PONG, or the given message.",
        usage: "[message]",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        run: ping,
        ..Command::BASE
    },
    Command {
        name: "quit",
        arity: -1,
        flags: flag::NOSCRIPT
            | flag::LOADING
            | flag::STALE
            | flag::FAST
            | flag::NO_AUTH
            | flag::ALLOW_BUSY,
        categories: category::CONNECTION,
        group: Group::Connection,
        since: "1.0.0",
        summary: "Closes the connection after answering.",
        run: quit,
        ..Command::BASE
    },
];

fn ping(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 2 {
        return Err(CommandError::arity("ping"));
    }
    if ctx.session().in_subscribe_mode() {
        ctx.reply.array(2);
        ctx.reply.bulk("pong");
        ctx.reply.bulk(args.get(1).unwrap_or_default());
    } else if let Some(message) = args.get(1) {
        ctx.reply.bulk(message);
    } else {
        ctx.reply.simple("PONG");
    }
    Ok(())
}

fn quit(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.reply.ok();
    ctx.session().closing = true;
    ctx.flow = Flow::Close;
    Ok(())
}
