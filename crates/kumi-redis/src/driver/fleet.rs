//! Which node has which slot, and which nodes are connected. A single server is a fleet of one.
//!
//! It does not connect by itself: `keeping.rs` has that done by tasks, and puts the result here.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use redis::Value;
use tokio::sync::oneshot;

use super::buffered::BufferedStream;
use super::lane::{Arrivals, Bulk, Lane, STEP_LIMIT};
use super::remote::Remote;
use super::waiting::Waiting;
use crate::core::Time;
use crate::core::encode;
use crate::core::slots::slot;
use crate::core::slots::{Address, SlotMap};
use crate::core::strings::Command;
use crate::core::wire::{self, Malformed, Said};

/// A node of the fleet.
pub(super) struct Node<T> {
    /// Counts connections: what an older one says is ignored.
    pub(super) generation: u64,
    pub(super) up: Option<Up<T>>,
    /// The attempt to connect that counts: a node that left and came back may have an older one under way.
    pub(super) attempt: u64,
    /// Why the last attempt failed, which is logged once.
    pub(super) trouble: Option<Arc<str>>,
}

/// A connected node.
pub(super) struct Up<T> {
    pub(super) commands: Lane<T>,
    /// The connection for large values.
    pub(super) bulk: Bulk<T>,
    pub(super) pushes: BufferedStream,
    /// Recipients of confirmations on the connection for pushes, in order, with the time of the command.
    pub(super) confirming: VecDeque<(oneshot::Sender<Vec<Value>>, Time)>,
    pub(super) arrivals: Arrivals,
    /// How tasks use it.
    pub(super) remote: Remote,
}

impl<T> Up<T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let (commands, pushes) = (self.commands.stream.poll(cx), self.pushes.poll(cx));
        let bulk = self.bulk.poll(cx);
        commands.is_ready() || pushes.is_ready() || bulk.is_ready()
    }

    /// Sends a pipeline. Returns the tag of its replies if its connection accepts no more. The connection for large values
    /// may have to be opened then.
    pub(super) fn send(&mut self, waiting: Waiting<T>) -> Option<T> {
        match waiting.bulk {
            true => match self.bulk.send(waiting) {
                Ok(lost) => lost,
                Err(waiting) => self.commands.send(waiting),
            },
            false => self.commands.send(waiting),
        }
    }

    /// Hands pushes to `tell`, as pattern, channel and payload, as many as make a step. Everything else is a
    /// reply, in order. True if there may be more.
    pub(super) fn take_pushes(
        &mut self,
        now: Time,
        mut tell: impl FnMut(&[u8], &[u8], &[u8]),
    ) -> Result<bool, Malformed> {
        self.arrivals.note(&self.pushes, now);
        for _ in 0..STEP_LIMIT {
            let Some((said, length)) = wire::said(self.pushes.unread())? else {
                return Ok(false);
            };
            match said {
                Said::Message {
                    pattern,
                    channel,
                    payload,
                } => tell(pattern, channel, payload),
                Said::Reply(value) => {
                    let (reply, _) = self.confirming.pop_front().ok_or(Malformed)?;
                    let _ = reply.send(vec![value]);
                }
            }
            self.pushes.consume(length);
        }
        Ok(true)
    }

    /// Whether the oldest command without a reply, of one of the two connections that a node has to have, is overdue.
    pub(super) fn is_overdue(&self, now: Time, timeout_ms: u64) -> bool {
        let confirming = self.confirming.front();
        let is_push_overdue =
            confirming.is_some_and(|(_, sent)| self.arrivals.is_overdue(*sent, 0, now, timeout_ms));
        is_push_overdue || self.commands.is_overdue(now, timeout_ms)
    }
}

/// All nodes.
pub(super) struct Fleet<T> {
    pub(super) nodes: HashMap<Address, Node<T>>,
    /// Owner of each slot; empty on a single server.
    slots: Vec<Option<Address>>,
}

impl<T> Default for Fleet<T> {
    fn default() -> Self {
        Self {
            nodes: HashMap::new(),
            slots: Vec::new(),
        }
    }
}

impl<T> Fleet<T> {
    pub(super) fn is_cluster(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Takes a new map of slots. Returns nodes that have to be connected, and those that it does not name, dropped.
    pub(super) fn adopt(&mut self, slot_map: SlotMap) -> (Vec<Address>, Vec<Node<T>>) {
        self.slots = slot_map.slots;
        let dropped = self
            .nodes
            .extract_if(|address, _| !slot_map.primaries.contains(address))
            .map(|(_, node)| node)
            .collect();
        let missing: Vec<Address> = slot_map
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
                    attempt: 0,
                    trouble: None,
                },
            );
        }
        (missing, dropped)
    }

    /// Writes what is to go out, as far as it goes without waiting.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        for up in self.ups() {
            up.commands.stream.flush(cx);
            up.pushes.flush(cx);
            up.bulk.flush(cx);
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

    fn ups(&mut self) -> impl Iterator<Item = &mut Up<T>> {
        self.nodes.values_mut().filter_map(|node| node.up.as_mut())
    }

    pub(super) fn all_up(&self) -> bool {
        self.nodes.values().all(|node| node.up.is_some())
    }

    pub(super) fn none_up(&self) -> bool {
        self.nodes.values().all(|node| node.up.is_none())
    }

    /// Why a node is not connected, if an attempt has failed; of several nodes, the one with the lowest address.
    pub(super) fn trouble(&self) -> Option<Arc<str>> {
        let down = self.nodes.iter().filter(|(_, node)| node.up.is_none());
        let troubled = down.filter_map(|(address, node)| Some((address, node.trouble.as_ref()?)));
        troubled.min().map(|(_, trouble)| trouble.clone())
    }

    /// Whether no reply is outstanding. Upkeep does not count.
    pub(super) fn is_quiet(&self) -> bool {
        let mut ups = self.nodes.values().filter_map(|node| node.up.as_ref());
        ups.all(|up| up.commands.waiting.is_empty() && up.bulk.is_quiet())
    }

    /// All connected nodes, for tasks.
    pub(super) fn remotes(&self) -> Vec<Remote> {
        let ups = self.nodes.values().filter_map(|node| node.up.as_ref());
        ups.map(|up| up.remote.clone()).collect()
    }

    /// The node that has `key`.
    pub(super) fn owner(&mut self, key: &str) -> Option<&mut Up<T>> {
        if self.slots.is_empty() {
            return self.ups().next();
        }
        let address = self.slots[usize::from(slot(key.as_bytes()))].clone()?;
        self.at(&address)
    }

    /// The node at `address`.
    pub(super) fn at(&mut self, address: &str) -> Option<&mut Up<T>> {
        self.nodes.get_mut(address)?.up.as_mut()
    }

    /// Whether this attempt is the one that is to connect the node at `address`.
    pub(super) fn awaits(&self, address: &str, attempt: u64) -> bool {
        let node = self.nodes.get(address);
        node.is_some_and(|node| node.up.is_none() && node.attempt == attempt)
    }

    /// The node at `address`, if it was not connected anew.
    pub(super) fn up_of(&mut self, address: &str, generation: u64) -> Option<&mut Up<T>> {
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
            .flat_map(encode::keys)
            .map(|key| slot(key.as_bytes()));
        let first = slots.next();
        slots.all(|slot| Some(slot) == first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_of_before_a_node_left_the_map_does_not_count_when_it_is_back() {
        let map = |names: &[&str]| SlotMap {
            primaries: names.iter().map(|name| Address::from(*name)).collect(),
            replicas: Vec::new(),
            slots: vec![None],
        };
        let mut fleet = Fleet::<()>::default();
        let (missing, _) = fleet.adopt(map(&["a:1", "b:1"]));
        assert_eq!(missing.len(), 2);
        fleet.nodes.get_mut("a:1").expect("a node").attempt = 1;
        assert!(fleet.awaits("a:1", 1));

        let (missing, dropped) = fleet.adopt(map(&["b:1"]));
        assert_eq!((missing.len(), dropped.len()), (0, 1));
        assert!(!fleet.awaits("a:1", 1));
        let (missing, _) = fleet.adopt(map(&["a:1", "b:1"]));
        assert_eq!(missing, [Address::from("a:1")]);
        fleet.nodes.get_mut("a:1").expect("a node").attempt = 2;
        assert!(!fleet.awaits("a:1", 1));
        assert!(fleet.awaits("a:1", 2));
    }
}
