//! en: PubSubManager: the subscribers of each channel, and the delivery of messages. Not needed before step 6.
//! ja: PubSubManager: チャンネルの購読者を管理し、メッセージを届けます。ステップ 6 までは使いません。

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::Sender;

use crate::commands::Reply;
use crate::glob;
use crate::log;
use crate::resp::encode_reply;
use crate::session::ClientSession;

/// en: The subscribers of a channel or pattern: the connection's number and its message queue.
/// ja: チャンネルまたはパターンの購読者です。接続の番号とメッセージキューを持ちます。
type Subscribers = HashMap<u64, Sender<Vec<u8>>>;

/// en: All subscriptions of all connections.
/// ja: すべての接続のすべての購読です。
#[derive(Default)]
pub struct PubSubManager {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    channels: HashMap<Vec<u8>, Subscribers>,
    patterns: HashMap<Vec<u8>, Subscribers>,
    notifications: String,
}

impl PubSubManager {
    /// en: Step 6. Adds the channel to the session and the session's queue to the channel; the number of subscriptions.
    /// en: `tables.channels.entry(...).or_default()` makes the table of a new channel.
    /// ja: ステップ 6。セッションにチャンネルを、チャンネルにセッションのキューを追加し、購読の数を返します。
    /// ja: 新しいチャンネルの表は `tables.channels.entry(...).or_default()` で作れます。
    pub fn subscribe(&self, session: &mut ClientSession, channel: &[u8]) -> usize {
        //@ step 6
        session.channels.insert(channel.to_vec());
        let mut tables = self.tables();
        let subscribers = tables.channels.entry(channel.to_vec()).or_default();
        subscribers.insert(session.client_id, session.message_queue.clone());
        session.count()
        //@ end
    }

    /// en: Step 6. The same for a pattern.
    /// ja: ステップ 6。パターンについて同じことをします。
    pub fn psubscribe(&self, session: &mut ClientSession, pattern: &[u8]) -> usize {
        //@ step 6
        session.patterns.insert(pattern.to_vec());
        let mut tables = self.tables();
        let subscribers = tables.patterns.entry(pattern.to_vec()).or_default();
        subscribers.insert(session.client_id, session.message_queue.clone());
        session.count()
        //@ end
    }

    /// en: Step 6. Takes a channel away again; `leave` (below) does it in the table.
    /// ja: ステップ 6。チャンネルの購読を解除します。表からの削除は `leave`（下にあります）で行います。
    pub fn unsubscribe(&self, session: &mut ClientSession, channel: &[u8]) -> usize {
        //@ step 6
        session.channels.remove(channel);
        leave(&mut self.tables().channels, channel, session.client_id);
        session.count()
        //@ end
    }

    /// en: Step 6. The same for a pattern.
    /// ja: ステップ 6。パターンについて同じことをします。
    pub fn punsubscribe(&self, session: &mut ClientSession, pattern: &[u8]) -> usize {
        //@ step 6
        session.patterns.remove(pattern);
        leave(&mut self.tables().patterns, pattern, session.client_id);
        session.count()
        //@ end
    }

    /// en: Step 6. Sends a message to all subscribers of the channel, and of every pattern that matches it; how many.
    /// en: 1. subscribers of the channel get `["message", channel, message]`;
    /// en: 2. subscribers of a pattern with `glob::matches(pattern, channel)` get `["pmessage", pattern, channel, message]`;
    /// en: 3. `deliver` (below) sends to one table of subscribers and counts.
    /// ja: ステップ 6。チャンネルと、それに一致する全パターンの購読者にメッセージを送り、その数を返します。
    /// ja: 1. チャンネルの購読者には `["message", channel, message]` を送る。
    /// ja: 2. `glob::matches(pattern, channel)` が真のパターンの購読者には `["pmessage", pattern, channel, message]` を送る。
    /// ja: 3. `deliver`（下にあります）は 1 つの購読者の表に送り、数を返す。
    pub fn publish(&self, channel: &[u8], message: &[u8]) -> usize {
        //@ step 6
        let tables = self.tables();
        let mut count = 0;
        if let Some(subscribers) = tables.channels.get(channel) {
            count += deliver(subscribers, &[b"message", channel, message]);
        }
        for (pattern, subscribers) in &tables.patterns {
            if glob::matches(pattern, channel) {
                count += deliver(subscribers, &[b"pmessage", pattern, channel, message]);
            }
        }
        count
        //@ end
    }

    /// en: Given, for step 7. `CONFIG SET notify-keyspace-events FLAGS`.
    /// ja: 実装済み（ステップ 7 用）。`CONFIG SET notify-keyspace-events FLAGS`。
    pub fn set_notifications(&self, flags: &str) {
        self.tables().notifications = flags.to_string();
    }

    /// en: Step 7. Publishes `event` on the channel `__keyspace@0__:KEY`, if the flags contain `K` and `class`.
    /// en: (`A` stands for every class.) Let go of the lock before you call `publish`, which takes it again.
    /// ja: ステップ 7。フラグに `K` と `class` が含まれていれば、チャンネル `__keyspace@0__:KEY` に `event` を発行します。
    /// ja: （`A` はすべての class を表します。）`publish` は再びロックするので、その前にロックを解放します。
    pub fn notify(&self, class: char, event: &str, key: &[u8]) {
        //@ step 7
        let flags = self.tables().notifications.clone();
        if !flags.contains('K') || !flags.contains([class, 'A']) {
            return;
        }
        let mut channel = b"__keyspace@0__:".to_vec();
        channel.extend_from_slice(key);
        self.publish(&channel, event.as_bytes());
        //@ end
    }

    /// en: Given. Locks the tables.
    /// ja: 実装済み。表をロックします。
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// en: Given. Sends an array of bulk strings to every subscriber, and counts them. A full queue loses the message.
/// ja: 実装済み。Bulk String の配列を全購読者に送り、その数を返します。キューが満杯ならメッセージは失われます。
fn deliver(subscribers: &Subscribers, parts: &[&[u8]]) -> usize {
    let items = parts.iter().map(|part| Reply::Bulk(Some(part.to_vec())));
    let bytes = encode_reply(&Reply::Array(items.collect()));
    for queue in subscribers.values() {
        if queue.try_send(bytes.clone()).is_err() {
            log::warning("a subscriber is too slow: message lost");
        }
    }
    subscribers.len()
}

/// en: Given. Takes a subscriber away; a channel without subscribers is removed.
/// ja: 実装済み。購読者を 1 つ削除します。購読者がいなくなったチャンネルは表から削除します。
fn leave(table: &mut HashMap<Vec<u8>, Subscribers>, name: &[u8], client_id: u64) {
    if let Some(subscribers) = table.get_mut(name) {
        subscribers.remove(&client_id);
        if subscribers.is_empty() {
            table.remove(name);
        }
    }
}
