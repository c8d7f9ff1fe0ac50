//! Values of keys: written from how they are stored, and built from what is read.

use super::{Type, Visitor, Writer, kind, write_stream};
use crate::base::number;
use crate::config::Settings;
use crate::data::keyspace::{Expiry, Keys, NewValue, StringRef, Value, ValueRef, with_new_value};
use crate::types::hash::{Hash, HashEncoding, HashLimits};
use crate::types::list::{List, ListLimits, Side};
use crate::types::packed::{Elem, PackedList};
use crate::types::set::{Set, SetEncoding, SetLimits};
use crate::types::stream::Stream;
use crate::types::zset::{Zset, ZsetEncoding, ZsetLimits};
use kumi_resp::{Protocol, encode};

/// Writes a value: the type byte, then the value in the form Redis 7.0 gives it for its encoding.
pub(crate) fn write_value(writer: &mut Writer<'_>, value: ValueRef<'_>) {
    match value {
        ValueRef::String(StringRef::Int(number)) => {
            writer.string_value(&number::format_i64(number));
        }
        ValueRef::String(StringRef::Bytes { bytes, .. }) => writer.string_value(bytes),
        ValueRef::List(list) => writer.list_value(list),
        ValueRef::Set(set) if set.encoding() == SetEncoding::Intset => {
            let mut members: Vec<i64> = set.iter().filter_map(Elem::int).collect();
            // A large set of integers is a table, which has no order.
            members.sort_unstable();
            writer.intset(&members);
        }
        ValueRef::Set(set) => writer.set(set.len() as u64, set.iter().map(Elem::text)),
        ValueRef::Hash(hash) if hash.encoding() == HashEncoding::Listpack => {
            let mut packed = PackedList::new();
            for (field, value) in hash.iter() {
                packed.push_back(field);
                packed.push_back(value);
            }
            writer.byte(kind::HASH_LISTPACK);
            writer.listpack(packed.view());
        }
        ValueRef::Hash(hash) => {
            let pairs = hash
                .iter()
                .map(|(field, value)| (field.text(), value.text()));
            writer.hash(hash.len() as u64, pairs);
        }
        ValueRef::SortedSet(zset) if zset.encoding() == ZsetEncoding::Listpack => {
            let mut packed = PackedList::new();
            for (member, score) in zset.iter() {
                packed.push_back(Elem::parse(&member));
                packed.push_back(Elem::parse(&score_text(score)));
            }
            writer.byte(kind::ZSET_LISTPACK);
            writer.listpack(packed.view());
        }
        // The highest score first, as Redis does.
        ValueRef::SortedSet(zset) => {
            writer.sorted_set(zset.len() as u64, zset.range_back(0..zset.len()));
        }
        ValueRef::Stream(stream) => write_stream(writer, stream),
    }
}

/// A score as a packed sorted set holds it, which is as Redis 7.2 shows it.
fn score_text(score: f64) -> Vec<u8> {
    let mut line = Vec::new();
    encode::double(&mut line, Protocol::Resp3, score);
    // A comma before the number, a line end behind it.
    line[1..line.len() - 2].to_vec()
}

/// The limits that decide about encodings.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ValueLimits {
    pub(crate) list: ListLimits,
    pub(crate) set: SetLimits,
    pub(crate) sorted_set: ZsetLimits,
    pub(crate) hash: HashLimits,
}

impl ValueLimits {
    /// The limits that the configuration sets; `plain_bytes` is the length from which an element of a list is a node of
    /// its own.
    pub(crate) fn of(settings: &Settings, plain_bytes: usize) -> Self {
        Self {
            list: settings.list_limits(plain_bytes),
            set: settings.set_limits(),
            sorted_set: settings.zset_limits(),
            hash: settings.hash_limits(),
        }
    }
}

/// Longer strings are not copied into the key's entry.
const SHORT_STRING: usize = 1024;

/// A value that was read.
#[derive(Debug, Default)]
pub(crate) enum Built {
    #[default]
    Nothing,
    String(Vec<u8>),
    List(List),
    Set(Set),
    SortedSet(Zset),
    Hash(Hash),
    Stream(Box<Stream>),
}

impl Built {
    /// Stores a value that was read from a file of this server in the place of what its key holds. Limits are not
    /// checked: the value was accepted before.
    pub(crate) fn put(self, keys: &mut Keys<'_>, key: &[u8], expiry: Expiry) {
        let put = self.with_value(key, |value| keys.put_anew(key, value, expiry));
        if put.is_none() {
            keys.remove(key);
        }
    }

    /// Calls `then` with the form in which the value is stored; `None` for an empty one, which is not stored.
    pub(crate) fn with_value<R>(
        self,
        key: &[u8],
        then: impl FnOnce(NewValue<'_>) -> R,
    ) -> Option<R> {
        match self {
            Self::Nothing => None,
            Self::String(value) if value.len() <= SHORT_STRING => {
                Some(then(NewValue::parse(&value)))
            }
            Self::String(value) => Some(then(NewValue::Boxed(Value::of_bytes(value)))),
            Self::List(list) => with_new_value(key, list, then),
            Self::Set(set) => with_new_value(key, set, then),
            Self::SortedSet(zset) => with_new_value(key, zset, then),
            Self::Hash(hash) => with_new_value(key, hash, then),
            Self::Stream(stream) => with_new_value(key, stream, then),
        }
    }
}

/// Builds the value that a [`decode`] visits, with the encoding that Redis 7.2 gives it.
///
/// [`decode`]: super::decode
#[derive(Debug)]
pub(crate) struct Builder {
    /// The type byte, on which encodings depend.
    kind: u8,
    limits: ValueLimits,
    /// The seed of the hash tables of collections.
    seed: (u64, u64),
    /// `set-max-intset-entries`, which `limits` has no more.
    intset_entries: usize,
    /// The longest member of a sorted set.
    longest: usize,
    built: Built,
}

impl Builder {
    pub(crate) fn new(kind: u8, mut limits: ValueLimits, seed: (u64, u64)) -> Self {
        let packed_pairs = matches!(
            kind,
            kind::HASH_LISTPACK | kind::HASH_ZIPLIST | kind::ZSET_LISTPACK | kind::ZSET_ZIPLIST
        );
        if packed_pairs {
            // Redis looks only at the number of elements of what was packed already.
            limits.hash.value_bytes = usize::MAX;
            limits.sorted_set.value_bytes = usize::MAX;
        }
        // The name changes at the end, if at all.
        let intset_entries = limits.set.intset_entries;
        limits.set.intset_entries = usize::MAX;
        if kind == kind::SET_LISTPACK {
            limits.set.listpack_value_bytes = usize::MAX;
        }
        Self {
            kind,
            limits,
            seed,
            intset_entries,
            longest: 0,
            built: Built::Nothing,
        }
    }

    /// The value, when all of it was read.
    pub(crate) fn finish(self) -> Built {
        let Self {
            kind,
            limits,
            seed,
            intset_entries,
            longest,
            mut built,
        } = self;
        match &mut built {
            Built::List(list) => list.settle(false, limits.list),
            Built::SortedSet(zset) => zset.settle(longest, limits.sorted_set),
            // An intset that is over its limit becomes a hash table, whatever the limit of packed sets is.
            Built::Set(set) if kind == kind::SET_INTSET && set.view().len() > intset_entries => {
                set.become_hashtable(seed);
            }
            _ => {}
        }
        built
    }
}

impl Visitor for Builder {
    fn string(&mut self, value: &[u8]) {
        self.built = Built::String(value.to_vec());
    }

    fn begin(&mut self, kind: Type, claimed: u64) {
        let claimed = usize::try_from(claimed).unwrap_or(usize::MAX);
        self.built = match kind {
            Type::List => Built::List(List::new()),
            Type::Set => Built::Set(match self.kind {
                kind::SET_LISTPACK => Set::with_encoding(SetEncoding::Listpack),
                kind::SET if claimed > self.intset_entries => {
                    Set::with_encoding(SetEncoding::Hashtable)
                }
                _ => Set::with_encoding(SetEncoding::Intset),
            }),
            // Read member by member it is a skiplist until its end, which keeps the sign of a zero.
            Type::SortedSet => Built::SortedSet(Zset::with_encoding(match self.kind {
                kind::ZSET | kind::ZSET_2 => ZsetEncoding::Skiplist,
                _ => ZsetEncoding::Listpack,
            })),
            Type::Hash => {
                let mut hash = Hash::new();
                hash.prepare(claimed, 0, self.limits.hash);
                Built::Hash(hash)
            }
        };
    }

    fn list_element(&mut self, element: &[u8]) {
        if let Built::List(list) = &mut self.built {
            list.prepare(1, element.len(), self.limits.list);
            list.push(Side::Back, element, self.limits.list);
        }
    }

    fn list_node(&mut self, node: PackedList) {
        if let Built::List(list) = &mut self.built {
            list.push_node(node);
        }
    }

    fn list_plain_node(&mut self, element: &[u8]) {
        if let Built::List(list) = &mut self.built {
            list.push_plain_node(element);
        }
    }

    fn set_member(&mut self, member: &[u8]) -> bool {
        let Built::Set(set) = &mut self.built else {
            return false;
        };
        set.add(member, self.limits.set, self.seed)
    }

    fn sorted_set_member(&mut self, member: &[u8], score: f64) -> bool {
        let Built::SortedSet(zset) = &mut self.built else {
            return false;
        };
        self.longest = self.longest.max(member.len());
        let mut new = false;
        zset.update(member, self.limits.sorted_set, self.seed, |old| {
            new = old.is_none();
            new.then_some(score)
        });
        new
    }

    fn hash_field(&mut self, field: &[u8], value: &[u8]) -> bool {
        match &mut self.built {
            Built::Hash(hash) => hash.set(field, value, self.limits.hash, self.seed),
            _ => false,
        }
    }

    fn stream(&mut self, stream: Stream) {
        self.built = Built::Stream(Box::new(stream));
    }
}
