//! BLPOP, BRPOP, BLMOVE, BRPOPLPUSH and BLMPOP: the commands that wait for a list.
//!
//! Each looks for a list first, as its twin that does not wait does, and is recorded as that twin. If there is none, the
//! session waits, and the command is executed again when one of its keys holds a list.

use super::moving::{move_element, parse_pop, pop_many};
use super::{end, limits, pop_verb, take};
use crate::base::error::CommandResult;
use crate::commands::parse::timeout_ms;
use crate::data::keyspace::{Look, Type, Wake};
use crate::engine::store::ctx::Ctx;
use crate::types::list::{List, Side};
use kumi_resp::Args;
use std::ops::Range;

pub(super) fn blpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, Side::Front)
}

pub(super) fn brpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop(ctx, args, Side::Back)
}

fn pop(ctx: &mut Ctx<'_>, args: Args<'_>, side: Side) -> CommandResult {
    let last = args.len() - 1;
    let timeout_ms = timeout_ms(&args[last], ctx.now)?;
    let limits = limits(ctx);
    let (mut keys, reply) = ctx.keys_and_reply();
    for key in args.iter().take(last).skip(1) {
        if keys.view::<List>(key, Look::Write)?.is_none() {
            continue;
        }
        reply.array(2);
        reply.bulk(key);
        take(&mut keys, reply, key, side, None, limits)?;
        ctx.dirty(1);
        ctx.propagate_as([pop_verb(side), key]);
        return Ok(());
    }
    if ctx.may_block() {
        wait(ctx, args, 1..last, timeout_ms);
    } else {
        ctx.reply.null_array();
    }
    Ok(())
}

pub(super) fn blmove(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (end(&args[3])?, end(&args[4])?);
    let timeout_ms = timeout_ms(&args[5], ctx.now)?;
    if move_element(ctx, &args[1], &args[2], from, to)? {
        ctx.propagate_as([b"LMOVE", &args[1], &args[2], &args[3], &args[4]]);
        return Ok(());
    }
    wait_for_source(ctx, args, timeout_ms)
}

pub(super) fn brpoplpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let timeout_ms = timeout_ms(&args[3], ctx.now)?;
    if move_element(ctx, &args[1], &args[2], Side::Back, Side::Front)? {
        ctx.propagate_as([b"RPOPLPUSH", &args[1], &args[2]]);
        return Ok(());
    }
    wait_for_source(ctx, args, timeout_ms)
}

fn wait_for_source(ctx: &mut Ctx<'_>, args: Args<'_>, timeout_ms: u64) -> CommandResult {
    if ctx.may_block() {
        wait(ctx, args, 1..2, timeout_ms);
    } else {
        ctx.reply.null();
    }
    Ok(())
}

pub(super) fn blmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let pop = parse_pop(args, 2)?;
    let timeout_ms = timeout_ms(&args[1], ctx.now)?;
    if pop_many(ctx, args, &pop)? {
        return Ok(());
    }
    if ctx.may_block() {
        wait(ctx, args, pop.keys, timeout_ms);
    } else {
        ctx.reply.null_array();
    }
    Ok(())
}

fn wait(ctx: &mut Ctx<'_>, args: Args<'_>, keys: Range<usize>, timeout_ms: u64) {
    let names = keys.map(|at| (&args[at], Wake::Holds(Type::List)));
    ctx.block_on_keys(args, names, timeout_ms);
}
