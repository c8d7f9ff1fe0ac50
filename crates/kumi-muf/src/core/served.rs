//! What a unit has served: how many requests, how many of them failed, and how long they took.
//!
//! Each process counts for itself, and adds what is new to keys of its unit at every heartbeat. So the store has the sum over
//! all processes of a name, those that ended included, and readers need not know the processes. All keys of a unit expire a
//! week after its last request. Counts that were lost with a connection are not added again.

use std::time::Duration;

use super::command::{Command, Reply};
use super::key::{Status, key};

/// How long the numbers of a unit stay after its last request.
const TTL_MS: u64 = 7 * 24 * 3_600 * 1_000;

/// Bytes that a number may have.
const NUMBER_LIMIT_BYTES: usize = 20;

/// Upper bounds of the times of a [`Served`], in milliseconds. One more count is for all above.
pub const SERVED_BOUNDS_MS: [u64; 11] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000];

const BUCKETS: usize = SERVED_BOUNDS_MS.len() + 1;

/// Requests that were served, by all processes of a unit's name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Served {
    /// Requests by the time that their handler took: at most each of [`SERVED_BOUNDS_MS`] and more than the one before, and
    /// more than all of them.
    pub times: [u64; BUCKETS],
    /// Those that were answered with an error.
    pub errors: u64,
}

impl Served {
    /// How many requests were served; `u64::MAX` if it would be more.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.times.iter().copied().fold(0, u64::saturating_add)
    }

    /// A time that this part of the requests did not exceed, as far as the bounds tell: the upper bound of the one that
    /// holds it. None if there were no requests, or it is above all bounds.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let mut served = kumi_muf::Served::default();
    /// served.times[2] = 99;
    /// served.times[6] = 1;
    /// assert_eq!(served.quantile(0.5), Some(Duration::from_millis(5)));
    /// assert_eq!(served.quantile(0.995), Some(Duration::from_millis(100)));
    /// ```
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let wanted = (self.requests() as f64 * part).ceil().max(1.0) as u64;
        let mut below: u64 = 0;
        let bounds = SERVED_BOUNDS_MS.iter().zip(&self.times);
        for (bound_ms, count) in bounds {
            below = below.saturating_add(*count);
            if below >= wanted {
                return Some(Duration::from_millis(*bound_ms));
            }
        }
        None
    }

    pub(crate) fn count(&mut self, took: Duration, is_error: bool) {
        let fits = |bound_ms: &u64| took <= Duration::from_millis(*bound_ms);
        let bucket = SERVED_BOUNDS_MS.iter().position(fits);
        let count = &mut self.times[bucket.unwrap_or(BUCKETS - 1)];
        *count = count.saturating_add(1);
        self.errors = self.errors.saturating_add(u64::from(is_error));
    }

    /// Takes all numbers, as commands that add them to those of the unit. All keys expire later then, so that none is gone
    /// while others are there.
    pub(crate) fn take(&mut self, unit: &str) -> Vec<Command> {
        let served = std::mem::take(self);
        if served == Self::default() {
            return Vec::new();
        }
        let keys = keys(unit);
        let added = keys.iter().zip(served.numbers());
        let added = added.filter(|(_, by)| *by > 0);
        let add = |(key, by): (&String, u64)| Command::IncrementBy {
            key: key.clone(),
            by,
        };
        let expire = |key: &String| Command::Expire {
            key: key.clone(),
            ttl_ms: TTL_MS,
        };
        added.map(add).chain(keys.iter().map(expire)).collect()
    }

    /// The commands that read the numbers of a unit, [`Self::COMMANDS`] of them.
    pub(crate) fn read(unit: &str) -> impl Iterator<Item = Command> {
        keys(unit).into_iter().map(|key| Command::Read {
            key,
            limit_bytes: NUMBER_LIMIT_BYTES,
        })
    }

    /// How many commands read the numbers of a unit.
    pub(crate) const COMMANDS: usize = BUCKETS + 1;

    /// The numbers of a unit, from the replies to [`Self::read`]. What is not there, or no number, is none.
    pub(crate) fn of(replies: &[Reply]) -> Self {
        let number = |reply: &Reply| match reply {
            Reply::Value(value) => std::str::from_utf8(value).ok()?.parse().ok(),
            _ => None,
        };
        let mut numbers = replies.iter().map(|reply| number(reply).unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        Self {
            times: std::array::from_fn(|_| next()),
            errors: next(),
        }
    }

    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.times.iter().copied().chain([self.errors])
    }
}

/// `_served.<bound>` for each bound, `_served.more`, `_served.errors`.
fn keys(unit: &str) -> [String; BUCKETS + 1] {
    std::array::from_fn(|index| {
        let id = match (SERVED_BOUNDS_MS.get(index), index) {
            (Some(bound_ms), _) => format!("_served.{bound_ms}"),
            (None, BUCKETS) => "_served.errors".to_owned(),
            (None, _) => "_served.more".to_owned(),
        };
        key(unit, Status::Keep, &id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_counted_by_their_bounds() {
        let mut served = Served::default();
        for (took_ms, is_error) in [(0, false), (1, true), (2, false), (3, false), (5_001, true)] {
            served.count(Duration::from_millis(took_ms), is_error);
        }
        served.count(Duration::from_micros(1_001), false);
        let mut times = [0; BUCKETS];
        (times[0], times[1], times[2], times[BUCKETS - 1]) = (2, 2, 1, 1);
        assert_eq!((served.times, served.errors), (times, 2));
        assert_eq!(served.requests(), 6);
        assert_eq!(served.quantile(0.5), Some(Duration::from_millis(2)));
        assert_eq!(served.quantile(1.0), None, "above all bounds");
        assert_eq!(Served::default().quantile(0.99), None);
    }

    #[test]
    fn sums_of_numbers_that_others_wrote_do_not_overflow() {
        let huge = Reply::Value(u64::MAX.to_string().into());
        let mut served = Served::of(&vec![huge; Served::COMMANDS]);
        served.count(Duration::ZERO, true);
        assert_eq!((served.requests(), served.errors), (u64::MAX, u64::MAX));
        assert_eq!(served.quantile(0.5), Some(Duration::from_millis(1)));
    }

    #[test]
    fn what_was_taken_is_added_once_and_read_back() {
        let mut served = Served::default();
        served.count(Duration::from_millis(7), false);
        served.count(Duration::from_secs(60), true);
        let counted = served;
        let commands = served.take("web");
        let (added, expiring) = commands.split_at(3);
        let add = |id: &str| Command::IncrementBy {
            key: format!("MUF/web/KEEP/_served.{id}"),
            by: 1,
        };
        assert_eq!(added, [add("10"), add("more"), add("errors")]);
        // All keys, those that were not added to too: they would be gone before the others.
        let expire = |key: String| Command::Expire {
            key,
            ttl_ms: TTL_MS,
        };
        assert_eq!(expiring, keys("web").map(expire));
        assert!(served.take("web").is_empty(), "it was taken");

        let reads: Vec<Command> = Served::read("web").collect();
        assert_eq!(reads.len(), Served::COMMANDS);
        let reply = |command: &Command| {
            let Command::Read { key, .. } = command else {
                panic!("{command:?}");
            };
            let is_added =
                |add: &&Command| matches!(add, Command::IncrementBy { key: of, .. } if of == key);
            match added.iter().find(is_added) {
                Some(_) => Reply::Value("1".into()),
                None => Reply::Value("".into()),
            }
        };
        let replies: Vec<Reply> = reads.iter().map(reply).collect();
        assert_eq!(Served::of(&replies), counted);
        let nonsense = vec![Reply::Value("x".into()); Served::COMMANDS];
        assert_eq!(Served::of(&nonsense), Served::default());
        assert_eq!(Served::of(&[Reply::WrongType]), Served::default());
    }
}
