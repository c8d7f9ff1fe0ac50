//! Bitmaps: single bits, counts, searches, combinations and fields inside strings.
//!
//! The arithmetic is in `base/bits.rs`, BITFIELD in `bitmaps/field.rs`. An offset may not reach beyond `proto-max-bulk-len`.

mod field;

use crate::base::bits::{self, BitOp, Combined, Range, Unit};
use crate::base::error::{CommandError, CommandResult};
use crate::base::number;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Expiry, Look, NewValue, StringRef};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::store::ctx::Ctx;
use crate::types::packed::elem::Text;
use field::{bitfield, bitfield_ro};
use kumi_resp::Args;

const BASE: Command = Command {
    categories: category::BITMAP,
    group: Group::Bitmap,
    ..Command::BASE
};
const READ: &[KeySpec] = &[KeySpec::one(1, key::RO | key::ACCESS)];

const BAD_OFFSET: CommandError =
    CommandError::fixed("ERR bit offset is not an integer or out of range");

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "setbit",
        arity: 4,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::one(1, key::RW | key::ACCESS | key::UPDATE)],
        since: "2.2.0",
        summary: "Sets or clears one bit of a string, which grows with zeros if it is too short, and answers the old bit.",
        usage: "key offset value",
        run: setbit,
        ..BASE
    },
    Command {
        name: "getbit",
        arity: 3,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        since: "2.2.0",
        summary: "Reads one bit of a string; bits behind its end are 0.",
        usage: "key offset",
        run: getbit,
        ..BASE
    },
    Command {
        name: "bitcount",
        arity: -2,
        flags: flag::READONLY,
        keys: READ,
        since: "2.6.0",
        complexity: "O(N), N being the number of bytes in the range.",
        summary: "Counts the bits that are set in a string or a part of it.",
        usage: "key [start end [BYTE | BIT]]",
        run: bitcount,
        ..BASE
    },
    Command {
        name: "bitpos",
        arity: -3,
        flags: flag::READONLY,
        keys: READ,
        since: "2.8.7",
        complexity: "O(N), N being the number of bytes in the range.",
        summary: "Finds the first bit that is set, or clear, in a string or a part of it.",
        usage: "key bit [start [end [BYTE | BIT]]]",
        run: bitpos,
        ..BASE
    },
    Command {
        name: "bitop",
        arity: -4,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[
            KeySpec::one(2, key::OW | key::UPDATE),
            KeySpec::range(3, -1, 1, key::RO | key::ACCESS),
        ],
        since: "2.6.0",
        complexity: "O(N), N being the number of bytes of the sources.",
        summary: "Combines strings bit by bit and stores the result.",
        usage: "<AND | OR | XOR | NOT> destkey key [key ...]",
        run: bitop,
        ..BASE
    },
    Command {
        name: "bitfield",
        arity: -2,
        flags: flag::WRITE | flag::DENYOOM,
        keys: &[KeySpec::one(1, key::RW | key::ACCESS | key::UPDATE)
            .varying(field::key_flags)
            .with_notes("writes only when SET or INCRBY is given")],
        since: "3.2.0",
        complexity: "O(1) for each operation.",
        summary: "Reads, writes and counts up integers of any width inside a string: any number of operations, in any order.",
        usage: "key [GET encoding offset] [OVERFLOW <WRAP | SAT | FAIL>] [SET encoding offset value] [INCRBY encoding offset increment]",
        run: bitfield,
        ..BASE
    },
    Command {
        name: "bitfield_ro",
        arity: -2,
        flags: flag::READONLY | flag::FAST,
        keys: READ,
        since: "6.0.0",
        complexity: "O(1) for each operation.",
        summary: "Reads integers of any width inside a string.",
        usage: "key [GET encoding offset]",
        run: bitfield_ro,
        ..BASE
    },
];

fn setbit(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let key = &args[1];
    let offset = offset(ctx, &args[2], None)?;
    let bit = match number::parse_i64(&args[3]) {
        Some(0) => false,
        Some(1) => true,
        _ => {
            return Err(CommandError::fixed(
                "ERR bit is not an integer or out of range",
            ));
        }
    };
    let end = (offset / 8) as usize + 1;
    let mut keys = ctx.keys();
    let (old, len) = {
        let old = text(keys.string(key, Look::Write)?);
        (bits::bit(&old, offset), old.len())
    };
    // A bit that is there and does not change is no write.
    if end > len || old != bit {
        keys.edit_bytes(key, len.max(end), |bytes| {
            grow(bytes, end);
            bits::set_bit(bytes, offset, bit);
        })?;
        keys.notify(NotifyFlags::STRING, "setbit", key);
        ctx.dirty(1);
    } else {
        keys.make_raw(key);
    }
    ctx.reply.integer(i64::from(old));
    Ok(())
}

fn getbit(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let offset = offset(ctx, &args[2], None)?;
    let (mut keys, reply) = ctx.keys_and_reply();
    let bit = bits::bit(&text(keys.read(&args[1])?), offset);
    reply.integer(i64::from(bit));
    Ok(())
}

fn bitcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    // The key comes first: without one, a wrong range is no error.
    let Some(string) = keys.read(&args[1])? else {
        reply.integer(0);
        return Ok(());
    };
    let range = match args.len() {
        2 => Range::ALL,
        4 | 5 => {
            let (start, end) = (integer(&args[2])?, integer(&args[3])?);
            if end < start && start < 0 {
                reply.integer(0);
                return Ok(());
            }
            Range {
                start,
                end: Some(end),
                unit: unit(args.get(4))?,
            }
        }
        _ => return Err(CommandError::SYNTAX),
    };
    let count = bits::count(&text(Some(string)), range);
    reply.integer(count as i64);
    Ok(())
}

fn bitpos(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let wanted = match integer(&args[2])? {
        0 => false,
        1 => true,
        _ => {
            return Err(CommandError::fixed("ERR The bit argument must be 1 or 0."));
        }
    };
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(string) = keys.read(&args[1])? else {
        // No key is an endless string of zeros.
        reply.integer(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let range = match args.len() {
        3 => Range::ALL,
        4..=6 => {
            let start = integer(&args[3])?;
            let unit = unit(args.get(5))?;
            let end = args.get(4).map(integer).transpose()?;
            Range { start, end, unit }
        }
        _ => return Err(CommandError::SYNTAX),
    };
    let found = bits::position(&text(Some(string)), wanted, range);
    reply.integer(found.map_or(-1, |bit| bit as i64));
    Ok(())
}

fn bitop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let op = match args[1].to_ascii_lowercase().as_slice() {
        b"and" => BitOp::And,
        b"or" => BitOp::Or,
        b"xor" => BitOp::Xor,
        b"not" => BitOp::Not,
        _ => return Err(CommandError::SYNTAX),
    };
    if op == BitOp::Not && args.len() != 4 {
        return Err(CommandError::fixed(
            "ERR BITOP NOT must be called with a single source key.",
        ));
    }
    let destination = &args[2];
    let mut keys = ctx.keys();
    let mut combined = Combined::new(op);
    for key in args.iter().skip(3) {
        combined.add(&text(keys.read(key)?));
    }
    let result = combined.into_bytes();
    let len = result.len();
    if len > 0 {
        keys.put(destination, NewValue::RawBytes(&result), Expiry::Clear)?;
        keys.notify(NotifyFlags::STRING, "set", destination);
        ctx.dirty(1);
    } else if keys.remove(destination) {
        keys.notify(NotifyFlags::GENERIC, "del", destination);
        ctx.dirty(1);
    }
    ctx.reply.count(len);
    Ok(())
}

/// The bytes of a string, none if there is none.
fn text(string: Option<StringRef<'_>>) -> Text<'_> {
    match string {
        None => Text::Bytes(b""),
        Some(StringRef::Int(number)) => Text::Decimal(number::format_i64(number)),
        Some(StringRef::Bytes { bytes, .. }) => Text::Bytes(bytes),
    }
}

/// Fills a string up with zeros to a length.
fn grow(bytes: &mut Vec<u8>, len: usize) {
    if bytes.len() < len {
        bytes.reserve_exact(len - bytes.len());
        bytes.resize(len, 0);
    }
}

/// The offset of a bit. With a field's width, `#n` counts fields.
fn offset(ctx: &Ctx<'_>, arg: &[u8], field_bits: Option<u32>) -> Result<u64, CommandError> {
    let limit = ctx.max_string_bytes() as u64;
    let offset = match (arg.strip_prefix(b"#"), field_bits) {
        (Some(digits), Some(bits)) => {
            // Wraps around as in Redis; what comes out is checked like any other offset.
            number::parse_i64(digits).map(|index| index.wrapping_mul(i64::from(bits)))
        }
        _ => number::parse_i64(arg),
    };
    offset
        .and_then(|offset| u64::try_from(offset).ok())
        .filter(|offset| offset / 8 < limit)
        .ok_or(BAD_OFFSET)
}

fn unit(arg: Option<&[u8]>) -> Result<Unit, CommandError> {
    match arg {
        None => Ok(Unit::Byte),
        Some(word) if word.eq_ignore_ascii_case(b"byte") => Ok(Unit::Byte),
        Some(word) if word.eq_ignore_ascii_case(b"bit") => Ok(Unit::Bit),
        Some(_) => Err(CommandError::SYNTAX),
    }
}

#[cfg(test)]
mod tests;
