//! Writes values in the forms of version 10.
//!
//! A small hash or sorted set is written packed, as Redis does, so that the other side reads it as one string. A list is
//! written as its nodes, and a set either as an intset or member by member (packed sets came with version 11).

use super::kind;
use crate::base::{lzf, number};
use crate::config::Settings;
use crate::types::list::{ListRef, NodeRef};
use crate::types::packed::{Elem, PackedList, PackedListView, PackedView};

/// Whether strings are compressed, `rdbcompression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Lzf,
    None,
}

impl Compression {
    /// What the configuration says.
    pub(crate) fn of(settings: &Settings) -> Self {
        if settings.rdbcompression {
            Self::Lzf
        } else {
            Self::None
        }
    }
}

/// Strings up to this length are not worth compressing.
const MIN_COMPRESSED: usize = 20;
/// What compression has to save.
const MIN_SAVED: usize = 4;
/// The longest text of an integer of 32 bits.
const LONGEST_INTEGER: usize = 11;

/// Appends values to a buffer.
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    compression: Compression,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>, compression: Compression) -> Self {
        Self { out, compression }
    }

    /// A string value.
    pub(crate) fn string_value(&mut self, value: &[u8]) {
        self.byte(kind::STRING);
        self.string(value);
    }

    /// A set member by member. `count` is how many there are.
    pub(crate) fn set<M: AsRef<[u8]>>(&mut self, count: u64, members: impl Iterator<Item = M>) {
        self.byte(kind::SET);
        self.length(count);
        members.for_each(|member| self.string(member.as_ref()));
    }

    /// A set of integers, ascending and each once.
    pub(crate) fn intset(&mut self, members: &[i64]) {
        let fits = |limit: i64| {
            let ends = [members.first(), members.last()];
            ends.into_iter()
                .flatten()
                .all(|member| (-limit - 1..=limit).contains(member))
        };
        let width: usize = match () {
            () if fits(i64::from(i16::MAX)) => 2,
            () if fits(i64::from(i32::MAX)) => 4,
            () => 8,
        };
        let mut bytes = Vec::with_capacity(8 + members.len() * width);
        bytes.extend_from_slice(&(width as u32).to_le_bytes());
        bytes.extend_from_slice(&(members.len() as u32).to_le_bytes());
        for member in members {
            bytes.extend_from_slice(&member.to_le_bytes()[..width]);
        }
        self.byte(kind::SET_INTSET);
        self.string(&bytes);
    }

    /// A sorted set member by member.
    pub(crate) fn sorted_set<M: AsRef<[u8]>>(
        &mut self,
        count: u64,
        members: impl Iterator<Item = (M, f64)>,
    ) {
        self.byte(kind::ZSET_2);
        self.length(count);
        for (member, score) in members {
            self.string(member.as_ref());
            self.out.extend_from_slice(&score.to_le_bytes());
        }
    }

    /// A hash field by field.
    pub(crate) fn hash<F: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        count: u64,
        fields: impl Iterator<Item = (F, V)>,
    ) {
        self.byte(kind::HASH);
        self.length(count);
        for (field, value) in fields {
            self.string(field.as_ref());
            self.string(value.as_ref());
        }
    }

    /// A small hash: fields and values in turn.
    pub(crate) fn packed_hash(&mut self, pairs: PackedView<'_>) {
        self.packed(kind::HASH_LISTPACK, pairs);
    }

    /// A list with its nodes.
    pub(crate) fn list_value(&mut self, list: ListRef<'_>) {
        self.list(list.node_count() as u64);
        for node in (0..list.node_count()).filter_map(|at| list.node(at)) {
            match node {
                NodeRef::Packed(node) => self.list_node(node),
                NodeRef::Lone(element) => {
                    let mut node = PackedList::new();
                    node.push_back(Elem::Bytes(element));
                    self.list_node(node.view());
                }
                NodeRef::Plain(element) => self.list_plain_node(element),
            }
        }
    }

    /// The start of a list; as many nodes have to follow.
    pub(crate) fn list(&mut self, nodes: u64) {
        self.byte(kind::LIST_QUICKLIST_2);
        self.length(nodes);
    }

    /// A packed node of a list.
    pub(crate) fn list_node(&mut self, node: PackedListView<'_>) {
        self.length(2);
        self.listpack(node);
    }

    /// A node of a list that is one element.
    pub(crate) fn list_plain_node(&mut self, element: &[u8]) {
        self.length(1);
        self.string(element);
    }

    /// A packed block as a string.
    pub(crate) fn listpack(&mut self, node: PackedListView<'_>) {
        let mut listpack = Vec::new();
        node.write_listpack(&mut listpack);
        self.string(&listpack);
    }

    pub(crate) fn packed(&mut self, kind: u8, view: PackedView<'_>) {
        let mut listpack = Vec::new();
        view.write_listpack(&mut listpack);
        self.byte(kind);
        self.string(&listpack);
    }

    /// A byte as it is.
    pub(crate) fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A length, or any other number that is not negative.
    pub(crate) fn length(&mut self, length: u64) {
        match length {
            ..0x40 => self.out.push(length as u8),
            0x40..0x4000 => self.raw(&(0x4000 | length as u16).to_be_bytes()),
            0x4000..=0xffff_ffff => {
                self.out.push(0x80);
                self.raw(&(length as u32).to_be_bytes());
            }
            _ => {
                self.out.push(0x81);
                self.raw(&length.to_be_bytes());
            }
        }
    }

    /// A string: an integer where it is one, compressed where that helps, as it is otherwise.
    pub(crate) fn string(&mut self, string: &[u8]) {
        if string.len() <= LONGEST_INTEGER
            && let Some(integer) = number::parse_i64(string)
            && self.integer(integer)
        {
            return;
        }
        if string.len() > MIN_COMPRESSED
            && self.compression == Compression::Lzf
            && self.compressed(string)
        {
            return;
        }
        self.length(string.len() as u64);
        self.raw(string);
    }

    /// The string of an integer.
    pub(crate) fn integer_string(&mut self, integer: i64) {
        if !self.integer(integer) {
            let text = number::format_i64(integer);
            self.length(text.len() as u64);
            self.raw(&text);
        }
    }

    fn integer(&mut self, integer: i64) -> bool {
        let bytes = integer.to_le_bytes();
        let (mark, width) = match integer {
            -0x80..=0x7f => (0xc0, 1),
            -0x8000..=0x7fff => (0xc1, 2),
            -0x8000_0000..=0x7fff_ffff => (0xc2, 4),
            _ => return false,
        };
        self.out.push(mark);
        self.raw(&bytes[..width]);
        true
    }

    fn compressed(&mut self, string: &[u8]) -> bool {
        let mut compressed = Vec::new();
        if !lzf::compress(string, &mut compressed, MIN_SAVED) {
            return false;
        }
        self.out.push(0xc3);
        self.length(compressed.len() as u64);
        self.length(string.len() as u64);
        self.raw(&compressed);
        true
    }
}
