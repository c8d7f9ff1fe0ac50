//! FCALL and FUNCTION. Libraries are in `engine/script/library.rs`.

use super::scripting;
use crate::base::error::{CommandError, CommandResult};
use crate::base::glob;
use crate::commands::help;
use crate::commands::options::OptionReader;
use crate::engine::command::{Command, Group, Script, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::reply::Reply;
use crate::engine::script::{
    self, Compiling, Invocation, Kind, Library, Policy, Registered, script_flag,
};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const CALL: u32 = flag::NOSCRIPT
    | flag::STALE
    | flag::SKIP_MONITOR
    | flag::NO_MANDATORY_KEYS
    | flag::MOVABLE_KEYS;
const CHANGE: u32 = flag::WRITE | flag::NOSCRIPT;
const ON_ALL_SHARDS: &[&str] = &["request_policy:all_shards", "response_policy:all_succeeded"];

/// Fields that the rows of this family share.
const BASE: Command = Command {
    categories: category::SCRIPTING,
    group: Group::Scripting,
    since: "7.0.0",
    ..Command::BASE
};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "fcall",
        arity: -3,
        script: Some(Script::Function),
        flags: CALL | flag::MAY_REPLICATE,
        keys: &[
            KeySpec::counted(2, key::RW | key::ACCESS | key::UPDATE).with_notes(
                "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
            ),
        ],
        complexity: "Depends on the function that is executed.",
        summary: "Calls a function.",
        usage: "function numkeys [key [key ...]] [arg [arg ...]]",
        run: |ctx, args| fcall(ctx, args, false),
        ..BASE
    },
    Command {
        name: "fcall_ro",
        arity: -3,
        script: Some(Script::Function),
        flags: CALL | flag::READONLY,
        keys: &[KeySpec::counted(2, key::RO | key::ACCESS).with_notes(
            "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
        )],
        complexity: "Depends on the function that is executed.",
        summary: "Calls a function that may only read.",
        usage: "function numkeys [key [key ...]] [arg [arg ...]]",
        run: |ctx, args| fcall(ctx, args, true),
        ..BASE
    },
    Command {
        name: "function",
        arity: -2,
        categories: 0,
        complexity: "Depends on subcommand.",
        summary: "Manages libraries of functions.",
        subcommands: FUNCTION,
        ..BASE
    },
];

const FUNCTION: &[Command] = &[
    Command {
        name: "load",
        arity: -3,
        flags: CHANGE | flag::DENYOOM,
        complexity: "O(1) (considering compilation time is redundant)",
        summary: "Loads a library.",
        usage: "[REPLACE] function-code",
        tips: ON_ALL_SHARDS,
        run: load,
        ..BASE
    },
    Command {
        name: "delete",
        arity: 3,
        flags: CHANGE,
        summary: "Deletes a library.",
        usage: "library-name",
        tips: ON_ALL_SHARDS,
        run: delete,
        ..BASE
    },
    Command {
        name: "list",
        arity: -2,
        flags: flag::NOSCRIPT,
        complexity: "O(N) where N is the number of functions",
        summary: "Describes the libraries.",
        usage: "[LIBRARYNAME library-name-pattern] [WITHCODE]",
        tips: &["nondeterministic_output_order"],
        run: list,
        ..BASE
    },
    Command {
        name: "stats",
        arity: 2,
        flags: flag::NOSCRIPT | flag::ALLOW_BUSY,
        summary: "Describes the function that runs, and counts libraries and functions.",
        tips: &[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ],
        run: stats,
        ..BASE
    },
    Command {
        name: "kill",
        arity: 2,
        flags: flag::NOSCRIPT | flag::ALLOW_BUSY,
        summary: "Ends the function that runs, if it has not written.",
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        run: |ctx, _| scripting::kill(ctx, Kind::Function),
        ..BASE
    },
    Command {
        name: "flush",
        arity: -2,
        flags: CHANGE,
        complexity: "O(N) where N is the number of functions deleted",
        summary: "Deletes all libraries.",
        usage: "[ASYNC|SYNC]",
        tips: ON_ALL_SHARDS,
        run: flush,
        ..BASE
    },
    Command {
        name: "dump",
        arity: 2,
        flags: flag::NOSCRIPT,
        complexity: "O(N) where N is the number of functions",
        summary: "Serialises all libraries.",
        run: dump,
        ..BASE
    },
    Command {
        name: "restore",
        arity: -3,
        flags: CHANGE | flag::DENYOOM,
        complexity: "O(N) where N is the number of functions on the payload",
        summary: "Loads the libraries of a payload of FUNCTION DUMP.",
        usage: "serialized-value [FLUSH|APPEND|REPLACE]",
        tips: ON_ALL_SHARDS,
        run: restore,
        ..BASE
    },
    Command {
        name: "help",
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        summary: "Describes the subcommands.",
        run: help::from_rows,
        ..BASE
    },
];

fn fcall(ctx: &mut Ctx<'_>, args: Args<'_>, read_only: bool) -> CommandResult {
    const NOT_FOUND: CommandError = CommandError::fixed("ERR Function not found");
    ctx.feed_monitors(args);
    let libraries = ctx.scripts().take_libraries().ok_or(NOT_FOUND)?;
    script::with_libraries(ctx, libraries, |ctx, libraries| {
        let (lua, registered) = libraries.find(&args[1]).ok_or(NOT_FOUND)?;
        let keys = script::key_count(args).map_err(|error| {
            if error == CommandError::NOT_INTEGER {
                CommandError::fixed("ERR Bad number of keys provided")
            } else {
                error
            }
        })?;
        let invocation = Invocation {
            kind: Kind::Function,
            name: &registered.name,
            flags: registered.flags,
            read_only,
            request: args,
            keys,
        };
        script::run(ctx, lua, &registered.function, &invocation)
    })
}

fn load(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (code, options) = (args.len() - 1, 2..args.len() - 1);
    let mut replace = false;
    for option in options {
        if !args[option].eq_ignore_ascii_case(b"REPLACE") {
            let text = [b"ERR Unknown option given: ", &args[option]].concat();
            return Err(CommandError::new(text));
        }
        replace = true;
    }
    let limit_ns = ctx.load_limit_ns();
    let libraries = ctx.scripts().take_or_make_libraries();
    let loaded = script::with_libraries(ctx, libraries, |ctx, libraries| {
        watched(ctx, args, |host| {
            libraries.load(&args[code], replace, limit_ns, host)
        })
    });
    let name = loaded.map_err(CommandError::new)?;
    ctx.dirty(1);
    ctx.reply.bulk(name);
    Ok(())
}

/// Loads libraries, and serves others while that takes long.
fn watched<T>(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    load: impl FnOnce(&mut Compiling<'_, '_>) -> T,
) -> T {
    let mut compiling = Compiling::new(ctx, Kind::Function, &args[1], args);
    let loaded = load(&mut compiling);
    compiling.end();
    loaded
}

fn delete(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let libraries = ctx.scripts().libraries.as_mut();
    if !libraries.is_some_and(|libraries| libraries.delete(&args[2])) {
        return Err(CommandError::fixed("ERR Library not found"));
    }
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}

fn list(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let (mut with_code, mut pattern) = (false, None);
    let mut options = OptionReader::new(args, 2);
    while let Some(word) = options.word() {
        match &*word {
            b"withcode" if !with_code => with_code = true,
            b"libraryname" if pattern.is_none() => {
                let name = options.argument();
                pattern = Some(name.ok_or(CommandError::fixed(
                    "ERR library name argument was not given",
                ))?);
            }
            _ => {
                let text = [b"ERR Unknown argument ", word.sent].concat();
                return Err(CommandError::new(text));
            }
        }
    }
    let (scripts, reply) = ctx.scripts_and_reply();
    let libraries = scripts.libraries.iter().flat_map(|all| all.iter());
    let wanted: Vec<(&[u8], &Library)> = libraries
        .filter(|(name, _)| pattern.is_none_or(|pattern| glob::matches(pattern, name, true)))
        .collect();
    reply.array(wanted.len());
    for (name, library) in wanted {
        reply.map(if with_code { 4 } else { 3 });
        reply.bulk("library_name");
        reply.bulk(name);
        reply.bulk("engine");
        reply.bulk("LUA");
        reply.bulk("functions");
        reply.array(library.functions.len());
        for registered in &library.functions {
            describe(reply, registered);
        }
        if with_code {
            reply.bulk("library_code");
            reply.bulk(&library.code);
        }
    }
    Ok(())
}

fn describe(reply: &mut Reply<'_>, registered: &Registered) {
    reply.map(3);
    reply.bulk("name");
    reply.bulk(&registered.name);
    reply.bulk("description");
    match &registered.description {
        Some(description) => reply.bulk(description),
        None => reply.null(),
    }
    reply.bulk("flags");
    let names = script_flag::NAMES.iter();
    let set: Vec<&str> = names
        .filter(|(bit, _)| registered.flags & bit != 0)
        .map(|&(_, name)| name)
        .collect();
    reply.set(set.len());
    for name in set {
        reply.simple(name);
    }
}

fn stats(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let now_ns = ctx.host.now().mono_ns;
    let (scripts, reply) = ctx.scripts_and_reply();
    let running = scripts.running.as_ref();
    if let Some(running) = running.filter(|running| running.kind == Kind::Eval) {
        return Err(CommandError::fixed(running.busy_text()));
    }
    reply.map(2);
    reply.bulk("running_script");
    match running {
        None => reply.null(),
        Some(running) => {
            reply.map(3);
            reply.bulk("name");
            reply.bulk(&running.name);
            reply.bulk("command");
            let command = running.command.as_args();
            reply.array(command.len());
            for arg in command {
                reply.bulk(arg);
            }
            reply.bulk("duration_ms");
            let elapsed_ns = now_ns.saturating_sub(running.started_ns);
            reply.integer((elapsed_ns / 1_000_000).cast_signed());
        }
    }
    reply.bulk("engines");
    reply.map(1);
    reply.bulk("LUA");
    reply.map(2);
    let (libraries, functions) = scripts.library_counts();
    reply.bulk("libraries_count");
    reply.count(libraries);
    reply.bulk("functions_count");
    reply.count(functions);
    Ok(())
}

fn flush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 3 {
        return Err(help::wrong_subcommand_arity(args));
    }
    match args.get(2) {
        None => {}
        Some(mode) if mode.eq_ignore_ascii_case(b"ASYNC") || mode.eq_ignore_ascii_case(b"SYNC") => {
        }
        Some(_) => {
            return Err(CommandError::fixed(
                "ERR FUNCTION FLUSH only supports SYNC|ASYNC option",
            ));
        }
    }
    ctx.scripts().libraries = None;
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}

fn dump(ctx: &mut Ctx<'_>, _: Args<'_>) -> CommandResult {
    let mut payload = Vec::new();
    if let Some(libraries) = &ctx.scripts().libraries {
        libraries.dump(&mut payload);
    }
    crate::data::rdb::seal(&mut payload);
    ctx.reply.bulk(payload);
    Ok(())
}

fn restore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    if args.len() > 4 {
        return Err(help::wrong_subcommand_arity(args));
    }
    let policy = match args.get(3).map(<[u8]>::to_ascii_uppercase).as_deref() {
        None | Some(b"APPEND") => Policy::Append,
        Some(b"FLUSH") => Policy::Flush,
        Some(b"REPLACE") => Policy::Replace,
        Some(_) => {
            return Err(CommandError::fixed(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let limit_ns = ctx.load_limit_ns();
    let restored = if policy == Policy::Flush {
        let mut libraries = script::Scripts::new_libraries();
        let restored = watched(ctx, args, |host| {
            libraries.restore(&args[2], false, limit_ns, host)
        });
        if restored.is_ok() {
            ctx.scripts().put_libraries(libraries);
        }
        restored
    } else {
        let libraries = ctx.scripts().take_or_make_libraries();
        script::with_libraries(ctx, libraries, |ctx, libraries| {
            watched(ctx, args, |host| {
                libraries.restore(&args[2], policy == Policy::Replace, limit_ns, host)
            })
        })
    };
    restored.map_err(CommandError::new)?;
    ctx.dirty(1);
    ctx.reply.ok();
    Ok(())
}
