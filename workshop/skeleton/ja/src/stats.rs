//! 実装済み。INFO が表示するヘルスモニタリングの数値です。

use std::sync::atomic::{AtomicU64, Ordering};

/// すべての接続が共有するカウンタです。
#[derive(Default)]
pub struct Stats {
    /// アクティブ接続数。
    pub connections: AtomicU64,
    /// コマンド実行カウント。
    pub commands: AtomicU64,
    /// Active expiry で削除されたキー数。
    pub actively_expired: AtomicU64,
}

impl Stats {
    /// INFO と同じく、1 行に 1 つの `name:value` で書いた数値です。
    pub fn report(&self, keys: usize) -> String {
        format!(
            "connected_clients:{}\r\ntotal_commands_processed:{}\r\nactive_expired_keys:{}\r\nkeys:{keys}\r\n",
            self.connections.load(Ordering::Relaxed),
            self.commands.load(Ordering::Relaxed),
            self.actively_expired.load(Ordering::Relaxed),
        )
    }
}
