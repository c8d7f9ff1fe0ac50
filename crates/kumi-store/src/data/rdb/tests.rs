//! Recorded values of Redis 6.2 and 7.2, a running redis-server in both directions, and damage of every kind.

mod damage;
mod file;
mod primitives;
mod recorded;
mod redis;

use super::*;
use crate::testing::json;
use crate::types::packed::{Elem, Packed};
use std::collections::{BTreeMap, BTreeSet};

/// A value as a test compares it.
#[derive(Clone, Debug, Default, PartialEq)]
enum Collected {
    #[default]
    Nothing,
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    SortedSet(BTreeMap<Vec<u8>, f64>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Stream(Box<Stream>),
}

impl Visitor for Collected {
    fn string(&mut self, value: &[u8]) {
        *self = Collected::String(value.to_vec());
    }

    fn begin(&mut self, kind: Type, _claimed: u64) {
        *self = match kind {
            Type::List => Collected::List(Vec::new()),
            Type::Set => Collected::Set(BTreeSet::new()),
            Type::SortedSet => Collected::SortedSet(BTreeMap::new()),
            Type::Hash => Collected::Hash(BTreeMap::new()),
        };
    }

    fn list_element(&mut self, element: &[u8]) {
        match self {
            Collected::List(list) => list.push(element.to_vec()),
            other => panic!("an element for {other:?}"),
        }
    }

    fn list_node(&mut self, node: PackedList) {
        assert!(!node.is_empty());
        node.view()
            .iter()
            .for_each(|elem| self.list_element(&elem.text()));
    }

    fn list_plain_node(&mut self, element: &[u8]) {
        self.list_element(element);
    }

    fn set_member(&mut self, member: &[u8]) -> bool {
        match self {
            Collected::Set(set) => set.insert(member.to_vec()),
            other => panic!("a member for {other:?}"),
        }
    }

    fn sorted_set_member(&mut self, member: &[u8], score: f64) -> bool {
        assert!(!score.is_nan());
        match self {
            Collected::SortedSet(set) => set.insert(member.to_vec(), score).is_none(),
            other => panic!("a member for {other:?}"),
        }
    }

    fn hash_field(&mut self, field: &[u8], value: &[u8]) -> bool {
        match self {
            Collected::Hash(hash) => hash.insert(field.to_vec(), value.to_vec()).is_none(),
            other => panic!("a field for {other:?}"),
        }
    }

    fn stream(&mut self, stream: Stream) {
        *self = Collected::Stream(Box::new(stream));
    }
}

impl Collected {
    /// Writes the value, small collections in their packed form.
    fn write(&self, writer: &mut Writer<'_>) {
        const SMALL: usize = 100;
        match self {
            Collected::Nothing => panic!("there is no value"),
            Collected::String(value) => writer.string_value(value),
            Collected::List(list) => {
                let nodes: Vec<&[Vec<u8>]> = list.chunks(50).collect();
                writer.list(nodes.len() as u64);
                for node in nodes {
                    match node {
                        [element] => writer.list_plain_node(element),
                        _ => {
                            let mut packed = PackedList::new();
                            node.iter()
                                .for_each(|element| packed.push_back(Elem::parse(element)));
                            writer.list_node(packed.view());
                        }
                    }
                }
            }
            Collected::Set(set) => {
                let integers: Option<BTreeSet<i64>> = set
                    .iter()
                    .map(|member| crate::base::number::parse_i64(member))
                    .collect();
                match integers {
                    Some(integers) if integers.len() < SMALL => {
                        writer.intset(&Vec::from_iter(integers));
                    }
                    _ => writer.set(set.len() as u64, set.iter()),
                }
            }
            Collected::SortedSet(set) if set.len() < SMALL => {
                let mut sorted: Vec<_> = set.iter().collect();
                sorted.sort_by(|left, right| left.1.total_cmp(right.1));
                let mut packed = Packed::new();
                for (member, score) in sorted {
                    packed.push_back(Elem::parse(member));
                    // Redis reads no more than 127 characters of a score.
                    let text = match score.fract() == 0.0 && score.abs() < 1e15 {
                        true => score.to_string(),
                        false => format!("{score:e}"),
                    };
                    packed.push_back(Elem::parse(text.as_bytes()));
                }
                writer.packed(kind::ZSET_LISTPACK, packed.view());
            }
            Collected::SortedSet(set) => {
                let members = set.iter().map(|(member, score)| (member, *score));
                writer.sorted_set(set.len() as u64, members);
            }
            Collected::Hash(hash) if hash.len() < SMALL => {
                let mut packed = Packed::new();
                for (field, value) in hash {
                    packed.push_back(Elem::parse(field));
                    packed.push_back(Elem::parse(value));
                }
                writer.packed_hash(packed.view());
            }
            Collected::Hash(hash) => writer.hash(hash.len() as u64, hash.iter()),
            Collected::Stream(stream) => write_stream(writer, stream),
        }
    }

    /// The DUMP payload of the value.
    fn dump(&self, compression: Compression) -> Vec<u8> {
        let mut payload = Vec::new();
        self.write(&mut Writer::new(&mut payload, compression));
        seal(&mut payload);
        payload
    }
}

/// Reads a DUMP payload as RESTORE would.
fn restore(payload: &[u8]) -> Result<Collected, DumpError> {
    let (kind, value) = open(payload, false)?;
    read_value(kind, value).map_err(|_| DumpError::Format)
}

fn read_value(kind: u8, value: &[u8]) -> Result<Collected, RdbError> {
    let mut collected = Collected::default();
    let mut reader = Reader::new(value);
    decode(kind, &mut reader, &mut collected)?;
    Ok(collected)
}
