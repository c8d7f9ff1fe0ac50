//! DEBUG: hooks for tests. Off by default; `enable-debug-command` turns it on.
//!
//! Subcommands of Redis that crash the server, reload it from disk or inspect its memory get an error
//! that names them, so that a test that needs one fails with the reason.

use super::object::encoding_name;
use super::{help, parse};
use crate::command::{Command, flag};
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use crate::keyspace::{Entry, Expiry, Look, NewValue, StringRef};
use crate::session::ResizePolicy;
use kumi_resp::{Args, Protocol, encode};
use std::ops::RangeInclusive;
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
        "BUSY",
        1..=1,
        "seconds",
        "Keeps the server busy, as a long script would; others are answered BUSY meanwhile.",
        busy,
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
        "SET-ACTIVE-EXPIRE",
        1..=1,
        "<0|1>",
        "Turns off (0) or on (1) active expiry.",
        set_active_expire,
    ),
    (
        "REPLYBUFFER",
        2..=2,
        "<PEAK-RESET-TIME <NEVER|RESET|milliseconds> | RESIZING <0|1>>",
        "Sets how the sizes of output buffers that CLIENT LIST shows change.",
        reply_buffer,
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
    "QUICKLIST",
    "QUICKLIST-PACKED-THRESHOLD",
    "RELOAD",
    "REPLICATE",
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

fn object(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let now_ms = ctx.now.unix_ms();
    let (mut keys, reply) = ctx.keys_and_reply();
    let entry = keys.look(&args[2], Look::Quiet);
    let entry = entry.ok_or(CommandError::NO_SUCH_KEY)?;
    reply.simple(&describe(entry, now_ms));
    Ok(())
}

/// The line of DEBUG OBJECT. The address is that of the reference, because the address of the value is
/// private to the entry.
fn describe(entry: &Entry, now_ms: u64) -> String {
    /// The longest string that Redis embeds; clients look for the word `embstr`.
    const EMBEDDED_BYTES: usize = 44;
    let (encoding, serialized) = match entry.string() {
        None => (encoding_name(entry), entry.heap_bytes()),
        Some(StringRef::Int(number)) => ("int", serialized_integer(number)),
        Some(StringRef::Bytes { bytes, raw, .. }) => {
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

fn panic(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    match args.get(2) {
        None => {}
        Some(word) if word.eq_ignore_ascii_case(b"IN-CHANGE") => ctx.shard().changing = true,
        Some(_) => return Err(CommandError::SYNTAX),
    }
    panic!("DEBUG PANIC was called");
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
    ctx.shard().active_expiry = parse::integer(&args[2]).is_ok_and(|on| on != 0);
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
            ("DEBUG PANIC NOW", "-ERR syntax error\r\n"),
        ]);
    }

    #[test]
    fn a_panic_inside_a_change_is_not_caught() {
        let mut lab = lab();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            lab.run("DEBUG PANIC IN-CHANGE")
        }));
        assert!(outcome.is_err());
    }

    #[test]
    fn a_change_that_ended_leaves_no_mark() {
        let mut lab = lab();
        let lines = [
            "SET a 1",
            "INCR a",
            "APPEND a 2",
            "EXPIRE a 100",
            "PERSIST a",
            "RENAME a b",
            "COPY b c",
            "DEL b",
            "HSET h f v",
            "HINCRBY h f 1",
            "HDEL h f",
            "SADD s 1 2",
            "SREM s 1",
            "FLUSHALL",
        ];
        for line in lines {
            lab.run(line);
            assert!(!lab.store.keyspace.changing, "after {line}");
        }
    }

    #[test]
    fn busy_serves_nobody_before_the_threshold() {
        let mut lab = lab();
        lab.configure("busy-reply-threshold", "60");
        lab.check(&[("DEBUG BUSY 0.05", "+OK\r\n")]);
        assert_eq!(lab.host.slept, Duration::from_millis(50));
        lab.check(&[("DEBUG BUSY 0.1", "+OK\r\n")]);
        assert_eq!(lab.host.slept, Duration::from_millis(110));
    }

    #[test]
    fn others_are_told_busy_meanwhile() {
        let mut lab = lab();
        lab.configure("busy-reply-threshold", "0");
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
    fn output_buffers_show_the_sizes_redis_gives_them() {
        let mut lab = Lab::new();
        lab.allow_debug();
        lab.check(&[("DEBUG REPLYBUFFER PEAK-RESET-TIME 100", "+OK\r\n")]);
        let rbs = |lab: &mut Lab| {
            let line = lab.run("CLIENT INFO");
            let at = line.find(" rbs=").expect("a field") + 5;
            let size: String = line[at..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            size.parse::<usize>().expect("a number")
        };
        assert_eq!(rbs(&mut lab), 16_384);
        for _ in 0..5 {
            lab.advance_ms(200);
        }
        assert!((1024..2048).contains(&rbs(&mut lab)));
        lab.check(&[("DEBUG REPLYBUFFER PEAK-RESET-TIME NEVER", "+OK\r\n")]);
        for _ in 0..5 {
            let value = "x".repeat(20_000);
            assert!(lab.run(&format!("ECHO {value}")).len() > 20_000);
            lab.advance_ms(200);
        }
        assert_eq!(rbs(&mut lab), 16_384);
        lab.check(&[("DEBUG REPLYBUFFER RESIZING 0", "+OK\r\n")]);
        assert!(
            lab.run("DEBUG REPLYBUFFER PEAK-RESET-TIME soon")
                .starts_with("-ERR")
        );
        assert!(lab.run("DEBUG REPLYBUFFER NOPE 1").starts_with("-ERR"));
    }

    #[test]
    fn a_paused_cron_neither_expires_nor_samples() {
        let mut lab = lab();
        lab.check(&[
            ("DEBUG PAUSE-CRON 1", "+OK\r\n"),
            ("SET k v PX 10", "+OK\r\n"),
        ]);
        lab.advance_ms(500);
        assert_eq!(lab.store.keyspace.total_keys(), 1);
        let ahead_ms = lab.store.next_deadline() - lab.host.now.unix_ms();
        assert!((1..=100).contains(&ahead_ms), "{ahead_ms} ms");
        lab.check(&[("DEBUG PAUSE-CRON 0", "+OK\r\n")]);
        lab.advance_ms(1);
        assert_eq!(lab.store.keyspace.total_keys(), 0);
    }

    #[test]
    fn populate_creates_the_keys_that_are_missing() {
        let positive = "-ERR value is out of range, must be positive\r\n";
        lab().check(&[
            ("SET key:1 kept", "+OK\r\n"),
            ("DEBUG POPULATE 3", "+OK\r\n"),
            ("MGET key:0 key:1 key:2", "*3\r\n$7\r\nvalue:0\r\n$4\r\nkept\r\n$7\r\nvalue:2\r\n"),
            ("DEBUG POPULATE 2 p 3", "+OK\r\n"),
            ("GET p:1", "$3\r\nval\r\n"),
            ("DEBUG POPULATE 1 q 9", "+OK\r\n"),
            ("GET q:0", "$9\r\nvalue:0\0\0\r\n"),
            ("DBSIZE", ":6\r\n"),
            ("DEBUG POPULATE x", positive),
            ("DEBUG POPULATE -1", positive),
            ("DEBUG POPULATE 1 a b", positive),
            (
                "DEBUG POPULATE 1 a 1000000000000",
                "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n",
            ),
            ("DEBUG POPULATE", "-ERR unknown subcommand or wrong number of arguments for 'POPULATE'. Try DEBUG HELP.\r\n"),
        ]);
    }

    #[test]
    fn protocol_shows_every_reply_type() {
        let cases = [
            ("string", "$11\r\nHello World\r\n", "$11\r\nHello World\r\n"),
            ("integer", ":12345\r\n", ":12345\r\n"),
            ("double", "$5\r\n3.141\r\n", ",3.141\r\n"),
            ("null", "$-1\r\n", "_\r\n"),
            (
                "array",
                "*3\r\n:0\r\n:1\r\n:2\r\n",
                "*3\r\n:0\r\n:1\r\n:2\r\n",
            ),
            (
                "SET",
                "*3\r\n:0\r\n:1\r\n:2\r\n",
                "~3\r\n:0\r\n:1\r\n:2\r\n",
            ),
            (
                "map",
                "*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n",
                "%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n",
            ),
            (
                "attrib",
                "$39\r\nSome real reply following the attribute\r\n",
                "|1\r\n$14\r\nkey-popularity\r\n*2\r\n$7\r\nkey:123\r\n:90\r\n$39\r\nSome real reply following the attribute\r\n",
            ),
            (
                "push",
                "-ERR RESP2 is not supported by this command\r\n",
                ">2\r\n$16\r\nserver-cpu-usage\r\n:42\r\n$40\r\nSome real reply following the push reply\r\n",
            ),
            (
                "verbatim",
                "$25\r\nThis is a verbatim\nstring\r\n",
                "=29\r\ntxt:This is a verbatim\nstring\r\n",
            ),
            ("true", ":1\r\n", "#t\r\n"),
            ("false", ":0\r\n", "#f\r\n"),
            (
                "bignum",
                "$37\r\n1234567999999999999999999999999999999\r\n",
                "(1234567999999999999999999999999999999\r\n",
            ),
        ];
        let mut lab = lab();
        for (name, resp2, _) in cases {
            assert_eq!(lab.run(&format!("DEBUG PROTOCOL {name}")), resp2, "{name}");
        }
        lab.run("HELLO 3");
        for (name, _, resp3) in cases {
            assert_eq!(lab.run(&format!("DEBUG PROTOCOL {name}")), resp3, "{name}");
        }
        lab.check(&[(
            "DEBUG PROTOCOL nope",
            "-ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false\r\n",
        )]);
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
        let lines = 1 + 2 * super::HOOKS.len();
        let help = format!("*{lines}\r\n+DEBUG <subcommand>");
        assert!(lab.run("DEBUG HELP").starts_with(&help));
    }
}
