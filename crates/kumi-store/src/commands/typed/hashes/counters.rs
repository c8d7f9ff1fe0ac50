//! Numbers kept in the fields of hashes.

use super::limits;
use crate::base::error::{CommandError, CommandResult};
use crate::base::extended::Extended;
use crate::base::number::format_i64;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Missing};
use crate::engine::store::ctx::Ctx;
use crate::types::hash::Hash;
use crate::types::packed::Elem;
use kumi_resp::Args;

pub(super) fn hincrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, field) = (&args[1], &args[2]);
    let increment = integer(&args[3])?;
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let seed = keys.seed();
    let edited = keys.edit(key, Missing::Create, |hash: &mut Hash| {
        let old = match hash.view().get(field) {
            None => 0,
            Some(Elem::Int(number)) => number,
            Some(Elem::Bytes(_)) => {
                return Err(CommandError::fixed("ERR hash value is not an integer"));
            }
        };
        let sum = old.checked_add(increment).ok_or(CommandError::fixed(
            "ERR increment or decrement would overflow",
        ))?;
        hash.set(field, &format_i64(sum), limits, seed);
        Ok(Edit::Changed(sum))
    })?;
    keys.notify(NotifyFlags::HASH, "hincrby", key);
    ctx.dirty(1);
    ctx.reply.integer(edited.map_or(0, |edited| edited.result));
    Ok(())
}

pub(super) fn hincrbyfloat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, field) = (&args[1], &args[2]);
    let increment = Extended::parse(&args[3]).ok_or(CommandError::NOT_FLOAT)?;
    // An infinite number has no sum with any other.
    if increment.checked_add(Extended::from(0)).is_none() {
        return Err(CommandError::fixed("ERR value is NaN or Infinity"));
    }
    let limits = limits(ctx);
    let mut text = Vec::new();
    let mut keys = ctx.keys();
    let seed = keys.seed();
    keys.edit(key, Missing::Create, |hash: &mut Hash| {
        let old = match hash.view().get(field) {
            None => Some(Extended::from(0)),
            Some(Elem::Int(number)) => Some(Extended::from(number)),
            Some(Elem::Bytes(bytes)) => Extended::parse(bytes),
        };
        let old = old.ok_or(CommandError::fixed("ERR hash value is not a float"))?;
        let sum = old.checked_add(increment).ok_or(CommandError::fixed(
            "ERR increment would produce NaN or Infinity",
        ))?;
        sum.write(&mut text);
        hash.set(field, &text, limits, seed);
        Ok(Edit::Changed(()))
    })?;
    keys.notify(NotifyFlags::HASH, "hincrbyfloat", key);
    ctx.dirty(1);
    ctx.propagate_as([b"HSET", key, field, &text]);
    ctx.reply.bulk(&text);
    Ok(())
}
