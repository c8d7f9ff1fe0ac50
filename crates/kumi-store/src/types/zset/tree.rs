//! A large sorted set: a B+tree with counts, and an index from members to leaves.
//!
//! ```text
//!  inner   children: separator, count of members below, node        up to 64 of them
//!  leaf    members in order, linked to the leaves before and after  up to 64 of them
//!  index   hash -> leaf
//! ```
//!
//! A member's bytes are in its leaf and nowhere else. The index finds the leaf without a descent;
//! from there the counts on the way up give the rank. A descent finds the place of a new key, the
//! member with a rank, or the first member of a range. Members that move to another leaf when one is
//! split or merged get new index records, about one for each insertion.
//!
//! A separator is not greater than any key of its child and greater than all keys before it. Where
//! scores differ, the separator is a score with an empty member, so most take no heap.
//!
//! A change touches one leaf, its neighbour and the nodes above: no step is long at any size.

use std::ops::{Index as At, IndexMut as AtMut, Range};

use siphasher::sip::SipHasher13;

use super::super::pages::Seed;
use super::super::shared::Shared;
use super::super::{Step, address};
use super::index::{Hash32, Index, LeafId};
use super::leaf::{Key, LEAF_MAX, Leaf, NONE};

/// Children of a full inner node.
const INNER_MAX: usize = 64;
/// A member of up to this many bytes moves to another leaf without an allocation.
const SHORT_MEMBER: usize = 64;
/// Leaves dropped at a time.
const DROP_LEAVES: usize = 64;

/// The number of an inner node, or of a leaf below the lowest ones.
type NodeId = u32;

/// The lower end of a child's range.
#[derive(Clone, Debug)]
struct Separator {
    score: f64,
    member: Box<[u8]>,
}

impl Separator {
    /// The shortest separator between two neighbours.
    fn between(left: Key<'_>, right: Key<'_>) -> Self {
        let same = left.member.iter().zip(right.member);
        let common = same.take_while(|(left, right)| left == right).count();
        let member = if left.score < right.score {
            &[]
        } else {
            &right.member[..(common + 1).min(right.member.len())]
        };
        Separator {
            score: right.score,
            member: member.into(),
        }
    }

    fn key(&self) -> Key<'_> {
        Key {
            score: self.score,
            member: &self.member,
        }
    }
}

/// The arrays run side by side: one place for each child.
#[derive(Clone, Debug)]
struct Inner {
    nodes: Vec<NodeId>,
    counts: Vec<u32>,
    /// The first one is never looked at.
    separators: Vec<Separator>,
    parent: NodeId,
    /// Whether the children are leaves.
    lowest: bool,
}

impl Inner {
    const HEAP_BYTES: usize =
        size_of::<Inner>() + (INNER_MAX + 1) * (4 + 4 + size_of::<Separator>());

    fn new(lowest: bool) -> Self {
        Inner {
            nodes: Vec::with_capacity(INNER_MAX + 1),
            counts: Vec::with_capacity(INNER_MAX + 1),
            separators: Vec::with_capacity(INNER_MAX + 1),
            parent: NONE,
            lowest,
        }
    }

    fn place_of(&self, node: NodeId) -> usize {
        let place = self.nodes.iter().position(|&it| it == node);
        place.expect("a node is a child of its parent")
    }

    fn insert(&mut self, place: usize, node: NodeId, count: u32, separator: Separator) {
        self.nodes.insert(place, node);
        self.counts.insert(place, count);
        self.separators.insert(place, separator);
    }

    fn remove(&mut self, place: usize) -> Separator {
        self.nodes.remove(place);
        self.counts.remove(place);
        self.separators.remove(place)
    }

    fn count(&self) -> u32 {
        self.counts.iter().sum()
    }

    /// The last child whose separator lies before the place that `before` describes.
    #[inline]
    fn child_before(&self, before: &mut impl FnMut(Key<'_>) -> bool) -> usize {
        let (mut from, mut to) = (1, self.nodes.len());
        while from < to {
            let middle = from.midpoint(to);
            if before(self.separators[middle].key()) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from - 1
    }
}

/// Where a member is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    leaf: LeafId,
    index: usize,
}

/// All leaves by number; a number that is free has none. A copy of the tree shares them, and a leaf that is shared is
/// copied before it changes.
#[derive(Clone, Debug, Default)]
struct Leaves(Vec<Option<Shared<Leaf>>>);

impl At<LeafId> for Leaves {
    type Output = Leaf;

    #[inline]
    fn index(&self, id: LeafId) -> &Leaf {
        self.0[id as usize].as_deref().expect("a number in use")
    }
}

impl AtMut<LeafId> for Leaves {
    #[inline]
    fn index_mut(&mut self, id: LeafId) -> &mut Leaf {
        self.0[id as usize].as_deref_mut().expect("a number in use")
    }
}

/// A sorted set of any size.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    leaves: Leaves,
    free_leaves: Vec<LeafId>,
    inners: Vec<Inner>,
    free_inners: Vec<NodeId>,
    /// An inner node, or the only leaf.
    root: NodeId,
    /// Levels of inner nodes.
    height: usize,
    len: usize,
    /// Heap bytes of all leaves.
    leaf_bytes: usize,
    index: Index,
    seed: Seed,
}

impl Tree {
    pub(super) fn new(seed: Seed) -> Self {
        let mut tree = Tree {
            leaves: Leaves::default(),
            free_leaves: Vec::new(),
            inners: Vec::new(),
            free_inners: Vec::new(),
            root: 0,
            height: 0,
            len: 0,
            leaf_bytes: 0,
            index: Index::new(seed),
            seed,
        };
        tree.root = tree.add_leaf(Leaf::new());
        tree
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>()
            + self.leaf_bytes
            + self.leaves.0.capacity() * size_of::<Shared<Leaf>>()
            + (self.inners.len() - self.free_inners.len()) * Inner::HEAP_BYTES
            + self.index.heap_bytes()
    }

    /// Heap bytes of the members and their scores.
    pub(super) fn leaf_bytes(&self) -> usize {
        self.leaf_bytes
    }

    pub(super) fn pieces(&self) -> usize {
        self.leaves.0.len().div_ceil(DROP_LEAVES) + self.index.pieces()
    }

    /// See [`super::Slices`].
    pub(super) fn drop_piece(&mut self) -> bool {
        if self.leaves.0.is_empty() {
            return self.index.drop_piece();
        }
        let left = self.leaves.0.len().saturating_sub(DROP_LEAVES);
        self.leaves.0.truncate(left);
        true
    }

    #[inline]
    pub(super) fn hash(&self, member: &[u8]) -> Hash32 {
        let sip = SipHasher13::new_with_keys(self.seed.0, self.seed.1);
        (sip.hash(member) >> 32) as Hash32
    }

    #[inline]
    fn leaf(&self, id: LeafId) -> &Leaf {
        &self.leaves[id]
    }

    #[inline]
    fn inner(&self, id: NodeId) -> &Inner {
        &self.inners[id as usize]
    }

    /// See [`Members`](super::super::Members).
    pub(super) fn lines(&self, hash: Hash32, step: Step, load: &mut dyn FnMut(*const u8)) {
        match step {
            Step::Slot | Step::Page => self.index.lines(hash, step, load),
            Step::Leaf => {
                for leaf in self.index.leaves(hash) {
                    load(address(self.leaf(leaf)));
                    load(address(&self.leaf(leaf).next));
                }
            }
            Step::Items => {
                for leaf in self.index.leaves(hash) {
                    self.leaf(leaf).lines(load);
                }
            }
        }
    }

    /// Where a member is.
    #[inline]
    pub(super) fn find(&self, member: &[u8]) -> Option<Place> {
        let hash = self.hash(member);
        self.index.leaves(hash).find_map(|leaf| {
            let index = self.leaf(leaf).find(hash, member)?;
            Some(Place { leaf, index })
        })
    }

    #[inline]
    pub(super) fn score(&self, place: Place) -> f64 {
        self.leaf(place.leaf).score(place.index)
    }

    /// How many members come before a place.
    pub(super) fn rank(&self, place: Place) -> usize {
        let mut rank = place.index;
        let (mut node, mut parent) = (place.leaf, self.leaf(place.leaf).parent);
        while parent != NONE {
            let inner = self.inner(parent);
            let left = &inner.counts[..inner.place_of(node)];
            rank += left.iter().map(|&count| count as usize).sum::<usize>();
            (node, parent) = (parent, inner.parent);
        }
        rank
    }

    /// How many keys lie before the place that `before` describes: it must hold for a first part of
    /// the keys and for none after.
    pub(super) fn count_before(&self, mut before: impl FnMut(Key<'_>) -> bool) -> usize {
        let (mut node, mut rank) = (self.root, 0);
        for _ in 0..self.height {
            let inner = self.inner(node);
            let child = inner.child_before(&mut before);
            rank += inner.counts[..child].iter().sum::<u32>() as usize;
            node = inner.nodes[child];
        }
        rank + self.leaf(node).count_before(&mut before)
    }

    /// The members from a rank on.
    pub(super) fn iter_from(&self, rank: usize) -> impl Iterator<Item = Key<'_>> {
        let mut place = self.at_rank(rank);
        std::iter::from_fn(move || {
            let Place { leaf, index } = place?;
            let current = self.leaf(leaf);
            place = if index + 1 < current.len() {
                Some(Place {
                    leaf,
                    index: index + 1,
                })
            } else {
                (current.next != NONE).then_some(Place {
                    leaf: current.next,
                    index: 0,
                })
            };
            Some(current.key(index))
        })
    }

    /// The members before a rank, the nearest first.
    pub(super) fn iter_back(&self, rank: usize) -> impl Iterator<Item = Key<'_>> {
        let mut place = rank.checked_sub(1).and_then(|rank| self.at_rank(rank));
        std::iter::from_fn(move || {
            let Place { leaf, index } = place?;
            let current = self.leaf(leaf);
            place = match index.checked_sub(1) {
                Some(index) => Some(Place { leaf, index }),
                None => (current.prev != NONE).then(|| Place {
                    leaf: current.prev,
                    index: self.leaf(current.prev).len() - 1,
                }),
            };
            Some(current.key(index))
        })
    }

    /// The place of the member with this rank.
    fn at_rank(&self, rank: usize) -> Option<Place> {
        if rank >= self.len {
            return None;
        }
        let (mut node, mut index) = (self.root, rank);
        for _ in 0..self.height {
            let inner = self.inner(node);
            let mut child = 0;
            while index >= inner.counts[child] as usize {
                index -= inner.counts[child] as usize;
                child += 1;
            }
            node = inner.nodes[child];
        }
        Some(Place { leaf: node, index })
    }

    /// Visits the members at one position of a scan and returns the next cursor.
    pub(super) fn scan(&self, cursor: u64, visit: &mut dyn FnMut(Key<'_>)) -> u64 {
        self.index.scan(cursor, |hash, leaf| {
            let leaf = self.leaf(leaf);
            leaf.with_hash(hash)
                .for_each(|index| visit(leaf.key(index)));
        })
    }

    /// Adds a member that is not in the set.
    pub(super) fn insert(&mut self, member: &[u8], score: f64) {
        let hash = self.hash(member);
        self.insert_into_leaf(hash, Key { score, member }, None);
    }

    /// Puts a key into its leaf. `from` is the leaf that the index still has for it, if the key has moved.
    fn insert_into_leaf(&mut self, hash: Hash32, key: Key<'_>, from: Option<LeafId>) {
        let mut before = |other: Key<'_>| other.order(key).is_le();
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &mut self.inners[node as usize];
            let child = inner.child_before(&mut before);
            inner.counts[child] += 1;
            node = inner.nodes[child];
        }
        let leaf = &mut self.leaves[node];
        let index = leaf.count_before(&mut before);
        let old = leaf.heap_bytes();
        leaf.insert(index, key, hash);
        self.leaf_bytes = self.leaf_bytes + leaf.heap_bytes() - old;
        self.len += 1;
        let full = leaf.is_full();
        match from {
            Some(from) if from == node => {}
            Some(from) => self.index.relocate(hash, from, node),
            None => self.index.insert(hash, node),
        }
        if full {
            self.split_leaf(node, index);
        }
    }

    /// Gives a member another score; it moves to its new place.
    pub(super) fn set_score(&mut self, place: Place, score: f64) {
        let Place { leaf: id, index } = place;
        let leaf = &self.leaves[id];
        let key = Key {
            score,
            member: leaf.member(index),
        };
        let after_left =
            index == 0 && leaf.prev == NONE || index > 0 && leaf.key(index - 1).order(key).is_lt();
        let before_right = index + 1 == leaf.len() && leaf.next == NONE
            || index + 1 < leaf.len() && key.order(leaf.key(index + 1)).is_lt();
        if after_left && before_right {
            return self.leaves[id].set_score(index, score);
        }
        let hash = leaf.hash(index);
        let (mut short, long);
        let member = if key.member.len() <= SHORT_MEMBER {
            short = [0; SHORT_MEMBER];
            let short = &mut short[..key.member.len()];
            short.copy_from_slice(key.member);
            &*short
        } else {
            long = Box::<[u8]>::from(key.member);
            &*long
        };
        self.take_from_leaf(id, index..index + 1);
        self.insert_into_leaf(hash, Key { score, member }, Some(id));
        self.merge_if_sparse(id);
    }

    pub(super) fn remove(&mut self, place: Place) {
        self.remove_in_leaf(place.leaf, place.index..place.index + 1);
    }

    /// Removes the members of a range of ranks, after showing each to `visit`.
    pub(super) fn remove_ranks(&mut self, ranks: Range<usize>, visit: &mut dyn FnMut(Key<'_>)) {
        let mut left = ranks.end.min(self.len).saturating_sub(ranks.start);
        while left > 0
            && let Some(Place { leaf: id, index }) = self.at_rank(ranks.start)
        {
            let leaf = self.leaf(id);
            let end = leaf.len().min(index + left);
            (index..end).for_each(|index| visit(leaf.key(index)));
            left -= end - index;
            self.remove_in_leaf(id, index..end);
        }
    }

    fn remove_in_leaf(&mut self, id: LeafId, range: Range<usize>) {
        let leaf = &self.leaves[id];
        for index in range.clone() {
            self.index.remove(leaf.hash(index), id);
        }
        self.take_from_leaf(id, range);
        self.merge_if_sparse(id);
    }

    /// Removes members from a leaf and from the counts above it, and leaves the index as it is.
    fn take_from_leaf(&mut self, id: LeafId, range: Range<usize>) {
        let count = range.len();
        let leaf = &mut self.leaves[id];
        let old = leaf.heap_bytes();
        leaf.remove(range);
        self.leaf_bytes = self.leaf_bytes + leaf.heap_bytes() - old;
        self.len -= count;
        let (mut node, mut parent) = (id, leaf.parent);
        while parent != NONE {
            let inner = &mut self.inners[parent as usize];
            let place = inner.place_of(node);
            inner.counts[place] -= count as u32;
            (node, parent) = (parent, inner.parent);
        }
    }

    fn merge_if_sparse(&mut self, id: LeafId) {
        if self.leaf(id).len() < LEAF_MAX / 4 {
            self.merge_leaf(id);
        }
    }

    fn add_leaf(&mut self, leaf: Leaf) -> LeafId {
        self.leaf_bytes += leaf.heap_bytes();
        if let Some(id) = self.free_leaves.pop() {
            self.leaves.0[id as usize] = Some(Shared::new(leaf));
            return id;
        }
        self.leaves.0.push(Some(Shared::new(leaf)));
        (self.leaves.0.len() - 1) as LeafId
    }

    /// Takes a leaf out of the chain and off the books; its number is free.
    fn take_leaf(&mut self, id: LeafId) -> Leaf {
        let leaf = self.leaves.0[id as usize].take().expect("a number in use");
        self.leaf_bytes -= leaf.heap_bytes();
        self.link(leaf.prev, leaf.next);
        self.free_leaves.push(id);
        leaf.into_inner()
    }

    fn link(&mut self, left: LeafId, right: LeafId) {
        if left != NONE {
            self.leaves[left].next = right;
        }
        if right != NONE {
            self.leaves[right].prev = left;
        }
    }

    /// Splits a leaf that has just got a member at this index.
    fn split_leaf(&mut self, id: LeafId, inserted: usize) {
        let leaf = &mut self.leaves[id];
        // Members that come in ascending order leave full leaves behind.
        let ascending = leaf.next == NONE && inserted + 1 == leaf.len();
        let at = if ascending { inserted } else { leaf.len() / 2 };
        let (parent, next) = (leaf.parent, leaf.next);
        let old = leaf.heap_bytes();
        let mut upper = leaf.split_off(at);
        self.leaf_bytes = self.leaf_bytes + leaf.heap_bytes() - old;
        upper.parent = parent;
        let separator = Separator::between(leaf.key(at - 1), upper.key(0));
        let count = upper.len() as u32;
        let upper = self.add_leaf(upper);
        self.link(upper, next);
        self.link(id, upper);
        self.relocate(upper, 0, id);
        self.insert_child(id, parent, upper, count, separator);
    }

    /// Points the index records of a leaf's members from an index on to it.
    fn relocate(&mut self, to: LeafId, index: usize, from: LeafId) {
        let leaf = &self.leaves[to];
        for index in index..leaf.len() {
            self.index.relocate(leaf.hash(index), from, to);
        }
    }

    /// Puts a node behind its left neighbour, whose count still includes its own.
    fn insert_child(
        &mut self,
        left: NodeId,
        parent: NodeId,
        node: NodeId,
        count: u32,
        separator: Separator,
    ) {
        if parent == NONE {
            return self.grow_root(node, count, separator);
        }
        let inner = &mut self.inners[parent as usize];
        let place = inner.place_of(left);
        inner.counts[place] -= count;
        inner.insert(place + 1, node, count, separator);
        if inner.nodes.len() > INNER_MAX {
            self.split_inner(parent, place + 1);
        }
    }

    /// Puts a new root above the old one and its new right neighbour.
    fn grow_root(&mut self, node: NodeId, count: u32, separator: Separator) {
        let mut root = Inner::new(self.height == 0);
        let first = Separator {
            score: 0.0,
            member: [].into(),
        };
        root.insert(0, self.root, self.len as u32 - count, first);
        root.insert(1, node, count, separator);
        let old = self.root;
        self.root = self.add_inner(root);
        self.height += 1;
        self.set_parent(self.height == 1, old, self.root);
        self.set_parent(self.height == 1, node, self.root);
    }

    fn split_inner(&mut self, id: NodeId, inserted: usize) {
        let inner = &mut self.inners[id as usize];
        let len = inner.nodes.len();
        let at = if inserted + 1 == len {
            len - 1
        } else {
            len / 2
        };
        let mut upper = Inner::new(inner.lowest);
        upper.nodes.extend(inner.nodes.drain(at..));
        upper.counts.extend(inner.counts.drain(at..));
        upper.separators.extend(inner.separators.drain(at..));
        upper.parent = inner.parent;
        let (parent, lowest, count) = (inner.parent, inner.lowest, upper.count());
        let first = Separator {
            score: 0.0,
            member: [].into(),
        };
        let separator = std::mem::replace(&mut upper.separators[0], first);
        let children = upper.nodes.clone();
        let upper = self.add_inner(upper);
        for child in children {
            self.set_parent(lowest, child, upper);
        }
        self.insert_child(id, parent, upper, count, separator);
    }

    fn add_inner(&mut self, inner: Inner) -> NodeId {
        if let Some(id) = self.free_inners.pop() {
            self.inners[id as usize] = inner;
            return id;
        }
        self.inners.push(inner);
        (self.inners.len() - 1) as NodeId
    }

    fn set_parent(&mut self, is_leaf: bool, node: NodeId, parent: NodeId) {
        if is_leaf {
            self.leaves[node].parent = parent;
        } else {
            self.inners[node as usize].parent = parent;
        }
    }

    /// Removes an empty leaf, or merges a sparse one with a neighbour under the same parent.
    fn merge_leaf(&mut self, id: LeafId) {
        let leaf = self.leaf(id);
        let parent = leaf.parent;
        if parent == NONE {
            return;
        }
        if leaf.len() == 0 {
            self.take_leaf(id);
            return self.remove_child(parent, id, None);
        }
        let siblings = [(leaf.prev, id), (id, leaf.next)];
        let pair = siblings.into_iter().find(|&(left, right)| {
            let other = if left == id { right } else { left };
            other != NONE && self.leaf(other).parent == parent && self.leaf(other).fits_with(leaf)
        });
        let Some((left, right)) = pair else {
            return;
        };
        let mut leaving = self.take_leaf(right);
        let target = &mut self.leaves[left];
        let (old, moved) = (target.heap_bytes(), target.len());
        target.take_from(&mut leaving, 0);
        self.leaf_bytes = self.leaf_bytes + target.heap_bytes() - old;
        self.relocate(left, moved, right);
        self.remove_child(parent, right, Some(left));
    }

    /// Removes a node from its parent. Its count goes to its left neighbour, if that has taken over
    /// its members.
    fn remove_child(&mut self, parent: NodeId, node: NodeId, heir: Option<NodeId>) {
        let inner = &mut self.inners[parent as usize];
        let place = inner.place_of(node);
        if heir.is_some() {
            inner.counts[place - 1] += inner.counts[place];
        }
        inner.remove(place);
        let (len, above) = (inner.nodes.len(), inner.parent);
        if len == 0 {
            self.free_inner(parent);
            if above == NONE {
                // The last leaf is gone: begin again with an empty one.
                self.root = self.add_leaf(Leaf::new());
                self.height = 0;
                return;
            }
            return self.remove_child(above, parent, None);
        }
        if above == NONE {
            self.shrink_root();
        } else if len < INNER_MAX / 4 {
            self.merge_inner(parent);
        }
    }

    fn free_inner(&mut self, id: NodeId) {
        self.inners[id as usize] = Inner {
            nodes: Vec::new(),
            counts: Vec::new(),
            separators: Vec::new(),
            parent: NONE,
            lowest: false,
        };
        self.free_inners.push(id);
    }

    /// Removes roots with one child.
    fn shrink_root(&mut self) {
        while self.height > 0
            && let inner = self.inner(self.root)
            && let [only] = inner.nodes[..]
        {
            let lowest = inner.lowest;
            self.free_inner(self.root);
            self.root = only;
            self.height -= 1;
            self.set_parent(lowest, only, NONE);
        }
    }

    /// Merges a sparse inner node with a neighbour under the same parent.
    fn merge_inner(&mut self, id: NodeId) {
        let parent = self.inner(id).parent;
        let siblings = &self.inner(parent).nodes;
        let place = self.inner(parent).place_of(id);
        let before = place.checked_sub(1).map(|place| (siblings[place], id));
        let after = siblings.get(place + 1).map(|&right| (id, right));
        let fits = |&(left, right): &(NodeId, NodeId)| {
            let len = self.inner(left).nodes.len() + self.inner(right).nodes.len();
            len <= INNER_MAX * 3 / 4
        };
        let Some((left, right)) = before.into_iter().chain(after).find(fits) else {
            return;
        };
        let place = self.inner(parent).place_of(right);
        let placeholder = Separator {
            score: 0.0,
            member: [].into(),
        };
        let separators = &mut self.inners[parent as usize].separators;
        let separator = std::mem::replace(&mut separators[place], placeholder);
        let mut leaving = std::mem::replace(&mut self.inners[right as usize], Inner::new(false));
        leaving.separators[0] = separator;
        for &child in &leaving.nodes {
            self.set_parent(leaving.lowest, child, left);
        }
        let target = &mut self.inners[left as usize];
        target.nodes.append(&mut leaving.nodes);
        target.counts.append(&mut leaving.counts);
        target.separators.append(&mut leaving.separators);
        self.free_inner(right);
        self.remove_child(parent, right, Some(left));
    }
}

#[cfg(test)]
mod soundness;
