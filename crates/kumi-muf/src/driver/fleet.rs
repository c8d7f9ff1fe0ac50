//! Which node has which slot, and which nodes are connected. A single server is a fleet of one.
//!
//! It does not connect by itself: the engine has that done by tasks, and puts the result here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use redis::aio::ConnectionLike;
use redis::{Value, cmd, from_redis_value};
use tokio::sync::oneshot;

use super::encode::slot;
use super::pipe::Pipe;
use super::pipelines::Waiting;
use super::remote::Remote;
use crate::core::{Command, Time};

/// Slots of a Redis Cluster.
const SLOTS: usize = 16_384;

/// `host:port` of a node, or nothing for the single server of the URL.
pub(super) type Address = Arc<str>;

/// A node of the fleet.
pub(super) struct Node {
    /// Counts connections: what an older one says is ignored.
    pub(super) generation: u64,
    pub(super) up: Option<Up>,
}

/// A connected node.
pub(super) struct Up {
    pub(super) commands: Pipe,
    /// Recipients of replies, in the order of the commands.
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) pushes: Pipe,
    /// Recipients of confirmations on the connection for pushes, in order, with the time of the command.
    pub(super) confirming: VecDeque<(oneshot::Sender<Vec<Value>>, Time)>,
    /// How tasks use it.
    pub(super) remote: Remote,
}

impl Up {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let (commands, pushes) = (self.commands.poll(cx), self.pushes.poll(cx));
        commands.is_ready() || pushes.is_ready()
    }
}

/// All nodes.
#[derive(Default)]
pub(super) struct Fleet {
    pub(super) nodes: HashMap<Address, Node>,
    /// Owner of each slot; empty on a single server.
    slots: Vec<Option<Address>>,
}

impl Fleet {
    pub(super) fn is_cluster(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Takes a new map of slots. Returns nodes that have to be connected, and those that it does not name, dropped.
    pub(super) fn adopt(&mut self, topology: Topology) -> (Vec<Address>, Vec<Node>) {
        self.slots = topology.slots;
        let dropped = self
            .nodes
            .extract_if(|address, _| !topology.primaries.contains(address))
            .map(|(_, node)| node)
            .collect();
        let missing: Vec<Address> = topology
            .primaries
            .into_iter()
            .filter(|address| !self.nodes.contains_key(address))
            .collect();
        for address in &missing {
            self.nodes.insert(
                address.clone(),
                Node {
                    generation: 0,
                    up: None,
                },
            );
        }
        (missing, dropped)
    }

    /// Writes what is to go out, as far as it goes without waiting.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        for up in self.ups() {
            up.commands.flush(cx);
            up.pushes.flush(cx);
        }
    }

    /// Writes what is to go out and reads what has come, on all connections, without waiting. Ready when something
    /// came or a connection ended.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut ready = false;
        for up in self.ups() {
            ready |= up.poll(cx);
        }
        match ready {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn ups(&mut self) -> impl Iterator<Item = &mut Up> {
        self.nodes.values_mut().filter_map(|node| node.up.as_mut())
    }

    pub(super) fn all_up(&self) -> bool {
        self.nodes.values().all(|node| node.up.is_some())
    }

    pub(super) fn none_up(&self) -> bool {
        self.nodes.values().all(|node| node.up.is_none())
    }

    /// Whether no reply is outstanding. Upkeep does not count.
    pub(super) fn is_quiet(&self) -> bool {
        let mut ups = self.nodes.values().filter_map(|node| node.up.as_ref());
        ups.all(|up| up.waiting.is_empty())
    }

    /// All connected nodes, for tasks.
    pub(super) fn remotes(&self) -> Vec<Remote> {
        let ups = self.nodes.values().filter_map(|node| node.up.as_ref());
        ups.map(|up| up.remote.clone()).collect()
    }

    /// The node that has `key`.
    pub(super) fn owner(&mut self, key: &str) -> Option<&mut Up> {
        if self.slots.is_empty() {
            return self.ups().next();
        }
        let address = self.slots[usize::from(slot(key))].clone()?;
        self.at(&address)
    }

    /// The node at `address`.
    pub(super) fn at(&mut self, address: &str) -> Option<&mut Up> {
        self.nodes.get_mut(address)?.up.as_mut()
    }

    /// The node at `address`, if it was not connected anew.
    pub(super) fn up_of(&mut self, address: &str, generation: u64) -> Option<&mut Up> {
        let node = self.nodes.get_mut(address)?;
        node.up.as_mut().filter(|_| node.generation == generation)
    }

    /// Whether all keys of a pipeline live on one node for certain. Those of a bare ID on a cluster do not.
    pub(super) fn is_together(&self, commands: &[Command]) -> bool {
        if !self.is_cluster() {
            return true;
        }
        let mut slots = commands
            .iter()
            .flat_map(super::encode::keys)
            .map(|key| slot(key));
        let first = slots.next();
        slots.all(|slot| Some(slot) == first)
    }
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
