//! What is refused, recorded, kept out and told: scenes that need little of a network.

use super::*;

fn record(index: usize, uid: u64, incarnation: u64, status: NodeStatus) -> MemberRecord {
    MemberRecord {
        authority: authority(index),
        uid: NodeUid::from_raw(uid),
        incarnation,
        status,
        accusations: Accusations::NONE,
        metadata_stamp: 0,
        metadata: MemberMetadata::EMPTY,
    }
}

fn envelope(cluster: &str, message: Message) -> Vec<u8> {
    let sender = NodeIdentity {
        authority: authority(50),
        uid: NodeUid::from_raw(1),
    };
    Envelope {
        cluster: cluster.into(),
        versions: (1, 1),
        sender,
        message,
    }
    .encode()
}

fn push(records: Vec<MemberRecord>) -> Vec<u8> {
    let delta = MembershipDelta {
        records,
        ..MembershipDelta::default()
    };
    envelope(
        "kumi",
        Message::Push {
            seen: Seen::default(),
            delta,
        },
    )
}

#[test]
fn an_invalid_step_is_recorded_and_the_rest_of_the_delta_is_applied() {
    let mut net = Net::settled(1);
    let now = net.now;
    net.nodes[0]
        .handle_message(&authority(50), &push(vec![record(7, 1, 1, Leaving)]), now)
        .expect("valid");
    let delta = vec![record(7, 1, 2, Up), record(8, 1, 1, Up)];
    net.nodes[0]
        .handle_message(&authority(50), &push(delta), now)
        .expect("valid");
    let outcome = net.nodes[0].poll(now);
    let error = MembershipError::InvalidTransition {
        authority: authority(7),
        from: Leaving,
        to: Up,
    };
    assert!(
        outcome
            .membership_events
            .contains(&MembershipEvent::Refused { error })
    );
    assert_eq!(net.status(0, 7), Some(Leaving));
    assert_eq!(net.status(0, 8), Some(Up));
    assert_eq!(net.nodes[0].metrics().invalid_transitions, 1);
}

#[test]
fn a_member_that_is_sent_away_while_it_refutes_leaves() {
    let mut net = Net::settled(4);
    let uid = net.uid(3);
    // It has not heard of the one when it answers the other.
    let next = net.nodes[3].incarnation() + 1;
    net.nodes[3].own.set_incarnation(next);
    let now = net.nodes[3].advance(net.now);
    net.nodes[3].publish_self(now);
    let outcome = net.nodes[0].handle_leave(&authority(3), net.now);
    net.publish(0, outcome.expect("a member"));
    assert_eq!(net.steps(0, uid), vec![Leaving], "at once");
    net.run(seconds(4));
    assert_eq!(net.nodes[3].state(), MembershipRuntimeState::Stopped);
    net.down.insert(3);
    net.assert_agreed(3);
    for viewer in 0..3 {
        assert_eq!(net.steps(viewer, uid), vec![Leaving, Removed], "n{viewer}");
    }
}

#[test]
fn a_life_that_was_over_before_it_was_known_is_not_told_of() {
    let mut net = Net::settled(1);
    let now = net.now;
    for (uid, status) in [(1, Dead), (1, Removed), (2, Up), (3, Dead), (3, Removed)] {
        let delta = push(vec![record(7, uid, 1, status)]);
        net.nodes[0]
            .handle_message(&authority(50), &delta, now)
            .expect("valid");
    }
    net.poll(0);
    assert_eq!(net.steps(0, NodeUid::from_raw(1)), vec![]);
    assert_eq!(
        net.steps(0, NodeUid::from_raw(2)),
        vec![Up, Dead, Removed],
        "a later life took its place, over or not"
    );
    assert_eq!(net.steps(0, NodeUid::from_raw(3)), vec![]);
}

#[test]
fn joining_to_suspect_is_told_by_way_of_up() {
    let mut net = Net::settled(1);
    let now = net.now;
    for status in [Joining, Suspect] {
        net.nodes[0]
            .handle_message(&authority(50), &push(vec![record(7, 1, 1, status)]), now)
            .expect("valid");
    }
    net.poll(0);
    assert_eq!(
        net.steps(0, NodeUid::from_raw(1)),
        vec![Joining, Up, Suspect]
    );
}

#[test]
fn a_peer_of_another_cluster_or_version_is_refused_and_reported_once() {
    let mut net = Net::settled(1);
    let now = net.now;
    let mut foreign = envelope("other", Message::Probe { nonce: 1 });
    for _ in 0..3 {
        let refused = net.nodes[0].handle_message(&authority(50), &foreign, now);
        assert_eq!(refused, Err(EnvelopeError::WrongCluster));
    }
    foreign[1..3].copy_from_slice(&[7, 9]);
    let refused = net.nodes[0].handle_message(&authority(51), &foreign, now);
    assert_eq!(refused, Err(EnvelopeError::Version { min: 7, max: 9 }));
    let outcome = net.nodes[0].poll(now);
    let refused = outcome
        .member_events
        .iter()
        .filter(|event| matches!(event, ClusterEvent::PeerRefused { .. }));
    assert_eq!(refused.count(), 2);
    assert_eq!(net.nodes[0].metrics().refused, 4);
}

#[test]
fn a_message_from_a_life_that_is_over_is_answered_with_its_record() {
    let mut net = Net::settled(1);
    let now = net.now;
    net.nodes[0]
        .handle_message(&authority(50), &push(vec![record(50, 1, 4, Dead)]), now)
        .expect("valid");
    let _ = net.nodes[0].poll(now);
    let heartbeat = envelope(
        "kumi",
        Message::Heartbeat {
            sequence: 1,
            incarnation: 4,
        },
    );
    net.nodes[0]
        .handle_message(&authority(50), &heartbeat, now)
        .expect("valid");
    let outcome = net.nodes[0].poll(now);
    let [outbound] = &*outcome.gossip_outbound else {
        panic!("{outcome:?}");
    };
    let answer = Envelope::decode(&outbound.bytes).expect("valid");
    let Message::Verdict { record, .. } = answer.message else {
        panic!("{answer:?}");
    };
    assert_eq!((record.status, record.incarnation), (Dead, 4));
}

#[test]
fn an_operators_quarantine_reaches_everybody_ends_the_life_and_keeps_restarts_out() {
    let mut net = Net::settled(4);
    let old = net.uid(3);
    net.nodes[0]
        .quarantine(&authority(3), "disk\nfull", seconds(10), net.now)
        .expect("a member");
    net.run(seconds(3));
    for viewer in 0..3 {
        assert_eq!(net.steps(viewer, old).last(), Some(&Dead), "{viewer}");
        let entries = net.nodes[viewer].quarantine_snapshot();
        assert_eq!(entries.len(), 1);
        assert_eq!(
            entries[0].reason.to_string(),
            "by an operator (disk\\nfull)"
        );
        assert_eq!(net.nodes[viewer].snapshot().members.len(), 3);
    }
    assert_eq!(
        net.count(3, |event| is_self_downed(event, DownReason::Quarantined)),
        1
    );

    let node = local_node(3, net.unix_ms() + 1);
    net.restart(3, node, 0);
    net.run(seconds(2));
    assert_eq!(net.nodes[0].snapshot().members.len(), 3);
    let refused = net.nodes[0].handle_join(NodeUid::new(UNIX_MS * 2, 0), authority(3), net.now);
    assert!(
        matches!(refused, Err(MembershipError::Quarantined { .. })),
        "{refused:?}"
    );
    let queued = net.nodes[0].poll(net.now).quarantine_events;
    assert!(
        matches!(&*queued, [ClusterEvent::MemberQuarantined { .. }]),
        "{queued:?}"
    );

    net.run(seconds(20));
    net.assert_agreed(4);
    assert!(net.nodes[0].quarantine_snapshot().is_empty());
}

#[test]
fn a_quarantine_can_be_lifted_before_its_time() {
    let mut net = Net::settled(3);
    net.nodes[0]
        .quarantine(&authority(2), "", seconds(100), net.now)
        .expect("a member");
    net.run(seconds(2));
    assert_eq!(net.nodes[1].snapshot().members.len(), 2);
    net.nodes[1]
        .release(&authority(2), net.now)
        .expect("a member");
    net.run(seconds(2));
    for index in [0, 1] {
        let releases = net.events[index].iter().filter(|event| {
            matches!(event, ClusterEvent::QuarantineReleased { authority: who, .. } if *who == authority(2))
        });
        assert_eq!(releases.count(), 1, "node {index} tells of it once");
    }
    let node = local_node(2, net.unix_ms() + 1);
    net.restart(2, node, 0);
    net.run(seconds(3));
    net.assert_agreed(3);
}

#[test]
fn who_was_kept_out_comes_back_when_the_quarantine_is_lifted() {
    for restarts in [false, true] {
        let mut net = Net::settled(3);
        net.nodes[0]
            .quarantine(&authority(2), "", seconds(1000), net.now)
            .expect("a member");
        net.run(seconds(2));
        if restarts {
            let node = local_node(2, net.unix_ms() + 1);
            net.restart(2, node, 0);
        }
        net.run(seconds(2));
        assert_eq!(net.nodes[2].status(), Some(Joining), "it waits");
        net.nodes[1]
            .release(&authority(2), net.now)
            .expect("a member");
        net.run(seconds(2));
        net.assert_agreed(3);
    }
}

#[test]
fn a_first_node_whose_quarantine_is_over_begins_again_when_no_member_is_left() {
    let mut net = Net::new(MembershipRuntimeConfig::local());
    net.start(&[]);
    net.run(seconds(1));
    net.nodes[0]
        .quarantine(&authority(0), "", seconds(5), net.now)
        .expect("a member");
    net.run(seconds(4));
    assert_eq!(net.nodes[0].status(), Some(Joining), "it waits");
    net.run(seconds(6));
    assert_eq!(net.nodes[0].status(), Some(Up));
}

#[test]
fn a_restart_after_death_is_welcome_at_once() {
    let mut net = Net::settled(3);
    net.down.insert(2);
    net.run(seconds(8));
    assert_eq!(net.status(0, 2), Some(Dead));
    assert_eq!(net.nodes[0].quarantine_snapshot().len(), 1);
    let blocked = |net: &Net| {
        let topologies = net.events[0].iter().rev();
        let mut topologies = topologies.filter_map(|event| match event {
            ClusterEvent::TopologyUpdated { blocked, .. } => Some(blocked.to_vec()),
            _ => None,
        });
        topologies.next()
    };
    assert_eq!(blocked(&net), Some(Vec::from([authority(2)])));
    let node = local_node(2, net.unix_ms());
    net.restart(2, node, 0);
    net.run(seconds(2));
    net.assert_agreed(3);
    assert_eq!(blocked(&net), Some(Vec::new()), "only that life is");
}

#[test]
fn what_is_stopped_refuses_and_what_runs_does_not_start_again() {
    let mut net = Net::new(MembershipRuntimeConfig::local());
    let index = net.add();
    let (now, node) = (net.now, &mut net.nodes[index]);
    assert_eq!(
        node.handle_join(NodeUid::from_raw(1), authority(9), now),
        Err(MembershipError::NotStarted)
    );
    assert_eq!(
        node.handle_leave(&authority(9), now),
        Err(MembershipError::NotStarted)
    );
    assert_eq!(
        node.handle_heartbeat(&authority(9), now),
        Err(MembershipError::NotStarted)
    );
    assert_eq!(node.leave(now), Err(MembershipError::NotStarted));
    assert_eq!(
        node.quarantine(&authority(9), "", seconds(1), now),
        Err(MembershipError::NotStarted)
    );
    assert_eq!(
        node.handle_message(&authority(9), &[], now),
        Err(EnvelopeError::NotStarted)
    );
    assert_eq!(node.stop(), Err(MembershipRuntimeError::NotStarted));
    assert!(node.poll(now).is_empty());
    assert_eq!(node.next_deadline(), None);
    assert_eq!(node.start_member(&[], now), Ok(()));
    assert_eq!(
        node.start_client(&[], now),
        Err(MembershipRuntimeError::AlreadyStarted)
    );
    let unknown = MembershipError::UnknownMember {
        authority: authority(9),
    };
    assert_eq!(node.handle_leave(&authority(9), now), Err(unknown));
    assert_eq!(node.stop(), Ok(()));
    let before = node.identity();
    assert_eq!(node.start_member(&[], now), Ok(()));
    assert!(
        node.identity().uid > before.uid,
        "another start is another life"
    );
}

#[test]
fn a_relayed_answer_carries_the_answerers_own_incarnation() {
    let mut net = Net::settled(2);
    let now = net.now;
    let known = push(vec![record(50, 1, 7, Up)]);
    net.nodes[0]
        .handle_message(&authority(50), &known, now)
        .expect("valid");
    let target = net.nodes[1].identity();
    let request = envelope("kumi", Message::ProbeRequest { nonce: 9, target });
    net.nodes[0]
        .handle_message(&authority(50), &request, now)
        .expect("valid");
    let sent = net.nodes[0].poll(now).gossip_outbound;
    let probe = sent
        .iter()
        .filter_map(|outbound| Envelope::decode(&outbound.bytes).ok())
        .find_map(|envelope| match envelope.message {
            Message::Probe { nonce } => Some(nonce),
            _ => None,
        });
    let answer = Envelope {
        cluster: "kumi".into(),
        versions: (1, 1),
        // A later life, of which the relay has not heard.
        sender: NodeIdentity {
            authority: authority(1),
            uid: NodeUid::from_raw(u64::MAX),
        },
        message: Message::ProbeAck {
            nonce: probe.expect("it asks for us"),
            incarnation: 3,
        },
    };
    net.nodes[0]
        .handle_message(&authority(1), &answer.encode(), now)
        .expect("valid");
    let sent = net.nodes[0].poll(now).gossip_outbound;
    let told = sent
        .iter()
        .filter_map(|outbound| Envelope::decode(&outbound.bytes).ok())
        .find_map(|envelope| match envelope.message {
            Message::ProbeReply { incarnation, .. } => Some(incarnation),
            _ => None,
        });
    assert_eq!(told, Some(3));
}

#[test]
fn a_client_sees_all_members_and_is_none() {
    let mut net = Net::settled(3);
    let client = net.add();
    net.nodes[client]
        .start_client(&[authority(0)], net.now)
        .expect("stopped");
    net.run(seconds(6));
    assert_eq!(
        net.nodes[client].snapshot().hash,
        net.nodes[0].snapshot().hash
    );
    assert_eq!(net.nodes[0].snapshot().members.len(), 3);
    let refused = net.nodes[client].handle_leave(&authority(1), net.now);
    assert_eq!(refused, Err(MembershipError::ClientMayNot));
    assert_eq!(
        net.nodes[client].leave(net.now),
        Err(MembershipError::ClientMayNot)
    );
    net.nodes[1].leave(net.now).expect("a member");
    net.run(seconds(8));
    assert_eq!(net.nodes[client].snapshot().members.len(), 2);
    assert_eq!(net.nodes[client].status(), None);
}

#[test]
fn a_static_cluster_works_without_gossip() {
    let mut config = MembershipRuntimeConfig::local();
    config.gossip_enabled = false;
    let mut net = Net::new(config);
    for _ in 0..3 {
        net.start(&[]);
    }
    for viewer in 0..3 {
        for of in (0..3).filter(|&of| of != viewer) {
            net.name(viewer, NodeUid::UNKNOWN, of);
        }
    }
    net.run(seconds(5));
    for viewer in 0..3 {
        let uids: Vec<NodeUid> = net.nodes[viewer]
            .snapshot()
            .members
            .iter()
            .map(|member| member.uid)
            .collect();
        assert_eq!(uids, (0..3).map(|index| net.uid(index)).collect::<Vec<_>>());
    }
    net.down.insert(2);
    net.run(seconds(6));
    assert_eq!(net.status(0, 2), Some(Dead));
    let node = local_node(2, net.unix_ms());
    net.restart(2, node, 2);
    for of in 0..2 {
        net.name(2, NodeUid::UNKNOWN, of);
    }
    net.run(seconds(3));
    assert_eq!(net.status(0, 2), Some(Up));
    let gossip = net
        .packets
        .keys()
        .filter(|(_, kind)| matches!(kind, MessageKind::Push | MessageKind::PushPull));
    assert_eq!(gossip.count(), 0);
}

#[test]
fn metadata_travels_with_the_record_and_can_be_changed() {
    let mut net = Net::settled(3);
    let text = |net: &Net, viewer: usize| {
        let members = net.nodes[viewer].snapshot().members;
        members[1].metadata.version().to_string()
    };
    assert_eq!(text(&net, 2), "1.0");
    let metadata = MemberMetadata::build("2.0", &[], &[]).expect("short");
    net.nodes[1]
        .set_metadata(metadata, net.now)
        .expect("a member");
    net.run(seconds(2));
    assert_eq!(text(&net, 2), "2.0");
    assert_eq!(text(&net, 0), "2.0");
}

#[test]
fn events_come_before_messages_in_the_order_quarantine_members_topology() {
    let mut net = Net::settled(3);
    net.nodes[0]
        .quarantine(&authority(2), "x", seconds(9), net.now)
        .expect("a member");
    let outcome = net.nodes[0].poll(net.now);
    let events: Vec<ClusterEvent> = outcome.into_events().collect();
    let kinds: Vec<bool> = events
        .iter()
        .map(|event| matches!(event, ClusterEvent::MemberQuarantined { .. }))
        .collect();
    let sorted = kinds.is_sorted_by(|one, two| one >= two);
    assert!(sorted && kinds[0], "{events:?}");
    net.run(seconds(1));
    let blocked = |event: &_| matches!(event, ClusterEvent::TopologyUpdated { blocked, .. } if blocked.len() == 1);
    assert_eq!(net.count(0, blocked), 1);
}

#[test]
fn polling_at_the_deadline_makes_progress_and_the_same_calls_give_the_same_outcomes() {
    let run = || {
        let mut net = Net::settled(5);
        net.down.insert(4);
        net.run(seconds(10));
        (net.events, net.packets)
    };
    assert_eq!(run(), run());
    let mut net = Net::settled(3);
    for _ in 0..1000 {
        let at = net.nodes[1].next_deadline().expect("started");
        let _ = net.nodes[1].poll(at);
        assert!(net.nodes[1].next_deadline().expect("started") > at);
    }
}

#[test]
fn memory_is_bounded_when_strangers_come_and_go() {
    let mut net = Net::settled(1);
    for round in 0..3000 {
        let now = net.now + Duration::from_millis(round);
        let records = vec![
            record(100 + round as usize, 1, 1, Up),
            record(100 + round as usize, 1, 1, Removed),
        ];
        let _ = net.nodes[0].handle_message(&authority(50), &push(records), now);
        let _ = net.nodes[0].poll(now);
    }
    let footprint = net.nodes[0].footprint();
    assert!(footprint.records <= net.config.max_members, "{footprint:?}");
    assert!(
        footprint.timeouts <= net.config.max_members,
        "{footprint:?}"
    );
    assert!(
        footprint.addresses <= net.config.max_address_book,
        "{footprint:?}"
    );
}
