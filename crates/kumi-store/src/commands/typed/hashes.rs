//! Hashes: fields with values under one key. Numbers kept in fields are in `hashes/counters.rs`,
//! HRANDFIELD is in `hashes/random.rs`.
//!
//! A command looks at a hash or edits it through the door; how the hash is stored is not seen here.
//! The encoding OBJECT ENCODING shows follows the limits of the configuration.

mod counters;
mod random;

use super::elements::scan_elements;
use crate::base::error::{CommandError, CommandResult};
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Look, Missing};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::hash::{Hash, HashLimits, HashRef};
use crate::types::packed::Elem;
use counters::{hincrby, hincrbyfloat};
use kumi_resp::Args;
use random::hrandfield;

const BASE: Command = Command {
    categories: category::HASH,
    group: Group::Hash,
    since: "2.0.0",
    ..Command::BASE
};
const READ: &[KeySpec] = &[KeySpec::one(1, key::RO | key::ACCESS)];
const INSPECT: &[KeySpec] = &[KeySpec::one(1, key::RO)];
const CHANGE: &[KeySpec] = &[KeySpec::one(1, key::RW | key::ACCESS | key::UPDATE)];

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "hset",
        arity: -4,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::UPDATE)],
        complexity: "O(N), N being the number of fields set.",
        summary: "Sets fields of a hash, which is created if there is none.",
        usage: "key field value [field value ...]",
        run: hset,
        ..BASE
    },
    Command {
        name: "hsetnx",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::INSERT)],
        summary: "Sets a field of a hash if the field does not exist.",
        usage: "key field value",
        run: hsetnx,
        ..BASE
    },
    Command {
        name: "hget",
        arity: 3,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        summary: "Reads a field of a hash.",
        usage: "key field",
        run: hget,
        ..BASE
    },
    Command {
        name: "hmset",
        arity: -4,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::UPDATE)],
        complexity: "O(N), N being the number of fields set.",
        summary: "Sets fields of a hash; the older form of HSET.",
        usage: "key field value [field value ...]",
        deprecated: Some(("4.0.0", "`HSET` with multiple field-value pairs")),
        run: hmset,
        ..BASE
    },
    Command {
        name: "hmget",
        arity: -3,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        complexity: "O(N), N being the number of fields asked for.",
        summary: "Reads several fields of a hash.",
        usage: "key field [field ...]",
        run: hmget,
        ..BASE
    },
    Command {
        name: "hgetall",
        arity: 2,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(N), N being the number of fields.",
        summary: "Reads all fields of a hash with their values.",
        usage: "key",
        tips: &["nondeterministic_output_order"],
        run: hgetall,
        ..BASE
    },
    Command {
        name: "hdel",
        arity: -3,
        flags: flag::WRITE | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::DELETE)],
        complexity: "O(N), N being the number of fields given.",
        summary: "Deletes fields of a hash, and the hash with its last field.",
        usage: "key field [field ...]",
        run: hdel,
        ..BASE
    },
    Command {
        name: "hlen",
        arity: 2,
        flags: flag::READONLY | flag::FAST,
        keys: INSPECT,
        summary: "Counts the fields of a hash.",
        usage: "key",
        run: hlen,
        ..BASE
    },
    Command {
        name: "hstrlen",
        arity: 3,
        flags: flag::READONLY | flag::FAST,
        keys: INSPECT,
        since: "3.2.0",
        summary: "Tells the length of a field's value in bytes.",
        usage: "key field",
        run: hstrlen,
        ..BASE
    },
    Command {
        name: "hexists",
        arity: 3,
        flags: flag::READONLY | flag::FAST,
        keys: INSPECT,
        summary: "Tells whether a hash has a field.",
        usage: "key field",
        run: hexists,
        ..BASE
    },
    Command {
        name: "hkeys",
        arity: 2,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(N), N being the number of fields.",
        summary: "Lists the fields of a hash.",
        usage: "key",
        tips: &["nondeterministic_output_order"],
        run: hkeys,
        ..BASE
    },
    Command {
        name: "hvals",
        arity: 2,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(N), N being the number of fields.",
        summary: "Lists the values of a hash.",
        usage: "key",
        tips: &["nondeterministic_output_order"],
        run: hvals,
        ..BASE
    },
    Command {
        name: "hincrby",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: CHANGE,
        summary: "Adds to an integer in a field, which begins at zero if there is none.",
        usage: "key field increment",
        run: hincrby,
        ..BASE
    },
    Command {
        name: "hincrbyfloat",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: CHANGE,
        since: "2.6.0",
        summary: "Adds to a number with a fraction in a field, which begins at zero if there is none.",
        usage: "key field increment",
        run: hincrbyfloat,
        ..BASE
    },
    Command {
        name: "hrandfield",
        arity: -2,
        flags: flag::READONLY,
        keys: READ,
        since: "6.2.0",
        complexity: "O(N), N being the number of fields returned.",
        summary: "Picks random fields of a hash.",
        usage: "key [count [WITHVALUES]]",
        tips: &["nondeterministic_output"],
        run: hrandfield,
        ..BASE
    },
    Command {
        name: "hscan",
        arity: -3,
        flags: flag::READONLY,
        keys: READ,
        since: "2.8.0",
        complexity: "O(1) for a call with the default count, O(N) for all N fields.",
        summary: "Goes through the fields of a hash a few at a time.",
        usage: "key cursor [MATCH pattern] [COUNT count]",
        tips: &["nondeterministic_output"],
        run: hscan,
        ..BASE
    },
];

fn hset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let created = set_fields(ctx, args, "hset")?;
    ctx.reply.count(created);
    Ok(())
}

fn hsetnx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, field, value) = (&args[1], &args[2], &args[3]);
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let seed = keys.seed();
    let edited = keys.edit(key, Missing::Create, |hash: &mut Hash| {
        if hash.view().contains(field) {
            return Ok(Edit::Unchanged(()));
        }
        hash.set(field, value, limits, seed);
        Ok(Edit::Changed(()))
    })?;
    let changed = edited.is_some_and(|edited| edited.changed);
    if changed {
        keys.notify(NotifyFlags::HASH, "hset", key);
        ctx.dirty(1);
    }
    ctx.reply.integer(i64::from(changed));
    Ok(())
}

fn hget(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let hash = keys.view::<Hash>(&args[1], Look::Read)?;
    answer(reply, hash.and_then(|hash| hash.get(&args[2])));
    Ok(())
}

fn hmset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set_fields(ctx, args, "hmset")?;
    ctx.reply.ok();
    Ok(())
}

fn hmget(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let hash = keys.view::<Hash>(&args[1], Look::Read)?;
    reply.array(args.len() - 2);
    for field in args.iter().skip(2) {
        answer(reply, hash.and_then(|hash| hash.get(field)));
    }
    Ok(())
}

fn hgetall(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(hash) = keys.view::<Hash>(&args[1], Look::Read)? else {
        reply.map(0);
        return Ok(());
    };
    reply.map(hash.len());
    for (field, value) in hash.iter() {
        bulk(reply, field);
        bulk(reply, value);
    }
    Ok(())
}

fn hdel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |hash: &mut Hash| {
        let removed = args.iter().skip(2).filter(|field| hash.remove(field));
        Ok(match removed.count() {
            0 => Edit::Unchanged(0),
            removed => Edit::Changed(removed),
        })
    })?;
    let removed = edited.map_or(0, |edited| edited.result);
    if removed > 0 {
        keys.notify(NotifyFlags::HASH, "hdel", key);
        if edited.is_some_and(|edited| edited.removed) {
            keys.notify(NotifyFlags::GENERIC, "del", key);
        }
        ctx.dirty(removed);
    }
    ctx.reply.count(removed);
    Ok(())
}

fn hlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let hash = keys.view::<Hash>(&args[1], Look::Read)?;
    reply.count(hash.map_or(0, HashRef::len));
    Ok(())
}

fn hstrlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let hash = keys.view::<Hash>(&args[1], Look::Read)?;
    let value = hash.and_then(|hash| hash.get(&args[2]));
    reply.count(value.map_or(0, |value| value.text().len()));
    Ok(())
}

fn hexists(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let hash = keys.view::<Hash>(&args[1], Look::Read)?;
    let exists = hash.is_some_and(|hash| hash.contains(&args[2]));
    reply.integer(i64::from(exists));
    Ok(())
}

fn hkeys(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list(ctx, args, |field, _| field)
}

fn hvals(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list(ctx, args, |_, value| value)
}

fn hscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    scan_elements::<Hash>(ctx, args, |hash, cursor, visit| {
        hash.scan(cursor, &mut |field, value| {
            visit(&field.text(), Some(&value.text()));
        })
    })
}

/// Sets the fields of HSET and HMSET, and returns how many are new.
fn set_fields(ctx: &mut Ctx<'_>, args: Args<'_>, name: &str) -> Result<usize, CommandError> {
    if !args.len().is_multiple_of(2) {
        return Err(CommandError::arity(name));
    }
    let key = &args[1];
    let limits = limits(ctx);
    let pairs = args.tail(2);
    let longest = pairs.iter().map(<[u8]>::len).max().unwrap_or(0);
    let mut keys = ctx.keys();
    let seed = keys.seed();
    let edited = keys.edit(key, Missing::Create, |hash: &mut Hash| {
        hash.prepare(pairs.len() / 2, longest, limits);
        let mut pairs = pairs.iter();
        let mut created = 0;
        while let (Some(field), Some(value)) = (pairs.next(), pairs.next()) {
            created += usize::from(hash.set(field, value, limits, seed));
        }
        Ok(Edit::Changed(created))
    })?;
    keys.notify(NotifyFlags::HASH, "hset", key);
    ctx.dirty(pairs.len() / 2);
    Ok(edited.map_or(0, |edited| edited.result))
}

/// Lists one half of every pair.
fn list(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    half: for<'e> fn(Elem<'e>, Elem<'e>) -> Elem<'e>,
) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(hash) = keys.view::<Hash>(&args[1], Look::Read)? else {
        reply.array(0);
        return Ok(());
    };
    reply.array(hash.len());
    for (field, value) in hash.iter() {
        bulk(reply, half(field, value));
    }
    Ok(())
}

pub(super) fn limits(ctx: &Ctx<'_>) -> HashLimits {
    ctx.settings().hash_limits()
}

fn answer(reply: &mut Reply<'_>, value: Option<Elem<'_>>) {
    match value {
        Some(value) => bulk(reply, value),
        None => reply.null(),
    }
}

#[inline]
fn bulk(reply: &mut Reply<'_>, elem: Elem<'_>) {
    match elem {
        Elem::Int(number) => reply.bulk_integer(number),
        Elem::Bytes(bytes) => reply.bulk(bytes),
    }
}

#[cfg(test)]
mod tests;
