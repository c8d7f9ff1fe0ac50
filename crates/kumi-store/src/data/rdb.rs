//! Redis's serialisation of values: the bodies of DUMP payloads and of RDB files.
//!
//! Reads every encoding of RDB versions 1 to 11 and writes version 10, which Redis 7.0 and everything after it reads.
//! A value is read into a [`Visitor`], element by element, so that no form of it is built only to be converted. The
//! input is untrusted: no length is believed before the bytes are there, nothing panics, and what
//! `sanitize-dump-payload yes` refuses in Redis is refused here.
//!
//! - `read.rs`: lengths, strings, doubles; `decode.rs`: a value of any type but streams; `stream.rs`: streams
//! - `old.rs`: the packed forms of older versions (ziplist, zipmap, intset)
//! - `write.rs`: everything that is written; `dump.rs`: DUMP payloads and their footer
//! - `value.rs`: values of keys, from how they are stored and back
//!
//! - `file.rs`: the frame of a file: header, databases, deadlines, checksum

mod decode;
mod dump;
mod file;
mod old;
mod read;
mod stream;
mod value;
mod write;

pub(crate) use decode::decode;
pub(crate) use dump::{DumpError, open, payload, seal};
pub(crate) use file::{FileError, FileReader, FileWriter, Item, KeyFacts, KeyHead, Part, SavedKey};
pub(crate) use read::{Input, Reader};
pub(crate) use stream::write_stream;
pub(crate) use value::{Builder, Built, ValueLimits, write_value};
pub(crate) use write::{Compression, Writer};

use crate::types::packed::PackedList;
use crate::types::stream::Stream;

/// The newest version that is read.
pub(crate) const MAX_VERSION: u16 = 11;
/// The version that is written.
pub(crate) const WRITTEN_VERSION: u16 = 10;

/// The byte that says how a value is encoded.
pub(crate) mod kind {
    pub(crate) const STRING: u8 = 0;
    pub(crate) const LIST: u8 = 1;
    pub(crate) const SET: u8 = 2;
    pub(crate) const ZSET: u8 = 3;
    pub(crate) const HASH: u8 = 4;
    pub(crate) const ZSET_2: u8 = 5;
    pub(crate) const MODULE_PRE_GA: u8 = 6;
    pub(crate) const MODULE_2: u8 = 7;
    pub(crate) const HASH_ZIPMAP: u8 = 9;
    pub(crate) const LIST_ZIPLIST: u8 = 10;
    pub(crate) const SET_INTSET: u8 = 11;
    pub(crate) const ZSET_ZIPLIST: u8 = 12;
    pub(crate) const HASH_ZIPLIST: u8 = 13;
    pub(crate) const LIST_QUICKLIST: u8 = 14;
    pub(crate) const STREAM_LISTPACKS: u8 = 15;
    pub(crate) const HASH_LISTPACK: u8 = 16;
    pub(crate) const ZSET_LISTPACK: u8 = 17;
    pub(crate) const LIST_QUICKLIST_2: u8 = 18;
    pub(crate) const STREAM_LISTPACKS_2: u8 = 19;
    pub(crate) const SET_LISTPACK: u8 = 20;
    pub(crate) const STREAM_LISTPACKS_3: u8 = 21;
}

/// How Redis's log names what a value of this kind consists of.
pub(crate) fn structure_name(of: u8) -> &'static str {
    match of {
        kind::HASH_ZIPMAP => "Zipmap",
        kind::LIST_ZIPLIST => "List ziplist",
        kind::SET_INTSET => "Intset",
        kind::ZSET_ZIPLIST => "Zset ziplist",
        kind::HASH_ZIPLIST => "Hash ziplist",
        kind::LIST_QUICKLIST => "Ziplist",
        kind::LIST_QUICKLIST_2 => "Listpack",
        kind::HASH_LISTPACK => "Hash listpack",
        kind::ZSET_LISTPACK => "Zset listpack",
        kind::SET_LISTPACK => "Set listpack",
        kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3 => {
            "Stream listpack"
        }
        _ => "Value",
    }
}

/// The types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    List,
    Set,
    SortedSet,
    Hash,
}

/// Takes the elements of one value, in the order they are stored.
///
/// A method that returns `bool` says whether the element was new; one that was there already makes the value corrupt.
/// After an error, what was visited is to be thrown away.
pub(crate) trait Visitor {
    /// The value is this string.
    fn string(&mut self, value: &[u8]);
    /// The value is a collection. `claimed` elements will come if the input is right; it may not be.
    fn begin(&mut self, kind: Type, claimed: u64);
    /// The next element of a list.
    fn list_element(&mut self, element: &[u8]);
    /// The next elements of a list, as a node of their own.
    fn list_node(&mut self, node: PackedList);
    /// The next element of a list, which is a node of its own that is not packed.
    fn list_plain_node(&mut self, element: &[u8]);
    /// A member of a set.
    fn set_member(&mut self, member: &[u8]) -> bool;
    /// A member of a sorted set. The score is a number.
    fn sorted_set_member(&mut self, member: &[u8], score: f64) -> bool;
    /// A field of a hash.
    fn hash_field(&mut self, field: &[u8], value: &[u8]) -> bool;
    /// The value is this stream.
    fn stream(&mut self, stream: Stream);
}

/// Why a value could not be read. The input is at fault; what the visitor got is incomplete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RdbError {
    /// The source could not be read.
    #[error("reading failed: {0}")]
    Io(std::io::ErrorKind),
    /// The input ends inside a value.
    #[error("the input ends inside a value")]
    Truncated,
    /// A length or a string begins with a byte that means nothing.
    #[error("unknown length or string encoding {0:#04x}")]
    UnknownEncoding(u8),
    /// A compressed string does not give what it claims.
    #[error("a compressed string is damaged")]
    Lzf,
    /// No version up to 11 has this type.
    #[error("unknown value type {0}")]
    UnknownType(u8),
    /// The value belongs to a module, and there are no modules.
    #[error("the value belongs to the module type '{0}', and modules are not supported")]
    Module(String),
    /// A collection without elements, which a key cannot hold.
    #[error("a collection has no elements")]
    Empty,
    /// An element occurs twice where it must not.
    #[error("a {0} occurs twice")]
    Duplicate(&'static str),
    /// Anything else that is wrong with the structure.
    #[error("{0}")]
    Corrupt(&'static str),
}

#[cfg(test)]
mod tests;
