//! An operator's orders: that they reach everybody, that they end when they should, and that they stay ended.

use super::*;
use crate::core::base::reason::{QuarantineReason, ReasonText};
use crate::core::state::quarantine::QuarantineRumor;
use crate::core::wire::codec::JoinRefusal;

const LONG: Duration = Duration::from_secs(100_000);

fn released(event: &ClusterEvent) -> bool {
    matches!(event, ClusterEvent::QuarantineReleased { .. })
}

fn quarantine(net: &mut Net, by: usize, of: usize) {
    net.nodes[by]
        .quarantine(&authority(of), "disk", LONG, net.now)
        .expect("a member");
}

fn release(net: &mut Net, by: usize, of: usize) {
    net.nodes[by]
        .release(&authority(of), net.now)
        .expect("a member");
}

fn deliver(net: &mut Net, to: usize, from: usize, message: Message) {
    let envelope = Envelope {
        cluster: "kumi".into(),
        versions: (1, 1),
        sender: net.nodes[from].identity(),
        message,
    };
    net.nodes[to]
        .handle_message(&authority(from), &envelope.encode(), net.now)
        .expect("valid");
}

#[test]
fn a_node_that_was_kept_out_is_back_as_soon_as_the_order_is_lifted() {
    let mut net = Net::settled(4);
    quarantine(&mut net, 0, 3);
    net.run(seconds(30));
    assert_eq!(net.nodes[3].status(), Some(Joining));
    net.events.iter_mut().for_each(Vec::clear);
    release(&mut net, 1, 3);
    net.run(seconds(3));
    net.assert_agreed(4);
    for viewer in 0..4 {
        assert_eq!(net.count(viewer, released), 1, "n{viewer}");
    }
}

#[test]
fn a_node_that_was_restarted_while_kept_out_is_back_as_soon_as_the_order_is_lifted() {
    let mut net = Net::settled(3);
    quarantine(&mut net, 0, 2);
    net.run(seconds(3));
    let node = local_node(2, net.unix_ms());
    net.restart(2, node, 0);
    net.run(seconds(5));
    assert_eq!(net.nodes[2].status(), Some(Joining));
    release(&mut net, 1, 2);
    net.run(seconds(3));
    net.assert_agreed(3);
}

#[test]
fn a_node_that_is_kept_out_asks_whether_it_still_is() {
    let mut net = Net::settled(3);
    quarantine(&mut net, 0, 2);
    net.run(seconds(3));
    net.part(&[2], &[0, 1]);
    release(&mut net, 1, 2);
    net.run(seconds(3));
    net.cut.clear();
    net.run(seconds(8));
    net.assert_agreed(3);
}

#[test]
fn a_node_restarted_in_quarantine_knows_the_reason_and_learns_of_the_end_from_any_member() {
    let mut net = Net::settled(3);
    quarantine(&mut net, 0, 2);
    net.run(seconds(3));
    let node = local_node(2, net.unix_ms());
    net.restart(2, node, 0);
    net.run(seconds(20));
    let entries = net.nodes[2].quarantine_snapshot();
    assert_eq!(entries.len(), 1);
    assert_eq!(
        entries[0].reason,
        QuarantineReason::Operator(ReasonText::escaped("disk"))
    );
    let told = net.count(0, |event| {
        matches!(event, ClusterEvent::MemberQuarantined { .. })
    });
    assert!(
        told <= 2,
        "a node that knows does not knock in vain, but {told} times it did"
    );
    // What n1 tells it directly is lost.
    net.cut.insert((1, 2));
    release(&mut net, 1, 2);
    net.run(seconds(1));
    net.cut.clear();
    net.run(seconds(7));
    net.assert_agreed(3);
}

#[test]
fn a_node_is_back_in_time_when_the_order_is_made_shorter() {
    for restarts in [false, true] {
        for by in 0..2 {
            let mut net = Net::settled(3);
            quarantine(&mut net, 0, 2);
            net.run(seconds(3));
            if restarts {
                let node = local_node(2, net.unix_ms());
                net.restart(2, node, 0);
            }
            net.run(seconds(3));
            let uid = net.uid(2);
            net.nodes[by]
                .quarantine(&authority(2), "disk", seconds(3), net.now)
                .expect("a member");
            net.run(seconds(2));
            assert_eq!(net.nodes[2].status(), Some(Joining), "it waits");
            assert_eq!(net.uid(2), uid, "it had no life that could end");
            net.run(seconds(3));
            net.assert_agreed(3);
        }
    }
}

#[test]
fn a_member_that_missed_the_release_learns_of_it_by_comparing() {
    let mut net = Net::settled(5);
    quarantine(&mut net, 0, 4);
    net.run(seconds(3));
    net.part(&[3], &[0, 1, 2, 4]);
    release(&mut net, 0, 4);
    net.run(seconds(2));
    net.events.iter_mut().for_each(Vec::clear);
    net.cut.clear();
    net.run(seconds(10));
    net.assert_agreed(5);
    assert!(net.nodes[3].quarantine_snapshot().is_empty());
    let lives = net.count(4, |event| matches!(event, ClusterEvent::SelfDowned { .. }));
    assert!(
        lives <= 2,
        "it is given up {lives} times by the one who missed it"
    );
}

#[test]
fn a_member_that_acts_on_a_lifted_order_is_told_by_the_one_it_keeps_out() {
    let mut net = Net::settled(3);
    quarantine(&mut net, 0, 2);
    let old = net.nodes[0].quarantine.rumor(&authority(2), net.now);
    net.run(seconds(3));
    release(&mut net, 0, 2);
    net.run(seconds(3));
    let record = net.nodes[2]
        .table()
        .record(&authority(2))
        .expect("known")
        .clone();
    let mut verdict = record.clone();
    verdict.status = Dead;
    let verdict = Message::Verdict {
        record: verdict,
        quarantine: old,
    };
    deliver(&mut net, 2, 0, verdict);
    assert!(net.nodes[2].quarantine_snapshot().is_empty());
    let outcome = net.nodes[2].poll(net.now);
    let told = outcome.gossip_outbound.iter().any(|outbound| {
        let envelope = Envelope::decode(&outbound.bytes).expect("valid");
        matches!(envelope.message, Message::Push { delta, .. }
            if outbound.to == authority(0) && delta.quarantines.iter().any(|order| order.remaining_ms == 0))
    });
    assert!(told, "{outcome:?}");
}

#[test]
fn a_lifted_order_that_comes_late_does_not_return() {
    let mut net = Net::settled(3);
    quarantine(&mut net, 0, 2);
    let old = net.nodes[0]
        .quarantine
        .rumor(&authority(2), net.now)
        .expect("ordered");
    net.run(seconds(3));
    release(&mut net, 0, 2);
    net.run(seconds(600));
    net.assert_agreed(3);
    let delta = MembershipDelta {
        quarantines: vec![old],
        ..MembershipDelta::default()
    };
    let push = Message::Push {
        seen: Seen::default(),
        delta,
    };
    deliver(&mut net, 1, 0, push);
    net.run(seconds(3));
    net.assert_agreed(3);
    assert!(net.nodes[1].quarantine_snapshot().is_empty());
}

#[test]
fn an_order_against_the_very_node_that_is_asked_reaches_the_others() {
    let mut net = Net::settled(4);
    let old = net.uid(3);
    quarantine(&mut net, 3, 3);
    net.run(seconds(1));
    for viewer in 0..3 {
        assert_eq!(net.steps(viewer, old).first(), Some(&Dead), "n{viewer}");
        assert_eq!(net.nodes[viewer].quarantine_snapshot().len(), 1);
    }
    let pushes = net.packets.get(&(3, MessageKind::Push)).copied();
    net.run(seconds(5));
    assert_eq!(net.packets.get(&(3, MessageKind::Push)).copied(), pushes);
    release(&mut net, 3, 3);
    net.run(seconds(3));
    net.assert_agreed(4);
}

#[test]
fn an_order_is_not_taken_for_the_word_of_the_monitors() {
    let mut net = Net::settled(3);
    quarantine(&mut net, 0, 2);
    net.run(seconds(3));
    for viewer in 0..2 {
        let reasons: Vec<&QuarantineReason> = net.events[viewer]
            .iter()
            .filter_map(|event| match event {
                ClusterEvent::MemberQuarantined { reason, .. } => Some(reason),
                _ => None,
            })
            .collect();
        assert!(
            matches!(*reasons, [QuarantineReason::Operator(_)]),
            "n{viewer}: {reasons:?}"
        );
    }
}

#[test]
fn an_order_for_which_there_is_no_room_is_refused() {
    let mut config = MembershipRuntimeConfig::local();
    config.max_members = 2;
    let mut net = Net::new(config);
    net.start(&[]);
    for of in [5, 6] {
        quarantine(&mut net, 0, of);
    }
    let refused = net.nodes[0].quarantine(&authority(7), "", LONG, net.now);
    assert_eq!(refused, Err(MembershipError::TableFull { limit: 2 }));
}

#[test]
fn a_former_member_does_not_take_a_uid_above_a_later_life() {
    let mut net = Net::settled(3);
    quarantine(&mut net, 0, 2);
    net.run(seconds(3));
    assert_eq!(net.nodes[2].status(), Some(Joining));
    let current = NodeUid::new(UNIX_MS * 2, 0);
    let reason = JoinRefusal::Superseded { current };
    deliver(&mut net, 2, 0, Message::JoinRefused { reason });
    assert_eq!(net.nodes[2].state(), MembershipRuntimeState::Stopped);
    net.poll(2);
    assert_eq!(
        net.count(2, |event| is_self_downed(event, DownReason::Superseded)),
        1
    );
}

#[test]
fn two_who_hold_each_other_to_be_dead_do_not_answer_verdicts_with_verdicts() {
    let mut net = Net::settled(2);
    let mut record = net.nodes[0]
        .table()
        .record(&authority(1))
        .expect("known")
        .clone();
    record.status = Dead;
    let now = net.nodes[0].advance(net.now);
    net.nodes[0].learn(&record, now);
    let _ = net.nodes[0].poll(net.now);
    let mut own = net.nodes[0]
        .table()
        .record(&authority(0))
        .expect("known")
        .clone();
    own.uid = NodeUid::from_raw(1);
    own.status = Dead;
    let verdict = Message::Verdict {
        record: own,
        quarantine: None,
    };
    deliver(&mut net, 0, 1, verdict);
    let sent = net.nodes[0].poll(net.now).gossip_outbound;
    assert!(
        sent.iter()
            .all(|outbound| outbound.kind != MessageKind::Verdict),
        "{sent:?}"
    );
}

#[test]
fn late_words_of_earlier_lives_are_no_conflict() {
    let mut net = Net::settled(3);
    for round in 0..6 {
        let sender = NodeIdentity {
            authority: authority(2),
            uid: NodeUid::from_raw(9),
        };
        let envelope = Envelope {
            cluster: "kumi".into(),
            versions: (1, 1),
            sender,
            message: Message::Probe { nonce: round },
        };
        net.nodes[0]
            .handle_message(&authority(2), &envelope.encode(), net.now)
            .expect("valid");
        net.run(seconds(60));
    }
    let told = net.count(0, |event| {
        matches!(event, ClusterEvent::AuthorityConflict { .. })
    });
    assert_eq!(told, 0);
}

#[test]
fn an_order_is_remembered_with_the_time_that_its_sender_names() {
    let mut net = Net::settled(1);
    let rumor = QuarantineRumor {
        authority: authority(9),
        version: 5,
        remaining_ms: u64::MAX,
        remember_ms: u64::MAX,
        text: ReasonText::default(),
    };
    let now = net.nodes[0].advance(net.now);
    net.nodes[0].learn_order(&rumor, now);
    let entry = &net.nodes[0].quarantine_snapshot()[0];
    assert_eq!(entry.expires_at, net.now + crate::core::MAX_QUARANTINE);
}
