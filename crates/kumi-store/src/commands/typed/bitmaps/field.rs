//! BITFIELD and BITFIELD_RO: integers of any width inside a string.
//!
//! All operations are read and checked before the first one runs. They run on a copy of the few bytes they touch, so that
//! a request that changes nothing is no write, however long the string is.

use super::{grow, integer, offset, text};
use crate::base::bits::{Field, Overflow};
use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::config::NotifyFlags;
use crate::data::keyspace::Look;
use crate::engine::key_spec::key;
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;
use std::collections::BTreeMap;

/// A field touches at most this many bytes.
const WINDOW: usize = 9;

#[derive(Clone, Copy, Debug)]
struct Operation {
    field: Field,
    offset: u64,
    action: Action,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Get,
    Set(i64, Overflow),
    Increment(i64, Overflow),
}

pub(super) fn bitfield(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let operations = parse(ctx, args)?;
    let writes = operations
        .iter()
        .any(|operation| !matches!(operation.action, Action::Get));
    if writes {
        write(ctx, &args[1], &operations)
    } else {
        read(ctx, &args[1], &operations)
    }
}

pub(super) fn bitfield_ro(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let operations = parse(ctx, args)?;
    if operations
        .iter()
        .any(|operation| !matches!(operation.action, Action::Get))
    {
        return Err(CommandError::fixed(
            "ERR BITFIELD_RO only supports the GET subcommand",
        ));
    }
    read(ctx, &args[1], &operations)
}

fn parse(ctx: &Ctx<'_>, args: Args<'_>) -> Result<Vec<Operation>, CommandError> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut options = OptionReader::new(args, 2);
    while let Some(word) = options.word() {
        match (&*word, options.left()) {
            (b"overflow", 1..) => {
                overflow = match options.word().as_deref() {
                    Some(b"wrap") => Overflow::Wrap,
                    Some(b"sat") => Overflow::Sat,
                    Some(b"fail") => Overflow::Fail,
                    _ => {
                        return Err(CommandError::fixed("ERR Invalid OVERFLOW type specified"));
                    }
                };
                continue;
            }
            (b"get", 2..) | (b"set" | b"incrby", 3..) => {}
            _ => return Err(CommandError::SYNTAX),
        }
        let [field, place] = options.values()?;
        let field = Field::parse(field).ok_or(CommandError::fixed(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        ))?;
        let offset = offset(ctx, place, Some(field.bits()))?;
        let action = match &*word {
            b"get" => Action::Get,
            b"set" => Action::Set(integer(options.value()?)?, overflow),
            _ => Action::Increment(integer(options.value()?)?, overflow),
        };
        operations.push(Operation {
            field,
            offset,
            action,
        });
    }
    Ok(operations)
}

fn read(ctx: &mut Ctx<'_>, key: &[u8], operations: &[Operation]) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let bytes = text(keys.read(key)?);
    reply.array(operations.len());
    for operation in operations {
        reply.integer(operation.field.read(&bytes, operation.offset));
    }
    Ok(())
}

fn write(ctx: &mut Ctx<'_>, key: &[u8], operations: &[Operation]) -> CommandResult {
    // The string reaches to the last field that is written, also if that write fails.
    let end = operations
        .iter()
        .filter(|operation| !matches!(operation.action, Action::Get))
        .map(|operation| (operation.offset + u64::from(operation.field.bits()) - 1) / 8 + 1)
        .max()
        .unwrap_or(0) as usize;
    let mut keys = ctx.keys();
    let mut answers = Vec::with_capacity(operations.len());
    let mut changed = BTreeMap::new();
    let (len, changes) = {
        let old = text(keys.string(key, Look::Write)?);
        let grows = old.len() < end;
        let mut changes = 0;
        for operation in operations {
            let (answer, stored) = run(operation, &old, &mut changed);
            answers.push(answer);
            changes += usize::from(stored.is_some_and(|differs| differs || grows));
        }
        (old.len(), changes)
    };
    if changes > 0 || len < end {
        keys.edit_bytes(key, len.max(end), |bytes| {
            grow(bytes, end);
            for (&at, &byte) in &changed {
                bytes[at] = byte;
            }
        })?;
    } else {
        keys.make_raw(key);
    }
    if changes > 0 {
        keys.notify(NotifyFlags::STRING, "setbit", key);
        ctx.dirty(changes);
    }
    ctx.reply.array(answers.len());
    for answer in answers {
        match answer {
            Some(value) => ctx.reply.integer(value),
            None => ctx.reply.null(),
        }
    }
    Ok(())
}

/// Runs one operation: what it answers, and, if it stored something, whether that differs from what was there.
fn run(
    operation: &Operation,
    old: &[u8],
    changed: &mut BTreeMap<usize, u8>,
) -> (Option<i64>, Option<bool>) {
    let Operation { field, offset, .. } = *operation;
    let (first, shift) = ((offset / 8) as usize, offset % 8);
    let mut window = [0; WINDOW];
    for (index, byte) in window.iter_mut().enumerate() {
        let at = first + index;
        let known = changed.get(&at).or(old.get(at));
        *byte = known.copied().unwrap_or(0);
    }
    let before = field.read(&window, shift);
    let (answer, new) = match operation.action {
        Action::Get => return (Some(before), None),
        Action::Set(value, overflow) => (before, field.fit(value, overflow)),
        Action::Increment(by, overflow) => {
            let sum = field.add(before, by, overflow);
            (sum.unwrap_or(before), sum)
        }
    };
    let Some(new) = new else {
        return (None, None);
    };
    field.write(&mut window, shift, new);
    let touched = (shift as usize + field.bits() as usize).div_ceil(8);
    for (index, &byte) in window.iter().take(touched).enumerate() {
        changed.insert(first + index, byte);
    }
    (Some(answer), Some(new != before))
}

/// What a request does to its key.
pub(super) fn key_flags(request: Args<'_>) -> u16 {
    if only_reads(request) {
        key::RO | key::ACCESS
    } else {
        key::RW | key::ACCESS | key::UPDATE
    }
}

/// Whether all operations are GET. A request with an error counts as one that writes.
fn only_reads(request: Args<'_>) -> bool {
    let mut at = 2;
    while let Some(word) = request.get(at) {
        let left = request.len() - at - 1;
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        at += if is(b"GET") && left >= 2 {
            3
        } else if is(b"OVERFLOW") && left >= 1 {
            2
        } else {
            return false;
        };
    }
    true
}
