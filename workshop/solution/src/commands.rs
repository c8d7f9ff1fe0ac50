//! en: CommandHandler: finds the function of a command and runs it.
//! ja: CommandHandler: コマンドに対応する関数を選んで実行します。

use std::sync::{Arc, MutexGuard, PoisonError};

use crate::error::CommandError;
use crate::expiry::ExpiryManager;
use crate::pubsub::PubSubManager;
use crate::session::ClientSession;
use crate::stats::Stats;
use crate::store::{DataStore, SharedStore};

/// en: The result of a command, before it is encoded.
/// ja: エンコードする前の、コマンドの実行結果です。
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// en: `+text`
    /// ja: `+text`
    Simple(&'static str),
    /// en: `:number`
    /// ja: `:number`
    Integer(i64),
    /// en: `$length` and bytes, or the null bulk string.
    /// ja: `$length` とバイト列、または Null Bulk String。
    Bulk(Option<Vec<u8>>),
    /// en: `*count` and that many replies (step 6).
    /// ja: `*count` とその個数の応答（ステップ 6）。
    Array(Vec<Reply>),
}

/// en: Runs commands against the shared store.
/// ja: 共有ストアに対してコマンドを実行します。
pub struct CommandHandler {
    store: SharedStore,
    expiry: Arc<ExpiryManager>,
    pubsub: Arc<PubSubManager>,
    stats: Arc<Stats>,
}

impl CommandHandler {
    /// en: Given.
    /// ja: 実装済み。
    pub fn new(
        store: SharedStore,
        expiry: Arc<ExpiryManager>,
        pubsub: Arc<PubSubManager>,
        stats: Arc<Stats>,
    ) -> CommandHandler {
        CommandHandler { store, expiry, pubsub, stats }
    }

    /// en: Given. Finds the command by its name, checks the number of arguments, and runs it.
    /// ja: 実装済み。コマンド名で関数を選び、引数の個数を確認してから実行します。
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

    /// en: Step 3. GET: the value of a key, or null.
    /// en: Lock the store (`let store = self.store();`); `store.get(key)` is an `Option<&[u8]>`, and `Reply::Bulk` wants an
    /// en: `Option<Vec<u8>>`.
    /// en: Step 4: before that, `self.expiry.check_and_remove_expired(&mut store, key)`. The same in INCR, EXPIRE and TTL.
    /// ja: ステップ 3。GET: キーの値、または null を返します。
    /// ja: ストアをロックする（`let store = self.store();`）。`store.get(key)` は `Option<&[u8]>`、`Reply::Bulk` に必要なのは
    /// ja: `Option<Vec<u8>>`。
    /// ja: ステップ 4: その前に `self.expiry.check_and_remove_expired(&mut store, key)` を呼ぶ。INCR、EXPIRE、TTL も同様。
    fn execute_get(&self, key: &[u8]) -> Result<Reply, CommandError> {
        //@ step 3
        //| let store = self.store();
        //| let value = store.get(key).map(|value| value.to_vec());
        //| Ok(Reply::Bulk(value))
        //@ step 4 lines 2
        let mut store = self.store();
        self.expiry.check_and_remove_expired(&mut store, key);
        let value = store.get(key).map(|value| value.to_vec());
        Ok(Reply::Bulk(value))
        //@ end
    }

    /// en: Step 3. SET: stores a value and answers OK.
    /// en: Step 7: after that, `self.pubsub.notify('$', "set", key)`.
    /// ja: ステップ 3。SET: 値を設定し、OK を返します。
    /// ja: ステップ 7: そのあと `self.pubsub.notify('$', "set", key)` を呼びます。
    fn execute_set(&self, key: &[u8], value: &[u8]) -> Result<Reply, CommandError> {
        //@ step 3
        //| self.store().set(key, value.to_vec())?;
        //| Ok(Reply::Simple("OK"))
        //@ step 7
        self.store().set(key, value.to_vec())?;
        self.pubsub.notify('$', "set", key);
        Ok(Reply::Simple("OK"))
        //@ end
    }

    /// en: Step 3. INCR: adds 1 and answers the new number. A key that is not there counts as 0.
    /// en: `parse_integer(value)?` reads a number. `checked_add(1)` gives `None` when it would overflow: that is
    /// en: `CommandError::NotAnInteger`. Store the new number, as text, with `store.update`, which keeps the TTL.
    /// ja: ステップ 3。INCR: 1 を加え、新しい数値を返します。キーがなければ 0 とみなします。
    /// ja: `parse_integer(value)?` で数値を読む。`checked_add(1)` はオーバーフローすると `None` になり、それは
    /// ja: `CommandError::NotAnInteger` とする。新しい数値は文字列として、TTL を保つ `store.update` で保存する。
    fn execute_incr(&self, key: &[u8]) -> Result<Reply, CommandError> {
        //@ step 3
        //| let mut store = self.store();
        //| let number = match store.get(key) {
        //|     Some(value) => parse_integer(value)?,
        //|     None => 0,
        //| };
        //| let number = number.checked_add(1).ok_or(CommandError::NotAnInteger)?;
        //| store.update(key, number.to_string().into_bytes())?;
        //| Ok(Reply::Integer(number))
        //@ step 4 lines 1
        let mut store = self.store();
        self.expiry.check_and_remove_expired(&mut store, key);
        let number = match store.get(key) {
            Some(value) => parse_integer(value)?,
            None => 0,
        };
        let number = number.checked_add(1).ok_or(CommandError::NotAnInteger)?;
        store.update(key, number.to_string().into_bytes())?;
        Ok(Reply::Integer(number))
        //@ end
    }

    /// en: Step 4. EXPIRE: 1 if the key now has a deadline, 0 if there is no such key.
    /// en: 1. lock the store and make the passive check;
    /// en: 2. 0 seconds or less delete the key: answer 1 if it was there, else 0;
    /// en: 3. otherwise `store.set_expiry(key, deadline(self.expiry.now_ms(), seconds))`.
    /// ja: ステップ 4。EXPIRE: 有効期限を設定したら 1、キーがなければ 0 を返します。
    /// ja: 1. ストアをロックし、Passive expiry のチェックを行う。
    /// ja: 2. 0 秒以下ならキーを削除する。存在していれば 1、なければ 0 を返す。
    /// ja: 3. それ以外は `store.set_expiry(key, deadline(self.expiry.now_ms(), seconds))` を呼ぶ。
    fn execute_expire(&self, key: &[u8], seconds: i64) -> Result<Reply, CommandError> {
        //@ step 4
        let mut store = self.store();
        self.expiry.check_and_remove_expired(&mut store, key);
        let changed = if seconds <= 0 {
            store.delete(key)
        } else {
            store.set_expiry(key, deadline(self.expiry.now_ms(), seconds))
        };
        Ok(Reply::Integer(i64::from(changed)))
        //@ end
    }

    /// en: Step 4. TTL: the seconds that are left, rounded up; -1 without a deadline, -2 without a key.
    /// en: Subtract with `saturating_sub`, because time goes on; `milliseconds.div_ceil(1000)` rounds up.
    /// ja: ステップ 4。TTL: 残り秒数（切り上げ）を返します。有効期限がなければ -1、キーがなければ -2。
    /// ja: 時刻は進み続けるので `saturating_sub` で引き、`milliseconds.div_ceil(1000)` で切り上げます。
    fn execute_ttl(&self, key: &[u8]) -> Result<Reply, CommandError> {
        //@ step 4
        let mut store = self.store();
        self.expiry.check_and_remove_expired(&mut store, key);
        if !store.exists(key) {
            return Ok(Reply::Integer(-2));
        }
        let Some(expiry_at) = store.expiry(key) else {
            return Ok(Reply::Integer(-1));
        };
        let left_ms = expiry_at.saturating_sub(self.expiry.now_ms());
        Ok(Reply::Integer(left_ms.div_ceil(1000) as i64))
        //@ end
    }

    /// en: Step 6. PUBLISH: answers how many clients got the message.
    /// ja: ステップ 6。PUBLISH: メッセージを受け取ったクライアントの数を返します。
    fn execute_publish(&self, channel: &[u8], message: &[u8]) -> Result<Reply, CommandError> {
        //@ step 6
        Ok(Reply::Integer(self.pubsub.publish(channel, message) as i64))
        //@ end
    }

    /// en: Step 6. A command of a connection that may be subscribed. It can have several replies, one per channel.
    /// en: 1. SUBSCRIBE, PSUBSCRIBE, UNSUBSCRIBE and PUNSUBSCRIBE: `self.subscribe` and `self.unsubscribe` below. The first two
    /// en:    need at least one name; without one they fall to point 3, which answers the error;
    /// en: 2. while `session.is_subscribed()`: PING answers `pubsub_pong(arguments)`, QUIT is executed, and everything else is
    /// en:    `CommandError::PubSubMode`;
    /// en: 3. all other commands: `self.execute(command)`.
    /// ja: ステップ 6。購読中かもしれない接続のコマンドです。応答はチャンネルごとに 1 つずつ、複数になることがあります。
    /// ja: 1. SUBSCRIBE、PSUBSCRIBE、UNSUBSCRIBE、PUNSUBSCRIBE は、下の `self.subscribe` と `self.unsubscribe`。最初の 2 つには
    /// ja:    名前が 1 つ以上必要。なければ 3 に進み、エラーを返す。
    /// ja: 2. `session.is_subscribed()` のあいだは、PING には `pubsub_pong(arguments)` を返し、QUIT は実行し、それ以外は
    /// ja:    `CommandError::PubSubMode`。
    /// ja: 3. それ以外のコマンドは `self.execute(command)`。
    pub fn execute_in_session(
        &self,
        session: &mut ClientSession,
        command: &[Vec<u8>],
    ) -> Result<Vec<Reply>, CommandError> {
        //@ step 6
        let Some((name, arguments)) = command.split_first() else {
            return Err(CommandError::UnknownCommand);
        };
        match name.to_ascii_uppercase().as_slice() {
            b"SUBSCRIBE" if !arguments.is_empty() => Ok(self.subscribe(session, arguments, false)),
            b"PSUBSCRIBE" if !arguments.is_empty() => Ok(self.subscribe(session, arguments, true)),
            b"UNSUBSCRIBE" => Ok(self.unsubscribe(session, arguments, false)),
            b"PUNSUBSCRIBE" => Ok(self.unsubscribe(session, arguments, true)),
            b"PING" if session.is_subscribed() => Ok(vec![pubsub_pong(arguments)]),
            b"QUIT" => Ok(vec![self.execute(command)?]),
            _ if session.is_subscribed() => Err(CommandError::PubSubMode),
            _ => Ok(vec![self.execute(command)?]),
        }
        //@ end
    }

    /// en: Given, for step 6. SUBSCRIBE, or PSUBSCRIBE with `pattern`.
    /// ja: 実装済み（ステップ 6 用）。SUBSCRIBE、`pattern` が true なら PSUBSCRIBE。
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

    /// en: Given, for step 6. UNSUBSCRIBE, or PUNSUBSCRIBE with `pattern`. Without names: all of them.
    /// ja: 実装済み（ステップ 6 用）。UNSUBSCRIBE、`pattern` が true なら PUNSUBSCRIBE。名前がなければすべて解除します。
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

    /// en: Given, for step 6. The connection ends: nothing is sent to it any more.
    /// ja: 実装済み（ステップ 6 用）。接続の終了時に、すべての購読を解除します。
    pub fn forget(&self, session: &mut ClientSession) {
        self.unsubscribe(session, &[], false);
        self.unsubscribe(session, &[], true);
    }

    /// en: Step 7. SET with EX: stores a value that expires after `seconds`, in one go (0 or less is
    /// en: `CommandError::NotAnInteger`), and notifies like SET.
    /// ja: ステップ 7。EX 付きの SET: `seconds` 秒後に期限切れになる値を一度に設定し（0 以下は
    /// ja: `CommandError::NotAnInteger`）、SET と同じく通知します。
    fn execute_set_with_expiry(&self, key: &[u8], value: &[u8], seconds: i64) -> Result<Reply, CommandError> {
        //@ step 7
        if seconds <= 0 {
            return Err(CommandError::NotAnInteger);
        }
        let mut store = self.store();
        store.set(key, value.to_vec())?;
        store.set_expiry(key, deadline(self.expiry.now_ms(), seconds));
        drop(store);
        self.pubsub.notify('$', "set", key);
        Ok(Reply::Simple("OK"))
        //@ end
    }

    /// en: Given. Locks the store. A command that panicked before does not make it unusable.
    /// ja: 実装済み。ストアをロックします。以前のコマンドがパニックしていても使えます。
    fn store(&self) -> MutexGuard<'_, DataStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// en: Given. Bytes as a 64-bit number.
/// ja: 実装済み。バイト列を 64 ビット整数に変換します。
fn parse_integer(bytes: &[u8]) -> Result<i64, CommandError> {
    let text = str::from_utf8(bytes).map_err(|_| CommandError::NotAnInteger)?;
    text.parse().map_err(|_| CommandError::NotAnInteger)
}

/// en: Given. `seconds` after `now_ms`, in milliseconds, however large `seconds` is.
/// ja: 実装済み。`now_ms` から `seconds` 秒後の時刻（ミリ秒）。`seconds` が大きくても安全です。
fn deadline(now_ms: u64, seconds: i64) -> u64 {
    now_ms.saturating_add(seconds.unsigned_abs().saturating_mul(1000))
}

fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// en: Given, for step 6. The reply to a (un)subscription: kind, channel, number of subscriptions.
/// ja: 実装済み（ステップ 6 用）。購読と解除への応答: 種類、チャンネル、購読の数。
fn subscription(kind: &str, name: Option<Vec<u8>>, count: usize) -> Reply {
    Reply::Array(vec![Reply::Bulk(Some(kind.into())), Reply::Bulk(name), Reply::Integer(count as i64)])
}

/// en: Given, for step 6. PING's reply while subscribed.
/// ja: 実装済み（ステップ 6 用）。購読中の PING への応答。
fn pubsub_pong(arguments: &[Vec<u8>]) -> Reply {
    let message = arguments.first().cloned().unwrap_or_default();
    Reply::Array(vec![Reply::Bulk(Some(b"pong".to_vec())), Reply::Bulk(Some(message))])
}
