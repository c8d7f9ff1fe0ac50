//! Nodes as Redis lays them out, for DUMP payloads and RDB files.
//!
//! ```text
//! master entry:  live | deleted | field count | fields .. | 0
//! entry:         flags | ms | seq | (field count | (field | value) ..) | elements before this one
//! entry with the master's fields:  flags | ms | seq | values .. | elements before this one
//! ```
//!
//! Flag 1: deleted. Flag 2: the fields are the master's.

use super::StreamId;
use super::node::{self, DELETED, Head, Node, NodeError, REDIS_HEAD, SAME_FIELDS};
use crate::types::packed::{Elem, PackedList, PackedListView};

/// A node in Redis's layout.
pub(super) fn to_redis(master: StreamId, block: &PackedList) -> PackedList {
    let node = Node::new(master, block);
    let fields = node.master_fields();
    let (live, deleted) = node.counters();
    let counts = [live as i64, deleted as i64, fields.clone().count() as i64].map(Elem::Int);
    let mut redis = PackedList::new();
    redis.push_all(counts.into_iter().chain(fields).chain([Elem::Int(0)]));
    for place in node.places() {
        let body = node.body(place);
        let elements = Elem::Int((REDIS_HEAD + body.clone().count()) as i64);
        let head = place.head(master).redis_elements().into_iter();
        redis.push_all(head.chain(body).chain([elements]));
    }
    redis
}

/// A node that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Restored {
    pub(super) block: PackedList,
    /// The number of live entries.
    pub(super) live: u64,
    /// The id of the last live entry, or the node's own if there is none.
    pub(super) last_id: StreamId,
}

/// The node of one in Redis's layout. The ids of its live entries ascend, and none is below the node's.
pub(super) fn from_redis(master: StreamId, redis: &PackedList) -> Result<Restored, NodeError> {
    read(master, redis.view()).ok_or(NodeError::Malformed)
}

fn read(master: StreamId, view: PackedListView<'_>) -> Option<Restored> {
    let mut elements = view.iter();
    let mut count = || usize::try_from(elements.next()?.int()?).ok();
    let (live, deleted, master_fields) = (count()?, count()?, count()?);
    let mut fields = Vec::new();
    for _ in 0..master_fields {
        fields.push(elements.next()?);
    }
    if elements.next()?.int()? != 0 {
        return None;
    }
    let mut block = node::master(live as i64, deleted as i64, fields.into_iter());
    let (mut seen_live, mut last_id) = (0, master);
    for _ in 0..live.checked_add(deleted)? {
        let flags = elements.next()?.int()?;
        let head = Head {
            flags: flags & (DELETED | SAME_FIELDS),
            ms: elements.next()?.int()?,
            seq: elements.next()?.int()?,
        };
        let body = elements.clone();
        let len = match flags & SAME_FIELDS {
            0 => {
                let fields = usize::try_from(elements.next()?.int()?).ok()?;
                let texts = fields.checked_mul(2)?;
                skip(&mut elements, texts)?;
                texts.checked_add(1)?
            }
            _ => {
                skip(&mut elements, master_fields)?;
                master_fields
            }
        };
        if usize::try_from(elements.next()?.int()?).ok() != REDIS_HEAD.checked_add(len) {
            return None;
        }
        node::push(&mut block, head, body.take(len), len);
        if flags & DELETED == 0 {
            // Redis 7.0 can have added an entry below one that was deleted, so deleted ones are not compared.
            let id = head.id(master);
            if id < last_id || id == last_id && seen_live > 0 {
                return None;
            }
            (seen_live, last_id) = (seen_live + 1, id);
        }
    }
    (elements.next().is_none() && seen_live == live).then_some(Restored {
        block,
        live: live as u64,
        last_id,
    })
}

fn skip<'a>(elements: &mut impl Iterator<Item = Elem<'a>>, count: usize) -> Option<()> {
    for _ in 0..count {
        elements.next()?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(block: &PackedList) -> Vec<String> {
        let text = |elem: Elem<'_>| elem.text().escape_ascii().to_string();
        block.view().iter().map(text).collect()
    }

    #[test]
    fn a_node_has_the_elements_of_redis_when_it_is_written() {
        let master = StreamId::new(1000, 7);
        let mut block = node::begin(master, &[b"a", b"1", b"b", b"x"]);
        for (id, fields) in [
            ((1000, 8), &[b"a".as_slice(), b"2", b"b", b"y"]),
            ((1009, 7), &[b"a", b"3", b"c", b"z"]),
        ] {
            node::append(&mut block, master, StreamId::new(id.0, id.1), fields);
        }
        let second = Node::new(master, &block).places().nth(1).unwrap();
        node::mark_deleted(&mut block, &[second]);
        let redis = to_redis(master, &block);
        assert_eq!(
            texts(&redis).join(" "),
            "2 1 2 a b 0 2 0 0 1 x 5 3 0 1 2 y 5 0 9 0 2 a 3 c z 8"
        );
        let restored = Restored {
            block,
            live: 2,
            last_id: StreamId::new(1009, 7),
        };
        assert_eq!(from_redis(master, &redis), Ok(restored));
        // Read from a later id on, its entries would be below the node's own.
        let below = StreamId::new(u64::MAX, 0);
        assert_eq!(from_redis(below, &redis), Err(NodeError::Malformed));
    }

    #[test]
    fn the_size_is_that_of_the_node_of_redis() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let bits = rng.u32(1..64);
            let master = StreamId::new(rng.u64(..1 << bits), rng.u64(..3));
            let mut block = node::begin(master, &[b"field", b"1"]);
            let mut id = master;
            for number in 0..rng.usize(1..300) {
                let bits = rng.u32(..60);
                let ms = id.ms.saturating_add(rng.u64(..1 << bits));
                let seq = if ms == id.ms {
                    id.seq + 1
                } else {
                    rng.u64(..3)
                };
                id = StreamId::new(ms, seq);
                let value = number.to_string();
                let long = [b"other".as_slice(), value.as_bytes()].repeat(1 + number % 80);
                match rng.u32(..3) {
                    0 => node::append(&mut block, master, id, &long),
                    _ => node::append(&mut block, master, id, &[b"field", value.as_bytes()]),
                }
            }
            let redis = to_redis(master, &block);
            assert_eq!(node::redis_bytes(&block), redis.view().listpack_bytes());
            let last = Node::new(master, &block).last_id();
            assert_eq!(last, Some(id));
            let ids = |block: &PackedList| -> Vec<StreamId> {
                Node::new(master, block)
                    .places()
                    .map(|it| it.id())
                    .collect()
            };
            let again = from_redis(master, &redis).unwrap().block;
            assert_eq!((ids(&again), &again), (ids(&block), &block));
        }
    }
}
