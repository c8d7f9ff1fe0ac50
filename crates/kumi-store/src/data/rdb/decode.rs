//! Reads a value of any type into a [`Visitor`].

use super::old::{each_intset_member, each_ziplist_element, each_zipmap_element};
use super::read::parse_score;
use super::stream::read_stream;
use super::{Input, RdbError, Reader, Type, Visitor, kind};
use crate::base::number;
use crate::types::packed::listpack::each_listpack_element;
use crate::types::packed::{Elem, PackedList};

/// How a node of a list says that it is one element, and that it is packed.
const PLAIN_NODE: u64 = 1;
const PACKED_NODE: u64 = 2;

/// Reads the value behind a type byte. On an error the visitor's value is incomplete and to be thrown away.
pub(crate) fn decode<I: Input>(
    kind: u8,
    reader: &mut Reader<I>,
    visitor: &mut impl Visitor,
) -> Result<(), RdbError> {
    match kind {
        kind::STRING => visitor.string(reader.string()?),
        kind::LIST => elements(reader, visitor, Type::List, |reader, visitor| {
            visitor.list_element(reader.string()?);
            Ok(())
        })?,
        kind::SET => elements(reader, visitor, Type::Set, |reader, visitor| {
            unique("set member", visitor.set_member(reader.string()?))
        })?,
        kind::ZSET | kind::ZSET_2 => sorted_set(kind, reader, visitor)?,
        kind::HASH => hash(reader, visitor)?,
        kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::LIST_QUICKLIST_2 => {
            list_nodes(kind, reader, visitor)?;
        }
        kind::SET_INTSET => {
            visitor.begin(Type::Set, 0);
            let member = |value| visitor.set_member(&number::format_i64(value));
            each_intset_member(reader.string()?, member)
                .ok_or(RdbError::Corrupt("an intset is malformed"))?;
        }
        kind::SET_LISTPACK => {
            visitor.begin(Type::Set, 0);
            let mut members = 0u64;
            let read = each_listpack_element(reader.string()?, |elem| {
                members += 1;
                visitor.set_member(&elem.text())
            });
            packed(read, members)?;
        }
        kind::HASH_ZIPMAP | kind::HASH_ZIPLIST | kind::HASH_LISTPACK => {
            visitor.begin(Type::Hash, 0);
            packed_pairs(kind, reader.string()?, |field, value| {
                visitor.hash_field(field, &value.text())
            })?;
        }
        kind::ZSET_ZIPLIST | kind::ZSET_LISTPACK => {
            visitor.begin(Type::SortedSet, 0);
            packed_pairs(kind, reader.string()?, |member, score| {
                let score = match score {
                    Elem::Int(score) => Ok(score as f64),
                    Elem::Bytes(text) => parse_score(text),
                };
                score.is_ok_and(|score| visitor.sorted_set_member(member, score))
            })?;
        }
        kind::STREAM_LISTPACKS | kind::STREAM_LISTPACKS_2 | kind::STREAM_LISTPACKS_3 => {
            visitor.stream(read_stream(kind, reader)?);
        }
        kind::MODULE_PRE_GA | kind::MODULE_2 => {
            return Err(RdbError::Module(module_name(reader.length()?)));
        }
        other => return Err(RdbError::UnknownType(other)),
    }
    Ok(())
}

/// Reads a count and so many elements.
fn elements<I: Input, V: Visitor>(
    reader: &mut Reader<I>,
    visitor: &mut V,
    kind: Type,
    mut element: impl FnMut(&mut Reader<I>, &mut V) -> Result<(), RdbError>,
) -> Result<(), RdbError> {
    let count = reader.length()?;
    if count == 0 {
        return Err(RdbError::Empty);
    }
    visitor.begin(kind, count);
    for _ in 0..count {
        element(reader, visitor)?;
    }
    Ok(())
}

fn sorted_set<I: Input>(
    kind: u8,
    reader: &mut Reader<I>,
    visitor: &mut impl Visitor,
) -> Result<(), RdbError> {
    let mut member = Vec::new();
    elements(reader, visitor, Type::SortedSet, |reader, visitor| {
        reader.string_into(&mut member)?;
        let score = match kind {
            kind::ZSET => reader.text_double()?,
            _ => reader.binary_double()?,
        };
        unique(
            "sorted set member",
            visitor.sorted_set_member(&member, score),
        )
    })
}

fn hash<I: Input>(reader: &mut Reader<I>, visitor: &mut impl Visitor) -> Result<(), RdbError> {
    let mut field = Vec::new();
    elements(reader, visitor, Type::Hash, |reader, visitor| {
        reader.string_into(&mut field)?;
        unique("hash field", visitor.hash_field(&field, reader.string()?))
    })
}

/// Reads the packed nodes of a list. Empty nodes are left out, as Redis does.
fn list_nodes<I: Input>(
    kind: u8,
    reader: &mut Reader<I>,
    visitor: &mut impl Visitor,
) -> Result<(), RdbError> {
    let nodes = match kind {
        kind::LIST_ZIPLIST => 1,
        _ => reader.length()?,
    };
    visitor.begin(Type::List, 0);
    let mut empty = true;
    for _ in 0..nodes {
        let container = match kind {
            kind::LIST_QUICKLIST_2 => reader.length()?,
            _ => PACKED_NODE,
        };
        let bytes = reader.string()?;
        if bytes.is_empty() {
            return Err(RdbError::Corrupt("a node of a list has no bytes"));
        }
        match container {
            PLAIN_NODE => {
                visitor.list_plain_node(bytes);
                empty = false;
            }
            PACKED_NODE => {
                let node = match kind {
                    kind::LIST_QUICKLIST_2 => PackedList::from_listpack(bytes),
                    _ => ziplist_node(bytes),
                };
                let node = node.ok_or(RdbError::Corrupt("a node of a list is malformed"))?;
                if !node.is_empty() {
                    visitor.list_node(node);
                    empty = false;
                }
            }
            _ => return Err(RdbError::Corrupt("a node of a list is of no known kind")),
        }
    }
    match empty {
        true => Err(RdbError::Empty),
        false => Ok(()),
    }
}

fn ziplist_node(bytes: &[u8]) -> Option<PackedList> {
    let mut node = PackedList::new();
    each_ziplist_element(bytes, |elem| {
        node.push_back(elem);
        true
    })?;
    Some(node)
}

/// Reads the packed form of a hash or a sorted set: two elements at a time.
fn packed_pairs(
    kind: u8,
    bytes: &[u8],
    mut pair: impl FnMut(&[u8], Elem<'_>) -> bool,
) -> Result<(), RdbError> {
    let mut first: Option<Vec<u8>> = None;
    let mut spare = Vec::new();
    let mut count = 0u64;
    let mut visit = |elem: Elem<'_>| {
        count += 1;
        match first.take() {
            None => {
                spare.clear();
                spare.extend_from_slice(&elem.text());
                first = Some(std::mem::take(&mut spare));
                true
            }
            Some(name) => {
                let new = pair(&name, elem);
                spare = name;
                new
            }
        }
    };
    let read = match kind {
        kind::HASH_ZIPMAP => each_zipmap_element(bytes, |text| visit(Elem::parse(text))),
        kind::HASH_ZIPLIST | kind::ZSET_ZIPLIST => each_ziplist_element(bytes, visit),
        _ => each_listpack_element(bytes, visit),
    };
    packed(read, count)?;
    match first {
        Some(_) => Err(RdbError::Corrupt("a packed value has half a pair")),
        None => Ok(()),
    }
}

/// What became of a packed value with so many elements.
fn packed(read: Option<()>, count: u64) -> Result<(), RdbError> {
    read.ok_or(RdbError::Corrupt(
        "a packed value is malformed or has an element twice",
    ))?;
    match count {
        0 => Err(RdbError::Empty),
        _ => Ok(()),
    }
}

fn unique(what: &'static str, new: bool) -> Result<(), RdbError> {
    match new {
        true => Ok(()),
        false => Err(RdbError::Duplicate(what)),
    }
}

/// The name of a module's type: nine characters of six bits above ten bits of version.
pub(super) fn module_name(id: u64) -> String {
    const CHARACTERS: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9)
        .map(|index| char::from(CHARACTERS[(id >> (58 - index * 6) & 63) as usize]))
        .collect()
}
