//! DEBUG: hooks for tests. Off unless `enable-debug-command` says otherwise.
//!
//! Redis's own subcommands that crash the server, reload it from disk or look into its memory are
//! named and refused: a test that relies on one should learn so from the answer.

use super::{help, parse};
use crate::command::{Command, flag};
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use crate::keyspace::{Entry, Look, ValueRef};
use kumi_resp::Args;
use std::time::Duration;

pub(super) const COMMANDS: &[Command] = &[Command {
    name: "debug",
    arity: -2,
    flags: flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE,
    complexity: "Depends on subcommand.",
    summary: "Helps to test the server.",
    usage: "subcommand [argument [argument ...]]",
    run: debug,
    ..Command::BASE
}];

/// Subcommands: name, number of arguments after it, usage, what it does, function.
type Hook = (
    &'static str,
    usize,
    &'static str,
    &'static str,
    fn(&mut Ctx<'_>, Args<'_>) -> CommandResult,
);

const HOOKS: &[Hook] = &[
    (
        "BUSY",
        1,
        "seconds",
        "Keeps the server busy, as a long script would; others are answered BUSY meanwhile.",
        busy,
    ),
    ("ERROR", 1, "text", "Answers the text as an error.", error),
    ("HELP", 0, "", "Describes the subcommands.", help_lines),
    ("LOG", 1, "message", "Writes the message to the log.", log),
    (
        "OBJECT",
        1,
        "key",
        "Describes how a value is stored.",
        object,
    ),
    (
        "PANIC",
        0,
        "",
        "Panics inside of a command; the client gets an internal error.",
        panic,
    ),
    (
        "SET-ACTIVE-EXPIRE",
        1,
        "<0|1>",
        "Turns off (0) or on (1) the removal of expired keys that nobody asks for.",
        set_active_expire,
    ),
    (
        "SLEEP",
        1,
        "seconds",
        "Stops the server for a while; nobody is served.",
        sleep,
    ),
];

/// What Redis has under DEBUG and kumi does not.
const REFUSED: &[&str] = &[
    "AOF-FLUSH-SLEEP",
    "ASSERT",
    "CHANGE-REPL-ID",
    "CLIENT-EVICTION",
    "CONFIG-REWRITE-FORCE-ALL",
    "CRASH-AND-RECOVER",
    "DIGEST",
    "DIGEST-VALUE",
    "DROP-CLUSTER-PACKET-FILTER",
    "HTSTATS",
    "HTSTATS-KEY",
    "JMAP",
    "LEAK",
    "LISTPACK",
    "LOADAOF",
    "MALLCTL",
    "MALLCTL-STR",
    "OOM",
    "PAUSE-CRON",
    "POPULATE",
    "PROTOCOL",
    "QUICKLIST",
    "QUICKLIST-PACKED-THRESHOLD",
    "RELOAD",
    "REPLICATE",
    "REPLYBUFFER",
    "RESTART",
    "SDSLEN",
    "SEGFAULT",
    "SET-DISABLE-DENY-SCRIPTS",
    "STRINGMATCH-LEN",
    "STRUCTSIZE",
    "ZIPLIST",
];

fn debug(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let local = ctx.session().peer.is_local();
    let access = ctx.store.config.settings().enable_debug_command;
    if !access.allows(local) {
        return Err(CommandError::fixed(
            "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.",
        ));
    }
    let is_named = |name: &str| args[1].eq_ignore_ascii_case(name.as_bytes());
    if let Some(hook) = HOOKS.iter().find(|hook| is_named(hook.0))
        && args.len() == hook.1 + 2
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

fn busy(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let time = seconds(&args[2]);
    let end_ns = ctx.now.mono_ns.saturating_add(time.as_nanos() as u64);
    ctx.store.busy = true;
    while ctx.host.now().mono_ns < end_ns && ctx.host.serve_others(ctx.store, ctx.reply.outputs()) {
    }
    ctx.store.busy = false;
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

fn help_lines(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.reply.array(1 + 2 * HOOKS.len());
    ctx.reply
        .simple("DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
    for &(name, _, usage, summary, _) in HOOKS {
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

fn object(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let now_ms = ctx.now.unix_ms();
    let (mut keys, reply) = ctx.keys_and_reply();
    let entry = keys.look(&args[2], Look::Quiet);
    let entry = entry.ok_or(CommandError::NO_SUCH_KEY)?;
    reply.simple(&describe(entry, now_ms));
    Ok(())
}

/// The line of DEBUG OBJECT. The address is that of the reference, not of the value: nothing
/// outside the entry knows where its value lies.
fn describe(entry: &Entry, now_ms: u64) -> String {
    /// Longer strings have an allocation of their own in Redis, and clients look for the word.
    const EMBEDDED_BYTES: usize = 44;
    let (encoding, serialized) = match entry.value() {
        ValueRef::Int(number) => ("int", serialized_integer(number)),
        ValueRef::Bytes { bytes, raw } => {
            let raw = raw || bytes.len() > EMBEDDED_BYTES;
            (
                if raw { "raw" } else { "embstr" },
                serialized_string(bytes.len()),
            )
        }
    };
    let clock = entry.access_clock();
    let now_s = crate::keyspace::access_clock(now_ms);
    let idle_s = now_s.wrapping_sub(clock) & 0xFF_FFFF;
    format!(
        "Value at:{entry:p} refcount:1 encoding:{encoding} serializedlength:{serialized} lru:{clock} lru_seconds_idle:{idle_s}"
    )
}

/// Bytes of a string in a snapshot: a length, then the string, never compressed.
fn serialized_string(len: usize) -> usize {
    let header = match len {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        _ => 5,
    };
    header + len
}

fn serialized_integer(number: i64) -> usize {
    if i8::try_from(number).is_ok() {
        2
    } else if i16::try_from(number).is_ok() {
        3
    } else if i32::try_from(number).is_ok() {
        5
    } else {
        serialized_string(number.to_string().len())
    }
}

fn panic(_: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    panic!("DEBUG PANIC was called");
}

fn set_active_expire(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.store.keyspace.active_expiry = parse::integer(&args[2]).is_ok_and(|on| on != 0);
    ctx.reply.ok();
    Ok(())
}

fn sleep(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.host.sleep(seconds(&args[2]));
    ctx.reply.ok();
    Ok(())
}

/// A time in seconds, fractions allowed; none for what is not a number.
fn seconds(arg: &[u8]) -> Duration {
    let text = std::str::from_utf8(arg).unwrap_or_default();
    let seconds: f64 = text.trim().parse().unwrap_or(0.0);
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use crate::session::Peer;
    use crate::testing::Lab;
    use std::time::Duration;

    fn lab() -> Lab {
        let mut lab = Lab::new();
        lab.allow_debug();
        lab
    }

    #[test]
    fn debug_is_off_unless_configured() {
        let mut lab = Lab::new();
        let refused = "-ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server.\r\n";
        lab.check(&[("DEBUG SLEEP 0", refused), ("DEBUG HELP", refused)]);
        lab.configure("enable-debug-command", "local");
        lab.check(&[("DEBUG SLEEP 0", refused)]);
        let peer = Peer {
            unix: true,
            ..Peer::default()
        };
        let now = lab.host.now;
        let local = lab.store.connect(peer, now);
        assert_eq!(lab.run_as(local, "DEBUG SLEEP 0"), "+OK\r\n");
    }

    #[test]
    fn sleep_stops_the_host() {
        let mut lab = lab();
        lab.check(&[("DEBUG SLEEP 1.5", "+OK\r\n"), ("debug sleep x", "+OK\r\n")]);
        assert_eq!(lab.host.slept, Duration::from_millis(1500));
    }

    #[test]
    fn active_expiry_can_be_turned_off() {
        let mut lab = lab();
        lab.check(&[("DEBUG SET-ACTIVE-EXPIRE 0", "+OK\r\n")]);
        assert!(!lab.store.keyspace.active_expiry);
        lab.check(&[("DEBUG SET-ACTIVE-EXPIRE 1", "+OK\r\n")]);
        assert!(lab.store.keyspace.active_expiry);
    }

    #[test]
    fn object_describes_the_value() {
        let mut lab = lab();
        lab.run("SET number 300");
        lab.run("SET word bar");
        lab.run(&format!("SET text {}", "x".repeat(100)));
        lab.advance_ms(7_000);
        for (key, expected) in [
            ("number", "refcount:1 encoding:int serializedlength:3 lru:"),
            ("word", "refcount:1 encoding:embstr serializedlength:4 lru:"),
            ("text", "refcount:1 encoding:raw serializedlength:102 lru:"),
        ] {
            let line = lab.run(&format!("DEBUG OBJECT {key}"));
            assert!(line.starts_with("+Value at:0x"), "{line}");
            assert!(line.contains(expected), "{line}");
            assert!(line.ends_with("lru_seconds_idle:7\r\n"), "{line}");
        }
        lab.check(&[("DEBUG OBJECT nothing", "-ERR no such key\r\n")]);
    }

    #[test]
    fn a_panic_is_answered_and_leaves_the_connection_usable() {
        lab().check(&[
            ("DEBUG PANIC", "-ERR internal error\r\n"),
            ("PING", "+PONG\r\n"),
        ]);
    }

    #[test]
    fn others_are_told_busy_meanwhile() {
        let mut lab = lab();
        let other = lab.connect();
        lab.host.meanwhile = vec![(other, "PING"), (other, "SHUTDOWN ABORT")];
        lab.check(&[("DEBUG BUSY 0.1", "+OK\r\n")]);
        assert_eq!(
            lab.received(other),
            "-BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.\r\n-ERR No shutdown in progress.\r\n"
        );
        assert_eq!(lab.host.now.mono_ns, 100_000_000);
        assert_eq!(lab.run_as(other, "PING"), "+PONG\r\n");
    }

    #[test]
    fn error_and_log_answer() {
        lab().check(&[
            ("DEBUG ERROR OOPS", "-OOPS\r\n"),
            ("DEBUG LOG hello", "+OK\r\n"),
        ]);
    }

    #[test]
    fn what_does_not_exist_is_refused_clearly() {
        let mut lab = lab();
        for name in ["JMAP", "RELOAD", "SEGFAULT", "QUICKLIST-PACKED-THRESHOLD"] {
            let expected = format!("-ERR DEBUG {name} does not exist in kumi\r\n");
            assert_eq!(lab.run(&format!("DEBUG {name}")), expected);
        }
        lab.check(&[
            (
                "DEBUG nope",
                "-ERR unknown subcommand or wrong number of arguments for 'nope'. Try DEBUG HELP.\r\n",
            ),
            (
                "DEBUG SLEEP",
                "-ERR unknown subcommand or wrong number of arguments for 'SLEEP'. Try DEBUG HELP.\r\n",
            ),
            (
                "DEBUG",
                "-ERR wrong number of arguments for 'debug' command\r\n",
            ),
        ]);
        assert!(
            lab.run("DEBUG HELP")
                .starts_with("*17\r\n+DEBUG <subcommand>")
        );
    }
}
