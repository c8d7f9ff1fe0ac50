//! Nodes that are known by other means than a record: seeds, the members that the caller of a static cluster named, and the
//! addresses of former members.

use crate::core::base::identity::{Authority, NodeUid};
use crate::core::state::book::AddressBook;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The most seeds.
const MAX_SEEDS: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Addresses {
    seeds: Vec<Authority>,
    /// The members of a static cluster, as the caller named them.
    named: BTreeSet<Authority>,
    book: AddressBook,
}

impl Addresses {
    /// No seeds and no named members, and room for so many former members.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            seeds: Vec::new(),
            named: BTreeSet::new(),
            book: AddressBook::new(limit),
        }
    }

    /// Replaces the seeds; those past the limit are left out.
    pub(crate) fn set_seeds(&mut self, seeds: &[Authority]) {
        self.seeds = seeds.iter().take(MAX_SEEDS).cloned().collect();
    }

    pub(crate) fn seeds(&self) -> &[Authority] {
        &self.seeds
    }

    /// The seeds that are not this authority.
    pub(crate) fn seeds_but<'a>(
        &'a self,
        own: &'a Authority,
    ) -> impl Iterator<Item = &'a Authority> + 'a {
        self.seeds.iter().filter(move |seed| *seed != own)
    }

    /// The position of an authority among the seeds.
    pub(crate) fn seed_position(&self, authority: &Authority) -> Option<usize> {
        self.seeds.iter().position(|seed| seed == authority)
    }

    /// The caller of a static cluster named a member. Its record stays while the name does, so there are no more names than
    /// there may be records.
    pub(crate) fn name(&mut self, authority: Authority) {
        self.named.insert(authority);
    }

    pub(crate) fn unname(&mut self, authority: &Authority) {
        self.named.remove(authority);
    }

    pub(crate) fn is_named(&self, authority: &Authority) -> bool {
        self.named.contains(authority)
    }

    /// The named members that are not this authority.
    pub(crate) fn named_but(&self, own: &Authority) -> Vec<Authority> {
        let others = self.named.iter().filter(|named| *named != own);
        others.cloned().collect()
    }

    pub(crate) fn named_len(&self) -> usize {
        self.named.len()
    }

    /// Keeps the address of a member whose record is gone, and the life that was seen to end there, if one was.
    pub(crate) fn remember(&mut self, authority: Authority, ended: Option<NodeUid>) {
        self.book.insert(authority, ended);
    }

    /// The address has an active member again.
    pub(crate) fn forget(&mut self, authority: &Authority) {
        self.book.remove(authority);
    }

    /// Whether this life was seen to end, and its address is kept.
    pub(crate) fn saw_end_of(&self, authority: &Authority, uid: NodeUid) -> bool {
        self.book.saw_end_of(authority, uid)
    }

    /// The addresses of former members.
    pub(crate) fn former(&self) -> impl Iterator<Item = &Authority> {
        self.book.iter()
    }

    pub(crate) fn former_len(&self) -> usize {
        self.book.len()
    }
}
