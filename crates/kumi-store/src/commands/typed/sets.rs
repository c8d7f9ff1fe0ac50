//! Sets: different members under one key. Random members are in `sets/random.rs`, unions,
//! intersections and differences in `sets/algebra.rs`.
//!
//! A command looks at a set or edits it through the door; how the set is stored is not seen here.
//! The encoding OBJECT ENCODING shows follows the limits of the configuration.

mod algebra;
mod random;

use super::elements::scan_elements;
use crate::base::error::CommandResult;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Look, Missing};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::packed::Elem;
use crate::types::set::{Set, SetLimits, SetRef};
use algebra::{sdiff, sdiffstore, sinter, sintercard, sinterstore, sunion, sunionstore};
use kumi_resp::Args;
use random::{spop, srandmember};

const BASE: Command = Command {
    categories: category::SET,
    group: Group::Set,
    ..Command::BASE
};
const READ: &[KeySpec] = &[KeySpec::one(1, key::RO | key::ACCESS)];
const INSPECT: &[KeySpec] = &[KeySpec::one(1, key::RO)];
const READ_ALL: &[KeySpec] = &[KeySpec::rest(1, key::RO | key::ACCESS)];
const STORE: &[KeySpec] = &[
    KeySpec::one(1, key::OW | key::UPDATE),
    KeySpec::range(2, -1, 1, key::RO | key::ACCESS),
];
const N_TIMES_M: &str = "O(N*M), N being the size of the smallest set and M the number of sets.";
const N: &str = "O(N), N being the number of members of all sets.";

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "sadd",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::INSERT)],
        complexity: "O(N), N being the number of members given.",
        summary: "Adds members to a set, which is created if there is none.",
        usage: "key member [member ...]",
        run: sadd,
        ..BASE
    },
    Command {
        name: "srem",
        arity: -3,
        flags: flag::WRITE | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::DELETE)],
        complexity: "O(N), N being the number of members given.",
        summary: "Removes members from a set, and the set with its last member.",
        usage: "key member [member ...]",
        run: srem,
        ..BASE
    },
    Command {
        name: "smembers",
        arity: 2,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(N), N being the number of members.",
        summary: "Lists the members of a set.",
        usage: "key",
        tips: &["nondeterministic_output_order"],
        run: smembers,
        ..BASE
    },
    Command {
        name: "sismember",
        arity: 3,
        flags: flag::READONLY | flag::FAST,
        keys: INSPECT,
        summary: "Tells whether a set has a member.",
        usage: "key member",
        run: sismember,
        ..BASE
    },
    Command {
        name: "smismember",
        arity: -3,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        since: "6.2.0",
        complexity: "O(N), N being the number of members asked for.",
        summary: "Tells of several members whether a set has them.",
        usage: "key member [member ...]",
        run: smismember,
        ..BASE
    },
    Command {
        name: "scard",
        arity: 2,
        flags: flag::READONLY | flag::FAST,
        keys: INSPECT,
        summary: "Counts the members of a set.",
        usage: "key",
        run: scard,
        ..BASE
    },
    Command {
        name: "spop",
        arity: -2,
        flags: flag::WRITE | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::ACCESS | key::DELETE)],
        complexity: "O(1), with a count O(N), N being that count.",
        summary: "Removes random members of a set and returns them.",
        usage: "key [count]",
        tips: &["nondeterministic_output"],
        run: spop,
        ..BASE
    },
    Command {
        name: "srandmember",
        arity: -2,
        flags: flag::READONLY,
        keys: READ,
        complexity: "O(1), with a count O(N), N being the count's absolute value.",
        summary: "Picks random members of a set.",
        usage: "key [count]",
        tips: &["nondeterministic_output"],
        run: srandmember,
        ..BASE
    },
    Command {
        name: "smove",
        arity: 4,
        flags: flag::WRITE | flag::FAST,
        keys: &[
            KeySpec::one(1, key::RW | key::ACCESS | key::DELETE),
            KeySpec::one(2, key::RW | key::INSERT),
        ],
        summary: "Moves a member from one set to another.",
        usage: "source destination member",
        run: smove,
        ..BASE
    },
    Command {
        name: "sinter",
        arity: -2,
        flags: flag::READONLY,
        keys: READ_ALL,
        complexity: N_TIMES_M,
        summary: "Lists the members that all given sets have.",
        usage: "key [key ...]",
        tips: &["nondeterministic_output_order"],
        run: sinter,
        ..BASE
    },
    Command {
        name: "sintercard",
        arity: -3,
        flags: flag::READONLY | flag::MOVABLE_KEYS,
        keys: &[KeySpec::counted(1, key::RO | key::ACCESS)],
        since: "7.0.0",
        complexity: N_TIMES_M,
        summary: "Counts the members that all given sets have.",
        usage: "numkeys key [key ...] [LIMIT limit]",
        run: sintercard,
        ..BASE
    },
    Command {
        name: "sinterstore",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::one(1, key::RW | key::UPDATE), STORE[1]],
        complexity: N_TIMES_M,
        summary: "Stores the members that all given sets have.",
        usage: "destination key [key ...]",
        run: sinterstore,
        ..BASE
    },
    Command {
        name: "sunion",
        arity: -2,
        flags: flag::READONLY,
        keys: READ_ALL,
        complexity: N,
        summary: "Lists the members of any of the given sets.",
        usage: "key [key ...]",
        tips: &["nondeterministic_output_order"],
        run: sunion,
        ..BASE
    },
    Command {
        name: "sunionstore",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM,
        keys: STORE,
        complexity: N,
        summary: "Stores the members of any of the given sets.",
        usage: "destination key [key ...]",
        run: sunionstore,
        ..BASE
    },
    Command {
        name: "sdiff",
        arity: -2,
        flags: flag::READONLY,
        keys: READ_ALL,
        complexity: N,
        summary: "Lists the members of the first set that no other given set has.",
        usage: "key [key ...]",
        tips: &["nondeterministic_output_order"],
        run: sdiff,
        ..BASE
    },
    Command {
        name: "sdiffstore",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM,
        keys: STORE,
        complexity: N,
        summary: "Stores the members of the first set that no other given set has.",
        usage: "destination key [key ...]",
        run: sdiffstore,
        ..BASE
    },
    Command {
        name: "sscan",
        arity: -3,
        flags: flag::READONLY,
        keys: READ,
        since: "2.8.0",
        complexity: "O(1) for a call with the default count, O(N) for all N members.",
        summary: "Goes through the members of a set a few at a time.",
        usage: "key cursor [MATCH pattern] [COUNT count]",
        tips: &["nondeterministic_output"],
        run: sscan,
        ..BASE
    },
];

fn sadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let limits = limits(ctx);
    let members = args.tail(2);
    let mut keys = ctx.keys();
    let seed = keys.seed();
    let edited = keys.edit(key, Missing::Create, |set: &mut Set| {
        let encoding = set.view().encoding();
        if set.view().is_empty() {
            *set = Set::for_members(&args[2], members.len(), limits);
        } else {
            set.prepare(members.len(), limits);
        }
        let new = members
            .iter()
            .filter(|member| set.add(member, limits, seed));
        Ok(match new.count() {
            0 if set.view().encoding() == encoding => Edit::Unchanged(0),
            0 => Edit::Unwatched(0),
            new => Edit::Changed(new),
        })
    })?;
    let added = edited.map_or(0, |edited| edited.result);
    if added > 0 {
        keys.notify(NotifyFlags::SET, "sadd", key);
        ctx.dirty(added);
    }
    ctx.reply.count(added);
    Ok(())
}

fn srem(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |set: &mut Set| {
        let removed = args.iter().skip(2).filter(|member| set.remove(member));
        Ok(match removed.count() {
            0 => Edit::Unchanged(0),
            removed => Edit::Changed(removed),
        })
    })?;
    let removed = edited.map_or(0, |edited| edited.result);
    if removed > 0 {
        keys.notify(NotifyFlags::SET, "srem", key);
        if edited.is_some_and(|edited| edited.removed) {
            keys.notify(NotifyFlags::GENERIC, "del", key);
        }
        ctx.dirty(removed);
    }
    ctx.reply.count(removed);
    Ok(())
}

fn smembers(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(set) = keys.view::<Set>(&args[1], Look::Read)? else {
        reply.set(0);
        return Ok(());
    };
    reply.set(set.len());
    set.iter().for_each(|member| bulk(reply, member));
    Ok(())
}

fn sismember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let set = keys.view::<Set>(&args[1], Look::Read)?;
    let found = set.is_some_and(|set| set.contains(&args[2]));
    reply.integer(i64::from(found));
    Ok(())
}

fn smismember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let set = keys.view::<Set>(&args[1], Look::Read)?;
    reply.array(args.len() - 2);
    for member in args.iter().skip(2) {
        let found = set.is_some_and(|set| set.contains(member));
        reply.integer(i64::from(found));
    }
    Ok(())
}

fn scard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let set = keys.view::<Set>(&args[1], Look::Read)?;
    reply.count(set.map_or(0, SetRef::len));
    Ok(())
}

fn smove(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (source, destination, member) = (&args[1], &args[2], &args[3]);
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let seed = keys.seed();
    let looked = keys.view::<Set>(source, Look::Write);
    let found = looked.map(|set| set.map(|set| (set.contains(member), set.len())));
    // The destination is looked up, with what that announces, even if there is no source.
    let looked = keys.view::<Set>(destination, Look::Write);
    let destination_exists = looked.map(|set| set.is_some());
    let Some((found, len)) = found? else {
        ctx.reply.integer(0);
        return Ok(());
    };
    let destination_exists = destination_exists?;
    if source == destination || !found {
        ctx.reply.integer(i64::from(found));
        return Ok(());
    }
    if !destination_exists {
        // The source goes with its last member, before the destination is created.
        keys.admit_exchange(usize::from(len == 1), 1)?;
    }
    let taken = keys.edit(source, Missing::Skip, |set: &mut Set| {
        set.remove(member);
        Ok(Edit::Changed(()))
    })?;
    keys.notify(NotifyFlags::SET, "srem", source);
    if taken.is_some_and(|taken| taken.removed) {
        keys.notify(NotifyFlags::GENERIC, "del", source);
    }
    let given = keys.edit(destination, Missing::Create, |set: &mut Set| {
        if set.view().is_empty() {
            *set = Set::for_members(member, 1, limits);
        }
        Ok(match set.add(member, limits, seed) {
            true => Edit::Changed(()),
            false => Edit::Unchanged(()),
        })
    })?;
    let added = given.is_some_and(|given| given.changed);
    if added {
        keys.notify(NotifyFlags::SET, "sadd", destination);
    }
    ctx.dirty(1 + usize::from(added));
    ctx.reply.integer(1);
    Ok(())
}

fn sscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    scan_elements::<Set>(ctx, args, |set, cursor, visit| {
        set.scan(cursor, &mut |member| visit(&member.text(), None))
    })
}

pub(super) fn limits(ctx: &Ctx<'_>) -> SetLimits {
    ctx.settings().set_limits()
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
