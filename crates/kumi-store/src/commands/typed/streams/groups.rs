//! XGROUP and XACK.

use super::{loose_id, no_group_for_key, strict_id, view};
use crate::base::error::{CommandError, CommandResult};
use crate::commands::help::wrong_subcommand_arity;
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Keys, Look, Missing};
use crate::engine::store::ctx::Ctx;
use crate::types::stream::{Group, Stream, StreamId};
use kumi_resp::Args;

/// The options of XGROUP CREATE and SETID.
#[derive(Debug, Default)]
struct Options {
    make_stream: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(args: Args<'_>, creates: bool) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut reader = OptionReader::new(args, 5);
        while let Some(word) = reader.word() {
            match (&*word, reader.left()) {
                (b"mkstream", _) if creates => options.make_stream = true,
                (b"entriesread", 1..) => {
                    options.entries_read = match integer(reader.value()?)? {
                        -1 => None,
                        number => Some(u64::try_from(number).map_err(|_| {
                            CommandError::fixed("ERR value for ENTRIESREAD must be positive or -1")
                        })?),
                    };
                }
                _ => return Err(wrong_subcommand_arity(args)),
            }
        }
        Ok(options)
    }
}

pub(super) fn create(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args, true)?;
    let (key, name) = (&args[2], &args[3]);
    let mut keys = ctx.keys();
    let last_id = view(&mut keys, key, Look::Write)?.map(Stream::last_id);
    if last_id.is_none() && !options.make_stream {
        return Err(NO_KEY);
    }
    if args.len() > 8 {
        return Err(wrong_subcommand_arity(args));
    }
    let id = match &args[4] {
        b"$" => last_id.unwrap_or(StreamId::MIN),
        id => strict_id(id)?,
    };
    keys.edit(key, Missing::Create, |stream: &mut Box<Stream>| {
        if !stream.create_group(name, id, options.entries_read) {
            return Err(CommandError::fixed(
                "BUSYGROUP Consumer Group name already exists",
            ));
        }
        Ok(match last_id {
            Some(_) => Edit::Unwatched(()),
            None => Edit::Changed(()),
        })
    })?;
    keys.notify(NotifyFlags::STREAM, "xgroup-create", key);
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}

pub(super) fn create_consumer(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let now_ms = ctx.now.unix_ms() as i64;
    let mut keys = ctx.keys();
    let created = edit_group(&mut keys, args, |group| {
        group.create_consumer(&args[4], now_ms).is_some()
    })?;
    if created {
        keys.notify(NotifyFlags::STREAM, "xgroup-createconsumer", &args[2]);
        ctx.dirty(1);
    }
    ctx.reply.integer(i64::from(created));
    Ok(())
}

pub(super) fn delete_consumer(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut keys = ctx.keys();
    let pending = edit_group(&mut keys, args, |group| group.remove_consumer(&args[4]))?;
    if pending.is_some() {
        keys.notify(NotifyFlags::STREAM, "xgroup-delconsumer", &args[2]);
        ctx.dirty(1);
    }
    ctx.reply.count(pending.unwrap_or(0));
    Ok(())
}

pub(super) fn destroy(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, name) = (&args[2], &args[3]);
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |stream: &mut Box<Stream>| {
        Ok(match stream.remove_group(name) {
            Some(_) => Edit::Unwatched(true),
            None => Edit::Unchanged(false),
        })
    })?;
    let destroyed = edited.ok_or(NO_KEY)?.result;
    if destroyed {
        keys.notify(NotifyFlags::STREAM, "xgroup-destroy", key);
        // Consumers that wait for entries of the group answer that it is gone.
        keys.wake(key);
        ctx.dirty(1);
    }
    ctx.reply.integer(i64::from(destroyed));
    Ok(())
}

pub(super) fn set_id(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args, false)?;
    let (key, name) = (&args[2], &args[3]);
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |stream: &mut Box<Stream>| {
        let last_id = stream.last_id();
        let mut group = stream
            .group_mut(name)
            .ok_or_else(|| no_group_for_key(key, name))?;
        if args.len() != 5 && args.len() != 7 {
            return Err(wrong_subcommand_arity(args));
        }
        let id = match &args[4] {
            b"$" => last_id,
            id => loose_id(id, 0)?,
        };
        group.set_last_id(id, options.entries_read);
        Ok(Edit::Unwatched(()))
    })?;
    edited.ok_or(NO_KEY)?;
    keys.notify(NotifyFlags::STREAM, "xgroup-setid", key);
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}

const NO_KEY: CommandError = CommandError::fixed(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.",
);

/// Changes the group that XGROUP names.
fn edit_group<R>(
    keys: &mut Keys<'_>,
    args: Args<'_>,
    change: impl FnOnce(&mut Group) -> R,
) -> Result<R, CommandError> {
    let (key, name) = (&args[2], &args[3]);
    let edited = keys.edit(key, Missing::Skip, |stream: &mut Box<Stream>| {
        let mut group = stream
            .group_mut(name)
            .ok_or_else(|| no_group_for_key(key, name))?;
        Ok(Edit::Unwatched(change(&mut group)))
    })?;
    Ok(edited.ok_or(NO_KEY)?.result)
}

pub(super) fn xack(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, name) = (&args[1], &args[2]);
    let edited = ctx.keys().read_and_edit(key, |stream: &mut Box<Stream>| {
        let Some(mut group) = stream.group_mut(name) else {
            return Ok(Edit::Unchanged(0));
        };
        // Nothing is acknowledged unless all ids can be read.
        for id in args.iter().skip(4) {
            strict_id(id)?;
        }
        let mut acknowledged = 0;
        for id in args.iter().skip(3) {
            acknowledged += usize::from(group.acknowledge(strict_id(id)?));
        }
        Ok(Edit::Unwatched(acknowledged))
    })?;
    let acknowledged = edited.map_or(0, |edited| edited.result);
    ctx.dirty(acknowledged);
    ctx.reply.count(acknowledged);
    Ok(())
}
