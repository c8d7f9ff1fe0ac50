//! EVAL and its relatives, and SCRIPT. What a run consists of is in `engine/script/`.

use crate::base::error::{CommandError, CommandResult};
use crate::commands::help;
use crate::engine::command::{Command, Group, Script, category, flag};
use crate::engine::key_spec::{KeySpec, key};
use crate::engine::script::{self, Compiling, Invocation, Kind, Sha};
use crate::engine::store::ctx::Ctx;
use kumi_resp::Args;

const EVAL: u32 = flag::NOSCRIPT
    | flag::STALE
    | flag::SKIP_MONITOR
    | flag::NO_MANDATORY_KEYS
    | flag::MOVABLE_KEYS;
const READ_WRITE: u16 = key::RW | key::ACCESS | key::UPDATE;
const READ: u16 = key::RO | key::ACCESS;

/// Fields that the rows of this family share.
const BASE: Command = Command {
    categories: category::SCRIPTING,
    group: Group::Scripting,
    since: "2.6.0",
    complexity: "Depends on the script that is executed.",
    ..Command::BASE
};

pub(in crate::commands) const COMMANDS: &[Command] = &[
    Command {
        name: "eval",
        arity: -3,
        script: Some(Script::Source),
        flags: EVAL | flag::MAY_REPLICATE,
        keys: &[KeySpec::counted(2, READ_WRITE).with_notes(
            "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
        )],
        summary: "Runs a Lua script.",
        usage: "script numkeys [key [key ...]] [arg [arg ...]]",
        run: |ctx, args| by_source(ctx, args, false),
        ..BASE
    },
    Command {
        name: "evalsha",
        arity: -3,
        script: Some(Script::Sha),
        flags: EVAL | flag::MAY_REPLICATE,
        keys: &[KeySpec::counted(2, READ_WRITE)],
        summary: "Runs a cached script by its SHA-1.",
        usage: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
        run: |ctx, args| by_sha(ctx, args, false),
        ..BASE
    },
    Command {
        name: "eval_ro",
        arity: -3,
        script: Some(Script::Source),
        flags: EVAL | flag::READONLY,
        keys: &[KeySpec::counted(2, READ).with_notes(
            "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
        )],
        since: "7.0.0",
        summary: "Runs a Lua script that may only read.",
        usage: "script numkeys [key [key ...]] [arg [arg ...]]",
        run: |ctx, args| by_source(ctx, args, true),
        ..BASE
    },
    Command {
        name: "evalsha_ro",
        arity: -3,
        script: Some(Script::Sha),
        flags: EVAL | flag::READONLY,
        keys: &[KeySpec::counted(2, READ)],
        since: "7.0.0",
        summary: "Runs a cached script that may only read by its SHA-1.",
        usage: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
        run: |ctx, args| by_sha(ctx, args, true),
        ..BASE
    },
    Command {
        name: "script",
        arity: -2,
        categories: 0,
        complexity: "Depends on subcommand.",
        summary: "Manages the cache of scripts.",
        subcommands: SCRIPT,
        ..BASE
    },
];

const SCRIPT: &[Command] = &[
    Command {
        name: "load",
        arity: 3,
        flags: flag::NOSCRIPT | flag::STALE,
        complexity: "O(N) with N being the length in bytes of the script body.",
        summary: "Compiles a script into the cache without running it.",
        usage: "script",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: load,
        ..BASE
    },
    Command {
        name: "exists",
        arity: -3,
        flags: flag::NOSCRIPT,
        complexity: "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
        summary: "Answers which scripts are in the cache.",
        usage: "sha1 [sha1 ...]",
        tips: &[
            "request_policy:all_shards",
            "response_policy:agg_logical_and",
        ],
        run: exists,
        ..BASE
    },
    Command {
        name: "flush",
        arity: -2,
        flags: flag::NOSCRIPT,
        complexity: "O(N) with N being the number of scripts in cache",
        summary: "Empties the cache.",
        usage: "[ASYNC|SYNC]",
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        run: flush,
        ..BASE
    },
    Command {
        name: "kill",
        arity: 2,
        flags: flag::NOSCRIPT | flag::ALLOW_BUSY,
        complexity: "O(1)",
        summary: "Ends the script that runs, if it has not written.",
        tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
        run: |ctx, _| kill(ctx, Kind::Eval),
        ..BASE
    },
    Command {
        name: "debug",
        arity: 3,
        flags: flag::NOSCRIPT,
        since: "3.2.0",
        complexity: "O(1)",
        summary: "Is refused: there is no debugger.",
        usage: "YES|SYNC|NO",
        run: debug,
        ..BASE
    },
    Command {
        name: "help",
        arity: 2,
        flags: flag::LOADING | flag::STALE,
        since: "5.0.0",
        complexity: "O(1)",
        summary: "Describes the subcommands.",
        run: help::from_rows,
        ..BASE
    },
];

const NO_SCRIPT: CommandError =
    CommandError::fixed("NOSCRIPT No matching script. Please use EVAL.");

fn by_source(ctx: &mut Ctx<'_>, args: Args<'_>, read_only: bool) -> CommandResult {
    ctx.feed_monitors(args);
    let keys = script::key_count(args)?;
    let sha = Sha::of(&args[1]);
    if !ctx.scripts().contains(&sha) {
        compile(ctx, args, sha, &args[1], false)?;
    }
    evaluate(ctx, args, &sha, keys, read_only)
}

fn by_sha(ctx: &mut Ctx<'_>, args: Args<'_>, read_only: bool) -> CommandResult {
    ctx.feed_monitors(args);
    if args[1].len() != 40 {
        return Err(NO_SCRIPT);
    }
    let keys = script::key_count(args)?;
    let sha = Sha::parse(&args[1]).ok_or(NO_SCRIPT)?;
    evaluate(ctx, args, &sha, keys, read_only)
}

fn evaluate(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    sha: &Sha,
    keys: usize,
    read_only: bool,
) -> CommandResult {
    if !ctx.scripts().contains(sha) {
        return Err(NO_SCRIPT);
    }
    script::with_evaluator(ctx, |ctx, evaluator| {
        let (lua, cached) = evaluator.find(sha).ok_or(NO_SCRIPT)?;
        let invocation = Invocation {
            kind: Kind::Eval,
            name: &sha.hex(),
            flags: cached.flags,
            read_only,
            request: args,
            keys,
        };
        script::run(ctx, lua, &cached.function, &invocation)
    })
}

fn compile(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    sha: Sha,
    source: &[u8],
    keep: bool,
) -> CommandResult {
    let name = sha.hex();
    let loaded = script::with_evaluator(ctx, |ctx, evaluator| {
        let mut compiling = Compiling::new(ctx, Kind::Eval, &name, args);
        let loaded = evaluator.load(sha, source, keep, &mut compiling);
        compiling.end();
        loaded
    });
    loaded.map_err(CommandError::new)
}

fn load(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let sha = Sha::of(&args[2]);
    compile(ctx, args, sha, &args[2], true)?;
    ctx.reply.bulk(sha.hex());
    Ok(())
}

fn exists(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    ctx.reply.array(args.len() - 2);
    for arg in args.iter().skip(2) {
        let known = Sha::parse(arg).is_some_and(|sha| ctx.scripts().contains(&sha));
        ctx.reply.integer(i64::from(known));
    }
    Ok(())
}

fn flush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let known = match args.get(2) {
        None => true,
        Some(mode) => mode.eq_ignore_ascii_case(b"ASYNC") || mode.eq_ignore_ascii_case(b"SYNC"),
    };
    if args.len() > 3 || !known {
        return Err(CommandError::fixed(
            "ERR SCRIPT FLUSH only support SYNC|ASYNC option",
        ));
    }
    ctx.scripts().flush();
    ctx.reply.ok();
    Ok(())
}

/// Ends the slow script of this kind; it notices when it is next interrupted.
pub(super) fn kill(ctx: &mut Ctx<'_>, kind: Kind) -> CommandResult {
    let Some(running) = ctx.scripts().running.as_mut() else {
        return Err(CommandError::fixed(
            "NOTBUSY No scripts in execution right now.",
        ));
    };
    if running.wrote {
        return Err(CommandError::fixed(
            "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.",
        ));
    }
    if running.kind != kind {
        return Err(CommandError::fixed(running.busy_text()));
    }
    running.killed = true;
    ctx.reply.ok();
    Ok(())
}

fn debug(_: &mut Ctx<'_>, args: Args<'_>) -> CommandResult {
    let known = ["YES", "SYNC", "NO"];
    if !known
        .iter()
        .any(|mode| args[2].eq_ignore_ascii_case(mode.as_bytes()))
    {
        return Err(CommandError::fixed("ERR Use SCRIPT DEBUG YES/SYNC/NO"));
    }
    Err(CommandError::fixed(
        "ERR SCRIPT DEBUG does not exist in kumi: there is no debugger for scripts",
    ))
}
