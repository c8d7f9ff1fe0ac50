//! What the fuzz targets call directly. Not part of the public API: nothing here is stable.

use crate::base::clock::Now;
use crate::base::lzf;
use crate::base::seeds::Seeds;
use crate::config::Config;
use crate::data::rdb;
use crate::data::rdb::{
    Compression, RdbError, Reader, Type, Visitor, Writer, decode, write_stream,
};
use crate::engine::store::Store;
use crate::types::list::{List, ListLimits, Side};
use crate::types::packed::{Elem, Packed, PackedList};
use crate::types::stream::{Stream, StreamId};
use std::collections::{BTreeMap, BTreeSet};

/// Finishes the payload of a DUMP: appends version and checksum.
pub fn seal_dump(payload: &mut Vec<u8>) {
    rdb::seal(payload);
}

/// Reads a DUMP payload, and checks that a value that was read can be written and read again.
///
/// # Panics
///
/// When it cannot.
pub fn restore(payload: &[u8]) -> bool {
    let Ok((kind, value)) = rdb::open(payload, false) else {
        return false;
    };
    let Ok(first) = read(kind, value) else {
        return false;
    };
    for compression in [Compression::Lzf, Compression::None] {
        let mut written = Vec::new();
        first.write(&mut Writer::new(&mut written, compression));
        rdb::seal(&mut written);
        let second = rdb::open(&written, false)
            .ok()
            .and_then(|(kind, value)| read(kind, value).ok());
        let second = second.expect("what was written can be read");
        assert_eq!(first.summary(), second.summary());
    }
    true
}

/// Loads bytes as an RDB file; what was loaded can be saved and loaded again, key for key.
///
/// # Panics
///
/// When it cannot.
pub fn load_file(file: &[u8]) -> bool {
    let load = |file: &[u8]| {
        let now = Now {
            unix_us: 1_700_000_000_000_000,
            mono_ns: 0,
        };
        let mut store = Store::new(Config::new(), Seeds::from_seed(7), now);
        let loaded = store.load_rdb(file, |_| {}).ok()?;
        Some((store, loaded.keys))
    };
    let Some((store, keys)) = load(file) else {
        return false;
    };
    let mut saved = Vec::new();
    let written = store.save_rdb(&mut saved);
    assert!(written.is_ok(), "memory takes everything");
    let again = load(&saved).expect("what was saved can be loaded");
    assert_eq!(keys, again.1);
    true
}

/// Compresses and expands bytes, and expands them as if they were compressed.
///
/// # Panics
///
/// When what was compressed does not come back.
pub fn lzf(bytes: &[u8], length: usize) {
    let mut compressed = Vec::new();
    if lzf::compress(bytes, &mut compressed, 0) {
        let mut again = Vec::new();
        let expanded = lzf::decompress(&compressed, bytes.len(), &mut again);
        assert!(expanded.is_ok() && again == bytes);
    }
    let mut out = Vec::new();
    if lzf::decompress(bytes, length, &mut out).is_ok() {
        assert_eq!(out.len(), length);
    }
}

fn read(kind: u8, value: &[u8]) -> Result<Value, RdbError> {
    let mut visited = Value::default();
    decode(kind, &mut Reader::new(value), &mut visited)?;
    if let Value::List(list) = &mut visited {
        list.settle(false, ListLimits::default());
    }
    Ok(visited)
}

/// A value that was read.
#[derive(Debug, Default)]
enum Value {
    #[default]
    None,
    String(Vec<u8>),
    List(List),
    Set(BTreeSet<Vec<u8>>),
    SortedSet(BTreeMap<Vec<u8>, f64>),
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
    Stream(Box<Stream>),
}

impl Value {
    fn write(&self, writer: &mut Writer<'_>) {
        match self {
            Value::None => {}
            Value::String(value) => writer.string_value(value),
            Value::List(list) => writer.list_value(list.view()),
            Value::Set(set) => writer.set(set.len() as u64, set.iter()),
            Value::SortedSet(set) => {
                let members = set.iter().map(|(member, score)| (member, *score));
                writer.sorted_set(set.len() as u64, members);
            }
            Value::Hash(hash) => {
                let mut packed = Packed::new();
                if hash.len() > 1000 {
                    writer.hash(hash.len() as u64, hash.iter());
                    return;
                }
                for (field, value) in hash {
                    packed.push_back(Elem::parse(field));
                    packed.push_back(Elem::parse(value));
                }
                writer.packed_hash(packed.view());
            }
            Value::Stream(stream) => write_stream(writer, stream),
        }
    }

    /// What the value holds, as text.
    fn summary(&self) -> String {
        match self {
            Value::List(list) => {
                let texts: Vec<Vec<u8>> = list
                    .view()
                    .iter()
                    .map(|elem| elem.text().to_vec())
                    .collect();
                let back = list.view().iter_back().count();
                format!("{texts:?} {back} {}", list.len())
            }
            Value::Stream(stream) => {
                let entries: Vec<_> = stream
                    .range(StreamId::MIN, StreamId::MAX)
                    .map(|entry| (entry.id(), entry.fields().count()))
                    .collect();
                let back = stream.range_back(StreamId::MIN, StreamId::MAX).count();
                let groups: Vec<_> = stream
                    .groups()
                    .map(|(name, group)| (name.to_vec(), group.pending_count(), stream.lag(group)))
                    .collect();
                format!("{entries:?} {back} {groups:?} {}", stream.len())
            }
            other => format!("{other:?}"),
        }
    }
}

impl Visitor for Value {
    fn string(&mut self, value: &[u8]) {
        *self = Value::String(value.to_vec());
    }

    fn begin(&mut self, kind: Type, _: u64) {
        *self = match kind {
            Type::List => Value::List(List::new()),
            Type::Set => Value::Set(BTreeSet::new()),
            Type::SortedSet => Value::SortedSet(BTreeMap::new()),
            Type::Hash => Value::Hash(BTreeMap::new()),
        };
    }

    fn list_element(&mut self, element: &[u8]) {
        if let Value::List(list) = self {
            list.prepare(1, element.len(), ListLimits::default());
            list.push(Side::Back, element, ListLimits::default());
        }
    }

    fn list_node(&mut self, node: PackedList) {
        if let Value::List(list) = self {
            list.push_node(node);
        }
    }

    fn list_plain_node(&mut self, element: &[u8]) {
        if let Value::List(list) = self {
            list.push_plain_node(element);
        }
    }

    fn set_member(&mut self, member: &[u8]) -> bool {
        let Value::Set(set) = self else {
            return false;
        };
        set.insert(member.to_vec())
    }

    fn sorted_set_member(&mut self, member: &[u8], score: f64) -> bool {
        let Value::SortedSet(set) = self else {
            return false;
        };
        set.insert(member.to_vec(), score).is_none()
    }

    fn hash_field(&mut self, field: &[u8], value: &[u8]) -> bool {
        let Value::Hash(hash) = self else {
            return false;
        };
        hash.insert(field.to_vec(), value.to_vec()).is_none()
    }

    fn stream(&mut self, stream: Stream) {
        *self = Value::Stream(Box::new(stream));
    }
}
