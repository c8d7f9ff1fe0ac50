//! ExpiryManager: finds and deletes expired keys, when they are used (passive) and every second (active).

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::pubsub::PubSubManager;
use crate::stats::Stats;
use crate::store::{DataStore, SharedStore};

/// How many keys one active cycle looks at.
pub const SAMPLE_SIZE: usize = 20;

/// Compares deadlines with the clock. The data stays in the `DataStore`.
pub struct ExpiryManager {
    clock: Clock,
    stats: Arc<Stats>,
    pubsub: Arc<PubSubManager>,
}

impl ExpiryManager {
    /// Given.
    pub fn new(clock: Clock, stats: Arc<Stats>, pubsub: Arc<PubSubManager>) -> ExpiryManager {
        ExpiryManager { clock, stats, pubsub }
    }

    /// Given. The time now, in milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Step 4, passive expiry. Deletes `key` if its deadline has come; true if it was deleted.
    /// A key without a deadline stays. A deadline has come when it is not later than `self.now_ms()`.
    /// Step 7: when a key was deleted, call `self.pubsub.notify('x', "expired", key)`.
    pub fn check_and_remove_expired(&self, store: &mut DataStore, key: &[u8]) -> bool {
        todo!("step 4: expiry.rs")
    }

    /// Given. Every second: cycles, for as long as one finds many expired keys. Without deadlines there is nothing to do.
    pub async fn start_active_expiry(self: Arc<Self>, store: SharedStore) {
        let mut random = fastrand::Rng::new();
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            while self.cycle_if_needed(&store, &mut random) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Given. Locks the store for one cycle.
    fn cycle_if_needed(&self, store: &SharedStore, random: &mut fastrand::Rng) -> bool {
        let mut store = store.lock().unwrap_or_else(PoisonError::into_inner);
        store.has_deadlines() && self.active_expiry_cycle(&mut store, random)
    }

    /// Step 5. One cycle of active expiry; true if the next one should follow at once.
    /// 1. `store.sample_keys(SAMPLE_SIZE, random)` gives up to 20 keys; return false if there is none;
    /// 2. count how many of them `check_and_remove_expired` deleted;
    /// 3. add that number to `self.stats.actively_expired` (`fetch_add`, `Ordering::Relaxed`);
    /// 4. if some were deleted, log it: `crate::log::info(&format!(...))`;
    /// 5. true if more than 25% of the sampled keys were deleted. Whole numbers will do: `deleted * 4 > sampled`.
    pub fn active_expiry_cycle(&self, store: &mut DataStore, random: &mut fastrand::Rng) -> bool {
        todo!("step 5: expiry.rs")
    }
}
