//! One node of a stream: a packed block.
//!
//! ```text
//! master entry:  live | deleted | saved | field count | fields ..
//! entry:         head | ms? | seq? | (field count | (field | value) ..) | elements before this one
//! entry with the master's fields:  head | ms? | seq? | values .. | elements before this one
//!
//! head:  (ms << 4) | 8 if ms is an element | 4 if seq is an element | 2 if the fields are the master's | 1 if deleted
//! ```
//!
//! `ms` and `seq` are those of the entry's id less those of the node's. Redis's node has elements of their own for both
//! and for the flags (`serialised.rs`), which takes three to four bytes more per entry. Limits are in the bytes of Redis's
//! node; `saved` is what they are more than the bytes here, `saved` itself left out. The last element of an entry
//! lets a reader walk backwards. Nodes from outside are Redis's; `serialised.rs` checks them and builds these.

use super::nodes::{Nodes, Range};
use super::{MAX_NODE_BYTES, NodeLimits, StreamId};
use crate::types::packed::{Elem, PackedList, PackedListView, int_bytes};

pub(super) const DELETED: i64 = 1;
pub(super) const SAME_FIELDS: i64 = 2;
const HAS_SEQ: i64 = 4;
const HAS_MS: i64 = 8;
const MS_SHIFT: u32 = 4;
/// A larger `ms` is an element of its own: it takes less.
const MAX_FOLDED_MS: i64 = 1 << 27;
/// Elements of Redis's entry besides its fields and values: flags and the two parts of its id.
pub(super) const REDIS_HEAD: usize = 3;
/// The zero that ends the master entry of Redis's node.
const REDIS_MASTER_END: i64 = 2;

/// Elements of the master entry, by their index.
const LIVE: usize = 0;
const DELETED_COUNT: usize = 1;
const SAVED: usize = 2;
const FIELD_COUNT: usize = 3;

/// Where something stands in a block.
type Pos = crate::types::packed::Pos;

/// Why a serialised node cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NodeError {
    /// The elements are not those of a node.
    #[error("a node of a stream is malformed")]
    Malformed,
    /// An entry of the nodes before it has its id, or a larger one.
    #[error("the nodes of a stream are not in their order")]
    Order,
}

/// A look at a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    view: PackedListView<'a>,
    master: StreamId,
    /// How many fields the master entry has.
    field_count: usize,
    /// Where they begin.
    fields: Pos,
    /// Where the first entry begins.
    first: Pos,
}

/// Where an entry stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    id: StreamId,
    head: i64,
    /// Of its head.
    at: Pos,
    /// Behind its head.
    body: Pos,
    /// Behind the entry.
    end: Pos,
}

impl Place {
    pub(super) fn id(&self) -> StreamId {
        self.id
    }

    pub(super) fn is_live(&self) -> bool {
        self.head & DELETED == 0
    }

    /// The head in elements of Redis.
    pub(super) fn head(&self, master: StreamId) -> Head {
        Head::new(self.head & (DELETED | SAME_FIELDS), self.id, master)
    }
}

/// What an entry begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    /// [`DELETED`] and [`SAME_FIELDS`].
    pub(super) flags: i64,
    pub(super) ms: i64,
    pub(super) seq: i64,
}

impl Head {
    fn new(flags: i64, id: StreamId, master: StreamId) -> Self {
        Head {
            flags,
            ms: id.ms.wrapping_sub(master.ms) as i64,
            seq: id.seq.wrapping_sub(master.seq) as i64,
        }
    }

    /// The id of an entry in the node with this id.
    pub(super) fn id(self, master: StreamId) -> StreamId {
        StreamId::new(
            master.ms.wrapping_add(self.ms as u64),
            master.seq.wrapping_add(self.seq as u64),
        )
    }

    fn elements<'a>(self) -> impl Iterator<Item = Elem<'a>> + Clone + use<'a> {
        let has_ms = !(0..MAX_FOLDED_MS).contains(&self.ms);
        let ms = if has_ms { HAS_MS } else { self.ms << MS_SHIFT };
        let seq = if self.seq == 0 { 0 } else { HAS_SEQ };
        let first = Elem::Int(ms | seq | self.flags);
        let ms = has_ms.then_some(Elem::Int(self.ms));
        let seq = (self.seq != 0).then_some(Elem::Int(self.seq));
        [Some(first), ms, seq].into_iter().flatten()
    }

    /// The elements of Redis's entry.
    pub(super) fn redis_elements<'a>(self) -> [Elem<'a>; REDIS_HEAD] {
        [self.flags, self.ms, self.seq].map(Elem::Int)
    }
}

impl<'a> Node<'a> {
    /// Looks at a node that this process made or checked. A malformed one reads as an empty one.
    pub(super) fn new(master: StreamId, block: &'a PackedList) -> Self {
        let view = block.view();
        let end = view.end();
        let parse = || {
            let count_at = view.skip(view.start(), FIELD_COUNT)?;
            let field_count = usize::try_from(view.at(count_at)?.int()?).ok()?;
            let fields = view.next(count_at)?;
            let first = view.skip(fields, field_count)?;
            Some((field_count, fields, first))
        };
        let (field_count, fields, first) = parse().unwrap_or((0, end, end));
        Self {
            view,
            master,
            field_count,
            fields,
            first,
        }
    }

    /// How many live entries the node says it has.
    pub(super) fn live(&self) -> u64 {
        counters(self.view).0
    }

    /// How many live and how many deleted entries the node says it has.
    pub(super) fn counters(&self) -> (u64, u64) {
        counters(self.view)
    }

    /// The fields of the master entry.
    pub(super) fn master_fields(self) -> impl Iterator<Item = Elem<'a>> + Clone {
        self.view.iter_from(self.fields).take(self.field_count)
    }

    /// An entry's elements between its head and the last.
    pub(super) fn body(self, place: Place) -> impl Iterator<Item = Elem<'a>> + Clone {
        self.view
            .iter_from(place.body)
            .take(self.body_len(place).unwrap_or(0))
    }

    fn body_len(&self, place: Place) -> Option<usize> {
        if place.head & SAME_FIELDS != 0 {
            return Some(self.field_count);
        }
        let fields = usize::try_from(self.view.at(place.body)?.int()?).ok()?;
        fields.checked_mul(2)?.checked_add(1)
    }

    /// The entry with this id, unless it was deleted.
    pub(super) fn find(&self, id: StreamId) -> Option<Place> {
        self.places()
            .take_while(|place| place.id <= id)
            .find(|place| place.id == id && place.is_live())
    }

    /// Where the first entry begins whose id is not below this one, deleted or not; the end if there is none.
    ///
    /// The search begins at the nearer end of the node, as far as ids tell: readers are mostly near the end.
    fn lower_bound(&self, id: StreamId) -> Pos {
        if id <= self.master {
            return self.first;
        }
        let Some(mut last) = self.place_before(self.view.end()) else {
            return self.first;
        };
        if last.id < id {
            return self.view.end();
        }
        let width = last.id.distance_from(self.master);
        if id.distance_from(self.master) < width - width / 4 {
            let place = self.places().find(|place| place.id >= id);
            return place.map_or(self.view.end(), |place| place.at);
        }
        while let Some(place) = self.place_before(last.at)
            && place.id >= id
        {
            last = place;
        }
        last.at
    }

    /// The id of the last entry, deleted or not.
    pub(super) fn last_id(&self) -> Option<StreamId> {
        self.place_before(self.view.end()).map(|place| place.id)
    }

    /// All entries, deleted ones too.
    pub(super) fn places(self) -> impl Iterator<Item = Place> + use<'a> {
        let mut at = self.first;
        std::iter::from_fn(move || {
            let place = self.place_at(at)?;
            at = place.end;
            Some(place)
        })
    }

    fn place_at(&self, at: Pos) -> Option<Place> {
        let mut elements = self.view.iter_from(at);
        let head = elements.next()?.int()?;
        let ms = match head & HAS_MS {
            0 => head >> MS_SHIFT,
            _ => elements.next()?.int()?,
        };
        let seq = match head & HAS_SEQ {
            0 => 0,
            _ => elements.next()?.int()?,
        };
        let body = elements.pos();
        let skipped = match head & SAME_FIELDS {
            0 => {
                let fields = usize::try_from(elements.next()?.int()?).ok()?;
                fields.checked_mul(2)?.checked_add(2)?
            }
            _ => self.field_count.checked_add(1)?,
        };
        let flags = head & (DELETED | SAME_FIELDS);
        Some(Place {
            id: Head { flags, ms, seq }.id(self.master),
            head,
            at,
            body,
            end: self.view.skip(body, skipped)?,
        })
    }

    /// The entry that ends at a position.
    fn place_before(&self, end: Pos) -> Option<Place> {
        if end <= self.first {
            return None;
        }
        let mut at = self.view.prev(end)?;
        let elements = self.view.at(at)?.int()?;
        for _ in 0..elements {
            at = self.view.prev(at)?;
        }
        if at < self.first {
            return None;
        }
        self.place_at(at)
    }

    fn entry(self, place: Place) -> Entry<'a> {
        Entry { node: self, place }
    }
}

/// A live entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    node: Node<'a>,
    place: Place,
}

impl<'a> Entry<'a> {
    pub(crate) fn id(&self) -> StreamId {
        self.place.id
    }

    /// The fields with their values, in the order they were given.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (Elem<'a>, Elem<'a>)> + use<'a> {
        let node = self.node;
        let same = self.place.head & SAME_FIELDS != 0;
        let count = self.field_count();
        let mut values = node.view.iter_from(self.place.body);
        let mut names = node.view.iter_from(node.fields);
        if !same {
            // The count itself.
            values.next();
        }
        (0..count).map_while(move |_| match same {
            true => Some((names.next()?, values.next()?)),
            false => Some((values.next()?, values.next()?)),
        })
    }

    /// How many fields there are.
    pub(crate) fn field_count(&self) -> usize {
        if self.place.head & SAME_FIELDS != 0 {
            return self.node.field_count;
        }
        let count = self.node.view.at(self.place.body).and_then(Elem::int);
        count.map_or(0, |count| count.max(0) as usize)
    }
}

/// The live entries of a range, in either direction.
#[derive(Clone, Debug)]
pub(crate) struct Entries<'a> {
    nodes: Range<'a>,
    /// The node being read, and where: the next entry begins, or ends, there.
    current: Option<(Node<'a>, Pos)>,
    start: StreamId,
    end: StreamId,
    reverse: bool,
}

impl<'a> Entries<'a> {
    pub(super) fn new(nodes: &'a Nodes, start: StreamId, end: StreamId, reverse: bool) -> Self {
        let mut entries = Self {
            nodes: nodes.holding(start, end),
            current: None,
            start,
            end,
            reverse,
        };
        // Only the first node that is read has entries outside of the range at that end.
        let bound = match reverse {
            true => end.next(),
            false => Some(start),
        };
        if let Some(bound) = bound
            && let Some((node, _)) = entries.next_node()
        {
            entries.current = Some((node, node.lower_bound(bound)));
        }
        entries
    }

    fn next_node(&mut self) -> Option<(Node<'a>, Pos)> {
        let (master, block) = match self.reverse {
            true => self.nodes.next_back()?,
            false => self.nodes.next()?,
        };
        let node = Node::new(master, block);
        let at = match self.reverse {
            true => node.view.end(),
            false => node.first,
        };
        Some((node, at))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        if self.start > self.end {
            return None;
        }
        loop {
            let (node, at) = match self.current.take() {
                Some(current) => current,
                None => self.next_node()?,
            };
            let place = match self.reverse {
                true => node.place_before(at),
                false => node.place_at(at),
            };
            let Some(place) = place else {
                continue;
            };
            let (passed, next) = match self.reverse {
                true => (place.id < self.start, place.at),
                false => (place.id > self.end, place.end),
            };
            if passed {
                // All that follows is outside of the range too.
                self.start = StreamId::MAX;
                self.end = StreamId::MIN;
                return None;
            }
            self.current = Some((node, next));
            if place.is_live() && (self.start..=self.end).contains(&place.id) {
                return Some(node.entry(place));
            }
        }
    }
}

/// How many live and how many deleted entries a node says it has.
fn counters(view: PackedListView<'_>) -> (u64, u64) {
    let mut elements = view.iter();
    let mut counter = || {
        let count = elements.next().and_then(Elem::int);
        count.map_or(0, |count| count.max(0) as u64)
    };
    (counter(), counter())
}

/// Whether an entry with so many bytes of fields and values still belongs into a node.
pub(super) fn has_room(block: &PackedList, bytes: usize, limits: NodeLimits) -> bool {
    let max_bytes = match limits.max_bytes {
        0 => MAX_NODE_BYTES,
        limit => limit.min(MAX_NODE_BYTES),
    };
    let (live, deleted) = counters(block.view());
    redis_bytes(block) + bytes < max_bytes
        && (limits.max_entries == 0 || live + deleted < limits.max_entries)
}

/// The bytes of the listpack that is Redis's node with these entries.
pub(super) fn redis_bytes(block: &PackedList) -> usize {
    let view = block.view();
    let at = view.skip(view.start(), SAVED);
    let saved = at.and_then(|at| view.at(at)).and_then(Elem::int);
    let saved = saved.unwrap_or(0);
    view.listpack_bytes()
        .saturating_sub(int_bytes(saved))
        .saturating_add_signed(saved as isize)
}

/// A node with one entry, whose fields become the master's.
pub(super) fn begin(id: StreamId, fields: &[&[u8]]) -> PackedList {
    let names = fields.iter().step_by(2).map(|field| Elem::parse(field));
    let mut block = master(1, 0, names);
    push_entry(&mut block, id, id, fields, SAME_FIELDS);
    block
}

/// A node without entries.
pub(super) fn master<'a>(
    live: i64,
    deleted: i64,
    names: impl ExactSizeIterator<Item = Elem<'a>> + Clone,
) -> PackedList {
    let mut block = PackedList::new();
    let counts = [live, deleted, REDIS_MASTER_END, names.len() as i64].map(Elem::Int);
    block.push_all(counts.into_iter().chain(names));
    block
}

/// Adds an entry to a node.
pub(super) fn append(block: &mut PackedList, master: StreamId, id: StreamId, fields: &[&[u8]]) {
    let node = Node::new(master, block);
    let names = fields.iter().step_by(2).map(|field| Elem::parse(field));
    let same = node.field_count * 2 == fields.len()
        && node
            .view
            .iter_from(node.fields)
            .take(node.field_count)
            .eq(names);
    add_to_counter(block, LIVE, 1);
    let flags = if same { SAME_FIELDS } else { 0 };
    push_entry(block, master, id, fields, flags);
}

fn push_entry(
    block: &mut PackedList,
    master: StreamId,
    id: StreamId,
    fields: &[&[u8]],
    flags: i64,
) {
    let (count, texts, step) = match flags & SAME_FIELDS {
        0 => (Some(Elem::Int(fields.len() as i64 / 2)), fields, 1),
        // The values alone.
        _ => (None, fields.get(1..).unwrap_or_default(), 2),
    };
    let texts = texts.iter().step_by(step).map(|text| Elem::parse(text));
    let len = usize::from(count.is_some()) + texts.len();
    let body = count.into_iter().chain(texts);
    push(block, Head::new(flags, id, master), body, len);
}

/// Adds an entry with these elements, of which there are `len`, between its head and the last.
pub(super) fn push<'a>(
    block: &mut PackedList,
    head: Head,
    body: impl Iterator<Item = Elem<'a>> + Clone,
    len: usize,
) {
    let elements = (head.elements().count() + len) as i64;
    let redis_elements = (REDIS_HEAD + len) as i64;
    let taken: usize = head.elements().filter_map(Elem::int).map(int_bytes).sum();
    let redis: usize = [head.flags, head.ms, head.seq, redis_elements]
        .map(int_bytes)
        .iter()
        .sum();
    let saved = redis as i64 - (taken + int_bytes(elements)) as i64;
    add_to_counter(block, SAVED, saved);
    let entry = head.elements().chain(body);
    block.push_all(entry.chain([Elem::Int(elements)]));
}

/// Marks live entries of a node as deleted.
pub(super) fn mark_deleted(block: &mut PackedList, places: &[Place]) {
    for place in places {
        // Setting the lowest bit never changes the width of an encoded integer, so no other place moves.
        block.replace(place.at, Elem::Int(place.head | DELETED));
    }
    let count = places.len() as i64;
    // The counter in front is changed last: it may grow or shrink.
    add_to_counter(block, DELETED_COUNT, count);
    add_to_counter(block, LIVE, -count);
}

fn add_to_counter(block: &mut PackedList, index: usize, by: i64) {
    let view = block.view();
    if let Some(at) = view.seek(index)
        && let Some(count) = view.at(at).and_then(Elem::int)
    {
        block.replace(at, Elem::Int(count + by));
    }
}
