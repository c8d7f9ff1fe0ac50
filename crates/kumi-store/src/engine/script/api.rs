//! The functions of the `redis` table besides `call` and `pcall`, and its constants.
//!
//! `server` is the same table: scripts that were written for Valkey call `server.call`. Its constants are there as well.
//! The versions are those of the commands, so that a script that looks for a newer one finds that it is not there.

use super::Sha;
use super::bridge::{Bridge, give, reserve_args};
use super::values;
use kumi_lua::{Call, Error, Lua, TableId, Value};
use kumi_resp::Protocol;

pub(super) const CALL: u32 = 0;
pub(super) const PCALL: u32 = 1;
pub(super) const LOG: u32 = 2;
const SETRESP: u32 = 3;
const ERROR_REPLY: u32 = 4;
const STATUS_REPLY: u32 = 5;
const SHA1HEX: u32 = 6;
const SET_REPL: u32 = 7;
const ACL_CHECK_CMD: u32 = 8;
const REPLICATE_COMMANDS: u32 = 9;
const BREAKPOINT: u32 = 10;
const DEBUG: u32 = 11;
pub(super) const REGISTER_FUNCTION: u32 = 12;

/// A function's name in the `redis` table, and its number.
pub(super) type Named = (&'static str, u32);

/// The functions of EVAL's scripts.
pub(super) const EVAL: &[Named] = &[
    ("call", CALL),
    ("pcall", PCALL),
    ("log", LOG),
    ("setresp", SETRESP),
    ("error_reply", ERROR_REPLY),
    ("status_reply", STATUS_REPLY),
    ("sha1hex", SHA1HEX),
    ("set_repl", SET_REPL),
    ("acl_check_cmd", ACL_CHECK_CMD),
    ("replicate_commands", REPLICATE_COMMANDS),
    ("breakpoint", BREAKPOINT),
    ("debug", DEBUG),
];

/// The functions of libraries.
pub(super) const FUNCTION: &[Named] = &[
    ("call", CALL),
    ("pcall", PCALL),
    ("log", LOG),
    ("setresp", SETRESP),
    ("error_reply", ERROR_REPLY),
    ("status_reply", STATUS_REPLY),
    ("sha1hex", SHA1HEX),
    ("set_repl", SET_REPL),
    ("acl_check_cmd", ACL_CHECK_CMD),
];

/// The functions of a library's code while it is loaded.
pub(super) const LOAD: &[Named] = &[("register_function", REGISTER_FUNCTION), ("log", LOG)];

/// Replication of a script's writes: to the append-only file, to replicas.
const REPL_AOF: i64 = 1;
const REPL_REPLICA: i64 = 2;
const REPL_ALL: i64 = REPL_AOF | REPL_REPLICA;

/// What HELLO answers as the server's name.
const SERVER_NAME: &str = "redis";

type Constant = (&'static str, i64);

const LOG_LEVELS: &[Constant] = &[
    ("LOG_DEBUG", 0),
    ("LOG_VERBOSE", 1),
    ("LOG_NOTICE", 2),
    ("LOG_WARNING", 3),
];

const REPLICATION: &[Constant] = &[
    ("REPL_NONE", 0),
    ("REPL_AOF", REPL_AOF),
    ("REPL_SLAVE", REPL_REPLICA),
    ("REPL_REPLICA", REPL_REPLICA),
    ("REPL_ALL", REPL_ALL),
];

/// Puts the `redis` table into a state's globals.
pub(super) fn register(lua: &mut Lua, functions: &[Named]) {
    redis_table(lua, functions, REPLICATION);
}

/// Makes the second set of globals of a state: what a library's code sees while it is loaded.
pub(super) fn register_load(lua: &mut Lua) {
    lua.swap_globals();
    let redis = redis_table(lua, LOAD, &[]);
    lua.guard(redis);
    lua.protect();
    lua.swap_globals();
}

/// Puts a `redis` table into the globals, also as `server`: functions, log levels, other constants and the version.
fn redis_table(lua: &mut Lua, functions: &[Named], constants: &[Constant]) -> TableId {
    let redis = lua.table(0, 0);
    for &(name, number) in functions {
        let function = lua.host_function(number);
        lua.set_field(redis, name.as_bytes(), function);
    }
    for &(name, value) in LOG_LEVELS.iter().chain(constants) {
        lua.set_field(redis, name.as_bytes(), Value::Number(value as f64));
    }
    let version = lua.string(crate::base::version::REDIS_VERSION.as_bytes());
    let parts = crate::base::version::REDIS_VERSION.split('.');
    let number = parts.fold(0, |number, part| number << 8 | part.parse().unwrap_or(0));
    let number = Value::Number(f64::from(number));
    for name in ["REDIS_VERSION", "VALKEY_VERSION"] {
        lua.set_field(redis, name.as_bytes(), version);
        lua.set_field(redis, format!("{name}_NUM").as_bytes(), number);
    }
    let name = lua.string(SERVER_NAME.as_bytes());
    lua.set_field(redis, b"SERVER_NAME", name);
    let globals = lua.globals();
    for name in ["redis", "server"] {
        lua.set_field(globals, name.as_bytes(), Value::Table(redis));
    }
    redis
}

impl Bridge<'_, '_> {
    pub(super) fn other_function(
        &mut self,
        function: u32,
        call: &mut Call<'_>,
    ) -> Result<(), Error> {
        match function {
            LOG => log(call),
            SETRESP => self.setresp(call),
            ERROR_REPLY => error_reply(call),
            STATUS_REPLY => status_reply(call),
            SHA1HEX => sha1hex(call),
            SET_REPL => self.set_repl(call),
            ACL_CHECK_CMD => self.acl_check_cmd(call),
            REPLICATE_COMMANDS => {
                call.push(Value::Bool(true));
                Ok(())
            }
            BREAKPOINT => {
                call.push(Value::Bool(false));
                Ok(())
            }
            DEBUG => Ok(()),
            REGISTER_FUNCTION => raise(
                call,
                "ERR redis.register_function can only be called on FUNCTION LOAD command",
            ),
            _ => Err(call.error("no such host function")),
        }
    }

    fn setresp(&mut self, call: &mut Call<'_>) -> Result<(), Error> {
        if call.len() != 1 {
            return raise(call, "ERR redis.setresp() requires one argument.");
        }
        self.protocol = match number(call, 0).map(f64::trunc) {
            Some(2.0) => Protocol::Resp2,
            Some(3.0) => Protocol::Resp3,
            _ => return raise(call, "ERR RESP version must be 2 or 3."),
        };
        Ok(())
    }

    /// Writes go to one stream for the append-only file and for replicas; only REPL_NONE keeps them out of it.
    fn set_repl(&mut self, call: &mut Call<'_>) -> Result<(), Error> {
        if call.len() != 1 {
            return raise(call, "ERR redis.set_repl() requires two arguments.");
        }
        let flags = number(call, 0).unwrap_or(0.0) as i64;
        if flags & !REPL_ALL != 0 {
            return raise(
                call,
                "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
            );
        }
        self.ctx.mute_propagation(flags == 0);
        Ok(())
    }

    fn acl_check_cmd(&mut self, call: &mut Call<'_>) -> Result<(), Error> {
        reserve_args(call)?;
        if let Err(text) = self.take_args(call) {
            return raise(call, text);
        }
        let args = self.args.as_args();
        let Some(id) = self.ctx.index().find_request(args) else {
            return raise(call, "ERR Invalid command passed to redis.acl_check_cmd()");
        };
        let user = self.ctx.session().login.user;
        let allowed = self.ctx.permission(user, id, args).is_ok();
        call.push(Value::Bool(allowed));
        Ok(())
    }
}

fn raise(call: &mut Call<'_>, text: &str) -> Result<(), Error> {
    let error = values::error_table(call, text.as_bytes(), false);
    give(call, error, true)
}

/// An argument as a number, also if it is a string that holds one.
fn number(call: &Call<'_>, at: usize) -> Option<f64> {
    match call.arg(at) {
        Value::Number(number) => Some(number),
        value => std::str::from_utf8(call.bytes(value)?)
            .ok()?
            .trim()
            .parse()
            .ok(),
    }
}

/// The bytes of an argument that is a string or a number.
fn string(call: &Call<'_>, at: usize) -> Option<Vec<u8>> {
    text_of(call, call.arg(at))
}

/// The bytes of a value that is a string or a number.
pub(super) fn text_of(call: &Call<'_>, value: Value) -> Option<Vec<u8>> {
    match value {
        Value::Number(number) => {
            let mut text = Vec::new();
            Call::write_number(&mut text, number);
            Some(text)
        }
        value => call.bytes(value).map(<[u8]>::to_vec),
    }
}

pub(super) fn log(call: &mut Call<'_>) -> Result<(), Error> {
    if call.len() < 2 {
        return raise(call, "ERR redis.log() requires two arguments or more.");
    }
    let Some(level) = number(call, 0) else {
        return raise(call, "ERR First argument must be a number (log level).");
    };
    let level = level as i64;
    if !(0..4).contains(&level) {
        return raise(call, "ERR Invalid debug level.");
    }
    reserve_args(call)?;
    let words: Vec<Vec<u8>> = (1..call.len()).filter_map(|at| string(call, at)).collect();
    let message = words.join(&b' ');
    let message = String::from_utf8_lossy(&message);
    // The levels of the log for debug, verbose, notice and warning.
    match level {
        0 => tracing::trace!("{message}"),
        1 => tracing::debug!("{message}"),
        2 => tracing::info!("{message}"),
        _ => tracing::warn!("{message}"),
    }
    Ok(())
}

/// The only argument, if it is a string.
fn only_string(call: &Call<'_>) -> Option<Vec<u8>> {
    if call.len() != 1 {
        return None;
    }
    call.arg_bytes(0).map(<[u8]>::to_vec)
}

const WRONG_ARGUMENTS: &[u8] = b"ERR wrong number or type of arguments";

fn error_reply(call: &mut Call<'_>) -> Result<(), Error> {
    reserve_args(call)?;
    let Some(text) = only_string(call) else {
        let error = values::error_table(call, WRONG_ARGUMENTS, false);
        return give(call, error, false);
    };
    let text = values::c_text(&text);
    // A text of one word has no code.
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let end = text.iter().rposition(|byte| !b"\r\n".contains(byte));
    let text = &text[..end.map_or(0, |end| end + 1)];
    let text = if text.contains(&b' ') {
        text.to_vec()
    } else {
        [b"ERR ", text].concat()
    };
    let error = values::error_table(call, &text, false);
    give(call, error, false)
}

fn status_reply(call: &mut Call<'_>) -> Result<(), Error> {
    reserve_args(call)?;
    let Some(text) = only_string(call) else {
        let error = values::error_table(call, WRONG_ARGUMENTS, false);
        return give(call, error, false);
    };
    let table = call.table(0, 0);
    let text = call.string(&text);
    call.set_field(table, b"ok", text);
    call.push(Value::Table(table));
    Ok(())
}

fn sha1hex(call: &mut Call<'_>) -> Result<(), Error> {
    if call.len() != 1 {
        return raise(call, "ERR wrong number of arguments");
    }
    let text = call.arg(0);
    let sha = match call.bytes(text) {
        Some(bytes) => {
            let (sha, len) = (Sha::of(bytes), bytes.len());
            call.spend(len);
            sha
        }
        None => Sha::of(&text_of(call, text).unwrap_or_default()),
    };
    call.push_bytes(&sha.hex());
    Ok(())
}
