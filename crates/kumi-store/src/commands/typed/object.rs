//! OBJECT: how a value is kept. What it says is what Redis would say of the same value, so that scripts
//! that look for `embstr` find it; nothing is changed by looking, not even the time of the last access.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::help;
use crate::data::keyspace::{Entry, Look, StringRef, ValueRef, idle_seconds};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const INSPECT: Command = Command {
    arity: 3,
    flags: flag::READONLY,
    categories: category::KEYSPACE,
    keys: &[KeySpec::one(2, key::RO)],
    group: Group::Generic,
    since: "2.2.3",
    usage: "key",
    tips: &["nondeterministic_output"],
    ..Command::BASE
};

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "object",
    arity: -2,
    group: Group::Generic,
    since: "2.2.3",
    complexity: "Depends on the subcommand.",
    summary: "Tells how the value of a key is kept.",
    subcommands: &[
        Command {
            name: "encoding",
            summary: "Names the form in which a value is kept.",
            run: encoding,
            ..INSPECT
        },
        Command {
            name: "refcount",
            summary: "Counts how often a value is referred to.",
            run: refcount,
            ..INSPECT
        },
        Command {
            name: "idletime",
            summary: "Tells for how many seconds a key has not been used.",
            run: idletime,
            ..INSPECT
        },
        Command {
            name: "freq",
            since: "4.0.0",
            summary: "Tells how often a key is used, under a policy that counts it.",
            run: freq,
            ..INSPECT
        },
        Command {
            name: "help",
            arity: 2,
            flags: flag::LOADING | flag::STALE,
            categories: category::KEYSPACE,
            group: Group::Generic,
            since: "6.2.0",
            summary: "Shows what OBJECT can do.",
            run: help::from_rows,
            ..Command::BASE
        },
    ],
    ..Command::BASE
}];

/// Strings up to this length share an allocation with their header in Redis.
const EMBEDDED_MAX: usize = 44;
/// Redis keeps one object for each of the integers below, and says so by this count.
const SHARED_INTEGERS: std::ops::Range<i64> = 0..10_000;
const SHARED_COUNT: i64 = i32::MAX as i64;

fn encoding(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    match keys.look(&args[2], Look::Inspect) {
        None => reply.null(),
        Some(entry) => reply.bulk(encoding_name(entry)),
    }
    Ok(())
}

fn refcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    // Redis shares no integers where each key needs its own time or number of accesses.
    let settings = ctx.settings();
    let shares = settings.maxmemory_bytes == 0 || !settings.maxmemory_policy.looks_at_accesses();
    let (mut keys, reply) = ctx.keys_and_reply();
    match keys.look(&args[2], Look::Inspect).map(Entry::string) {
        None => reply.null(),
        Some(Some(StringRef::Int(number))) if shares && SHARED_INTEGERS.contains(&number) => {
            reply.integer(SHARED_COUNT);
        }
        Some(_) => reply.integer(1),
    }
    Ok(())
}

fn idletime(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let counts = ctx.settings().maxmemory_policy.counts_accesses();
    let now_ms = ctx.now.unix_ms();
    let (mut keys, reply) = ctx.keys_and_reply();
    match keys.look(&args[2], Look::Inspect) {
        None => reply.null(),
        Some(_) if counts => {
            return Err(CommandError::fixed(
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
            ));
        }
        Some(entry) => reply.integer(i64::from(idle_seconds(entry, now_ms))),
    }
    Ok(())
}

fn freq(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let counts = ctx.settings().maxmemory_policy.counts_accesses();
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(frequency) = keys.frequency(&args[2]) else {
        reply.null();
        return Ok(());
    };
    if counts {
        reply.integer(i64::from(frequency));
        return Ok(());
    }
    Err(CommandError::fixed(
        "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.",
    ))
}

/// What Redis would call the form of this value.
pub(in crate::commands) fn encoding_name(entry: &Entry) -> &'static str {
    match entry.value() {
        ValueRef::String(StringRef::Int(_)) => "int",
        ValueRef::String(StringRef::Bytes {
            bytes, raw: false, ..
        }) if bytes.len() <= EMBEDDED_MAX => "embstr",
        ValueRef::String(StringRef::Bytes { .. }) => "raw",
        ValueRef::List(list) => list.encoding().name(),
        ValueRef::Set(set) => set.encoding().name(),
        ValueRef::SortedSet(zset) => zset.encoding().name(),
        ValueRef::Hash(hash) => hash.encoding().name(),
        ValueRef::Stream(_) => "stream",
    }
}

#[cfg(test)]
mod tests;
