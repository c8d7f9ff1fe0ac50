//! Reading a list, wherever its nodes are kept.

use super::{ListEncoding, Node, form};
use crate::types::packed::{Elem, PackedListView, Pos};
use std::collections::VecDeque;

/// A look at a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListRef<'a> {
    encoding: ListEncoding,
    fill: i32,
    nodes: NodesRef<'a>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum NodesRef<'a> {
    One(PackedListView<'a>),
    Many(&'a VecDeque<Node>),
}

/// A look at a node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeRef<'a> {
    Packed(PackedListView<'a>),
    /// The only element of a packed node.
    Lone(&'a [u8]),
    /// One element that is not packed.
    Plain(&'a [u8]),
}

impl<'a> ListRef<'a> {
    /// Looks at a list that is kept elsewhere as [`super::List::small`] gave it out.
    #[inline]
    pub(crate) fn from_small(form: u8, bytes: &'a [u8]) -> Self {
        let (encoding, fill) = form::read(form);
        let view = PackedListView::new(bytes);
        Self::new(encoding, fill, NodesRef::One(view), view.len())
    }

    pub(super) fn new(encoding: ListEncoding, fill: i32, nodes: NodesRef<'a>, len: usize) -> Self {
        ListRef {
            encoding,
            fill,
            nodes,
            len,
        }
    }

    pub(crate) fn encoding(self) -> ListEncoding {
        self.encoding
    }

    /// Of a quicklist: `list-max-listpack-size` when it was created, by which its nodes are split.
    pub(crate) fn fill(self) -> i32 {
        self.fill
    }

    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// The element with this index.
    pub(crate) fn get(self, index: usize) -> Option<Elem<'a>> {
        self.iter_from(index).next()
    }

    pub(crate) fn first(self) -> Option<Elem<'a>> {
        self.iter().next()
    }

    pub(crate) fn last(self) -> Option<Elem<'a>> {
        self.iter_back().next()
    }

    /// The index of the first element that equals this one.
    pub(crate) fn position(self, element: &[u8]) -> Option<usize> {
        let wanted = Elem::parse(element);
        self.iter().position(|elem| elem == wanted)
    }

    /// All elements from the front.
    pub(crate) fn iter(self) -> Iter<'a> {
        self.iter_at(0, 0)
    }

    /// The elements from an index on.
    pub(crate) fn iter_from(self, index: usize) -> Iter<'a> {
        let (node, offset) = self.locate(index);
        self.iter_at(node, offset)
    }

    /// All elements from the back.
    pub(crate) fn iter_back(self) -> IterBack<'a> {
        IterBack {
            list: self,
            before: self.node_count(),
            place: None,
        }
    }

    /// How many nodes there are.
    pub(crate) fn node_count(self) -> usize {
        match self.nodes {
            NodesRef::One(_) => 1,
            NodesRef::Many(nodes) => nodes.len(),
        }
    }

    /// The node with this index.
    pub(crate) fn node(self, at: usize) -> Option<NodeRef<'a>> {
        match self.nodes {
            NodesRef::One(view) => (at == 0).then_some(NodeRef::Packed(view)),
            NodesRef::Many(nodes) => nodes.get(at).map(Node::view),
        }
    }

    /// The node an index is in, and its offset there; the place behind the last element for any index behind it.
    pub(super) fn locate(self, index: usize) -> (usize, usize) {
        let NodesRef::Many(nodes) = self.nodes else {
            return (0, index.min(self.len));
        };
        if index >= self.len {
            return (nodes.len(), 0);
        }
        if index <= self.len / 2 {
            let mut before = 0;
            for (at, node) in nodes.iter().enumerate() {
                let count = node.count();
                if index < before + count {
                    return (at, index - before);
                }
                before += count;
            }
        } else {
            let mut behind = self.len;
            for (at, node) in nodes.iter().enumerate().rev() {
                behind -= node.count();
                if index >= behind {
                    return (at, index - behind);
                }
            }
        }
        (nodes.len(), 0)
    }

    fn iter_at(self, node: usize, offset: usize) -> Iter<'a> {
        Iter {
            list: self,
            after: node + 1,
            place: self.node(node).map(|node| match node {
                NodeRef::Packed(view) => {
                    Place::Packed(view, view.seek(offset).unwrap_or(view.end()))
                }
                NodeRef::Lone(bytes) | NodeRef::Plain(bytes) => Place::Plain(bytes),
            }),
        }
    }
}

/// Where an iterator stands in a node.
#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    Packed(PackedListView<'a>, Pos),
    /// At an element that is a node of its own.
    Plain(&'a [u8]),
}

/// The elements from a place on.
#[derive(Clone, Debug)]
pub(crate) struct Iter<'a> {
    list: ListRef<'a>,
    /// The node to go on with.
    after: usize,
    place: Option<Place<'a>>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Elem<'a>;

    #[inline]
    fn next(&mut self) -> Option<Elem<'a>> {
        loop {
            match self.place.take() {
                Some(Place::Packed(view, pos)) => {
                    if let Some(next) = view.next(pos) {
                        self.place = Some(Place::Packed(view, next));
                        return view.at(pos);
                    }
                }
                Some(Place::Plain(bytes)) => return Some(Elem::parse(bytes)),
                None => {}
            }
            self.place = Some(match self.list.node(self.after)? {
                NodeRef::Packed(view) => Place::Packed(view, view.start()),
                NodeRef::Lone(bytes) | NodeRef::Plain(bytes) => Place::Plain(bytes),
            });
            self.after += 1;
        }
    }
}

/// The elements from a place on towards the front.
#[derive(Clone, Debug)]
pub(crate) struct IterBack<'a> {
    list: ListRef<'a>,
    /// The nodes before this one are to come.
    before: usize,
    place: Option<Place<'a>>,
}

impl<'a> Iterator for IterBack<'a> {
    type Item = Elem<'a>;

    #[inline]
    fn next(&mut self) -> Option<Elem<'a>> {
        loop {
            match self.place.take() {
                Some(Place::Packed(view, pos)) => {
                    if let Some(previous) = view.prev(pos) {
                        self.place = Some(Place::Packed(view, previous));
                        return view.at(previous);
                    }
                }
                Some(Place::Plain(bytes)) => return Some(Elem::parse(bytes)),
                None => {}
            }
            self.before = self.before.checked_sub(1)?;
            self.place = Some(match self.list.node(self.before)? {
                NodeRef::Packed(view) => Place::Packed(view, view.end()),
                NodeRef::Lone(bytes) | NodeRef::Plain(bytes) => Place::Plain(bytes),
            });
        }
    }
}
