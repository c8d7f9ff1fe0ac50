//! Every decision of the protocol as a scene between a few nodes.

mod net;

use super::*;
use crate::core::base::error::MembershipError;
use crate::core::base::status::NodeStatus::*;
use crate::core::protocol::event::DownReason;
use crate::core::state::record::{Accusations, MemberRecord};
use crate::core::state::snapshot::MembershipDelta;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::ToString;
use alloc::vec;
use core::time::Duration;
use net::{Net, UNIX_MS, authority, local_node};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn is_self_downed(event: &ClusterEvent, wanted: DownReason) -> bool {
    matches!(event, ClusterEvent::SelfDowned { reason, .. } if *reason == wanted)
}

// Arriving and leaving

#[test]
fn nodes_find_each_other_through_one_seed() {
    let mut net = Net::settled(8);
    for viewer in 0..8 {
        for of in 0..8 {
            assert_eq!(net.status(viewer, of), Some(Up));
        }
    }
    let before = net.packets.clone();
    net.run(seconds(60));
    net.assert_agreed(8);
    assert_eq!(
        net.count(3, |event| matches!(event, ClusterEvent::SelfDowned { .. })),
        0
    );
    for index in 0..8 {
        let pushes = |packets: &BTreeMap<_, _>| packets.get(&(index, MessageKind::Push)).copied();
        assert_eq!(
            pushes(&net.packets),
            pushes(&before),
            "with nothing new, nothing is pushed"
        );
        let acks = net
            .packets
            .get(&(index, MessageKind::HeartbeatAck))
            .copied()
            .unwrap_or_default();
        assert!(acks < 20, "{acks} heartbeats were answered");
    }
}

#[test]
fn two_seeds_that_start_apart_merge_when_they_meet() {
    let mut net = Net::new(MembershipRuntimeConfig::local());
    net.part(&[0, 2], &[1, 3]);
    for seeds in [[0, 1], [0, 1], [0, 1], [1, 0]] {
        net.start(&seeds);
    }
    net.run(seconds(8));
    assert_eq!(net.nodes[2].snapshot().members.len(), 2);
    assert_eq!(net.nodes[3].snapshot().members.len(), 2);
    net.cut.clear();
    net.run(seconds(8));
    net.assert_agreed(4);
}

#[test]
fn leaving_is_seen_before_removed_and_the_leaver_stops() {
    let mut net = Net::settled(4);
    let uid = net.uid(2);
    net.nodes[2].leave(net.now).expect("a member");
    net.run(seconds(3));
    assert_eq!(net.nodes[2].state(), MembershipRuntimeState::Stopped);
    assert_eq!(net.steps(0, uid), vec![Leaving, Removed]);
    net.down.insert(2);
    net.assert_agreed(3);
}

#[test]
fn a_leave_during_a_partition_ends_as_removed_without_a_second_event() {
    let mut net = Net::settled(4);
    let uid = net.uid(3);
    net.part(&[0], &[1, 2, 3]);
    net.nodes[3].leave(net.now).expect("a member");
    net.run(seconds(3));
    net.down.insert(3);
    net.cut.clear();
    net.run(seconds(60));
    net.assert_agreed(3);
    for viewer in 0..3 {
        let steps = net.steps(viewer, uid);
        assert_eq!(
            steps.iter().filter(|&&step| step == Removed).count(),
            1,
            "{viewer}: {steps:?}"
        );
        assert_eq!(steps.last(), Some(&Removed));
    }
}

#[test]
fn a_leaver_that_crashes_on_the_way_is_removed_by_time() {
    let mut net = Net::settled(3);
    let uid = net.uid(2);
    net.nodes[2].leave(net.now).expect("a member");
    net.run(Duration::from_millis(300));
    net.down.insert(2);
    net.run(seconds(10));
    assert_eq!(net.steps(0, uid), vec![Leaving, Removed]);
}

#[test]
fn a_joiner_that_never_speaks_is_removed_and_never_suspected() {
    let mut net = Net::settled(3);
    let ghost = NodeUid::new(UNIX_MS, 1);
    net.name(0, ghost, 77);
    net.run(seconds(5));
    assert_eq!(net.status(2, 77), Some(Joining));
    net.run(seconds(20));
    for viewer in 0..3 {
        assert_eq!(net.steps(viewer, ghost), vec![Joining, Removed]);
    }
}

// Identity

#[test]
fn a_restart_supersedes_the_former_life() {
    let mut net = Net::settled(3);
    let old = net.uid(2);
    let node = local_node(2, net.unix_ms() + 1);
    net.restart(2, node, 0);
    net.run(seconds(3));
    net.assert_agreed(3);
    let new = net.uid(2);
    assert!(new > old);
    assert_eq!(net.steps(0, old), vec![Dead, Removed]);
    assert_eq!(net.steps(0, new).last(), Some(&Up));
    assert_eq!(
        net.count(0, |event| matches!(
            event,
            ClusterEvent::MemberQuarantined { .. }
        )),
        0
    );
}

#[test]
fn a_joiner_with_a_clock_behind_goes_above_the_known_uid_once() {
    let mut net = Net::settled(3);
    let old = net.uid(2);
    let node = local_node(2, UNIX_MS - 3_600_000);
    net.restart(2, node, 0);
    net.run(seconds(3));
    net.assert_agreed(3);
    assert!(net.uid(2) > old);
    assert_eq!(
        net.count(2, |event| matches!(event, ClusterEvent::SelfDowned { .. })),
        0
    );
}

#[test]
fn a_restart_under_the_same_uid_goes_on_above_its_former_incarnation() {
    let mut net = Net::settled(3);
    let node = LocalNode {
        uid: Some(net.uid(2)),
        ..local_node(2, UNIX_MS)
    };
    net.restart(2, node, 0);
    net.run(seconds(3));
    net.assert_agreed(3);
    assert_eq!(net.nodes[2].status(), Some(Up));
}

#[test]
fn a_superseded_node_stops_and_does_not_come_back_by_itself() {
    let mut net = Net::settled(3);
    net.name(0, NodeUid::new(UNIX_MS * 2, 0), 2);
    net.run(seconds(3));
    assert_eq!(net.nodes[2].state(), MembershipRuntimeState::Stopped);
    assert_eq!(
        net.count(2, |event| is_self_downed(event, DownReason::Superseded)),
        1
    );
    let again = net.nodes[2].start_member(&[authority(0)], net.now);
    assert_eq!(again, Err(MembershipRuntimeError::Superseded));
}

#[test]
fn an_older_life_is_refused_by_name() {
    let mut net = Net::settled(2);
    let current = net.uid(1);
    let refused = net.nodes[0].handle_join(NodeUid::from_raw(5), authority(1), net.now);
    assert_eq!(
        refused,
        Err(MembershipError::Superseded {
            authority: authority(1),
            current
        })
    );
}

#[test]
fn two_lives_that_both_keep_answering_are_a_conflict() {
    let mut net = Net::settled(3);
    let mut told = 0;
    for round in 0..6 {
        // The earlier life does not listen, so it does not stop either.
        let sender = NodeIdentity {
            authority: authority(2),
            uid: NodeUid::from_raw(9),
        };
        let message = Message::Heartbeat {
            sequence: round,
            incarnation: 1,
        };
        let envelope = Envelope {
            cluster: "kumi".into(),
            versions: (1, 1),
            sender,
            message,
        };
        net.nodes[0]
            .handle_message(&authority(2), &envelope.encode(), net.now)
            .expect("valid");
        net.run(Duration::from_millis(200));
        told = net.count(0, |event| {
            matches!(event, ClusterEvent::AuthorityConflict { .. })
        });
    }
    assert_eq!(told, 1);
    assert_eq!(net.status(0, 2), Some(Up));
}

// Failure

#[test]
fn a_crash_is_noticed_by_everybody_and_told_apart_from_leaving() {
    let mut net = Net::settled(6);
    let uid = net.uid(4);
    net.down.insert(4);
    net.run(seconds(8));
    for viewer in [0, 1, 2, 3, 5] {
        assert_eq!(net.steps(viewer, uid), vec![Suspect, Dead]);
        let died = |event: &_| matches!(event, ClusterEvent::TopologyUpdated { dead, .. } if dead.len() == 1);
        assert_eq!(net.count(viewer, died), 1);
        assert_eq!(
            net.count(viewer, |event| matches!(
                event,
                ClusterEvent::MemberQuarantined { .. }
            )),
            1
        );
    }
    net.run(seconds(25));
    assert_eq!(net.steps(0, uid), vec![Suspect, Dead, Removed]);
    net.run(seconds(25));
    assert_eq!(net.status(0, 4), None, "the tombstone was collected");
    assert_eq!(net.nodes[0].footprint().addresses, 1);
}

#[test]
fn one_of_two_nodes_notices_the_crash_of_the_other() {
    let mut net = Net::settled(2);
    net.down.insert(1);
    net.run(seconds(8));
    assert_eq!(net.status(0, 1), Some(Dead));
}

#[test]
fn a_paused_node_is_taken_for_dead_and_comes_back_as_somebody_new() {
    let mut net = Net::settled(5);
    let old = net.uid(3);
    net.down.insert(3);
    net.run(seconds(8));
    net.down.remove(&3);
    net.run(seconds(3));
    net.assert_agreed(5);
    assert_eq!(
        net.count(3, |event| is_self_downed(event, DownReason::Dead)),
        1
    );
    assert!(net.uid(3) > old);
    for viewer in 0..5 {
        let dead = |event: &_| matches!(event, ClusterEvent::MemberStatusChanged { to: Dead, node_id, .. } if *node_id != old);
        assert_eq!(net.count(viewer, dead), 0, "no other member died");
    }
}

#[test]
fn a_node_that_was_down_stops_when_it_is_told_to() {
    let mut config = MembershipRuntimeConfig::local();
    config.rejoin_when_downed = false;
    let mut net = Net::new(config);
    for _ in 0..3 {
        net.start(&[0]);
    }
    net.run(seconds(3));
    net.down.insert(2);
    net.run(seconds(8));
    net.down.remove(&2);
    net.run(seconds(2));
    assert_eq!(net.nodes[2].state(), MembershipRuntimeState::Stopped);
    assert_eq!(net.nodes[2].next_deadline(), None);
}

#[test]
fn a_node_that_receives_nothing_convicts_no_member() {
    let mut net = Net::settled(6);
    for from in 0..5 {
        net.cut.insert((from, 5));
    }
    net.run(seconds(9));
    assert!(
        net.nodes[5].metrics().accusations >= 5,
        "it suspects everybody"
    );
    for viewer in 0..6 {
        for of in 0..6 {
            let status = net.status(viewer, of);
            assert!(
                matches!(status, Some(Up | Suspect)),
                "{viewer} sees {of} as {status:?}"
            );
        }
    }
    net.cut.clear();
    net.run(seconds(5));
    net.assert_agreed(6);
}

#[test]
fn a_node_whose_messages_are_lost_dies_and_is_back_soon_after_they_arrive() {
    let mut net = Net::settled(6);
    let old = net.uid(5);
    for to in 0..5 {
        net.cut.insert((5, to));
    }
    net.run(seconds(9));
    assert_eq!(net.steps(0, old).last(), Some(&Dead));
    net.cut.clear();
    net.run(seconds(3));
    net.assert_agreed(6);
}

#[test]
fn one_broken_link_is_no_reason_to_suspect() {
    let mut net = Net::settled(6);
    net.part(&[1], &[2]);
    net.run(seconds(30));
    for viewer in 0..6 {
        let suspected =
            |event: &_| matches!(event, ClusterEvent::MemberStatusChanged { to: Suspect, .. });
        assert_eq!(net.count(viewer, suspected), 0);
    }
}

#[test]
fn a_suspicion_is_lifted_by_the_subject_in_a_higher_incarnation() {
    let mut net = Net::settled(4);
    let uid = net.uid(3);
    let before = net.nodes[3].incarnation();
    let mut record = net.nodes[0]
        .table()
        .record(&authority(3))
        .expect("known")
        .clone();
    record.status = Suspect;
    let accuser = net.uid(1);
    record
        .accusations
        .add(crate::core::state::record::Accusation { accuser, round: 1 });
    let now = net.nodes[0].advance(net.now);
    net.nodes[0].learn(&record, now);
    net.run(seconds(2));
    assert!(net.nodes[3].incarnation() > before);
    assert_eq!(net.steps(0, uid), vec![Suspect, Up]);
    net.assert_agreed(4);
}

#[test]
fn a_member_accused_by_others_in_its_next_incarnation_is_probed_again() {
    let mut net = Net::settled(3);
    net.down.insert(2);
    while net.nodes[0].metrics().accusations == 0 || net.nodes[1].metrics().accusations == 0 {
        net.run(Duration::from_millis(50));
    }
    // It had refuted that, went silent again, and n1 was the first to notice.
    let mut record = net.nodes[1]
        .table()
        .record(&authority(2))
        .expect("known")
        .clone();
    record.incarnation += 1;
    record.accusations = Accusations::NONE;
    record
        .accusations
        .add(crate::core::state::record::Accusation {
            accuser: net.uid(1),
            round: 1,
        });
    for node in 0..2 {
        let now = net.nodes[node].advance(net.now);
        net.nodes[node].learn(&record, now);
    }
    net.run(seconds(15));
    assert_eq!(net.status(0, 2), Some(Dead));
    assert_eq!(net.status(1, 2), Some(Dead));
}

#[test]
fn a_healed_partition_finds_together_again() {
    for count in [2, 3, 5, 8] {
        let mut net = Net::settled(count);
        let (one, two): (Vec<usize>, Vec<usize>) = (0..count).partition(|index| index * 2 < count);
        net.part(&one, &two);
        net.run(seconds(90));
        net.cut.clear();
        net.run(seconds(30));
        net.assert_agreed(count);
    }
}

#[test]
fn a_node_alone_for_half_the_life_of_a_tombstone_is_somebody_new() {
    let mut net = Net::settled(4);
    let old = net.uid(3);
    net.part(&[3], &[0, 1, 2]);
    net.run(seconds(12));
    assert_eq!(
        net.count(3, |event| is_self_downed(event, DownReason::Isolated)),
        1
    );
    assert!(net.uid(3) > old);
    assert_eq!(net.nodes[3].snapshot().members.len(), 1);
    let dead = |event: &_| matches!(event, ClusterEvent::MemberStatusChanged { to: Dead, .. });
    assert_eq!(net.count(3, dead), 0, "it convicted no member");
    net.cut.clear();
    net.run(seconds(10));
    net.assert_agreed(4);
}

#[test]
fn a_node_without_seeds_that_is_given_up_and_holds_all_others_dead_still_comes_back() {
    let mut net = Net::settled(4);
    net.part(&[0, 2], &[1, 3]);
    net.run(seconds(8));
    assert_eq!(net.status(0, 1), Some(Dead));
    net.nodes[0]
        .quarantine(&authority(2), "disk", Duration::from_secs(1), net.now)
        .expect("a member may");
    net.cut.clear();
    net.run(seconds(15));
    net.assert_agreed(4);
}

#[test]
fn what_a_node_saw_die_before_it_was_alone_stays_dead() {
    let mut net = Net::settled(4);
    let (ended, now) = (net.uid(1), net.now);
    net.part(&[3], &[0, 1, 2]);
    net.nodes[3]
        .quarantine(&authority(1), "disk", Duration::from_secs(1), now)
        .expect("a member may");
    net.run(seconds(12));
    assert_eq!(
        net.count(3, |event| is_self_downed(event, DownReason::Isolated)),
        1
    );
    net.cut.clear();
    net.run(seconds(10));
    net.assert_agreed(4);
    assert!(net.uid(1) > ended, "it was told, and is somebody new");
    assert_eq!(net.steps(3, ended), vec![Dead, Removed]);
}

#[test]
fn a_clock_that_jumps_changes_no_status() {
    let mut net = Net::settled(4);
    // A jump below the limit of isolation, seen as a late poll.
    let jumped = net.now + seconds(6);
    let _ = net.nodes[1].poll(jumped);
    assert_eq!(net.nodes[1].metrics().late, 1);
    assert_eq!(net.nodes[1].metrics().accusations, 0);
    let back = net.nodes[1].poll(net.now);
    assert_eq!(net.nodes[1].metrics().accusations, 0, "{back:?}");
    net.run(seconds(5));
    net.assert_agreed(4);
}

mod arrival;
mod decisions;
mod departures;
mod edges;
mod fixed;
mod ghosts;
mod meeting;
mod metadata;
mod names;
mod observers;
mod orders;
mod rules;
