//! A list: packed nodes in a chunked sequence.
//!
//! A list that Redis would call `listpack` is one node, whatever its size; one it would call `quicklist` is a sequence of
//! nodes that follow `list-max-listpack-size`. The nodes split, fill and merge by Redis's rules, because the name depends
//! on them: a quicklist becomes a listpack again when a removal leaves it one packed node of half the limit. As in Redis, a
//! quicklist splits and merges its nodes by the limit it was created with, and CONFIG SET does not change that one. A single
//! packed node can be kept elsewhere as its bytes ([`List::small`]), so that a short list needs no allocation of its own.
//!
//! The sequence is a ring of nodes of 16 bytes with their counts: both ends in constant time, an index by walking over
//! the counts from the nearer end. A node has its free room in front if elements were added or removed there
//! (`packed/gapped.rs`), so that neither end of a long list moves the bytes of a node.
//!
//! - `view.rs`: reading; `insert.rs`: insertion in the middle, with splits and merges; `remove.rs`: removal; `form.rs`: what
//!   a small list is besides its bytes

mod form;
mod insert;
mod remove;
mod view;

pub(crate) use insert::Side;
pub(crate) use view::{ListRef, NodeRef};

use super::packed::{Elem, GappedList, PackedList};
use super::shared::Shared;
use super::{Slices, assert_send};
use crate::base::size_class::block_bytes;
use std::collections::VecDeque;
use view::NodesRef;

/// `list-max-listpack-size` unless it is configured.
const DEFAULT_FILL: i32 = -2;
/// What Redis adds to the size of an element when it estimates whether a node has room for it.
const ELEMENT_OVERHEAD: usize = 8;
/// The largest node when the limit is a number of elements.
const SAFE_BYTES: usize = 8192;
/// What a packed node takes from the heap besides its elements.
const NODE_BYTES: usize = Shared::<GappedList>::HEAP_BYTES;
/// What a node of one element takes from the heap besides that element.
const ELEMENT_NODE_BYTES: usize = Shared::<Box<[u8]>>::HEAP_BYTES;
/// Bytes of a listpack without elements.
const EMPTY_LISTPACK: usize = 7;
/// From this many nodes on, a new one at an end gets all its room at once: that is a small part of the list then, and saves
/// the moves of a node that grows step by step.
const LONG_LIST: usize = 16;
/// How long the only element of a packed node is when it may be kept without its frame.
const LONE_BYTES: std::ops::RangeInclusive<usize> = 1024..=16 * 1024;

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
            fill: DEFAULT_FILL,
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

    /// What a quicklist keeps of its limit. Redis has 16 bits for it, and no limit below -5.
    fn kept_fill(self) -> i32 {
        self.fill.clamp(-5, i32::from(i16::MAX))
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
#[derive(Clone, Debug)]
pub(crate) struct List {
    encoding: ListEncoding,
    /// Of a quicklist: [`ListLimits::fill`] when it was created. Of a listpack: any number.
    fill: i32,
    nodes: Nodes,
}

#[derive(Clone, Debug)]
enum Nodes {
    /// One packed node.
    One(PackedList),
    /// In a box, so that the list itself is small: most lists have one node.
    Many(Box<Many>),
}

/// A sequence of nodes. None is empty.
#[derive(Debug, Default)]
struct Many {
    nodes: VecDeque<Node>,
    /// All elements.
    len: usize,
    /// What the nodes have on the heap.
    node_bytes: usize,
}

impl Clone for Many {
    /// A copy shares the packed nodes.
    fn clone(&self) -> Self {
        let nodes = self.nodes.clone();
        Many {
            len: self.len,
            node_bytes: nodes.iter().map(Node::heap_bytes).sum(),
            nodes,
        }
    }
}

/// A node of several.
#[derive(Clone, Debug)]
enum Node {
    /// Copies of the list share the block. The number of its elements is here too, so that a walk over the nodes does not
    /// read the blocks.
    Packed {
        count: u32,
        block: Shared<GappedList>,
    },
    /// The only element of a packed node, where the frame around it would take a larger block from the allocator: 4,096
    /// bytes and 11 more are 5,120. It is packed before it changes. Shared like the others, or a snapshot of a list of such
    /// nodes would copy all of it at once; in a block of its own, because the count would take the larger block too.
    Lone(Shared<Box<[u8]>>),
    /// One large element.
    Plain(Shared<Box<[u8]>>),
}

const _: () = assert!(size_of::<Node>() == 16);
// The limit lies where there would be padding.
const _: () = assert!(size_of::<List>() == size_of::<Nodes>() + 8);

/// The listpack bytes of a packed node with one element.
pub(crate) fn lone_listpack_bytes(element: &[u8]) -> usize {
    EMPTY_LISTPACK + Elem::Bytes(element).listpack_bytes()
}

impl Node {
    fn packed(block: PackedList) -> Self {
        let view = block.view();
        if view.len() == 1
            && let Some(Elem::Bytes(element)) = view.at(view.start())
            && LONE_BYTES.contains(&element.len())
            && block_bytes(element.len()) < block_bytes(view.bytes().len())
        {
            return Node::Lone(Shared::new(element.into()));
        }
        Node::Packed {
            count: block.len() as u32,
            block: Shared::new(GappedList::new(block)),
        }
    }

    /// Its elements.
    #[inline]
    fn count(&self) -> usize {
        match self {
            Node::Packed { count, .. } => *count as usize,
            Node::Lone(_) | Node::Plain(_) => 1,
        }
    }

    fn view(&self) -> NodeRef<'_> {
        match self {
            Node::Packed { block, .. } => NodeRef::Packed(block.view()),
            Node::Lone(bytes) => NodeRef::Lone(bytes),
            Node::Plain(bytes) => NodeRef::Plain(bytes),
        }
    }

    /// The block of a packed node and the number of its elements, to change them. None if the node is a plain one.
    #[inline]
    fn packed_mut(&mut self) -> Option<(&mut u32, &mut GappedList)> {
        if let Node::Lone(element) = self {
            *self = Node::framed(element);
        }
        match self {
            Node::Packed { count, block } => Some((count, &mut **block)),
            Node::Lone(_) | Node::Plain(_) => None,
        }
    }

    /// A packed node of one element with its frame.
    #[cold]
    fn framed(element: &[u8]) -> Self {
        let mut block = PackedList::new();
        block.push_back(Elem::Bytes(element));
        Node::Packed {
            count: 1,
            block: Shared::new(GappedList::new(block)),
        }
    }

    /// The listpack bytes of a packed node. None if the node is a plain one.
    #[inline]
    fn listpack_bytes(&self) -> Option<usize> {
        match self {
            Node::Packed { block, .. } => Some(block.view().listpack_bytes()),
            Node::Lone(element) => Some(lone_listpack_bytes(element)),
            Node::Plain(_) => None,
        }
    }

    fn plain(element: &[u8]) -> Self {
        Node::Plain(Shared::new(element.into()))
    }

    fn of(element: &[u8], limits: ListLimits) -> Self {
        if limits.is_plain(element) {
            return Node::plain(element);
        }
        let mut block = PackedList::new();
        block.push_back(Elem::parse(element));
        Node::packed(block)
    }

    /// Makes room for as many bytes as the limit lets a packed node have, unless few elements like the first fill it.
    fn reserve(&mut self, limits: ListLimits) {
        if let (Node::Packed { block, .. }, (bytes, usize::MAX)) = (self, limits.node_limits())
            && block.view().listpack_bytes() <= bytes / 4
        {
            block.closed().reserve(bytes);
        }
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        match self {
            Node::Packed { block, .. } => NODE_BYTES + block.heap_bytes(),
            Node::Lone(bytes) => ELEMENT_NODE_BYTES + block_bytes(bytes.len()),
            Node::Plain(bytes) => ELEMENT_NODE_BYTES + bytes.len(),
        }
    }

    /// Whether there is room for another element.
    fn takes(&self, element: &[u8], limits: ListLimits) -> bool {
        match self.listpack_bytes() {
            Some(bytes) if !limits.is_plain(element) => {
                let bytes = bytes + element.len() + ELEMENT_OVERHEAD;
                !limits.exceeded(bytes, self.count() + 1)
            }
            _ => false,
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
            fill: DEFAULT_FILL,
            nodes: Nodes::One(PackedList::new()),
        }
    }

    /// Takes over the form and the bytes that [`List::small`] gave out.
    pub(crate) fn from_small(form: u8, bytes: Vec<u8>) -> Self {
        let (encoding, fill) = form::read(form);
        List {
            encoding,
            fill,
            nodes: Nodes::One(PackedList::from_bytes(bytes)),
        }
    }

    /// The form, which is less than 8, and the bytes of a list that is one packed node, to be kept elsewhere. `None` for
    /// several nodes, and for a quicklist whose limit has no form.
    pub(crate) fn small(&self) -> Option<(u8, &[u8])> {
        match &self.nodes {
            Nodes::One(block) => {
                let form = form::of(self.encoding, self.fill)?;
                Some((form, block.view().bytes()))
            }
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
            Nodes::Many(many) => NodesRef::Many(&many.nodes),
        };
        ListRef::new(self.encoding, self.fill, nodes, self.len())
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match &self.nodes {
            Nodes::One(block) => block.len(),
            Nodes::Many(many) => many.len,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the list takes from the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.nodes {
            Nodes::One(block) => block.heap_bytes(),
            Nodes::Many(many) => {
                let ring = many.nodes.capacity() * size_of::<Node>();
                size_of::<Many>() + ring + many.node_bytes
            }
        }
    }

    /// Gets ready for so many more elements with so many bytes in all: decides on the name. Commands that add elements
    /// call it first.
    pub(crate) fn prepare(&mut self, elements: usize, bytes: usize, limits: ListLimits) {
        if self.encoding == ListEncoding::Listpack
            && limits.exceeded(self.listpack_bytes() + bytes, self.len() + elements)
        {
            self.become_quicklist(limits);
        }
    }

    /// Makes a listpack a quicklist, whose nodes follow these limits from now on.
    fn become_quicklist(&mut self, limits: ListLimits) {
        if self.encoding == ListEncoding::Quicklist {
            return;
        }
        self.encoding = ListEncoding::Quicklist;
        self.fill = limits.kept_fill();
        // A list without a small form keeps its buffer. That may be a scratch buffer, much longer than the list.
        if let Nodes::One(block) = &mut self.nodes
            && form::of(self.encoding, self.fill).is_none()
        {
            block.shrink();
        }
    }

    /// The limits by which the nodes of a quicklist are split and merged.
    #[inline]
    fn own_limits(&self, limits: ListLimits) -> ListLimits {
        ListLimits {
            fill: self.fill,
            ..limits
        }
    }

    /// Looks whether a quicklist has become small enough to be a listpack again. Commands that remove or replace
    /// elements call it last, with `removed`; a list that was read from a file or payload, without. The latter is one that
    /// was created with these limits.
    pub(crate) fn settle(&mut self, removed: bool, limits: ListLimits) {
        if !removed {
            self.fill = limits.kept_fill();
        }
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
                if bytes <= most_bytes && block.len() <= most {
                    self.encoding = ListEncoding::Listpack;
                }
            }
        }
    }

    /// Adds an element at an end.
    pub(crate) fn push(&mut self, side: Side, element: &[u8], limits: ListLimits) {
        let limits = self.own_limits(limits);
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
                let elem = Elem::parse(element);
                return match side {
                    Side::Front => block.push_front(elem),
                    Side::Back => block.push_back(elem),
                };
            }
        }
        self.many().push(side, element, limits);
    }

    /// Adds a node that was serialised at the end. [`List::settle`] follows behind the last one.
    pub(crate) fn push_node(&mut self, block: PackedList) {
        if block.is_empty() {
            return;
        }
        self.encoding = ListEncoding::Quicklist;
        match &mut self.nodes {
            Nodes::One(only) if only.is_empty() => *only = block,
            _ => self.many().add(Side::Back, Node::packed(block)),
        }
    }

    /// Adds an element that was serialised as a node of its own.
    pub(crate) fn push_plain_node(&mut self, element: &[u8]) {
        self.encoding = ListEncoding::Quicklist;
        self.many().add(Side::Back, Node::plain(element));
    }

    /// The nodes as a sequence.
    fn many(&mut self) -> &mut Many {
        if let Nodes::One(block) = &mut self.nodes {
            let mut block = std::mem::take(block);
            let mut many = Many::default();
            if !block.is_empty() {
                // It may be a scratch buffer, much longer than the list.
                block.shrink();
                // Most sequences begin with a second node.
                many.nodes.reserve_exact(2);
                many.add(Side::Back, Node::packed(block));
            }
            self.nodes = Nodes::Many(Box::new(many));
        }
        match &mut self.nodes {
            Nodes::Many(many) => many,
            Nodes::One(_) => unreachable!("it was made a sequence above"),
        }
    }

    /// Makes a sequence of one packed node, or of none, a single node again.
    fn join_single(&mut self) {
        if let Nodes::Many(many) = &mut self.nodes {
            match many.nodes.pop_back() {
                None => self.nodes = Nodes::One(PackedList::new()),
                Some(Node::Packed { block, .. }) if many.nodes.is_empty() => {
                    self.nodes = Nodes::One(block.into_inner().into_block());
                }
                Some(Node::Lone(element)) if many.nodes.is_empty() => {
                    let mut block = PackedList::new();
                    block.push_back(Elem::Bytes(&element));
                    self.nodes = Nodes::One(block);
                }
                Some(node) => many.nodes.push_back(node),
            }
        }
    }

    fn nodes_len(&self) -> usize {
        match &self.nodes {
            Nodes::One(_) => 1,
            Nodes::Many(many) => many.nodes.len(),
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

impl Many {
    fn push(&mut self, side: Side, element: &[u8], limits: ListLimits) {
        let end = match side {
            Side::Front => self.nodes.front_mut(),
            Side::Back => self.nodes.back_mut(),
        };
        let Some(node) = end else {
            return self.add(side, Node::of(element, limits));
        };
        let takes = node.takes(element, limits);
        let before = node.heap_bytes();
        // A lone element stays as it is beside another node.
        let packed = match takes || !matches!(node, Node::Lone(_)) {
            true => node.packed_mut(),
            false => None,
        };
        let Some((count, block)) = packed else {
            return self.add(side, Node::of(element, limits));
        };
        match side {
            // A node that is full is rarely changed again.
            _ if !takes => block.closed().shrink(),
            Side::Front => block.push_front(Elem::parse(element)),
            Side::Back => block.closed().push_back(Elem::parse(element)),
        }
        let after = NODE_BYTES + block.heap_bytes();
        self.node_bytes = self.node_bytes - before + after;
        if takes {
            *count += 1;
            self.len += 1;
        } else {
            let mut node = Node::of(element, limits);
            if self.nodes.len() >= LONG_LIST {
                node.reserve(limits);
            }
            self.add(side, node);
        }
    }

    /// Adds a node at an end.
    fn add(&mut self, side: Side, node: Node) {
        match side {
            Side::Front => self.insert(0, node),
            Side::Back => self.insert(self.nodes.len(), node),
        }
    }

    fn insert(&mut self, at: usize, node: Node) {
        self.len += node.count();
        self.node_bytes += node.heap_bytes();
        self.nodes.insert(at, node);
    }

    fn remove(&mut self, at: usize) -> Option<Node> {
        let node = self.nodes.remove(at)?;
        self.len -= node.count();
        self.node_bytes -= node.heap_bytes();
        self.shrink();
        Some(node)
    }

    /// A ring that once was long and is short now gives its room back.
    fn shrink(&mut self) {
        if self.nodes.capacity() > 64 && self.nodes.len() * 4 < self.nodes.capacity() {
            self.nodes.shrink_to(self.nodes.len() * 2);
        }
    }

    /// Changes a packed node, and keeps the sums. `None`, and nothing happens, if the node is a plain one.
    fn edit<R>(&mut self, at: usize, change: impl FnOnce(&mut GappedList) -> R) -> Option<R> {
        let node = self.nodes.get_mut(at)?;
        let before = node.heap_bytes();
        let (count, block) = node.packed_mut()?;
        let result = change(block);
        let now = block.view().len();
        let after = NODE_BYTES + block.heap_bytes();
        self.node_bytes = self.node_bytes - before + after;
        self.len = self.len - *count as usize + now;
        *count = now as u32;
        Some(result)
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
            Nodes::Many(many) => {
                many.nodes.pop_back();
                !many.nodes.is_empty()
            }
        }
    }
}

const _: () = assert_send::<List>();

#[cfg(test)]
mod tests;
