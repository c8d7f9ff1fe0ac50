//! Eviction by each policy, and the share of hits beside exact LRU on generated traces.

use super::*;
use crate::data::keyspace::{Expiry, Look, NewValue};
use std::collections::{BTreeMap, HashMap, HashSet};

const SEED: (u64, u64) = (1, 2);

fn rule(policy: EvictionPolicy) -> EvictionRule {
    EvictionRule {
        policy,
        samples: 5,
        lazy: false,
    }
}

fn keyspace(policy: EvictionPolicy) -> Keyspace {
    let mut keyspace = Keyspace::new(4, SEED, 3);
    keyspace.room.access.counts = policy.counts_accesses();
    keyspace
}

fn put(keyspace: &mut Keyspace, db: usize, key: u32, expiry: Expiry, now_ms: u64) {
    let mut keys = keyspace.keys(db, now_ms, true);
    let put = keys.put(&key.to_le_bytes(), NewValue::Int(1), expiry);
    assert!(put.is_ok());
}

fn get(keyspace: &mut Keyspace, key: u32, now_ms: u64) -> bool {
    let mut keys = keyspace.keys(0, now_ms, true);
    keys.look(&key.to_le_bytes(), Look::Read).is_some()
}

fn keys_of(keyspace: &Keyspace, db: usize) -> HashSet<u32> {
    let (entries, ..) = keyspace.entries(db);
    entries
        .map(|entry| entry.key().try_into().map_or(0, u32::from_le_bytes))
        .collect()
}

#[test]
fn the_key_that_expires_first_goes_first_whichever_database_has_it() {
    let mut keyspace = keyspace(EvictionPolicy::VolatileTtl);
    let mut rng = fastrand::Rng::with_seed(1);
    let mut order: Vec<(u64, usize, u32)> = Vec::new();
    for key in 0..500 {
        let (db, deadline) = (rng.usize(..4), 1_000_000 + rng.u64(..100_000_000));
        put(&mut keyspace, db, key, Expiry::At(deadline), 0);
        order.push((deadline, db, key));
        put(&mut keyspace, db, key + 10_000, Expiry::Clear, 0);
    }
    order.sort_unstable();
    for (_, db, key) in order {
        assert!(keys_of(&keyspace, db).contains(&key));
        assert!(keyspace.evict_one(rule(EvictionPolicy::VolatileTtl), 0, &mut rng));
        assert!(!keys_of(&keyspace, db).contains(&key));
    }
    assert!(!keyspace.evict_one(rule(EvictionPolicy::VolatileTtl), 0, &mut rng));
    assert_eq!((keyspace.total_keys(), keyspace.stats.evicted), (500, 500));
}

#[test]
fn only_keys_that_expire_go_under_volatile_policies() {
    // Many and few of the keys expire: they are drawn from the table, or from the index.
    for (policy, every) in [
        (EvictionPolicy::VolatileLru, 2),
        (EvictionPolicy::VolatileLru, 50),
        (EvictionPolicy::VolatileLfu, 3),
        (EvictionPolicy::VolatileLfu, 100),
        (EvictionPolicy::VolatileRandom, 10),
    ] {
        let mut keyspace = keyspace(policy);
        let mut rng = fastrand::Rng::with_seed(1);
        let mut expiring = 0;
        for key in 0..3000 {
            let expiry = if key % every == 0 {
                expiring += 1;
                Expiry::At(1_000_000)
            } else {
                Expiry::Clear
            };
            put(&mut keyspace, key as usize % 3, key, expiry, 0);
        }
        for _ in 0..expiring {
            assert!(keyspace.evict_one(rule(policy), 0, &mut rng), "{policy:?}");
        }
        assert!(!keyspace.evict_one(rule(policy), 0, &mut rng), "{policy:?}");
        assert_eq!(keyspace.total_keys(), 3000 - expiring);
        assert_eq!(keyspace.overdue(0).1, 0, "no key that expires is left");
    }
}

#[test]
fn every_key_goes_under_allkeys_policies_and_none_without_one() {
    for policy in [
        EvictionPolicy::AllkeysLru,
        EvictionPolicy::AllkeysLfu,
        EvictionPolicy::AllkeysRandom,
    ] {
        let mut keyspace = keyspace(policy);
        let mut rng = fastrand::Rng::with_seed(1);
        for key in 0..2000 {
            put(&mut keyspace, key as usize % 4, key, Expiry::Clear, 0);
        }
        assert!(!keyspace.evict_one(rule(EvictionPolicy::NoEviction), 0, &mut rng));
        for left in (0..2000).rev() {
            assert!(keyspace.evict_one(rule(policy), 0, &mut rng));
            assert_eq!(keyspace.total_keys(), left);
        }
        assert!(!keyspace.evict_one(rule(policy), 0, &mut rng));
        assert!(keyspace.totals.occupied.is_empty());
    }
}

#[test]
fn a_key_that_was_used_since_it_was_seen_stays() {
    let mut keyspace = keyspace(EvictionPolicy::AllkeysLru);
    let mut rng = fastrand::Rng::with_seed(1);
    // So few that every key is soon in the pool.
    for key in 0..8 {
        put(&mut keyspace, 0, key, Expiry::Clear, 0);
    }
    for _ in 0..20 {
        keyspace.sample(0, rule(EvictionPolicy::AllkeysLru), 50_000, &mut rng);
    }
    for key in 1..8 {
        assert!(get(&mut keyspace, key, 60_000));
    }
    assert!(keyspace.evict_one(rule(EvictionPolicy::AllkeysLru), 61_000, &mut rng));
    assert!(
        !keys_of(&keyspace, 0).contains(&0),
        "the one that was not used"
    );
}

/// A trace of keys.
#[derive(Clone, Copy, Debug)]
enum Trace {
    Zipf,
    /// Every so often a run of keys that are used once.
    Scans,
    /// The hot keys are others after a while.
    Shifting,
}

const UNIVERSE: usize = 10_000;
const CACHE: usize = 1000;
const ACCESSES: usize = 120_000;

fn trace(kind: Trace, seed: u64) -> Vec<u32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut sum = 0.0;
    let cumulative: Vec<f64> = (1..=UNIVERSE)
        .map(|rank| {
            sum += 1.0 / (rank as f64).powf(0.9);
            sum
        })
        .collect();
    let mut once = UNIVERSE as u32;
    let mut keys = Vec::with_capacity(ACCESSES);
    while keys.len() < ACCESSES {
        if matches!(kind, Trace::Scans) && keys.len() % 4000 == 3999 {
            keys.extend(once..once + 1000);
            once += 1000;
        }
        let draw = rng.f64() * sum;
        let rank = cumulative.partition_point(|&to| to < draw) as u32;
        let shift = match kind {
            Trace::Shifting => (keys.len() / 20_000 * 1500) as u32,
            Trace::Zipf | Trace::Scans => 0,
        };
        keys.push((rank + shift) % UNIVERSE as u32);
    }
    keys
}

/// Hits of exact LRU with room for `CACHE` keys.
fn exact_lru(trace: &[u32]) -> usize {
    let (mut last, mut order) = (HashMap::new(), BTreeMap::new());
    let mut hits = 0;
    for (time, &key) in trace.iter().enumerate() {
        if let Some(before) = last.insert(key, time) {
            order.remove(&before);
            hits += 1;
        } else if last.len() > CACHE
            && let Some((_, oldest)) = order.pop_first()
        {
            last.remove(&oldest);
        }
        order.insert(time, key);
    }
    hits
}

/// Hits of Redis's LFU with room for `CACHE` keys, in a trace that takes less than a minute: five uniform samples for
/// each key that goes, a pool of sixteen, counters from five on that grow with falling probability.
fn redis_lfu(trace: &[u32], seed: u64) -> usize {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut entries: Vec<(u32, u8)> = Vec::new();
    let mut pool: Vec<(u8, u32)> = Vec::new();
    let mut hits = 0;
    for &key in trace {
        if let Some(&place) = places.get(&key) {
            let (_, counter) = &mut entries[place];
            let odds = u32::from(*counter - 5) * 10 + 1;
            *counter = counter.saturating_add(u8::from(rng.u32(..odds) == 0));
            hits += 1;
            continue;
        }
        while entries.len() >= CACHE {
            for _ in 0..5 {
                let (key, counter) = entries[rng.usize(..entries.len())];
                let score = u8::MAX - counter;
                if pool.len() == 16 && pool[0].0 >= score {
                    continue;
                }
                if pool.len() == 16 {
                    pool.remove(0);
                }
                let place = pool.partition_point(|(known, _)| *known < score);
                pool.insert(place, (score, key));
            }
            let place = pool.pop().and_then(|(_, key)| places.remove(&key));
            if let Some(place) = place {
                entries.swap_remove(place);
                if let Some((moved, _)) = entries.get(place) {
                    places.insert(*moved, place);
                }
            }
        }
        places.insert(key, entries.len());
        entries.push((key, 5));
    }
    hits
}

/// Hits of a keyspace that holds `CACHE` keys, with this time between two accesses.
fn measured(trace: &[u32], policy: EvictionPolicy, step_ms: u64) -> usize {
    let mut keyspace = keyspace(policy);
    let mut rng = fastrand::Rng::with_seed(9);
    let mut hits = 0;
    for (time, &key) in trace.iter().enumerate() {
        let now_ms = time as u64 * step_ms;
        if get(&mut keyspace, key, now_ms) {
            hits += 1;
            continue;
        }
        if keyspace.len(0) >= CACHE {
            assert!(keyspace.evict_one(rule(policy), now_ms, &mut rng));
        }
        put(&mut keyspace, 0, key, Expiry::Clear, now_ms);
    }
    hits
}

#[test]
fn sampled_lru_hits_nearly_as_often_as_exact_lru() {
    for kind in [Trace::Zipf, Trace::Scans, Trace::Shifting] {
        let trace = trace(kind, 3);
        let percent = |hits: usize| hits as f64 * 100.0 / trace.len() as f64;
        let exact = percent(exact_lru(&trace));
        let lru = percent(measured(&trace, EvictionPolicy::AllkeysLru, 100));
        let lfu = percent(measured(&trace, EvictionPolicy::AllkeysLfu, 100));
        let random = percent(measured(&trace, EvictionPolicy::AllkeysRandom, 100));
        println!("{kind:?}: exact {exact:.2}, LRU {lru:.2}, LFU {lfu:.2}, random {random:.2}");
        assert!(lru > exact - 1.5, "{kind:?}: {lru:.2} of {exact:.2}");
        assert!(lru > random + 1.0, "{kind:?}: {lru:.2}, random {random:.2}");
        if matches!(kind, Trace::Scans) {
            assert!(lfu > exact + 0.3, "{kind:?}: LFU {lfu:.2} of {exact:.2}");
        }
    }
}

#[test]
fn lfu_hits_as_often_as_redis_does() {
    for kind in [Trace::Zipf, Trace::Scans, Trace::Shifting] {
        let (mut ours, mut redis, mut accesses) = (0, 0, 0);
        for seed in 1..=3 {
            let trace = trace(kind, seed);
            ours += measured(&trace, EvictionPolicy::AllkeysLfu, 0);
            redis += redis_lfu(&trace, seed);
            accesses += trace.len();
        }
        let percent = |hits: usize| hits as f64 * 100.0 / accesses as f64;
        let (ours, redis) = (percent(ours), percent(redis));
        println!("{kind:?}: LFU {ours:.2}, Redis {redis:.2}");
        assert!(ours > redis - 0.3, "{kind:?}: {ours:.2} of {redis:.2}");
    }
}
