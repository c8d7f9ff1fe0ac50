//! ExpiryManager: 期限切れのキーを検出して削除します。アクセス時（Passive）と 1 秒ごと（Active）の 2 通りです。

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::pubsub::PubSubManager;
use crate::stats::Stats;
use crate::store::{DataStore, SharedStore};

/// Active expiry の 1 サイクルで調べるキーの個数。
pub const SAMPLE_SIZE: usize = 20;

/// 有効期限を時計と比べます。データは `DataStore` に置いたままです。
pub struct ExpiryManager {
    clock: Clock,
    stats: Arc<Stats>,
    pubsub: Arc<PubSubManager>,
}

impl ExpiryManager {
    /// 実装済み。
    pub fn new(clock: Clock, stats: Arc<Stats>, pubsub: Arc<PubSubManager>) -> ExpiryManager {
        ExpiryManager { clock, stats, pubsub }
    }

    /// 実装済み。現在時刻（ミリ秒）。
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// ステップ 4（Passive expiry）。有効期限が来ていれば `key` を削除します。削除したら true。
    /// 有効期限のないキーは残します。有効期限が `self.now_ms()` 以前なら期限切れです。
    /// ステップ 7: キーを削除したら `self.pubsub.notify('x', "expired", key)` を呼びます。
    pub fn check_and_remove_expired(&self, store: &mut DataStore, key: &[u8]) -> bool {
        todo!("step 4: expiry.rs")
    }

    /// 実装済み。1 秒ごとにサイクルを実行し、期限切れが多いあいだは続けて実行します。有効期限がなければ何もしません。
    pub async fn start_active_expiry(self: Arc<Self>, store: SharedStore) {
        let mut random = fastrand::Rng::new();
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            while self.cycle_if_needed(&store, &mut random) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// 実装済み。1 サイクルのあいだだけストアをロックします。
    fn cycle_if_needed(&self, store: &SharedStore, random: &mut fastrand::Rng) -> bool {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        store.has_deadlines() && self.active_expiry_cycle(&mut store, random)
    }

    /// ステップ 5。Active expiry の 1 サイクルです。すぐに次のサイクルが必要なら true を返します。
    /// 1. `store.sample_keys(SAMPLE_SIZE, random)` で最大 20 個のキーを選ぶ。1 つもなければ false を返す。
    /// 2. そのうち `check_and_remove_expired` が削除した個数を数える。
    /// 3. その個数を `self.stats.actively_expired` に加える（`fetch_add`、`Ordering::Relaxed`）。
    /// 4. 1 つ以上削除したらログに出す: `crate::log::info(&format!(...))`。
    /// 5. サンプルの 25% を超えて削除したら true。整数で計算できる: `deleted * 4 > sampled`。
    pub fn active_expiry_cycle(&self, store: &mut DataStore, random: &mut fastrand::Rng) -> bool {
        todo!("step 5: expiry.rs")
    }
}
