//! Times to live: setting, reading and removing deadlines.
//!
//! Deadlines are Unix milliseconds. Seconds and relative times are converted, and writes are propagated with the
//! absolute time. The keyspace removes keys whose deadline has passed.

use crate::base::error::{CommandError, CommandResult};
use crate::base::number::format_u64;
use crate::commands::options::OptionReader;
use crate::commands::parse;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Entry, Expiry, Look};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const SET_DEADLINE: Command = Command {
    arity: -3,
    flags: flag::WRITE | flag::FAST,
    categories: category::KEYSPACE,
    keys: UPDATE,
    group: Group::Generic,
    ..Command::BASE
};
const READ_DEADLINE: Command = Command {
    arity: 2,
    flags: flag::READONLY | flag::FAST,
    categories: category::KEYSPACE,
    keys: &[KeySpec::one(1, key::RO | key::ACCESS)],
    group: Group::Generic,
    usage: "key",
    ..Command::BASE
};
const UPDATE: &[KeySpec] = &[KeySpec::one(1, key::RW | key::UPDATE)];

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "expire",
        summary: "Lets a key expire after some seconds.",
        usage: "key seconds [NX | XX | GT | LT]",
        run: expire,
        ..SET_DEADLINE
    },
    Command {
        name: "pexpire",
        since: "2.6.0",
        summary: "Lets a key expire after some milliseconds.",
        usage: "key milliseconds [NX | XX | GT | LT]",
        run: pexpire,
        ..SET_DEADLINE
    },
    Command {
        name: "expireat",
        since: "1.2.0",
        summary: "Lets a key expire at a Unix time in seconds.",
        usage: "key unix-time-seconds [NX | XX | GT | LT]",
        run: expireat,
        ..SET_DEADLINE
    },
    Command {
        name: "pexpireat",
        since: "2.6.0",
        summary: "Lets a key expire at a Unix time in milliseconds.",
        usage: "key unix-time-milliseconds [NX | XX | GT | LT]",
        run: pexpireat,
        ..SET_DEADLINE
    },
    Command {
        name: "ttl",
        summary: "Tells in how many seconds a key expires.",
        tips: &["nondeterministic_output"],
        run: ttl,
        ..READ_DEADLINE
    },
    Command {
        name: "pttl",
        since: "2.6.0",
        summary: "Tells in how many milliseconds a key expires.",
        tips: &["nondeterministic_output"],
        run: pttl,
        ..READ_DEADLINE
    },
    Command {
        name: "expiretime",
        since: "7.0.0",
        summary: "Tells the Unix time in seconds at which a key expires.",
        run: expiretime,
        ..READ_DEADLINE
    },
    Command {
        name: "pexpiretime",
        since: "7.0.0",
        summary: "Tells the Unix time in milliseconds at which a key expires.",
        run: pexpiretime,
        ..READ_DEADLINE
    },
    Command {
        name: "persist",
        arity: 2,
        since: "2.2.0",
        summary: "Lets a key live for ever again.",
        usage: "key",
        run: persist,
        ..SET_DEADLINE
    },
];

fn expire(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let time = Time {
        command: "expire",
        scale: 1000,
        base_ms: ctx.now.unix_ms(),
    };
    set_deadline(ctx, args, time)
}

fn pexpire(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let time = Time {
        command: "pexpire",
        scale: 1,
        base_ms: ctx.now.unix_ms(),
    };
    set_deadline(ctx, args, time)
}

fn expireat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let time = Time {
        command: "expireat",
        scale: 1000,
        base_ms: 0,
    };
    set_deadline(ctx, args, time)
}

fn pexpireat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let time = Time {
        command: "pexpireat",
        scale: 1,
        base_ms: 0,
    };
    set_deadline(ctx, args, time)
}

fn ttl(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    read_deadline(ctx, &args[1], |deadline, now_ms| {
        seconds(deadline.saturating_sub(now_ms))
    })
}

fn pttl(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    read_deadline(ctx, &args[1], u64::saturating_sub)
}

fn expiretime(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    read_deadline(ctx, &args[1], |deadline, _| seconds(deadline))
}

fn pexpiretime(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    read_deadline(ctx, &args[1], |deadline, _| deadline)
}

fn persist(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut keys = ctx.keys();
    let removed = keys.change_deadline(&args[1], |old| old.map(|_| Expiry::Clear));
    if removed {
        keys.notify(NotifyFlags::GENERIC, "persist", &args[1]);
        ctx.dirty(1);
    }
    ctx.reply.integer(i64::from(removed));
    Ok(())
}

/// How a command expresses a time.
struct Time {
    command: &'static str,
    /// Milliseconds in its unit.
    scale: i64,
    /// The time it counts from: 0 or now.
    base_ms: u64,
}

impl Time {
    /// The time in Unix milliseconds. It may be in the past, and even negative.
    fn moment_ms(&self, text: &[u8]) -> Result<i64, CommandError> {
        let time = parse::integer(text)?;
        time.checked_mul(self.scale)
            .and_then(|ms| ms.checked_add_unsigned(self.base_ms))
            .ok_or_else(|| invalid_expire_time(self.command))
    }
}

/// The error for a time that must be positive and is not, or that exceeds 64 bits.
pub(super) fn invalid_expire_time(command: &str) -> CommandError {
    CommandError::new(format!("ERR invalid expire time in '{command}' command"))
}

/// The options NX, XX, GT and LT of EXPIRE. All that are given must hold.
#[derive(Clone, Copy, Debug, Default)]
struct ExpireFlags {
    /// The key has no deadline.
    nx: bool,
    /// The key has a deadline.
    xx: bool,
    /// The new deadline is later. A key without a deadline counts as infinite.
    gt: bool,
    /// The new deadline is earlier.
    lt: bool,
}

impl ExpireFlags {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut flags = Self::default();
        let mut reader = OptionReader::new(args, 0);
        while let Some(word) = reader.word() {
            match &*word {
                b"nx" => flags.nx = true,
                b"xx" => flags.xx = true,
                b"gt" => flags.gt = true,
                b"lt" => flags.lt = true,
                _ => {
                    return Err(CommandError::new(
                        [b"ERR Unsupported option ", word.sent].concat(),
                    ));
                }
            }
        }
        let Self { nx, xx, gt, lt } = flags;
        if nx && (xx || gt || lt) {
            return Err(CommandError::fixed(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if gt && lt {
            return Err(CommandError::fixed(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(flags)
    }

    /// Whether a deadline may change from `old` to `new_ms`.
    fn allow(self, old: Option<u64>, new_ms: i64) -> bool {
        let old = old.map(|deadline| i64::try_from(deadline).unwrap_or(i64::MAX));
        let rejected = self.nx && old.is_some()
            || self.xx && old.is_none()
            || self.gt && old.is_none_or(|old| new_ms <= old)
            || self.lt && old.is_some_and(|old| new_ms >= old);
        !rejected
    }
}

fn set_deadline(ctx: &mut Ctx<'_>, args: Args<'_>, time: Time) -> CommandResult {
    let flags = ExpireFlags::parse(args.tail(3))?;
    let moment_ms = time.moment_ms(&args[2])?;
    let key = &args[1];
    let loading = ctx.keeps_past_deadlines();
    let future = u64::try_from(moment_ms)
        .ok()
        .filter(|&deadline| deadline > ctx.now.unix_ms() || loading);
    let done = match future {
        Some(deadline) => expire_later(ctx, args, deadline, flags),
        None => expire_now(ctx, key, moment_ms, flags),
    };
    ctx.dirty(usize::from(done));
    ctx.reply.integer(i64::from(done));
    Ok(())
}

fn expire_later(ctx: &mut Ctx<'_>, args: Args<'_>, deadline: u64, flags: ExpireFlags) -> bool {
    let key = &args[1];
    let mut keys = ctx.keys();
    let done = keys.change_deadline(key, |old| {
        let moment_ms = i64::try_from(deadline).unwrap_or(i64::MAX);
        flags.allow(old, moment_ms).then_some(Expiry::At(deadline))
    });
    if done {
        keys.notify(NotifyFlags::GENERIC, "expire", key);
        if ctx.propagates() {
            // Redis rewrites the command and the time, and leaves the options where they are.
            let deadline = format_u64(deadline);
            let rewritten: [&[u8]; 3] = [b"PEXPIREAT", key, &deadline];
            ctx.propagate_as(rewritten.into_iter().chain(args.tail(3)));
        }
    }
    done
}

/// A deadline in the past deletes the key at once, with the event `del` instead of `expired`.
fn expire_now(ctx: &mut Ctx<'_>, key: &[u8], moment_ms: i64, flags: ExpireFlags) -> bool {
    let lazy = ctx.expires_lazily();
    let mut keys = ctx.keys();
    let old = keys.look(key, Look::Write).map(Entry::deadline);
    let done = old.is_some_and(|old| flags.allow(old, moment_ms)) && keys.remove(key);
    if done {
        keys.notify(NotifyFlags::GENERIC, "del", key);
        let verb: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
        ctx.propagate_as([verb, key]);
    }
    done
}

fn read_deadline(ctx: &mut Ctx<'_>, key: &[u8], show: impl Fn(u64, u64) -> u64) -> CommandResult {
    let now_ms = ctx.now.unix_ms();
    let mut keys = ctx.keys();
    let shown = match keys.look(key, Look::ReadNoTouch).map(Entry::deadline) {
        None => -2,
        Some(None) => -1,
        Some(Some(deadline)) => i64::try_from(show(deadline, now_ms)).unwrap_or(i64::MAX),
    };
    ctx.reply.integer(shown);
    Ok(())
}

/// Whole seconds, rounded to the nearest.
fn seconds(ms: u64) -> u64 {
    ms.saturating_add(500) / 1000
}

#[cfg(test)]
mod tests;
