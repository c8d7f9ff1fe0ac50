//! The groups of a stream by name.
//!
//! Most streams have one group or a few, so they stand in a sorted array: a tree's node has room for eleven groups, which
//! is more than a short stream takes in all. Many groups stand in several arrays (`ordered.rs`), so that no command moves
//! them all. Groups that are read from a payload or a file are sorted once.

use super::Group;
use crate::types::Slices;
use crate::types::ordered::{Ordered, Place};

/// The groups of a stream in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups(Ordered<Named>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    name: Box<[u8]>,
    group: Box<Group>,
}

impl Groups {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &Group)> {
        self.0.iter().map(|named| (&*named.name, &*named.group))
    }

    #[inline]
    pub(super) fn get(&self, name: &[u8]) -> Option<&Group> {
        let place = self.find(name).ok()?;
        Some(&self.0.get(place)?.group)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        let place = self.find(name).ok()?;
        Some(&mut self.0.get_mut(place)?.group)
    }

    /// Adds a group; `false` if there is one of that name.
    pub(super) fn insert(&mut self, name: &[u8], group: Group) -> bool {
        let Err(place) = self.find(name) else {
            return false;
        };
        let (name, group) = (name.into(), Box::new(group));
        self.0.insert(place, Named { name, group });
        true
    }

    /// Takes groups in any order instead of its own; `false` if two have the same name.
    pub(super) fn restore(&mut self, groups: Vec<(Box<[u8]>, Box<Group>)>) -> bool {
        let named = groups
            .into_iter()
            .map(|(name, group)| Named { name, group });
        let mut named: Vec<Named> = named.collect();
        named.shrink_to_fit();
        named.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let distinct = named.is_sorted_by(|one, other| one.name < other.name);
        self.0 = Ordered::from_vec(named);
        distinct
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Group> {
        let place = self.find(name).ok()?;
        Some(*self.0.remove(place)?.group)
    }

    /// Drops a piece of a group, and the group with its last piece.
    pub(super) fn drop_piece(&mut self) {
        let Some(place) = self.0.last() else {
            return;
        };
        let last = self.0.get_mut(place);
        if !last.is_some_and(|last| last.group.drop_piece()) {
            self.0.remove(place);
        }
    }

    fn find(&self, name: &[u8]) -> Result<Place, Place> {
        self.0.find(|named| (*named.name).cmp(name))
    }
}
