//! What a running command holds: the store, the host, its session and its answer.

use crate::base::clock::Now;
use crate::base::error::{CommandError, CommandResult};
use crate::base::ids::CommandId;
use crate::base::ids::SessionKey;
use crate::data::keyspace::Keys;
use crate::engine::command::{Command, flag};
use crate::engine::host::Host;
use crate::engine::reply::Reply;
use crate::engine::session::{Blocked, BlockedOn, Session};
use crate::engine::store::tracking::Actor;
use crate::engine::store::{Flow, Store};
use kumi_resp::{Args, OwnedArgs};

pub(crate) use super::parts::Parts;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

pub(crate) struct Ctx<'a> {
    /// For this module alone: commands reach its parts through `parts.rs`.
    pub(super) store: &'a mut Store,
    pub(crate) host: &'a mut dyn Host,
    pub(crate) session: SessionKey,
    pub(crate) reply: Reply<'a>,
    /// The selected database.
    pub(crate) db: usize,
    /// When the command began; a transaction's commands all begin when EXEC did.
    pub(crate) now: Now,
    /// The last reading of the steady clock; durations are measured from it.
    clock_ns: u64,
    /// The command that runs.
    pub(crate) running: Option<CommandId>,
    /// Inside EXEC: nothing may block.
    pub(crate) in_exec: bool,
    /// Called by a script.
    pub(crate) in_script: bool,
    /// The command waited for a key and is executed again.
    pub(crate) resumed: bool,
    pub(crate) flow: Flow,
    /// The command wrote its own propagation record.
    propagated: bool,
    /// False under CLIENT NO-TOUCH.
    touch: bool,
}

impl<'a> Ctx<'a> {
    #[inline]
    pub(crate) fn new(
        store: &'a mut Store,
        host: &'a mut dyn Host,
        session: SessionKey,
        reply: Reply<'a>,
        db: usize,
        touch: bool,
    ) -> Self {
        let now = store.now;
        Self {
            store,
            host,
            session,
            reply,
            db,
            now,
            clock_ns: now.mono_ns,
            running: None,
            in_exec: false,
            in_script: false,
            resumed: false,
            flow: Flow::Done,
            propagated: false,
            touch,
        }
    }

    /// The door to the selected database.
    #[inline]
    pub(crate) fn keys(&mut self) -> Keys<'_> {
        self.store
            .keyspace
            .keys(self.db, self.now.unix_ms(), self.touch)
    }

    /// The door and the answer, for commands that write what they read.
    #[inline]
    pub(crate) fn keys_and_reply(&mut self) -> (Keys<'_>, &mut Reply<'a>) {
        (
            self.store
                .keyspace
                .keys(self.db, self.now.unix_ms(), self.touch),
            &mut self.reply,
        )
    }

    /// The session that runs the command. It exists as long as its command runs: closing is
    /// deferred until the command has ended.
    #[inline]
    pub(crate) fn session(&mut self) -> &mut Session {
        self.store
            .clients
            .sessions
            .get_mut(self.session)
            .expect("a session outlives its running command")
    }

    /// Counts `changes` writes.
    #[inline]
    pub(crate) fn dirty(&mut self, changes: usize) {
        self.store.keyspace.dirty += changes as u64;
    }

    /// Whether writes are propagated. Check it before building a record.
    #[inline]
    pub(crate) fn propagates(&self) -> bool {
        self.store.keyspace.propagation.is_on()
    }

    /// Records `args` in place of the command as it was sent.
    pub(crate) fn propagate_as<'b>(
        &mut self,
        args: impl IntoIterator<Item = &'b [u8], IntoIter: Clone>,
    ) {
        self.propagated = true;
        if self.propagates() {
            self.store.keyspace.propagation.push(self.db, args);
        }
    }

    /// Says that the records of this command are complete as they are.
    pub(crate) fn mark_propagated(&mut self) {
        self.propagated = true;
    }

    /// Leaves the session waiting; nothing more of its input is decoded until it is resumed.
    pub(crate) fn block(&mut self, blocked: Blocked) {
        let session = self.session;
        self.store.block(session, blocked);
        self.flow = Flow::Blocked;
    }

    /// Runs one resolved command: the only caller of a row's function.
    pub(crate) fn call(&mut self, id: CommandId, args: Args<'_>) {
        let row = self.store.index.get(id).row;
        self.running = Some(id);
        self.store.run.command.set(id, args.len());
        if row.flags & flag::BRIEF == 0 {
            self.store.end_measuring(self.host);
            self.clock_ns = self.clock_ns.max(self.store.now.mono_ns);
            if !self.in_exec {
                self.now = self.store.now;
            }
        }
        let start_ns = self.clock_ns;
        let mark = self.reply.len();
        let dirty_before = self.store.keyspace.dirty;
        self.propagated = false;
        self.store.keyspace.propagation.begin();
        self.store.keyspace.propagation.share(args.large());
        let outcome = catch_unwind(AssertUnwindSafe(|| (row.run)(self, args)));
        let result = outcome.unwrap_or_else(|panic| {
            if self.store.keyspace.changing {
                // Its accounts may be wrong: the server stops instead of going on with them.
                resume_unwind(panic);
            }
            // It may have been a script that served others.
            self.store.run.busy = false;
            self.store.scripts.running = None;
            tracing::error!(
                cmd = row.name,
                "a command panicked; its client got an internal error"
            );
            Err(CommandError::fixed("ERR internal error"))
        });
        if let Err(error) = &result {
            self.reply.cut_back(mark);
            self.reply.error(error.as_bytes());
            self.store.telemetry.stats.count_error(error.code());
        }
        if self.propagates() && self.store.keyspace.dirty != dirty_before {
            if !self.propagated {
                self.store.keyspace.propagation.push(self.db, args.iter());
            }
            // WAITAOF waits for what its session wrote.
            let written = self.store.keyspace.propagation.offset();
            self.session().activity.written = written;
        }
        self.store.keyspace.propagation.end();
        if self.store.keyspace.interest.tracking.clients > 0 && row.has(flag::READONLY) {
            self.remember_reads(id, args);
        }
        self.finish(id, row.flags, args, start_ns, &result);
    }

    #[inline]
    fn finish(
        &mut self,
        id: CommandId,
        flags: u32,
        args: Args<'_>,
        start_ns: u64,
        result: &CommandResult,
    ) {
        if self.store.is_replay(self.session) {
            // Neither counted nor timed, as in Redis.
            if let Err(error) = result {
                self.note_replay_error(error);
            }
            return self.settle();
        }
        if self.flow == Flow::Blocked && self.waits_for_keys() {
            return self.finish_blocked(id, flags, args);
        }
        if result.is_ok()
            && (!self.in_exec || self.in_script)
            && self.store.shares_reading(flags, self.in_script)
            && !self.host.ticked()
        {
            self.store.telemetry.leave_unmeasured(id);
        } else {
            self.measure(id, flags, args, start_ns, result.is_err());
        }
        self.settle();
    }

    /// A command of the AOF that is loaded failed.
    #[cold]
    fn note_replay_error(&mut self, error: &CommandError) {
        if let Some(loading) = &mut self.store.persistence.loading {
            loading.errors += 1;
            if *error == CommandError::DB_OUT_OF_RANGE {
                loading.lacks_database = true;
                self.flow = Flow::Close;
            }
        }
    }

    /// Reads the clock for the command that ended, and for those before it that left the reading to a later one.
    #[inline(never)]
    fn measure(&mut self, id: CommandId, flags: u32, args: Args<'_>, start_ns: u64, failed: bool) {
        let end = self.host.now();
        self.clock_ns = end.mono_ns;
        if !self.in_exec {
            self.now = end;
            self.store.now = end;
        }
        let duration_ns = self
            .store
            .telemetry
            .share_out(end.mono_ns.saturating_sub(start_ns));
        self.store.telemetry.record_call(id, duration_ns, failed);
        let telemetry = &mut self.store.telemetry;
        telemetry.record_latency(flags, self.now, duration_ns);
        let monitored = !self.resumed && self.is_monitored(flags);
        let slow = self.store.telemetry.is_slow(flags, duration_ns);
        if monitored || slow {
            let shown = redact(self.store.index.get(id).row, args);
            let shown = shown.as_ref().map_or(args, OwnedArgs::as_args);
            if monitored {
                self.feed_monitors(shown);
            }
            if slow {
                let source = self.store.clients.sessions.get(self.session);
                let (telemetry, now) = (&mut self.store.telemetry, self.store.now);
                telemetry.record_slow(source, shown, duration_ns, now);
            }
        }
    }

    #[inline]
    fn settle(&mut self) {
        let actor = Actor {
            session: self.session,
            in_script: self.in_script,
        };
        self.store.settle(self.reply.outputs(), Some(actor));
    }

    /// Reads the clock for the commands of a script that left it to a later one.
    pub(crate) fn end_measuring_script(&mut self) {
        if self.store.telemetry.has_unmeasured() {
            let end_ns = self.host.now().mono_ns;
            let elapsed_ns = end_ns.saturating_sub(self.clock_ns);
            self.store.telemetry.share_out_all(elapsed_ns);
        }
    }

    /// A command that waits is shown to MONITOR when it first runs, and counted when it ends.
    fn finish_blocked(&mut self, id: CommandId, flags: u32, args: Args<'_>) {
        if !self.resumed && self.is_monitored(flags) {
            let shown = redact(self.store.index.get(id).row, args);
            let shown = shown.as_ref().map_or(args, OwnedArgs::as_args);
            self.feed_monitors(shown);
        }
        self.settle();
    }

    /// Shows a command to every MONITOR client.
    pub(crate) fn feed_monitors(&mut self, shown: Args<'_>) {
        if self.store.clients.monitors.is_empty() {
            return;
        }
        let source = (!self.in_script).then_some(self.session);
        let outputs = self.reply.outputs();
        self.store.feed_monitors(outputs, source, self.db, shown);
    }

    fn waits_for_keys(&mut self) -> bool {
        let resumed = self.resumed;
        let blocked = self.session().blocked.as_ref();
        resumed || blocked.is_some_and(|blocked| matches!(blocked.on, BlockedOn::Keys(_)))
    }

    fn is_monitored(&self, flags: u32) -> bool {
        flags & (flag::SKIP_MONITOR | flag::ADMIN) == 0 && !self.store.clients.monitors.is_empty()
    }
}

/// The arguments as logs show them, without those that the row hides; none if it hides nothing. Logs are read by more
/// people than passwords and names of users are meant for.
fn redact(row: &Command, args: Args<'_>) -> Option<OwnedArgs> {
    let hides = row.hides?;
    let shown = args.iter().enumerate().map(|(position, arg)| {
        if hides(args, position) {
            b"(redacted)"
        } else {
            arg
        }
    });
    Some(OwnedArgs::from_slices(shown))
}
