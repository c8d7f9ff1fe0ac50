//! COMMAND: the command table, as data for clients.

mod usage;

use crate::base::error::{CommandError, CommandResult};
use crate::base::glob;
use crate::base::ids::CommandId;
use crate::commands::help;
use crate::engine::command::{Command, CommandIndex, Indexed, category, flag};
use crate::engine::key_spec::{Begin, Find, KeySpec, key, legacy_range};
use crate::engine::reply::Reply;
use crate::engine::store::ctx::{Ctx, Parts};
use kumi_resp::Args;
use usage::{Argument, Shape};

const FLAGS: u32 = flag::LOADING | flag::STALE;

pub(in crate::commands) const COMMANDS: &[Command] = &[Command {
    name: "command",
    arity: -1,
    flags: FLAGS,
    categories: category::CONNECTION,
    since: "2.8.13",
    complexity: "O(N) where N is the total number of Redis commands",
    summary: "Describes all commands.",
    tips: &["nondeterministic_output_order"],
    run: info,
    subcommands: SUBCOMMANDS,
    ..Command::BASE
}];

const SUB: Command = Command {
    arity: -2,
    flags: FLAGS,
    categories: category::CONNECTION,
    since: "2.8.13",
    ..Command::BASE
};

const SUBCOMMANDS: &[Command] = &[
    Command {
        name: "count",
        arity: 2,
        summary: "Returns how many commands there are.",
        run: count,
        ..SUB
    },
    Command {
        name: "docs",
        since: "7.0.0",
        complexity: "O(N) where N is the number of commands to look up",
        summary: "Returns what the given commands are for and how they are called.",
        usage: "[command-name [command-name ...]]",
        tips: &["nondeterministic_output_order"],
        run: docs,
        ..SUB
    },
    Command {
        name: "getkeys",
        arity: -3,
        complexity: "O(N) where N is the number of arguments to the command",
        summary: "Returns which arguments of a command are keys.",
        usage: "command [arg [arg ...]]",
        run: getkeys,
        ..SUB
    },
    Command {
        name: "getkeysandflags",
        arity: -3,
        since: "7.0.0",
        complexity: "O(N) where N is the number of arguments to the command",
        summary: "Returns which arguments of a command are keys, and what happens to each.",
        usage: "command [arg [arg ...]]",
        run: getkeysandflags,
        ..SUB
    },
    Command {
        name: "info",
        complexity: "O(N) where N is the number of commands to look up",
        summary: "Returns the facts a client needs about the given commands.",
        usage: "[command-name [command-name ...]]",
        tips: &["nondeterministic_output_order"],
        run: info,
        ..SUB
    },
    Command {
        name: "list",
        since: "7.0.0",
        complexity: "O(N) where N is the total number of Redis commands",
        summary: "Returns the names of commands.",
        usage: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
        tips: &["nondeterministic_output_order"],
        run: list,
        ..SUB
    },
    Command {
        name: "help",
        arity: 2,
        since: "5.0.0",
        summary: "Describes the subcommands.",
        run: help::from_rows,
        ..SUB
    },
];

fn count(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let commands = top_level(ctx.index()).count();
    ctx.reply.count(commands);
    Ok(())
}

fn docs(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Parts { index, reply, .. } = ctx.parts();
    let ids: Vec<CommandId> = if args.len() == 2 {
        top_level(index).collect()
    } else {
        let names = args.iter().skip(2);
        names.filter_map(|name| index.find_full(name)).collect()
    };
    reply.map(ids.len());
    for id in ids {
        describe(reply, index, id);
    }
    Ok(())
}

fn getkeys(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let keys = keys_of(ctx.index(), args.tail(2))?;
    ctx.reply.array(keys.len());
    for (key, _) in keys {
        ctx.reply.bulk(key);
    }
    Ok(())
}

fn getkeysandflags(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let keys = keys_of(ctx.index(), args.tail(2))?;
    ctx.reply.array(keys.len());
    for (key, flags) in keys {
        ctx.reply.array(2);
        ctx.reply.bulk(key);
        words(&mut ctx.reply, &flags);
    }
    Ok(())
}

fn info(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Parts { index, reply, .. } = ctx.parts();
    if args.len() <= 2 {
        reply.array(top_level(index).count());
        for id in top_level(index) {
            facts(reply, index, index.get(id));
        }
        return Ok(());
    }
    reply.array(args.len() - 2);
    for name in args.iter().skip(2) {
        match index.find_full(name) {
            Some(id) => facts(reply, index, index.get(id)),
            None => reply.null(),
        }
    }
    Ok(())
}

fn list(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let Parts { index, reply, .. } = ctx.parts();
    let wanted: Vec<&Indexed> = match args.len() {
        2 => index.iter().map(|(_, indexed)| indexed).collect(),
        5 if args[2].eq_ignore_ascii_case(b"FILTERBY") => {
            let filter = Filter::parse(&args[3], &args[4]).ok_or(CommandError::SYNTAX)?;
            let all = index.iter().map(|(_, indexed)| indexed);
            all.filter(|indexed| filter.admits(indexed)).collect()
        }
        _ => return Err(CommandError::SYNTAX),
    };
    reply.array(wanted.len());
    for indexed in wanted {
        reply.bulk(&*indexed.full_name);
    }
    Ok(())
}

/// The filter of COMMAND LIST FILTERBY.
enum Filter<'a> {
    /// Matches no command, because there are no modules.
    Module,
    Category(&'a [u8]),
    Pattern(&'a [u8]),
}

impl<'a> Filter<'a> {
    fn parse(kind: &[u8], value: &'a [u8]) -> Option<Self> {
        match kind.to_ascii_uppercase().as_slice() {
            b"MODULE" => Some(Self::Module),
            b"ACLCAT" => Some(Self::Category(value)),
            b"PATTERN" => Some(Self::Pattern(value)),
            _ => None,
        }
    }

    fn admits(&self, indexed: &Indexed) -> bool {
        match self {
            Self::Module => false,
            Self::Category(wanted) => {
                let categories = indexed.row.acl_categories();
                let mut names = categories.iter();
                names.any(|name| name.as_bytes().eq_ignore_ascii_case(wanted))
            }
            Self::Pattern(pattern) => glob::matches(pattern, indexed.full_name.as_bytes(), true),
        }
    }
}

fn top_level(index: &CommandIndex) -> impl Iterator<Item = CommandId> {
    let containers = index.iter().filter(|(_, indexed)| indexed.parent.is_none());
    containers.map(|(id, _)| id)
}

/// A key and what happens to it, in COMMAND INFO's words.
type KeyUse<'a> = (&'a [u8], Vec<&'static str>);

/// The keys of a request, each with what the command does to it.
fn keys_of<'a>(index: &CommandIndex, request: Args<'a>) -> Result<Vec<KeyUse<'a>>, CommandError> {
    let id = index
        .find_request(request)
        .ok_or(CommandError::fixed("ERR Invalid command specified"))?;
    let row = index.get(id).row;
    if !row.keys.iter().any(KeySpec::names_keys) {
        return Err(CommandError::fixed("ERR The command has no key arguments"));
    }
    if !row.accepts(request.len()) {
        return Err(CommandError::fixed(
            "ERR Invalid number of arguments specified for command",
        ));
    }
    let mut keys = Vec::new();
    for spec in row.keys.iter().filter(|spec| spec.names_keys()) {
        let flags = key::names(spec.flags_in(request));
        let Some(positions) = spec.positions(request) else {
            if row.has(flag::NO_MANDATORY_KEYS) {
                return Ok(Vec::new());
            }
            return Err(CommandError::fixed(
                "ERR Invalid arguments specified for command",
            ));
        };
        let named = positions.filter_map(|position| request.get(position));
        keys.extend(named.map(|key| (key, flags.clone())));
    }
    Ok(keys)
}

/// A set of status words.
fn words<W: AsRef<str>>(reply: &mut Reply, words: &[W]) {
    reply.set(words.len());
    for word in words {
        reply.simple(word.as_ref());
    }
}

/// An entry of COMMAND INFO.
fn facts(reply: &mut Reply, index: &CommandIndex, indexed: &Indexed) {
    let row = indexed.row;
    reply.array(10);
    reply.bulk(&*indexed.full_name);
    reply.integer(i64::from(row.arity));
    let ((first, last, step), movable) = legacy_range(row.keys);
    let movable = if movable { flag::MOVABLE_KEYS } else { 0 };
    let flags: Vec<&str> = flag::NAMES
        .iter()
        .filter(|(bit, _)| (row.flags | movable) & bit != 0)
        .map(|&(_, name)| name)
        .collect();
    words(reply, &flags);
    for number in [first, last, step] {
        reply.integer(i64::from(number));
    }
    let categories = row.acl_categories().into_iter();
    let categories: Vec<String> = categories.map(|name| format!("@{name}")).collect();
    words(reply, &categories);
    reply.set(row.tips.len());
    for tip in row.tips {
        reply.bulk(tip);
    }
    reply.set(row.keys.len());
    for spec in row.keys {
        key_spec(reply, spec);
    }
    // Redis writes a set when there are none and an array when there are some.
    if indexed.subcommands.is_empty() {
        reply.set(0);
    } else {
        reply.array(indexed.subcommands.len());
    }
    for &id in &indexed.subcommands {
        facts(reply, index, index.get(id));
    }
}

fn key_spec(reply: &mut Reply, spec: &KeySpec) {
    reply.map(3 + usize::from(spec.notes.is_some()));
    if let Some(notes) = spec.notes {
        reply.bulk("notes");
        reply.bulk(notes);
    }
    reply.bulk("flags");
    words(reply, &key::names(spec.flags));
    reply.bulk("begin_search");
    reply.map(2);
    reply.bulk("type");
    match spec.begin {
        Begin::Index(index) => {
            reply.bulk("index");
            reply.bulk("spec");
            numbers(reply, &[("index", index)]);
        }
        Begin::Keyword { word, from } => {
            reply.bulk("keyword");
            reply.bulk("spec");
            reply.map(2);
            reply.bulk("keyword");
            reply.bulk(word);
            reply.bulk("startfrom");
            reply.integer(i64::from(from));
        }
        Begin::Unknown => {
            reply.bulk("unknown");
            reply.bulk("spec");
            reply.map(0);
        }
    }
    reply.bulk("find_keys");
    reply.map(2);
    reply.bulk("type");
    match spec.find {
        Find::Range { last, step, limit } => {
            reply.bulk("range");
            reply.bulk("spec");
            let fields = [("lastkey", last), ("keystep", step), ("limit", limit)];
            numbers(reply, &fields);
        }
        Find::KeyNumber {
            number,
            first,
            step,
        } => {
            reply.bulk("keynum");
            reply.bulk("spec");
            let fields = [
                ("keynumidx", number),
                ("firstkey", first),
                ("keystep", step),
            ];
            numbers(reply, &fields);
        }
        Find::Unknown | Find::SortStore => {
            reply.bulk("unknown");
            reply.bulk("spec");
            reply.map(0);
        }
    }
}

/// A map from names to integers.
fn numbers(reply: &mut Reply, fields: &[(&str, i32)]) {
    reply.map(fields.len());
    for (name, number) in fields {
        reply.bulk(name);
        reply.integer(i64::from(*number));
    }
}

/// An entry of COMMAND DOCS: the full name and a map.
fn describe(reply: &mut Reply, index: &CommandIndex, id: CommandId) {
    let indexed = index.get(id);
    let row = indexed.row;
    let arguments = usage::parse(row.usage);
    reply.bulk(&*indexed.full_name);
    let texts = [
        ("summary", row.summary),
        ("since", row.since),
        ("group", row.group.name()),
        ("complexity", row.complexity),
    ];
    let texts = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let fields = texts.clone().count()
        + row.deprecated.map_or(0, |_| 3)
        + usize::from(!arguments.is_empty())
        + usize::from(!indexed.subcommands.is_empty());
    reply.map(fields);
    for (name, text) in texts {
        reply.bulk(name);
        reply.bulk(text);
    }
    if let Some((since, replacement)) = row.deprecated {
        reply.bulk("doc_flags");
        words(reply, &["deprecated"]);
        reply.bulk("deprecated_since");
        reply.bulk(since);
        reply.bulk("replaced_by");
        reply.bulk(replacement);
    }
    if !arguments.is_empty() {
        reply.bulk("arguments");
        argument_list(reply, &arguments, &mut 0);
    }
    if !indexed.subcommands.is_empty() {
        reply.bulk("subcommands");
        reply.map(indexed.subcommands.len());
        for &id in &indexed.subcommands {
            describe(reply, index, id);
        }
    }
}

/// The arguments of a command. `next_key` numbers those that are keys, in the order of the specs.
fn argument_list(reply: &mut Reply, arguments: &[Argument], next_key: &mut i64) {
    reply.array(arguments.len());
    for argument in arguments {
        let kind = argument.kind();
        let is_key = kind == "key";
        let parts: &[Argument] = match &argument.shape {
            Shape::OneOf(parts) | Shape::Block(parts) => parts,
            Shape::Value | Shape::Token => &[],
        };
        let flags = argument.flags();
        let shown = parts.is_empty();
        let fields = 2 + [
            shown,
            is_key,
            argument.token.is_some(),
            !flags.is_empty(),
            !parts.is_empty(),
        ]
        .into_iter()
        .filter(|&present| present)
        .count();
        reply.map(fields);
        reply.bulk("name");
        reply.bulk(&argument.name);
        reply.bulk("type");
        reply.bulk(kind);
        if shown {
            reply.bulk("display_text");
            reply.bulk(&argument.name);
        }
        if is_key {
            reply.bulk("key_spec_index");
            reply.integer(*next_key);
            *next_key += 1;
        }
        if let Some(token) = argument.token {
            reply.bulk("token");
            reply.bulk(token);
        }
        if !flags.is_empty() {
            reply.bulk("flags");
            words(reply, &flags);
        }
        if !parts.is_empty() {
            reply.bulk("arguments");
            argument_list(reply, parts, next_key);
        }
    }
}

#[cfg(test)]
mod tests;
