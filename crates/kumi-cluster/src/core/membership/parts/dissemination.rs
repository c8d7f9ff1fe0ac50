//! The updates to push, and when the next push and the next comparison are due.

use crate::core::base::identity::Authority;
use crate::core::base::time::TimerInstant;
use crate::core::protocol::rumor_queue::{Packets, RumorQueue, Subject};
use crate::core::state::table::Slot;
use alloc::vec::Vec;

#[derive(Clone, Debug, Default)]
pub(crate) struct Dissemination {
    queue: RumorQueue,
    /// When the next push is due; `None` while nothing is queued. In the runtime's own time, as the other two.
    push_at: Option<TimerInstant>,
    push_pull_at: Option<TimerInstant>,
    /// When the last comparison was started because a peer's view seemed to differ, or because it was time.
    compared_at: TimerInstant,
}

impl Dissemination {
    /// Queues an update about a member.
    pub(crate) fn enqueue_member(&mut self, slot: Slot, with_metadata: bool) {
        self.queue.enqueue(Subject::Member(slot), with_metadata);
    }

    /// Queues an operator's order about an authority.
    pub(crate) fn enqueue_order(&mut self, authority: Authority) {
        self.queue.enqueue(Subject::Quarantine(authority), false);
    }

    /// Whether an update about this member is queued.
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.queue.has(slot)
    }

    /// An update about this member was received that is still queued here.
    pub(crate) fn received_again(&mut self, slot: Slot, limit: u32) {
        self.queue.received_again(slot, limit);
    }

    /// Drops the update about a member whose record is gone.
    pub(crate) fn forget(&mut self, slot: Slot) {
        self.queue.forget(&Subject::Member(slot));
    }

    /// Drops all updates: there is no peer.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
    }

    /// See [`RumorQueue::fill`].
    pub(crate) fn fill(
        &mut self,
        packets: Packets,
        peers: u32,
        limit: u32,
        len_of: impl FnMut(&Subject, bool) -> Option<usize>,
    ) -> Vec<Vec<(Subject, bool)>> {
        self.queue.fill(packets, peers, limit, len_of)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn push_at(&self) -> Option<TimerInstant> {
        self.push_at
    }

    pub(crate) fn set_push_at(&mut self, at: Option<TimerInstant>) {
        self.push_at = at;
    }

    pub(crate) fn push_pull_at(&self) -> Option<TimerInstant> {
        self.push_pull_at
    }

    pub(crate) fn set_push_pull_at(&mut self, at: TimerInstant) {
        self.push_pull_at = Some(at);
    }

    /// Moves the next comparison forward to `at`, if one is planned for later.
    pub(crate) fn push_pull_by(&mut self, at: TimerInstant) {
        self.push_pull_at = self.push_pull_at.map(|next| next.min(at));
    }

    pub(crate) fn compared_at(&self) -> TimerInstant {
        self.compared_at
    }

    pub(crate) fn compared(&mut self, at: TimerInstant) {
        self.compared_at = at;
    }

    /// Nothing is pushed or compared any more; what is queued stays.
    pub(crate) fn stop(&mut self) {
        self.push_at = None;
        self.push_pull_at = None;
    }
}
