//! Removal of elements. A node goes with its last element; nothing is merged, as in Redis.

use super::{List, NodeRef, Nodes, Side};
use crate::types::packed::{Elem, PackedList};

impl List {
    /// Removes up to `count` elements from an index on, and returns how many there were.
    pub(crate) fn remove_range(&mut self, start: usize, count: usize) -> usize {
        let count = count.min(self.len().saturating_sub(start));
        if count == 0 {
            return 0;
        }
        let (mut at, mut offset) = self.view().locate(start);
        let mut left = count;
        while left > 0 {
            let here = self.node_count(at).saturating_sub(offset).min(left);
            left -= here;
            if !self.remove_from_node(at, offset, here) {
                at += 1;
            }
            offset = 0;
        }
        count
    }

    /// Removes elements equal to one: up to `count` from an end, or all for a count of 0. Returns how many there were.
    pub(crate) fn remove_equal(&mut self, element: &[u8], side: Side, count: usize) -> usize {
        let wanted = Elem::parse(element);
        let most = if count == 0 { usize::MAX } else { count };
        let mut removed = 0;
        let mut left = self.nodes_len();
        let mut at = match side {
            Side::Front => 0,
            Side::Back => left,
        };
        while left > 0 && removed < most {
            left -= 1;
            if side == Side::Back {
                at -= 1;
            }
            let (count, gone) = self.remove_equal_in_node(at, wanted, side, most - removed);
            removed += count;
            // A node that went leaves its successor in its place.
            if side == Side::Front && !gone {
                at += 1;
            }
        }
        removed
    }

    fn remove_equal_in_node(
        &mut self,
        at: usize,
        wanted: Elem<'_>,
        side: Side,
        most: usize,
    ) -> (usize, bool) {
        let matching: Vec<usize> = match self.view().node(at) {
            Some(NodeRef::Packed(view)) => {
                let matches = view.iter().enumerate().filter(|(_, elem)| *elem == wanted);
                matches.map(|(offset, _)| offset).collect()
            }
            Some(NodeRef::Lone(bytes) | NodeRef::Plain(bytes)) if Elem::parse(bytes) == wanted => {
                vec![0]
            }
            _ => Vec::new(),
        };
        let taken = matching.len().min(most);
        let chosen = match side {
            Side::Front => &matching[..taken],
            Side::Back => &matching[matching.len() - taken..],
        };
        let mut gone = false;
        // From the back, so that the offsets before stay what they are.
        for &offset in chosen.iter().rev() {
            gone = self.remove_from_node(at, offset, 1);
        }
        (taken, gone)
    }

    /// Removes elements of one node; returns whether the node went with them.
    fn remove_from_node(&mut self, at: usize, offset: usize, count: usize) -> bool {
        match &mut self.nodes {
            Nodes::One(block) => {
                if let Some(pos) = block.view().seek(offset) {
                    block.remove_many(pos, count);
                }
                false
            }
            Nodes::Many(many) => {
                let whole = many.nodes.get(at).is_some_and(|node| node.count() == count);
                if !whole {
                    many.edit(at, |block| block.remove(offset, count));
                    return false;
                }
                many.remove(at);
                if many.nodes.is_empty() {
                    self.nodes = Nodes::One(PackedList::new());
                }
                true
            }
        }
    }
}
