//! A list: packed nodes in a chunked sequence.
//!
//! A list that Redis would call `listpack` is one node, whatever its size; one it would call `quicklist` is a sequence of
//! nodes that follow `list-max-listpack-size`. The nodes split, fill and merge by Redis's rules, because the name depends
//! on them: a quicklist becomes a listpack again when a removal leaves it one packed node of half the limit. A single
//! packed node can be kept elsewhere as its bytes ([`List::small`]), so that a short list needs no allocation of its own.
//!
//! The sequence is a ring of nodes of 32 bytes with their counts: both ends in constant time, an index by walking over
//! the counts from the nearer end.
//!
//! - `view.rs`: reading; `insert.rs`: insertion in the middle, with splits and merges; `remove.rs`: removal

mod insert;
mod remove;
mod view;

pub(crate) use insert::Side;
pub(crate) use view::{ListRef, NodeRef};

use super::packed::{Elem, PackedList};
use super::shared::Shared;
use super::{Slices, assert_send};
use std::collections::VecDeque;
use view::NodesRef;

/// What Redis adds to the size of an element when it estimates whether a node has room for it.
const ELEMENT_OVERHEAD: usize = 8;
/// The largest node when the limit is a number of elements.
const SAFE_BYTES: usize = 8192;
/// Bytes of a listpack without elements.
const EMPTY_LISTPACK: usize = 7;

/// What decides about nodes and names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ListLimits {
    /// `list-max-listpack-size`: -1 to -5 for 4 to 64 KiB a node, or the number of elements.
    pub(crate) fill: i32,
    /// Elements from this size on are nodes of their own (DEBUG QUICKLIST-PACKED-THRESHOLD).
    pub(crate) plain_bytes: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        ListLimits {
            fill: -2,
            plain_bytes: 1 << 30,
        }
    }
}

impl ListLimits {
    /// The largest size in listpack bytes and the largest number of elements; one of them is no limit.
    fn node_limits(self) -> (usize, usize) {
        match self.fill {
            0 => (usize::MAX, 1),
            1.. => (usize::MAX, self.fill as usize),
            ..0 => {
                let level = self.fill.unsigned_abs().min(5) - 1;
                (4096 << level, usize::MAX)
            }
        }
    }

    /// Whether a node of this size and count is too large.
    fn exceeded(self, bytes: usize, count: usize) -> bool {
        match self.node_limits() {
            (usize::MAX, most) => bytes > SAFE_BYTES || count > most,
            (most, _) => bytes > most,
        }
    }

    fn is_plain(self, element: &[u8]) -> bool {
        element.len() >= self.plain_bytes
    }
}

/// What OBJECT ENCODING shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListEncoding {
    Listpack,
    Quicklist,
}

impl ListEncoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ListEncoding::Listpack => "listpack",
            ListEncoding::Quicklist => "quicklist",
        }
    }
}

/// A list that owns its nodes.
#[derive(Debug)]
pub(crate) struct List {
    encoding: ListEncoding,
    nodes: Nodes,
    /// All elements.
    len: usize,
    /// What the nodes have on the heap.
    node_bytes: usize,
}

/// The nodes. None is empty, except the only one of a list that is empty.
#[derive(Clone, Debug)]
enum Nodes {
    One(PackedList),
    Many(VecDeque<Node>),
}

/// A node of several.
#[derive(Clone, Debug)]
struct Node {
    count: u32,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    /// Copies of the list share it.
    Packed(Shared<PackedList>),
    /// One large element.
    Plain(Box<[u8]>),
}

impl Node {
    fn packed(block: PackedList) -> Self {
        Node {
            count: block.len() as u32,
            body: Body::Packed(Shared::new(block)),
        }
    }

    fn of(element: &[u8], limits: ListLimits) -> Self {
        if limits.is_plain(element) {
            return Node {
                count: 1,
                body: Body::Plain(element.into()),
            };
        }
        let mut block = PackedList::new();
        block.push_back(Elem::parse(element));
        Node::packed(block)
    }

    fn heap_bytes(&self) -> usize {
        match &self.body {
            Body::Packed(block) => Shared::<PackedList>::HEAP_BYTES + block.heap_bytes(),
            Body::Plain(bytes) => bytes.len(),
        }
    }

    /// Whether there is room for another element.
    fn takes(&self, element: &[u8], limits: ListLimits) -> bool {
        match &self.body {
            Body::Packed(block) if !limits.is_plain(element) => {
                let bytes = block.view().listpack_bytes() + element.len() + ELEMENT_OVERHEAD;
                !limits.exceeded(bytes, self.count as usize + 1)
            }
            _ => false,
        }
    }
}

impl Clone for List {
    /// A copy shares the packed nodes of a list that has several.
    fn clone(&self) -> Self {
        let nodes = self.nodes.clone();
        List {
            encoding: self.encoding,
            len: self.len,
            node_bytes: match &nodes {
                Nodes::One(block) => block.heap_bytes(),
                Nodes::Many(nodes) => nodes.iter().map(Node::heap_bytes).sum(),
            },
            nodes,
        }
    }
}

impl Default for List {
    fn default() -> Self {
        Self::new()
    }
}

impl List {
    /// An empty list without an allocation.
    pub(crate) const fn new() -> Self {
        List {
            encoding: ListEncoding::Listpack,
            nodes: Nodes::One(PackedList::new()),
            len: 0,
            node_bytes: 0,
        }
    }

    /// Takes over the bytes that [`List::small`] gave out.
    pub(crate) fn from_small(encoding: ListEncoding, bytes: Vec<u8>) -> Self {
        let block = PackedList::from_bytes(bytes);
        List {
            encoding,
            len: block.len(),
            node_bytes: block.heap_bytes(),
            nodes: Nodes::One(block),
        }
    }

    /// The bytes of a list that is one packed node, to be kept elsewhere.
    pub(crate) fn small(&self) -> Option<(ListEncoding, &[u8])> {
        match &self.nodes {
            Nodes::One(block) => Some((self.encoding, block.view().bytes())),
            Nodes::Many(_) => None,
        }
    }

    /// The buffer of a list that is one packed node, for use by another.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        match self.nodes {
            Nodes::One(block) => Some(block.into_bytes()),
            Nodes::Many(_) => None,
        }
    }

    pub(crate) fn view(&self) -> ListRef<'_> {
        let nodes = match &self.nodes {
            Nodes::One(block) => NodesRef::One(block.view()),
            Nodes::Many(nodes) => NodesRef::Many(nodes),
        };
        ListRef::new(self.encoding, nodes, self.len)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What the list takes from the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.nodes {
            Nodes::One(_) => self.node_bytes,
            Nodes::Many(nodes) => self.node_bytes + nodes.capacity() * size_of::<Node>(),
        }
    }

    /// Gets ready for so many more elements with so many bytes in all: decides on the name. Commands that add elements
    /// call it first.
    pub(crate) fn prepare(&mut self, elements: usize, bytes: usize, limits: ListLimits) {
        if self.encoding == ListEncoding::Listpack
            && limits.exceeded(self.listpack_bytes() + bytes, self.len + elements)
        {
            self.encoding = ListEncoding::Quicklist;
        }
    }

    /// Looks whether a quicklist has become small enough to be a listpack again. Commands that remove or replace
    /// elements call it last, with `removed`; a list that was read from a file or payload, without.
    pub(crate) fn settle(&mut self, removed: bool, limits: ListLimits) {
        self.join_single();
        let Nodes::One(block) = &self.nodes else {
            return;
        };
        let bytes = block.view().listpack_bytes();
        match self.encoding {
            ListEncoding::Listpack if !removed => self.prepare(0, 0, limits),
            ListEncoding::Listpack => {}
            ListEncoding::Quicklist => {
                let (mut most_bytes, mut most) = limits.node_limits();
                if removed {
                    (most_bytes, most) = (most_bytes / 2, most / 2);
                }
                if bytes <= most_bytes && self.len <= most {
                    self.encoding = ListEncoding::Listpack;
                }
            }
        }
    }

    /// Adds an element at an end.
    pub(crate) fn push(&mut self, side: Side, element: &[u8], limits: ListLimits) {
        self.len += 1;
        if let Nodes::One(block) = &mut self.nodes {
            let free = match self.encoding {
                ListEncoding::Listpack => true,
                ListEncoding::Quicklist => {
                    let bytes = block.view().listpack_bytes() + element.len() + ELEMENT_OVERHEAD;
                    !limits.is_plain(element)
                        && (block.is_empty() || !limits.exceeded(bytes, block.len() + 1))
                }
            };
            if free {
                let before = block.heap_bytes();
                push_to(block, side, element);
                self.node_bytes = self.node_bytes - before + block.heap_bytes();
                return;
            }
        }
        let nodes = self.many();
        let end = match side {
            Side::Front => nodes.front_mut(),
            Side::Back => nodes.back_mut(),
        };
        match end {
            Some(node) if node.takes(element, limits) => {
                if let Body::Packed(block) = &mut node.body {
                    let before = block.heap_bytes();
                    push_to(block, side, element);
                    node.count += 1;
                    let after = block.heap_bytes();
                    self.node_bytes = self.node_bytes - before + after;
                }
            }
            full => {
                let mut saved = 0;
                if let Some(Node {
                    body: Body::Packed(block),
                    ..
                }) = full
                {
                    saved = block.heap_bytes();
                    block.shrink();
                    saved -= block.heap_bytes();
                }
                let node = Node::of(element, limits);
                let bytes = node.heap_bytes();
                match side {
                    Side::Front => nodes.push_front(node),
                    Side::Back => nodes.push_back(node),
                }
                self.node_bytes = self.node_bytes + bytes - saved;
            }
        }
    }

    /// Adds a node that was serialised at the end.
    pub(crate) fn push_node(&mut self, block: PackedList) {
        if block.is_empty() {
            return;
        }
        self.encoding = ListEncoding::Quicklist;
        self.len += block.len();
        self.node_bytes += block.heap_bytes();
        match &mut self.nodes {
            Nodes::One(only) if only.is_empty() => {
                self.node_bytes -= only.heap_bytes();
                *only = block;
            }
            _ => {
                self.node_bytes += Shared::<PackedList>::HEAP_BYTES;
                self.many().push_back(Node::packed(block));
            }
        }
    }

    /// Adds an element that was serialised as a node of its own.
    pub(crate) fn push_plain_node(&mut self, element: &[u8]) {
        self.encoding = ListEncoding::Quicklist;
        self.len += 1;
        self.node_bytes += element.len();
        self.many().push_back(Node {
            count: 1,
            body: Body::Plain(element.into()),
        });
    }

    /// The nodes as a sequence.
    fn many(&mut self) -> &mut VecDeque<Node> {
        if let Nodes::One(block) = &mut self.nodes {
            let block = std::mem::take(block);
            let mut nodes = VecDeque::new();
            if !block.is_empty() {
                self.node_bytes += Shared::<PackedList>::HEAP_BYTES;
                nodes.push_back(Node::packed(block));
            } else {
                self.node_bytes -= block.heap_bytes();
            }
            self.nodes = Nodes::Many(nodes);
        }
        match &mut self.nodes {
            Nodes::Many(nodes) => nodes,
            Nodes::One(_) => unreachable!("it was made a sequence above"),
        }
    }

    /// Makes a sequence of one packed node, or of none, a single node again.
    fn join_single(&mut self) {
        if let Nodes::Many(nodes) = &mut self.nodes {
            match nodes.pop_back() {
                None => self.nodes = Nodes::One(PackedList::new()),
                Some(Node {
                    body: Body::Packed(block),
                    ..
                }) if nodes.is_empty() => {
                    self.node_bytes -= Shared::<PackedList>::HEAP_BYTES;
                    self.nodes = Nodes::One(block.into_inner());
                }
                Some(node) => nodes.push_back(node),
            }
        }
    }

    fn nodes_len(&self) -> usize {
        match &self.nodes {
            Nodes::One(_) => 1,
            Nodes::Many(nodes) => nodes.len(),
        }
    }

    fn node_count(&self, at: usize) -> usize {
        match &self.nodes {
            Nodes::One(block) => block.len(),
            Nodes::Many(nodes) => nodes.get(at).map_or(0, |node| node.count as usize),
        }
    }

    /// The listpack bytes of a list that is one packed node.
    fn listpack_bytes(&self) -> usize {
        match &self.nodes {
            Nodes::One(block) => block.view().listpack_bytes(),
            Nodes::Many(_) => EMPTY_LISTPACK,
        }
    }
}

fn push_to(block: &mut PackedList, side: Side, element: &[u8]) {
    let elem = Elem::parse(element);
    match side {
        Side::Front => block.push_front(elem),
        Side::Back => block.push_back(elem),
    }
}

impl Slices for List {
    fn pieces(&self) -> usize {
        self.nodes_len()
    }

    fn drop_piece(&mut self) -> bool {
        match &mut self.nodes {
            Nodes::One(block) => {
                *block = PackedList::new();
                false
            }
            Nodes::Many(nodes) => {
                nodes.pop_back();
                !nodes.is_empty()
            }
        }
    }
}

const _: () = assert_send::<List>();

#[cfg(test)]
mod tests;
