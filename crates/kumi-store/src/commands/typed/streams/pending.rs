//! XPENDING, XCLAIM and XAUTOCLAIM.

use super::propagate::{self, Claimed as Record};
use super::{answer, consumer_of, end_id, no_key_or_group, start_id, strict_id, view};
use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::parse::integer;
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Look, Missing};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::stream::{Claim, Claimed, Consumer, Group, Nack, Stream, StreamId};
use kumi_resp::Args;

/// XAUTOCLAIM looks at so many pending entries for each one it may claim.
const ATTEMPTS_PER_ENTRY: u64 = 10;
/// The largest count of XAUTOCLAIM.
const MAX_COUNT: i64 = i64::MAX / 16;
/// From this count on Redis finds no memory for the ids of deleted entries.
const COUNT_WITHOUT_MEMORY: u64 = 1 << 43;

/// A range of pending entries, as XPENDING is asked for it.
struct Range<'a> {
    min_idle_ms: i64,
    start: StreamId,
    end: StreamId,
    count: u64,
    consumer: Option<&'a [u8]>,
}

pub(super) fn xpending(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let range = match args.len() {
        3 => None,
        6..=9 => Some(Range::parse(args)?),
        _ => return Err(CommandError::SYNTAX),
    };
    let now_ms = ctx.now.unix_ms() as i64;
    let (key, name) = (&args[1], &args[2]);
    let (mut keys, reply) = ctx.keys_and_reply();
    let stream = view(&mut keys, key, Look::Read)?;
    let group = stream
        .and_then(|stream| stream.group(name))
        .ok_or_else(|| no_key_or_group(key, name))?;
    match range {
        None => summary(reply, group),
        Some(range) => range.answer(reply, group, now_ms),
    }
    Ok(())
}

/// XPENDING without a range: the number of pending entries, the first and the last, and the owners.
fn summary(reply: &mut Reply<'_>, group: &Group) {
    reply.array(4);
    reply.count(group.pending_count());
    let Some((first, last)) = group.pending_ends() else {
        reply.null();
        reply.null();
        return reply.null_array();
    };
    reply.bulk(first.text());
    reply.bulk(last.text());
    let owners = || {
        let consumers = group.consumers();
        consumers.filter(|consumer| consumer.pending_count() > 0)
    };
    reply.array(owners().count());
    for consumer in owners() {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_integer(consumer.pending_count() as i64);
    }
}

impl<'a> Range<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let (mut at, mut min_idle_ms) = (3, 0);
        if args[3].eq_ignore_ascii_case(b"idle") {
            min_idle_ms = integer(&args[4])?;
            if args.len() < 8 {
                return Err(CommandError::SYNTAX);
            }
            at = 5;
        }
        let count = integer(&args[at + 2])?.max(0) as u64;
        Ok(Self {
            min_idle_ms,
            start: start_id(&args[at])?,
            end: end_id(&args[at + 1])?,
            count,
            consumer: args.get(at + 3),
        })
    }

    fn answer(&self, reply: &mut Reply<'_>, group: &Group, now_ms: i64) {
        let deferred = reply.defer();
        let mut answered = 0;
        let range = self.start..=self.end;
        match self.consumer.map(|name| group.find_consumer(name)) {
            None => {
                for (id, nack) in group.pending(range) {
                    if answered == self.count {
                        break;
                    }
                    answered += u64::from(self.show(reply, group, now_ms, id, nack));
                }
            }
            Some(key) => {
                let consumer = key.and_then(|key| group.consumer(key));
                for id in consumer
                    .into_iter()
                    .flat_map(|own| own.pending(range.clone()))
                {
                    if answered == self.count {
                        break;
                    }
                    if let Some(nack) = group.nack(id) {
                        answered += u64::from(self.show(reply, group, now_ms, id, nack));
                    }
                }
            }
        }
        reply.finish_array(deferred, answered as usize);
    }

    /// Answers a pending entry unless it was delivered too recently; returns whether it did.
    fn show(
        &self,
        reply: &mut Reply<'_>,
        group: &Group,
        now_ms: i64,
        id: StreamId,
        nack: &Nack,
    ) -> bool {
        let idle_ms = now_ms.wrapping_sub(nack.delivery_time);
        if self.min_idle_ms != 0 && idle_ms < self.min_idle_ms {
            return false;
        }
        reply.array(4);
        reply.bulk(id.text());
        let owner = group.consumer(nack.consumer);
        reply.bulk(owner.map_or(&[][..], Consumer::name));
        reply.integer(idle_ms.max(0));
        reply.integer(nack.delivery_count as i64);
        true
    }
}

/// What XCLAIM is asked for.
struct ClaimOptions {
    min_idle_ms: i64,
    /// The positions of the ids end here.
    ids_end: usize,
    delivery_time: i64,
    retry_count: Option<u64>,
    force: bool,
    just_id: bool,
    last_id: StreamId,
}

impl ClaimOptions {
    fn parse(args: Args<'_>, now_ms: i64) -> Result<Self, CommandError> {
        let number = |arg: &[u8], what: &str| {
            integer(arg)
                .map_err(|_| CommandError::new(format!("ERR Invalid {what} argument for XCLAIM")))
        };
        let min_idle_ms = number(&args[4], "min-idle-time")?.max(0);
        let ids = args.iter().skip(5);
        let ids_end = 5 + ids.take_while(|id| strict_id(id).is_ok()).count();
        let mut options = Self {
            min_idle_ms,
            ids_end,
            delivery_time: -1,
            retry_count: None,
            force: false,
            just_id: false,
            last_id: StreamId::MIN,
        };
        let mut reader = OptionReader::new(args, ids_end);
        while let Some(word) = reader.word() {
            let unknown = || {
                let text = [b"ERR Unrecognized XCLAIM option '", word.sent, b"'"].concat();
                CommandError::new(text)
            };
            let mut value = || reader.argument().ok_or_else(unknown);
            match &*word {
                b"force" => options.force = true,
                b"justid" => options.just_id = true,
                b"idle" => {
                    let idle = number(value()?, "IDLE option")?;
                    options.delivery_time = now_ms.wrapping_sub(idle);
                }
                b"time" => options.delivery_time = number(value()?, "TIME option")?,
                b"retrycount" => {
                    let count = number(value()?, "RETRYCOUNT option")?;
                    options.retry_count = u64::try_from(count).ok();
                }
                b"lastid" => options.last_id = strict_id(value()?)?,
                _ => return Err(unknown()),
            }
        }
        // A time that makes no sense is the present one: clients may reckon with clocks of their own.
        if !(0..=now_ms).contains(&options.delivery_time) {
            options.delivery_time = now_ms;
        }
        Ok(options)
    }
}

/// What claiming did that others have to know.
#[derive(Default)]
struct Outcome {
    changes: usize,
    created: bool,
    /// The group's position, if it moved and no record tells of it.
    moved: Option<(StreamId, Option<u64>)>,
    records: Vec<Record>,
}

pub(super) fn xclaim(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, name) = (&args[1], &args[2]);
    let (now_ms, propagates) = (ctx.now.unix_ms() as i64, ctx.propagates());
    let (mut keys, reply) = ctx.keys_and_reply();
    let edited = keys.read_and_edit(key, |stream: &mut Box<Stream>| {
        let mut group = stream
            .group_mut(name)
            .ok_or_else(|| no_key_or_group(key, name))?;
        let options = ClaimOptions::parse(args, now_ms)?;
        let mut outcome = Outcome::default();
        if options.last_id > group.last_id() {
            let entries_read = group.entries_read();
            group.set_last_id(options.last_id, entries_read);
            outcome.moved = Some((options.last_id, entries_read));
        }
        let consumer;
        (consumer, outcome.created) = consumer_of(&mut group, &args[3], now_ms);
        drop(group);
        let claim = Claim {
            consumer,
            min_idle_ms: options.min_idle_ms,
            now_ms,
            delivery_time: options.delivery_time,
            delivery_count: options.retry_count,
            force: options.force,
            just_id: options.just_id,
        };
        let deferred = reply.defer();
        let mut claimed = 0;
        for text in args.iter().take(options.ids_end).skip(5) {
            let id = strict_id(text)?;
            let before = propagates.then(|| record(stream, name, id, text)).flatten();
            match stream.claim(name, id, claim) {
                Some(Claimed::Yes) => {
                    claimed += 1;
                    answer_claimed(reply, stream, id, options.just_id);
                    let after = propagates.then(|| record(stream, name, id, text));
                    outcome.records.extend(after.flatten());
                }
                Some(Claimed::Deleted(true)) => outcome.records.extend(before),
                _ => continue,
            }
            outcome.changes += 1;
            outcome.moved = None;
        }
        reply.finish_array(deferred, claimed);
        Ok(Edit::Unwatched(outcome))
    })?;
    let outcome = edited.ok_or_else(|| no_key_or_group(key, name))?.result;
    finish(ctx, args, outcome);
    Ok(())
}

/// Answers an entry that was claimed.
fn answer_claimed(reply: &mut Reply<'_>, stream: &Stream, id: StreamId, just_id: bool) {
    match stream.get(id) {
        Some(entry) if !just_id => answer(reply, entry),
        _ => reply.bulk(id.text()),
    }
}

/// The record of an entry that is pending.
fn record(stream: &Stream, group: &[u8], id: StreamId, text: &[u8]) -> Option<Record> {
    let group = stream.group(group)?;
    let nack = group.nack(id)?;
    Some(Record {
        consumer: group.consumer(nack.consumer)?.name().to_vec(),
        id: text.to_vec(),
        delivery_time: nack.delivery_time,
        delivery_count: nack.delivery_count,
        last_id: group.last_id(),
    })
}

/// Notifies, counts and records what XCLAIM or XAUTOCLAIM did.
fn finish(ctx: &mut Ctx<'_>, args: Args<'_>, outcome: Outcome) {
    let (key, group, consumer) = (&args[1], &args[2], &args[3]);
    if outcome.created {
        ctx.keys()
            .notify(NotifyFlags::STREAM, "xgroup-createconsumer", key);
    }
    let changes = outcome.changes + usize::from(outcome.created);
    ctx.dirty(changes + usize::from(outcome.moved.is_some()));
    if ctx.propagates() {
        let mut records = outcome.records.iter();
        if outcome.created && !records.any(|record| record.consumer == consumer) {
            propagate::consumer(ctx, key, group, consumer);
        }
        for record in &outcome.records {
            propagate::claimed(ctx, key, group, record);
        }
        if let Some((last_id, entries_read)) = outcome.moved {
            propagate::group_position(ctx, key, group, last_id, entries_read);
        }
    }
    ctx.mark_propagated();
}

pub(super) fn xautoclaim(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, name) = (&args[1], &args[2]);
    let (now_ms, propagates) = (ctx.now.unix_ms() as i64, ctx.propagates());
    let (mut keys, reply) = ctx.keys_and_reply();
    // Redis looks for the key before it reads the arguments.
    keys.look(key, Look::Read);
    let min_idle_ms = integer(&args[4])
        .map_err(|_| CommandError::fixed("ERR Invalid min-idle-time argument for XAUTOCLAIM"))?;
    let start = start_id(&args[5])?;
    let (count, just_id) = parse_auto(args)?;
    let edited = keys.edit(key, Missing::Skip, |stream: &mut Box<Stream>| {
        let mut group = stream
            .group_mut(name)
            .ok_or_else(|| no_key_or_group(key, name))?;
        if count >= COUNT_WITHOUT_MEMORY {
            return Err(CommandError::fixed(
                "ERR Insufficient memory, failed allocating transient memory, COUNT too high.",
            ));
        }
        let (consumer, created) = consumer_of(&mut group, &args[3], now_ms);
        drop(group);
        let claim = Claim {
            consumer,
            min_idle_ms: min_idle_ms.max(0),
            now_ms,
            delivery_time: now_ms,
            delivery_count: None,
            force: false,
            just_id,
        };
        let mut outcome = Outcome {
            created,
            ..Outcome::default()
        };
        let (mut claimed, mut deleted) = (Vec::new(), Vec::new());
        let (mut left, mut attempts) = (count, count * ATTEMPTS_PER_ENTRY);
        let mut cursor = next_pending(stream, name, Some(start));
        while attempts > 0
            && left > 0
            && let Some(id) = cursor
        {
            attempts -= 1;
            let text = id.text();
            let before = propagates
                .then(|| record(stream, name, id, &text))
                .flatten();
            let result = stream.claim(name, id, claim);
            cursor = next_pending(stream, name, id.next());
            match result {
                Some(Claimed::Yes) => {
                    claimed.push(id);
                    let after = propagates.then(|| record(stream, name, id, &text));
                    outcome.records.extend(after.flatten());
                }
                Some(Claimed::Deleted(_)) => {
                    deleted.push(id);
                    outcome.records.extend(before);
                }
                _ => continue,
            }
            outcome.changes += 1;
            left -= 1;
        }
        reply.array(3);
        reply.bulk(cursor.unwrap_or(StreamId::MIN).text());
        reply.array(claimed.len());
        for id in claimed {
            answer_claimed(reply, stream, id, just_id);
        }
        reply.array(deleted.len());
        for id in deleted {
            reply.bulk(id.text());
        }
        Ok(Edit::Unwatched(outcome))
    })?;
    let outcome = edited.ok_or_else(|| no_key_or_group(key, name))?.result;
    finish(ctx, args, outcome);
    Ok(())
}

/// The first pending entry from an id on.
fn next_pending(stream: &Stream, group: &[u8], from: Option<StreamId>) -> Option<StreamId> {
    let mut pending = stream.group(group)?.pending(from?..=StreamId::MAX);
    pending.next().map(|(id, _)| id)
}

/// The count of XAUTOCLAIM, and whether it answers ids alone.
fn parse_auto(args: Args<'_>) -> Result<(u64, bool), CommandError> {
    let (mut count, mut just_id) = (100, false);
    let mut options = OptionReader::new(args, 6);
    while let Some(word) = options.word() {
        match &*word {
            b"justid" => just_id = true,
            b"count" => {
                let number = integer(options.value()?).ok();
                let number = number.filter(|number| (1..=MAX_COUNT).contains(number));
                count = number.ok_or(CommandError::fixed("ERR COUNT must be > 0"))? as u64;
            }
            _ => return Err(CommandError::SYNTAX),
        }
    }
    Ok((count, just_id))
}
