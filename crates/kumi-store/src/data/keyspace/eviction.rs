//! Which key goes when memory is short.
//!
//! LRU and LFU look at a few random keys for each key that goes, as Redis does, and keep the best of those seen so far
//! in a pool. A pool entry is a hash, not a key: adding one takes no memory. A key that was used since it was seen does
//! not go; it leaves the pool. `volatile-ttl` needs no samples: the deadline index knows the key that expires first.

use super::table::Position;
use super::{Change, Entry, Keyspace};
use crate::config::{EvictionPolicy, NotifyFlags, Settings};

/// Candidates the pool holds.
const POOL: usize = 16;
/// Databases sampled for one eviction; the next one goes on behind them.
const DATABASES: usize = 16;
/// Databases looked at for those with keys that expire.
const DATABASES_LOOKED_AT: usize = 64;
/// The pool is filled this often for one eviction before it is given up.
const ROUNDS: usize = 8;
/// If fewer than one in this many keys expire, they are drawn from the deadline index instead of the table.
const FEW_EXPIRE: usize = 4;

/// How keys are chosen, from the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvictionRule {
    pub(crate) policy: EvictionPolicy,
    /// `maxmemory-samples`
    pub(crate) samples: usize,
    /// `lazyfree-lazy-eviction`: the record of an evicted key is UNLINK instead of DEL.
    pub(crate) lazy: bool,
}

/// A key that was sampled.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    score: u32,
    db: usize,
    hash: u64,
}

/// The best candidates seen so far.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// By rising score.
    candidates: Vec<Candidate>,
    /// The database to sample next.
    next_db: usize,
}

impl Pool {
    /// Whether a candidate with this score would be kept.
    fn wants(&self, score: u32) -> bool {
        self.candidates.len() < POOL || self.candidates.first().is_some_and(|c| c.score < score)
    }

    fn add(&mut self, new: Candidate) {
        let known = |c: &Candidate| c.hash == new.hash && c.db == new.db;
        if self.candidates.iter().any(known) {
            return;
        }
        if self.candidates.len() == POOL {
            self.candidates.remove(0);
        }
        let place = self.candidates.partition_point(|c| c.score < new.score);
        self.candidates.insert(place, new);
    }
}

impl Keyspace {
    /// Notes accesses as the configuration says from now on. What was found before to suit eviction is forgotten:
    /// scores may have another meaning now.
    pub(crate) fn load_access(&mut self, settings: &Settings) {
        self.room.access.counts = settings.maxmemory_policy.counts_accesses();
        self.room.access.log_factor = settings.lfu_log_factor;
        self.room.access.decay_minutes = settings.lfu_decay_minutes;
        self.room.pool.candidates.clear();
    }

    /// Removes one key by the policy. False if no key may go.
    pub(crate) fn evict_one(
        &mut self,
        rule: EvictionRule,
        now_ms: u64,
        rng: &mut fastrand::Rng,
    ) -> bool {
        let volatile = rule.policy.is_volatile();
        let chosen = match rule.policy {
            EvictionPolicy::NoEviction => None,
            EvictionPolicy::VolatileTtl => self.first_to_expire(),
            EvictionPolicy::AllkeysRandom | EvictionPolicy::VolatileRandom => {
                let db = self.databases_to_sample(volatile).next();
                db.and_then(|db| self.random_position(db, volatile, rng))
            }
            EvictionPolicy::AllkeysLru
            | EvictionPolicy::AllkeysLfu
            | EvictionPolicy::VolatileLru
            | EvictionPolicy::VolatileLfu => self.best_candidate(rule, now_ms, rng),
        };
        let Some((db, hash, position)) = chosen else {
            return false;
        };
        self.evict_at(db, hash, position, rule.lazy);
        true
    }

    fn evict_at(&mut self, db: usize, hash: u64, position: Position, lazy: bool) {
        self.changing = true;
        let entry = self.dbs[db].take(hash, position);
        self.stats.evicted += 1;
        self.signal(db, entry.key(), Change::Removed);
        self.notify(db, NotifyFlags::EVICTED, "evicted", entry.key());
        if self.propagation.is_on() {
            let verb: &[u8] = if lazy { b"UNLINK" } else { b"DEL" };
            self.propagation.push(db, [verb, entry.key()]);
        }
        self.discard(entry);
    }

    fn first_to_expire(&self) -> Option<(usize, u64, Position)> {
        let &(_, db) = self.totals.first_deadlines.first()?;
        let data = &self.dbs[db];
        let (deadline, hash) = data.deadlines.first_record()?;
        Some((db, hash, data.table.find_due(hash, deadline)?))
    }

    fn random_position(
        &mut self,
        db: usize,
        volatile: bool,
        rng: &mut fastrand::Rng,
    ) -> Option<(usize, u64, Position)> {
        let data = &mut self.dbs[db];
        if volatile {
            let (deadline, hash) = data.deadlines.random(rng)?;
            return Some((db, hash, data.table.find_due(hash, deadline)?));
        }
        let hash = data.table.hash(data.table.random(rng)?.key());
        Some((db, hash, data.table.find_hash(hash)?))
    }

    /// Some databases with keys to evict, other ones each time if there are many.
    fn databases_to_sample(&mut self, volatile: bool) -> impl Iterator<Item = usize> + use<> {
        let next = self.room.pool.next_db;
        let (behind, before) = (
            self.totals.occupied.range(next..),
            self.totals.occupied.range(..next),
        );
        let suits = |db: &&usize| !volatile || self.dbs[**db].deadlines.len() > 0;
        let turn = behind.chain(before).take(DATABASES_LOOKED_AT);
        let mut chosen = [usize::MAX; DATABASES];
        let mut count = 0;
        for (place, &db) in chosen.iter_mut().zip(turn.filter(suits)) {
            *place = db;
            count += 1;
        }
        if count == 0
            && volatile
            && let Some(&(_, db)) = self.totals.first_deadlines.first()
        {
            (chosen[0], count) = (db, 1);
        }
        if count > 0 {
            self.room.pool.next_db = chosen[0] + 1;
        }
        chosen.into_iter().take(count)
    }

    /// The candidate with the highest score that is still there and was not used since it was seen.
    fn best_candidate(
        &mut self,
        rule: EvictionRule,
        now_ms: u64,
        rng: &mut fastrand::Rng,
    ) -> Option<(usize, u64, Position)> {
        let volatile = rule.policy.is_volatile();
        for _ in 0..ROUNDS {
            for db in self.databases_to_sample(volatile) {
                self.sample(db, rule, now_ms, rng);
            }
            while let Some(Candidate { score, db, hash }) = self.room.pool.candidates.pop() {
                let table = &self.dbs[db].table;
                let Some(position) = table.find_hash(hash) else {
                    continue;
                };
                let entry = table.at(position);
                if self.room.access.score(entry, now_ms) >= score
                    && (!volatile || entry.deadline().is_some())
                {
                    return Some((db, hash, position));
                }
            }
        }
        None
    }

    /// Puts the best of some random keys of a database into the pool.
    fn sample(&mut self, db: usize, rule: EvictionRule, now_ms: u64, rng: &mut fastrand::Rng) {
        let Self { dbs, room, .. } = self;
        let (pool, access) = (&mut room.pool, &room.access);
        let data = &mut dbs[db];
        let (keys, expiring) = (data.table.len(), data.deadlines.len());
        let volatile = rule.policy.is_volatile();
        // A draw may give more entries than were asked for. Under LRU they are welcome. Under LFU each further sample
        // makes it likelier that a new key goes before one that was popular once and has a high counter.
        let mut left = if access.counts {
            rule.samples
        } else {
            usize::MAX
        };
        let mut consider = |entry: &Entry, hash: &dyn Fn() -> u64| {
            if left == 0 {
                return;
            }
            left -= 1;
            let score = access.score(entry, now_ms);
            if pool.wants(score) {
                let hash = hash();
                pool.add(Candidate { score, db, hash });
            }
        };
        if volatile && expiring < keys / FEW_EXPIRE {
            for _ in 0..rule.samples {
                let Some((deadline, hash)) = data.deadlines.random(rng) else {
                    return;
                };
                if let Some(position) = data.table.find_due(hash, deadline) {
                    consider(data.table.at(position), &|| hash);
                }
            }
            return;
        }
        let count = if volatile {
            (rule.samples * keys).div_ceil(expiring.max(1))
        } else {
            rule.samples
        };
        let table = &data.table;
        table.sample(rng, count, |entry| {
            if !volatile || entry.deadline().is_some() {
                consider(entry, &|| table.hash(entry.key()));
            }
        });
    }
}

#[cfg(test)]
mod tests;
