//! HyperLogLog: counting different elements in a string of at most 12 KiB. The registers are in `base/hyperloglog.rs`;
//! here are keys, replies and events.

use crate::base::error::{CommandError, CommandResult};
use crate::base::hyperloglog::{self as hll, Encoding, HllError, Union};
use crate::config::NotifyFlags;
use crate::data::keyspace::{Keys, Look, StringRef};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const BASE: Command = Command {
    categories: category::HYPERLOGLOG,
    group: Group::Hyperloglog,
    since: "2.8.9",
    ..Command::BASE
};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "pfadd",
        arity: -2,
        flags: flag::WRITE | flag::DENYOOM | flag::FAST,
        keys: &[KeySpec::one(1, key::RW | key::INSERT)],
        complexity: "O(1) for each element.",
        summary: "Counts elements; returns whether the estimate may have changed.",
        usage: "key [element [element ...]]",
        run: pfadd,
        ..BASE
    },
    Command {
        name: "pfcount",
        arity: -2,
        flags: flag::READONLY | flag::MAY_REPLICATE,
        keys: &[KeySpec::rest(1, key::RW | key::ACCESS)
            .with_notes("stores the estimate it computes in the key")],
        complexity: "O(1) for one key, O(N) for N keys.",
        summary: "Estimates how many different elements were counted at a key, or at several together.",
        usage: "key [key ...]",
        run: pfcount,
        ..BASE
    },
    Command {
        name: "pfmerge",
        arity: -2,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[
            KeySpec::one(1, key::RW | key::ACCESS | key::INSERT),
            KeySpec::range(2, -1, 1, key::RO | key::ACCESS),
        ],
        complexity: "O(N), N being the number of keys.",
        summary: "Merges what was counted at several keys into the first.",
        usage: "destkey [sourcekey [sourcekey ...]]",
        run: pfmerge,
        ..BASE
    },
    Command {
        name: "pfdebug",
        arity: 3,
        flags: flag::WRITE | flag::DENYOOM | flag::ADMIN,
        keys: &[KeySpec::one(2, key::RW | key::ACCESS)],
        complexity: "N/A",
        summary: "Shows registers and encodings, for tests.",
        usage: "subcommand key",
        run: pfdebug,
        ..BASE
    },
    Command {
        name: "pfselftest",
        arity: 1,
        flags: flag::ADMIN,
        complexity: "N/A",
        summary: "Checks that registers keep their values and that estimates are near the truth.",
        run: pfselftest,
        ..BASE
    },
];

fn pfadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let limit = sparse_limit(ctx);
    let mut keys = ctx.keys();
    let old = copy(&mut keys, key, Look::Write)?;
    let created = old.is_none();
    let mut string = old.unwrap_or_else(hll::empty);
    let mut updated = usize::from(created);
    for element in args.iter().skip(2) {
        updated += usize::from(hll::add(&mut string, element, limit)?);
    }
    if updated > 0 {
        hll::invalidate(&mut string);
        store(&mut keys, key, string)?;
        keys.notify(NotifyFlags::STRING, "pfadd", key);
        ctx.dirty(updated);
    }
    ctx.reply.integer(i64::from(updated > 0));
    Ok(())
}

fn pfcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut keys = ctx.keys();
    if args.len() > 2 {
        let union = union(&mut keys, args)?;
        ctx.reply.integer(union.count() as i64);
        return Ok(());
    }
    let key = &args[1];
    let Some(string) = look(&mut keys, key, Look::Read)? else {
        ctx.reply.integer(0);
        return Ok(());
    };
    if let Some(cardinality) = hll::cached(string) {
        ctx.reply.integer(cardinality as i64);
        return Ok(());
    }
    let (cardinality, len) = (hll::count(string)?, string.len());
    // The estimate is kept in the string, so this read is a write.
    keys.edit_bytes(key, len, |string| {
        hll::store_cardinality(string, cardinality)
    })?;
    ctx.dirty(1);
    ctx.reply.integer(cardinality as i64);
    Ok(())
}

fn pfmerge(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let limit = sparse_limit(ctx);
    let mut keys = ctx.keys();
    let union = union(&mut keys, args)?;
    let mut string = copy(&mut keys, key, Look::Write)?.unwrap_or_else(hll::empty);
    union.store(&mut string, limit)?;
    store(&mut keys, key, string)?;
    keys.notify(NotifyFlags::STRING, "pfadd", key);
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}

fn pfdebug(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[2];
    let mut keys = ctx.keys();
    let mut string = copy(&mut keys, key, Look::Write)?
        .ok_or(CommandError::fixed("ERR The specified key does not exist"))?;
    let encoding = hll::encoding(&string)?;
    match args[1].to_ascii_lowercase().as_slice() {
        b"getreg" => {
            let registers = hll::registers(&string)?;
            if hll::to_dense(&mut string)? {
                store(&mut keys, key, string)?;
                ctx.dirty(1);
            }
            ctx.reply.array(registers.len());
            for register in registers {
                ctx.reply.integer(i64::from(register));
            }
        }
        b"decode" => match hll::decode(&string)? {
            Some(runs) => ctx.reply.bulk(runs),
            None => return Err(CommandError::fixed("ERR HLL encoding is not sparse")),
        },
        b"encoding" => ctx.reply.simple(match encoding {
            Encoding::Dense => "dense",
            Encoding::Sparse => "sparse",
        }),
        b"todense" => {
            let converted = hll::to_dense(&mut string)?;
            if converted {
                store(&mut keys, key, string)?;
                ctx.dirty(1);
            }
            ctx.reply.integer(i64::from(converted));
        }
        _ => {
            let mut text = b"ERR Unknown PFDEBUG subcommand '".to_vec();
            text.extend_from_slice(&args[1]);
            text.push(b'\'');
            return Err(CommandError::new(text));
        }
    }
    Ok(())
}

fn pfselftest(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    match hll::self_test() {
        Ok(()) => ctx.reply.ok(),
        Err(reason) => return Err(CommandError::new(format!("TESTFAILED {reason}"))),
    }
    Ok(())
}

/// The string at a key, if there is one; an error if it is no HyperLogLog.
fn look<'k>(
    keys: &'k mut Keys<'_>,
    key: &[u8],
    look: Look,
) -> Result<Option<&'k [u8]>, CommandError> {
    let bytes = match keys.string(key, look)? {
        None => return Ok(None),
        Some(StringRef::Int(_)) => return Err(HllError::NotHyperLogLog.into()),
        Some(StringRef::Bytes { bytes, .. }) => bytes,
    };
    hll::encoding(bytes)?;
    Ok(Some(bytes))
}

fn copy(keys: &mut Keys<'_>, key: &[u8], how: Look) -> Result<Option<Vec<u8>>, CommandError> {
    Ok(look(keys, key, how)?.map(<[u8]>::to_vec))
}

/// Puts a changed string in the place of the old one; its deadline stays.
fn store(keys: &mut Keys<'_>, key: &[u8], string: Vec<u8>) -> CommandResult {
    keys.edit_bytes(key, string.len(), |bytes| *bytes = string)
}

/// What was counted at all keys of a request.
fn union(keys: &mut Keys<'_>, args: Args<'_>) -> Result<Union, CommandError> {
    let mut union = Union::new();
    for key in args.iter().skip(1) {
        if let Some(string) = look(keys, key, Look::Read)? {
            union.merge(string)?;
        }
    }
    Ok(union)
}

fn sparse_limit(ctx: &Ctx<'_>) -> usize {
    ctx.settings().hll_sparse_max_bytes
}

impl From<HllError> for CommandError {
    fn from(error: HllError) -> Self {
        CommandError::new(error.to_string())
    }
}

#[cfg(test)]
mod tests;
