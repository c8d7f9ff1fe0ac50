//! A snapshot of all databases, point in time, taken while they change and without a fork.
//!
//! [`Keyspace::freeze`] marks the instant. From then on the tables copy entries before their first
//! change (`table/freeze.rs`), and [`Keyspace::copy_slice`] copies the rest in slices. What comes
//! out is a sequence of [`Piece`]s, raw copies that another thread encodes; together they hold
//! every key of the instant once.
//!
//! A database that is flushed is no longer reached by commands. Its table is kept here until it is
//! copied, and dropped then.

mod piece;

pub use piece::Piece;
pub(crate) use piece::PieceBuilder;

use super::{Db, Discarded, Garbage, Keyspace};

/// Databases whose tables are looked at between two questions whether to go on.
const DATABASES_STEP: usize = 64;

/// A running snapshot.
#[derive(Debug, Default)]
pub(super) struct Freeze {
    /// Databases that were flushed before they were copied.
    flushed: Vec<Db>,
    /// Databases before this one are copied.
    next_db: usize,
    /// Pieces of tables that are copied or gone.
    pieces: Vec<Piece>,
}

/// A database at the instant of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrozenDb {
    pub(crate) db: usize,
    pub(crate) keys: usize,
    pub(crate) with_deadline: usize,
}

impl Keyspace {
    /// Begins a snapshot of this instant; one that runs ends. Returns the databases that have keys.
    /// `with_access` says that copies carry the access data of their keys.
    pub(crate) fn freeze(&mut self, with_access: bool) -> Vec<FrozenDb> {
        self.thaw();
        let mut databases = Vec::new();
        for (db, data) in self.dbs.iter_mut().enumerate() {
            data.table.freeze(db, with_access);
            if data.table.is_frozen() {
                databases.push(FrozenDb {
                    db,
                    keys: data.table.len(),
                    with_deadline: data.deadlines.len(),
                });
            }
        }
        self.sweeping = false;
        self.freeze = Some(Freeze::default());
        databases
    }

    /// Whether a snapshot has entries left to copy, or pieces that were not taken.
    pub(crate) fn is_frozen(&self) -> bool {
        self.freeze.is_some()
    }

    /// Ends the snapshot. What was copied and not taken is dropped.
    pub(crate) fn thaw(&mut self) {
        let Some(freeze) = self.freeze.take() else {
            return;
        };
        for db in &mut self.dbs {
            db.table.thaw();
            self.sweeping |= db.table.is_sweeping();
        }
        for db in freeze.flushed {
            self.garbage
                .push(Garbage(Discarded::Database(Box::new(db))));
        }
    }

    /// Whether marks of a cancelled snapshot are left, for [`Keyspace::sweep_slice`].
    pub(crate) fn is_sweeping(&self) -> bool {
        self.sweeping
    }

    /// Clears marks of a cancelled snapshot as long as `go_on` says so.
    pub(crate) fn sweep_slice(&mut self, go_on: &mut dyn FnMut() -> bool) {
        let mut tables = self.dbs.iter_mut().map(|db| &mut db.table);
        let swept = tables.all(|table| {
            // Without a snapshot there is nothing to hand over.
            !table.is_sweeping() || table.copy_slice(&mut Vec::new(), go_on)
        });
        self.sweeping = !swept;
    }

    /// Copies entries as long as `go_on` says so. Returns whether the snapshot is complete: its last
    /// pieces come with the next [`Keyspace::take_pieces`], and nothing is copied any more.
    pub(crate) fn copy_slice(&mut self, go_on: &mut dyn FnMut() -> bool) -> bool {
        let Some(mut freeze) = self.freeze.take() else {
            return true;
        };
        let complete = self.copy_into(&mut freeze, go_on);
        self.freeze = Some(freeze);
        complete
    }

    fn copy_into(&mut self, freeze: &mut Freeze, go_on: &mut dyn FnMut() -> bool) -> bool {
        while let Some(db) = freeze.flushed.last_mut() {
            if !db.table.copy_slice(&mut freeze.pieces, go_on) {
                return false;
            }
            if let Some(db) = freeze.flushed.pop() {
                self.garbage
                    .push(Garbage(Discarded::Database(Box::new(db))));
            }
        }
        while let Some(db) = self.dbs.get_mut(freeze.next_db) {
            if db.table.is_frozen() && !db.table.copy_slice(&mut freeze.pieces, go_on) {
                return false;
            }
            freeze.next_db += 1;
            if freeze.next_db.is_multiple_of(DATABASES_STEP) && !go_on() {
                return false;
            }
        }
        true
    }

    /// The pieces that are ready for the thread that encodes them.
    pub(crate) fn take_pieces(&mut self) -> Vec<Piece> {
        let Some(freeze) = &mut self.freeze else {
            return Vec::new();
        };
        let mut pieces = std::mem::take(&mut freeze.pieces);
        for db in &mut freeze.flushed {
            db.table.take_pieces(&mut pieces);
        }
        // Only tables from here on can have copied anything since they were walked through.
        for db in self.dbs.iter_mut().skip(freeze.next_db) {
            db.table.take_pieces(&mut pieces);
        }
        pieces
    }

    /// Takes over a database that was flushed, if a snapshot needs it; gives it back otherwise.
    pub(super) fn keep_flushed(&mut self, db: Db) -> Option<Db> {
        match &mut self.freeze {
            Some(freeze) if db.table.is_frozen() => {
                freeze.flushed.push(db);
                None
            }
            _ => Some(db),
        }
    }

    /// Two databases changed places: the walk looks at all of them again.
    pub(super) fn rewalk(&mut self) {
        if let Some(freeze) = &mut self.freeze {
            freeze.next_db = 0;
        }
    }
}
