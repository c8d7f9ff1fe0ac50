//! A packed block: a short sequence of strings and integers in one run of bytes.
//!
//! It is the small form of hashes, sets and sorted sets, the page of their large form, and the node
//! of lists and streams. A block of up to 6 KiB can lie inside a key's entry, so all reading is done
//! on a borrowed [`View`]; a [`Block`] owns its bytes and changes them.
//!
//! ```text
//!  one way   2 bytes count, 2 bytes extra, then elements
//!  two way   4 bytes count, then elements, each followed by its own encoded size
//! ```
//!
//! Elements are encoded as in a Redis listpack (see `elem.rs`). A two-way block has a listpack's
//! trailing sizes as well and can be walked backwards; a one-way block saves that byte per element.
//! `extra` is what the trailing sizes would take beyond one byte each, so that both kinds know in
//! constant time how long the listpack with their elements is: Redis's limits are in those bytes.
//!
//! No bytes at all are an empty block. The bytes of a block never come from outside: payloads and
//! files hold listpacks, which `listpack.rs` checks entry by entry. Reading does not panic even so: a
//! malformed block ends where it stops making sense. [`View::check`] tells whether one is well formed.

use std::ops::Range;

use self::elem::{back_len, decode, read_back, size, write_back};
use crate::base::size_class::block_bytes;

pub(crate) mod elem;
mod gapped;
pub(crate) mod listpack;

pub(crate) use self::elem::{Elem, int_bytes};
pub(crate) use self::gapped::GappedList;

/// The block of hashes, sets and sorted sets.
pub(crate) type Packed = Block<false>;
/// A look at the block of a hash, set or sorted set.
pub(crate) type PackedView<'a> = View<'a, false>;
/// The node of lists and streams, which can be walked backwards.
pub(crate) type PackedList = Block<true>;
/// A look at the node of a list or stream.
pub(crate) type PackedListView<'a> = View<'a, true>;

const HEADER: usize = 4;
/// Bytes of a listpack besides its entries: total size, count and end mark.
const LISTPACK_FRAME: usize = 7;

/// Where an element begins, or the end of the block. Any change of the block before it makes it
/// stale; a stale position reads as garbage or nothing, never out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pos(usize);

/// A look at a packed block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a, const TWO_WAY: bool>(&'a [u8]);

impl<'a, const TWO_WAY: bool> View<'a, TWO_WAY> {
    /// Looks at the bytes of a block that this process made.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        View(bytes)
    }

    /// The bytes of the block.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// How many elements there are.
    #[inline]
    pub(crate) fn len(self) -> usize {
        match self.0.first_chunk::<HEADER>() {
            Some(&header) if TWO_WAY => u32::from_le_bytes(header) as usize,
            Some(&[low, high, _, _]) => usize::from(u16::from_le_bytes([low, high])),
            None => 0,
        }
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The size in bytes of the listpack in which Redis would keep these elements.
    #[inline]
    pub(crate) fn listpack_bytes(self) -> usize {
        let elements = self.0.len().saturating_sub(HEADER) + LISTPACK_FRAME;
        match self.0.first_chunk::<HEADER>() {
            Some(&[_, _, low, high]) if !TWO_WAY => {
                elements + self.len() + usize::from(u16::from_le_bytes([low, high]))
            }
            _ => elements,
        }
    }

    /// The first element's position; the end of the block if there is none.
    #[inline]
    pub(crate) fn start(self) -> Pos {
        Pos(HEADER.min(self.0.len()))
    }

    /// The position behind the last element.
    #[inline]
    pub(crate) fn end(self) -> Pos {
        Pos(self.0.len())
    }

    /// The element at a position; none at the end.
    #[inline]
    pub(crate) fn at(self, pos: Pos) -> Option<Elem<'a>> {
        decode(self.0.get(pos.0..)?).map(|(elem, _)| elem)
    }

    /// The position behind the element at this one; none at the end.
    #[inline]
    pub(crate) fn next(self, pos: Pos) -> Option<Pos> {
        self.step(pos.0).map(|step| Pos(pos.0 + step))
    }

    /// The position `count` elements further; none if there are fewer.
    #[inline]
    pub(crate) fn skip(self, pos: Pos, count: usize) -> Option<Pos> {
        let mut at = pos.0;
        for _ in 0..count {
            at += self.step(at)?;
        }
        (at <= self.0.len()).then_some(Pos(at))
    }

    /// The position of the element with this index; the end for the index behind the last.
    pub(crate) fn seek(self, index: usize) -> Option<Pos> {
        let len = self.len();
        if TWO_WAY && index <= len && len - index < index {
            return self.seek_back(len - index);
        }
        self.skip(self.start(), index)
    }

    /// The element with this index.
    pub(crate) fn get(self, index: usize) -> Option<Elem<'a>> {
        self.at(self.seek(index)?)
    }

    /// The position of the first element from `from` on that equals this one, looking only at every
    /// `stride`th element.
    #[inline]
    pub(crate) fn find(self, elem: Elem<'_>, from: Pos, stride: usize) -> Option<Pos> {
        let wanted = elem.encode();
        let mut at = from.0;
        loop {
            if wanted.starts(self.0.get(at..)?) {
                return Some(Pos(at));
            }
            for _ in 0..stride.max(1) {
                at += self.step(at)?;
            }
        }
    }

    /// All elements.
    #[inline]
    pub(crate) fn iter(self) -> Iter<'a, TWO_WAY> {
        self.iter_from(self.start())
    }

    /// The elements from a position on.
    #[inline]
    pub(crate) fn iter_from(self, pos: Pos) -> Iter<'a, TWO_WAY> {
        Iter { view: self, pos }
    }

    /// The elements two by two.
    #[inline]
    pub(crate) fn pairs(self) -> impl Iterator<Item = (Elem<'a>, Elem<'a>)> {
        let mut iter = self.iter();
        std::iter::from_fn(move || Some((iter.next()?, iter.next()?)))
    }

    /// What the element at this offset takes in the block.
    #[inline]
    fn step(self, at: usize) -> Option<usize> {
        let size = size(self.0.get(at..)?)?;
        Some(if TWO_WAY { size + back_len(size) } else { size })
    }

    fn seek_back(self, count: usize) -> Option<Pos> {
        let mut at = self.0.len();
        for _ in 0..count {
            let (size, back) = read_back(self.0.get(HEADER..at)?)?;
            at = at.checked_sub(size + back)?;
        }
        (at >= HEADER || count == 0).then_some(Pos(at))
    }
}

impl<'a> View<'a, true> {
    /// The position of the element before this position; none at the start.
    #[inline]
    pub(crate) fn prev(self, pos: Pos) -> Option<Pos> {
        let (size, back) = read_back(self.0.get(HEADER..pos.0)?)?;
        let at = pos.0.checked_sub(size + back)?;
        (at >= HEADER).then_some(Pos(at))
    }
}

/// The elements from a position on. [`Iter::pos`] is where the next one begins.
#[derive(Clone, Debug)]
pub(crate) struct Iter<'a, const TWO_WAY: bool> {
    view: View<'a, TWO_WAY>,
    pos: Pos,
}

impl<const TWO_WAY: bool> Iter<'_, TWO_WAY> {
    /// The position of the element that `next` will return.
    pub(crate) fn pos(&self) -> Pos {
        self.pos
    }
}

impl<'a, const TWO_WAY: bool> Iterator for Iter<'a, TWO_WAY> {
    type Item = Elem<'a>;

    #[inline]
    fn next(&mut self) -> Option<Elem<'a>> {
        let (elem, size) = decode(self.view.0.get(self.pos.0..)?)?;
        self.pos.0 += if TWO_WAY { size + back_len(size) } else { size };
        Some(elem)
    }
}

/// A packed block that owns its bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Block<const TWO_WAY: bool> {
    bytes: Vec<u8>,
}

impl<const TWO_WAY: bool> Clone for Block<TWO_WAY> {
    fn clone(&self) -> Self {
        Block {
            bytes: super::clone_whole(&self.bytes),
        }
    }
}

impl<const TWO_WAY: bool> Block<TWO_WAY> {
    /// How many elements a block can hold. Callers split or convert long before.
    pub(crate) const MAX_LEN: usize = if TWO_WAY { u32::MAX as usize } else { 16_383 };

    /// An empty block without an allocation.
    pub(crate) const fn new() -> Self {
        Block { bytes: Vec::new() }
    }

    /// Takes over the bytes of a block that this process made.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        Block { bytes }
    }

    /// The block's bytes with their capacity, to be used for another block.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    #[inline]
    pub(crate) fn view(&self) -> View<'_, TWO_WAY> {
        View(&self.bytes)
    }

    pub(crate) fn len(&self) -> usize {
        self.view().len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    /// What the block takes from the heap.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        block_bytes(self.bytes.capacity())
    }

    /// Puts an element before the one at a position, where it stands then.
    pub(crate) fn insert(&mut self, pos: Pos, elem: Elem<'_>) {
        self.begin();
        self.put(pos.0.max(HEADER), 0, elem);
        self.change_len(1);
    }

    pub(crate) fn push_back(&mut self, elem: Elem<'_>) {
        self.insert(self.view().end(), elem);
    }

    pub(crate) fn push_front(&mut self, elem: Elem<'_>) {
        self.insert(self.view().start(), elem);
    }

    /// Adds elements at the end, with one growth for all of them.
    pub(crate) fn push_all<'e>(&mut self, elems: impl Iterator<Item = Elem<'e>> + Clone) {
        self.begin();
        let (mut count, mut more) = (0, 0);
        // Most callers chain iterators. `for_each` takes the parts one after the other, where `next` would find out for
        // each element in which part it is.
        elems.clone().for_each(|elem| {
            let size = elem.encode().size();
            more += if TWO_WAY { size + back_len(size) } else { size };
            count += 1;
        });
        self.grow(more);
        elems.for_each(|elem| {
            let encoded = elem.encode();
            let (size, at) = (encoded.size(), self.bytes.len());
            let back = back_len(size);
            encoded.append_to(&mut self.bytes);
            if TWO_WAY && back == 1 {
                self.bytes.push(size as u8);
            } else if TWO_WAY {
                self.bytes.resize(at + size + back, 0);
                write_back(size, &mut self.bytes[at + size..]);
            } else {
                self.change_extra(back as isize - 1);
            }
        });
        self.change_len(count);
    }

    /// Puts another element in the place of the one at a position. Nothing changes at the end.
    pub(crate) fn replace(&mut self, pos: Pos, elem: Elem<'_>) {
        if let Some(step) = self.step_within(pos.0) {
            self.forget_extra(pos.0..pos.0 + step);
            self.put(pos.0, step, elem);
        }
    }

    /// Removes the element at a position; the next one stands there then.
    pub(crate) fn remove(&mut self, pos: Pos) {
        self.remove_many(pos, 1);
    }

    /// Removes up to `count` elements from a position on, and says how many it were.
    pub(crate) fn remove_many(&mut self, pos: Pos, count: usize) -> usize {
        let (mut end, mut removed) = (pos.0, 0);
        while removed < count
            && let Some(step) = self.step_within(end)
        {
            end += step;
            removed += 1;
        }
        self.forget_extra(pos.0..end);
        self.bytes.drain(pos.0..end);
        self.change_len(-(removed as isize));
        removed
    }

    /// Moves the elements from a position on to a block of their own.
    pub(crate) fn split_off(&mut self, pos: Pos) -> Self {
        let mut rest = Block::new();
        rest.append(self.view(), pos);
        let count = rest.len();
        self.remove_many(pos, count);
        rest
    }

    /// Copies the elements of another block from a position on to the end.
    pub(crate) fn append(&mut self, other: View<'_, TWO_WAY>, from: Pos) {
        let count = other.iter_from(from).count();
        if count == 0 {
            return;
        }
        let tail = other.0.get(from.0..).unwrap_or_default();
        self.begin();
        let at = self.bytes.len();
        self.grow(tail.len());
        self.bytes.extend_from_slice(tail);
        self.remember_extra(at..at + tail.len());
        self.change_len(count as isize);
    }

    /// Makes room for this many bytes in all.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.bytes
            .reserve_exact(bytes.saturating_sub(self.bytes.len()));
    }

    /// Gives back capacity that is not used. The bytes are copied: the allocator would leave them where they are.
    pub(crate) fn shrink(&mut self) {
        let wanted = block_bytes(self.bytes.len());
        if wanted < self.bytes.capacity() {
            let mut bytes = Vec::with_capacity(wanted);
            bytes.extend_from_slice(&self.bytes);
            self.bytes = bytes;
        }
    }

    /// Gives an empty block its header.
    #[inline]
    fn begin(&mut self) {
        if self.bytes.is_empty() {
            self.grow(HEADER + 12);
            self.bytes.extend_from_slice(&[0; HEADER]);
        }
    }

    /// Writes an element over `old` bytes at an offset, and keeps `extra` for what is written.
    fn put(&mut self, at: usize, old: usize, elem: Elem<'_>) {
        let encoded = elem.encode();
        let size = encoded.size();
        let back = back_len(size);
        let new = if TWO_WAY { size + back } else { size };
        let end = self.bytes.len();
        if new > old {
            self.grow(new - old);
            self.bytes.resize(end + new - old, 0);
        }
        if new != old {
            self.bytes.copy_within(at + old..end, at + new);
            self.bytes.truncate(end + new - old);
        }
        let (place, back_place) = self.bytes[at..at + new].split_at_mut(size);
        encoded.write(place);
        write_back(size, back_place);
        if !TWO_WAY {
            self.change_extra(back as isize - 1);
        }
    }

    /// Makes room for more bytes: as many as the allocator hands out for that size. Its classes are wide enough apart
    /// that a block written element by element is seldom moved, and room beyond them would cost memory in every block.
    #[inline]
    fn grow(&mut self, more: usize) {
        let needed = self.bytes.len() + more;
        if needed > self.bytes.capacity() {
            let wanted = block_bytes(needed);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
    }

    /// The step at an offset if the whole of it lies in the block.
    #[inline]
    fn step_within(&self, at: usize) -> Option<usize> {
        let step = self.view().step(at)?;
        (step <= self.bytes.len() - at).then_some(step)
    }

    fn forget_extra(&mut self, range: Range<usize>) {
        if !TWO_WAY {
            self.change_extra(-self.extra_in(range));
        }
    }

    fn remember_extra(&mut self, range: Range<usize>) {
        if !TWO_WAY {
            self.change_extra(self.extra_in(range));
        }
    }

    fn extra_in(&self, range: Range<usize>) -> isize {
        let (mut at, mut extra) = (range.start, 0);
        while at < range.end
            && let Some(step) = self.view().step(at)
        {
            extra += back_len(step) as isize - 1;
            at += step;
        }
        extra
    }

    #[inline]
    fn change_extra(&mut self, by: isize) {
        if by != 0
            && let Some([_, _, low, high]) = self.bytes.first_chunk_mut()
        {
            let extra = u16::from_le_bytes([*low, *high]);
            [*low, *high] = extra.wrapping_add_signed(by as i16).to_le_bytes();
        }
    }

    #[inline]
    fn change_len(&mut self, by: isize) {
        let len = self.len().wrapping_add_signed(by);
        debug_assert!(
            by <= 0 || len <= Self::MAX_LEN,
            "callers split or convert before"
        );
        if let Some(header) = self.bytes.first_chunk_mut::<HEADER>() {
            let bytes = (len as u32).to_le_bytes();
            if TWO_WAY {
                *header = bytes;
            } else {
                header[..2].copy_from_slice(&bytes[..2]);
            }
        }
    }
}

const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Block<true>>();
    is_send::<Block<false>>();
};

#[cfg(test)]
mod tests;
