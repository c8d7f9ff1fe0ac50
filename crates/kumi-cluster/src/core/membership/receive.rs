//! Handling of received messages, by kind.
//!
//! The sender is checked before the message: a life that is over is sent a verdict, an earlier life the record of the later
//! one. A heartbeat of a node that is not known is acknowledged with a flag that makes it compare tables.

use super::parts::clock::Now;
use super::parts::detection::Sign;
use super::{MembershipRuntime, MembershipRuntimeState};
use crate::core::base::identity::{Authority, NodeIdentity, NodeUid};
use crate::core::base::metadata::MemberMetadata;
use crate::core::base::status::NodeStatus;
use crate::core::protocol::event::ClusterEvent;
use crate::core::state::quarantine::QuarantineRumor;
use crate::core::state::record::{Accusations, MemberRecord};
use crate::core::state::table::Slot;
use crate::core::wire::codec::{Envelope, Message};
use crate::core::wire::transport::Delivery;

/// After so many heartbeat intervals without another message of the earlier uid, there is no conflict.
const CONFLICT_PAUSE_BEATS: u32 = 20;
/// A node that is not the sender's monitor answers one in so many heartbeats.
const NOT_MY_MONITOR_EVERY: u64 = 4;

/// What is known about the sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// A member in this very life.
    Member(Slot),
    /// This life is over.
    Over(Slot),
    /// A later life is known.
    Earlier(Slot),
    /// This life is not known yet.
    Unknown,
}

impl MembershipRuntime {
    pub(super) fn receive(&mut self, envelope: Envelope, now: Now) {
        let Envelope {
            sender, message, ..
        } = envelope;
        self.local_health.heard(now);
        let mut known = self.known_sender(&sender);
        if known == Sender::Unknown && self.saw_end_of(&sender.authority, sender.uid) {
            self.recall(sender.clone(), now);
            known = self.known_sender(&sender);
        }
        let verdict = matches!(message, Message::Verdict { .. });
        match known {
            Sender::Member(slot) => {
                if let Some(entry) = self.table.entry_mut(slot) {
                    entry.heard_at = Some(now.raw);
                }
                self.local_health.heard_member(now);
            }
            // A verdict is not answered with a verdict: two nodes that hold each other to be dead would repeat it for ever.
            Sender::Over(_) if verdict => {}
            Sender::Over(slot) => self.tell_verdict(slot, &sender, now),
            Sender::Earlier(slot) => {
                if !verdict {
                    self.tell_verdict(slot, &sender, now);
                }
                self.look_for_conflict(slot, sender.uid, now);
            }
            Sender::Unknown => {}
        }
        let living = matches!(known, Sender::Member(_));
        match message {
            Message::Heartbeat {
                sequence,
                incarnation,
            } => {
                self.heartbeat(&sender, known, sequence, incarnation, now);
                return;
            }
            Message::HeartbeatAck {
                suspected,
                not_my_monitor,
                ..
            } => {
                if let Some(incarnation) = suspected {
                    self.refute(incarnation, now);
                }
                if not_my_monitor {
                    self.compare_soon(&sender.authority, now);
                }
            }
            Message::Probe { nonce } => {
                let incarnation = self.own.incarnation();
                let answers = self.state == MembershipRuntimeState::Member;
                if answers && !matches!(known, Sender::Over(_)) {
                    self.send(
                        &sender.authority,
                        Message::ProbeAck { nonce, incarnation },
                        Delivery::Datagram,
                    );
                }
            }
            Message::ProbeAck { nonce, incarnation } => {
                self.hear_incarnation(known, incarnation, now);
                self.probe_answered(nonce, &sender, incarnation, now);
            }
            Message::ProbeRequest { nonce, target } => {
                if living {
                    self.relay_probe(&sender.authority, nonce, &target, now);
                }
            }
            Message::ProbeReply {
                nonce,
                target,
                incarnation,
            } => {
                let subject = self.known_sender(&target);
                self.hear_incarnation(subject, incarnation, now);
                self.probe_answered(nonce, &target, incarnation, now);
            }
            Message::Push { delta, .. } => self.learn_all(&delta, now),
            Message::PullRequest {
                observer,
                bookmark,
                quarantines,
                buckets,
                seen,
            } => {
                if observer {
                    self.answer_observer(&sender.authority, bookmark, now);
                } else {
                    self.answer_pull(&sender.authority, seen, &buckets, quarantines, now);
                }
            }
            Message::PullReply {
                seen,
                wanted,
                delta,
            } => {
                self.finish_pull(&sender.authority, seen, wanted, &delta, now);
            }
            Message::Join { record } => self.answer_join(&sender, &record, now),
            Message::Welcome { delta, .. } => self.welcomed(&sender.authority, &delta, now),
            Message::JoinRefused { reason } => self.join_refused(&sender.authority, &reason, now),
            Message::Verdict { record, quarantine } => {
                // The order first: a quarantined node must not join again at once.
                if let Some(rumor) = quarantine {
                    self.hear_order(&sender.authority, &rumor, now);
                }
                self.learn(&record, now);
            }
        }
        if let Sender::Member(slot) = self.known_sender(&sender) {
            self.heard_subject(slot, Sign::Message, now);
        }
    }

    /// Applies an order of a peer, or sends the peer the later order that this node has.
    fn hear_order(&mut self, peer: &Authority, rumor: &QuarantineRumor, now: Now) {
        if self.quarantine.version_of(&rumor.authority) > rumor.version {
            let later = self.quarantine.rumor(&rumor.authority, now.raw);
            self.tell_orders(peer, later.into_iter().collect());
        } else {
            self.learn_order(rumor, now);
        }
    }

    fn known_sender(&self, sender: &NodeIdentity) -> Sender {
        let Some(slot) = self.table.slot_of(&sender.authority) else {
            return Sender::Unknown;
        };
        let Some(record) = self.table.entry(slot).map(|entry| &entry.record) else {
            return Sender::Unknown;
        };
        match sender.uid.cmp(&record.uid) {
            core::cmp::Ordering::Less => Sender::Earlier(slot),
            core::cmp::Ordering::Greater => Sender::Unknown,
            core::cmp::Ordering::Equal if record.status.is_terminal() => Sender::Over(slot),
            core::cmp::Ordering::Equal => Sender::Member(slot),
        }
    }

    /// Sends a sender this node's record of it.
    fn tell_verdict(&mut self, slot: Slot, sender: &NodeIdentity, now: Now) {
        let watching = self.state == MembershipRuntimeState::Client;
        let Some(entry) = self.table.entry(slot).filter(|_| !watching) else {
            return;
        };
        let record = MemberRecord {
            metadata_stamp: 0,
            metadata: MemberMetadata::EMPTY,
            ..entry.record.clone()
        };
        let ordered = self.quarantine.ordered(&sender.authority, now.raw);
        let quarantine = ordered.and_then(|_| self.quarantine.rumor(&sender.authority, now.raw));
        self.send(
            &sender.authority,
            Message::Verdict { record, quarantine },
            Delivery::Datagram,
        );
    }

    /// Detects two nodes with one address: both uids keep sending messages.
    fn look_for_conflict(&mut self, slot: Slot, other: NodeUid, now: Now) {
        let Some(entry) = self.table.entry(slot) else {
            return;
        };
        let recent = self.config.heartbeat_interval * 8;
        let both = entry
            .heard_at
            .is_some_and(|at| now.raw.saturating_since(at) < recent);
        let (authority, current) = (entry.record.authority.clone(), entry.record.uid);
        if !both {
            return;
        }
        let pause = self.config.heartbeat_interval * CONFLICT_PAUSE_BEATS;
        if self.outbox.reports_conflict(&authority, other, pause, now) {
            self.outbox.member_event(ClusterEvent::AuthorityConflict {
                authority,
                current,
                other,
                observed_at: now.raw,
            });
        }
    }

    fn heartbeat(
        &mut self,
        sender: &NodeIdentity,
        known: Sender,
        sequence: u64,
        incarnation: u64,
        now: Now,
    ) {
        if self.state != MembershipRuntimeState::Member {
            return;
        }
        self.hear_incarnation(known, incarnation, now);
        let slot = match known {
            Sender::Member(slot) => slot,
            Sender::Unknown if !self.config.gossip_enabled => {
                self.adopt(sender, incarnation, now);
                return;
            }
            Sender::Unknown => {
                self.not_my_monitor(sender, sequence);
                return;
            }
            Sender::Over(_) | Sender::Earlier(_) => return,
        };
        if self.detection.contains(slot) {
            self.heard_subject(slot, Sign::Heartbeat(sequence), now);
        } else if self.config.gossip_enabled && !self.watches_next(slot) {
            self.not_my_monitor(sender, sequence);
        }
        // Only the suspect can refute a suspicion, so it is sent the suspicion.
        let suspected = self
            .table
            .entry(slot)
            .map(|entry| &entry.record)
            .filter(|record| {
                record.status == NodeStatus::Suspect && record.incarnation >= incarnation
            });
        if let Some(suspected) = suspected.map(|record| record.incarnation) {
            let message = Message::HeartbeatAck {
                sequence,
                suspected: Some(suspected),
                not_my_monitor: false,
            };
            self.send(&sender.authority, message, Delivery::Datagram);
        }
    }

    /// Whether this node is a monitor as of the present ring, though its watches were not brought in line yet.
    fn watches_next(&self, slot: Slot) -> bool {
        self.own_slot()
            .is_some_and(|own| self.monitor_slots(slot).contains(&own))
    }

    fn not_my_monitor(&mut self, sender: &NodeIdentity, sequence: u64) {
        if sequence % NOT_MY_MONITOR_EVERY == 1 {
            let message = Message::HeartbeatAck {
                sequence,
                suspected: None,
                not_my_monitor: true,
            };
            self.send(&sender.authority, message, Delivery::Datagram);
        }
    }

    /// Takes the uid of a named member from its heartbeat: in a static cluster nothing else shows that it was restarted.
    fn adopt(&mut self, sender: &NodeIdentity, incarnation: u64, now: Now) {
        let known = self.table.record(&sender.authority);
        let Some(known) = known.filter(|_| self.addresses.is_named(&sender.authority)) else {
            return;
        };
        let record = MemberRecord {
            incarnation,
            uid: sender.uid,
            status: NodeStatus::Up,
            accusations: Accusations::NONE,
            ..known.clone()
        };
        self.learn(&record, now);
    }

    /// Handles the incarnation in a message of the member itself: above the suspected one, it refutes the suspicion.
    fn hear_incarnation(&mut self, known: Sender, incarnation: u64, now: Now) {
        let Sender::Member(slot) = known else {
            return;
        };
        let Some(record) = self.table.entry(slot).map(|entry| &entry.record) else {
            return;
        };
        let refutes = matches!(record.status, NodeStatus::Up | NodeStatus::Suspect);
        if refutes && incarnation > record.incarnation {
            let record = MemberRecord {
                incarnation,
                status: NodeStatus::Up,
                accusations: Accusations::NONE,
                metadata_stamp: 0,
                metadata: MemberMetadata::EMPTY,
                ..record.clone()
            };
            self.learn(&record, now);
        }
    }
}
