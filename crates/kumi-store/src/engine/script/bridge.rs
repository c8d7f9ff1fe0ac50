//! The engine as a script sees it: `redis.call` and `redis.pcall`.
//!
//! A call puts its arguments into a buffer that is used again, runs the row like any other command, with the reply going
//! into a buffer beside the sessions' ones, and reads the Lua value from there.

use super::run::Invocation;
use super::watch::Watch;
use super::{api, script_flag, values};
use crate::base::error::CommandError;
use crate::base::ids::CommandId;
use crate::engine::command::{Command, flag};
use crate::engine::store::ctx::Ctx;
use kumi_lua::{Call, Error, Host, Value};
use kumi_resp::{Args, ArgsBuilder, Protocol, encode};

/// A reply of more bytes is looked at before it is read.
const LARGE_REPLY: usize = 1 << 16;

const NOT_ALLOWED: &str = "ERR This Redis command is not allowed from script";

pub(super) struct Bridge<'c, 'a> {
    pub(super) ctx: &'c mut Ctx<'a>,
    watch: Watch<'c>,
    pub(super) args: ArgsBuilder,
    /// The protocol of replies to the script; `redis.setresp` changes it.
    pub(super) protocol: Protocol,
    read_only: bool,
    /// Memory was short when the script began, and it did not say that it may use more.
    deny_oom: bool,
    /// It has called a command that writes.
    wrote: bool,
}

impl<'c, 'a> Bridge<'c, 'a> {
    pub(super) fn new(
        ctx: &'c mut Ctx<'a>,
        invocation: &'c Invocation<'c>,
        out_of_memory: bool,
    ) -> Self {
        let flags = invocation.flags;
        Self {
            args: std::mem::take(&mut ctx.scripts().args),
            protocol: Protocol::Resp2,
            read_only: invocation.read_only || flags & script_flag::NO_WRITES != 0,
            deny_oom: out_of_memory && flags & script_flag::ALLOW_OOM == 0,
            wrote: false,
            watch: Watch::new(ctx, invocation.kind, invocation.name, invocation.request),
            ctx,
        }
    }

    /// The script ended. Returns the protocol it has chosen.
    pub(super) fn end(mut self) -> Protocol {
        self.ctx.scripts().args = std::mem::take(&mut self.args);
        self.watch.end(self.ctx);
        self.ctx.mute_propagation(false);
        self.ctx.end_measuring_script();
        self.protocol
    }

    /// Collects the arguments of a call.
    pub(super) fn take_args(&mut self, call: &mut Call<'_>) -> Result<(), &'static str> {
        if call.is_empty() {
            return Err("ERR Please specify at least one argument for this redis lib call");
        }
        self.args.clear();
        for at in 0..call.len() {
            match call.arg(at) {
                value @ Value::Str(_) => self.args.push(call.bytes(value).unwrap_or_default()),
                Value::Number(number) => self.args.push_with(|out| write_number(out, number)),
                _ => {
                    return Err("ERR Lua redis lib command arguments must be strings or integers");
                }
            }
        }
        Ok(())
    }

    fn redis_call(&mut self, call: &mut Call<'_>, raise: bool) -> Result<(), Error> {
        reserve_args(call)?;
        if let Err(text) = self.take_args(call) {
            let error = values::error_table(call, text.as_bytes(), false);
            return give(call, error, raise);
        }
        let value = match self.run_command() {
            Ok(()) => {
                // Large arguments are not kept until the next call.
                self.args.clear();
                let bytes = self.ctx.reply.script_reply_bytes();
                if bytes > LARGE_REPLY {
                    // A reply in several pieces is copied into one, and its values are made beside it.
                    call.reserve(bytes.saturating_mul(2))?;
                }
                let reply = self.ctx.reply.script_reply();
                let failed = reply.first() == Some(&b'-');
                // The reply is there until its values are made.
                let value = call.holding(reply.len(), |call| values::read(call, &reply))?;
                if failed {
                    return give(call, value, raise);
                }
                value
            }
            Err(error) => {
                let error = values::error_table(call, error.as_bytes(), true);
                return give(call, error, raise);
            }
        };
        call.push(value);
        Ok(())
    }

    /// Runs the command in `args`; its reply is in the buffer for scripts.
    fn run_command(&mut self) -> Result<(), CommandError> {
        let (id, row) = match self.ctx.index().resolve(self.args.as_args()) {
            Ok(id) => (id, self.ctx.index().get(id).row),
            Err((id, _)) => {
                let text = match id {
                    None if is_unbuilt_and_denied(self.args.as_args()) => NOT_ALLOWED,
                    None => "ERR Unknown Redis command called from script",
                    Some(_) => "ERR Wrong number of args calling Redis command from script",
                };
                let error = CommandError::fixed(text);
                self.ctx.telemetry().stats.count_rejected(id, &error);
                return Err(error);
            }
        };
        let denies_scripts = !self.ctx.scripts().deny_disabled;
        if let Err(error) = self.admit(id, row, denies_scripts) {
            self.ctx.telemetry().stats.count_rejected(Some(id), &error);
            return Err(error);
        }
        self.wrote |= row.has(flag::WRITE);
        let session_reply = self.ctx.reply.redirect_to_script(self.protocol);
        self.ctx.call(id, self.args.as_args());
        self.ctx.reply.redirect_to_session(session_reply);
        Ok(())
    }

    /// Everything that can stop a command of a script.
    fn admit(
        &mut self,
        id: CommandId,
        row: &Command,
        denies_scripts: bool,
    ) -> Result<(), CommandError> {
        if denies_scripts && row.has(flag::NOSCRIPT) {
            return Err(CommandError::fixed(NOT_ALLOWED));
        }
        let permission = self.ctx.check_permission(id, self.args.as_args());
        if let Err((_, error)) = permission {
            let reason = error.as_bytes();
            let reason = reason.strip_prefix(b"NOPERM ").unwrap_or(reason);
            let text = [b"ERR ACL failure in script: ", reason].concat();
            return Err(CommandError::new(text));
        }
        if self.read_only && row.has(flag::WRITE | flag::MAY_REPLICATE) {
            return Err(CommandError::fixed(
                "ERR Write commands are not allowed from read-only scripts.",
            ));
        }
        // A script that has written goes on: it cannot be undone.
        if self.deny_oom && !self.wrote && row.has(flag::DENYOOM) {
            return Err(CommandError::OOM);
        }
        if !self.wrote
            && row.has(flag::WRITE)
            && let Some(error) = self.ctx.disk_error()
        {
            return Err(error);
        }
        Ok(())
    }
}

impl Host for Bridge<'_, '_> {
    fn call(&mut self, function: u32, call: &mut Call<'_>) -> Result<(), Error> {
        match function {
            api::CALL => self.redis_call(call, true),
            api::PCALL => self.redis_call(call, false),
            other => self.other_function(other, call),
        }
    }

    fn interrupt(&mut self) -> Result<(), String> {
        self.watch.interrupt(self.ctx, self.wrote)
    }

    fn memory_freed(&mut self) {
        self.ctx.host.purge_memory();
    }
}

/// Whether this is a command that is not built and that Redis does not let scripts call.
fn is_unbuilt_and_denied(args: Args<'_>) -> bool {
    let word = |at: usize| args.get(at).unwrap_or_default().to_ascii_lowercase();
    match word(0).as_slice() {
        b"failover" | b"psync" | b"replconf" | b"sync" => true,
        b"cluster" => word(1) == b"reset",
        b"module" => matches!(
            word(1).as_slice(),
            b"list" | b"load" | b"loadex" | b"unload"
        ),
        _ => false,
    }
}

/// Makes sure that there is memory for a copy of the arguments.
pub(super) fn reserve_args(call: &mut Call<'_>) -> Result<(), Error> {
    let lengths = (0..call.len()).map(|at| call.arg_bytes(at).map_or(32, <[u8]>::len));
    let total = lengths.fold(0, usize::saturating_add);
    call.spend(total / 16);
    call.reserve(total)
}

/// Returns an error table to the script, or raises it.
pub(super) fn give(call: &mut Call<'_>, error: Value, raise: bool) -> Result<(), Error> {
    if raise {
        return Err(call.raise(error));
    }
    call.push(error);
    Ok(())
}

/// A number as an argument of a command: an integer in full, anything else in its shortest form.
fn write_number(out: &mut Vec<u8>, number: f64) {
    // Both zeros are written alike.
    encode::double_text(out, if number == 0.0 { 0.0 } else { number });
}
