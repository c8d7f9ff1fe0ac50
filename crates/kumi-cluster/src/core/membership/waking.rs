//! What a node does when its own clock shows that it was suspended: a stopped process, a paused machine.
//!
//! Deadlines do not run while a node is suspended (`parts/clock.rs`). Besides, everything that this node knows about others is
//! as old as the suspension was long, and what arrives first was sent before it. So a node that wakes up
//!
//! - starts detection over, and neither suspects a member nor declares one dead before it has received a new message;
//! - keeps its life. Members that declared it dead in the meantime answer its first messages with their verdict, from a
//!   tombstone or from the address book, and only then it begins another life;
//! - forgets which others are active, if it was suspended for longer than `dead_timeout`: the others may have forgotten
//!   lives that this node still holds to be active. It keeps their addresses, and finds them again.

use super::parts::clock::Now;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::base::status::NodeStatus;
use core::time::Duration;

/// Timers that were so many heartbeat intervals late were not just slow: the node was suspended.
const SUSPENDED_AFTER_BEATS: u32 = 4;
/// What arrives within so many heartbeat intervals after waking up may have waited in a buffer since before.
const STALE_FOR_BEATS: u32 = 2;

impl MembershipRuntime {
    /// Called when timers were late by this much.
    pub(super) fn look_for_suspension(&mut self, late: Duration, now: Now) {
        let beat = self.config.heartbeat_interval;
        if late <= beat * SUSPENDED_AFTER_BEATS || self.state != MembershipRuntimeState::Member {
            return;
        }
        self.outbox.metrics_mut().suspensions += 1;
        self.local_health.woke_up(now.own + beat * STALE_FOR_BEATS);
        self.start_detection_over(now);
        let was_member = !self.joining.is_in_progress() && self.own.status() == NodeStatus::Up;
        if late > self.config.dead_timeout && self.config.gossip_enabled && was_member {
            // The queued messages are of the view that is dropped.
            self.outbox.drop_messages();
            self.local_health.heard(now);
            self.fresh_view(now);
            self.publish_self(now);
            self.dissemination.set_push_pull_at(now.own);
        }
    }

    /// Whether no message of a member has arrived since this node was suspended. A node that knows a single other member does
    /// not wait for it, because that member may be dead.
    pub(super) fn is_waking(&self) -> bool {
        self.local_health.is_waking() && self.table.ring().len() > 2
    }
}
