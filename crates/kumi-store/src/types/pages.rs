//! The large form's frame: a hash table whose buckets are pages, small sequences that hold a handful
//! of entries each. It grows and shrinks a segment of 32 pages at a time.
//!
//! ```text
//!  directory          segments (dense)         pages
//!  00 -> 0            0: depth 1, 0...         32 pages, chosen by the hash's low bits
//!  01 -> 0            1: depth 2, 10...
//!  10 -> 1            2: depth 2, 11...
//!  11 -> 2
//! ```
//!
//! The hash's top bits, as many as the directory's depth, choose a directory slot, which holds a
//! segment's number; the low bits choose the page in the segment. A page grows as it must, so
//! nothing ever overflows: when the pages of a segment are well filled on average, the segment is
//! split in two by the next bit of the hash. Two segments that differ in one bit are merged when
//! they are sparse. Each of these touches a few hundred entries, so no step is long at any size.
//!
//! A page number does not depend on the segment, so a cursor (page number, position in hash space)
//! stays valid across splits and merges: a scan visits page 0 of all segments in hash order, then
//! page 1, and so on, and sees each entry that is present throughout.
//!
//! Segments are shared: a copy of a table refers to the same ones, and a segment that is shared is copied
//! before it changes. So a snapshot copies the directory of a large table and not its entries.
//!
//! This module does not hash and does not know what an entry is; it trusts the hashes it is handed.
//! Compared with the keyspace's own table, an entry costs no allocation and no pointer.

use super::address;
use super::shared::Shared;

/// Pages in a segment.
pub(crate) const PAGES: usize = 32;
const PAGE_BITS: u32 = PAGES.trailing_zeros();

/// The deepest directory. It leaves a cursor's bits, and a 32-bit hash's, to the page number.
const MAX_DEPTH: u32 = 27;

/// Directory slots for each segment, beyond `FREE_SLOTS`. Only hashes that agree in many top bits
/// get there; then pages grow instead.
const SLOTS_PER_SEGMENT: usize = 8;
const FREE_SLOTS: usize = 64;

/// A segment whose pages take more than this is split as well, as long as there is an entry for
/// each page: moving large entries about within their page costs time.
const SEGMENT_BYTES: usize = PAGES * 4096;

/// A merge is considered after every so many removals from a segment.
const MERGE_STEP: u32 = 16;

/// The key of the hash function, from the caller's random generator.
pub(crate) type Seed = (u64, u64);

/// A small sequence of entries.
pub(crate) trait Page: Default + Clone {
    /// Entries in a page, on average, when its segment is split.
    const FULL: usize;

    fn len(&self) -> usize;

    /// What the page takes from the heap.
    fn heap_bytes(&self) -> usize;

    /// Moves the entries whose hash has this bit set to a new page.
    fn split(&mut self, seed: Seed, bit: u64) -> Self;

    /// Takes over the entries of another page.
    fn absorb(&mut self, other: Self);
}

#[derive(Clone, Debug)]
struct Segment<P> {
    pages: [P; PAGES],
    /// The hash bits all entries have in common, at the top; zero below.
    prefix: u64,
    /// How many bits these are.
    depth: u32,
    /// Entries in all pages.
    len: u32,
    /// Heap bytes of all pages.
    bytes: usize,
}

impl<P: Page> Segment<P> {
    fn new(prefix: u64, depth: u32) -> Self {
        Segment {
            pages: std::array::from_fn(|_| P::default()),
            prefix,
            depth,
            len: 0,
            bytes: 0,
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        let len = self.len as usize;
        len > P::FULL * PAGES || self.bytes > SEGMENT_BYTES && len >= PAGES
    }

    fn recount(&mut self) {
        self.len = self.pages.iter().map(|page| page.len() as u32).sum();
        self.bytes = self.pages.iter().map(Page::heap_bytes).sum();
    }
}

/// A hash table of pages.
#[derive(Clone, Debug)]
pub(crate) struct Pages<P> {
    /// Segment numbers by the hash's top bits; a power of two of them.
    directory: Vec<u32>,
    /// All segments, in no order.
    segments: Vec<Shared<Segment<P>>>,
    /// How many bits of a hash index the directory.
    depth: u32,
    /// How many segments have each depth.
    at_depth: [u32; MAX_DEPTH as usize + 1],
    len: usize,
    /// Heap bytes of all pages.
    page_bytes: usize,
    /// No page has ever had more entries than this.
    longest_page: usize,
    seed: Seed,
}

impl<P: Page> Pages<P> {
    /// An empty table: one segment of empty pages.
    pub(crate) fn new(seed: Seed) -> Self {
        let mut at_depth = [0; MAX_DEPTH as usize + 1];
        at_depth[0] = 1;
        Pages {
            directory: vec![0],
            segments: vec![Shared::new(Segment::new(0, 0))],
            depth: 0,
            at_depth,
            len: 0,
            page_bytes: 0,
            longest_page: 0,
            seed,
        }
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    /// Entries in all pages.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What the table takes from the heap, besides its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.directory.capacity() * size_of::<u32>()
            + self.segments.capacity() * size_of::<Shared<Segment<P>>>()
            + self.segments.len() * Shared::<Segment<P>>::HEAP_BYTES
            + self.page_bytes
    }

    /// How many pieces the table is dropped in, roughly the allocations of 32 pages each.
    pub(crate) fn pieces(&self) -> usize {
        self.segments.len()
    }

    /// Drops one piece of the table and says whether there are more. The table must not be used for
    /// anything else after the first call.
    pub(crate) fn drop_piece(&mut self) -> bool {
        self.segments.pop();
        !self.segments.is_empty()
    }

    /// The page in which an entry with this hash is.
    #[inline]
    pub(crate) fn page(&self, hash: u64) -> &P {
        &self.segments[self.segment_of(hash)].pages[page_of(hash)]
    }

    /// Calls `load` with the addresses of the segment that [`Pages::page`] and [`Pages::edit`] read.
    #[inline]
    pub(crate) fn slot_lines(&self, hash: u64, load: &mut dyn FnMut(*const u8)) {
        let segment = &self.segments[self.segment_of(hash)];
        load(address(&segment.pages[page_of(hash)]));
        load(address(&segment.bytes));
        load(segment.count());
    }

    /// Changes the page in which an entry with this hash is or belongs. The change may add or remove
    /// entries with this hash only.
    #[inline]
    pub(crate) fn edit<R>(&mut self, hash: u64, change: impl FnOnce(&mut P) -> R) -> R {
        let number = self.segment_of(hash);
        let segment = &mut *self.segments[number];
        let page = &mut segment.pages[page_of(hash)];
        let (old_len, old_bytes) = (page.len(), page.heap_bytes());
        let result = change(page);
        let (new_len, new_bytes) = (page.len(), page.heap_bytes());
        segment.len = segment.len + new_len as u32 - old_len as u32;
        segment.bytes = segment.bytes + new_bytes - old_bytes;
        self.len = self.len + new_len - old_len;
        self.page_bytes = self.page_bytes + new_bytes - old_bytes;
        if new_len < old_len {
            if segment.len.is_multiple_of(MERGE_STEP) {
                self.merge(number);
            }
        } else {
            self.longest_page = self.longest_page.max(new_len);
            if segment.is_full() {
                self.split(number);
            }
        }
        result
    }

    /// All pages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        self.segments.iter().flat_map(|segment| &segment.pages[..])
    }

    /// Visits the page at a position in the scan's order, and returns the cursor of the next one. 0
    /// is the first position, and 0 comes back after the last. The visitor has to leave out entries
    /// with a smaller hash than it is handed: a merge has moved them in, and the scan has seen them.
    pub(crate) fn scan(&self, cursor: u64, visit: impl FnOnce(&P, u64)) -> u64 {
        let page = (cursor & (PAGES as u64 - 1)) as usize;
        let prefix = (cursor >> PAGE_BITS).reverse_bits();
        let segment = &self.segments[self.segment_of(prefix)];
        // The bits in which the hashes of this segment's entries differ.
        let open = u64::MAX >> segment.depth;
        let seen = if prefix & open == 0 { 0 } else { prefix };
        visit(&segment.pages[page], seen);
        let (page, prefix) = match (prefix | open).checked_add(1) {
            Some(prefix) => (page, prefix),
            None => (page + 1, 0),
        };
        if page == PAGES {
            return 0;
        }
        prefix.reverse_bits() << PAGE_BITS | page as u64
    }

    /// A page and an index in it, each entry of the table with the same probability.
    ///
    /// A page and an index below the longest page's length are drawn until the page has such an
    /// entry: three draws on average.
    pub(crate) fn random(&self, rng: &mut fastrand::Rng) -> Option<(&P, usize)> {
        if self.len == 0 {
            return None;
        }
        loop {
            let page = self.any_page(rng);
            let index = rng.usize(..self.longest_page);
            if index < page.len() {
                return Some((page, index));
            }
        }
    }

    fn any_page(&self, rng: &mut fastrand::Rng) -> &P {
        let segment = &self.segments[rng.usize(..self.segments.len())];
        &segment.pages[rng.usize(..PAGES)]
    }

    #[inline]
    fn segment_of(&self, hash: u64) -> usize {
        let slot = hash >> 1 >> (63 - self.depth);
        self.directory[slot as usize] as usize
    }

    /// The directory slots that lead to a segment.
    fn slots_of(&self, number: usize) -> std::ops::Range<usize> {
        let segment = &self.segments[number];
        let first = (segment.prefix >> 1 >> (63 - self.depth)) as usize;
        first..first + (1 << (self.depth - segment.depth))
    }

    /// Splits a segment in two unless the directory would become too large for it.
    #[cold]
    fn split(&mut self, number: usize) {
        let depth = self.segments[number].depth;
        if depth == self.depth {
            let allowed = FREE_SLOTS.max(self.segments.len() * SLOTS_PER_SEGMENT);
            if depth == MAX_DEPTH || self.directory.len() * 2 > allowed {
                return;
            }
            self.directory = self.directory.iter().flat_map(|&it| [it, it]).collect();
            self.depth += 1;
        }
        let bit = 1 << (63 - depth);
        let lower = &mut *self.segments[number];
        let mut upper = Segment::new(lower.prefix | bit, depth + 1);
        for (lower, upper) in lower.pages.iter_mut().zip(upper.pages.iter_mut()) {
            *upper = lower.split(self.seed, bit);
        }
        let old_bytes = lower.bytes;
        lower.depth += 1;
        lower.recount();
        upper.recount();
        self.page_bytes = self.page_bytes + lower.bytes + upper.bytes - old_bytes;
        self.at_depth[depth as usize] -= 1;
        self.at_depth[depth as usize + 1] += 2;
        self.segments.push(Shared::new(upper));
        self.point_to(self.segments.len() - 1);
    }

    /// Merges a segment with the one that differs in its last bit, and the result likewise, as long
    /// as they fill one third of a segment together.
    #[cold]
    fn merge(&mut self, number: usize) {
        let mut number = number;
        loop {
            let segment = &self.segments[number];
            let depth = segment.depth;
            if depth == 0 {
                return;
            }
            let other = self.segment_of(segment.prefix ^ 1 << (64 - depth));
            let sum = segment.len + self.segments[other].len;
            let bytes = segment.bytes + self.segments[other].bytes;
            if self.segments[other].depth != depth
                || sum as usize > P::FULL * PAGES / 3
                || bytes > SEGMENT_BYTES / 3
            {
                return;
            }
            number = self.join(number, other);
        }
    }

    /// Moves the entries of one segment to another and removes it; returns the other's number.
    fn join(&mut self, number: usize, other: usize) -> usize {
        let leaving = self.segments.swap_remove(other).into_inner();
        if self.segments.len() < self.segments.capacity() / 4 {
            self.segments.shrink_to(self.segments.len() * 2);
        }
        if other < self.segments.len() {
            self.point_to(other);
        }
        // The last segment has taken the place of the removed one.
        let number = if number == self.segments.len() {
            other
        } else {
            number
        };
        let segment = &mut *self.segments[number];
        let old_bytes = segment.bytes + leaving.bytes;
        let depth = segment.depth as usize;
        segment.depth -= 1;
        segment.prefix &= leaving.prefix;
        for (page, from) in segment.pages.iter_mut().zip(leaving.pages) {
            page.absorb(from);
            self.longest_page = self.longest_page.max(page.len());
        }
        segment.recount();
        self.page_bytes = self.page_bytes + segment.bytes - old_bytes;
        self.at_depth[depth] -= 2;
        self.at_depth[depth - 1] += 1;
        self.point_to(number);
        while self.depth > 0 && self.at_depth[self.depth as usize] == 0 {
            self.directory = self.directory.iter().step_by(2).copied().collect();
            self.depth -= 1;
        }
        number
    }

    /// Lets all directory slots of a segment lead to it.
    fn point_to(&mut self, number: usize) {
        let slots = self.slots_of(number);
        self.directory[slots].fill(number as u32);
    }
}

#[inline]
fn page_of(hash: u64) -> usize {
    hash as usize % PAGES
}

#[cfg(test)]
impl<P: Page> Pages<P> {
    /// Panics unless the directory, the sums and the depths agree with the pages.
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.directory.len(), 1 << self.depth);
        let mut slots = 0;
        for (number, segment) in self.segments.iter().enumerate() {
            let range = self.slots_of(number);
            slots += range.len();
            assert!(self.directory[range].iter().all(|&it| it == number as u32));
            let len: usize = segment.pages.iter().map(Page::len).sum();
            let bytes: usize = segment.pages.iter().map(Page::heap_bytes).sum();
            assert_eq!((segment.len as usize, segment.bytes), (len, bytes));
        }
        assert_eq!(slots, self.directory.len());
        assert_eq!(self.len, self.iter().map(Page::len).sum());
        assert_eq!(self.page_bytes, self.iter().map(Page::heap_bytes).sum());
        assert!(self.iter().all(|page| page.len() <= self.longest_page));
        for (depth, &count) in self.at_depth.iter().enumerate() {
            let depths = self.segments.iter().map(|segment| segment.depth as usize);
            assert_eq!(count as usize, depths.filter(|&it| it == depth).count());
        }
    }
}
