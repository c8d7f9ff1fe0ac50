//! XINFO.

use super::range::answer_all;
use super::{answer, at_most, no_group_for_key, view};
use crate::base::error::{CommandError, CommandResult};
use crate::commands::help::wrong_subcommand_arity;
use crate::commands::parse::integer;
use crate::data::keyspace::Look;
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use crate::types::stream::{Consumer, Entry, Group, Stream, StreamId};
use kumi_resp::Args;

/// How many entries XINFO STREAM FULL shows without COUNT.
const FULL_COUNT: u64 = 10;

pub(super) fn stream(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let stream = view(&mut keys, &args[2], Look::Read)?.ok_or(CommandError::NO_SUCH_KEY)?;
    match parse_full(args)? {
        None => {
            reply.map(10);
            counters(reply, stream);
            reply.bulk("groups");
            reply.count(stream.group_count());
            reply.bulk("first-entry");
            answer_or_null(reply, stream.range(StreamId::MIN, StreamId::MAX).next());
            reply.bulk("last-entry");
            answer_or_null(reply, stream.last());
        }
        Some(count) => {
            reply.map(9);
            counters(reply, stream);
            reply.bulk("entries");
            answer_all(reply, stream.range(StreamId::MIN, StreamId::MAX), count);
            reply.bulk("groups");
            reply.array(stream.group_count());
            for (name, group) in stream.groups() {
                full_group(reply, stream, name, group, count);
            }
        }
    }
    Ok(())
}

/// The number of entries that FULL shows at most of everything; `None` without FULL.
fn parse_full(args: Args<'_>) -> Result<Option<usize>, CommandError> {
    let wrong = || wrong_subcommand_arity(args);
    let is = |at: usize, word: &str| args[at].eq_ignore_ascii_case(word.as_bytes());
    match args.len() {
        3 => Ok(None),
        4 | 6 if !is(3, "full") => Err(wrong()),
        4 => Ok(Some(at_most(Some(FULL_COUNT)))),
        6 if !is(4, "count") => Err(wrong()),
        6 => Ok(Some(at_most(match integer(&args[5])? {
            0 => None,
            number => Some(u64::try_from(number).unwrap_or(FULL_COUNT)),
        }))),
        _ => Err(wrong()),
    }
}

fn counters(reply: &mut Reply<'_>, stream: &Stream) {
    reply.bulk("length");
    reply.integer(stream.len() as i64);
    reply.bulk("radix-tree-keys");
    reply.count(stream.node_count());
    reply.bulk("radix-tree-nodes");
    reply.integer(stream.radix_tree_nodes() as i64);
    reply.bulk("last-generated-id");
    reply.bulk(stream.last_id().text());
    reply.bulk("max-deleted-entry-id");
    reply.bulk(stream.max_deleted_id().text());
    reply.bulk("entries-added");
    reply.integer(stream.entries_added() as i64);
    reply.bulk("recorded-first-entry-id");
    reply.bulk(stream.first_id().text());
}

fn answer_or_null(reply: &mut Reply<'_>, entry: Option<Entry<'_>>) {
    match entry {
        Some(entry) => answer(reply, entry),
        None => reply.null(),
    }
}

fn full_group(reply: &mut Reply<'_>, stream: &Stream, name: &[u8], group: &Group, count: usize) {
    let all = StreamId::MIN..=StreamId::MAX;
    reply.map(7);
    reply.bulk("name");
    reply.bulk(name);
    reply.bulk("last-delivered-id");
    reply.bulk(group.last_id().text());
    progress(reply, stream, group);
    reply.bulk("pel-count");
    reply.count(group.pending_count());
    reply.bulk("pending");
    reply.array(group.pending_count().min(count));
    for (id, nack) in group.pending(all.clone()).take(count) {
        reply.array(4);
        reply.bulk(id.text());
        let owner = group.consumer(nack.consumer);
        reply.bulk(owner.map_or(&[][..], Consumer::name));
        reply.integer(nack.delivery_time);
        reply.integer(nack.delivery_count as i64);
    }
    reply.bulk("consumers");
    reply.array(group.consumer_count());
    for consumer in group.consumers() {
        reply.map(5);
        reply.bulk("name");
        reply.bulk(consumer.name());
        reply.bulk("seen-time");
        reply.integer(consumer.seen_time);
        reply.bulk("active-time");
        reply.integer(consumer.active_time);
        reply.bulk("pel-count");
        reply.count(consumer.pending_count());
        reply.bulk("pending");
        reply.array(consumer.pending_count().min(count));
        for id in consumer.pending(all.clone()).take(count) {
            let nack = group.nack(id);
            reply.array(3);
            reply.bulk(id.text());
            reply.integer(nack.map_or(0, |nack| nack.delivery_time));
            reply.integer(nack.map_or(0, |nack| nack.delivery_count as i64));
        }
    }
}

/// How far a group has read, and how far it is behind.
fn progress(reply: &mut Reply<'_>, stream: &Stream, group: &Group) {
    for (name, number) in [
        ("entries-read", group.entries_read()),
        ("lag", stream.lag(group)),
    ] {
        reply.bulk(name);
        match number {
            Some(number) => reply.integer(number as i64),
            None => reply.null(),
        }
    }
}

pub(super) fn groups(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut keys, reply) = ctx.keys_and_reply();
    let stream = view(&mut keys, &args[2], Look::Read)?.ok_or(CommandError::NO_SUCH_KEY)?;
    reply.array(stream.group_count());
    for (name, group) in stream.groups() {
        reply.map(6);
        reply.bulk("name");
        reply.bulk(name);
        reply.bulk("consumers");
        reply.count(group.consumer_count());
        reply.bulk("pending");
        reply.count(group.pending_count());
        reply.bulk("last-delivered-id");
        reply.bulk(group.last_id().text());
        progress(reply, stream, group);
    }
    Ok(())
}

pub(super) fn consumers(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (key, name) = (&args[2], &args[3]);
    let now_ms = ctx.now.unix_ms() as i64;
    let (mut keys, reply) = ctx.keys_and_reply();
    let stream = view(&mut keys, key, Look::Read)?.ok_or(CommandError::NO_SUCH_KEY)?;
    let group = stream
        .group(name)
        .ok_or_else(|| no_group_for_key(key, name))?;
    reply.array(group.consumer_count());
    for consumer in group.consumers() {
        let inactive = match consumer.active_time {
            -1 => -1,
            time => now_ms.wrapping_sub(time),
        };
        reply.map(4);
        reply.bulk("name");
        reply.bulk(consumer.name());
        reply.bulk("pending");
        reply.count(consumer.pending_count());
        reply.bulk("idle");
        reply.integer(now_ms.wrapping_sub(consumer.seen_time).max(0));
        reply.bulk("inactive");
        reply.integer(inactive);
    }
    Ok(())
}
