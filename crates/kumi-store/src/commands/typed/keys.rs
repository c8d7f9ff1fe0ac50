//! Keys as wholes: deleting, renaming, copying and moving them, and whole databases.
//!
//! Times to live are in `expire.rs`, iteration in `scan.rs`. Nothing here asks what a key holds: values
//! move and are copied as they are.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::parse;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Entry, Look};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const BASE: Command = Command {
    categories: category::KEYSPACE,
    group: Group::Generic,
    ..Command::BASE
};
const DATABASE: Command = Command {
    group: Group::Server,
    ..BASE
};
const DELETE_EACH: &[KeySpec] = &[KeySpec::rest(1, key::RM | key::DELETE)];
const SUM: &[&str] = &["request_policy:multi_shard", "response_policy:agg_sum"];

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "del",
        arity: -2,
        flags: flag::WRITE,
        keys: DELETE_EACH,
        complexity: "O(N), N being the number of keys; big values are freed in the background.",
        summary: "Deletes keys.",
        usage: "key [key ...]",
        tips: SUM,
        run: del,
        ..BASE
    },
    Command {
        name: "unlink",
        arity: -2,
        flags: flag::WRITE | flag::FAST,
        keys: DELETE_EACH,
        since: "4.0.0",
        complexity: "O(N), N being the number of keys; big values are freed in the background.",
        summary: "Deletes keys and never waits for memory to be freed.",
        usage: "key [key ...]",
        tips: SUM,
        run: unlink,
        ..BASE
    },
    Command {
        name: "exists",
        arity: -2,
        flags: flag::READONLY | flag::FAST,
        keys: &[KeySpec::rest(1, key::RO)],
        complexity: "O(N), N being the number of keys.",
        summary: "Counts how many of the keys exist.",
        usage: "key [key ...]",
        tips: SUM,
        run: exists,
        ..BASE
    },
    Command {
        name: "type",
        arity: 2,
        flags: flag::READONLY | flag::FAST,
        keys: &[KeySpec::one(1, key::RO)],
        summary: "Names the type of the value at a key.",
        usage: "key",
        run: type_of,
        ..BASE
    },
    Command {
        name: "touch",
        arity: -2,
        flags: flag::READONLY | flag::FAST,
        keys: &[KeySpec::rest(1, key::RO)],
        since: "3.2.1",
        complexity: "O(N), N being the number of keys.",
        summary: "Marks keys as used just now and counts those that exist.",
        usage: "key [key ...]",
        tips: SUM,
        run: touch,
        ..BASE
    },
    Command {
        name: "rename",
        arity: 3,
        flags: flag::WRITE,
        keys: &[
            KeySpec::one(1, key::RW | key::ACCESS | key::DELETE),
            KeySpec::one(2, key::OW | key::UPDATE),
        ],
        summary: "Gives a key another name and overwrites what had it.",
        usage: "key newkey",
        run: rename,
        ..BASE
    },
    Command {
        name: "renamenx",
        arity: 3,
        flags: flag::WRITE | flag::FAST,
        keys: &[
            KeySpec::one(1, key::RW | key::ACCESS | key::DELETE),
            KeySpec::one(2, key::OW | key::INSERT),
        ],
        summary: "Gives a key another name if that is free.",
        usage: "key newkey",
        run: renamenx,
        ..BASE
    },
    Command {
        name: "copy",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[
            KeySpec::one(1, key::RO | key::ACCESS),
            KeySpec::one(2, key::OW | key::UPDATE),
        ],
        since: "6.2.0",
        complexity: "O(N), N being the size of the value.",
        summary: "Copies a value with its deadline to another key, also of another database.",
        usage: "source destination [DB destination-db] [REPLACE]",
        run: copy,
        ..BASE
    },
    Command {
        name: "move",
        arity: 3,
        flags: flag::WRITE | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::ACCESS | key::UPDATE)],
        summary: "Moves a key to another database if the name is free there.",
        usage: "key db",
        run: move_key,
        ..BASE
    },
    Command {
        name: "dbsize",
        arity: 1,
        flags: flag::READONLY | flag::FAST,
        summary: "Counts the keys of the database.",
        tips: &["request_policy:all_shards", "response_policy:agg_sum"],
        run: dbsize,
        ..DATABASE
    },
    Command {
        name: "flushdb",
        arity: -1,
        flags: flag::WRITE,
        categories: category::KEYSPACE | category::DANGEROUS,
        complexity: "O(1); the memory is freed in the background.",
        summary: "Deletes all keys of the database.",
        usage: "[ASYNC | SYNC]",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        run: flushdb,
        ..DATABASE
    },
    Command {
        name: "flushall",
        arity: -1,
        flags: flag::WRITE,
        categories: category::KEYSPACE | category::DANGEROUS,
        complexity: "O(N), N being the number of databases; the memory is freed in the background.",
        summary: "Deletes all keys of all databases.",
        usage: "[ASYNC | SYNC]",
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        run: flushall,
        ..DATABASE
    },
    Command {
        name: "swapdb",
        arity: 3,
        flags: flag::WRITE | flag::FAST,
        categories: category::KEYSPACE | category::DANGEROUS,
        since: "4.0.0",
        complexity: "O(N), N being the number of watched keys in both databases.",
        summary: "Exchanges two databases.",
        usage: "index1 index2",
        run: swapdb,
        ..DATABASE
    },
];

fn del(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let lazy = ctx.settings().lazyfree_user_del;
    delete(ctx, args, lazy)
}

fn unlink(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    delete(ctx, args, true)
}

/// Deletes keys. How is the same for both commands; INFO counts the large values of lazy ones.
fn delete(ctx: &mut Ctx<'_>, args: Args<'_>, lazy: bool) -> CommandResult {
    const LARGE_EFFORT: usize = 64;
    let mut keys = ctx.keys();
    let (mut removed, mut lazily_freed) = (0, 0);
    for key in args.iter().skip(1) {
        let value = lazy.then(|| keys.look(key, Look::Quiet)).flatten();
        let value = value.and_then(Entry::boxed);
        lazily_freed += u64::from(value.is_some_and(|v| v.free_effort() > LARGE_EFFORT));
        if keys.remove(key) {
            keys.notify(NotifyFlags::GENERIC, "del", key);
            removed += 1;
        }
    }
    ctx.telemetry().stats.lazily_freed += lazily_freed;
    ctx.dirty(removed);
    ctx.reply.count(removed);
    Ok(())
}

fn exists(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    count_present(ctx, args, Look::ReadNoTouch)
}

fn type_of(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let entry = ctx.keys().look(&args[1], Look::ReadNoTouch).map(type_name);
    ctx.reply.simple(entry.unwrap_or("none"));
    Ok(())
}

fn touch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    count_present(ctx, args, Look::Touch)
}

fn rename(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if rename_key(ctx, &args[1], &args[2], true)? {
        ctx.dirty(1);
    }
    ctx.reply.ok();
    Ok(())
}

fn renamenx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let renamed = rename_key(ctx, &args[1], &args[2], false)?;
    ctx.dirty(usize::from(renamed));
    ctx.reply.integer(i64::from(renamed));
    Ok(())
}

fn copy(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (source, target) = (&args[1], &args[2]);
    let (mut target_db, mut replace) = (ctx.db, false);
    let mut options = OptionReader::new(args, 3);
    while let Some(word) = options.word() {
        match &*word {
            b"replace" => replace = true,
            b"db" => target_db = database(ctx, options.value()?)?,
            _ => return Err(CommandError::SYNTAX),
        }
    }
    if target_db == ctx.db && source == target {
        return Err(SAME_OBJECT);
    }
    let mut keys = ctx.keys();
    let clock = keys.initial_access();
    let present = keys.look(source, Look::Read).is_some();
    let occupied = present && keys.in_db(target_db).look(target, Look::Write).is_some();
    if !present || occupied && !replace {
        ctx.reply.integer(0);
        return Ok(());
    }
    if !occupied {
        keys.admit_keys(1)?;
    }
    let twin = keys
        .look(source, Look::Quiet)
        .map(|entry| entry.duplicate(target, clock));
    let mut there = keys.in_db(target_db);
    there.remove(target);
    if let Some(twin) = twin {
        there.put_entry(twin);
    }
    there.notify(NotifyFlags::GENERIC, "copy_to", target);
    ctx.dirty(1);
    ctx.reply.integer(1);
    Ok(())
}

fn move_key(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let target_db = database(ctx, &args[2])?;
    if target_db == ctx.db {
        return Err(SAME_OBJECT);
    }
    let mut keys = ctx.keys();
    let movable = keys.look(key, Look::Write).is_some()
        && keys.in_db(target_db).look(key, Look::Write).is_none();
    let Some(entry) = movable.then(|| keys.take(key)).flatten() else {
        ctx.reply.integer(0);
        return Ok(());
    };
    keys.in_db(target_db).put_entry(entry);
    keys.notify(NotifyFlags::GENERIC, "move_from", key);
    keys.in_db(target_db)
        .notify(NotifyFlags::GENERIC, "move_to", key);
    ctx.dirty(1);
    ctx.reply.integer(1);
    Ok(())
}

fn dbsize(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let len = ctx.keys().len();
    ctx.reply.count(len);
    Ok(())
}

fn flushdb(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let db = ctx.db;
    flush(ctx, args, db..db + 1, false)
}

fn flushall(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let databases = ctx.databases();
    flush(ctx, args, 0..databases, true)
}

fn swapdb(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let index = |text: &[u8], refusal: &'static str| {
        parse::int32(text).map_err(|_| CommandError::fixed(refusal))
    };
    let first = index(&args[1], "ERR invalid first DB index")?;
    let second = index(&args[2], "ERR invalid second DB index")?;
    let databases = ctx.databases();
    let known = |index: i32| {
        usize::try_from(index)
            .ok()
            .filter(|&index| index < databases)
            .ok_or(CommandError::DB_OUT_OF_RANGE)
    };
    let (first, second) = (known(first)?, known(second)?);
    ctx.swap_databases(first, second);
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}

const SAME_OBJECT: CommandError =
    CommandError::fixed("ERR source and destination objects are the same");

/// What TYPE and SCAN call the value of an entry. Other types get their names here.
pub(super) fn type_name(entry: &Entry) -> &'static str {
    entry.type_of().name()
}

fn count_present(ctx: &mut Ctx<'_>, args: Args<'_>, look: Look) -> CommandResult {
    let mut keys = ctx.keys();
    let present = args
        .iter()
        .skip(1)
        .filter(|key| keys.look(key, look).is_some())
        .count();
    ctx.reply.count(present);
    Ok(())
}

/// Renames a key; false if nothing had to be or was done.
fn rename_key(
    ctx: &mut Ctx<'_>,
    old: &[u8],
    new: &[u8],
    overwrite: bool,
) -> Result<bool, CommandError> {
    let mut keys = ctx.keys();
    let Some(renamed) = keys.look(old, Look::Write).map(Entry::type_of) else {
        return Err(CommandError::NO_SUCH_KEY);
    };
    if old == new || keys.look(new, Look::Write).is_some() && !overwrite {
        return Ok(false);
    }
    // As in Redis, waiters for the new name are served first, and caches lose the old name first.
    keys.wake_ahead(new, renamed);
    let entry = keys.take(old).ok_or(CommandError::NO_SUCH_KEY)?;
    keys.remove(new);
    keys.put_entry(entry.with_key(new));
    keys.notify(NotifyFlags::GENERIC, "rename_from", old);
    keys.notify(NotifyFlags::GENERIC, "rename_to", new);
    Ok(true)
}

/// A database's number, as MOVE and COPY read it.
fn database(ctx: &mut Ctx<'_>, text: &[u8]) -> Result<usize, CommandError> {
    let index = parse::int32(text)?;
    usize::try_from(index)
        .ok()
        .filter(|&index| index < ctx.databases())
        .ok_or(CommandError::DB_OUT_OF_RANGE)
}

/// Empties databases. Both modes are the same here: an emptied database is handed over in one piece,
/// and freed on another thread.
fn flush(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    databases: std::ops::Range<usize>,
    all: bool,
) -> CommandResult {
    let known = match args.len() {
        1 => true,
        2 => args[1].eq_ignore_ascii_case(b"sync") || args[1].eq_ignore_ascii_case(b"async"),
        _ => false,
    };
    if !known {
        return Err(CommandError::SYNTAX);
    }
    if all {
        // Cancelled before the flush: otherwise the snapshot would keep the flushed tables alive.
        ctx.cancel_save();
    }
    let removed = databases.map(|db| ctx.flush_database(db)).sum();
    ctx.invalidate_everything();
    if args
        .get(1)
        .is_some_and(|mode| mode.eq_ignore_ascii_case(b"async"))
    {
        ctx.telemetry().stats.lazily_freed += removed as u64;
    }
    ctx.dirty(removed);
    if all {
        ctx.reset_file();
    }
    // Recorded even if there was nothing to delete: a replica may hold something.
    ctx.propagate_as(args);
    ctx.reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests;
