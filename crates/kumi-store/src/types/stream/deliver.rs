//! XREADGROUP: new entries are delivered to a consumer of a group, and old ones again.

use super::node::{Entries, Entry};
use super::{ConsumerKey, GroupMut, Stream, StreamId};

/// To whom entries are delivered, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    pub(crate) consumer: ConsumerKey,
    pub(crate) now_ms: i64,
    /// How many entries at most.
    pub(crate) count: usize,
    /// The entries do not become pending.
    pub(crate) no_ack: bool,
}

impl Stream {
    /// Delivers the entries behind the last one that a group has read, each of which `emit` gets. Returns how many
    /// there were.
    pub(crate) fn deliver_new(
        &mut self,
        group: &[u8],
        delivery: Delivery,
        mut emit: impl FnMut(Entry<'_>),
    ) -> usize {
        let history = self.history();
        let Some(group) = self.groups.get_mut(group) else {
            return 0;
        };
        let mut group = GroupMut::new(group, &mut self.group_bytes);
        let Some(start) = group.last_id().next() else {
            return 0;
        };
        if start > self.last_id {
            return 0;
        }
        let mut delivered = 0;
        for entry in Entries::new(&self.nodes, start, StreamId::MAX, false).take(delivery.count) {
            let id = entry.id();
            let entries_read = history.read_after(group.entries_read(), id);
            group.set_last_id(id, entries_read);
            emit(entry);
            if !delivery.no_ack {
                group.deliver(id, delivery.consumer, delivery.now_ms);
            }
            delivered += 1;
        }
        if delivered > 0
            && !delivery.no_ack
            && let Some(consumer) = group.consumer_mut(delivery.consumer)
        {
            consumer.active_time = delivery.now_ms;
        }
        delivered
    }

    /// Delivers the pending entries of a consumer from `start` on again. `emit` gets each id, and its entry if the
    /// stream still has it.
    pub(crate) fn deliver_again(
        &mut self,
        group: &[u8],
        start: StreamId,
        delivery: Delivery,
        mut emit: impl FnMut(StreamId, Option<Entry<'_>>),
    ) -> usize {
        let Some(group) = self.groups.get_mut(group) else {
            return 0;
        };
        let pending = group
            .consumer(delivery.consumer)
            .map(|consumer| consumer.pending(start..=StreamId::MAX));
        let ids: Vec<StreamId> = pending.into_iter().flatten().take(delivery.count).collect();
        for &id in &ids {
            let entry = Entries::new(&self.nodes, id, id, false).next();
            emit(id, entry);
            if entry.is_some() {
                group.redeliver(id, delivery.now_ms);
            }
        }
        ids.len()
    }
}
