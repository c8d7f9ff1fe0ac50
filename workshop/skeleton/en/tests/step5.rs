//! Active expiry, with a clock that the test moves and seeded randomness.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mini_redis::clock::Clock;
use mini_redis::expiry::ExpiryManager;
use mini_redis::pubsub::PubSubManager;
use mini_redis::stats::Stats;
use mini_redis::store::DataStore;

/// A store with `expired` keys whose time has come and `live` keys without a deadline.
fn filled(expired: usize, live: usize) -> (ExpiryManager, DataStore, Arc<Stats>) {
    let stats = Arc::new(Stats::default());
    let clock = Clock::manual(Arc::new(AtomicU64::new(5_000)));
    let manager = ExpiryManager::new(clock, stats.clone(), Arc::new(PubSubManager::default()));
    let mut store = DataStore::new();
    for number in 0..expired {
        let key = format!("expired{number}");
        store.set(key.as_bytes(), Vec::new()).expect("below the limits");
        store.set_expiry(key.as_bytes(), 5_000);
    }
    for number in 0..live {
        store.set(format!("live{number}").as_bytes(), Vec::new()).expect("below the limits");
    }
    (manager, store, stats)
}

#[test]
fn a_cycle_deletes_at_most_twenty_keys() {
    let (manager, mut store, stats) = filled(100, 0);
    let mut random = fastrand::Rng::with_seed(1);
    assert!(manager.active_expiry_cycle(&mut store, &mut random));
    assert_eq!(store.len(), 80);
    assert_eq!(stats.actively_expired.load(Ordering::Relaxed), 20);
}

#[test]
fn an_empty_store_needs_no_second_cycle() {
    let (manager, mut store, _) = filled(0, 0);
    assert!(!manager.active_expiry_cycle(&mut store, &mut fastrand::Rng::with_seed(1)));
}

#[test]
fn exactly_a_quarter_is_not_more_than_a_quarter() {
    let (manager, mut store, _) = filled(5, 15);
    assert!(!manager.active_expiry_cycle(&mut store, &mut fastrand::Rng::with_seed(1)));
    assert_eq!(store.len(), 15);
    let (manager, mut store, _) = filled(6, 14);
    assert!(manager.active_expiry_cycle(&mut store, &mut fastrand::Rng::with_seed(1)));
    assert_eq!(store.len(), 14);
}

#[test]
fn cycles_end_and_live_keys_stay() {
    for seed in 0..20 {
        let (manager, mut store, _) = filled(500, 50);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut cycles = 0;
        while manager.active_expiry_cycle(&mut store, &mut random) {
            cycles += 1;
            assert!(cycles < 1_000, "seed {seed}");
        }
        assert!(store.len() < 150, "seed {seed}: {} keys are left", store.len());
        assert!((0..50).all(|number| store.exists(format!("live{number}").as_bytes())), "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_task_runs_every_second() {
    let (manager, store, _) = filled(100, 0);
    let store = Arc::new(std::sync::Mutex::new(store));
    let task = tokio::spawn(Arc::new(manager).start_active_expiry(store.clone()));
    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    assert_eq!(store.lock().unwrap().len(), 100);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(store.lock().unwrap().len(), 0);
    task.abort();
}
