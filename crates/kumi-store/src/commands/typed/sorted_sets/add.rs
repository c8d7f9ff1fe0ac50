//! ZADD with all its options, and ZINCRBY.

use super::limits;
use crate::base::error::{CommandError, CommandResult};
use crate::base::number::{FloatText, Format, Rounded};
use crate::commands::options::OptionReader;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Missing};
use crate::engine::store::ctx::Ctx;
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
    /// Sets the flag of an option, given in lower case; `false` if the word is none.
    fn set(&mut self, word: &[u8]) -> bool {
        match word {
            b"nx" => self.nx = true,
            b"xx" => self.xx = true,
            b"gt" => self.gt = true,
            b"lt" => self.lt = true,
            b"ch" => self.ch = true,
            b"incr" => self.incr = true,
            _ => return false,
        }
        true
    }

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

pub(in crate::commands) fn zadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let mut flags = Flags::default();
    let first = OptionReader::new(args, 2).take_while(|word| flags.set(word));
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
    // As in Redis, where it is read as ZADD with INCR: an option leaves too few arguments.
    if Flags::default().set(&args[2]) {
        return Err(CommandError::SYNTAX);
    }
    add(ctx, &args[1], args.tail(2), flags)
}

fn add(ctx: &mut Ctx<'_>, key: &[u8], pairs: Args<'_>, flags: Flags) -> CommandResult {
    // One pair, which is usual, takes no memory.
    let (one, many);
    let scores: &[f64] = if pairs.len() == 2 {
        one = [parse_score(&pairs[0]).ok_or(CommandError::NOT_FLOAT)?];
        &one
    } else {
        let scores = pairs.iter().step_by(2).map(parse_score);
        many = scores
            .collect::<Option<Vec<f64>>>()
            .ok_or(CommandError::NOT_FLOAT)?;
        &many
    };
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
        // NX keeps the score before the sum is made; GT and LT compare the sum.
        if flags.incr
            && !flags.nx
            && let Some(old) = zset.view().score(&pairs[1])
            && (old + scores[0]).is_nan()
        {
            return Err(CommandError::fixed(
                "ERR resulting score is not a number (NaN)",
            ));
        }
        let encoding = zset.view().encoding();
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
        } else if zset.view().encoding() == encoding {
            Edit::Unchanged(result)
        } else {
            Edit::Unwatched(result)
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

/// A score as clients write it: what `strtod` reads, unless a double cannot hold it.
pub(in crate::commands) fn parse_score(text: &[u8]) -> Option<f64> {
    match read_double(text)? {
        Double::Exact(score) => Some(score),
        Double::OutOfRange(_) => None,
    }
}

/// The end of a range of scores. Redis hands it to `strtod` as a C string and looks only at where the number ends:
/// spaces may lead, nothing at all is zero, and what is too large is infinite.
pub(super) fn parse_score_bound(text: &[u8]) -> Option<f64> {
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let is_space = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0b;
    let start = text.iter().position(|&byte| !is_space(byte))?;
    match read_double(&text[start..])? {
        Double::Exact(score) | Double::OutOfRange(score) => Some(score),
    }
}

/// What a text stands for as a double.
enum Double {
    /// The number, rounded to the precision of a double.
    Exact(f64),
    /// Too large, and infinite; or too small, and zero.
    OutOfRange(f64),
}

/// The format of a double.
const DOUBLE: Format = Format {
    precision: 53,
    min_exponent: -1074,
    max_exponent: 971,
};

/// A number as SORT reads it: as the end of a range, but what a double cannot hold is none.
pub(in crate::commands) fn parse_weight(text: &[u8]) -> Option<f64> {
    let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let is_space = |byte: u8| byte.is_ascii_whitespace() || byte == 0x0b;
    let start = text.iter().position(|&byte| !is_space(byte))?;
    parse_score(&text[start..])
}

fn read_double(text: &[u8]) -> Option<Double> {
    // Most scores are integers, and a double holds every one of so many digits.
    if matches!(text.len(), 1..=15) && text.iter().all(u8::is_ascii_digit) {
        let digits = text.iter().map(|&digit| u64::from(digit - b'0'));
        let number = digits.fold(0, |number, digit| number * 10 + digit);
        return Some(Double::Exact(number as f64));
    }
    let signed = |negative: bool, magnitude: f64| if negative { -magnitude } else { magnitude };
    Some(match FloatText::scan(text)? {
        FloatText::Nan => return None,
        FloatText::Infinity { negative } => Double::Exact(signed(negative, f64::INFINITY)),
        FloatText::Decimal {
            integer, fraction, ..
        } => {
            let number: f64 = str::from_utf8(text).ok()?.parse().ok()?;
            let is_zero = integer.iter().chain(fraction).all(|&digit| digit == b'0');
            if number.is_infinite() || (number == 0.0 && !is_zero) {
                Double::OutOfRange(number)
            } else {
                Double::Exact(number)
            }
        }
        FloatText::Hexadecimal {
            negative,
            significand,
        } => match significand.round(&DOUBLE) {
            Rounded::Zero if significand.is_zero() => Double::Exact(signed(negative, 0.0)),
            Rounded::Zero => Double::OutOfRange(signed(negative, 0.0)),
            Rounded::Overflow => Double::OutOfRange(signed(negative, f64::INFINITY)),
            Rounded::Finite { mantissa, exponent } => {
                // The highest bit of a mantissa is implied, except in the subnormal numbers.
                let implied = 1u64 << (DOUBLE.precision - 1);
                let biased = exponent - DOUBLE.min_exponent + 1;
                let bits = match mantissa.checked_sub(implied) {
                    Some(rest) => ((biased as u64) << (DOUBLE.precision - 1)) | rest,
                    None => mantissa,
                };
                Double::Exact(signed(negative, f64::from_bits(bits)))
            }
        },
    })
}

#[cfg(test)]
mod tests {
    use super::{parse_score, parse_score_bound};

    #[test]
    fn scores_are_what_strtod_reads_in_full() {
        for (text, score) in [
            ("1.5", Some(1.5)),
            ("0", Some(0.0)),
            ("0042", Some(42.0)),
            ("999999999999999", Some(999_999_999_999_999.0)),
            ("9007199254740993", Some(9_007_199_254_740_992.0)),
            ("+.5", Some(0.5)),
            ("-inf", Some(f64::NEG_INFINITY)),
            ("0x1p4", Some(16.0)),
            ("-0x1.8p1", Some(-3.0)),
            ("0x0", Some(0.0)),
            ("0x1p-1074", Some(f64::from_bits(1))),
            ("0x1p-1022", Some(f64::MIN_POSITIVE)),
            ("0x1.fffffffffffffp1023", Some(f64::MAX)),
            ("4.9e-324", Some(f64::from_bits(1))),
            ("0e-9999", Some(0.0)),
            ("1e400", None),
            ("0x1p1024", None),
            ("1e-400", None),
            ("0x1p-1076", None),
            ("nan", None),
            ("", None),
            (" 1", None),
            ("1 ", None),
        ] {
            assert_eq!(parse_score(text.as_bytes()), score, "{text:?}");
        }
    }

    #[test]
    fn ends_of_ranges_are_read_more_generously() {
        for (text, score) in [
            ("", Some(0.0)),
            (" \t1.5", Some(1.5)),
            ("1\0x", Some(1.0)),
            ("1e400", Some(f64::INFINITY)),
            ("1e-400", Some(0.0)),
            (" ", None),
            ("1 ", None),
            ("nan", None),
        ] {
            assert_eq!(parse_score_bound(text.as_bytes()), score, "{text:?}");
        }
    }
}
