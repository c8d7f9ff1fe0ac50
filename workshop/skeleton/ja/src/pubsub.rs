//! PubSubManager: チャンネルの購読者を管理し、メッセージを届けます。ステップ 6 までは使いません。

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::Sender;

use crate::commands::Reply;
use crate::glob;
use crate::log;
use crate::resp::encode_reply;
use crate::session::ClientSession;

/// チャンネルまたはパターンの購読者です。接続の番号とメッセージキューを持ちます。
type Subscribers = HashMap<u64, Sender<Vec<u8>>>;

/// すべての接続のすべての購読です。
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
    /// ステップ 6。セッションにチャンネルを、チャンネルにセッションのキューを追加し、購読の数を返します。
    /// 新しいチャンネルの表は `tables.channels.entry(...).or_default()` で作れます。
    pub fn subscribe(&self, session: &mut ClientSession, channel: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// ステップ 6。パターンについて同じことをします。
    pub fn psubscribe(&self, session: &mut ClientSession, pattern: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// ステップ 6。チャンネルの購読を解除します。表からの削除は `leave`（下にあります）で行います。
    pub fn unsubscribe(&self, session: &mut ClientSession, channel: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// ステップ 6。パターンについて同じことをします。
    pub fn punsubscribe(&self, session: &mut ClientSession, pattern: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// ステップ 6。チャンネルと、それに一致する全パターンの購読者にメッセージを送り、その数を返します。
    /// 1. チャンネルの購読者には `["message", channel, message]` を送る。
    /// 2. `glob::matches(pattern, channel)` が真のパターンの購読者には `["pmessage", pattern, channel, message]` を送る。
    /// 3. `deliver`（下にあります）は 1 つの購読者の表に送り、数を返す。
    pub fn publish(&self, channel: &[u8], message: &[u8]) -> usize {
        todo!("step 6: pubsub.rs")
    }

    /// 実装済み（ステップ 7 用）。`CONFIG SET notify-keyspace-events FLAGS`。
    pub fn set_notifications(&self, flags: &str) {
        self.tables().notifications = flags.to_string();
    }

    /// ステップ 7。フラグに `K` と `class` が含まれていれば、チャンネル `__keyspace@0__:KEY` に `event` を発行します。
    /// （`A` はすべての class を表します。）`publish` は再びロックするので、その前にロックを解放します。
    pub fn notify(&self, class: char, event: &str, key: &[u8]) {
        todo!("step 7: pubsub.rs")
    }

    /// 実装済み。表をロックします。
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 実装済み。Bulk String の配列を全購読者に送り、その数を返します。キューが満杯ならメッセージは失われます。
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

/// 実装済み。購読者を 1 つ削除します。購読者がいなくなったチャンネルは表から削除します。
fn leave(table: &mut HashMap<Vec<u8>, Subscribers>, name: &[u8], client_id: u64) {
    if let Some(subscribers) = table.get_mut(name) {
        subscribers.remove(&client_id);
        if subscribers.is_empty() {
            table.remove(name);
        }
    }
}
