//! Sorted sets: members with scores, in the order of their scores. Ranges are in
//! `sorted_sets/range.rs`, popped and random members in `sorted_sets/pick.rs`, unions, intersections
//! and differences in `sorted_sets/algebra.rs`, the commands that wait in `sorted_sets/waiting.rs`.
//!
//! A command looks at a sorted set or edits it through the door; how it is stored is not seen here.
//! The encoding OBJECT ENCODING shows follows the limits of the configuration.

mod add;
mod algebra;
mod pick;
mod range;
mod waiting;

use super::elements::scan_elements;
use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_17_digits;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Look, Missing};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::store::ctx::Ctx;
use crate::types::zset::{Zset, ZsetEncoding, ZsetLimits, ZsetRef};
pub(super) use add::{parse_score, parse_weight, zadd as add_scored};

use add::{zadd, zincrby};
use algebra::{zdiff, zdiffstore, zinter, zintercard, zinterstore, zunion, zunionstore};
use kumi_resp::{Args, Protocol, encode};
use pick::{zpopmax, zpopmin, zrandmember};
use range::{
    zcount, zlexcount, zrange, zrangebylex, zrangebyscore, zrangestore, zremrangebylex,
    zremrangebyrank, zremrangebyscore, zrevrange, zrevrangebylex, zrevrangebyscore,
};
use waiting::{bzmpop, bzpopmax, bzpopmin, zmpop};

const BASE: Command = Command {
    categories: category::SORTED_SET,
    group: Group::SortedSet,
    ..Command::BASE
};
const READ: &[KeySpec] = &[KeySpec::one(1, key::RO | key::ACCESS)];
const INSPECT: &[KeySpec] = &[KeySpec::one(1, key::RO)];
const UPDATE: &[KeySpec] = &[KeySpec::one(1, key::RW | key::UPDATE)];
const CHANGE: &[KeySpec] = &[KeySpec::one(1, key::RW | key::ACCESS | key::UPDATE)];
const DELETE: &[KeySpec] = &[KeySpec::one(1, key::RW | key::DELETE)];
const POP: &[KeySpec] = &[KeySpec::one(1, key::RW | key::ACCESS | key::DELETE)];
const WAIT: &[KeySpec] = &[KeySpec::range(
    1,
    -2,
    1,
    key::RW | key::ACCESS | key::DELETE,
)];
const STORE: &[KeySpec] = &[
    KeySpec::one(1, key::OW | key::UPDATE),
    KeySpec::counted(2, key::RO | key::ACCESS),
];
const LOG_N_PLUS_M: &str =
    "O(log(N)+M), N being the size of the set and M the number of members in question.";

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "zadd",
        arity: -4,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: UPDATE,
        since: "1.2.0",
        complexity: "O(log(N)) for each member, N being the size of the set.",
        summary: "Adds members with scores, or changes the scores of members.",
        usage: "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]",

        run: zadd,
        ..BASE
    },
    Command {
        name: "zincrby",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: CHANGE,
        since: "1.2.0",
        complexity: "O(log(N)), N being the size of the set.",
        summary: "Adds to the score of a member.",
        usage: "key increment member",

        run: zincrby,
        ..BASE
    },
    Command {
        name: "zrem",
        arity: -3,
        flags: flag::WRITE | flag::FAST,
        keys: DELETE,
        since: "1.2.0",
        complexity: "O(M*log(N)), M being the number of members given and N the size of the set.",
        summary: "Removes members, and the sorted set with its last member.",
        usage: "key member [member ...]",

        run: zrem,
        ..BASE
    },
    Command {
        name: "zcard",
        arity: 2,
        flags: flag::READONLY | flag::FAST,
        keys: INSPECT,
        since: "1.2.0",
        complexity: "O(1)",
        summary: "Counts the members of a sorted set.",
        usage: "key",

        run: zcard,
        ..BASE
    },
    Command {
        name: "zscore",
        arity: 3,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        since: "1.2.0",
        complexity: "O(1)",
        summary: "Reads the score of a member.",
        usage: "key member",

        run: zscore,
        ..BASE
    },
    Command {
        name: "zmscore",
        arity: -3,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        since: "6.2.0",
        complexity: "O(N), N being the number of members asked for.",
        summary: "Reads the scores of several members.",
        usage: "key member [member ...]",

        run: zmscore,
        ..BASE
    },
    Command {
        name: "zrank",
        arity: -3,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        since: "2.0.0",
        complexity: "O(log(N)), N being the size of the set.",
        summary: "Tells how many members have a lower score.",
        usage: "key member [WITHSCORE]",

        run: zrank,
        ..BASE
    },
    Command {
        name: "zrevrank",
        arity: -3,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        since: "2.0.0",
        complexity: "O(log(N)), N being the size of the set.",
        summary: "Tells how many members have a higher score.",
        usage: "key member [WITHSCORE]",

        run: zrevrank,
        ..BASE
    },
    Command {
        name: "zcount",
        arity: 4,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        since: "2.0.0",
        complexity: "O(log(N)), N being the size of the set.",
        summary: "Counts the members with a score in a range.",
        usage: "key min max",

        run: zcount,
        ..BASE
    },
    Command {
        name: "zlexcount",
        arity: 4,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        since: "2.8.9",
        complexity: "O(log(N)), N being the size of the set.",
        summary: "Counts the members in a range of members.",
        usage: "key min max",

        run: zlexcount,
        ..BASE
    },
    Command {
        name: "zrange",
        arity: -4,
        flags: flag::READONLY,
        keys: READ,
        since: "1.2.0",
        complexity: LOG_N_PLUS_M,
        summary: "Lists the members in a range of ranks, scores or members.",
        usage: "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",

        run: zrange,
        ..BASE
    },
    Command {
        name: "zrevrange",
        arity: -4,
        flags: flag::READONLY,
        keys: READ,
        since: "1.2.0",
        complexity: LOG_N_PLUS_M,
        summary: "Lists the members in a range of ranks, the highest score first.",
        usage: "key start stop [WITHSCORES]",
        deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` argument")),
        run: zrevrange,
        ..BASE
    },
    Command {
        name: "zrangebyscore",
        arity: -4,
        flags: flag::READONLY,
        keys: READ,
        since: "1.0.5",
        complexity: LOG_N_PLUS_M,
        summary: "Lists the members with a score in a range.",
        usage: "key min max [WITHSCORES] [LIMIT offset count]",
        deprecated: Some(("6.2.0", "`ZRANGE` with the `BYSCORE` argument")),
        run: zrangebyscore,
        ..BASE
    },
    Command {
        name: "zrevrangebyscore",
        arity: -4,
        flags: flag::READONLY,
        keys: READ,
        since: "2.2.0",
        complexity: LOG_N_PLUS_M,
        summary: "Lists the members with a score in a range, the highest first.",
        usage: "key max min [WITHSCORES] [LIMIT offset count]",
        deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")),
        run: zrevrangebyscore,
        ..BASE
    },
    Command {
        name: "zrangebylex",
        arity: -4,
        flags: flag::READONLY,
        keys: READ,
        since: "2.8.9",
        complexity: LOG_N_PLUS_M,
        summary: "Lists the members in a range of members.",
        usage: "key min max [LIMIT offset count]",
        deprecated: Some(("6.2.0", "`ZRANGE` with the `BYLEX` argument")),
        run: zrangebylex,
        ..BASE
    },
    Command {
        name: "zrevrangebylex",
        arity: -4,
        flags: flag::READONLY,
        keys: READ,
        since: "2.8.9",
        complexity: LOG_N_PLUS_M,
        summary: "Lists the members in a range of members, the last first.",
        usage: "key max min [LIMIT offset count]",
        deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")),
        run: zrevrangebylex,
        ..BASE
    },
    Command {
        name: "zremrangebyrank",
        arity: 4,
        flags: flag::WRITE,
        keys: DELETE,
        since: "2.0.0",
        complexity: LOG_N_PLUS_M,
        summary: "Removes the members in a range of ranks.",
        usage: "key start stop",

        run: zremrangebyrank,
        ..BASE
    },
    Command {
        name: "zremrangebyscore",
        arity: 4,
        flags: flag::WRITE,
        keys: DELETE,
        since: "1.2.0",
        complexity: LOG_N_PLUS_M,
        summary: "Removes the members with a score in a range.",
        usage: "key min max",

        run: zremrangebyscore,
        ..BASE
    },
    Command {
        name: "zremrangebylex",
        arity: 4,
        flags: flag::WRITE,
        keys: DELETE,
        since: "2.8.9",
        complexity: LOG_N_PLUS_M,
        summary: "Removes the members in a range of members.",
        usage: "key min max",

        run: zremrangebylex,
        ..BASE
    },
    Command {
        name: "zpopmin",
        arity: -2,
        flags: flag::WRITE | flag::FAST,
        keys: POP,
        since: "5.0.0",
        complexity: LOG_N_PLUS_M,
        summary: "Removes the members with the lowest scores and returns them.",
        usage: "key [count]",

        run: zpopmin,
        ..BASE
    },
    Command {
        name: "zpopmax",
        arity: -2,
        flags: flag::WRITE | flag::FAST,
        keys: POP,
        since: "5.0.0",
        complexity: LOG_N_PLUS_M,
        summary: "Removes the members with the highest scores and returns them.",
        usage: "key [count]",

        run: zpopmax,
        ..BASE
    },
    Command {
        name: "zrandmember",
        arity: -2,
        flags: flag::READONLY,
        keys: READ,
        since: "6.2.0",
        complexity: "O(N), N being the number of members returned.",
        summary: "Picks random members of a sorted set.",
        usage: "key [count [WITHSCORES]]",
        tips: &["nondeterministic_output"],
        run: zrandmember,
        ..BASE
    },
    Command {
        name: "zscan",
        arity: -3,
        flags: flag::READONLY,
        keys: READ,
        since: "2.8.0",
        complexity: "O(1) for a call with the default count, O(N) for all N members.",
        summary: "Goes through the members of a sorted set a few at a time.",
        usage: "key cursor [MATCH pattern] [COUNT count]",
        tips: &["nondeterministic_output"],
        run: zscan,
        ..BASE
    },
    Command {
        name: "zmpop",
        arity: -4,
        flags: flag::WRITE | flag::MOVABLE_KEYS,
        keys: &[KeySpec::counted(1, key::RW | key::ACCESS | key::DELETE)],
        since: "7.0.0",
        complexity: "O(K+M*log(N)), K being the number of keys, M the number of members taken and N the size of the set.",
        summary: "Takes members with the lowest or highest scores off the first of several sorted sets that is not empty.",
        usage: "numkeys key [key ...] <MIN | MAX> [COUNT count]",
        run: zmpop,
        ..BASE
    },
    Command {
        name: "bzpopmin",
        arity: -3,
        flags: flag::WRITE | flag::BLOCKING | flag::FAST,
        keys: WAIT,
        since: "5.0.0",
        complexity: "O(log(N)), N being the size of the set.",
        summary: "Takes the member with the lowest score off the first of several sorted sets that is not empty, and waits for one if none is.",
        usage: "key [key ...] timeout",
        run: bzpopmin,
        ..BASE
    },
    Command {
        name: "bzpopmax",
        arity: -3,
        flags: flag::WRITE | flag::BLOCKING | flag::FAST,
        keys: WAIT,
        since: "5.0.0",
        complexity: "O(log(N)), N being the size of the set.",
        summary: "Takes the member with the highest score off the first of several sorted sets that is not empty, and waits for one if none is.",
        usage: "key [key ...] timeout",
        run: bzpopmax,
        ..BASE
    },
    Command {
        name: "bzmpop",
        arity: -5,
        flags: flag::WRITE | flag::BLOCKING | flag::MOVABLE_KEYS,
        keys: &[KeySpec::counted(2, key::RW | key::ACCESS | key::DELETE)],
        since: "7.0.0",
        complexity: "O(K+M*log(N)), K being the number of keys, M the number of members taken and N the size of the set.",
        summary: "Takes members off the first of several sorted sets that is not empty, and waits for one if none is.",
        usage: "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]",
        run: bzmpop,
        ..BASE
    },
    Command {
        name: "zrangestore",
        arity: -5,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[
            KeySpec::one(1, key::OW | key::UPDATE),
            KeySpec::one(2, key::RO | key::ACCESS),
        ],
        since: "6.2.0",
        complexity: "O(log(N)+M), N being the size of the set and M the number of members stored.",
        summary: "Stores a range of a sorted set under another key.",
        usage: "destination source min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]",
        run: zrangestore,
        ..BASE
    },
    Command {
        name: "zunion",
        arity: -3,
        flags: flag::READONLY | flag::MOVABLE_KEYS,
        keys: &[KeySpec::counted(1, key::RO | key::ACCESS)],
        since: "6.2.0",
        complexity: "O(N)+O(M*log(M)), N being the sum of the sizes of the inputs and M the size of the result.",
        summary: "Returns the members of several sorted sets together.",
        usage: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
        run: zunion,
        ..BASE
    },
    Command {
        name: "zunionstore",
        arity: -4,
        flags: flag::WRITE | flag::DENYOOM | flag::MOVABLE_KEYS,
        keys: STORE,
        since: "2.0.0",
        complexity: "O(N)+O(M*log(M)), N being the sum of the sizes of the inputs and M the size of the result.",
        summary: "Stores the members of several sorted sets together.",
        usage: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
        run: zunionstore,
        ..BASE
    },
    Command {
        name: "zinter",
        arity: -3,
        flags: flag::READONLY | flag::MOVABLE_KEYS,
        keys: &[KeySpec::counted(1, key::RO | key::ACCESS)],
        since: "6.2.0",
        complexity: "O(N*K)+O(M*log(M)), N being the size of the smallest input, K the number of inputs and M the size of the result.",
        summary: "Returns the members that several sorted sets have in common.",
        usage: "numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] [WITHSCORES]",
        run: zinter,
        ..BASE
    },
    Command {
        name: "zinterstore",
        arity: -4,
        flags: flag::WRITE | flag::DENYOOM | flag::MOVABLE_KEYS,
        keys: STORE,
        since: "2.0.0",
        complexity: "O(N*K)+O(M*log(M)), N being the size of the smallest input, K the number of inputs and M the size of the result.",
        summary: "Stores the members that several sorted sets have in common.",
        usage: "destination numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]",
        run: zinterstore,
        ..BASE
    },
    Command {
        name: "zdiff",
        arity: -3,
        flags: flag::READONLY | flag::MOVABLE_KEYS,
        keys: &[KeySpec::counted(1, key::RO | key::ACCESS)],
        since: "6.2.0",
        complexity: "O(N*K)+O(M*log(M)), N being the size of the first input, K the number of inputs and M the size of the result.",
        summary: "Returns the members of the first sorted set that the others do not have.",
        usage: "numkeys key [key ...] [WITHSCORES]",
        run: zdiff,
        ..BASE
    },
    Command {
        name: "zdiffstore",
        arity: -4,
        flags: flag::WRITE | flag::DENYOOM | flag::MOVABLE_KEYS,
        keys: STORE,
        since: "6.2.0",
        complexity: "O(N*K)+O(M*log(M)), N being the size of the first input, K the number of inputs and M the size of the result.",
        summary: "Stores the members of the first sorted set that the others do not have.",
        usage: "destination numkeys key [key ...]",
        run: zdiffstore,
        ..BASE
    },
    Command {
        name: "zintercard",
        arity: -3,
        flags: flag::READONLY | flag::MOVABLE_KEYS,
        keys: &[KeySpec::counted(1, key::RO | key::ACCESS)],
        since: "7.0.0",
        complexity: "O(N*K), N being the size of the smallest input and K the number of inputs.",
        summary: "Tells how many members several sorted sets have in common.",
        usage: "numkeys key [key ...] [LIMIT limit]",
        run: zintercard,
        ..BASE
    },
];

fn zrem(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |zset: &mut Zset| {
        let members = args.iter().skip(2);
        let removed = members.filter(|member| zset.remove(member).is_some());
        Ok(match removed.count() {
            0 => Edit::Unchanged(0),
            removed => Edit::Changed(removed),
        })
    })?;
    let removed = edited.map_or(0, |edited| edited.result);
    if removed > 0 {
        keys.notify(NotifyFlags::ZSET, "zrem", key);
        if edited.is_some_and(|edited| edited.removed) {
            keys.notify(NotifyFlags::GENERIC, "del", key);
        }
        ctx.dirty(removed);
    }
    ctx.reply.count(removed);
    Ok(())
}

fn zcard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let zset = keys.view::<Zset>(&args[1], Look::Read)?;
    reply.count(zset.map_or(0, ZsetRef::len));
    Ok(())
}

fn zscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let zset = keys.view::<Zset>(&args[1], Look::Read)?;
    match zset.and_then(|zset| zset.score(&args[2])) {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
    Ok(())
}

fn zmscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let zset = keys.view::<Zset>(&args[1], Look::Read)?;
    reply.array(args.len() - 2);
    for member in args.iter().skip(2) {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => reply.double(score),
            None => reply.null(),
        }
    }
    Ok(())
}

fn zrank(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    rank(ctx, args, false)
}

fn zrevrank(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    rank(ctx, args, true)
}

fn zscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    scan_elements::<Zset>(ctx, args, |zset, cursor, visit| {
        let in_skiplist = zset.encoding() == ZsetEncoding::Skiplist;
        zset.scan(cursor, &mut |member, score| {
            // Redis 7.2 writes the shortest digits everywhere but here.
            if in_skiplist {
                return visit(member, Some(format_17_digits(score).as_bytes()));
            }
            // A score is a string here in both protocols: header, text, line end.
            let mut bulk = Vec::new();
            encode::double(&mut bulk, Protocol::Resp2, score);
            let mut lines = bulk.split(|&byte| byte == b'\r');
            let text = lines.nth(1).and_then(|line| line.get(1..));
            visit(member, Some(text.unwrap_or_default()));
        })
    })
}

fn rank(ctx: &mut Ctx<'_>, args: Args<'_>, reverse: bool) -> CommandResult {
    let name = if reverse { "zrevrank" } else { "zrank" };
    let with_score = match args.get(3) {
        _ if args.len() > 4 => return Err(CommandError::arity(name)),
        None => false,
        Some(word) if word.eq_ignore_ascii_case(b"withscore") => true,
        Some(_) => return Err(CommandError::SYNTAX),
    };
    let (mut keys, reply) = ctx.keys_and_reply();
    let zset = keys.view::<Zset>(&args[1], Look::Read)?;
    let found = zset.and_then(|zset| zset.rank(&args[2]).map(|found| (zset.len(), found)));
    let Some((len, (rank, score))) = found else {
        if with_score {
            reply.null_array();
        } else {
            reply.null();
        }
        return Ok(());
    };
    if with_score {
        reply.array(2);
    }
    reply.count(if reverse { len - 1 - rank } else { rank });
    if with_score {
        reply.double(score);
    }
    Ok(())
}

pub(super) fn limits(ctx: &Ctx<'_>) -> ZsetLimits {
    ctx.settings().zset_limits()
}

#[cfg(test)]
mod tests;
