//! What must hold for a tree at any time.

use super::*;

impl Tree {
    /// Panics unless order, counts, links, parents, sums and the index agree.
    pub(in super::super) fn assert_sound(&self) {
        let mut leaves = Vec::new();
        let count = self.assert_node(self.root, self.height, NONE, &mut leaves);
        assert_eq!(count, self.len);
        assert_eq!(leaves.len() + self.free_leaves.len(), self.leaves.0.len());
        let mut previous: Option<(f64, Vec<u8>)> = None;
        for (at, &id) in leaves.iter().enumerate() {
            let leaf = self.leaf(id);
            let before = at.checked_sub(1).map_or(NONE, |at| leaves[at]);
            assert_eq!(leaf.prev, before);
            assert_eq!(leaf.next, leaves.get(at + 1).copied().unwrap_or(NONE));
            assert!(!leaf.is_full());
            for index in 0..leaf.len() {
                let key = leaf.key(index);
                if let Some((score, member)) = &previous {
                    let previous = Key {
                        score: *score,
                        member,
                    };
                    assert!(previous.order(key).is_lt());
                }
                assert_eq!(leaf.hash(index), self.hash(key.member));
                let place = self.find(key.member).expect("every member is found");
                assert_eq!((place.leaf, place.index), (id, index));
                previous = Some((key.score, key.member.to_vec()));
            }
        }
        let in_use = self.leaves.0.iter().flatten();
        let bytes: usize = in_use.map(|leaf| leaf.heap_bytes()).sum();
        assert_eq!(self.leaf_bytes, bytes);
        self.index.assert_sound(self.len);
    }

    fn assert_node(
        &self,
        node: NodeId,
        height: usize,
        parent: NodeId,
        leaves: &mut Vec<LeafId>,
    ) -> usize {
        if height == 0 {
            let leaf = self.leaf(node);
            assert_eq!(leaf.parent, parent);
            assert!(leaf.len() > 0 || parent == NONE);
            leaves.push(node);
            return leaf.len();
        }
        let inner = self.inner(node);
        assert_eq!(inner.parent, parent);
        assert_eq!(inner.lowest, height == 1);
        assert!(inner.nodes.len() <= INNER_MAX && !inner.nodes.is_empty());
        for (place, &child) in inner.nodes.iter().enumerate() {
            let first = leaves.len();
            let count = self.assert_node(child, height - 1, node, leaves);
            assert_eq!(count, inner.counts[place] as usize);
            if place > 0 {
                let separator = inner.separators[place].key();
                let (left, right) = (self.leaf(leaves[first - 1]), self.leaf(leaves[first]));
                assert!(left.key(left.len() - 1).order(separator).is_lt());
                assert!(separator.order(right.key(0)).is_le());
            }
        }
        inner.count() as usize
    }
}
