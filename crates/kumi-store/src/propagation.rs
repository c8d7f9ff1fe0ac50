//! The record every write leaves for a log or a replica.
//!
//! A record replays to the same state at any later time: relative expiries are written as
//! absolute ones, and a key that expired is a deletion. Nothing is built while nobody listens.

use kumi_resp::OwnedArgs;

/// One write, in the order it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRecord {
    /// Database the write happened in.
    pub db: usize,
    /// The command, absolute in time.
    pub args: OwnedArgs,
}

#[derive(Debug, Default)]
pub(crate) struct Propagation {
    records: Option<Vec<WriteRecord>>,
}

impl Propagation {
    pub(crate) fn listen(&mut self, on: bool) {
        self.records = if on {
            Some(self.records.take().unwrap_or_default())
        } else {
            None
        };
    }

    pub(crate) fn is_on(&self) -> bool {
        self.records.is_some()
    }

    pub(crate) fn len(&self) -> usize {
        self.records.as_ref().map_or(0, Vec::len)
    }

    pub(crate) fn push(&mut self, db: usize, args: OwnedArgs) {
        if let Some(records) = &mut self.records {
            records.push(WriteRecord { db, args });
        }
    }

    pub(crate) fn insert(&mut self, position: usize, db: usize, args: OwnedArgs) {
        if let Some(records) = &mut self.records {
            records.insert(position, WriteRecord { db, args });
        }
    }

    pub(crate) fn take(&mut self) -> Vec<WriteRecord> {
        self.records
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }
}
