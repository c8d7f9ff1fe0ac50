//! Removal of elements. A node goes with its last element; nothing is merged, as in Redis.
//!
//! However many nodes go, the ring of the others is moved once.

use super::{List, Many, Node, NodeRef, Nodes, Side};
use crate::types::packed::{Elem, GappedList, PackedList, PackedListView};
use std::ops::Range;

impl List {
    /// Removes up to `count` elements from an index on, and returns how many there were.
    pub(crate) fn remove_range(&mut self, start: usize, count: usize) -> usize {
        let count = count.min(self.len().saturating_sub(start));
        if count == 0 {
            return 0;
        }
        let (at, offset) = self.view().locate(start);
        match &mut self.nodes {
            Nodes::One(block) => {
                if let Some(pos) = block.view().seek(offset) {
                    block.remove_many(pos, count);
                }
            }
            Nodes::Many(many) => {
                many.remove_range(at, offset, count);
                if many.nodes.is_empty() {
                    self.nodes = Nodes::One(PackedList::new());
                }
            }
        }
        count
    }

    /// Removes elements equal to one: up to `count` from an end, or all for a count of 0. Returns how many there were.
    pub(crate) fn remove_equal(&mut self, element: &[u8], side: Side, count: usize) -> usize {
        let wanted = Elem::parse(element);
        let most = if count == 0 { usize::MAX } else { count };
        match &mut self.nodes {
            Nodes::One(block) => {
                let indices = matching(block.view(), wanted, side, most);
                match indices[..] {
                    [] => {}
                    [only] => {
                        if let Some(pos) = block.view().seek(only) {
                            block.remove(pos);
                        }
                    }
                    _ if indices.len() == block.len() => *block = PackedList::new(),
                    _ => *block = without(block.view(), &indices),
                }
                indices.len()
            }
            Nodes::Many(many) => {
                let removed = many.remove_equal(wanted, side, most);
                if many.nodes.is_empty() {
                    self.nodes = Nodes::One(PackedList::new());
                }
                removed
            }
        }
    }
}

impl Many {
    /// Removes `count` elements, which there must be, from an element of a node on.
    fn remove_range(&mut self, at: usize, offset: usize, count: usize) {
        let (mut first, mut left) = (at, count);
        if offset > 0 {
            let behind = self.nodes.get(first).map_or(0, Node::count) - offset;
            let here = behind.min(left);
            self.edit(first, |block| block.remove(offset, here));
            left -= here;
            first += 1;
        }
        let mut last = first;
        while let Some(node) = self.nodes.get(last)
            && node.count() <= left
        {
            left -= node.count();
            last += 1;
        }
        if first < last {
            self.remove_nodes(first..last);
        }
        if left > 0 {
            self.edit(first, |block| block.remove(0, left));
        }
    }

    fn remove_equal(&mut self, wanted: Elem<'_>, side: Side, most: usize) -> usize {
        let mut removed = 0;
        // Nodes that only hold such elements, in the order they are met.
        let mut emptied = Vec::new();
        for met in 0..self.nodes.len() {
            let left = most - removed;
            if left == 0 {
                break;
            }
            let at = match side {
                Side::Front => met,
                Side::Back => self.nodes.len() - 1 - met,
            };
            let node = &self.nodes[at];
            let indices = match node.view() {
                NodeRef::Packed(view) => matching(view, wanted, side, left),
                NodeRef::Lone(bytes) | NodeRef::Plain(bytes) => {
                    match Elem::parse(bytes) == wanted {
                        true => vec![0],
                        false => Vec::new(),
                    }
                }
            };
            removed += indices.len();
            match indices[..] {
                [] => {}
                _ if indices.len() == node.count() => emptied.push(at),
                [only] => {
                    self.edit(at, |block| block.remove(only, 1));
                }
                _ => {
                    self.edit(at, |block| {
                        *block = GappedList::new(without(block.view(), &indices));
                    });
                }
            }
        }
        if side == Side::Back {
            emptied.reverse();
        }
        match emptied[..] {
            [] => {}
            [only] => self.remove_nodes(only..only + 1),
            _ => self.remove_each(&emptied),
        }
        removed
    }

    /// Removes a range of nodes.
    fn remove_nodes(&mut self, range: Range<usize>) {
        for node in self.nodes.drain(range) {
            self.len -= node.count();
            self.node_bytes -= node.heap_bytes();
        }
        self.shrink();
    }

    /// Removes the nodes with these indices, which ascend.
    fn remove_each(&mut self, indices: &[usize]) {
        let (mut at, mut indices) = (0, indices.iter().peekable());
        let (len, node_bytes) = (&mut self.len, &mut self.node_bytes);
        self.nodes.retain(|node| {
            let goes = indices.next_if(|&&index| index == at).is_some();
            at += 1;
            if goes {
                *len -= node.count();
                *node_bytes -= node.heap_bytes();
            }
            !goes
        });
        self.shrink();
    }
}

/// The indices of elements that equal one, at most so many from an end.
fn matching(view: PackedListView<'_>, wanted: Elem<'_>, side: Side, most: usize) -> Vec<usize> {
    let equal = view.iter().enumerate().filter(|(_, elem)| *elem == wanted);
    let mut indices: Vec<usize> = equal.map(|(index, _)| index).collect();
    match side {
        Side::Front => indices.truncate(most),
        Side::Back => drop(indices.drain(..indices.len().saturating_sub(most))),
    }
    indices
}

/// A block without the elements at these indices, which ascend.
fn without(view: PackedListView<'_>, indices: &[usize]) -> PackedList {
    let elems = view.iter().enumerate();
    let others = elems.filter(|(index, _)| indices.binary_search(index).is_err());
    let mut block = PackedList::new();
    block.push_all(others.map(|(_, elem)| elem));
    block
}
