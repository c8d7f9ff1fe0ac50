//! Scripts and compilations that take long: other clients are served meanwhile, with BUSY for most commands, and one of
//! them may end the script.

use super::Running;
use super::library::LoadHost;
use super::run::Kind;
use crate::engine::store::ctx::Ctx;
use kumi_lua::{Call, Error, Host};
use kumi_resp::Args;

/// One run or compilation, from its beginning on.
#[derive(Debug)]
pub(super) struct Watch<'w> {
    kind: Kind,
    /// The function's or library's name, or the script's SHA-1 in hexadecimal.
    name: &'w [u8],
    /// The request that runs or brings it.
    request: Args<'w>,
    started_ns: u64,
    /// It counts as slow: others are served.
    slow: bool,
    /// SHUTDOWN NOSAVE ended it.
    abandoned: bool,
}

impl<'w> Watch<'w> {
    pub(super) fn new(ctx: &Ctx<'_>, kind: Kind, name: &'w [u8], request: Args<'w>) -> Self {
        Self {
            kind,
            name,
            request,
            started_ns: ctx.now.mono_ns,
            slow: false,
            abandoned: false,
        }
    }

    /// It ended.
    pub(super) fn end(self, ctx: &mut Ctx<'_>) {
        // An abandoned script leaves half of its writes: other clients get BUSY until the server has stopped.
        if self.slow && !self.abandoned {
            ctx.end_busy();
        }
    }

    /// Called now and then. `wrote`: it has called a command that writes.
    ///
    /// # Errors
    /// It is to end; the text for the client that runs it.
    pub(super) fn interrupt(&mut self, ctx: &mut Ctx<'_>, wrote: bool) -> Result<(), String> {
        let threshold_ms = ctx.settings().busy_reply_threshold_ms;
        let elapsed_ns = ctx.host.now().mono_ns.saturating_sub(self.started_ns);
        if !self.slow {
            // With 0 no script counts as slow, as in Redis: other clients and a stop of the server wait for its end, and it
            // cannot be killed.
            if threshold_ms == 0 || elapsed_ns < threshold_ms.saturating_mul(1_000_000) {
                return Ok(());
            }
            self.slow = true;
            let command = match self.kind {
                Kind::Eval => "SCRIPT KILL",
                Kind::Function => "FUNCTION KILL",
            };
            tracing::warn!(
                elapsed_ms = elapsed_ns / 1_000_000,
                name = %self.name.escape_ascii(),
                "Slow script detected: still in execution. You can try killing the script using the {command} command."
            );
        }
        self.serve_others(ctx, wrote)
    }

    /// Serves others; fails if the script is to end.
    #[cold]
    fn serve_others(&mut self, ctx: &mut Ctx<'_>, wrote: bool) -> Result<(), String> {
        let kind = self.kind;
        let running = ctx.scripts().running.get_or_insert_with(|| Running {
            kind,
            name: self.name.to_vec(),
            command: self.request.to_owned(),
            started_ns: self.started_ns,
            wrote: false,
            killed: false,
            abandoned: false,
        });
        running.wrote = wrote;
        let goes_on = ctx.serve_others();
        let running = ctx.scripts().running.as_ref();
        if running.is_some_and(|running| running.killed) {
            let command = match kind {
                Kind::Eval => "SCRIPT",
                Kind::Function => "FUNCTION",
            };
            let reason = format!("Script killed by user with {command} KILL...");
            tracing::info!("{reason}");
            return Err(reason);
        }
        if running.is_some_and(|running| running.abandoned) {
            // As if the server had ended inside the script: none of its writes are in the AOF.
            self.abandoned = true;
            ctx.abandon_propagation();
        } else if goes_on || wrote && !ctx.host.has_failed() {
            // An orderly stop waits for a script that has written: half of its writes must be neither logged nor saved.
            return Ok(());
        }
        Err("the server stops".to_owned())
    }
}

/// The host of a compilation that a client asked for.
pub(crate) struct Compiling<'c, 'a> {
    ctx: &'c mut Ctx<'a>,
    watch: Watch<'c>,
}

impl<'c, 'a> Compiling<'c, 'a> {
    /// `name` is what FUNCTION STATS shows meanwhile.
    pub(crate) fn new(ctx: &'c mut Ctx<'a>, kind: Kind, name: &'c [u8], request: Args<'c>) -> Self {
        let watch = Watch::new(ctx, kind, name, request);
        Self { ctx, watch }
    }

    /// It ended.
    pub(crate) fn end(self) {
        self.watch.end(self.ctx);
    }
}

impl Host for Compiling<'_, '_> {
    fn call(&mut self, _function: u32, call: &mut Call<'_>) -> Result<(), Error> {
        Err(call.error("no such host function"))
    }

    fn interrupt(&mut self) -> Result<(), String> {
        self.watch.interrupt(self.ctx, false)
    }

    fn memory_freed(&mut self) {
        self.ctx.host.purge_memory();
    }
}

impl LoadHost for Compiling<'_, '_> {
    fn mono_ns(&mut self) -> u64 {
        self.ctx.host.now().mono_ns
    }
}
