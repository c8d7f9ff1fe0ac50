//! Loading what a run of requests will read, before the first of them is executed.
//!
//! Each function does one step for all keys at a time, so that the cache misses of a step overlap. What a step finds is
//! not kept: the commands look everything up again.

use super::collection::Collection;
use super::entry::{self, Entry};
use super::{Keyspace, Value};
use crate::types::stream::Stream;
use crate::types::{Members, Step};

/// The most members of one run that are looked for ahead.
const MAX_MEMBERS: usize = 64;

impl Keyspace {
    /// Hashes a key of the requests that are about to run.
    #[inline]
    pub(crate) fn hash_ahead(&mut self, db: usize, key: &[u8]) {
        let hash = self.dbs[db].table.hash(key);
        self.work.hints.push(key, hash);
    }

    /// Has the buckets of all hinted keys loaded, then their entries.
    ///
    /// A prefetch waits until its address is translated, which takes longer than anything else here when the page is in
    /// no TLB. Translations overlap only within the few hundred instructions that the processor looks ahead, so each
    /// loop does nothing but that.
    pub(crate) fn prefetch_entries(&self, db: usize) {
        let table = &self.dbs[db].table;
        for hash in self.work.hints.hashes() {
            table.prefetch_bucket(hash);
        }
        for entry in self
            .work
            .hints
            .hashes()
            .filter_map(|it| table.candidate(it))
        {
            entry.prefetch();
        }
    }

    /// Has the values of all hinted keys loaded as far as pointers lead to them: the box of each value, then the stream
    /// behind it, then the ends of the stream's last node. A step for all keys at a time, so that the cache misses of a
    /// step overlap.
    pub(crate) fn prefetch_streams(&self, db: usize) {
        let table = &self.dbs[db].table;
        let entries = || {
            self.work
                .hints
                .hashes()
                .filter_map(|it| table.candidate(it))
        };
        entries().for_each(Entry::prefetch_boxed);
        let streams = || entries().filter_map(|entry| <Box<Stream>>::of(entry.boxed()?));
        streams().for_each(|stream| entry::prefetch_whole(&**stream));
        for (first, last) in streams().filter_map(|stream| stream.tail_ends()) {
            entry::prefetch(first);
            entry::prefetch(last);
        }
    }

    /// Has the members that requests name loaded, of those keys that hold a large hash, set or sorted set. A member comes
    /// with the place of its key among the hints.
    pub(crate) fn prefetch_members<'a>(
        &self,
        db: usize,
        members: impl Iterator<Item = (usize, &'a [u8])>,
    ) {
        let table = &self.dbs[db].table;
        let mut targets: [Option<(&dyn Members, u64)>; MAX_MEMBERS] = [None; MAX_MEMBERS];
        let (mut count, mut steps) = (0, 0);
        for (hint, member) in members.take(MAX_MEMBERS) {
            let entry = self
                .work
                .hints
                .hash_at(hint)
                .and_then(|it| table.candidate(it));
            let members = entry.and_then(Entry::boxed).and_then(Value::members);
            if let Some(members) = members
                && let Some(hash) = members.hash(member)
            {
                targets[count] = Some((members, hash));
                count += 1;
                steps = steps.max(members.steps());
            }
        }
        for step in Step::ALL.into_iter().take(steps) {
            for (members, hash) in targets[..count].iter().flatten() {
                members.lines(*hash, step, &mut entry::prefetch_address);
            }
        }
    }
}
