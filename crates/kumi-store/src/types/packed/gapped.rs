//! A packed block with room in front, for lists that grow and shrink at their front.
//!
//! ```text
//!  gap | 4 bytes count | elements
//! ```
//!
//! A plain block moves all its bytes for each element that is added or removed in front. Here the room that the
//! allocator's size class leaves can lie in front: an addition takes from the gap, a removal adds to it, and both write
//! the count again. No more memory is taken than for a plain block. All other changes close the gap first.

use super::elem::{back_len, write_back};
use super::{Elem, HEADER, PackedList, PackedListView, View};
use crate::base::size_class::block_bytes;

/// A packed block and its gap.
#[derive(Clone, Debug, Default)]
pub(crate) struct GappedList {
    /// Its bytes begin with the gap.
    block: PackedList,
    gap: usize,
}

impl GappedList {
    pub(crate) fn new(block: PackedList) -> Self {
        GappedList { block, gap: 0 }
    }

    #[inline]
    pub(crate) fn view(&self) -> PackedListView<'_> {
        View(self.block.bytes.get(self.gap..).unwrap_or_default())
    }

    /// What the block takes from the heap.
    #[inline]
    pub(crate) fn heap_bytes(&self) -> usize {
        self.block.heap_bytes()
    }

    /// The block without a gap, for any change.
    pub(crate) fn closed(&mut self) -> &mut PackedList {
        if self.gap > 0 {
            self.block.bytes.drain(..self.gap);
            self.gap = 0;
        }
        &mut self.block
    }

    pub(crate) fn into_block(mut self) -> PackedList {
        self.closed();
        self.block
    }

    pub(crate) fn push_front(&mut self, elem: Elem<'_>) {
        let len = self.view().len();
        if len == 0 {
            return self.closed().push_front(elem);
        }
        let encoded = elem.encode();
        let size = encoded.size();
        let back = back_len(size);
        if self.gap < size + back {
            self.open(size + back);
        }
        self.gap -= size + back;
        self.write_len(len + 1);
        let start = self.gap + HEADER;
        let place = &mut self.block.bytes[start..start + size + back];
        let (place, back_place) = place.split_at_mut(size);
        encoded.write(place);
        write_back(size, back_place);
    }

    /// Removes elements from an index on. At either end nothing else is moved.
    pub(crate) fn remove(&mut self, index: usize, count: usize) {
        let view = self.view();
        let Some(left) = view.len().checked_sub(count).filter(|_| count > 0) else {
            return;
        };
        if index == 0 {
            if let Some(pos) = view.skip(view.start(), count) {
                self.gap += pos.0 - HEADER;
                self.write_len(left);
            }
        } else if let Some(pos) = view.seek(index) {
            if index == left {
                self.block.bytes.truncate(self.gap + pos.0);
                self.write_len(left);
            } else {
                self.closed().remove_many(pos, count);
            }
        }
    }

    /// Makes the gap at least this large: moves the block to the end of its capacity, or of the next larger one.
    fn open(&mut self, more: usize) {
        let used = self.block.bytes.len() - self.gap;
        let capacity = self.block.bytes.capacity();
        if used + more <= capacity {
            self.block.bytes.resize(capacity, 0);
            let block = self.gap..self.gap + used;
            self.block.bytes.copy_within(block, capacity - used);
            self.gap = capacity - used;
            return;
        }
        let capacity = block_bytes(used + more);
        let mut bytes = Vec::with_capacity(capacity);
        bytes.resize(capacity - used, 0);
        bytes.extend_from_slice(&self.block.bytes[self.gap..]);
        self.block.bytes = bytes;
        self.gap = capacity - used;
    }

    fn write_len(&mut self, len: usize) {
        if let Some(header) = self.block.bytes.get_mut(self.gap..self.gap + HEADER) {
            header.copy_from_slice(&(len as u32).to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::testing::any_text;
    use std::collections::VecDeque;

    fn texts(gapped: &GappedList) -> Vec<Vec<u8>> {
        gapped.view().iter().map(|it| it.text().to_vec()).collect()
    }

    #[test]
    fn changes_at_both_ends_follow_a_deque() {
        for seed in 0..20 {
            let mut rng = fastrand::Rng::with_seed(seed);
            let (mut gapped, mut model) = (GappedList::default(), VecDeque::new());
            for _ in 0..400 {
                let text = any_text(&mut rng);
                match rng.u32(..8) {
                    0..4 => {
                        gapped.push_front(Elem::parse(&text));
                        model.push_front(text);
                    }
                    4 => {
                        gapped.closed().push_back(Elem::parse(&text));
                        model.push_back(text);
                    }
                    5 | 6 if !model.is_empty() => {
                        let index = match rng.u32(..3) {
                            0 => 0,
                            1 => model.len() - 1,
                            _ => rng.usize(..model.len()),
                        };
                        let count = rng.usize(..=(model.len() - index).min(4));
                        gapped.remove(index, count);
                        model.drain(index..index + count);
                    }
                    _ => gapped = GappedList::new(gapped.clone().into_block()),
                }
                assert_eq!(model, texts(&gapped));
                assert!(PackedListView::check(gapped.view().bytes()).is_some());
            }
        }
    }

    #[test]
    fn it_takes_no_more_than_a_plain_block() {
        let (mut gapped, mut plain) = (GappedList::default(), PackedList::new());
        for number in 0..800 {
            gapped.push_front(Elem::Int(number));
            plain.push_front(Elem::Int(number));
            assert_eq!(gapped.heap_bytes(), plain.heap_bytes(), "{number}");
        }
        assert_eq!(gapped.view().bytes(), plain.view().bytes());
    }
}
