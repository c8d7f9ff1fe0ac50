//! The groups of a stream by name.
//!
//! Most streams have one group or a few, so they stand in a sorted array: a tree's node has room for eleven groups, which
//! is more than a short stream takes in all. A group that is created moves those behind it, 24 bytes each, which is little
//! for one command. Groups that are read from a payload or a file are sorted once.

use super::Group;
use crate::types::Slices;

/// The groups of a stream in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups(Vec<Named>);

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
        let at = self.find(name).ok()?;
        Some(&self.0.get(at)?.group)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        let at = self.find(name).ok()?;
        Some(&mut self.0.get_mut(at)?.group)
    }

    /// Adds a group; `false` if there is one of that name.
    pub(super) fn insert(&mut self, name: &[u8], group: Group) -> bool {
        let Err(at) = self.find(name) else {
            return false;
        };
        if self.0.is_empty() {
            self.0.reserve_exact(1);
        }
        let (name, group) = (name.into(), Box::new(group));
        self.0.insert(at, Named { name, group });
        true
    }

    /// Takes groups in any order instead of its own; `false` if two have the same name.
    pub(super) fn restore(&mut self, groups: Vec<(Box<[u8]>, Box<Group>)>) -> bool {
        let named = groups
            .into_iter()
            .map(|(name, group)| Named { name, group });
        self.0 = named.collect();
        self.0.shrink_to_fit();
        self.0
            .sort_unstable_by(|one, other| one.name.cmp(&other.name));
        self.0.is_sorted_by(|one, other| one.name < other.name)
    }

    pub(super) fn remove(&mut self, name: &[u8]) -> Option<Group> {
        let at = self.find(name).ok()?;
        Some(*self.0.remove(at).group)
    }

    /// Drops a piece of a group, and the group with its last piece.
    pub(super) fn drop_piece(&mut self) {
        if let Some(last) = self.0.last_mut()
            && !last.group.drop_piece()
        {
            self.0.pop();
        }
    }

    fn find(&self, name: &[u8]) -> Result<usize, usize> {
        self.0.binary_search_by(|named| (*named.name).cmp(name))
    }
}
