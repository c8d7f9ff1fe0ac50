//! Ranges of ranks, scores and members: listed, counted and removed.
//!
//! Whatever a range is given by, it becomes a range of ranks first.

use super::add::parse_score_bound;
use super::algebra::store;
use super::limits;
use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Look, Missing};
use crate::engine::store::ctx::Ctx;
use crate::types::zset::{LexBound, ScoreBound, Zset, ZsetRef};
use kumi_resp::Args;
use std::ops::Range;

/// What a range is given by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// A range before the set is known.
#[derive(Clone, Copy, Debug)]
enum Bounds<'a> {
    Rank(i64, i64),
    Score(ScoreBound, ScoreBound),
    Lex(LexBound<'a>, LexBound<'a>),
}

impl<'a> Bounds<'a> {
    fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Self, CommandError> {
        Ok(match by {
            By::Rank => Bounds::Rank(integer(min)?, integer(max)?),
            By::Score => Bounds::Score(score_bound(min)?, score_bound(max)?),
            By::Lex => Bounds::Lex(lex_bound(min)?, lex_bound(max)?),
        })
    }

    /// The ranks of the range. Ranks that count from the other end are turned round.
    fn ranks(self, zset: ZsetRef<'_>, reverse: bool) -> Range<usize> {
        match self {
            Bounds::Score(min, max) => zset.score_range(min, max),
            Bounds::Lex(min, max) => zset.lex_range(min, max),
            Bounds::Rank(start, stop) => {
                let ranks = rank_range(start, stop, zset.len());
                if reverse {
                    zset.len() - ranks.end..zset.len() - ranks.start
                } else {
                    ranks
                }
            }
        }
    }
}

fn score_bound(text: &[u8]) -> Result<ScoreBound, CommandError> {
    let (exclusive, text) = match text {
        [b'(', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    let score =
        parse_score_bound(text).ok_or(CommandError::fixed("ERR min or max is not a float"))?;
    Ok(ScoreBound { score, exclusive })
}

fn lex_bound(text: &[u8]) -> Result<LexBound<'_>, CommandError> {
    match text {
        b"-" => Ok(LexBound::Min),
        b"+" => Ok(LexBound::Max),
        [b'[', member @ ..] => Ok(LexBound::Inclusive(member)),
        [b'(', member @ ..] => Ok(LexBound::Exclusive(member)),
        _ => Err(CommandError::fixed(
            "ERR min or max not valid string range item",
        )),
    }
}

/// Ranks from both ends, the last included, as a range; negative ones count from the end.
fn rank_range(start: i64, stop: i64, len: usize) -> Range<usize> {
    let len = i64::try_from(len).unwrap_or(i64::MAX);
    let from_end = |rank: i64| {
        if rank < 0 {
            rank.saturating_add(len)
        } else {
            rank
        }
    };
    let start = from_end(start).max(0);
    let end = from_end(stop).min(len - 1).saturating_add(1);
    if start >= end {
        return 0..0;
    }
    start as usize..end as usize
}

pub(super) fn zcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    count(ctx, args, By::Score)
}

pub(super) fn zlexcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    count(ctx, args, By::Lex)
}

pub(super) fn zrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list(ctx, args, None, None)
}

pub(super) fn zrevrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list(ctx, args, Some(By::Rank), Some(true))
}

pub(super) fn zrangebyscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list(ctx, args, Some(By::Score), Some(false))
}

pub(super) fn zrevrangebyscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list(ctx, args, Some(By::Score), Some(true))
}

pub(super) fn zrangebylex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list(ctx, args, Some(By::Lex), Some(false))
}

pub(super) fn zrevrangebylex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list(ctx, args, Some(By::Lex), Some(true))
}

pub(super) fn zremrangebyrank(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    remove(ctx, args, By::Rank, "zremrangebyrank")
}

pub(super) fn zremrangebyscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    remove(ctx, args, By::Score, "zremrangebyscore")
}

pub(super) fn zremrangebylex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    remove(ctx, args, By::Lex, "zremrangebylex")
}

fn count(ctx: &mut Ctx<'_>, args: Args<'_>, by: By) -> CommandResult {
    let bounds = Bounds::parse(by, &args[2], &args[3])?;
    let (mut keys, reply) = ctx.keys_and_reply();
    let zset = keys.view::<Zset>(&args[1], Look::Read)?;
    reply.count(zset.map_or(0, |zset| bounds.ranks(zset, false).len()));
    Ok(())
}

/// The options behind a range.
#[derive(Clone, Copy, Debug)]
struct Options {
    by: By,
    reverse: bool,
    with_scores: bool,
    limit: Option<(i64, i64)>,
}

impl Options {
    /// Reads the options. What a command decides itself is no option of it; a command that stores takes no WITHSCORES.
    fn parse(
        words: Args<'_>,
        by: Option<By>,
        reverse: Option<bool>,
        takes_scores: bool,
    ) -> Result<Self, CommandError> {
        let (mut chosen, mut rev) = (by, reverse);
        let (mut with_scores, mut limit) = (false, None);
        let mut reader = OptionReader::new(words, 0);
        while let Some(word) = reader.word() {
            match &*word {
                b"withscores" if takes_scores => with_scores = true,
                b"limit" => {
                    let [offset, count] = reader.values()?;
                    limit = Some((integer(offset)?, integer(count)?));
                }
                b"rev" if rev.is_none() => rev = Some(true),
                b"byscore" if chosen.is_none() => chosen = Some(By::Score),
                b"bylex" if chosen.is_none() => chosen = Some(By::Lex),
                _ => return Err(CommandError::SYNTAX),
            }
        }
        let by = chosen.unwrap_or(By::Rank);
        // Redis looks at the count alone, and -1 is what it is without LIMIT.
        if limit.is_some_and(|(_, count)| count != -1) && by == By::Rank {
            return Err(CommandError::fixed(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && by == By::Lex {
            return Err(CommandError::fixed(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        Ok(Options {
            by,
            reverse: rev.unwrap_or(false),
            with_scores,
            limit,
        })
    }

    /// What LIMIT leaves of a range, counted from the end the range is read from.
    fn limited(self, ranks: Range<usize>) -> Range<usize> {
        let Some((offset, count)) = self.limit.filter(|_| self.by != By::Rank) else {
            return ranks;
        };
        let Ok(offset) = usize::try_from(offset) else {
            return 0..0;
        };
        let left = ranks.len().saturating_sub(offset);
        let count = usize::try_from(count).map_or(left, |count| count.min(left));
        let skipped = offset.min(ranks.len());
        if self.reverse {
            let end = ranks.end - skipped;
            end - count..end
        } else {
            let start = ranks.start + skipped;
            start..start + count
        }
    }
}

fn list(ctx: &mut Ctx<'_>, args: Args<'_>, by: Option<By>, reverse: Option<bool>) -> CommandResult {
    let options = Options::parse(args.tail(4), by, reverse, true)?;
    // A range of scores or members that is read backwards names its upper end first.
    let swapped = options.reverse && options.by != By::Rank;
    let (min, max) = if swapped { (3, 2) } else { (2, 3) };
    let bounds = Bounds::parse(options.by, &args[min], &args[max])?;
    let (mut keys, reply) = ctx.keys_and_reply();
    let Some(zset) = keys.view::<Zset>(&args[1], Look::Read)? else {
        reply.array(0);
        return Ok(());
    };
    let ranks = options.limited(bounds.ranks(zset, options.reverse));
    let nested = options.with_scores && reply.is_resp3();
    let flat = options.with_scores && !nested;
    reply.array(if flat { ranks.len() * 2 } else { ranks.len() });
    let mut show = |member: &[u8], score: f64| {
        if nested {
            reply.array(2);
        }
        reply.bulk(member);
        if options.with_scores {
            reply.double(score);
        }
    };
    if options.reverse {
        zset.range_back(ranks)
            .for_each(|(member, score)| show(&member, score));
    } else {
        zset.range(ranks)
            .for_each(|(member, score)| show(&member, score));
    }
    Ok(())
}

pub(super) fn zrangestore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let options = Options::parse(args.tail(5), None, None, false)?;
    if options.with_scores {
        return Err(CommandError::SYNTAX);
    }
    let swapped = options.reverse && options.by != By::Rank;
    let (min, max) = if swapped { (4, 3) } else { (3, 4) };
    let bounds = Bounds::parse(options.by, &args[min], &args[max])?;
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let seed = keys.seed();
    let mut result = Zset::new();
    if let Some(zset) = keys.view::<Zset>(&args[2], Look::Read)? {
        let ranks = options.limited(bounds.ranks(zset, options.reverse));
        for (member, score) in zset.range(ranks) {
            result.insert(&member, score, limits, seed);
        }
    }
    store(ctx, &args[1], result, "zrangestore")
}

fn remove(ctx: &mut Ctx<'_>, args: Args<'_>, by: By, event: &'static str) -> CommandResult {
    let key = &args[1];
    let bounds = Bounds::parse(by, &args[2], &args[3])?;
    let mut keys = ctx.keys();
    let edited = keys.edit(key, Missing::Skip, |zset: &mut Zset| {
        let ranks = bounds.ranks(zset.view(), false);
        let count = ranks.len();
        zset.remove_ranks(ranks, &mut |_, _| {});
        Ok(match count {
            0 => Edit::Unchanged(0),
            count => Edit::Changed(count),
        })
    })?;
    let removed = edited.map_or(0, |edited| edited.result);
    if removed > 0 {
        keys.notify(NotifyFlags::ZSET, event, key);
        if edited.is_some_and(|edited| edited.removed) {
            keys.notify(NotifyFlags::GENERIC, "del", key);
        }
        ctx.dirty(removed);
    }
    ctx.reply.count(removed);
    Ok(())
}
