//! Which primary has which slot, as a cluster says it.

use std::sync::Arc;

use redis::{Value, from_redis_value};

/// Slots of a Redis Cluster.
const SLOTS: usize = 16_384;

/// `host:port` of a node, or nothing for the server of the URL.
pub type Address = Arc<str>;

/// The node as the URL's address and its neighbours are named: the server of the URL has no name.
pub(crate) fn name(address: &Address) -> Option<&str> {
    Some(&**address).filter(|address| !address.is_empty())
}

/// What a cluster says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotMap {
    /// All primaries, sorted.
    pub primaries: Vec<Address>,
    /// All replicas, as often as they are named.
    pub replicas: Vec<Address>,
    /// The primary of each slot; empty for a single server.
    pub slots: Vec<Option<Address>>,
}

impl SlotMap {
    /// A single server.
    pub(crate) fn single() -> Self {
        Self {
            primaries: vec![Address::from("")],
            replicas: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// Reads the reply to CLUSTER SLOTS. `host` stands in where a node does not know its own name.
    ///
    /// ```text
    /// [[first slot, last slot, [host, port, id, ...] of the primary, replicas...], ...]
    /// ```
    pub fn read(value: &Value, host: &str) -> Self {
        let mut map = Self {
            primaries: Vec::new(),
            replicas: Vec::new(),
            slots: vec![None; SLOTS],
        };
        let Value::Array(ranges) = value else {
            return map;
        };
        for range in ranges {
            let Value::Array(range) = range else { continue };
            let [Value::Int(first), Value::Int(last), primary, replicas @ ..] = &range[..] else {
                continue;
            };
            let Some(primary) = node(primary, host) else {
                continue;
            };
            for slot in *first..=*last {
                let slot = usize::try_from(slot).ok();
                if let Some(owner) = slot.and_then(|slot| map.slots.get_mut(slot)) {
                    *owner = Some(primary.clone());
                }
            }
            if !map.primaries.contains(&primary) {
                map.primaries.push(primary);
            }
            let replicas = replicas.iter().filter_map(|replica| node(replica, host));
            map.replicas.extend(replicas);
        }
        map.primaries.sort_unstable();
        map
    }

    /// The primary that has a key.
    pub fn owner(&self, key: &[u8]) -> Option<&Address> {
        self.slots.get(usize::from(slot(key)))?.as_ref()
    }
}

fn node(value: &Value, host: &str) -> Option<Address> {
    let Value::Array(node) = value else {
        return None;
    };
    let [name, Value::Int(port), ..] = &node[..] else {
        return None;
    };
    let name: String = from_redis_value(name.clone()).unwrap_or_default();
    let name = match &*name {
        "" | "?" => host,
        name => name,
    };
    Some(Address::from(format!("{name}:{port}")))
}

/// CRC16 as Redis Cluster uses it, over the hash tag if there is one.
pub(crate) fn slot(key: &[u8]) -> u16 {
    let open = key.iter().position(|byte| *byte == b'{');
    let tag = open.and_then(|open| {
        let rest = &key[open + 1..];
        Some(&rest[..rest.iter().position(|byte| *byte == b'}')?])
    });
    let hashed = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    let crc = hashed.iter().fold(0u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    });
    crc % SLOTS as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"MUF/a/REQ/x.y~{foo}"), 12_182);
        assert_eq!(slot(b"kumi:jobs:{foo}:queue"), 12_182);
        // An empty hash tag is none.
        assert_eq!(slot(b"{}foo"), 9_500);
    }

    #[test]
    fn slots_are_read_from_what_a_node_says() {
        let node = |host: &str, port| {
            Value::Array(vec![
                Value::BulkString(host.into()),
                Value::Int(port),
                Value::BulkString("id".into()),
            ])
        };
        let range = |first, last, nodes: &[Value]| {
            Value::Array([&[Value::Int(first), Value::Int(last)], nodes].concat())
        };
        let value = Value::Array(vec![
            range(0, 9, &[node("a", 1), node("b", 3)]),
            range(10, 16_383, &[node("", 2)]),
            Value::Int(3),
        ]);
        let map = SlotMap::read(&value, "here");
        assert_eq!(map.primaries, ["a:1", "here:2"].map(Address::from));
        assert_eq!(map.replicas, [Address::from("b:3")]);
        assert_eq!(map.slots[9].as_deref(), Some("a:1"));
        assert_eq!(map.owner(b"foo").map(|it| &**it), Some("here:2"));
    }
}
