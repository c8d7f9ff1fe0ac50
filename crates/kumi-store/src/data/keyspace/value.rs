//! What a key holds: the types, a look at a value, and a value to store.
//!
//! Small strings, integers and small collections live inside their `Entry`; a [`Value`] is what
//! does not fit there and has a heap of its own. Every variant is `Send`, so that the thread that
//! owns the keyspace may hand a big value to another one to free it. A value knows nothing of its
//! key, its deadline or its type's commands.

use super::collection::Collection;
use crate::base::number;
use crate::base::size_class::block_bytes;
use crate::types::hash::{Hash, HashRef};
use crate::types::list::{List, ListRef};
use crate::types::set::{Set, SetRef};
use crate::types::stream::Stream;
use crate::types::zset::{Zset, ZsetRef};
use crate::types::{Members, Slices};
use kumi_resp::{Args, SharedBytes};

/// The type of a value, as TYPE names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Type {
    String = 0,
    List = 1,
    Set = 2,
    SortedSet = 3,
    Hash = 4,
    Stream = 5,
}

impl Type {
    pub(crate) const ALL: [Self; 6] = [
        Self::String,
        Self::List,
        Self::Set,
        Self::SortedSet,
        Self::Hash,
        Self::Stream,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "zset",
            Self::Hash => "hash",
            Self::Stream => "stream",
        }
    }
}

/// A value in a box of its own.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// A string that is too long to lie inside its entry, or that was grown in place.
    Bytes(Vec<u8>),
    /// A long string that output buffers and the propagation may refer to as well.
    Shared(SharedBytes),
    List(List),
    Set(Set),
    SortedSet(Zset),
    Hash(Hash),
    Stream(Box<Stream>),
}

impl Value {
    /// A string that is too long to lie inside its entry.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Self {
        let mut value = Value::Bytes(bytes);
        value.share_if_long();
        value
    }

    /// Gives a long string a reference count, so that a snapshot need not copy it.
    pub(super) fn share_if_long(&mut self) {
        /// Below this a copy costs less than what else is done for a key.
        const LONG: usize = 16 * 1024;
        if let Value::Bytes(bytes) = self
            && bytes.len() >= LONG
        {
            *self = Value::Shared(SharedBytes::new(std::mem::take(bytes)));
        }
    }

    pub(crate) fn type_of(&self) -> Type {
        match self {
            Value::Bytes(_) | Value::Shared(_) => Type::String,
            Value::List(_) => Type::List,
            Value::Set(_) => Type::Set,
            Value::SortedSet(_) => Type::SortedSet,
            Value::Hash(_) => Type::Hash,
            Value::Stream(_) => Type::Stream,
        }
    }

    /// The bytes this value keeps on the heap, besides its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Value::Bytes(bytes) => block_bytes(bytes.capacity()),
            Value::Shared(bytes) => block_bytes(bytes.heap_bytes()),
            Value::List(list) => list.heap_bytes(),
            Value::Set(set) => set.heap_bytes(),
            Value::SortedSet(zset) => zset.heap_bytes(),
            Value::Hash(hash) => hash.heap_bytes(),
            Value::Stream(stream) => size_of::<Stream>() + stream.heap_bytes(),
        }
    }

    /// The bytes that a copy of this value may take, about: a collection of several blocks shares them. A long string
    /// is shared too, and counts because a change of it copies it whole.
    pub(super) fn copy_bytes(&self) -> usize {
        /// A block is this many times as large as what refers to it.
        const BLOCK_RATIO: usize = 32;
        let blocks = match self {
            Value::Bytes(_) | Value::Shared(_) => 1,
            Value::List(list) => list.pieces(),
            Value::Set(set) => set.pieces(),
            Value::SortedSet(zset) => zset.pieces(),
            Value::Hash(hash) => hash.pieces(),
            Value::Stream(stream) => stream.pieces(),
        };
        match blocks {
            0 | 1 => self.heap_bytes(),
            _ => self.heap_bytes() / BLOCK_RATIO,
        }
    }

    /// A collection whose members can be loaded ahead of a lookup.
    pub(super) fn members(&self) -> Option<&dyn Members> {
        match self {
            Value::Set(set) => Some(set),
            Value::SortedSet(zset) => Some(zset),
            Value::Hash(hash) => Some(hash),
            Value::Bytes(_) | Value::Shared(_) | Value::List(_) | Value::Stream(_) => None,
        }
    }

    /// A collection, to be dropped piece by piece.
    pub(super) fn slices_mut(&mut self) -> Option<&mut dyn Slices> {
        match self {
            Value::Bytes(_) | Value::Shared(_) => None,
            Value::List(list) => Some(list),
            Value::Set(set) => Some(set),
            Value::SortedSet(zset) => Some(zset),
            Value::Hash(hash) => Some(hash),
            Value::Stream(stream) => Some(&mut **stream),
        }
    }

    /// What freeing this costs, as Redis counts it: elements of a table, nodes of a list or stream. The first group of a
    /// stream stands for the others.
    pub(crate) fn free_effort(&self) -> usize {
        match self {
            Value::Bytes(_) | Value::Shared(_) => 1,
            Value::List(list) => list.pieces(),
            Value::Set(set) if set.pieces() > 1 => set.view().len(),
            Value::SortedSet(zset) if zset.pieces() > 1 => zset.view().len(),
            Value::Hash(hash) if hash.pieces() > 1 => hash.view().len(),
            Value::Set(_) | Value::SortedSet(_) | Value::Hash(_) => 1,
            Value::Stream(stream) => {
                let first = stream.groups().next();
                let of_group = first.map_or(0, |(_, group)| 1 + group.pending_count());
                stream.node_count() + stream.group_count() * of_group
            }
        }
    }

    pub(super) fn view(&self) -> ValueRef<'_> {
        match self {
            Value::Bytes(bytes) => ValueRef::String(StringRef::Bytes {
                bytes,
                raw: true,
                shared: None,
            }),
            Value::Shared(bytes) => ValueRef::String(StringRef::Bytes {
                bytes,
                raw: true,
                shared: Some(bytes),
            }),
            Value::List(list) => ValueRef::List(list.view()),
            Value::Set(set) => ValueRef::Set(set.view()),
            Value::SortedSet(zset) => ValueRef::SortedSet(zset.view()),
            Value::Hash(hash) => ValueRef::Hash(hash.view()),
            Value::Stream(stream) => ValueRef::Stream(stream),
        }
    }
}

/// A look at a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StringRef<'a> {
    /// A string whose canonical decimal form is this number.
    Int(i64),
    /// Any other string.
    Bytes {
        /// The string itself.
        bytes: &'a [u8],
        /// Whether OBJECT ENCODING says `raw` however short the string is, because it was modified
        /// in place.
        raw: bool,
        /// The handle of a long string, to refer to it without a copy.
        shared: Option<&'a SharedBytes>,
    },
}

/// A look at what a key holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ValueRef<'a> {
    String(StringRef<'a>),
    List(ListRef<'a>),
    Set(SetRef<'a>),
    SortedSet(ZsetRef<'a>),
    Hash(HashRef<'a>),
    Stream(&'a Stream),
}

impl<'a> ValueRef<'a> {
    /// A small collection, from its form (see [`Collection`]) and its bytes.
    ///
    /// [`Collection`]: super::collection::Collection
    pub(super) fn small(type_of: Type, form: u8, bytes: &'a [u8]) -> Self {
        match type_of {
            Type::List => Self::List(List::view_small(form, bytes)),
            Type::Set => Self::Set(Set::view_small(form, bytes)),
            Type::SortedSet => Self::SortedSet(Zset::view_small(form, bytes)),
            Type::Hash => Self::Hash(Hash::view_small(form, bytes)),
            Type::String | Type::Stream => unreachable!("no entry is written like this"),
        }
    }

    /// The string, if it is one.
    pub(crate) fn string(self) -> Option<StringRef<'a>> {
        match self {
            ValueRef::String(string) => Some(string),
            _ => None,
        }
    }
}

/// What to store under a key.
#[derive(Debug)]
pub(crate) enum NewValue<'a> {
    /// A number, to be kept as one.
    Int(i64),
    /// A string, copied in.
    Bytes(&'a [u8]),
    /// A string that shows as `raw` in OBJECT ENCODING however short it is.
    RawBytes(&'a [u8]),
    /// A small collection, copied in: its type, its form (see [`Collection`]) and its bytes.
    ///
    /// [`Collection`]: super::collection::Collection
    Small(Type, u8, &'a [u8]),
    /// A value that already has its own heap, moved in.
    Boxed(Value),
}

impl<'a> NewValue<'a> {
    /// The form SET stores: a number if the text is exactly one, bytes otherwise.
    pub(crate) fn parse(text: &'a [u8]) -> Self {
        const LONGEST_NUMBER: usize = 20;
        if text.len() <= LONGEST_NUMBER
            && let Some(int) = number::parse_i64(text)
        {
            return NewValue::Int(int);
        }
        NewValue::Bytes(text)
    }

    /// The form SET stores of an argument. A long one is not copied.
    pub(crate) fn argument(args: Args<'a>, index: usize) -> Self {
        match args.shared(index) {
            Some(bytes) => NewValue::Boxed(Value::Shared(bytes.clone())),
            None => NewValue::parse(args.get(index).unwrap_or_default()),
        }
    }

    pub(super) fn type_of(&self) -> Type {
        match self {
            NewValue::Int(_) | NewValue::Bytes(_) | NewValue::RawBytes(_) => Type::String,
            NewValue::Small(type_of, _, _) => *type_of,
            NewValue::Boxed(value) => value.type_of(),
        }
    }

    /// Length as a string; what a collection takes.
    pub(crate) fn len(&self) -> usize {
        match self {
            NewValue::Int(int) => number::format_i64(*int).as_ref().len(),
            NewValue::Bytes(bytes) | NewValue::RawBytes(bytes) | NewValue::Small(_, _, bytes) => {
                bytes.len()
            }
            NewValue::Boxed(Value::Bytes(bytes)) => bytes.len(),
            NewValue::Boxed(Value::Shared(bytes)) => bytes.len(),
            NewValue::Boxed(value) => value.heap_bytes(),
        }
    }
}

const _: fn() = || {
    const fn assert_send<T: Send>() {}
    assert_send::<Value>();
};
