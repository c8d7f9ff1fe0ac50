//! Insertion and replacement in the middle of a list.
//!
//! A full node is split where the element goes, and neighbours that fit into one node are merged afterwards: Redis's
//! rules, step by step, because OBJECT ENCODING depends on how many nodes are left.

use super::{List, ListEncoding, ListLimits, Many, Node, NodeRef, Nodes};
use crate::types::packed::{Elem, PackedList, PackedListView};
use crate::types::shared::Shared;

/// Bytes that two listpacks lose when they become one.
const MERGED_BYTES: usize = 7;

/// The largest listpack: its size is written in 32 bits. Lower in tests, which need no gigabytes then.
pub(super) const MAX_NODE_BYTES: usize = if cfg!(test) {
    1 << 20
} else {
    u32::MAX as usize
};

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
        if index >= self.len() {
            return false;
        }
        let (at, offset) = self.view().locate(index);
        let place = side.place(offset);
        match &mut self.nodes {
            Nodes::One(block) if self.encoding == ListEncoding::Listpack => {
                if let Some(pos) = block.view().seek(place) {
                    block.insert(pos, Elem::parse(element));
                }
            }
            _ => self.insert_into_nodes(at, offset, side, element, limits),
        }
        true
    }

    /// Replaces the element with this index. `false` if there is no such index.
    pub(crate) fn set(&mut self, index: usize, element: &[u8], limits: ListLimits) -> bool {
        if index >= self.len() {
            return false;
        }
        let (at, offset) = self.view().locate(index);
        let replace = |block: &mut PackedList| {
            if let Some(pos) = block.view().seek(offset) {
                block.replace(pos, Elem::parse(element));
            }
        };
        let plain = limits.is_plain(element);
        if !plain && self.overflows(at, offset, element) {
            self.become_quicklist(limits);
            let limits = self.own_limits(limits);
            self.many().replace_by_node(at, offset, element, limits);
            return true;
        }
        let replaced = match &mut self.nodes {
            Nodes::One(block) if !plain || self.encoding == ListEncoding::Listpack => {
                replace(block);
                true
            }
            Nodes::One(_) => false,
            Nodes::Many(many) if plain => many.replace_plain(at, element),
            Nodes::Many(many) => many.edit(at, |block| replace(block.closed())).is_some(),
        };
        if !replaced {
            // A plain element takes the place of a packed one, or the other way round.
            self.insert_into_nodes(at, offset, Side::Back, element, limits);
            self.remove_range(index, 1);
        }
        true
    }

    /// Whether a node would be larger than a listpack can be with another element in the place of one of its own.
    fn overflows(&self, at: usize, offset: usize, element: &[u8]) -> bool {
        let overflows = |node: PackedListView<'_>| {
            let bytes = node.listpack_bytes() + Elem::parse(element).listpack_bytes();
            let replaced = || node.get(offset).map_or(0, Elem::listpack_bytes);
            bytes > MAX_NODE_BYTES && bytes - replaced() > MAX_NODE_BYTES
        };
        match &self.nodes {
            Nodes::One(block) => overflows(block.view()),
            Nodes::Many(many) => match many.nodes.get(at).map(Node::view) {
                Some(NodeRef::Packed(view)) => overflows(view),
                _ => false,
            },
        }
    }

    fn insert_into_nodes(
        &mut self,
        at: usize,
        offset: usize,
        side: Side,
        element: &[u8],
        limits: ListLimits,
    ) {
        let limits = self.own_limits(limits);
        let many = self.many();
        let count = many.nodes[at].count();
        let at_edge = match side {
            Side::Front => offset == 0,
            Side::Back => offset + 1 == count,
        };
        if many.nodes[at].takes(element, limits) {
            many.insert_packed(at, side.place(offset), element);
            return;
        }
        if !at_edge {
            many.split_and_insert(at, offset, side, element, limits);
            return;
        }
        // At an edge, the neighbour takes the element if it has room, or it becomes a node of its own.
        let neighbour = match side {
            Side::Front => at.checked_sub(1),
            Side::Back => Some(at + 1),
        };
        let neighbour = neighbour.filter(|&neighbour| {
            let node = many.nodes.get(neighbour);
            node.is_some_and(|node| node.takes(element, limits))
        });
        match (neighbour, side) {
            (Some(before), Side::Front) => {
                let count = many.nodes[before].count();
                many.insert_packed(before, count, element);
            }
            (Some(behind), Side::Back) => many.insert_packed(behind, 0, element),
            (None, _) => many.insert(side.place(at), Node::of(element, limits)),
        }
    }
}

impl Side {
    /// The index of an element that is put on this side of the one with an index.
    fn place(self, index: usize) -> usize {
        match self {
            Side::Front => index,
            Side::Back => index + 1,
        }
    }
}

impl Many {
    /// Inserts into a packed node.
    fn insert_packed(&mut self, at: usize, offset: usize, element: &[u8]) {
        self.edit(at, |block| {
            let block = block.closed();
            if let Some(pos) = block.view().seek(offset) {
                block.insert(pos, Elem::parse(element));
            }
        });
    }

    /// Replaces the element of a plain node; `false` if the node is a packed one.
    fn replace_plain(&mut self, at: usize, element: &[u8]) -> bool {
        let Some(Node::Plain(bytes)) = self.nodes.get_mut(at) else {
            return false;
        };
        self.node_bytes = self.node_bytes - bytes.len() + element.len();
        *bytes = Shared::new(element.into());
        true
    }

    /// Replaces an element of a packed node that has no room for the new one: that becomes a node between the parts.
    fn replace_by_node(&mut self, at: usize, offset: usize, element: &[u8], limits: ListLimits) {
        let rest = self.edit(at, |block| {
            let block = block.closed();
            let behind = block.view().seek(offset + 1)?;
            let rest = block.split_off(behind);
            let replaced = block.view().seek(offset)?;
            block.remove(replaced);
            Some(rest)
        });
        let Some(rest) = rest.flatten() else {
            return;
        };
        let emptied = offset == 0;
        if emptied {
            self.remove(at);
        }
        let place = if emptied { at } else { at + 1 };
        self.insert(place, Node::of(element, limits));
        if !rest.is_empty() {
            self.insert(place + 1, Node::packed(rest));
        }
        if !emptied {
            self.merge_around(place, limits);
        }
    }

    /// Splits a full node where the element goes. The element joins the part that is split off, and what fits together
    /// afterwards is merged. A plain element, and one that the part has no room for, becomes a node between the parts.
    fn split_and_insert(
        &mut self,
        at: usize,
        offset: usize,
        side: Side,
        element: &[u8],
        limits: ListLimits,
    ) {
        let plain = limits.is_plain(element);
        let elem = Elem::parse(element);
        let split = self.edit(at, |block| {
            let block = block.closed();
            let pos = block.view().seek(side.place(offset))?;
            let mut rest = block.split_off(pos);
            let part = match side {
                Side::Front => block.view(),
                Side::Back => rest.view(),
            };
            let joins = !plain && part.listpack_bytes() + elem.listpack_bytes() <= MAX_NODE_BYTES;
            // Redis keeps the half with the element's neighbour in place and merges around that one.
            match side {
                _ if !joins => {}
                Side::Front => block.push_back(elem),
                Side::Back => rest.push_front(elem),
            }
            Some((rest, joins))
        });
        let Some((rest, joins)) = split.flatten() else {
            return;
        };
        self.insert(at + 1, Node::packed(rest));
        if !joins {
            return self.insert(at + 1, Node::of(element, limits));
        }
        let center = match side {
            Side::Front => at + 1,
            Side::Back => at,
        };
        self.merge_around(center, limits);
    }

    /// Merges neighbours: the two before a node, the two behind it, then the node with what is beside it.
    fn merge_around(&mut self, center: usize, limits: ListLimits) {
        let mut center = center;
        if center >= 2 && self.merge(center - 2, limits) {
            center -= 1;
        }
        if center + 2 < self.nodes.len() {
            self.merge(center + 1, limits);
        }
        if center >= 1 && self.merge(center - 1, limits) {
            center -= 1;
        }
        self.merge(center, limits);
    }

    /// Merges a node with the one behind it, if both are packed and fit into one.
    fn merge(&mut self, at: usize, limits: ListLimits) -> bool {
        let (Some(left), Some(right)) = (self.nodes.get(at), self.nodes.get(at + 1)) else {
            return false;
        };
        let (Some(one), Some(other)) = (left.listpack_bytes(), right.listpack_bytes()) else {
            return false;
        };
        let bytes = one + other - MERGED_BYTES;
        if limits.exceeded(bytes, left.count() + right.count()) {
            return false;
        }
        if let Some(mut right) = self.remove(at + 1)
            && let Some((_, right)) = right.packed_mut()
        {
            let right = right.view();
            self.edit(at, |left| left.closed().append(right, right.start()));
        }
        true
    }
}

impl List {
    /// Tests only: an empty quicklist, which is what Redis before 7.2 starts with.
    #[cfg(test)]
    pub(super) fn quicklist(limits: ListLimits) -> Self {
        List {
            encoding: ListEncoding::Quicklist,
            fill: limits.kept_fill(),
            nodes: Nodes::One(PackedList::new()),
        }
    }
}
