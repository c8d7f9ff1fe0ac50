//! Reports of a later life of this node's authority, and whether the node has to meet that life before it stops for it.

use super::clock::Now;
use crate::core::base::identity::NodeUid;
use crate::core::base::time::TimerInstant;
use core::time::Duration;

/// How long the driver may take to report. After that the claim counts as not met.
pub(crate) const MEETING_TIMEOUT: Duration = Duration::from_secs(10);

/// A later life of this authority that other nodes report and that this node has not met.
#[derive(Clone, Copy, Debug)]
struct Claim {
    uid: NodeUid,
    /// When it counts as not met, in the runtime's own time.
    until: TimerInstant,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Claims {
    /// Whether peers prove who they are: a later life of this authority has to be met before this node stops for it, and
    /// a message is from the peer that it came from.
    requires_meeting: bool,
    claim: Option<Claim>,
    /// A later uid of this authority has taken over; this node does not start again.
    superseded: bool,
}

impl Claims {
    pub(crate) fn require_meeting(&mut self, required: bool) {
        self.requires_meeting = required;
    }

    pub(crate) fn requires_meeting(&self) -> bool {
        self.requires_meeting
    }

    /// Notes a claim; whether it is the first one, so that the driver has to look for that life.
    pub(crate) fn note(&mut self, uid: NodeUid, now: Now) -> bool {
        match &mut self.claim {
            Some(claim) => {
                claim.uid = claim.uid.max(uid);
                false
            }
            None => {
                let until = now.own + MEETING_TIMEOUT;
                self.claim = Some(Claim { uid, until });
                true
            }
        }
    }

    /// When the claim counts as not met.
    pub(crate) fn deadline(&self) -> Option<TimerInstant> {
        self.claim.map(|claim| claim.until)
    }

    /// Removes the claim; the highest uid that was claimed.
    pub(crate) fn take(&mut self) -> Option<NodeUid> {
        self.claim.take().map(|claim| claim.uid)
    }

    pub(crate) fn supersede(&mut self) {
        self.superseded = true;
    }

    pub(crate) fn is_superseded(&self) -> bool {
        self.superseded
    }
}
