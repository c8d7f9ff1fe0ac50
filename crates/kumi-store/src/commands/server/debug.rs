//! DEBUG: hooks for tests. Off by default; `enable-debug-command` turns it on.
//!
//! Those that look into values are in `debug/values.rs`, the digests in `debug/digest.rs`, RELOAD in `debug/reload.rs`.
//! Subcommands of Redis that inspect the server's memory get an error that names them, so that a test that
//! needs one fails with the reason.

mod digest;
mod reload;
mod values;

use crate::base::error::{CommandError, CommandResult};
use crate::commands::{help, parse};
use crate::data::keyspace::{Expiry, Look, NewValue};
use crate::engine::command::{Command, flag};
use crate::engine::session::ResizePolicy;
use crate::engine::store::ctx::Ctx;
use digest::{digest, digest_value};
use kumi_resp::{Args, Protocol, encode};
use reload::reload;
use std::ops::RangeInclusive;
use std::time::Duration;
use values::{listpack, object, packed_threshold, quicklist, skip_checksum};

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "debug",
    arity: -2,
    flags: flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE,
    complexity: "Depends on subcommand.",
    summary: "Helps to test the server.",
    usage: "subcommand [argument [argument ...]]",
    run: debug,
    ..Command::BASE
}];

/// Subcommands: name, numbers of arguments after it, usage, what it does, function.
type Hook = (
    &'static str,
    RangeInclusive<usize>,
    &'static str,
    &'static str,
    fn(&mut Ctx<'_>, Args<'_>) -> CommandResult,
);

const HOOKS: &[Hook] = &[
    (
        "AOF-FLUSH-SLEEP",
        1..=1,
        "microseconds",
        "Lets the server sleep each time before writes go to the append-only file.",
        flush_sleep,
    ),
    (
        "BUSY",
        1..=1,
        "seconds",
        "Keeps the server busy, as a long script would; others are answered BUSY meanwhile.",
        busy,
    ),
    (
        "CLIENT-ENFORCE-REPLY-LIST",
        1..=1,
        "<0|1>",
        "Has no effect: there is one kind of output buffer.",
        accept,
    ),
    (
        "DICT-RESIZING",
        1..=1,
        "<0|1>",
        "Has no effect: tables grow a segment at a time.",
        accept,
    ),
    (
        "CONFIG-REWRITE-FORCE-ALL",
        0..=0,
        "",
        "Does what CONFIG REWRITE does, and writes directives that have their defaults too.",
        rewrite_all,
    ),
    (
        "DIGEST",
        0..=0,
        "",
        "Shows a digest of all keys and values, which is that of a redis-server with the same data.",
        digest,
    ),
    (
        "DIGEST-VALUE",
        0..=usize::MAX,
        "[key ...]",
        "Shows the digest of each of the values.",
        digest_value,
    ),
    (
        "ERROR",
        1..=1,
        "text",
        "Answers the text as an error.",
        error,
    ),
    ("HELP", 0..=0, "", "Describes the subcommands.", help_lines),
    (
        "LISTPACK",
        1..=1,
        "key",
        "Writes the elements of a packed value to the log.",
        listpack,
    ),
    (
        "LOG",
        1..=1,
        "message",
        "Writes the message to the log.",
        log,
    ),
    (
        "OBJECT",
        1..=1,
        "key",
        "Describes how a value is stored.",
        object,
    ),
    (
        "PANIC",
        0..=1,
        "[IN-CHANGE]",
        "Panics inside of a command; the client gets an internal error. IN-CHANGE panics in the middle of a change of the data, which stops the server.",
        panic,
    ),
    (
        "PAUSE-CRON",
        1..=1,
        "<0|1>",
        "Stops (1) or resumes (0) periodic work: housekeeping and active expiry.",
        pause_cron,
    ),
    (
        "POPULATE",
        1..=3,
        "count [prefix [size]]",
        "Creates keys named <prefix>:<number> with values of size bytes; keys that exist are kept.",
        populate,
    ),
    (
        "PROTOCOL",
        1..=1,
        "<type>",
        "Replies with a value of the type: string, integer, double, bignum, null, array, set, map, attrib, push, verbatim, true or false.",
        protocol,
    ),
    (
        "QUICKLIST",
        1..=2,
        "key [<0|1>]",
        "Writes the nodes of a list to the log.",
        quicklist,
    ),
    (
        "QUICKLIST-PACKED-THRESHOLD",
        1..=1,
        "size",
        "Sets the size from which on an element of a list is a node of its own; 0 is 1gb.",
        packed_threshold,
    ),
    (
        "RELOAD",
        0..=usize::MAX,
        "[MERGE] [NOFLUSH] [NOSAVE]",
        "Serialises all keys and loads them again. NOSAVE loads what was serialised last, NOFLUSH keeps the keys there are, MERGE overwrites them.",
        reload,
    ),
    (
        "SEGFAULT",
        0..=0,
        "",
        "Crashes the server by an access to memory that is not there. It leaves a report in the log.",
        segfault,
    ),
    (
        "SET-ACTIVE-EXPIRE",
        1..=1,
        "<0|1>",
        "Turns off (0) or on (1) active expiry.",
        set_active_expire,
    ),
    (
        "LOADAOF",
        0..=0,
        "",
        "Writes what waits to the append-only file, then replaces all data by what the file holds.",
        load_aof,
    ),
    (
        "REPLYBUFFER",
        2..=2,
        "<PEAK-RESET-TIME <NEVER|RESET|milliseconds> | RESIZING <0|1>>",
        "Sets how the sizes of output buffers that CLIENT LIST shows change.",
        reply_buffer,
    ),
    (
        "SET-SKIP-CHECKSUM-VALIDATION",
        1..=1,
        "<0|1>",
        "Lets RESTORE take payloads whatever their checksum is (1).",
        skip_checksum,
    ),
    (
        "SET-DISABLE-DENY-SCRIPTS",
        1..=1,
        "<0|1>",
        "Lets scripts call every command (1), or only those that are for scripts (0).",
        set_disable_deny_scripts,
    ),
    (
        "SLEEP",
        1..=1,
        "seconds",
        "Stops the server for a while; no client is served.",
        sleep,
    ),
];

/// Subcommands of Redis that kumi does not have.
const REFUSED: &[&str] = &[
    "ASSERT",
    "CHANGE-REPL-ID",
    "CLIENT-EVICTION",
    "CRASH-AND-RECOVER",
    "DROP-CLUSTER-PACKET-FILTER",
    "HTSTATS",
    "HTSTATS-KEY",
    "JMAP",
    "LEAK",
    "MALLCTL",
    "MALLCTL-STR",
    "OOM",
    "REPLICATE",
    "RESTART",
    "SDSLEN",
    "STRINGMATCH-TEST",
    "STRUCTSIZE",
    "ZIPLIST",
];

fn debug(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let local = ctx.session().identity.peer.is_local();
    let access = ctx.settings().enable_debug_command;
    if !access.allows(local) {
        return Err(CommandError::fixed(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.",
        ));
    }
    let is_named = |name: &str| args[1].eq_ignore_ascii_case(name.as_bytes());
    if let Some(hook) = HOOKS.iter().find(|hook| is_named(hook.0))
        && hook.1.contains(&(args.len() - 2))
    {
        return hook.4(ctx, args);
    }
    if let Some(name) = REFUSED.iter().find(|name| is_named(name)) {
        return Err(CommandError::new(format!(
            "ERR DEBUG {name} does not exist in kumi"
        )));
    }
    Err(help::wrong_subcommand_arity(args))
}

fn accept(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.reply.ok();
    Ok(())
}

fn flush_sleep(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let time_us = parse::integer(&args[2]).ok();
    let time_us = time_us.and_then(|time_us| u64::try_from(time_us).ok());
    let time = Duration::from_micros(time_us.unwrap_or(0));
    ctx.set_flush_sleep(Some(time).filter(|time| !time.is_zero()));
    ctx.reply.ok();
    Ok(())
}

fn rewrite_all(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.set_rewrites_all(true);
    let written = super::config::rewrite(ctx, args);
    ctx.set_rewrites_all(false);
    written
}

fn busy(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let time = seconds(&args[2]);
    let threshold_ms = ctx.settings().busy_reply_threshold_ms;
    let end_ns = ctx.now.mono_ns.saturating_add(time.as_nanos() as u64);
    // As during a script in Redis, no client is served before the threshold.
    ctx.host
        .sleep(time.min(Duration::from_millis(threshold_ms)));
    ctx.serve_others_until(end_ns);
    ctx.reply.ok();
    Ok(())
}

fn load_aof(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    // An AOF that names it would load itself again and again; a script would lose the libraries it runs from.
    if ctx.is_loading() || ctx.in_script {
        return Err(CommandError::fixed(
            "ERR DEBUG LOADAOF is not allowed in a script or in an append-only file",
        ));
    }
    // What it changes is in the AOF already.
    ctx.mark_propagated();
    ctx.reload_aof().map_err(|reason| {
        tracing::error!("DEBUG LOADAOF: {reason}");
        CommandError::fixed("ERR Error trying to load the AOF files, check server logs.")
    })?;
    tracing::info!("Append Only File loaded by DEBUG LOADAOF");
    ctx.reply.ok();
    Ok(())
}

fn error(_: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let one_line: Vec<u8> = args[2]
        .iter()
        .map(|&byte| {
            if matches!(byte, b'\r' | b'\n') {
                b' '
            } else {
                byte
            }
        })
        .collect();
    Err(CommandError::new(one_line))
}

fn set_disable_deny_scripts(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.scripts().deny_disabled = &args[2] != b"0";
    ctx.reply.ok();
    Ok(())
}

fn help_lines(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.reply.array(1 + 2 * HOOKS.len());
    ctx.reply
        .simple("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    for (name, _, usage, summary, _) in HOOKS {
        ctx.reply.simple(format!("{name} {usage}").trim_end());
        ctx.reply.simple(&format!("    {summary}"));
    }
    Ok(())
}

fn log(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    tracing::warn!("DEBUG LOG: {}", String::from_utf8_lossy(&args[2]));
    ctx.reply.ok();
    Ok(())
}

fn panic(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    match args.get(2) {
        None => {}
        Some(word) if word.eq_ignore_ascii_case(b"IN-CHANGE") => ctx.begin_change(),
        Some(_) => return Err(CommandError::SYNTAX),
    }
    panic!("DEBUG PANIC was called");
}

/// Returns only in a program that embeds the server.
fn segfault(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.host.crash();
    Err(CommandError::fixed(
        "ERR DEBUG SEGFAULT would end a program that is more than this server",
    ))
}

fn pause_cron(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.pause_cron(parse::integer(&args[2]).is_ok_and(|on| on != 0));
    ctx.reply.ok();
    Ok(())
}

fn reply_buffer(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let value = &args[3];
    let policy = &mut ctx.clients().reply_buffers;
    if args[2].eq_ignore_ascii_case(b"PEAK-RESET-TIME") {
        policy.peak_ms = if value.eq_ignore_ascii_case(b"NEVER") {
            None
        } else if value.eq_ignore_ascii_case(b"RESET") {
            ResizePolicy::default().peak_ms
        } else {
            u64::try_from(parse::integer(value)?).ok()
        };
    } else if args[2].eq_ignore_ascii_case(b"RESIZING") {
        policy.enabled = parse::integer(value).is_ok_and(|on| on != 0);
    } else {
        return Err(help::wrong_subcommand_arity(args));
    }
    ctx.reply.ok();
    Ok(())
}

/// The changes are not propagated, as in Redis: DEBUG is for tests of one server.
fn populate(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    const NOT_POSITIVE: CommandError =
        CommandError::fixed("ERR value is out of range, must be positive");
    let number = |arg: &[u8]| {
        let value = parse::integer(arg).ok();
        value
            .and_then(|value| usize::try_from(value).ok())
            .ok_or(NOT_POSITIVE)
    };
    let count = number(&args[2])?;
    let prefix: &[u8] = args.get(3).map_or(b"key", |prefix| prefix);
    let size = args.get(4).map_or(Ok(0), number)?;
    if size > ctx.settings().proto_max_bulk_len {
        return Err(CommandError::fixed(
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        ));
    }
    let (mut keys, reply) = ctx.keys_and_reply();
    for index in 0..count {
        let key = [prefix, format!(":{index}").as_bytes()].concat();
        if keys.look(&key, Look::Quiet).is_some() {
            continue;
        }
        let mut value = format!("value:{index}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        keys.put(&key, NewValue::Bytes(&value), Expiry::Clear)?;
    }
    reply.ok();
    Ok(())
}

fn protocol(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    #[expect(clippy::approx_constant, reason = "the number Redis replies with")]
    const DOUBLE: f64 = 3.141;
    let reply = &mut ctx.reply;
    let version = if reply.is_resp3() {
        Protocol::Resp3
    } else {
        Protocol::Resp2
    };
    let mut bytes = Vec::new();
    let out = &mut bytes;
    match args[2].to_ascii_lowercase().as_slice() {
        b"string" => encode::bulk(out, b"Hello World"),
        b"integer" => encode::integer(out, 12345),
        b"double" => encode::double(out, version, DOUBLE),
        b"bignum" => {
            encode::big_number(out, version, "1234567999999999999999999999999999999");
        }
        b"null" => encode::null(out, version),
        b"array" => {
            encode::array(out, 3);
            (0..3).for_each(|index| encode::integer(out, index));
        }
        b"set" => {
            encode::set(out, version, 3);
            (0..3).for_each(|index| encode::integer(out, index));
        }
        b"map" => {
            encode::map(out, version, 3);
            for index in 0..3 {
                encode::integer(out, index);
                encode::boolean(out, version, index == 1);
            }
        }
        b"attrib" => {
            if version == Protocol::Resp3 {
                encode::attribute(out, 1);
                encode::bulk(out, b"key-popularity");
                encode::array(out, 2);
                encode::bulk(out, b"key:123");
                encode::integer(out, 90);
            }
            encode::bulk(out, b"Some real reply following the attribute");
        }
        b"push" if version == Protocol::Resp2 => {
            return Err(CommandError::fixed(
                "ERR RESP2 is not supported by this command",
            ));
        }
        b"push" => {
            encode::push(out, version, 2);
            encode::bulk(out, b"server-cpu-usage");
            encode::integer(out, 42);
            encode::bulk(out, b"Some real reply following the push reply");
        }
        b"verbatim" => encode::verbatim(out, version, b"txt", b"This is a verbatim\nstring"),
        b"true" => encode::boolean(out, version, true),
        b"false" => encode::boolean(out, version, false),
        _ => {
            return Err(CommandError::fixed(
                "ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    reply.encoded(&bytes);
    Ok(())
}

fn set_active_expire(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.set_active_expiry(parse::integer(&args[2]).is_ok_and(|on| on != 0));
    ctx.reply.ok();
    Ok(())
}

fn sleep(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.host.sleep(seconds(&args[2]));
    ctx.reply.ok();
    Ok(())
}

/// A time in seconds, with fractions; zero for text that is not a number.
fn seconds(arg: &[u8]) -> Duration {
    let text = std::str::from_utf8(arg).unwrap_or_default();
    let seconds: f64 = text.trim().parse().unwrap_or(0.0);
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests;
