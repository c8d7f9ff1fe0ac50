//! en: ClientSession: what the server remembers about one connection. Not needed before step 6.
//! ja: ClientSession: サーバが 1 つの接続について覚えておく状態です。ステップ 6 までは使いません。

use std::collections::BTreeSet;
use std::io;

use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::limits::MAX_QUEUED;

/// en: The state of one connection.
/// ja: 1 つの接続の状態です。
pub struct ClientSession {
    /// en: The number of the connection.
    /// ja: 接続の番号。
    pub client_id: u64,
    /// en: Channels it listens to.
    /// ja: 購読中のチャンネル。
    pub channels: BTreeSet<Vec<u8>>,
    /// en: Patterns it listens to.
    /// ja: 購読中のパターン。
    pub patterns: BTreeSet<Vec<u8>>,
    /// en: Bytes to be written to the client go in here.
    /// ja: クライアントに書き込むバイト列を入れるキュー。
    pub message_queue: Sender<Vec<u8>>,
}

impl ClientSession {
    /// en: Given. A session and the end of its queue from which the bytes come out.
    /// ja: 実装済み。セッションと、そのキューの受信側を返します。
    pub fn new(client_id: u64) -> (ClientSession, Receiver<Vec<u8>>) {
        let (message_queue, receiver) = mpsc::channel(MAX_QUEUED);
        let session = ClientSession { client_id, channels: BTreeSet::new(), patterns: BTreeSet::new(), message_queue };
        (session, receiver)
    }

    /// en: Step 6. The number of subscriptions: channels and patterns together.
    /// ja: ステップ 6。購読の数（チャンネルとパターンの合計）。
    pub fn count(&self) -> usize {
        //@ step 6
        self.channels.len() + self.patterns.len()
        //@ end
    }

    /// en: Step 6. True in Pub/Sub mode: at least one subscription.
    /// ja: ステップ 6。Pub/Sub モード（購読が 1 つ以上）なら true。
    pub fn is_subscribed(&self) -> bool {
        //@ step 6
        self.count() > 0
        //@ end
    }

    /// en: Given. Puts a reply into the queue; waits while the queue is full.
    /// ja: 実装済み。応答をキューに入れます。満杯なら空くまで待ちます。
    pub async fn send(&self, bytes: Vec<u8>) -> io::Result<()> {
        let sent = self.message_queue.send(bytes).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
