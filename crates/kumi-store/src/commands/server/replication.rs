//! Replicas: waiting for them, following another server, ROLE.
//!
//! There are no replicas, so REPLICAOF of a host is refused instead of pretending.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::parse;
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::session::AofWait;
use crate::engine::session::{Blocked, BlockedOn};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const REPLICATION: u32 = flag::ADMIN | flag::NOSCRIPT | flag::STALE | flag::NO_ASYNC_LOADING;

pub(in crate::commands) const COMMANDS: &[Command] = &[
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
    let progress = ctx.aof_progress();
    if local == 1 && !ctx.settings().appendonly {
        return Err(CommandError::NO_AOF);
    }
    let wait = AofWait {
        written: ctx.session().activity.written,
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
        on: BlockedOn::Aof(wait),
        until_ns: (timeout_ms > 0).then(|| {
            let wait_ns = timeout_ms.saturating_mul(1_000_000);
            ctx.now.mono_ns.saturating_add(wait_ns)
        }),
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
mod tests;
