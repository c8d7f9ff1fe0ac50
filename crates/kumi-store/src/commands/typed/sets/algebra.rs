//! Unions, intersections and differences of sets, returned or stored.
//!
//! A look at a key ends before the next one begins, so an intersection or difference copies the
//! members of one set, the smallest or the first, and strikes out what the others decide.

use super::{bulk, limits};
use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Keys, Look};
use crate::engine::store::ctx::Ctx;
use crate::types::packed::Elem;
use crate::types::set::{Set, SetEncoding, SetLimits, SetRef};
use kumi_resp::Args;

pub(super) fn sinter(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let common = intersection(&mut keys, args.tail(1))?;
    reply.set(common.members.len());
    common.members.iter().for_each(|member| reply.bulk(member));
    Ok(())
}

pub(super) fn sintercard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let count = integer(&args[1])
        .ok()
        .and_then(|count| usize::try_from(count).ok());
    let count = count
        .filter(|&count| count > 0)
        .ok_or(CommandError::fixed("ERR numkeys should be greater than 0"))?;
    if count > args.len() - 2 {
        return Err(CommandError::fixed(
            "ERR Number of keys can't be greater than number of args",
        ));
    }
    let mut limit = 0;
    let mut options = OptionReader::new(args, 2 + count);
    while let Some(word) = options.word() {
        let value = match &*word {
            b"limit" => options.value()?,
            _ => return Err(CommandError::SYNTAX),
        };
        limit = integer(value)
            .ok()
            .and_then(|value| usize::try_from(value).ok())
            .ok_or(CommandError::fixed("ERR LIMIT can't be negative"))?;
    }
    let (mut keys, reply) = ctx.keys_and_reply();
    let named = args.iter().skip(2).take(count);
    let limit = if limit == 0 { usize::MAX } else { limit };
    reply.count(common_count(&mut keys, named, limit)?);
    Ok(())
}

/// How many members all sets have, as far as `limit`. The smallest set is walked, and no further than needed.
fn common_count<'a>(
    keys: &mut Keys<'_>,
    named: impl Iterator<Item = &'a [u8]> + Clone,
    limit: usize,
) -> Result<usize, CommandError> {
    /// Members that are copied first: the sets cannot be looked at together. Later batches are as large as all before.
    const FIRST_BATCH: usize = 1024;
    let (mut smallest, mut fewest): (&[u8], usize) = (b"", usize::MAX);
    for key in named.clone() {
        let len = keys.view::<Set>(key, Look::Read)?.map_or(0, SetRef::len);
        if len < fewest {
            (smallest, fewest) = (key, len);
        }
    }
    if fewest == 0 {
        return Ok(0);
    }
    let (mut found, mut from) = (0, 0);
    while from < fewest && found < limit {
        let Some(set) = keys.view::<Set>(smallest, Look::Quiet)? else {
            break;
        };
        let size = from.max(FIRST_BATCH);
        let batch = set.iter().skip(from).take(size);
        let mut members: Vec<Vec<u8>> = batch.map(|member| member.text().to_vec()).collect();
        from += size;
        for key in named.clone().filter(|key| *key != smallest) {
            if let Some(other) = keys.view::<Set>(key, Look::Quiet)? {
                members.retain(|member| other.contains(member));
            }
        }
        found += members.len();
    }
    Ok(found.min(limit))
}

pub(super) fn sinterstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let limits = limits(ctx);
    let mut keys = ctx.keys();
    let seed = keys.seed();
    let common = intersection(&mut keys, args.tail(2))?;
    // A result is expected to be small, whatever the encoding of the smallest set is.
    let mut set = Set::with_encoding(match common.encoding {
        SetEncoding::Hashtable => SetEncoding::Listpack,
        encoding => encoding,
    });
    for member in common.members.iter() {
        set.add(member, limits, seed);
    }
    set.become_intset(limits);
    store(ctx, &args[1], set, "sinterstore")
}

pub(super) fn sunion(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let limits = limits(ctx);
    let (mut keys, reply) = ctx.keys_and_reply();
    let set = union(&mut keys, args.tail(1), limits)?;
    reply.set(set.view().len());
    set.view().iter().for_each(|member| bulk(reply, member));
    Ok(())
}

pub(super) fn sunionstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let limits = limits(ctx);
    let set = union(&mut ctx.keys(), args.tail(2), limits)?;
    store(ctx, &args[1], set, "sunionstore")
}

pub(super) fn sdiff(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let limits = limits(ctx);
    let (mut keys, reply) = ctx.keys_and_reply();
    let set = difference(&mut keys, args.tail(1), limits)?;
    reply.set(set.view().len());
    set.view().iter().for_each(|member| bulk(reply, member));
    Ok(())
}

pub(super) fn sdiffstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let limits = limits(ctx);
    let set = difference(&mut ctx.keys(), args.tail(2), limits)?;
    store(ctx, &args[1], set, "sdiffstore")
}

/// Puts a result in the place of whatever its key held.
fn store(ctx: &mut Ctx<'_>, key: &[u8], set: Set, event: &'static str) -> CommandResult {
    let len = set.view().len();
    let mut keys = ctx.keys();
    if len > 0 {
        keys.put_collection(key, set)?;
        keys.notify(NotifyFlags::SET, event, key);
        ctx.dirty(1);
    } else if keys.remove(key) {
        keys.notify(NotifyFlags::GENERIC, "del", key);
        ctx.dirty(1);
    }
    ctx.reply.count(len);
    Ok(())
}

/// Texts in one buffer.
#[derive(Debug, Default)]
struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    fn of(set: SetRef<'_>) -> Self {
        let mut texts = Texts::default();
        set.iter().for_each(|member| texts.push(&member.text()));
        texts
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(&start, &end)| &self.bytes[start..end])
    }

    fn retain(&mut self, keep: impl Fn(&[u8]) -> bool) {
        let mut kept = Texts::default();
        self.iter()
            .filter(|text| keep(text))
            .for_each(|text| kept.push(text));
        *self = kept;
    }
}

/// The members all sets have, in the order of the smallest set, and that one's encoding.
struct Intersection {
    members: Texts,
    encoding: SetEncoding,
}

fn intersection<'a>(
    keys: &mut Keys<'_>,
    named: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Intersection, CommandError> {
    let mut sets = Vec::new();
    for key in named {
        sets.push((
            keys.view::<Set>(key, Look::Read)?.map_or(0, SetRef::len),
            key,
        ));
    }
    sets.sort_by_key(|&(len, _)| len);
    let mut result = Intersection {
        members: Texts::default(),
        encoding: SetEncoding::Intset,
    };
    let Some((&(_, smallest), others)) = sets.split_first() else {
        return Ok(result);
    };
    let Some(set) = keys.view::<Set>(smallest, Look::Quiet)? else {
        return Ok(result);
    };
    result.encoding = set.encoding();
    result.members = Texts::of(set);
    for &(_, key) in others {
        if let Some(set) = keys.view::<Set>(key, Look::Quiet)? {
            result.members.retain(|member| set.contains(member));
        }
    }
    Ok(result)
}

fn union(keys: &mut Keys<'_>, named: Args<'_>, limits: SetLimits) -> Result<Set, CommandError> {
    // A wrong type is found before anything is gathered.
    for key in named {
        keys.view::<Set>(key, Look::Read)?;
    }
    let seed = keys.seed();
    let mut union = Set::new();
    for key in named {
        if let Some(set) = keys.view::<Set>(key, Look::Quiet)? {
            for member in set.iter().map(Elem::text) {
                union.add(&member, limits, seed);
            }
        }
    }
    Ok(union)
}

/// The members of the first set that no other one has. Which of two algorithms is used shows in the result's encoding:
/// members that are added and removed again can leave a hashtable.
fn difference(
    keys: &mut Keys<'_>,
    named: Args<'_>,
    limits: SetLimits,
) -> Result<Set, CommandError> {
    let mut members = Texts::default();
    let (mut sets, mut total) = (0, 0);
    for (index, key) in named.iter().enumerate() {
        let Some(set) = keys.view::<Set>(key, Look::Read)? else {
            continue;
        };
        (sets, total) = (sets + 1, total + set.len());
        if index == 0 {
            members = Texts::of(set);
        }
    }
    let first = named.get(0).unwrap_or_default();
    let others = named.iter().skip(1);
    let removes = members.len() * sets / 2 > total;
    if !removes {
        for key in others.clone() {
            if let Some(set) = keys.view::<Set>(key, Look::Quiet)? {
                members.retain(|member| key != first && !set.contains(member));
            }
        }
    }
    let seed = keys.seed();
    let mut difference = Set::new();
    for member in members.iter() {
        difference.add(member, limits, seed);
    }
    if removes {
        for key in others {
            if let Some(set) = keys.view::<Set>(key, Look::Quiet)? {
                set.iter().for_each(|member| {
                    difference.remove_elem(member);
                });
            }
        }
    }
    Ok(difference)
}
