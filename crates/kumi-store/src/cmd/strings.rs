//! Strings.

use crate::command::{Command, Group, KeySpec, category, flag};
use crate::config::NotifyFlags;
use crate::ctx::Ctx;
use crate::error::CommandResult;
use crate::keyspace::{Expiry, NewValue, ValueRef};
use kumi_resp::Args;

pub(super) const COMMANDS: &[Command] = &[
    Command {
        name: "get",
        arity: 2,
        flags: flag::READONLY | flag::FAST,
        categories: category::STRING,
        keys: &[KeySpec::one(1, &["RO", "access"])],
        group: Group::String,
        since: "1.0.0",
        summary: "Reads the string stored at a key.",
        usage: "key",
        run: get,
        ..Command::BASE
    },
    Command {
        name: "set",
        arity: -3,
        flags: flag::WRITE | flag::DENYOOM,
        categories: category::STRING,
        keys: &[KeySpec::one(
            1,
            &["RW", "access", "update", "variable_flags"],
        )],
        group: Group::String,
        since: "1.0.0",
        summary: "Stores a string at a key.",
        usage: "key value",
        run: set,
        ..Command::BASE
    },
];

fn get(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    match keys.read(&args[1]) {
        None => reply.null(),
        Some(ValueRef::Int(number)) => reply.bulk_integer(number),
        Some(ValueRef::Bytes { bytes, .. }) => reply.bulk(bytes),
    }
    Ok(())
}

fn set(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut keys = ctx.keys();
    keys.put(&args[1], NewValue::parse(&args[2]), Expiry::Clear)?;
    keys.notify(NotifyFlags::STRING, "set", &args[1]);
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}
