//! From a request to its answer: the checks every command passes, in the order clients see them.

use crate::base::clock::Now;
use crate::base::error::CommandError;
use crate::base::ids::CommandId;
use crate::base::ids::SessionKey;
use crate::config::Settings;
use crate::engine::command::{Script, flag};
use crate::engine::host::Host;
use crate::engine::output::Outputs;
use crate::engine::reply::Reply;
use crate::engine::script::{BUSY_SCRIPT, Running, script_flag};
use crate::engine::session::{Blocked, BlockedOn, KeyWait, ReplyMode, Session};
use crate::engine::store::clients::output_budget;
use crate::engine::store::ctx::Ctx;
use crate::engine::store::{Effect, Flow, Store};
use kumi_resp::Args;

impl Store {
    /// Executes one request of a session.
    ///
    /// Never call it for a session whose last request answered [`Flow::Blocked`] before that
    /// session was resumed.
    pub fn execute(
        &mut self,
        key: SessionKey,
        args: Args<'_>,
        now: Now,
        outputs: &mut Outputs,
        host: &mut dyn Host,
    ) -> Flow {
        self.now = now;
        let id = self.index.resolve(args).ok();
        let flow = self.execute_as(key, id, args, outputs, host);
        self.clients.count_bytes(key);
        flow
    }

    /// Executes one request of a session, at the last reading of the clock. `id` is the row of a
    /// request that may run; without one the reason is found here and answered.
    #[inline]
    pub(crate) fn execute_as(
        &mut self,
        key: SessionKey,
        id: Option<CommandId>,
        args: Args<'_>,
        outputs: &mut Outputs,
        host: &mut dyn Host,
    ) -> Flow {
        self.make_room(outputs, host);
        if self.keyspace.interest.tracking.is_on() {
            self.limit_tracking(outputs);
        }
        let now = self.now;
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return Flow::Close;
        };
        if session.ending.closing || args.is_empty() {
            return if session.ending.closing {
                Flow::Close
            } else {
                Flow::Done
            };
        }
        session.activity.last_active_ms = now.unix_ms();
        session.activity.commands += 1;
        if id.is_some() {
            session.activity.last_command = id;
        }
        if session.modes.reply_mode == ReplyMode::SkipNext {
            session.modes.reply_mode = ReplyMode::SkipThis;
        }
        let (db, touch) = (session.db, !session.modes.no_touch);
        let open = self.clients.open;
        let unrestricted = session.takes_any_command()
            && session.login.is_trusted(open)
            && !self.acl.is_restricted(session.login.user);
        let (slot, reply) = begin_reply(session, open, self.config.settings(), outputs);
        // Nearly every command: nothing of what `admit_and_run` looks at concerns it.
        let runs_at_once = unrestricted && self.lets_everything_run();
        let mut ctx = Ctx::new(self, host, key, reply, db, touch);
        match id {
            Some(id) if runs_at_once => {
                debug_assert!(ctx.would_run(id, args), "no check is left out");
                ctx.call(id, args);
            }
            Some(id) => ctx.admit_and_run(id, args),
            None => ctx.refuse_unresolved(args),
        }
        let flow = ctx.flow;
        if self.keyspace.interest.tracking.is_on() || self.outbox.invalidations.are_pending() {
            self.end_tracked_command(outputs, key, id);
        }
        let overflow = outputs.end(slot);
        self.end_reply(outputs, key, overflow);
        if self.keyspace.interest.waiters.has_ready() {
            self.serve_ready(outputs, host);
        }
        flow
    }

    /// Executes the command of a session that waited for a key.
    pub(crate) fn execute_resumed(
        &mut self,
        key: SessionKey,
        wait: &KeyWait,
        outputs: &mut Outputs,
        host: &mut dyn Host,
    ) -> Flow {
        self.make_room(outputs, host);
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return Flow::Close;
        };
        let touch = !session.modes.no_touch;
        let open = self.clients.open;
        let (slot, reply) = begin_reply(session, open, self.config.settings(), outputs);
        let mut ctx = Ctx::new(self, host, key, reply, wait.db, touch);
        ctx.resumed = true;
        // Permissions and the server's state may have changed while it waited.
        match ctx.admit(wait.id, wait.args.as_args()) {
            Ok(()) => ctx.call(wait.id, wait.args.as_args()),
            Err(error) => ctx.refuse(Some(wait.id), &error),
        }
        let flow = ctx.flow;
        if self.keyspace.interest.tracking.is_on() || self.outbox.invalidations.are_pending() {
            self.end_tracked_command(outputs, key, Some(wait.id));
        }
        let overflow = outputs.end(slot);
        if flow == Flow::Blocked {
            return flow;
        }
        self.end_reply(outputs, key, overflow);
        flow
    }

    /// The answer to commands that may not run while another one takes long.
    pub(crate) fn busy_error(&self) -> CommandError {
        let running = self.scripts.running.as_ref();
        CommandError::fixed(running.map_or(BUSY_SCRIPT, Running::busy_text))
    }

    /// Whether the state of the server refuses no command and holds none back.
    #[inline]
    fn lets_everything_run(&self) -> bool {
        self.persistence.loading.is_none()
            && self.persistence.aof_error.is_none()
            && !self.persistence.saves.last_failed
            && !self.run.busy
            && !self.upkeep.eviction.out_of_memory
            && self.clients.pause.is_none()
    }

    /// A command has written its reply.
    #[inline]
    fn end_reply(&mut self, outputs: &mut Outputs, key: SessionKey, overflow: Option<usize>) {
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return outputs.remove(key);
        };
        // A command that waits still has its reply to come.
        if session.modes.reply_mode == ReplyMode::SkipThis && session.blocked.is_none() {
            session.modes.reply_mode = ReplyMode::On;
        }
        if let Some(pending) = overflow {
            session.memory.reply_buffer.note(outputs.pending(key));
            return self.close_over_limit(outputs, key, pending);
        }
        let pending = outputs.list(key);
        session.memory.reply_buffer.note(pending);
        self.check_output(outputs, key, pending);
    }

    /// Ends CLIENT PAUSE: commands that were held run now, in the order they came.
    pub(crate) fn end_pause(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        self.clients.pause = None;
        self.keyspace.expiry.paused = false;
        self.run_held(outputs, host);
    }

    /// Executes the commands that were held. One that still has to wait is held again.
    pub(super) fn run_held(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        for key in std::mem::take(&mut self.clients.held) {
            let held = self
                .clients
                .sessions
                .get(key)
                .and_then(|session| session.blocked.as_ref());
            if !held.is_some_and(|blocked| matches!(blocked.on, BlockedOn::Pause(_))) {
                continue;
            }
            let Some(Blocked {
                on: BlockedOn::Pause(args),
                ..
            }) = self.end_wait(key)
            else {
                continue;
            };
            let now = self.now;
            match self.execute(key, args.as_args(), now, outputs, host) {
                Flow::Done => self.effect(Effect::Resume(key)),
                // It waits for something else now, or for another pause.
                Flow::Blocked => {}
                Flow::Close => self.effect(Effect::CloseAfterFlush(key)),
            }
        }
    }
}

/// Begins the reply of a session's command, within its budget; CLIENT REPLY may have it thrown away.
#[inline]
fn begin_reply<'a>(
    session: &Session,
    open: bool,
    settings: &Settings,
    outputs: &'a mut Outputs,
) -> (usize, Reply<'a>) {
    let budget = output_budget(session, open, settings);
    let slot = outputs.begin(session.key, budget);
    let mut reply = Reply::new(outputs, slot, session.protocol);
    if matches!(
        session.modes.reply_mode,
        ReplyMode::Off | ReplyMode::SkipThis
    ) {
        reply.discard();
    }
    (slot, reply)
}

impl Ctx<'_> {
    /// Whether [`Ctx::admit_and_run`] would run a command: it is not refused, held by a pause or queued.
    fn would_run(&mut self, id: CommandId, args: Args<'_>) -> bool {
        self.admit(id, args).is_ok()
            && !self.must_wait_for_pause(id, args)
            && self.session().transaction.multi.is_none()
    }

    #[inline(never)]
    fn admit_and_run(&mut self, id: CommandId, args: Args<'_>) {
        let row = self.store.index.get(id).row;
        if let Err(error) = self.admit(id, args) {
            return self.refuse(Some(id), &error);
        }
        if self.must_wait_for_pause(id, args) && !self.store.is_replay(self.session) {
            return self.block(Blocked {
                on: BlockedOn::Pause(args.to_owned()),
                until_ns: None,
            });
        }
        let broken = self.session().transaction.watch_broken;
        if let Some(multi) = &mut self.session().transaction.multi
            && !row.has(flag::UNQUEUED)
        {
            if broken || multi.refused {
                // EXEC will run nothing, so nothing more is kept for it.
                let bytes = multi.bytes;
                return self.answer_queued(bytes);
            }
            let flags = self.request_flags(id, args);
            let Some(multi) = &mut self.session().transaction.multi else {
                return;
            };
            let args = args.to_owned();
            multi.bytes += args.bytes();
            multi.flags |= flags;
            multi.commands.push((id, args));
            multi.queued += 1;
            let bytes = multi.bytes;
            return self.answer_queued(bytes);
        }
        self.call(id, args);
    }

    /// Replies with the reason why a request cannot run: no such command, or a wrong number of arguments.
    #[cold]
    fn refuse_unresolved(&mut self, args: Args<'_>) {
        match self.store.index.resolve(args) {
            Ok(id) => self.admit_and_run(id, args),
            Err((None, _)) if is_http(args) => self.close_http(),
            Err((id, error)) => {
                self.session().activity.last_command = id;
                self.refuse(id, &error);
            }
        }
    }

    /// What a transaction queues counts as input that waits, and has the same limit.
    fn answer_queued(&mut self, bytes: usize) {
        if bytes > self.store.config.settings().query_buffer_limit_bytes
            && !self.store.is_replay(self.session)
        {
            let session = self.session();
            tracing::warn!(
                conn_id = session.id,
                client = %session.identity.peer.addr,
                bytes,
                "closing a client whose transaction is too large"
            );
            self.store.telemetry.stats.query_limit_disconnections += 1;
            let session = self.session();
            session.ending.closing = true;
            session.ending.leaving.get_or_insert("query buffer limit");
            self.store.effect(Effect::Close(self.session));
            self.flow = Flow::Close;
            return;
        }
        self.reply.simple("QUEUED");
    }

    /// A browser that was tricked into talking to the server gets nothing, and no second line. The log says so at most
    /// once a minute.
    fn close_http(&mut self) {
        let session = self.session();
        session.ending.closing = true;
        session.ending.leaving.get_or_insert("HTTP request");
        let (conn_id, client) = (session.id, session.identity.peer.addr.clone());
        if self.store.clients.may_log_http(self.now.mono_ns) {
            tracing::warn!(
                conn_id,
                "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis. Connection from {client} aborted; nothing more of what it sent runs."
            );
        }
        self.store.effect(Effect::Close(self.session));
        self.flow = Flow::Close;
    }

    /// Everything that can stop a well-formed command before it runs.
    fn admit(&mut self, id: CommandId, args: Args<'_>) -> Result<(), CommandError> {
        if self.store.is_replay(self.session) {
            return Ok(());
        }
        let row = self.store.index.get(id).row;
        // As `Store::is_trusted` has it; every command comes by here, so the session is looked up once.
        let open = self.store.clients.open;
        let session = self.session();
        if !session.login.is_trusted(open) && !row.has(flag::NO_AUTH) {
            return Err(CommandError::NO_AUTH);
        }
        let queued_flags = if row.has(flag::RUNS_QUEUED) {
            session
                .transaction
                .multi
                .as_ref()
                .map_or(0, |multi| multi.flags)
        } else {
            0
        };
        if session.transaction.multi.is_some() && row.has(flag::NO_MULTI) {
            return Err(CommandError::fixed(
                "ERR Command not allowed inside a transaction",
            ));
        }
        let in_transaction = session.transaction.multi.is_some();
        let monitor = session.modes.monitor;
        let subscriber = session.in_subscribe_mode();
        let user = session.login.user;
        self.check_permission_of(user, id, args)
            .map_err(|(_, error)| error)?;
        let out_of_memory = self.is_out_of_memory();
        let disk_failed =
            self.store.persistence.saves.last_failed || self.store.persistence.aof_error.is_some();
        if out_of_memory || disk_failed {
            let flags = self.request_flags(id, args) | queued_flags;
            // Queueing takes memory too, whatever is queued.
            let denied =
                flags & flag::DENYOOM != 0 || in_transaction && !row.has(flag::ENDS_TRANSACTION);
            if denied && out_of_memory {
                return Err(CommandError::OOM);
            }
            if disk_failed
                && (flags & flag::WRITE != 0 || row.has(flag::REFUSED_WITH_WRITES))
                && let Some(error) = self.store.disk_error()
            {
                return Err(error);
            }
        }
        if subscriber && !row.has(flag::WHILE_SUBSCRIBED) {
            let full_name = &self.store.index.get(id).full_name;
            return Err(CommandError::new(format!(
                "ERR Can't execute '{full_name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
            )));
        }
        const KEYSPACE: u32 = flag::WRITE | flag::READONLY | flag::MAY_REPLICATE;
        if monitor && (row.flags | queued_flags) & KEYSPACE != 0 {
            return Err(CommandError::fixed(
                "ERR Replica can't interact with the keyspace",
            ));
        }
        if self.store.persistence.loading.is_some() && !row.has(flag::LOADING) {
            return Err(CommandError::LOADING);
        }
        if self.store.run.busy && !row.has(flag::ALLOW_BUSY) {
            return Err(self.store.busy_error());
        }
        Ok(())
    }

    /// During CLIENT PAUSE, everything (or everything that writes) waits.
    fn must_wait_for_pause(&mut self, id: CommandId, args: Args<'_>) -> bool {
        const WRITES: u32 = flag::WRITE | flag::MAY_REPLICATE;
        let clients = &self.store.clients;
        let Some(pause) = clients.pause else {
            return false;
        };
        let all = !pause.writes_only;
        let row = self.store.index.get(id).row;
        let queued = self
            .session()
            .transaction
            .multi
            .as_ref()
            .map_or(0, |multi| multi.flags);
        let writes = row.has(flag::RUNS_QUEUED) && queued & WRITES != 0
            || self.request_flags(id, args) & WRITES != 0;
        all || writes
    }

    /// The flags of a request: those of its row, except that a script or function with declared flags writes or does
    /// not write by them.
    fn request_flags(&mut self, id: CommandId, args: Args<'_>) -> u32 {
        let row = self.store.index.get(id).row;
        let scripts = &mut self.store.scripts;
        let declared = row.script.and_then(|script| match script {
            Script::Source => scripts.declared_flags(false, &args[1]),
            Script::Sha => scripts.declared_flags(true, &args[1]),
            Script::Function => scripts.function_flags(&args[1]),
        });
        let Some(declared) = declared else {
            return row.flags;
        };
        let mut flags = row.flags & !flag::MAY_REPLICATE;
        if declared & script_flag::NO_WRITES == 0 {
            flags |= flag::WRITE;
            if declared & script_flag::ALLOW_OOM == 0 {
                flags |= flag::DENYOOM;
            }
        }
        flags
    }

    /// Replies with an error to a command that did not run. Inside MULTI, EXEC will be refused.
    fn refuse(&mut self, id: Option<CommandId>, error: &CommandError) {
        if let Some(id) = id {
            self.store.telemetry.stats.commands[usize::from(id.0)].rejected += 1;
            if self.store.index.get(id).row.has(flag::RUNS_QUEUED) {
                return self.abort_exec(error);
            }
        }
        self.store.telemetry.stats.count_error(error.code());
        if let Some(multi) = &mut self.session().transaction.multi {
            multi.refused = true;
        }
        self.reply.error(error.as_bytes());
    }

    /// An EXEC that may not run ends its transaction, and says why.
    fn abort_exec(&mut self, error: &CommandError) {
        let reason = error.as_bytes();
        let reason = reason.strip_prefix(b"ERR ").unwrap_or(reason);
        let text = [b"EXECABORT Transaction discarded because of: ", reason].concat();
        self.store.telemetry.stats.count_error(b"EXECABORT");
        self.store.discard_transaction(self.session);
        self.reply.error(&text);
    }
}

/// The first words of an HTTP request that reach a Redis port when a browser is made to send it
/// one: the method, and the first header a browser does not leave out.
fn is_http(args: Args<'_>) -> bool {
    args[0].eq_ignore_ascii_case(b"POST") || args[0].eq_ignore_ascii_case(b"Host:")
}

#[cfg(test)]
mod tests {
    use crate::engine::store::{Effect, Flow};
    use crate::testing::Lab;

    #[test]
    fn scripts_with_declared_flags_are_refused_like_writes_when_saving_fails() {
        let mut lab = Lab::new();
        lab.configure("save", "900 1");
        lab.store.persistence.saves.last_failed = true;
        let client = lab.client;
        let mut send = |words: &[&str]| {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            lab.send(client, &words)
        };
        let refused = send(&["SET", "a", "b"]);
        assert!(refused.starts_with("-MISCONF"), "{refused}");
        assert_eq!(send(&["EVAL", "#!lua\nreturn 1", "0"]), refused);
        assert_eq!(send(&["EVAL_RO", "#!lua\nreturn 1", "0"]), refused);
        let reads = "#!lua flags=no-writes\nreturn 1";
        assert_eq!(send(&["EVAL", reads, "0"]), ":1\r\n");
        assert_eq!(send(&["EVAL", "return 1", "0"]), ":1\r\n");
        let stats = send(&["INFO", "commandstats"]);
        for (command, calls) in [("set", 0), ("eval", 2), ("eval_ro", 0)] {
            let line = stats
                .lines()
                .find(|line| line.starts_with(&format!("cmdstat_{command}:")));
            let line = line.unwrap_or_else(|| panic!("no line of {command} in {stats}"));
            assert!(line.contains(&format!(":calls={calls},")), "{line}");
            assert!(line.ends_with("rejected_calls=1,failed_calls=0"), "{line}");
        }
    }

    #[test]
    fn http_is_closed_without_an_answer() {
        for line in ["POST / HTTP/1.1", "host: example"] {
            let mut lab = Lab::new();
            assert_eq!(lab.run(line), "");
            assert_eq!(lab.last_flow, Flow::Close);
            assert_eq!(lab.run("SET a 1"), "", "nothing more runs after {line:?}");
        }
    }

    #[test]
    fn a_held_command_that_is_held_again_is_not_lost() {
        let mut lab = Lab::new();
        let (second, third) = (lab.connect(), lab.connect());
        lab.check(&[("CLIENT PAUSE 600 ALL", "+OK\r\n")]);
        assert_eq!(lab.run_as(second, "CLIENT PAUSE 600 ALL"), "");
        assert_eq!(lab.run_as(third, "SET lost 1"), "");
        lab.advance_ms(600);
        assert_eq!(lab.received(second), "+OK\r\n");
        assert_eq!(lab.received(third), "", "held by the second pause");
        let resumed = |lab: &mut Lab| {
            let effects = lab.effects().into_iter();
            let resumes = effects.filter_map(|effect| match effect {
                Effect::Resume(key) => Some(key),
                _ => None,
            });
            resumes.collect::<Vec<_>>()
        };
        assert_eq!(resumed(&mut lab), [second]);
        lab.advance_ms(600);
        assert_eq!(lab.received(third), "+OK\r\n");
        assert_eq!(resumed(&mut lab), [third]);
        lab.check(&[("GET lost", "$1\r\n1\r\n")]);
    }

    #[test]
    fn held_commands_run_in_the_order_they_came() {
        let mut lab = Lab::new();
        let (low, high) = (lab.connect(), lab.connect());
        lab.check(&[("CLIENT PAUSE 400 WRITE", "+OK\r\n")]);
        assert_eq!(lab.run_as(high, "SET order first"), "");
        assert_eq!(lab.run_as(low, "SET order second"), "");
        lab.advance_ms(400);
        lab.check(&[("GET order", "$6\r\nsecond\r\n")]);
    }

    #[test]
    fn a_transaction_has_the_limit_of_waiting_input() {
        let mut lab = Lab::new();
        lab.configure("client-query-buffer-limit", "1mb");
        lab.check(&[("MULTI", "+OK\r\n")]);
        let (client, value) = (lab.client, vec![b'x'; 400_000]);
        for _ in 0..2 {
            assert_eq!(lab.send(client, &[b"SET", b"a", &value]), "+QUEUED\r\n");
        }
        assert_eq!(lab.send(client, &[b"SET", b"a", &value]), "");
        assert_eq!(lab.last_flow, Flow::Close);
    }

    #[test]
    fn a_monitor_may_not_touch_the_keyspace() {
        let mut lab = Lab::new();
        lab.check(&[("MONITOR", "+OK\r\n")]);
        assert!(
            lab.run("GET a")
                .contains("-ERR Replica can't interact with the keyspace\r\n")
        );
    }

    #[test]
    fn a_clock_set_back_does_not_put_housekeeping_off() {
        let mut lab = Lab::new();
        lab.host.now.unix_us -= 3_600_000_000;
        lab.advance_ms(1);
        let ahead_ms = lab.store.next_deadline() - lab.host.now.unix_ms();
        assert!(ahead_ms <= 100, "{ahead_ms} ms");
    }

    #[test]
    fn hz_sets_the_period_of_housekeeping() {
        let mut lab = Lab::new();
        for (hz, period_ms) in [("10", 100), ("500", 2), ("1", 1000)] {
            lab.configure("hz", hz);
            lab.advance_ms(1000);
            let ahead_ms = lab.store.next_deadline() - lab.host.now.unix_ms();
            assert_eq!(ahead_ms, period_ms, "hz {hz}");
        }
    }
}
