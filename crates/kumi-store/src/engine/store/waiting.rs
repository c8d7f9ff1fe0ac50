//! Sessions that wait: for a key, for replicas, for the end of a pause.
//!
//! A command that finds nothing to take leaves its session waiting for its keys. When a command
//! changes one of them, the waiting commands are executed again, first come first served, after the
//! command, transaction or script that made the key ready: [`Store::serve_ready`]. A command that
//! still finds nothing keeps its place and its deadline. A command that can find nothing is not executed: of those that wait
//! with one consumer group, the rest stay where they are as soon as the group has read everything. It is shown to MONITOR once, when it first
//! runs, and counted once, when it ends.
//!
//! Deadlines are on the steady clock, so that a wait neither stretches nor ends when the wall clock
//! is set.

use crate::base::ids::CommandId;
use crate::base::ids::SessionKey;
use crate::data::keyspace::{Entry, Held, Keys, Look, Ticket, Type, Wake};
use crate::engine::command::flag;
use crate::engine::host::Host;
use crate::engine::output::Outputs;
use crate::engine::session::{Blocked, BlockedOn, KeyWait};
use crate::engine::store::ctx::Ctx;
use crate::engine::store::{Effect, Flow, Store};
use crate::types::stream::Stream;
use kumi_resp::{Args, Protocol};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

impl Ctx<'_> {
    /// Whether a command that finds nothing may wait. Inside a transaction it answers at once.
    pub(crate) fn may_block(&self) -> bool {
        !self.in_exec && !self.store.is_replay(self.session)
    }

    /// Leaves the session waiting until one of `keys` is ready or `timeout_ms` have passed, 0 for
    /// no limit. The command is executed again then.
    pub(crate) fn block_on_keys<'k>(
        &mut self,
        args: Args<'_>,
        keys: impl IntoIterator<Item = (&'k [u8], Wake)>,
        timeout_ms: u64,
    ) {
        if self.resumed {
            // It keeps its place and its deadline: `serve_ready` puts the old wait back.
            self.flow = Flow::Blocked;
            return;
        }
        let Some(id) = self.running else {
            return;
        };
        let until_ns = (timeout_ms > 0).then(|| {
            self.now
                .mono_ns
                .saturating_add(timeout_ms.saturating_mul(1_000_000))
        });
        let ticket = self.store.keyspace.interest.waiters.ticket();
        self.block(Blocked {
            on: BlockedOn::Keys(Box::new(KeyWait {
                id,
                args: args.to_owned(),
                db: self.db,
                keys: keys
                    .into_iter()
                    .map(|(name, wake)| (Box::from(name), wake))
                    .collect(),
                ticket,
            })),
            until_ns,
        });
    }
}

impl Store {
    /// Leaves a session waiting.
    pub(crate) fn block(&mut self, key: SessionKey, blocked: Blocked) {
        if let BlockedOn::Keys(wait) = &blocked.on {
            let waiters = &mut self.keyspace.interest.waiters;
            for (name, wake) in &wait.keys {
                waiters.add(wait.db, name, wait.ticket, key, wake);
            }
        }
        self.clients.block(key, blocked);
    }

    /// Ends a session's wait, and has its input decoded again; the caller writes the reply.
    pub(crate) fn unblock(&mut self, key: SessionKey) -> Option<Blocked> {
        let blocked = self.end_wait(key)?;
        self.effect(Effect::Resume(key));
        Some(blocked)
    }

    /// Ends a session's wait, and leaves its input alone.
    pub(crate) fn end_wait(&mut self, key: SessionKey) -> Option<Blocked> {
        let blocked = self.clients.sessions.get_mut(key)?.blocked.take()?;
        self.forget_wait(key, &blocked);
        Some(blocked)
    }

    pub(crate) fn forget_wait(&mut self, key: SessionKey, blocked: &Blocked) {
        self.clients.forget_wait(key, blocked);
        if let BlockedOn::Keys(wait) = &blocked.on {
            let waiters = &mut self.keyspace.interest.waiters;
            for (name, wake) in &wait.keys {
                waiters.remove(wait.db, name, wait.ticket, wake);
            }
        }
    }

    /// Ends the waits whose time is over.
    pub(crate) fn end_waits(&mut self, outputs: &mut Outputs) {
        while let Some(key) = self.clients.overdue_wait(self.now.mono_ns) {
            let Some(blocked) = self.unblock(key) else {
                break;
            };
            self.answer_timeout(outputs, key, &blocked.on);
        }
    }

    /// Writes the reply of a wait that ended without a result.
    pub(crate) fn answer_timeout(
        &mut self,
        outputs: &mut Outputs,
        key: SessionKey,
        on: &BlockedOn,
    ) {
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        if matches!(on, BlockedOn::Pause(_)) {
            // A held command has not begun; it runs when the pause ends.
            return;
        }
        if let BlockedOn::Aof(wait) = on {
            let reply = wait.reply(self.persistence.aof);
            return self.answer_late(outputs, key, on, &reply, false);
        }
        let reply: &[u8] = match (on, session.protocol) {
            (BlockedOn::Keys(_), Protocol::Resp2) => b"*-1\r\n",
            (BlockedOn::Keys(_), Protocol::Resp3) => b"_\r\n",
            (BlockedOn::Replicas | BlockedOn::Pause(_) | BlockedOn::Aof(_), _) => b":0\r\n",
        };
        self.answer_late(outputs, key, on, reply, false);
    }

    /// Counts a command whose wait ended without a result, and writes its reply if the client wants one.
    pub(crate) fn answer_late(
        &mut self,
        outputs: &mut Outputs,
        key: SessionKey,
        on: &BlockedOn,
        reply: &[u8],
        failed: bool,
    ) {
        if let BlockedOn::Keys(wait) = on {
            self.telemetry.record_call(wait.id, 0, failed);
        }
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        if session.takes_late_answer() {
            outputs.push(key, reply);
            self.list_output(outputs, key);
        }
    }

    /// Executes the commands of sessions whose keys are ready. A served command may make further
    /// keys ready, hence the loop; it never calls itself.
    pub(crate) fn serve_ready(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        // While all clients are paused no waiter is served: the keys stay ready. Neither inside of a script that has let
        // others be served, nor between the requests of an AOF: the command that runs them serves waiters at its end.
        let pause = self.clients.pause;
        if self.run.serving_ready
            || self.run.busy
            || self.persistence.loading.is_some()
            || pause.is_some_and(|pause| !pause.writes_only)
        {
            return;
        }
        self.run.serving_ready = true;
        // A pause of writes holds those back whose commands write: XREAD alone is served.
        let reads_only = pause.is_some();
        if !reads_only {
            self.keyspace.interest.waiters.release_held();
        }
        loop {
            let ready = self.keyspace.interest.waiters.take_ready();
            if ready.is_empty() {
                break;
            }
            for (db, name) in ready {
                if !self.serve_key(db, &name, reads_only, outputs, host) {
                    self.keyspace.interest.waiters.hold(db, name);
                }
            }
        }
        self.run.serving_ready = false;
    }

    /// Serves the sessions that wait for one key, first come first served. `false` if `reads_only` kept one from being
    /// served.
    fn serve_key(
        &mut self,
        db: usize,
        name: &[u8],
        reads_only: bool,
        outputs: &mut Outputs,
        host: &mut dyn Host,
    ) -> bool {
        let mut all = true;
        // A session that begins to wait meanwhile is not served in this turn.
        let end = self.keyspace.interest.waiters.ticket();
        let held = self.held(db, name);
        // The next session of each kind of wait, the one that came first on top.
        let mut next = BinaryHeap::new();
        for wake in self.keyspace.interest.waiters.served_by(db, name, held) {
            let first = (Ticket::default(), end);
            self.push_next(&mut next, (db, name), wake, first);
        }
        while let Some(Reverse((ticket, wake, key))) = next.pop() {
            // What was served before may have taken everything.
            if !self.may_serve(db, name, &wake) {
                continue;
            }
            let command = self.waiting_command(key, db);
            match command {
                Some(id) if reads_only && self.index.get(id).row.flags & flag::WRITE != 0 => {
                    all = false;
                }
                Some(_) => self.execute_again(key, outputs, host),
                None => {}
            }
            self.push_next(&mut next, (db, name), wake, (ticket.next(), end));
        }
        all
    }

    /// Lists the first session that waits for this under a key, with a place in the given range.
    fn push_next(
        &self,
        next: &mut BinaryHeap<Reverse<(Ticket, Wake, SessionKey)>>,
        (db, name): (usize, &[u8]),
        wake: Wake,
        (from, end): (Ticket, Ticket),
    ) {
        if let Some((ticket, key)) = self
            .keyspace
            .interest
            .waiters
            .first(db, name, &wake, from, end)
        {
            next.push(Reverse((ticket, wake, key)));
        }
    }

    fn held(&mut self, db: usize, name: &[u8]) -> Held {
        let mut keys = self.keyspace.keys(db, self.now.unix_ms(), false);
        let Some(held) = keys.look(name, Look::Quiet).map(Entry::type_of) else {
            return Held::Nothing;
        };
        match held {
            Type::Stream => Held::Stream(view_stream(&mut keys, name).and_then(Stream::top_id)),
            held => Held::Value(held),
        }
    }

    /// Whether a key still holds what is waited for.
    fn may_serve(&mut self, db: usize, name: &[u8], wake: &Wake) -> bool {
        let mut keys = self.keyspace.keys(db, self.now.unix_ms(), false);
        match wake {
            Wake::Holds(wanted) => {
                let entry = keys.look(name, Look::Quiet);
                entry.is_some_and(|entry| entry.type_of() == *wanted)
            }
            Wake::Behind(id) => {
                let last = view_stream(&mut keys, name).and_then(Stream::top_id);
                last.is_some_and(|last| last > *id)
            }
            Wake::Group(group) => {
                let Some(stream) = view_stream(&mut keys, name) else {
                    return true;
                };
                let last = stream.top_id();
                let group = stream.group(group);
                group.is_none_or(|group| last.is_some_and(|last| last > group.last_id()))
            }
        }
    }

    /// The command of a session that still waits for a key of this database.
    fn waiting_command(&self, key: SessionKey, db: usize) -> Option<CommandId> {
        let session = self
            .clients
            .sessions
            .get(key)
            .filter(|session| !session.ending.closing);
        let Some(BlockedOn::Keys(wait)) = session
            .and_then(|session| session.blocked.as_ref())
            .map(|blocked| &blocked.on)
        else {
            return None;
        };
        debug_assert_eq!(wait.db, db, "waiters are listed under their database");
        Some(wait.id)
    }

    /// Executes the command a session waits with. If it finds nothing, the session goes on waiting.
    fn execute_again(&mut self, key: SessionKey, outputs: &mut Outputs, host: &mut dyn Host) {
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        let Some(blocked) = session.blocked.take() else {
            return;
        };
        let BlockedOn::Keys(wait) = &blocked.on else {
            session.blocked = Some(blocked);
            return;
        };
        let flow = self.execute_resumed(key, wait, outputs, host);
        let Some(session) = self.clients.sessions.get_mut(key) else {
            return;
        };
        match flow {
            Flow::Blocked => session.blocked = Some(blocked),
            Flow::Done | Flow::Close => {
                self.forget_wait(key, &blocked);
                self.effect(match flow {
                    Flow::Close => Effect::CloseAfterFlush(key),
                    _ => Effect::Resume(key),
                });
            }
        }
    }
}

fn view_stream<'k>(keys: &'k mut Keys<'_>, name: &[u8]) -> Option<&'k Stream> {
    let stream = keys.view::<Box<Stream>>(name, Look::Quiet).ok()?;
    stream.flatten()
}
