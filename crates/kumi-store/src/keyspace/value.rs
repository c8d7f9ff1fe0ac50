//! What a key holds when it does not fit beside the key: a value with a heap of its own.
//!
//! Small strings and integers never come here, they live inside their `Entry`. Every variant is
//! `Send`, so that the thread that owns the keyspace may hand a big value to another one to free
//! it. A value knows nothing of its key, its deadline or its type's commands.

use crate::number;

/// A value in a box of its own. Lists, hashes, sets, sorted sets and streams get their variants
/// here.
#[derive(Debug)]
pub(crate) enum Value {
    /// A string that is too long to lie inside its entry, or that was grown in place.
    Bytes(Vec<u8>),
}

impl Value {
    /// The bytes this value keeps on the heap, besides its own size.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Value::Bytes(bytes) => bytes.capacity(),
        }
    }
}

/// A look at what a key holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueRef<'a> {
    /// A string whose canonical decimal form is this number.
    Int(i64),
    /// Any other string.
    Bytes {
        /// The string itself.
        bytes: &'a [u8],
        /// Whether OBJECT ENCODING says `raw` however short the string is, because it was modified
        /// in place.
        raw: bool,
    },
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

    /// Length as a string.
    pub(crate) fn len(&self) -> usize {
        match self {
            NewValue::Int(int) => number::format_i64(*int).as_ref().len(),
            NewValue::Bytes(bytes) | NewValue::RawBytes(bytes) => bytes.len(),
            NewValue::Boxed(Value::Bytes(bytes)) => bytes.len(),
        }
    }
}

impl<'a> From<ValueRef<'a>> for NewValue<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Int(number) => NewValue::Int(number),
            ValueRef::Bytes { bytes, raw: false } => NewValue::Bytes(bytes),
            ValueRef::Bytes { bytes, raw: true } => NewValue::RawBytes(bytes),
        }
    }
}
