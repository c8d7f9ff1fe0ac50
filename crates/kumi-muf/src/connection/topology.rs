//! Which primary has which slot, as a cluster says it.

use std::sync::Arc;

use redis::aio::ConnectionLike;
use redis::{Value, cmd, from_redis_value};

/// Slots of a Redis Cluster.
const SLOTS: usize = 16_384;

/// `host:port` of a node, or nothing for the single server of the URL.
pub(super) type Address = Arc<str>;

/// The node as the URL's address and its neighbours are named: the single server of the URL has no name.
pub(super) fn name(address: &Address) -> Option<&str> {
    Some(&**address).filter(|address| !address.is_empty())
}

/// What a cluster says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Topology {
    pub(super) primaries: Vec<Address>,
    pub(super) slots: Vec<Option<Address>>,
}

impl Topology {
    /// A single server.
    pub(super) fn single() -> Self {
        Self {
            primaries: vec![Address::from("")],
            slots: Vec::new(),
        }
    }

    /// Asks a node. `None` if it is not part of a cluster; `host` stands in where a node does not know its own name.
    pub(super) async fn ask(
        commands: &mut (impl ConnectionLike + Send),
        host: &str,
    ) -> Result<Option<Self>, redis::RedisError> {
        match cmd("CLUSTER")
            .arg("SLOTS")
            .query_async::<Value>(commands)
            .await
        {
            Ok(value) => Ok(Some(Self::read(value, host))),
            Err(error)
                if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() =>
            {
                Err(error)
            }
            Err(_) => Ok(None),
        }
    }

    /// ```text
    /// [[first slot, last slot, [host, port, id, ...] of the primary, replicas...], ...]
    /// ```
    fn read(value: Value, host: &str) -> Self {
        let mut topology = Self {
            primaries: Vec::new(),
            slots: vec![None; SLOTS],
        };
        let Value::Array(ranges) = value else {
            return topology;
        };
        for range in ranges {
            let Value::Array(range) = range else { continue };
            let [
                Value::Int(first),
                Value::Int(last),
                Value::Array(primary),
                ..,
            ] = &range[..]
            else {
                continue;
            };
            let [name, Value::Int(port), ..] = &primary[..] else {
                continue;
            };
            let name: String = from_redis_value(name.clone()).unwrap_or_default();
            let name = if name.is_empty() || name == "?" {
                host
            } else {
                &name
            };
            let address = Address::from(format!("{name}:{port}"));
            if !topology.primaries.contains(&address) {
                topology.primaries.push(address.clone());
            }
            for slot in *first..=*last {
                if let Some(owner) = usize::try_from(slot)
                    .ok()
                    .and_then(|slot| topology.slots.get_mut(slot))
                {
                    *owner = Some(address.clone());
                }
            }
        }
        topology.primaries.sort_unstable();
        topology
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_read_from_what_a_node_says() {
        let primary = |host: &str, port| {
            Value::Array(vec![
                Value::BulkString(host.into()),
                Value::Int(port),
                Value::BulkString("id".into()),
            ])
        };
        let range =
            |first, last, node| Value::Array(vec![Value::Int(first), Value::Int(last), node]);
        let value = Value::Array(vec![
            range(0, 9, primary("a", 1)),
            range(10, 16_383, primary("", 2)),
            Value::Int(3),
        ]);
        let topology = Topology::read(value, "here");
        assert_eq!(
            topology.primaries,
            [Address::from("a:1"), Address::from("here:2")]
        );
        assert_eq!(topology.slots[9].as_deref(), Some("a:1"));
        assert_eq!(topology.slots[16_383].as_deref(), Some("here:2"));
    }
}
