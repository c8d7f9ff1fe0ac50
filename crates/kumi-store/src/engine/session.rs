//! A client in the engine: identity, selected database, transaction, subscriptions.
//!
//! Sockets and output buffers are the front's; `output.rs` has the latter.

mod planned;
mod reply_buffer;
mod wait;

use crate::base::ids::CommandId;
use crate::base::ids::UserId;
use crate::base::ids::{Class, SessionKey};
use kumi_resp::{OwnedArgs, Protocol};
pub(crate) use planned::{PackedName, Resolved};
pub(crate) use reply_buffer::{ReplyBuffer, ResizePolicy};
use std::collections::BTreeSet;
use std::sync::Arc;
pub use wait::AofProgress;
pub(crate) use wait::{AofWait, KeyWait};

/// What the front knows of a new client.
#[derive(Clone, Debug, Default)]
pub struct Peer {
    /// `ip:port`, or the socket's path with `:0`.
    pub addr: String,
    /// The local end, in the same form.
    pub laddr: String,
    /// Descriptor number, shown by CLIENT LIST.
    pub fd: i64,
    /// A Unix socket client.
    pub unix: bool,
    /// It connected where the default user may not log in: it can only authenticate as another one.
    pub named_users_only: bool,
}

impl Peer {
    /// A client on this machine, in the sense of `enable-debug-command local`.
    pub(crate) fn is_local(&self) -> bool {
        self.unix || self.addr.starts_with("127.0.0.1:") || self.addr.starts_with("[::1]:")
    }
}

/// How a client asked to be answered (CLIENT REPLY).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    #[default]
    On,
    Off,
    /// The running command's reply is dropped, then replies are on again.
    SkipThis,
    /// The next command becomes the one to skip.
    SkipNext,
}

/// Why a session waits.
#[derive(Debug)]
pub(crate) enum BlockedOn {
    /// WAIT: for replicas that do not exist yet, so until the timeout.
    Replicas,
    /// WAITAOF: until the append-only file is synced as far as the session has written.
    Aof(AofWait),
    /// CLIENT PAUSE: the command runs when the pause ends.
    Pause(OwnedArgs),
    /// A blocking command: it is executed again when one of its keys is ready.
    Keys(Box<KeyWait>),
}

#[derive(Debug)]
pub(crate) struct Blocked {
    pub(crate) on: BlockedOn,
    /// The end of the wait in nanoseconds of the steady clock; none waits for ever.
    pub(crate) until_ns: Option<u64>,
}

/// A transaction being queued.
#[derive(Debug, Default)]
pub(crate) struct Multi {
    pub(crate) commands: Vec<(CommandId, OwnedArgs)>,
    /// How many commands were queued; EXEC takes them out, and still shows their number.
    pub(crate) queued: usize,
    /// A queued command was refused: EXEC answers EXECABORT.
    pub(crate) refused: bool,
    /// Flags of all queued commands together.
    pub(crate) flags: u32,
    pub(crate) bytes: usize,
}

/// Names subscribed to, of the three kinds.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    pub(crate) channels: BTreeSet<Box<[u8]>>,
    pub(crate) patterns: BTreeSet<Box<[u8]>>,
    pub(crate) shard_channels: BTreeSet<Box<[u8]>>,
}

impl Subscriptions {
    /// What SUBSCRIBE's replies count: channels and patterns.
    pub(crate) fn count(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count() + self.shard_channels.len() == 0
    }
}

/// How a session tracks keys for its client-side cache (CLIENT TRACKING).
#[derive(Debug, Default)]
pub(crate) struct CacheTracking {
    /// Where its invalidations go: the id that was given, and the session that had it.
    pub(crate) redirect: Option<(u64, SessionKey)>,
    /// Invalidations are sent for all keys with its prefixes, instead of those it has read.
    pub(crate) bcast: bool,
    /// Reads are remembered only after CLIENT CACHING YES.
    pub(crate) optin: bool,
    /// Reads are remembered except after CLIENT CACHING NO.
    pub(crate) optout: bool,
    /// No invalidations are sent for its own changes.
    pub(crate) noloop: bool,
    /// CLIENT CACHING was sent for the next command.
    pub(crate) caching: bool,
    /// The session it redirects to was gone when something was to be sent.
    pub(crate) broken_redirect: bool,
    pub(crate) prefixes: BTreeSet<Box<[u8]>>,
}

impl CacheTracking {
    /// Whether the keys of the running command are remembered.
    pub(crate) fn remembers_reads(&self) -> bool {
        let wanted = if self.caching {
            !self.optout
        } else {
            !self.optin
        };
        wanted && !self.bcast
    }
}

/// The memory of a session's input, reported by the front.
#[derive(Clone, Copy, Debug, Default)]
pub struct InputUse {
    /// Bytes read and not yet executed.
    pub used: usize,
    /// Room left in the buffer.
    pub free: usize,
    /// Bytes that were announced, have not arrived, and for which no room is made yet. They count for the client, as in
    /// Redis, which makes the room at once; they are no memory in use.
    pub announced: usize,
    /// Bytes of the list of decoded arguments, and of inline words without their quotes.
    pub args: usize,
}

/// What CLIENT LIST tells a client by.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) peer: Peer,
    pub(crate) name: Vec<u8>,
    pub(crate) lib_name: Vec<u8>,
    pub(crate) lib_version: Vec<u8>,
    pub(crate) created_ms: u64,
}

/// As whom a session runs its commands.
#[derive(Debug)]
pub(crate) struct Login {
    pub(crate) authenticated: bool,
    /// The default user may not log in here, also if it needs no password.
    pub(crate) named_only: bool,
    pub(crate) user: UserId,
    pub(crate) user_name: Arc<[u8]>,
}

impl Login {
    /// Whether the session may do more than authenticate: it has, or the default user may log in here and needs no
    /// password now, which `open` says.
    #[inline]
    pub(crate) fn is_trusted(&self, open: bool) -> bool {
        self.authenticated || open && !self.named_only
    }
}

/// What a client has asked for that holds until it asks for something else.
#[derive(Debug, Default)]
pub(crate) struct Modes {
    pub(crate) monitor: bool,
    pub(crate) no_evict: bool,
    pub(crate) no_touch: bool,
    pub(crate) reply_mode: ReplyMode,
}

/// MULTI and WATCH.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    pub(crate) multi: Option<Multi>,
    /// Keys under WATCH, with their databases.
    pub(crate) watched: BTreeSet<(usize, Box<[u8]>)>,
    /// A watched key changed: EXEC answers null.
    pub(crate) watch_broken: bool,
}

/// What a session has done so far.
#[derive(Debug)]
pub(crate) struct Activity {
    pub(crate) last_active_ms: u64,
    pub(crate) last_command: Option<CommandId>,
    /// The row of a request that was decoded before, which the next one often has too.
    pub(crate) last_planned: Option<Resolved>,
    pub(crate) commands: u64,
    /// Position in the stream of all writes behind its last one; 0 if it has written nothing.
    pub(crate) written: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
}

/// The memory that is counted for a session.
#[derive(Debug)]
pub(crate) struct SessionMemory {
    pub(crate) input: InputUse,
    pub(crate) reply_buffer: ReplyBuffer,
    /// Bytes of the names it watches, subscribes to and tracks, here and in the indexes by name.
    pub(crate) name_bytes: usize,
    /// Its share of the total of all sessions' memory.
    pub(crate) counted_bytes: usize,
    /// `input.announced` as it is part of the total of all sessions.
    pub(crate) counted_announced: usize,
    /// When the soft output limit was first exceeded.
    pub(crate) soft_limit_since_ms: Option<u64>,
}

/// The end of a session.
#[derive(Debug, Default)]
pub(crate) struct Ending {
    /// No more commands run; the connection closes once the output is flushed.
    pub(crate) closing: bool,
    /// Why it ends, once that is known.
    pub(crate) leaving: Option<&'static str>,
}

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    /// The id CLIENT ID shows; never reused.
    pub(crate) id: u64,
    /// It replays an AOF: it is no client, and is neither listed nor counted.
    pub(crate) hidden: bool,
    pub(crate) identity: Identity,
    pub(crate) login: Login,
    /// The selected database.
    pub(crate) db: usize,
    pub(crate) protocol: Protocol,
    pub(crate) modes: Modes,
    pub(crate) transaction: Transaction,
    pub(crate) subscriptions: Subscriptions,
    /// None unless CLIENT TRACKING is on.
    pub(crate) tracking: Option<Box<CacheTracking>>,
    pub(crate) blocked: Option<Blocked>,
    pub(crate) activity: Activity,
    pub(crate) memory: SessionMemory,
    pub(crate) ending: Ending,
}

impl Session {
    pub(crate) fn new(
        slot: u32,
        id: u64,
        peer: Peer,
        authenticated: bool,
        user_name: Arc<[u8]>,
        now_ms: u64,
    ) -> Self {
        let named_only = peer.named_users_only;
        Self {
            key: SessionKey::new(slot, id),
            id,
            hidden: false,
            identity: Identity {
                peer,
                name: Vec::new(),
                lib_name: Vec::new(),
                lib_version: Vec::new(),
                created_ms: now_ms,
            },
            login: Login {
                authenticated: authenticated && !named_only,
                named_only,
                user: UserId::DEFAULT,
                user_name,
            },
            db: 0,
            protocol: Protocol::Resp2,
            modes: Modes::default(),
            transaction: Transaction::default(),
            subscriptions: Subscriptions::default(),
            tracking: None,
            blocked: None,
            activity: Activity {
                last_active_ms: now_ms,
                last_command: None,
                last_planned: None,
                commands: 0,
                written: 0,
                bytes_in: 0,
                bytes_out: 0,
            },
            memory: SessionMemory {
                input: InputUse::default(),
                reply_buffer: ReplyBuffer::new(now_ms),
                name_bytes: 0,
                counted_bytes: 0,
                counted_announced: 0,
                soft_limit_since_ms: None,
            },
            ending: Ending::default(),
        }
    }

    #[inline]
    pub(crate) fn class(&self) -> Class {
        if self.subscriptions.is_empty() {
            Class::Normal
        } else {
            Class::Pubsub
        }
    }

    /// What the session keeps on the heap, without its output.
    pub(crate) fn heap_bytes(&self) -> usize {
        let queued = self
            .transaction
            .multi
            .as_ref()
            .map_or(0, |multi| multi.bytes);
        let held = match &self.blocked {
            Some(Blocked {
                on: BlockedOn::Pause(args),
                ..
            }) => args.bytes(),
            Some(Blocked {
                on: BlockedOn::Keys(wait),
                ..
            }) => {
                let keys = wait
                    .keys
                    .iter()
                    .map(|(key, wake)| key.len() + size_of_val(wake));
                wait.args.bytes() + keys.sum::<usize>()
            }
            _ => 0,
        };
        let texts = self.identity.name.capacity()
            + self.identity.lib_name.capacity()
            + self.identity.lib_version.capacity();
        let input = self.memory.input.used + self.memory.input.free + self.memory.input.args;
        size_of::<Self>() + input + queued + held + texts + self.memory.name_bytes
    }

    /// The same with the bytes that are announced and still to come: what `tot-mem` shows and `maxmemory-clients` limits, but
    /// for the output.
    pub(crate) fn claimed_bytes(&self) -> usize {
        self.heap_bytes()
            .saturating_add(self.memory.input.announced)
    }

    /// Whether the answer of a wait that ends now is wanted. The command it belongs to is over.
    pub(crate) fn takes_late_answer(&mut self) -> bool {
        match self.modes.reply_mode {
            ReplyMode::On | ReplyMode::SkipNext => true,
            ReplyMode::Off => false,
            ReplyMode::SkipThis => {
                self.modes.reply_mode = ReplyMode::On;
                false
            }
        }
    }

    /// Counts a watched or subscribed name.
    pub(crate) fn count_name(&mut self, name: &[u8]) {
        self.memory.name_bytes += booked_bytes(name);
    }

    /// Undoes [`Session::count_name`].
    pub(crate) fn uncount_name(&mut self, name: &[u8]) {
        self.memory.name_bytes -= booked_bytes(name);
    }

    /// Whether the session has no state by which some commands are refused or queued: MULTI, MONITOR, and subscriptions
    /// in RESP2.
    #[inline]
    pub(crate) fn takes_any_command(&self) -> bool {
        self.transaction.multi.is_none() && !self.modes.monitor && !self.in_subscribe_mode()
    }

    /// In RESP2 a subscribed client may only manage its subscriptions.
    #[inline]
    pub(crate) fn in_subscribe_mode(&self) -> bool {
        self.protocol == Protocol::Resp2 && !self.subscriptions.is_empty()
    }
}

/// What a watched or subscribed name takes in its two indexes: its bytes, a fat pointer and its share
/// of a tree node in each, and the list of sessions.
fn booked_bytes(name: &[u8]) -> usize {
    const PER_BOOK: usize = 32;
    const ASKERS: usize = 64;
    2 * (name.len() + PER_BOOK) + ASKERS
}

/// All sessions, by slot and by client id.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    slots: Vec<Option<Box<Session>>>,
    free: Vec<u32>,
    last_id: u64,
    len: usize,
    next_visit: usize,
}

impl Sessions {
    pub(crate) fn add(
        &mut self,
        peer: Peer,
        authenticated: bool,
        user_name: Arc<[u8]>,
        now_ms: u64,
    ) -> SessionKey {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.last_id += 1;
        self.len += 1;
        let session = Session::new(slot, self.last_id, peer, authenticated, user_name, now_ms);
        let key = session.key;
        self.slots[slot as usize] = Some(Box::new(session));
        key
    }

    /// Makes a session one that replays an AOF: it is no client.
    pub(crate) fn hide(&mut self, key: SessionKey) {
        if let Some(session) = self.get_mut(key)
            && !session.hidden
        {
            session.hidden = true;
            self.len -= 1;
        }
    }

    pub(crate) fn remove(&mut self, key: SessionKey) -> Option<Box<Session>> {
        let hidden = self.get(key)?.hidden;
        self.free.push(key.slot);
        self.len -= usize::from(!hidden);
        self.slots[key.slot as usize].take()
    }

    #[inline]
    pub(crate) fn get(&self, key: SessionKey) -> Option<&Session> {
        self.slots
            .get(key.slot as usize)?
            .as_deref()
            .filter(|session| session.key == key)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: SessionKey) -> Option<&mut Session> {
        self.slots
            .get_mut(key.slot as usize)?
            .as_deref_mut()
            .filter(|session| session.key == key)
    }

    /// The number of clients.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The next `count` sessions, round and round, for work that is spread over time.
    pub(crate) fn visit(&mut self, count: usize, mut visit: impl FnMut(&mut Session)) {
        for _ in 0..count.min(self.slots.len()) {
            self.next_visit = (self.next_visit + 1) % self.slots.len();
            if let Some(session) = &mut self.slots[self.next_visit] {
                visit(session);
            }
        }
    }

    /// The clients in slot order; callers that show a list sort by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> {
        let sessions = self.slots.iter().filter_map(Option::as_deref);
        sessions.filter(|session| !session.hidden)
    }

    pub(crate) fn by_id(&self, id: u64) -> Option<&Session> {
        self.iter().find(|session| session.id == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_key_finds_nothing_after_its_slot_is_reused() {
        let mut sessions = Sessions::default();
        let first = sessions.add(Peer::default(), true, Arc::default(), 0);
        assert!(sessions.remove(first).is_some());
        let second = sessions.add(Peer::default(), true, Arc::default(), 0);
        assert_eq!(first.slot, second.slot);
        assert!(sessions.get(first).is_none());
        assert!(sessions.remove(first).is_none());
        assert_eq!(sessions.get(second).map(|session| session.id), Some(2));
        assert_eq!(sessions.len(), 1);
    }
}
