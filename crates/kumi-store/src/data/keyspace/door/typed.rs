//! The door by type: a look at a collection, and an edit of one.
//!
//! A key of another type answers WRONGTYPE before anything changes. An edit finds the key once,
//! creates it if the command wants that, removes it when its collection has become empty, and
//! brings the accounts, the watchers and the waiters up to date.

use super::super::Change;
use super::super::collection::Collection;
use super::super::entry::lies_inline;
use super::super::value::{NewValue, StringRef, Type};
use super::{Expiry, Found, Keys, Look};
use crate::base::error::{CommandError, CommandResult};
use crate::base::size_class::block_bytes;

/// What an edit does with a key that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Edits an empty collection, which is stored if it is not empty then.
    Create,
    /// Edits nothing.
    Skip,
}

/// What an edit made of the collection, and what the command wants to know of it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit<R> {
    Changed(R),
    /// Entries of a stream are gone: watchers look at that, waiters want new ones.
    Trimmed(R),
    /// What changed is nothing that watchers or waiters look at: the consumer groups of a stream, or the encoding alone.
    Unwatched(R),
    Unchanged(R),
}

impl<R> Edit<R> {
    /// The same with another result.
    pub(crate) fn with<T>(self, result: T) -> Edit<T> {
        match self {
            Edit::Changed(_) => Edit::Changed(result),
            Edit::Trimmed(_) => Edit::Trimmed(result),
            Edit::Unwatched(_) => Edit::Unwatched(result),
            Edit::Unchanged(_) => Edit::Unchanged(result),
        }
    }

    /// The result, whether something changed, and as what it is signalled, if at all. Of the keys that exist, only
    /// streams have waiters that want more.
    fn split(self, type_of: Type) -> (R, bool, Option<Change>) {
        match self {
            Edit::Changed(result) if type_of == Type::Stream => {
                (result, true, Some(Change::Added(type_of)))
            }
            Edit::Changed(result) | Edit::Trimmed(result) => (result, true, Some(Change::Edited)),
            Edit::Unwatched(result) => (result, true, None),
            Edit::Unchanged(result) => (result, false, None),
        }
    }
}

/// What became of the key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edited<R> {
    pub(crate) result: R,
    /// The edit said that it changed something.
    pub(crate) changed: bool,
    /// The collection became empty, and its key is gone. The `del` event is the command's to send.
    pub(crate) removed: bool,
}

impl Keys<'_> {
    /// A string for reading.
    ///
    /// # Errors
    /// WRONGTYPE.
    #[inline]
    pub(crate) fn read(&mut self, key: &[u8]) -> Result<Option<StringRef<'_>>, CommandError> {
        self.string(key, Look::Read)
    }

    /// A string, looked up as a command wants.
    ///
    /// # Errors
    /// WRONGTYPE.
    #[inline]
    pub(crate) fn string(
        &mut self,
        key: &[u8],
        look: Look,
    ) -> Result<Option<StringRef<'_>>, CommandError> {
        let Some(entry) = self.look(key, look) else {
            return Ok(None);
        };
        match entry.string() {
            Some(string) => Ok(Some(string)),
            None => Err(CommandError::WRONG_TYPE),
        }
    }

    /// Gives a string that exists the name `raw`, as Redis does before it changes bytes in place. The text stays as it
    /// is, so watchers and waiters are not notified.
    pub(crate) fn make_raw(&mut self, key: &[u8]) {
        let (_, Found::Live(position)) = self.search(key) else {
            return;
        };
        let db = &mut self.keyspace.dbs[self.db];
        let entry = db.table.at_mut(position);
        match entry.string() {
            None | Some(StringRef::Bytes { raw: true, .. }) => return,
            Some(_) => {}
        }
        let before_bytes = entry.heap_bytes();
        self.keyspace.changing = true;
        entry.edit_bytes(|_| {});
        let after_bytes = entry.heap_bytes();
        db.entry_bytes = db.entry_bytes - before_bytes + after_bytes;
        self.keyspace.recount(self.db);
        self.keyspace.changing = false;
    }

    /// A collection for reading.
    ///
    /// # Errors
    /// WRONGTYPE.
    #[inline]
    pub(crate) fn view<T: Collection>(
        &mut self,
        key: &[u8],
        look: Look,
    ) -> Result<Option<T::View<'_>>, CommandError> {
        let Some(entry) = self.look(key, look) else {
            return Ok(None);
        };
        if let Some((form, bytes)) = entry.small(T::TYPE) {
            return Ok(Some(T::view_small(form, bytes)));
        }
        match entry.boxed().and_then(T::of) {
            Some(collection) => Ok(Some(collection.view())),
            None => Err(CommandError::WRONG_TYPE),
        }
    }

    /// Changes a collection. None if the key is missing and `missing` says to skip it.
    ///
    /// # Errors
    /// WRONGTYPE, a limit on keys, or what `edit` answers; then `edit` must have changed nothing.
    pub(crate) fn edit<T: Collection, R>(
        &mut self,
        key: &[u8],
        missing: Missing,
        edit: impl FnOnce(&mut T) -> Result<Edit<R>, CommandError>,
    ) -> Result<Option<Edited<R>>, CommandError> {
        let (hash, found) = self.search(key);
        let Found::Live(position) = found else {
            if missing == Missing::Skip {
                return Ok(None);
            }
            return self.create_collection(hash, found, key, edit).map(Some);
        };
        let scratch = std::mem::take(&mut self.keyspace.work.scratch);
        let db = &mut self.keyspace.dbs[self.db];
        let entry = db.table.at_mut(position);
        if self.touch {
            self.keyspace.room.access.touch(entry, self.now_ms);
        }
        let (result, changed, change, is_empty, before_bytes, after_bytes);
        if let Some((form, bytes)) = entry.small(T::TYPE) {
            let mut scratch = scratch;
            before_bytes = entry.heap_bytes();
            scratch.clear();
            scratch.extend_from_slice(bytes);
            let mut collection = T::from_small(form, scratch);
            (result, changed, change) = edit(&mut collection)?.split(T::TYPE);
            is_empty = collection.is_empty();
            match collection.small() {
                Some((form, bytes)) if !changed || lies_inline(key, bytes) => {
                    if changed {
                        entry.replace_value(NewValue::Small(T::TYPE, form, bytes));
                    }
                    self.keyspace.work.scratch = collection.into_buffer().unwrap_or_default();
                }
                // The scratch buffer may be several times as long as this collection, which gets one of its own.
                Some((form, bytes)) => {
                    let mut own = Vec::with_capacity(block_bytes(bytes.len()));
                    own.extend_from_slice(bytes);
                    let value = T::from_small(form, own).into_value();
                    entry.replace_value(NewValue::Boxed(value));
                    self.keyspace.work.scratch = collection.into_buffer().unwrap_or_default();
                }
                None => {
                    entry.replace_value(NewValue::Boxed(collection.into_value()));
                }
            }
            after_bytes = entry.heap_bytes();
        } else {
            self.keyspace.work.scratch = scratch;
            let collection = entry.boxed_mut().and_then(T::of_mut);
            let collection = collection.ok_or(CommandError::WRONG_TYPE)?;
            before_bytes = collection.heap_bytes();
            self.keyspace.changing = true;
            let outcome = edit(collection);
            self.keyspace.changing = false;
            (result, changed, change) = outcome?.split(T::TYPE);
            is_empty = collection.is_empty();
            after_bytes = collection.heap_bytes();
        }
        // A change that takes no memory and gives none back leaves the totals as they are.
        self.keyspace.changing = before_bytes != after_bytes;
        db.entry_bytes = db.entry_bytes - before_bytes + after_bytes;
        let removed = changed && is_empty && T::GOES_WHEN_EMPTY;
        if removed {
            self.keyspace.changing = true;
            let entry = self.keyspace.dbs[self.db].take(hash, position);
            self.keyspace.discard(entry);
        }
        if let Some(change) = change {
            self.signal(key, if removed { Change::Removed } else { change });
        } else if self.keyspace.changing {
            self.keyspace.recount(self.db);
            self.keyspace.changing = false;
        }
        Ok(Some(Edited {
            result,
            changed,
            removed,
        }))
    }

    fn create_collection<T: Collection, R>(
        &mut self,
        hash: u64,
        found: Found,
        key: &[u8],
        edit: impl FnOnce(&mut T) -> Result<Edit<R>, CommandError>,
    ) -> Result<Edited<R>, CommandError> {
        self.keyspace.admit_keys(1)?;
        let mut collection = T::new();
        let result = match edit(&mut collection)? {
            Edit::Changed(result) | Edit::Trimmed(result) | Edit::Unwatched(result) => result,
            Edit::Unchanged(result) => {
                return Ok(Edited {
                    result,
                    changed: false,
                    removed: false,
                });
            }
        };
        let is_empty = collection.is_empty() && T::GOES_WHEN_EMPTY;
        if !is_empty {
            match collection.small() {
                Some((form, bytes)) if lies_inline(key, bytes) => {
                    let value = NewValue::Small(T::TYPE, form, bytes);
                    self.create(hash, found, key, value, Expiry::Clear)?;
                }
                _ => {
                    let value = NewValue::Boxed(collection.into_value());
                    self.create(hash, found, key, value, Expiry::Clear)?;
                }
            }
            self.signal(key, Change::Added(T::TYPE));
        }
        Ok(Edited {
            result,
            changed: !is_empty,
            removed: false,
        })
    }

    /// Changes a collection that exists, and counts the look at its key as that of a reading command.
    ///
    /// # Errors
    /// As [`Keys::edit`].
    pub(crate) fn read_and_edit<T: Collection, R>(
        &mut self,
        key: &[u8],
        edit: impl FnOnce(&mut T) -> Result<Edit<R>, CommandError>,
    ) -> Result<Option<Edited<R>>, CommandError> {
        let edited = self.edit(key, Missing::Skip, edit);
        self.count_read(key, !matches!(edited, Ok(None)));
        edited
    }

    /// Stores a collection under a key, whatever was there before; its deadline goes. Without any
    /// element the key goes.
    ///
    /// # Errors
    /// When a configured limit on keys or value sizes would be exceeded; nothing changed then.
    pub(crate) fn put_collection<T: Collection>(
        &mut self,
        key: &[u8],
        collection: T,
    ) -> CommandResult {
        let put = with_new_value(key, collection, |value| self.put(key, value, Expiry::Clear));
        put.unwrap_or_else(|| {
            self.remove(key);
            Ok(())
        })
    }

    /// The seed of the hash tables of collections.
    pub(crate) fn seed(&self) -> (u64, u64) {
        self.keyspace.seed
    }
}

/// Calls `then` with the form in which a collection is stored under a key; `None` for one without elements, which is not
/// stored.
pub(crate) fn with_new_value<T: Collection, R>(
    key: &[u8],
    collection: T,
    then: impl FnOnce(NewValue<'_>) -> R,
) -> Option<R> {
    if collection.is_empty() && T::GOES_WHEN_EMPTY {
        return None;
    }
    Some(match collection.small() {
        Some((form, bytes)) if lies_inline(key, bytes) => {
            then(NewValue::Small(T::TYPE, form, bytes))
        }
        _ => then(NewValue::Boxed(collection.into_value())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::keyspace::Keyspace;
    use crate::types::hash::{Hash, HashLimits};

    const SEED: (u64, u64) = (1, 2);

    fn set(keys: &mut Keys<'_>, field: &[u8], value: &[u8]) -> Result<bool, CommandError> {
        let edited = keys.edit(b"k", Missing::Create, |hash: &mut Hash| {
            Ok(Edit::Changed(hash.set(
                field,
                value,
                HashLimits::default(),
                SEED,
            )))
        })?;
        Ok(edited.is_some_and(|edited| edited.result))
    }

    fn get(keys: &mut Keys<'_>, field: &[u8]) -> Option<Vec<u8>> {
        let hash = keys.view::<Hash>(b"k", Look::Read).ok()??;
        Some(hash.get(field)?.text().to_vec())
    }

    #[test]
    fn a_collection_grows_out_of_its_entry_and_stays_the_same() {
        let mut keyspace = Keyspace::new(1, SEED, 3);
        let mut keys = keyspace.keys(0, 0, true);
        for number in 0..200 {
            let field = format!("field:{number}");
            assert!(
                set(&mut keys, field.as_bytes(), b"a value of some length").is_ok_and(|new| new)
            );
            assert!(get(&mut keys, b"field:0").is_some(), "after {number}");
        }
        assert_eq!(
            keys.view::<Hash>(b"k", Look::Quiet)
                .map(|hash| hash.map(|hash| hash.len())),
            Ok(Some(200))
        );
        assert_eq!(keys.len(), 1);
    }

    #[test]
    fn the_accounts_follow_every_edit_and_an_empty_collection_goes() {
        let mut keyspace = Keyspace::new(1, SEED, 3);
        let empty = keyspace.memory_bytes();
        for number in 0..300_u32 {
            let field = number.to_string();
            assert!(
                set(
                    &mut keyspace.keys(0, 0, true),
                    field.as_bytes(),
                    &[b'x'; 100]
                )
                .is_ok()
            );
            let entry_bytes = keyspace.dbs[0]
                .table
                .iter()
                .map(super::super::Entry::heap_bytes);
            assert_eq!(
                keyspace.dbs[0].entry_bytes,
                entry_bytes.sum::<usize>(),
                "after {number}"
            );
        }
        let mut keys = keyspace.keys(0, 0, true);
        let edited = keys.edit(b"k", Missing::Skip, |hash: &mut Hash| {
            for number in 0..300_u32 {
                hash.remove(number.to_string().as_bytes());
            }
            Ok(Edit::Changed(()))
        });
        assert!(edited.is_ok_and(|edited| edited.is_some_and(|edited| edited.removed)));
        assert_eq!(keys.len(), 0);
        let overhead = keyspace.overhead_bytes(0);
        assert_eq!(keyspace.memory_bytes(), empty + overhead.0 + overhead.1);
    }

    #[test]
    fn another_type_is_refused_and_unchanged() {
        let mut keyspace = Keyspace::new(1, SEED, 3);
        let mut keys = keyspace.keys(0, 0, true);
        assert!(keys.put(b"k", NewValue::Int(5), Expiry::Clear).is_ok());
        assert_eq!(set(&mut keys, b"f", b"v"), Err(CommandError::WRONG_TYPE));
        assert!(keys.view::<Hash>(b"k", Look::Read).is_err());
        assert_eq!(
            keys.read(b"k")
                .map(|string| string == Some(StringRef::Int(5))),
            Ok(true)
        );
        assert!(keys.put_collection(b"k", Hash::new()).is_ok());
        assert_eq!(
            keys.len(),
            0,
            "a collection without elements removes the key"
        );
        assert!(set(&mut keys, b"f", b"v").is_ok());
        assert!(keys.read(b"k").is_err());
        assert!(keys.edit_bytes(b"k", 1, |_| {}).is_err());
        assert_eq!(
            keys.look(b"k", Look::Quiet)
                .map(crate::data::keyspace::Entry::type_of),
            Some(Type::Hash)
        );
    }

    #[test]
    fn an_edit_that_fails_leaves_a_small_collection_as_it_was() {
        let mut keyspace = Keyspace::new(1, SEED, 3);
        let mut keys = keyspace.keys(0, 0, true);
        assert!(set(&mut keys, b"f", b"v").is_ok());
        let failed = keys.edit(b"k", Missing::Skip, |hash: &mut Hash| {
            hash.set(b"f", b"changed", HashLimits::default(), SEED);
            Err::<Edit<()>, _>(CommandError::NOT_INTEGER)
        });
        assert!(failed.is_err());
        assert_eq!(get(&mut keys, b"f").as_deref(), Some(&b"v"[..]));
    }
}
