//! DEBUG RELOAD: all keys through the serialiser and back. There is no file: what was serialised last stays in memory for
//! NOSAVE.

use crate::cmd::dump::{self, compression, limits};
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use crate::keyspace::Expiry;
use crate::rdb::{Builder, Built, Compression, Reader, Writer, decode, write_value};
use kumi_resp::Args;

/// A key as a snapshot holds it.
#[derive(Debug)]
pub(crate) struct SavedKey {
    db: usize,
    key: Box<[u8]>,
    deadline: Option<u64>,
    /// The type byte and the value.
    value: Box<[u8]>,
}

pub(super) fn reload(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut flush, mut save, mut merge) = (true, true, false);
    for word in args.tail(2).iter() {
        match word.to_ascii_lowercase().as_slice() {
            b"merge" => (flush, merge) = (false, true),
            b"noflush" => flush = false,
            b"nosave" => save = false,
            _ => {
                return Err(CommandError::fixed(
                    "ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.",
                ));
            }
        }
    }
    if save {
        let compression = compression(ctx);
        let saved = save_all(ctx, compression);
        ctx.shard().saved = Some(saved);
    }
    let saved = ctx.shard().saved.take();
    let outcome = match &saved {
        Some(saved) => load(ctx, saved, flush, merge),
        None => Err(BROKEN),
    };
    ctx.shard().saved = saved;
    outcome?;
    tracing::info!("DB reloaded by DEBUG RELOAD");
    ctx.reply.ok();
    Ok(())
}

const BROKEN: CommandError =
    CommandError::fixed("ERR Error trying to load the RDB dump, check server logs.");

fn save_all(ctx: &mut Ctx<'_>, compression: Compression) -> Vec<SavedKey> {
    let mut saved = Vec::new();
    for db in 0..ctx.shard().databases() {
        ctx.keys().in_db(db).for_each(|entry| {
            let mut value = Vec::new();
            write_value(&mut Writer::new(&mut value, compression), entry.value());
            saved.push(SavedKey {
                db,
                key: entry.key().into(),
                deadline: entry.deadline(),
                value: value.into(),
            });
        });
    }
    saved
}

/// Reads all values, then stores them: an error changes nothing. Redis ends where a key is there already and is not to
/// be overwritten; here that is an error.
fn load(ctx: &mut Ctx<'_>, saved: &[SavedKey], flush: bool, merge: bool) -> CommandResult {
    let (limits, seed) = (limits(ctx), ctx.keys().seed());
    let values: Vec<Built> = saved
        .iter()
        .map(|saved| read(&saved.value, limits, seed).ok_or(BROKEN))
        .collect::<Result<_, _>>()?;
    if !flush && !merge {
        let mut keys = ctx.keys();
        for saved in saved {
            if keys.in_db(saved.db).exists(&saved.key) {
                tracing::error!(
                    "DEBUG RELOAD NOFLUSH: a key is there already, and MERGE was not given"
                );
                return Err(BROKEN);
            }
        }
    }
    let now_ms = ctx.now.unix_ms();
    if flush {
        for db in 0..ctx.shard().databases() {
            ctx.shard().flush(db, now_ms);
        }
    }
    let mut keys = ctx.keys();
    for (saved, value) in saved.iter().zip(values) {
        if saved.deadline.is_some_and(|deadline| keys.is_due(deadline)) {
            continue;
        }
        let mut keys = keys.in_db(saved.db);
        keys.remove(&saved.key);
        let expiry = saved.deadline.map_or(Expiry::Clear, Expiry::At);
        dump::put(&mut keys, &saved.key, value, expiry)?;
    }
    Ok(())
}

fn read(value: &[u8], limits: crate::rdb::ValueLimits, seed: (u64, u64)) -> Option<Built> {
    let (&kind, value) = value.split_first()?;
    let mut builder = Builder::new(kind, limits, seed);
    decode(kind, &mut Reader::new(value), &mut builder).ok()?;
    Some(builder.finish())
}
