//! Whether a later life of this authority exists, where peers prove who they are.
//!
//! There, every message has to name the peer that sent it as its sender. What the message says about third nodes, and
//! about this one, is proved by nothing.
//!
//! Every member may write any record into a gossip message, so a record of a later life is only a claim. A node that
//! stopped because of a claim could be stopped by any member. Where identities are checked, a claim therefore becomes
//! [`MembershipRuntimeOutcome::meet`](super::MembershipRuntimeOutcome::meet): the driver connects to the node's own
//! authority and reports through [`MembershipRuntime::met`] or [`MembershipRuntime::not_met`]. A node that meets the
//! later life stops. A node that does not meet it takes a uid above the claimed one and goes on. So does a node that is
//! reported to be leaving and is not.
//!
//! A uid above the claimed one has to exist, and the others have to accept it. So a node refuses uids that begin more
//! than `MAX_AHEAD_MS` ahead of its wall clock: without that, a claim of the highest number would keep a node out for
//! ever. The limit moves with the clock, so the uid above a claim at the limit is accepted a moment later. Where the
//! clocks of two nodes differ, it is later by that difference: so long a member can keep a node out.

use super::parts::clock::Now;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::base::identity::{NodeIdentity, NodeUid};
use crate::core::base::time::TimerInstant;
use crate::core::protocol::event::{ClusterEvent, DownReason, GoneCause};

/// How far a uid may begin ahead of this node's wall clock, in milliseconds: a day.
const MAX_AHEAD_MS: u64 = 24 * 60 * 60 * 1000;

impl MembershipRuntime {
    /// Sets whether this node stops for a later life of its authority only after it has met that life, does not leave
    /// because of a peer's record, refuses messages whose sender is not the peer that they came from, and refuses uids
    /// that begin more than a day ahead of its clock. A driver whose transport checks the identity of peers sets it;
    /// without such checks a meeting proves nothing. Default: no.
    pub fn require_meeting(&mut self, required: bool) {
        self.claims.require_meeting(required);
    }

    /// A peer has introduced itself on a connection, and the transport has checked that it may use that authority. If it
    /// is a later life of this node's authority, and meetings are required, this node stops.
    pub fn met(&mut self, peer: &NodeIdentity, now: TimerInstant) {
        let own = self.own.identity();
        let is_later = peer.authority == own.authority && peer.uid > own.uid;
        if is_later
            && self.claims.requires_meeting()
            && self.state == MembershipRuntimeState::Member
        {
            let now = self.advance(now);
            // The others do not accept it either, so it has not taken this node's place.
            if !self.is_ahead(peer.uid, now) {
                self.superseded(now);
            }
        }
    }

    /// The driver connected to this node's own authority, as it was asked to, and found no later life there.
    pub fn not_met(&mut self, now: TimerInstant) {
        if self.state == MembershipRuntimeState::Member {
            let now = self.advance(now);
            self.outlive_claim(now);
        }
    }

    /// Tells the runtime what the wall clock shows, in milliseconds since 1970. It counts on by itself, but the driver's
    /// clock may stand still while the machine sleeps, and the wall clock may be set, also back. This node's next uid is
    /// above its last one in any case.
    pub fn set_unix_ms(&mut self, unix_ms: u64, now: TimerInstant) {
        self.own.set_unix_ms(unix_ms, now);
    }

    /// Whether a uid is refused because it begins too far ahead of the wall clock.
    pub(super) fn is_ahead(&self, uid: NodeUid, now: Now) -> bool {
        let latest = self.own.unix_ms(now).saturating_add(MAX_AHEAD_MS);
        self.claims.requires_meeting() && uid.unix_ms() > latest
    }

    /// Notes a claim, and asks the driver to look once per claim. A node that leaves goes on leaving.
    pub(super) fn note_claim(&mut self, uid: NodeUid, now: Now) {
        let is_leaving = self.own.leave_ends().is_some();
        if !is_leaving && self.claims.note(uid, now) {
            self.outbox.ask_to_meet(uid);
        }
    }

    pub(super) fn poll_claim(&mut self, now: Now) {
        if self.claims.deadline().is_some_and(|at| now.own >= at) {
            self.outlive_claim(now);
        }
    }

    /// The claim is false, or nothing shows that it is true: this node goes on under a uid above the claimed one, because
    /// the others no longer accept the one it has.
    fn outlive_claim(&mut self, now: Now) {
        let claimed = self.claims.take();
        let is_leaving = self.own.leave_ends().is_some();
        let claimed = claimed.filter(|claimed| *claimed > self.own.uid() && !is_leaving);
        if claimed.is_some() {
            self.downed_below(DownReason::Claimed, claimed, now);
        }
    }

    /// A later life has taken this node's place: it stops, and does not come back by itself.
    pub(super) fn superseded(&mut self, now: Now) {
        self.claims.supersede();
        let identity = self.own.identity().clone();
        self.departed(identity.clone(), Some(GoneCause::Replaced), now);
        self.outbox.member_event(ClusterEvent::SelfDowned {
            identity,
            successor: None,
            reason: DownReason::Superseded,
            observed_at: now.raw,
        });
        self.enter_stopped();
    }
}
