//! Members taken from either end, and random ones.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::parse::integer;
use crate::commands::typed::elements::{Count, parse_count};
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Keys, Look, Missing};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::zset::Zset;
use kumi_resp::Args;

pub(super) fn zpopmin(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, false)
}

pub(super) fn zpopmax(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, true)
}

pub(super) fn zrandmember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut rng = ctx.fork_rng();
    let Some(count) = args.get(2) else {
        let (mut keys, reply) = ctx.keys_and_reply();
        let zset = keys.view::<Zset>(&args[1], Look::Read)?;
        match zset.and_then(|zset| zset.random(&mut rng)) {
            Some((member, _)) => reply.bulk(&*member),
            None => reply.null(),
        }
        return Ok(());
    };
    let with_scores = match args.get(3) {
        None => false,
        Some(word) if args.len() == 4 && word.eq_ignore_ascii_case(b"withscores") => true,
        Some(_) => {
            parse_count(count, false)?;
            return Err(CommandError::SYNTAX);
        }
    };
    let count = parse_count(count, with_scores)?;
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(zset) = keys.view::<Zset>(&args[1], Look::Read)? else {
        reply.array(0);
        return Ok(());
    };
    let nested = with_scores && reply.is_resp3();
    let header = |count: usize| {
        if with_scores && !nested {
            count * 2
        } else {
            count
        }
    };
    let score_of = |score: f64| with_scores.then_some(score);
    match count {
        Count::Distinct(count) => {
            reply.array(header(count.min(zset.len())));
            zset.sample(count, &mut rng, &mut |member, score| {
                pair(reply, &member, score_of(score), nested);
            });
        }
        Count::Repeated(count) => {
            reply.array(header(count));
            for _ in 0..count {
                let Some((member, score)) = zset.random(&mut rng) else {
                    break;
                };
                pair(reply, &member, score_of(score), nested);
                if reply.is_over_limit() {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn pop(ctx: &mut Ctx<'_>, args: Args<'_>, highest: bool) -> CommandResult {
    let key = &args[1];
    if args.len() > 3 {
        return Err(CommandError::SYNTAX);
    }
    let count = match args.get(2) {
        None => None,
        Some(text) => {
            let count = integer(text)
                .ok()
                .and_then(|count| usize::try_from(count).ok());
            Some(count.ok_or(CommandError::fixed(
                "ERR value is out of range, must be positive",
            ))?)
        }
    };
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(members) = take(&mut keys, key, highest, count.unwrap_or(1))? else {
        reply.array(0);
        return Ok(());
    };
    let nested = count.is_some() && reply.is_resp3();
    reply.array(if nested {
        members.len()
    } else {
        members.len() * 2
    });
    for (member, score) in &members {
        pair(reply, member, Some(*score), nested);
    }
    ctx.dirty(members.len());
    Ok(())
}

/// Members with their scores.
type Popped = Vec<(Vec<u8>, f64)>;

/// Removes members from an end, the outermost first, and notifies. `None` if there is no such set, or none is wanted.
pub(super) fn take(
    keys: &mut Keys<'_>,
    key: &[u8],
    highest: bool,
    wanted: usize,
) -> Result<Option<Popped>, CommandError> {
    let edited = keys.edit(key, Missing::Skip, |zset: &mut Zset| {
        let len = zset.view().len();
        let popped = wanted.min(len);
        let ranks = if highest {
            len - popped..len
        } else {
            0..popped
        };
        let mut members = Vec::with_capacity(popped);
        zset.remove_ranks(ranks, &mut |member, score| {
            members.push((member.to_vec(), score));
        });
        if highest {
            members.reverse();
        }
        Ok(if members.is_empty() {
            Edit::Unchanged(members)
        } else {
            Edit::Changed(members)
        })
    })?;
    let Some(edited) = edited.filter(|edited| edited.changed) else {
        return Ok(None);
    };
    let event = if highest { "zpopmax" } else { "zpopmin" };
    keys.notify(NotifyFlags::ZSET, event, key);
    if edited.removed {
        keys.notify(NotifyFlags::GENERIC, "del", key);
    }
    Ok(Some(edited.result))
}

pub(super) fn pair(reply: &mut Reply<'_>, member: &[u8], score: Option<f64>, nested: bool) {
    if nested {
        reply.array(2);
    }
    reply.bulk(member);
    if let Some(score) = score {
        reply.double(score);
    }
}
