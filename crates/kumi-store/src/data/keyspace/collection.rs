//! What the door asks of a collection type, so that it can keep a small one inside its entry and a
//! large one in a box, and commands see no difference.

use super::value::{Type, Value};
use crate::types::hash::{Hash, HashEncoding, HashRef};
use crate::types::list::{List, ListRef};
use crate::types::set::{Set, SetEncoding, SetRef, SmallSet};
use crate::types::stream::Stream;
use crate::types::zset::{Zset, ZsetEncoding, ZsetRef};

/// A list, hash, set, sorted set or stream.
///
/// The small form is bytes that lie in the entry, and three bits (the form) that say how to read
/// them. A command that edits a small collection works on a copy in a scratch buffer, which is
/// written back when the edit has changed something.
pub(crate) trait Collection: Sized + 'static {
    const TYPE: Type;
    /// Whether a key whose collection is empty goes. Streams stay.
    const GOES_WHEN_EMPTY: bool = true;

    /// A look at the collection, in whichever form it is.
    type View<'a>;

    fn new() -> Self;
    fn view(&self) -> Self::View<'_>;
    fn is_empty(&self) -> bool;
    /// What the collection takes from the heap besides its own size.
    fn heap_bytes(&self) -> usize;

    /// A look at the small form.
    fn view_small(form: u8, bytes: &[u8]) -> Self::View<'_>;
    /// The collection of a small form.
    fn from_small(form: u8, bytes: Vec<u8>) -> Self;
    /// The small form, if the collection has one.
    fn small(&self) -> Option<(u8, &[u8])>;
    /// The buffer of a small collection, to be used again.
    fn into_buffer(self) -> Option<Vec<u8>>;

    fn into_value(self) -> Value;
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
}

impl Collection for Hash {
    const TYPE: Type = Type::Hash;
    type View<'a> = HashRef<'a>;

    fn new() -> Self {
        Hash::new()
    }

    fn view(&self) -> HashRef<'_> {
        Hash::view(self)
    }

    fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    fn heap_bytes(&self) -> usize {
        Hash::heap_bytes(self)
    }

    #[inline]
    fn view_small(form: u8, bytes: &[u8]) -> HashRef<'_> {
        HashRef::from_small(hash_encoding(form), bytes)
    }

    fn from_small(form: u8, bytes: Vec<u8>) -> Self {
        Hash::from_small(hash_encoding(form), bytes)
    }

    fn small(&self) -> Option<(u8, &[u8])> {
        let (encoding, bytes) = Hash::small(self)?;
        Some((u8::from(encoding == HashEncoding::Hashtable), bytes))
    }

    fn into_buffer(self) -> Option<Vec<u8>> {
        Hash::into_buffer(self)
    }

    fn into_value(self) -> Value {
        Value::Hash(self)
    }

    fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::Hash(hash) => Some(hash),
            _ => None,
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Self> {
        match value {
            Value::Hash(hash) => Some(hash),
            _ => None,
        }
    }
}

fn hash_encoding(form: u8) -> HashEncoding {
    match form {
        0 => HashEncoding::Listpack,
        _ => HashEncoding::Hashtable,
    }
}

impl Collection for Set {
    const TYPE: Type = Type::Set;
    type View<'a> = SetRef<'a>;

    fn new() -> Self {
        Set::new()
    }

    fn view(&self) -> SetRef<'_> {
        Set::view(self)
    }

    fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    fn heap_bytes(&self) -> usize {
        Set::heap_bytes(self)
    }

    #[inline]
    fn view_small(form: u8, bytes: &[u8]) -> SetRef<'_> {
        SetRef::from_small(small_set(form), bytes)
    }

    fn from_small(form: u8, bytes: Vec<u8>) -> Self {
        Set::from_small(small_set(form), bytes)
    }

    fn small(&self) -> Option<(u8, &[u8])> {
        let (SmallSet { ints, encoding }, bytes) = Set::small(self)?;
        let encoding = match encoding {
            SetEncoding::Intset => 0,
            SetEncoding::Listpack => 1,
            SetEncoding::Hashtable => 2,
        };
        Some((u8::from(ints) << 2 | encoding, bytes))
    }

    fn into_buffer(self) -> Option<Vec<u8>> {
        Set::into_buffer(self)
    }

    fn into_value(self) -> Value {
        Value::Set(self)
    }

    fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::Set(set) => Some(set),
            _ => None,
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Self> {
        match value {
            Value::Set(set) => Some(set),
            _ => None,
        }
    }
}

fn small_set(form: u8) -> SmallSet {
    let encoding = match form & 3 {
        0 => SetEncoding::Intset,
        1 => SetEncoding::Listpack,
        _ => SetEncoding::Hashtable,
    };
    SmallSet {
        ints: form & 4 != 0,
        encoding,
    }
}

impl Collection for List {
    const TYPE: Type = Type::List;
    type View<'a> = ListRef<'a>;

    fn new() -> Self {
        List::new()
    }

    fn view(&self) -> ListRef<'_> {
        List::view(self)
    }

    fn is_empty(&self) -> bool {
        List::is_empty(self)
    }

    fn heap_bytes(&self) -> usize {
        List::heap_bytes(self)
    }

    #[inline]
    fn view_small(form: u8, bytes: &[u8]) -> ListRef<'_> {
        ListRef::from_small(form, bytes)
    }

    fn from_small(form: u8, bytes: Vec<u8>) -> Self {
        List::from_small(form, bytes)
    }

    fn small(&self) -> Option<(u8, &[u8])> {
        List::small(self)
    }

    fn into_buffer(self) -> Option<Vec<u8>> {
        List::into_buffer(self)
    }

    fn into_value(self) -> Value {
        Value::List(self)
    }

    fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Self> {
        match value {
            Value::List(list) => Some(list),
            _ => None,
        }
    }
}

impl Collection for Zset {
    const TYPE: Type = Type::SortedSet;
    type View<'a> = ZsetRef<'a>;

    fn new() -> Self {
        Zset::new()
    }

    fn view(&self) -> ZsetRef<'_> {
        Zset::view(self)
    }

    fn is_empty(&self) -> bool {
        self.view().is_empty()
    }

    fn heap_bytes(&self) -> usize {
        Zset::heap_bytes(self)
    }

    #[inline]
    fn view_small(form: u8, bytes: &[u8]) -> ZsetRef<'_> {
        ZsetRef::from_small(zset_encoding(form), bytes)
    }

    fn from_small(form: u8, bytes: Vec<u8>) -> Self {
        Zset::from_small(zset_encoding(form), bytes)
    }

    fn small(&self) -> Option<(u8, &[u8])> {
        let (encoding, bytes) = Zset::small(self)?;
        Some((u8::from(encoding == ZsetEncoding::Skiplist), bytes))
    }

    fn into_buffer(self) -> Option<Vec<u8>> {
        Zset::into_buffer(self)
    }

    fn into_value(self) -> Value {
        Value::SortedSet(self)
    }

    fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::SortedSet(zset) => Some(zset),
            _ => None,
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Self> {
        match value {
            Value::SortedSet(zset) => Some(zset),
            _ => None,
        }
    }
}

fn zset_encoding(form: u8) -> ZsetEncoding {
    match form {
        0 => ZsetEncoding::Listpack,
        _ => ZsetEncoding::Skiplist,
    }
}

/// A stream always has a heap of its own.
impl Collection for Box<Stream> {
    const TYPE: Type = Type::Stream;
    const GOES_WHEN_EMPTY: bool = false;
    type View<'a> = Option<&'a Stream>;

    fn new() -> Self {
        Box::default()
    }

    fn view(&self) -> Option<&Stream> {
        Some(self)
    }

    fn is_empty(&self) -> bool {
        Stream::is_empty(self)
    }

    fn heap_bytes(&self) -> usize {
        Stream::heap_bytes(self)
    }

    fn view_small(_: u8, _: &[u8]) -> Option<&Stream> {
        None
    }

    fn from_small(_: u8, _: Vec<u8>) -> Self {
        Box::default()
    }

    fn small(&self) -> Option<(u8, &[u8])> {
        None
    }

    fn into_buffer(self) -> Option<Vec<u8>> {
        None
    }

    fn into_value(self) -> Value {
        Value::Stream(self)
    }

    fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    fn of_mut(value: &mut Value) -> Option<&mut Self> {
        match value {
            Value::Stream(stream) => Some(stream),
            _ => None,
        }
    }
}
