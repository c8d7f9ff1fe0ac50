//! A large hash or set: packed pages in a hash table.
//!
//! An entry is `STRIDE` consecutive elements of a page: the member of a set, or a field and its
//! value. The hash is that of the entry's first element.

use siphasher::sip::SipHasher13;

use super::packed::{Elem, Packed, PackedView, Pos};
use super::pages::{Page, Pages, Seed};
use super::{CACHE_LINE, Step, address};

/// The hash of an element. An integer is hashed as eight bytes, so its text is not needed.
#[inline]
pub(super) fn hash(seed: Seed, elem: Elem<'_>) -> u64 {
    let sip = SipHasher13::new_with_keys(seed.0, seed.1);
    match elem {
        Elem::Int(number) => sip.hash(&number.to_le_bytes()),
        Elem::Bytes(bytes) => sip.hash(bytes),
    }
}

/// A packed block as a page.
#[derive(Clone, Debug, Default)]
pub(super) struct PackedPage<const STRIDE: usize>(Packed);

impl<const STRIDE: usize> PackedPage<STRIDE> {
    #[inline]
    fn find(&self, member: Elem<'_>) -> Option<Pos> {
        let view = self.0.view();
        view.find(member, view.start(), STRIDE)
    }
}

impl<const STRIDE: usize> Page for PackedPage<STRIDE> {
    // So that most lookups read one or two cache lines of a page.
    const FULL: usize = if STRIDE == 1 { 8 } else { 6 };

    #[inline]
    fn len(&self) -> usize {
        self.0.len() / STRIDE
    }

    #[inline]
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    fn split(&mut self, seed: Seed, bit: u64) -> Self {
        let (mut stays, mut goes) = (Packed::new(), Packed::new());
        let mut elems = self.0.view().iter();
        while let Some(member) = elems.next() {
            let target = match hash(seed, member) & bit {
                0 => &mut stays,
                _ => &mut goes,
            };
            target.push_back(member);
            for elem in elems.by_ref().take(STRIDE - 1) {
                target.push_back(elem);
            }
        }
        stays.shrink();
        goes.shrink();
        self.0 = stays;
        PackedPage(goes)
    }

    fn absorb(&mut self, other: Self) {
        let from = other.0.view();
        self.0.append(from, from.start());
    }
}

/// A hash (`STRIDE` 2) or set (`STRIDE` 1) of any size.
#[derive(Clone, Debug)]
pub(crate) struct Table<const STRIDE: usize>(Pages<PackedPage<STRIDE>>);

impl<const STRIDE: usize> Table<STRIDE> {
    pub(super) fn new(seed: Seed) -> Self {
        Table(Pages::new(seed))
    }

    /// A table with the entries of a packed block.
    pub(super) fn from_packed(view: PackedView<'_>, seed: Seed) -> Self {
        let mut table = Table::new(seed);
        let mut elems = view.iter();
        while let Some(member) = elems.next() {
            table.0.edit(hash(seed, member), |page| {
                page.0.push_back(member);
                for elem in elems.by_ref().take(STRIDE - 1) {
                    page.0.push_back(elem);
                }
            });
        }
        table
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.0.heap_bytes()
    }

    pub(super) fn pieces(&self) -> usize {
        self.0.pieces()
    }

    pub(super) fn drop_piece(&mut self) -> bool {
        self.0.drop_piece()
    }

    #[inline]
    pub(super) fn contains(&self, member: Elem<'_>) -> bool {
        self.page(member).find(member).is_some()
    }

    pub(super) fn remove(&mut self, member: Elem<'_>) -> bool {
        let hash = hash(self.0.seed(), member);
        self.0.edit(hash, |page| {
            let found = page.find(member);
            if let Some(pos) = found {
                page.0.remove_many(pos, STRIDE);
                if page.0.is_empty() {
                    page.0 = Packed::new();
                }
            }
            found.is_some()
        })
    }

    /// The first elements of all entries, each with the iterator's rest at its value.
    pub(super) fn views(&self) -> impl Iterator<Item = PackedView<'_>> {
        self.0.iter().map(|page| page.0.view())
    }

    /// Visits the entries at one position of a scan; see [`Pages::scan`].
    pub(super) fn scan(&self, cursor: u64, visit: &mut dyn FnMut([Elem<'_>; STRIDE])) -> u64 {
        let seed = self.0.seed();
        self.0.scan(cursor, |page, seen| {
            let mut elems = page.0.view().iter();
            while let Some(entry) = next_entry(&mut elems) {
                if seen == 0 || hash(seed, entry[0]) >= seen {
                    visit(entry);
                }
            }
        })
    }

    /// Any entry, each with the same probability, and a number that is unique to it as long as the
    /// table does not change.
    pub(super) fn random(&self, rng: &mut fastrand::Rng) -> Option<([Elem<'_>; STRIDE], usize)> {
        let (page, index) = self.0.random(rng)?;
        let view = page.0.view();
        let mut elems = view.iter_from(view.seek(index * STRIDE)?);
        let entry = next_entry(&mut elems)?;
        Some((entry, view.bytes().as_ptr() as usize + index))
    }

    /// See [`Members`](super::Members).
    #[inline]
    pub(super) fn hash(&self, member: &[u8]) -> u64 {
        hash(self.0.seed(), Elem::parse(member))
    }

    /// See [`Members`](super::Members).
    #[inline]
    pub(super) fn lines(&self, hash: u64, step: Step, load: &mut dyn FnMut(*const u8)) {
        /// Bytes of a page that most lookups read.
        const READ: usize = 128;
        match step {
            Step::Slot => self.0.slot_lines(hash, load),
            Step::Page => {
                let bytes = self.0.page(hash).0.view().bytes();
                for offset in (0..bytes.len().min(READ)).step_by(CACHE_LINE) {
                    load(address(&bytes[offset]));
                }
            }
            Step::Leaf | Step::Items => {}
        }
    }

    #[inline]
    fn page(&self, member: Elem<'_>) -> &PackedPage<STRIDE> {
        self.0.page(hash(self.0.seed(), member))
    }
}

impl Table<1> {
    /// Adds a member and says whether it is new.
    #[inline]
    pub(super) fn insert(&mut self, member: Elem<'_>) -> bool {
        let hash = hash(self.0.seed(), member);
        self.0.edit(hash, |page| {
            let new = page.find(member).is_none();
            if new {
                page.0.push_back(member);
            }
            new
        })
    }
}

impl Table<2> {
    #[inline]
    pub(super) fn get(&self, field: Elem<'_>) -> Option<Elem<'_>> {
        let page = self.page(field);
        let view = page.0.view();
        view.at(view.next(page.find(field)?)?)
    }

    /// Sets a field and says whether it is new.
    #[inline]
    pub(super) fn set(&mut self, field: Elem<'_>, value: Elem<'_>) -> bool {
        let hash = hash(self.0.seed(), field);
        self.0.edit(hash, |page| {
            let found = page.find(field);
            match found.and_then(|pos| page.0.view().next(pos)) {
                Some(at_value) => page.0.replace(at_value, value),
                None => {
                    page.0.push_back(field);
                    page.0.push_back(value);
                }
            }
            found.is_none()
        })
    }
}

/// The next `STRIDE` elements.
#[inline]
pub(super) fn next_entry<'a, const STRIDE: usize>(
    elems: &mut impl Iterator<Item = Elem<'a>>,
) -> Option<[Elem<'a>; STRIDE]> {
    let mut entry = [Elem::Int(0); STRIDE];
    for elem in &mut entry {
        *elem = elems.next()?;
    }
    Some(entry)
}

#[cfg(test)]
impl<const STRIDE: usize> Table<STRIDE> {
    pub(super) fn assert_sound(&self) {
        self.0.assert_sound();
    }
}
