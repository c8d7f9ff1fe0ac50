//! The data types behind the keys: structures without keys, deadlines, events or commands.
//!
//! A structure takes its limits, its hash seed and its random generator as arguments and knows what
//! it holds on the heap at any time. Commands reach it through the keyspace's door.

pub(crate) mod hash;
pub(crate) mod intset;
pub(crate) mod list;
mod ordered;
pub(crate) mod packed;
pub(crate) mod pages;
mod sample;
pub(crate) mod set;
mod shared;
mod sorted;
pub(crate) mod stream;
pub(crate) mod table;
#[cfg(test)]
mod testing;
pub(crate) mod zset;

/// A packed collection that Redis keeps packed as well stays so up to these sizes, because clients
/// see its order.
const LISTPACK_ENTRIES: usize = 1024;
const LISTPACK_BYTES: usize = 64 * 1024;
/// Any other packed collection becomes a table beyond these sizes: a lookup reads half of the block.
const PACKED_ENTRIES: usize = 48;
const PACKED_BYTES: usize = 16 * 1024;
/// A table that takes more than this does not become a packed block again.
const SHRINK_BYTES: usize = 8 * 1024;

/// Whether a collection stays one packed block. `listpack`: whether it is one by name.
fn stays_packed(entries: usize, bytes: usize, listpack: bool) -> bool {
    if listpack {
        entries <= LISTPACK_ENTRIES && bytes <= LISTPACK_BYTES
    } else {
        entries <= PACKED_ENTRIES && bytes <= PACKED_BYTES
    }
}

/// A hash, set or sorted set above this size is no listpack by name, whatever the configured limits allow: Redis does not
/// let one grow further. Lower in tests, which need no gigabytes then.
const LISTPACK_SAFE_BYTES: usize = if cfg!(test) { 16 << 20 } else { 1 << 30 };

/// Whether a collection that takes so many bytes may take some more and be called `listpack`. What a table takes stands
/// for the listpack it would be, which is a little smaller.
fn listpack_has_room(bytes: usize, added: usize) -> bool {
    bytes.saturating_add(added) <= LISTPACK_SAFE_BYTES
}

/// A value that can be dropped piece by piece, so that dropping a large one never takes long.
pub(crate) trait Slices: Send {
    /// How many pieces there are: a measure of what the drop costs.
    fn pieces(&self) -> usize;

    /// Drops one piece and says whether there are more. After the first call the value is good for
    /// nothing but further calls and its own drop.
    fn drop_piece(&mut self) -> bool;
}

/// What a lookup of a member reads one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The table's place for the member's hash.
    Slot,
    /// The entries or records of that place.
    Page,
    /// The leaf of a sorted set.
    Leaf,
    /// What the leaf holds.
    Items,
}

impl Step {
    /// The steps of a sorted set. A hash or a set has the first two.
    pub(crate) const ALL: [Self; 4] = [Self::Slot, Self::Page, Self::Leaf, Self::Items];
}

/// A collection that says which memory a lookup will read, so that it can be loaded for several lookups at once.
pub(crate) trait Members {
    /// The hash by which a member is found; none if the collection is small.
    fn hash(&self, member: &[u8]) -> Option<u64>;

    /// How many of [`Step::ALL`] a lookup takes.
    fn steps(&self) -> usize;

    /// Calls `load` with the addresses that a step reads. It reads what the steps before have loaded.
    fn lines(&self, hash: u64, step: Step, load: &mut dyn FnMut(*const u8));
}

const CACHE_LINE: usize = 64;

/// The address of a value.
#[inline]
fn address<T>(value: &T) -> *const u8 {
    std::ptr::from_ref(value).cast()
}

/// A copy with the same capacity, so that sums of heap bytes hold for the copy of a collection too.
fn clone_whole<T: Clone>(items: &Vec<T>) -> Vec<T> {
    let mut copy = Vec::with_capacity(items.capacity());
    copy.extend_from_slice(items);
    copy
}

const fn assert_send<T: Send>() {}
