//! One run of a script or function: the checks before it, its keys and arguments, and its outcome as a reply.

use super::bridge::Bridge;
use super::values;
use super::{ScriptFlags, script_flag};
use crate::base::error::{CommandError, CommandResult, error_code};
use crate::engine::store::ctx::Ctx;
use kumi_lua::{Function, Lua, ScriptError, TableId, Value};
use kumi_resp::{Args, Protocol};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// EVAL and its relatives: keys and arguments are globals.
    Eval,
    /// FCALL: keys and arguments are the function's arguments.
    Function,
}

/// A script or function with everything its run needs.
#[derive(Debug)]
pub(crate) struct Invocation<'i> {
    pub(crate) kind: Kind,
    /// The function's name, or the script's SHA-1 in hexadecimal.
    pub(crate) name: &'i [u8],
    pub(crate) flags: ScriptFlags,
    /// By a command that may not write.
    pub(crate) read_only: bool,
    /// The request: `EVAL script numkeys key... arg...`.
    pub(crate) request: Args<'i>,
    pub(crate) keys: usize,
}

/// The number of keys in the third argument of EVAL and FCALL.
///
/// # Errors
/// It is no number, negative, or larger than the request.
pub(crate) fn key_count(args: Args<'_>) -> Result<usize, CommandError> {
    let count = crate::base::number::parse_i64(&args[2]).ok_or(CommandError::NOT_INTEGER)?;
    let given = args.len() - 3;
    match usize::try_from(count) {
        Ok(count) if count <= given => Ok(count),
        Ok(_) => Err(CommandError::fixed(
            "ERR Number of keys can't be greater than number of args",
        )),
        Err(_) => Err(CommandError::fixed("ERR Number of keys can't be negative")),
    }
}

/// Runs a compiled function and writes its reply.
///
/// # Errors
/// A script that may not run now, or that failed by itself.
pub(crate) fn run(
    ctx: &mut Ctx<'_>,
    lua: &mut Lua,
    function: &Function,
    invocation: &Invocation<'_>,
) -> CommandResult {
    // A script's effects are propagated, never the script; also if it fails half way.
    ctx.mark_propagated();
    let out_of_memory = ctx.is_out_of_memory();
    admit(invocation, out_of_memory)?;
    let exempt = script_flag::UNDECLARED | script_flag::NO_WRITES;
    if invocation.flags & exempt == 0 && ctx.disk_error().is_some() {
        return Err(CommandError::fixed(
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Writable scripts are blocked. Use 'no-writes' flag for read only scripts.",
        ));
    }
    let keys = list(lua, invocation.request.tail(3), 0, invocation.keys);
    let count = invocation.request.len() - 3;
    let args = list(lua, invocation.request.tail(3), invocation.keys, count);
    let arguments = [Value::Table(keys), Value::Table(args)];
    let arguments = match invocation.kind {
        Kind::Function => &arguments[..],
        Kind::Eval => {
            let globals = lua.globals();
            lua.set_field(globals, b"KEYS", arguments[0]);
            lua.set_field(globals, b"ARGV", arguments[1]);
            &[]
        }
    };
    let outer = (ctx.in_exec, ctx.db, ctx.running);
    (ctx.in_exec, ctx.in_script) = (true, true);
    let mut bridge = Bridge::new(ctx, invocation, out_of_memory);
    let call = || {
        lua.call(&mut bridge, function, arguments)
            .map(|results| results.first().copied().unwrap_or_default())
    };
    let outcome = catch_unwind(AssertUnwindSafe(call));
    let protocol = bridge.end();
    (ctx.in_exec, ctx.db, ctx.running) = outer;
    ctx.in_script = false;
    // A database that the script selected was its own choice only.
    ctx.session().db = outer.1;
    ctx.mark_propagated();
    match outcome.unwrap_or_else(|panic| resume_unwind(panic)) {
        Ok(value) => answer(ctx, lua, value, protocol),
        Err(error) => fail(ctx, lua, &error, invocation.name),
    }
}

/// What a script with declared flags is checked for before it begins.
fn admit(invocation: &Invocation<'_>, out_of_memory: bool) -> CommandResult {
    let flags = invocation.flags;
    if flags & script_flag::UNDECLARED != 0 {
        return Ok(());
    }
    if invocation.read_only && flags & script_flag::NO_WRITES == 0 {
        return Err(CommandError::fixed(
            "ERR Can not execute a script with write flag using *_ro command.",
        ));
    }
    // Outside EXEC it was refused before, like any command that uses memory.
    if out_of_memory && flags & (script_flag::ALLOW_OOM | script_flag::NO_WRITES) == 0 {
        return Err(CommandError::fixed(
            "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'",
        ));
    }
    Ok(())
}

/// A Lua list of the arguments from `from` to `to`.
fn list(lua: &mut Lua, args: Args<'_>, from: usize, to: usize) -> TableId {
    let table = lua.table(to - from, 0);
    for (index, arg) in args.iter().take(to).skip(from).enumerate() {
        let value = lua.string(arg);
        lua.set_element(table, index + 1, value);
    }
    table
}

/// Writes what a script returned.
fn answer(ctx: &mut Ctx<'_>, lua: &mut Lua, value: Value, protocol: Protocol) -> CommandResult {
    if let Value::Table(table) = value
        && let Some((text, counted)) = error_of(lua, table)
    {
        return answer_error(ctx, text, counted);
    }
    let errors = values::write(&mut ctx.reply, lua, value, protocol)?;
    for text in &errors.new {
        ctx.telemetry().stats.count_error(error_code(text));
    }
    count_failures(ctx, errors.counted + u64::from(!errors.new.is_empty()));
    Ok(())
}

/// Counts failures of the script or function that ran.
fn count_failures(ctx: &mut Ctx<'_>, failures: u64) {
    if let Some(id) = ctx.running {
        ctx.telemetry().stats.commands[usize::from(id.0)].failed += failures;
    }
}

/// Answers an error. One that a command of the script caused has been counted, but not as a failure of the script.
fn answer_error(ctx: &mut Ctx<'_>, text: Vec<u8>, counted: bool) -> CommandResult {
    if !counted {
        return Err(CommandError::new(text));
    }
    ctx.reply.error(&text);
    count_failures(ctx, 1);
    Ok(())
}

/// Answers the error that ended a script, with its place.
fn fail(ctx: &mut Ctx<'_>, lua: &mut Lua, error: &ScriptError, name: &[u8]) -> CommandResult {
    let (mut text, counted) = error_text(lua, error.value);
    text.extend_from_slice(b" script: ");
    text.extend_from_slice(name);
    if let Some((source, line)) = &error.raised_at {
        text.extend_from_slice(b", on ");
        text.extend_from_slice(source);
        text.extend_from_slice(format!(":{line}.").as_bytes());
    }
    answer_error(ctx, text, counted)
}

/// The text of any error value, and whether the command that caused it has been counted.
pub(super) fn error_text(lua: &mut Lua, value: Value) -> (Vec<u8>, bool) {
    match value {
        Value::Table(table) => error_of(lua, table).unwrap_or_else(|| {
            let text = match lua.field(table, b"err") {
                number @ Value::Number(_) => values::text(lua, number),
                _ => b"ERR unknown error of a script".to_vec(),
            };
            (text, false)
        }),
        value => (
            [b"ERR ", values::c_text(&values::text(lua, value))].concat(),
            false,
        ),
    }
}

/// The text of an error table, and whether the command that caused it has been counted.
fn error_of(lua: &mut Lua, table: TableId) -> Option<(Vec<u8>, bool)> {
    if !lua.has_fields(table) {
        return None;
    }
    let text = lua.field(table, b"err");
    let text = values::c_text(lua.bytes(text)?).to_vec();
    let counted = lua.field(table, values::COUNTED);
    Some((text, matches!(counted, Value::Bool(true))))
}
