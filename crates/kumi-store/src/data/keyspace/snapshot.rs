//! A snapshot of all databases, point in time, taken while they change and without a fork.
//!
//! [`Keyspace::begin_snapshot`] marks the instant. From then on the tables copy entries before their first
//! change (`table/snapshot.rs`), and [`Keyspace::copy_slice`] copies the rest in slices. What comes
//! out is a sequence of [`Piece`]s, raw copies that another thread encodes; together they hold
//! every key of the instant once.
//!
//! A database that is flushed is no longer reached by commands. Its table is kept here until it is
//! copied, and dropped then.

mod piece;

pub use piece::Piece;
pub(crate) use piece::PieceBuilder;

use super::{Db, Discarded, Garbage, Keyspace};
use std::collections::BTreeSet;

/// A running snapshot.
#[derive(Debug, Default)]
pub(super) struct RunningSnapshot {
    /// Databases that were flushed before they were copied.
    flushed: Vec<Db>,
    /// Databases with entries left to copy, by their numbers now.
    left: BTreeSet<usize>,
    /// Pieces of tables that are copied or gone.
    pieces: Vec<Piece>,
}

/// A database at the instant of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotDb {
    pub(crate) db: usize,
    pub(crate) keys: usize,
    pub(crate) with_deadline: usize,
}

impl Keyspace {
    /// Begins a snapshot of this instant; one that runs ends. Returns the databases that have keys.
    /// `with_access` says that copies carry the access data of their keys.
    pub(crate) fn begin_snapshot(&mut self, with_access: bool) -> Vec<SnapshotDb> {
        self.thaw();
        let mut databases = Vec::new();
        for (db, data) in self.dbs.iter_mut().enumerate() {
            data.table.begin_snapshot(db, with_access);
            if data.table.has_snapshot() {
                databases.push(SnapshotDb {
                    db,
                    keys: data.table.len(),
                    with_deadline: data.deadlines.len(),
                });
            }
        }
        self.snapshot.sweeping.clear();
        self.snapshot.running = Some(RunningSnapshot {
            left: databases.iter().map(|database| database.db).collect(),
            ..RunningSnapshot::default()
        });
        databases
    }

    /// Whether a snapshot has entries left to copy, or pieces that were not taken.
    pub(crate) fn has_snapshot(&self) -> bool {
        self.snapshot.running.is_some()
    }

    /// Ends the snapshot. What was copied and not taken is dropped.
    pub(crate) fn thaw(&mut self) {
        let Some(running) = self.snapshot.running.take() else {
            return;
        };
        for db in running.left {
            let table = &mut self.dbs[db].table;
            table.thaw();
            if table.is_sweeping() {
                self.snapshot.sweeping.insert(db);
            }
        }
        for db in running.flushed {
            self.garbage
                .push(Garbage(Discarded::Database(Box::new(db))));
        }
    }

    /// Whether marks of a cancelled snapshot are left, for [`Keyspace::sweep_slice`].
    pub(crate) fn is_sweeping(&self) -> bool {
        !self.snapshot.sweeping.is_empty()
    }

    /// Clears marks of a cancelled snapshot as long as `go_on` says so.
    pub(crate) fn sweep_slice(&mut self, go_on: &mut dyn FnMut() -> bool) {
        while let Some(&db) = self.snapshot.sweeping.first() {
            let table = &mut self.dbs[db].table;
            // Without a snapshot there is nothing to hand over. A database that was flushed has no marks.
            if table.is_sweeping() && !table.copy_slice(&mut Vec::new(), go_on) {
                return;
            }
            self.snapshot.sweeping.remove(&db);
        }
    }

    /// Copies entries as long as `go_on` says so. Returns whether the snapshot is complete: its last
    /// pieces come with the next [`Keyspace::take_pieces`], and nothing is copied any more.
    pub(crate) fn copy_slice(&mut self, go_on: &mut dyn FnMut() -> bool) -> bool {
        let Some(mut running) = self.snapshot.running.take() else {
            return true;
        };
        let complete = self.copy_into(&mut running, go_on);
        self.snapshot.running = Some(running);
        complete
    }

    fn copy_into(
        &mut self,
        running: &mut RunningSnapshot,
        go_on: &mut dyn FnMut() -> bool,
    ) -> bool {
        while let Some(db) = running.flushed.last_mut() {
            if !db.table.copy_slice(&mut running.pieces, go_on) {
                return false;
            }
            if let Some(db) = running.flushed.pop() {
                self.garbage
                    .push(Garbage(Discarded::Database(Box::new(db))));
            }
        }
        while let Some(&db) = running.left.first() {
            let table = &mut self.dbs[db].table;
            if !table.copy_slice(&mut running.pieces, go_on) {
                return false;
            }
            running.left.remove(&db);
        }
        true
    }

    /// The pieces that are ready for the thread that encodes them.
    pub(crate) fn take_pieces(&mut self) -> Vec<Piece> {
        let Some(running) = &mut self.snapshot.running else {
            return Vec::new();
        };
        let mut pieces = std::mem::take(&mut running.pieces);
        for db in &mut running.flushed {
            db.table.take_pieces(&mut pieces);
        }
        for &db in &running.left {
            self.dbs[db].table.take_pieces(&mut pieces);
        }
        pieces
    }

    /// Takes over a database that was flushed, if a snapshot needs it; gives it back otherwise.
    pub(super) fn keep_flushed(&mut self, db: usize, data: Db) -> Option<Db> {
        match &mut self.snapshot.running {
            Some(running) if data.table.has_snapshot() => {
                running.left.remove(&db);
                running.flushed.push(data);
                None
            }
            _ => Some(data),
        }
    }

    /// Two databases changed places.
    pub(super) fn renumber(&mut self, first: usize, second: usize) {
        if let Some(running) = &mut self.snapshot.running {
            exchange(&mut running.left, first, second);
        }
        exchange(&mut self.snapshot.sweeping, first, second);
    }
}

/// Puts each of two numbers in the other's place.
fn exchange(numbers: &mut BTreeSet<usize>, first: usize, second: usize) {
    let (had_first, had_second) = (numbers.remove(&first), numbers.remove(&second));
    if had_first {
        numbers.insert(second);
    }
    if had_second {
        numbers.insert(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Lab;

    fn left(lab: &Lab) -> Vec<usize> {
        let running = lab.store.keyspace.snapshot.running.as_ref();
        running.map_or_else(Vec::new, |running| running.left.iter().copied().collect())
    }

    /// A store with 100 keys in each of the databases 0, 3 and 7.
    fn lab() -> Lab {
        let mut lab = Lab::new();
        for db in [0, 3, 7] {
            lab.run(&format!("SELECT {db}"));
            for key in 0..100 {
                lab.run(&format!("SET key:{key} {db}"));
            }
        }
        lab
    }

    #[test]
    fn only_databases_with_keys_are_walked() {
        let mut lab = lab();
        lab.store.keyspace.begin_snapshot(false);
        assert_eq!(left(&lab), [0, 3, 7]);
        lab.run("SET key:1 changed");
        lab.run("SWAPDB 3 9");
        assert_eq!(left(&lab), [0, 7, 9]);
        lab.run("SWAPDB 7 9");
        assert_eq!(left(&lab), [0, 7, 9]);
        lab.run("SELECT 0");
        lab.run("FLUSHDB");
        assert_eq!(left(&lab), [7, 9]);
        let keyspace = &mut lab.store.keyspace;
        let mut pieces = keyspace.take_pieces();
        // One question a call: the walk stops and goes on anywhere.
        while !keyspace.copy_slice(&mut || false) {
            pieces.extend(keyspace.take_pieces());
        }
        pieces.extend(keyspace.take_pieces());
        assert!(left(&lab).is_empty());
        for db in 0..16 {
            let own = pieces.iter().filter(|piece| piece.db == db);
            let keys: usize = own.map(Piece::keys).sum();
            let expected = if [0, 3, 7].contains(&db) { 100 } else { 0 };
            assert_eq!(keys, expected, "database {db}");
        }
    }

    #[test]
    fn marks_of_a_cancelled_snapshot_are_found_under_a_new_number() {
        let mut lab = lab();
        lab.store.keyspace.begin_snapshot(false);
        lab.run("SET key:1 changed");
        lab.store.keyspace.thaw();
        assert!(lab.store.keyspace.is_sweeping());
        lab.run("SWAPDB 7 9");
        let keyspace = &mut lab.store.keyspace;
        assert_eq!(keyspace.snapshot.sweeping, BTreeSet::from([9]));
        while keyspace.is_sweeping() {
            keyspace.sweep_slice(&mut || false);
        }
        assert!(keyspace.dbs.iter().all(|db| !db.table.is_sweeping()));
    }
}
