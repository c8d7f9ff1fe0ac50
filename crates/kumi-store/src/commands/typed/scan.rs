//! Going through the keys: SCAN a few at a time, KEYS all at once, RANDOMKEY a random one.
//!
//! A SCAN cursor is a position among the hashes, so nothing is remembered between calls and any number is
//! a valid cursor. A key that is there from the first call to the last is shown at least once, however the
//! table grows or shrinks meanwhile; one that comes or goes may be shown or not.

use super::keys::type_name;
use crate::base::error::{CommandError, CommandResult};
use crate::base::glob;
use crate::base::number::{format_u64, parse_cursor};
use crate::commands::options::OptionReader;
use crate::commands::parse;
use crate::data::keyspace::{Entry, Keys};
use crate::engine::command::{Command, Group, category, flag};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::Ctx;
use kumi_resp::{Args, encode};

const BASE: Command = Command {
    flags: flag::READONLY,
    categories: category::KEYSPACE,
    group: Group::Generic,
    ..Command::BASE
};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "scan",
        arity: -2,
        since: "2.8.0",
        complexity: "O(1) for a call with the default count, O(N) for all N keys.",
        summary: "Goes through the keys of the database a few at a time.",
        usage: "cursor [MATCH pattern] [COUNT count] [TYPE type]",
        tips: &[
            "nondeterministic_output",
            "request_policy:special",
            "response_policy:special",
        ],
        run: scan,
        ..BASE
    },
    Command {
        name: "keys",
        arity: 2,
        categories: category::KEYSPACE | category::DANGEROUS,
        complexity: "O(N), N being the number of keys in the database.",
        summary: "Lists all keys that match a pattern.",
        usage: "pattern",
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        run: keys,
        ..BASE
    },
    Command {
        name: "randomkey",
        arity: 1,
        summary: "Returns a random key of the database.",
        tips: &[
            "request_policy:all_shards",
            "response_policy:special",
            "nondeterministic_output",
        ],
        run: randomkey,
        ..BASE
    },
];

fn scan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let cursor = parse_cursor(&args[1]).ok_or(CommandError::fixed("ERR invalid cursor"))?;
    let options = Options::parse(args.tail(2))?;
    // The next cursor comes before the keys, and is known only after them.
    let (mut shown, mut encoded) = (0, Vec::new());
    // Asking for an expired key's type removes it, whatever that type is.
    let looked_at = |entry: &Entry| options.pattern.matches(entry.key());
    let next = ctx.keys().scan(cursor, options.count, looked_at, |entry| {
        if options.wants_type(type_name(entry)) {
            encode::bulk(&mut encoded, entry.key());
            shown += 1;
        }
    });
    ctx.reply.array(2);
    ctx.reply.bulk(&*format_u64(next));
    ctx.reply.array(shown);
    ctx.reply.encoded(&encoded);
    Ok(())
}

fn keys(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let pattern = Pattern::new(&args[1]);
    let (keys, reply) = ctx.keys_and_reply();
    list_keys(&keys, reply, |key| pattern.matches(key));
    Ok(())
}

/// Replies with the keys that are wanted. As in Redis it ends when the client is over its output limit: the client is closed,
/// and others wait.
fn list_keys(keys: &Keys<'_>, reply: &mut Reply<'_>, mut wanted: impl FnMut(&[u8]) -> bool) {
    let deferred = reply.defer();
    let mut shown = 0;
    for entry in keys.iter() {
        if wanted(entry.key()) {
            reply.bulk(entry.key());
            shown += 1;
            if reply.is_over_limit() {
                break;
            }
        }
    }
    reply.finish_array(deferred, shown);
}

fn randomkey(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let mut rng = ctx.fork_rng();
    match ctx.keys().random(&mut rng) {
        None => ctx.reply.null(),
        Some(key) => ctx.reply.bulk(key),
    }
    Ok(())
}

/// A glob, or none where it would match everything.
#[derive(Debug)]
pub(super) struct Pattern<'a>(Option<&'a [u8]>);

impl<'a> Pattern<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self((text != b"*").then_some(text))
    }

    pub(super) fn matches(&self, key: &[u8]) -> bool {
        self.0
            .is_none_or(|pattern| glob::matches(pattern, key, false))
    }
}

#[derive(Debug)]
pub(super) struct Options<'a> {
    pub(super) pattern: Pattern<'a>,
    pub(super) count: u64,
    type_name: Option<&'a [u8]>,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self {
            pattern: Pattern(None),
            count: 10,
            type_name: None,
        };
        let mut reader = OptionReader::new(args, 0);
        while let Some(word) = reader.word() {
            let value = reader.value()?;
            match &*word {
                b"match" => options.pattern = Pattern::new(value),
                b"count" => options.count = count(value)?,
                b"type" => options.type_name = Some(value),
                _ => return Err(CommandError::SYNTAX),
            }
        }
        Ok(options)
    }

    /// The options of a scan through one collection, which has no TYPE.
    pub(super) fn parse_of_elements(args: Args<'a>) -> Result<Self, CommandError> {
        let options = Self::parse(args)?;
        match options.type_name {
            None => Ok(options),
            Some(_) => Err(CommandError::SYNTAX),
        }
    }

    fn wants_type(&self, type_name: &str) -> bool {
        let wanted = |name: &[u8]| name.eq_ignore_ascii_case(type_name.as_bytes());
        self.type_name.is_none_or(wanted)
    }
}

fn count(text: &[u8]) -> Result<u64, CommandError> {
    let count = parse::integer(text)?;
    let count = u64::try_from(count).ok().filter(|&count| count > 0);
    count.ok_or(CommandError::SYNTAX)
}

#[cfg(test)]
mod tests;
