//! SPOP and SRANDMEMBER: one member, several different ones, or several with repetition.

use super::bulk;
use crate::base::error::{CommandError, CommandResult};
use crate::commands::parse::integer;
use crate::commands::typed::elements::{Count, parse_count};
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Edited, Look, Missing};
use crate::engine::store::ctx::Ctx;
use crate::types::set::{Set, SetRef};
use kumi_resp::Args;

/// Members in one propagated SREM.
const BATCH: usize = 1024;

pub(super) fn spop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    match args.len() {
        2 => pop_one(ctx, &args[1]),
        3 => pop_many(ctx, &args[1], &args[2]),
        _ => Err(CommandError::SYNTAX),
    }
}

pub(super) fn srandmember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut rng = ctx.fork_rng();
    if args.len() > 3 {
        return Err(CommandError::SYNTAX);
    }
    let count = args.get(2).map(|count| parse_count(count, false));
    let count = count.transpose()?;
    let (mut keys, reply) = ctx.keys_and_reply();
    let set = keys.view::<Set>(&args[1], Look::Read)?;
    let Some(count) = count else {
        match set.and_then(|set| set.random(&mut rng)) {
            Some(member) => bulk(reply, member),
            None => reply.null(),
        }
        return Ok(());
    };
    let Some(set) = set else {
        reply.array(0);
        return Ok(());
    };
    match count {
        Count::Distinct(count) => {
            reply.array(count.min(set.len()));
            set.sample(count, &mut rng, &mut |member| bulk(reply, member));
        }
        Count::Repeated(count) => {
            reply.array(count);
            for _ in 0..count {
                let Some(member) = set.random(&mut rng) else {
                    break;
                };
                bulk(reply, member);
                if reply.is_over_limit() {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn pop_one(ctx: &mut Ctx<'_>, key: &[u8]) -> CommandResult {
    let mut rng = ctx.fork_rng();
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |set: &mut Set| {
        let member = set.view().random(&mut rng);
        let member = member.map_or_else(Vec::new, |member| member.text().to_vec());
        set.remove(&member);
        Ok(Edit::Changed(member))
    })?;
    let Some(Edited {
        result: member,
        removed,
        ..
    }) = edited
    else {
        ctx.reply.null();
        return Ok(());
    };
    keys.notify(NotifyFlags::SET, "spop", key);
    if removed {
        keys.notify(NotifyFlags::GENERIC, "del", key);
    }
    ctx.dirty(1);
    ctx.propagate_as([b"SREM", key, &member]);
    ctx.reply.bulk(&member);
    Ok(())
}

fn pop_many(ctx: &mut Ctx<'_>, key: &[u8], count: &[u8]) -> CommandResult {
    let count = integer(count)
        .ok()
        .and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(CommandError::fixed(
        "ERR value is out of range, must be positive",
    ))?;
    let mut rng = ctx.fork_rng();
    let (mut keys, reply) = ctx.keys_and_reply();
    let len = keys.view::<Set>(key, Look::Write)?.map_or(0, SetRef::len);
    if len == 0 || count == 0 {
        reply.set(0);
        return Ok(());
    }
    if count >= len {
        // Redis replies to this by SUNION, so it counts as a read.
        if let Some(set) = keys.view::<Set>(key, Look::Read)? {
            reply.set(len);
            set.iter().for_each(|member| bulk(reply, member));
        }
        keys.notify(NotifyFlags::SET, "spop", key);
        keys.remove(key);
        keys.notify(NotifyFlags::GENERIC, "del", key);
        ctx.dirty(len);
        let lazy = ctx.settings().lazyfree_server_del;
        let verb: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
        ctx.propagate_as([verb, key]);
        return Ok(());
    }
    let edited = keys.edit(key, Missing::Skip, |set: &mut Set| {
        let mut members = Vec::with_capacity(count.min(len));
        set.view().sample(count, &mut rng, &mut |member| {
            members.push(member.text().to_vec());
        });
        for member in &members {
            set.remove(member);
        }
        Ok(Edit::Changed(members))
    })?;
    let members = edited.map_or_else(Vec::new, |edited| edited.result);
    keys.notify(NotifyFlags::SET, "spop", key);
    reply.set(members.len());
    for member in &members {
        reply.bulk(member);
    }
    ctx.dirty(members.len());
    for batch in members.chunks(BATCH) {
        let words: Vec<&[u8]> = batch.iter().map(Vec::as_slice).collect();
        ctx.propagate_as([b"SREM", key].into_iter().chain(words.iter().copied()));
    }
    Ok(())
}
