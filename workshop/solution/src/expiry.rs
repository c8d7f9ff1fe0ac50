//! en: ExpiryManager: finds and deletes expired keys, when they are used (passive) and every second (active).
//! ja: ExpiryManager: 期限切れのキーを検出して削除します。アクセス時（Passive）と 1 秒ごと（Active）の 2 通りです。

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::pubsub::PubSubManager;
use crate::stats::Stats;
use crate::store::{DataStore, SharedStore};

/// en: How many keys one active cycle looks at.
/// ja: Active expiry の 1 サイクルで調べるキーの個数。
pub const SAMPLE_SIZE: usize = 20;

/// en: Compares deadlines with the clock. The data stays in the `DataStore`.
/// ja: 有効期限を時計と比べます。データは `DataStore` に置いたままです。
pub struct ExpiryManager {
    clock: Clock,
    stats: Arc<Stats>,
    pubsub: Arc<PubSubManager>,
}

impl ExpiryManager {
    /// en: Given.
    /// ja: 実装済み。
    pub fn new(clock: Clock, stats: Arc<Stats>, pubsub: Arc<PubSubManager>) -> ExpiryManager {
        ExpiryManager { clock, stats, pubsub }
    }

    /// en: Given. The time now, in milliseconds.
    /// ja: 実装済み。現在時刻（ミリ秒）。
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// en: Step 4, passive expiry. Deletes `key` if its deadline has come; true if it was deleted.
    /// en: A key without a deadline stays. A deadline has come when it is not later than `self.now_ms()`.
    /// en: Step 7: when a key was deleted, call `self.pubsub.notify('x', "expired", key)`.
    /// ja: ステップ 4（Passive expiry）。有効期限が来ていれば `key` を削除します。削除したら true。
    /// ja: 有効期限のないキーは残します。有効期限が `self.now_ms()` 以前なら期限切れです。
    /// ja: ステップ 7: キーを削除したら `self.pubsub.notify('x', "expired", key)` を呼びます。
    pub fn check_and_remove_expired(&self, store: &mut DataStore, key: &[u8]) -> bool {
        //@ step 4
        //| match store.expiry(key) {
        //|     Some(expiry_at) if expiry_at <= self.now_ms() => store.delete(key),
        //|     _ => false,
        //| }
        //@ step 7
        match store.expiry(key) {
            Some(expiry_at) if expiry_at <= self.now_ms() => {
                store.delete(key);
                self.pubsub.notify('x', "expired", key);
                true
            }
            _ => false,
        }
        //@ end
    }

    /// en: Given. Every second: cycles, for as long as one finds many expired keys. Without deadlines there is nothing to do.
    /// ja: 実装済み。1 秒ごとにサイクルを実行し、期限切れが多いあいだは続けて実行します。有効期限がなければ何もしません。
    pub async fn start_active_expiry(self: Arc<Self>, store: SharedStore) {
        let mut random = fastrand::Rng::new();
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            while self.cycle_if_needed(&store, &mut random) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// en: Given. Locks the store for one cycle.
    /// ja: 実装済み。1 サイクルのあいだだけストアをロックします。
    fn cycle_if_needed(&self, store: &SharedStore, random: &mut fastrand::Rng) -> bool {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        store.has_deadlines() && self.active_expiry_cycle(&mut store, random)
    }

    /// en: Step 5. One cycle of active expiry; true if the next one should follow at once.
    /// en: 1. `store.sample_keys(SAMPLE_SIZE, random)` gives up to 20 keys; return false if there is none;
    /// en: 2. count how many of them `check_and_remove_expired` deleted;
    /// en: 3. add that number to `self.stats.actively_expired` (`fetch_add`, `Ordering::Relaxed`);
    /// en: 4. if some were deleted, log it: `crate::log::info(&format!(...))`;
    /// en: 5. true if more than 25% of the sampled keys were deleted. Whole numbers will do: `deleted * 4 > sampled`.
    /// ja: ステップ 5。Active expiry の 1 サイクルです。すぐに次のサイクルが必要なら true を返します。
    /// ja: 1. `store.sample_keys(SAMPLE_SIZE, random)` で最大 20 個のキーを選ぶ。1 つもなければ false を返す。
    /// ja: 2. そのうち `check_and_remove_expired` が削除した個数を数える。
    /// ja: 3. その個数を `self.stats.actively_expired` に加える（`fetch_add`、`Ordering::Relaxed`）。
    /// ja: 4. 1 つ以上削除したらログに出す: `crate::log::info(&format!(...))`。
    /// ja: 5. サンプルの 25% を超えて削除したら true。整数で計算できる: `deleted * 4 > sampled`。
    pub fn active_expiry_cycle(&self, store: &mut DataStore, random: &mut fastrand::Rng) -> bool {
        //@ step 5
        let keys = store.sample_keys(SAMPLE_SIZE, random);
        let sampled = keys.len();
        if sampled == 0 {
            return false;
        }
        let mut deleted = 0;
        for key in keys {
            if self.check_and_remove_expired(store, &key) {
                deleted += 1;
            }
        }
        let counter = &self.stats.actively_expired;
        counter.fetch_add(deleted as u64, Ordering::Relaxed);
        if deleted > 0 {
            crate::log::info(&format!("active expiry deleted {deleted} of {sampled} sampled keys"));
        }
        deleted * 4 > sampled
        //@ end
    }
}
