//! HRANDFIELD: one field, several different ones, or several with repetition.

use super::bulk;
use crate::base::error::{CommandError, CommandResult};
use crate::commands::typed::elements::{Count, parse_count};
use crate::data::keyspace::Look;
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::hash::Hash;
use crate::types::packed::Elem;
use kumi_resp::Args;

pub(super) fn hrandfield(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut rng = ctx.fork_rng();
    let Some(count) = args.get(2) else {
        let (mut keys, reply) = ctx.keys_and_reply();
        let hash = keys.view::<Hash>(&args[1], Look::Read)?;
        match hash.and_then(|hash| hash.random(&mut rng)) {
            Some((field, _)) => bulk(reply, field),
            None => reply.null(),
        }
        return Ok(());
    };
    let with_values = match args.get(3) {
        None => false,
        Some(word) if args.len() == 4 && word.eq_ignore_ascii_case(b"withvalues") => true,
        Some(_) => {
            parse_count(count, false)?;
            return Err(CommandError::SYNTAX);
        }
    };
    let count = parse_count(count, with_values)?;
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(hash) = keys.view::<Hash>(&args[1], Look::Read)? else {
        reply.array(0);
        return Ok(());
    };
    let flat = with_values && !reply.is_resp3();
    let header = |count: usize| if flat { count * 2 } else { count };
    match count {
        Count::Distinct(count) => {
            reply.array(header(count.min(hash.len())));
            hash.sample(count, &mut rng, &mut |field, value| {
                pair(reply, field, value, with_values, flat);
            });
        }
        Count::Repeated(count) => {
            reply.array(header(count));
            for _ in 0..count {
                let Some((field, value)) = hash.random(&mut rng) else {
                    break;
                };
                pair(reply, field, value, with_values, flat);
                if reply.is_over_limit() {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn pair(reply: &mut Reply<'_>, field: Elem<'_>, value: Elem<'_>, with_values: bool, flat: bool) {
    if with_values && !flat {
        reply.array(2);
    }
    bulk(reply, field);
    if with_values {
        bulk(reply, value);
    }
}
