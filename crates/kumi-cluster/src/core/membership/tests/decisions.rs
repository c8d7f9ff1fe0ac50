//! Sentences of the protocol one by one: each of these fails when its sentence is taken out of the code.

use super::*;
use crate::core::state::record::Accusation;
use crate::core::wire::codec::JoinRefusal;

fn message(sender: NodeIdentity, message: Message) -> Vec<u8> {
    let envelope = Envelope {
        cluster: "kumi".into(),
        versions: (1, 1),
        sender,
        message,
    };
    envelope.encode()
}

fn deliver(net: &mut Net, to: usize, from: usize, said: Message) {
    let bytes = message(net.nodes[from].identity(), said);
    net.nodes[to]
        .handle_message(&authority(from), &bytes, net.now)
        .expect("valid");
}

/// What a node wants to say at this moment.
fn said(net: &mut Net, by: usize) -> Vec<(Authority, Message)> {
    let outcome = net.nodes[by].poll(net.now);
    let decoded = outcome.gossip_outbound.iter().map(|outbound| {
        let envelope = Envelope::decode(&outbound.bytes).expect("valid");
        (outbound.to.clone(), envelope.message)
    });
    decoded.collect()
}

fn learn(net: &mut Net, viewer: usize, record: &MemberRecord) {
    let now = net.nodes[viewer].advance(net.now);
    net.nodes[viewer].learn(record, now);
}

/// What a viewer knows about a member, as a suspect of these accusers.
fn suspect(net: &Net, viewer: usize, of: usize, accusers: &[NodeUid], round: u16) -> MemberRecord {
    let known = net.nodes[viewer].table().record(&authority(of));
    let mut record = known.expect("known").clone();
    if record.status != Suspect {
        record.accusations = Accusations::NONE;
    }
    record.status = Suspect;
    for &accuser in accusers {
        record.accusations.add(Accusation { accuser, round });
    }
    record
}

#[test]
fn a_joiner_goes_above_a_later_uid_once_and_not_twice() {
    let mut net = Net::settled(1);
    let joiner = net.start(&[9]);
    let mut current = NodeUid::new(UNIX_MS * 2, 0);
    let refuse = |net: &mut Net, current| {
        let reason = JoinRefusal::Superseded { current };
        deliver(net, joiner, 0, Message::JoinRefused { reason });
    };
    refuse(&mut net, current);
    assert!(net.uid(joiner) > current);
    assert_eq!(net.nodes[joiner].status(), Some(Joining));
    current = NodeUid::from_raw(net.uid(joiner).raw() + 1);
    refuse(&mut net, current);
    assert_eq!(net.nodes[joiner].state(), MembershipRuntimeState::Stopped);
}

#[test]
fn a_joiner_is_up_when_it_has_the_snapshot_and_only_it_says_so() {
    let mut net = Net::settled(2);
    let joiner = net.start(&[0]);
    net.cut.insert((0, joiner));
    net.run(Duration::from_millis(200));
    assert_eq!(net.status(0, joiner), Some(Joining));
    assert_eq!(net.nodes[joiner].status(), Some(Joining));
    net.cut.clear();
    net.run(seconds(2));
    assert_eq!(net.nodes[joiner].status(), Some(Up));
    net.assert_agreed(3);
}

#[test]
fn a_dead_removed_or_earlier_life_that_sends_gets_a_verdict() {
    for status in [Dead, Removed, Up] {
        let mut net = Net::settled(2);
        let mut record = net.nodes[0]
            .table()
            .record(&authority(1))
            .expect("known")
            .clone();
        record.status = status;
        if status == Up {
            record.uid = NodeUid::from_raw(record.uid.raw() + 1);
        }
        learn(&mut net, 0, &record);
        let _ = said(&mut net, 0);
        deliver(&mut net, 0, 1, Message::Probe { nonce: 3 });
        let told = said(&mut net, 0).into_iter().any(|(to, message)| {
            let Message::Verdict { record: known, .. } = message else {
                return false;
            };
            to == authority(1) && (known.uid, known.status) == (record.uid, status)
        });
        assert!(told, "{status}");
    }
}

#[test]
fn a_silence_is_looked_into_directly_then_through_three_others_before_anybody_is_accused() {
    let mut net = Net::settled(6);
    net.down.insert(5);
    net.log = Some(Vec::new());
    let accused = |net: &Net| {
        net.notes[0].contains(&MembershipEvent::Suspected {
            authority: authority(5),
        })
    };
    while !accused(&net) {
        net.run(Duration::from_millis(10));
    }
    let (mut direct, mut indirect) = (Vec::new(), Vec::new());
    for (at, from, outbound) in net.log.take().into_iter().flatten() {
        let envelope = Envelope::decode(&outbound.bytes).expect("valid");
        match envelope.message {
            Message::Probe { .. } if from == 0 && outbound.to == authority(5) => direct.push(at),
            Message::ProbeRequest { target, .. } if from == 0 => {
                assert_eq!(target.authority, authority(5));
                indirect.push((at, outbound.to));
            }
            _ => {}
        }
    }
    let (asked, timeout) = (direct[0], net.config.probe_timeout);
    let helpers: BTreeSet<&Authority> = indirect.iter().map(|(_, to)| to).collect();
    assert_eq!((indirect.len(), helpers.len()), (3, 3));
    assert!(!helpers.contains(&authority(5)) && !helpers.contains(&authority(0)));
    let through_others = indirect[0].0;
    assert!(through_others.saturating_since(asked) >= timeout);
    assert!(net.now.saturating_since(through_others) >= timeout * 2);
}

#[test]
fn a_heartbeat_of_a_suspect_is_answered_and_only_a_higher_incarnation_lifts_the_suspicion() {
    let mut net = Net::settled(3);
    let record = suspect(&net, 0, 2, &[net.uid(1)], 1);
    learn(&mut net, 0, &record);
    let _ = said(&mut net, 0);
    let incarnation = record.incarnation;
    let heartbeat = |incarnation| Message::Heartbeat {
        sequence: 1 << 40,
        incarnation,
    };
    deliver(&mut net, 0, 2, heartbeat(incarnation));
    assert_eq!(net.status(0, 2), Some(Suspect), "to be heard is not enough");
    let answer = (
        authority(2),
        Message::HeartbeatAck {
            sequence: 1 << 40,
            suspected: Some(incarnation),
            not_my_monitor: false,
        },
    );
    assert!(said(&mut net, 0).contains(&answer));
    deliver(&mut net, 0, 2, heartbeat(incarnation + 1));
    assert_eq!(net.status(0, 2), Some(Up));
}

#[test]
fn an_accuser_that_receives_from_the_accused_again_withdraws_at_once() {
    let mut net = Net::settled(3);
    net.down.insert(2);
    while net.nodes[0].metrics().accusations == 0 {
        net.run(Duration::from_millis(10));
    }
    let _ = said(&mut net, 0);
    // Not a heartbeat: it is answered with what it has to know all the same.
    deliver(&mut net, 0, 2, Message::Probe { nonce: 1 });
    assert_eq!(net.nodes[0].metrics().withdrawals, 1);
    assert_eq!(net.status(0, 2), Some(Suspect));
    let answered = said(&mut net, 0).into_iter().any(|(to, message)| {
        to == authority(2)
            && matches!(
                message,
                Message::HeartbeatAck {
                    suspected: Some(_),
                    ..
                }
            )
    });
    assert!(answered);
}

#[test]
fn an_echo_of_a_heartbeat_is_not_another_one() {
    let mut net = Net::settled(2);
    let next = |net: &Net| {
        let node = &net.nodes[0];
        let phi = node.detection.silence_deadline().expect("watched");
        phi.saturating_since(node.local_health.now().own)
    };
    net.run(seconds(30));
    let heartbeat = Message::Heartbeat {
        sequence: 1 << 40,
        incarnation: 1,
    };
    deliver(&mut net, 0, 1, heartbeat.clone());
    let once = next(&net);
    for _ in 0..200 {
        deliver(&mut net, 0, 1, heartbeat.clone());
    }
    assert_eq!(
        next(&net),
        once,
        "it would seem to beat faster than it does"
    );
}

#[test]
fn a_record_for_which_there_is_no_room_is_noted_and_the_rest_is_applied() {
    let mut config = MembershipRuntimeConfig::local();
    config.max_members = 2;
    let mut net = Net::new(config);
    net.start(&[]);
    net.name(0, NodeUid::from_raw(1), 7);
    let known = net.nodes[0].table().record(&authority(7)).expect("known");
    let mut records = vec![known.clone(), known.clone()];
    records[0].authority = authority(8);
    records[1].status = Up;
    let delta = MembershipDelta {
        records,
        ..MembershipDelta::default()
    };
    let outcome = net.nodes[0]
        .handle_gossip_delta(&authority(9), delta, net.now)
        .expect("started");
    let error = MembershipError::TableFull { limit: 2 };
    assert!(
        outcome
            .membership_events
            .contains(&MembershipEvent::Refused { error })
    );
    assert_eq!(net.status(0, 7), Some(Up));
}

#[test]
fn what_is_heard_twice_or_too_late_is_told_once() {
    let mut net = Net::settled(2);
    let known = net.nodes[0].table().record(&authority(1)).expect("known");
    let (up, mut dead) = (known.clone(), known.clone());
    dead.status = Dead;
    for record in [&dead, &up, &dead] {
        learn(&mut net, 0, record);
    }
    net.poll(0);
    assert_eq!(net.steps(0, dead.uid), vec![Dead]);
    let quarantined = |event: &_| matches!(event, ClusterEvent::MemberQuarantined { .. });
    assert_eq!(net.count(0, quarantined), 1);
}

#[test]
fn a_heartbeat_to_somebody_who_is_no_monitor_makes_the_two_compare() {
    let mut net = Net::settled(14);
    let monitors = net.nodes[0].monitors_of(&authority(0));
    assert_eq!(monitors.len(), 9);
    let other = (1..14)
        .find(|&index| !monitors.contains(&authority(index)))
        .expect("fourteen have more than nine");
    let heartbeat = Message::Heartbeat {
        sequence: 1,
        incarnation: 1,
    };
    deliver(&mut net, other, 0, heartbeat);
    let answer = Message::HeartbeatAck {
        sequence: 1,
        suspected: None,
        not_my_monitor: true,
    };
    assert!(said(&mut net, other).contains(&(authority(0), answer.clone())));
    net.run(seconds(1));
    net.poll(0);
    net.nodes[0].dissemination.compared(TimerInstant::ZERO);
    deliver(&mut net, 0, other, answer);
    let compared = said(&mut net, 0).into_iter().any(|(to, message)| {
        to == authority(other) && matches!(message, Message::PullRequest { .. })
    });
    assert!(compared);
}

#[test]
fn a_node_whose_timers_run_late_takes_longer_to_accuse() {
    let time_to_accuse = |late: bool| {
        let mut net = Net::settled(3);
        if late {
            for _ in 0..3 {
                let at = net.nodes[0].next_deadline().expect("started");
                let jumped = at.max(net.now) + Duration::from_millis(400);
                net.run(jumped.saturating_since(net.now) - Duration::from_millis(399));
                net.now = jumped;
                net.poll(0);
            }
            assert!(net.nodes[0].local_health.multiplier() > 1);
        }
        net.down.insert(2);
        let start = net.now;
        while net.nodes[0].metrics().accusations == 0 {
            net.run(Duration::from_millis(10));
        }
        net.now.saturating_since(start)
    };
    let (calm, late) = (time_to_accuse(false), time_to_accuse(true));
    assert!(
        late > calm + Duration::from_secs(1),
        "{calm:?} and {late:?}"
    );
}

#[test]
fn seven_of_nine_monitors_are_a_quorum_and_suspects_among_them_do_not_count() {
    let mut net = Net::settled(14);
    let subject = 5;
    let monitors = net.nodes[0].monitors_of(&authority(subject));
    let indices: Vec<usize> = (0..14)
        .filter(|&index| monitors.contains(&authority(index)))
        .collect();
    let uids: Vec<NodeUid> = indices.iter().map(|&index| net.uid(index)).collect();
    let judge = indices[0];
    let stands = |net: &mut Net, accusers: usize| {
        let record = suspect(net, judge, subject, &uids[..accusers], 1);
        let node = &mut net.nodes[judge];
        let now = node.advance(net.now);
        let slot = node.table.slot_of(&authority(subject)).expect("known");
        node.quorum_stands(slot, &record, now)
    };
    assert_eq!(uids.len(), 9);
    assert!(!stands(&mut net, 6));
    assert!(stands(&mut net, 7));
    for accusers in [1, 2] {
        for &doubted in &indices[7..] {
            let record = suspect(&net, judge, doubted, &uids[..accusers], 1);
            learn(&mut net, judge, &record);
        }
        // Seven count, and two thirds of them are five; one accuser alone could otherwise discount everybody else.
        assert_eq!(stands(&mut net, 5), accusers == 2, "{accusers} accusers");
    }
    assert!(!stands(&mut net, 4));
}

#[test]
fn a_quorum_that_breaks_in_between_starts_over() {
    let mut net = Net::settled(4);
    let timeout = net.config.suspect_timeout;
    // Only n0 runs. It receives from n1 and n2, and nothing from n3.
    let run = |net: &mut Net, time: Duration| {
        let end = net.now + time;
        while net.now < end && net.status(0, 3) != Some(Dead) {
            net.now = net.now + Duration::from_millis(20);
            for peer in [1, 2] {
                let heartbeat = Message::Heartbeat {
                    sequence: net.now.as_micros(),
                    incarnation: net.nodes[peer].incarnation(),
                };
                deliver(net, 0, peer, heartbeat);
            }
            net.poll(0);
        }
    };
    while net.nodes[0].metrics().accusations == 0 {
        run(&mut net, Duration::from_millis(20));
    }
    let accuser = net.uid(1);
    for round in [1, 2] {
        let record = suspect(&net, 0, 3, &[accuser], round);
        learn(&mut net, 0, &record);
        run(&mut net, timeout * 3 / 4);
    }
    assert_eq!(
        net.status(0, 3),
        Some(Suspect),
        "two of three stood, one stands"
    );
    let record = suspect(&net, 0, 3, &[accuser], 3);
    learn(&mut net, 0, &record);
    let again = net.now;
    run(&mut net, timeout * 2);
    assert_eq!(net.status(0, 3), Some(Dead));
    assert!(net.now.saturating_since(again) >= timeout);
}

#[test]
fn a_node_that_missed_a_death_asks_for_it_once_a_verdict_is_overdue() {
    let mut config = MembershipRuntimeConfig::local();
    config.monitors = 2;
    config.push_pull_interval = seconds(60);
    let timeout = config.suspect_timeout;
    let mut net = Net::new(config);
    for _ in 0..5 {
        net.start(&[0]);
    }
    net.run(seconds(5));
    net.assert_agreed(5);
    let subject = 4;
    let monitors = net.nodes[0].monitors_of(&authority(subject));
    let (accusers, others): (Vec<usize>, Vec<usize>) =
        (0..subject).partition(|&index| monitors.contains(&authority(index)));
    let viewer = others[0];
    let uids: Vec<NodeUid> = accusers.iter().map(|&index| net.uid(index)).collect();
    let record = suspect(&net, viewer, subject, &uids, 1);
    learn(&mut net, viewer, &record);
    // Only the viewer runs, which receives heartbeats and answers, but none of the pushes that tell of the death. The
    // comparison that it makes when the suspicion has stood comes before the death.
    let since = net.now;
    let mut compared = false;
    while net.status(viewer, subject) != Some(Dead) && net.now < since + timeout * 5 {
        net.now = net.now + Duration::from_millis(20);
        for peer in (0..subject).filter(|&peer| peer != viewer) {
            let heartbeat = Message::Heartbeat {
                sequence: net.now.as_micros(),
                incarnation: net.nodes[peer].incarnation(),
            };
            deliver(&mut net, viewer, peer, heartbeat);
        }
        let died = compared;
        for (to, message) in said(&mut net, viewer) {
            let peer = (0..subject).find(|&peer| authority(peer) == to);
            let (Some(peer), Message::PullRequest { seen, .. }) = (peer, message) else {
                continue;
            };
            compared |= net.now >= since + timeout;
            let death = died.then(|| learn::ended(&record, Dead));
            let delta = MembershipDelta {
                records: death.into_iter().collect(),
                ..MembershipDelta::default()
            };
            let reply = Message::PullReply {
                seen,
                wanted: 0,
                delta,
            };
            deliver(&mut net, viewer, peer, reply);
        }
    }
    assert!(compared);
    assert_eq!(net.status(viewer, subject), Some(Dead));
    assert!(net.now.saturating_since(since) <= timeout * 5 / 2);
}

#[test]
fn a_client_changes_nothing_for_anybody() {
    let mut net = Net::settled(2);
    let client = net.add();
    let now = net.now;
    let node = &mut net.nodes[client];
    node.start_client(&[authority(0)], now).expect("stopped");
    let refused = MembershipError::ClientMayNot;
    let (who, uid) = (authority(1), NodeUid::from_raw(1));
    assert_eq!(
        node.handle_join(uid, who.clone(), now),
        Err(refused.clone())
    );
    assert_eq!(node.handle_leave(&who, now), Err(refused.clone()));
    assert_eq!(node.handle_heartbeat(&who, now), Err(refused.clone()));
    assert_eq!(node.leave(now), Err(refused.clone()));
    assert_eq!(
        node.quarantine(&who, "", seconds(1), now),
        Err(refused.clone())
    );
    assert_eq!(node.release(&who, now), Err(refused.clone()));
    assert_eq!(node.set_metadata(MemberMetadata::EMPTY, now), Err(refused));
    assert!(
        node.handle_gossip_delta(&who, MembershipDelta::default(), now)
            .is_ok()
    );
    net.run(seconds(5));
    // Nor does it answer those who take it for a member.
    let join = Message::Join {
        record: net.nodes[0]
            .table()
            .record(&authority(0))
            .expect("known")
            .clone(),
    };
    deliver(&mut net, client, 0, join);
    deliver(&mut net, client, 0, Message::Probe { nonce: 1 });
    assert!(
        said(&mut net, client)
            .iter()
            .all(|(_, message)| matches!(message, Message::PullRequest { .. }))
    );
    assert_eq!(net.nodes[0].snapshot().members.len(), 2);
}

#[test]
fn no_life_that_was_seen_to_end_is_seen_again_after_its_tombstone_is_gone() {
    for count in [2, 3, 6] {
        let mut net = Net::settled(count);
        let (one, two): (Vec<usize>, Vec<usize>) = (0..count).partition(|index| index * 2 < count);
        net.part(&one, &two);
        net.run(net.config.dead_timeout * 4);
        assert_eq!(net.status(two[0], 0), None, "collected");
        net.cut.clear();
        net.run(seconds(30));
        net.assert_agreed(count);
        for viewer in 0..count {
            let mut ended = BTreeSet::new();
            for event in &net.events[viewer] {
                let ClusterEvent::MemberStatusChanged {
                    node_id,
                    authority,
                    to,
                    ..
                } = event
                else {
                    continue;
                };
                if to.is_terminal() {
                    ended.insert(*node_id);
                } else {
                    assert!(
                        !ended.contains(node_id),
                        "n{viewer} sees {authority}#{node_id} {to} again"
                    );
                }
            }
        }
    }
}

#[test]
fn a_provider_may_not_bring_back_a_life_whose_tombstone_is_gone() {
    let mut net = Net::settled(3);
    let uid = net.uid(2);
    net.down.insert(2);
    net.run(net.config.dead_timeout * 4);
    assert_eq!(net.status(0, 2), None, "collected");
    let refused = net.nodes[0].handle_join(uid, authority(2), net.now);
    let invalid = MembershipError::InvalidTransition {
        authority: authority(2),
        from: Removed,
        to: Joining,
    };
    assert_eq!(refused, Err(invalid));
}
