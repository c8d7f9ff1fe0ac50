//! DUMP and RESTORE: values in Redis's own serialisation, which `data/rdb/` reads and writes.
//!
//! A payload is untrusted whatever its checksum says: what is not a right value is an error before
//! anything changes.

use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_u64;
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Expiry, Look};
use crate::data::rdb::{
    Builder, Built, Compression, DumpError, Reader, ValueLimits, decode, open, payload,
    structure_name,
};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const BASE: Command = Command {
    categories: category::KEYSPACE,
    group: Group::Generic,
    since: "2.6.0",
    ..Command::BASE
};
const RESTORE: Command = Command {
    arity: -4,
    flags: flag::WRITE | flag::DENYOOM,
    categories: category::KEYSPACE | category::DANGEROUS,
    keys: &[KeySpec::one(1, key::OW | key::UPDATE)],
    complexity: "O(N*log(N)) for a sorted set of N members, O(N) for other values of size N.",
    usage: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
    run: restore,
    ..BASE
};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "dump",
        arity: 2,
        flags: flag::READONLY,
        keys: &[KeySpec::one(1, key::RO | key::ACCESS)],
        complexity: "O(N), N being the size of the value.",
        summary: "Returns the value of a key in the serialisation of Redis.",
        usage: "key",
        tips: &["nondeterministic_output"],
        run: dump,
        ..BASE
    },
    Command {
        name: "restore",
        summary: "Creates a key from a value that DUMP returned.",
        ..RESTORE
    },
    Command {
        name: "restore-asking",
        flags: flag::WRITE | flag::DENYOOM | flag::ASKING,
        group: Group::Server,
        since: "3.0.0",
        summary: "The same as RESTORE, for the migration of hash slots.",
        ..RESTORE
    },
];

fn dump(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let compression = compression(ctx);
    let (mut keys, reply) = ctx.keys_and_reply();
    match keys.look(&args[1], Look::Read) {
        Some(entry) => reply.bulk(payload(entry.value(), compression)),
        None => reply.null(),
    }
    Ok(())
}

fn restore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args)?;
    let key = &args[1];
    if !options.replace && ctx.keys().look(key, Look::Write).is_some() {
        return Err(CommandError::fixed(
            "BUSYKEY Target key name already exists.",
        ));
    }
    let ttl = integer(&args[2])?;
    if ttl < 0 {
        return Err(CommandError::fixed("ERR Invalid TTL value, must be >= 0"));
    }
    let built = read_payload(ctx, &args[3])?;
    let now_ms = ctx.now.unix_ms();
    let expiry = match ttl {
        0 => Expiry::Clear,
        at if options.absolute => Expiry::At(at as u64),
        // What no signed number holds has passed, as in Redis.
        after => Expiry::At(u64::try_from(after.wrapping_add(now_ms as i64)).unwrap_or(0)),
    };
    let mut keys = ctx.keys();
    let existed = options.replace && keys.exists(key);
    if matches!(expiry, Expiry::At(deadline) if keys.is_due(deadline)) {
        if existed {
            keys.remove(key);
            keys.notify(NotifyFlags::GENERIC, "del", key);
            ctx.dirty(1);
            let lazy = ctx.settings().lazyfree_server_del;
            let verb: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
            ctx.propagate_as([verb, key]);
        }
        ctx.reply.ok();
        return Ok(());
    }
    let put = built.with_value(key, |value| -> CommandResult {
        keys.admit(key, &value)?;
        keys.put_anew(key, value, expiry);
        Ok(())
    });
    put.unwrap_or_else(|| {
        keys.remove(key);
        Ok(())
    })?;
    keys.set_access(key, options.idle_s, options.frequency);
    keys.notify(NotifyFlags::GENERIC, "restore", key);
    ctx.dirty(1);
    if let (Expiry::At(deadline), false) = (expiry, options.absolute)
        && ctx.propagates()
    {
        let deadline = format_u64(deadline);
        let tail = args.tail(3);
        let words = [b"RESTORE".as_slice(), key, &deadline].into_iter();
        ctx.propagate_as(words.chain(tail.iter()).chain([b"ABSTTL".as_slice()]));
    }
    ctx.reply.ok();
    Ok(())
}

/// The options behind RESTORE's payload.
#[derive(Clone, Copy, Debug, Default)]
struct Options {
    replace: bool,
    absolute: bool,
    /// For how long the key has not been used.
    idle_s: Option<u64>,
    /// The counter of accesses.
    frequency: Option<u8>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut options = Options::default();
        let mut reader = OptionReader::new(args, 4);
        while let Some(word) = reader.word() {
            match &*word {
                b"replace" => options.replace = true,
                b"absttl" => options.absolute = true,
                b"idletime" if options.frequency.is_none() => {
                    let seconds = integer(reader.value()?)?;
                    let seconds = u64::try_from(seconds).map_err(|_| {
                        CommandError::fixed("ERR Invalid IDLETIME value, must be >= 0")
                    })?;
                    options.idle_s = Some(seconds);
                }
                b"freq" if options.idle_s.is_none() => {
                    let frequency = u8::try_from(integer(reader.value()?)?).map_err(|_| {
                        CommandError::fixed("ERR Invalid FREQ value, must be >= 0 and <= 255")
                    })?;
                    options.frequency = Some(frequency);
                }
                _ => return Err(CommandError::SYNTAX),
            }
        }
        Ok(options)
    }
}

/// The limits of encodings that the configuration sets.
pub(in crate::commands) fn limits(ctx: &Ctx<'_>) -> ValueLimits {
    ValueLimits::of(ctx.settings(), ctx.debug_switches().plain_node_bytes)
}

pub(in crate::commands) fn compression(ctx: &Ctx<'_>) -> Compression {
    Compression::of(ctx.settings())
}

/// Reads a DUMP payload.
fn read_payload(ctx: &mut Ctx<'_>, payload: &[u8]) -> Result<Built, CommandError> {
    let refused = |error: DumpError| CommandError::new(error.to_string());
    let skip_checksum = ctx.debug_switches().skip_checksum;
    let (kind, value) = open(payload, skip_checksum).map_err(refused)?;
    let mut builder = Builder::new(kind, limits(ctx), ctx.keys().seed());
    decode(kind, &mut Reader::new(value), &mut builder).map_err(|error| {
        let name = structure_name(kind);
        tracing::warn!("{name} integrity check failed: {error}");
        refused(DumpError::Format)
    })?;
    Ok(builder.finish())
}

#[cfg(test)]
mod tests;
