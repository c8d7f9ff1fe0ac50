//! One key with its value, deadline and access clock, in one allocation behind a thin pointer.
//!
//! ```text
//!  8 bytes   header: flags (8 bits), access clock (24), key length (15), mark of a snapshot (1),
//!            inline value length (13), form of a small collection (3)
//! [8 bytes   deadline in unix milliseconds, when the flags say so]
//!  n bytes   the key; if longer than 32,767 bytes, pointer and length (16 bytes) of its own box
//!  m bytes   the value: inline bytes, or an i64, or the pointer of a boxed `Value` (8 bytes)
//! ```
//!
//! This is the one module of the crate with `unsafe`, and the reason is this layout. A hash table
//! of a million keys pays for every word: safe Rust would need a fat pointer (16 bytes instead of 8
//! per slot), or a box per part (three allocations, and two more cache misses on a lookup). A
//! 16-byte key with a 16-byte value takes 40 bytes here, and 48 with a deadline.
//!
//! The value lies last, so that replacing it is a `realloc` at most, and nothing at all when the
//! size stays the same. An entry reads no clock, parses no numbers and accesses no other entry. It is `Send` and deliberately not `Sync`:
//! the access clock is written through a shared reference.

#![expect(
    unsafe_code,
    reason = "a variable-sized allocation behind a thin pointer, see the module's header"
)]
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::fmt;
use std::ptr::{self, NonNull};

use self::header::{
    BIG_KEY, DEADLINE, HEADER, Header, INLINE_KEY_MAX, KIND, KIND_BOXED, KIND_INLINE, KIND_INT,
    RAW, TYPE, Tail, WORD,
};
use super::value::{NewValue, StringRef, Type, Value, ValueRef};
use crate::base::size_class::block_bytes;

mod header;

/// The longest string kept inside its entry.
///
/// Below it, a read costs no further cache miss and a write at most one `realloc`, whose copy is
/// cheaper than a second allocation. Above it, the two extra allocations of a boxed value (about 60
/// bytes) are under 6% of the string, and repeated APPENDs want a `Vec` that grows by doubling
/// instead of copying the whole each time.
pub(crate) const INLINE_MAX: usize = 1024;
/// The most bytes of a small collection inside its entry. Editing it copies them to a buffer and back.
const SMALL_MAX: usize = 6 * 1024;

const CACHE_LINE: usize = 64;

/// Whether a small collection of so many bytes is to lie inside the entry of a key: when it is short, or when the block
/// that the allocator has for it has room for the rest of the entry. That room costs nothing, and a box would cost
/// about 80 bytes.
pub(crate) fn lies_inline(key: &[u8], bytes: &[u8]) -> bool {
    let whole = bytes.len() + HEADER + WORD + key.len();
    bytes.len() <= INLINE_MAX
        || bytes.len() <= SMALL_MAX && block_bytes(whole) == block_bytes(bytes.len())
}

/// An owning pointer to a key and all that belongs to it. `Option<Entry>` is one word.
pub(crate) struct Entry(NonNull<u8>);

// SAFETY: an entry owns its allocation, its boxed key and its boxed value alone, and all of them
// are `Send`.
unsafe impl Send for Entry {}

impl Entry {
    /// A new entry. Only the low 24 bits of `clock` are kept.
    pub(crate) fn new(key: &[u8], value: NewValue<'_>, deadline: Option<u64>, clock: u32) -> Entry {
        let value = Tail::new(value);
        let mut flags = value.flags();
        if deadline.is_some() {
            flags |= DEADLINE;
        }
        let inline_key_len = if key.len() > INLINE_KEY_MAX {
            flags |= BIG_KEY;
            0
        } else {
            key.len() as u16
        };
        let header = Header::new(flags, clock, inline_key_len, value.len_and_form());

        let mut entry = Entry(allocate(header.layout()));
        entry.write_header(header);
        if let Some(deadline) = deadline {
            entry.write_deadline(deadline);
        }
        if header.has(BIG_KEY) {
            let big: *mut [u8] = Box::into_raw(Box::from(key));
            // SAFETY: the layout has BIG_KEY_SIZE bytes at the key's offset for exactly these two
            // words.
            unsafe {
                let at = entry.at(header.key_offset());
                at.cast::<*mut u8>().write_unaligned(big.cast());
                at.add(WORD).cast::<usize>().write_unaligned(key.len());
            }
        } else {
            // SAFETY: the layout has `key.len()` bytes at the key's offset, and a fresh allocation
            // overlaps nothing.
            unsafe {
                ptr::copy_nonoverlapping(key.as_ptr(), entry.at(header.key_offset()), key.len())
            };
        }
        entry.write_value(header, value);
        entry
    }

    /// Has the first two cache lines of the entry loaded: header, a short key and a short value.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch_address(self.0.as_ptr());
        prefetch_address(self.at(CACHE_LINE));
    }

    /// Has the boxed value loaded, if there is one. Reads the entry's header.
    #[inline]
    pub(super) fn prefetch_boxed(&self) {
        if let Some(value) = self.boxed_pointer() {
            prefetch_address(value.as_ptr().cast());
        }
    }

    /// The key.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        let header = self.header();
        if header.has(BIG_KEY) {
            return self.big_key(header);
        }
        // SAFETY: these bytes were written by `new`, lie within the allocation, and change only
        // through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.at(header.key_offset()), header.inline_key_len()) }
    }

    /// Whether this is the entry of a key. Most keys have 8 to 16 bytes, and are compared as two words that overlap.
    #[inline]
    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        let own = self.key();
        if own.len() != key.len() {
            return false;
        }
        let ends = |bytes: &[u8]| Some((*bytes.first_chunk::<8>()?, *bytes.last_chunk::<8>()?));
        match (ends(own), ends(key)) {
            (Some(own_ends), Some(ends)) if own.len() <= 16 => own_ends == ends,
            _ => own == key,
        }
    }

    /// What the key holds.
    pub(crate) fn value(&self) -> ValueRef<'_> {
        if let Some(string) = self.string() {
            return ValueRef::String(string);
        }
        let header = self.header();
        match self.boxed() {
            Some(value) => value.view(),
            None => ValueRef::small(header.type_of(), header.form(), self.inline(header)),
        }
    }

    /// The type of the value.
    #[inline]
    pub(crate) fn type_of(&self) -> Type {
        self.header().type_of()
    }

    /// The value if it is a string.
    #[inline]
    pub(crate) fn string(&self) -> Option<StringRef<'_>> {
        let header = self.header();
        if header.flags() & TYPE != 0 {
            return None;
        }
        Some(match header.kind() {
            KIND_INLINE => StringRef::Bytes {
                bytes: self.inline(header),
                raw: header.has(RAW),
                shared: None,
            },
            KIND_INT => {
                // SAFETY: the kind says that `write_value` put an i64 here.
                StringRef::Int(unsafe {
                    self.at(header.value_offset())
                        .cast::<i64>()
                        .read_unaligned()
                })
            }
            _ => self.boxed()?.view().string()?,
        })
    }

    /// The value if it is a small collection of this type: its form and its bytes.
    #[inline]
    pub(crate) fn small(&self, type_of: Type) -> Option<(u8, &[u8])> {
        let header = self.header();
        (header.kind() == KIND_INLINE && header.type_of() == type_of)
            .then(|| (header.form(), self.inline(header)))
    }

    /// The bytes that lie in the entry itself. The header must say that there are some.
    #[inline]
    fn inline(&self, header: Header) -> &[u8] {
        debug_assert_eq!(header.kind(), KIND_INLINE);
        // SAFETY: these bytes were written by `write_value`, lie within the allocation, and change
        // only through `&mut self`.
        unsafe {
            std::slice::from_raw_parts(self.at(header.value_offset()), header.inline_value_len())
        }
    }

    /// When the key expires, in unix milliseconds.
    #[inline]
    pub(crate) fn deadline(&self) -> Option<u64> {
        // SAFETY: the flag says that `write_deadline` put a u64 behind the header, which is aligned
        // like it.
        self.header()
            .has(DEADLINE)
            .then(|| unsafe { self.at(HEADER).cast::<u64>().read() })
    }

    /// The last value given to `set_access_clock`: seconds, 24 bits of them.
    pub(crate) fn access_clock(&self) -> u32 {
        self.header().clock()
    }

    /// Notes an access. It takes a shared reference, so that a read is no write to a thread that copies
    /// before writes.
    pub(crate) fn set_access_clock(&self, clock: u32) {
        self.write_header(self.header().with_clock(clock));
    }

    /// Whether the mark of a running snapshot is set.
    #[inline]
    pub(super) fn is_copied(&self) -> bool {
        self.header().is_copied()
    }

    /// Sets or clears the mark of a running snapshot: it has a copy of this entry already, or the
    /// entry is younger than it. As the access clock, it is written through a shared reference.
    pub(super) fn set_copied(&self, copied: bool) {
        self.write_header(self.header().with_copied(copied));
    }

    /// Puts another value in the place of this one, and keeps key, deadline and clock. A boxed
    /// value that was here comes back, so that the caller decides where it is dropped.
    #[inline]
    pub(crate) fn replace_value(&mut self, value: NewValue<'_>) -> Option<Value> {
        let value = Tail::new(value);
        let old_value = self.take_boxed();
        let old = self.header();
        let new = old.with_value(&value);
        // Most overwrites are by a value of the same kind and length.
        if new != old {
            self.resize(old.layout(), new.layout());
            self.write_header(new);
        }
        self.write_value(new, value);
        old_value
    }

    /// Writes a short string over one of the same length; says whether there was one.
    #[inline]
    pub(crate) fn overwrite(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > INLINE_MAX {
            return false;
        }
        let value = Tail::Inline { bytes, raw: false };
        let header = self.header();
        let is_alike = header.with_value(&value) == header;
        if is_alike {
            self.write_value(header, value);
        }
        is_alike
    }

    /// Stores a number in place if the value is one already; says whether it was.
    #[inline]
    pub(crate) fn set_int(&mut self, number: i64) -> bool {
        let header = self.header();
        if header.kind() != KIND_INT {
            return false;
        }
        // SAFETY: the kind says that there are eight bytes for an i64 here.
        unsafe {
            self.at(header.value_offset())
                .cast::<i64>()
                .write_unaligned(number)
        };
        true
    }

    /// Changes the bytes of a string, whatever form they have now. It shows as raw from then on.
    /// The value must be a string.
    pub(crate) fn edit_bytes(&mut self, edit: impl FnOnce(&mut Vec<u8>)) {
        if let Some(bytes) = self.value_bytes_mut() {
            edit(bytes);
            return self.boxed_mut().map_or((), Value::share_if_long);
        }
        let mut bytes = match self.string() {
            Some(StringRef::Int(number)) => {
                crate::base::number::format_i64(number).as_ref().to_vec()
            }
            Some(StringRef::Bytes { bytes, .. }) => bytes.to_vec(),
            None => return,
        };
        edit(&mut bytes);
        if bytes.len() > INLINE_MAX {
            self.replace_value(NewValue::Boxed(Value::of_bytes(bytes)));
        } else {
            self.replace_value(NewValue::RawBytes(&bytes));
        }
    }

    /// Sets, changes or removes the deadline. In place when there is one already.
    pub(crate) fn set_deadline(&mut self, deadline: Option<u64>) {
        let old = self.header();
        match deadline {
            Some(deadline) => {
                if !old.has(DEADLINE) {
                    let new = old.with_flags(old.flags() | DEADLINE);
                    self.resize(old.layout(), new.layout());
                    // SAFETY: both ranges lie within the allocation, which was grown for the
                    // further word.
                    unsafe {
                        ptr::copy(self.at(HEADER), self.at(HEADER + WORD), old.size() - HEADER)
                    };
                    self.write_header(new);
                }
                self.write_deadline(deadline);
            }
            None if old.has(DEADLINE) => {
                let new = old.with_flags(old.flags() & !DEADLINE);
                // SAFETY: both ranges lie within the allocation, which shrinks only after the move.
                unsafe { ptr::copy(self.at(HEADER + WORD), self.at(HEADER), new.size() - HEADER) };
                self.write_header(new);
                self.resize(old.layout(), new.layout());
            }
            None => {}
        }
    }

    /// The boxed value, if the value has a box.
    pub(crate) fn boxed(&self) -> Option<&Value> {
        // SAFETY: the pointer came from `Box::into_raw`, this entry owns it alone, and the borrow
        // lasts as long as ours.
        self.boxed_pointer()
            .map(|pointer| unsafe { pointer.as_ref() })
    }

    /// The boxed value, to change it in place.
    pub(crate) fn boxed_mut(&mut self) -> Option<&mut Value> {
        // SAFETY: as in `boxed`, and `&mut self` makes the borrow the only one.
        self.boxed_pointer()
            .map(|mut pointer| unsafe { pointer.as_mut() })
    }

    /// The bytes of a boxed string, to change them in place (APPEND, SETRANGE).
    pub(crate) fn value_bytes_mut(&mut self) -> Option<&mut Vec<u8>> {
        match self.boxed_mut()? {
            Value::Bytes(bytes) => Some(bytes),
            Value::Shared(bytes) => Some(bytes.make_mut()),
            _ => None,
        }
    }

    /// The same value, deadline and clock under another key. A boxed value moves without being
    /// copied.
    pub(crate) fn with_key(mut self, key: &[u8]) -> Entry {
        let (deadline, clock) = (self.deadline(), self.access_clock());
        if let Some(value) = self.take_boxed() {
            return Entry::new(key, NewValue::Boxed(value), deadline, clock);
        }
        Entry::new(key, self.inline_value(), deadline, clock)
    }

    /// A copy of value and deadline under another key.
    pub(crate) fn duplicate(&self, key: &[u8], clock: u32) -> Entry {
        let value = match self.boxed() {
            Some(value) => NewValue::Boxed(value.clone()),
            None => self.inline_value(),
        };
        Entry::new(key, value, self.deadline(), clock)
    }

    /// The value of an entry that keeps it inside, that is, one without a boxed value.
    pub(super) fn inline_value(&self) -> NewValue<'_> {
        let header = self.header();
        match self.string() {
            Some(StringRef::Int(number)) => NewValue::Int(number),
            Some(StringRef::Bytes { bytes, raw, .. }) if raw => NewValue::RawBytes(bytes),
            Some(StringRef::Bytes { bytes, .. }) => NewValue::Bytes(bytes),
            None => NewValue::Small(header.type_of(), header.form(), self.inline(header)),
        }
    }

    /// What this entry takes from the heap, its out-of-line parts included, in the sizes that
    /// allocators hand out.
    pub(crate) fn heap_bytes(&self) -> usize {
        let header = self.header();
        let key = if header.has(BIG_KEY) {
            block_bytes(self.key().len())
        } else {
            0
        };
        let value = self.boxed().map_or(0, |value| {
            block_bytes(size_of::<Value>()) + value.heap_bytes()
        });
        block_bytes(header.layout().size()) + key + value
    }

    /// Moves this entry, the box of its value and a string in that box to other blocks of the heap, each of them only
    /// if `is_sparse` says so of the page of its present block. Returns how many were moved. Their sizes stay the same.
    /// A long key, a string with a reference count and a collection outside of the entry stay where they are.
    pub(super) fn relocate(&mut self, is_sparse: &mut dyn FnMut(*const u8) -> bool) -> usize {
        let mut moved = 0;
        if is_sparse(self.0.as_ptr()) {
            let layout = self.header().layout();
            let block = allocate(layout);
            // SAFETY: both blocks have this layout, the new one is fresh, and `&mut self` says that nothing borrows
            // from the old one, which is not used any more.
            unsafe {
                ptr::copy_nonoverlapping(self.0.as_ptr(), block.as_ptr(), layout.size());
                dealloc(self.0.as_ptr(), layout);
            }
            self.0 = block;
            moved += 1;
        }
        if let Some(old) = self.boxed_pointer()
            && is_sparse(old.as_ptr().cast())
        {
            let block = Box::into_raw(Box::<Value>::new_uninit()).cast::<Value>();
            // SAFETY: the value is moved to a fresh box bit by bit, and the old box is freed without dropping it. The
            // header says that the word at the value's offset is the pointer of the box.
            unsafe {
                ptr::copy_nonoverlapping(old.as_ptr(), block, 1);
                dealloc(old.as_ptr().cast(), Layout::new::<Value>());
                let at = self.at(self.header().value_offset());
                at.cast::<*mut Value>().write_unaligned(block);
            }
            moved += 1;
        }
        if let Some(Value::Bytes(bytes)) = self.boxed_mut()
            && is_sparse(bytes.as_ptr())
        {
            let mut block = Vec::with_capacity(bytes.capacity());
            block.extend_from_slice(bytes);
            *bytes = block;
            moved += 1;
        }
        moved
    }

    /// A pointer `offset` bytes into the allocation.
    ///
    /// Sound only for offsets within the allocation, which is why the callers' safety comments
    /// speak of the layout.
    #[inline]
    fn at(&self, offset: usize) -> *mut u8 {
        self.0.as_ptr().wrapping_add(offset)
    }

    #[inline]
    fn header(&self) -> Header {
        // SAFETY: every allocation starts with a header, aligned to 8, and no reference to it is
        // ever made.
        unsafe { self.0.cast::<Header>().read() }
    }

    fn write_header(&self, header: Header) {
        // SAFETY: every allocation starts with a header, aligned to 8. No reference to it is ever
        // made, and an entry is not `Sync`, so writing through a shared reference races with
        // nothing and invalidates nothing.
        unsafe { self.0.cast::<Header>().write(header) };
    }

    /// The header must say already that there is a deadline.
    fn write_deadline(&mut self, deadline: u64) {
        debug_assert!(self.header().has(DEADLINE));
        // SAFETY: with the flag, the layout has a word behind the header, aligned to 8.
        unsafe { self.at(HEADER).cast::<u64>().write(deadline) };
    }

    /// Writes the value the entry's header describes already. A boxed value that was here before
    /// has been taken out.
    fn write_value(&mut self, header: Header, value: Tail<'_>) {
        debug_assert!(header == self.header());
        debug_assert_eq!(header.flags() & (KIND | RAW | TYPE), value.flags());
        let at = self.at(header.value_offset());
        match value {
            // SAFETY: the layout has as many bytes here as the header says, and `&mut self` keeps
            // `bytes` from being part of this entry.
            Tail::Inline { bytes, .. } | Tail::Small { bytes, .. } => unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len())
            },
            // SAFETY: for this kind, the layout has a word here.
            Tail::Int(number) => unsafe { at.cast::<i64>().write_unaligned(number) },
            // SAFETY: for this kind, the layout has a word here.
            Tail::Boxed(value) => unsafe {
                at.cast::<*mut Value>()
                    .write_unaligned(Box::into_raw(value))
            },
        }
    }

    /// Brings the allocation from one layout to another; the bytes both have are kept.
    fn resize(&mut self, old: Layout, new: Layout) {
        if old.size() == new.size() {
            return;
        }
        // SAFETY: the allocation has the layout `old`, by which it was asked for, and the new size
        // is never zero because of the header, and far from overflowing.
        let pointer = unsafe { realloc(self.0.as_ptr(), old, new.size()) };
        let Some(pointer) = NonNull::new(pointer) else {
            handle_alloc_error(new)
        };
        self.0 = pointer;
    }

    #[cold]
    fn big_key(&self, header: Header) -> &[u8] {
        let (pointer, len) = self.big_key_parts(header);
        // SAFETY: pointer and length are those of a box that this entry owns alone and never writes
        // to.
        unsafe { std::slice::from_raw_parts(pointer, len) }
    }

    /// The header must say that the key is a big one.
    fn big_key_parts(&self, header: Header) -> (*mut u8, usize) {
        debug_assert!(header.has(BIG_KEY));
        let at = self.at(header.key_offset());
        // SAFETY: with the flag, `new` wrote exactly these two words here.
        unsafe {
            (
                at.cast::<*mut u8>().read_unaligned(),
                at.add(WORD).cast::<usize>().read_unaligned(),
            )
        }
    }

    fn boxed_pointer(&self) -> Option<NonNull<Value>> {
        let header = self.header();
        if header.kind() != KIND_BOXED {
            return None;
        }
        // SAFETY: the kind says that `write_value` put the pointer of a box here, which is never
        // null.
        Some(unsafe {
            self.at(header.value_offset())
                .cast::<NonNull<Value>>()
                .read_unaligned()
        })
    }

    /// Takes the boxed value out and leaves the number zero, which has the same size, so that the
    /// layout holds.
    fn take_boxed(&mut self) -> Option<Value> {
        let pointer = self.boxed_pointer()?;
        let header = self.header();
        self.write_header(header.with_value(&Tail::Int(0)));
        self.set_int(0);
        // SAFETY: the pointer came from `Box::into_raw`, and the entry has just forgotten it.
        Some(*unsafe { Box::from_raw(pointer.as_ptr()) })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        drop(self.take_boxed());
        let header = self.header();
        if header.has(BIG_KEY) {
            let (pointer, len) = self.big_key_parts(header);
            // SAFETY: these are the parts of a box made by `new`, and nothing uses them after this.
            drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(pointer, len)) });
        }
        // SAFETY: the allocation has the layout its header describes, and nothing uses it after
        // this.
        unsafe { dealloc(self.0.as_ptr(), header.layout()) };
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key().escape_ascii().to_string())
            .field("value", &self.value())
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

/// Has the cache line of `value` loaded, without waiting for it.
#[inline]
pub(super) fn prefetch<T>(value: &T) {
    prefetch_address(ptr::from_ref(value).cast());
}

/// Has all cache lines of `value` loaded, without waiting for them.
#[inline]
pub(super) fn prefetch_whole<T>(value: &T) {
    let address = ptr::from_ref(value).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(CACHE_LINE) {
        prefetch_address(address.wrapping_add(offset));
    }
}

/// Has the cache line of an address loaded, without waiting for it.
#[inline]
#[cfg_attr(
    not(all(target_arch = "x86_64", not(miri))),
    expect(unused_variables, reason = "only x86-64 has a stable prefetch")
)]
pub(super) fn prefetch_address(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing the program can see and never faults, whatever the
        // address. SSE is part of every x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // SAFETY: the layout's size is never zero, because an entry has a header.
    let pointer = unsafe { alloc(layout) };
    NonNull::new(pointer).unwrap_or_else(|| handle_alloc_error(layout))
}

#[cfg(test)]
mod tests;
