//! The server as a whole: its clock, its end, its place among replicas.
//!
//! There are no replicas, so REPLICAOF of a host is refused instead of pretending.

use super::parse;
use crate::command::{Command, Group, category, flag};
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use crate::host::RewriteStart;
use crate::session::{Blocked, BlockedOn};
use crate::store::{Effect, Flow, LogWait, ShutdownRequest, SnapshotPurpose};
use kumi_resp::Args;

const ADMIN: u32 = flag::ADMIN | flag::NOSCRIPT | flag::LOADING | flag::STALE;
const REPLICATION: u32 = flag::ADMIN | flag::NOSCRIPT | flag::STALE | flag::NO_ASYNC_LOADING;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "lolwut",
        arity: -1,
        flags: flag::READONLY | flag::FAST,
        since: "5.0.0",
        complexity: "",
        summary: "Shows the version.",
        usage: "[VERSION version]",
        run: lolwut,
        ..Command::BASE
    },
    Command {
        name: "time",
        flags: flag::LOADING | flag::STALE | flag::FAST,
        since: "2.6.0",
        summary: "Returns the server's clock: Unix seconds, and microseconds of the second.",
        tips: &["nondeterministic_output"],
        run: time,
        ..Command::BASE
    },
    Command {
        name: "monitor",
        flags: ADMIN,
        complexity: "",
        summary: "Shows every command of every client as it runs.",
        run: monitor,
        ..Command::BASE
    },
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
        flags: ADMIN | flag::NO_MULTI | flag::ALLOW_BUSY,
        complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
        summary: "Stops the server.",
        usage: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]",
        run: shutdown,
        ..Command::BASE
    },
    Command {
        name: "wait",
        arity: 3,
        categories: category::CONNECTION,
        group: Group::Generic,
        since: "3.0.0",
        summary: "Waits until replicas have what this client wrote, or until the timeout.",
        usage: "numreplicas timeout",
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        run: wait,
        ..Command::BASE
    },
    Command {
        name: "waitaof",
        arity: 4,
        flags: flag::NOSCRIPT,
        categories: category::CONNECTION,
        group: Group::Generic,
        since: "7.2.0",
        summary: "Waits until the append-only file has what this client wrote on disk, or until the timeout.",
        usage: "numlocal numreplicas timeout",
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        run: waitaof,
        ..Command::BASE
    },
    Command {
        name: "replicaof",
        arity: 3,
        flags: REPLICATION,
        since: "5.0.0",
        summary: "Ends replication. Following another server is not possible yet.",
        usage: "<host port|NO ONE>",
        run: replicaof,
        ..Command::BASE
    },
    Command {
        name: "slaveof",
        arity: 3,
        flags: REPLICATION,
        summary: "An older name of REPLICAOF.",
        usage: "<host port|NO ONE>",
        deprecated: Some(("5.0.0", "`REPLICAOF`")),
        run: replicaof,
        ..Command::BASE
    },
    Command {
        name: "role",
        flags: flag::NOSCRIPT | flag::LOADING | flag::STALE | flag::FAST,
        categories: category::ADMIN | category::DANGEROUS,
        since: "2.8.12",
        summary: "Returns the part this server plays in replication.",
        run: role,
        ..Command::BASE
    },
];

/// The art of versions 5 and 6 is not drawn; every version shows the text that 7 shows.
fn lolwut(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if let (Some(option), Some(version)) = (args.get(1), args.get(2))
        && option.eq_ignore_ascii_case(b"version")
    {
        parse::integer(version)?;
    }
    let text = format!("Redis ver. {}\n", crate::REDIS_VERSION);
    ctx.reply.verbatim_text(text.as_bytes());
    Ok(())
}

fn time(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let us = ctx.now.unix_us.cast_signed();
    ctx.reply.array(2);
    ctx.reply.bulk_integer(us / 1_000_000);
    ctx.reply.bulk_integer(us % 1_000_000);
    Ok(())
}

fn monitor(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    if ctx.in_exec {
        return Err(CommandError::fixed(
            "ERR MONITOR isn't allowed for DENY BLOCKING client",
        ));
    }
    let key = ctx.session;
    // A second MONITOR gets no answer at all, as the first one's feed already runs.
    if !std::mem::replace(&mut ctx.session().monitor, true) {
        ctx.clients().monitors.push(key);
        ctx.reply.ok();
    }
    Ok(())
}

fn lastsave(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let last_unix_s = ctx.last_save();
    ctx.reply.integer(last_unix_s.cast_signed());
    Ok(())
}

const SAVE_RUNS: CommandError = CommandError::fixed("ERR Background save already in progress");

fn save(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    if ctx.snapshot_purpose() == Some(SnapshotPurpose::Save) {
        return Err(SAVE_RUNS);
    }
    write_file(ctx)?;
    ctx.reply.ok();
    Ok(())
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

/// Writes the RDB file. The reason of a failure is in the log, as in Redis; here the client gets it
/// too.
fn write_file(ctx: &mut Ctx<'_>) -> CommandResult {
    ctx.save().map_err(|error| {
        tracing::error!(%error, "Error saving DB on disk");
        CommandError::new(format!("ERR the RDB file cannot be written: {error}"))
    })
}

fn shutdown(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut request = ShutdownRequest::default();
    let (mut save, mut nosave, mut abort) = (false, false, false);
    for option in args.iter().skip(1) {
        match option.to_ascii_uppercase().as_slice() {
            b"SAVE" => save = true,
            b"NOSAVE" => nosave = true,
            b"NOW" => request.now = true,
            b"FORCE" => request.force = true,
            b"ABORT" => abort = true,
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
    ctx.session().closing = true;
    ctx.flow = Flow::Close;
    Ok(())
}

fn bgrewriteaof(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let parts = ctx.parts();
    let started = parts.host.rewrite_log(parts.config);
    let started = started.map_err(|reason| CommandError::new(format!("ERR {reason}")))?;
    // It begins when the running snapshot has ended, or behind the transaction.
    let waits = ctx.snapshot_purpose().is_some() || ctx.in_exec;
    ctx.reply.simple(match started {
        RewriteStart::Started if !waits => "Background append only file rewriting started",
        _ => "Background append only file rewriting scheduled",
    });
    Ok(())
}

/// The time that WAIT and WAITAOF wait at most, in milliseconds.
fn wait_timeout_ms(ctx: &Ctx<'_>, arg: &[u8]) -> Result<u64, CommandError> {
    let timeout_ms = parse::integer(arg)
        .map_err(|_| CommandError::fixed("ERR timeout is not an integer or out of range"))?;
    let timeout_ms =
        u64::try_from(timeout_ms).map_err(|_| CommandError::fixed("ERR timeout is negative"))?;
    if timeout_ms > i64::MAX.cast_unsigned() - ctx.now.unix_ms() {
        return Err(CommandError::fixed("ERR timeout is out of range"));
    }
    Ok(timeout_ms)
}

fn waitaof(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let local = parse::integer(&args[1])?;
    if !(0..=1).contains(&local) {
        return Err(CommandError::fixed(
            "ERR value is out of range, value must between 0 and 1",
        ));
    }
    let replicas = parse::integer(&args[2]).ok().filter(|&count| count >= 0);
    let replicas = replicas.ok_or(CommandError::fixed(
        "ERR value is out of range, must be positive",
    ))?;
    let timeout_ms = wait_timeout_ms(ctx, &args[3])?;
    let progress = ctx.log_progress();
    if local == 1 && !ctx.settings().appendonly {
        return Err(CommandError::NO_LOG);
    }
    let wait = LogWait {
        written: ctx.session().written,
        local: local == 1,
        replicas,
    };
    if wait.is_over(progress) || ctx.in_exec {
        let synced = wait.is_synced(progress);
        ctx.reply.array(2);
        ctx.reply.integer(i64::from(synced));
        ctx.reply.integer(0);
        return Ok(());
    }
    ctx.block(Blocked {
        on: BlockedOn::Log(wait),
        until_ns: (timeout_ms > 0).then(|| {
            let wait_ns = timeout_ms.saturating_mul(1_000_000);
            ctx.now.mono_ns.saturating_add(wait_ns)
        }),
    });
    Ok(())
}

fn wait(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let replicas = parse::integer(&args[1])?;
    let timeout_ms = wait_timeout_ms(ctx, &args[2])?;
    if replicas <= 0 || ctx.in_exec {
        ctx.reply.integer(0);
        return Ok(());
    }
    ctx.block(Blocked {
        on: BlockedOn::Replicas,
        until_ns: (timeout_ms > 0).then(|| {
            ctx.now
                .mono_ns
                .saturating_add(timeout_ms.saturating_mul(1_000_000))
        }),
    });
    Ok(())
}

fn replicaof(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args[1].eq_ignore_ascii_case(b"NO") && args[2].eq_ignore_ascii_case(b"ONE") {
        ctx.reply.ok();
        return Ok(());
    }
    let port = parse::integer(&args[2]).ok();
    if !port.is_some_and(|port| (0..=65535).contains(&port)) {
        return Err(CommandError::fixed("ERR Invalid master port"));
    }
    Err(CommandError::fixed(
        "ERR kumi-server cannot follow a master yet: only REPLICAOF NO ONE is possible",
    ))
}

fn role(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    ctx.reply.array(3);
    ctx.reply.bulk("master");
    ctx.reply.integer(0);
    ctx.reply.array(0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::store::{Effect, Flow};
    use crate::testing::Lab;

    #[test]
    fn time_and_lastsave_read_the_hosts_clock() {
        let mut lab = Lab::new();
        lab.check(&[
            ("TIME", "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"),
            ("LASTSAVE", ":1700000000\r\n"),
        ]);
        lab.advance_ms(1_002);
        lab.check(&[
            ("TIME", "*2\r\n$10\r\n1700000001\r\n$4\r\n2000\r\n"),
            ("LASTSAVE", ":1700000000\r\n"),
            (
                "TIME now",
                "-ERR wrong number of arguments for 'time' command\r\n",
            ),
        ]);
    }

    #[test]
    fn a_monitor_sees_commands_after_their_answers() {
        let mut lab = Lab::new();
        let other = lab.connect();
        lab.check(&[
            ("MONITOR", "+OK\r\n"),
            ("MONITOR", ""),
            ("PING", "+PONG\r\n+1700000000.000000 [0 ] \"PING\"\r\n"),
        ]);
        lab.run_as(other, "SELECT 3");
        lab.run_as(other, "SET a b");
        lab.run_as(other, "CONFIG GET port");
        let client = lab.client;
        assert_eq!(
            lab.received(client),
            "+1700000000.000000 [3 ] \"SELECT\" \"3\"\r\n+1700000000.000000 [3 ] \"SET\" \"a\" \"b\"\r\n"
        );
        lab.check(&[("RESET", "+RESET\r\n")]);
        lab.run_as(other, "PING");
        assert_eq!(lab.received(client), "");
    }

    #[test]
    fn monitor_is_refused_in_a_transaction() {
        Lab::new().check(&[
            ("MULTI", "+OK\r\n"),
            ("MONITOR", "+QUEUED\r\n"),
            (
                "EXEC",
                "*1\r\n-ERR MONITOR isn't allowed for DENY BLOCKING client\r\n",
            ),
        ]);
    }

    #[test]
    fn shutdown_answers_nothing_and_asks_the_host_to_stop() {
        let mut lab = Lab::new();
        lab.check(&[
            ("SHUTDOWN NOW please", "-ERR syntax error\r\n"),
            ("SHUTDOWN SAVE NOSAVE", "-ERR syntax error\r\n"),
            ("SHUTDOWN ABORT NOW", "-ERR syntax error\r\n"),
            ("SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n"),
        ]);
        lab.host.disk_is_full = true;
        assert!(lab.run("SHUTDOWN SAVE").starts_with("-ERR Errors trying"));
        assert!(lab.effects().is_empty());
        assert_eq!(lab.run("shutdown nosave now force"), "");
        assert_eq!(lab.last_flow, Flow::Close);
        let effects = lab.effects();
        let [Effect::Shutdown(request)] = effects.as_slice() else {
            panic!("{effects:?}");
        };
        assert!(request.now && request.force);
        assert_eq!(lab.run("PING"), "");
    }

    #[test]
    fn shutdown_is_refused_in_a_transaction() {
        let mut lab = Lab::new();
        lab.check(&[
            ("MULTI", "+OK\r\n"),
            (
                "SHUTDOWN",
                "-ERR Command not allowed inside a transaction\r\n",
            ),
        ]);
        assert!(lab.effects().is_empty());
    }

    #[test]
    fn wait_answers_at_once_without_replicas() {
        Lab::new().check(&[
            ("WAIT 0 0", ":0\r\n"),
            ("WAIT -1 0", ":0\r\n"),
            (
                "WAIT x y",
                "-ERR value is not an integer or out of range\r\n",
            ),
            (
                "WAIT 1 x",
                "-ERR timeout is not an integer or out of range\r\n",
            ),
            ("WAIT 1 -1", "-ERR timeout is negative\r\n"),
            (
                "WAIT 1 9223372036854775807",
                "-ERR timeout is out of range\r\n",
            ),
            ("MULTI", "+OK\r\n"),
            ("WAIT 1 0", "+QUEUED\r\n"),
            ("EXEC", "*1\r\n:0\r\n"),
        ]);
    }

    #[test]
    fn wait_for_a_replica_ends_with_its_timeout() {
        let mut lab = Lab::new();
        let client = lab.client;
        lab.check(&[("WAIT 1 100", "")]);
        assert_eq!(lab.last_flow, Flow::Blocked);
        lab.advance_ms(99);
        assert_eq!(lab.received(client), "");
        lab.advance_ms(1);
        assert_eq!(lab.received(client), ":0\r\n");
        assert!(matches!(lab.effects()[..], [Effect::Resume(key)] if key == client));
    }

    #[test]
    fn only_replicaof_no_one_is_possible() {
        let mut lab = Lab::new();
        lab.check(&[
            ("REPLICAOF no one", "+OK\r\n"),
            ("SLAVEOF NO ONE", "+OK\r\n"),
            ("REPLICAOF no two", "-ERR Invalid master port\r\n"),
            ("REPLICAOF host 65536", "-ERR Invalid master port\r\n"),
            ("ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"),
        ]);
        assert!(lab.run("REPLICAOF host 6379").starts_with("-ERR kumi"));
    }

    #[test]
    fn save_writes_what_can_be_loaded_again() {
        let mut lab = Lab::new();
        for line in [
            "SET a 1",
            "SET t text PX 60000",
            "RPUSH l x y 3",
            "HSET h f v g w",
            "SADD s 1 2 three",
            "ZADD z 1.5 m 2 n",
            "SELECT 3",
            "SET b 2",
            "SELECT 0",
        ] {
            lab.run(line);
        }
        let info = |lab: &mut Lab| lab.run("INFO persistence");
        assert!(info(&mut lab).contains("rdb_changes_since_last_save:13\r\n"));
        lab.advance_ms(5000);
        lab.check(&[("SAVE", "+OK\r\n")]);
        assert!(info(&mut lab).contains("rdb_changes_since_last_save:0\r\n"));
        let saved = lab.host.saved.clone().expect("a file");
        let mut other = Lab::new();
        let loaded = other.store.load_rdb(&saved[..], |_| {}).expect("it loads");
        assert_eq!((loaded.keys, loaded.version), (7, 10));
        for line in [
            "GET a",
            "GET t",
            "LRANGE l 0 -1",
            "HGETALL h",
            "SMISMEMBER s 1 2 three 4",
            "ZRANGE z 0 -1 WITHSCORES",
            "DBSIZE",
        ] {
            assert_eq!(other.run(line), lab.run(line), "{line}");
        }
        assert!(other.run("PTTL t").as_str() > ":50000");
        other.check(&[("SELECT 3", "+OK\r\n"), ("GET b", "$1\r\n2\r\n")]);
        for cut in [0, 8, 9, 40, saved.len() - 1] {
            let mut third = Lab::new();
            third
                .store
                .load_rdb(&saved[..cut], |_| {})
                .expect_err("it is cut");
        }
        let mut damaged = saved.clone();
        damaged[60] ^= 1;
        let mut third = Lab::new();
        third
            .store
            .load_rdb(&damaged[..], |_| {})
            .expect_err("it is damaged");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_an_error() {
        let mut lab = Lab::new();
        lab.host.disk_is_full = true;
        assert!(
            lab.run("SAVE")
                .starts_with("-ERR the RDB file cannot be written")
        );
        // As in Redis, only a save in the background counts.
        assert!(
            lab.run("INFO persistence")
                .contains("rdb_last_bgsave_status:ok")
        );
        lab.check(&[(
            "SHUTDOWN SAVE",
            "-ERR Errors trying to SHUTDOWN. Check logs.\r\n",
        )]);
        assert_eq!(lab.run("SHUTDOWN SAVE FORCE"), "");
    }

    fn info(lab: &mut Lab, field: &str) -> String {
        let text = lab.run("INFO persistence");
        let line = text.lines().find_map(|line| line.strip_prefix(field));
        line.and_then(|rest| rest.strip_prefix(':'))
            .expect("a field")
            .to_owned()
    }

    #[test]
    fn bgsave_writes_what_there_was_when_it_began() {
        let mut lab = Lab::new();
        lab.run("SET a before");
        lab.host.holds_snapshots = true;
        lab.check(&[("BGSAVE", "+Background saving started\r\n")]);
        lab.run("SET a after");
        lab.run("SET b after");
        assert_eq!(info(&mut lab, "rdb_bgsave_in_progress"), "1");
        assert_eq!(info(&mut lab, "rdb_current_bgsave_time_sec"), "0");
        assert_eq!(info(&mut lab, "current_save_keys_total"), "1");
        lab.check(&[
            ("BGSAVE", "-ERR Background save already in progress\r\n"),
            (
                "BGSAVE SCHEDULE",
                "-ERR Background save already in progress\r\n",
            ),
            ("SAVE", "-ERR Background save already in progress\r\n"),
            ("BGSAVE now", "-ERR syntax error\r\n"),
        ]);
        lab.advance_ms(2000);
        lab.host.holds_snapshots = false;
        lab.advance_ms(1000);
        assert_eq!(info(&mut lab, "rdb_bgsave_in_progress"), "0");
        assert_eq!(info(&mut lab, "rdb_last_bgsave_status"), "ok");
        assert_eq!(info(&mut lab, "rdb_last_bgsave_time_sec"), "3");
        assert_eq!(info(&mut lab, "rdb_saves"), "1");
        assert_eq!(info(&mut lab, "rdb_changes_since_last_save"), "2");
        lab.check(&[("LASTSAVE", ":1700000003\r\n")]);
        let saved = lab.host.saved.clone().expect("a file");
        let mut other = Lab::new();
        other.store.load_rdb(&saved[..], |_| {}).expect("it loads");
        other.check(&[("GET a", "$6\r\nbefore\r\n"), ("DBSIZE", ":1\r\n")]);
    }

    #[test]
    fn bgsave_in_a_transaction_is_scheduled() {
        let mut lab = Lab::new();
        lab.check(&[
            ("MULTI", "+OK\r\n"),
            ("BGSAVE", "+QUEUED\r\n"),
            ("EXEC", "*1\r\n+Background saving scheduled\r\n"),
        ]);
        lab.advance_ms(100);
        lab.advance_ms(100);
        assert_eq!(info(&mut lab, "rdb_saves"), "1");
        lab.advance_ms(1000);
        assert_eq!(info(&mut lab, "rdb_saves"), "1");
    }

    #[test]
    fn save_points_save_once_both_their_numbers_are_reached() {
        let mut lab = Lab::new();
        lab.configure("save", "60 2");
        lab.run("SET a 1");
        lab.advance_ms(70_000);
        assert_eq!(info(&mut lab, "rdb_saves"), "0");
        lab.run("SET b 1");
        lab.advance_ms(100);
        lab.advance_ms(100);
        assert_eq!(info(&mut lab, "rdb_saves"), "1");
        lab.run("MSET a 1 b 2 c 3");
        lab.advance_ms(60_000);
        assert_eq!(info(&mut lab, "rdb_saves"), "1", "not yet");
        lab.advance_ms(1_000);
        lab.advance_ms(100);
        assert_eq!(info(&mut lab, "rdb_saves"), "2");
    }

    #[test]
    fn writes_are_refused_after_a_save_that_failed() {
        let mut lab = Lab::new();
        lab.configure("save", "60 1");
        lab.host.disk_is_full = true;
        assert!(lab.run("BGSAVE").starts_with("-ERR the RDB file"));
        assert_eq!(info(&mut lab, "rdb_last_bgsave_status"), "err");
        for line in [
            "SET a 1",
            "PING",
            "DEL a",
            "EVAL return(redis.call('DEL','a')) 0",
        ] {
            assert!(
                lab.run(line).starts_with("-MISCONF Redis is configured"),
                "{line}"
            );
        }
        lab.check(&[("EVAL return(1) 0", ":1\r\n"), ("PUBLISH c m", ":0\r\n")]);
        lab.check(&[
            ("GET a", "$-1\r\n"),
            ("CONFIG SET stop-writes-on-bgsave-error no", "+OK\r\n"),
        ]);
        lab.check(&[
            ("SET a 1", "+OK\r\n"),
            ("CONFIG SET stop-writes-on-bgsave-error yes", "+OK\r\n"),
        ]);
        assert!(lab.run("SET a 1").starts_with("-MISCONF"));
        lab.host.disk_is_full = false;
        // Not before five seconds have passed.
        lab.advance_ms(3_000);
        assert!(lab.run("SET a 1").starts_with("-MISCONF"));
        lab.advance_ms(60_000);
        lab.advance_ms(100);
        lab.check(&[("SET a 1", "+OK\r\n"), ("PING", "+PONG\r\n")]);
    }

    #[test]
    fn flushall_ends_a_save_and_empties_the_file() {
        let mut lab = Lab::new();
        lab.configure("save", "60 10000");
        lab.run("SET a 1");
        lab.host.holds_snapshots = true;
        lab.run("BGSAVE");
        lab.check(&[("FLUSHALL", "+OK\r\n")]);
        assert_eq!(info(&mut lab, "rdb_bgsave_in_progress"), "0");
        assert_eq!(info(&mut lab, "rdb_changes_since_last_save"), "0");
        let saved = lab.host.saved.clone().expect("a file");
        let mut other = Lab::new();
        let loaded = other.store.load_rdb(&saved[..], |_| {}).expect("it loads");
        assert_eq!(loaded.keys, 0);
        lab.configure("save", "");
        lab.host.saved = None;
        lab.check(&[("FLUSHALL", "+OK\r\n")]);
        assert!(lab.host.saved.is_none());
    }

    #[test]
    fn shutdown_saves_if_there_are_save_points() {
        for (points, line, saves) in [
            ("60 1", "SHUTDOWN", true),
            ("60 1", "SHUTDOWN NOSAVE", false),
            ("", "SHUTDOWN", false),
            ("", "SHUTDOWN SAVE", true),
        ] {
            let mut lab = Lab::new();
            lab.configure("save", points);
            lab.run("SET a 1");
            assert_eq!(lab.run(line), "");
            assert_eq!(lab.host.saved.is_some(), saves, "{points:?} {line}");
        }
    }
}
