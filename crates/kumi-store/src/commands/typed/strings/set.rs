//! SET in all its forms, and GETEX, which shares its options.
//!
//! Options are read the way Redis reads them: in any order and case, the last of equal ones wins, and those that
//! contradict each other are a syntax error.

use super::{answer, get};
use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_u64;
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::commands::typed::expire::invalid_expire_time;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Expiry, NewValue, When};
use crate::engine::key_spec::key;
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

pub(super) fn set(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() == 3 {
        store(ctx, When::Always, args, 2, Expiry::Clear)?;
        ctx.reply.ok();
        return Ok(());
    }
    let options = Options::for_set(args.tail(3))?;
    let expiry = match &options.time {
        Some(time) => Expiry::At(time.deadline("set", ctx.now.unix_ms())?),
        None if options.keep_ttl => Expiry::Keep,
        None => Expiry::Clear,
    };
    if options.get {
        get(ctx, args)?;
    }
    let stored = store(ctx, options.when, args, 2, expiry)?;
    if stored && options.get && options.time.is_none() && ctx.propagates() {
        let shown = |(place, arg): &(usize, &[u8])| *place < 3 || !arg.eq_ignore_ascii_case(b"get");
        ctx.propagate_as(args.iter().enumerate().filter(shown).map(|(_, arg)| arg));
    }
    match (options.get, stored) {
        (true, _) => {}
        (false, true) => ctx.reply.ok(),
        (false, false) => ctx.reply.null(),
    }
    Ok(())
}

pub(super) fn getex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::for_getex(args.tail(2))?;
    let key = &args[1];
    let now_ms = ctx.now.unix_ms();
    let lazy_expire = ctx.expires_lazily();
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(value) = keys.read(key)? else {
        reply.null();
        return Ok(());
    };
    answer(reply, Some(value));
    if let Some(time) = &options.time {
        let deadline = time.deadline("getex", now_ms)?;
        if time.absolute && keys.is_due(deadline) {
            keys.remove(key);
            keys.notify(NotifyFlags::GENERIC, "del", key);
            let verb: &[u8] = if lazy_expire { b"UNLINK" } else { b"DEL" };
            ctx.propagate_as([verb, key]);
        } else {
            keys.change_deadline(key, |_| Some(Expiry::At(deadline)));
            keys.notify(NotifyFlags::GENERIC, "expire", key);
            ctx.propagate_as([b"PEXPIREAT", key, &format_u64(deadline)]);
        }
    } else if options.persist && keys.change_deadline(key, |old| old.map(|_| Expiry::Clear)) {
        keys.notify(NotifyFlags::GENERIC, "persist", key);
        ctx.propagate_as([b"PERSIST", key]);
    } else {
        return Ok(());
    }
    ctx.dirty(1);
    Ok(())
}

pub(super) fn setnx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let stored = store(ctx, When::Absent, args, 2, Expiry::Clear)?;
    ctx.reply.integer(i64::from(stored));
    Ok(())
}

pub(super) fn setex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set_for(ctx, args, "setex", Unit::Seconds)
}

pub(super) fn psetex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    set_for(ctx, args, "psetex", Unit::Milliseconds)
}

fn set_for(ctx: &mut Ctx<'_>, args: Args<'_>, command: &str, unit: Unit) -> CommandResult {
    let time = Time {
        text: &args[2],
        unit,
        absolute: false,
    };
    let deadline = time.deadline(command, ctx.now.unix_ms())?;
    store(ctx, When::Always, args, 3, Expiry::At(deadline))?;
    ctx.reply.ok();
    Ok(())
}

/// What all forms of SET share: stores the argument `value` under the key; says whether it did.
#[inline]
pub(super) fn store(
    ctx: &mut Ctx<'_>,
    when: When,
    args: Args<'_>,
    value: usize,
    expiry: Expiry,
) -> Result<bool, CommandError> {
    let key = &args[1];
    let mut keys = ctx.keys();
    if !keys.put_when(when, key, NewValue::argument(args, value), expiry)? {
        return Ok(false);
    }
    keys.notify(NotifyFlags::STRING, "set", key);
    if let Expiry::At(deadline) = expiry {
        keys.notify(NotifyFlags::GENERIC, "expire", key);
        if ctx.propagates() {
            ctx.propagate_as([b"SET", key, &args[value], b"PXAT", &format_u64(deadline)]);
        }
    }
    ctx.dirty(1);
    Ok(true)
}

/// What a time on the wire counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
}

/// A time to live as it was sent. It is read only when the command needs it, because its errors come
/// after others.
#[derive(Clone, Copy, Debug)]
struct Time<'a> {
    text: &'a [u8],
    unit: Unit,
    /// Since the Unix epoch instead of from now on.
    absolute: bool,
}

impl Time<'_> {
    /// The moment it means, in Unix milliseconds.
    fn deadline(&self, command: &str, now_ms: u64) -> Result<u64, CommandError> {
        let time = integer(self.text)?;
        let scale = match self.unit {
            Unit::Seconds => 1000,
            Unit::Milliseconds => 1,
        };
        let base = if self.absolute { 0 } else { now_ms };
        u64::try_from(time)
            .ok()
            .filter(|&time| time > 0)
            .and_then(|time| time.checked_mul(scale)?.checked_add(base))
            .filter(|&deadline| i64::try_from(deadline).is_ok())
            .ok_or_else(|| invalid_expire_time(command))
    }
}

#[derive(Debug, Default)]
struct Options<'a> {
    when: When,
    get: bool,
    keep_ttl: bool,
    persist: bool,
    time: Option<Time<'a>>,
}

impl<'a> Options<'a> {
    /// Reads what follows SET's key and value.
    fn for_set(args: Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut reader = OptionReader::new(args, 0);
        while let Some(word) = reader.word() {
            match &*word {
                b"nx" if options.when != When::Present => options.when = When::Absent,
                b"xx" if options.when != When::Absent => options.when = When::Present,
                b"get" => options.get = true,
                b"keepttl" if options.time.is_none() => options.keep_ttl = true,
                name => options.read_time(name, &mut reader)?,
            }
        }
        Ok(options)
    }

    /// Reads what follows GETEX's key.
    fn for_getex(args: Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut reader = OptionReader::new(args, 0);
        while let Some(word) = reader.word() {
            match &*word {
                b"persist" if options.time.is_none() => options.persist = true,
                name => options.read_time(name, &mut reader)?,
            }
        }
        Ok(options)
    }

    fn read_time(&mut self, name: &[u8], reader: &mut OptionReader<'a>) -> CommandResult {
        let (unit, absolute) = match name {
            b"ex" => (Unit::Seconds, false),
            b"px" => (Unit::Milliseconds, false),
            b"exat" => (Unit::Seconds, true),
            b"pxat" => (Unit::Milliseconds, true),
            _ => return Err(CommandError::SYNTAX),
        };
        let same = |old: &Time<'_>| (old.unit, old.absolute) == (unit, absolute);
        if self.keep_ttl || self.persist || !self.time.as_ref().is_none_or(same) {
            return Err(CommandError::SYNTAX);
        }
        self.time = Some(Time {
            text: reader.value()?,
            unit,
            absolute,
        });
        Ok(())
    }
}

/// What a request does to its key.
pub(super) fn key_flags(request: Args<'_>) -> u16 {
    let mut options = request.iter().skip(3);
    if options.any(|option| option.eq_ignore_ascii_case(b"GET")) {
        key::RW | key::ACCESS | key::UPDATE
    } else {
        key::OW | key::UPDATE
    }
}
