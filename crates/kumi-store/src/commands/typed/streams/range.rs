//! XRANGE and XREVRANGE.

use super::{answer, at_most, end_id, start_id, view};
use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::data::keyspace::Look;
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::stream::Entries;
use kumi_resp::Args;

pub(super) fn xrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    read(ctx, args, false)
}

pub(super) fn xrevrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    read(ctx, args, true)
}

fn read(ctx: &mut Ctx<'_>, args: Args<'_>, reverse: bool) -> CommandResult {
    let (start, end) = if reverse { (3, 2) } else { (2, 3) };
    let start = start_id(&args[start])?;
    let end = end_id(&args[end])?;
    let mut count = None;
    let mut options = OptionReader::new(args, 4);
    while let Some(word) = options.word() {
        match &*word {
            b"count" => count = Some(integer(options.value()?)?.max(0) as u64),
            _ => return Err(CommandError::SYNTAX),
        }
    }
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(stream) = view(&mut keys, &args[1], Look::Read)? else {
        reply.array(0);
        return Ok(());
    };
    if count == Some(0) {
        reply.null_array();
        return Ok(());
    }
    let entries = match reverse {
        true => stream.range_back(start, end),
        false => stream.range(start, end),
    };
    answer_all(reply, entries, at_most(count));
    Ok(())
}

/// Answers an array of entries.
pub(super) fn answer_all(reply: &mut Reply<'_>, entries: Entries<'_>, count: usize) {
    let deferred = reply.defer();
    let mut answered = 0;
    for entry in entries.take(count) {
        answer(reply, entry);
        answered += 1;
    }
    reply.finish_array(deferred, answered);
}
