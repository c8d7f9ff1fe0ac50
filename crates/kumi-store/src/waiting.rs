//! Sessions that wait: for a key, for replicas, for the end of a pause.
//!
//! A command that finds nothing to take leaves its session waiting for its keys. When a command
//! changes one of them, the waiting commands are executed again, first come first served, after the
//! command, transaction or script that made the key ready: [`Store::serve_ready`]. A command that
//! still finds nothing keeps its place and its deadline. It is shown to MONITOR once, when it first
//! runs, and counted once, when it ends.
//!
//! Deadlines are on the steady clock, so that a wait neither stretches nor ends when the wall clock
//! is set.

use crate::command::CommandId;
use crate::ctx::Ctx;
use crate::host::Host;
use crate::keyspace::{Look, Type};
use crate::output::Outputs;
use crate::session::{Blocked, BlockedOn, SessionKey};
use crate::store::{Effect, Flow, Store};
use kumi_resp::{Args, OwnedArgs, Protocol};

/// A command that waits for one of its keys.
#[derive(Debug)]
pub(crate) struct KeyWait {
    pub(crate) id: CommandId,
    pub(crate) args: OwnedArgs,
    pub(crate) db: usize,
    pub(crate) keys: Vec<Box<[u8]>>,
    pub(crate) wake: Wake,
}

/// Which changes of a key end the wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the blocking commands come next")]
pub(crate) enum Wake {
    /// The key holds this type. Deletion and other types leave the session waiting.
    Holds(Type),
    /// Any change: a consumer group is lost with its key, and the command answers an error.
    Any,
}

impl Ctx<'_> {
    /// Whether a command that finds nothing may wait. Inside a transaction it answers at once.
    #[allow(dead_code, reason = "the blocking commands come next")]
    pub(crate) fn may_block(&self) -> bool {
        !self.in_exec
    }

    /// Leaves the session waiting until one of `keys` is ready or `timeout_ms` have passed, 0 for
    /// no limit. The command is executed again then.
    #[allow(dead_code, reason = "the blocking commands come next")]
    pub(crate) fn block_on_keys<'k>(
        &mut self,
        id: CommandId,
        args: Args<'_>,
        keys: impl IntoIterator<Item = &'k [u8]>,
        wake: Wake,
        timeout_ms: u64,
    ) {
        if self.resumed {
            // It keeps its place and its deadline: `serve_ready` puts the old wait back.
            self.flow = Flow::Blocked;
            return;
        }
        let until_ns = (timeout_ms > 0).then(|| {
            self.now
                .mono_ns
                .saturating_add(timeout_ms.saturating_mul(1_000_000))
        });
        self.block(Blocked {
            on: BlockedOn::Keys(Box::new(KeyWait {
                id,
                args: args.to_owned(),
                db: self.db,
                keys: keys.into_iter().map(Box::from).collect(),
                wake,
            })),
            until_ns,
        });
    }
}

impl Store {
    /// Leaves a session waiting.
    pub(crate) fn block(&mut self, key: SessionKey, blocked: Blocked) {
        match &blocked.on {
            BlockedOn::Pause(_) => self.held.push_back(key),
            BlockedOn::Keys(wait) => {
                for name in &wait.keys {
                    self.keyspace.waiters.add(wait.db, name, key);
                }
            }
            BlockedOn::Replicas => {}
        }
        if let Some(until_ns) = blocked.until_ns {
            self.wait_deadlines.insert((until_ns, key));
        }
        if let Some(session) = self.sessions.get_mut(key) {
            session.blocked = Some(blocked);
            self.blocked += 1;
        }
    }

    /// Ends a session's wait, and has its input decoded again; the caller writes the reply.
    pub(crate) fn unblock(&mut self, key: SessionKey) -> Option<Blocked> {
        let blocked = self.end_wait(key)?;
        self.effect(Effect::Resume(key));
        Some(blocked)
    }

    /// Ends a session's wait, and leaves its input alone.
    pub(crate) fn end_wait(&mut self, key: SessionKey) -> Option<Blocked> {
        let blocked = self.sessions.get_mut(key)?.blocked.take()?;
        self.blocked -= 1;
        self.forget_wait(key, &blocked);
        Some(blocked)
    }

    pub(crate) fn forget_wait(&mut self, key: SessionKey, blocked: &Blocked) {
        if let Some(until_ns) = blocked.until_ns {
            self.wait_deadlines.remove(&(until_ns, key));
        }
        if let BlockedOn::Keys(wait) = &blocked.on {
            for name in &wait.keys {
                self.keyspace.waiters.remove(wait.db, name, key);
            }
        }
    }

    /// When the first wait ends, in Unix milliseconds as of the last reading of the clocks.
    pub(crate) fn next_wait_end_ms(&self) -> Option<u64> {
        let &(until_ns, _) = self.wait_deadlines.first()?;
        let left_ns = until_ns.saturating_sub(self.now.mono_ns);
        Some((self.now.unix_us + left_ns.div_ceil(1000)).div_ceil(1000))
    }

    /// Ends the waits whose time is over.
    pub(crate) fn end_waits(&mut self, outputs: &mut Outputs) {
        while let Some(&(until_ns, key)) = self.wait_deadlines.first() {
            if until_ns > self.now.mono_ns {
                break;
            }
            self.wait_deadlines.pop_first();
            if let Some(blocked) = self.unblock(key) {
                self.answer_timeout(outputs, key, &blocked.on);
            }
        }
    }

    /// Writes the reply of a wait that ended without a result.
    pub(crate) fn answer_timeout(
        &mut self,
        outputs: &mut Outputs,
        key: SessionKey,
        on: &BlockedOn,
    ) {
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        if !session.takes_late_answer() {
            return;
        }
        let reply: &[u8] = match (on, session.protocol) {
            (BlockedOn::Replicas, _) => b":0\r\n",
            (BlockedOn::Keys(_), Protocol::Resp2) => b"*-1\r\n",
            (BlockedOn::Keys(_), Protocol::Resp3) => b"_\r\n",
            // A held command has not begun; it runs when the pause ends.
            (BlockedOn::Pause(_), _) => return,
        };
        outputs.push(key, reply);
        if let BlockedOn::Keys(wait) = on {
            self.record_call(wait.id, 0, false);
        }
        self.list_output(outputs, key);
    }

    /// Executes the commands of sessions whose keys are ready. A served command may make further
    /// keys ready, hence the loop; it never calls itself.
    pub(crate) fn serve_ready(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        // While clients are paused nobody is served: the keys stay ready.
        if self.serving_ready || self.pause.is_some() {
            return;
        }
        self.serving_ready = true;
        while self.keyspace.waiters.has_ready() {
            for (db, name) in self.keyspace.waiters.take_ready() {
                for key in self.keyspace.waiters.sessions(db, &name) {
                    if self.is_woken(key, db, &name) {
                        self.execute_again(key, outputs, host);
                    }
                }
            }
        }
        self.serving_ready = false;
    }

    /// Whether a session still waits for this key, and the key is what it waits for.
    fn is_woken(&mut self, key: SessionKey, db: usize, name: &[u8]) -> bool {
        let session = self.sessions.get(key);
        let Some(BlockedOn::Keys(wait)) = session
            .and_then(|session| session.blocked.as_ref())
            .map(|blocked| &blocked.on)
        else {
            return false;
        };
        match wait.wake {
            Wake::Any => true,
            Wake::Holds(wanted) => {
                let mut keys = self.keyspace.keys(db, self.now.unix_ms(), false);
                let entry = keys.look(name, Look::Quiet);
                entry.is_some_and(|entry| entry.type_of() == wanted)
            }
        }
    }

    /// Executes the command a session waits with. If it finds nothing, the session goes on waiting.
    fn execute_again(&mut self, key: SessionKey, outputs: &mut Outputs, host: &mut dyn Host) {
        let Some(session) = self.sessions.get_mut(key) else {
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
        let Some(session) = self.sessions.get_mut(key) else {
            return;
        };
        match flow {
            Flow::Blocked => session.blocked = Some(blocked),
            Flow::Done | Flow::Close => {
                self.blocked -= 1;
                self.forget_wait(key, &blocked);
                self.effect(match flow {
                    Flow::Close => Effect::CloseAfterFlush(key),
                    _ => Effect::Resume(key),
                });
            }
        }
    }
}
