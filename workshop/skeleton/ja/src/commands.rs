//! CommandHandler: コマンドに対応する関数を選んで実行します。

use std::sync::{Arc, MutexGuard, PoisonError};

use crate::error::CommandError;
use crate::expiry::ExpiryManager;
use crate::pubsub::PubSubManager;
use crate::session::ClientSession;
use crate::stats::Stats;
use crate::store::{DataStore, SharedStore};

/// エンコードする前の、コマンドの実行結果です。
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// `+text`
    Simple(&'static str),
    /// `:number`
    Integer(i64),
    /// `$length` とバイト列、または Null Bulk String。
    Bulk(Option<Vec<u8>>),
    /// `*count` とその個数の応答（ステップ 6）。
    Array(Vec<Reply>),
}

/// 共有ストアに対してコマンドを実行します。
pub struct CommandHandler {
    store: SharedStore,
    expiry: Arc<ExpiryManager>,
    pubsub: Arc<PubSubManager>,
    stats: Arc<Stats>,
}

impl CommandHandler {
    /// 実装済み。
    pub fn new(
        store: SharedStore,
        expiry: Arc<ExpiryManager>,
        pubsub: Arc<PubSubManager>,
        stats: Arc<Stats>,
    ) -> CommandHandler {
        CommandHandler { store, expiry, pubsub, stats }
    }

    /// 実装済み。コマンド名で関数を選び、引数の個数を確認してから実行します。
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

    /// ステップ 3。GET: キーの値、または null を返します。
    /// ストアをロックする（`let store = self.store();`）。`store.get(key)` は `Option<&[u8]>`、`Reply::Bulk` に必要なのは
    /// `Option<Vec<u8>>`。
    /// ステップ 4: その前に `self.expiry.check_and_remove_expired(&mut store, key)` を呼ぶ。INCR、EXPIRE、TTL も同様。
    fn execute_get(&self, key: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 3: commands.rs")
    }

    /// ステップ 3。SET: 値を設定し、OK を返します。
    /// ステップ 7: そのあと `self.pubsub.notify('$', "set", key)` を呼びます。
    fn execute_set(&self, key: &[u8], value: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 3: commands.rs")
    }

    /// ステップ 3。INCR: 1 を加え、新しい数値を返します。キーがなければ 0 とみなします。
    /// `parse_integer(value)?` で数値を読む。`checked_add(1)` はオーバーフローすると `None` になり、それは
    /// `CommandError::NotAnInteger` とする。新しい数値は文字列として、TTL を保つ `store.update` で保存する。
    fn execute_incr(&self, key: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 3: commands.rs")
    }

    /// ステップ 4。EXPIRE: 有効期限を設定したら 1、キーがなければ 0 を返します。
    /// 1. ストアをロックし、Passive expiry のチェックを行う。
    /// 2. 0 秒以下ならキーを削除する。存在していれば 1、なければ 0 を返す。
    /// 3. それ以外は `store.set_expiry(key, deadline(self.expiry.now_ms(), seconds))` を呼ぶ。
    fn execute_expire(&self, key: &[u8], seconds: i64) -> Result<Reply, CommandError> {
        todo!("step 4: commands.rs")
    }

    /// ステップ 4。TTL: 残り秒数（切り上げ）を返します。有効期限がなければ -1、キーがなければ -2。
    /// 時刻は進み続けるので `saturating_sub` で引き、`milliseconds.div_ceil(1000)` で切り上げます。
    fn execute_ttl(&self, key: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 4: commands.rs")
    }

    /// ステップ 6。PUBLISH: メッセージを受け取ったクライアントの数を返します。
    fn execute_publish(&self, channel: &[u8], message: &[u8]) -> Result<Reply, CommandError> {
        todo!("step 6: commands.rs")
    }

    /// ステップ 6。購読中かもしれない接続のコマンドです。応答はチャンネルごとに 1 つずつ、複数になることがあります。
    /// 1. SUBSCRIBE、PSUBSCRIBE、UNSUBSCRIBE、PUNSUBSCRIBE は、下の `self.subscribe` と `self.unsubscribe`。最初の 2 つには
    ///    名前が 1 つ以上必要。なければ 3 に進み、エラーを返す。
    /// 2. `session.is_subscribed()` のあいだは、PING には `pubsub_pong(arguments)` を返し、QUIT は実行し、それ以外は
    ///    `CommandError::PubSubMode`。
    /// 3. それ以外のコマンドは `self.execute(command)`。
    pub fn execute_in_session(
        &self,
        session: &mut ClientSession,
        command: &[Vec<u8>],
    ) -> Result<Vec<Reply>, CommandError> {
        todo!("step 6: commands.rs")
    }

    /// 実装済み（ステップ 6 用）。SUBSCRIBE、`pattern` が true なら PSUBSCRIBE。
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

    /// 実装済み（ステップ 6 用）。UNSUBSCRIBE、`pattern` が true なら PUNSUBSCRIBE。名前がなければすべて解除します。
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

    /// 実装済み（ステップ 6 用）。接続の終了時に、すべての購読を解除します。
    pub fn forget(&self, session: &mut ClientSession) {
        self.unsubscribe(session, &[], false);
        self.unsubscribe(session, &[], true);
    }

    /// ステップ 7。EX 付きの SET: `seconds` 秒後に期限切れになる値を一度に設定し（0 以下は
    /// `CommandError::NotAnInteger`）、SET と同じく通知します。
    fn execute_set_with_expiry(&self, key: &[u8], value: &[u8], seconds: i64) -> Result<Reply, CommandError> {
        todo!("step 7: commands.rs")
    }

    /// 実装済み。ストアをロックします。以前のコマンドがパニックしていても使えます。
    fn store(&self) -> MutexGuard<'_, DataStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 実装済み。バイト列を 64 ビット整数に変換します。
fn parse_integer(bytes: &[u8]) -> Result<i64, CommandError> {
    let text = str::from_utf8(bytes).map_err(|_| CommandError::NotAnInteger)?;
    text.parse().map_err(|_| CommandError::NotAnInteger)
}

/// 実装済み。`now_ms` から `seconds` 秒後の時刻（ミリ秒）。`seconds` が大きくても安全です。
fn deadline(now_ms: u64, seconds: i64) -> u64 {
    now_ms.saturating_add(seconds.unsigned_abs().saturating_mul(1000))
}

fn is(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// 実装済み（ステップ 6 用）。購読と解除への応答: 種類、チャンネル、購読の数。
fn subscription(kind: &str, name: Option<Vec<u8>>, count: usize) -> Reply {
    Reply::Array(vec![Reply::Bulk(Some(kind.into())), Reply::Bulk(name), Reply::Integer(count as i64)])
}

/// 実装済み（ステップ 6 用）。購読中の PING への応答。
fn pubsub_pong(arguments: &[Vec<u8>]) -> Reply {
    let message = arguments.first().cloned().unwrap_or_default();
    Reply::Array(vec![Reply::Bulk(Some(b"pong".to_vec())), Reply::Bulk(Some(message))])
}
