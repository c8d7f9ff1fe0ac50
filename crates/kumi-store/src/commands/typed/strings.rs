//! Strings: reading, writing and cutting bytes. Numbers kept as strings are in `strings/counters.rs`,
//! SET with all its options in `strings/set.rs`, LCS in `strings/lcs.rs`.
//!
//! Nothing here looks at a clock or at the table: a command reads and writes through the door, which
//! keeps the limits on keys and values.

mod counters;
mod lcs;
mod set;

use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_i64;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Expiry, Keys, Look, NewValue, StringRef, When};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use counters::{decr, decrby, incr, incrby, incrbyfloat};
use kumi_resp::Args;
use lcs::lcs;
use set::{getex, psetex, set, setex, setnx, store};
use std::collections::BTreeSet;

const BASE: Command = Command {
    categories: category::STRING,
    group: Group::String,
    ..Command::BASE
};
const READ: &[KeySpec] = &[KeySpec::one(1, key::RO | key::ACCESS)];
const CHANGE: &[KeySpec] = &[KeySpec::one(1, key::RW | key::ACCESS | key::UPDATE)];
const OVERWRITE: &[KeySpec] = &[KeySpec::one(1, key::OW | key::UPDATE)];

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "get",
        arity: 2,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        summary: "Reads the string stored at a key.",
        usage: "key",
        run: get,
        ..BASE
    },
    Command {
        name: "set",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM | flag::CONSTANT_TIME,
        keys: &[KeySpec::one(1, key::RW | key::ACCESS | key::UPDATE)
            .varying(set::key_flags)
            .with_notes("reads the old value only when GET is given")],
        summary: "Stores a string at a key, whatever was there before, with options for conditions and expiry.",
        usage: "key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
        run: set,
        ..BASE
    },
    Command {
        name: "getex",
        arity: -2,
        flags: flag::WRITE | flag::FAST,
        keys: &[CHANGE[0].with_notes("an option changes the time to live")],
        since: "6.2.0",
        summary: "Reads a string and sets or removes its key's deadline.",
        usage: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
        run: getex,
        ..BASE
    },
    Command {
        name: "getdel",
        arity: 2,
        flags: flag::WRITE | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::ACCESS | key::DELETE)],
        since: "6.2.0",
        summary: "Reads a string and deletes its key.",
        usage: "key",
        run: getdel,
        ..BASE
    },
    Command {
        name: "getset",
        arity: 3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: CHANGE,
        summary: "Stores a string and answers with the one it replaced.",
        usage: "key value",
        deprecated: Some(("6.2.0", "`SET` with `GET`")),
        run: getset,
        ..BASE
    },
    Command {
        name: "mget",
        arity: -2,
        flags: flag::READONLY | flag::FAST,
        keys: &[KeySpec::rest(1, key::RO | key::ACCESS)],
        complexity: "O(N), N being the number of keys.",
        summary: "Reads the strings of several keys at once.",
        usage: "key [key ...]",
        tips: &["request_policy:multi_shard"],
        run: mget,
        ..BASE
    },
    Command {
        name: "mset",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::rest(2, key::OW | key::UPDATE)],
        since: "1.0.1",
        complexity: "O(N), N being the number of keys.",
        summary: "Stores several strings at once, all of them or none.",
        usage: "key value [key value ...]",
        tips: &[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ],
        run: mset,
        ..BASE
    },
    Command {
        name: "msetnx",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::rest(2, key::OW | key::INSERT)],
        since: "1.0.1",
        complexity: "O(N), N being the number of keys.",
        summary: "Stores several strings at once, but only if none of the keys exists.",
        usage: "key value [key value ...]",
        tips: &["request_policy:multi_shard", "response_policy:agg_min"],
        run: msetnx,
        ..BASE
    },
    Command {
        name: "setnx",
        arity: 3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: &[KeySpec::one(1, key::OW | key::INSERT)],
        summary: "Stores a string if the key does not exist.",
        usage: "key value",
        deprecated: Some(("2.6.12", "`SET` with `NX`")),
        run: setnx,
        ..BASE
    },
    Command {
        name: "setex",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM | flag::CONSTANT_TIME,
        keys: OVERWRITE,
        since: "2.0.0",
        summary: "Stores a string that expires after some seconds.",
        usage: "key seconds value",
        deprecated: Some(("2.6.12", "`SET` with `EX`")),
        run: setex,
        ..BASE
    },
    Command {
        name: "psetex",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM | flag::CONSTANT_TIME,
        keys: OVERWRITE,
        since: "2.6.0",
        summary: "Stores a string that expires after some milliseconds.",
        usage: "key milliseconds value",
        deprecated: Some(("2.6.12", "`SET` with `PX`")),
        run: psetex,
        ..BASE
    },
    Command {
        name: "append",
        arity: 3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::INSERT)],
        since: "2.0.0",
        complexity: "O(1) for each byte appended, because long strings grow with room to spare.",
        summary: "Adds bytes at the end of a string, which begins empty if there is none.",
        usage: "key value",
        run: append,
        ..BASE
    },
    Command {
        name: "strlen",
        arity: 2,
        flags: flag::READONLY | flag::FAST,
        keys: &[KeySpec::one(1, key::RO)],
        since: "2.2.0",
        summary: "Tells the length of a string in bytes.",
        usage: "key",
        run: strlen,
        ..BASE
    },
    Command {
        name: "getrange",
        arity: 4,
        flags: flag::READONLY,
        keys: READ,
        since: "2.4.0",
        complexity: "O(N), N being the number of bytes answered.",
        summary: "Reads a part of a string; negative positions count from its end.",
        usage: "key start end",
        run: getrange,
        ..BASE
    },
    Command {
        name: "substr",
        arity: 4,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(N), N being the number of bytes answered.",
        summary: "The old name of GETRANGE.",
        usage: "key start end",
        deprecated: Some(("2.0.0", "`GETRANGE`")),
        run: getrange,
        ..BASE
    },
    Command {
        name: "setrange",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::one(1, key::RW | key::UPDATE)],
        since: "2.2.0",
        complexity: "O(N), N being the number of bytes written, zeros that fill a gap included.",
        summary: "Overwrites a part of a string, which grows with zero bytes if it is too short.",
        usage: "key offset value",
        run: setrange,
        ..BASE
    },
    Command {
        name: "incr",
        arity: 2,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: CHANGE,
        summary: "Adds one to an integer, which begins at zero if there is none.",
        usage: "key",
        run: incr,
        ..BASE
    },
    Command {
        name: "decr",
        arity: 2,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: CHANGE,
        summary: "Takes one from an integer, which begins at zero if there is none.",
        usage: "key",
        run: decr,
        ..BASE
    },
    Command {
        name: "incrby",
        arity: 3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: CHANGE,
        summary: "Adds to an integer, which begins at zero if there is none.",
        usage: "key increment",
        run: incrby,
        ..BASE
    },
    Command {
        name: "decrby",
        arity: 3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: CHANGE,
        summary: "Takes from an integer, which begins at zero if there is none.",
        usage: "key decrement",
        run: decrby,
        ..BASE
    },
    Command {
        name: "incrbyfloat",
        arity: 3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: CHANGE,
        since: "2.6.0",
        summary: "Adds to a number with a fraction, which begins at zero if there is none.",
        usage: "key increment",
        run: incrbyfloat,
        ..BASE
    },
    Command {
        name: "lcs",
        arity: -3,
        flags: flag::READONLY,
        keys: &[KeySpec::range(1, 1, 1, key::RO | key::ACCESS)],
        since: "7.0.0",
        complexity: "O(N*M), N and M being the lengths of the strings.",
        summary: "Finds the longest sequence of bytes that two strings have in common, gaps allowed.",
        usage: "key1 key2 [LEN] [IDX] [MINMATCHLEN min-match-len] [WITHMATCHLEN]",
        run: lcs,
        ..BASE
    },
];

fn get(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    answer(reply, keys.read(&args[1])?);
    Ok(())
}

fn getdel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let lazy = ctx.settings().lazyfree_user_del;
    let (mut keys, reply) = ctx.keys_and_reply();
    answer(reply, keys.read(key)?);
    if keys.remove(key) {
        keys.notify(NotifyFlags::GENERIC, "del", key);
        let verb: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
        ctx.propagate_as([verb, key]);
        ctx.dirty(1);
    }
    Ok(())
}

fn getset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    get(ctx, args)?;
    store(ctx, When::Always, args, 2, Expiry::Clear)?;
    ctx.propagate_as([b"SET", &args[1], &args[2]]);
    Ok(())
}

fn mget(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    reply.array(args.len() - 1);
    for key in args.iter().skip(1) {
        // A key of another type counts as one that is not there.
        answer(reply, keys.read(key).unwrap_or_default());
    }
    Ok(())
}

fn mset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::arity("mset"));
    }
    store_pairs(ctx, args)?;
    ctx.reply.ok();
    Ok(())
}

fn msetnx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len().is_multiple_of(2) {
        return Err(CommandError::arity("msetnx"));
    }
    let mut keys = ctx.keys();
    if pairs(args).any(|(key, _)| keys.exists(key)) {
        ctx.reply.integer(0);
        return Ok(());
    }
    store_pairs(ctx, args)?;
    ctx.reply.integer(1);
    Ok(())
}

fn append(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, tail) = (&args[1], &args[2]);
    let limit = ctx.max_string_bytes();
    let mut keys = ctx.keys();
    let len = match keys.string(key, Look::Write)? {
        None => {
            keys.put(key, NewValue::argument(args, 2), Expiry::Clear)?;
            tail.len()
        }
        Some(old) => {
            let len = grown_len(length(old), tail.len(), limit)?;
            keys.edit_bytes(key, len, |bytes| {
                make_room(bytes, tail.len());
                bytes.extend_from_slice(tail);
            })?;
            len
        }
    };
    keys.notify(NotifyFlags::STRING, "append", key);
    ctx.dirty(1);
    ctx.reply.count(len);
    Ok(())
}

fn strlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    reply.count(keys.read(&args[1])?.map_or(0, length));
    Ok(())
}

fn getrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (start, end) = (integer(&args[2])?, integer(&args[3])?);
    let (mut keys, reply) = ctx.keys_and_reply();
    match keys.read(&args[1])? {
        None => reply.bulk(b""),
        Some(StringRef::Int(number)) => reply.bulk(part(&format_i64(number), start, end)),
        Some(StringRef::Bytes { bytes, .. }) => reply.bulk(part(bytes, start, end)),
    }
    Ok(())
}

fn setrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, patch) = (&args[1], &args[3]);
    let offset = usize::try_from(integer(&args[2])?)
        .map_err(|_| CommandError::fixed("ERR offset is out of range"))?;
    let limit = ctx.max_string_bytes();
    let mut keys = ctx.keys();
    let old = keys.string(key, Look::Write)?.map_or(0, length);
    if patch.is_empty() {
        ctx.reply.count(old);
        return Ok(());
    }
    let end = grown_len(offset, patch.len(), limit)?;
    let len = old.max(end);
    keys.edit_bytes(key, len, |bytes| {
        if bytes.len() < end {
            bytes.reserve_exact(end - bytes.len());
            bytes.resize(end, 0);
        }
        bytes[offset..end].copy_from_slice(patch);
    })?;
    keys.notify(NotifyFlags::STRING, "setrange", key);
    ctx.dirty(1);
    ctx.reply.count(len);
    Ok(())
}

fn pairs<'a>(args: Args<'a>) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
    args.iter()
        .skip(1)
        .step_by(2)
        .zip(args.iter().skip(2).step_by(2))
}

fn store_pairs(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut keys = ctx.keys();
    admit_pairs(&mut keys, args)?;
    for value in (2..args.len()).step_by(2) {
        let key = &args[value - 1];
        keys.put(key, NewValue::argument(args, value), Expiry::Clear)?;
        keys.notify(NotifyFlags::STRING, "set", key);
    }
    ctx.dirty(args.len() / 2);
    Ok(())
}

/// Checks every limit before the first pair is stored, so that a refusal leaves nothing behind.
fn admit_pairs(keys: &mut Keys<'_>, args: Args<'_>) -> CommandResult {
    for (_, value) in pairs(args) {
        keys.admit_value(value.len())?;
    }
    if !keys.has_key_limit() {
        return Ok(());
    }
    let new: BTreeSet<&[u8]> = pairs(args)
        .map(|(key, _)| key)
        .filter(|key| !keys.exists(key))
        .collect();
    keys.admit_keys(new.len())
}

#[inline]
fn answer(reply: &mut Reply, value: Option<StringRef<'_>>) {
    match value {
        None => reply.null(),
        Some(StringRef::Int(number)) => reply.bulk_integer(number),
        Some(StringRef::Bytes {
            shared: Some(bytes),
            ..
        }) => reply.bulk_shared(bytes),
        Some(StringRef::Bytes { bytes, .. }) => reply.bulk(bytes),
    }
}

fn length(value: StringRef<'_>) -> usize {
    match value {
        StringRef::Int(number) => format_i64(number).len(),
        StringRef::Bytes { bytes, .. } => bytes.len(),
    }
}

/// The sum of two lengths, unless no string may be that long.
fn grown_len(len: usize, more: usize, limit: usize) -> Result<usize, CommandError> {
    len.checked_add(more)
        .filter(|&sum| sum <= limit)
        .ok_or(CommandError::fixed(
            "ERR string exceeds maximum allowed size (proto-max-bulk-len)",
        ))
}

/// Makes room for more bytes: as much again for short strings, a fixed piece for long ones, because
/// doubling those would waste more memory than it saves time.
fn make_room(bytes: &mut Vec<u8>, more: usize) {
    const PIECE: usize = 1024 * 1024;
    if bytes.capacity() - bytes.len() < more {
        let spare = (bytes.len() + more).min(PIECE);
        bytes.reserve_exact(more + spare);
    }
}

/// The bytes from `start` to `end`, both included, negative positions counting from the end.
fn part(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return b"";
    }
    let len = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let place = |position: i64| {
        let position = if position < 0 {
            position + len
        } else {
            position
        };
        usize::try_from(position).unwrap_or(0)
    };
    let (start, end) = (place(start), place(end).min(bytes.len().saturating_sub(1)));
    bytes.get(start..=end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
