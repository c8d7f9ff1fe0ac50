//! ClientSession: サーバが 1 つの接続について覚えておく状態です。ステップ 6 までは使いません。

use std::collections::BTreeSet;
use std::io;

use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::limits::MAX_QUEUED;

/// 1 つの接続の状態です。
pub struct ClientSession {
    /// 接続の番号。
    pub client_id: u64,
    /// 購読中のチャンネル。
    pub channels: BTreeSet<Vec<u8>>,
    /// 購読中のパターン。
    pub patterns: BTreeSet<Vec<u8>>,
    /// クライアントに書き込むバイト列を入れるキュー。
    pub message_queue: Sender<Vec<u8>>,
}

impl ClientSession {
    /// 実装済み。セッションと、そのキューの受信側を返します。
    pub fn new(client_id: u64) -> (ClientSession, Receiver<Vec<u8>>) {
        let (message_queue, receiver) = mpsc::channel(MAX_QUEUED);
        let session = ClientSession { client_id, channels: BTreeSet::new(), patterns: BTreeSet::new(), message_queue };
        (session, receiver)
    }

    /// ステップ 6。購読の数（チャンネルとパターンの合計）。
    pub fn count(&self) -> usize {
        todo!("step 6: session.rs")
    }

    /// ステップ 6。Pub/Sub モード（購読が 1 つ以上）なら true。
    pub fn is_subscribed(&self) -> bool {
        todo!("step 6: session.rs")
    }

    /// 実装済み。応答をキューに入れます。満杯なら空くまで待ちます。
    pub async fn send(&self, bytes: Vec<u8>) -> io::Result<()> {
        let sent = self.message_queue.send(bytes).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
