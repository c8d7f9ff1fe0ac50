//! CLIENT: what the server knows of its clients, and what it does with them.

mod tracking;

use crate::base::error::{CommandError, CommandResult};
use crate::base::ids::UserId;
use crate::base::ids::{Class, SessionKey};
use crate::commands::options::OptionReader;
use crate::commands::{help, parse};
use crate::engine::command::{Command, CommandIndex, Group, category, flag};
use crate::engine::output::Outputs;
use crate::engine::session::{BlockedOn, CacheTracking, ReplyMode, Session};
use crate::engine::store::ctx::{Ctx, Parts};
use crate::engine::store::{Flow, Pause};
use kumi_resp::{Args, Protocol};
use std::collections::BTreeMap;

const OWN: u32 = flag::NOSCRIPT | flag::LOADING | flag::STALE;
const ADMIN: u32 = flag::ADMIN | OWN;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "client",
    arity: -2,
    flags: flag::KEEPS_CACHING,
    group: Group::Connection,
    since: "2.4.0",
    complexity: "Depends on subcommand.",
    summary: "Inspects and controls client connections.",
    subcommands: SUBCOMMANDS,
    ..Command::BASE
}];

/// What all subcommands have in common.
const SUB: Command = Command {
    arity: 2,
    flags: OWN,
    categories: category::CONNECTION,
    group: Group::Connection,
    ..Command::BASE
};

const SUBCOMMANDS: &[Command] = &[
    Command {
        name: "id",
        since: "5.0.0",
        summary: "Returns the id of this connection.",
        run: id,
        ..SUB
    },
    Command {
        name: "info",
        since: "6.2.0",
        summary: "Describes this connection, as CLIENT LIST would.",
        tips: &["nondeterministic_output"],
        run: info,
        ..SUB
    },
    Command {
        name: "list",
        arity: -2,
        flags: ADMIN,
        since: "2.4.0",
        complexity: "O(N) where N is the number of client connections",
        summary: "Describes all connections, a line each.",
        usage: "[TYPE <NORMAL|MASTER|REPLICA|PUBSUB>] [ID client-id [client-id ...]]",
        tips: &["nondeterministic_output"],
        run: list,
        ..SUB
    },
    Command {
        name: "kill",
        arity: -3,
        flags: ADMIN,
        since: "2.4.0",
        complexity: "O(N) where N is the number of client connections",
        summary: "Closes connections by address, id, type or user.",
        usage: "<ip:port | [ID client-id] [TYPE <NORMAL|MASTER|REPLICA|PUBSUB>] [USER username] [ADDR ip:port] [LADDR ip:port] [SKIPME <YES|NO>]>",
        run: kill,
        ..SUB
    },
    Command {
        name: "setname",
        arity: 3,
        since: "2.6.9",
        summary: "Names this connection.",
        usage: "connection-name",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: setname,
        ..SUB
    },
    Command {
        name: "getname",
        since: "2.6.9",
        summary: "Returns the name of this connection.",
        run: getname,
        ..SUB
    },
    Command {
        name: "setinfo",
        arity: 4,
        since: "7.2.0",
        summary: "Tells which library this client uses.",
        usage: "<LIB-NAME libname | LIB-VER libver>",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: setinfo,
        ..SUB
    },
    Command {
        name: "no-evict",
        arity: 3,
        flags: ADMIN,
        since: "7.0.0",
        summary: "Exempts this connection from client eviction.",
        usage: "<ON | OFF>",
        run: no_evict,
        ..SUB
    },
    Command {
        name: "no-touch",
        arity: 3,
        since: "7.2.0",
        summary: "Keeps this connection's reads from renewing the keys' idle time.",
        usage: "<ON | OFF>",
        run: no_touch,
        ..SUB
    },
    Command {
        name: "pause",
        arity: -3,
        flags: ADMIN,
        since: "2.9.50",
        summary: "Holds back all commands, or all writes, for a while.",
        usage: "timeout [WRITE | ALL]",
        run: pause,
        ..SUB
    },
    Command {
        name: "unpause",
        flags: ADMIN,
        since: "6.2.0",
        complexity: "O(N) Where N is the number of paused clients",
        summary: "Ends a pause before its time.",
        run: unpause,
        ..SUB
    },
    Command {
        name: "reply",
        arity: 3,
        since: "3.2.0",
        summary: "Turns answers to this connection on or off.",
        usage: "<ON | OFF | SKIP>",
        run: reply,
        ..SUB
    },
    Command {
        name: "unblock",
        arity: -3,
        flags: ADMIN,
        since: "5.0.0",
        complexity: "O(log N) where N is the number of client connections",
        summary: "Ends another connection's wait.",
        usage: "client-id [TIMEOUT | ERROR]",
        run: unblock,
        ..SUB
    },
    Command {
        name: "tracking",
        arity: -3,
        since: "6.0.0",
        complexity: "O(1). Some options may introduce additional complexity.",
        summary: "Turns invalidations for a client-side cache on or off.",
        usage: "<ON | OFF> [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
        run: tracking::tracking,
        ..SUB
    },
    Command {
        name: "caching",
        arity: 3,
        since: "6.0.0",
        summary: "Says whether the next command's keys are tracked.",
        usage: "<YES | NO>",
        run: tracking::caching,
        ..SUB
    },
    Command {
        name: "trackinginfo",
        since: "6.2.0",
        summary: "Shows how this connection tracks keys.",
        run: tracking::trackinginfo,
        ..SUB
    },
    Command {
        name: "getredir",
        since: "6.0.0",
        summary: "Returns the connection that invalidations are sent to.",
        run: tracking::getredir,
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

fn id(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let id = ctx.session().id;
    ctx.reply.integer(id.cast_signed());
    Ok(())
}

fn info(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let (key, now_ms) = (ctx.session, ctx.now.unix_ms());
    let Parts {
        clients,
        index,
        reply,
        ..
    } = ctx.parts();
    let line = clients
        .sessions
        .get(key)
        .map(|session| describe(session, index, reply.outputs(), now_ms))
        .unwrap_or_default();
    ctx.reply.verbatim_text(&[line.as_slice(), b"\n"].concat());
    Ok(())
}

fn list(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let now_ms = ctx.now.unix_ms();
    let Parts {
        clients,
        index,
        reply,
        ..
    } = ctx.parts();
    let mut sessions: Vec<&Session> = clients.sessions.iter().collect();
    sessions.sort_by_key(|session| session.id);
    match args.get(2) {
        None => {}
        Some(option) if option.eq_ignore_ascii_case(b"TYPE") && args.len() == 4 => {
            let kind = client_type(&args[3])?;
            sessions.retain(|session| kind.includes(session));
        }
        Some(option) if option.eq_ignore_ascii_case(b"ID") && args.len() > 3 => {
            // As asked: in that order, and as often.
            let by_id: BTreeMap<i64, &Session> = sessions
                .iter()
                .map(|session| (session.id.cast_signed(), *session))
                .collect();
            let ids = args.iter().skip(3).map(parse::integer);
            let ids: Vec<i64> = ids
                .collect::<Result<_, _>>()
                .map_err(|_| CommandError::fixed("ERR Invalid client ID"))?;
            sessions = ids.iter().filter_map(|id| by_id.get(id).copied()).collect();
        }
        Some(_) => return Err(CommandError::SYNTAX),
    }
    let mut text = Vec::new();
    for session in sessions {
        text.extend(describe(session, index, reply.outputs(), now_ms));
        text.push(b'\n');
    }
    reply.verbatim_text(&text);
    Ok(())
}

/// Which connections CLIENT KILL closes. Every given condition must hold.
#[derive(Default)]
struct Victims<'a> {
    id: Option<u64>,
    kind: Option<ClientType>,
    addr: Option<&'a [u8]>,
    laddr: Option<&'a [u8]>,
    user: Option<UserId>,
    spare: Option<SessionKey>,
}

impl Victims<'_> {
    fn includes(&self, session: &Session) -> bool {
        self.id.is_none_or(|id| session.id == id)
            && self.kind.is_none_or(|kind| kind.includes(session))
            && self
                .addr
                .is_none_or(|addr| session.identity.peer.addr.as_bytes() == addr)
            && self
                .laddr
                .is_none_or(|laddr| session.identity.peer.laddr.as_bytes() == laddr)
            && self.user.is_none_or(|user| session.login.user == user)
            && self.spare != Some(session.key)
    }
}

fn kill(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let old_form = args.len() == 3;
    let victims = if old_form {
        Victims {
            addr: Some(&args[2]),
            ..Victims::default()
        }
    } else {
        victims(ctx, args)?
    };
    let keys: Vec<SessionKey> = ctx
        .clients()
        .sessions
        .iter()
        .filter(|session| victims.includes(session))
        .map(|session| session.key)
        .collect();
    for &key in &keys {
        if key == ctx.session {
            let session = ctx.session();
            session.ending.closing = true;
            session.ending.leaving.get_or_insert("CLIENT KILL");
            ctx.flow = Flow::Close;
        } else {
            // It is gone for everybody from now on; only its socket waits for the front.
            ctx.disconnect(key, "CLIENT KILL");
        }
    }
    match (old_form, keys.is_empty()) {
        (true, true) => return Err(CommandError::fixed("ERR No such client")),
        (true, false) => ctx.reply.ok(),
        (false, _) => ctx.reply.count(keys.len()),
    }
    Ok(())
}

fn victims<'a>(ctx: &mut Ctx<'_>, args: Args<'a>) -> Result<Victims<'a>, CommandError> {
    let mut victims = Victims {
        spare: Some(ctx.session),
        ..Victims::default()
    };
    let mut options = OptionReader::new(args, 2);
    while let Some(word) = options.word() {
        let value = options.value()?;
        match &*word {
            b"id" => {
                let id = client_id(value).ok_or(CommandError::fixed(
                    "ERR client-id should be greater than 0",
                ))?;
                victims.id = Some(id);
            }
            b"type" => victims.kind = Some(client_type(value)?),
            b"addr" => victims.addr = Some(value),
            b"laddr" => victims.laddr = Some(value),
            b"user" => {
                let user = ctx.acl().find(value).ok_or_else(|| {
                    CommandError::new([b"ERR No such user '", value, b"'"].concat())
                })?;
                victims.user = Some(user);
            }
            b"skipme" if value.eq_ignore_ascii_case(b"yes") => victims.spare = Some(ctx.session),
            b"skipme" if value.eq_ignore_ascii_case(b"no") => victims.spare = None,
            _ => return Err(CommandError::SYNTAX),
        }
    }
    Ok(victims)
}

fn setname(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if !is_printable_name(&args[2]) {
        return Err(CommandError::fixed(
            "ERR Client names cannot contain spaces, newlines or special characters.",
        ));
    }
    ctx.session().identity.name = args[2].to_vec();
    ctx.reply.ok();
    Ok(())
}

fn getname(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let name = ctx.session().identity.name.clone();
    if name.is_empty() {
        ctx.reply.null()
    } else {
        ctx.reply.bulk(name)
    }
    Ok(())
}

fn setinfo(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (option, value) = (&args[2], &args[3]);
    let is_name = option.eq_ignore_ascii_case(b"lib-name");
    if !is_name && !option.eq_ignore_ascii_case(b"lib-ver") {
        return Err(CommandError::new(
            [b"ERR Unrecognized option '", option, b"'"].concat(),
        ));
    }
    if !is_printable_name(value) {
        let text = [
            option,
            b" cannot contain spaces, newlines or special characters.".as_slice(),
        ]
        .concat();
        return Err(CommandError::new([b"ERR ".as_slice(), &text].concat()));
    }
    let session = ctx.session();
    let field = if is_name {
        &mut session.identity.lib_name
    } else {
        &mut session.identity.lib_version
    };
    *field = value.to_vec();
    ctx.reply.ok();
    Ok(())
}

fn no_evict(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.session().modes.no_evict = on_or_off(&args[2])?;
    ctx.reply.ok();
    Ok(())
}

fn no_touch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.session().modes.no_touch = on_or_off(&args[2])?;
    ctx.reply.ok();
    Ok(())
}

fn pause(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 4 {
        return Err(help::wrong_subcommand_arity(args));
    }
    let writes_only = match args.get(3) {
        None => false,
        Some(mode) if mode.eq_ignore_ascii_case(b"WRITE") => true,
        Some(mode) if mode.eq_ignore_ascii_case(b"ALL") => false,
        Some(_) => {
            return Err(CommandError::fixed(
                "ERR CLIENT PAUSE mode must be WRITE or ALL",
            ));
        }
    };
    let timeout_ms = parse::integer(&args[2])
        .map_err(|_| CommandError::fixed("ERR timeout is not an integer or out of range"))?;
    let timeout_ms =
        u64::try_from(timeout_ms).map_err(|_| CommandError::fixed("ERR timeout is negative"))?;
    if i64::try_from(ctx.now.unix_ms().saturating_add(timeout_ms)).is_err() {
        return Err(CommandError::fixed("ERR timeout is out of range"));
    }
    if timeout_ms == 0 && ctx.clients().pause.is_none() {
        // It is over before anything could wait for its end.
        ctx.reply.ok();
        return Ok(());
    }
    let pause_ns = timeout_ms.saturating_mul(1_000_000);
    let until_ns = ctx.now.mono_ns.saturating_add(pause_ns);
    // A second pause only ever makes the first one longer and stricter.
    let (until_ns, writes_only) = match ctx.clients().pause {
        Some(old) => (old.until_ns.max(until_ns), old.writes_only && writes_only),
        None => (until_ns, writes_only),
    };
    ctx.clients().pause = Some(Pause {
        until_ns,
        writes_only,
    });
    ctx.pause_expiry();
    ctx.reply.ok();
    Ok(())
}

fn unpause(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.clients().stop_pause();
    ctx.reply.ok();
    Ok(())
}

fn reply(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mode = &args[2];
    let session = ctx.session();
    if mode.eq_ignore_ascii_case(b"ON") {
        session.modes.reply_mode = ReplyMode::On;
        ctx.reply.keep();
        ctx.reply.ok();
    } else if mode.eq_ignore_ascii_case(b"OFF") {
        session.modes.reply_mode = ReplyMode::Off;
        ctx.reply.discard();
    } else if mode.eq_ignore_ascii_case(b"SKIP") {
        if session.modes.reply_mode != ReplyMode::Off {
            session.modes.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::SYNTAX);
    }
    Ok(())
}

fn unblock(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 4 {
        return Err(help::wrong_subcommand_arity(args));
    }
    let with_error = match args.get(3) {
        None => false,
        Some(reason) if reason.eq_ignore_ascii_case(b"TIMEOUT") => false,
        Some(reason) if reason.eq_ignore_ascii_case(b"ERROR") => true,
        Some(_) => {
            return Err(CommandError::fixed(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
    };
    let id = parse::integer(&args[2])?;
    let target = u64::try_from(id)
        .ok()
        .and_then(|id| ctx.clients().sessions.by_id(id))
        .filter(|session| {
            // A command held back by a pause has no timeout.
            session
                .blocked
                .as_ref()
                .is_some_and(|blocked| !matches!(blocked.on, BlockedOn::Pause(_)))
        });
    let target = target.map(|session| session.key);
    let ended = target.and_then(|key| Some((key, ctx.unblock(key)?)));
    if let Some((key, blocked)) = &ended {
        ctx.answer_unblocked(*key, &blocked.on, with_error);
    }
    ctx.reply.integer(i64::from(ended.is_some()));
    Ok(())
}

/// The types CLIENT LIST and CLIENT KILL filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientType {
    Normal,
    Master,
    Replica,
    Pubsub,
}

impl ClientType {
    fn includes(self, session: &Session) -> bool {
        match self {
            Self::Normal => session.class() == Class::Normal,
            Self::Pubsub => session.class() == Class::Pubsub,
            // There are no replicas and no master yet; MONITOR clients are normal ones.
            Self::Replica | Self::Master => false,
        }
    }
}

fn client_type(name: &[u8]) -> Result<ClientType, CommandError> {
    match name.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(ClientType::Normal),
        b"master" => Ok(ClientType::Master),
        b"slave" | b"replica" => Ok(ClientType::Replica),
        b"pubsub" => Ok(ClientType::Pubsub),
        _ => Err(CommandError::new(
            [b"ERR Unknown client type '", name, b"'"].concat(),
        )),
    }
}

fn client_id(arg: &[u8]) -> Option<u64> {
    parse::integer(arg)
        .ok()
        .and_then(|id| u64::try_from(id).ok())
        .filter(|&id| id > 0)
}

fn on_or_off(arg: &[u8]) -> Result<bool, CommandError> {
    match arg.to_ascii_lowercase().as_slice() {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => Err(CommandError::SYNTAX),
    }
}

/// Names are shown in lists, so they hold nothing that would break a line or a column.
pub(super) fn is_printable_name(name: &[u8]) -> bool {
    name.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

impl Ctx<'_> {
    /// This session's line in CLIENT LIST.
    pub(crate) fn describe_session(&mut self) -> Vec<u8> {
        let (key, now_ms) = (self.session, self.now.unix_ms());
        let parts = self.parts();
        let session = parts.clients.sessions.get(key);
        session.map_or_else(Vec::new, |session| {
            describe(session, parts.index, parts.reply.outputs(), now_ms)
        })
    }
}

/// A session's line in CLIENT LIST.
fn describe(session: &Session, index: &CommandIndex, outputs: &Outputs, now_ms: u64) -> Vec<u8> {
    let multi = session.transaction.multi.as_ref();
    let queued = multi.map_or(-1, |multi| i64::try_from(multi.queued).unwrap_or(i64::MAX));
    let command = session
        .activity
        .last_command
        .map_or("NULL", |id| &index.get(id).full_name);
    let seconds = |since_ms: u64| now_ms.saturating_sub(since_ms) / 1000;
    // A half-sent reply is what makes the front wait for room in the socket.
    let output = outputs.usage(session.key);
    let events = if output.half_written { "rw" } else { "r" };
    let mut line = format!(
        "id={} addr={} laddr={} fd={} name=",
        session.id,
        session.identity.peer.addr,
        session.identity.peer.laddr,
        session.identity.peer.fd
    )
    .into_bytes();
    line.extend_from_slice(&session.identity.name);
    line.extend_from_slice(
        format!(
            " age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={queued} qbuf={} qbuf-free={} argv-mem=0 multi-mem={} rbs={} rbp={} obl={} oll={} omem={} tot-mem={} events={events} cmd={command} user={} redir={} resp={} lib-name=",
            seconds(session.identity.created_ms),
            seconds(session.activity.last_active_ms),
            flag_letters(session),
            session.db,
            session.subscriptions.channels.len(),
            session.subscriptions.patterns.len(),
            session.subscriptions.shard_channels.len(),
            session.memory.input.used,
            session.memory.input.free + session.memory.input.announced,
            multi.map_or(0, |multi| multi.bytes),
            session.memory.reply_buffer.size(),
            session.memory.reply_buffer.peak(),
            output.first_len,
            output.more_chunks,
            output.more_memory,
            session.claimed_bytes() + output.memory,
            String::from_utf8_lossy(&session.login.user_name),
            tracking::redirection(session),
            if session.protocol == Protocol::Resp3 { 3 } else { 2 },
        )
        .as_bytes(),
    );
    line.extend_from_slice(&session.identity.lib_name);
    line.extend_from_slice(b" lib-ver=");
    line.extend_from_slice(&session.identity.lib_version);
    line
}

fn flag_letters(session: &Session) -> String {
    let tracks = |has: fn(&CacheTracking) -> bool| session.tracking.as_deref().is_some_and(has);
    let all = [
        (session.modes.monitor, 'O'),
        (!session.subscriptions.is_empty(), 'P'),
        (session.transaction.multi.is_some(), 'x'),
        (session.blocked.is_some(), 'b'),
        (session.tracking.is_some(), 't'),
        (tracks(|tracking| tracking.broken_redirect), 'R'),
        (tracks(|tracking| tracking.bcast), 'B'),
        (session.transaction.watch_broken, 'd'),
        (session.ending.closing, 'c'),
        (session.identity.peer.unix, 'U'),
        (session.modes.no_evict, 'e'),
        (session.modes.no_touch, 'T'),
    ];
    let letters: String = all
        .into_iter()
        .filter_map(|(on, letter)| on.then_some(letter))
        .collect();
    if letters.is_empty() {
        "N".into()
    } else {
        letters
    }
}

#[cfg(test)]
mod tests;
