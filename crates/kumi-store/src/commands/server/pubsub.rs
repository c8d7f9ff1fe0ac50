//! Publish and subscribe: channels, patterns and shard channels.
//!
//! A confirmation is a push even when it answers a command, so it reaches a client that turned
//! its replies off.

use crate::base::error::{CommandError, CommandResult};
use crate::base::glob;
use crate::engine::command::{Channels, Command, Group, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::pubsub::Kind;
use crate::engine::session::{ReplyMode, Subscriptions};
use crate::engine::store::ctx::Ctx;
use crate::engine::store::delivery::Message;
use kumi_resp::{Args, encode};
use std::collections::BTreeSet;

const SUBSCRIBE: u32 =
    flag::PUBSUB | flag::NOSCRIPT | flag::LOADING | flag::STALE | flag::WHILE_SUBSCRIBED;
const PUBLISH: u32 = flag::PUBSUB | flag::LOADING | flag::STALE | flag::FAST | flag::MAY_REPLICATE;
const INSPECT: u32 = flag::PUBSUB | flag::LOADING | flag::STALE;

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "subscribe",
        arity: -2,
        flags: SUBSCRIBE,
        channels: Channels::All,
        group: Group::Pubsub,
        since: "2.0.0",
        complexity: "O(N) where N is the number of channels to subscribe to.",
        summary: "Listens to channels.",
        usage: "channel [channel ...]",
        run: subscribe,
        ..Command::BASE
    },
    Command {
        name: "unsubscribe",
        arity: -1,
        flags: SUBSCRIBE,
        group: Group::Pubsub,
        since: "2.0.0",
        complexity: "O(N) where N is the number of clients already subscribed to a channel.",
        summary: "Stops listening to channels, or to all of them.",
        usage: "[channel [channel ...]]",
        run: unsubscribe,
        ..Command::BASE
    },
    Command {
        name: "psubscribe",
        arity: -2,
        flags: SUBSCRIBE,
        channels: Channels::Patterns,
        group: Group::Pubsub,
        since: "2.0.0",
        complexity: "O(N) where N is the number of patterns the client is already subscribed to.",
        summary: "Listens to every channel that matches a pattern.",
        usage: "pattern [pattern ...]",
        run: psubscribe,
        ..Command::BASE
    },
    Command {
        name: "punsubscribe",
        arity: -1,
        flags: SUBSCRIBE,
        group: Group::Pubsub,
        since: "2.0.0",
        complexity: "O(N+M) where N is the number of patterns the client is already subscribed and M is the number of total patterns subscribed in the system (by any client).",
        summary: "Stops listening to patterns, or to all of them.",
        usage: "[pattern [pattern ...]]",
        run: punsubscribe,
        ..Command::BASE
    },
    Command {
        name: "ssubscribe",
        arity: -2,
        flags: SUBSCRIBE,
        keys: &[KeySpec::rest(1, key::NOT_KEY)],
        channels: Channels::All,
        group: Group::Pubsub,
        since: "7.0.0",
        complexity: "O(N) where N is the number of shard channels to subscribe to.",
        summary: "Listens to shard channels.",
        usage: "shardchannel [shardchannel ...]",
        run: ssubscribe,
        ..Command::BASE
    },
    Command {
        name: "sunsubscribe",
        arity: -1,
        flags: SUBSCRIBE,
        keys: &[KeySpec::rest(1, key::NOT_KEY)],
        group: Group::Pubsub,
        since: "7.0.0",
        complexity: "O(N) where N is the number of clients already subscribed to a shard channel.",
        summary: "Stops listening to shard channels, or to all of them.",
        usage: "[shardchannel [shardchannel ...]]",
        run: sunsubscribe,
        ..Command::BASE
    },
    Command {
        name: "publish",
        arity: 3,
        flags: PUBLISH,
        channels: Channels::First,
        group: Group::Pubsub,
        since: "2.0.0",
        complexity: "O(N+M) where N is the number of clients subscribed to the receiving channel and M is the total number of subscribed patterns (by any client).",
        summary: "Sends a message to everybody who listens to a channel.",
        usage: "channel message",
        run: publish,
        ..Command::BASE
    },
    Command {
        name: "spublish",
        arity: 3,
        flags: PUBLISH,
        keys: &[KeySpec::one(1, key::NOT_KEY)],
        channels: Channels::First,
        group: Group::Pubsub,
        since: "7.0.0",
        complexity: "O(N) where N is the number of clients subscribed to the receiving shard channel.",
        summary: "Sends a message to everybody who listens to a shard channel.",
        usage: "shardchannel message",
        run: spublish,
        ..Command::BASE
    },
    Command {
        name: "pubsub",
        arity: -2,
        group: Group::Pubsub,
        since: "2.8.0",
        complexity: "Depends on subcommand.",
        summary: "Looks at who listens to what.",
        subcommands: PUBSUB,
        ..Command::BASE
    },
];

const PUBSUB: &[Command] = &[
    Command {
        name: "channels",
        arity: -2,
        flags: INSPECT,
        group: Group::Pubsub,
        since: "2.8.0",
        complexity: "O(N) where N is the number of active channels, and assuming constant time pattern matching (relatively short channels and patterns)",
        summary: "Lists channels with at least one subscriber.",
        usage: "[pattern]",
        run: channels,
        ..Command::BASE
    },
    Command {
        name: "numsub",
        arity: -2,
        flags: INSPECT,
        group: Group::Pubsub,
        since: "2.8.0",
        complexity: "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
        summary: "Counts the listeners of channels.",
        usage: "[channel [channel ...]]",
        run: numsub,
        ..Command::BASE
    },
    Command {
        name: "numpat",
        arity: 2,
        flags: INSPECT,
        group: Group::Pubsub,
        since: "2.8.0",
        summary: "Counts the patterns with at least one subscriber.",
        run: numpat,
        ..Command::BASE
    },
    Command {
        name: "shardchannels",
        arity: -2,
        flags: INSPECT,
        group: Group::Pubsub,
        since: "7.0.0",
        complexity: "O(N) where N is the number of active shard channels, and assuming constant time pattern matching (relatively short shard channels).",
        summary: "Lists shard channels with at least one subscriber.",
        usage: "[pattern]",
        run: shardchannels,
        ..Command::BASE
    },
    Command {
        name: "shardnumsub",
        arity: -2,
        flags: INSPECT,
        group: Group::Pubsub,
        since: "7.0.0",
        complexity: "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
        summary: "Counts the listeners of shard channels.",
        usage: "[shardchannel [shardchannel ...]]",
        run: shardnumsub,
        ..Command::BASE
    },
    Command {
        name: "help",
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        group: Group::Pubsub,
        since: "6.2.0",
        summary: "Describes the subcommands.",
        run: crate::commands::help::from_rows,
        ..Command::BASE
    },
];

fn subscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    subscribe_to(ctx, Kind::Channel, args)
}

fn unsubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    unsubscribe_from(ctx, Kind::Channel, args)
}

fn psubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    subscribe_to(ctx, Kind::Pattern, args)
}

fn punsubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    unsubscribe_from(ctx, Kind::Pattern, args)
}

fn ssubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if ctx.in_exec {
        return Err(CommandError::fixed(
            "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client",
        ));
    }
    subscribe_to(ctx, Kind::ShardChannel, args)
}

fn sunsubscribe(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    unsubscribe_from(ctx, Kind::ShardChannel, args)
}

fn publish(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let receivers = ctx.publish(Kind::Channel, &args[1], message(args));
    ctx.reply.count(receivers);
    Ok(())
}

fn spublish(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let receivers = ctx.publish(Kind::ShardChannel, &args[1], message(args));
    ctx.reply.count(receivers);
    Ok(())
}

fn message(args: Args<'_>) -> Message<'_> {
    match args.shared(2) {
        Some(bytes) => Message::Shared(bytes),
        None => Message::Bytes(args.get(2).unwrap_or_default()),
    }
}

fn channels(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list_names(ctx, Kind::Channel, args)
}

fn numsub(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    count_listeners(ctx, Kind::Channel, args)
}

fn numpat(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let patterns = ctx.pubsub().pattern_count();
    ctx.reply.count(patterns);
    Ok(())
}

fn shardchannels(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    list_names(ctx, Kind::ShardChannel, args)
}

fn shardnumsub(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    count_listeners(ctx, Kind::ShardChannel, args)
}

fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Channel => ("subscribe", "unsubscribe"),
        Kind::Pattern => ("psubscribe", "punsubscribe"),
        Kind::ShardChannel => ("ssubscribe", "sunsubscribe"),
    }
}

fn names_of(subscriptions: &mut Subscriptions, kind: Kind) -> &mut BTreeSet<Box<[u8]>> {
    match kind {
        Kind::Channel => &mut subscriptions.channels,
        Kind::Pattern => &mut subscriptions.patterns,
        Kind::ShardChannel => &mut subscriptions.shard_channels,
    }
}

fn subscribe_to(ctx: &mut Ctx<'_>, kind: Kind, args: Args<'_>) -> CommandResult {
    for name in args.iter().skip(1) {
        if names_of(&mut ctx.session().subscriptions, kind).insert(name.into()) {
            ctx.session().count_name(name);
            ctx.listen(kind, name);
        }
        confirm(ctx, kind, words(kind).0, Some(name));
    }
    Ok(())
}

fn unsubscribe_from(ctx: &mut Ctx<'_>, kind: Kind, args: Args<'_>) -> CommandResult {
    let names: Vec<Box<[u8]>> = if args.len() > 1 {
        args.iter().skip(1).map(Box::from).collect()
    } else {
        names_of(&mut ctx.session().subscriptions, kind)
            .iter()
            .cloned()
            .collect()
    };
    if names.is_empty() {
        confirm(ctx, kind, words(kind).1, None);
    }
    for name in names {
        if names_of(&mut ctx.session().subscriptions, kind).remove(&name) {
            ctx.session().uncount_name(&name);
            ctx.stop_listening(kind, &name);
        }
        confirm(ctx, kind, words(kind).1, Some(&name));
    }
    Ok(())
}

/// Writes a confirmation: into the command's reply, or as a push when the client has turned replies
/// off.
fn confirm(ctx: &mut Ctx<'_>, kind: Kind, word: &str, name: Option<&[u8]>) {
    let session = ctx.session();
    let count = match kind {
        Kind::Channel | Kind::Pattern => session.subscriptions.count(),
        Kind::ShardChannel => session.subscriptions.shard_channels.len(),
    };
    let protocol = session.protocol;
    let mut push = Vec::with_capacity(64);
    encode::push(&mut push, protocol, 3);
    encode::bulk(&mut push, word.as_bytes());
    match name {
        Some(name) => encode::bulk(&mut push, name),
        None => encode::null(&mut push, protocol),
    }
    encode::integer(&mut push, i64::try_from(count).unwrap_or(i64::MAX));
    match session.modes.reply_mode {
        ReplyMode::Off | ReplyMode::SkipThis => {
            let key = ctx.session;
            ctx.reply.outputs().push(key, &push);
        }
        ReplyMode::On | ReplyMode::SkipNext => ctx.reply.encoded(&push),
    }
}

fn list_names(ctx: &mut Ctx<'_>, kind: Kind, args: Args<'_>) -> CommandResult {
    if args.len() > 3 {
        return Err(crate::commands::help::wrong_subcommand_arity(args));
    }
    let pattern = args.get(2);
    let names: Vec<Vec<u8>> = ctx
        .pubsub()
        .names(kind)
        .filter(|name| pattern.is_none_or(|pattern| glob::matches(pattern, name, false)))
        .map(<[u8]>::to_vec)
        .collect();
    ctx.reply.array(names.len());
    for name in names {
        ctx.reply.bulk(name);
    }
    Ok(())
}

fn count_listeners(ctx: &mut Ctx<'_>, kind: Kind, args: Args<'_>) -> CommandResult {
    ctx.reply.array((args.len() - 2) * 2);
    for name in args.iter().skip(2) {
        ctx.reply.bulk(name);
        ctx.reply.count(ctx.pubsub().subscribers(kind, name).len());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
