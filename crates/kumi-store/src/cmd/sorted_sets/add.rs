//! ZADD with all its options, and ZINCRBY.

use super::limits;
use crate::config::NotifyFlags;
use crate::ctx::Ctx;
use crate::error::{CommandError, CommandResult};
use crate::keyspace::{Edit, Missing};
use crate::number::FloatText;
use crate::types::zset::{Updated, Zset};
use kumi_resp::Args;

/// The options of ZADD.
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

impl Flags {
    /// The score a member gets, if any.
    fn decide(self, old: Option<f64>, score: f64) -> Option<f64> {
        let Some(old) = old else {
            return (!self.xx).then_some(score);
        };
        let new = if self.incr { old + score } else { score };
        let refused = self.nx || self.lt && new >= old || self.gt && new <= old;
        (!refused).then_some(new)
    }
}

pub(super) fn zadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut flags, mut first) = (Flags::default(), 2);
    while let Some(word) = args.get(first) {
        match word.to_ascii_lowercase().as_slice() {
            b"nx" => flags.nx = true,
            b"xx" => flags.xx = true,
            b"gt" => flags.gt = true,
            b"lt" => flags.lt = true,
            b"ch" => flags.ch = true,
            b"incr" => flags.incr = true,
            _ => break,
        }
        first += 1;
    }
    let pairs = args.tail(first);
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return Err(CommandError::SYNTAX);
    }
    let Flags { nx, xx, gt, lt, .. } = flags;
    if nx && xx {
        return Err(CommandError::fixed(
            "ERR XX and NX options at the same time are not compatible",
        ));
    }
    if nx && (gt || lt) || gt && lt {
        return Err(CommandError::fixed(
            "ERR GT, LT, and/or NX options at the same time are not compatible",
        ));
    }
    if flags.incr && pairs.len() > 2 {
        return Err(CommandError::fixed(
            "ERR INCR option supports a single increment-element pair",
        ));
    }
    add(ctx, &args[1], pairs, flags)
}

pub(super) fn zincrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let flags = Flags {
        incr: true,
        ..Flags::default()
    };
    add(ctx, &args[1], args.tail(2), flags)
}

fn add(ctx: &mut Ctx<'_>, key: &[u8], pairs: Args<'_>, flags: Flags) -> CommandResult {
    let scores = pairs.iter().step_by(2).map(parse_score);
    let scores: Vec<f64> = scores
        .collect::<Option<_>>()
        .ok_or(CommandError::NOT_FLOAT)?;
    let limits = limits(ctx);
    let missing = if flags.xx {
        Missing::Skip
    } else {
        Missing::Create
    };
    let mut keys = ctx.keys();
    let seed = keys.seed();
    let edited = keys.edit(key, missing, |zset: &mut Zset| {
        let (mut added, mut changed, mut last) = (0, 0, None);
        let first_len = if zset.view().is_empty() {
            pairs[1].len()
        } else {
            0
        };
        if flags.incr
            && let Some(old) = zset.view().score(&pairs[1])
            && (old + scores[0]).is_nan()
        {
            return Err(CommandError::fixed(
                "ERR resulting score is not a number (NaN)",
            ));
        }
        zset.prepare(scores.len(), first_len, limits);
        for (&score, member) in scores.iter().zip(pairs.iter().skip(1).step_by(2)) {
            let decide = |old| flags.decide(old, score);
            match zset.update(member, limits, seed, decide) {
                Updated::Nothing => {}
                Updated::Added(score) => {
                    added += 1;
                    last = Some(score);
                }
                Updated::Scored { old, new } => {
                    changed += usize::from(old != new);
                    last = Some(new);
                }
            }
        }
        let result = (added, changed, last);
        Ok(if added + changed > 0 {
            Edit::Changed(result)
        } else {
            Edit::Unchanged(result)
        })
    })?;
    let (added, changed, last) = edited.map_or((0, 0, None), |edited| edited.result);
    if added + changed > 0 {
        let event = if flags.incr { "zincr" } else { "zadd" };
        keys.notify(NotifyFlags::ZSET, event, key);
        ctx.dirty(added + changed);
    }
    match last {
        Some(score) if flags.incr => ctx.reply.double(score),
        None if flags.incr => ctx.reply.null(),
        _ if flags.ch => ctx.reply.count(added + changed),
        _ => ctx.reply.count(added),
    }
    Ok(())
}

/// A score as clients write it: decimal or infinite. Hexadecimal numbers, which `strtod` knows as
/// well, are not read.
pub(super) fn parse_score(text: &[u8]) -> Option<f64> {
    match FloatText::scan(text)? {
        FloatText::Infinity { negative: true } => Some(f64::NEG_INFINITY),
        FloatText::Infinity { negative: false } => Some(f64::INFINITY),
        FloatText::Decimal { .. } => str::from_utf8(text).ok()?.parse().ok(),
        FloatText::Nan | FloatText::Hexadecimal { .. } => None,
    }
}
