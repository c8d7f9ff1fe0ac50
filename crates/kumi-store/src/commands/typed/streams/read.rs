//! XREAD and XREADGROUP: entries behind an id, new entries for a group, and the pending ones of a consumer; and waiting
//! for them.
//!
//! A command that waits with `$` waits with the id that it stands for, because it is executed again later. XREAD waits
//! for streams alone. XREADGROUP is executed again when its group has something to read, and when the group is lost with its
//! key: then it answers an error.

use super::propagate::{self, Claimed as Record};
use super::{INVALID_ID, answer, at_most, consumer_of, no_group, strict_id, view};
use crate::base::error::{CommandError, CommandResult};
use crate::commands::options::OptionReader;
use crate::commands::parse::{block_ms, integer};
use crate::config::NotifyFlags;
use crate::data::keyspace::{Edit, Look, Missing, Wake};
use crate::engine::reply::{Deferred, Reply};
use crate::engine::store::ctx::Ctx;
use crate::types::stream::{Delivery, Stream, StreamId};
use kumi_resp::{Args, OwnedArgs};
use std::sync::Arc;

/// What XREAD or XREADGROUP is asked for.
struct Read<'a> {
    args: Args<'a>,
    /// The group and the consumer of XREADGROUP.
    group: Option<(&'a [u8], &'a [u8])>,
    no_ack: bool,
    /// How many entries of each stream at most.
    count: usize,
    /// How long to wait; 0 for no limit.
    block_ms: Option<u64>,
    /// The position of the first key.
    first: usize,
    streams: usize,
}

pub(super) fn xread(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let read = Read::parse(ctx, args, false)?;
    read.check(ctx)?;
    let mut answered = Answered::new(&read);
    let (mut keys, reply) = ctx.keys_and_reply();
    for (key, id) in read.streams() {
        let Some(stream) = view(&mut keys, key, Look::Read)? else {
            continue;
        };
        let Some(start) = StreamId::parse(id, 0).and_then(StreamId::next) else {
            // `$`: nothing is behind the last entry.
            continue;
        };
        let mut entries = stream.range(start, StreamId::MAX).take(read.count);
        let Some(first) = entries.next() else {
            continue;
        };
        answered.begin(reply, key);
        let deferred = reply.defer();
        answer(reply, first);
        let mut shown = 1;
        for entry in entries {
            answer(reply, entry);
            shown += 1;
        }
        reply.finish_array(deferred, shown);
    }
    if !answered.finish(reply) {
        read.wait(ctx)?;
    }
    Ok(())
}

pub(super) fn xreadgroup(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let read = Read::parse(ctx, args, true)?;
    let group = read.group.ok_or(CommandError::fixed(
        "ERR Missing GROUP option for XREADGROUP",
    ))?;
    read.check(ctx)?;
    let mut answered = Answered::new(&read);
    for (key, id) in read.streams() {
        serve(ctx, &read, &mut answered, key, group, id)?;
    }
    let served = answered.finish(&mut ctx.reply);
    if !served {
        read.wait(ctx)?;
    }
    // The records are complete: each delivery left its own.
    ctx.mark_propagated();
    Ok(())
}

/// Delivers the entries of one stream to a consumer.
fn serve(
    ctx: &mut Ctx<'_>,
    read: &Read<'_>,
    answered: &mut Answered,
    key: &[u8],
    (name, consumer_name): (&[u8], &[u8]),
    id: &[u8],
) -> CommandResult {
    let (now_ms, propagates) = (ctx.now.unix_ms() as i64, ctx.propagates());
    // The greatest id asks for new entries as well.
    let history = match id {
        b">" => None,
        _ => Some(strict_id(id)?).filter(|&id| id != StreamId::MAX),
    };
    let mut records = Vec::new();
    let (mut keys, reply) = ctx.keys_and_reply();
    keys.count_read(key, true);
    let edited = keys.edit(key, Missing::Skip, |stream: &mut Box<Stream>| {
        let mut group = stream.group_mut(name).ok_or_else(|| lost(key, name))?;
        let (consumer, created) = consumer_of(&mut group, consumer_name, now_ms);
        drop(group);
        let delivery = Delivery {
            consumer,
            now_ms,
            count: read.count,
            no_ack: read.no_ack,
        };
        if let Some(after) = history {
            answered.begin(reply, key);
            let deferred = reply.defer();
            let start = after.next().unwrap_or(StreamId::MAX);
            let shown = stream.deliver_again(name, start, delivery, |id, entry| match entry {
                Some(entry) => answer(reply, entry),
                None => {
                    reply.array(2);
                    reply.bulk(id.text());
                    reply.null_array();
                }
            });
            reply.finish_array(deferred, shown);
            return Ok(Edit::Unwatched((created, None, true)));
        }
        let mut deferred = None;
        let delivered = stream.deliver_new(name, delivery, |entry| {
            if deferred.is_none() {
                answered.begin(reply, key);
                deferred = Some(reply.defer());
            }
            if propagates && !read.no_ack {
                records.push(Record {
                    consumer: consumer_name.to_vec(),
                    id: entry.id().text().to_vec(),
                    delivery_time: now_ms,
                    delivery_count: 1,
                    last_id: entry.id(),
                });
            }
            answer(reply, entry);
        });
        if let Some(deferred) = deferred {
            reply.finish_array(deferred, delivered);
        }
        let group = stream.group(name).filter(|_| delivered > 0);
        let position = group.map(|group| (group.last_id(), group.entries_read()));
        Ok(Edit::Unwatched((created, position, delivered > 0)))
    })?;
    let Some(edited) = edited else {
        return Ok(());
    };
    let (created, position, served) = edited.result;
    if created {
        keys.notify(NotifyFlags::STREAM, "xgroup-createconsumer", key);
    }
    ctx.dirty(usize::from(created) + usize::from(served));
    if propagates {
        if created && records.is_empty() {
            propagate::consumer(ctx, key, name, consumer_name);
        }
        for record in &records {
            propagate::claimed(ctx, key, name, record);
        }
        if let Some((last_id, entries_read)) = position {
            propagate::group_position(ctx, key, name, last_id, entries_read);
        }
    }
    Ok(())
}

/// The error of XREADGROUP about a group that is not there.
fn lost(key: &[u8], group: &[u8]) -> CommandError {
    no_group(&[
        b"key '",
        key,
        b"' or consumer group '",
        group,
        b"' in XREADGROUP with GROUP option",
    ])
}

impl<'a> Read<'a> {
    fn parse(ctx: &Ctx<'_>, args: Args<'a>, with_group: bool) -> Result<Self, CommandError> {
        let mut read = Self {
            args,
            group: None,
            no_ack: false,
            count: usize::MAX,
            block_ms: None,
            first: 0,
            streams: 0,
        };
        let only_with_group = |option: &str| {
            CommandError::new(format!(
                "ERR The {option} option is only supported by XREADGROUP. You called XREAD instead."
            ))
        };
        let mut options = OptionReader::new(args, 1);
        while let Some(word) = options.word() {
            match (&*word, options.left()) {
                (b"block", 1..) => {
                    if ctx.in_script {
                        let rest = b" command is not allowed with BLOCK option from scripts";
                        return Err(CommandError::new([b"ERR ", &args[0], rest].concat()));
                    }
                    read.block_ms = Some(block_ms(options.value()?, ctx.now)?);
                }
                (b"count", 1..) => {
                    let count = integer(options.value()?)?;
                    read.count = at_most(u64::try_from(count).ok().filter(|&count| count > 0));
                }
                (b"streams", left @ 1..) => {
                    if !left.is_multiple_of(2) {
                        return Err(unbalanced(with_group));
                    }
                    read.first = options.position();
                    read.streams = left / 2;
                    break;
                }
                (b"group", 2..) => {
                    if !with_group {
                        return Err(only_with_group("GROUP"));
                    }
                    let [group, consumer] = options.values()?;
                    read.group = Some((group, consumer));
                }
                (b"noack", _) => {
                    if !with_group {
                        return Err(only_with_group("NOACK"));
                    }
                    read.no_ack = true;
                }
                _ => return Err(CommandError::SYNTAX),
            }
        }
        match read.streams {
            0 => Err(CommandError::SYNTAX),
            _ => Ok(read),
        }
    }

    /// Checks all keys, groups and ids before anything is delivered.
    fn check(&self, ctx: &mut Ctx<'_>) -> CommandResult {
        const NO_DOLLAR: CommandError = CommandError::fixed(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
        );
        const NO_NEW: CommandError = CommandError::fixed(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        );
        let mut keys = ctx.keys();
        for (key, id) in self.streams() {
            let stream = view(&mut keys, key, Look::Read)?;
            if let Some((group, _)) = self.group
                && stream.is_none_or(|stream| stream.group(group).is_none())
            {
                return Err(lost(key, group));
            }
            match (id, self.group) {
                (b"$", Some(_)) => return Err(NO_DOLLAR),
                (b">", None) => return Err(NO_NEW),
                (b"$" | b">", _) => {}
                _ if StreamId::parse(id, 0).is_none() => return Err(INVALID_ID),
                _ => {}
            }
        }
        Ok(())
    }

    /// The keys and what is asked of each.
    fn streams(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let (args, first, streams) = (self.args, self.first, self.streams);
        let keys = args.tail(first).iter().take(streams);
        keys.zip(args.tail(first + streams).iter())
    }

    /// Leaves the session waiting if that is asked for and allowed, and answers that there is nothing otherwise.
    fn wait(&self, ctx: &mut Ctx<'_>) -> CommandResult {
        let Some(timeout_ms) = self.block_ms.filter(|_| ctx.may_block()) else {
            ctx.reply.null_array();
            return Ok(());
        };
        if let Some((group, _)) = self.group {
            let group: Arc<[u8]> = group.into();
            let keys = self
                .streams()
                .map(|(key, _)| (key, Wake::Group(group.clone())));
            ctx.block_on_keys(self.args, keys, timeout_ms);
            return Ok(());
        }
        let mut words: Vec<Vec<u8>> = Vec::new();
        let mut keys = Vec::with_capacity(self.streams);
        for (index, (key, id)) in self.streams().enumerate() {
            let behind = match StreamId::parse(id, 0) {
                Some(behind) => behind,
                None => {
                    let last_id = view(&mut ctx.keys(), key, Look::Quiet)?.map(Stream::last_id);
                    let last_id = last_id.unwrap_or(StreamId::MIN);
                    if words.is_empty() {
                        words = self.args.iter().map(<[u8]>::to_vec).collect();
                    }
                    words[self.first + self.streams + index] = last_id.text().to_vec();
                    last_id
                }
            };
            keys.push((key, Wake::Behind(behind)));
        }
        if words.is_empty() {
            ctx.block_on_keys(self.args, keys, timeout_ms);
        } else {
            let args = OwnedArgs::from_slices(&words);
            ctx.block_on_keys(args.as_args(), keys, timeout_ms);
        }
        Ok(())
    }
}

fn unbalanced(with_group: bool) -> CommandError {
    let (name, symbol) = match with_group {
        true => ("xreadgroup", '>'),
        false => ("xread", '$'),
    };
    CommandError::new(format!(
        "ERR Unbalanced '{name}' list of streams: for each stream key an ID or '{symbol}' must be specified."
    ))
}

/// The outer part of the reply: a map from keys to entries in RESP3, pairs in RESP2.
struct Answered {
    /// Whether there is one stream only: the length is known before the end.
    single: bool,
    deferred: Option<Deferred>,
    streams: usize,
}

impl Answered {
    fn new(read: &Read<'_>) -> Self {
        Self {
            single: read.streams == 1,
            deferred: None,
            streams: 0,
        }
    }

    /// Begins the entries of a stream.
    fn begin(&mut self, reply: &mut Reply<'_>, key: &[u8]) {
        if self.streams == 0 {
            match self.single {
                true if reply.is_resp3() => reply.map(1),
                true => reply.array(1),
                false => self.deferred = Some(reply.defer()),
            }
        }
        self.streams += 1;
        if !reply.is_resp3() {
            reply.array(2);
        }
        reply.bulk(key);
    }

    /// Ends the reply; returns whether anything was answered.
    fn finish(self, reply: &mut Reply<'_>) -> bool {
        if let Some(deferred) = self.deferred {
            match reply.is_resp3() {
                true => reply.finish_map(deferred, self.streams),
                false => reply.finish_array(deferred, self.streams),
            }
        }
        self.streams > 0
    }
}
