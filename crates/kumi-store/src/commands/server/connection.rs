//! The connection itself: PING, ECHO, HELLO, AUTH, SELECT, QUIT, RESET.
//!
//! Users are in `engine/acl/`; `requirepass` is the default user's password.

use super::client::is_printable_name;
use crate::base::error::{CommandError, CommandResult};
use crate::base::ids::UserId;
use crate::base::version::REDIS_VERSION;
use crate::commands::options::OptionReader;
use crate::commands::parse;
use crate::engine::acl::Reason;
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::session::ReplyMode;
use crate::engine::store::Flow;
use crate::engine::store::ctx::Ctx;
use kumi_resp::{Args, Protocol};

const BEFORE_AUTH: u32 =
    flag::NOSCRIPT | flag::LOADING | flag::STALE | flag::FAST | flag::NO_AUTH | flag::ALLOW_BUSY;

/// QUIT and RESET work in every state of a connection.
const LEAVING: u32 = BEFORE_AUTH | flag::UNQUEUED | flag::ENDS_TRANSACTION | flag::WHILE_SUBSCRIBED;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "ping",
        arity: -1,
        flags: flag::REFUSED_WITH_WRITES | flag::FAST | flag::WHILE_SUBSCRIBED,
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
        name: "echo",
        arity: 2,
        flags: flag::LOADING | flag::STALE | flag::FAST,
        categories: category::CONNECTION,
        group: Group::Connection,
        since: "1.0.0",
        summary: "Returns the given message.",
        usage: "message",
        run: echo,
        ..Command::BASE
    },
    Command {
        name: "hello",
        arity: -1,
        hides: Some(follows_auth),
        flags: BEFORE_AUTH | flag::CHANGES_INPUT,
        categories: category::CONNECTION,
        group: Group::Connection,
        since: "6.0.0",
        summary: "Chooses the protocol version, and says who the server is.",
        usage: "[protover [AUTH username password] [SETNAME clientname]]",
        run: hello,
        ..Command::BASE
    },
    Command {
        name: "auth",
        arity: -2,
        hides: Some(|_, position| position > 0),
        flags: BEFORE_AUTH | flag::CHANGES_INPUT,
        categories: category::CONNECTION,
        group: Group::Connection,
        since: "1.0.0",
        complexity: "O(N) where N is the number of passwords defined for the user",
        summary: "Authenticates the connection.",
        usage: "[username] password",
        run: auth,
        ..Command::BASE
    },
    Command {
        name: "select",
        arity: 2,
        flags: flag::LOADING | flag::STALE | flag::FAST,
        categories: category::CONNECTION,
        group: Group::Connection,
        since: "1.0.0",
        summary: "Chooses the database of the connection.",
        usage: "index",
        run: select,
        ..Command::BASE
    },
    Command {
        name: "quit",
        arity: -1,
        flags: LEAVING,
        categories: category::CONNECTION,
        group: Group::Connection,
        since: "1.0.0",
        summary: "Closes the connection after answering.",
        deprecated: Some(("7.2.0", "closing the connection")),
        run: quit,
        ..Command::BASE
    },
    Command {
        name: "reset",
        arity: 1,
        flags: LEAVING | flag::CHANGES_INPUT,
        categories: category::CONNECTION,
        group: Group::Connection,
        since: "6.2.0",
        summary: "Brings the connection back to the state of a new one.",
        run: reset,
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

fn echo(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.reply.bulk(&args[1]);
    Ok(())
}

fn hello(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let protocol = match args.get(1) {
        None => None,
        Some(version) => Some(match parse::integer(version) {
            Ok(2) => Protocol::Resp2,
            Ok(3) => Protocol::Resp3,
            Ok(_) => return Err(CommandError::fixed("NOPROTO unsupported protocol version")),
            Err(_) => {
                return Err(CommandError::fixed(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
        }),
    };
    let mut credentials = None;
    let mut name = None;
    let mut options = OptionReader::new(args, 2);
    while let Some(word) = options.word() {
        match (&*word, options.left()) {
            (b"auth", 2..) => credentials = Some(options.values()?),
            (b"setname", 1..) => {
                let given = options.value()?;
                if !is_printable_name(given) {
                    return Err(CommandError::fixed(
                        "ERR Client names cannot contain spaces, newlines or special characters.",
                    ));
                }
                name = Some(given);
            }
            _ => {
                return Err(CommandError::new(
                    [b"ERR Syntax error in HELLO option '", word.sent, b"'"].concat(),
                ));
            }
        }
    }
    if let Some([user, password]) = credentials {
        authenticate(ctx, user, password)?;
    }
    if !ctx.is_trusted() {
        return Err(CommandError::fixed(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        ctx.session().identity.name = name.to_vec();
    }
    if let Some(protocol) = protocol {
        ctx.session().protocol = protocol;
        ctx.reply.set_protocol(protocol);
    }
    greet(ctx);
    Ok(())
}

fn greet(ctx: &mut Ctx<'_>) {
    let id = ctx.session().id;
    let version = if ctx.reply.is_resp3() { 3 } else { 2 };
    let reply = &mut ctx.reply;
    reply.map(7);
    reply.bulk("server");
    reply.bulk("redis");
    reply.bulk("version");
    reply.bulk(REDIS_VERSION);
    reply.bulk("proto");
    reply.integer(version);
    reply.bulk("id");
    reply.integer(id.cast_signed());
    reply.bulk("mode");
    reply.bulk("standalone");
    reply.bulk("role");
    reply.bulk("master");
    reply.bulk("modules");
    reply.array(0);
}

/// Whether an argument of HELLO is the name or the password behind AUTH.
fn follows_auth(args: Args<'_>, position: usize) -> bool {
    let mut before = (1..=2).filter_map(|back| args.get(position.checked_sub(back)?));
    before.any(|word| word.eq_ignore_ascii_case(b"AUTH"))
}

fn auth(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    match args.len() {
        2 => {
            if ctx.acl().default_is_open() && !ctx.session().login.named_only {
                return Err(CommandError::fixed(
                    "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?",
                ));
            }
            authenticate(ctx, b"default", &args[1])?;
        }
        3 => authenticate(ctx, &args[1], &args[2])?,
        _ => return Err(CommandError::SYNTAX),
    }
    ctx.reply.ok();
    Ok(())
}

fn authenticate(ctx: &mut Ctx<'_>, user: &[u8], password: &[u8]) -> CommandResult {
    let named_only = ctx.session().login.named_only;
    let id = ctx.acl().authenticate(user, password);
    if let Some(id) = id.filter(|&id| !(named_only && id == UserId::DEFAULT)) {
        ctx.become_user(id);
        return Ok(());
    }
    ctx.log_denial(Reason::Auth, b"AUTH".to_vec(), user.to_vec());
    Err(CommandError::fixed(
        "WRONGPASS invalid username-password pair or user is disabled.",
    ))
}

fn select(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let index = parse::int32(&args[1])?;
    let db = usize::try_from(index)
        .ok()
        .filter(|&db| db < ctx.databases());
    let db = db.ok_or(CommandError::DB_OUT_OF_RANGE)?;
    ctx.session().db = db;
    ctx.db = db;
    ctx.reply.ok();
    Ok(())
}

fn quit(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.reply.ok();
    let session = ctx.session();
    session.ending.closing = true;
    session.ending.leaving.get_or_insert("QUIT");
    ctx.flow = Flow::Close;
    Ok(())
}

fn reset(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let key = ctx.session;
    ctx.discard_transaction();
    ctx.unsubscribe_everything();
    ctx.stop_tracking();
    ctx.clients().monitors.retain(|&other| other != key);
    let session = ctx.session();
    session.modes.monitor = false;
    session.modes.no_evict = false;
    session.modes.no_touch = false;
    session.modes.reply_mode = ReplyMode::On;
    session.identity.name.clear();
    session.db = 0;
    session.protocol = Protocol::Resp2;
    ctx.become_default();
    ctx.db = 0;
    ctx.reply.set_protocol(Protocol::Resp2);
    ctx.reply.keep();
    ctx.reply.simple("RESET");
    Ok(())
}

#[cfg(test)]
mod tests;
