//! Claims about a node by its peers, true and false ones: that a later life of it exists, that it leaves, and who sent a
//! message.

use super::*;
use crate::core::membership::parts::claims::MEETING_TIMEOUT;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn later() -> NodeUid {
    NodeUid::new(UNIX_MS + DAY_MS / 2, 0)
}

/// Three nodes that check identities, and the claim of a later life of the third.
fn claimed() -> Net {
    let mut net = Net::settled(3);
    for node in &mut net.nodes {
        node.require_meeting(true);
    }
    net.name(0, later(), 2);
    net
}

#[test]
fn a_claim_that_is_not_met_stops_no_node() {
    let mut net = claimed();
    net.run(MEETING_TIMEOUT + seconds(5));
    assert_eq!(net.nodes[2].status(), Some(Up));
    assert!(net.uid(2) > later());
    net.assert_agreed(3);
    let downs = |reason| net.count(2, |event| is_self_downed(event, reason));
    assert_eq!(downs(DownReason::Claimed), 1);
    assert_eq!(downs(DownReason::Superseded), 0);
}

#[test]
fn the_driver_is_asked_once_and_its_answer_decides() {
    for is_met in [true, false] {
        let mut net = claimed();
        let mut asked = Vec::new();
        // Several messages repeat the claim.
        for _ in 0..5 {
            net.run(Duration::from_millis(100));
            let now = net.now;
            let mut repeated = net.nodes[0]
                .table()
                .record(&authority(2))
                .expect("known")
                .clone();
            repeated.uid = later();
            let at = net.nodes[2].advance(now);
            net.nodes[2].learn(&repeated, at);
            asked.extend(net.nodes[2].poll(now).meet);
        }
        // The first request left in an outcome that the network took.
        assert!(asked.is_empty(), "{asked:?}");
        let now = net.now;
        let found = NodeIdentity {
            authority: authority(2),
            uid: later(),
        };
        match is_met {
            true => net.nodes[2].met(&found, now),
            false => net.nodes[2].not_met(now),
        }
        let expected = match is_met {
            true => MembershipRuntimeState::Stopped,
            false => MembershipRuntimeState::Member,
        };
        assert_eq!(net.nodes[2].state(), expected);
    }
}

#[test]
fn the_first_claim_asks_the_driver() {
    let mut net = Net::settled(1);
    net.nodes[0].require_meeting(true);
    let mut own = net.nodes[0]
        .table()
        .record(&authority(0))
        .expect("known")
        .clone();
    own.uid = later();
    let now = net.nodes[0].advance(net.now);
    net.nodes[0].learn(&own, now);
    assert_eq!(net.nodes[0].poll(net.now).meet, Some(later()));
}

#[test]
fn meeting_another_node_or_an_earlier_life_changes_nothing() {
    let mut net = claimed();
    net.run(Duration::from_millis(100));
    let now = net.now;
    for (of, uid) in [(1, later()), (2, NodeUid::from_raw(5))] {
        let authority = authority(of);
        net.nodes[2].met(&NodeIdentity { authority, uid }, now);
        assert_eq!(net.nodes[2].state(), MembershipRuntimeState::Member);
    }
}

#[test]
fn a_node_that_leaves_goes_on_leaving() {
    let mut net = Net::settled(3);
    net.nodes[2].require_meeting(true);
    net.nodes[2].leave(net.now).expect("a member");
    net.name(0, later(), 2);
    net.run(MEETING_TIMEOUT + seconds(5));
    assert_eq!(net.nodes[2].state(), MembershipRuntimeState::Stopped);
    assert_eq!(
        net.count(2, |event| matches!(event, ClusterEvent::SelfDowned { .. })),
        0
    );
}

/// A message of this sender.
fn message(sender: NodeIdentity, message: Message) -> Vec<u8> {
    let envelope = Envelope {
        cluster: "kumi".into(),
        versions: (MIN_VERSION, MAX_VERSION),
        sender,
        message,
    };
    envelope.encode()
}

/// Three nodes that check identities, and gossip of the second to all about a life of the third.
fn announced(uid: NodeUid) -> Net {
    let mut net = Net::settled(3);
    for node in &mut net.nodes {
        node.require_meeting(true);
    }
    tell_of(&mut net, uid);
    net
}

/// The second node tells the others, and the third itself, of this life of the third.
fn tell_of(net: &mut Net, uid: NodeUid) {
    let identity = NodeIdentity {
        authority: authority(2),
        uid,
    };
    let delta = MembershipDelta {
        records: vec![MemberRecord::new(identity, Up, MemberMetadata::EMPTY)],
        ..MembershipDelta::default()
    };
    let seen = Seen::default();
    let bytes = message(net.nodes[1].identity(), Message::Push { seen, delta });
    for to in [0, 2] {
        let taken = net.nodes[to].handle_message(&authority(1), &bytes, net.now);
        assert_eq!(taken, Ok(()));
    }
}

#[test]
fn the_largest_possible_uid_keeps_no_node_out() {
    let mut net = announced(NodeUid::from_raw(u64::MAX));
    let before = net.uid(2);
    net.run(MEETING_TIMEOUT + seconds(20));
    assert_eq!(net.uid(2), before, "no node believes it");
    net.assert_agreed(3);
    // Nor when the node is started again.
    let node = local_node(2, net.unix_ms());
    net.restart(2, node, 0);
    net.nodes[2].require_meeting(true);
    net.run(seconds(10));
    net.assert_agreed(3);
    assert_eq!(net.nodes[2].status(), Some(Up));
}

#[test]
fn the_latest_uid_that_is_accepted_has_one_above_it() {
    let net = Net::settled(3);
    let latest = NodeUid::new(net.unix_ms() + DAY_MS, u64::MAX);
    let mut net = announced(latest);
    net.run(MEETING_TIMEOUT + seconds(20));
    assert!(net.uid(2) > latest);
    net.assert_agreed(3);
    // One millisecond later than that is refused.
    let current = net.uid(2);
    let refused = NodeUid::new(net.unix_ms() + DAY_MS + 1, 0);
    tell_of(&mut net, refused);
    net.run(MEETING_TIMEOUT + seconds(20));
    assert_eq!(net.uid(2), current);
    net.assert_agreed(3);
}

#[test]
fn a_peer_whose_uid_is_more_than_a_day_ahead_is_refused_until_the_clock_is_set() {
    let mut net = Net::settled(2);
    net.nodes[0].require_meeting(true);
    let joiner = NodeIdentity {
        authority: authority(7),
        uid: NodeUid::new(net.unix_ms() + 2 * DAY_MS, 1),
    };
    let record = MemberRecord::new(joiner.clone(), Joining, MemberMetadata::EMPTY);
    let join = message(joiner.clone(), Message::Join { record });
    let taken = net.nodes[0].handle_message(&joiner.authority, &join, net.now);
    assert_eq!(taken, Err(EnvelopeError::SenderAhead));
    let named = net.nodes[0].handle_join(joiner.uid, joiner.authority.clone(), net.now);
    assert!(matches!(named, Err(MembershipError::UidAhead { .. })));
    assert!(net.nodes[0].table().record(&joiner.authority).is_none());
    let unix_ms = net.unix_ms();
    // The clock is set ahead, back and ahead again.
    for (days, expected) in [
        (2, Ok(())),
        (0, Err(EnvelopeError::SenderAhead)),
        (2, Ok(())),
    ] {
        net.nodes[0].set_unix_ms(unix_ms + days * DAY_MS, net.now);
        let taken = net.nodes[0].handle_message(&joiner.authority, &join, net.now);
        assert_eq!(taken, expected);
        assert!(net.nodes[0].table().record(&joiner.authority).is_some());
    }
}

#[test]
fn a_clock_that_was_ahead_and_is_set_back_keeps_no_node_out() {
    let mut net = Net::settled(3);
    for node in &mut net.nodes {
        node.require_meeting(true);
    }
    let (before, unix_ms) = (net.uid(2), net.unix_ms());
    net.nodes[2].set_unix_ms(unix_ms + 10 * DAY_MS, net.now);
    net.nodes[2].set_unix_ms(unix_ms, net.now);
    let now = net.nodes[2].advance(net.now);
    net.nodes[2].downed_below(DownReason::Dead, None, now);
    let after = net.uid(2);
    assert!(after > before);
    assert!(after.unix_ms() <= unix_ms + DAY_MS, "{after}");
    net.run(seconds(20));
    assert_eq!(net.nodes[2].status(), Some(Up));
    net.assert_agreed(3);
}

#[test]
fn a_node_whose_clock_is_more_than_a_day_behind_refuses_members_that_started_since() {
    let mut net = Net::settled(2);
    net.nodes[0].require_meeting(true);
    let (peer, seen) = (net.nodes[1].identity(), Seen::default());
    let delta = MembershipDelta::default();
    let push = message(peer.clone(), Message::Push { seen, delta });
    let unix_ms = net.unix_ms();
    for (behind, expected) in [
        (2 * DAY_MS, Err(EnvelopeError::SenderAhead)),
        (DAY_MS / 2, Ok(())),
    ] {
        net.nodes[0].set_unix_ms(unix_ms - behind, net.now);
        let taken = net.nodes[0].handle_message(&peer.authority, &push, net.now);
        assert_eq!(taken, expected);
    }
}

#[test]
fn neither_a_refused_join_nor_a_meeting_makes_a_node_believe_such_a_uid() {
    let last = NodeUid::from_raw(u64::MAX);
    let mut net = Net::settled(1);
    net.nodes[0].require_meeting(true);
    let found = NodeIdentity {
        authority: authority(0),
        uid: last,
    };
    let now = net.now;
    net.nodes[0].met(&found, now);
    assert_eq!(net.nodes[0].state(), MembershipRuntimeState::Member);

    let joiner = net.start(&[0]);
    net.nodes[joiner].require_meeting(true);
    let before = net.uid(joiner);
    let reason = crate::core::wire::codec::JoinRefusal::Superseded { current: last };
    let refused = message(net.nodes[0].identity(), Message::JoinRefused { reason });
    let taken = net.nodes[joiner].handle_message(&authority(0), &refused, net.now);
    assert_eq!(taken, Ok(()));
    assert_eq!(net.uid(joiner), before);
    net.run(seconds(5));
    net.assert_agreed(2);
}

/// The second of three nodes tells the third that the third is leaving.
fn told_to_leave(requires_meeting: bool, change: impl FnOnce(&mut Net)) -> (Net, NodeUid) {
    let mut net = Net::settled(3);
    change(&mut net);
    net.nodes[2].require_meeting(requires_meeting);
    let uid = net.uid(2);
    let record = net.nodes[1].table().record(&authority(2)).expect("known");
    let record = MemberRecord {
        status: Leaving,
        ..record.clone()
    };
    let delta = MembershipDelta {
        records: vec![record],
        ..MembershipDelta::default()
    };
    let seen = Seen::default();
    let bytes = message(net.nodes[1].identity(), Message::Push { seen, delta });
    let taken = net.nodes[2].handle_message(&authority(1), &bytes, net.now);
    assert_eq!(taken, Ok(()));
    (net, uid)
}

#[test]
fn a_record_of_a_peer_makes_no_node_leave() {
    for rejoins in [true, false] {
        let (mut net, before) = told_to_leave(true, |net| {
            net.nodes[2].config.rejoin_when_downed = rejoins;
        });
        net.run(seconds(10));
        assert_eq!(net.nodes[2].status(), Some(Up));
        assert!(net.uid(2) > before);
        net.assert_agreed(3);
        let downs = |reason| net.count(2, |event| is_self_downed(event, reason));
        assert_eq!(downs(DownReason::Claimed), 1);
    }
}

#[test]
fn without_checks_of_identity_a_record_of_a_peer_makes_a_node_leave() {
    let (mut net, _) = told_to_leave(false, |_| {});
    net.run(seconds(10));
    assert_eq!(net.nodes[2].state(), MembershipRuntimeState::Stopped);
}

#[test]
fn a_message_in_the_name_of_another_node_is_refused() {
    for requires_meeting in [true, false] {
        let mut net = Net::settled(2);
        net.nodes[0].require_meeting(requires_meeting);
        let (member, joiner) = (net.nodes[1].identity(), 7);
        let joiner = NodeIdentity {
            authority: authority(joiner),
            uid: NodeUid::new(UNIX_MS, 1),
        };
        let record = MemberRecord::new(joiner.clone(), Joining, MemberMetadata::EMPTY);
        let heartbeat = Message::Heartbeat {
            sequence: 1000,
            incarnation: 1,
        };
        for forged in [
            message(member, heartbeat),
            message(joiner.clone(), Message::Join { record }),
        ] {
            let taken = net.nodes[0].handle_message(&authority(5), &forged, net.now);
            let expected = match requires_meeting {
                true => Err(EnvelopeError::SenderMismatch),
                false => Ok(()),
            };
            assert_eq!(taken, expected);
        }
        net.poll(0);
        let is_known = net.nodes[0].table().record(&joiner.authority).is_some();
        assert_eq!(is_known, !requires_meeting);
        let reports = net.count(0, |event| {
            matches!(event, ClusterEvent::PeerRefused { authority: from, .. } if *from == authority(5))
        });
        assert_eq!(reports, usize::from(requires_meeting), "once per peer");
    }
}
