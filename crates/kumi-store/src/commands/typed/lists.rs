//! Lists: pushing, popping, reading and changing. Moves between lists and LMPOP are in `lists/moving.rs`, the
//! commands that wait in `lists/blocking.rs`, LPOS in `lists/search.rs`. The structure is `types/list.rs`.

mod blocking;
mod moving;
mod search;

use crate::base::error::{CommandError, CommandResult};
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Keys, Look, Missing};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{Begin, Find, KeySpec, key};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::list::{List, ListLimits, ListRef, Side};
use crate::types::packed::Elem;
use blocking::{blmove, blmpop, blpop, brpop, brpoplpush};
use kumi_resp::Args;
use moving::{lmove, lmpop, rpoplpush};
use search::lpos;

const BASE: Command = Command {
    categories: category::LIST,
    group: Group::List,
    ..Command::BASE
};
const INSERT: &[KeySpec] = &[KeySpec::one(1, key::RW | key::INSERT)];
const POP: &[KeySpec] = &[KeySpec::one(1, key::RW | key::ACCESS | key::DELETE)];
const READ: &[KeySpec] = &[KeySpec::one(1, key::RO | key::ACCESS)];
const MOVE: &[KeySpec] = &[
    KeySpec::one(1, key::RW | key::ACCESS | key::DELETE),
    KeySpec::one(2, key::RW | key::INSERT),
];
const WAIT: &[KeySpec] = &[KeySpec::range(
    1,
    -2,
    1,
    key::RW | key::ACCESS | key::DELETE,
)];

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "lpush",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: INSERT,
        complexity: "O(1) for each element.",
        summary: "Puts elements before the first of a list, one after the other, and creates it if there is none.",
        usage: "key element [element ...]",
        run: lpush,
        ..BASE
    },
    Command {
        name: "rpush",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: INSERT,
        complexity: "O(1) for each element.",
        summary: "Puts elements behind the last of a list, and creates it if there is none.",
        usage: "key element [element ...]",
        run: rpush,
        ..BASE
    },
    Command {
        name: "lpushx",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: INSERT,
        since: "2.2.0",
        complexity: "O(1) for each element.",
        summary: "Puts elements before the first of a list that exists.",
        usage: "key element [element ...]",
        run: lpushx,
        ..BASE
    },
    Command {
        name: "rpushx",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: INSERT,
        since: "2.2.0",
        complexity: "O(1) for each element.",
        summary: "Puts elements behind the last of a list that exists.",
        usage: "key element [element ...]",
        run: rpushx,
        ..BASE
    },
    Command {
        name: "lpop",
        arity: -2,
        flags: flag::WRITE | flag::FAST,
        keys: POP,
        complexity: "O(N), N being the number of elements.",
        summary: "Takes the first elements off a list.",
        usage: "key [count]",
        run: lpop,
        ..BASE
    },
    Command {
        name: "rpop",
        arity: -2,
        flags: flag::WRITE | flag::FAST,
        keys: POP,
        complexity: "O(N), N being the number of elements.",
        summary: "Takes the last elements off a list.",
        usage: "key [count]",
        run: rpop,
        ..BASE
    },
    Command {
        name: "llen",
        arity: 2,
        flags: flag::READONLY | flag::FAST,
        keys: &[KeySpec::one(1, key::RO)],
        summary: "Tells how many elements a list has.",
        usage: "key",
        run: llen,
        ..BASE
    },
    Command {
        name: "lrange",
        arity: 4,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(S+N), S being the number of nodes to the start and N the number of elements answered.",
        summary: "Reads a part of a list; negative positions count from its end.",
        usage: "key start stop",
        run: lrange,
        ..BASE
    },
    Command {
        name: "lindex",
        arity: 3,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(N), N being the number of nodes to the element from the nearer end.",
        summary: "Reads one element of a list.",
        usage: "key index",
        run: lindex,
        ..BASE
    },
    Command {
        name: "lset",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::one(1, key::RW | key::UPDATE)],
        complexity: "O(N), N being the number of nodes to the element from the nearer end.",
        summary: "Replaces one element of a list.",
        usage: "key index element",
        run: lset,
        ..BASE
    },
    Command {
        name: "linsert",
        arity: 5,
        flags: flag::WRITE | flag::DENYOOM,
        keys: INSERT,
        since: "2.2.0",
        complexity: "O(N), N being the number of elements before the pivot.",
        summary: "Puts an element before or behind the first one that equals a pivot.",
        usage: "key <BEFORE | AFTER> pivot element",
        run: linsert,
        ..BASE
    },
    Command {
        name: "lrem",
        arity: 4,
        flags: flag::WRITE,
        keys: &[KeySpec::one(1, key::RW | key::DELETE)],
        complexity: "O(N), N being the length of the list.",
        summary: "Removes elements that equal one: the first or last few, or all.",
        usage: "key count element",
        run: lrem,
        ..BASE
    },
    Command {
        name: "ltrim",
        arity: 4,
        flags: flag::WRITE,
        keys: &[KeySpec::one(1, key::RW | key::DELETE)],
        complexity: "O(N), N being the number of elements removed.",
        summary: "Removes all elements outside of a range.",
        usage: "key start stop",
        run: ltrim,
        ..BASE
    },
    Command {
        name: "lpos",
        arity: -3,
        flags: flag::READONLY,
        keys: READ,
        since: "6.0.6",
        complexity: "O(N), N being the length of the list.",
        summary: "Finds the positions of elements that equal one.",
        usage: "key element [RANK rank] [COUNT num-matches] [MAXLEN len]",
        run: lpos,
        ..BASE
    },
    Command {
        name: "lmove",
        arity: 5,
        flags: flag::WRITE | flag::DENYOOM,
        keys: MOVE,
        since: "6.2.0",
        summary: "Takes an element off one end of a list and puts it at an end of another, or of the same.",
        usage: "source destination <LEFT | RIGHT> <LEFT | RIGHT>",
        run: lmove,
        ..BASE
    },
    Command {
        name: "rpoplpush",
        arity: 3,
        flags: flag::WRITE | flag::DENYOOM,
        keys: MOVE,
        since: "1.2.0",
        summary: "Takes the last element of a list and puts it before the first of another.",
        usage: "source destination",
        deprecated: Some(("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")),
        run: rpoplpush,
        ..BASE
    },
    Command {
        name: "lmpop",
        arity: -4,
        flags: flag::WRITE | flag::MOVABLE_KEYS,
        keys: &[KeySpec {
            flags: key::RW | key::ACCESS | key::DELETE,
            notes: None,
            begin: Begin::Index(1),
            find: Find::KeyNumber {
                number: 0,
                first: 1,
                step: 1,
            },
            varying: None,
        }],
        since: "7.0.0",
        complexity: "O(N+M), N being the number of keys and M the number of elements answered.",
        summary: "Takes elements off the first of several lists that is not empty.",
        usage: "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        run: lmpop,
        ..BASE
    },
    Command {
        name: "blpop",
        arity: -3,
        flags: flag::WRITE | flag::BLOCKING,
        keys: WAIT,
        since: "2.0.0",
        complexity: "O(N), N being the number of keys.",
        summary: "Takes the first element off the first of several lists that is not empty, and waits for one if none is.",
        usage: "key [key ...] timeout",
        run: blpop,
        ..BASE
    },
    Command {
        name: "brpop",
        arity: -3,
        flags: flag::WRITE | flag::BLOCKING,
        keys: WAIT,
        since: "2.0.0",
        complexity: "O(N), N being the number of keys.",
        summary: "Takes the last element off the first of several lists that is not empty, and waits for one if none is.",
        usage: "key [key ...] timeout",
        run: brpop,
        ..BASE
    },
    Command {
        name: "blmove",
        arity: 6,
        flags: flag::WRITE | flag::DENYOOM | flag::BLOCKING,
        keys: MOVE,
        since: "6.2.0",
        summary: "Moves an element from a list to another as `LMOVE` does, and waits for one if there is none.",
        usage: "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
        run: blmove,
        ..BASE
    },
    Command {
        name: "brpoplpush",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM | flag::BLOCKING,
        keys: MOVE,
        since: "2.2.0",
        summary: "Moves the last element of a list before the first of another, and waits for one if there is none.",
        usage: "source destination timeout",
        deprecated: Some(("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")),
        run: brpoplpush,
        ..BASE
    },
    Command {
        name: "blmpop",
        arity: -5,
        flags: flag::WRITE | flag::BLOCKING | flag::MOVABLE_KEYS,
        keys: &[KeySpec::counted(2, key::RW | key::ACCESS | key::DELETE)],
        since: "7.0.0",
        complexity: "O(N+M), N being the number of keys and M the number of elements answered.",
        summary: "Takes elements off the first of several lists that is not empty, and waits for one if none is.",
        usage: "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        run: blmpop,
        ..BASE
    },
];

fn lpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, Side::Front, Missing::Create)
}

fn rpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, Side::Back, Missing::Create)
}

fn lpushx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, Side::Front, Missing::Skip)
}

fn rpushx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    push(ctx, args, Side::Back, Missing::Skip)
}

fn push(ctx: &mut Ctx<'_>, args: Args<'_>, side: Side, missing: Missing) -> CommandResult {
    let key = &args[1];
    let limits = limits(ctx);
    let elements = args.len() - 2;
    let bytes = args.iter().skip(2).map(|element| element.len()).sum();
    let mut keys = ctx.keys();
    let pushed = keys.edit(key, missing, |list: &mut List| {
        list.prepare(elements, bytes, limits);
        for element in args.iter().skip(2) {
            list.push(side, element, limits);
        }
        Ok(Edit::Changed(list.len()))
    })?;
    let Some(pushed) = pushed else {
        ctx.reply.integer(0);
        return Ok(());
    };
    keys.notify(NotifyFlags::LIST, push_event(side), key);
    ctx.dirty(elements);
    ctx.reply.count(pushed.result);
    Ok(())
}

fn lpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, Side::Front)
}

fn rpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, Side::Back)
}

fn pop(ctx: &mut Ctx<'_>, args: Args<'_>, side: Side) -> CommandResult {
    if args.len() > 3 {
        return Err(CommandError::arity(match side {
            Side::Front => "lpop",
            Side::Back => "rpop",
        }));
    }
    let count = args.get(2).map(positive).transpose()?;
    let key = &args[1];
    let limits = limits(ctx);
    let (mut keys, reply) = ctx.keys_and_reply();
    let popped = match count {
        Some(0) => keys.view::<List>(key, Look::Write)?.map(|_| 0),
        _ => take(&mut keys, reply, key, side, count, limits)?,
    };
    match (popped, count) {
        (Some(0), _) => reply.array(0),
        (Some(popped), _) => ctx.dirty(popped),
        (None, Some(_)) => reply.null_array(),
        (None, None) => reply.null(),
    }
    Ok(())
}

/// Takes elements off an end of a list, and answers them: one alone, or so many as an array. Returns how many there
/// were; `None`, and nothing is answered, when there is no such list.
fn take(
    keys: &mut Keys<'_>,
    reply: &mut Reply<'_>,
    key: &[u8],
    side: Side,
    count: Option<usize>,
    limits: ListLimits,
) -> Result<Option<usize>, CommandError> {
    let edited = keys.edit(key, Missing::Skip, |list: &mut List| {
        let popped = count.unwrap_or(1).min(list.len());
        if count.is_some() {
            reply.array(popped);
        }
        match side {
            Side::Front => {
                for elem in list.view().iter().take(popped) {
                    answer(reply, elem);
                }
                list.remove_range(0, popped);
            }
            Side::Back => {
                for elem in list.view().iter_back().take(popped) {
                    answer(reply, elem);
                }
                list.remove_range(list.len() - popped, popped);
            }
        }
        list.settle(true, limits);
        Ok(Edit::Changed(popped))
    })?;
    let Some(edited) = edited else {
        return Ok(None);
    };
    keys.notify(NotifyFlags::LIST, pop_event(side), key);
    if edited.removed {
        keys.notify(NotifyFlags::GENERIC, "del", key);
    }
    Ok(Some(edited.result))
}

fn llen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let list = keys.view::<List>(&args[1], Look::Read)?;
    reply.count(list.map_or(0, ListRef::len));
    Ok(())
}

fn lrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (start, stop) = (integer(&args[2])?, integer(&args[3])?);
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(list) = keys.view::<List>(&args[1], Look::Read)? else {
        reply.array(0);
        return Ok(());
    };
    let (start, count) = span(start, stop, list.len());
    reply.array(count);
    for elem in list.iter_from(start).take(count) {
        answer(reply, elem);
    }
    Ok(())
}

fn lindex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(list) = keys.view::<List>(&args[1], Look::Read)? else {
        reply.null();
        return Ok(());
    };
    let index = integer(&args[2])?;
    match place(index, list.len()).and_then(|index| list.get(index)) {
        Some(elem) => answer(reply, elem),
        None => reply.null(),
    }
    Ok(())
}

fn lset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, element) = (&args[1], &args[3]);
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let len = keys
        .view::<List>(key, Look::Write)?
        .ok_or(CommandError::NO_SUCH_KEY)?
        .len();
    let index = place(integer(&args[2])?, len).filter(|&index| index < len);
    keys.edit(key, Missing::Skip, |list: &mut List| {
        // As in Redis, the encoding changes for an element that then finds no place.
        let converted = convert(list, element, limits);
        let Some(index) = index else {
            return Ok(converted);
        };
        list.set(index, element, limits);
        list.settle(true, limits);
        Ok(Edit::Changed(()))
    })?;
    index.ok_or(CommandError::fixed("ERR index out of range"))?;
    keys.notify(NotifyFlags::LIST, "lset", key);
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}

fn linsert(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, pivot, element) = (&args[1], &args[3], &args[4]);
    let side = match args[2].to_ascii_lowercase().as_slice() {
        b"before" => Side::Front,
        b"after" => Side::Back,
        _ => return Err(CommandError::SYNTAX),
    };
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let inserted = keys.edit(key, Missing::Skip, |list: &mut List| {
        // As in Redis, the encoding changes for an element that then finds no place.
        let converted = convert(list, element, limits);
        let Some(index) = list.view().position(pivot) else {
            return Ok(converted.with(-1));
        };
        list.insert(index, side, element, limits);
        Ok(Edit::Changed(list.len() as i64))
    })?;
    match inserted {
        None => ctx.reply.integer(0),
        Some(edited) => {
            if edited.result > 0 {
                keys.notify(NotifyFlags::LIST, "linsert", key);
                ctx.dirty(1);
            }
            ctx.reply.integer(edited.result);
        }
    }
    Ok(())
}

/// Gets a list ready for one more element, and says whether its encoding changed.
fn convert(list: &mut List, element: &[u8], limits: ListLimits) -> Edit<()> {
    let encoding = list.view().encoding();
    list.prepare(1, element.len(), limits);
    if list.view().encoding() == encoding {
        Edit::Unchanged(())
    } else {
        Edit::Unwatched(())
    }
}

fn lrem(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, element) = (&args[1], &args[3]);
    let count = in_range(&args[2], -i64::MAX, i64::MAX)?;
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let side = if count < 0 { Side::Back } else { Side::Front };
    let most = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let edited = keys.edit(key, Missing::Skip, |list: &mut List| {
        Ok(match list.remove_equal(element, side, most) {
            0 => Edit::Unchanged(0),
            removed => {
                list.settle(true, limits);
                Edit::Changed(removed)
            }
        })
    })?;
    let removed = edited.map_or(0, |edited| edited.result);
    if let Some(edited) = edited
        && edited.changed
    {
        keys.notify(NotifyFlags::LIST, "lrem", key);
        if edited.removed {
            keys.notify(NotifyFlags::GENERIC, "del", key);
        }
        ctx.dirty(removed);
    }
    ctx.reply.count(removed);
    Ok(())
}

fn ltrim(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let (start, stop) = (integer(&args[2])?, integer(&args[3])?);
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |list: &mut List| {
        let len = list.len();
        let (start, count) = span(start, stop, len);
        list.remove_range(start + count, len);
        list.remove_range(0, start.min(len - count));
        list.settle(true, limits);
        // Redis counts a trim that removes nothing as a change too.
        Ok(Edit::Changed(len - count))
    })?;
    if let Some(edited) = edited {
        keys.notify(NotifyFlags::LIST, "ltrim", key);
        if edited.removed {
            keys.notify(NotifyFlags::GENERIC, "del", key);
        }
        ctx.dirty(edited.result);
    }
    ctx.reply.ok();
    Ok(())
}

fn answer(reply: &mut Reply<'_>, elem: Elem<'_>) {
    match elem {
        Elem::Int(number) => reply.bulk_integer(number),
        Elem::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// The index and the number of elements of a range, whose ends are included and count from the end when negative.
fn span(start: i64, stop: i64, len: usize) -> (usize, usize) {
    let len_i64 = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |position: i64| match position {
        ..0 => len_i64.saturating_add(position),
        _ => position,
    };
    let start = from_end(start).max(0);
    let stop = from_end(stop).min(len_i64 - 1);
    if start > stop {
        // What LTRIM removes then is everything.
        return (0, 0);
    }
    (start as usize, (stop - start + 1) as usize)
}

/// An index that counts from the end when negative; `None` before the first element.
fn place(index: i64, len: usize) -> Option<usize> {
    match index {
        ..0 => len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
        _ => usize::try_from(index).ok(),
    }
}

/// A number of elements. Redis answers what is no number at all in the same words.
fn positive(arg: &[u8]) -> Result<usize, CommandError> {
    let number = integer(arg).ok();
    number
        .and_then(|number| usize::try_from(number).ok())
        .ok_or(CommandError::fixed(
            "ERR value is out of range, must be positive",
        ))
}

/// A number in a range.
fn in_range(arg: &[u8], min: i64, max: i64) -> Result<i64, CommandError> {
    let number = integer(arg)?;
    if (min..=max).contains(&number) {
        return Ok(number);
    }
    Err(CommandError::new(format!(
        "ERR value is out of range, value must between {min} and {max}"
    )))
}

/// `LEFT` or `RIGHT`.
fn end(arg: &[u8]) -> Result<Side, CommandError> {
    match arg.to_ascii_lowercase().as_slice() {
        b"left" => Ok(Side::Front),
        b"right" => Ok(Side::Back),
        _ => Err(CommandError::SYNTAX),
    }
}

fn push_event(side: Side) -> &'static str {
    match side {
        Side::Front => "lpush",
        Side::Back => "rpush",
    }
}

fn pop_event(side: Side) -> &'static str {
    match side {
        Side::Front => "lpop",
        Side::Back => "rpop",
    }
}

/// The command that takes elements off an end, as it is recorded.
fn pop_verb(side: Side) -> &'static [u8] {
    match side {
        Side::Front => b"LPOP",
        Side::Back => b"RPOP",
    }
}

pub(super) fn limits(ctx: &Ctx<'_>) -> ListLimits {
    ctx.settings()
        .list_limits(ctx.debug_switches().plain_node_bytes)
}

#[cfg(test)]
mod tests;
