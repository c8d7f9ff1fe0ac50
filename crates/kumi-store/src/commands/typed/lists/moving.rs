//! LMOVE, RPOPLPUSH and LMPOP.

use super::{answer, end, limits, pop_event, pop_verb, push_event, take};
use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_i64;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Look, Missing};
use crate::engine::store::ctx::Ctx;
use crate::types::list::{List, Side};
use crate::types::packed::Elem;
use kumi_resp::Args;
use std::ops::Range;

pub(super) fn lmove(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (from, to) = (end(&args[3])?, end(&args[4])?);
    let moved = move_element(ctx, &args[1], &args[2], from, to)?;
    answer_unless(ctx, moved)
}

pub(super) fn rpoplpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let moved = move_element(ctx, &args[1], &args[2], Side::Back, Side::Front)?;
    answer_unless(ctx, moved)
}

fn answer_unless(ctx: &mut Ctx<'_>, moved: bool) -> CommandResult {
    if !moved {
        ctx.reply.null();
    }
    Ok(())
}

/// Moves one element and answers it. Source and destination may be one list. Returns whether there is a source; if not,
/// nothing is answered.
pub(super) fn move_element(
    ctx: &mut Ctx<'_>,
    source: &[u8],
    destination: &[u8],
    from: Side,
    to: Side,
) -> Result<bool, CommandError> {
    let limits = limits(ctx);
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(list) = keys.view::<List>(source, Look::Write)? else {
        return Ok(false);
    };
    let elem = match from {
        Side::Front => list.first(),
        Side::Back => list.last(),
    };
    let element = elem.map(|elem| elem.text().to_vec()).unwrap_or_default();
    keys.view::<List>(destination, Look::Write)?;
    let push = |list: &mut List| {
        list.prepare(1, element.len(), limits);
        list.push(to, &element, limits);
    };
    let pop = |list: &mut List| {
        let index = match from {
            Side::Front => 0,
            Side::Back => list.len() - 1,
        };
        list.remove_range(index, 1);
    };
    let removed = if source == destination {
        keys.edit(source, Missing::Skip, |list: &mut List| {
            pop(list);
            push(list);
            list.settle(true, limits);
            Ok(Edit::Changed(()))
        })?;
        false
    } else {
        // The destination first: it is the one that may be refused.
        keys.edit(destination, Missing::Create, |list: &mut List| {
            push(list);
            Ok(Edit::Changed(()))
        })?;
        let edited = keys.edit(source, Missing::Skip, |list: &mut List| {
            pop(list);
            list.settle(true, limits);
            Ok(Edit::Changed(()))
        })?;
        edited.is_some_and(|edited| edited.removed)
    };
    keys.notify(NotifyFlags::LIST, push_event(to), destination);
    keys.notify(NotifyFlags::LIST, pop_event(from), source);
    if removed {
        keys.notify(NotifyFlags::GENERIC, "del", source);
    }
    answer(reply, Elem::parse(&element));
    ctx.dirty(1);
    Ok(true)
}

pub(super) fn lmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if !pop_many(ctx, args, &parse_pop(args, 1)?)? {
        ctx.reply.null_array();
    }
    Ok(())
}

/// What LMPOP and BLMPOP take.
pub(super) struct Pop {
    /// The positions of the keys.
    pub(super) keys: Range<usize>,
    side: Side,
    count: usize,
}

/// Reads the arguments from the number of keys on, which stands at `at`.
pub(super) fn parse_pop(args: Args<'_>, at: usize) -> Result<Pop, CommandError> {
    const NUMKEYS: CommandError = CommandError::fixed("ERR numkeys should be greater than 0");
    const COUNT: CommandError = CommandError::fixed("ERR count should be greater than 0");
    let above_zero = |arg: &[u8], error: CommandError| {
        let number = integer(arg).map_err(|_| error.clone())?;
        usize::try_from(number)
            .ok()
            .filter(|&number| number > 0)
            .ok_or(error)
    };
    let names = above_zero(&args[at], NUMKEYS)?;
    let direction = names
        .checked_add(at + 1)
        .and_then(|at| args.get(at))
        .ok_or(CommandError::SYNTAX)?;
    let side = end(direction)?;
    let options = at + names + 2;
    let count = match args.len() - options {
        0 => 1,
        more @ 2.. if args[options].eq_ignore_ascii_case(b"count") => {
            let count = above_zero(&args[options + 1], COUNT)?;
            if more > 2 {
                return Err(CommandError::SYNTAX);
            }
            count
        }
        _ => return Err(CommandError::SYNTAX),
    };
    Ok(Pop {
        keys: at + 1..at + 1 + names,
        side,
        count,
    })
}

/// Takes elements off the first list there is. Returns whether there is one; if not, nothing is answered.
pub(super) fn pop_many(ctx: &mut Ctx<'_>, args: Args<'_>, pop: &Pop) -> Result<bool, CommandError> {
    let limits = limits(ctx);
    let (mut keys, reply) = ctx.keys_and_reply();
    for key in pop.keys.clone().map(|at| &args[at]) {
        if keys.view::<List>(key, Look::Write)?.is_none() {
            continue;
        }
        reply.array(2);
        reply.bulk(key);
        let popped = take(&mut keys, reply, key, pop.side, Some(pop.count), limits)?.unwrap_or(0);
        ctx.dirty(popped);
        ctx.propagate_as([pop_verb(pop.side), key, &*format_i64(popped as i64)]);
        return Ok(true);
    }
    Ok(false)
}
