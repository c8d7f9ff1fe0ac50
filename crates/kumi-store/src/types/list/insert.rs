//! Insertion and replacement in the middle of a list.
//!
//! A full node is split where the element goes, and neighbours that fit into one node are merged afterwards: Redis's
//! rules, step by step, because OBJECT ENCODING depends on how many nodes are left.

use super::{Body, List, ListEncoding, ListLimits, Node, Nodes};
use crate::types::packed::{Elem, PackedList};
use crate::types::shared::Shared;

/// Bytes that two listpacks lose when they become one.
const MERGED_BYTES: usize = 7;

/// An end of a list, or a side of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Front,
    Back,
}

impl List {
    /// Puts an element in front of or behind the one with this index. `false` if there is no such index.
    pub(crate) fn insert(
        &mut self,
        index: usize,
        side: Side,
        element: &[u8],
        limits: ListLimits,
    ) -> bool {
        if index >= self.len {
            return false;
        }
        let (at, offset) = self.view().locate(index);
        if self.encoding == ListEncoding::Listpack {
            self.insert_packed(at, offset, side, element);
        } else {
            self.insert_into_nodes(at, offset, side, element, limits);
        }
        self.len += 1;
        true
    }

    /// Replaces the element with this index. `false` if there is no such index.
    pub(crate) fn set(&mut self, index: usize, element: &[u8], limits: ListLimits) -> bool {
        if index >= self.len {
            return false;
        }
        let (at, offset) = self.view().locate(index);
        if !limits.is_plain(element) || self.encoding == ListEncoding::Listpack {
            let block = match &mut self.nodes {
                Nodes::One(block) => Some(block),
                Nodes::Many(nodes) => match &mut nodes[at].body {
                    Body::Packed(block) => Some(&mut **block),
                    Body::Plain(_) => None,
                },
            };
            if let Some(block) = block {
                let before = block.heap_bytes();
                if let Some(pos) = block.view().seek(offset) {
                    block.replace(pos, Elem::parse(element));
                }
                self.node_bytes = self.node_bytes - before + block.heap_bytes();
                return true;
            }
        } else if let Nodes::Many(nodes) = &mut self.nodes
            && let Body::Plain(bytes) = &mut nodes[at].body
        {
            self.node_bytes = self.node_bytes - bytes.len() + element.len();
            *bytes = element.into();
            return true;
        }
        // A plain element takes the place of a packed one, or the other way round.
        self.insert_into_nodes(at, offset, Side::Back, element, limits);
        self.len += 1;
        self.remove_range(index, 1);
        true
    }

    /// Inserts into a node that takes the element.
    fn insert_packed(&mut self, at: usize, offset: usize, side: Side, element: &[u8]) {
        let block = match &mut self.nodes {
            Nodes::One(block) => block,
            Nodes::Many(nodes) => match &mut nodes[at] {
                Node {
                    count,
                    body: Body::Packed(block),
                } => {
                    *count += 1;
                    &mut **block
                }
                Node { .. } => return,
            },
        };
        let before = block.heap_bytes();
        let place = match side {
            Side::Front => offset,
            Side::Back => offset + 1,
        };
        if let Some(pos) = block.view().seek(place) {
            block.insert(pos, Elem::parse(element));
        }
        self.node_bytes = self.node_bytes - before + block.heap_bytes();
    }

    fn insert_into_nodes(
        &mut self,
        at: usize,
        offset: usize,
        side: Side,
        element: &[u8],
        limits: ListLimits,
    ) {
        let nodes = self.many();
        let count = nodes[at].count as usize;
        let at_edge = match side {
            Side::Front => offset == 0,
            Side::Back => offset + 1 == count,
        };
        if nodes[at].takes(element, limits) {
            self.insert_packed(at, offset, side, element);
            return;
        }
        if !at_edge {
            self.split_and_insert(at, offset, side, element, limits);
            return;
        }
        // At an edge, the neighbour takes the element if it has room, or it becomes a node of its own.
        let neighbour = match side {
            Side::Front => at.checked_sub(1),
            Side::Back => Some(at + 1),
        };
        let neighbour = neighbour.filter(|&neighbour| {
            nodes
                .get(neighbour)
                .is_some_and(|node| node.takes(element, limits))
        });
        match (neighbour, side) {
            (Some(before), Side::Front) => {
                let last = nodes[before].count as usize - 1;
                self.insert_packed(before, last, Side::Back, element);
            }
            (Some(behind), Side::Back) => self.insert_packed(behind, 0, Side::Front, element),
            (None, _) => {
                let place = match side {
                    Side::Front => at,
                    Side::Back => at + 1,
                };
                self.insert_node(place, Node::of(element, limits));
            }
        }
    }

    /// Splits a full node where the element goes. The element joins the part that is split off, and what fits together
    /// afterwards is merged; a plain element becomes a node between the parts.
    fn split_and_insert(
        &mut self,
        at: usize,
        offset: usize,
        side: Side,
        element: &[u8],
        limits: ListLimits,
    ) {
        let place = match side {
            Side::Front => offset,
            Side::Back => offset + 1,
        };
        let nodes = self.many();
        let Body::Packed(block) = &mut nodes[at].body else {
            return;
        };
        let before = block.heap_bytes();
        let Some(pos) = block.view().seek(place) else {
            return;
        };
        let mut rest = block.split_off(pos);
        let kept = block.len() as u32;
        let after = block.heap_bytes();
        if limits.is_plain(element) {
            nodes[at].count = kept;
            self.node_bytes = self.node_bytes - before + after;
            self.insert_node(at + 1, Node::of(element, limits));
            self.insert_node(at + 2, Node::packed(rest));
            return;
        }
        // Redis keeps the half with the element's neighbour in place and merges around that one.
        let elem = Elem::parse(element);
        let center = match side {
            Side::Front => {
                block.push_back(elem);
                at + 1
            }
            Side::Back => {
                rest.push_front(elem);
                at
            }
        };
        let (count, after) = (block.len() as u32, block.heap_bytes());
        nodes[at].count = count;
        self.node_bytes = self.node_bytes - before + after;
        self.insert_node(at + 1, Node::packed(rest));
        self.merge_around(center, limits);
    }

    /// Merges neighbours: the two before a node, the two behind it, then the node with what is beside it.
    fn merge_around(&mut self, center: usize, limits: ListLimits) {
        let mut center = center;
        if center >= 2 && self.merge(center - 2, limits) {
            center -= 1;
        }
        if center + 2 < self.nodes_len() {
            self.merge(center + 1, limits);
        }
        if center >= 1 && self.merge(center - 1, limits) {
            center -= 1;
        }
        self.merge(center, limits);
    }

    /// Merges a node with the one behind it, if both are packed and fit into one.
    fn merge(&mut self, at: usize, limits: ListLimits) -> bool {
        let Nodes::Many(nodes) = &mut self.nodes else {
            return false;
        };
        let (Some(left), Some(right)) = (nodes.get(at), nodes.get(at + 1)) else {
            return false;
        };
        let (Body::Packed(one), Body::Packed(other)) = (&left.body, &right.body) else {
            return false;
        };
        let bytes = one.view().listpack_bytes() + other.view().listpack_bytes() - MERGED_BYTES;
        let count = left.count + right.count;
        if limits.exceeded(bytes, count as usize) {
            return false;
        }
        let Some(Node {
            body: Body::Packed(right),
            ..
        }) = nodes.remove(at + 1)
        else {
            return false;
        };
        if let Body::Packed(left) = &mut nodes[at].body {
            let before = left.heap_bytes() + right.heap_bytes() + Shared::<PackedList>::HEAP_BYTES;
            left.append(right.view(), right.view().start());
            let after = left.heap_bytes();
            nodes[at].count = count;
            self.node_bytes = self.node_bytes - before + after;
        }
        true
    }

    fn insert_node(&mut self, at: usize, node: Node) {
        self.node_bytes += node.heap_bytes();
        self.many().insert(at, node);
    }
}

impl List {
    /// Tests only: an empty quicklist, which is what Redis before 7.2 starts with.
    #[cfg(test)]
    pub(super) fn quicklist() -> Self {
        List {
            encoding: ListEncoding::Quicklist,
            nodes: Nodes::One(PackedList::new()),
            len: 0,
            node_bytes: 0,
        }
    }
}
