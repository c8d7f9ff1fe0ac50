//! Going through the keys of a database: by cursor, all at once, or a random one.

use super::{Entry, Found, Keys};

impl Keys<'_> {
    /// Visits the live ones among about `count` entries from `cursor` on that are `wanted`;
    /// answers where to go on, 0 at the end. An expired entry that is wanted is removed.
    pub(crate) fn scan(
        &mut self,
        mut cursor: u64,
        count: u64,
        wanted: impl Fn(&Entry) -> bool,
        mut visit: impl FnMut(&Entry),
    ) -> u64 {
        let mut due = Vec::new();
        let mut seen = 0;
        // Buckets can be empty: a bound keeps one call short in a sparse table.
        for _ in 0..count.saturating_mul(10).max(10) {
            cursor = self.keyspace.dbs[self.db]
                .table
                .scan(cursor, &mut |entry: &Entry| {
                    seen += 1;
                    if !wanted(entry) {
                        return;
                    }
                    if self.now_ms >= entry.deadline().unwrap_or(u64::MAX) {
                        due.push(Box::<[u8]>::from(entry.key()));
                    } else {
                        visit(entry);
                    }
                });
            if cursor == 0 || seen >= count {
                break;
            }
        }
        for key in due {
            self.find(&key);
        }
        cursor
    }

    /// Every live entry. Expired ones are passed over and stay for active expiry.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.keyspace.dbs[self.db].table.iter();
        entries.filter(|entry| {
            entry
                .deadline()
                .is_none_or(|deadline| !self.is_due(deadline))
        })
    }

    /// A key picked at random among the live ones.
    pub(crate) fn random(&mut self, rng: &mut fastrand::Rng) -> Option<Box<[u8]>> {
        /// Tries before a database full of expired keys that a pause keeps counts as empty.
        const HIDDEN_TRIES: usize = 100;
        let mut hidden = 0;
        // Expired keys are removed as they are met, so this ends.
        while hidden < HIDDEN_TRIES {
            let key: Box<[u8]> = self.keyspace.dbs[self.db].table.random(rng)?.key().into();
            match self.search(&key).1 {
                Found::Live(_) => return Some(key),
                Found::Nothing => {}
                Found::Hidden(_) => hidden += 1,
            }
        }
        None
    }
}
