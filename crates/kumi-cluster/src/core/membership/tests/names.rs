//! One live node per name.

use super::*;
use crate::core::membership::parts::clock::Now;
use kumi_common::Name;

fn metadata(name: &str) -> MemberMetadata {
    let name = Name::new(name).expect("a name");
    MemberMetadata::EMPTY.with_name(&name).expect("short")
}

/// Starts one more node, with a name.
fn start(net: &mut Net, name: &str, seed: usize) -> usize {
    let index = net.add();
    let node = LocalNode {
        metadata: metadata(name),
        ..local_node(index, net.unix_ms())
    };
    net.restart(index, node, seed);
    index
}

/// Three nodes of which the last has the name `web`.
fn with_web() -> (Net, usize) {
    let mut net = Net::settled(2);
    let web = start(&mut net, "web", 0);
    net.run(seconds(3));
    net.assert_agreed(3);
    (net, web)
}

fn taken_by(net: &Net, holder: usize) -> Option<MembershipError> {
    let name = Name::new("web").expect("a name");
    let holder = net.nodes[holder].identity();
    Some(MembershipError::NameTaken { name, holder })
}

fn name_events(net: &Net, index: usize) -> usize {
    net.count(index, |event| {
        matches!(event, ClusterEvent::NameTaken { .. })
    })
}

#[test]
fn a_second_live_node_of_one_name_is_refused_and_told_once_by_whom() {
    let (mut net, web) = with_web();
    // The one seed is another node, the other one is the holder of the name itself.
    for seed in [0, web] {
        let second = start(&mut net, "web", seed);
        net.run(seconds(20));
        assert_eq!(net.nodes[second].status(), Some(Joining));
        assert_eq!(net.nodes[second].refusal(), taken_by(&net, web));
        assert_eq!(name_events(&net, second), 1);
        assert_eq!(net.nodes[0].snapshot().members.len(), 3);
        assert_eq!(net.status(0, second), None);
        net.down.insert(second);
    }
    assert_eq!(net.nodes[0].footprint().name_checks, 0);
}

#[test]
fn a_node_that_was_refused_is_let_in_when_the_first_one_has_crashed() {
    let (mut net, web) = with_web();
    let second = start(&mut net, "web", 0);
    net.run(seconds(5));
    assert_eq!(net.nodes[second].refusal(), taken_by(&net, web));
    net.down.insert(web);
    net.run(seconds(5));
    assert_eq!(net.nodes[second].status(), Some(Up));
    assert_eq!(net.nodes[second].refusal(), None);
    net.run(seconds(10));
    net.assert_agreed(3);
}

#[test]
fn a_restart_at_another_address_is_let_in_within_a_second_and_at_the_same_one_at_once() {
    let (mut net, web) = with_web();
    net.down.insert(web);
    let elsewhere = start(&mut net, "web", 0);
    net.run(seconds(1));
    assert_eq!(net.nodes[elsewhere].status(), Some(Up));
    assert_eq!(name_events(&net, elsewhere), 0);
    // Its former life is declared dead as any other, within the time that takes.
    net.run(seconds(5));
    net.assert_agreed(3);

    let node = LocalNode {
        metadata: metadata("web"),
        ..local_node(elsewhere, net.unix_ms())
    };
    net.restart(elsewhere, node, 0);
    net.run(Duration::from_millis(100));
    assert_eq!(net.nodes[elsewhere].status(), Some(Up));
    let replaced = net.departures[0].last().expect("its former life");
    assert_eq!(replaced.identity().authority, authority(elsewhere));
}

#[test]
fn a_member_that_leaves_does_not_keep_its_name() {
    let (mut net, web) = with_web();
    net.nodes[web].leave(net.now).expect("a member");
    net.run(Duration::from_millis(300));
    let second = start(&mut net, "web", 0);
    net.run(Duration::from_millis(100));
    assert_eq!(net.nodes[second].status(), Some(Up));
}

/// Two sides of a partition, with a node of one name on each: the one in the earlier life, and the other one.
fn on_two_sides() -> (Net, usize, usize) {
    let mut net = Net::settled(4);
    net.part(&[0, 1, 4], &[2, 3, 5]);
    let earlier = start(&mut net, "web", 0);
    net.run(Duration::from_millis(300));
    let later = start(&mut net, "web", 2);
    net.run(Duration::from_millis(300));
    for index in [earlier, later] {
        assert_eq!(net.nodes[index].status(), Some(Up));
    }
    (net, earlier, later)
}

#[test]
fn of_two_members_with_one_name_that_meet_the_one_in_the_earlier_life_stays() {
    let (mut net, earlier, later) = on_two_sides();
    let (kept, ended) = (net.uid(earlier), net.uid(later));
    net.cut.clear();
    net.run(seconds(20));
    assert_eq!(net.nodes[earlier].status(), Some(Up));
    assert_eq!(net.uid(earlier), kept);
    assert_eq!(net.nodes[later].status(), Some(Joining));
    assert_eq!(net.nodes[later].refusal(), taken_by(&net, earlier));
    assert!(net.uid(later) > ended);
    let downed = |event: &ClusterEvent| is_self_downed(event, DownReason::NameTaken);
    assert_eq!(net.count(later, downed), 1, "{:?}", net.events[later]);
    for index in 0..5 {
        assert_eq!(net.nodes[index].snapshot().members.len(), 5, "{index}");
    }
}

/// Of three members with one name the node probes one, which ends; the other one has been silent so far.
#[test]
fn a_namesake_that_another_one_hid_is_probed_when_that_one_is_gone() {
    let (mut net, earlier, later) = on_two_sides();
    net.cut.clear();
    net.part(&[earlier], &[later]);
    net.run(Duration::from_millis(500));
    assert_eq!(net.nodes[later].status(), Some(Up));
    assert!(
        net.status(later, earlier)
            .is_some_and(NodeStatus::is_active)
    );
    let gone = NodeIdentity {
        authority: authority(9),
        uid: net.uid(earlier),
    };
    let now: Now = net.nodes[later].local_health.now();
    net.nodes[later].name_checks.clear();
    net.nodes[later].name_checks.set_namesake(gone, now.own);
    net.cut.clear();
    net.run(seconds(5));
    assert_eq!(net.nodes[earlier].status(), Some(Up));
    assert_eq!(net.nodes[later].status(), Some(Joining));
    assert_eq!(net.nodes[later].refusal(), taken_by(&net, earlier));
}

#[test]
fn of_two_members_with_one_name_one_stays_after_a_long_partition() {
    let (mut net, earlier, later) = on_two_sides();
    net.run(seconds(15));
    // Each side has declared the other one dead, so all begin other lives when they meet.
    net.cut.clear();
    net.run(seconds(60));
    let is_up = |index: usize| net.nodes[index].status() == Some(Up);
    let (stays, waits) = match is_up(earlier) {
        true => (earlier, later),
        false => (later, earlier),
    };
    assert!(is_up(stays) && !is_up(waits));
    assert_eq!(net.nodes[waits].refusal(), taken_by(&net, stays));
    assert_eq!(net.nodes[0].snapshot().members.len(), 5);
}

#[test]
fn a_paused_node_whose_name_was_taken_meanwhile_does_not_become_a_second_one() {
    let (mut net, web) = with_web();
    net.down.insert(web);
    let replacement = start(&mut net, "web", 0);
    net.run(seconds(20));
    assert_eq!(net.status(0, web), Some(Dead));
    net.down.remove(&web);
    net.run(seconds(30));
    assert_eq!(net.nodes[replacement].status(), Some(Up));
    assert_eq!(net.nodes[web].status(), Some(Joining));
    assert_eq!(net.nodes[web].refusal(), taken_by(&net, replacement));
    net.down.insert(web);
    net.run(seconds(10));
    net.assert_agreed(3);
}

#[test]
fn a_joiner_that_is_checked_is_in_no_table_before_the_check_has_ended() {
    let (mut net, web) = with_web();
    net.down.insert(web);
    let second = start(&mut net, "web", 0);
    net.run(Duration::from_millis(200));
    assert_eq!(net.status(0, second), None);
    assert_eq!(net.nodes[0].footprint().name_checks, 1);
    let now: Now = net.nodes[0].local_health.now();
    assert!(
        net.nodes[0]
            .name_checks
            .deadline()
            .is_some_and(|at| at > now.own)
    );
}
