//! The node's own membership: joining, refuting a suspicion, leaving, and joining again under a new uid.

use super::gossip::fitting;
use super::parts::clock::Now;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::base::error::{MembershipError, MembershipRuntimeError};
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::reason::QuarantineReason;
use crate::core::base::status::NodeStatus;
use crate::core::base::time::TimerInstant;
use crate::core::protocol::event::{ClusterEvent, DownReason, GoneCause, MembershipEvent};
use crate::core::state::quarantine::{OrderTaken, QuarantineRumor};
use crate::core::state::record::MemberRecord;
use crate::core::state::snapshot::MembershipDelta;
use crate::core::wire::codec::{JoinRefusal, Message};
use crate::core::wire::transport::Delivery;
use alloc::vec::Vec;
use core::time::Duration;

/// How many seeds are asked at a time.
const SEEDS_AT_ONCE: usize = 3;
/// After so many rounds without an answer a seed starts a cluster of its own; islands that meet later merge. The first
/// of the list does so after one, so that a whole cluster that starts at once does not wait for long.
const ROUNDS_BEFORE_ALONE: u32 = 3;
const FIRST_SEED_ROUNDS: u32 = 1;
/// The wait between two rounds grows up to so many times the configured one.
const MAX_BACKOFF: u32 = 8;
/// A quarantined node retries its join after this interval. It is notified when the order is lifted or changed, but that
/// message may get lost.
const QUARANTINED_RETRY: Duration = Duration::from_secs(5);

impl MembershipRuntime {
    /// Begins to take part. Without seeds, or with none but itself, this node is the first of its cluster and is Up at
    /// once; otherwise it is once a seed has sent its snapshot.
    pub fn start_member(
        &mut self,
        seeds: &[Authority],
        now: TimerInstant,
    ) -> Result<(), MembershipRuntimeError> {
        let now = self.start(MembershipRuntimeState::Member, seeds, now)?;
        self.own.set_status(NodeStatus::Joining);
        self.publish_self(now);
        let first_beat = self.rng.within(self.config.heartbeat_interval);
        self.detection.set_beat_at(now.own + first_beat);
        if self.config.gossip_enabled {
            let first = self.rng.within(self.config.push_pull_interval);
            self.dissemination.set_push_pull_at(now.own + first);
        }
        let alone = self.other_seeds().next().is_none();
        if alone || !self.config.gossip_enabled {
            self.become_up(now);
        } else {
            self.joining.begin(now.own);
        }
        Ok(())
    }

    /// Starts as an observer.
    pub fn start_client(
        &mut self,
        seeds: &[Authority],
        now: TimerInstant,
    ) -> Result<(), MembershipRuntimeError> {
        let now = self.start(MembershipRuntimeState::Client, seeds, now)?;
        self.dissemination.set_push_pull_at(now.own);
        Ok(())
    }

    fn start(
        &mut self,
        state: MembershipRuntimeState,
        seeds: &[Authority],
        now: TimerInstant,
    ) -> Result<Now, MembershipRuntimeError> {
        if self.state != MembershipRuntimeState::Stopped {
            return Err(MembershipRuntimeError::AlreadyStarted);
        }
        if self.claims.is_superseded() {
            return Err(MembershipRuntimeError::Superseded);
        }
        let (now, _) = self.local_health.advance(now, None);
        if !self.table.is_empty() {
            // It ran before: this is another life.
            let before = self.own_slot().and_then(|slot| self.table.entry(slot));
            let before = before.filter(|entry| entry.record.status.is_active());
            if let Some(identity) = before.map(|entry| entry.record.identity()) {
                self.departed(identity, Some(GoneCause::Replaced), now);
            }
            let uid = self.own.next_uid(None, &mut self.rng, now);
            self.own.set_uid(uid);
            self.fresh_view(now);
        }
        self.state = state;
        self.own.set_incarnation(1);
        self.local_health.heard(now);
        self.addresses.set_seeds(seeds);
        Ok(now)
    }

    fn other_seeds(&self) -> impl Iterator<Item = &Authority> {
        self.addresses.seeds_but(self.own.authority())
    }

    /// The seed whose turn it is.
    fn next_seed(&mut self) -> Option<Authority> {
        let candidates = self.other_seeds().count();
        let index = self.joining.next_seed(candidates);
        self.other_seeds().nth(index).cloned()
    }

    /// Writes this node's own record as it is now.
    pub(super) fn publish_self(&mut self, now: Now) {
        let record = self.own.record();
        self.apply(&record, now);
    }

    fn become_up(&mut self, now: Now) {
        self.own.set_status(NodeStatus::Up);
        self.joining.end();
        self.publish_self(now);
        self.look_for_namesakes(now);
    }

    pub(super) fn poll_join(&mut self, now: Now) {
        let is_due = self.joining.deadline().is_some_and(|at| now.own >= at);
        if !is_due || !self.joining.is_in_progress() {
            return;
        }
        if let Some(entry) = self.quarantine.ordered(self.own.authority(), now.raw) {
            // To join before the quarantine is over would only be refused; comparing finds out whether it was lifted.
            let wait = entry
                .expires_at
                .saturating_since(now.raw)
                .min(QUARANTINED_RETRY);
            self.joining
                .retry_at(now.own + wait + self.config.join_retry);
            let seed = self.next_seed();
            for peer in self.random_peers(1, None).into_iter().chain(seed) {
                self.compare(&peer, now);
            }
            return;
        }
        if !self.config.gossip_enabled {
            // No peer is asked: the caller has named the members of a static cluster.
            self.become_up(now);
            return;
        }
        let (asked, asked_by_lower) = self.joining.was_asked();
        let max_rounds = match self.addresses.seed_position(self.own.authority()) {
            // A live member has this node's name: it waits for the end of that member.
            _ if self.joining.refused_by().is_some() => ROUNDS_BEFORE_ALONE * 2,
            Some(0) => FIRST_SEED_ROUNDS,
            Some(_) => ROUNDS_BEFORE_ALONE,
            // The first of its cluster knows only the members it met; when they are gone, it begins once more.
            None if self.other_seeds().next().is_none() => ROUNDS_BEFORE_ALONE,
            // A node that others ask is a seed, too. Nodes that name each other, and not themselves, would wait for ever; of
            // those the lowest begins, so that the others find one cluster and not several.
            None if asked_by_lower => ROUNDS_BEFORE_ALONE * 2,
            None if asked => ROUNDS_BEFORE_ALONE,
            None => u32::MAX,
        };
        if self.joining.rounds() >= max_rounds {
            self.become_up(now);
            return;
        }
        for _ in 0..SEEDS_AT_ONCE {
            let Some(seed) = self.next_seed() else {
                break;
            };
            self.send(
                &seed,
                Message::Join {
                    record: self.own.record(),
                },
                Delivery::Reliable,
            );
            if self.other_seeds().nth(1).is_none() {
                break;
            }
        }
        // A node that was a member before also knows others than the seeds.
        for peer in self.random_peers(1, None) {
            self.send(
                &peer,
                Message::Join {
                    record: self.own.record(),
                },
                Delivery::Reliable,
            );
        }
        // No member that it knows is active, or none answers: it tries an address where a member was.
        let alone = self.joining.rounds() > 0 || self.other_seeds().next().is_none();
        if let Some(lost) = self.lost_address().filter(|_| alone) {
            let record = self.own.record();
            self.send(&lost, Message::Join { record }, Delivery::Reliable);
        }
        let backoff = (self.joining.count_round() / 4).clamp(1, MAX_BACKOFF);
        let wait = self.config.join_retry * backoff;
        let wait = if max_rounds == FIRST_SEED_ROUNDS {
            wait / 2
        } else {
            wait
        };
        self.joining
            .retry_at(now.own + wait + self.rng.within(wait / 4));
    }

    pub(super) fn answer_join(&mut self, sender: &NodeIdentity, record: &MemberRecord, now: Now) {
        let member = self.state == MembershipRuntimeState::Member;
        if !member || record.identity() != *sender || !self.config.gossip_enabled {
            return;
        }
        let is_lower = sender.authority < *self.own.authority();
        self.joining.asked(is_lower);
        self.decide_join(record, false, now);
    }

    /// Lets a joiner in whose name's holder did not answer.
    pub(super) fn let_in(&mut self, record: &MemberRecord, now: Now) {
        self.decide_join(record, true, now);
    }

    fn decide_join(&mut self, record: &MemberRecord, is_name_checked: bool, now: Now) {
        if self.own.status() == NodeStatus::Joining {
            return;
        }
        let sender = &record.identity();
        let known = self
            .table
            .record(&sender.authority)
            .map(|known| (known.uid, known.status));
        let refusal = if let Err(error) = self.admit(sender, now) {
            let MembershipError::Quarantined {
                ref reason,
                remaining,
                ..
            } = error
            else {
                return;
            };
            let text = match reason {
                QuarantineReason::Operator(text) => text.clone(),
                QuarantineReason::Unreachable => return,
            };
            let remaining_ms = crate::core::base::time::millis(remaining);
            self.outbox.refuse(error);
            Some(JoinRefusal::Quarantined {
                version: self.quarantine.version_of(&sender.authority),
                remaining_ms,
                text,
            })
        } else {
            match known {
                Some((current, _)) if current > sender.uid => {
                    Some(JoinRefusal::Superseded { current })
                }
                // The verdict was sent already.
                Some((current, status)) if current == sender.uid && status.is_terminal() => return,
                None if self.table.len() >= self.config.max_members => Some(JoinRefusal::Full),
                _ => None,
            }
        };
        let message = match refusal {
            Some(reason) => Message::JoinRefused { reason },
            None if !is_name_checked && self.checks_name_of(record, now) => return,
            None => {
                self.learn(record, now);
                self.outbox.metrics_mut().snapshots += 1;
                let delta = fitting(self.full_delta(now));
                Message::Welcome {
                    seen: self.seen(),
                    delta,
                }
            }
        };
        self.send(&sender.authority, message, Delivery::Reliable);
    }

    pub(super) fn welcomed(&mut self, via: &Authority, delta: &MembershipDelta, now: Now) {
        self.learn_all(delta, now);
        let blocked = self
            .quarantine
            .ordered(self.own.authority(), now.raw)
            .is_some();
        if self.joining.is_in_progress() && self.own.status() == NodeStatus::Joining && !blocked {
            self.outbox
                .note(MembershipEvent::Joined { via: via.clone() });
            self.become_up(now);
        }
    }

    pub(super) fn join_refused(&mut self, by: &Authority, reason: &JoinRefusal, now: Now) {
        if !self.joining.is_in_progress() {
            return;
        }
        let authority = self.own.authority().clone();
        match reason {
            JoinRefusal::Superseded { current } if self.is_ahead(*current, now) => {
                self.outbox.refuse(MembershipError::UidAhead {
                    authority,
                    uid: *current,
                });
            }
            JoinRefusal::Superseded { current } => self.hear_of_later_life(*current, now),
            JoinRefusal::Quarantined { version, .. }
                if *version < self.quarantine.version_of(&authority) =>
            {
                // The peer does not know yet that the order was lifted: it is sent the later order before the next attempt.
                let later = self.quarantine.rumor(&authority, now.raw);
                self.tell_orders(by, later.into_iter().collect());
                self.joining.retry_at(now.own + self.config.join_retry);
            }
            JoinRefusal::Quarantined {
                version,
                remaining_ms,
                text,
            } => {
                // This node keeps the order as the members do.
                let memory = crate::core::base::time::millis(self.quarantine.memory());
                let order = QuarantineRumor {
                    authority: authority.clone(),
                    version: *version,
                    remaining_ms: (*remaining_ms).max(1),
                    remember_ms: remaining_ms.saturating_add(memory),
                    text: text.clone(),
                };
                let reason = QuarantineReason::Operator(text.clone());
                if self.quarantine.order(&order, now.raw) != OrderTaken::Known {
                    self.outbox
                        .quarantine_event(ClusterEvent::MemberQuarantined {
                            authority: authority.clone(),
                            node_id: None,
                            reason: reason.clone(),
                            observed_at: now.raw,
                        });
                }
                let remaining = Duration::from_millis(*remaining_ms);
                self.outbox.refuse(MembershipError::Quarantined {
                    authority,
                    reason,
                    remaining,
                });
                let wait = remaining.min(QUARANTINED_RETRY) + self.config.join_retry;
                self.joining.retry_at(now.own + wait);
            }
            JoinRefusal::NameTaken { holder } => self.name_refused(holder, now),
            JoinRefusal::Full => {
                self.outbox.refuse(MembershipError::TableFull {
                    limit: self.config.max_members,
                });
            }
        }
    }

    /// Applies a record of a peer about this node. Returns whether it changed anything.
    pub(super) fn hear_about_self(&mut self, record: &MemberRecord, now: Now) -> bool {
        if record.uid > self.own.uid() {
            self.hear_of_later_life(record.uid, now);
            return true;
        }
        if record.uid < self.own.uid() || self.own.is_leaving() {
            return false;
        }
        match record.status {
            NodeStatus::Dead | NodeStatus::Removed => {
                let ordered = self
                    .quarantine
                    .ordered(&record.authority, now.raw)
                    .is_some();
                self.downed(
                    if ordered {
                        DownReason::Quarantined
                    } else {
                        DownReason::Dead
                    },
                    now,
                );
                return true;
            }
            // This life is not leaving, and a record proves nothing. Leaving cannot be taken back, so this node goes on under
            // another uid.
            NodeStatus::Leaving if self.claims.requires_meeting() => {
                self.downed_below(DownReason::Claimed, None, now);
                return true;
            }
            // An earlier run under this uid was leaving, which cannot be undone.
            NodeStatus::Leaving if self.own.status() == NodeStatus::Joining => {
                self.downed(DownReason::Dead, now);
                return true;
            }
            // A provider of another member makes this node leave.
            NodeStatus::Leaving => {
                let incarnation = self.own.incarnation().max(record.incarnation);
                self.own.set_incarnation(incarnation);
                self.begin_leave(now);
                return true;
            }
            _ => {}
        }
        let own = &self.own;
        let ahead = record.incarnation > own.incarnation();
        let suspected =
            record.status == NodeStatus::Suspect && record.incarnation >= own.incarnation();
        let foreign_text =
            record.metadata_stamp >= own.metadata_stamp() && record.metadata != *own.metadata();
        if foreign_text && !self.stamp_metadata(record.metadata_stamp, now) {
            return true;
        }
        if (ahead || suspected) && self.refute(record.incarnation, now) {
            return true;
        }
        if foreign_text {
            self.publish_self(now);
        }
        foreign_text
    }

    /// Gives this node's metadata a stamp above one that was used; whether this life had one left.
    pub(super) fn stamp_metadata(&mut self, used: u64, now: Now) -> bool {
        let has_one = self.own.stamp_metadata_above(used);
        if !has_one {
            // A member sent a false number; another uid starts counting anew.
            self.downed(DownReason::Dead, now);
        }
        has_one
    }

    /// Refutes a suspicion: this node is alive, in an incarnation above the suspected one.
    pub(super) fn refute(&mut self, incarnation: u64, now: Now) -> bool {
        let member = self.state == MembershipRuntimeState::Member;
        let present = matches!(self.own.status(), NodeStatus::Up | NodeStatus::Joining);
        if !member || !present || incarnation < self.own.incarnation() {
            return false;
        }
        let Some(next) = incarnation.checked_add(1) else {
            // A member sent a false number; no higher incarnation is left, so this node takes another uid.
            self.downed(DownReason::Dead, now);
            return true;
        };
        self.own.set_incarnation(next);
        self.outbox.metrics_mut().refutations += 1;
        self.outbox
            .note(MembershipEvent::Refuted { incarnation: next });
        self.publish_self(now);
        // The monitors get it directly, and not only by gossip.
        self.beat();
        true
    }

    /// Another life of this authority began after this one.
    fn hear_of_later_life(&mut self, current: NodeUid, now: Now) {
        if current <= self.own.uid() {
            return;
        }
        if self.joining.raise() {
            // A clock that runs behind: this is the later start, its uid is only the lower one.
            let identity = self.own.identity().clone();
            self.departed(identity, Some(GoneCause::Replaced), now);
            let uid = self.own.next_uid(Some(current), &mut self.rng, now);
            self.own.set_uid(uid);
            self.publish_self(now);
            self.joining.retry_at(now.own);
        } else if self.claims.requires_meeting() {
            self.note_claim(current, now);
        } else {
            self.superseded(now);
        }
    }

    pub(super) fn quarantined(&mut self, now: Now) {
        self.downed(DownReason::Quarantined, now);
    }

    /// Ends this life, which the others hold to be over, and begins the next. The table stays, so a node that receives messages
    /// of others is Up at once; otherwise it joins again.
    fn downed(&mut self, reason: DownReason, now: Now) {
        self.downed_below(reason, None, now);
    }

    /// As [`Self::downed`]; the uid of the next life is above `floor`.
    pub(super) fn downed_below(&mut self, reason: DownReason, floor: Option<NodeUid>, now: Now) {
        if !self.begin_next_life(reason, floor, now) {
            return;
        }
        self.own.set_status(NodeStatus::Joining);
        self.outbox.metrics_mut().rebirths += 1;
        self.detection.clear(self.config.phi());
        self.publish_self(now);
        // In a static cluster no peer has to be asked.
        let in_touch = !self.config.gossip_enabled
            || !self.receives_nothing(now) && self.table.active_len() > 1;
        let was_joining = self.joining.is_in_progress();
        let keeps_place = matches!(reason, DownReason::Dead | DownReason::Claimed);
        if in_touch && !was_joining && keeps_place {
            self.become_up(now);
            return;
        }
        self.joining.begin_again(now.own);
    }

    /// A node that received nothing for half of `dead_timeout` while it ran, or for all of it, may have been forgotten, and
    /// may hold others to be alive whose tombstones are gone. It starts afresh, under a new uid, and tries the addresses of
    /// former members, one per push-pull. `waking.rs` has the case of a node that did not run for all that time.
    pub(super) fn renew_if_isolated(&mut self, now: Now) {
        let applies = self.state == MembershipRuntimeState::Member
            && self.config.gossip_enabled
            && !self.joining.is_in_progress()
            && self.own.status() == NodeStatus::Up
            && self.table.active_len() > 1;
        let limit = self.config.dead_timeout;
        let (awake, silence) = self.local_health.silence(now);
        if !applies || awake <= limit / 2 && silence <= limit {
            return;
        }
        self.local_health.heard(now);
        self.outbox.metrics_mut().isolations += 1;
        // The queued messages are those of the former uid.
        self.outbox.drop_messages();
        if !self.begin_next_life(DownReason::Isolated, None, now) {
            return;
        }
        self.fresh_view(now);
        self.publish_self(now);
        self.dissemination.set_push_pull_at(now.own);
    }

    /// Ends the current uid and queues its departure. Takes a new uid, or stops where the configuration does not allow one;
    /// returns whether there is a new uid.
    fn begin_next_life(&mut self, reason: DownReason, floor: Option<NodeUid>, now: Now) -> bool {
        let identity = self.own.identity().clone();
        // A claim without proof stops no node, whatever its configuration.
        let goes_on = self.config.rejoin_when_downed || reason == DownReason::Claimed;
        if goes_on {
            let uid = self.own.next_uid(floor, &mut self.rng, now);
            self.own.begin_life(uid);
        }
        let cause = match reason {
            DownReason::Dead => Some(GoneCause::Died),
            DownReason::Quarantined => Some(GoneCause::Quarantined),
            DownReason::Superseded | DownReason::Claimed => Some(GoneCause::Replaced),
            DownReason::NameTaken => Some(GoneCause::Left),
            DownReason::Isolated => None,
        };
        self.departed(identity.clone(), cause, now);
        self.outbox.member_event(ClusterEvent::SelfDowned {
            identity,
            successor: goes_on.then(|| self.own.identity().clone()),
            reason,
            observed_at: now.raw,
        });
        if !goes_on {
            self.enter_stopped();
        }
        goes_on
    }

    /// Removes the active members and keeps their addresses. Tombstones stay: a uid that ended does not become active again.
    pub(super) fn fresh_view(&mut self, now: Now) {
        let own = self.own.authority().clone();
        let active = self.table.active().iter();
        let records = active.filter_map(|&slot| self.table.entry(slot));
        let identities = records.map(|entry| entry.record.identity());
        let forgotten: Vec<NodeIdentity> = identities
            .filter(|identity| identity.authority != own)
            .collect();
        for identity in forgotten {
            self.departed(identity, None, now);
        }
        for (slot, authority) in self.table.forget_active() {
            self.dissemination.forget(slot);
            self.timeouts.clear(slot);
            if authority != *self.own.authority() {
                self.addresses.remember(authority, None);
            }
        }
        self.detection.clear(self.config.phi());
        self.outbox.clear_conflicts();
    }

    /// Leaves the cluster: sends Leaving at once and Removed after the grace, and then stops.
    pub fn leave(&mut self, now: TimerInstant) -> Result<(), MembershipError> {
        self.require_member()?;
        let now = self.advance(now);
        if self.own.is_leaving() {
            return Ok(());
        }
        self.begin_leave(now);
        Ok(())
    }

    fn begin_leave(&mut self, now: Now) {
        self.own.set_status(NodeStatus::Leaving);
        self.joining.end();
        let ends = now.own + self.config.leave_grace;
        self.own.set_leave_ends(Some(ends));
        self.publish_self(now);
    }

    pub(super) fn poll_leave(&mut self, now: Now) {
        if self.own.leave_ends().is_none_or(|at| now.own < at) {
            return;
        }
        self.own.set_status(NodeStatus::Removed);
        self.publish_self(now);
        // This node does not repeat it later, so it goes to a few more peers than an ordinary push.
        self.push(self.config.fanout * 3, now);
        self.enter_stopped();
    }
}
