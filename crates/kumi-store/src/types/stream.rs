//! A stream: entries in packed nodes in the order of their ids (`nodes.rs`), consumer groups beside them.
//!
//! A node holds up to `stream-node-max-entries` entries or `stream-node-max-bytes` bytes of Redis's
//! listpack, because `~` trims whole nodes and the nodes are what DUMP writes (`serialised.rs`). Its own layout is smaller
//! (`node.rs`). A deleted entry is only marked; its node goes when no live entry is left in it.
//!
//! Time, command options, replies and propagation are the commands' part.

mod deliver;
mod group;
mod groups;
mod id;
mod lag;
mod node;
mod nodes;
mod radix;
mod serialised;
mod trim;

pub(crate) use deliver::Delivery;
pub(crate) use group::{Claim, Claimed, Consumer, ConsumerKey, Group, GroupMut, Nack};
pub(crate) use id::StreamId;
pub(crate) use node::{Entries, Entry, NodeError};
pub(crate) use trim::{Trim, TrimTo};

use super::Slices;
use crate::types::packed::PackedList;
use groups::Groups;
use node::Node;
use nodes::Nodes;

/// No entry may be larger than this, nor a node of several.
const MAX_NODE_BYTES: usize = 1 << 30;

/// When an entry begins a new node: `stream-node-max-bytes` and `stream-node-max-entries`, 0 for no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeLimits {
    pub(crate) max_bytes: usize,
    pub(crate) max_entries: u64,
}

impl Default for NodeLimits {
    /// Redis's defaults.
    fn default() -> Self {
        Self {
            max_bytes: 4096,
            max_entries: 100,
        }
    }
}

/// Why an entry was not added. The stream is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AppendError {
    /// The id is not above the last one.
    IdTooSmall,
    /// Fields and values are larger than a node may be.
    TooLarge,
}

/// A stream with its consumer groups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    /// By the id of the entry that a node began with. No node is without a live entry, except after a trim by id. A
    /// copy of the stream shares all but the last.
    nodes: Nodes,
    /// Live entries.
    length: u64,
    /// The last id that was given out, or set.
    last_id: StreamId,
    /// The id of the first live entry; zero when there is none.
    first_id: StreamId,
    /// The largest id that XDEL removed.
    max_deleted_id: StreamId,
    /// All entries that were ever added.
    entries_added: u64,
    groups: Groups,
    /// What the nodes have on the heap.
    node_bytes: usize,
    /// What the groups take, their names included.
    group_bytes: usize,
}

/// What a serialised stream says about itself besides its nodes and groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Of a stream without entries; of others it is the first entry's.
    pub(crate) first_id: StreamId,
    pub(crate) max_deleted_id: StreamId,
    pub(crate) entries_added: u64,
}

impl Stream {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> u64 {
        self.length
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn last_id(&self) -> StreamId {
        self.last_id
    }

    pub(crate) fn first_id(&self) -> StreamId {
        self.first_id
    }

    /// The id of the last live entry.
    pub(crate) fn top_id(&self) -> Option<StreamId> {
        self.last().map(|entry| entry.id())
    }

    pub(crate) fn max_deleted_id(&self) -> StreamId {
        self.max_deleted_id
    }

    pub(crate) fn entries_added(&self) -> u64 {
        self.entries_added
    }

    /// The number of nodes: `radix-tree-keys` of XINFO.
    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The id with which the first node begins, be that entry deleted or not.
    pub(crate) fn first_node_id(&self) -> Option<StreamId> {
        self.nodes.first().map(|(id, _)| id)
    }

    /// The nodes in order, as Redis lays them out.
    pub(crate) fn redis_nodes(&self) -> impl Iterator<Item = (StreamId, PackedList)> {
        self.nodes
            .iter()
            .map(|(id, block)| (id, serialised::to_redis(id, block)))
    }

    /// What the stream takes from the heap, about.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.node_bytes + self.nodes.map_bytes() + self.group_bytes
    }

    /// The id XADD `*` gives at a time; `None` when there is no id above the last one.
    pub(crate) fn next_id(&self, now_ms: u64) -> Option<StreamId> {
        if now_ms > self.last_id.ms {
            return Some(StreamId::new(now_ms, 0));
        }
        self.last_id.next()
    }

    /// The id XADD `ms-*` gives; `None` when there is none above the last one.
    pub(crate) fn next_id_in(&self, ms: u64) -> Option<StreamId> {
        if ms != self.last_id.ms {
            return Some(StreamId::new(ms, 0));
        }
        let seq = self.last_id.seq.checked_add(1)?;
        Some(StreamId::new(ms, seq))
    }

    /// Adds an entry; `fields` are fields and values in turn.
    pub(crate) fn append(
        &mut self,
        id: StreamId,
        fields: &[&[u8]],
        limits: NodeLimits,
    ) -> Result<(), AppendError> {
        if id <= self.last_id {
            return Err(AppendError::IdTooSmall);
        }
        let bytes: usize = fields.iter().map(|field| field.len()).sum();
        if bytes > MAX_NODE_BYTES {
            return Err(AppendError::TooLarge);
        }
        match self.nodes.last_mut() {
            Some((master, block)) if node::has_room(block, bytes, limits) => {
                let before = block.heap_bytes();
                node::append(block, master, id, fields);
                self.node_bytes = self.node_bytes - before + block.heap_bytes();
                self.nodes.limit_tail();
            }
            last => {
                if let Some((_, full)) = last {
                    self.node_bytes -= full.heap_bytes();
                    full.shrink();
                    self.node_bytes += full.heap_bytes();
                }
                let block = node::begin(id, fields);
                self.node_bytes += block.heap_bytes();
                self.nodes.push(id, block);
            }
        }
        self.length += 1;
        // A stream that was restored can say any number. It wraps around as in Redis.
        self.entries_added = self.entries_added.wrapping_add(1);
        self.last_id = id;
        if self.length == 1 {
            self.first_id = id;
        }
        Ok(())
    }

    /// The live entries from `start` to `end`, both included, ascending.
    pub(crate) fn range(&self, start: StreamId, end: StreamId) -> Entries<'_> {
        Entries::new(&self.nodes, start, end, false)
    }

    /// The same, descending.
    pub(crate) fn range_back(&self, start: StreamId, end: StreamId) -> Entries<'_> {
        Entries::new(&self.nodes, start, end, true)
    }

    /// The live entry with this id.
    pub(crate) fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    /// The last live entry.
    pub(crate) fn last(&self) -> Option<Entry<'_>> {
        self.range_back(StreamId::MIN, StreamId::MAX).next()
    }

    /// Removes entries; returns how many there were.
    pub(crate) fn delete(&mut self, ids: &[StreamId]) -> u64 {
        let mut deleted = 0;
        for &id in ids {
            if self.delete_one(id) {
                deleted += 1;
                self.max_deleted_id = self.max_deleted_id.max(id);
            }
        }
        if deleted > 0 {
            self.find_first();
        }
        deleted
    }

    fn delete_one(&mut self, id: StreamId) -> bool {
        let Some((master, block)) = self.nodes.holding_mut(id) else {
            return false;
        };
        let node = Node::new(master, block);
        let Some(entry) = node.find(id) else {
            return false;
        };
        if node.live() <= 1 {
            self.node_bytes -= block.heap_bytes();
            self.nodes.remove(master);
        } else {
            let before = block.heap_bytes();
            node::mark_deleted(block, &[entry]);
            self.node_bytes = self.node_bytes - before + block.heap_bytes();
        }
        self.length -= 1;
        true
    }

    /// Sets `first_id` again after entries went.
    fn find_first(&mut self) {
        let first = self.range(StreamId::MIN, StreamId::MAX).next();
        self.first_id = first.map_or(StreamId::MIN, |entry| entry.id());
    }

    /// What XSETID sets; a largest deleted id of zero changes nothing. The caller has checked that the numbers make
    /// sense together.
    pub(crate) fn set_id(
        &mut self,
        last_id: StreamId,
        entries_added: Option<u64>,
        max_deleted_id: Option<StreamId>,
    ) {
        self.last_id = last_id;
        self.entries_added = entries_added.unwrap_or(self.entries_added);
        self.max_deleted_id = max_deleted_id
            .filter(|&id| id != StreamId::MIN)
            .unwrap_or(self.max_deleted_id);
    }

    /// Adds a node in Redis's layout behind the others, after checking its structure.
    pub(crate) fn restore_node(&mut self, id: StreamId, node: PackedList) -> Result<(), NodeError> {
        let node = serialised::from_redis(id, &node)?;
        // `last_id` is that of the nodes so far until the counters are set.
        if !self.nodes.is_empty() && id <= self.last_id {
            return Err(NodeError::Order);
        }
        self.last_id = node.last_id;
        self.length += node.live;
        self.node_bytes += node.block.heap_bytes();
        self.nodes.push(id, node.block);
        self.nodes.limit_tail();
        Ok(())
    }

    /// Sets the counters of a stream that was serialised, behind its last node. `None`: its version had no counters
    /// but the last id. The id of the first entry is that of the entry, and no fewer entries were added than there
    /// are, whatever the counters say.
    ///
    /// # Errors
    /// An entry has an id above the last id. The next entry would be added out of order.
    pub(crate) fn restore_counters(
        &mut self,
        last_id: StreamId,
        counters: Option<Counters>,
    ) -> Result<(), NodeError> {
        if last_id < self.last_id {
            return Err(NodeError::Order);
        }
        let counters = counters.unwrap_or_default();
        self.last_id = last_id;
        self.max_deleted_id = counters.max_deleted_id;
        self.entries_added = counters.entries_added.max(self.length);
        self.find_first();
        if self.is_empty() {
            self.first_id = counters.first_id;
        }
        Ok(())
    }

    /// Creates a group; `false` if there is one of that name.
    pub(crate) fn create_group(
        &mut self,
        name: &[u8],
        last_id: StreamId,
        entries_read: Option<u64>,
    ) -> bool {
        let group = Group::new(last_id, entries_read);
        let bytes = name.len() + group.heap_bytes();
        let created = self.groups.insert(name, group);
        if created {
            self.group_bytes += bytes;
        }
        created
    }

    /// Sets the groups of a stream that was serialised, by name and in any order. `false` if two have the same name; the
    /// stream must be thrown away then.
    pub(crate) fn restore_groups(&mut self, groups: Vec<(Box<[u8]>, Box<Group>)>) -> bool {
        let bytes = groups
            .iter()
            .map(|(name, group)| name.len() + group.heap_bytes());
        self.group_bytes = bytes.sum();
        self.groups.restore(groups)
    }

    /// Removes a group and returns it, so that a large one can be dropped elsewhere.
    pub(crate) fn remove_group(&mut self, name: &[u8]) -> Option<Group> {
        let group = self.groups.remove(name)?;
        self.group_bytes -= name.len() + group.heap_bytes();
        Some(group)
    }

    pub(crate) fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// A group to be changed; the stream's size follows when the change is over.
    pub(crate) fn group_mut(&mut self, name: &[u8]) -> Option<GroupMut<'_>> {
        let group = self.groups.get_mut(name)?;
        Some(GroupMut::new(group, &mut self.group_bytes))
    }

    /// The groups in the order of their names.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&[u8], &Group)> {
        self.groups.iter()
    }

    pub(crate) fn group_count(&self) -> usize {
        self.groups.len()
    }

    /// Two bytes of the last node that the next append reads or writes, for a prefetch.
    pub(crate) fn tail_ends(&self) -> Option<(&u8, &u8)> {
        self.nodes.tail_ends()
    }
}

impl Slices for Stream {
    fn pieces(&self) -> usize {
        let groups: usize = self.groups().map(|(_, group)| group.pieces()).sum();
        self.nodes.len() + groups
    }

    fn drop_piece(&mut self) -> bool {
        if !self.nodes.pop_first() {
            self.groups.drop_piece();
        }
        !self.nodes.is_empty() || self.groups.len() > 0
    }
}

const _: () = super::assert_send::<Stream>();

#[cfg(test)]
mod tests;
