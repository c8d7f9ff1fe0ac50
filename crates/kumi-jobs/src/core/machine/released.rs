//! Lives of workers that were declared gone, and are refused.

use super::super::id::Timestamp;
use super::super::owner::{NodeLife, Owner};
use super::super::reply::Gone;
use std::collections::{BTreeSet, HashMap};

/// Releases that are remembered. A worker's life is days, so the oldest ones are forgotten safely.
const RELEASED_LIMIT: usize = 10_000;

/// What was released.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Release {
    Life(Owner),
    /// All workers of a life of a node.
    Node(NodeLife),
    /// Lives of a name before one of them, which `Refused::before` has.
    Before(String),
}

#[derive(Default)]
pub(super) struct Refused {
    /// When each release was last asked for.
    times: HashMap<Release, Timestamp>,
    by_time: BTreeSet<(Timestamp, Release)>,
    /// By name, the life before which all are refused.
    before: HashMap<String, String>,
}

impl Refused {
    pub(super) fn holds(&self, owner: &Owner) -> bool {
        let is_before = |life: &String| owner.life() < life.as_str();
        self.times.contains_key(&Release::Life(owner.clone()))
            || self.before.get(owner.name()).is_some_and(is_before)
            || owner
                .node()
                .is_some_and(|node| self.times.contains_key(&Release::Node(node)))
    }

    pub(super) fn add(&mut self, now: Timestamp, gone: &Gone) {
        let release = match gone {
            Gone::Life(owner) => Release::Life(owner.clone()),
            Gone::Node(node) => Release::Node(node.clone()),
            Gone::Before(newest) => {
                let name = newest.name().to_owned();
                let life = self.before.entry(name.clone()).or_default();
                if life.as_str() < newest.life() {
                    *life = newest.life().to_owned();
                }
                Release::Before(name)
            }
        };
        if let Some(earlier) = self.times.insert(release.clone(), now) {
            self.by_time.remove(&(earlier, release.clone()));
        }
        self.by_time.insert((now, release));
        while self.by_time.len() > RELEASED_LIMIT
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.times.remove(&oldest);
            if let Release::Before(name) = &oldest {
                self.before.remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str, life: u64) -> Owner {
        format!("{name}~{life:016x}").parse().unwrap()
    }

    #[test]
    fn the_oldest_releases_are_forgotten() {
        let (mut refused, at) = (Refused::default(), Timestamp::from_ms);
        // By name, these are the last ones.
        refused.add(at(1), &Gone::Life(owner("z", 1)));
        refused.add(at(2), &Gone::Before(owner("y", 5)));
        refused.add(at(3), &Gone::Before(owner("x", 5)));
        // A release that is repeated counts from then.
        refused.add(at(4), &Gone::Before(owner("y", 3)));
        let limit = RELEASED_LIMIT as u64;
        for life in 0..limit - 3 {
            refused.add(at(5), &Gone::Life(owner("a", life)));
        }
        let checks = |refused: &Refused| {
            [("z", 1), ("x", 4), ("y", 4), ("a", 0)]
                .map(|(name, life)| refused.holds(&owner(name, life)))
        };
        assert_eq!(checks(&refused), [true; 4]);
        refused.add(at(6), &Gone::Life(owner("a", limit)));
        assert_eq!(checks(&refused), [false, true, true, true]);
        refused.add(at(6), &Gone::Life(owner("a", limit + 1)));
        assert_eq!(checks(&refused), [false, false, true, true]);
        assert!(!refused.holds(&owner("y", 5)));
    }
}
