//! Addresses of members that are gone, so that the sides of a healed partition find each other after both have collected
//! each other's tombstones; and the uid that ended there, so that it does not become active again.

use crate::core::base::identity::{Authority, NodeUid};
use alloc::collections::{BTreeMap, VecDeque};

/// The latest authorities that were collected; a bounded number of them.
#[derive(Clone, Debug)]
pub(crate) struct AddressBook {
    limit: usize,
    order: VecDeque<Authority>,
    /// With the life that was seen to end, if one was.
    known: BTreeMap<Authority, Option<NodeUid>>,
}

impl AddressBook {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            order: VecDeque::new(),
            known: BTreeMap::new(),
        }
    }

    /// Keeps an address, and the life that ended there; `None` for a member that was only forgotten.
    pub(crate) fn insert(&mut self, authority: Authority, ended: Option<NodeUid>) {
        if self.limit == 0 {
            return;
        }
        if let Some(known) = self.known.get_mut(&authority) {
            *known = ended.or(*known);
            return;
        }
        self.known.insert(authority.clone(), ended);
        self.order.push_back(authority);
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Whether this very life was seen to end.
    pub(crate) fn saw_end_of(&self, authority: &Authority, uid: NodeUid) -> bool {
        self.known.get(authority).copied().flatten() == Some(uid)
    }

    pub(crate) fn remove(&mut self, authority: &Authority) {
        if self.known.remove(authority).is_some() {
            self.order.retain(|known| known != authority);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Authority> {
        self.order.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_address_makes_room() {
        let mut book = AddressBook::new(2);
        let [a, b, c] = ["a", "b", "c"].map(|name| Authority::new(name).expect("valid"));
        for authority in [&a, &b, &a, &c] {
            book.insert(authority.clone(), None);
        }
        assert!(book.iter().eq([&b, &c]));
        book.remove(&b);
        assert_eq!(book.len(), 1);
    }

    #[test]
    fn the_life_that_ended_is_remembered_with_its_address() {
        let mut book = AddressBook::new(2);
        let a = Authority::new("a").expect("valid");
        let [one, two] = [1, 2].map(NodeUid::from_raw);
        book.insert(a.clone(), Some(one));
        book.insert(a.clone(), None);
        assert!(book.saw_end_of(&a, one) && !book.saw_end_of(&a, two));
        book.insert(a.clone(), Some(two));
        assert!(book.saw_end_of(&a, two));
        book.remove(&a);
        assert!(!book.saw_end_of(&a, two));
    }
}
