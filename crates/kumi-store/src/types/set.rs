//! A set: sorted integers, one packed block in the order of insertion, or a [`Table`].
//!
//! The stored form follows size. The name OBJECT ENCODING shows follows Redis's limits and is kept
//! beside it: 600 integers are `hashtable` by name and may still be packed by form.

use super::intset::{IntSet, IntView};
use super::packed::{Elem, Packed, PackedView};
use super::pages::Seed;
use super::sample::{Selection, draw_distinct, is_sparse};
use super::table::Table;
use super::{Members, Slices, Step, listpack_has_room, stays_packed};
use crate::base::number;

/// An `intset` by name stays sorted integers up to this many members, because clients see its order.
const INTSET_ENTRIES: usize = 8192;
/// Integers of any other name become a table beyond this many members.
const INT_ENTRIES: usize = 512;
/// A table with no more members than this becomes small again.
const SHRINK_LEN: usize = 16;
/// The longest text of an integer.
const LONGEST_INT: usize = 20;

/// `set-max-intset-entries`, `set-max-listpack-entries` and `set-max-listpack-value`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetLimits {
    pub(crate) intset_entries: usize,
    pub(crate) listpack_entries: usize,
    pub(crate) listpack_value_bytes: usize,
}

impl Default for SetLimits {
    fn default() -> Self {
        SetLimits {
            intset_entries: 512,
            listpack_entries: 128,
            listpack_value_bytes: 64,
        }
    }
}

/// What OBJECT ENCODING shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetEncoding {
    Intset,
    Listpack,
    Hashtable,
}

impl SetEncoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            SetEncoding::Intset => "intset",
            SetEncoding::Listpack => "listpack",
            SetEncoding::Hashtable => "hashtable",
        }
    }
}

/// How the bytes of a small set are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SmallSet {
    /// Sorted integers instead of a packed block.
    pub(crate) ints: bool,
    pub(crate) encoding: SetEncoding,
}

/// A look at a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetRef<'a> {
    form: FormRef<'a>,
    encoding: SetEncoding,
}

#[derive(Clone, Copy, Debug)]
enum FormRef<'a> {
    Ints(IntView<'a>),
    Packed(PackedView<'a>),
    Table(&'a Table<1>),
}

impl<'a> SetRef<'a> {
    /// Looks at a small set that is kept elsewhere as [`Set::small`] gave it out.
    pub(crate) fn from_small(kind: SmallSet, bytes: &'a [u8]) -> Self {
        let form = if kind.ints {
            FormRef::Ints(IntView::new(bytes))
        } else {
            FormRef::Packed(PackedView::new(bytes))
        };
        SetRef {
            form,
            encoding: kind.encoding,
        }
    }

    pub(crate) fn encoding(self) -> SetEncoding {
        self.encoding
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        match self.form {
            FormRef::Ints(ints) => ints.len(),
            FormRef::Packed(view) => view.len(),
            FormRef::Table(table) => table.len(),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn contains(self, member: &[u8]) -> bool {
        self.contains_elem(Elem::parse(member))
    }

    /// Membership of what another set gave out.
    #[inline]
    pub(crate) fn contains_elem(self, member: Elem<'_>) -> bool {
        match self.form {
            FormRef::Ints(ints) => member.int().is_some_and(|int| ints.search(int).is_ok()),
            FormRef::Packed(view) => view.find(member, view.start(), 1).is_some(),
            FormRef::Table(table) => table.contains(member),
        }
    }

    /// All members: ascending if they are sorted integers, in the order of insertion while packed.
    pub(crate) fn iter(self) -> impl Iterator<Item = Elem<'a>> {
        let (ints, packed, table) = match self.form {
            FormRef::Ints(ints) => (Some(ints), None, None),
            FormRef::Packed(view) => (None, Some(view), None),
            FormRef::Table(table) => (None, None, Some(table.views())),
        };
        let views = packed.into_iter().chain(table.into_iter().flatten());
        let ints = ints.into_iter().flat_map(IntView::iter).map(Elem::Int);
        ints.chain(views.flat_map(PackedView::iter))
    }

    /// Visits the members at one position of a scan and returns the next cursor, 0 after the last.
    /// A member that is present from the first call to the last is visited at least once. A small
    /// set is visited in one call.
    pub(crate) fn scan(self, cursor: u64, visit: &mut dyn FnMut(Elem<'_>)) -> u64 {
        match self.form {
            FormRef::Table(table) => table.scan(cursor, &mut |[member]| visit(member)),
            FormRef::Ints(_) | FormRef::Packed(_) => {
                self.iter().for_each(visit);
                0
            }
        }
    }

    /// Any member, each with the same probability.
    pub(crate) fn random(self, rng: &mut fastrand::Rng) -> Option<Elem<'a>> {
        self.draw(rng).map(|(member, _)| member)
    }

    /// Visits `count` different members, or all if there are fewer; every choice has the same
    /// probability.
    pub(crate) fn sample(
        self,
        count: usize,
        rng: &mut fastrand::Rng,
        visit: &mut dyn FnMut(Elem<'a>),
    ) {
        if is_sparse(self.len(), count) {
            return draw_distinct(count, |seen| {
                if let Some((member, number)) = self.draw(rng)
                    && seen.insert(number)
                {
                    visit(member);
                }
            });
        }
        let mut selection = Selection::new(self.len(), count);
        self.iter().filter(|_| selection.takes(rng)).for_each(visit);
    }

    /// A random member, and a number that is unique to it.
    fn draw(self, rng: &mut fastrand::Rng) -> Option<(Elem<'a>, usize)> {
        if let FormRef::Table(table) = self.form {
            return table.random(rng).map(|([member], number)| (member, number));
        }
        let index = (!self.is_empty()).then(|| rng.usize(..self.len()))?;
        let member = match self.form {
            FormRef::Ints(ints) => Elem::Int(ints.get(index)?),
            FormRef::Packed(view) => view.get(index)?,
            FormRef::Table(_) => return None,
        };
        Some((member, index))
    }
}

/// A set.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    form: Form,
    encoding: SetEncoding,
}

#[derive(Clone, Debug)]
enum Form {
    Ints(IntSet),
    Packed(Packed),
    Table(Box<Table<1>>),
}

impl Set {
    /// An empty set of integers.
    pub(crate) fn new() -> Self {
        Set {
            form: Form::Ints(IntSet::default()),
            encoding: SetEncoding::Intset,
        }
    }

    /// An empty set with the encoding Redis chooses for its first member and the number of members
    /// that are going to be added.
    pub(crate) fn for_members(first: &[u8], size_hint: usize, limits: SetLimits) -> Self {
        let mut set = Set::new();
        if number::parse_i64(first).is_some() && size_hint <= limits.intset_entries {
            return set;
        }
        set.encoding = if size_hint <= limits.listpack_entries {
            SetEncoding::Listpack
        } else {
            SetEncoding::Hashtable
        };
        set.form = Form::Packed(Packed::new());
        set
    }

    /// An empty set with an encoding that a command has chosen.
    pub(crate) fn with_encoding(encoding: SetEncoding) -> Self {
        let form = match encoding {
            SetEncoding::Intset => Form::Ints(IntSet::default()),
            SetEncoding::Listpack | SetEncoding::Hashtable => Form::Packed(Packed::new()),
        };
        Set { form, encoding }
    }

    /// Gives a set that a command has just computed the encoding `intset` if it has integers only,
    /// and not too many.
    pub(crate) fn become_intset(&mut self, limits: SetLimits) {
        let fits = self.view().len() <= limits.intset_entries;
        if fits && self.view().iter().all(|member| member.int().is_some()) {
            self.encoding = SetEncoding::Intset;
            if self.view().len() <= INTSET_ENTRIES {
                self.become_ints();
            }
        }
    }

    /// Gives a set that a command has just computed the encoding `hashtable`.
    pub(crate) fn become_hashtable(&mut self, seed: Seed) {
        self.encoding = SetEncoding::Hashtable;
        self.reform(seed);
    }

    /// Takes over a small set that was kept elsewhere, as [`Set::small`] gave it out.
    pub(crate) fn from_small(kind: SmallSet, bytes: Vec<u8>) -> Self {
        let form = if kind.ints {
            Form::Ints(IntSet::from_bytes(bytes))
        } else {
            Form::Packed(Packed::from_bytes(bytes))
        };
        Set {
            form,
            encoding: kind.encoding,
        }
    }

    /// The bytes of a small set, and how to read them.
    pub(crate) fn small(&self) -> Option<(SmallSet, &[u8])> {
        let (ints, bytes) = match &self.form {
            Form::Ints(ints) => (true, ints.bytes()),
            Form::Packed(block) => (false, block.view().bytes()),
            Form::Table(_) => return None,
        };
        let encoding = self.encoding;
        Some((SmallSet { ints, encoding }, bytes))
    }

    /// The buffer of a small set, to be used again.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        match self.form {
            Form::Ints(ints) => Some(ints.into_bytes()),
            Form::Packed(block) => Some(block.into_bytes()),
            Form::Table(_) => None,
        }
    }

    #[inline]
    pub(crate) fn view(&self) -> SetRef<'_> {
        let form = match &self.form {
            Form::Ints(ints) => FormRef::Ints(ints.view()),
            Form::Packed(block) => FormRef::Packed(block.view()),
            Form::Table(table) => FormRef::Table(table),
        };
        SetRef {
            form,
            encoding: self.encoding,
        }
    }

    /// What the set takes from the heap, besides its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.form {
            Form::Ints(ints) => ints.heap_bytes(),
            Form::Packed(block) => block.heap_bytes(),
            Form::Table(table) => table.heap_bytes(),
        }
    }

    /// Lets the encoding follow the number of members a command is going to add.
    pub(crate) fn prepare(&mut self, size_hint: usize, limits: SetLimits) {
        let limit = match self.encoding {
            SetEncoding::Intset => limits.intset_entries,
            SetEncoding::Listpack => limits.listpack_entries,
            SetEncoding::Hashtable => return,
        };
        if size_hint > limit {
            self.encoding = SetEncoding::Hashtable;
        }
    }

    /// Adds a member and says whether it is new. The seed is that of the table the set may become.
    pub(crate) fn add(&mut self, member: &[u8], limits: SetLimits, seed: Seed) -> bool {
        let elem = Elem::parse(member);
        if let Form::Table(table) = &mut self.form
            && self.encoding == SetEncoding::Hashtable
        {
            return table.insert(elem);
        }
        if self.view().contains_elem(elem) {
            return false;
        }
        self.rename_before(elem, member.len(), limits);
        self.reform_before(elem, seed);
        match &mut self.form {
            Form::Ints(ints) => {
                if let Elem::Int(int) = elem {
                    ints.insert(int);
                }
            }
            Form::Packed(block) => block.push_back(elem),
            Form::Table(table) => {
                table.insert(elem);
            }
        }
        if self.encoding == SetEncoding::Intset && self.view().len() > limits.intset_entries {
            // Never a listpack, however few members that would be.
            self.encoding = SetEncoding::Hashtable;
            self.reform(seed);
        }
        true
    }

    /// Removes a member and says whether it was there.
    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        self.remove_elem(Elem::parse(member))
    }

    pub(crate) fn remove_elem(&mut self, member: Elem<'_>) -> bool {
        match &mut self.form {
            Form::Ints(ints) => member.int().is_some_and(|int| ints.remove(int)),
            Form::Packed(block) => {
                let found = block.view().find(member, block.view().start(), 1);
                if let Some(pos) = found {
                    block.remove(pos);
                }
                found.is_some()
            }
            Form::Table(table) => {
                let removed = table.remove(member);
                if removed && table.len() <= SHRINK_LEN && self.heap_bytes() <= super::SHRINK_BYTES
                {
                    if self.encoding == SetEncoding::Intset {
                        self.become_ints();
                    } else {
                        self.become_packed();
                    }
                }
                removed
            }
        }
    }

    /// Redis's choice of an encoding before a new member is added.
    fn rename_before(&mut self, elem: Elem<'_>, len: usize, limits: SetLimits) {
        let fits = self.view().len() < limits.listpack_entries
            && len <= limits.listpack_value_bytes
            && listpack_has_room(self.stored_bytes(), len);
        match self.encoding {
            SetEncoding::Intset if elem.int().is_none() => {
                let fits = fits && self.longest_int() <= limits.listpack_value_bytes;
                self.encoding = listpack_if(fits);
            }
            SetEncoding::Listpack => self.encoding = listpack_if(fits),
            SetEncoding::Intset | SetEncoding::Hashtable => {}
        }
    }

    /// The bytes of a small set, or what the table takes.
    fn stored_bytes(&self) -> usize {
        match &self.form {
            Form::Ints(ints) => ints.bytes().len(),
            Form::Packed(block) => block.view().bytes().len(),
            Form::Table(table) => table.heap_bytes(),
        }
    }

    /// The text length of the longest integer of an intset.
    fn longest_int(&self) -> usize {
        match &self.form {
            Form::Ints(ints) => {
                let ints = ints.view();
                let last = ints.len().checked_sub(1).and_then(|last| ints.get(last));
                let ends = [ints.get(0), last];
                let digits = ends
                    .into_iter()
                    .flatten()
                    .map(|int| number::format_i64(int).len());
                digits.max().unwrap_or(0)
            }
            Form::Packed(_) | Form::Table(_) => LONGEST_INT,
        }
    }

    /// Changes the form so that it can take a further member.
    fn reform_before(&mut self, elem: Elem<'_>, seed: Seed) {
        if let Form::Ints(_) = self.form
            && (elem.int().is_none() || self.encoding == SetEncoding::Listpack)
        {
            self.become_packed();
        }
        let added = if let Elem::Bytes(bytes) = elem {
            bytes.len()
        } else {
            9
        };
        self.reform_for(1, added, seed);
    }

    /// Changes the form if name and size demand it.
    fn reform(&mut self, seed: Seed) {
        if let Form::Ints(_) = self.form
            && self.encoding == SetEncoding::Listpack
        {
            self.become_packed();
        }
        self.reform_for(0, 0, seed);
    }

    /// Makes a small set a table if it is too large with so many members and bytes more.
    fn reform_for(&mut self, members: usize, bytes: usize, seed: Seed) {
        match &self.form {
            Form::Ints(ints) => {
                let limit = match self.encoding {
                    SetEncoding::Intset => INTSET_ENTRIES,
                    SetEncoding::Listpack | SetEncoding::Hashtable => INT_ENTRIES,
                };
                if ints.view().len() + members > limit {
                    let mut table = Table::new(seed);
                    for int in ints.view().iter() {
                        table.insert(Elem::Int(int));
                    }
                    self.form = Form::Table(Box::new(table));
                }
            }
            Form::Packed(block) => {
                let view = block.view();
                let listpack = self.encoding == SetEncoding::Listpack;
                if !stays_packed(view.len() + members, view.bytes().len() + bytes, listpack) {
                    self.form = Form::Table(Box::new(Table::from_packed(view, seed)));
                }
            }
            Form::Table(_) => {}
        }
    }

    fn become_packed(&mut self) {
        let mut block = Packed::new();
        self.view()
            .iter()
            .for_each(|member| block.push_back(member));
        self.form = Form::Packed(block);
    }

    fn become_ints(&mut self) {
        let mut ints = IntSet::default();
        for int in self.view().iter().filter_map(Elem::int) {
            ints.insert(int);
        }
        self.form = Form::Ints(ints);
    }
}

fn listpack_if(fits: bool) -> SetEncoding {
    if fits {
        SetEncoding::Listpack
    } else {
        SetEncoding::Hashtable
    }
}

impl Members for Set {
    fn hash(&self, member: &[u8]) -> Option<u64> {
        match &self.form {
            Form::Table(table) => Some(table.hash(member)),
            _ => None,
        }
    }

    fn steps(&self) -> usize {
        2
    }

    fn lines(&self, hash: u64, step: Step, load: &mut dyn FnMut(*const u8)) {
        if let Form::Table(table) = &self.form {
            table.lines(hash, step, load);
        }
    }
}

impl Slices for Set {
    fn pieces(&self) -> usize {
        match &self.form {
            Form::Ints(_) | Form::Packed(_) => 1,
            Form::Table(table) => table.pieces(),
        }
    }

    fn drop_piece(&mut self) -> bool {
        match &mut self.form {
            Form::Ints(_) | Form::Packed(_) => false,
            Form::Table(table) => table.drop_piece(),
        }
    }
}

const _: () = super::assert_send::<Set>();

#[cfg(test)]
mod tests;
