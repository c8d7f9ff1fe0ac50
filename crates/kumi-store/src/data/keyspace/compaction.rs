//! Moving entries out of memory that is mostly free.
//!
//! An allocator hands out blocks of one size from a page, and a page goes back only when all of its blocks are free.
//! When the sizes of values change, the few entries of the old size that are left can hold nearly all of its pages. A
//! walk through all entries moves those whose page is mostly free; the host knows which pages are.

use super::Keyspace;

/// How far a walk through all entries is: a database, and a place in its hash space, which splits and merges of the
/// table leave as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    db: usize,
    hash: u64,
}

/// What a part of a walk did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relocated {
    /// Entries looked at ...
    pub(crate) keys: u64,
    /// ... and those of which something was moved.
    pub(crate) keys_moved: u64,
    /// Blocks moved.
    pub(crate) blocks_moved: u64,
}

/// A walk that moves less than 1/50 of its keys, or less than so many blocks, has moved little.
const LEAST_PART: u64 = 50;
const LEAST_BLOCKS: u64 = 64;

impl Relocated {
    /// Whether so much was moved that pages have become free.
    pub(crate) fn is_much(self) -> bool {
        self.blocks_moved >= LEAST_BLOCKS && self.keys_moved * LEAST_PART >= self.keys
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.keys += more.keys;
        self.keys_moved += more.keys_moved;
        self.blocks_moved += more.blocks_moved;
    }

    /// Counts an entry of which so many blocks were moved.
    pub(super) fn note(&mut self, blocks: usize) {
        self.keys += 1;
        self.keys_moved += u64::from(blocks > 0);
        self.blocks_moved += blocks as u64;
    }
}

impl Keyspace {
    /// Looks at the next segment of a walk, some hundred entries, and moves the blocks of which `is_sparse` says that
    /// their page is mostly free.
    /// Returns where the walk goes on, or none at its end.
    pub(crate) fn relocate_step(
        &mut self,
        walk: Walk,
        relocated: &mut Relocated,
        is_sparse: &mut dyn FnMut(*const u8) -> bool,
    ) -> Option<Walk> {
        let &db = self.totals.occupied.range(walk.db..).next()?;
        let hash = if db == walk.db { walk.hash } else { 0 };
        let table = &mut self.dbs[db].table;
        Some(match table.relocate_segment(hash, relocated, is_sparse) {
            Some(hash) => Walk { db, hash },
            None => Walk {
                db: db + 1,
                hash: 0,
            },
        })
    }
}
