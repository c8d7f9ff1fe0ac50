//! The memory limits: keys and clients that go when memory is short.
//!
//! Before a command runs, keys go by `maxmemory-policy` until memory is below `maxmemory`, or until the time that
//! `maxmemory-eviction-tenacity` allows has passed; what is left is done in slices by the clock. A command that uses
//! memory is refused only if no key may go. Clients go by `maxmemory-clients` after the commands of a turn, those that
//! hold most memory first.
//!
//! Data that the front has still to drop does not count under a policy that evicts: to evict for it would empty the
//! cache for memory that is on its way back. Only when as much again as the whole limit waits are writes refused.

use super::{Effect, Store};
use crate::base::ids::SessionKey;
use crate::config::{EvictionPolicy, Settings};
use crate::data::keyspace::EvictionRule;
use crate::engine::host::Host;
use crate::engine::output::Outputs;
use crate::engine::store::ctx::Ctx;

/// Keys evicted between two readings of the clock.
const KEYS_PER_READING: usize = 16;
/// The least limit for the memory of clients: below it no client could stay connected to raise it.
const LEAST_CLIENT_BYTES: u64 = 128 * 1024;

/// What is known of the memory limits.
#[derive(Debug)]
pub(super) struct Eviction {
    rule: EvictionRule,
    /// `maxmemory`; 0 for none.
    limit: usize,
    /// How long a command may wait for evictions; none for as long as they take.
    slice_ns: Option<u64>,
    /// The limit on the memory of all clients.
    pub(super) client_limit: usize,
    /// Memory of clients was above its limit when a command last ended.
    pub(super) clients_over: bool,
    /// Evictions go on by the clock.
    running: bool,
    /// No key could go although memory was short, when the last command began.
    pub(super) out_of_memory: bool,
    /// Since when memory is above the limit, by the steady clock.
    over_since_ns: Option<u64>,
    over_ns: u64,
}

impl Default for Eviction {
    fn default() -> Self {
        Self {
            rule: EvictionRule {
                policy: EvictionPolicy::NoEviction,
                samples: 5,
                lazy: false,
            },
            limit: 0,
            slice_ns: Some(0),
            client_limit: usize::MAX,
            clients_over: false,
            running: false,
            out_of_memory: false,
            over_since_ns: None,
            over_ns: 0,
        }
    }
}

impl Eviction {
    pub(super) fn load_settings(&mut self, settings: &Settings) {
        self.rule = EvictionRule {
            policy: settings.maxmemory_policy,
            samples: settings.maxmemory_samples,
            lazy: settings.lazyfree_eviction,
        };
        self.limit = usize::try_from(settings.maxmemory_bytes).unwrap_or(usize::MAX);
        self.slice_ns = slice_ns(settings.maxmemory_eviction_tenacity);
        self.client_limit = client_limit(settings.maxmemory_clients, settings.maxmemory_bytes);
        if self.limit == 0 {
            (self.running, self.out_of_memory) = (false, false);
        }
    }

    /// CONFIG RESETSTAT.
    pub(super) fn reset_stats(&mut self) {
        (self.over_since_ns, self.over_ns) = (None, 0);
    }

    /// For how long memory has been above the limit, in all and now, in milliseconds.
    pub(super) fn exceeded_ms(&self, now_ns: u64) -> (u64, u64) {
        let current_ns = self
            .over_since_ns
            .map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
        (
            (self.over_ns + current_ns) / 1_000_000,
            current_ns / 1_000_000,
        )
    }
}

/// The time of one slice of evictions, as Redis reckons it from the tenacity.
fn slice_ns(tenacity: u32) -> Option<u64> {
    match tenacity {
        0..=10 => Some(u64::from(tenacity) * 50_000),
        11..100 => Some((500_000.0 * 1.15_f64.powi(tenacity as i32 - 10)) as u64),
        _ => None,
    }
}

/// The limit on the memory of all clients: bytes, or a percentage of `maxmemory` as a negative number.
fn client_limit(clients: i64, maxmemory: u64) -> usize {
    let limit = match (u64::try_from(clients), maxmemory) {
        (Ok(0), _) | (Err(_), 0) => return usize::MAX,
        (Ok(bytes), _) => bytes,
        (Err(_), maxmemory) => {
            let percent = u128::from(clients.unsigned_abs());
            u64::try_from(u128::from(maxmemory) * percent / 100).unwrap_or(u64::MAX)
        }
    };
    usize::try_from(limit.max(LEAST_CLIENT_BYTES)).unwrap_or(usize::MAX)
}

/// How a slice of evictions ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Enough,
    /// More keys have to go, in further slices.
    Making,
    /// No further key may go.
    None,
}

impl Store {
    /// Makes room before a command, unless there is enough. Afterwards `out_of_memory` tells whether
    /// commands that use memory are refused. As in Redis, events of evicted keys come before the command's reply.
    #[inline]
    pub(super) fn make_room(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        if self.upkeep.eviction.limit == 0 {
            return;
        }
        let used = self.note_room();
        let enough = used <= self.upkeep.eviction.limit;
        if enough
            && !self.upkeep.eviction.out_of_memory
            && self.upkeep.eviction.over_since_ns.is_none()
        {
            return;
        }
        if self.evict(host) > 0 {
            self.note_room();
            // Watches that an evicted key broke count for the command that follows.
            self.settle(outputs, None);
        }
    }

    /// Tells the keyspace how much memory it may still use; returns how much the limit counts.
    #[inline]
    pub(super) fn note_room(&mut self) -> usize {
        let used = self.limited_bytes();
        self.keyspace.room.bytes = match self.upkeep.eviction.limit {
            0 => usize::MAX,
            limit => limit.saturating_sub(used),
        };
        used
    }

    /// For how long memory has been above `maxmemory`, in all and now, in milliseconds.
    pub(crate) fn eviction_exceeded_ms(&self) -> (u64, u64) {
        self.upkeep.eviction.exceeded_ms(self.now.mono_ns)
    }

    /// Memory that `maxmemory` bounds.
    fn limited_bytes(&self) -> usize {
        let used = self.keyspace.memory_bytes()
            + self.keyspace.interest.tracking.heap_bytes()
            + self.client_bytes();
        if self.upkeep.eviction.rule.policy == EvictionPolicy::NoEviction
            || self.buffers.garbage_bytes > self.upkeep.eviction.limit
        {
            used + self.buffers.garbage_bytes
        } else {
            used
        }
    }

    /// One slice of evictions; answers how many keys went.
    #[inline(never)]
    fn evict(&mut self, host: &mut dyn Host) -> usize {
        let before = self.keyspace.stats.evicted;
        let room = if self.run.busy || self.holds_evictions() {
            // A script, a pause, a snapshot that lags behind or an AOF must find the data as it left it.
            Room::Enough
        } else {
            self.evict_slice(host)
        };
        self.upkeep.eviction.out_of_memory = room == Room::None;
        self.upkeep.eviction.running = room == Room::Making;
        let now_ns = self.now.mono_ns;
        if room != Room::Enough {
            self.upkeep.eviction.over_since_ns.get_or_insert(now_ns);
        } else if let Some(since_ns) = self.upkeep.eviction.over_since_ns.take() {
            self.upkeep.eviction.over_ns += now_ns.saturating_sub(since_ns);
        }
        (self.keyspace.stats.evicted - before) as usize
    }

    fn evict_slice(&mut self, host: &mut dyn Host) -> Room {
        let rule = self.upkeep.eviction.rule;
        let now_ms = self.now.unix_ms();
        let watched = self.telemetry.latency.threshold_ms != 0;
        let mut start_ns = watched.then(|| host.now().mono_ns);
        let mut evicted = 0;
        let room = loop {
            if self.limited_bytes() <= self.upkeep.eviction.limit {
                break Room::Enough;
            }
            if !self.keyspace.evict_one(rule, now_ms, &mut self.rng) {
                break Room::None;
            }
            evicted += 1;
            if evicted % KEYS_PER_READING == 0
                && let Some(slice_ns) = self.upkeep.eviction.slice_ns
            {
                // The clock is read for the first time here: most commands evict one key or none.
                let now_ns = host.now().mono_ns;
                let spent_ns = now_ns.saturating_sub(*start_ns.get_or_insert(now_ns));
                if spent_ns >= slice_ns && self.limited_bytes() > self.upkeep.eviction.limit {
                    break Room::Making;
                }
            }
        };
        if watched && let Some(start_ns) = start_ns {
            let end = host.now();
            let spent_ms = end.mono_ns.saturating_sub(start_ns) / 1_000_000;
            self.telemetry
                .latency
                .record("eviction-cycle", end, spent_ms);
        }
        room
    }

    /// The configuration changed: memory above a new limit goes without waiting for a command.
    pub(crate) fn begin_eviction(&mut self, limit_before: u64) {
        let (used, limit) = (self.limited_bytes(), self.upkeep.eviction.limit);
        if limit == 0 || used <= limit || limit_before == limit as u64 {
            return;
        }
        tracing::warn!(
            maxmemory = limit,
            used,
            "WARNING: the new maxmemory value set via CONFIG SET is smaller than the current memory usage. This will result in key eviction and/or the inability to accept new write commands depending on the maxmemory-policy."
        );
        self.upkeep.eviction.running =
            self.upkeep.eviction.rule.policy != EvictionPolicy::NoEviction;
    }

    /// Whether keys have to stay: clients are paused, or a data set is loaded, whose evictions would be in no AOF.
    fn holds_evictions(&self) -> bool {
        self.clients.pause.is_some() || self.persistence.loading.is_some()
    }

    /// Whether the clock has evictions to go on with.
    pub(super) fn has_evictions(&self) -> bool {
        self.upkeep.eviction.clients_over
            || self.upkeep.eviction.running && !self.holds_evictions() && !self.run.busy
    }

    /// Goes on with evictions.
    pub(super) fn continue_eviction(&mut self, outputs: &mut Outputs, host: &mut dyn Host) {
        if self.upkeep.eviction.running && !self.holds_evictions() {
            self.evict(host);
        }
        if self.upkeep.eviction.clients_over {
            self.evict_clients(outputs);
        }
    }

    /// Notes whether clients hold more memory than they may.
    #[inline]
    pub(super) fn check_client_memory(&mut self) {
        if self.limited_client_bytes() > self.upkeep.eviction.client_limit {
            self.upkeep.eviction.clients_over = true;
        }
    }

    /// Closes the clients that hold most memory until all hold no more than they may together.
    fn evict_clients(&mut self, outputs: &mut Outputs) {
        self.upkeep.eviction.clients_over = false;
        self.note_output(outputs);
        let limit = self.upkeep.eviction.client_limit;
        if self.limited_client_bytes() <= limit {
            return;
        }
        let sessions = self.clients.sessions.iter();
        let mut evictable: Vec<(usize, SessionKey)> = sessions
            .filter(|session| !session.modes.no_evict && !session.ending.closing)
            .map(|session| {
                let output = outputs.usage(session.key).memory;
                (session.claimed_bytes() + output, session.key)
            })
            .collect();
        evictable.sort_unstable();
        while self.limited_client_bytes() > limit {
            let Some((bytes, key)) = evictable.pop() else {
                tracing::warn!("Over client maxmemory after evicting all evictable clients");
                return;
            };
            if let Some(session) = self.clients.sessions.get(key) {
                tracing::info!(
                    conn_id = session.id,
                    client = %session.identity.peer.addr,
                    name = %session.identity.name.escape_ascii(),
                    bytes,
                    "Evicting client"
                );
            }
            self.telemetry.stats.evicted_clients += 1;
            outputs.clear(key);
            self.note_leaving(key, "evicted, maxmemory-clients");
            self.disconnect(key);
            self.outbox.effects.push(Effect::Close(key));
            self.note_output(outputs);
        }
    }
}

impl Ctx<'_> {
    /// Whether commands that use memory were refused when the running one began.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.store.upkeep.eviction.out_of_memory && !self.store.is_replay(self.session)
    }

    /// CONFIG RESETSTAT.
    pub(crate) fn reset_eviction_stats(&mut self) {
        self.store.upkeep.eviction.reset_stats();
    }
}

#[cfg(test)]
mod tests;
