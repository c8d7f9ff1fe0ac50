//! Streams. XADD, XDEL, XTRIM and XSETID are in `streams/add.rs`, XRANGE and XREVRANGE in `streams/range.rs`, XREAD and
//! XREADGROUP in `streams/read.rs`, XGROUP and XACK in `streams/groups.rs`, XPENDING, XCLAIM and XAUTOCLAIM in
//! `streams/pending.rs`, XINFO in `streams/info.rs`. The structure is `types/stream.rs`.
//!
//! As in Redis, only XADD, XDEL and XTRIM, and the creation of a stream, count as changes for WATCH: what groups know
//! is not.

mod add;
mod groups;
mod info;
mod pending;
mod propagate;
mod range;
mod read;

use crate::base::error::{CommandError, CommandResult};
use crate::commands::help;
use crate::data::keyspace::{Keys, Look};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{Begin, Find, KeySpec, key};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::packed::Elem;
use crate::types::stream::{ConsumerKey, Entry, Group as StreamGroup, Stream, StreamId};
use add::{xadd, xdel, xsetid, xtrim};
use groups::{create, create_consumer, delete_consumer, destroy, set_id, xack};
use info::{consumers, groups as groups_of, stream as stream_of};
use kumi_resp::Args;
use pending::{xautoclaim, xclaim, xpending};
use range::{xrange, xrevrange};
use read::{xread, xreadgroup};

const BASE: Command = Command {
    categories: category::STREAM,
    group: Group::Stream,
    since: "5.0.0",
    ..Command::BASE
};
const READ: &[KeySpec] = &[KeySpec::one(1, key::RO | key::ACCESS)];
const UPDATE: &[KeySpec] = &[KeySpec::one(1, key::RW | key::UPDATE)];
const DELETE: &[KeySpec] = &[KeySpec::one(1, key::RW | key::DELETE)];
const VARYING: &[&str] = &["nondeterministic_output"];

/// The keys behind STREAMS, the first half of what follows it.
const fn behind_streams(from: i32) -> KeySpec {
    KeySpec {
        flags: key::RO | key::ACCESS,
        notes: None,
        begin: Begin::Keyword {
            word: "STREAMS",
            from,
        },
        find: Find::Range {
            last: -1,
            step: 1,
            limit: 2,
        },
        varying: None,
    }
}

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "xadd",
        arity: -5,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::UPDATE)
            .with_notes("UPDATE instead of INSERT because of the optional trimming feature")],
        complexity: "O(1) for the entry, O(N) for trimming, N being the number of entries removed.",
        summary: "Appends an entry to a stream, and creates the stream if there is none.",
        usage: "key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]",
        tips: VARYING,
        run: xadd,
        ..BASE
    },
    Command {
        name: "xlen",
        arity: 2,
        flags: flag::READONLY | flag::FAST,
        keys: &[KeySpec::one(1, key::RO)],
        summary: "Tells how many entries a stream has.",
        usage: "key",
        run: xlen,
        ..BASE
    },
    Command {
        name: "xrange",
        arity: -4,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(N), N being the number of entries answered.",
        summary: "Reads the entries of a stream between two ids.",
        usage: "key start end [COUNT count]",
        run: xrange,
        ..BASE
    },
    Command {
        name: "xrevrange",
        arity: -4,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(N), N being the number of entries answered.",
        summary: "Reads the entries of a stream between two ids, the last one first.",
        usage: "key end start [COUNT count]",
        run: xrevrange,
        ..BASE
    },
    Command {
        name: "xdel",
        arity: -3,
        flags: flag::WRITE | flag::FAST,
        keys: DELETE,
        complexity: "O(1) for each id.",
        summary: "Removes entries from a stream.",
        usage: "key id [id ...]",
        run: xdel,
        ..BASE
    },
    Command {
        name: "xtrim",
        arity: -4,
        flags: flag::WRITE,
        keys: DELETE,
        complexity: "O(N), N being the number of entries removed.",
        summary: "Removes the first entries of a stream, down to a length or up to an id.",
        usage: "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]",
        tips: VARYING,
        run: xtrim,
        ..BASE
    },
    Command {
        name: "xsetid",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: UPDATE,
        summary: "Sets the last id of a stream.",
        usage: "key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]",
        run: xsetid,
        ..BASE
    },
    Command {
        name: "xread",
        arity: -4,
        flags: flag::READONLY | flag::BLOCKING | flag::MOVABLE_KEYS,
        keys: &[behind_streams(1)],
        complexity: "O(N) for each stream, N being the number of entries answered.",
        summary: "Reads the entries of streams behind given ids, and waits for some if there are none.",
        usage: "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]",
        run: xread,
        ..BASE
    },
    Command {
        name: "xreadgroup",
        arity: -7,
        flags: flag::WRITE | flag::BLOCKING | flag::MOVABLE_KEYS,
        keys: &[behind_streams(4)],
        complexity: "O(N) for each stream, N being the number of entries answered.",
        summary: "Delivers new entries to a consumer of a group, or its pending ones again, and waits if there are none.",
        usage: "GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key ...] id [id ...]",
        run: xreadgroup,
        ..BASE
    },
    Command {
        name: "xack",
        arity: -4,
        flags: flag::WRITE | flag::FAST,
        keys: UPDATE,
        complexity: "O(log N) for each id, N being the number of pending entries.",
        summary: "Acknowledges entries, which are no longer pending in the group then.",
        usage: "key group id [id ...]",
        run: xack,
        ..BASE
    },
    Command {
        name: "xpending",
        arity: -3,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(N), N being the number of pending entries looked at, or of consumers.",
        summary: "Tells which entries of a group are pending, or how many of each consumer are.",
        usage: "key group [[IDLE min-idle-time] start end count [consumer]]",
        tips: VARYING,
        run: xpending,
        ..BASE
    },
    Command {
        name: "xclaim",
        arity: -6,
        flags: flag::WRITE | flag::FAST,
        keys: UPDATE,
        complexity: "O(log N) for each id, N being the number of pending entries.",
        summary: "Makes pending entries those of another consumer.",
        usage: "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
        tips: VARYING,
        run: xclaim,
        ..BASE
    },
    Command {
        name: "xautoclaim",
        arity: -6,
        flags: flag::WRITE | flag::FAST,
        keys: DELETE,
        since: "6.2.0",
        complexity: "O(N), N being the count.",
        summary: "Makes pending entries those of another consumer if they have been idle for long enough.",
        usage: "key group consumer min-idle-time start [COUNT count] [JUSTID]",
        tips: VARYING,
        run: xautoclaim,
        ..BASE
    },
    Command {
        name: "xgroup",
        arity: -2,
        categories: 0,
        complexity: "Depends on the subcommand.",
        summary: "Manages the consumer groups of a stream.",
        subcommands: XGROUP,
        ..BASE
    },
    Command {
        name: "xinfo",
        arity: -2,
        categories: 0,
        complexity: "Depends on the subcommand.",
        summary: "Tells about a stream, its groups and their consumers.",
        subcommands: XINFO,
        ..BASE
    },
];

const XGROUP: &[Command] = &[
    Command {
        name: "create",
        arity: -5,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::one(2, key::RW | key::INSERT)],
        summary: "Creates a consumer group.",
        usage: "key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]",
        run: create,
        ..BASE
    },
    Command {
        name: "createconsumer",
        arity: 5,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::one(2, key::RW | key::INSERT)],
        since: "6.2.0",
        summary: "Creates a consumer in a group.",
        usage: "key group consumer",
        run: create_consumer,
        ..BASE
    },
    Command {
        name: "delconsumer",
        arity: 5,
        flags: flag::WRITE,
        keys: &[KeySpec::one(2, key::RW | key::DELETE)],
        summary: "Removes a consumer with its pending entries from a group.",
        usage: "key group consumer",
        run: delete_consumer,
        ..BASE
    },
    Command {
        name: "destroy",
        arity: 4,
        flags: flag::WRITE,
        keys: &[KeySpec::one(2, key::RW | key::DELETE)],
        complexity: "O(N), N being the number of pending entries of the group.",
        summary: "Removes a consumer group.",
        usage: "key group",
        run: destroy,
        ..BASE
    },
    Command {
        name: "setid",
        arity: -5,
        flags: flag::WRITE,
        keys: &[KeySpec::one(2, key::RW | key::UPDATE)],
        summary: "Sets the last id that a group has read.",
        usage: "key group <id | $> [ENTRIESREAD entries-read]",
        run: set_id,
        ..BASE
    },
    Command {
        name: "help",
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        summary: "Shows what XGROUP can do.",
        run: help::from_rows,
        ..BASE
    },
];

const XINFO: &[Command] = &[
    Command {
        name: "stream",
        arity: -3,
        flags: flag::READONLY,
        keys: &[KeySpec::one(2, key::RO | key::ACCESS)],
        complexity: "O(N), N being the number of nodes of the stream, and of entries answered.",
        summary: "Tells about a stream; with FULL, about its entries, groups and consumers too.",
        usage: "key [FULL [COUNT count]]",
        run: stream_of,
        ..BASE
    },
    Command {
        name: "groups",
        arity: 3,
        flags: flag::READONLY,
        keys: &[KeySpec::one(2, key::RO | key::ACCESS)],
        summary: "Lists the consumer groups of a stream.",
        usage: "key",
        run: groups_of,
        ..BASE
    },
    Command {
        name: "consumers",
        arity: 4,
        flags: flag::READONLY,
        keys: &[KeySpec::one(2, key::RO | key::ACCESS)],
        summary: "Lists the consumers of a group.",
        usage: "key group",
        tips: VARYING,
        run: consumers,
        ..BASE
    },
    Command {
        name: "help",
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        summary: "Shows what XINFO can do.",
        run: help::from_rows,
        ..BASE
    },
];

fn xlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let stream = view(&mut keys, &args[1], Look::Read)?;
    reply.integer(stream.map_or(0, Stream::len) as i64);
    Ok(())
}

const INVALID_ID: CommandError =
    CommandError::fixed("ERR Invalid stream ID specified as stream command argument");

/// A stream for reading.
fn view<'k>(
    keys: &'k mut Keys<'_>,
    key: &[u8],
    look: Look,
) -> Result<Option<&'k Stream>, CommandError> {
    Ok(keys.view::<Box<Stream>>(key, look)?.flatten())
}

/// An id that names an entry.
fn strict_id(arg: &[u8]) -> Result<StreamId, CommandError> {
    StreamId::parse(arg, 0).ok_or(INVALID_ID)
}

/// An id at an end of a range: `-` and `+` are the least and the greatest one.
fn loose_id(arg: &[u8], missing_seq: u64) -> Result<StreamId, CommandError> {
    match arg {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => StreamId::parse(arg, missing_seq).ok_or(INVALID_ID),
    }
}

/// The first id of a range; `(` leaves out the one behind it.
fn start_id(arg: &[u8]) -> Result<StreamId, CommandError> {
    match arg {
        [b'(', rest @ ..] if !rest.is_empty() => strict_id(rest)?
            .next()
            .ok_or(CommandError::fixed("ERR invalid start ID for the interval")),
        _ => loose_id(arg, 0),
    }
}

/// The last id of a range.
fn end_id(arg: &[u8]) -> Result<StreamId, CommandError> {
    match arg {
        [b'(', rest @ ..] if !rest.is_empty() => {
            let id = StreamId::parse(rest, u64::MAX).ok_or(INVALID_ID)?;
            id.prev()
                .ok_or(CommandError::fixed("ERR invalid end ID for the interval"))
        }
        _ => loose_id(arg, u64::MAX),
    }
}

/// Answers an entry: its id, and its fields and values in turn.
fn answer(reply: &mut Reply<'_>, entry: Entry<'_>) {
    reply.array(2);
    reply.bulk(entry.id().text());
    reply.array(entry.field_count() * 2);
    for (field, value) in entry.fields() {
        bulk(reply, field);
        bulk(reply, value);
    }
}

#[inline]
fn bulk(reply: &mut Reply<'_>, elem: Elem<'_>) {
    match elem {
        Elem::Int(number) => reply.bulk_integer(number),
        Elem::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// A count as a number of elements; `None` is all, and so is a count that memory could not hold.
fn at_most(count: Option<u64>) -> usize {
    count.map_or(usize::MAX, |count| {
        usize::try_from(count).unwrap_or(usize::MAX)
    })
}

/// An error about a group that is not there, or whose key is not.
fn no_group(parts: &[&[u8]]) -> CommandError {
    CommandError::new([b"NOGROUP No such ", &*parts.concat()].concat())
}

/// The error of XPENDING, XCLAIM and XAUTOCLAIM.
fn no_key_or_group(key: &[u8], group: &[u8]) -> CommandError {
    no_group(&[b"key '", key, b"' or consumer group '", group, b"'"])
}

/// The error of XGROUP and XINFO.
fn no_group_for_key(key: &[u8], group: &[u8]) -> CommandError {
    no_group(&[b"consumer group '", group, b"' for key name '", key, b"'"])
}

/// The consumer of a group that a command names, which exists from then on; and whether the command created it.
fn consumer_of(group: &mut StreamGroup, name: &[u8], now_ms: i64) -> (ConsumerKey, bool) {
    let found = group.find_consumer(name);
    let key = found.or_else(|| group.create_consumer(name, now_ms));
    let key = key.expect("a consumer that does not exist can be created");
    if let Some(consumer) = group.consumer_mut(key) {
        consumer.seen_time = now_ms;
    }
    (key, found.is_none())
}

#[cfg(test)]
mod tests;
