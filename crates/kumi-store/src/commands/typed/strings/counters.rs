//! Numbers kept as strings. Integers stay integers in their entries and are changed where they lie;
//! fractions are text, added up as Redis adds them.

use crate::base::error::{CommandError, CommandResult};
use crate::base::extended::Extended;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{NewValue, StringRef};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

pub(super) fn incr(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    add(ctx, &args[1], 1)
}

pub(super) fn decr(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    add(ctx, &args[1], -1)
}

pub(super) fn incrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    add(ctx, &args[1], integer(&args[2])?)
}

pub(super) fn decrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let decrement = integer(&args[2])?;
    let increment = decrement
        .checked_neg()
        .ok_or(CommandError::fixed("ERR decrement would overflow"))?;
    add(ctx, &args[1], increment)
}

pub(super) fn incrbyfloat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let mut text = Vec::new();
    let written = &mut text;
    let mut keys = ctx.keys();
    keys.update(key, move |old| {
        let old = match old {
            None => Some(Extended::from(0)),
            Some(StringRef::Int(number)) => Some(Extended::from(number)),
            Some(StringRef::Bytes { bytes, .. }) => Extended::parse(bytes),
        };
        let old = old.ok_or(CommandError::NOT_FLOAT)?;
        let increment = Extended::parse(&args[2]).ok_or(CommandError::NOT_FLOAT)?;
        let sum = old.checked_add(increment).ok_or(CommandError::fixed(
            "ERR increment would produce NaN or Infinity",
        ))?;
        sum.write(written);
        Ok(NewValue::Bytes(written))
    })?;
    keys.notify(NotifyFlags::STRING, "incrbyfloat", key);
    ctx.dirty(1);
    ctx.propagate_as([b"SET", key, &text, b"KEEPTTL"]);
    ctx.reply.bulk(&text);
    Ok(())
}

fn add(ctx: &mut Ctx<'_>, key: &[u8], increment: i64) -> CommandResult {
    let mut sum = 0;
    let mut keys = ctx.keys();
    keys.update(key, |old| {
        let old = match old {
            None => 0,
            Some(StringRef::Int(number)) => number,
            Some(StringRef::Bytes { bytes, .. }) => integer(bytes)?,
        };
        sum = old.checked_add(increment).ok_or(CommandError::fixed(
            "ERR increment or decrement would overflow",
        ))?;
        Ok(NewValue::Int(sum))
    })?;
    keys.notify(NotifyFlags::STRING, "incrby", key);
    ctx.dirty(1);
    ctx.reply.integer(sum);
    Ok(())
}
