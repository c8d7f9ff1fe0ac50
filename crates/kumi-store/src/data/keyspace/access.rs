//! What the 24 bits of access data in an entry mean.
//!
//! ```text
//!   LRU and all other policies   seconds, modulo 2^24 (194 days)
//!   LFU                          16 bits: minutes of the last access, 8 bits: logarithmic counter
//! ```
//!
//! Both forms, the resolutions and the arithmetic are those of Redis, so that OBJECT IDLETIME, OBJECT FREQ and RESTORE
//! show and take the same numbers. When the policy changes, data of the other form is read as if it were of this one
//! until the key is next used, as in Redis.

use super::entry::Entry;
use crate::config::{EvictionPolicy, Settings};
use std::cell::Cell;

/// The counter of a new key under LFU: not zero, so that it gets a chance to be used again.
const INITIAL_COUNT: u8 = 5;

const BITS: u32 = 0xFF_FFFF;

/// How accesses are noted.
#[derive(Debug)]
pub(crate) struct AccessRule {
    /// Accesses are counted (LFU) instead of dated.
    pub(crate) counts: bool,
    /// `lfu-log-factor`
    pub(crate) log_factor: u32,
    /// `lfu-decay-time`, in minutes: the counter loses one for each of these spans without an access; 0 for never.
    pub(crate) decay_minutes: u32,
    /// The state of the generator behind the counter.
    random: Cell<u64>,
}

impl AccessRule {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            counts: false,
            log_factor: 10,
            decay_minutes: 1,
            // A xorshift generator never leaves zero.
            random: Cell::new(seed | 1),
        }
    }

    /// The access data of a new key.
    #[inline]
    pub(crate) fn initial(&self, now_ms: u64) -> u32 {
        if self.counts {
            counted(now_ms, INITIAL_COUNT)
        } else {
            access_clock(now_ms)
        }
    }

    /// Notes an access. Under LRU most are within a second of the last, and then nothing is written.
    #[inline]
    pub(crate) fn touch(&self, entry: &Entry, now_ms: u64) {
        if self.counts {
            return self.count(entry, now_ms);
        }
        let clock = access_clock(now_ms);
        if entry.access_clock() != clock {
            entry.set_access_clock(clock);
        }
    }

    /// A key's value was replaced. The new value counts as used now; under LFU the key keeps its counter.
    #[inline]
    pub(crate) fn touch_replaced(&self, entry: &Entry, now_ms: u64, touch: bool) {
        if !self.counts || touch {
            self.touch(entry, now_ms);
        }
    }

    fn count(&self, entry: &Entry, now_ms: u64) {
        let counter = self.frequency(entry, now_ms);
        let counter = self.incremented(counter);
        entry.set_access_clock(counted(now_ms, counter));
    }

    /// The counter after an access: the higher it is, the less likely it grows.
    fn incremented(&self, counter: u8) -> u8 {
        let above = u64::from(counter.saturating_sub(INITIAL_COUNT));
        let odds = above * u64::from(self.log_factor) + 1;
        // One in `odds`, without a division: the upper half of the product is below `odds`.
        let draw = (u128::from(self.next_random()) * u128::from(odds)) >> 64;
        counter.saturating_add(u8::from(draw == 0))
    }

    fn next_random(&self) -> u64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// The counter of a key under LFU, less what it lost since the last access.
    pub(crate) fn frequency(&self, entry: &Entry, now_ms: u64) -> u8 {
        frequency_of(entry.access_clock(), self.decay_minutes, now_ms)
    }

    /// How well a key suits eviction: the higher, the better.
    #[inline]
    pub(crate) fn score(&self, entry: &Entry, now_ms: u64) -> u32 {
        if self.counts {
            u32::from(u8::MAX - self.frequency(entry, now_ms))
        } else {
            idle_seconds(entry, now_ms)
        }
    }

    /// Makes a key look as if it was last used this long ago. Under LFU nothing changes.
    pub(crate) fn set_idle(&self, entry: &Entry, now_ms: u64, idle_s: u64) {
        if !self.counts {
            let clock = access_clock(now_ms).wrapping_sub(idle_s as u32);
            entry.set_access_clock(clock & BITS);
        }
    }

    /// Sets the counter of a key. Under another policy than LFU nothing changes.
    pub(crate) fn set_frequency(&self, entry: &Entry, now_ms: u64, counter: u8) {
        if self.counts {
            entry.set_access_clock(counted(now_ms, counter));
        }
    }
}

/// Seconds in 24 bits, the resolution of OBJECT IDLETIME.
#[inline]
pub(crate) fn access_clock(now_ms: u64) -> u32 {
    (now_ms / 1000) as u32 & BITS
}

/// Seconds since the last use. The clock is short and comes round after half a year.
#[inline]
pub(crate) fn idle_seconds(entry: &Entry, now_ms: u64) -> u32 {
    idle_seconds_of(entry.access_clock(), now_ms)
}

fn idle_seconds_of(data: u32, now_ms: u64) -> u32 {
    access_clock(now_ms).wrapping_sub(data) & BITS
}

fn frequency_of(data: u32, decay_minutes: u32, now_ms: u64) -> u8 {
    let (minute, counter) = ((data >> 8) as u16, data as u8);
    let elapsed = u32::from(minutes(now_ms).wrapping_sub(minute));
    let periods = elapsed.checked_div(decay_minutes).unwrap_or(0);
    counter.saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
}

/// What a file says of the accesses to its keys: what the eviction policy uses, as in Redis.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum SavedAccess {
    #[default]
    Nothing,
    /// For how long keys were idle at this time.
    Idle { now_ms: u64 },
    /// The counters at this time.
    Frequency { now_ms: u64, decay_minutes: u32 },
}

impl SavedAccess {
    /// Of the policy that is configured.
    pub(crate) fn of(settings: &Settings, now_ms: u64) -> Self {
        match settings.maxmemory_policy {
            EvictionPolicy::AllkeysLru | EvictionPolicy::VolatileLru => Self::Idle { now_ms },
            EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu => Self::Frequency {
                now_ms,
                decay_minutes: settings.lfu_decay_minutes,
            },
            _ => Self::Nothing,
        }
    }

    /// Whether access data are needed at all.
    pub(crate) fn is_saved(self) -> bool {
        !matches!(self, Self::Nothing)
    }

    /// Seconds without an access, and the counter, of a key's access data.
    pub(crate) fn facts(self, data: u32) -> (Option<u64>, Option<u8>) {
        match self {
            Self::Nothing => (None, None),
            Self::Idle { now_ms } => (Some(idle_seconds_of(data, now_ms).into()), None),
            Self::Frequency {
                now_ms,
                decay_minutes,
            } => (None, Some(frequency_of(data, decay_minutes, now_ms))),
        }
    }
}

fn minutes(now_ms: u64) -> u16 {
    (now_ms / 60_000) as u16
}

fn counted(now_ms: u64, counter: u8) -> u32 {
    u32::from(minutes(now_ms)) << 8 | u32::from(counter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::keyspace::NewValue;

    const MINUTE: u64 = 60_000;

    fn counting(log_factor: u32, decay_minutes: u32) -> (AccessRule, Entry) {
        let rule = AccessRule {
            counts: true,
            log_factor,
            decay_minutes,
            ..AccessRule::new(7)
        };
        let entry = Entry::new(b"k", NewValue::Int(1), None, rule.initial(0));
        (rule, entry)
    }

    #[test]
    fn the_counter_grows_with_the_logarithm_of_accesses() {
        // The table of redis.conf: accesses, and the counter it names for a factor of 10.
        for (factor, accesses, low, high) in [
            (0, 100, 100, 110),
            (0, 1000, 255, 255),
            (1, 1000, 40, 60),
            (10, 100, 6, 14),
            (10, 1000, 14, 23),
            (10, 100_000, 130, 160),
            (100, 1000, 7, 12),
        ] {
            let (rule, entry) = counting(factor, 1);
            for _ in 0..accesses {
                rule.touch(&entry, 0);
            }
            let counter = rule.frequency(&entry, 0);
            assert!(
                (low..=high).contains(&counter),
                "{accesses} accesses at factor {factor} gave {counter}"
            );
        }
    }

    #[test]
    fn the_counter_loses_one_for_each_period() {
        let (rule, entry) = counting(10, 2);
        rule.set_frequency(&entry, 0, 100);
        assert_eq!(rule.frequency(&entry, 2 * MINUTE - 1), 100);
        assert_eq!(rule.frequency(&entry, 2 * MINUTE), 99);
        assert_eq!(rule.frequency(&entry, 20 * MINUTE), 90);
        assert_eq!(rule.frequency(&entry, 1000 * MINUTE), 0);
        assert_eq!(rule.score(&entry, 20 * MINUTE), 165);
        let (rule, entry) = counting(10, 0);
        assert_eq!(rule.frequency(&entry, 1000 * MINUTE), INITIAL_COUNT);
    }

    #[test]
    fn the_clock_comes_round() {
        let rule = AccessRule::new(7);
        let entry = Entry::new(b"k", NewValue::Int(1), None, 0);
        let just_before_zero = (u64::from(BITS) - 1) * 1000;
        rule.touch(&entry, just_before_zero);
        assert_eq!(idle_seconds(&entry, just_before_zero + 5000), 5);
        rule.set_idle(&entry, 10_000, 70);
        assert_eq!(idle_seconds(&entry, 10_000), 70);
        rule.set_frequency(&entry, 10_000, 3);
        assert_eq!(idle_seconds(&entry, 10_000), 70, "LRU keeps no counter");
    }
}
