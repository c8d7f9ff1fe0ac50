//! ZMPOP, and the commands that wait for a sorted set: BZPOPMIN, BZPOPMAX and BZMPOP.

use super::pick::{pair, take};
use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_i64;
use crate::commands::parse::{integer, timeout_ms};
use crate::data::keyspace::{Type, Wake};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;
use std::ops::Range;

pub(super) fn bzpopmin(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop_or_wait(ctx, args, false)
}

pub(super) fn bzpopmax(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    pop_or_wait(ctx, args, true)
}

fn pop_or_wait(ctx: &mut Ctx<'_>, args: Args<'_>, highest: bool) -> CommandResult {
    let last = args.len() - 1;
    let timeout_ms = timeout_ms(&args[last], ctx.now)?;
    let (mut keys, reply) = ctx.keys_and_reply();
    for key in args.iter().take(last).skip(1) {
        let Some(members) = take(&mut keys, key, highest, 1)? else {
            continue;
        };
        reply.array(3);
        reply.bulk(key);
        for (member, score) in &members {
            pair(reply, member, Some(*score), false);
        }
        ctx.dirty(1);
        ctx.propagate_as([pop_verb(highest), key]);
        return Ok(());
    }
    wait(ctx, args, 1..last, timeout_ms);
    Ok(())
}

pub(super) fn zmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if !pop_many(ctx, args, &parse(args, 1)?)? {
        ctx.reply.null_array();
    }
    Ok(())
}

pub(super) fn bzmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let pop = parse(args, 2)?;
    let timeout_ms = timeout_ms(&args[1], ctx.now)?;
    if !pop_many(ctx, args, &pop)? {
        wait(ctx, args, pop.keys, timeout_ms);
    }
    Ok(())
}

/// What ZMPOP and BZMPOP take.
struct Pop {
    /// The positions of the keys.
    keys: Range<usize>,
    highest: bool,
    count: usize,
}

/// Reads the arguments from the number of keys on, which stands at `at`.
fn parse(args: Args<'_>, at: usize) -> Result<Pop, CommandError> {
    const NUMKEYS: CommandError = CommandError::fixed("ERR numkeys should be greater than 0");
    const COUNT: CommandError = CommandError::fixed("ERR count should be greater than 0");
    let above_zero = |arg: &[u8], error: CommandError| {
        let number = integer(arg).ok();
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.filter(|&number| number > 0).ok_or(error)
    };
    let names = above_zero(&args[at], NUMKEYS)?;
    let end = names.checked_add(at + 1).ok_or(CommandError::SYNTAX)?;
    let which = args.get(end).ok_or(CommandError::SYNTAX)?;
    let highest = match which.to_ascii_lowercase().as_slice() {
        b"min" => false,
        b"max" => true,
        _ => return Err(CommandError::SYNTAX),
    };
    let options = args.tail(end + 1);
    let count = match options.get(1) {
        Some(count) if options[0].eq_ignore_ascii_case(b"count") => above_zero(count, COUNT)?,
        None if options.is_empty() => 1,
        _ => return Err(CommandError::SYNTAX),
    };
    if options.len() > 2 {
        return Err(CommandError::SYNTAX);
    }
    Ok(Pop {
        keys: at + 1..end,
        highest,
        count,
    })
}

/// Takes members off the first sorted set there is. Returns whether there is one; if not, nothing is answered.
fn pop_many(ctx: &mut Ctx<'_>, args: Args<'_>, pop: &Pop) -> Result<bool, CommandError> {
    let (mut keys, reply) = ctx.keys_and_reply();
    for key in pop.keys.clone().map(|at| &args[at]) {
        let Some(members) = take(&mut keys, key, pop.highest, pop.count)? else {
            continue;
        };
        reply.array(2);
        reply.bulk(key);
        reply.array(members.len());
        for (member, score) in &members {
            pair(reply, member, Some(*score), true);
        }
        ctx.dirty(members.len());
        let count = format_i64(members.len() as i64);
        ctx.propagate_as([pop_verb(pop.highest), key, &*count]);
        return Ok(true);
    }
    Ok(false)
}

/// The command that takes members off an end, as it is recorded.
fn pop_verb(highest: bool) -> &'static [u8] {
    if highest { b"ZPOPMAX" } else { b"ZPOPMIN" }
}

/// Waits for a sorted set; inside a transaction, answers that there is none.
fn wait(ctx: &mut Ctx<'_>, args: Args<'_>, keys: Range<usize>, timeout_ms: u64) {
    if !ctx.may_block() {
        return ctx.reply.null_array();
    }
    let names = keys.map(|at| (&args[at], Wake::Holds(Type::SortedSet)));
    ctx.block_on_keys(args, names, timeout_ms);
}
