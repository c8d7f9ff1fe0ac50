//! A hash: fields with values. Small ones are one packed block of pairs in the order of insertion,
//! large ones a [`Table`].
//!
//! The stored form follows size. The name OBJECT ENCODING shows follows Redis's limits and is kept
//! beside it: a hash with one long value is `hashtable` by name and packed by form.

use super::packed::{Elem, Packed, PackedView};
use super::pages::Seed;
use super::sample::{Selection, draw_distinct, is_sparse};
use super::table::{Table, next_entry};
use super::{Members, Slices, Step, listpack_has_room, stays_packed};

/// A table with no more fields than this becomes a packed block again.
const SHRINK_LEN: usize = 16;

/// `hash-max-listpack-entries` and `hash-max-listpack-value`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashLimits {
    pub(crate) entries: usize,
    pub(crate) value_bytes: usize,
}

impl Default for HashLimits {
    fn default() -> Self {
        HashLimits {
            entries: 512,
            value_bytes: 64,
        }
    }
}

/// What OBJECT ENCODING shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashEncoding {
    Listpack,
    Hashtable,
}

impl HashEncoding {
    pub(crate) fn name(self) -> &'static str {
        match self {
            HashEncoding::Listpack => "listpack",
            HashEncoding::Hashtable => "hashtable",
        }
    }
}

/// A look at a hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashRef<'a> {
    form: FormRef<'a>,
    encoding: HashEncoding,
}

#[derive(Clone, Copy, Debug)]
enum FormRef<'a> {
    Packed(PackedView<'a>),
    Table(&'a Table<2>),
}

impl<'a> HashRef<'a> {
    /// Looks at a small hash that is kept elsewhere as [`Hash::small`] gave it out.
    pub(crate) fn from_small(encoding: HashEncoding, bytes: &'a [u8]) -> Self {
        HashRef {
            form: FormRef::Packed(PackedView::new(bytes)),
            encoding,
        }
    }

    pub(crate) fn encoding(self) -> HashEncoding {
        self.encoding
    }

    /// How many fields there are.
    #[inline]
    pub(crate) fn len(self) -> usize {
        match self.form {
            FormRef::Packed(view) => view.len() / 2,
            FormRef::Table(table) => table.len(),
        }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value of a field.
    #[inline]
    pub(crate) fn get(self, field: &[u8]) -> Option<Elem<'a>> {
        let field = Elem::parse(field);
        match self.form {
            FormRef::Packed(view) => view.at(view.next(view.find(field, view.start(), 2)?)?),
            FormRef::Table(table) => table.get(field),
        }
    }

    pub(crate) fn contains(self, field: &[u8]) -> bool {
        self.get(field).is_some()
    }

    /// All fields with their values, in the order of insertion while the hash is packed.
    pub(crate) fn iter(self) -> impl Iterator<Item = (Elem<'a>, Elem<'a>)> {
        let (packed, table) = match self.form {
            FormRef::Packed(view) => (Some(view), None),
            FormRef::Table(table) => (None, Some(table.views())),
        };
        let views = packed.into_iter().chain(table.into_iter().flatten());
        views.flat_map(PackedView::pairs)
    }

    /// Visits the fields at one position of a scan and returns the next cursor, 0 after the last. A
    /// field that is present from the first call to the last is visited at least once. A packed
    /// hash is visited in one call.
    pub(crate) fn scan(self, cursor: u64, visit: &mut dyn FnMut(Elem<'_>, Elem<'_>)) -> u64 {
        match self.form {
            FormRef::Packed(view) => {
                view.pairs().for_each(|(field, value)| visit(field, value));
                0
            }
            FormRef::Table(table) => table.scan(cursor, &mut |[field, value]| visit(field, value)),
        }
    }

    /// Any field with its value, each with the same probability.
    pub(crate) fn random(self, rng: &mut fastrand::Rng) -> Option<(Elem<'a>, Elem<'a>)> {
        self.draw(rng).map(|(pair, _)| pair)
    }

    /// Visits `count` different fields, or all if there are fewer; every choice has the same
    /// probability.
    pub(crate) fn sample(
        self,
        count: usize,
        rng: &mut fastrand::Rng,
        visit: &mut dyn FnMut(Elem<'a>, Elem<'a>),
    ) {
        if is_sparse(self.len(), count) {
            return draw_distinct(count, |seen| {
                if let Some(((field, value), number)) = self.draw(rng)
                    && seen.insert(number)
                {
                    visit(field, value);
                }
            });
        }
        let mut selection = Selection::new(self.len(), count);
        for (field, value) in self.iter() {
            if selection.takes(rng) {
                visit(field, value);
            }
        }
    }

    /// A random pair, and a number that is unique to it.
    fn draw(self, rng: &mut fastrand::Rng) -> Option<((Elem<'a>, Elem<'a>), usize)> {
        match self.form {
            FormRef::Packed(view) => {
                let index = (!view.is_empty()).then(|| rng.usize(..view.len() / 2))?;
                let mut elems = view.iter_from(view.seek(index * 2)?);
                let [field, value] = next_entry(&mut elems)?;
                Some(((field, value), index))
            }
            FormRef::Table(table) => {
                let ([field, value], number) = table.random(rng)?;
                Some(((field, value), number))
            }
        }
    }
}

/// A hash.
#[derive(Clone, Debug)]
pub(crate) struct Hash {
    form: Form,
    encoding: HashEncoding,
}

#[derive(Clone, Debug)]
enum Form {
    Packed(Packed),
    Table(Box<Table<2>>),
}

impl Hash {
    pub(crate) fn new() -> Self {
        Hash::from_small(HashEncoding::Listpack, Vec::new())
    }

    /// Takes over a small hash that was kept elsewhere, as [`Hash::small`] gave it out.
    pub(crate) fn from_small(encoding: HashEncoding, bytes: Vec<u8>) -> Self {
        Hash {
            form: Form::Packed(Packed::from_bytes(bytes)),
            encoding,
        }
    }

    /// The bytes of a small hash, which together with the encoding are the whole of it.
    pub(crate) fn small(&self) -> Option<(HashEncoding, &[u8])> {
        match &self.form {
            Form::Packed(block) => Some((self.encoding, block.view().bytes())),
            Form::Table(_) => None,
        }
    }

    /// The buffer of a small hash, to be used again.
    pub(crate) fn into_buffer(self) -> Option<Vec<u8>> {
        match self.form {
            Form::Packed(block) => Some(block.into_bytes()),
            Form::Table(_) => None,
        }
    }

    #[inline]
    pub(crate) fn view(&self) -> HashRef<'_> {
        let form = match &self.form {
            Form::Packed(block) => FormRef::Packed(block.view()),
            Form::Table(table) => FormRef::Table(table),
        };
        HashRef {
            form,
            encoding: self.encoding,
        }
    }

    /// What the hash takes from the heap, besides its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(block) => block.heap_bytes(),
            Form::Table(table) => table.heap_bytes(),
        }
    }

    /// The bytes of the packed block, or what the table takes.
    #[inline]
    fn stored_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(block) => block.view().bytes().len(),
            Form::Table(table) => table.heap_bytes(),
        }
    }

    /// Lets the encoding follow the arguments of a command, as Redis does before it sets anything:
    /// how many fields the command names, and its longest field or value.
    pub(crate) fn prepare(&mut self, fields: usize, longest: usize, limits: HashLimits) {
        if fields > limits.entries || longest > limits.value_bytes {
            self.encoding = HashEncoding::Hashtable;
        }
    }

    /// Sets a field and says whether it is new. The seed is that of the table the hash may become.
    #[inline]
    pub(crate) fn set(
        &mut self,
        field: &[u8],
        value: &[u8],
        limits: HashLimits,
        seed: Seed,
    ) -> bool {
        if self.encoding == HashEncoding::Listpack {
            let longest = field.len().max(value.len());
            let has_room = listpack_has_room(self.stored_bytes(), field.len() + value.len());
            if longest > limits.value_bytes || !has_room {
                self.encoding = HashEncoding::Hashtable;
            }
        }
        let (field, value) = (Elem::parse(field), Elem::parse(value));
        let block = match &mut self.form {
            Form::Table(table) => {
                let new = table.set(field, value);
                if table.len() > limits.entries {
                    self.encoding = HashEncoding::Hashtable;
                }
                return new;
            }
            Form::Packed(block) => block,
        };
        let view = block.view();
        let found = view.find(field, view.start(), 2);
        match found.and_then(|pos| view.next(pos)) {
            Some(at_value) => block.replace(at_value, value),
            None => {
                block.push_back(field);
                block.push_back(value);
            }
        }
        let view = block.view();
        if view.len() / 2 > limits.entries {
            self.encoding = HashEncoding::Hashtable;
        }
        let listpack = self.encoding == HashEncoding::Listpack;
        if !stays_packed(view.len() / 2, view.bytes().len(), listpack) {
            self.form = Form::Table(Box::new(Table::from_packed(view, seed)));
        }
        found.is_none()
    }

    /// Removes a field and says whether there was one.
    pub(crate) fn remove(&mut self, field: &[u8]) -> bool {
        let field = Elem::parse(field);
        match &mut self.form {
            Form::Packed(block) => {
                let view = block.view();
                let found = view.find(field, view.start(), 2);
                if let Some(pos) = found {
                    block.remove_many(pos, 2);
                }
                found.is_some()
            }
            Form::Table(table) => {
                let removed = table.remove(field);
                if removed && table.len() <= SHRINK_LEN {
                    self.shrink();
                }
                removed
            }
        }
    }

    /// Makes a table with few fields a packed block unless they are long.
    fn shrink(&mut self) {
        if self.heap_bytes() > super::SHRINK_BYTES {
            return;
        }
        let mut block = Packed::new();
        for (field, value) in self.view().iter() {
            block.push_back(field);
            block.push_back(value);
        }
        self.form = Form::Packed(block);
    }
}

impl Members for Hash {
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

impl Slices for Hash {
    fn pieces(&self) -> usize {
        match &self.form {
            Form::Packed(_) => 1,
            Form::Table(table) => table.pieces(),
        }
    }

    fn drop_piece(&mut self) -> bool {
        match &mut self.form {
            Form::Packed(_) => false,
            Form::Table(table) => table.drop_piece(),
        }
    }
}

const _: () = super::assert_send::<Hash>();

#[cfg(test)]
mod tests;
