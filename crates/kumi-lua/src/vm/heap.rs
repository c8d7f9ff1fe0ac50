//! The heap of one state: a slab per kind of object, the intern table of strings, and the account of bytes.
//!
//! Objects are named by index and freed only by the collector (`gc.rs`). Strings up to [`SHORT`] bytes are interned, so
//! that equal ones have equal indexes. Longer ones are interned only when one becomes a table key: [`Heap::canonical`].

use crate::base::proto::Proto;
use crate::base::table::Table;
use crate::base::value::{FuncId, Str, TableId, ThreadId, UserId, Value};
use crate::vm::Native;
use crate::vm::coroutine::Coroutine;

/// Longest string that is interned when it is made.
pub(crate) const SHORT: usize = 40;

/// The colours of the collector. Two whites alternate, so that objects made during a sweep survive it.
pub(crate) mod color {
    pub(crate) const WHITE0: u8 = 0;
    // 1 is the other white.
    pub(crate) const GRAY: u8 = 2;
    pub(crate) const BLACK: u8 = 3;
    /// Never collected.
    pub(crate) const FIXED: u8 = 4;
    /// The slot is free.
    pub(crate) const FREE: u8 = 5;
}

/// Slots a slab keeps when it has fewer objects.
const SLOTS_KEPT: usize = 1024;
/// A slab or table of this many bytes is looked at before it grows: for a moment it is there twice.
pub(crate) const LARGE: usize = 1 << 20;
/// Blocks of this many bytes are whole pages of their own.
const HUGE: usize = 16 << 20;
/// Bytes that may be allocated between two looks at the memory limit.
pub(crate) const CHECK_BYTES: usize = 4 << 20;

/// Objects of one kind; a freed index is given out again.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    pub(crate) items: Vec<T>,
    pub(crate) free: Vec<u32>,
}

impl<T> Slab<T> {
    const fn new() -> Slab<T> {
        Slab {
            items: Vec::new(),
            free: Vec::new(),
        }
    }

    fn add(&mut self, item: T) -> u32 {
        match self.free.pop() {
            Some(at) => {
                self.items[at as usize] = item;
                at
            }
            None => {
                if self.items.len() == self.items.capacity() {
                    self.grow();
                }
                self.items.push(item);
                (self.items.len() - 1) as u32
            }
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.items.reserve_exact(self.growth());
    }

    /// Slots that are added when the slab is full: it doubles, a large one grows by a quarter.
    fn growth(&self) -> usize {
        let slots = self.items.capacity();
        if slots * size_of::<T>() < LARGE {
            slots.max(4)
        } else {
            slots / 4
        }
    }

    /// Bytes that the slab allocates before the next look at the limit, if it is nearly full: the old slots are there
    /// until the new ones are filled.
    fn demand(&self) -> usize {
        let slots = self.items.capacity();
        let left = slots - self.items.len() + self.free.len();
        if slots * size_of::<T>() < LARGE || left * size_of::<T>() > CHECK_BYTES {
            return 0;
        }
        (slots + self.growth()) * size_of::<T>()
    }

    /// Cuts free slots off the end and gives their memory back. The lowest free slots are used first from now on, so
    /// that the end becomes free.
    fn trim(&mut self, is_free: impl Fn(&T) -> bool) {
        while self.items.last().is_some_and(&is_free) {
            self.items.pop();
        }
        let len = self.items.len();
        self.free.retain(|at| (*at as usize) < len);
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        if self.items.capacity() / 2 > len.max(SLOTS_KEPT) {
            self.items.shrink_to(len.max(SLOTS_KEPT));
        }
        if self.free.capacity() / 2 > self.free.len().max(SLOTS_KEPT) {
            self.free.shrink_to(self.free.len().max(SLOTS_KEPT));
        }
    }

    /// Bytes of slots that no object uses.
    fn spare_bytes(&self) -> usize {
        let used = self.items.len() - self.free.len();
        (self.items.capacity() - used) * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }
}

#[derive(Debug)]
pub(crate) struct StrEntry {
    pub(crate) bytes: Box<[u8]>,
    pub(crate) hash: u32,
    pub(crate) next: u32,
    pub(crate) mark: u8,
    pub(crate) interned: bool,
}

/// A variable shared between closures: in a stack while its function runs, then on its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Upvalue {
    Open { thread: ThreadId, at: u32 },
    Closed(Value),
}

#[derive(Debug)]
pub(crate) struct UpvalEntry {
    pub(crate) value: Upvalue,
    pub(crate) mark: u8,
}

#[derive(Debug)]
pub(crate) struct LuaClosure {
    pub(crate) proto: u32,
    pub(crate) upvals: Box<[u32]>,
}

#[derive(Debug)]
pub(crate) struct NativeClosure {
    pub(crate) native: Native,
    pub(crate) upvals: Vec<Value>,
}

#[derive(Debug)]
pub(crate) enum Closure {
    Lua(LuaClosure),
    Native(NativeClosure),
}

#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) closure: Closure,
    pub(crate) env: TableId,
    pub(crate) mark: u8,
}

#[derive(Debug)]
pub(crate) struct UserData {
    pub(crate) meta: Option<TableId>,
    pub(crate) mark: u8,
}

#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) strings: Slab<StrEntry>,
    pub(crate) tables: Slab<Table>,
    pub(crate) funcs: Slab<Function>,
    pub(crate) upvals: Slab<UpvalEntry>,
    pub(crate) protos: Slab<Proto>,
    pub(crate) users: Slab<UserData>,
    pub(crate) threads: Slab<Coroutine>,
    buckets: Vec<u32>,
    interned: usize,
    /// Bytes accounted for all objects.
    pub(crate) bytes: usize,
    /// The account at which the collector works next.
    pub(crate) threshold: usize,
    /// Bytes of strings and tables that were freed since the host was last told.
    pub(crate) freed: usize,
    /// The white given to new objects.
    pub(crate) white: u8,
    /// Objects whose contents are yet to be marked.
    pub(crate) gray: Vec<Value>,
    /// Tables written to after they were marked; they are marked again in the atomic step.
    pub(crate) gray_again: Vec<TableId>,
    /// Set between the start of marking and its atomic end.
    pub(crate) marking: bool,
}

const NONE: u32 = u32::MAX;
const STRING_OVERHEAD: usize = size_of::<StrEntry>();
pub(crate) const TABLE_OVERHEAD: usize = size_of::<Table>();
const FUNC_OVERHEAD: usize = size_of::<Function>();
pub(crate) const UPVAL_OVERHEAD: usize = size_of::<UpvalEntry>();

impl Heap {
    pub(crate) fn new() -> Heap {
        Heap {
            strings: Slab::new(),
            tables: Slab::new(),
            funcs: Slab::new(),
            upvals: Slab::new(),
            protos: Slab::new(),
            users: Slab::new(),
            threads: Slab::new(),
            buckets: vec![NONE; 256],
            interned: 0,
            bytes: 0,
            threshold: 0,
            freed: 0,
            white: color::WHITE0,
            gray: Vec::new(),
            gray_again: Vec::new(),
            marking: false,
        }
    }

    /// Makes a string, or finds the one that is already there.
    pub(crate) fn string(&mut self, bytes: &[u8]) -> Str {
        if bytes.len() <= SHORT {
            let hash = hash(bytes);
            if let Some(found) = self.lookup(bytes, hash) {
                return found;
            }
            self.add_short(bytes.into(), hash)
        } else {
            self.add_long(bytes.into())
        }
    }

    /// The same for bytes the caller owns.
    pub(crate) fn string_from(&mut self, bytes: Vec<u8>) -> Str {
        if bytes.len() <= SHORT {
            self.string(&bytes)
        } else {
            self.add_long(bytes.into_boxed_slice())
        }
    }

    fn add_long(&mut self, bytes: Box<[u8]>) -> Str {
        self.bytes += STRING_OVERHEAD + block_bytes(bytes.len());
        let id = self.strings.add(StrEntry {
            bytes,
            hash: 0,
            next: NONE,
            mark: self.white,
            interned: false,
        });
        Str {
            id: id | Str::LONG,
            hash: 0,
        }
    }

    fn add_short(&mut self, bytes: Box<[u8]>, hash: u32) -> Str {
        self.bytes += STRING_OVERHEAD + block_bytes(bytes.len());
        let id = self.strings.add(StrEntry {
            bytes,
            hash,
            next: NONE,
            mark: self.white,
            interned: true,
        });
        self.link(id, hash);
        Str { id, hash }
    }

    fn lookup(&mut self, bytes: &[u8], hash: u32) -> Option<Str> {
        let mut at = self.buckets[hash as usize & (self.buckets.len() - 1)];
        while at != NONE {
            let entry = &mut self.strings.items[at as usize];
            if entry.hash == hash && *entry.bytes == *bytes {
                // A string the sweep has yet to reach is in use again.
                if entry.mark == self.white ^ 1 {
                    entry.mark = self.white;
                }
                let long = if bytes.len() > SHORT { Str::LONG } else { 0 };
                return Some(Str {
                    id: at | long,
                    hash,
                });
            }
            at = entry.next;
        }
        None
    }

    fn link(&mut self, id: u32, hash: u32) {
        if self.interned >= self.buckets.len() {
            self.resize_buckets(self.buckets.len() * 2);
        }
        let bucket = hash as usize & (self.buckets.len() - 1);
        self.strings.items[id as usize].next = self.buckets[bucket];
        self.buckets[bucket] = id;
        self.interned += 1;
    }

    fn resize_buckets(&mut self, size: usize) {
        let old = std::mem::replace(&mut self.buckets, vec![NONE; size]);
        for mut at in old {
            while at != NONE {
                let entry = &mut self.strings.items[at as usize];
                let next = entry.next;
                let bucket = entry.hash as usize & (size - 1);
                entry.next = self.buckets[bucket];
                self.buckets[bucket] = at;
                at = next;
            }
        }
    }

    /// Gives memory of freed objects back. No collection may be under way.
    pub(crate) fn trim(&mut self) {
        self.strings.trim(|it| it.mark == color::FREE);
        self.tables.trim(|it| it.mark == color::FREE);
        self.funcs.trim(|it| it.mark == color::FREE);
        self.upvals.trim(|it| it.mark == color::FREE);
        self.protos.trim(|it| it.mark == color::FREE);
        self.users.trim(|it| it.mark == color::FREE);
        self.threads.trim(|it| it.mark == color::FREE);
        let size = self.interned.next_power_of_two().max(SLOTS_KEPT);
        if self.buckets.len() / 4 > size {
            self.resize_buckets(size);
        }
    }

    /// Bytes that are allocated and no object uses, and those of the intern table.
    pub(crate) fn spare_bytes(&self) -> usize {
        self.strings.spare_bytes()
            + self.tables.spare_bytes()
            + self.funcs.spare_bytes()
            + self.upvals.spare_bytes()
            + self.protos.spare_bytes()
            + self.users.spare_bytes()
            + self.threads.spare_bytes()
            + self.buckets.len() * size_of::<u32>()
    }

    /// Bytes that the state has allocated.
    pub(crate) fn total(&self) -> usize {
        self.bytes + self.spare_bytes()
    }

    /// [`Heap::total`], and what is allocated before the next look at the limit because something is nearly full.
    pub(crate) fn demand(&self) -> usize {
        let mut demand = self.total()
            + self.strings.demand()
            + self.tables.demand()
            + self.funcs.demand()
            + self.upvals.demand()
            + self.protos.demand()
            + self.users.demand()
            + self.threads.demand();
        let buckets = self.buckets.len();
        if buckets * size_of::<u32>() >= LARGE && self.interned >= buckets / 8 * 7 {
            demand += buckets * 2 * size_of::<u32>();
        }
        demand
    }

    /// Frees a string; called by the sweep.
    pub(crate) fn free_string(&mut self, at: u32) {
        let entry = &mut self.strings.items[at as usize];
        let block = block_bytes(entry.bytes.len());
        self.bytes -= STRING_OVERHEAD + block;
        self.freed += block;
        entry.mark = color::FREE;
        entry.bytes = Box::default();
        if entry.interned {
            entry.interned = false;
            let next = entry.next;
            let bucket = entry.hash as usize & (self.buckets.len() - 1);
            self.interned -= 1;
            if self.buckets[bucket] == at {
                self.buckets[bucket] = next;
            } else {
                let mut before = self.buckets[bucket];
                while before != NONE && self.strings.items[before as usize].next != at {
                    before = self.strings.items[before as usize].next;
                }
                if before != NONE {
                    self.strings.items[before as usize].next = next;
                }
            }
        }
        self.strings.free.push(at);
    }

    #[inline]
    pub(crate) fn bytes_of(&self, s: Str) -> &[u8] {
        &self.strings.items[s.index()].bytes
    }

    /// The key under which tables store a value: itself, except that a long string becomes the interned one.
    #[inline]
    pub(crate) fn canonical(&mut self, key: Value) -> Value {
        match key {
            Value::Str(s) if s.is_long() => Value::Str(self.canonical_long(s)),
            _ => key,
        }
    }

    /// A string of which there is only one, however long: a name in a source text, which is found by its index.
    pub(crate) fn name(&mut self, bytes: &[u8]) -> Str {
        let name = self.string(bytes);
        if name.is_long() {
            self.canonical_long(name)
        } else {
            name
        }
    }

    #[cold]
    fn canonical_long(&mut self, s: Str) -> Str {
        let entry = &self.strings.items[s.index()];
        if entry.interned {
            return Str {
                id: s.id,
                hash: entry.hash,
            };
        }
        let hash = hash(&entry.bytes);
        let bytes = std::mem::take(&mut self.strings.items[s.index()].bytes);
        let found = self.lookup(&bytes, hash);
        let entry = &mut self.strings.items[s.index()];
        entry.bytes = bytes;
        if let Some(found) = found {
            return found;
        }
        entry.hash = hash;
        entry.interned = true;
        self.link(s.index() as u32, hash);
        Str { id: s.id, hash }
    }

    /// Raw equality of any two values.
    #[inline]
    pub(crate) fn raw_equal(&self, a: Value, b: Value) -> bool {
        match (a, b) {
            (Value::Str(a), Value::Str(b)) => {
                a.id == b.id || (a.is_long() && b.is_long() && self.bytes_of(a) == self.bytes_of(b))
            }
            _ => a.same(b),
        }
    }

    pub(crate) fn table(&mut self, array: usize, hash: usize) -> TableId {
        let mut table = Table::with_sizes(array, hash);
        table.mark = self.white;
        self.bytes += TABLE_OVERHEAD + table.bytes();
        TableId(self.tables.add(table))
    }

    #[inline]
    pub(crate) fn at(&self, table: TableId) -> &Table {
        &self.tables.items[table.index()]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, table: TableId) -> &mut Table {
        &mut self.tables.items[table.index()]
    }

    /// Reads a key without metamethods.
    pub(crate) fn raw_get(&mut self, table: TableId, key: Value) -> Value {
        let key = self.canonical(key);
        self.at(table).get(key)
    }

    /// Writes a key that is neither nil nor NaN, without metamethods or the read-only check.
    pub(crate) fn raw_set(&mut self, table: TableId, key: Value, val: Value) {
        let key = self.canonical(key);
        let t = &mut self.tables.items[table.index()];
        let before = t.bytes();
        t.set(key, val);
        let after = t.bytes();
        self.bytes = self.bytes + after - before;
        self.barrier(table);
    }

    pub(crate) fn raw_set_index(&mut self, table: TableId, index: usize, val: Value) {
        let t = &mut self.tables.items[table.index()];
        let before = t.bytes();
        t.set_index(index, val);
        let after = t.bytes();
        self.bytes = self.bytes + after - before;
        self.barrier(table);
    }

    /// Must follow every write to a table: a marked one is marked again.
    #[inline]
    pub(crate) fn barrier(&mut self, table: TableId) {
        if self.at(table).mark == color::BLACK {
            self.barrier_back(table);
        }
    }

    /// Exchanges what two tables hold, with their metatables.
    pub(crate) fn exchange(&mut self, one: TableId, other: TableId) {
        self.tables.items.swap(one.index(), other.index());
        let mark = self.at(one).mark;
        self.at_mut(one).mark = std::mem::replace(&mut self.at_mut(other).mark, mark);
        self.barrier(one);
        self.barrier(other);
    }

    #[cold]
    fn barrier_back(&mut self, table: TableId) {
        if self.marking {
            self.at_mut(table).mark = color::GRAY;
            self.gray_again.push(table);
        }
    }

    pub(crate) fn function(&mut self, closure: Closure, env: TableId) -> FuncId {
        self.bytes += func_bytes(&closure);
        FuncId(self.funcs.add(Function {
            closure,
            env,
            mark: self.white,
        }))
    }

    pub(crate) fn upvalue(&mut self, value: Upvalue) -> u32 {
        self.bytes += UPVAL_OVERHEAD;
        self.upvals.add(UpvalEntry {
            value,
            mark: self.white,
        })
    }

    pub(crate) fn user(&mut self, meta: Option<TableId>) -> UserId {
        self.bytes += size_of::<UserData>();
        UserId(self.users.add(UserData {
            meta,
            mark: self.white,
        }))
    }

    pub(crate) fn proto(&mut self, mut proto: Proto) -> u32 {
        self.bytes += proto.bytes();
        proto.mark = self.white;
        self.protos.add(proto)
    }

    pub(crate) fn thread(&mut self, mut thread: Coroutine) -> ThreadId {
        thread.accounted = thread.bytes();
        self.bytes += thread.accounted;
        thread.mark = self.white;
        ThreadId(self.threads.add(thread))
    }
}

/// Bytes of the block that an allocator gives for `len` bytes: eight sizes between two powers of two, whole pages for
/// large ones.
#[inline]
pub(crate) fn block_bytes(len: usize) -> usize {
    const PAGE: usize = 4096;
    match len {
        0 => 0,
        1..=64 => len.next_multiple_of(8),
        65..HUGE => {
            let step = 1 << (usize::BITS - 4 - (len - 1).leading_zeros());
            len.next_multiple_of(step)
        }
        _ => len.next_multiple_of(PAGE),
    }
}

pub(crate) fn func_bytes(closure: &Closure) -> usize {
    FUNC_OVERHEAD
        + match closure {
            Closure::Lua(lua) => lua.upvals.len() * 4,
            Closure::Native(native) => native.upvals.len() * 16,
        }
}

/// The hash of Redis's Lua: every byte counts, from the last to the first.
pub(crate) fn hash(bytes: &[u8]) -> u32 {
    let mut h = bytes.len() as u32;
    for &byte in bytes.iter().rev() {
        h ^= (h << 5).wrapping_add(h >> 2).wrapping_add(u32::from(byte));
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_short_strings_share_an_entry() {
        let mut heap = Heap::new();
        let a = heap.string(b"abc");
        let b = heap.string(b"abc");
        assert_eq!(a.id, b.id);
    }

    #[test]
    fn long_strings_are_equal_by_content_and_as_keys() {
        let mut heap = Heap::new();
        let a = heap.string(&[b'x'; 100]);
        let b = heap.string(&[b'x'; 100]);
        assert_ne!(a.id, b.id);
        assert!(heap.raw_equal(Value::Str(a), Value::Str(b)));
        let table = heap.table(0, 0);
        heap.raw_set(table, Value::Str(a), Value::Bool(true));
        assert!(heap.raw_get(table, Value::Str(b)).same(Value::Bool(true)));
    }

    #[test]
    fn a_block_is_at_most_an_eighth_larger_than_what_it_holds() {
        for (len, block) in [
            (0, 0),
            (1, 8),
            (64, 64),
            (65, 72),
            (100, 104),
            (128, 128),
            (129, 144),
            (1000, 1024),
            (1_048_577, 1_179_648),
            (100_000_000, 100_003_840),
        ] {
            assert_eq!(block_bytes(len), block, "{len}");
        }
        for len in (64..100_000_000).step_by(99_991) {
            assert!(block_bytes(len) - len <= len / 8 + 1, "{len}");
        }
    }

    #[test]
    fn a_value_is_sixteen_bytes() {
        assert_eq!(size_of::<Value>(), 16);
    }
}
