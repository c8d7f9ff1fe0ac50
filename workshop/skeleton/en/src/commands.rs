//! CommandHandler: finds the function of a command and runs it.

use std::sync::{Arc, MutexGuard, PoisonError};

use crate::error::CommandError;
use crate::expiry::ExpiryManager;
use crate::pubsub::PubSubManager;
use crate::session::ClientSession;
use crate::stats::Stats;
use crate::store::{DataStore, SharedStore};

/// The result of a command, before it is encoded.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// `+text`
    Simple(&'static str),
    /// `:number`
    Integer(i64),
    /// `$length` and bytes, or the null bulk string.
    Bulk(Option<Vec<u8>>),
    /// `*count` and that many replies (step 6).
    Array(Vec<Reply>),
}

/// Runs commands against the shared store.
pub struct CommandHandler {
    store: SharedStore,
    expiry: Arc<ExpiryManager>,
    pubsub: Arc<PubSubManager>,
    stats: Arc<Stats>,
}

impl CommandHandler {
    /// Given.
    pub fn new(
        store: SharedStore,
        expiry: Arc<ExpiryManager>,
        pubsub: Arc<PubSubManager>,
        stats: Arc<Stats>,
    ) -> CommandHandler {
        CommandHandler { store, expiry, pubsub, stats }
    }

    /// Given. Finds the command by its name, checks the number of arguments, and runs it.
    pub fn execute(&self, command: &[Vec<u8>]) -> Result<Reply, CommandError> {
        let Some((name, arguments)) = command.split_first() else {
            return Err(CommandError::UnknownCommand);
        };
        match (name.to_ascii_uppercase().as_slice(), arguments) {
            (b"PING", []) => Ok(Reply::Simple("PONG")),
            (b"PING" | b"ECHO", [message]) => Ok(Reply::Bulk(Some(message.clone()))),
            (b"QUIT", []) => Ok(Reply::Simple("OK")),
            (b"DBSIZE", []) => Ok(Reply::Integer(self.store().len() as i64)),
            (b"INFO", _) => Ok(Reply::Bulk(Some(self.stats.report(self.store().len()).into_bytes()))),
            (b"GET", [key]) => self.execute_get(key),
            (b"SET", [key, value]) => self.execute_set(key, value),
            (b"SET", [key, value, option, seconds]) if option.eq_ignore_ascii_case(b"EX") => {
                self.execute_set_with_expiry(key, value, parse_integer(seconds)?)
            }
            (b"SET", [_, _, _, ..]) => Err(CommandError::Syntax),
            (b"INCR", [key]) => self.execute_incr(key),
            (b"EXPIRE", [key, seconds]) => self.execute_expire(key, parse_integer(seconds)?),
            (b"TTL", [key]) => self.execute_ttl(key),
            (b"PUBLISH", [channel, message]) => self.execute_publish(channel, message),
            (b"CONFIG", [set, name, flags]) if is(set, "SET") && is(name, "notify-keyspace-events") => {
                self.pubsub.set_notifications(&String::from_utf8_lossy(flags));
                Ok(Reply::Simple("OK"))
            }
            (b"PING" | b"ECHO" | b"QUIT" | b"DBSIZE" | b"GET" | b"SET" | b"INCR" | b"EXPIRE" | b"TTL", _)
            | (b"PUBLISH" | b"SUBSCRIBE" | b"PSUBSCRIBE" | b"CONFIG", _) => Err(CommandError::WrongNumberOfArguments),
            _ => Err(CommandError::UnknownCommand),
        }
    }

    /// Step 3. GET: the value of a key, or null.
    /// Lock the store (`let store = self.store();`); `store.get(key)` is an `Option<&[u8]>`, and `Reply::Bulk` wants an
    /// `Option<Vec<u8>>`.
    /// Step 4: before that, `self.expiry.check_and_remove_expired(&mut store, key)`. The same in INCR, EXPIRE and TTL.
    fn execute_get(&self, key: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 3: commands.rs")
    }

    /// Step 3. SET: stores a value and answers OK.
    /// Step 7: after that, `self.pubsub.notify('$', "set", key)`.
    fn execute_set(&self, key: &[u8], value: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 3: commands.rs")
    }

    /// Step 3. INCR: adds 1 and answers the new number. A key that is not there counts as 0.
    /// `parse_integer(value)?` reads a number. `checked_add(1)` gives `None` when it would overflow: that is
    /// `CommandError::NotAnInteger`. Store the new number, as text, with `store.update`, which keeps the TTL.
    fn execute_incr(&self, key: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 3: commands.rs")
    }

    /// Step 4. EXPIRE: 1 if the key now has a deadline, 0 if there is no such key.
    /// 1. lock the store and make the passive check;
    /// 2. 0 seconds or less delete the key: answer 1 if it was there, else 0;
    /// 3. otherwise `store.set_expiry(key, deadline(self.expiry.now_ms(), seconds))`.
    fn execute_expire(&self, key: &[u8], seconds: i64) -> Result<Reply, CommandError> {
        todo!("step 4: commands.rs")
    }

    /// Step 4. TTL: the seconds that are left, rounded up; -1 without a deadline, -2 without a key.
    /// Subtract with `saturating_sub`, because time goes on; `milliseconds.div_ceil(1000)` rounds up.
    fn execute_ttl(&self, key: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 4: commands.rs")
    }

    /// Step 6. PUBLISH: answers how many clients got the message.
    fn execute_publish(&self, channel: &[u8], message: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 6: commands.rs")
    }

    /// Step 6. A command of a connection that may be subscribed. It can have several replies, one per channel.
    /// 1. SUBSCRIBE, PSUBSCRIBE, UNSUBSCRIBE and PUNSUBSCRIBE: `self.subscribe` and `self.unsubscribe` below. The first two
    ///    need at least one name; without one they fall to point 3, which answers the error;
    /// 2. while `session.is_subscribed()`: PING answers `pubsub_pong(arguments)`, QUIT is executed, and everything else is
    ///    `CommandError::PubSubMode`;
    /// 3. all other commands: `self.execute(command)`.
    pub fn execute_in_session(
        &self,
        session: &mut ClientSession,
        command: &[Vec<u8>],
    ) -> Result<Vec<Reply>, CommandError> {
        todo!("step 6: commands.rs")
    }

    /// Given, for step 6. SUBSCRIBE, or PSUBSCRIBE with `pattern`.
    fn subscribe(&self, session: &mut ClientSession, names: &[Vec<u8>], pattern: bool) -> Vec<Reply> {
        let kind = if pattern { "psubscribe" } else { "subscribe" };
        let each = names.iter().map(|name| {
            let count = match pattern {
                true => self.pubsub.psubscribe(session, name),
                false => self.pubsub.subscribe(session, name),
            };
            subscription(kind, Some(name.clone()), count)
        });
        each.collect()
    }

    /// Given, for step 6. UNSUBSCRIBE, or PUNSUBSCRIBE with `pattern`. Without names: all of them.
    fn unsubscribe(&self, session: &mut ClientSession, names: &[Vec<u8>], pattern: bool) -> Vec<Reply> {
        let kind = if pattern { "punsubscribe" } else { "unsubscribe" };
        let subscribed = if pattern { &session.patterns } else { &session.channels };
        let all: Vec<Vec<u8>> = subscribed.iter().cloned().collect();
        let names = if names.is_empty() { &all } else { names };
        if names.is_empty() {
            return vec![subscription(kind, None, session.count())];
        }
        let each = names.iter().map(|name| {
            let count = match pattern {
                true => self.pubsub.punsubscribe(session, name),
                false => self.pubsub.unsubscribe(session, name),
            };
            subscription(kind, Some(name.clone()), count)
        });
        each.collect()
    }

    /// Given, for step 6. The connection ends: nothing is sent to it any more.
    pub fn forget(&self, session: &mut ClientSession) {
        self.unsubscribe(session, &[], false);
        self.unsubscribe(session, &[], true);
    }

    /// Step 7. SET with EX: stores a value that expires after `seconds`, in one go (0 or less is
    /// `CommandError::NotAnInteger`), and notifies like SET.
    fn execute_set_with_expiry(&self, key: &[u8], value: &[u8], seconds: i64) -> Result<Reply, CommandError> {
        todo!("step 7: commands.rs")
    }

    /// Given. Locks the store. A command that panicked before does not make it unusable.
    fn store(&self) -> MutexGuard<'_, DataStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Given. Bytes as a 64-bit number.
fn parse_integer(bytes: &[u8]) -> Result<i64, CommandError> {
    let text = str::from_utf8(bytes).map_err(|_| CommandError::NotAnInteger)?;
    text.parse().map_err(|_| CommandError::NotAnInteger)
}

/// Given. `seconds` after `now_ms`, in milliseconds, however large `seconds` is.
fn deadline(now_ms: u64, seconds: i64) -> u64 {
    now_ms.saturating_add(seconds.unsigned_abs().saturating_mul(1000))
}

fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// Given, for step 6. The reply to a (un)subscription: kind, channel, number of subscriptions.
fn subscription(kind: &str, name: Option<Vec<u8>>, count: usize) -> Reply {
    Reply::Array(vec![Reply::Bulk(Some(kind.into())), Reply::Bulk(name), Reply::Integer(count as i64)])
}

/// Given, for step 6. PING's reply while subscribed.
fn pubsub_pong(arguments: &[Vec<u8>]) -> Reply {
    let message = arguments.first().cloned().unwrap_or_default();
    Reply::Array(vec![Reply::Bulk(Some(b"pong".to_vec())), Reply::Bulk(Some(message))])
}
