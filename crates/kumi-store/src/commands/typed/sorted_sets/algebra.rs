//! Unions, intersections and differences of sorted sets, returned or stored. Sets take part with a score of 1 for each
//! member.
//!
//! A look at a key ends before the next one begins, so an intersection or difference copies the members of one set, the
//! smallest or the first, and strikes out what the others decide.

use super::add::parse_score;
use super::limits;
use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Entry, Keys, Look, Type};
use crate::engine::store::ctx::Ctx;
use crate::types::packed::Elem;
use crate::types::set::{Set, SetRef};
use crate::types::zset::{Zset, ZsetEncoding, ZsetLimits, ZsetRef};
use kumi_resp::Args;

/// Members of the smallest input that ZINTERCARD looks at before it compares their number with the limit.
const FIRST_BATCH: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Members,
    Stored,
    Number,
}

/// What becomes of the scores a member has in several sets.
#[derive(Clone, Copy, Debug)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// Joins two scores. Infinities of both signs add up to 0, as in Redis.
    fn join(self, first: f64, second: f64) -> f64 {
        match self {
            Self::Sum => not_nan(first + second),
            Self::Min if second < first => second,
            Self::Max if second > first => second,
            Self::Min | Self::Max => first,
        }
    }
}

fn not_nan(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// One input.
#[derive(Clone, Copy, Debug)]
struct Source<'a> {
    key: &'a [u8],
    len: usize,
    weight: f64,
}

/// A request without its destination.
struct Request<'a> {
    sources: Vec<Source<'a>>,
    aggregate: Aggregate,
    with_scores: bool,
    /// The most members ZINTERCARD counts; 0 for all.
    limit: usize,
}

/// A sorted set, or a set in its place.
enum Members<'a> {
    Sorted(ZsetRef<'a>),
    Plain(SetRef<'a>),
}

impl Members<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Sorted(zset) => zset.len(),
            Self::Plain(set) => set.len(),
        }
    }

    fn score(&self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Sorted(zset) => zset.score(member),
            Self::Plain(set) => set.contains(member).then_some(1.0),
        }
    }

    /// Visits `size` members from one on.
    fn part(&self, from: usize, size: usize, mut visit: impl FnMut(&[u8])) {
        match self {
            Self::Sorted(zset) => zset
                .range(from..zset.len().min(from + size))
                .for_each(|(member, _)| visit(&member)),
            Self::Plain(set) => set
                .iter()
                .skip(from)
                .take(size)
                .map(Elem::text)
                .for_each(|member| visit(&member)),
        }
    }

    fn each(&self, mut visit: impl FnMut(&[u8], f64)) {
        match self {
            Self::Sorted(zset) => zset
                .iter()
                .for_each(|(member, score)| visit(&member, score)),
            Self::Plain(set) => set
                .iter()
                .map(Elem::text)
                .for_each(|member| visit(&member, 1.0)),
        }
    }
}

fn members<'k>(
    keys: &'k mut Keys<'_>,
    key: &[u8],
    look: Look,
) -> Result<Option<Members<'k>>, CommandError> {
    match keys.look(key, look).map(Entry::type_of) {
        None => Ok(None),
        Some(Type::SortedSet) => Ok(keys.view::<Zset>(key, Look::Quiet)?.map(Members::Sorted)),
        Some(Type::Set) => Ok(keys.view::<Set>(key, Look::Quiet)?.map(Members::Plain)),
        Some(_) => Err(CommandError::WRONG_TYPE),
    }
}

pub(super) fn zunion(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    answer(ctx, args, "zunion", Operation::Union)
}

pub(super) fn zinter(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    answer(ctx, args, "zinter", Operation::Intersection)
}

pub(super) fn zdiff(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    answer(ctx, args, "zdiff", Operation::Difference)
}

pub(super) fn zunionstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    compute_and_store(ctx, args, "zunionstore", Operation::Union)
}

pub(super) fn zinterstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    compute_and_store(ctx, args, "zinterstore", Operation::Intersection)
}

pub(super) fn zdiffstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    compute_and_store(ctx, args, "zdiffstore", Operation::Difference)
}

pub(super) fn zintercard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let operation = Operation::Intersection;
    let request = parse(&mut keys, args, 1, "zintercard", operation, Form::Number)?;
    reply.count(count_common(&mut keys, &request)?);
    Ok(())
}

/// Counts the members that all inputs have, in batches of the smallest, and stops at the limit.
fn count_common(keys: &mut Keys<'_>, request: &Request<'_>) -> Result<usize, CommandError> {
    let limit = match request.limit {
        0 => usize::MAX,
        limit => limit,
    };
    let Some((smallest, others)) = request.sources.split_first() else {
        return Ok(0);
    };
    let (mut found, mut from) = (0, 0);
    while from < smallest.len && found < limit {
        let size = from.max(FIRST_BATCH);
        let mut batch: Vec<Box<[u8]>> = Vec::new();
        if let Some(members) = members(keys, smallest.key, Look::Quiet)? {
            members.part(from, size, |member| batch.push(member.into()));
        }
        from += size;
        for source in others {
            match members(keys, source.key, Look::Quiet)? {
                Some(members) => batch.retain(|member| members.score(member).is_some()),
                None => return Ok(0),
            }
        }
        found += batch.len();
    }
    Ok(found.min(limit))
}

fn answer(ctx: &mut Ctx<'_>, args: Args<'_>, name: &str, operation: Operation) -> CommandResult {
    let limits = limits(ctx);
    let (mut keys, reply) = ctx.keys_and_reply();
    let request = parse(&mut keys, args, 1, name, operation, Form::Members)?;
    let (result, _) = compute(&mut keys, &request, operation, limits)?;
    let zset = result.view();
    let nested = request.with_scores && reply.is_resp3();
    let flat = request.with_scores && !nested;
    reply.array(if flat { zset.len() * 2 } else { zset.len() });
    for (member, score) in zset.iter() {
        if nested {
            reply.array(2);
        }
        reply.bulk(&*member);
        if request.with_scores {
            reply.double(score);
        }
    }
    Ok(())
}

fn compute_and_store(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    name: &'static str,
    operation: Operation,
) -> CommandResult {
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let request = parse(&mut keys, args, 2, name, operation, Form::Stored)?;
    let (mut result, longest) = compute(&mut keys, &request, operation, limits)?;
    result.settle(longest, limits);
    store(ctx, &args[1], result, name)
}

/// Puts a result in the place of whatever its key held.
pub(super) fn store(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    zset: Zset,
    event: &'static str,
) -> CommandResult {
    let len = zset.view().len();
    let mut keys = ctx.keys();
    if len > 0 {
        keys.put_collection(key, zset)?;
        keys.notify(NotifyFlags::ZSET, event, key);
        ctx.dirty(1);
    } else if keys.remove(key) {
        keys.notify(NotifyFlags::GENERIC, "del", key);
        ctx.dirty(1);
    }
    ctx.reply.count(len);
    Ok(())
}

/// Reads a request from its number of keys on, which stands at `at`. As in Redis, the types of the keys are looked at
/// before the options.
fn parse<'a>(
    keys: &mut Keys<'_>,
    args: Args<'a>,
    at: usize,
    name: &str,
    operation: Operation,
    form: Form,
) -> Result<Request<'a>, CommandError> {
    let number = integer(&args[at])?;
    if number < 1 {
        return Err(CommandError::new(format!(
            "ERR at least 1 input key is needed for '{name}' command"
        )));
    }
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    if number > args.len() - at - 1 {
        return Err(CommandError::SYNTAX);
    }
    let mut sources = Vec::with_capacity(number);
    for key in args.tail(at + 1).iter().take(number) {
        let len = members(keys, key, Look::Read)?.map_or(0, |members| members.len());
        sources.push(Source {
            key,
            len,
            weight: 1.0,
        });
    }
    let mut request = Request {
        sources,
        aggregate: Aggregate::Sum,
        with_scores: false,
        limit: 0,
    };
    let joins = operation != Operation::Difference && form != Form::Number;
    let mut options = OptionReader::new(args, at + 1 + number);
    while let Some(word) = options.word() {
        match &*word {
            b"weights" if joins && options.left() >= number => {
                for source in &mut request.sources {
                    let weight = options.argument().and_then(parse_score);
                    source.weight =
                        weight.ok_or(CommandError::fixed("ERR weight value is not a float"))?;
                }
            }
            b"aggregate" if joins => {
                request.aggregate = match options.word().as_deref() {
                    Some(b"sum") => Aggregate::Sum,
                    Some(b"min") => Aggregate::Min,
                    Some(b"max") => Aggregate::Max,
                    _ => return Err(CommandError::SYNTAX),
                };
            }
            b"withscores" if form == Form::Members => request.with_scores = true,
            b"limit" if form == Form::Number => {
                let limit = integer(options.value()?).ok();
                request.limit = limit
                    .and_then(|limit| usize::try_from(limit).ok())
                    .ok_or(CommandError::fixed("ERR LIMIT can't be negative"))?;
            }
            _ => return Err(CommandError::SYNTAX),
        }
    }
    if operation != Operation::Difference {
        // The order in which scores are added up is seen in their last digits.
        request.sources.sort_by_key(|source| source.len);
    }
    Ok(request)
}

/// The result, and the length of its longest member.
fn compute(
    keys: &mut Keys<'_>,
    request: &Request<'_>,
    operation: Operation,
    limits: ZsetLimits,
) -> Result<(Zset, usize), CommandError> {
    let seed = keys.seed();
    // As in Redis, small results are packed only when they are stored; -0 is the integer 0 from then on.
    let (mut result, mut longest) = (Zset::with_encoding(ZsetEncoding::Skiplist), 0);
    if operation == Operation::Union {
        for source in &request.sources {
            let Some(members) = members(keys, source.key, Look::Quiet)? else {
                continue;
            };
            members.each(|member, score| {
                let score = not_nan(score * source.weight);
                longest = longest.max(member.len());
                result.update(member, limits, seed, |old| {
                    Some(old.map_or(score, |old| request.aggregate.join(old, score)))
                });
            });
        }
    } else {
        let scored = match operation {
            Operation::Difference => difference(keys, request)?,
            _ => intersection(keys, request)?,
        };
        for (member, score) in scored {
            longest = longest.max(member.len());
            result.insert(&member, score, limits, seed);
        }
    }
    Ok((result, longest))
}

type Scored = Vec<(Box<[u8]>, f64)>;

/// The members of the first input.
fn copy_first(keys: &mut Keys<'_>, request: &Request<'_>) -> Result<Scored, CommandError> {
    let mut copied = Vec::new();
    if let Some(first) = request.sources.first()
        && let Some(members) = members(keys, first.key, Look::Quiet)?
    {
        copied.reserve(members.len());
        members.each(|member, score| copied.push((member.into(), not_nan(score * first.weight))));
    }
    Ok(copied)
}

fn intersection(keys: &mut Keys<'_>, request: &Request<'_>) -> Result<Scored, CommandError> {
    let mut common = copy_first(keys, request)?;
    for source in request.sources.iter().skip(1) {
        let Some(members) = members(keys, source.key, Look::Quiet)? else {
            return Ok(Vec::new());
        };
        common.retain_mut(|(member, score)| {
            let Some(other) = members.score(member) else {
                return false;
            };
            *score = request.aggregate.join(*score, other * source.weight);
            true
        });
    }
    Ok(common)
}

fn difference(keys: &mut Keys<'_>, request: &Request<'_>) -> Result<Scored, CommandError> {
    let mut left = copy_first(keys, request)?;
    for source in request.sources.iter().skip(1) {
        if let Some(members) = members(keys, source.key, Look::Quiet)? {
            left.retain(|(member, _)| members.score(member).is_none());
        }
    }
    Ok(left)
}
