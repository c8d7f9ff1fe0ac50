//! Addresses of those who are gone, so that a healed partition finds together again even after both sides have
//! collected each other's tombstones.

use crate::identity::Authority;
use alloc::collections::{BTreeSet, VecDeque};

/// The latest authorities that were collected; a bounded number of them.
#[derive(Clone, Debug)]
pub(crate) struct AddressBook {
    limit: usize,
    order: VecDeque<Authority>,
    known: BTreeSet<Authority>,
}

impl AddressBook {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            order: VecDeque::new(),
            known: BTreeSet::new(),
        }
    }

    pub(crate) fn insert(&mut self, authority: Authority) {
        if self.limit == 0 || !self.known.insert(authority.clone()) {
            return;
        }
        self.order.push_back(authority);
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub(crate) fn remove(&mut self, authority: &Authority) {
        if self.known.remove(authority) {
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
            book.insert(authority.clone());
        }
        assert!(book.iter().eq([&b, &c]));
        book.remove(&b);
        assert_eq!(book.len(), 1);
    }
}
