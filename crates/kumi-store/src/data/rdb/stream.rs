//! Streams: their nodes, counters, groups and pending entries.
//!
//! ```text
//! count of nodes, each: id as a string of 16 bytes, listpack as a string
//! length, last id (ms, seq)
//! from version 2 of the format: first id, largest deleted id, entries added
//! count of groups, each: name, last id, (version 2) entries read,
//!     count of pending entries, each: 16 bytes id, 8 bytes time of delivery, count of deliveries
//!     count of consumers, each: name, 8 bytes seen time, (version 3) 8 bytes active time,
//!         count of pending entries, each: 16 bytes id
//! ```
//!
//! What is written is version 2, without active times: Redis 7.0 does not know them.

use super::{Input, RdbError, Reader, Writer, kind};
use crate::types::packed::PackedList;
use crate::types::stream::{Counters, Group, Nack, Stream, StreamId};
use std::collections::BTreeMap;

/// How "unknown" is written where a count of entries read stands.
const UNKNOWN_READ: u64 = u64::MAX;

/// Reads a stream, checking all of it.
pub(super) fn read_stream<I: Input>(kind: u8, reader: &mut Reader<I>) -> Result<Stream, RdbError> {
    let mut stream = Stream::new();
    for _ in 0..reader.length()? {
        let key = reader.string()?;
        let key: [u8; 16] = key
            .try_into()
            .map_err(|_| RdbError::Corrupt("the id of a stream's node is not 16 bytes long"))?;
        let node = PackedList::from_listpack(reader.string()?)
            .ok_or(RdbError::Corrupt("a node of a stream is malformed"))?;
        stream
            .restore_node(StreamId::from_bytes(key), node)
            .map_err(|_| RdbError::Corrupt("a node of a stream is malformed or out of order"))?;
    }
    let length = reader.length()?;
    if (length == 0) != stream.is_empty() {
        return Err(RdbError::Corrupt("a stream's length and nodes differ"));
    }
    let last_id = id(reader)?;
    let counters = match kind {
        kind::STREAM_LISTPACKS => None,
        _ => Some(Counters {
            first_id: id(reader)?,
            max_deleted_id: id(reader)?,
            entries_added: reader.length()?,
        }),
    };
    stream
        .restore_counters(last_id, counters)
        .map_err(|_| RdbError::Corrupt("an entry of a stream is above its last id"))?;
    let mut groups = Vec::new();
    for _ in 0..reader.length()? {
        groups.push(read_group(kind, reader, &stream)?);
    }
    match stream.restore_groups(groups) {
        true => Ok(stream),
        false => Err(RdbError::Duplicate("consumer group")),
    }
}

/// Reads a group with its name. Names come in any order, so they are compared with each other when all are there.
fn read_group<I: Input>(
    kind: u8,
    reader: &mut Reader<I>,
    stream: &Stream,
) -> Result<(Box<[u8]>, Box<Group>), RdbError> {
    let name = reader.string()?.into();
    let last_id = id(reader)?;
    let entries_read = match kind {
        kind::STREAM_LISTPACKS => stream.position(last_id),
        _ => Some(reader.length()?).filter(|&read| read != UNKNOWN_READ),
    };
    let mut group = Box::new(Group::new(last_id, entries_read));
    // Time and count of each pending entry, until a consumer claims it.
    let mut pending = BTreeMap::new();
    for _ in 0..reader.length()? {
        let id = StreamId::from_bytes(reader.array()?);
        let state = (reader.milliseconds()?, reader.length()?);
        if pending.insert(id, state).is_some() {
            return Err(RdbError::Duplicate("pending entry"));
        }
    }
    let mut consumer_name = Vec::new();
    for _ in 0..reader.length()? {
        reader.string_into(&mut consumer_name)?;
        let seen_time = reader.milliseconds()?;
        let active_time = match kind {
            kind::STREAM_LISTPACKS_3 => reader.milliseconds()?,
            _ => seen_time,
        };
        let consumer = group.restore_consumer(&consumer_name, seen_time, active_time);
        for _ in 0..reader.length()? {
            let id = StreamId::from_bytes(reader.array()?);
            let (delivery_time, delivery_count) = pending.remove(&id).ok_or(RdbError::Corrupt(
                "a consumer's pending entry is not the group's",
            ))?;
            let nack = Nack {
                consumer,
                delivery_time,
                delivery_count,
            };
            group.set_pending(id, nack);
        }
    }
    if !group.sort_consumers() {
        return Err(RdbError::Duplicate("consumer"));
    }
    match pending.is_empty() {
        true => Ok((name, group)),
        false => Err(RdbError::Corrupt("a pending entry has no consumer")),
    }
}

fn id<I: Input>(reader: &mut Reader<I>) -> Result<StreamId, RdbError> {
    Ok(StreamId::new(reader.length()?, reader.length()?))
}

/// Writes a stream.
pub(crate) fn write_stream(writer: &mut Writer<'_>, stream: &Stream) {
    writer.byte(kind::STREAM_LISTPACKS_2);
    writer.length(stream.node_count() as u64);
    for (id, node) in stream.redis_nodes() {
        writer.string(&id.to_bytes());
        writer.listpack(node.view());
    }
    writer.length(stream.len());
    for id in [stream.last_id(), stream.first_id(), stream.max_deleted_id()] {
        write_id(writer, id);
    }
    writer.length(stream.entries_added());
    writer.length(stream.group_count() as u64);
    for (name, group) in stream.groups() {
        writer.string(name);
        write_id(writer, group.last_id());
        writer.length(group.entries_read().unwrap_or(UNKNOWN_READ));
        writer.length(group.pending_count() as u64);
        for (id, nack) in group.pending(StreamId::MIN..=StreamId::MAX) {
            writer.raw(&id.to_bytes());
            writer.raw(&nack.delivery_time.to_le_bytes());
            writer.length(nack.delivery_count);
        }
        writer.length(group.consumer_count() as u64);
        for consumer in group.consumers() {
            writer.string(consumer.name());
            writer.raw(&consumer.seen_time.to_le_bytes());
            writer.length(consumer.pending_count() as u64);
            for id in consumer.pending(StreamId::MIN..=StreamId::MAX) {
                writer.raw(&id.to_bytes());
            }
        }
    }
}

fn write_id(writer: &mut Writer<'_>, id: StreamId) {
    writer.length(id.ms);
    writer.length(id.seq);
}
