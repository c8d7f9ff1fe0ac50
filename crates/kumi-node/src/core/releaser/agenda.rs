//! When each release is due: by time for polling, by life and target for changes.

use super::Target;
use kumi_common::NameAndLife;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// A life and where it is released.
type Key = (NameAndLife, Target);

/// The due times of releases, one for each life and target.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    by_time: BTreeSet<(Instant, Key)>,
    due: BTreeMap<Key, Instant>,
}

impl Agenda {
    /// Sets when a release is due, instead of an earlier setting.
    pub(super) fn put(&mut self, due: Instant, life: &NameAndLife, target: &Target) {
        self.remove(life, target);
        let key = (life.clone(), target.clone());
        self.due.insert(key.clone(), due);
        self.by_time.insert((due, key));
    }

    pub(super) fn remove(&mut self, life: &NameAndLife, target: &Target) {
        let key = (life.clone(), target.clone());
        if let Some(due) = self.due.remove(&key) {
            self.by_time.remove(&(due, key));
        }
    }

    pub(super) fn clear(&mut self) {
        self.by_time.clear();
        self.due.clear();
    }

    pub(super) fn first_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(due, _)| *due)
    }

    /// Takes the first release that is due by now.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Key> {
        if self.first_due()? > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.due.remove(&key);
        Some(key)
    }
}
